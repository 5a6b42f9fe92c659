"""Curves over the course of a conversation: each family's own curve, and the private facts that have come out.

Positions are relative (0 is the start of a conversation, 1 its end, as in the paper's figures 10 and 12) unless a
family's curve has an axis of turns. The report, its page and `localsim plot` draw the same curves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from localsim import families
from localsim.conversation.episode import Subject
from localsim.families import family_of
from localsim.families.base import Curve, Family, Played, Point
from localsim.store.conditions import Condition, condition_of, in_order, names_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.scoring import subjects

Row = dict[str, Any]
Points = list[tuple[float, float]]
BINS = 5
"""Number of parts of a conversation over which values are averaged."""
DISCLOSED = ("disclosed", "Facts disclosed so far", "share of the private facts that their owners have disclosed")


def curves(store: Store, run_id: str, scores: Sequence[Row] | None = None) -> list[Row]:
    """Return rows of family, name, heading, meaning, steps (True for a step function), axis, its end and series.

    Each series has mode, name (of its condition), model, see, side (or ''), n and points (x, y). `scores` are the
    newest scores, if they have been read.
    """
    newest = queries.scores(store, run_id) if scores is None else scores
    drawn = [*_of_families(store, run_id, newest), *_disclosed(store, run_id)]
    for curve in drawn:
        _name(curve["series"])
    return [curve for curve in drawn if curve["series"]]


def _name(series: Sequence[Row]) -> None:
    """Name the series of a curve by their conditions, and replace these by mode, model and see."""
    names = names_of(one["condition"] for one in series)
    for one in series:
        condition = one.pop("condition")
        one |= {"mode": condition.mode, "name": names[condition], "model": condition.model, "see": condition.see}


def steps(positions: list[float], total: int, end: float = 1.0) -> Points:
    """Return the share of `total` reached by each position up to `end`: a distribution that may stay below 1."""
    points: Points = [(0.0, 0.0)]
    for count, position in enumerate(sorted(positions), start=1):
        points.append((position, count / total))
    return [*points, (end, points[-1][1])]


def _series(condition: Condition, n: int, points: Points, side: str = "") -> Row:
    return {"condition": condition, "side": side, "n": n, "points": points}


def _of_families(store: Store, run_id: str, newest: Sequence[Row]) -> Iterator[Row]:
    """Yield the curve of each family of the run."""
    played: dict[Family, list[Subject]] = defaultdict(list)
    for subject in subjects(store, run_id, _reads_turns):
        played[family_of(subject.scenario.family)].append(subject)
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for row in newest:
        if row["value"] is not None:
            given = scores[row["episode_id"]]
            given[row["name"]] = given.get(row["name"], 0.0) + float(row["value"])
    for family, episodes in played.items():
        if family.curve is not None:
            yield _curve(family.name, family.curve, episodes, scores)


def _reads_turns(family: str | None) -> bool:
    curve = family_of(family).curve
    return curve is not None and curve.reads_turns


def _curve(family: str, curve: Curve, episodes: Sequence[Subject], scores: dict[str, dict[str, float]]) -> Row:
    found: dict[Condition, list[Sequence[Point]]] = defaultdict(list)
    for subject in episodes:
        points = curve.points(Played(subject.transcript, subject.answer, scores[subject.episode_id]))
        if points is not None:
            found[condition_of(vars(subject))].append(points)
    limits = [subject.scenario.limits.turns for subject in episodes]
    end = float(max(limits, default=1)) if curve.axis == "turns" else 1.0
    draw = _reached if curve.kind == "reached" else _averaged
    return {
        "family": family,
        "name": curve.name,
        "heading": curve.heading,
        "meaning": curve.meaning,
        "steps": curve.kind == "reached",
        "axis": curve.axis,
        "end": end,
        "series": [series for each in sorted(found, key=in_order) for series in draw(each, found[each], end)],
    }


def _reached(condition: Condition, episodes: list[Sequence[Point]], end: float) -> Iterator[Row]:
    """Yield the share of episodes that have reached their first point by a position."""
    firsts = [min(point.position for point in points) for points in episodes if points]
    yield _series(condition, len(episodes), steps(firsts, len(episodes), end))


def _averaged(condition: Condition, episodes: list[Sequence[Point]], end: float) -> Iterator[Row]:
    """Yield the mean value of each side in each part of the conversation."""
    sides: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for points in episodes:
        for point in points:
            sides[point.side][min(BINS - 1, int(point.position / end * BINS))].append(point.value)
    for side, parts in sorted(sides.items()):
        means = [((number + 0.5) / BINS * end, sum(values) / len(values)) for number, values in sorted(parts.items())]
        yield _series(condition, sum(map(len, parts.values())), means, side)


def _disclosed(store: Store, run_id: str) -> Iterator[Row]:
    """Yield the share of the private facts that their owners have disclosed by a position, for each family."""
    totals: dict[str, dict[Condition, int]] = defaultdict(dict)
    for row in queries.private_facts(store, run_id):
        if row["n"]:
            totals[row["family"]][condition_of(row)] = row["n"]
    positions: dict[tuple[str, Condition], list[float]] = defaultdict(list)
    for row in queries.own_disclosures(store, run_id) if totals else ():
        positions[row["family"], condition_of(row)].append(float(row["position"]))
    name, heading, meaning = DISCLOSED
    for family in families.in_order(totals):
        counts = totals[family]
        series = [
            _series(each, counts[each], steps(positions[family, each], counts[each]))
            for each in sorted(counts, key=in_order)
        ]
        yield {
            "family": family,
            "name": name,
            "heading": heading,
            "meaning": meaning,
            "steps": True,
            "axis": "position",
            "end": 1.0,
            "series": series,
        }
