"""Sources: the files that an attachment or a merge reads, which may be other people's.

A source is a folder of partitions (`partitions.py`) or a DuckDB file of localsim. Only tables and Parquet files are
read from it, by the names of their columns: views, macros and other code in a foreign file are never used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from localsim.errors import DatabaseError, InvalidInput
from localsim.store.lock import scratch
from localsim.store.migrations import MIGRATIONS, migrate
from localsim.store.outside.partitions import MANIFEST

if TYPE_CHECKING:
    import duckdb

Kind = Literal["folder", "database"]


@dataclass(frozen=True)
class Source:
    """A file or folder with runs."""

    kind: Kind
    path: Path
    """Absolute path of the folder or database."""
    origin: Path | None = None
    """The database of an older schema of which `path` is a migrated copy."""

    def state(self, attachment: Path) -> tuple[str, int, int]:
        """Return what changes when the source does: path, time of change in ns, size in bytes.

        A folder changes when a partition is added or replaced. Raises DatabaseError if the source is missing.
        """
        try:
            about = self.path.stat()
        except OSError as error:
            raise DatabaseError(
                f"this {self.kind}, which {attachment.name} shows, is missing or cannot be read: {error.strerror}",
                where=str(self.path),
                hint=f"put it back, or list what there is now: localsim db attach ... -o {attachment}",
            ) from error
        return str(self.path), about.st_mtime_ns, about.st_size if self.kind == "database" else 0


def quoted(path: Path) -> str:
    """Return a path as an SQL text."""
    return "'" + str(path).replace("'", "''") + "'"


def find(places: Iterable[str]) -> list[Source]:
    """Return the sources that names, folders and patterns mean, each once, in order. Raises InvalidInput.

    A folder is one of partitions, a partition, or a folder of databases.
    """
    found: dict[Path, Source] = {}
    for place in places:
        named = Path(place).expanduser()
        paths = [named] if named.exists() else [Path(each) for each in _matching(str(named))]
        if not paths:
            raise InvalidInput("nothing is here", where=place, hint="give folders, databases or a pattern in quotes")
        for path in paths:
            for source in _of(path.absolute()):
                found.setdefault(source.path.resolve(), source)
    return list(found.values())


def _matching(pattern: str) -> list[str]:
    return sorted(glob(pattern, recursive=True))  # noqa: PTH207 - Path.glob refuses absolute patterns


def _of(path: Path) -> Iterable[Source]:
    if path.is_file():
        return [Source("database", path)]
    if path.name.startswith("run=") and (path / MANIFEST).is_file():
        return [Source("folder", path)]
    if next(path.glob(f"run=*/{MANIFEST}"), None):
        return [Source("folder", path)]
    if databases := sorted(path.glob("*.duckdb")):
        return [Source("database", each) for each in databases]
    raise InvalidInput(
        "this folder has no partitions and no databases",
        where=str(path),
        hint="localsim export RUN --partitioned FOLDER writes partitions",
    )


def _tables_of(version: int) -> list[str]:
    """Return the tables of a version of the schema."""
    statements = [text for step in MIGRATIONS[:version] for text in step.statements]
    return [found[1] for text in statements if (found := re.match(r"CREATE TABLE (\w+)", text))]


def attach(connection: duckdb.DuckDBPyConnection, path: Path, name: str) -> int:
    """Attach a database read-only as `name` after checking it; return the version of its schema.

    Raises DatabaseError for a file that is not a database of localsim, is newer, or has something else in the place of
    a table; the message of DuckDB for a file that it cannot open passes through.
    """
    connection.execute(f"ATTACH {quoted(path)} AS {name} (READ_ONLY)")
    tables = {
        row[0]: row[1]
        for row in connection.execute(
            "SELECT table_name, sql FROM duckdb_tables() WHERE database_name = ? AND schema_name = 'main'", [name]
        ).fetchall()
    }
    version = 0
    if "_migrations" in tables:
        row = connection.execute(f"SELECT coalesce(max(number), 0) FROM {name}.main._migrations").fetchone()
        version = int(row[0]) if row else 0
    problem, hint = "", "leave it out"
    if version < 1:
        problem = "not a database of localsim"
    elif version > len(MIGRATIONS):
        problem, hint = (
            f"its schema has version {version}, this localsim knows up to {len(MIGRATIONS)}",
            "update localsim",
        )
    elif missing := [table for table in _tables_of(version) if table not in tables]:
        problem = f"not a sound database of localsim: {missing[0]} is not a table"
    elif any("GENERATED ALWAYS" in (tables[table] or "").upper() for table in _tables_of(version)):
        problem = "not a sound database of localsim: a column is computed"
    if problem:
        connection.execute(f"DETACH {name}")
        raise DatabaseError(problem, where=str(path), hint=hint)
    return version


def version_of(path: Path) -> int:
    """Return the version of a database's schema; raises DatabaseError as `attach` does."""
    with scratch() as connection:
        return attach(connection, path, "source")


def copy_migrated(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Fill an empty database with the rows of a database of any older schema, and bring it to the current schema.

    The older file is only read. Raises DatabaseError as `attach` does.
    """
    version = version_of(path)
    migrate(connection, stop_before=version + 1)
    attach(connection, path, "older")
    for table in _tables_of(version):
        rows = connection.execute(f"DESCRIBE {table}").fetchall()
        columns = ", ".join(row[0] for row in rows)
        connection.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM older.main.{table}")
    connection.execute("DETACH older")
    migrate(connection)
