"""Options, tables and progress bars for all commands. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from tqdm import tqdm

from localsim import paths
from localsim.annotation.selection import Selection
from localsim.cli import completion
from localsim.conversation.episode import Episode, EpisodeSpec, counted
from localsim.conversation.grants import condition_name
from localsim.conversation.transcript import Turn
from localsim.errors import InvalidInput
from localsim.machine import PORT
from localsim.runs.scheduler import Watcher
from localsim.store.database import Store

if TYPE_CHECKING:
    from localsim.leakage.detector import Weights
    from localsim.machine.forecast import Remaining

_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red", "white", "bright_black")

SILENCE_S = 2.0
"""Seconds without a word after which a long command says what it is doing."""
_LONGEST_PAUSE_S = 30
"""Seconds between two such lines, at most, where stderr is no terminal; the pauses grow from SILENCE_S to this."""
_DOING = re.compile(r"(?:\S+: )?[a-z]+ing\b.*")
"""A message that says what begins now, such as "loading starter (146 MB)"."""
WIDTH = 100
"""Columns of a list that is not printed on a terminal."""
HERE = "127.0.0.1"
"""The default address of the pages; only this computer can reach it."""

db_option = click.option(
    "--db",
    metavar="FILE",
    help="Use this database file [LOCALSIM_DB, else db/localsim.duckdb beside a localsim.toml, else localsim.duckdb].",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
conditions_argument = click.argument(
    "conditions", nargs=-1, metavar="[RUN[:CONDITION]]...", shell_complete=completion.runs
)


class Finite(click.FloatRange):
    """A number in a range; nan and inf are refused, which click's range lets through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Raises click's usage error."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is not a number", param, ctx)
        return found


def store_of(db: str | None) -> Store:
    """Open the store that --db names; it says when it must wait for the file, and which run `@last` is."""
    return Store(paths.database_path(db), waiting=say, took=_say_which)


_BLIND = {"annotate", "play"}
"""Commands for people who must not see the modes of a run, which its name can hold."""


def _say_which(store: Store, reference: str, run_id: str) -> None:
    """Print which run `@last` or `@last-N` is; nothing with --json, nor for a request of a page."""
    from localsim.runs import telling
    from localsim.store.queries.runs import run_facts, run_list

    context = click.get_current_context(silent=True)
    if context is None or context.params.get("as_json"):
        return
    row = run_facts(store, run_id)
    named = "" if _BLIND & set(context.command_path.split()) else f" ({clean(telling.name_of(store, row))})"
    when = telling.clock_of(row["started_utc"])
    runs = len(run_list(store)) if context.info_name == "report" else 1
    of = f", 1 of {runs} runs of this database" if runs > 1 else ""
    say(f"{reference} is {run_id}{named}, {telling.episodes_of(row)}, {when}{of}")


def say(message: str) -> None:
    """Print a line for people on stderr, without disturbing a progress bar."""
    tqdm.write(message, file=sys.stderr)
    if _now is not None:
        _now.said(message)


