"""The report of a run, and tables of a study, as Markdown for pull requests, notebooks and wikis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from localsim.annotation import leak_judges
from localsim.annotation.agreement import sentences
from localsim.conversation.grants import condition_name
from localsim.families import family_of, title_of
from localsim.models.registry import labelled
from localsim.reports.alone import foremost
from localsim.reports.card import sections
from localsim.reports.conversation.asked import tables
from localsim.reports.document import Report
from localsim.reports.figures.references import beside, heading
from localsim.reports.figures.references import sentences as sentences_on
from localsim.reports.measures import shown, text_of
from localsim.reports.validity import correction, head, instruments, robustness
from localsim.reports.validity.judges import sentence

Row = dict[str, Any]


def as_markdown(data: Report) -> str:
    """Return the content of `report.report` as Markdown, with the card if there is one."""
    run = data.run
    lines = [f"# Run {run['run_id']}", "", f"{run['status']}, seed {run['seed']}, {run['repro']}", ""]
    lines += [*(f"**{_plain(sentence)}**  " for sentence in head.answer(data)), ""]
    lines += [f"> {_plain(warning)}  " for warning in head.notes(data)["general"]]
    lines += _heads(data)
    for table in tables(data):
        cells = [table.heads, ["---"] * len(table.heads), *([_plain(cell) for cell in row] for row in table.rows)]
        lines += ["", f"## {_plain(table.title)}", "", *(f"| {' | '.join(row)} |" for row in cells), ""]
        lines += [f"- {_plain(note)}" for note in table.notes]
    played = data.references
    for family in dict.fromkeys(row["family"] for row in data.comparison):
        rows = [row for row in data.comparison if row["family"] == family]
        several = len({row["model"] for row in rows}) > 1
        named = [row.get("condition") or row["mode"] for row in rows]
        names = [
            f"{name} ({labelled(row['model'], whole=False)})" if several else name
            for name, row in zip(named, rows, strict=True)
        ]
        lines += [
            "",
            f"## All measures of {title_of(family_of(family))}",
            "",
            *comparison(rows, names, data.measures, played),
        ]
        if said := sentences_on(played, family):
            lines += ["", *(f"{_plain(line)}  " for line in said)]
    unsearched = head.unsearched(data)
    if data.leaks or unsearched:
        quotes = _leaks(data.leaks) if data.leaks else []
        lines += ["", "## Private facts that came out", "", *map(_plain, unsearched), "", *quotes]
    if data.aloud:
        lines += ["", "## To read aloud", "", _plain(data.aloud.paragraph)]
    beside = head.notes(data)["beside"]
    lines += ["", "## Conditions of other runs", "", *(f"- {_plain(line)}" for line in beside)] if beside else []
    lines += _errors(data)
    if data.robustness:
        lines += ["", "## Variants of the prompts", *_robustness(data.robustness)]
    for rate in data.naturalness:
        lines += ["", f"{sentence(rate)}."]
    if data.annotations["raters"]:
        lines += ["", "## What raters said", "", *(f"- {_plain(line)}" for line in sentences(data.annotations))]
    if data.card:
        lines += ["", "## Simulation card"]
        for title, fields in sections(data.card):
            lines += ["", f"### {title}", ""]
            lines += [f"- **{field}**: {_plain(text)}" if field else f"- {_plain(text)}" for field, text in fields]
    return "\n".join(lines) + "\n"


def _heads(data: Report) -> list[str]:
    """Return the head tables with the warnings about their models and families."""
    lines: list[str] = []
    family = ""
    for table in head.tables(data, lambda measure, row: text_of(measure, row) or "-"):
        if table["family"] != family:
            family = table["family"]
            lines += ["", f"## {title_of(family_of(family))}"]
        lines += ["", f"**{_plain(head.named(table))}**", "", f"| | {' | '.join(map(_name_of, table['rows']))} |"]
        lines.append("|---|" + "---|" * len(table["rows"]))
        counts = [f"{row['completed']} of {row['n']}" for row in table["rows"]]
        lines.append(f"| conversations | {' | '.join(counts)} |")
        for line in table["lines"]:
            named = f"*{line['heading']}*" if line["reference"] else line["heading"]
            lines.append(f"| {named} | {' | '.join(line['cells'])} |")
        lines += ["", *(f"{_plain(line)}  " for line in table["same"])] if table["same"] else []
        told = [*table["notes"], *table["closing"]]
        lines += ["", *(f"> {_plain(text)}  " for text in told)] if told else []
    return lines


def _name_of(row: Row) -> str:
    return str(row.get("condition") or row["mode"])


def comparison(
    rows: Sequence[Row], names: Sequence[str], measures: Sequence[Row], played: Sequence[Row] = ()
) -> list[str]:
    """Return a table of measures by condition, with intervals, and below some of them other values.

    These are the paper's, and those of the players in `played` (rows of `references`).
    """
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    lines.append(f"| episodes completed | {' | '.join(str(row['completed']) for row in rows)} |")
    for measure in shown(measures, rows):
        lines.append(f"| {measure['heading']} | {' | '.join(text_of(measure, row) or '-' for row in rows)} |")
        if texts := beside(played, measure, rows):
            lines.append(f"| *{heading(played, rows[0]['family'])}* | {' | '.join(texts)} |")
        published = measure["published"]
        conditions = [row.get("condition") or name for row, name in zip(rows, names, strict=True)]
        if any(name in published for name in conditions):
            cells = (f"*{published[name]:g}*" if name in published else "" for name in conditions)
            lines.append(f"| *paper, GPT-3.5* | {' | '.join(cells)} |")
    return lines


def _errors(data: Report) -> list[str]:
    """Return the errors of the instruments as a table, and the rates corrected for them."""
    if not data.instruments:
        return []
    lines = [
        "",
        "## Errors of the instruments",
        "",
        "| instrument | question | right | n | labels |",
        "|---|---|---|---|---|",
    ]
    for row in data.instruments:
        cells = [row["instrument"], f"{row['error']}: {row['meaning']}", instruments.text_of(row)]
        cells += [str(row["n"] or instruments.NOT_RECORDED), instruments.labels_text(row)]
        lines.append("| " + " | ".join(map(_plain, cells)) + " |")
    told = [*data.leak_sources, *leak_judges.sentences(data.leak_judges)]
    told += [*correction.sentences(data.corrections, data.run["run_id"])]
    return [*lines, "", *(f"- {_plain(line)}" for line in told)]


def _leaks(leaks: Sequence[Row]) -> list[str]:
    lines = ["| mode | fact | by | words | turn | |", "|---|---|---|---|---|---|"]
    quoted = foremost(leaks)
    for leak in quoted:
        note = "had not been told" if leak["kind"] == "omniscient" else "too early" if leak["early"] else ""
        condition = condition_name(leak["mode"], leak.get("see"))
        cells = [condition, leak["fact"], leak["speaker"], leak["text"], str(leak["turn"]), note]
        lines.append("| " + " | ".join(map(_plain, cells)) + " |")
    return [*lines, "", f"{len(quoted)} of {len(leaks)} first disclosures."]


def _robustness(row: Row) -> list[str]:
    """Return the differences in each variant and the shares of variance as tables, with remarks."""
    lines = []
    for heads, body in (robustness.contrast_table(row), robustness.share_table(row, every=True)):
        cells = [heads, ["---"] * len(heads), *([_plain(cell) for cell in line] for line in body)]
        lines += ["", *(f"| {' | '.join(line)} |" for line in cells)] if body else []
    return [*lines, "", *(f"- {_plain(line)}" for line in robustness.sentences(row))]


def _plain(text: str) -> str:
    """Return text of models and people without effect as markup."""
    for char in "\\`*_[]<>|#":
        text = text.replace(char, f"\\{char}")
    return " ".join(text.split())
