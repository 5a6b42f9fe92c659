"""Merges databases and folders of partitions into one database. The sources are only read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from localsim.errors import InvalidInput
from localsim.store.database import Store
from localsim.store.journal import is_written, journal_folder
from localsim.store.lock import Connection, patiently, scratch, transaction
from localsim.store.outside.attached import PATIENCE_S, Parts, flat, table_sql, take_folder
from localsim.store.outside.converting import LeftBehind, kinds_of, left_behind, rows_sql
from localsim.store.outside.incoming import Taken, take
from localsim.store.outside.sources import Source, attach, find
from localsim.store.schema import TABLES

Say = Callable[[str], None]


@dataclass(frozen=True)
class Merged:
    """What each source brought to a database."""

    path: Path
    sources: list[tuple[Source, Taken]]

    def as_json(self) -> dict[str, Any]:
        """Return the object that `db merge --json` prints."""
        return {
            "path": str(self.path),
            "sources": [{"path": str(source.path), **asdict(taken)} for source, taken in self.sources],
        }


def merge(places: Iterable[str], output: Path, say: Say, *, apart: bool = False) -> Merged:
    """Take all runs of the sources that `places` name into the database `output`, which may exist already.

    Each source is one transaction, and to take it in twice changes nothing. `apart` keeps what clashes under new ids.
    A database of another version of localsim is read by the names of its columns. Raises InvalidInput for a place that
    has nothing, and DatabaseError for a source that cannot be used.
    """
    sources = list(flat(find(places), say))
    if any(source.path.resolve() == output.resolve() for source in sources):
        raise InvalidInput("a database cannot be merged into itself", where=str(output), hint="choose another -o")
    store = Store(output, waiting=say)
    done = []
    for source in sources:
        with TemporaryDirectory(prefix="localsim-merge-") as folder:
            ready, behind = _ready(source, Path(folder), say)
            with store.writing() as connection, _incoming(connection, ready, say), transaction(connection):
                taken = take(connection, apart=apart)
            taken.left_behind = behind
            done.append((source, taken))
    return Merged(output, done)


@contextmanager
def _incoming(connection: Connection, source: Source, say: Say) -> Iterator[None]:
    """Show the rows of a source as the views `incoming_TABLE`."""
    if source.kind == "database":
        current = patiently(
            lambda: attach(connection, source.path, "incoming", any_version=True), source.path, PATIENCE_S, say
        )
        queries = {table: f"FROM incoming.main.{table}" for table in TABLES}
        if not current:
            kinds = kinds_of(connection, "incoming")
            queries = {table: rows_sql(table, kinds.get(table, {}), f"incoming.main.{table}") for table in TABLES}
    else:
        parts = Parts()
        take_folder(source, parts)
        queries = {table: table_sql(table, parts) for table in TABLES}
    for table, query in queries.items():
        names = ", ".join(TABLES[table].columns)
        connection.execute(f"CREATE OR REPLACE TEMP VIEW incoming_{table} AS SELECT {names} FROM ({query})")
    yield
    for table in TABLES:
        connection.execute(f"DROP VIEW incoming_{table}")
    if source.kind == "database":
        connection.execute("DETACH incoming")


def _ready(source: Source, folder: Path, say: Say) -> tuple[Source, list[LeftBehind]]:
    """Return a source with all its rows, and what is left behind. One with journals beside it is copied for that."""
    if source.kind == "folder":
        return source, []
    behind = patiently(lambda: _left_behind(source), source.path, PATIENCE_S, say)
    journals = _journals(source.path, say)
    if not journals:
        return source, behind
    copy = Store(folder / "copy.duckdb", waiting=say)
    with copy.writing() as connection, _incoming(connection, source, say):
        for table in TABLES:
            connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming_{table}")
    for journal in journals:
        try:
            copy.take_in_journal(journal)
        except (KeyError, TypeError, ValueError) as error:
            say(f"{journal} cannot be understood ({type(error).__name__}) and is left out")
    return Source("database", copy.path), behind


def _left_behind(source: Source) -> list[LeftBehind]:
    with scratch() as connection:
        if attach(connection, source.path, "source", any_version=True):
            return []
        return [each for each in left_behind(connection, "source") if each.count]


def _journals(database: Path, say: Say) -> list[Path]:
    """Return the journals of runs that died; what a living process writes has to wait for the next merge."""
    found = []
    for path in sorted(journal_folder(database).glob("*.jsonl")):
        try:
            living = is_written(database, path.stem)
        except OSError:  # no lock can be made there, as on a disk that cannot be written
            living = False
        if living:
            say(f"run {path.stem} of {database} is still being written: merge it again when it has ended")
        else:
            found.append(path)
    return found
