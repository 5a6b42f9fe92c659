"""The database: opens briefly, commits whole episodes, and lets others read.

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
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from threading import Timer
from typing import Any, TypeVar

import duckdb
from filelock import FileLock, Timeout

from localsim.errors import DatabaseError, InvalidInput
from localsim.paths import cannot_write
from localsim.store.journal import is_written, journal_folder, leftover_journals, read_journal, remove_if_empty
from localsim.store.lock import (
    SAFE,
    STORAGE,
    Busy,
    Connection,
    Held,
    Replaced,
    Unwritable,
    Waiting,
    as_ours,
    empty,
    file_in,
    one_line,
    patiently,
    sharing_of,
    transaction,
)
from localsim.store.making import absent_column, ensure_schema, is_current, other_version, version_in
from localsim.store.outside import attached
from localsim.store.outside.sources import Source
from localsim.store.queries.references import episode_of, is_last, run_of
from localsim.store.records import Record, RunDied, RunRecord, from_json
from localsim.store.schema import CHECKS, TABLES, inserts, rows_of, version

RowT = TypeVar("RowT")
_RUN = "SELECT 1 FROM runs WHERE run_id = ?"

_MEMORY = "4GB"
"""Memory limit of a restricted connection: a query that a person typed must not exhaust the machine."""
_SPILLED = "8GB"
"""The most that such a connection may put on the disk beside the database, if it needs more memory."""

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
    def writing(self, patience_s: float | None = None) -> Iterator[Connection]:
        """Open a connection for one short write, with the schema up to date. Raises DatabaseError."""
        patience = self._patience_s if patience_s is None else patience_s
        with sharing_of(self.path).admission("write"):
            lock = self._writers_turn(patience)
            try:
                connection = self._connect(patience, read_only=False, config={**SAFE, **STORAGE})
                try:
                    if not is_current(connection):
                        self._refuse_attached(connection)
                        self._refuse_other(connection, empty_is_ours=True)
                        ensure_schema(connection)
                    yield connection
                except (duckdb.DataError, duckdb.InvalidInputException) as error:
                    raise Unwritable(one_line(str(error)), where=str(self.path)) from error
                except duckdb.Error as error:
                    raise as_ours(error, file_in(str(error)) or self.path) from error
                finally:
                    _close(connection)
            finally:
                lock.release()

    @contextmanager
    def reading(self, *, restricted: bool = False) -> Iterator[Connection]:
        """Open a read-only connection; `restricted` also shuts off files and settings. Raises DatabaseError.

        Leftover journals of runs that died are taken in first.
        """
        try:
            self.take_in_leftovers()
        except (DatabaseError, OSError) as error:
            if (problem := f"a journal could not be taken in yet: {error}") not in self._told:
                self._told.add(problem)
                self._waiting(problem)
        if not self.path.exists():
            raise DatabaseError(
                "no database here yet", where=str(self.path), hint="localsim run makes one; --db names another"
            )
        config: dict[str, Any] = dict(SAFE)
        if restricted:
            config |= {"enable_external_access": False, "lock_configuration": True, "memory_limit": _MEMORY}
            config |= {"max_temp_directory_size": _SPILLED}
        with sharing_of(self.path).admission("restricted" if restricted else "read"):
            connection = self._connect(self._patience_s, read_only=True, config=config)
            try:
                current = is_current(connection)
                sources = None if current else attached.read_list(connection)
                if sources is None:
                    if not current:
                        self._refuse_other(connection, empty_is_ours=False)
                        _close(connection)
                        with self.writing():
                            pass
                        connection = self._connect(self._patience_s, read_only=True, config=config)
                    yield connection
            except duckdb.Error as error:
                raise as_ours(error, self.path) from error
            finally:
                _close(connection)
        if sources is not None:
            with self._reading_sources(sources, restricted) as connection:
                yield connection

    @contextmanager
    def _reading_sources(self, sources: list[Source], restricted: bool) -> Iterator[Connection]:
        """Open the views over the sources of an attachment."""

        def opened() -> Connection:
            connection = empty()
            try:
                attached.open_sources(connection, sources, self.path, _MEMORY if restricted else None)
            except BaseException:
                _close(connection)
                raise
            return connection

        def patient() -> Connection:
            return patiently(opened, self.path, self._patience_s, self._waiting)

        try:
            with attached.shared(self.path, sources, restricted, patient) as connection:
                yield connection
        except duckdb.Error as error:
            raise as_ours(error, file_in(str(error)) or self.path) from error

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

    def _connect(self, patience_s: float, *, read_only: bool, config: dict[str, Any]) -> Connection:
        """Connect; wait while another process holds the file, until patience ends."""
        if self.path.exists() and not self.path.is_file():  # DuckDB would wait for a pipe without an end
            raise DatabaseError("this is no file", where=str(self.path), hint="choose a file with --db")

        def connect() -> Connection:
            return duckdb.connect(str(self.path), read_only=read_only, config=config)

        return patiently(connect, self.path, patience_s, self._waiting)

    def _refuse_attached(self, connection: Connection) -> None:
        if attached.read_list(connection) is not None:
            raise DatabaseError(
                "this file only shows runs of other files, so nothing can be written to it",
                where=str(self.path),
                hint="choose another file with --db; localsim db merge makes a database that can be changed",
            )

    def _refuse_other(self, connection: Connection, *, empty_is_ours: bool) -> None:
        """Leave files alone that another program or another version of localsim made."""
        found = version_in(connection)
        if found == version():
            return
        if found:
            raise other_version(self.path)
        row = connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone()
        if not empty_is_ours or (row and row[0]):
            raise DatabaseError(
                "not a database of localsim", where=str(self.path), hint="choose another file with --db"
            )

    def ensure_usable(self) -> None:
        """Raise DatabaseError if rows could not be written; called before models are loaded and before long work."""
        if problem := cannot_write(self.path):
            hint = "choose another place with --db"
            raise DatabaseError(f"cannot write here: {problem}", where=str(self.path), hint=hint)
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
            if same is not None and not (mark == same and connection.execute(_RUN, [run_id]).fetchone()):
                raise Replaced(self.path, run_id)
            with transaction(connection):
                for statement, values in inserts(tables):
                    connection.execute(statement, values)
        return mark or (0, 0)

    def state(self) -> tuple[Any, ...]:
        """Return what changes whenever the database does, or a file that it shows."""
        about = self.path.stat()
        return self.path, about.st_mtime_ns, about.st_size, *attached.state_of(self.path)

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
                self.take_in_journal(path)
                path.unlink()
            except (KeyError, TypeError, ValueError, Unwritable) as error:
                aside = path.with_suffix(".broken")
                path.replace(aside)
                self._waiting(f"a journal cannot be understood ({type(error).__name__}); it is kept as {aside}")
            count += 1
        if count:
            remove_if_empty(journal_folder(self.path))
        return count

    def take_in_journal(self, path: Path) -> None:
        """Take in the journal of a run that died. Raises KeyError, TypeError or ValueError for one that is none."""
        records = [from_json(line) for line in read_journal(path)]
        rows_of(records)
        if records:
            self.take_in([*records, RunDied()])

    def remove_run(self, run_id: str) -> int:
        """Delete a run with all that belongs to it; return the number of episodes.

        Raises DatabaseError where the run is still being written.
        """
        if is_written(self.path, run_id):
            raise DatabaseError(f"run {run_id} is being written", where=str(self.path), hint="stop it first (Ctrl-C)")
        with self.writing() as connection, transaction(connection):
            episodes = "SELECT episode_id FROM episodes WHERE run_id = ?"
            row = connection.execute(f"SELECT count(*) FROM ({episodes})", [run_id]).fetchone()
            for table in ("turns", "generations", "scores", "leaks", "searches", "judgements"):
                connection.execute(f"DELETE FROM {table} WHERE episode_id IN ({episodes})", [run_id])
            for table in ("annotations", "episodes", "runs"):
                connection.execute(f"DELETE FROM {table} WHERE run_id = ?", [run_id])
        return int(row[0]) if row else 0

    # ---- reading -----------------------------------------------------------------------------------------------

    def rows(self, query: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[dict[str, Any]]:
        """Return the rows of one of our own queries as dictionaries."""
        # Restricted as typed queries are: DuckDB lets only connections with the same settings run side by side.
        opened = self.reading(restricted=True) if self._held is None else nullcontext(self._held.connection())
        with opened as connection:
            try:
                return _dictionaries(
                    connection.execute(query, parameters if isinstance(parameters, dict) else list(parameters))
                )
            except duckdb.Error as error:
                raise as_ours(error, self.path) from error

    def column(self, query: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[Any]:
        """Return the values of the only column of one of our own queries."""
        return [value for row in self.rows(query, parameters) for value in row.values()]

    def pairs(self, query: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> dict[Any, Any]:
        """Return first column -> second column of one of our own queries, which has two."""
        found: Any = (row.values() for row in self.rows(query, parameters))
        return dict(found)

    def select(self, kind: type[RowT], query: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[RowT]:
        """Return the rows of one of our own queries, each as a `kind`: a dataclass with a field for every column.

        Raises TypeError where the columns and the fields have different names.
        """
        return [kind(**row) for row in self.rows(query, parameters)]

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

    def _answer(self, connection: Connection, query: str, run: str) -> Connection:
        """Run the statements of a query, with `$run` bound where one has it; return the answer to the last one."""
        statements = connection.extract_statements(query.encode().decode())
        attached.refuse_changes(connection, statements)
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

    def info(self) -> dict[str, Any]:
        """Return the size in bytes, the versions of schema and DuckDB, and the number of rows in each table."""
        with self.reading() as connection:
            counts = {table: connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0] for table in TABLES}
            made = {"schema_version": version_in(connection), "duckdb": duckdb.__version__}
            return {"bytes": self.path.stat().st_size, **made, **counts}

    def check(self) -> list[str]:
        """Return one line for each defect: rows that contradict each other. [] for a sound file."""
        with self.reading() as connection:
            if absent := absent_column(connection):
                return [f"{absent} is missing"]
            counts = {message: connection.execute(query).fetchall()[0][0] for message, query in CHECKS.items()}
        return [f"{message}: {count}" for message, count in counts.items() if count]

    def dataframe(self, query: str, run: str = "@last") -> Any:
        """Return the result of a query as a pandas DataFrame. Raises InvalidInput if pandas is not installed."""
        with self.reading(restricted=True) as connection, _refused(None):
            answer = self._answer(connection, query, run)
            if find_spec("pandas") is None:  # DuckDB would say neither where nor how
                raise InvalidInput("data frames need pandas", hint="pip install pandas; without it, sql(QUERY)")
            return answer.df()

    def run_id(self, reference: str, *, unfinished: bool = False) -> str:
        """Return the id of the run that `@last`, `@last-N`, a name, an id or its start names. Raises InvalidInput.

        `@last` counts runs with a completed episode; with `unfinished` it counts all runs of models.
        """
        found = run_of(self.rows, self.path, reference, unfinished=unfinished)
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
    return


_FETCHED = 1000


def _fetched(cursor: Connection, seconds: float | None, deadline: float | None) -> Iterator[tuple[Any, ...]]:
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
    except (duckdb.IOException, duckdb.FatalException):
        raise  # the file, not the query
    except (duckdb.Error, ValueError, OverflowError) as error:  # values that Python has no type for, too
        if "pytz" in str(error):
            hint = "write ::TIMESTAMP behind it, as in now()::TIMESTAMP"
            raise InvalidInput("a time with a zone cannot be read", where="sql", hint=hint) from error
        raise InvalidInput(
            one_line(str(error)), where="sql", hint="localsim sql 'SHOW TABLES' lists tables and views"
        ) from error


def _dictionaries(cursor: Connection) -> list[dict[str, Any]]:
    columns = [column[0] for column in cursor.description or []]
    return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def _close(connection: Connection) -> None:
    try:
        connection.close()
    except duckdb.Error:
        return  # closing checkpoints; on a full disk that fails, and the log beside the file holds the rows
