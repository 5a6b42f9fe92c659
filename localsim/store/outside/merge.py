"""Merges databases and folders of partitions into one database. The sources are only read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from localsim.errors import InvalidInput
from localsim.store.database import Store
from localsim.store.journal import is_written, journal_folder, read_journal
from localsim.store.lock import patiently, scratch
from localsim.store.migrations import MIGRATIONS
from localsim.store.outside.attached import Parts, table_sql, take_folder
from localsim.store.outside.attaching import PATIENCE_S, flat
from localsim.store.outside.incoming import Taken, take
from localsim.store.outside.sources import Source, attach, copy_migrated, find, version_of
from localsim.store.records import RunDied, from_json
from localsim.store.rows import rows_of
from localsim.store.schema import TABLES

if TYPE_CHECKING:
    import duckdb

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
            "sources": [{"path": str(source.origin or source.path), **asdict(taken)} for source, taken in self.sources],
        }


def merge(places: Iterable[str], output: Path, say: Say, *, apart: bool = False) -> Merged:
    """Take all runs of the sources that `places` name into the database `output`, which may exist already.

    Each source is one transaction, and to take it in twice changes nothing. `apart` keeps what clashes under new ids.
    Raises InvalidInput for a place that has nothing, and DatabaseError for a source that cannot be used.
    """
    sources = list(flat(find(places)))
    if any(source.path.resolve() == output.resolve() for source in sources):
        raise InvalidInput("a database cannot be merged into itself", where=str(output), hint="choose another -o")
    store = Store(output, waiting=say)
    done = []
    for source in sources:
        with TemporaryDirectory(prefix="localsim-merge-") as folder:
            ready = _ready(source, Path(folder), say)
            done.append((source, _taken(store, ready, say, apart)))
    return Merged(output, done)


def _taken(store: Store, source: Source, say: Say, apart: bool) -> Taken:
    with store.writing() as connection, _incoming(connection, source, say):
        connection.begin()
        try:
            taken = take(connection, apart=apart)
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
    return taken


@contextmanager
def _incoming(connection: duckdb.DuckDBPyConnection, source: Source, say: Say) -> Iterator[None]:
    """Show the rows of a source as the views `incoming_TABLE`."""
    parts = Parts()
    if source.kind == "database":
        patiently(lambda: attach(connection, source.path, "incoming"), source.path, PATIENCE_S, say)
    else:
        take_folder(source, parts)
    for table in TABLES:
        names = ", ".join(TABLES[table].columns)
        place = f"incoming.main.{table}" if source.kind == "database" else f"({table_sql(table, parts)})"
        connection.execute(f"CREATE OR REPLACE TEMP VIEW incoming_{table} AS SELECT {names} FROM {place}")
    yield
    for table in TABLES:
        connection.execute(f"DROP VIEW incoming_{table}")
    if source.kind == "database":
        connection.execute("DETACH incoming")


def _ready(source: Source, folder: Path, say: Say) -> Source:
    """Return a source with all its rows: a migrated copy if its schema is older or it has journals beside it."""
    if source.kind == "folder":
        return source
    journals = _journals(source.path, say)
    version = patiently(lambda: version_of(source.path), source.path, PATIENCE_S, say)
    if version == len(MIGRATIONS) and not journals:
        return source
    copy = folder / "copy.duckdb"

    def copied() -> None:
        copy.unlink(missing_ok=True)
        with scratch(copy) as connection:
            copy_migrated(connection, source.path)

    patiently(copied, source.path, PATIENCE_S, say)
    for journal in journals:
        try:
            records = [from_json(line) for line in read_journal(journal)]
            rows_of(records)
            Store(copy, waiting=say).take_in([*records, RunDied()])
        except (KeyError, TypeError, ValueError) as error:
            say(f"{journal} cannot be understood ({type(error).__name__}) and is left out")
    return Source("database", copy, source.path)


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
