"""The stages of an evaluation: each reads tables from the store, calls one pure function and writes one table.

This is what Dagster's assets wrap, and it does not know Dagster.
"""
