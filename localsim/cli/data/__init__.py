"""localsim sql, export, import, bundle, replay, runs, db."""

from localsim.cli.data.archives import bundle, replay
from localsim.cli.data.asking import sql
from localsim.cli.data.databases import db
from localsim.cli.data.files import export, import_
from localsim.cli.data.listing import runs

__all__ = ["bundle", "db", "export", "import_", "replay", "runs", "sql"]
