"""The charts of a page: bars of a measure by condition, and curves, in parts of their axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from localsim.conversation.measures import Kind, Measure
from localsim.reports.figures.curves import Course
from localsim.reports.figures.pairs import end_of_axis
from localsim.reports.results import Number, Result

NONE = "–"
"""Printed for a value that has no meaning."""


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

    def place(self, value: float) -> float:
        """Return the place of a value; of one beyond the axis, its end."""
        return max(0.0, min(1.0, (value - self.bottom) / (self.top - self.bottom)))

    def text(self, value: float | None) -> str:
        """Return a value as a text."""
        return text_of(value, self.measure.kind, 2 if self.measure.kind == "position" else 1)


def panel(measure: Measure, rows: Sequence[Result]) -> Panel:
    """Return the chart of a measure; its axis begins at 0, or below it if an estimate or an interval does."""
    numbers = [row.number(measure.key) for row in rows]
    found = Panel(measure, rows, 0.0, 1.0)
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
    return text_of(number.value, number.kind)


def text_of(value: float | None, kind: Kind, digits: int = 2) -> str:
    """Return a value as a page prints it: with a real minus, and – for a missing one."""
    if value is None:
        return NONE
    return (f"{value:.0%}" if kind == "share" else f"{value:.{digits}f}").replace("-", "−")


def interval_of(number: Number) -> str:
    """Return what a page prints beside a value: its interval, or that it is the same everywhere; '' for neither."""
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
