"""The head of a report: success, leaks by class and length of talk in each mode, and the warnings beside their rows.

A family without a success has the measures of its main figure instead.

Every renderer of a report (terminal, Markdown, HTML) shows these tables first and all other measures behind them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from localsim.conversation.measures import Measure
from localsim.conversation.wording.wordings import counted
from localsim.evaluators.leaks import Leaks
from localsim.families import family_of, in_order
from localsim.families.base import SUCCESS
from localsim.models.registry import labelled
from localsim.reports.document import Cell, Column, Count, Report, Run, Table, Term
from localsim.reports.figures.references import Reached, beside, heading, sentences
from localsim.reports.results import Result, shown
from localsim.runs.plan import outcomes_of
from localsim.runs.telling import of_people
from localsim.runs.words import HIT_IS_NO_LEAK, MARKS

NOT_SEARCHED = "not looked for"
"""Stands where a number of leaks would stand if no conversation of the cell was searched for leaks."""
LENGTH, PLAYS = "turns", "plays_rate"
WIDE = 3
"""Conditions in one table; more of them get a further table, so that each is as narrow as a phone."""
_OF_SEARCH = frozenset(measure.key for measure in Leaks.measures)


@dataclass(frozen=True)
class Head:
    """One head table, with what must be known about it."""

    family: str
    model: str
    run: str
    """The run of its conditions; empty for the report's own run."""
    table: Table
    notes: Sequence[str]
    """Warnings about the model that no table before has."""
    same: Sequence[str] = ()
    """Below the last table of a family: measures that are left out, and what the references are."""
    closing: Sequence[str] = ()
    """Below the last table of a family: what was not looked for, and warnings about the family."""

    @property
    def name(self) -> str:
        """The name of its model, with the run if this is another one than the report's."""
        return labelled(self.model, whole=False) + (f" (run {self.run})" if self.run else "")


def tables(data: Report) -> list[Head]:
    """Return the head tables of a report, in the order of families, then models, at most WIDE conditions in each."""
    found: list[Head] = []
    told: set[str] = set()
    for family in in_order(row.family for row in data.comparison):
        rows = [row for row in data.comparison if row.family == family]
        measures, first = _with_gap(_constants(data, family, rows)[0], rows), len(found)
        for model, run_id in dict.fromkeys((row.model, row.other) for row in rows):
            own = [row for row in rows if (row.model, row.other) == (model, run_id)]
            for start in range(0, len(own), WIDE):
                some = own[start : start + WIDE]
                fresh = [text for text in of_model(data, model) if text not in told]
                told.update(fresh)
                table = measure_table(some, measures, data.references, published=False, counted_as="conversations")
                found.append(Head(family, model, run_id, table, fresh))
        same = left_out(data, family)
        if any(each.table.beside for each in found[first:]):
            same += sentences(data.references, family)[:1]
        found[-1] = replace(found[-1], same=same, closing=closing(data, family))
    return found


def measure_table(
    rows: Sequence[Result],
    of: Sequence[Measure],
    played: Sequence[Reached] = (),
    *,
    published: bool = True,
    counted_as: str = "completed",
) -> Table:
    """Return the measures `of` by condition, with intervals, and below some of them other values.

    These are the paper's, and those of the players in `played`. The first line is the number of conversations.
    """
    several = len({row.model for row in rows}) > 1
    columns = [Column.of_row(row, labelled(row.model, whole=False) if several else "") for row in rows]
    lines: list[tuple[Cell, ...]] = [(Term(counted_as), *map(Count.of_row, rows))]
    for measure in of:
        lines.append((Term(measure.heading, measure.key), *(cell(measure, row) for row in rows)))
        if texts := beside(played, measure, rows):
            named = heading(played, rows[0].family)
            lines.append((Term(named, measure.key, measure.heading), *texts))
        paper = measure.published if published else {}
        if paper.keys() & {row.condition for row in rows}:
            values = (paper.get(row.condition) for row in rows)
            term = Term("paper, GPT-3.5", measure.key, measure.heading)
            lines.append((term, *("" if value is None else f"{value:g}" for value in values)))
    return Table("", ["", *columns], lines)


def brief(data: Report) -> Iterator[Table]:
    """Yield a table for each family with a line for each condition: success, what it could not know, and turns."""
    for family in in_order(row.family for row in data.comparison):
        rows = [row for row in data.comparison if row.family == family]
        kept = _kept(data, family) | _goals(family, rows) | _UNTOLD
        found = _with_gap([each for each in _wanted(data, family, rows) if each.key in kept], rows)
        models = list(dict.fromkeys(row.model for row in rows))
        counts = {(row.completed, row.n) for row in rows}
        alike = len(counts) == 1 and min(counts)[0] == max(counts)[1]
        title = data.title_of(family) + (f", {labelled(models[0], whole=False)}" if len(models) == 1 else "")
        title += f" ({counted(rows[0].n, 'conversation')} in each mode)" if alike else ""
        heads = ["mode", *(["model"] if len(models) > 1 else []), *([] if alike else ["conversations"])]
        lines: list[list[Cell]] = []
        for row in rows:
            name: list[Cell] = [f"{MARKS.get(row.mode, ' ')} {row.condition}"]
            name += [row.model] if len(models) > 1 else []
            lines.append([*name, *([] if alike else [Count.of_row(row)]), *(cell(each, row) for each in found)])
        yield Table(title, [*heads, *(each.heading for each in found)], lines, unsearched(data, family))


