"""What commands share: options, tables, progress. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click
from tqdm import tqdm

from localsim import paths
from localsim.conversation.episode import Episode, EpisodeSpec
from localsim.conversation.transcript import Turn
from localsim.errors import InvalidInput
from localsim.store.database import Store

_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red", "white", "bright_black")

_LINE_EVERY_S = 30
HERE = "127.0.0.1"
"""Where pages are served unless another address is asked for."""

db_option = click.option("--db", metavar="FILE", help="Database file [LOCALSIM_DB, else localsim.duckdb].")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def store_of(db: str | None) -> Store:
    """The store that --db means; waiting for a held file is announced."""
    return Store(paths.database_path(db), waiting=say)


def say(message: str) -> None:
    """A line for people, on stderr, that does not disturb a progress bar."""
    tqdm.write(message, file=sys.stderr)


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def colour_of(names: Sequence[str], name: str) -> str:
    """The colour of an agent."""
    return _COLOURS[names.index(name) % len(_COLOURS)] if name in names else "white"


def clean(text: str) -> str:
    """`text` without terminal control characters, so that what a model wrote cannot steer the terminal."""
    return "".join(char for char in text if char.isprintable() or char in "\n\t")


def print_table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table on stdout; long cells are cut only where stdout is a terminal."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max([len(heading), *(len(row[index]) for row in cells)]) for index, heading in enumerate(headings)]
    if sys.stdout.isatty():
        room = shutil.get_terminal_size().columns
        while sum(widths) + 2 * len(widths) > room and max(widths) > 12:
            widths[widths.index(max(widths))] -= 1
    numeric = [
        bool(rows) and all(isinstance(row[i], int | float | type(None)) for row in rows) for i in range(len(widths))
    ]
    for number, row in enumerate([list(headings), ["-" * width for width in widths], *cells]):
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


class Progress:
    """A progress bar with an ETA on stderr (a line every half minute where that is no terminal), and with --live the
    dialogue as it happens.
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
        """A turn stands."""
        if self._live:
            head = f"{spec.scenario.id}/{spec.mode}/{spec.index} {turn.index:>2} "
            name = turn.line.partition(":")[0]
            if sys.stderr.isatty() and not paths.no_color():
                name = click.style(name, fg=colour_of(spec.scenario.names, turn.speaker))
            text = f": {turn.action.text}" if turn.action.text else ""
            say(clean_keep_colour(head, name, text))

    def ended(self, episode: Episode) -> None:
        """An episode is over."""
        if episode.status == "failed":
            self._failed += 1
            spec = episode.spec
            say(f"failed: {spec.scenario.id}/{spec.mode}/{spec.index}: {episode.error}")
        self._over += 1
        self._bar.update()
        now = time.monotonic()
        if self._lines and now - self._told >= _LINE_EVERY_S:
            self._told = now
            say(f"{self._over} of {self._planned} episodes, {self._rate():.0f} tokens/s, {self._failed} failed")

    def tokens(self, generated: int) -> None:
        """So many tokens were generated."""
        self._tokens += generated
        self._bar.set_postfix_str(f"{self._rate():.0f} tokens/s, {self._failed} failed", refresh=False)

    def _rate(self) -> float:
        return self._tokens / max(time.monotonic() - self._started, 1e-9)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()


def clean_keep_colour(head: str, styled_name: str, text: str) -> str:
    """A line in which only our own colour codes are control characters."""
    return f"{head}{styled_name}{clean(text)}"


def output_option(help_text: str) -> Callable[[Any], Any]:
    """-o FILE."""
    return click.option("-o", "--output", type=click.Path(dir_okay=False), help=help_text)


def web_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--host, --port, --open."""
    open_option = click.option("--open", "open_browser", is_flag=True, help="Open a browser, too.")
    port = click.option("--port", type=click.IntRange(1, 65535), help="Port [7580, or the next free one].")
    host = click.option("--host", default=HERE, show_default=True, help="Another address lets a network in.")
    return host(port(open_option(command)))


@dataclass(frozen=True)
class Pages:
    """Which pages a server has, and where it begins."""

    path: str
    model: str = "starter"
    """Plays the roles that nobody takes."""
    parts: tuple[str, ...] = ("view", "annotate", "play")
    open_browser: bool = False


def serve_pages(store: Store, host: str, port: int | None, pages: Pages, tell: Callable[[str], None]) -> None:
    """Serve pages until Ctrl-C. Raises InvalidInput where the packages for it are not installed."""
    try:
        from localsim.web.serve import PORT, Place, serve
    except ImportError as error:
        raise InvalidInput(f"the pages need {error.name}", hint='pip install "localsim[web]"') from error
    place = Place(host, port or PORT, fixed=port is not None)
    serve(place, store, pages.model, frozenset(pages.parts), pages.path, tell, open_browser=pages.open_browser)
