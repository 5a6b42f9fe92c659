"""Sources: the files that an attachment or a merge reads, which may be other people's.

A source is a folder of partitions (`partitions.py`) or a DuckDB file of localsim. Only tables and Parquet files are
read from it, by the names of their columns: views, macros and other code in a foreign file are never used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Literal

from localsim.errors import DatabaseError, InvalidInput, refuse_empty
from localsim.store.lock import Connection
from localsim.store.making import absent_column, other_version, version_in
from localsim.store.outside.partitions import MANIFEST
from localsim.store.schema import TABLES, text_sql, version

Kind = Literal["folder", "database"]


@dataclass(frozen=True)
class Source:
    """A file or folder with runs."""

    kind: Kind
    path: Path
    """Absolute path of the folder or database."""

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
    return text_sql(str(path))


def find(places: Iterable[str]) -> list[Source]:
    """Return the sources that names, folders and patterns mean, each once, in order. Raises InvalidInput.

    A folder is one of partitions, a partition, or a folder of databases.
    """
    found: dict[Path, Source] = {}
    for place in places:
        refuse_empty(place, "the name of a file or folder", "give folders, databases or a pattern in quotes")
        named = Path(place).expanduser()
        paths = [named] if named.exists() else [Path(each) for each in sorted(glob(str(named), recursive=True))]  # noqa: PTH207 - Path.glob refuses absolute patterns
        if not paths:
            raise InvalidInput("nothing is here", where=place, hint="give folders, databases or a pattern in quotes")
        for path in paths:
            for source in _of(path.absolute()):
                found.setdefault(source.path.resolve(), source)
    return list(found.values())


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


_OLDEST = ("runs", "scenarios", "episodes", "turns", "generations", "contents", "scores")
"""The tables that every version of localsim has had."""


def attach(connection: Connection, path: Path, name: str, *, any_version: bool = False) -> bool:
    """Attach a database read-only as `name` after checking it; return True if it has the schema of this localsim.

    Raises DatabaseError for a file that is not a database of localsim, has something else in the place of a table, or
    (unless `any_version`) was made by another version; the message of DuckDB for a file that it cannot open passes
    through.
    """
    connection.execute(f"ATTACH {quoted(path)} AS {name} (READ_ONLY)")
    tables = {
        row[0]: row[1]
        for row in connection.execute(
            "SELECT table_name, sql FROM duckdb_tables() WHERE database_name = ? AND schema_name = 'main'", [name]
        ).fetchall()
    }
    found = version_in(connection, name)
    current = found == version()
    missing = [table for table in (TABLES if current else _OLDEST) if table not in tables]
    problem = ""
    if not found:
        problem = "not a database of localsim"
    elif missing and (current or any_version):
        problem = f"not a sound database of localsim: {missing[0]} is not a table"
    elif current and (absent := absent_column(connection, name)):
        problem = f"not a sound database of localsim: {absent} is missing"
    elif any("GENERATED ALWAYS" in (tables.get(table) or "").upper() for table in TABLES):
        problem = "not a sound database of localsim: a column is computed"
    if problem or not (current or any_version):
        connection.execute(f"DETACH {name}")
        raise DatabaseError(problem, where=str(path), hint="leave it out") if problem else other_version(path)
    return current
