"""Group commit: one thread for each database writes what many threads bring, all that waits in one transaction.

Opening the database takes longer than writing many rows. So thirty raters who click at once do not wait for thirty
transactions: the first answer begins one, and those that arrive meanwhile share the next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from localsim.store.database import Store

Item = TypeVar("Item")


class Writer(Generic[Item]):
    """A thread that passes items to `write`. The thread ends with the last reference to its writer; at the end of the
    program, what waits is still written.
    """

    def __init__(self, write: Callable[[Sequence[Item]], None]) -> None:
        self._write = write
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="localsim-writer")
        self._lock = threading.Lock()
        self._waiting: list[Item] = []
        self._written: Future[None] = Future()

    def add(self, item: Item) -> Future[None]:
        """Have an item written with all others that wait. The future ends when they are written, or holds the error
        that prevented it.
        """
        with self._lock:
            if not self._waiting:
                self._written = self._thread.submit(self._write_waiting)
            self._waiting.append(item)
            return self._written

    def _write_waiting(self) -> None:
        with self._lock:
            items, self._waiting = self._waiting, []
        self._write(items)


class Writers(Generic[Item]):
    """The writers of one table: one for each database to which a thread is writing now."""

    def __init__(self, write: Callable[[Store, Sequence[Item]], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._by_path: WeakValueDictionary[Path, Writer[Item]] = WeakValueDictionary()

    def write(self, store: Store, item: Item) -> None:
        """Write an item in a transaction that it may share with items of other threads, and wait for its end.

        Raises what the transaction raises.
        """
        with self._lock:
            writer = self._by_path.get(store.path.absolute())
            if writer is None:
                writer = Writer(lambda items: self._write(store, items))
                self._by_path[store.path.absolute()] = writer
        writer.add(item).result()
