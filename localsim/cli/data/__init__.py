"""localsim sql, export, import, bundle, replay, runs, db."""
