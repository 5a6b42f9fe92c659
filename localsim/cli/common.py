"""Options, tables and progress bars for all commands. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from tqdm import tqdm

from localsim import paths
from localsim.annotation.selection import Selection
from localsim.conversation.episode import Episode, EpisodeSpec
from localsim.conversation.grants import condition_name
from localsim.conversation.transcript import Turn
from localsim.errors import InvalidInput
from localsim.runs.scheduler import Watcher
from localsim.store.database import Store

if TYPE_CHECKING:
    from localsim.leakage.detector import Weights

_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red", "white", "bright_black")

_LINE_EVERY_S = 30
HERE = "127.0.0.1"
"""The default address of the pages; only this computer can reach it."""

db_option = click.option(
    "--db",
    metavar="FILE",
    help="Use this database file [LOCALSIM_DB, else db/localsim.duckdb beside a localsim.toml, else localsim.duckdb].",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


class Finite(click.FloatRange):
    """A number in a range; nan and inf are refused, which click's range lets through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Raises click's usage error."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is not a number", param, ctx)
        return found


def store_of(db: str | None) -> Store:
    """Open the store that --db names; it says so when it must wait for the file."""
    return Store(paths.database_path(db), waiting=say)


def say(message: str) -> None:
    """Print a line for people on stderr, without disturbing a progress bar."""
    tqdm.write(message, file=sys.stderr)


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


def print_table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table on stdout; long cells are cut only if stdout is a terminal."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max([len(heading), *(len(row[index]) for row in cells)]) for index, heading in enumerate(headings)]
    if sys.stdout.isatty():
        room = shutil.get_terminal_size().columns
        while sum(widths) + 2 * len(widths) > room and max(widths) > 12:
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
    """A progress bar with an ETA on stderr, or a line every half minute if that is no terminal.

    With --live it also prints the dialogue as it happens.
    """

    def __init__(self, planned: int, done: int = 0, *, live: bool = False, quiet: bool = False) -> None:
        self._live = live
        self._tokens = 0
        self._failed = 0
        self._over = done
        self._planned = planned
        self._started = self._told = time.monotonic()
        self._lines = not quiet and not sys.stderr.isatty()
        self._bar = tqdm(
            total=planned,
            initial=done,
            unit="episode",
            file=sys.stderr,
            dynamic_ncols=True,
            mininterval=0.3,
            disable=None,
        )

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        """Print a turn if --live asks for it."""
        if self._live:
            head = f"{_named(spec)} {turn.index:>2} "
            name = turn.line.partition(":")[0]
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
        self._bar.update()
        now = time.monotonic()
        if self._lines and now - self._told >= _LINE_EVERY_S:
            self._told = now
            say(f"{self._over} of {self._planned} episodes, {self._rate():.0f} tokens/s, {self._failed} failed")

    def tokens(self, generated: int) -> None:
        """Count generated tokens."""
        self._tokens += generated
        self._bar.set_postfix_str(f"{self._rate():.0f} tokens/s, {self._failed} failed", refresh=False)

    def _rate(self) -> float:
        return self._tokens / max(time.monotonic() - self._started, 1e-9)

    def close(self) -> None:
        """Stop drawing; the bar stays on the screen."""
        self._bar.close()


def _named(spec: EpisodeSpec) -> str:
    """Return scenario, condition and number of an episode."""
    return f"{spec.scenario.id}/{condition_name(spec.mode, spec.grants.text)}/{spec.index}"


def clean_keep_colour(head: str, styled_name: str, text: str) -> str:
    """Return a line whose only control characters are our own colour codes."""
    return f"{head}{styled_name}{clean(text)}"


def weights_option(help_text: str) -> Callable[[Any], Any]:
    """Return the option --weights FILE; `weights_from` reads its value."""
    return click.option("--weights", metavar="FILE", help=help_text)


def weights_from(value: str | None) -> Weights | None:
    """Return the weights of the leakage detector that --weights names; None without it. Raises InvalidInput."""
    from localsim.leakage.detector import Weights

    return None if value is None else Weights.named(value)


def output_option(help_text: str) -> Callable[[Any], Any]:
    """Return the option -o FILE."""
    return click.option("-o", "--output", type=click.Path(dir_okay=False), help=help_text)


def web_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --host, --port and --open to a command."""
    open_option = click.option("--open", "open_browser", is_flag=True, help="Also open the page in a browser.")
    port = click.option(
        "--port", type=click.IntRange(1, 65535), help="Listen on this port [7580, or the next free one]."
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
        from localsim.web.serve import PORT, Content, Place, serve
    except ImportError as error:
        raise InvalidInput(f"the pages need {error.name}", hint='pip install "localsim[web]"') from error
    place = Place(host, port or PORT, fixed=port is not None)
    content = Content(store, pages.model, frozenset(pages.parts), pages.selection)
    serve(place, content, pages.path, tell, open_browser=pages.open_browser)
