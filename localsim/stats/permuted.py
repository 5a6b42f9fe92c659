"""Comparisons of two groups of participants, of whom each took part in one condition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

SPLITS = 20_000
"""Up to this number of ways to divide the participants all are counted; beyond it DRAWS of them are drawn."""
DRAWS = 9_999


def permutation(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the two-sided p of two groups: the share of all ways to divide the same values in groups of these sizes
    whose means lie as far apart. It assumes nothing but that everybody could have been in either group.
    """
    import numpy as np

    values, size = np.array([*one, *other], dtype=float), len(one)
    values -= values.mean()  # then the means lie as far apart as the sum of one group lies from 0
    if exact := math.comb(len(values), size) <= SPLITS:
        sums = values[np.array(list(combinations(range(len(values)), size)))].sum(axis=1)
    else:
        rng = np.random.default_rng(len(values))
        sums = rng.permuted(np.tile(values, (DRAWS, 1)), axis=1)[:, :size].sum(axis=1)
    found = int((np.abs(sums) >= abs(float(values[:size].sum())) - 1e-9 * max(1.0, float(np.abs(values).max()))).sum())
    return found / len(sums) if exact else (1 + found) / (1 + len(sums))
