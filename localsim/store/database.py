"""The database: the only module that imports duckdb. Opens briefly, commits whole episodes, and lets others read.

DuckDB admits one writing process and then no reader at all, so nothing here holds the file for longer than one
transaction, one typed query, or a second of reads in a row (`held`). Writers of localsim take turns through
`<db>.lock`; a foreign process that holds the file is waited for and named. The database file is never opened by other
means than DuckDB (that would drop DuckDB's lock).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from itertools import islice
from pathlib import Path
from threading import Timer
from typing import Any

import duckdb
from filelock import FileLock, Timeout

from localsim.errors import DatabaseError, InvalidInput
from localsim.store.held import Held
from localsim.store.journal import is_written, leftover_journals, read_journal, remove_if_empty
from localsim.store.lock import as_ours, holder_in, one_line, sharing_of
from localsim.store.migrations import MIGRATIONS, is_current, migrate, schema_version
from localsim.store.queries.references import episode_of, is_last, run_of
from localsim.store.records import Record, RunDied, RunRecord, from_json
from localsim.store.rows import rows_of
from localsim.store.schema import CHECKS, TABLES

_SAFE = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
}
_STORAGE = {"storage_compatibility_version": "v1.4.0"}
"""Tools built on DuckDB 1.4 or 1.5 can open the file too."""
_MEMORY = "4GB"
"""Memory limit of a restricted connection: a query that a person typed must not exhaust the machine."""

Waiting = Callable[[str], None]
Took = Callable[["Store", str, str], None]
"""Is told which run `@last` or `@last-N` is: the store, the reference and the id."""
FileMark = tuple[int, int]
"""Device and inode of a database file."""


class Store:
    """A database file. `waiting` is told when another process holds it, `took` once what each `@last` is."""

    def __init__(
        self, path: Path, *, patience_s: float = 15.0, waiting: Waiting | None = None, took: Took | None = None
    ) -> None:
        self.path = path
        self._patience_s = patience_s
        self._waiting = waiting or _ignore
        self._took = took or _ignore
        self._told: set[str] = set()
        self._held: Held | None = None

    # ---- connections -------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, patience_s: float | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a connection for one short write, with the schema up to date. Raises DatabaseError."""
        patience = self._patience_s if patience_s is None else patience_s
        with sharing_of(self.path).admission("write"):
            lock = self._writers_turn(patience)
            try:
                connection = self._connect(patience, read_only=False, config={**_SAFE, **_STORAGE})
                try:
                    self._refuse_newer(connection)
                    self._refuse_foreign(connection, empty_is_ours=True)
                    migrate(connection)
                    yield connection
                except (duckdb.DataError, duckdb.InvalidInputException) as error:
                    raise Unwritable(one_line(str(error)), where=str(self.path)) from error
                except duckdb.Error as error:
                    raise as_ours(error, self.path) from error
                finally:
                    _close(connection)
            finally:
                lock.release()

    @contextmanager
    def reading(self, *, restricted: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a read-only connection; `restricted` also shuts off files and settings. Raises DatabaseError.

        Leftover journals of runs that died are taken in first.
        """
        try:
            self.take_in_leftovers()
        except (DatabaseError, OSError) as error:
            self._waiting(f"a journal could not be taken in yet: {error}")
        if not self.path.exists():
            raise DatabaseError(
                "no database here yet", where=str(self.path), hint="localsim run makes one; --db names another"
            )
        config: dict[str, Any] = dict(_SAFE)
        if restricted:
            config |= {"enable_external_access": False, "lock_configuration": True, "memory_limit": _MEMORY}
        with sharing_of(self.path).admission("restricted" if restricted else "read"):
            connection = self._connect(self._patience_s, read_only=True, config=config)
            try:
                self._refuse_newer(connection)
                self._refuse_foreign(connection, empty_is_ours=False)
                if not is_current(connection):
                    _close(connection)
                    with self.writing():
                        pass
                    connection = self._connect(self._patience_s, read_only=True, config=config)
                yield connection
            except duckdb.Error as error:
                raise as_ours(error, self.path) from error
            finally:
                _close(connection)

    def _writers_turn(self, patience_s: float) -> FileLock:
        lock = FileLock(str(self.path) + ".lock", timeout=patience_s)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except Timeout as error:
            raise Busy("another localsim process is writing to it", where=str(self.path)) from error
        except OSError as error:
            raise DatabaseError(
                f"cannot write here: {error.strerror}",
                where=str(self.path.parent),
                hint="choose another place with --db",
            ) from error
        return lock

    def _let_a_writer_go_first(self) -> None:
        """Wait, not longer than patience, until no process of localsim writes or waits for the file to write."""
        with suppress(DatabaseError):
            self._writers_turn(self._patience_s).release()

    def _connect(self, patience_s: float, *, read_only: bool, config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
        """Connect; wait while another process holds the file, until patience ends."""
        deadline = time.monotonic() + patience_s
        pause, told = 0.02, False
        while True:
            try:
                return duckdb.connect(str(self.path), read_only=read_only, config=config)
            except duckdb.Error as error:
                holder = holder_in(str(error))
                if holder is None:
                    raise as_ours(error, self.path) from error
                if time.monotonic() >= deadline:
                    raise Busy(
                        f"held by {holder}", where=str(self.path), hint="close it there, or wait and try again"
                    ) from error
                if not told and time.monotonic() > deadline - patience_s + min(1.0, patience_s / 3):
                    self._waiting(f"{self.path.name} is held by {holder}; waiting")
                    told = True
                time.sleep(pause)
                pause = min(pause * 1.5, 0.5)

    def _refuse_newer(self, connection: duckdb.DuckDBPyConnection) -> None:
        version = schema_version(connection)
        if version > len(MIGRATIONS):
            raise DatabaseError(
                f"its schema has version {version}, this localsim knows up to {len(MIGRATIONS)}",
                where=str(self.path),
                hint="update localsim, or choose another file with --db",
            )

    def _refuse_foreign(self, connection: duckdb.DuckDBPyConnection, *, empty_is_ours: bool) -> None:
        """Leave files alone that another program made."""
        if schema_version(connection) > 0:
            return
        row = connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone()
        if not empty_is_ours or (row and row[0]):
            raise DatabaseError(
                "not a database of localsim", where=str(self.path), hint="choose another file with --db"
            )

    def ensure_usable(self) -> None:
        """Raise DatabaseError if a run could not write its rows; called before models are loaded."""
        if self.path.exists():
            with suppress(Busy), self.writing(patience_s=1.0):
                return

    # ---- writing -----------------------------------------------------------------------------------------------

    def take_in(
        self, records: Sequence[Record], *, patience_s: float | None = None, same: FileMark | None = None
    ) -> FileMark:
        """Write records in one transaction; taking them in twice changes nothing.

        Returns the mark of the file. A run gives it back as `same` with its next write: Replaced is raised where the
        path no longer holds that file, or the file no longer holds the run.
        """
        tables = rows_of(records)
        run_id = next((record.run_id for record in records if isinstance(record, RunRecord)), "@last")
        if same is not None and self._mark() != same:  # before a connection would create the file anew
            raise Replaced(self.path, run_id)
        with self.writing(patience_s) as connection:
            mark = self._mark()
            if same is not None and not (mark == same and _has_run(connection, run_id)):
                raise Replaced(self.path, run_id)
            connection.begin()
            try:
                for table, rows in tables.items():
                    _upsert(connection, table, rows)
                connection.commit()
            except BaseException:
                with suppress(duckdb.Error):  # a failed commit has rolled back already
                    connection.rollback()
                raise
        return mark or (0, 0)

    def _mark(self) -> FileMark | None:
        """Return device and inode of the file, or None. This reads the folder and does not open the file."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def take_in_leftovers(self) -> int:
        """Take in the journals of runs that died; return how many there were.

        A journal that cannot be understood is put aside under another name, so that it does not block the others.
        Raises DatabaseError where the database cannot be written now.
        """
        count = 0
        for path in leftover_journals(self.path):
            try:
                records = [from_json(line) for line in read_journal(path)]
                rows_of(records)
                if records:
                    self.take_in([*records, RunDied()])
                path.unlink()
            except (KeyError, TypeError, ValueError, Unwritable) as error:
                aside = path.with_suffix(".broken")
                path.replace(aside)
                self._waiting(f"a journal cannot be understood ({type(error).__name__}); it is kept as {aside}")
            count += 1
        if count:
            remove_if_empty(self.path.with_name(self.path.name + ".d"))
        return count

    def remove_run(self, run_id: str) -> int:
        """Delete a run with all that belongs to it; return the number of episodes.

        Raises DatabaseError where the run is still being written.
        """
        if is_written(self.path, run_id):
            raise DatabaseError(f"run {run_id} is being written", where=str(self.path), hint="stop it first (Ctrl-C)")
        with self.writing() as connection:
            connection.begin()
            episodes = "SELECT episode_id FROM episodes WHERE run_id = ?"
            row = connection.execute(f"SELECT count(*) FROM ({episodes})", [run_id]).fetchone()
            for table in ("turns", "generations", "scores", "leaks", "searches", "judgements"):
                connection.execute(f"DELETE FROM {table} WHERE episode_id IN ({episodes})", [run_id])
            for table in ("annotations", "episodes", "runs"):
                connection.execute(f"DELETE FROM {table} WHERE run_id = ?", [run_id])
            connection.commit()
        return int(row[0]) if row else 0

    # ---- reading -----------------------------------------------------------------------------------------------

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Return the rows of one of our own queries as dictionaries."""
        # Restricted as typed queries are: DuckDB lets only connections with the same settings run side by side.
        opened = self.reading(restricted=True) if self._held is None else nullcontext(self._held.connection())
        with opened as connection:
            try:
                return _dictionaries(connection.execute(query, list(parameters)))
            except duckdb.Error as error:
                raise as_ours(error, self.path) from error

    @contextmanager
    def held(self) -> Iterator[Store]:
        """Yield a store whose `rows` share a connection, for many reads in a row by one thread, which writes nothing.

        A read on a connection older than a second begins a new one, and lets a writer that waits go first. So the rows
        of two reads can be those of two times: an episode that the second read finds may be new.
        """
        if self._held is not None:
            yield self
            return
        held = copy(self)
        held._held = Held(lambda: self.reading(restricted=True), self._let_a_writer_go_first)
        try:
            yield held
        finally:
            held._held.close()
            held._held = None

    def sql(self, query: str, *, run: str = "@last") -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return column names and all rows of a query that a person typed: read-only, no files, no settings.

        `$run` in the query stands for the id of the run that `run` names. Raises InvalidInput where the query is
        empty, wrong or not allowed.
        """
        with self.asking(query, run=run) as (columns, rows):
            return columns, list(rows)

    def sql_page(
        self, query: str, *, rows: int | None = None, seconds: float | None = None, run: str = "@last"
    ) -> tuple[list[str], list[tuple[Any, ...]], bool]:
        """Do as `sql`, but return at most so many rows, and whether there are more."""
        with self.asking(query, seconds, run=run) as (columns, answer):
            found = list(answer if rows is None else islice(answer, rows + 1))
        return columns, found[:rows], rows is not None and len(found) > rows

    @contextmanager
    def asking(
        self, query: str, seconds: float | None = None, *, run: str = "@last"
    ) -> Iterator[tuple[list[str], Iterator[tuple[Any, ...]]]]:
        """Open a query that a person typed: its column names, and its rows one after the other as they are read.

        `$run` is bound to the id of the run that `run` names. The file is held until the block is left. Raises
        InvalidInput for a query that is empty, wrong, not allowed, or takes longer than `seconds` in all.
        """
        with self.reading(restricted=True) as connection:
            deadline = time.monotonic() + seconds if seconds else None
            timer = Timer(seconds, connection.interrupt) if seconds else None
            if timer:
                timer.daemon = True
                timer.start()
            try:
                with _refused(seconds):
                    cursor = self._answer(connection, query, run)
                yield [column[0] for column in cursor.description or []], _fetched(cursor, seconds, deadline)
            finally:
                if timer:
                    timer.cancel()

    def _answer(self, connection: duckdb.DuckDBPyConnection, query: str, run: str) -> duckdb.DuckDBPyConnection:
        """Run the statements of a query, with `$run` bound where one has it; return the answer to the last one."""
        statements = connection.extract_statements(query.encode().decode())
        if not statements:  # blanks, comments and semicolons alone
            hint = "localsim sql 'SHOW TABLES' lists tables and views"
            raise InvalidInput("the query is empty", where="sql", hint=hint)
        for statement in statements:
            values = None
            if "run" in statement.named_parameters:
                values = {"run": run_of(lambda own, _: _dictionaries(connection.execute(own)), self.path, run)}
                self._say_which(run, values["run"])
            cursor = connection.execute(statement, values)
        return cursor

    def copy_views(self, run_id: str, views: Sequence[str], form: str, folder: Path) -> list[Path]:
        """Write the rows of one run in each view to `folder` as parquet or csv."""
        files = []
        with self.reading() as connection:
            for view in views:
                file = folder / f"{view.removeprefix('v_')}.{form}"
                place = str(file).replace("'", "''")
                connection.execute(
                    f"COPY (SELECT * FROM {view} WHERE run_id = ?) TO '{place}' (FORMAT {form})", [run_id]
                )
                files.append(file)
        return files

    def info(self) -> dict[str, Any]:
        """Return the size in bytes, the schema and DuckDB version, and the number of rows in each table."""
        with self.reading() as connection:
            data: dict[str, Any] = {
                "bytes": self.path.stat().st_size,
                "schema_version": schema_version(connection),
                "duckdb": duckdb.__version__,
            }
            for table in TABLES:
                row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
                data[table] = row[0] if row else 0
        return data

    def check(self) -> list[str]:
        """Return one line for each defect: rows that contradict each other. [] for a sound file."""
        with self.reading() as connection:
            found = []
            for message, query in CHECKS.items():
                row = connection.execute(query).fetchone()
                if row and row[0]:
                    found.append(f"{message}: {row[0]}")
        return found

    def dataframe(self, query: str) -> Any:
        """Return the result of a query as a pandas DataFrame. Raises InvalidInput if pandas is not installed."""
        with self.reading(restricted=True) as connection:
            try:
                return self._answer(connection, query, "@last").df()
            except ImportError as error:
                raise InvalidInput("data frames need pandas", hint="pip install pandas") from error
            except duckdb.Error as error:
                raise InvalidInput(one_line(str(error)), where="sql") from error

    def run_id(self, reference: str, *, to_resume: bool = False) -> str:
        """Return the id of the run that `@last`, `@last-N`, a name, an id or its start names. Raises InvalidInput.

        `@last` counts runs with a completed episode; with `to_resume` it counts all runs of models.
        """
        found = run_of(self.rows, self.path, reference, to_resume=to_resume)
        self._say_which(reference, found)
        return found

    def _say_which(self, reference: str, run_id: str) -> None:
        """Tell once which run `@last` or `@last-N` is."""
        if is_last(reference) and reference not in self._told:
            self._told.add(reference)
            self._took(self, reference, run_id)

    def episode_id(self, reference: str) -> str:
        """Return the id of the episode that `@last`, `@last-N`, an id or its start names. Raises InvalidInput."""
        return episode_of(self.rows, self.path, reference)


def _ignore(*_message: object) -> None:
    """Drop a message."""


class Unwritable(DatabaseError):
    """The database refuses these rows whatever its state."""


class Busy(DatabaseError):
    """Another process or thread holds the file; the rows are still in the journal."""


class Replaced(DatabaseError):
    """The file was removed or replaced between two writes of one run; the journal holds the run."""

    def __init__(self, path: Path, run_id: str) -> None:
        super().__init__(
            "the database file was removed or replaced while the run was writing to it",
            where=str(path),
            hint=f"the journal in {path}.d is kept; to use it and continue: localsim resume {run_id} --db {path}",
        )


def _has_run(connection: duckdb.DuckDBPyConnection, run_id: str) -> bool:
    return connection.execute("SELECT 1 FROM runs WHERE run_id = ?", [run_id]).fetchone() is not None


_ROWS = 200
"""Rows in one INSERT."""


def _upsert(connection: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[Any, ...]]) -> None:
    columns = TABLES[table][1]
    places = f"({', '.join('?' for _ in columns)})"
    # One statement for many rows: executemany() takes thirty times as long.
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        values = ", ".join([places] * len(part))
        connection.execute(
            f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES {values}",
            [value for row in part for value in row],
        )


