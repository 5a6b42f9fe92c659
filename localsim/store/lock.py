"""Access to database files: admission of this process's threads, waiting for other processes, and DuckDB's messages
about a file in our words.

DuckDB allows several connections of one kind at a time, but no reader beside a writer. Threads are admitted in the
order in which they ask, so that none waits for ever. `Held` is a connection for reads in a row.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

import duckdb
import psutil

from localsim import paths
from localsim.errors import DatabaseError

Kind = Literal["read", "restricted", "write"]
Waiting = Callable[[str], None]
"""Is told when another process holds a file."""
Connection = duckdb.DuckDBPyConnection
UNKNOWN_NAME = (duckdb.CatalogException, duckdb.BinderException)
"""What a query raises about a table or column that a file does not have."""
Statement = duckdb.Statement
T = TypeVar("T")

SAFE = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
}
STORAGE = {"storage_compatibility_version": "v1.4.0"}
"""Tools built on DuckDB 1.4 or 1.5 can open the file too."""


class Sharing:
    """The threads that use a file now, and those that wait for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._kind: Kind = "read"
        self._inside = 0
        self._own = threading.local()

    @contextmanager
    def admission(self, kind: Kind) -> Iterator[None]:
        """Wait until this thread may connect; a thread that was admitted already goes on at once."""
        if getattr(self._own, "depth", 0):
            yield
            return
        self._enter(kind)
        self._own.depth = 1
        try:
            yield
        finally:
            self._own.depth = 0
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def _enter(self, kind: Kind) -> None:
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                self._changed.wait_for(lambda: self._waiting[0] is ticket and self._admits(kind))
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()
            self._kind = kind
            self._inside += 1

    def _admits(self, kind: Kind) -> bool:
        return self._inside == 0 or (kind == self._kind and kind != "write")


_files: dict[Path, Sharing] = {}
_lock = threading.Lock()


def sharing_of(path: Path) -> Sharing:
    """Return the admission to a file, the same object for every thread."""
    with _lock:
        return _files.setdefault(path.absolute(), Sharing())


def holder_in(message: str) -> str | None:
    """Return who holds the file according to DuckDB's message: process id and command; None for another error."""
    if "different configuration than existing connections" in message:  # DuckDB's rule within one process
        return "another thread of this process"
    if "Could not set lock" not in message and "being used by another process" not in message:
        return None
    match = re.search(r"PID (\d+)", message)
    if match is None:
        return "another process"
    pid = int(match.group(1))
    try:
        command = " ".join(psutil.Process(pid).cmdline())[:80]
    except psutil.Error:
        return f"process {pid}"
    return f"process {pid} ({command})"


def patiently(connect: Callable[[], T], path: Path, patience_s: float, waiting: Waiting) -> T:
    """Return what `connect` returns; wait while another process holds the file, until patience ends.

    Raises DatabaseError about the file that DuckDB names, else about `path`.
    """
    deadline = time.monotonic() + patience_s
    pause, told = 0.02, False
    while True:
        try:
            return connect()
        except duckdb.Error as error:
            holder, held = holder_in(str(error)), file_in(str(error)) or path
            if holder is None:
                raise as_ours(error, held) from error
            if time.monotonic() >= deadline:
                hint = "close it there, or wait and try again"
                raise Busy(f"held by {holder}", where=str(held), hint=hint) from error
            if not told and time.monotonic() > deadline - patience_s + min(1.0, patience_s / 3):
                waiting(f"{held.name} is held by {holder}; waiting")
                told = True
            time.sleep(pause)
            pause = min(pause * 1.5, 0.5)


def empty(path: Path | None = None) -> Connection:
    """Open a new database in memory, or a new file."""
    return duckdb.connect(str(path or ":memory:"), config={**SAFE, **(STORAGE if path else {})})


