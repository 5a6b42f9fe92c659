"""The places of an experiment: as many as its quotas sum up to, in an order that its seed alone decides.

A participant gets the first place that is free. As many places as the quota have a condition, so that everybody who
finishes fills exactly one of them, in whatever order people come and leave.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import gcd


def ordered(quotas: Sequence[tuple[str, int, int]], seed: int) -> tuple[str, ...]:
    """Return the condition of each place. `quotas`: (condition, quota, participants in one talk).

    Permuted blocks: each block holds the conditions in the ratio of their quotas, in an order of its own. Participants
    who share a talk get places one after the other, so that they need not wait for long.
    """
    units = [(condition, quota // people, people) for condition, quota, people in quotas]
    blocks = gcd(*(count for _, count, _ in units))
    found: list[str] = []
    for block in range(blocks):
        unit = [(condition, people) for condition, count, people in units for _ in range(count // blocks)]
        random.Random(f"{seed}/{block}").shuffle(unit)
        found += [condition for condition, people in unit for _ in range(people)]
    return tuple(found)


def rank(order: Sequence[str], place: int) -> int:
    """Return the number of a place among those of its condition, from 0."""
    return sum(condition == order[place] for condition in order[:place])
