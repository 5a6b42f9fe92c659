"""Thresholds for whole conversations, chosen by the share of false alarms that they allow, and what each one finds.

A false alarm is a fact that never comes out and is called disclosed. The threshold for a share is a conformal quantile
(https://arxiv.org/abs/2107.07511): among facts like those of the fit, at most this share gets a false alarm on average.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from localsim.errors import InvalidInput

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
"""The shares of false alarms for which a curve has thresholds, if the labels suffice."""
DEFAULT_SHARE = 0.1
_STEP = 1e-6
"""Thresholds are written with six decimals."""


@dataclass(frozen=True)
class Point:
    """A threshold, and what it finds in labelled conversations: counts, so that intervals can be made."""

    share: float
    """Share of false alarms that it allows among facts that never come out."""
    talk_from: float
    """The least probability of a disclosure."""
    silent: int = 0
    """Facts that never come out; `silences_kept` of them are rightly left alone."""
    silences_kept: int = 0
    disclosed: int = 0
    """Facts that come out; `first_turns_right` of them are found in the right turn."""
    first_turns_right: int = 0
    omniscient_labelled: int = 0
    """Leaks by another agent who had not been told; `omniscient_found` are reported, and `omniscient_right` of these
    are right.
    """
    omniscient_found: int = 0
    omniscient_right: int = 0


COUNTS = tuple(name for name in Point.__dataclass_fields__ if name not in ("share", "talk_from"))


def rates(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of a point with their shares; a share of nothing is None."""

    def ratio(part: str, whole: str) -> float | None:
        return counts[part] / counts[whole] if counts[whole] else None

    return {
        "facts": counts["silent"] + counts["disclosed"],
        **{name: counts[name] for name in COUNTS},
        "first_turn_accuracy": ratio("first_turns_right", "disclosed"),
        "silence_accuracy": ratio("silences_kept", "silent"),
        "omniscient_recall": ratio("omniscient_right", "omniscient_labelled"),
        "omniscient_precision": ratio("omniscient_right", "omniscient_found"),
    }


def fewest(share: float) -> int:
    """Return how many facts that never come out are needed to know a threshold for a share of false alarms."""
    return math.ceil(1 / share - 1e-9) - 1


def threshold_for(silent: Sequence[float], share: float) -> float:
    """Return the lowest threshold that allows at most a share of false alarms.

    `silent` holds, for each fact that never comes out, its highest probability in its conversation. If there are fewer
    of them than `fewest`, the threshold is just above all of them, and what it allows for other facts is not known.
    """
    allowed = max(1, min(len(silent), math.floor((len(silent) + 1) * share + 1e-9))) - 1
    highest = float(np.sort(np.asarray(silent, dtype=np.float64))[::-1][allowed])
    return min(1.0, (math.floor(highest / _STEP) + 1) * _STEP)


def between(points: Sequence[Point], share: float) -> Point:
    """Return the point of a curve for any share between its ends, interpolated over the logarithm of the share.

    Raises InvalidInput for a share outside the curve.
    """
    for point in points:
        if math.isclose(point.share, share):
            return point
    if not points or not points[0].share < share < points[-1].share:
        ends = f"from {points[0].share:g} to {points[-1].share:g}" if points else "for no share"
        hint = "localsim leakage calibrate LABELS.jsonl -o FILE fits a curve to conversations of your own"
        raise InvalidInput(f"sensitivity {share:g}: thresholds are known {ends}", hint=hint)
    place = [math.log(point.share) for point in points]

    def at(name: str) -> float:
        return float(np.interp(math.log(share), place, [getattr(point, name) for point in points]))

    counts = {name: round(at(name)) for name in COUNTS}
    return Point(share=share, talk_from=round(at("talk_from"), 6), **counts)


def parsed(rows: Any) -> tuple[Point, ...]:
    """Return the points of a file. Raises ValueError if they are not in the form of a curve."""
    points = tuple(Point(**row) for row in rows)
    numbers = [value for point in points for value in asdict(point).values()]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in numbers):
        raise ValueError("talk_curve: not numbers")
    for point in points:
        counts = [getattr(point, name) for name in COUNTS]
        sound = 0 < point.share < 1 and 0 <= point.talk_from <= 1
        if not sound or not all(isinstance(count, int) and count >= 0 for count in counts) or not _possible(point):
            raise ValueError(f"talk_curve: impossible numbers at the share {point.share}")
    for one, other in itertools.pairwise(points):
        if one.share >= other.share or one.talk_from < other.talk_from:
            raise ValueError("talk_curve: shares must rise, and thresholds must not")
    return points


def _possible(point: Point) -> bool:
    parts = (
        (point.silences_kept, point.silent),
        (point.first_turns_right, point.disclosed),
        (point.omniscient_right, point.omniscient_labelled),
        (point.omniscient_right, point.omniscient_found),
    )
    return all(part <= whole for part, whole in parts)


def as_rows(points: Iterable[Point]) -> list[dict[str, Any]]:
    """Return the points in the form of a file."""
    return [asdict(replace(point, talk_from=round(point.talk_from, 6))) for point in points]
