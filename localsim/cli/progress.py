"""What commands say on stderr while they work: messages, what is being done, and the progress of a run."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from tqdm import tqdm

from localsim import paths
from localsim.conversation.episode import Episode, EpisodeSpec
from localsim.conversation.grants import condition_name
from localsim.conversation.transcript import Turn
from localsim.conversation.wording.wordings import counted
from localsim.runs.scheduler import Watcher
from localsim.store.database import Store

if TYPE_CHECKING:
    from localsim.machine.forecast import Remaining

_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red", "white", "bright_black")

SILENCE_S = 2.0
"""Seconds without a word after which a long command says what it is doing."""
_LONGEST_PAUSE_S = 30
"""Seconds between two such lines, at most, where stderr is no terminal; the pauses grow from SILENCE_S to this."""
_DOING = re.compile(r"(?:\S+: )?[a-z]+ing\b.*")
"""A message that says what begins now, such as "loading starter (146 MB)"."""


def wants_json() -> bool:
    """Return True while a command runs that prints one JSON document."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("as_json"))


def colour_of(names: Sequence[str], name: str) -> str:
    """Return the colour of an agent."""
    return _COLOURS[names.index(name) % len(_COLOURS)] if name in names else "white"


def clean(text: str) -> str:
    """Return text without control characters, so that stored text cannot steer the terminal."""
    return "".join(char for char in text if char.isprintable() or char in "\n\t")


def say(message: str, *, styled: bool = False) -> None:
    """Print a line for people on stderr, without disturbing a progress bar; `styled`: it is clean, and has colours."""
    tqdm.write(message if styled else clean(message), file=sys.stderr)
    if _now is not None:
        _now.said(message)


class Reassurance:
    """Says what is being done whenever a command has been silent for SILENCE_S; use it in a `with` block.

    On a terminal a line at the bottom counts the seconds; elsewhere there are lines with growing pauses. `doing` is
    what it says until a message such as "loading starter" says better. Results are printed after the block. It is
    `quiet` where there is no terminal and, unless that is stated, the command prints JSON.
    """

    def __init__(self, doing: str, *, quiet: bool | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._doing = doing
        self._terminal = sys.stderr.isatty()
        self._quiet = (wants_json() if quiet is None else quiet) and not self._terminal
        self._clock = clock
        self._since = self._last = clock()
        self._pause = SILENCE_S
        self._asking = False
        self._line: tqdm[Any] | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.progress: Progress | None = None

    def __enter__(self) -> Reassurance:
        """Begin to listen to the silence."""
        global _now
        if _now is None and not self._quiet:
            _now = self
            self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop, and wipe the line at the bottom."""
        global _now
        if _now is self:
            _now = None
            self._over.set()
            self._thread.join()
        self._wipe()

    def said(self, message: str) -> None:
        """Note a message that has just been printed."""
        self._last = self._clock()
        if _DOING.fullmatch(message):
            self._doing, self._since = message, self._last

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Say nothing while a person is asked something."""
        self._wipe()
        self._asking = True
        try:
            yield
        finally:
            self._asking, self._last = False, self._clock()

    def beat(self) -> None:
        """Say what is being done if it is time for that."""
        if self._asking:
            return
        now = self._clock()
        silent = now - self._last
        if self._terminal:
            if self.progress is not None:
                self._wipe()
                self.progress.draw()
            elif silent >= SILENCE_S or self._line is not None:
                self._count(f"{self._doing}, {now - self._since:.0f} s")
        elif silent >= self._pause:
            shown = self.progress.line() if self.progress is not None else ""
            tqdm.write(shown or f"still {self._doing}, {now - self._since:.0f} s", file=sys.stderr)
            self._last = now
            self._pause = min(_LONGEST_PAUSE_S, 2 * self._pause)

    def _watch(self) -> None:
        while not self._over.wait(0.25):
            self.beat()

    def _count(self, text: str) -> None:
        if self._line is None:
            self._line = tqdm(bar_format="{desc}", leave=False, file=sys.stderr, dynamic_ncols=True)
        self._line.set_description_str(text)

    def _wipe(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None


_now: Reassurance | None = None
"""The one that listens now."""


class Progress(Watcher):
    """The progress of a run on stderr: a bar on a terminal, else lines, both with a forecast of the time left.

    The forecast comes from the first tokens on; episodes of the same model in `store` improve it. With --live the
    dialogue is printed as it happens.
    """

    def __init__(
        self,
        planned: int,
        done: int = 0,
        *,
        live: bool = False,
        quiet: bool | None = None,
        store: Store | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._live = live
        self._store = store
        self._failed = 0
        self._over, self._planned = done, planned
        self._clock = clock
        self._started = clock()
        self._written = (0, 0)
        self._remaining: Remaining | None = None
        self._quiet = wants_json() if quiet is None else quiet
        self._bar = tqdm(
            total=planned,
            initial=done,
            file=sys.stderr,
            dynamic_ncols=True,
            mininterval=0.3,
            bar_format="{n_fmt} of {total_fmt} episodes |{bar}| {elapsed}{postfix}",
            disable=None,
        )

    def begins(self, specs: Sequence[EpisodeSpec]) -> None:
        from localsim.machine.forecast import Remaining

        self._remaining = Remaining(specs, self._store)
        self._started = self._clock()
        if _now is not None and not self._quiet:
            _now.progress = self

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        if self._live:
            name = clean(turn.who if turn.doing == "speak" else f"{turn.who} [{turn.doing}]")
            if sys.stderr.isatty() and not paths.no_color():
                name = click.style(name, fg=colour_of(spec.scenario.names, turn.speaker))
            text = clean(f": {turn.action.text}" if turn.action.text else "")
            say(f"{_named(spec)} {turn.index + 1:>2} {name}{text}", styled=True)

    def ended(self, episode: Episode) -> None:
        if episode.status == "failed":
            self._failed += 1
            say(f"failed: {_named(episode.spec)}: {episode.error}")
        self._over += 1
        if self._remaining is not None:
            self._remaining.end(episode.spec)
        self._bar.set_postfix_str(self._state(), refresh=False)
        self._bar.update()

    def working(self, ended: int, running: int) -> None:
        self._written = ended, running

    def line(self) -> str:
        """Return one line about the run: episodes, speed, forecast."""
        return f"{self._over} of {counted(self._planned, 'episode')}, {self._state()}"

    def draw(self) -> None:
        """Draw the bar anew."""
        self._bar.set_postfix_str(self._state(), refresh=True)

    def _state(self) -> str:
        elapsed = max(self._clock() - self._started, 1e-9)
        left = self._remaining.seconds(*self._written, elapsed) if self._remaining is not None else None
        parts = [f"{sum(self._written) / elapsed:.0f} tokens/s"] if any(self._written) else []
        parts += [f"about {duration(left)} left"] if left is not None and self._over < self._planned else []
        return ", ".join([*parts, f"{self._failed} failed"])

    def close(self) -> None:
        """Stop drawing; the bar stays on the screen."""
        if _now is not None and _now.progress is self:
            _now.progress = None
        self._bar.close()


def duration(seconds: float) -> str:
    """Return a forecast in words: 20 s, 4 minutes, 2.5 hours."""
    if seconds < 90:
        return f"{max(5, 5 * round(seconds / 5))} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _named(spec: EpisodeSpec) -> str:
    """Return scenario, condition and number of an episode."""
    return f"{spec.scenario.id}/{condition_name(spec.mode, spec.grants.text)}/{spec.index}"
