"""The head of a report: success, leaks by class and length of talk in each mode, and the warnings beside their rows.

A family without a success has the measures of its main figure instead.

Every renderer of a report (terminal, Markdown, HTML) shows these tables first and all other measures behind them. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from localsim.evaluators.leaks import Leaks
from localsim.families import family_of, in_order
from localsim.families.base import SUCCESS
from localsim.models.registry import labelled
from localsim.reports.document import Report
from localsim.reports.figures.references import beside, heading, sentences
from localsim.reports.measures import shown
from localsim.runs.telling import of_people
from localsim.runs.words import HIT_IS_NO_LEAK

Row = dict[str, Any]
T = TypeVar("T")

NOT_SEARCHED = "not looked for"
"""Stands where a number of leaks would stand if no conversation of the cell was searched for leaks."""
LENGTH, PLAYS = "turns", "plays_rate"
WIDE = 3
"""Conditions in one table; more of them get a further table, so that each is as narrow as a phone."""
_OF_SEARCH = frozenset(measure.key for measure in Leaks.measures)


def tables(data: Report, cell: Callable[[Row, Row], T]) -> list[Row]:
    """Return the head tables of a report, in the order of families, then models, at most WIDE conditions in each.

    Keys: family, model, run (of conditions of another run), rows (of the comparison), lines (heading, measure, cells,
    gap, if all cells are the same gap, and reference, for the line of a measure's references), notes (warnings about
    the model that no table before has); below the last table of a family, same (measures that are left out, and what
    the references are) and closing (what was not looked for, and warnings about the family). `cell` makes a cell of a
    measure and a row; a gap is a text.
    """
    found: list[Row] = []
    told: set[str] = set()
    for family in in_order(row["family"] for row in data.comparison):
        rows = [row for row in data.comparison if row["family"] == family]
        measures = _measures(data, family, rows)
        for model, run_id in dict.fromkeys((row["model"], _other(row)) for row in rows):
            own = [row for row in rows if (row["model"], _other(row)) == (model, run_id)]
            for start in range(0, len(own), WIDE):
                some = own[start : start + WIDE]
                fresh = [text for text in of_model(data, model) if text not in told]
                told.update(fresh)
                table = {"family": family, "model": model, "run": run_id, "rows": some, "notes": fresh}
                lines = list(_lines(measures, some, cell, data.references))
                found.append({**table, "lines": lines, "same": [], "closing": []})
        same = left_out(data, family)
        if any(line["reference"] for table in found if table["family"] == family for line in table["lines"]):
            same += sentences(data.references, family)[:1]
        found[-1] |= {"same": same, "closing": closing(data, family)}
    return found


def answer(data: Report) -> list[str]:
    """Return the sentences that a report begins with: whose talks do not play, and the conclusions about several
    runs and about its own run.
    """
    if not any(row["completed"] for row in data.comparison):
        return [_nothing(data.run, sum(row["failed"] for row in data.comparison))]
    told, own = data.aloud.conclusions if data.aloud else (), data.headline.sentences
    models = dict.fromkeys(row["model"] for row in data.comparison if not _other(row))
    which = [f"Of run {data.run['run_id']}, by {' and '.join(map(labelled, models))}:"] if told and own else []
    return [*data.playing.sentences(), *told, *which, *own]


def _nothing(run: Row, failed: int) -> str:
    """Return the sentence about a run without a completed conversation, with the command that helps."""
    planned, said = run["episodes_planned"], "No conversation of this run has been completed"
    if run["status"] == "running":
        return f"{said} yet: {planned} are planned" + (f", {failed} failed" if failed else "")
    said += f", {planned} were planned" + (f" and {failed} failed" if failed else "")
    if failed < planned and not of_people(run["repro"], run["models"]):
        return f"{said}: localsim resume {run['run_id']}"
    return f"{said}: localsim runs show {run['run_id']}" if failed else said


def left_out(data: Report, family: str) -> list[str]:
    """Return a line for each value that measures of the head have in every mode of a family, such as 0.

    A line on hits follows where both hits and leaks are counted.
    """
    rows = [row for row in data.comparison if row["family"] == family]
    counted = family_of(family).hits
    wanted = _wanted(data, family, rows)
    hits = [each.key for each in family_of(family).measures if each.head and counted and each.score == counted.score]
    searched = any(row.get("searched") for row in rows)
    both = searched and any(row[each["key"]] for each in wanted if each["key"] in hits for row in rows)
    return [*_constants(data, family, rows)[1], *([HIT_IS_NO_LEAK] if both else [])]


def _constants(data: Report, family: str, rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """Return `constants` of the head's measures; unearned hits and their number by chance stay or go together."""
    wanted, kept, counted = _wanted(data, family, rows), _kept(data, family), family_of(family).hits
    scores = (counted.score, counted.chance) if counted else ()
    pair = {each.key for each in family_of(family).measures if each.score in scores and each.summed != "excess"}
    differ = {each["key"] for each in constants(wanted, rows, kept)[0]}
    return constants(wanted, rows, kept | (pair if pair & differ else set()))


