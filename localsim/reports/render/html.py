"""The report of a run as one HTML page, the answer first, without scripts or downloads.

Figures, tables and example conversations are folded behind the head of each family; a link to a folded part opens it,
because browsers open `details` around the target of a link. `render` is pure. The template escapes all text of models
and files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from localsim.conversation.measures import Kind, Measure
from localsim.errors import InvalidInput, writing
from localsim.families import EVERYDAY, Family, family_of, in_order
from localsim.families.base import SUCCESS
from localsim.models.registry import constructed, labelled
from localsim.reports import sections
from localsim.reports.card import sections as card_sections
from localsim.reports.compose.alone import foremost
from localsim.reports.compose.beside import with_colours
from localsim.reports.document import Report
from localsim.reports.evidence import marks, playing
from localsim.reports.evidence.turns import RULE, MarkedTurn, hits_in, marked_turns, remark_on
from localsim.reports.figures import pairs, references
from localsim.reports.figures.curves import Course
from localsim.reports.figures.pairs import end_of_axis
from localsim.reports.measures import INVENTED, of_family
from localsim.reports.render.markdown import as_markdown
from localsim.reports.results import Number, Result, shown
from localsim.reports.validity import head
from localsim.reports.validity.findings import ONE_STORY, scenarios
from localsim.runs import words
from localsim.runs.plan import outcomes_of
from localsim.runs.telling import of_people
from localsim.store.episodes import StoredEpisode

NONE = "–"
"""Printed for a value that has no meaning."""
LINES = "A thin line is one scenario, a thick one several with the same values. Marks are means with 95% intervals."
"""How every picture is read."""


def render(data: Report, back: str = "") -> str:
    """Return one self-contained HTML page; `back` is the address of a page that it leads back to."""
    data = with_colours(data)
    heads = head.tables(data)
    legend: dict[tuple[str, int | None], Result] = {}
    for row in data.comparison:
        legend.setdefault((row.mode, row.twin), row)
    own = [row for row in data.comparison if not row.other]
    completed, failed = sum(row.completed for row in own), sum(row.failed for row in own)
    planned, started = data.run.episodes_planned, datetime.fromisoformat(data.run.started_utc)
    return _environment().get_template("report.html.j2").render(
        data=data,
        run=data.run,
        started=f"{started.day} {started:%B %Y, %H:%M} UTC",
        modes=len({row.mode for row in data.comparison if row.completed}),
        opening=opening(data),
        back=back,
        legend=list(legend.values()),
        others=[row for row in legend.values() if row.twin and (row.other_run or not row.see)],
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
        "short": partial(labelled, whole=False),
        "words": words,
        "notes_of": _notes_of,
        "turns_of": marked_turns,
        "colour_of": _colour,
        "colours_of": marks.colours,
        "success_of": success_in,
        "remarks_of": remarks_in,
    }
    environment.filters |= {
        "hits": hits_in,
        "number": number_of,
        "interval": interval_of,
        "signed": _signed,
    }
    return environment


def _printable(value: Any) -> Any:
    """Return a value as the template prints it: – for a missing one, and only characters that HTML allows."""
    if value is None:
        return NONE
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]", "\ufffd", value)


def _signed(text: str) -> str:
    """Return values of references with the signs of this page: a minus, and – for a missing one."""
    return " / ".join(NONE if part == "-" else part.replace("-", "−") for part in text.split(" / "))


def is_page(file: str | Path) -> bool:
    """True if a report in this file is a page; Markdown has a name that ends in .md. Raises InvalidInput."""
    ending = Path(file).suffix.lower()
    if ending not in (".html", ".htm", ".md"):
        raise InvalidInput("a report is a page or Markdown", where=str(file), hint="a name that ends in .html or .md")
    return ending != ".md"


def write(report: Report, file: Path) -> None:
    """Write a report. Raises InvalidInput where that cannot be done."""
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(render(report) if is_page(file) else as_markdown(report), encoding="utf-8")


# ---- the opening ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Opening:
    """The values of opening.html.j2."""

    first: Sequence[str]
    rest: Sequence[str]
    """Folded."""
    doubt: str
    """How examples of talks that do not play were chosen; empty if all models hold their talks."""
    pictures: Sequence[tuple[str, Sequence[Markup]]]
    """The title of each family with its pictures."""
    caption: str
    """What the pictures show, and what they leave out."""


def opening(data: Report) -> Opening:
    """Return the opening of a report. What talks that do not play show stands before all else, and is not folded."""
    scripted = [name for name, each in data.run.models.items() if each.get("kind") == "scripted"]
    people = any(each.get("kind") == "human" for each in data.run.models.values())
    told = [f"{', '.join(scripted)}: script, no model."] if scripted and not people else []
    shown = len(told) + len(head.conclusions(data))
    told += head.answer(data)
    own = {EVERYDAY.title: data.title_of(EVERYDAY.name)}
    pictures = [(own.get(title, title), list(map(Markup, drawn))) for title, drawn in pairs.panels(data.pairs)]
    if data.playing.withheld:
        return Opening(told, (), playing.RULE, pictures, _caption(data))
    return Opening(told[:shown], told[shown:], "", pictures, _caption(data))


def _caption(data: Report) -> str:
    texts = [LINES]
    for many in sorted({len(each.lines) for each in data.pairs if each.variants}):
        texts.append(f"These are {scenarios(many, variants=True)}: {ONE_STORY}.")
    if data.pairs and data.pairs[0].measure.key == pairs.INSTEAD != outcomes_of(data.run.plan).primary.key:
        texts.append("Every talk in the pictures reached its goal, so they show turns.")
    if {row.mode for row in data.comparison} > {mode for each in data.pairs for mode in each.modes}:
        texts.append("Scripts are not compared here: one author writes both sides.")
    for model in dict.fromkeys(each.model for each in data.pairs if constructed(each.model)):
        texts.append(f"{model} is a control: it was built to use the other side, so it shows what a gain looks like.")
    return " ".join(texts)


# ---- a family ------------------------------------------------------------------------------------------------------


def _family(name: str, data: Report, heads: Sequence[head.Head]) -> dict[str, Any]:
    """Return what the template says about a family: head, tables, charts, remarks, quoted leaks and talks."""
    family, rows = family_of(name), [row for row in data.comparison if row.family == name]
    models = {row.model for row in rows}
    leaks = [leak for leak in data.leaks if leak.family == name]
    told = {each.about.key for each in data.headline.families if each.family == name}
    terms = [replace(each, meaning=of_family(each, name).meaning) for each in shown(data.measures, rows)]
    referred = {each.key for each in terms if references.beside(data.references, each, rows)}
    columns, same = head.constants(terms, rows, {SUCCESS.key, *referred} | told)
    drawn = any(row.completed for row in rows)
    figures = _figures(family, columns if drawn else [])
    panels = [(end, caption, [panel(each, rows) for each in of]) for end, caption, of in figures]
    curves = (each for each in data.curves if drawn and each.family == name)
    courses = [curve(each) for each in curves if any(y for series in each.series for _, y in series.points)]
    return {
        "id": re.sub(r"\W", "-", name),
        "title": data.title_of(name),
        "about": family.about,
        "heads": heads,
        "rows": rows,
        "table": head.measure_table(rows, columns, data.references, published=False),
        "same": same,  # lines about the measures that do not differ
        "terms": terms,
        "model": labelled(*models) if len(models) == 1 else "",
        "below": heads[-1].same,
        "unsearched": head.unsearched(data, name),
        "notes": [*head.unjudged(data, name), *head.of_family(data, name)],
        "references": references.sentences(data.references, name),
        "panels": panels,
        "courses": courses,
        "charts": sum(len(own) for *_, own in panels) + len(courses),
        "leaks": foremost(leaks),
        "leaks_total": len(leaks),
        "examples": [example for example in data.talks if example.family == name],
    }


def _figures(family: Family, columns: Sequence[Measure]) -> list[tuple[str, str, Sequence[Measure]]]:
    """Return end of the id, caption and measures of each figure."""
    by_key = {each.key: each for each in columns}
    style, secrets = (
        [each for each in columns if each.figure == figure and each.key not in family.figure]
        for figure in ("style", "secrets")
    )
    of_style = "Style of the conversations, by mode."
    return [
        (
            "o",
            "Outcomes of the conversations, by mode." if style else of_style,
            [by_key[key] for key in family.figure if key in by_key],
        ),
        ("s", of_style, style),
        ("l", "Private facts that came out, by mode.", secrets),
    ]


# ---- example conversations -----------------------------------------------------------------------------------------


def success_in(episode: StoredEpisode) -> Mapping[str, Any] | None:
    """Return the score of success of an episode; None without one."""
    return next((score for score in episode.scores if score["name"] == SUCCESS.score), None)


def remarks_in(episode: StoredEpisode) -> Sequence[str]:
    """Return what the family of an episode says of its scores."""
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


# ---- bars of a measure by condition --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """One measure with a bar for each condition; places are parts of its axis, from 0 to 1."""

    measure: Measure
    rows: Sequence[Result]
    bottom: float
    top: float
    """The ends of the axis."""

    @property
    def paper(self) -> dict[str, float]:
        """Condition -> the paper's value."""
        names = {row.condition for row in self.rows}
        return {name: value for name, value in self.measure.published.items() if name in names}

    @property
    def ticks(self) -> Sequence[str]:
        """The names of the start, the middle and the end of the axis."""
        if self.measure.kind == "position":
            return ("start", "middle", "end")
        values = (self.bottom, (self.bottom + self.top) / 2, self.top)
        ends = [f"{each:.0%}" if self.measure.kind == "share" else f"{each:g}" for each in values]
        ends = [each.replace("-", "−") for each in ends]
        return [ends[0], "", ends[2]] if self.bottom else ends  # it is named at its ends and at 0 then

    def number(self, row: Result) -> Number:
        """Return what is drawn of a row: nothing of a value that cannot be told."""
        found = row.number(self.measure.key)
        return Number(found.kind, n=found.n) if found.undecided else found

    def place(self, value: float) -> float:
        """Return the place of a value; of one beyond the axis, its end."""
        return max(0.0, min(1.0, (value - self.bottom) / (self.top - self.bottom)))

    def text(self, value: float | None) -> str:
        """Return a value as a text."""
        return text_of(value, self.measure.kind, 2 if self.measure.kind == "position" else 1)


