"""Fitting of a detector's thresholds to labelled pairs."""

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
    """Return the detector's weights with thresholds fitted to these labels, and its (optimistic) accuracy on them.

    Raises InvalidInput if all labels are alike.
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
    """Return the median of the thresholds whose F1 is within .005 of the best: more stable than the best."""
    candidates = np.unique(np.quantile(chance, np.linspace(0.02, 0.98, 193)))
    scores = np.array([counts(truth, chance >= candidate, chance)["f1"] or 0.0 for candidate in candidates])
    return float(np.median(candidates[scores >= scores.max() - 0.005]))
