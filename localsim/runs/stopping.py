"""Ctrl-C and SIGTERM: both let a run finish its turns, and both end any other command at once.

Exit codes are those of a shell: 130 after Ctrl-C, 143 after SIGTERM, which `kill`, `timeout` and job schedulers send.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from localsim.errors import Interrupted

Notify = Callable[[str], None]
TERMINATED = 128 + signal.SIGTERM

_received: set[int] = set()
"""Signals that this process has received since `listen`."""


def listen() -> None:
    """Let SIGTERM end a command as Ctrl-C does; called once, in the main thread."""
    signal.signal(signal.SIGTERM, _stop)


def forget() -> None:
    """Forget the signals of an earlier command of this process."""
    _received.clear()


def exit_code() -> int:
    """Return the exit code of a command that was interrupted."""
    return TERMINATED if signal.SIGTERM in _received else Interrupted.exit_code


def _stop(number: int, _frame: FrameType | None) -> None:
    _received.add(number)
    raise KeyboardInterrupt


@contextmanager
def stoppable(say: Notify) -> Iterator[list[bool]]:
    """Let the first Ctrl-C or SIGTERM stop the run after the current turns, and the second at once.

    Yields a list whose one value is True from the first signal on.
    """
    asked = [False]

    def handle(number: int, frame: FrameType | None) -> None:
        if asked[0]:
            _stop(number, frame)
        _received.add(number)
        asked[0] = True
        say("finishing the current turns (Ctrl-C again stops at once)")

    previous: dict[int, object] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, handle)
    except ValueError:  # not in the main thread, so signals do not arrive here
        yield asked
        return
    try:
        yield asked
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)  # type: ignore[arg-type]  # what signal() returned
