"""Our conditions beside the paper's: what is compared, as values, Markdown tables and figures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localsim.annotation.agreement import agreement
from localsim.annotation.items import Selection
from localsim.reports.compose.beside import noted
from localsim.reports.figures import draw
from localsim.reports.paper import ours, published
from localsim.reports.paper.ours import RULES, differences
from localsim.reports.paper.published import CONDITIONS, GPT, MARKS, PANELS, Panel, Quantity
from localsim.reports.validity.judges import rates_between
from localsim.stats import Estimate
from localsim.store.conditions import Condition, names_of
from localsim.store.database import Store

Pair = tuple[Condition, Condition]
_PREFERRED = ("script", "mindreaders", "agents-ft", "agents-ft-agents", "agents-ft-half", "agents-ft-clean")
"""The first condition of a pair whose naturalness is compared, where both are in it."""


@dataclass(frozen=True)
class Shown:
    """A panel of the paper with its lines and ours."""

    panel: Panel
    lines: Sequence[Quantity]
    apart: Sequence[str]
    """Names of the differences of task that it has."""
    counts: Mapping[str, Sequence[int]]
    """Bars of a histogram by condition; empty for all other panels."""

    def differs(self, line: Quantity) -> list[str]:
        """Return the differences between a line of ours and the paper; a judge scores on the paper's scale."""
        return [name for name in self.apart if line.ours and (name != "scale" or line.by == RULES)]

    def share(self, line: Quantity) -> bool:
        """Return True if the values of a line are printed as percentages."""
        return self.panel.share or line.share


@dataclass(frozen=True)
class Compared:
    """The paper's panels with our conditions."""

    panels: Sequence[Shown]
    differences: Mapping[str, tuple[str, str]]
    """Name -> (the paper, here)."""
    conditions: Mapping[str, Condition]


def compared(store: Store, conditions: Sequence[Condition], failed: Collection[str] = ()) -> Compared:
    """Return the panels, the differences of task, and the conditions by the names of their columns.

    A condition stands in the paper's column of its label or mode: agents, mindreaders, script, agents-ft. Others have
    columns of their own. The scores of `failed` judges are left out.
    """
    names = column_names(conditions)
    found = ours.read(store, names)
    judges = [judge for judge in ours.judges_of(found) if judge not in failed]
    apart = differences(store, conditions, judges)
    lines = [*published.ROWS, *ours.lines(found, judges), *_natural(store, conditions, names)]
    panels = [
        Shown(
            panel,
            [line for line in lines if line.panel == panel.key],
            [name for name in panel.differs if name in apart],
            ours.histogram(found) if panel.key == "histogram" else {},
        )
        for panel in PANELS
    ]
    return Compared(panels, apart, {name: each for each, name in names.items()})


def column_names(conditions: Sequence[Condition]) -> dict[Condition, str]:
    """Return the names of columns: the label, or the mode with its grants if no other condition has this name.

    Conditions of constructed controls are marked, and do not stand in a column of the paper.
    """
    shortest = names_of(conditions)
    plain = [each.label or each.name for each in conditions]
    return {
        each: noted(name if plain.count(name) == 1 else shortest[each], each.model)
        for each, name in zip(conditions, plain, strict=True)
    }


# ---- naturalness ---------------------------------------------------------------------------------------------------


def natural_pairs(conditions: Sequence[Condition], names: Mapping[Condition, str]) -> list[Pair]:
    """Return the pairs of conditions whose naturalness is compared: every two, in the paper's order."""

    def place(condition: Condition) -> int:
        name = names[condition]
        return _PREFERRED.index(name) if name in _PREFERRED else len(_PREFERRED) + (name == "agents")

    ordered = sorted(conditions, key=place)
    return [(one, other) for number, one in enumerate(ordered) for other in ordered[number + 1 :]]


