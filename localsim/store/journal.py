"""The journal: for each run one file of JSON lines beside the database, written during the run.

Each line is one record, flushed to the disk before the run continues. Whatever happens to the process, every line but
a torn last one can be read back. The journal knows nothing of the database; `Store` takes records in.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from localsim import paths
from localsim.errors import DatabaseError
from localsim.store.records import Record, as_json

Event = dict[str, Any]


def journal_folder(database: Path) -> Path:
    """Return the folder of a database's journals."""
    return database.with_name(database.name + ".d")


class Journal:
    """The journal of one running run; holds a lock on it for as long as it is open."""

    def __init__(self, database: Path, run_id: str) -> None:
        folder = journal_folder(database)
        self.path = folder / f"{paths.file_name(run_id)}.jsonl"
        self._lock = FileLock(str(self.path) + ".lock", timeout=0)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            self._file = self.path.open("ab", buffering=0)
        except Timeout as error:
            raise DatabaseError(f"run {run_id} is being written by another process", where=str(self.path)) from error
        except OSError as error:
            self._lock.release()
            raise _cannot_write(self.path, error) from error

    def append(self, *records: Record) -> None:
        """Write records and wait until they are on the disk. Raises DatabaseError where they cannot be written."""
        lines = (paths.json_text(as_json(record)) for record in records)
        data = b"".join(line.encode("utf-8", "replace") + b"\n" for line in lines)
        if os.fstat(self._file.fileno()).st_nlink == 0:
            raise DatabaseError(
                "the journal was removed while the run was writing to it",
                where=str(self.path),
                hint="episodes that were finished before are in the database; start the run again for the others",
            )
        end = self._file.tell()
        try:
            written = self._file.write(data)
            if written != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(end)
            raise _cannot_write(self.path, error) from error

    def close(self, *, remove: bool) -> None:
        """Release the journal; `remove` it once all of it is in the database. Closing twice does nothing."""
        if self._file.closed:
            return
        self._file.close()
        with contextlib.suppress(FileNotFoundError):  # removed by another program
            if remove or self.path.stat().st_size == 0:
                self.path.unlink()
        _release(self._lock)
        remove_if_empty(self.path.parent)


def _cannot_write(path: Path, error: OSError) -> DatabaseError:
    if error.errno == errno.ENOSPC:
        message, hint = "the disk is full", "free some space, then resume the run; what was written is intact"
    else:
        message, hint = f"cannot be written: {error.strerror}", "choose another place with --db"
    return DatabaseError(message, where=str(path), hint=hint)


def leftover_journals(database: Path) -> Iterator[Path]:
    """Journals that no living process writes, each with its lock held until the caller moves on."""
    for path in sorted(journal_folder(database).glob("*.jsonl")):
        lock = FileLock(str(path) + ".lock", timeout=0)
        try:
            lock.acquire()
        except (Timeout, OSError):
            continue
        try:
            if path.exists():
                yield path
        finally:
            _release(lock)


def is_written(database: Path, run_id: str) -> bool:
    """Return True while a living process writes the run."""
    path = journal_folder(database) / f"{run_id}.jsonl"
    if not path.exists():
        return False
    lock = FileLock(str(path) + ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        return True
    _release(lock)
    return False


def _release(lock: FileLock) -> None:
    """Give a lock back and leave no file behind; it is unlinked first, and filelock notices an unlinked file."""
    with contextlib.suppress(OSError):
        Path(lock.lock_file).unlink(missing_ok=True)
    lock.release()


def read_journal(path: Path, last: int | None = None) -> list[Event]:
    """All whole events, or those of the last so many bytes; a torn last line is the turn that was being written and is
    left out.
    """
    events = []
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - last) if last is not None else 0)
        data = file.read()
    for line in data.split(b"\n"):
        try:
            event = json.loads(line) if line else None
        except ValueError:
            continue
        if isinstance(event, dict):
            events.append(event)
    return events


def remove_if_empty(folder: Path) -> None:
    """Remove the folder of journals once nothing is in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()
