"""Everything that touches DuckDB: connections, journal, schema, migrations, and the reads that are shared."""
