"""The report of a run, and tables of a study, as Markdown for pull requests, notebooks and wikis."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from localsim.reports import sections
from localsim.reports.card import sections as card_sections
from localsim.reports.document import Report, Section, Table
from localsim.reports.validity import head


def as_markdown(data: Report) -> str:
    """Return a report as Markdown, with the card if there is one."""
    run = data.run
    lines = [f"# Run {run.run_id}", "", f"{run.status}, seed {run.seed}, {run.repro}", ""]
    lines += [*(f"**{_plain(line)}**  " for line in head.answer(data)), ""]
    lines += [f"> {_plain(warning)}  " for warning in head.notes(data).general]
    lines += [line for section in sections.for_document(data) for line in _section(section)]
    if data.card:
        lines += ["", "## Simulation card", *_fields(data.card, "###")]
    return "\n".join(lines) + "\n"


def card_as_markdown(card: Mapping[str, Any]) -> str:
    """Return a simulation card as Markdown."""
    return "\n".join([f"# Simulation card of run {card['run_id']}", *_fields(card, "##")]) + "\n"


def _fields(card: Mapping[str, Any], mark: str) -> Iterator[str]:
    for title, fields in card_sections(card):
        yield from ("", f"{mark} {title}", "")
        yield from (f"- **{_plain(name)}**: {_plain(text)}" if name else f"- {_plain(text)}" for name, text in fields)


def _section(section: Section) -> Iterator[str]:
    yield from ("", f"## {_plain(section.title)}")
    for each in section.tables:
        yield from ("", *table(each), "", *(f"- {_plain(note)}" for note in each.notes))
    yield from ("", _plain(section.paragraph)) if section.paragraph else ()
    yield from (f"- {_plain(line)}" for line in section.lines)
    yield from ("", "```", *section.commands, "```") if section.commands else ()
    yield from ("", *(f"> {_plain(line)}  " for line in section.warnings)) if section.warnings else ()


def table(found: Table) -> list[str]:
    """Return a table as lines of Markdown; values that are not the run's own are in italics."""
    rows = [[_cell(str(cell)) for cell in row] for row in found.rows]
    for number in found.beside:
        rows[number] = [f"*{cell}*" if cell else "" for cell in rows[number]]
    cells = [[_cell(str(head)) for head in found.heads], ["---"] * len(found.heads), *rows]
    return [f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in row)}|" for row in cells]


def _cell(text: str) -> str:
    """Return a cell; the brackets of an interval are no markup."""
    return text if re.fullmatch(r"[-+\d.%]+ \[[-+\d.%]+, [-+\d.%]+\]", text) else _plain(text)


def _plain(text: str) -> str:
    """Return text of models and people without effect as markup."""
    for char in "\\`*_[]<>|#":
        text = text.replace(char, f"\\{char}")
    return " ".join(text.split())