@contextmanager
def scratch(path: Path | None = None) -> Iterator[Connection]:
    """Open a new database in memory, or a new file, for a short time. Errors of DuckDB pass through."""
    connection = empty(path)
    try:
        yield connection
    finally:
        with suppress(duckdb.Error):
            connection.close()


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """Commit what the block does, or take all of it back if it raises."""
    connection.begin()
    try:
        yield
        connection.commit()
    except BaseException:
        with suppress(duckdb.Error):  # a failed commit has rolled back already
            connection.rollback()
        raise


def file_in(message: str) -> Path | None:
    """Return the path of the file that a message of DuckDB names in quotes; None if it names none."""
    match = re.search(r'"(/[^"]+|[A-Za-z]:[^"]+)"', message)
    return Path(match[1]) if match and not match[1].endswith("_extension") else None


def one_line(message: str) -> str:
    """Return the first paragraph of a message on one line."""
    return " ".join(message.split("\n\n")[0].split())


_DAMAGED = re.compile(r"could not read|corrupt|serializ|internal error|invalidated", re.IGNORECASE)
"""What DuckDB says about a file that was cut or changed."""


def as_ours(error: Exception, path: Path) -> DatabaseError:
    """Return a DatabaseError that says in our words what DuckDB reports about a file."""
    message = one_line(str(error))
    if "No space left" in message or "disk" in message.lower() and "full" in message.lower():
        return DatabaseError(
            "the disk is full", where=str(path), hint="free some space; the journal holds what is missing"
        )
    if "newer version" in message or "storage version" in message.lower():
        return DatabaseError(
            "written by a newer DuckDB than the one installed", where=str(path), hint="pip install -U duckdb"
        )
    if "replaying WAL" in message:
        hint = "move this log away if it is of another database; else use a copy of both"
        return DatabaseError(f"this log does not fit its database ({message})", where=str(path), hint=hint)
    if _DAMAGED.search(message):
        hint = "use a copy of it, or choose another file with --db"
        return DatabaseError(f"the file is damaged or incomplete ({message})", where=str(path), hint=hint)
    if "not a valid DuckDB database" in message or "external extension" in message or "_scanner" in message:
        return DatabaseError("not a DuckDB database", where=str(path), hint="choose another file with --db")
    if "Permission denied" in message or "read-only" in message.lower():
        return DatabaseError("no permission to write it", where=str(path), hint="choose another place with --db")
    return DatabaseError(message, where=str(path), hint="localsim db check looks at the file")


class Unwritable(DatabaseError):
    """The database refuses these rows whatever its state."""


class Busy(DatabaseError):
    """Another process or thread holds the file; the rows are still in the journal."""


class Replaced(DatabaseError):
    """The file was removed or replaced between two writes of one run; the journal holds the run."""

    def __init__(self, path: Path, run_id: str) -> None:
        resumed = f"localsim resume {run_id}{paths.db_option(path)}"
        super().__init__(
            "the database file was removed or replaced while the run was writing to it",
            where=str(path),
            hint=f"the journal in {path}.d is kept; to use it and continue: {resumed}",
        )


# ---- reads in a row --------------------------------------------------------------------------------------------------

SECONDS = 1.0
"""Age from which a connection is not used for another read."""


class Held:
    """A connection for reads in a row by one thread."""

    def __init__(self, opening: Callable[[], AbstractContextManager[Any]], turn: Callable[[], None]) -> None:
        """`opening` makes a connection; `turn` is called before each but the first and lets writers go ahead."""
        self._opening, self._turn = opening, turn
        self._stack = ExitStack()
        self._connection: Any = None
        self._since = 0.0

    def connection(self) -> Any:
        """Return the open connection, or a new one if it is too old."""
        if self._connection is not None and time.monotonic() - self._since > SECONDS:
            self.close()
            self._turn()
        if self._connection is None:
            self._connection = self._stack.enter_context(self._opening())
            self._since = time.monotonic()
        return self._connection

    def close(self) -> None:
        """Close the connection, if one is open."""
        self._connection = None
        self._stack.close()
