"""The first picture of a report: the primary outcome of every scenario, from one mode to the other.

A thin line is one scenario, and the marks are means with 95% intervals. Omniscience that helps shows as lines that go
one way; a null as lines that go both ways.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from xml.sax.saxutils import escape

from localsim import stats
from localsim.conversation.measures import Measure
from localsim.families import family_of, title_of
from localsim.families.base import SUCCESS
from localsim.models.registry import labelled
from localsim.reports.comparison import one_story, values_of
from localsim.reports.evidence import playing
from localsim.reports.figures.draw import colour_of
from localsim.reports.measures import measures_of, sided
from localsim.reports.validity.findings import scenarios
from localsim.runs.plan import CONTRASTS, Outcome, primary_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.reports import Episode, PlayVerdict, Score
from localsim.store.queries.runs import run_row
from localsim.store.queries.stories import stories as stories_of

WIDTH, HEIGHT = 300, 180
_TOP, _BOTTOM = 40.0, 154.0
_SIDES = (96.0, 204.0)
"""Where the two modes stand."""
INSTEAD = "turns"
"""The measure of pictures whose outcome, success, is 100% throughout."""
_SHAPES = {"agents": "circle", "script": "triangle"}
"""Mark of a mode; all others have a square."""


@dataclass(frozen=True)
class Paired:
    """The primary outcome of a family and model in two modes, scenario by scenario."""

    family: str
    model: str
    measure: Measure
    modes: tuple[str, str]
    lines: Sequence[tuple[float, float]]
    """The mean of each scenario in the first and the second mode."""
    levels: tuple[stats.Estimate, stats.Estimate]
    """The means of both modes over all pairs."""
    difference: stats.Paired
    """Second minus first."""
    variants: bool = False
    """True if its scenarios are variants or castings of one."""
    run_id: str = ""
    shown: bool = False
    """True if the run is named, because another picture has the same model."""

    @property
    def amount(self) -> str:
        """The difference with its interval, such as `turns: −3.6 [−4.9, −2.3]`."""
        value, low, high = self.difference.difference, self.difference.low, self.difference.high
        unit = " points" if self.measure.kind == "share" else ""
        between = "" if low is None or high is None else f" [{self._signed(low)}, {self._signed(high)}]"
        return f"{self.measure.heading}: {self._signed(value)}{unit}{between}"

    @property
    def _drawn(self) -> list[float]:
        ends = [end for level in self.levels for end in level[:3] if end is not None]
        return [*(value for line in self.lines for value in line), *ends]

    @property
    def least(self) -> float:
        """The least value to be drawn, at most 0."""
        return min(0.0, *self._drawn)

    @property
    def most(self) -> float:
        """The greatest value to be drawn."""
        return max(self._drawn)

    def said(self, value: float) -> str:
        """A value of the measure as it is printed."""
        return f"{value:.0%}" if self.measure.kind == "share" else f"{value:.1f}"

    def _signed(self, value: float) -> str:
        text = f"{100 * value:+.0f}" if self.measure.kind == "share" else f"{value:+.1f}"
        return text[1:] if not float(text) else text.replace("-", "−")


def of_runs(store: Store, runs: Sequence[str]) -> list[Paired]:
    """Return the pictures of runs, by family and then in the order of the runs; the first run names the outcome.

    What has no pairs of the two modes has no picture, and neither has a model whose talks do not play. Success of 100%
    throughout says nothing, so its pictures show turns.
    """
    outcome = primary_of(run_row(store, runs[0])["plan_json"])
    found = _of_outcome(store, runs, outcome)
    if outcome.key == SUCCESS.key and all(value == 1 for each in found for line in each.lines for value in line):
        found = _of_outcome(store, runs, outcome._replace(key=INSTEAD))
    families = list(dict.fromkeys(each.family for each in found))
    several = Counter((each.family, each.model) for each in found)
    found = [replace(each, shown=several[each.family, each.model] > 1) for each in found]
    return sorted(found, key=lambda each: families.index(each.family))


def _of_outcome(store: Store, runs: Sequence[str], outcome: Outcome) -> list[Paired]:
    return [each for own in by_run(store, dict.fromkeys(runs, outcome)).values() for each in own]


@dataclass
class _Run:
    """What the pictures of a run are made from."""

    played: list[Episode] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)
    talks: list[PlayVerdict] = field(default_factory=list)


def by_run(store: Store, outcomes: Mapping[str, Outcome]) -> dict[str, list[Paired]]:
    """Return the pictures of many runs in few queries, given the primary outcome of each."""
    runs = {run_id: _Run() for run_id in outcomes}
    for row in queries.episodes(store, *runs):
        runs[row.run_id].played.append(row)
    for talk in playing.talks_of(store, *runs):
        runs[talk.run_id].talks.append(talk)
    _read_scores(store, {key for key, _ in outcomes.values()}, runs)
    return {run_id: list(_of_run(store, run_id, *outcomes[run_id], read)) for run_id, read in runs.items()}


def _read_scores(store: Store, keys: set[str], runs: Mapping[str, _Run]) -> None:
    """Read the newest scores of each run that the measures `keys` need."""
    families = dict.fromkeys(row.family for read in runs.values() for row in read.played)
    every = [*measures_of(families), *(each for name in families for each in family_of(name).measures)]
    needed = [each for each in every if each.key in keys]
    if {each.key for each in needed} != keys or any(each.side is not None for each in needed):
        for run_id, read in runs.items():  # a measure of an installed evaluator, or of one side
            read.scores = sided(store, run_id)
        return
    of_episode = {row.episode_id: read.scores for read in runs.values() for row in read.played}
    names = {name for each in needed for name in (each.score, each.per, each.up_to) if name}
    for score in queries.scores(store, *runs, names=sorted(names)):
        of_episode.get(score.episode_id, []).append(score)  # an episode can have ended since they were read


def _of_run(store: Store, run_id: str, key: str, contrast: str, read: _Run) -> Iterator[Paired]:
    stories = stories_of(store, run_id)
    modes, withheld = CONTRASTS[contrast], playing.Playing(tuple(playing.cells_of(read.talks))).withheld
    for family, measure, by_condition in values_of(store, [run_id], read.scores, key, read.played):
        plain = (each for each in by_condition if each.name == each.mode)  # without grants
        named = {(each.mode, each.model): by_condition[each] for each in plain}
        for model in dict.fromkeys(model for _, model in named):
            one, other = (named.get((mode, model), {}) for mode in modes)
            pair = stats.grouped((unit[0], (one[unit], other[unit])) for unit in sorted(one.keys() & other.keys()))
            if (family, model) not in withheld and pair:
                drawn = _made(family, model, measure, modes, pair)
                yield replace(drawn, variants=one_story(pair, stories), run_id=run_id)


def _made(
    family: str, model: str, measure: Measure, modes: tuple[str, str], pair: Mapping[str, Sequence[tuple[float, float]]]
) -> Paired:
    """Return the picture of the pairs of each scenario, of which there is one at least."""
    changes = {name: [second - first for first, second in own] for name, own in pair.items()}
    difference = stats.paired(changes, measure.bounds, measure.is_number)
    assert difference is not None
    lines = {name: (fmean(one for one, _ in own), fmean(two for _, two in own)) for name, own in pair.items()}
    first, second = (
        stats.clustered({name: [line[side]] for name, line in lines.items()}, measure.bounds, measure.is_number)
        for side in (0, 1)
    )
    return Paired(family, model, measure, modes, list(lines.values()), (first, second), difference)


# ---- drawing -------------------------------------------------------------------------------------------------------


def panels(found: Sequence[Paired]) -> Iterator[tuple[str, list[str]]]:
    """Yield the title of each family with its pictures, which share an axis."""
    for family in dict.fromkeys(each.family for each in found):
        own = [each for each in found if each.family == family]
        ends = min(each.least for each in own), top_of(own)
        drawn = [svg(each, f"pair-{family}-{number}", ends) for number, each in enumerate(own)]
        yield title_of(family_of(family)), drawn


def poster(found: Sequence[Paired]) -> str:
    """Return all pictures as one SVG file on white, a row for each family with its title."""
    rows = list(panels(found))
    width = max(len(drawn) for _, drawn in rows) * (WIDTH + 24) + 24
    height = len(rows) * (HEIGHT + 44) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<style>.tick{{fill:#555d68}}</style><rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for row, (title, drawn) in enumerate(rows):
        y = row * (HEIGHT + 44) + 24
        parts.append(f'<text x="24" y="{y}" font-family="Georgia,serif" font-size="18">{escape(title)}</text>')
        for column, picture in enumerate(drawn):
            place = f'<svg x="{column * (WIDTH + 24) + 24}" y="{y + 14}" width="{WIDTH}" height="{HEIGHT}" '
            parts.append(picture.replace("<svg ", place, 1))
    return "\n".join([*parts, "</svg>\n"])


def top_of(found: Sequence[Paired]) -> float:
    """Return the end of the axis on which several pictures can be compared: 1 for shares, else a round number."""
    return end_of_axis(max(each.most for each in found)) if found[0].measure.kind == "number" else 1.0


def end_of_axis(most: float) -> float:
    """Return the round number at or above the greatest value of an axis."""
    size = 10.0 ** math.floor(math.log10(most)) if most > 0 else 1.0
    return next((step * size for step in (1, 2, 4, 6, 8, 10) if step * size >= most), 10 * size)


def svg(found: Paired, name: str = "pair", ends: tuple[float, float] | None = None) -> str:
    """Return one picture as SVG, for a page or a file; `name` starts its ids, `ends` are those of the axis."""
    least, top = ends or (found.least, top_of([found]))

    def y(value: float) -> float:
        return _BOTTOM - (value - least) / (top - least) * (_BOTTOM - _TOP)

    model = labelled(found.model, whole=False) + (f", {found.run_id}" if found.shown else "")
    title = f"{title_of(family_of(found.family))}: {found.measure.heading}, {model}"
    over = scenarios(len(found.lines), variants=found.variants)
    told = (
        f"{found.modes[0]} {found.said(found.levels[0].value or 0)}, {found.modes[1]} "
        f"{found.said(found.levels[1].value or 0)}; difference in {found.amount} over {over}"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="pair" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-labelledby="{name}-t {name}-d" font-family="system-ui,sans-serif" font-size="13">',
        f'<title id="{name}-t">{escape(title)}</title><desc id="{name}-d">{escape(told)}</desc>',
        f'<text x="0" y="12" font-weight="600">{escape(model)}</text>',
        f'<text x="0" y="28" class="tick">{escape(found.amount)}</text>',
        *(_axis(y(value), found.said(value).removesuffix(".0")) for value in (least, (least + top) / 2, top)),
        *(_line(y(one), y(two), count) for (one, two), count in Counter(found.lines).items()),
        *(
            _mark(x, mode, level, y, found.said(level.value or 0), side)
            for side, (x, mode, level) in enumerate(zip(_SIDES, found.modes, found.levels, strict=True))
        ),
        "</svg>",
    ]
    return "\n".join(parts)


def small(found: Paired, ends: tuple[float, float]) -> str:
    """Return the two means with their intervals as a line of a list; the numbers stand beside it as text."""

    def x(value: float) -> float:
        return 8 + (value - ends[0]) / (ends[1] - ends[0]) * 144

    one, two = (x(level.value or 0) for level in found.levels)
    parts = [f'<path d="M{one:.1f} 8L{two:.1f} 24" stroke="var(--quiet,#555d68)" fill="none"/>']
    for y, mode, level in zip((8, 24), found.modes, found.levels, strict=True):
        colour = f"var(--{mode},{colour_of(mode)})"
        whisker = ""
        if level.low is not None and level.high is not None:
            whisker = f'<path d="M{x(level.low):.1f} {y}H{x(level.high):.1f}" stroke="{colour}" stroke-width="2.5"/>'
        parts.append(f'<g fill="{colour}">{whisker}{_shape(mode, x(level.value or 0), y)}</g>')
    return f'<svg class="small" viewBox="0 0 160 32" aria-hidden="true">{"".join(parts)}</svg>'


def _shape(mode: str, x: float, y: float) -> str:
    return {
        "circle": f'<circle cx="{x:.1f}" cy="{y:.1f}" r="7"/>',
        "triangle": f'<path d="M{x:.1f} {y + 8:.1f}l8 -14h-16z"/>',
    }.get(_SHAPES.get(mode, ""), f'<rect x="{x - 6.5:.1f}" y="{y - 6.5:.1f}" width="13" height="13"/>')


def _axis(y: float, text: str) -> str:
    return (
        f'<path d="M40 {y:.1f}H270" fill="none" stroke="var(--grid,#e3e7eb)"/>'
        f'<text class="tick" x="34" y="{y + 4:.1f}" text-anchor="end" font-size="11">{escape(text)}</text>'
    )


def _line(one: float, two: float, count: int) -> str:
    """A line of one scenario, or of several that have the same values: as wide as they are many."""
    return (
        f'<path d="M{_SIDES[0]} {one:.1f}L{_SIDES[1]} {two:.1f}" fill="none" stroke="var(--quiet,#555d68)" '
        f'stroke-opacity=".45" stroke-linecap="round" stroke-width="{min(12.0, 1.2 * count):.1f}"/>'
    )


def _mark(x: float, mode: str, level: stats.Estimate, y: Callable[[float], float], text: str, side: int) -> str:
    colour = f"var(--{mode},{colour_of(mode)})"
    at = y(level.value or 0.0)
    whisker = ""
    if level.low is not None and level.high is not None:
        ends = f"M{x} {y(level.low):.1f}V{y(level.high):.1f}"
        whisker = f'<path d="{ends}" stroke="{colour}" stroke-width="3" fill="none"/>'
    place, anchor = (x - 14, "end") if side == 0 else (x + 14, "start")
    return (
        f'<g fill="{colour}">{whisker}{_shape(mode, x, at)}</g>'
        f'<text x="{place}" y="{at + 5:.1f}" text-anchor="{anchor}" font-weight="700">{escape(text)}</text>'
        f'<text x="{x}" y="175" text-anchor="middle" font-weight="600"><tspan fill="{colour}">{mode}</tspan></text>'
    )
