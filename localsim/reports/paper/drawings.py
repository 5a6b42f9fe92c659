"""The paper's figures with our conditions: the paper's values left in grey, ours right in colour with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from localsim.reports.figures import draw
from localsim.reports.paper.beside import Compared, Shown, compared
from localsim.reports.paper.published import CONDITIONS, GPT, Quantity
from localsim.store.conditions import Condition
from localsim.store.database import Store

Group = tuple[str, list[Quantity], list[Quantity]]
"""A quantity, with the paper's lines and ours."""


def figures(
    store: Store, conditions: Sequence[Condition], folder: Path, forms: Iterable[str] = ("svg", "png")
) -> list[Path]:
    """Write each panel as a figure, the paper's values left and ours right, and return the files.

    Raises InvalidInput without matplotlib.
    """
    draw.ready()
    made = drawn(compared(store, conditions))
    return draw.save([(f"paper_{name}", figure) for name, figure in made], folder, tuple(forms))


def drawn(data: Compared) -> Iterator[tuple[str, Any]]:
    """Yield name and figure of each panel that has a value of ours."""
    modes = {name: each.mode for name, each in data.conditions.items()}
    colours = {name: draw.colour_of(modes[name], number) for name, number in draw.numbered(modes).items()}
    for shown in data.panels:
        if shown.counts:
            yield shown.panel.key, _histograms(shown.counts, colours)
        elif groups := _groups(shown):
            yield shown.panel.key, _panel(shown, groups, colours)


def _groups(shown: Shown) -> list[Group]:
    """Return a group for each quantity and instrument that we have."""
    mine = [line for line in shown.lines if line.ours and line.values]
    theirs = [line for line in shown.lines if not line.ours and line.values and line.by == GPT]
    if shown.panel.key == "naturalness":
        return [("chosen as more natural", theirs, mine)] if mine else []
    return [
        (line.what, [each for each in theirs if each.what == line.what], [line])
        for line in mine
        if shown.panel.key != "dimensions" or "," not in line.what
    ]


def _panel(shown: Shown, groups: Sequence[Group], colours: Mapping[str, str]) -> Any:
    """Draw a row of two axes for each quantity."""
    panel, natural = shown.panel, shown.panel.key == "naturalness"
    counts = [[sum(len(line.values) for line in side) for side in group[1:]] for group in groups]
    figure, axes = draw.grid([0.42 * max(1, *pair) + 1.1 for pair in counts])
    end = 1.0 if panel.share else 10.0 if panel.key == "goal" else None
    for (left, right), (name, theirs, mine) in zip(axes, groups, strict=True):
        _draw(left, theirs, natural, {}, end)
        left.set_title(f"{name}: {GPT}" if theirs else "paper: no number", fontsize=10, loc="left")
        shares = all(map(shown.share, mine))
        _draw(right, mine, natural, colours, 1.0 if shares else end)
        right.set_title(f"{name}: {'here' if natural else mine[0].by}", fontsize=10, loc="left")
        right.set_xlabel("share of conversations" if shares and not natural else "", fontsize=9)
    figure.suptitle(f"{panel.heading} (paper: {panel.places}); our intervals: 95% over scenarios", fontsize=11)
    return figure


def _draw(axes: Any, lines: Sequence[Quantity], natural: bool, colours: Mapping[str, str], end: float | None) -> None:
    """Draw values with intervals on an axis up to `end`; the paper's, which have no colour here, in grey.

    Bars are in the order of the paper's conditions.
    """
    labels: list[str] = []
    several = len({line.by for line in lines}) > 1
    for line in lines:
        for name in sorted(line.values, key=lambda each: CONDITIONS.index(each) if each in CONDITIONS else 99):
            value, low, high, _ = line.values[name]
            error = None
            if value is not None and low is not None and high is not None:
                error = [[max(0.0, value - low)], [max(0.0, high - value)]]
            colour, hatch = colours.get(name, draw.PAPER), "//" if name in line.how else None
            axes.barh(len(labels), value, xerr=error, color=colour, capsize=3, height=0.62, hatch=hatch)
            labels.append((line.what if natural else name) + (f"\n{line.by}" if several else ""))
    axes.set_yticks(range(len(labels)), labels, fontsize=9)
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