def constants(measures: Sequence[Row], rows: Sequence[Row], keep: Iterable[str] = ()) -> tuple[list[Row], list[str]]:
    """Return the measures that differ between rows, and lines about the others, such as "0 in every mode: mix-ups".

    Measures of `keep`, and those with published values for one of the rows, are never left out. That all talks play is
    what a reader expects, and has no line.
    """
    kept, names = set(keep), {row.get("condition") or row["mode"] for row in rows}
    played = [row for row in rows if row["completed"]]
    same: dict[str, list[str]] = {}
    differ = []
    for measure in measures:
        values = {row[measure["key"]] for row in played}
        published = names & set(measure["published"])
        if len(played) < 2 or len(values) != 1 or None in values or measure["key"] in kept or published:
            differ.append(measure)
        elif (measure["key"], *values) != ("plays_rate", 1):
            same.setdefault(_plain(values.pop(), measure["kind"]), []).append(measure["heading"])
    return differ, [f"{value} in every mode: {', '.join(headings)}." for value, headings in same.items()]


def _plain(value: float, kind: str) -> str:
    if not value:
        return "0"
    return f"{value:.0%}" if kind == "share" else f"{value:.2f}".rstrip("0").rstrip(".")


def _other(row: Row) -> str:
    """Return the other run that a row is of; '' for the report's own run."""
    return str(row.get("other_run") or row.get("people_run") or "")


def _kept(data: Report, family: str) -> set[str]:
    """Return the keys that always stand in the head: success, length, what the answer of the family is about, and how
    many talks play if that withholds an answer.
    """
    told = {each.about["key"] for each in data.headline.families if each.family == family}
    withheld = any(each == family for each, _ in data.playing.withheld)
    return {SUCCESS.key, LENGTH} | told | ({PLAYS} if withheld else set())


def _wanted(data: Report, family: str, rows: Sequence[Row]) -> list[Row]:
    """Return the measures of the head that have a value in the family."""
    kept = _kept(data, family) | _goals(family, rows)
    return [each for each in shown(data.measures, rows) if each.get("head") or each["key"] in kept]


def _goals(family: str, rows: Sequence[Row]) -> set[str]:
    """Return the family's own measures of its main figure, such as payoffs, if no row has a success."""
    if any(row.get(SUCCESS.key) is not None for row in rows):
        return set()
    return {each.key for each in family_of(family).measures} & set(family_of(family).figure)


def _measures(data: Report, family: str, rows: Sequence[Row]) -> list[Row]:
    """Return the measures of a family's head tables; one without a key stands for leaks that were not looked for."""
    found = _constants(data, family, rows)[0]
    if any(missed(row) == _private(row) > 0 for row in rows) and not any(row.get("searched") for row in rows):
        found.insert(len(found) - (bool(found) and found[-1]["key"] == LENGTH), LEAKS)
    return found


LEAKS: Row = {"key": "", "heading": "leaks", "meaning": "private facts that came out", "kind": "number"}
"""The line of a head in which no conversation was searched for leaks."""


def _lines(
    measures: Iterable[Row], rows: Sequence[Row], cell: Callable[[Row, Row], T], played: Sequence[Row]
) -> Iterable[Row]:
    for measure in measures:
        gaps = [gap(measure, row) for row in rows]
        cells = [words or cell(measure, row) for words, row in zip(gaps, rows, strict=True)]
        line = {"heading": measure["heading"], "measure": measure, "cells": cells, "gap": _same(gaps)}
        yield {**line, "reference": False}
        if texts := beside(played, measure, rows):
            named = heading(played, rows[0]["family"])
            yield {**line, "heading": named, "cells": texts, "gap": "", "reference": True}


def _same(gaps: Sequence[str]) -> str:
    """Return the words of a line that has the same gap in every cell; '' for any other line."""
    return gaps[0] if len(set(gaps)) == 1 else ""


