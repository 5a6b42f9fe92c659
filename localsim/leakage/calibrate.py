"""Fitting of a detector's thresholds to labelled pairs and labelled conversations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from localsim.errors import InvalidInput
from localsim.leakage import accuracy, curve, track
from localsim.leakage.curve import Point
from localsim.leakage.detector import LeakageDetector, Weights
from localsim.leakage.pairs import LabelledPair, LabelledTranscript
from localsim.leakage.track import Row

FEW = 50
"""With fewer facts that never come out, the share of false alarms is so uncertain that it is said."""
_TRUST = 0.1
"""How strongly a fit of few conversations is drawn to the probabilities of single pairs (a ridge)."""

Read = tuple[Sequence[LabelledTranscript], Sequence[Sequence[Row]]]
"""Labelled conversations, and the detector's findings in each (`track.read`)."""


def calibrated(
    detector: LeakageDetector,
    rows: Sequence[LabelledPair] = (),
    talks: Sequence[LabelledTranscript] = (),
    files: Sequence[str] = (),
    share: float | None = None,
) -> Weights:
    """Return the detector's weights with thresholds fitted to these labels, and their accuracy on the same labels.

    Pairs fit the thresholds of single turns, conversations those of whole conversations; without labels of a kind its
    thresholds stay. `files` are the names of the label files. `share` is the share of false alarms to allow; None
    leaves it as it is. Raises InvalidInput if all labels of a kind are alike.
    """
    weights = detector.weights
    allowed = weights.talk_share if share is None else share
    if rows:
        weights = fitted_to_pairs(detector, rows)
    if talks:
        weights = fitted_to_talks(detector.having(weights), talks, allowed)
    weights = weights.at(allowed)
    measured: dict[str, Any] = {}
    if rows:
        measured["pairs"] = accuracy.of_pairs(detector.having(weights), rows)
    if talks:
        measured["transcripts"] = weights.accuracy["transcripts"]
    facts = sum(len(talk.facts) for talk in talks)
    labels = {"pairs": len(rows), "conversations": len(talks), "facts": facts, "labels": len(rows) + facts}
    silent = facts - sum(len(talk.disclosures) for talk in talks)
    fitted = {"files": list(files), **labels, "silent": silent, "sensitivity": float(allowed)}
    fitted["date"] = datetime.now(UTC).date().isoformat()
    return replace(weights, accuracy=measured, fitted=fitted, name=", ".join(files) or "own thresholds")


def remarks(weights: Weights) -> Iterator[str]:
    """Yield what the labels of fitted thresholds leave open, and how to get more."""
    silent, share, fewest = weights.fitted["silent"], weights.talk_share, curve.fewest(weights.talk_share)
    if not weights.fitted["conversations"]:
        yield "the thresholds for whole conversations stay: fit them to the labels of `annotate labels --conversations`"
    elif silent < max(FEW, fewest):
        known = "uncertain" if silent >= fewest else f"not known with fewer than {fewest}"
        yield f"facts that never come out: {silent}. A share of {share:g} false alarms is {known}: label more talks"
    if not weights.fitted["pairs"]:
        yield "the thresholds for single turns stay: fit them to labelled pairs too"


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


def fitted_to_talks(
    detector: LeakageDetector, talks: Sequence[LabelledTranscript], share: float = curve.DEFAULT_SHARE
) -> Weights:
    """Return the detector's weights with probabilities and thresholds fitted to whole conversations.

    The threshold allows at most `share` of false alarms among the facts that never come out. The accuracy has the part
    `transcripts`, on the same labels. Raises InvalidInput if all facts come out or none.
    """
    found = talks, track.read(detector, [(talk.facts, talk.turns) for talk in talks])
    return with_curve(with_prior(detector.weights, found), found, found, share)


def with_prior(weights: Weights, found: Read) -> Weights:
    """Return weights whose probabilities hold for turns of these conversations, where most facts stay private.

    Raises InvalidInput if all facts come out or none.
    """
    chance, truth = [], []
    for talk, rows in zip(*found, strict=True):
        for fact, turn, _, finding in rows:
            told = talk.disclosures.get(fact.id)
            if told is None or turn <= told.turn:  # what comes later is no first disclosure, and no silence
                chance.append(finding.probability)
                truth.append(told is not None and turn == told.turn)
    facts = sum(len(talk.facts) for talk in found[0])
    if not 0 < sum(len(talk.disclosures) for talk in found[0]) < facts or not any(truth):
        raise InvalidInput("conversations: needs facts that come out and facts that never do")
    slope, intercept = _logistic(np.clip(chance, 1e-6, 1 - 1e-6), np.array(truth))
    # Rounded as in the file, so that thresholds hold for what is written.
    return replace(weights, talk_slope=round(slope, 6), talk_intercept=round(intercept, 6))


def _logistic(chance: npt.NDArray[np.float64], truth: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return slope and intercept of a logistic regression on the log-odds (Platt), by Newton's method."""
    rows = np.column_stack([np.log(chance / (1 - chance)), np.ones(len(chance))])
    usual = found = np.array([1.0, 0.0])
    for _ in range(100):
        fitted = 1 / (1 + np.exp(-np.clip(rows @ found, -500, 500)))
        gradient = rows.T @ (truth - fitted) - _TRUST * (found - usual)
        curvature = (rows * (fitted * (1 - fitted))[:, None]).T @ rows + _TRUST * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        found = found + step * min(1.0, 5 / max(1e-9, float(np.abs(step).max())))
        if np.abs(step).max() < 1e-8:
            break
    return max(0.05, float(found[0])), float(found[1])


def with_curve(weights: Weights, found: Read, measured_on: Read, share: float = curve.DEFAULT_SHARE) -> Weights:
    """Return weights with thresholds for shares of false alarms from `found`, and their counts in `measured_on`.

    The curve has `share`, and the other shares for which there are enough facts that never come out.
    """
    silent = silences(weights, found)
    points = []
    for each in sorted({*curve.SHARES, share}):
        if each == share or len(silent) >= curve.fewest(each):
            least = round(curve.threshold_for(silent, each), 6)
            at = replace(weights, talk_from=least)
            counted = accuracy.of_talks(measured_on[0], [track.decided(rows, at) for rows in measured_on[1]])
            points.append(Point(each, least, **{name: counted[name] for name in curve.COUNTS}))
    own = next(point for point in points if point.share == share)
    measured = {"n": len(measured_on[0])} | curve.rates(vars(own))
    others = {part: value for part, value in weights.accuracy.items() if part != "by_kind"}
    return replace(
        weights,
        talk_from=own.talk_from,
        talk_share=share,
        talk_curve=tuple(points),
        accuracy=others | {"transcripts": measured},
    )


def silences(weights: Weights, found: Read) -> list[float]:
    """Return the highest probability of each fact that never comes out, in its conversation."""
    return [
        max(
            (weights.talk_chance(finding.probability) for about, _, _, finding in rows if about.id == fact.id),
            default=0.0,
        )
        for talk, rows in zip(*found, strict=True)
        for fact in talk.facts
        if fact.id not in talk.disclosures
    ]
