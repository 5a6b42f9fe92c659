"""What a page says about each family: its head, tables, remarks, quoted leaks and talks, and what its figures show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from localsim.conversation.measures import Measure
from localsim.families import Family, family_of, in_order, title_of
from localsim.families.base import SUCCESS
from localsim.models.registry import labelled
from localsim.reports import sections
from localsim.reports.compose.alone import foremost
from localsim.reports.document import Report, Table
from localsim.reports.figures import references
from localsim.reports.figures.curves import Course
from localsim.reports.results import Result, shown
from localsim.reports.validity import head
from localsim.reports.validity.typical import Example
from localsim.store.episodes import StoredEpisode
from localsim.store.queries.reports import Leak


@dataclass(frozen=True)
class FamilyPart:
    """A family in a report."""

    name: str
    title: str
    about: str
    heads: Sequence[head.Head]
    rows: Sequence[Result]
    table: Table
    """The measures that differ."""
    same: Sequence[str]
    """Lines about the others."""
    terms: Sequence[Measure]
    """All measures that have a value."""
    model: str
    """The model of all rows; empty if there are several."""
    below: Sequence[str]
    """Lines below the head: measures that are left out there, and what the references are."""
    unsearched: Sequence[str]
    notes: Sequence[str]
    references: Sequence[str]
    figures: Sequence[tuple[str, str, Sequence[Measure]]]
    """Letter, caption and measures of each figure."""
    curves: Sequence[Course]
    leaks: Sequence[Leak]
    leaks_total: int
    examples: Sequence[Example]


def families(data: Report) -> Iterator[FamilyPart]:
    """Yield the parts of a report on its families, in their order."""
    heads = head.tables(data)
    for name in in_order(row.family for row in data.comparison):
        yield _part(name, data, [each for each in heads if each.family == name])


def _part(name: str, data: Report, heads: Sequence[head.Head]) -> FamilyPart:
    family, rows = family_of(name), [row for row in data.comparison if row.family == name]
    models = {row.model for row in rows}
    leaks = [leak for leak in data.leaks if leak.family == name]
    told = {each.about.key for each in data.headline.families if each.family == name}
    terms = [replace(each, meaning=_own_meaning(each, family)) for each in shown(data.measures, rows)]
    referred = {each.key for each in terms if references.beside(data.references, each, rows)}
    columns, same = head.constants(terms, rows, {SUCCESS.key, *referred} | told)
    drawn = any(row.completed for row in rows)
    return FamilyPart(
        name=name,
        title=title_of(family),
        about=family.about,
        heads=heads,
        rows=rows,
        table=sections.measure_table(rows, columns, data.references, published=False),
        same=same,
        terms=terms,
        model=labelled(*models) if len(models) == 1 else "",
        below=heads[-1].same,
        unsearched=head.unsearched(data, name),
        notes=[*head.unjudged(data, name), *head.of_family(data, name)],
        references=references.sentences(data.references, name),
        figures=_figures(family, columns if drawn else []),
        curves=[each for each in data.curves if drawn and each.family == name and _rises(each)],
        leaks=foremost(leaks),
        leaks_total=len(leaks),
        examples=[example for example in data.talks if example.family == name],
    )


def _figures(family: Family, columns: Sequence[Measure]) -> list[tuple[str, str, Sequence[Measure]]]:
    by_key = {each.key: each for each in columns}
    style, secrets = (
        [each for each in columns if each.figure == figure and each.key not in family.figure]
        for figure in ("style", "secrets")
    )
    outcomes = "Outcomes of the conversations, by mode." if style else "Style of the conversations, by mode."
    return [
        ("o", outcomes, [by_key[key] for key in family.figure if key in by_key]),
        ("s", "Style of the conversations, by mode.", style),
        ("l", "Private facts that came out, by mode.", secrets),
    ]


def _own_meaning(measure: Measure, family: Family) -> str:
    """Return the meaning that the family gives a measure: several families have one of the same key."""
    return next((each.meaning for each in family.measures if each.key == measure.key), measure.meaning)


def _rises(curve: Course) -> bool:
    """Return True if some point of a curve is not 0."""
    return any(y for series in curve.series for _, y in series.points)


def success_in(episode: StoredEpisode) -> Mapping[str, Any] | None:
    """Return the score of success of an episode; None without one."""
    return next((score for score in episode.scores if score["name"] == SUCCESS.score), None)


def remarks_in(episode: StoredEpisode) -> Sequence[str]:
    """Return what the family of an episode says of its scores."""
    scores = {score["name"]: score["value"] for score in episode.scores if score["value"] is not None}
    return family_of(episode.scenario.family).remarks(scores)
