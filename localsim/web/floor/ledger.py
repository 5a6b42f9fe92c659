"""The ledger of a class: one file beside the database with a line for each seat, talk and bet, on the disk at once.

Talks themselves are in the journal of the run and then in the database. The ledger also keeps what a restart needs to
let phones come back: port, tokens and join code.
"""

from __future__ import annotations

import errno
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from localsim import paths
from localsim.errors import DatabaseError
from localsim.store.journal import read_journal
from localsim.web.floor.state import Event


@dataclass(frozen=True, kw_only=True)
class Doors:
    """Where people come in: decided when something begins in which they take part."""

    run_id: str
    host: str
    port: int
    access: str
    """The token in the address that people open."""
    edition: int = 1
    """The edition of the rules that its talks follow to their end; ledgers of the first edition do not name it."""


class Ledger:
    """The ledger of the newest class of a database, locked for as long as it is open.

    `ending` of its name and `what` it is about may be those of something else in which people take part.
    """

    def __init__(self, database: Path, ending: str = "class", what: str = "a class") -> None:
        """Raises DatabaseError if another process serves the same of this database."""
        self.path = database.with_name(f"{database.name}.{ending}")
        # A form begins a class in one thread, and its server ends it in another.
        self._lock = FileLock(str(self.path) + ".lock", timeout=0, thread_local=False)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except Timeout as error:
            raise DatabaseError(
                f"another process serves {what} of this database",
                where=str(self.path),
                hint="stop it, or use another database with --db",
            ) from error
        self.events: list[Event] = read_journal(self.path) if self.path.exists() else []

    def has(self, event: str) -> bool:
        """Return True if an event of this name is in the file."""
        return any(each.get("event") == event for each in self.events)

    def first(self) -> dict[str, Any] | None:
        """The fields of the opening in this file, with the newest address; None if there is none."""
        first = dict(self.events[0]) if self.events else {}
        if first.pop("event", "") != "open":
            return None
        moves = [event["host"] for event in self.events if event.get("event") == "moved"]
        return {**first, "host": [first["host"], *moves][-1]}

    def begin(self, opening: Doors) -> None:
        """Begin anew; the file of the time before is replaced, and its talks and answers stay in the database."""
        fresh = self.path.with_name(self.path.name + ".new")
        event: dict[str, Any] = {"event": "open", **asdict(opening)}
        _write(fresh, event, os.O_TRUNC)
        fresh.replace(self.path)
        self.events = [event]

    def append(self, event: Event) -> None:
        """Write one event and wait until it is on the disk."""
        _write(self.path, event, os.O_APPEND)

    def mend(self) -> None:
        """End a last line that a crash has torn, so that the next one is a line of its own."""
        data = self.path.read_bytes() if self.path.exists() else b""
        if data and not data.endswith(b"\n"):
            with self.path.open("ab") as file:
                file.write(b"\n")

    def close(self) -> None:
        """Let another process have the file."""
        self._lock.release()


def _write(path: Path, event: Event, how: int) -> None:
    data = paths.json_text(event).encode() + b"\n"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o600)
        try:
            if os.write(handle, data) < len(data):  # a full disk may take a part; `mend` ends that line
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise DatabaseError(
            f"the ledger cannot be written: {error.strerror}", where=str(path), hint="free some space"
        ) from error
