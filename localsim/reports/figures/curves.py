"""Curves over the course of a conversation: each family's own curve, and the private facts that have come out.

Positions are relative (0 is the start of a conversation, 1 its end, as in the paper's figures 10 and 12) unless a
family's curve has an axis of turns. The report, its page and `localsim plot` draw the same curves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from localsim import families
from localsim.conversation.episode import Subject
from localsim.families import family_of
from localsim.families.base import Curve, Played, Point
from localsim.stats import grouped
from localsim.store.conditions import Condition, condition_of, in_order, names_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.scoring import subjects

Points = list[tuple[float, float]]
BINS = 5
"""Number of parts of a conversation over which values are averaged."""
DISCLOSED = ("disclosed", "Facts disclosed so far", "share of the private facts that their owners have disclosed")


@dataclass(frozen=True)
class Series:
    """The line of one condition, or of one side in it."""

    condition: Condition
    n: int
    points: Points
    side: str = ""
    name: str = ""
    """The name of the condition to show."""
    other_run: str = ""
    """The run that it is of, if that is not the report's own."""
    twin: int | None = None
    """The number of its colour (`figures.draw.numbered`); None before colours are chosen."""

    @property
    def mode(self) -> str:
        """The mode of the condition."""
        return self.condition.mode

    def as_json(self) -> dict[str, Any]:
        """Return a row of `series`."""
        found = {"side": self.side, "n": self.n, "points": self.points, "mode": self.mode, "name": self.name}
        found |= {"model": self.condition.model, "see": self.condition.see}
        found |= {"other_run": self.other_run} if self.other_run else {}
        return found if self.twin is None else {**found, "twin": self.twin}


@dataclass(frozen=True)
class Course:
    """A curve of the conversations of a family."""

    family: str
    name: str
    heading: str
    meaning: str
    steps: bool
    """True for a step function."""
    axis: str
    end: float
    """The end of the axis."""
    series: Sequence[Series]

    def as_json(self) -> dict[str, Any]:
        """Return a row of `curves` in `report --json`."""
        return {**vars(self), "series": [each.as_json() for each in self.series]}


def curves(store: Store, run_id: str, scores: Sequence[queries.Score] | None = None) -> list[Course]:
    """Return the curves of a run; `scores` are the newest scores, if they have been read."""
    newest = queries.scores(store, run_id) if scores is None else scores
    found = []
    for course in (*_of_families(store, run_id, newest), *_disclosed(store, run_id)):
        names = names_of(each.condition for each in course.series)
        named = [replace(each, name=names[each.condition]) for each in course.series]
        found += [replace(course, series=named)] if named else []
    return found


def steps(positions: list[float], total: int, end: float = 1.0) -> Points:
    """Return the share of `total` reached by each position up to `end`: a distribution that may stay below 1."""
    points: Points = [(0.0, 0.0)]
    for count, position in enumerate(sorted(positions), start=1):
        points.append((position, count / total))
    return [*points, (end, points[-1][1])]


def _of_families(store: Store, run_id: str, newest: Sequence[queries.Score]) -> Iterator[Course]:
    found = subjects(store, run_id, _reads_turns)
    played = grouped((family_of(subject.scenario.family), subject) for subject in found)
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for row in newest:
        if row.value is not None:
            given = scores[row.episode_id]
            given[row.name] = given.get(row.name, 0.0) + row.value
    for family, episodes in played.items():
        if family.curve is not None:
            yield _curve(family.name, family.curve, episodes, scores)


def _reads_turns(family: str | None) -> bool:
    curve = family_of(family).curve
    return curve is not None and curve.reads_turns


def _curve(family: str, curve: Curve, episodes: Sequence[Subject], scores: dict[str, dict[str, float]]) -> Course:
    pointed = (
        (condition_of(vars(each)), curve.points(Played(each.transcript, each.answer, scores[each.episode_id])))
        for each in episodes
    )
    found = grouped((condition, points) for condition, points in pointed if points is not None)
    limits = [subject.scenario.limits.turns for subject in episodes]
    end = float(max(limits, default=1)) if curve.axis == "turns" else 1.0
    draw = _reached if curve.kind == "reached" else _averaged
    series = [each for condition in sorted(found, key=in_order) for each in draw(condition, found[condition], end)]
    reached = curve.kind == "reached"
    return Course(family, curve.name, curve.heading, curve.meaning, reached, curve.axis, end, series)


def _reached(condition: Condition, episodes: list[Sequence[Point]], end: float) -> Iterator[Series]:
    """Yield the share of episodes that have reached their first point by a position."""
    firsts = [min(point.position for point in points) for points in episodes if points]
    yield Series(condition, len(episodes), steps(firsts, len(episodes), end))


def _averaged(condition: Condition, episodes: list[Sequence[Point]], end: float) -> Iterator[Series]:
    """Yield the mean value of each side in each part of the conversation."""
    sides: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for points in episodes:
        for point in points:
            sides[point.side][min(BINS - 1, int(point.position / end * BINS))].append(point.value)
    for side, parts in sorted(sides.items()):
        means = [((number + 0.5) / BINS * end, sum(values) / len(values)) for number, values in sorted(parts.items())]
        yield Series(condition, sum(map(len, parts.values())), means, side)


def _disclosed(store: Store, run_id: str) -> Iterator[Course]:
    """Yield the share of the private facts that their owners have disclosed by a position, for each family."""
    totals = queries.private_facts(store, run_id)
    positions = queries.own_disclosures(store, run_id) if totals else {}
    for family in families.in_order(dict.fromkeys(name for name, _ in totals)):
        keys = sorted((key for key in totals if key[0] == family), key=lambda key: in_order(key[1]))
        series = [Series(key[1], totals[key], steps(positions.get(key, []), totals[key])) for key in keys]
        yield Course(family, *DISCLOSED, steps=True, axis="position", end=1.0, series=series)