class Reassurance:
    """Says what is being done whenever a command has been silent for SILENCE_S; use it in a `with` block.

    On a terminal a line at the bottom counts the seconds; elsewhere there are lines with growing pauses. `doing` is
    what it says until a message such as "loading starter" says better. Results are printed after the block.
    """

    def __init__(self, doing: str, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._doing = doing
        self._terminal = sys.stderr.isatty()
        self._quiet = quiet and not self._terminal
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


def print_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    click.echo(json_for_stdout(value))


def json_for_stdout(value: Any) -> str:
    """Return indented JSON; for a terminal, with escapes for characters that could steer it."""
    text = paths.json_text(value, indent=2, default=str)
    return _UNPRINTED.sub(_escaped, text) if sys.stdout.isatty() else text


_UNPRINTED = re.compile(r"[^\x20-\x7e\n]")
"""Candidates only: most of them are letters."""


def _escaped(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]


def colour_of(names: Sequence[str], name: str) -> str:
    """Return the colour of an agent."""
    return _COLOURS[names.index(name) % len(_COLOURS)] if name in names else "white"


def clean(text: str) -> str:
    """Return text without control characters, so that stored text cannot steer the terminal."""
    return "".join(char for char in text if char.isprintable() or char in "\n\t")


def echo(text: str, **style: Any) -> None:
    """Print stored text on stdout, without control characters and in a style of `click.style`."""
    click.secho(clean(text), **style)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[Any]], *, short: bool = False) -> None:
    """Print a table on stdout; long cells are cut if stdout is a terminal, and elsewhere if it must be `short`."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max([len(heading), *(len(row[index]) for row in cells)]) for index, heading in enumerate(headings)]
    if sys.stdout.isatty() or short:
        room = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
        while sum(widths) + 2 * (len(widths) - 1) > room and max(widths) > 12:
            widths[widths.index(max(widths))] -= 1
    numeric = [
        bool(rows) and all(isinstance(row[i], int | float | type(None)) for row in rows) for i in range(len(widths))
    ]
    for number, row in enumerate([[_cell(heading) for heading in headings], ["-" * width for width in widths], *cells]):
        parts = [_fit(cell, width, right) for cell, width, right in zip(row, widths, numeric, strict=True)]
        click.secho("  ".join(parts).rstrip(), bold=number == 0)


def _fit(cell: str, width: int, right: bool) -> str:
    cut = cell if len(cell) <= width else cell[: width - 1] + "…"
    return cut.rjust(width) if right else cut.ljust(width)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return clean(" ".join(str(value).split()))


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
        quiet: bool = False,
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
        self._quiet = quiet
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
        """Begin the clock of the forecast; models are loaded by now."""
        from localsim.machine.forecast import Remaining

        self._remaining = Remaining(specs, self._store)
        self._started = self._clock()
        if _now is not None and not self._quiet:
            _now.progress = self

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        """Print a turn if --live asks for it."""
        if self._live:
            head = f"{_named(spec)} {turn.index:>2} "
            name = turn.who if turn.doing == "speak" else f"{turn.who} [{turn.doing}]"
            if sys.stderr.isatty() and not paths.no_color():
                name = click.style(name, fg=colour_of(spec.scenario.names, turn.speaker))
            text = f": {turn.action.text}" if turn.action.text else ""
            say(clean_keep_colour(head, name, text))

    def ended(self, episode: Episode) -> None:
        """Count an episode that has ended, and name one that failed."""
        if episode.status == "failed":
            self._failed += 1
            say(f"failed: {_named(episode.spec)}: {episode.error}")
        self._over += 1
        if self._remaining is not None:
            self._remaining.end(episode.spec)
        self._bar.set_postfix_str(self._state(), refresh=False)
        self._bar.update()

    def working(self, ended: int, running: int) -> None:
        """Note how many tokens are written."""
        self._written = ended, running

    def line(self) -> str:
        """Return one line about the run: episodes, speed, forecast."""
        return f"{self._over} of {counted(self._planned)}, {self._state()}"

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


def clean_keep_colour(head: str, styled_name: str, text: str) -> str:
    """Return a line whose only control characters are our own colour codes."""
    return f"{head}{styled_name}{clean(text)}"


def _cluster(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from localsim.runs.cluster.connect import checked_address

    try:
        return checked_address(value)
    except InvalidInput as error:
        raise click.BadParameter(f"{error}; it is {error.hint}") from error


def cluster_option(help_text: str) -> Callable[[Any], Any]:
    """Return the option --cluster, the address of a Ray cluster."""
    return click.option("--cluster", metavar="auto|ray://HOST:PORT", callback=_cluster, help=help_text)


def weights_option(help_text: str) -> Callable[[Any], Any]:
    """Return the options --weights FILE and --sensitivity SHARE; `weights_from` reads their values."""
    weights = click.option("--weights", metavar="FILE", help=help_text)
    return lambda command: weights(sensitivity_option(command))


def sensitivity_option(command: Any) -> Any:
    """Add the option --sensitivity SHARE."""
    return click.option(
        "--sensitivity",
        metavar="SHARE",
        type=Finite(0, 1, min_open=True, max_open=True),
        help="Find as many leaks as possible while at most this share of the facts that stay private is called "
        "disclosed [the share of the thresholds; 0.05 if they are built in].",
    )(command)


def weights_from(value: str | None, sensitivity: float | None = None) -> Weights | None:
    """Return the weights of the leakage detector that --weights and --sensitivity name; None without both.

    Raises InvalidInput.
    """
    from localsim.leakage.detector import BUILT_IN, Weights

    if value is None and sensitivity is None:
        return None
    return Weights.named(BUILT_IN if value is None else value).at(sensitivity)


def output_option(help_text: str) -> Callable[[Any], Any]:
    """Return the option -o FILE."""
    return click.option("-o", "--output", type=click.Path(dir_okay=False), help=help_text)


def web_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --host, --port and --open to a command."""
    open_option = click.option("--open", "open_browser", is_flag=True, help="Also open the page in a browser.")
    port = click.option(
        "--port", type=click.IntRange(1, 65535), help=f"Listen on this port [{PORT}, or the next free one]."
    )
    host = click.option(
        "--host",
        default=HERE,
        show_default=True,
        help="Listen on this address; by default only this computer can connect.",
    )
    return host(port(open_option(command)))


@dataclass(frozen=True)
class Pages:
    """The pages of a server, and the first one to open."""

    path: str
    model: str = "starter"
    """The model that plays the roles no person takes."""
    parts: tuple[str, ...] = ("view", "annotate", "play")
    open_browser: bool = False
    selection: Selection | None = None
    """The conversations that raters judge; None lets them choose a run."""


def serve_pages(store: Store, host: str, port: int | None, pages: Pages, tell: Callable[[str], None]) -> None:
    """Serve pages until Ctrl-C. Raises InvalidInput if the packages for it are not installed."""
    try:
        from localsim.web.serve import Content, Place, serve
    except ImportError as error:
        raise InvalidInput(f"the pages need {error.name}", hint='pip install "localsim[web]"') from error
    place = Place(host, port or PORT, fixed=port is not None)
    content = Content(store, pages.model, frozenset(pages.parts), pages.selection, Reassurance)
    serve(place, content, pages.path, tell, open_browser=pages.open_browser)


def _gpu(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if value not in ("auto", "off") and not value.isdecimal():
        raise click.BadParameter("auto, off, or a number of layers")
    return value


gpu_option = click.option(
    "--gpu",
    default="auto",
    show_default=True,
    callback=_gpu,
    help="Put this many layers on the GPU: auto, off or a number.",
)
