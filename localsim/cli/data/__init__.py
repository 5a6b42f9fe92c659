"""localsim sql, export, import, runs, db."""

from localsim.cli.data.asking import sql
from localsim.cli.data.databases import db
from localsim.cli.data.files import export, import_
from localsim.cli.data.listing import runs

__all__ = ["db", "export", "import_", "runs", "sql"]
