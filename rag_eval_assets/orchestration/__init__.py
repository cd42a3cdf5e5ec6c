"""The lineage in Dagster: the only package that imports it. Every body here reads inputs and calls one function."""
