"""The paper's figures with our conditions: the paper's values left in grey, ours right in colour with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from localsim.reports.figures import draw
from localsim.reports.paper.published import CONDITIONS, GPT

Row = dict[str, Any]


def drawn(data: Row) -> Iterator[tuple[str, Any]]:
    """Yield name and figure of each panel of `beside.as_json` that has a value of ours."""
    modes = {name: each["mode"] for name, each in data["conditions"].items()}
    colours = {name: draw.colour_of(modes[name], number) for name, number in draw.numbered(modes).items()}
    for panel in data["panels"]:
        if panel["key"] == "histogram":
            if panel["counts"]:
                yield panel["key"], _histograms(panel["counts"], colours)
            continue
        groups = _groups(panel)
        if groups:
            yield panel["key"], _panel(panel, groups, colours)


def _groups(panel: Row) -> list[tuple[str, list[Row], list[Row]]]:
    """Return (quantity, the paper's rows, our rows) for each quantity and instrument that we have."""
    mine = [row for row in panel["rows"] if row["ours"] and row["values"]]
    theirs = [row for row in panel["rows"] if not row["ours"] and row["values"] and row["by"].endswith(GPT)]
    if panel["key"] == "naturalness":
        return [("chosen as more natural", theirs, mine)] if mine else []
    return [
        (row["what"], [each for each in theirs if each["what"] == row["what"]], [row])
        for row in mine
        if panel["key"] != "dimensions" or "," not in row["what"]
    ]


def _panel(panel: Row, groups: Sequence[tuple[str, list[Row], list[Row]]], colours: Mapping[str, str]) -> Any:
    """Draw a row of two axes for each quantity."""
    natural = panel["key"] == "naturalness"
    sides = [[_bars(rows, natural) for rows in group[1:]] for group in groups]
    figure, axes = draw.grid([0.42 * max(1, *map(len, pair)) + 1.1 for pair in sides])
    for row, (name, _, mine) in enumerate(groups):
        left, right = axes[row]
        by = "here" if natural else mine[0]["by"]
        end = 1.0 if panel["share"] else 10.0 if panel["key"] == "goal" else None
        _draw(left, sides[row][0], {}, end)
        left.set_title(f"{name}: paper, {GPT}" if sides[row][0] else "paper: no number", fontsize=10, loc="left")
        shares = panel["share"] or all(each.get("share") for each in mine)
        _draw(right, sides[row][1], colours, 1.0 if shares else end)
        right.set_title(f"{name}: {by}", fontsize=10, loc="left")
        right.set_xlabel("share of conversations" if shares and not natural else "", fontsize=9)
    figure.suptitle(f"{panel['heading']} (paper: {panel['places']}); our intervals: 95% over scenarios", fontsize=11)
    return figure


def _bars(rows: Sequence[Row], natural: bool) -> list[tuple[str, str, Row]]:
    """Return (label, condition, value) for each bar, in the order of the paper's conditions."""
    found = []
    several = len({row["by"] for row in rows}) > 1
    for row in rows:
        for name in sorted(row["values"], key=lambda each: CONDITIONS.index(each) if each in CONDITIONS else 99):
            label = row["what"] if natural else name
            found.append((f"{label}\n{row['by']}" if several else label, name, row["values"][name]))
    return found


def _draw(axes: Any, bars: Sequence[tuple[str, str, Row]], colours: Mapping[str, str], end: float | None) -> None:
    """Draw values with intervals on an axis up to `end`; the paper's, which have no colour here, in grey."""
    for place, (_, condition, value) in enumerate(bars):
        low, high = value["low"], value["high"]
        error = None
        if low is not None and high is not None:
            error = [[max(0.0, value["value"] - low)], [max(0.0, high - value["value"])]]
        colour = colours.get(condition, draw.PAPER)
        hatch = "//" if value["how"] in ("figure", "rebuilt") else None
        axes.barh(place, value["value"], xerr=error, color=colour, capsize=3, height=0.62, hatch=hatch)
    axes.set_yticks(range(len(bars)), [label for label, _, _ in bars], fontsize=9)
    axes.invert_yaxis()
    if end is not None:
        axes.set_xlim(0, end)


def _histograms(counts: Mapping[str, Sequence[int]], colours: Mapping[str, str]) -> Any:
    """Draw the positions of first mentions, one axis for each condition."""
    figure, axes = draw.grid([1.5] * len(counts), columns=1)
    for row, (name, bars) in enumerate(counts.items()):
        here, width = axes[row][0], 1 / len(bars)
        places = [number * width for number in range(len(bars))]
        here.bar(places, bars, width=width * 0.9, align="edge", color=colours[name])
        here.set(xlim=(0, 1), ylabel="conversations")
        here.set_title(f"{name}, {sum(bars)} conversations", fontsize=10, loc="left")
    axes[-1][0].set_xlabel("position of the first mention (0 start, 1 end)")
    figure.suptitle("When the friend is first named (paper: Figure 12, bars without numbers)", fontsize=11)
    return figure
