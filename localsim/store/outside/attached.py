"""Attachments: a database file without rows, which lists other people's files; the views read those files.

Whoever opens an attachment gets a database in memory. Its tables are views over Parquet partitions and databases that
are attached read-only, and the documented views are made over them by this code: nothing that a file stores as a view
or macro is used. Only the paths are kept, so new partitions and new episodes are seen at once.

A run that several sources hold is read from the first of them; texts, scenarios and vectors are the same wherever they
are, and count once.
"""

from __future__ import annotations

import atexit
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from localsim import paths
from localsim.errors import DatabaseError, InvalidInput
from localsim.store.journal import journal_folder
from localsim.store.lock import UNKNOWN_NAME, Connection, Statement, patiently, scratch
from localsim.store.making import KEPT_IN
from localsim.store.outside.converting import rows_sql
from localsim.store.outside.partitions import LARGE, MANIFEST, Partition, read, read_manifest
from localsim.store.outside.sources import Kind, Source, attach, find, quoted
from localsim.store.schema import SHARED, TABLES, VIEWS, text_sql, version

LIST = "_attached"
"""The table of an attachment: its sources in order."""
_NAMED = ("runs", "episodes", "annotations")
"""Tables with a column run_id."""


def write_list(connection: Connection, sources: Sequence[Source]) -> None:
    """Make an empty database an attachment of these sources."""
    connection.execute(
        f"CREATE TABLE {LIST} (position INTEGER PRIMARY KEY, kind VARCHAR NOT NULL, path VARCHAR NOT NULL)"
    )
    for position, source in enumerate(sources):
        connection.execute(f"INSERT INTO {LIST} VALUES (?, ?, ?)", [position, source.kind, str(source.path)])
    connection.execute(f"COMMENT ON TABLE {LIST} IS 'Files whose runs localsim shows; their rows stay where they are'")


def read_list(connection: Connection, name: str | None = None) -> list[Source] | None:
    """Return the sources of an attachment, which may be attached as `name`; None for a database with rows of its own.

    Raises DatabaseError for a list that is not one.
    """
    found = connection.execute(
        "SELECT database_name, path FROM duckdb_tables() JOIN duckdb_databases() USING (database_name) "
        "WHERE table_name = ? AND database_name = coalesce(?, current_database())",
        [LIST, name],
    ).fetchone()
    if found is None:
        return None
    query = f'SELECT kind, path FROM "{found[0]}".main.{LIST} ORDER BY position'
    try:
        rows = connection.execute(query).fetchall()
    except UNKNOWN_NAME:
        rows = [("", "")]
    if any(kind not in get_args(Kind) or not path for kind, path in rows):
        hint = "make it anew: localsim db attach ... -o FILE"
        raise DatabaseError(f"its table {LIST} is no list of databases and folders", where=found[1], hint=hint)
    return [Source(kind, Path(path)) for kind, path in rows]


@dataclass
class Parts:
    """What the sources hold: partitions, and databases with the runs that are read from somewhere else."""

    partitions: list[tuple[Path, Partition]] = field(default_factory=list)
    databases: list[tuple[str, list[str]]] = field(default_factory=list)
    """Name under which a database is attached, and runs to leave out."""
    doubled: list[tuple[str, Path]] = field(default_factory=list)
    """Runs that were found again, and where."""
    runs: dict[str, Path] = field(default_factory=dict)

    def take(self, run_id: str, path: Path) -> bool:
        """Return True if a run is to be read from this source, because no earlier one has it."""
        if run_id in self.runs:
            self.doubled.append((run_id, path))
            return False
        self.runs[run_id] = path
        return True


