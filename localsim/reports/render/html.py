"""The report of a run as one HTML page, the answer first, without scripts or downloads.

Figures, tables and example conversations are folded behind the head of each family; a link to a folded part opens it,
because browsers open `details` around the target of a link. `render` is pure. The template escapes all text of models
and files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import jinja2
from markupsafe import Markup

from localsim.conversation.measures import Measure
from localsim.families import Family, family_of, in_order, title_of
from localsim.families.base import SUCCESS
from localsim.models.registry import labelled
from localsim.reports import sections
from localsim.reports.card import sections as card_sections
from localsim.reports.compose.alone import foremost
from localsim.reports.compose.beside import with_colours
from localsim.reports.document import Report, Table
from localsim.reports.evidence import marks, playing
from localsim.reports.evidence.turns import MarkedTurn, hits_in, marked_turns, remark_on
from localsim.reports.figures import pairs, references
from localsim.reports.figures.curves import Course
from localsim.reports.measures import INVENTED
from localsim.reports.render import charts
from localsim.reports.results import Result, shown
from localsim.reports.validity import head
from localsim.reports.validity.typical import RULE, Example
from localsim.runs import words
from localsim.runs.telling import of_people
from localsim.store.episodes import StoredEpisode
from localsim.store.queries.reports import Leak

_short = partial(labelled, whole=False)


def render(data: Report, back: str = "") -> str:
    """Return one self-contained HTML page; `back` is the address of a page that it leads back to."""
    data = with_colours(data)
    heads, legend = head.tables(data), _legend(data.comparison)
    own = [row for row in data.comparison if not row.other]
    completed, failed = sum(row.completed for row in own), sum(row.failed for row in own)
    planned = data.run.episodes_planned
    return _environment().get_template("report.html.j2").render(
        data=data,
        run=data.run,
        started=_date(data.run.started_utc),
        modes=len({row.mode for row in data.comparison if row.completed}),
        answer=head.answer(data),
        shown=len(head.conclusions(data)),
        back=back,
        pairs=[(title, list(map(Markup, drawn))) for title, drawn in pairs.panels(data.pairs)],
        not_playing=playing.RULE if data.playing.withheld else "",
        legend=legend,
        others=[row for row in legend if row.twin and (row.other_run or not row.see)],
        notes=head.notes(data),
        places={each.model: f"model-{number}" for number, each in enumerate(each for each in heads if each.notes)},
        families=[
            _family(name, data, [each for each in heads if each.family == name])
            for name in in_order(row.family for row in data.comparison)
        ],
        counts={"completed": completed, "failed": failed, "rest": planned - completed - failed},
        resumable=failed < planned and not of_people(data.run.repro, data.run.models),
        sections=list(sections.on_page(data)),
        card=card_sections(data.card) if data.card else [],
    )  # fmt: skip


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("localsim.reports.render"),
        autoescape=True,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals |= {
        "invented": INVENTED,
        "labelled": labelled,
        "rule": RULE,
        "short": _short,
        "words": words,
        "notes_of": _notes_of,
        "turns_of": marked_turns,
        "colour_of": _colour,
        "colours_of": marks.colours,
        "success_of": _success,
        "remarks_of": _remarks,
    }
    environment.filters |= {
        "hits": hits_in,
        "number": charts.number_of,
        "interval": charts.interval_of,
        "signed": _signed,
    }
    return environment


def _printable(value: Any) -> Any:
    """Return a value as the template prints it: – for a missing one, and only characters that HTML allows."""
    if value is None:
        return charts.NONE
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]", "\ufffd", value)


def _date(text: str) -> str:
    date = datetime.fromisoformat(text)
    return f"{date.day} {date:%B %Y, %H:%M} UTC"


def _signed(text: str) -> str:
    """Return values of references with the signs of this page: a minus, and – for a missing one."""
    return " / ".join(charts.NONE if part == "-" else part.replace("-", "−") for part in text.split(" / "))


def _legend(rows: Iterable[Result]) -> list[Result]:
    """Return the conditions of a report in the order of their rows, each once."""
    found: dict[tuple[str, int | None], Result] = {}
    for row in rows:
        found.setdefault((row.mode, row.twin), row)
    return list(found.values())


# ---- a family ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """What the page says about a family."""

    family: Family
    id: str
    title: str
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
    figures: Sequence[tuple[str, str, Sequence[charts.Panel]]]
    """Prefix of ids, caption and charts of each figure."""
    curves: Sequence[Mapping[str, Any]]
    leaks: Sequence[Leak]
    leaks_total: int
    examples: Sequence[Example]

    @property
    def charts(self) -> int:
        """The number of charts."""
        return sum(len(panels) for *_, panels in self.figures) + len(self.curves)


def _family(name: str, data: Report, heads: Sequence[head.Head]) -> _Part:
    family, rows = family_of(name), [row for row in data.comparison if row.family == name]
    models = {row.model for row in rows}
    leaks = [leak for leak in data.leaks if leak.family == name]
    told = {each.about.key for each in data.headline.families if each.family == name}
    terms = [replace(each, meaning=_own_meaning(each, family)) for each in shown(data.measures, rows)]
    referred = {each.key for each in terms if references.beside(data.references, each, rows)}
    columns, same = head.constants(terms, rows, {SUCCESS.key, *referred} | told)
    drawn = any(row.completed for row in rows)
    by_key = {each.key: each for each in columns} if drawn else {}

    def panels(keys: Iterable[str]) -> list[charts.Panel]:
        return [charts.panel(by_key[key], rows) for key in keys if key in by_key]

    def general(figure: str) -> list[str]:
        return [each.key for each in columns if each.figure == figure and each.key not in family.figure]

    style = panels(general("style"))
    outcomes = "Outcomes of the conversations, by mode." if style else "Style of the conversations, by mode."
    return _Part(
        family=family,
        id=re.sub(r"\W", "-", name),
        title=title_of(family),
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
        figures=[
            ("o", outcomes, panels(family.figure)),
            ("s", "Style of the conversations, by mode.", style),
            ("l", "Private facts that came out, by mode.", panels(general("secrets"))),
        ],
        curves=[charts.curve(each) for each in data.curves if drawn and each.family == name and _rises(each)],
        leaks=foremost(leaks),
        leaks_total=len(leaks),
        examples=[example for example in data.talks if example.family == name],
    )


def _own_meaning(measure: Measure, family: Family) -> str:
    """Return the meaning that the family gives a measure: several families have one of the same key."""
    return next((each.meaning for each in family.measures if each.key == measure.key), measure.meaning)


def _rises(curve: Course) -> bool:
    """Return True if some point of a curve is not 0."""
    return any(y for series in curve.series for _, y in series.points)


# ---- example conversations -----------------------------------------------------------------------------------------


def _success(episode: StoredEpisode) -> Mapping[str, Any] | None:
    """Return the score of success; None without one."""
    return next((score for score in episode.scores if score["name"] == "success"), None)


def _remarks(episode: StoredEpisode) -> Sequence[str]:
    """Return what the family says of the scores."""
    scores = {score["name"]: score["value"] for score in episode.scores if score["value"] is not None}
    return family_of(episode.scenario.family).remarks(scores)


def _colour(episode: StoredEpisode, rows: Sequence[Result]) -> int:
    """Return the number of the colour of an episode's condition, which is a row of the report."""
    own = [row for row in rows if (row.mode, row.see) == (episode.mode, episode.see)]
    alike = [row for row in own if row.model == episode.model]
    there = [row for row in alike if row.other_run == episode.run_id]
    return next((row.twin or 0 for row in (*there, *alike, *own)), 0)


def _notes_of(turn: MarkedTurn) -> list[tuple[str, str, str]]:
    """Return (speaker, remark, fact or term) for leaks; without a leak, for first mentions of others' facts."""
    speaker = turn.row["speaker"]
    if turn.leaks:
        return [(speaker, remark_on(leak), leak["fact"]) for leak in turn.leaks if remark_on(leak)]
    return [(speaker, "does not hold this fact", term) for term in turn.strange]
