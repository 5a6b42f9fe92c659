"""The database and the journal: connections, schema, and every query that localsim sends.

This room may import `scenarios` and the rooms below it; no other room imports DuckDB.
"""
