"""The picture of a class: a dot for each talk at its number of turns, mode below mode, with the mean of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from localsim.conversation.episode import Mode
from localsim.web.classroom.results import ModeRow

WIDTH, HEIGHT = 400, 112
"""Of the part of one mode, in the units of the picture."""
_LEFT, _RIGHT, _BASE, _ROOM = 14, 386, 88, 56
"""The ends of the axis, the height of the lowest dots, and the room for a heap of dots."""
_STEP = 13.0
_LABELS = 6
"""Most numbers on the axis, with 0."""


@dataclass(frozen=True)
class Strip:
    """The dots of one mode. All numbers are places in the picture."""

    mode: Mode
    top: int
    dots: Sequence[tuple[float, float]]
    mean: float
    mean_turns: float


@dataclass(frozen=True)
class Picture:
    """The strips of all modes that have a talk, and the axis of turns below each."""

    strips: Sequence[Strip]
    ticks: Sequence[tuple[float, int]]
    """Place and number of turns."""
    height: int


def picture(rows: Sequence[ModeRow]) -> Picture | None:
    """Draw the finished talks; None without one."""
    shown = [row for row in rows if row.turns is not None]
    most = max((talk.turns for row in shown for talk in row.talks), default=0)
    if not most:
        return None
    scale = (_RIGHT - _LEFT) / most
    heaps = [Counter(talk.turns for talk in row.talks) for row in shown]
    step = min(_STEP, _ROOM / max(max(heap.values()) for heap in heaps))
    strips = [
        Strip(
            row.mode,
            number * HEIGHT,
            [
                (round(_LEFT + turns * scale, 1), round(number * HEIGHT + _BASE - 7 - place * step, 1))
                for turns, count in sorted(heap.items())
                for place in range(count)
            ],
            round(_LEFT + (row.turns or 0) * scale, 1),
            row.turns or 0,
        )
        for number, (row, heap) in enumerate(zip(shown, heaps, strict=True))
    ]
    apart = max(1, -(-most // (_LABELS - 1)))
    ticks = [(round(_LEFT + turns * scale, 1), turns) for turns in range(0, most + 1, apart)]
    return Picture(strips, ticks, HEIGHT * len(strips))