def panel(measure: Measure, rows: Sequence[Result]) -> Panel:
    """Return the chart of a measure; its axis begins at 0, or below it if an estimate or an interval does."""
    found = Panel(measure, rows, 0.0, 1.0)
    numbers = list(map(found.number, rows))
    top = _axis_end(numbers, found.paper.values()) if measure.kind == "number" else 1.0
    # A fourth, half or the whole of the axis stands below 0 if an estimate or an interval does.
    least = min(end for each in numbers for end in (each.value, each.low, 0.0) if end is not None)
    bottom = next((-part * top for part in (0, 0.25, 0.5) if least >= -part * top), -top)
    return replace(found, bottom=bottom, top=top)


def _axis_end(numbers: Sequence[Number], paper: Iterable[float]) -> float:
    """Return a round number above every value and interval; an interval is cut at twice the largest value."""
    values = [each.value for each in numbers if each.value is not None]
    highs = [each.high for each in numbers if each.high is not None]
    return end_of_axis(max(*values, *paper, min(max([*highs, 0.0]), 2 * max(values)), 1.0))


def number_of(number: Number) -> str:
    """Return the value of a number as a page prints it."""
    return NONE if number.undecided else text_of(number.value, number.kind)


def text_of(value: float | None, kind: Kind, digits: int = 2) -> str:
    """Return a value as a page prints it: with a real minus, and – for a missing one."""
    if value is None:
        return NONE
    return (f"{value:.0%}" if kind == "share" else f"{value:.{digits}f}").replace("-", "−")


