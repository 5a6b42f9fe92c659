"""Curves over the course of a conversation: each family's own curve, and the private facts that have come out.

Positions are relative (0 is the start of a conversation, 1 its end, as in the paper's figures 10 and 12) unless a
family's curve has an axis of turns. The report, its page and `localsim plot` draw the same curves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from localsim.conversation.episode import CONDITIONS, Subject
from localsim.families import family_of
from localsim.families.base import Curve, Family, Played, Point
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

    Each series has mode, side (or ''), n and points (x, y). `scores` are the newest scores, if they have been read.
    """
    newest = queries.scores(store, run_id) if scores is None else scores
    drawn = [*_of_families(store, run_id, newest), *_disclosed(store, run_id)]
    return [curve for curve in drawn if curve["series"]]


def steps(positions: list[float], total: int, end: float = 1.0) -> Points:
    """Return the share of `total` reached by each position up to `end`: a distribution that may stay below 1."""
    points: Points = [(0.0, 0.0)]
    for count, position in enumerate(sorted(positions), start=1):
        points.append((position, count / total))
    return [*points, (end, points[-1][1])]


def _series(mode: str, n: int, points: Points, side: str = "") -> Row:
    return {"mode": mode, "side": side, "n": n, "points": points}


def _ordered(modes: Iterable[str]) -> list[str]:
    return sorted(modes, key=lambda mode: [*CONDITIONS].index(mode))  # type: ignore[arg-type]  # stored modes are modes


def _of_families(store: Store, run_id: str, newest: Sequence[Row]) -> Iterator[Row]:
    """Yield the curve of each family of the run."""
    played: dict[Family, list[Subject]] = defaultdict(list)
    for subject in subjects(store, run_id):
        played[family_of(subject.scenario.family)].append(subject)
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for row in newest:
        if row["value"] is not None:
            given = scores[row["episode_id"]]
            given[row["name"]] = given.get(row["name"], 0.0) + float(row["value"])
    for family, episodes in played.items():
        if family.curve is not None:
            yield _curve(family.name, family.curve, episodes, scores)


def _curve(family: str, curve: Curve, episodes: Sequence[Subject], scores: dict[str, dict[str, float]]) -> Row:
    by_mode: dict[str, list[Sequence[Point]]] = defaultdict(list)
    for subject in episodes:
        points = curve.points(Played(subject.transcript, subject.answer, scores[subject.episode_id]))
        if points is not None:
            by_mode[subject.mode].append(points)
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
        "series": [series for mode in _ordered(by_mode) for series in draw(mode, by_mode[mode], end)],
    }


def _reached(mode: str, episodes: list[Sequence[Point]], end: float) -> Iterator[Row]:
    """Yield the share of episodes that have reached their first point by a position."""
    firsts = [min(point.position for point in points) for points in episodes if points]
    yield _series(mode, len(episodes), steps(firsts, len(episodes), end))


def _averaged(mode: str, episodes: list[Sequence[Point]], end: float) -> Iterator[Row]:
    """Yield the mean value of each side in each part of the conversation."""
    sides: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for points in episodes:
        for point in points:
            sides[point.side][min(BINS - 1, int(point.position / end * BINS))].append(point.value)
    for side, parts in sorted(sides.items()):
        means = [((number + 0.5) / BINS * end, sum(values) / len(values)) for number, values in sorted(parts.items())]
        yield _series(mode, sum(map(len, parts.values())), means, side)


def _disclosed(store: Store, run_id: str) -> Iterator[Row]:
    """Yield the share of the private facts that their owners have disclosed by a position, for each family."""
    totals: dict[str, dict[str, int]] = defaultdict(dict)
    for row in queries.private_facts(store, run_id):
        if row["n"]:
            totals[row["family"]][row["mode"]] = row["n"]
    positions: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in queries.own_disclosures(store, run_id):
        positions[row["family"], row["mode"]].append(float(row["position"]))
    name, heading, meaning = DISCLOSED
    for family, by_mode in totals.items():
        series = [
            _series(mode, by_mode[mode], steps(positions[family, mode], by_mode[mode])) for mode in _ordered(by_mode)
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
