"""Figures of a run as SVG, PNG or PDF, for papers and slides, with conditions of other runs beside its modes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from localsim.errors import InvalidInput, suggest
from localsim.families import family_of
from localsim.models.registry import labelled
from localsim.reports.figures import draw
from localsim.reports.figures.beside import noted, with_colours, with_conditions
from localsim.reports.report import report
from localsim.reports.validity.people import with_people
from localsim.store.conditions import Condition
from localsim.store.database import Store

Row = dict[str, Any]


def figures(
    store: Store,
    run_id: str,
    folder: Path,
    forms: Sequence[str] = ("svg", "png"),
    measures: Sequence[str] = (),
    people: Sequence[str] = (),
    conditions: Sequence[Condition] = (),
) -> list[Path]:
    """Write the figures of a run and return the files; `measures` are keys to draw besides those of the report.

    `people` are runs of imported conversations to draw beside it; `conditions` are those of other runs, and of this run
    if not all of its own are to be drawn.

    Raises InvalidInput without matplotlib, or for a measure that the run does not have.
    """
    draw.ready()
    data = with_colours(with_conditions(store, with_people(store, report(store, run_id), people), conditions))
    comparison, known = data["comparison"], {measure["key"]: measure for measure in data["measures"]}
    for key in measures:
        if key not in known:
            raise InvalidInput(f"no measure {key!r}", hint=suggest(key, known) or f"measures: {', '.join(known)}")
    drawn: list[tuple[str, Any]] = []
    for family in dict.fromkeys(row["family"] for row in comparison):
        rows = [row for row in comparison if row["family"] == family]
        drawn += [
            (f"{family}_{key}", _bars(known[key], rows))
            for key in dict.fromkeys([*_drawn(family, data["measures"]), *measures])
            if any(row[key] is not None for row in rows)
        ]
    drawn += [(f"{curve['family']}_{curve['name']}_curve", _course(curve)) for curve in data["curves"]]
    return draw.save(drawn, folder, forms)


def _label(row: Row, several: bool) -> str:
    """Return the name of a row, with its model if there are several, and a note if its model is constructed."""
    if several:
        return f"{row['condition']} {labelled(row['model'], whole=False)}"
    return noted(row["condition"], row["model"])


def _drawn(family: str, measures: Sequence[Row]) -> list[str]:
    """Return the measures to draw: those of the family's figure, and those of every family's figures."""
    return [*family_of(family).figure, *(measure["key"] for measure in measures if measure["figure"])]


def _bars(measure: Row, rows: list[Row]) -> Any:
    """Draw an estimate by condition with its 95% interval."""
    key, heading, kind = measure["key"], measure["heading"], measure["kind"]
    shown = [row for row in rows if row[key] is not None]
    figure, axes = draw.axes(height=0.6 * len(shown) + 1.3)
    several = len({row["model"] for row in shown}) > 1
    for place, row in enumerate(shown):
        low, high = row[f"{key}_low"], row[f"{key}_high"]
        error = None if low is None else [[max(0.0, row[key] - low)], [max(0.0, high - row[key])]]
        colour = draw.colour_of(row["mode"], row.get("twin", 0))
        axes.barh(place, row[key], xerr=error, color=colour, capsize=3, height=0.62)
    labels = [f"{_label(row, several)}\n{row['completed']} conversations" for row in shown]
    axes.set_yticks(range(len(shown)), labels)
    axes.invert_yaxis()
    axes.set_xlim(0, None if kind == "number" else 1)
    axes.set_xlabel(f"{heading} ({shown[0]['family'].replace('_', ' ')}), 95% intervals")
    return figure


def _course(curve: Row) -> Any:
    """Draw a curve of `figures.curves`, with one line for each condition."""
    figure, axes = draw.axes()
    for series in curve["series"]:
        xs, ys = zip(*series["points"], strict=True)
        mode, side, twin = series["mode"], series["side"], series.get("twin", 0)
        style = {"color": draw.colour_of(mode, twin), "linestyle": draw.LINES[mode], "linewidth": 2}
        name = series["name"] if "other_run" in series else noted(series["name"], series["model"])
        style["label"] = f"{name} {side}".strip()
        if curve["steps"]:
            axes.step(xs, ys, where="post", **style)
        else:
            axes.plot(xs, ys, marker="s" if side else "o", **style)
    along = "turns" if curve["axis"] == "turns" else "position in the conversation (0 start, 1 end)"
    axes.set(xlim=(0, curve["end"]), xlabel=along, ylabel=textwrap.fill(curve["meaning"], 32))
    if curve["axis"] == "turns":
        axes.locator_params(axis="x", integer=True)
    axes.set_ylim(0, 1 if curve["steps"] else None)
    axes.legend(frameon=False)
    return figure
