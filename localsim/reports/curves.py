"""Curves over the course of a conversation: each family's own curve, and the private facts that have come out.

Positions are relative: 0 is the start of a conversation, 1 its end (the paper's figures 10 and 12 are such curves).
The report, its page and `localsim plot` all draw these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from localsim.conversation.episode import MODES, Subject
from localsim.families import family_of
from localsim.families.base import Curve, Family, Played, Point
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.scoring import subjects

Row = dict[str, Any]
Points = list[tuple[float, float]]
BINS = 5
"""Parts of a conversation over which values are averaged."""
DISCLOSED = ("disclosed", "Given away by then", "share of the private facts that their owners have given away")


def curves(store: Store, run_id: str) -> list[Row]:
    """Rows of family, name, heading, meaning, steps (whether points make steps) and series: mode, side (or ''), n,
    points (x, y).
    """
    found = [*_of_families(store, run_id), *_disclosed(store, run_id)]
    return [curve for curve in found if curve["series"]]


def steps(positions: list[float], total: int) -> Points:
    """The share of `total` that has come up by each position: an empirical distribution that need not reach 1."""
    points: Points = [(0.0, 0.0)]
    for count, position in enumerate(sorted(positions), start=1):
        points.append((position, count / total))
    return [*points, (1.0, points[-1][1])]


def _series(mode: str, n: int, points: Points, side: str = "") -> Row:
    return {"mode": mode, "side": side, "n": n, "points": points}


def _ordered(modes: Iterable[str]) -> list[str]:
    return sorted(modes, key=lambda mode: [*MODES].index(mode))  # type: ignore[arg-type]  # stored modes are modes


def _of_families(store: Store, run_id: str) -> Iterator[Row]:
    """The curve that each family of the run declares."""
    played: dict[Family, list[Subject]] = defaultdict(list)
    for subject in subjects(store, run_id):
        played[family_of(subject.scenario.family)].append(subject)
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for row in queries.scores(store, run_id):
        if row["value"] is not None and (row["agent"] is None or row["name"] == "named"):
            scores[row["episode_id"]][row["name"]] = float(row["value"])
    for family, episodes in played.items():
        if family.curve is not None:
            yield _curve(family.name, family.curve, episodes, scores)


def _curve(family: str, curve: Curve, episodes: Sequence[Subject], scores: dict[str, dict[str, float]]) -> Row:
    by_mode: dict[str, list[Sequence[Point]]] = defaultdict(list)
    for subject in episodes:
        points = curve.points(Played(subject.transcript, subject.answer, scores[subject.episode_id]))
        if points is not None:
            by_mode[subject.mode].append(points)
    draw = _reached if curve.kind == "reached" else _averaged
    return {
        "family": family,
        "name": curve.name,
        "heading": curve.heading,
        "meaning": curve.meaning,
        "steps": curve.kind == "reached",
        "series": [series for mode in _ordered(by_mode) for series in draw(mode, by_mode[mode])],
    }


def _reached(mode: str, episodes: list[Sequence[Point]]) -> Iterator[Row]:
    """The share of episodes that have reached their first point by a position."""
    firsts = [min(point.position for point in points) for points in episodes if points]
    yield _series(mode, len(episodes), steps(firsts, len(episodes)))


def _averaged(mode: str, episodes: list[Sequence[Point]]) -> Iterator[Row]:
    """The mean value of each side in each part of the conversation."""
    sides: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for points in episodes:
        for point in points:
            sides[point.side][min(BINS - 1, int(point.position * BINS))].append(point.value)
    for side, parts in sorted(sides.items()):
        means = [((number + 0.5) / BINS, sum(values) / len(values)) for number, values in sorted(parts.items())]
        yield _series(mode, sum(map(len, parts.values())), means, side)


def _disclosed(store: Store, run_id: str) -> Iterator[Row]:
    """The share of the private facts that their owners have given away by a position, for each family."""
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
            "series": series,
        }
