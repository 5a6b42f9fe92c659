"""Figures of a run as SVG, PNG or PDF, for papers and slides, with conditions of other runs beside its modes."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from localsim.conversation.measures import Measure
from localsim.errors import InvalidInput
from localsim.families import family_of, title_of
from localsim.models.registry import labelled
from localsim.reports.compose.beside import noted
from localsim.reports.evidence import playing
from localsim.reports.figures import draw, pairs
from localsim.reports.figures.curves import Course
from localsim.reports.measures import hint_on
from localsim.reports.report import Ask, of
from localsim.reports.results import Result
from localsim.store.conditions import Condition
from localsim.store.database import Store


def figures(
    store: Store,
    run_id: str,
    folder: Path,
    forms: Sequence[str] = ("svg", "png"),
    measures: Sequence[str] = (),
    people: Sequence[str] = (),
    conditions: Sequence[Condition] = (),
) -> list[Path]:
    """Write the figures of a run and return the files: those of the report, or of `measures` (keys or headings) alone.

    `people` are runs of imported conversations to draw beside it; `conditions` are those of other runs, and of this run
    if not all of its own are to be drawn.

    Raises InvalidInput without matplotlib, or for a measure that the run does not have.
    """
    draw.ready()
    data = of(store, Ask(run_id, conditions, people, figures=True))
    comparison, known = data.comparison, {measure.key: measure for measure in data.measures}
    wanted = list(dict.fromkeys(_key(name, known) for name in measures))
    drawn: list[tuple[str, Any]] = []
    for family in dict.fromkeys(row.family for row in comparison):
        rows = [row for row in comparison if row.family == family]
        drawn += [
            (f"{family}_{key}", _bars(known[key], rows))
            for key in wanted
            or dict.fromkeys([*family_of(family).figure, *(key for key in known if known[key].figure)])
            if any(row.value(key) is not None for row in rows)
        ]
    curves = [] if wanted else data.curves
    drawn += [(f"{curve.family}_{curve.name}_curve", _course(curve)) for curve in curves]
    return draw.save(drawn, folder, forms)


def difference(store: Store, runs: Sequence[str], folder: Path) -> list[Path]:
    """Write difference.svg, the first picture of a report on these runs, without matplotlib. Raises InvalidInput."""
    found = pairs.of_runs(store, runs)
    if not found and any(playing.of_run(store, run_id).sentences() for run_id in runs):
        hint = f"localsim report {runs[0]} says which, and why"
        raise InvalidInput("the talks of this run do not play, so no difference is drawn", hint=hint)
    if not found:
        raise InvalidInput("the run has no pairs of its primary outcome", hint="localsim run ... --mode all makes them")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "difference.svg"
    file.write_text(pairs.poster(found), encoding="utf-8")
    return [file]


def _key(name: str, known: Mapping[str, Measure]) -> str:
    """Return the key of a measure, given its key or its heading. Raises InvalidInput."""
    headings = {measure.heading.casefold(): key for key, measure in known.items()}
    key = name if name in known else headings.get(" ".join(name.split()).casefold())
    if key is None:
        raise InvalidInput(f"no measure {name!r}", hint=hint_on(name, [*known, *headings]))
    return key


def _label(row: Result, several: bool) -> str:
    """Return the name of a row, with its model if there are several, and a note if its model is constructed."""
    if several:
        return f"{row.condition} {labelled(row.model, whole=False)}"
    return noted(row.condition, row.model)


def _bars(measure: Measure, rows: list[Result]) -> Any:
    """Draw an estimate by condition with its 95% interval."""
    kind = measure.kind
    shown = [(row, number, number.value) for row in rows if (number := row.number(measure.key)).value is not None]
    figure, axes = draw.axes(height=0.6 * len(shown) + 1.3)
    several = len({row.model for row, *_ in shown}) > 1
    for place, (row, number, value) in enumerate(shown):
        axes.barh(place, value, color=draw.colour_of(row.mode, row.twin or 0), height=0.62)
        if number.interval:
            error = [[max(0.0, value - number.interval[0])], [max(0.0, number.interval[1] - value)]]
            # A white line below the black one keeps it readable on a dark bar.
            for line, width, ends in (("white", 3, 4), ("black", 1.4, 3)):
                axes.errorbar(value, place, xerr=error, fmt="none", ecolor=line, elinewidth=width, capsize=ends)
    labels = [f"{_label(row, several)}\n{row.completed} conversations" for row, *_ in shown]
    axes.set_yticks(range(len(shown)), labels)
    axes.invert_yaxis()
    least = min(end for _, number, value in shown for end in (0.0, value, number.low) if end is not None)
    least = least if kind == "number" else max(-1.0, least)
    axes.set_xlim(1.05 * least, None if kind == "number" else 1)
    if kind == "share":
        axes.xaxis.set_major_formatter(draw.percent())
    if least < 0:
        axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel(f"{measure.heading} ({title_of(family_of(shown[0][0].family))}), 95% intervals")
    return figure


def _course(curve: Course) -> Any:
    figure, axes = draw.axes()
    conditions = list(dict.fromkeys(series.name for series in curve.series))
    sides = sorted({series.side for series in curve.series if series.side}, reverse=True)
    for series in curve.series:
        xs, ys = zip(*series.points, strict=True)
        place = conditions.index(series.name)
        line = draw.SIDES[sides.index(series.side) % len(draw.SIDES)] if series.side else draw.LINES[series.mode]
        style: dict[str, Any] = {"color": draw.colour_of(series.mode, series.twin or 0), "linestyle": line}
        # Of lines that coincide, the first one is wider and below: it shows as an edge of the last.
        style |= {"linewidth": 2 + 1.6 * min(3, len(conditions) - 1 - place), "zorder": 2 + 0.1 * place}
        name = series.name if series.other_run else noted(series.name, series.condition.model)
        style["label"] = f"{name} {series.side}".strip()
        if curve.steps:
            axes.step(xs, ys, where="post", **style)
        else:
            axes.plot(xs, ys, marker=draw.MARKS[series.mode], **style)
    along = "turns" if curve.axis == "turns" else "position in the conversation (0 start, 1 end)"
    axes.set(xlim=(0, curve.end), xlabel=along, ylabel=textwrap.fill(curve.meaning, 32))
    if curve.axis == "turns":
        axes.locator_params(axis="x", integer=True)
    if curve.steps:
        axes.yaxis.set_major_formatter(draw.percent())
    axes.set_ylim(0, 1 if curve.steps else None)
    # Above the axes: inside, it would cover lines.
    columns = max(1, min(3, len(conditions)))
    figure.legend(loc="outside upper center", ncols=columns, frameon=False, fontsize="small")
    return figure
