"""Fitting a detector's thresholds to labelled pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from localsim.errors import InvalidInput
from localsim.leakage.accuracy import counts
from localsim.leakage.detector import LeakageDetector, Weights
from localsim.leakage.pairs import LabelledPair


def calibrated(detector: LeakageDetector, rows: Sequence[LabelledPair]) -> Weights:
    """The detector's weights with thresholds that suit these labels, and its accuracy on them (fitted, so optimistic).

    Raises InvalidInput where the labels are all alike.
    """
    truth = np.array([row.label == "disclosed" for row in rows])
    some = np.array([row.label != "none" for row in rows])
    if truth.all() or not truth.any():
        raise InvalidInput("needs rows that are `disclosed` and rows that are not")
    chances = detector.chances([row.pair for row in rows])
    disclosed = chances[:, 2]
    weights = replace(
        detector.weights,
        disclosed_from=best_threshold(truth, disclosed),
        hint_from=best_threshold(some, disclosed + chances[:, 1]),
    )
    found = counts(truth, disclosed >= weights.disclosed_from, disclosed)
    return replace(weights, accuracy={"fitted_on": found})


def best_threshold(truth: npt.NDArray[np.bool_], chance: npt.NDArray[np.float64]) -> float:
    """The middle of the best tenth: the threshold of the highest F1, taken between neighbours so that it is stable."""
    candidates = np.unique(np.quantile(chance, np.linspace(0.02, 0.98, 193)))
    scores = np.array([counts(truth, chance >= candidate, chance)["f1"] or 0.0 for candidate in candidates])
    return float(np.median(candidates[scores >= scores.max() - 0.005]))
