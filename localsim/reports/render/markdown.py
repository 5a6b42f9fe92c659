"""The report of a run, and tables of a study, as Markdown for pull requests, notebooks and wikis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from localsim.conversation.grants import condition_name
from localsim.reports import sections
from localsim.reports.card import sections as card_sections
from localsim.reports.compose.alone import foremost
from localsim.reports.document import Report, Section, Table
from localsim.reports.validity import head
from localsim.store.queries.reports import Leak


def as_markdown(data: Report) -> str:
    """Return the content of `report.report` as Markdown, with the card if there is one."""
    run = data.run
    lines = [f"# Run {run['run_id']}", "", f"{run['status']}, seed {run['seed']}, {run['repro']}", ""]
    lines += [*(f"**{_plain(line)}**  " for line in head.answer(data)), ""]
    lines += [f"> {_plain(warning)}  " for warning in head.notes(data).general]
    for found in (sections.heads(data), sections.asked(data), sections.measures(data, published=True)):
        lines += _sections(found)
    unsearched = head.unsearched(data)
    if data.leaks or unsearched:
        quotes = _leaks(data.leaks) if data.leaks else []
        lines += ["", "## Private facts that came out", "", *map(_plain, unsearched), "", *quotes]
    if data.aloud:
        lines += ["", "## To read aloud", "", _plain(data.aloud.paragraph)]
    beside = head.notes(data).beside
    lines += ["", "## Conditions of other runs", "", *(f"- {_plain(line)}" for line in beside)] if beside else []
    for found in (sections.errors(data), sections.variants(data), sections.opinions(data)):
        lines += _sections(found)
    if data.card:
        lines += ["", "## Simulation card"]
        for title, fields in card_sections(data.card):
            lines += ["", f"### {title}", ""]
            lines += [f"- **{field}**: {_plain(text)}" if field else f"- {_plain(text)}" for field, text in fields]
    return "\n".join(lines) + "\n"


def _leaks(leaks: Sequence[Leak]) -> list[str]:
    lines = ["| mode | fact | by | words | turn | |", "|---|---|---|---|---|---|"]
    quoted = foremost(leaks)
    for leak in quoted:
        note = "had not been told" if leak.kind == "omniscient" else "too early" if leak.early else ""
        condition = condition_name(leak.mode, leak.see)
        cells = [condition, leak.fact, leak.speaker, leak.text, str(leak.turn), note]
        lines.append("| " + " | ".join(map(_plain, cells)) + " |")
    return [*lines, "", f"{len(quoted)} of {len(leaks)} first disclosures."]


def _sections(found: Iterable[Section]) -> list[str]:
    lines = []
    for section in found:
        lines += ["", f"## {_plain(section.title)}"]
        for each in section.tables:
            lines += ["", *table(each), "", *(f"- {_plain(note)}" for note in each.notes)]
        lines += [f"- {_plain(line)}" for line in section.lines]
        lines += ["", *(f"> {_plain(line)}  " for line in section.warnings)] if section.warnings else []
    return lines


def table(found: Table) -> list[str]:
    """Return a table as lines of Markdown; values that are not the run's own are in italics."""
    rows = [[_cell(str(cell)) for cell in row] for row in found.rows]
    for number in found.beside:
        rows[number] = [f"*{cell}*" if cell else "" for cell in rows[number]]
    cells = [[_cell(str(head)) for head in found.heads], ["---"] * len(found.heads), *rows]
    return [f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in row)}|" for row in cells]


def _cell(text: str) -> str:
    """Return a cell; the brackets of an interval are no markup."""
    return text if re.fullmatch(r"[-\d.%]+ \[[-\d.%]+, [-\d.%]+\]", text) else _plain(text)


def _plain(text: str) -> str:
    """Return text of models and people without effect as markup."""
    for char in "\\`*_[]<>|#":
        text = text.replace(char, f"\\{char}")
    return " ".join(text.split())