_UNTOLD = {"peeking", "omniscient_leaks", "unearned"}
"""Measures of what somebody used who could not know it; the brief tables have no others beside outcomes and turns."""


def conclusions(data: Report) -> list[str]:
    """Return what a report says in short: whose talks do not play, and at most MOST sentences with amounts."""
    silent, told = data.playing.sentences(), data.aloud.conclusions if data.aloud else ()
    return [
        *silent[:1],
        *_first(data),
        *(told[:MOST] or [each for each in answer(data) if each not in silent + _first(data)][:MOST]),
    ]


MOST = 3
"""Conclusions on a screen."""


def answer(data: Report) -> list[str]:
    """Return the sentences that a report begins with: whose talks do not play, and the conclusions about several
    runs and about its own run.
    """
    if not any(row.completed for row in data.comparison):
        return [_nothing(data.run, sum(row.failed for row in data.comparison))]
    told, own = data.aloud.conclusions if data.aloud else (), data.headline.sentences
    models = dict.fromkeys(row.model for row in data.comparison if not row.other)
    which = [f"Of run {data.run.run_id}, by {' and '.join(map(labelled, models))}:"] if told and own else []
    return [*data.playing.sentences(), *_first(data), *told, *which, *own]


def _first(data: Report) -> list[str]:
    return list(dict.fromkeys(each.text for each in data.remarks if each.first))


def _nothing(run: Run, failed: int) -> str:
    """Return the sentence about a run without a completed conversation, with the command that helps."""
    planned, said = run.episodes_planned, "No conversation of this run has been completed"
    if run.status == "running":
        return f"{said} yet: {planned} are planned" + (f", {failed} failed" if failed else "")
    said += f", {planned} were planned" + (f" and {failed} failed" if failed else "")
    if failed < planned and not of_people(run.repro, run.models):
        return f"{said}: localsim resume {run.run_id}"
    return f"{said}: localsim runs show {run.run_id}" if failed else said


def left_out(data: Report, family: str) -> list[str]:
    """Return a line for each value that measures of the head have in every mode of a family, such as 0.

    A line on hits follows where both hits and leaks are counted.
    """
    rows = [row for row in data.comparison if row.family == family]
    hits = family_of(family).hits
    wanted = _wanted(data, family, rows)
    keys = [each.key for each in family_of(family).measures if each.head and hits and each.score == hits.score]
    searched = any(row.searched for row in rows)
    both = searched and any(row.value(each.key) for each in wanted if each.key in keys for row in rows)
    return [*_constants(data, family, rows)[1], *([HIT_IS_NO_LEAK] if both else [])]


def _constants(data: Report, family: str, rows: Sequence[Result]) -> tuple[list[Measure], list[str]]:
    """Return `constants` of the head's measures; untold hits and their number by chance stay or go together."""
    wanted, kept, hits = _wanted(data, family, rows), _kept(data, family), family_of(family).hits
    scores = (hits.score, hits.chance) if hits else ()
    pair = {each.key for each in family_of(family).measures if each.score in scores and each.summed != "excess"}
    differ = {each.key for each in constants(wanted, rows, kept)[0]}
    return constants(wanted, rows, kept | (pair if pair & differ else set()))


def constants(
    measures: Sequence[Measure], rows: Sequence[Result], keep: Iterable[str] = ()
) -> tuple[list[Measure], list[str]]:
    """Return the measures that differ between rows, and lines about the others: "0 in every mode: untold names".

    Measures of `keep`, and those with published values for one of the rows, are never left out. That all talks play is
    what a reader expects, and has no line.
    """
    kept, names = set(keep), {row.condition for row in rows}
    played = [row for row in rows if row.completed]
    same: dict[str, list[str]] = {}
    differ = []
    for measure in measures:
        values = {row.value(measure.key) for row in played}
        value = values.pop() if len(values) == 1 else None
        if len(played) < 2 or value is None or measure.key in kept or names & set(measure.published):
            differ.append(measure)
        elif (measure.key, value) != (PLAYS, 1):
            text = f"{value:.0%}" if measure.kind == "share" and value else f"{value:.2f}".rstrip("0").rstrip(".")
            same.setdefault(text, []).append(measure.heading)
    return differ, [f"{value} in every mode: {', '.join(headings)}." for value, headings in same.items()]


