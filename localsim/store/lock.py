"""Turns of this process's threads at one database file: DuckDB lets connections of one kind stand side by side, never
readers beside a writer. First come, first served, so that nobody starves.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

Kind = Literal["read", "restricted", "write"]


class Sharing:
    """Who is at a file now, and who waits."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._kind: Kind = "read"
        self._inside = 0
        self._own = threading.local()

    @contextmanager
    def turn(self, kind: Kind) -> Iterator[None]:
        """Wait for one's turn; a thread that has one already goes on."""
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
    """The turns at a file, the same for every thread."""
    with _lock:
        return _files.setdefault(path.absolute(), Sharing())
