"""Access to one database file: admission of this process's threads, and DuckDB's messages about the file in our words.

DuckDB allows several connections of one kind at a time, but no reader beside a writer. Threads are admitted in the
order in which they ask, so that none waits for ever.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import psutil

from localsim.errors import DatabaseError

Kind = Literal["read", "restricted", "write"]


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


def one_line(message: str) -> str:
    """Return the first paragraph of a message on one line."""
    return " ".join(message.split("\n\n")[0].split())


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
    if "not a valid DuckDB database" in message:
        return DatabaseError("not a DuckDB database", where=str(path), hint="choose another file with --db")
    if "Permission denied" in message or "read-only" in message.lower():
        return DatabaseError("no permission to write it", where=str(path), hint="choose another place with --db")
    return DatabaseError(message, where=str(path), hint="localsim db check looks at the file")
