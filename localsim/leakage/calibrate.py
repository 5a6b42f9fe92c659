"""Fitting of a detector's thresholds to labelled pairs and labelled conversations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from localsim.errors import InvalidInput
from localsim.leakage import accuracy, track
from localsim.leakage.detector import LeakageDetector, Weights
from localsim.leakage.pairs import LabelledPair, LabelledTranscript


def calibrated(
    detector: LeakageDetector,
    rows: Sequence[LabelledPair] = (),
    talks: Sequence[LabelledTranscript] = (),
    files: Sequence[str] = (),
) -> Weights:
    """Return the detector's weights with thresholds fitted to these labels, and their accuracy on the same labels.

    Pairs fit the thresholds of single turns, conversations those of whole conversations; without labels of a kind its
    thresholds stay. `files` are the names of the label files. Raises InvalidInput if all labels of a kind are alike.
    """
    weights = detector.weights
    if rows:
        weights = fitted_to_pairs(detector, rows)
    if talks:
        weights = fitted_to_talks(detector.having(weights), talks)
    own = detector.having(weights)
    measured: dict[str, Any] = {}
    if rows:
        measured["pairs"] = accuracy.of_pairs(own, rows)
    if talks:
        measured["transcripts"] = accuracy.of_transcripts(own, talks)
    facts = sum(len(talk.facts) for talk in talks)
    labels = {"pairs": len(rows), "conversations": len(talks), "facts": facts, "labels": len(rows) + facts}
    fitted = {"files": list(files), **labels, "date": datetime.now(UTC).date().isoformat()}
    return replace(weights, accuracy=measured, fitted=fitted, name=", ".join(files) or "own thresholds")


def fitted_to_pairs(detector: LeakageDetector, rows: Sequence[LabelledPair]) -> Weights:
    """Return the detector's weights with the thresholds for single turns fitted to labelled pairs.

    Raises InvalidInput if all labels are alike.
    """
    truth = np.array([row.label == "disclosed" for row in rows])
    some = np.array([row.label != "none" for row in rows])
    if truth.all() or not truth.any():
        raise InvalidInput("pairs: needs rows that are `disclosed` and rows that are not")
    chances = detector.chances([row.pair for row in rows])
    disclosed = chances[:, 2]
    return replace(
        detector.weights,
        disclosed_from=best_threshold(truth, disclosed),
        hint_from=best_threshold(some, disclosed + chances[:, 1]),
    )


def best_threshold(truth: npt.NDArray[np.bool_], chance: npt.NDArray[np.float64]) -> float:
    """Return the median of the thresholds whose F1 is within .005 of the best: more stable than the best."""
    candidates = np.unique(np.quantile(chance, np.linspace(0.02, 0.98, 193)))
    scores = np.array([accuracy.counts(truth, chance >= each, chance)["f1"] or 0.0 for each in candidates])
    return float(np.median(candidates[scores >= scores.max() - 0.005]))


def fitted_to_talks(detector: LeakageDetector, talks: Sequence[LabelledTranscript]) -> Weights:
    """Return the detector's weights with the thresholds for conversations that get most facts right.

    A fact is right if its first turn is found, or rightly nothing. Raises InvalidInput if all facts come out or none.
    """
    facts = sum(len(talk.facts) for talk in talks)
    if not 0 < sum(len(talk.disclosures) for talk in talks) < facts:
        raise InvalidInput("conversations: needs facts that come out and facts that never do")
    found = track.read(detector, [(talk.facts, talk.turns) for talk in talks])

    def right(weights: Weights) -> float:
        measured = accuracy.of_talks(talks, [track.decided(rows, weights) for rows in found])
        hits = measured["first_turn_accuracy"] * measured["disclosed"]
        return float(hits + measured["silence_accuracy"] * measured["silent"])

    return max(_candidates(detector.weights), key=right)


def _candidates(weights: Weights) -> Iterator[Weights]:
    """Yield weights with the thresholds for conversations that are tried."""
    for least in np.arange(0.3, 0.96, 0.05):
        for near in (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0):
            yield replace(weights, talk_from=float(least), talk_near_most=near)
