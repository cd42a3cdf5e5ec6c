"""The evaluation report: its schema, how it is built from tables, written, read, checked, and shown."""
