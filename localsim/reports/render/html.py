"""The report of a run as one HTML page, the answer first, without scripts or downloads.

Figures, tables and example conversations are folded behind the head of each family; a link to a folded part opens it,
because browsers open `details` around the target of a link. `render` is pure. The template escapes all text of models
and files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import jinja2
from markupsafe import Markup

from localsim.models.registry import labelled
from localsim.reports import sections
from localsim.reports.card import sections as card_sections
from localsim.reports.compose.beside import with_colours
from localsim.reports.compose.families import FamilyPart, families, remarks_in, success_in
from localsim.reports.document import Report
from localsim.reports.evidence import marks
from localsim.reports.evidence.turns import MarkedTurn, hits_in, marked_turns, remark_on
from localsim.reports.measures import INVENTED
from localsim.reports.render import charts
from localsim.reports.render.opening import opening
from localsim.reports.results import Result
from localsim.reports.validity import head
from localsim.reports.validity.typical import RULE
from localsim.runs import words
from localsim.runs.telling import of_people
from localsim.store.episodes import StoredEpisode

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
        opening=opening(data),
        back=back,
        legend=legend,
        others=[row for row in legend if row.twin and (row.other_run or not row.see)],
        notes=head.notes(data),
        places={each.model: f"model-{number}" for number, each in enumerate(each for each in heads if each.notes)},
        families=list(map(_drawn, families(data))),
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
        "success_of": success_in,
        "remarks_of": remarks_in,
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
class _Drawn(FamilyPart):
    """A family with its charts."""

    id: str
    panels: Sequence[tuple[str, str, Sequence[charts.Panel]]]
    """Prefix of ids, caption and charts of each figure."""
    courses: Sequence[Mapping[str, Any]]

    @property
    def charts(self) -> int:
        """The number of charts."""
        return sum(len(panels) for *_, panels in self.panels) + len(self.courses)


def _drawn(part: FamilyPart) -> _Drawn:
    panels = [(place, text, [charts.panel(each, part.rows) for each in of]) for place, text, of in part.figures]
    drawn, place = list(map(charts.curve, part.curves)), re.sub(r"\W", "-", part.name)
    return _Drawn(**vars(part), id=place, panels=panels, courses=drawn)


# ---- example conversations -----------------------------------------------------------------------------------------


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