_FETCHED = 1000
"""Rows in one fetch."""


def _fetched(
    cursor: duckdb.DuckDBPyConnection, seconds: float | None, deadline: float | None
) -> Iterator[tuple[Any, ...]]:
    """Yield rows as they are read. The deadline holds for the reader of these rows too, because the file is held."""
    while True:
        with _refused(seconds):
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError
            part = cursor.fetchmany(_FETCHED)
        if not part:
            return
        yield from part


@contextmanager
def _refused(seconds: float | None) -> Iterator[None]:
    """Turn the errors of a query that a person typed into InvalidInput."""
    try:
        yield
    except (duckdb.InterruptException, TimeoutError) as error:
        message = f"broken off after {seconds:g} s" if seconds else "broken off"
        raise InvalidInput(message, where="sql", hint="ask for less, or allow more time") from error
    except (duckdb.Error, ValueError, OverflowError) as error:  # values that Python has no type for, too
        raise InvalidInput(
            one_line(str(error)), where="sql", hint="localsim sql 'SHOW TABLES' lists tables and views"
        ) from error


def _dictionaries(cursor: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    columns = [column[0] for column in cursor.description or []]
    return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def _close(connection: duckdb.DuckDBPyConnection) -> None:
    try:
        connection.close()
    except duckdb.Error:
        return  # closing checkpoints; on a full disk that fails, and the log beside the file holds the rows