def open_sources(connection: Connection, sources: Sequence[Source], path: Path, memory: str | None) -> Parts:
    """Attach the sources to an empty database in memory, and make its tables and views. Raises DatabaseError.

    `path` is the attachment. With a limit of `memory` the connection is for queries that a person types: it can open no
    other files and change no settings.
    """
    parts = Parts()
    names = {file: name for name, file in _databases(sources)}
    for source in sources:
        source.state(path)  # raises the error of a missing file
        if source.kind == "database":
            _take_database(connection, source, names[source.path], parts)
        else:
            take_folder(source, parts)
    connection.execute("CREATE SCHEMA parts")
    connection.execute(f"CREATE TABLE {KEPT_IN} AS SELECT ? AS version", [version()])
    for table in TABLES:
        connection.execute(f"CREATE VIEW parts.{table} AS {table_sql(table, parts)}")
        connection.execute(f"CREATE VIEW {table} AS SELECT {', '.join(TABLES[table].columns)} FROM parts.{table}")
    for view in VIEWS:
        connection.execute(f"CREATE VIEW {view} AS {by_parts(VIEWS[view][1])}")
    connection.execute(f"SET temp_directory = {text_sql(f'{path}.tmp')}")
    if memory is not None:
        folders = ", ".join(quoted(each.path) for each in sources if each.kind == "folder")
        connection.execute(f"SET memory_limit = '{memory}'")
        connection.execute("SET max_temp_directory_size = '8GB'")
        connection.execute(f"SET allowed_directories = [{folders}]")
        connection.execute(f"SET allowed_paths = [{', '.join(map(quoted, names))}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    return parts


@dataclass
class _Instance:
    """A database in memory that threads share: two of them would open the same files, and lose their locks."""

    connection: Connection
    sources: Sequence[Source]
    state: tuple[tuple[str, int, int], ...]
    databases: list[tuple[str, Path]]
    """The databases that its views read, with their names in it."""
    users: int = 0

    def enter(self) -> None:
        """Let one more thread read; the first attaches the databases."""
        if self.users == 0:
            for name, path in self.databases:
                self.connection.execute(f"ATTACH IF NOT EXISTS {quoted(path)} AS {name} (READ_ONLY)")
        self.users += 1

    def leave(self) -> None:
        """Let a thread go; the last lets go of the databases, so that others can write to them."""
        self.users -= 1
        if self.users == 0:
            for name, _ in self.databases:
                self.connection.execute(f"DETACH DATABASE IF EXISTS {name}")


_instances: dict[tuple[Path, bool], _Instance] = {}
_lock = threading.Lock()


@contextmanager
def shared(
    path: Path, sources: Sequence[Source], restricted: bool, opened: Callable[[], Connection]
) -> Iterator[Connection]:
    """Yield a connection to the views over the sources, which other threads may use too.

    The views stay until a source changes, because to make them takes longer than most queries; databases are let go
    when no thread reads them.
    """
    key, state = (path, restricted), tuple(source.state(path) for source in sources)
    with _lock:
        instance = _instances.get(key)
        if instance is None or instance.state != state:
            if instance is not None:
                del _instances[key]  # if the new one cannot be opened, nobody gets the old one
                if instance.users == 0:
                    instance.connection.close()
            instance = _instances[key] = _Instance(opened(), sources, state, _databases(sources))
        instance.enter()
    cursor = instance.connection.cursor()
    try:
        yield cursor
    finally:
        cursor.close()
        with _lock:
            instance.leave()
            if instance.users == 0 and _instances.get(key) is not instance:
                instance.connection.close()


def state_of(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Return what changes when the sources of an attachment that this process has read do; () for other databases."""
    instance = _instances.get((path, True))
    return tuple(source.state(path) for source in instance.sources) if instance else ()


def _databases(sources: Sequence[Source]) -> list[tuple[str, Path]]:
    """Return the databases among the sources, with the names under which they are attached."""
    numbered = enumerate(sources, start=1)
    return [(f"source_{number}", source.path) for number, source in numbered if source.kind == "database"]


@atexit.register
def _close_all() -> None:
    """Close what is open before Python ends, because DuckDB complains about connections that are left."""
    with _lock:
        for instance in _instances.values():
            instance.connection.close()
        _instances.clear()


_READS = {"SELECT", "EXPLAIN", "SET"}
"""Statements that a person may send to an attachment; settings are locked, so that SET changes variables only."""


_WRITES = {"COPY", "COPY_DATABASE", "EXPORT", "ATTACH", "DETACH", "LOAD", "UPDATE_EXTENSIONS"}
_WRITING_WORDS = re.compile(r"\b(?:copy|export|attach)\b", re.IGNORECASE)


def refuse_changes(connection: Connection, statements: Sequence[Statement]) -> None:
    """Raise InvalidInput for a statement that could write files: those of an attachment, or in the folder for spilling.

    DuckDB lets a connection write wherever it may read files. An attachment must read partitions, and a query that
    needs more memory than it may have makes the folder DATABASE.tmp.
    """
    for statement in statements:
        name = statement.type.name
        inside = name in ("EXPLAIN", "PREPARE") and _WRITING_WORDS.search(statement.query)
        if name in _WRITES or inside:
            hint = "localsim export writes files"
            raise InvalidInput(f"a query reads, and this is {name}", where="sql", hint=hint)
    if connection.execute("SELECT 1 FROM duckdb_schemas() WHERE schema_name = 'parts'").fetchone() is None:
        return
    for statement in statements:
        name = statement.type.name
        if name not in _READS or (name == "EXPLAIN" and "analy" in statement.query.lower()):
            raise InvalidInput(
                f"an attachment answers SELECT, and this is {name}",
                where="sql",
                hint="localsim db merge makes a database of its own",
            )


def _take_database(connection: Connection, source: Source, name: str, parts: Parts) -> None:
    attach(connection, source.path, name)
    rows = connection.execute(f"SELECT run_id FROM {name}.main.runs ORDER BY run_id").fetchall()
    left_out = [run_id for (run_id,) in rows if not parts.take(run_id, source.path)]
    parts.databases.append((name, left_out))


def take_folder(source: Source, parts: Parts) -> None:
    """Add the partitions of a folder to the parts. Raises DatabaseError for another version of the schema."""
    own = (source.path / MANIFEST).is_file() and source.path.name.startswith("run=")
    found = {source.path: read_manifest(source.path)} if own else read(source.path)
    for path, partition in found.items():
        if partition.schema_version != version():
            raise DatabaseError(
                "was written by another version of localsim, whose tables have other columns",
                where=str(path),
                hint="write it again from its database: localsim export RUN --partitioned FOLDER",
            )
        if parts.take(partition.run_id, path):
            parts.partitions.append((path, partition))


# ---- tables --------------------------------------------------------------------------------------------------------


def table_sql(table: str, parts: Parts) -> str:
    """Return the query that yields all rows of a table; tables of episodes have a column `_run` too."""
    names = list(TABLES[table].columns)
    by_run = table not in SHARED and table not in _NAMED
    selects = [*_of_files(table, names, by_run, parts), *_of_databases(table, names, by_run, parts)]
    if not selects:
        return f"SELECT *{', NULL::VARCHAR AS _run' if by_run else ''} FROM ({rows_sql(table, {})})"
    every = " UNION ALL ".join(selects)
    if table in SHARED and len(parts.partitions) + len(parts.databases) > 1:
        key = TABLES[table].key
        values = ", ".join(name if name in key else f"any_value({name}) AS {name}" for name in names)
        return f"SELECT {values} FROM ({every}) GROUP BY {', '.join(key)}"
    return every


def _of_files(table: str, names: Sequence[str], by_run: bool, parts: Parts) -> Iterable[str]:
    run = ", run AS _run" if by_run else ""
    whole, split = [], []
    for path, partition in parts.partitions:
        if not partition.rows.get(table):
            continue
        if table in LARGE and partition.by_scenario:
            split += sorted(path.glob(f"{table}/*/*.parquet"))
        else:
            whole.append(path / f"{table}.parquet")
    for files in (whole, split):
        if files:
            listed = ", ".join(map(quoted, files))
            yield (
                f"SELECT {', '.join(names)}{run} FROM read_parquet([{listed}], hive_partitioning = true, "
                "hive_types_autocast = false)"
            )


def _of_databases(table: str, names: Sequence[str], by_run: bool, parts: Parts) -> Iterable[str]:
    for name, left_out in parts.databases:
        place = f"{name}.main.{table}"
        listed = ", ".join(map(text_sql, left_out))
        if by_run:
            without = f" WHERE e.run_id NOT IN ({listed})" if left_out else ""
            columns = ", ".join(f"t.{column}" for column in names)
            yield (
                f"SELECT {columns}, e.run_id AS _run FROM {place} t "
                f"JOIN {name}.main.episodes e ON e.episode_id = t.episode_id{without}"
            )
        else:
            without = f" WHERE run_id NOT IN ({listed})" if left_out and table in _NAMED else ""
            yield f"SELECT {', '.join(names)} FROM {place}{without}"


_FROM = re.compile(
    r"FROM (turns|generations|scores|leaks|judgements) (\w) JOIN episodes e ON e\.episode_id = \2\.episode_id"
)
_LEFT = re.compile(r"LEFT JOIN (generations|scores|searches) (\w) ON (.*?)\2\.episode_id = (\w)\.episode_id")


def by_parts(view: str) -> str:
    """Return the query of a view that also joins tables by run, so that a question about a run reads its files only."""
    view = _FROM.sub(r"FROM parts.\1 \2 JOIN episodes e ON e.episode_id = \2.episode_id AND e.run_id = \2._run", view)
    return _LEFT.sub(r"LEFT JOIN parts.\1 \2 ON \3\2._run = \4._run AND \2.episode_id = \4.episode_id", view)


# ---- making attachments ----------------------------------------------------------------------------------------------

Say = Callable[[str], None]
PATIENCE_S = 15.0
"""Seconds to wait for another process that holds a source."""


@dataclass(frozen=True)
class Attached:
    """What an attachment shows."""

    path: Path
    sources: list[Source]
    runs: int
    episodes: int
    doubled: list[tuple[str, Path]]
    """Runs that an earlier source has too, and the source in which they are left out."""

    def as_json(self) -> dict[str, Any]:
        """Return the object that `db attach --json` prints."""
        return {
            "path": str(self.path),
            "sources": [str(each.path) for each in self.sources],
            "runs": self.runs,
            "episodes": self.episodes,
            "doubled": [{"run_id": run_id, "left_out": str(place)} for run_id, place in self.doubled],
        }


def attach_all(places: Iterable[str], output: Path, say: Say) -> Attached:
    """Write an attachment of the sources that `places` name to `output`; an attachment that is there is replaced.

    Raises InvalidInput for a place that has nothing, or an output that holds something else, and DatabaseError for a
    source that cannot be used.
    """
    _refuse_other(output, say)
    sources = list(flat(find(places), say))
    if any(source.path.resolve() == output.resolve() for source in sources):
        raise InvalidInput("cannot attach a file to itself", where=str(output), hint="choose another -o")
    for source in sources:
        _tell_of_journals(source, say)
    making = output.with_name(f".{output.name}.new")
    making.unlink(missing_ok=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    episodes, parts = patiently(lambda: _opened(sources, making), output, PATIENCE_S, say)
    with scratch(making) as connection:
        write_list(connection, sources)
    making.replace(output)
    return Attached(output, sources, len(parts.runs), episodes, parts.doubled)


def _opened(sources: list[Source], path: Path) -> tuple[int, Parts]:
    """Open sources as a reader will; return the number of episodes, and what the sources hold."""
    with scratch() as connection:
        parts = open_sources(connection, sources, path, None)
        row = connection.execute("SELECT count(*) FROM episodes").fetchone()
        return int(row[0]) if row else 0, parts


def _refuse_other(output: Path, say: Say) -> None:
    """Refuse to replace a file that is not an attachment."""
    if not output.exists():
        return
    try:
        is_ours = _list_of(output, say) is not None
    except DatabaseError:
        is_ours = False
    if not is_ours:
        raise InvalidInput("this file is there, and is not an attachment", where=str(output), hint="choose another -o")


def flat(sources: Iterable[Source], say: Say) -> Iterable[Source]:
    """Yield sources, and in the place of an attachment those that it lists."""
    for source in sources:
        listed = _list_of(source.path, say) if source.kind == "database" else None
        yield from [source] if listed is None else listed


def _list_of(path: Path, say: Say) -> list[Source] | None:
    """Return the sources of an attachment; None for a database with rows of its own."""

    def read() -> list[Source] | None:
        with scratch() as connection:
            connection.execute(f"ATTACH {quoted(path)} AS listed (READ_ONLY)")
            return read_list(connection, "listed")

    return patiently(read, path, PATIENCE_S, say)


def _tell_of_journals(source: Source, say: Say) -> None:
    waiting = [path.name for path in journal_folder(source.path).glob("*.jsonl")]
    if waiting:
        say(
            f"{source.path} has a journal that is not in the database yet ({waiting[0]}); "
            f"this takes it in: localsim runs list{paths.db_option(source.path)}"
        )