# ---- gaps ----------------------------------------------------------------------------------------------------------


def missed(row: Row) -> int:
    """Return the number of completed conversations of a row that had private facts and were not searched for leaks.

    It is 0 where the rules ask questions: there is nobody to tell a secret to.
    """
    return 0 if row.get("searched") is None or family_of(row["family"]).asks else int(row["missed"])


def _private(row: Row) -> int:
    """Return the number of completed conversations of a row in which there was something to look for."""
    return int(row.get("private") or 0)


def gap(measure: Row, row: Row) -> str:
    """Return the words that stand in place of a number that was not looked for; '' if the number can stand."""
    if measure["key"] in _OF_SEARCH or measure is LEAKS:
        return NOT_SEARCHED if missed(row) == _private(row) > 0 else ""
    return ""


def unsearched(data: Report, family: str | None = None) -> list[str]:
    """Return sentences about the runs whose conversations (of a family) were not all searched for leaks.

    Each ends in the commands that search.
    """
    some, none = [], []
    rows = [row for row in data.comparison if family in (None, row["family"])]
    for run_id in dict.fromkeys(_other(row) for row in rows):
        own = [row for row in rows if _other(row) == run_id]
        private, without = sum(map(_private, own)), sum(map(missed, own))
        command = f"localsim score {run_id or data.run['run_id']}"
        if without == private > 0:
            none.append(command)
        elif without:
            some.append(f"Leaks were looked for in only {private - without} of {private} conversations: {command}")
    return [*some, f"Leaks were not looked for: {', '.join(none)}"] if none else some


def closing(data: Report, family: str) -> list[str]:
    """Return the lines below the last table of a family: what was not looked for or judged, and its warnings."""
    return [*unsearched(data, family), *unjudged(data, family), *of_family(data, family)]


def unjudged(data: Report, family: str) -> list[str]:
    """Return a sentence for each measure that has no value in some conversations of a family, with the reason."""
    rows = [row for row in data.comparison if row["family"] == family and row["completed"]]
    several = len({row["model"] for row in rows}) > 1
    found = []
    for measure in family_of(family).measures:
        judged = [row for row in rows if measure.left_out and row.get(f"{measure.key}_n") is not None]
        if all(row[f"{measure.key}_n"] == row["completed"] for row in judged) or not any(
            row[f"{measure.key}_n"] for row in judged
        ):
            continue
        counts = (
            f"{row[f'{measure.key}_n']} of {row['completed']} conversations of {row.get('condition') or row['mode']}"
            + (f" ({labelled(row['model'], whole=False)})" if several else "")
            for row in judged
        )
        found.append(
            f"{measure.heading.capitalize()} was judged in {', '.join(counts)}: in the others, {measure.left_out}."
        )
    return found


# ---- warnings ------------------------------------------------------------------------------------------------------


def notes(data: Report) -> Row:
    """Return the warnings of a report by place: general (about the whole run), families, models and beside.

    `families` is family -> texts, `models` model -> texts; `beside` says which conditions of other runs are shown. A
    warning about a model that no row names is general.
    """
    placed: dict[str, list[Row]] = {}
    for each in data.remarks:
        placed.setdefault(each["text"], []).append(each)
    shown_models = {part for row in data.comparison for part in row["model"].split("|")}
    shown_families = {row["family"] for row in data.comparison}
    found: Row = {"general": [], "families": {}, "models": {}, "beside": []}
    for text in dict.fromkeys(data.warnings):
        about = placed.get(text, [])
        models = dict.fromkeys(name for one in about for name in one.get("models", []) if name in shown_models)
        of = dict.fromkeys(name for one in about for name in one.get("families", []) if name in shown_families)
        for name in models:
            found["models"].setdefault(name, []).append(text)
        for name in of:
            found["families"].setdefault(name, []).append(text)
        if not models and not of:
            found["beside" if any(one.get("beside") for one in about) else "general"].append(text)
    return found


def of_family(data: Report, family: str) -> list[str]:
    """Return the warnings about a family."""
    return list(notes(data)["families"].get(family, []))


def of_model(data: Report, model: str) -> list[str]:
    """Return the warnings about a model; `A|B` has those of both."""
    known = notes(data)["models"]
    return list(dict.fromkeys(text for part in model.split("|") for text in known.get(part, [])))


def named(table: Row) -> str:
    """Return the model of a head table for a heading, with its run if that is not the report's own."""
    return labelled(table["model"], whole=False) + (f" (run {table['run']})" if table["run"] else "")
