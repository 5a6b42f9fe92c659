"""Findings as lines of text, for a terminal: the values of two modes on one axis, with the interval of their
difference around the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from localsim.reports.figures.pairs import end_of_axis
from localsim.reports.validity.findings import Bar, Finding
from localsim.runs.words import MARKS

WIDTH = 34
"""Columns of an axis."""
NAME = 40
"""Columns of a name."""
MOST = 6
"""Lines of a picture."""
Line = list[tuple[str, str]]
"""Parts of a line, each with the mode whose colour it has; '' for none."""


def lines(bars: Sequence[Bar]) -> Iterator[Line]:
    """Yield a line for each finding, at most MOST, and above those on one axis its name and ends."""
    drawn = bars[:MOST]
    several = len({each.model for each in drawn}) > 1
    names = [f"{each.title}, {each.model}" if several else each.title for each in drawn]
    names = [name if len(name) <= NAME else f"{name[: NAME - 1]}…" for name in names]
    room = max(map(len, names), default=0)
    for axis in dict.fromkeys(map(_axis_of, drawn)):
        own = [(name, each.found) for name, each in zip(names, drawn, strict=True) if _axis_of(each) == axis]
        heading, first, second = axis
        found = [each for _, each in own]
        bottom, top = _ends(found)
        least, most = (_said(end, found[0]).removesuffix(".0") for end in (bottom, top))
        ends = f"{least:<{WIDTH // 2}}{most:>{WIDTH - WIDTH // 2}}"
        yield [(f"{heading:<{room}}  {ends}  ", ""), *_key(first), (" -> ", ""), *_key(second)]
        for name, each in own:
            yield [(f"{name:<{room}}  ", ""), *_drawn(each, bottom, top), (f"  {_told(each)}", "")]
    if len(bars) > MOST:
        yield [(f"{len(bars) - MOST} more with --all or in a page", "")]


def _key(mode: str) -> Line:
    return [(f"{MARKS.get(mode, '○')} {mode}", mode)]


def _axis_of(bar: Bar) -> tuple[str, str, str]:
    """Return what findings on one axis share: the heading of their measure, and the modes."""
    return (bar.heading, *bar.found.conditions)


def _ends(found: Sequence[Finding]) -> tuple[float, float]:
    """Return the ends of an axis that holds all values and intervals; shares end at 100%."""
    reached = [value for each in found for value in (*each.levels, *_between(each))]
    if found[0].kind == "share":
        return min(0.0, *(level for each in found for level in each.levels)), 1.0
    return min(0.0, *reached), end_of_axis(max(*reached, 0.0))


def _between(found: Finding) -> tuple[float, ...]:
    """Return where the second value lies, by the interval of the difference; () without one."""
    return tuple(found.levels[0] + end for end in found.interval) if found.interval else ()


def _drawn(found: Finding, bottom: float, top: float) -> Line:
    def place(value: float) -> int:
        share = (value - bottom) / (top - bottom) if top > bottom else 0.0
        return round(max(0.0, min(1.0, share)) * (WIDTH - 1))

    cells = [("·", "")] * WIDTH
    if between := _between(found):
        for column in range(place(between[0]), place(between[1]) + 1):
            cells[column] = ("─", found.conditions[1])
    for mode, level in zip(found.conditions, found.levels, strict=True):
        cells[place(level)] = (MARKS.get(mode, "○"), mode)
    return cells


def _told(found: Finding) -> str:
    first, second = (_said(level, found) for level in found.levels)
    factor, digits, unit = (100, 0, " points") if found.kind == "share" else (1, 1, "")
    texts = [f"{factor * each:+.{digits}f}" for each in (found.difference, *(found.interval or ()))]
    size, *ends = (text if float(text) else text[1:] for text in texts)
    return f"{first} -> {second}, {size}{unit}" + (f" [{', '.join(ends)}]" if ends else "")


def _said(value: float, found: Finding) -> str:
    return f"{value:.0%}" if found.kind == "share" else f"{value:.1f}"