def interval_of(number: Number) -> str:
    """Return what stands beside a value: its interval, that it is the same everywhere, or how few were judged."""
    if number.undecided:
        return f"{number.n} judged"
    if number.alike:
        return f"in all {number.alike}"
    if number.interval is None:
        return ""
    low, high = (text_of(end, number.kind) for end in number.interval)
    return f"{low.rstrip('%')}{' to ' if number.interval[0] < 0 else '–'}{high}"


# ---- curves --------------------------------------------------------------------------------------------------------

WIDTH, HEIGHT, LEFT = 270, 150, 40
"""Size of the drawing area of a curve, and the space for its axis, in pixels."""


def curve(found: Course) -> dict[str, Any]:
    """Return a curve with its points as an SVG path: x along its axis, y from 0 to a round number above all points."""
    top = max(1.0, math.ceil(max(y for series in found.series for _, y in series.points) * 4) / 4)
    drawn = []
    for series in found.series:
        places = [(LEFT + x / found.end * WIDTH, HEIGHT * (1 - y / top) + 8) for x, y in series.points]
        path = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
        for x, y in places[1:]:
            path += f"H{x:.1f}V{y:.1f}" if found.steps else f"L{x:.1f} {y:.1f}"
        more = {"mode": series.mode, "path": path, "dots": [] if found.steps else places}
        drawn.append({**vars(series), **more})
    return {**vars(found), "series": drawn, "top": top}
