"""Reads in a row on one connection, which is renewed every second so that a writer gets its turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

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
