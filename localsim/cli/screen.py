"""A report on one screen of a terminal: short tables, the conclusions, and a picture in text as its last lines."""

from __future__ import annotations

import shlex
import shutil
import textwrap
from collections.abc import Iterator, Sequence

import click

from localsim.cli.answers import WIDTH, Styled, Table, Text
from localsim.conversation.wording.wordings import counted
from localsim.reports import document
from localsim.reports.document import Cell, Report
from localsim.reports.render.bars import lines
from localsim.reports.results import Number
from localsim.reports.validity import head

LINES = 30
"""Lines of tables on a screen of 50."""
COLOURS = {
    **{"script": "yellow", "iterative": "bright_yellow", "agents": "blue", "mindreaders": "cyan"},
    "people": "magenta",
}
"""Colour of a mode on a terminal, near that of its charts (`reports.figures.draw`)."""


def brief(data: Report, command: str) -> Text:
    """Yield the short tables, then what `ending` yields; `command` prints the report, and with --all the whole one."""
    width, room, rest = max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns), LINES, 0
    for table in [*head.brief(data), *_asked(data)]:
        height = len(table.rows) + len(table.notes) + 4
        if height > room and room < LINES:
            rest += 1
            continue
        room -= height
        rows = _fitting(table, width)
        yield Styled(table.title, bold=True)
        yield Table(list(map(str, table.heads)), rows[:LINES])
        yield from [f"... and {len(rows) - LINES} more rows"] if len(rows) > LINES else []
        yield from table.notes
        yield ""
    more = f"{rest} more tables, " if rest else ""
    warned = len(set(data.warnings))
    warnings = f"{counted(warned, 'warning')}, " if warned else ""
    context = click.get_current_context(silent=True)
    where = f" --db {shlex.quote(db)}" if context and (db := context.params.get("db")) else ""
    yield Styled(
        f"{more}{warnings}all measures and what they rely on: {command}{where} --all", "yellow" if warned else None
    )
    yield ""
    yield from ending(data)


def ending(data: Report) -> Text:
    """Yield the conclusions, and the findings as a picture in text."""
    width = min(110, shutil.get_terminal_size((WIDTH, 24)).columns)
    for sentence in head.conclusions(data):
        yield Styled(textwrap.fill(sentence, width, break_on_hyphens=False), bold=True)
    if drawn := [tuple(_styled(line)) for line in lines(data.bars)]:
        yield ""
        yield from drawn


def _styled(line: Sequence[tuple[str, str]]) -> Iterator[str | Styled]:
    return (Styled(text, COLOURS.get(mode)) if mode else text for text, mode in line)


def _asked(data: Report) -> Iterator[document.Table]:
    from localsim.reports import sections

    for section in sections.asked(data):
        yield from section.tables


def _fitting(table: document.Table, width: int) -> Sequence[Sequence[str]]:
    """Return the texts of a table; without intervals if it is too wide with them."""
    rows = [list(map(_text, row)) for row in table.rows]
    widths = [max(map(len, column)) for column in zip(list(map(str, table.heads)), *rows, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) <= width:
        return rows
    plain = ([each.alone if isinstance(each, Number) else each for each in row] for row in table.rows)
    return [list(map(str, row)) for row in plain]


def _text(cell: Cell) -> str:
    """Return the text of a cell; an interval of shares has no further % signs."""
    share = isinstance(cell, Number) and cell.kind == "share"
    return str(cell).replace("%,", ",").replace("%]", "]") if share else str(cell)
