"""What commands answer, and the one place that prints it: on stdout, as text for people or as one JSON document.

The tables are our own. `rich` breaks the rows of a table in a pipe, so that `grep` finds halves of them, and passes on
control characters of stored text.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click
from tqdm.utils import disp_len, disp_trim

from localsim import paths
from localsim.cli.progress import clean, say
from localsim.errors import LocalsimError

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
DIM = "bright_black"
"""The colour of what stands beside the matter."""
WIDTH = 100
"""Columns of a short table that is not printed on a terminal."""
_NARROWEST = 12
"""Columns to which the widest cells are cut at most."""


@dataclass(frozen=True)
class Styled:
    """A line, or a part of one, in a style."""

    text: str
    colour: str | None = None
    bold: bool = False

    def __str__(self) -> str:
        return click.style(clean(self.text), fg=self.colour, bold=self.bold or None)


@dataclass(frozen=True)
class Table:
    """Rows of values under headings; long cells are cut on a terminal, and elsewhere if the table must be `short`."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    short: bool = False

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], *heads: str, short: bool = False) -> Table:
        """Return the values of mappings under the named keys, or without names under all keys of the first one."""
        named = heads or tuple(rows[0])
        return cls(named, [[row[name] for name in named] for row in rows], short)


class Note(str):
    """A line that is not part of the result, such as the next command. It goes to stderr."""


Part = str | Styled | tuple[str | Styled, ...] | Table | Note
"""A line or a table. The strings and styles of a tuple are one line."""
Text = Iterator[Part]


@dataclass(frozen=True)
class Answer:
    """What a command answers. `text` can be a generator: its lines are made only if they are printed."""

    data: Any
    """The value that --json prints."""
    text: Iterable[Part]
    error: LocalsimError | None = None
    """Raised after everything is printed."""
    remark: str = ""
    """A line on stderr after the result, which --json does not suppress."""


def checked(name: str, told: str, ok: bool) -> Part:
    """Return the line about something that was checked."""
    return (Styled("ok  ", "green") if ok else Styled("BAD ", "red"), f" {name}: {told}")


def answers(command: Callable[..., Answer]) -> Callable[..., None]:
    """Add --json to a command, and print what it answers. The innermost of its decorators."""

    @json_option
    @wraps(command)
    def answer(*arguments: Any, as_json: bool = False, **options: Any) -> None:
        found = command(*arguments, **options)
        if as_json:
            print_json(found.data)
        else:
            print_text(found.text)
        if found.remark:
            say(found.remark)
        if found.error is not None:
            sys.stdout.flush()
            raise found.error

    return answer


def print_text(parts: Iterable[Part]) -> None:
    """Print lines and tables for people; stored text in them cannot steer the terminal."""
    for part in parts:
        match part:
            case Note():
                say(part)
            case Table():
                print_table(part.heads, part.rows, short=part.short)
            case tuple():
                click.echo("".join(map(_shown, part)))
            case _:
                click.echo(_shown(part))


def _shown(part: str | Styled) -> str:
    return clean(part) if isinstance(part, str) else str(part)


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


def print_table(heads: Sequence[str], rows: Sequence[Sequence[Any]], *, short: bool = False) -> None:
    """Print what `Table` describes."""
    cells = [[_cell(value) for value in row] for row in (heads, *rows)]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    if sys.stdout.isatty() or short:
        room = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
        while sum(widths) + 2 * (len(widths) - 1) > room and max(widths) > _NARROWEST:
            widths[widths.index(max(widths))] -= 1
    numeric = [bool(rows) and all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(heads))]
    first, *others = ("  ".join(map(_fitted, row, widths, numeric)).rstrip() for row in cells)
    click.secho(first, bold=True)
    for line in ("  ".join("-" * width for width in widths), *others):
        click.echo(line)


def _fitted(cell: str, width: int, right: bool) -> str:
    cut = cell if _width(cell) <= width else f"{disp_trim(cell, width - 1)}…"
    blank = " " * (width - _width(cut))
    return blank + cut if right else cut + blank


def _width(text: str) -> int:
    """Columns of a terminal that a text takes: Chinese characters take two."""
    return len(text) if text.isascii() else disp_len(text)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return clean(" ".join(str(value).split()))