def _kept(data: Report, family: str) -> set[str]:
    """Return the keys that always stand in the head: success, length, what the answer of the family is about, declared
    secondary outcomes, and how many talks play if that withholds an answer.
    """
    told = {each.about.key for each in data.headline.families if each.family == family}
    told |= {each.key for each in outcomes_of(data.run.plan).secondary}
    withheld = any(each == family for each, _ in data.playing.withheld)
    return {SUCCESS.key, LENGTH} | told | ({PLAYS} if withheld else set())


def _wanted(data: Report, family: str, rows: Sequence[Result]) -> list[Measure]:
    """Return the measures of the head that have a value in the family."""
    kept = _kept(data, family) | _goals(family, rows)
    return [each for each in shown(data.measures, rows) if each.head or each.key in kept]


def _goals(family: str, rows: Sequence[Result]) -> set[str]:
    """Return the family's own measures of its main figure, such as payoffs, if no row has a success."""
    if any(row.value(SUCCESS.key) is not None for row in rows):
        return set()
    return {each.key for each in family_of(family).measures} & set(family_of(family).figure)


def _with_gap(found: list[Measure], rows: Sequence[Result]) -> list[Measure]:
    """Return measures with LEAKS before the length if no conversation was searched for leaks."""
    if not any(gap(LEAKS, row) for row in rows) or any(row.searched for row in rows):
        return found
    place = len(found) - (bool(found) and found[-1].key == LENGTH)
    return [*found[:place], LEAKS, *found[place:]]


LEAKS = Measure(key="", heading="leaks", meaning="private facts that came out", score="")
"""The line of a head in which no conversation was searched for leaks."""


def cell(measure: Measure, row: Result) -> Cell:
    """Return the number of a measure in a row, or the words that stand in its place."""
    return gap(measure, row) or row.number(measure.key)


# ---- gaps ----------------------------------------------------------------------------------------------------------


def missed(row: Result) -> int:
    """Return the number of completed conversations of a row that had private facts and were not searched for leaks.

    It is 0 where the rules ask questions: there is nobody to tell a secret to.
    """
    return 0 if family_of(row.family).asks else row.missed


def gap(measure: Measure, row: Result) -> str:
    """Return the words that stand in place of a number that was not looked for; '' if the number can stand."""
    if measure.key in _OF_SEARCH or measure is LEAKS:
        return NOT_SEARCHED if missed(row) == row.private > 0 else ""
    return ""


def unsearched(data: Report, family: str | None = None) -> list[str]:
    """Return sentences about the runs whose conversations (of a family) were not all searched for leaks.

    Each ends in the commands that search.
    """
    some, none = [], []
    rows = [row for row in data.comparison if family in (None, row.family)]
    for run_id in dict.fromkeys(row.other for row in rows):
        own = [row for row in rows if row.other == run_id]
        private, without = sum(row.private for row in own), sum(map(missed, own))
        command = f"localsim score {run_id or data.run.run_id}"
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
    rows = [row for row in data.comparison if row.family == family and row.completed]
    several = len({row.model for row in rows}) > 1
    found = []
    for measure in family_of(family).measures:
        judged = [(row, n) for row in rows if measure.left_out and (n := row.number(measure.key).n) is not None]
        if all(n == row.completed for row, n in judged) or not any(n for _, n in judged):
            continue
        counts = (
            f"{n} of {row.completed} conversations of {row.condition}"
            + (f" ({labelled(row.model, whole=False)})" if several else "")
            for row, n in judged
        )
        found.append(
            f"{measure.heading.capitalize()} was judged in {', '.join(counts)}: in the others, {measure.left_out}."
        )
    return found


# ---- warnings ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Notes:
    """The warnings of a report by place."""

    general: list[str] = field(default_factory=list)
    """About the whole run, or about a model that no row names."""
    families: dict[str, list[str]] = field(default_factory=dict)
    models: dict[str, list[str]] = field(default_factory=dict)
    beside: list[str] = field(default_factory=list)
    """Which conditions of other runs are shown."""


def notes(data: Report) -> Notes:
    """Return the warnings of a report by place, each once in a place."""
    models = {part for row in data.comparison for part in row.model.split("|")}
    families = {row.family for row in data.comparison}
    found = Notes()
    for text in data.warnings:
        about = [each for each in data.remarks if each.text == text]
        of_models = dict.fromkeys(name for each in about for name in each.models if name in models)
        of_families = dict.fromkeys(name for each in about for name in each.families if name in families)
        for name in of_models:
            found.models.setdefault(name, []).append(text)
        for name in of_families:
            found.families.setdefault(name, []).append(text)
        if not of_models and not of_families:
            (found.beside if any(each.beside for each in about) else found.general).append(text)
    return found


def of_family(data: Report, family: str) -> list[str]:
    """Return the warnings about a family."""
    return notes(data).families.get(family, [])


def of_model(data: Report, model: str) -> list[str]:
    """Return the warnings about a model; `A|B` has those of both."""
    known = notes(data).models
    return list(dict.fromkeys(text for part in model.split("|") for text in known.get(part, [])))