def _natural(store: Store, conditions: Sequence[Condition], names: Mapping[Condition, str]) -> Iterator[Quantity]:
    """Yield the choices of judges and of raters; each value belongs to the first condition of a pair."""
    pairs = natural_pairs(conditions, names)
    for rate in rates_between(store, pairs) if pairs else ():
        one, other = (names[Condition(**each)] for each in (rate.first_condition, rate.second_condition))
        chosen = Estimate(None if rate.warning else rate.first_chosen, rate.low, rate.high, rate.decided)
        remark = f"{rate.decided} pairs, orders agree in {rate.orders_agree:.0%}"
        remark += f"; {rate.warning}" if rate.warning else ""
        yield _choice(f"judge {rate.judge}", one, other, chosen, remark)
    runs = tuple(dict.fromkeys(each.run_id for each in conditions))
    selected = Selection(runs, frozenset(conditions), frozenset(frozenset(pair) for pair in pairs))
    found = agreement(store, selected, names=names).pairs if runs else None
    order = {(names[one], names[other]) for one, other in pairs}
    kinds = " and ".join(f"{n} {kind}" for kind, n in found.kinds.items()) if found else ""
    for row in found.rates if found else ():
        one, other = row.first, row.second
        chosen = Estimate(row.first_chosen, row.low, row.high, row.decided)
        if (one, other) not in order:  # the share that chose the second of the two
            value, high, low = (None if end is None else 1 - end for end in chosen[:3])
            one, other, chosen = other, one, Estimate(value, low, high, chosen.n)
        remark = f"{kinds}; {row.decided} judgements on {row.scenarios} scenarios; {row.ties} ties"
        yield _choice("raters", one, other, chosen, remark)


def _choice(by: str, one: str, other: str, chosen: Estimate, remark: str) -> Quantity:
    values = {} if chosen.value is None else {one: chosen}
    return Quantity("naturalness", f"{one} over {other}", f"here, {by}", "", values, remark=remark)


# ---- Markdown ------------------------------------------------------------------------------------------------------


def markdown(data: Compared) -> list[str]:
    """Return the panels and the differences as lines of Markdown."""
    lines = []
    for shown in data.panels:
        lines += [f"### {shown.panel.heading} (paper: {shown.panel.places})", "", *_table(shown), ""]
        if bars := len(next(iter(shown.counts.values()), ())):
            heads = ["first named from", *(f"{number / bars:.1f}" for number in range(bars))]
            counts = ([f"{name}, conversations", *map(str, own)] for name, own in shown.counts.items())
            lines += [*_rows(heads, counts), ""]
    lines += [
        "† read off a bar without a label. ‡ rebuilt: the paper's Table 2 prints its columns in another order than its "
        "text says. No number of Figure 3 is in the sources used here. Brackets: 95% intervals over scenarios. The "
        "paper's values are references, not targets.",
        "",
        *_rows(["differs in", "paper", "here"], ([name, *map(_cell, both)] for name, both in data.differences.items())),
    ]
    return lines


def _rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table of Markdown."""
    return [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *(f"| {' | '.join(row)} |" for row in rows)]


def _table(shown: Shown) -> list[str]:
    lines = shown.lines
    if shown.panel.key == "dimensions" and not any(line.ours for line in lines):
        lines = [line for line in lines if "," not in line.what]  # the parts are for comparison with ours
    given = {name for line in lines for name in line.values}
    names = [name for name in published.CONDITIONS if name in given]
    names += sorted(given - set(names))
    rows = []
    for line in lines:
        cells = [_number(line, name, shown.share(line)) if name in line.values else "" for name in names]
        place = "; ".join(part for part in (line.place, line.remark) if part)
        rows.append([_cell(line.by), line.what, *cells, place, ", ".join(shown.differs(line))])
    return _rows(["", "", *names, "where, and remarks", "differs in"], rows)


def _number(line: Quantity, name: str, share: bool) -> str:
    value, low, high, _ = line.values[name]
    form = ".0%" if share else ".2f"
    ends = "" if low is None or high is None else f" [{low:{form}}, {high:{form}}]"
    return f"{value:{form}}{MARKS[line.how.get(name, 'printed')]}{ends}"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


# ---- figures ---------------------------------------------------------------------------------------------------------


Group = tuple[str, list[Quantity], list[Quantity]]
"""A quantity, with the paper's lines and ours."""


def figures(data: Compared, folder: Path, forms: Sequence[str] = ("svg", "png")) -> list[Path]:
    """Write each panel as a figure, the paper's values left and ours right, and return the files.

    Raises InvalidInput without matplotlib.
    """
    draw.ready()
    return draw.save([(f"paper_{name}", figure) for name, figure in drawn(data)], folder, forms)


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
