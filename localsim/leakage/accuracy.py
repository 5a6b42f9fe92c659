"""Accuracy of a detector on labelled pairs and transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from localsim.leakage.detector import LeakageDetector
from localsim.leakage.pairs import LabelledPair, LabelledTranscript
from localsim.leakage.track import Talk, track

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def of_pairs(detector: LeakageDetector, rows: Sequence[LabelledPair]) -> dict[str, Any]:
    """Return n, precision, recall, f1 and auroc of `disclosed`, the agreement of labels, and the same by difficulty."""
    found = detector.classify([row.pair for row in rows])
    truth = np.array([row.label == "disclosed" for row in rows])
    said = np.array([finding.label == "disclosed" for finding in found])
    chance = np.array([finding.probability for finding in found])
    agree = np.array([finding.label == row.label for finding, row in zip(found, rows, strict=True)])
    levels = sorted({row.difficulty for row in rows} - {""})
    places = {level: np.array([row.difficulty == level for row in rows]) for level in levels}
    return counts(truth, said, chance) | {
        "three_way_accuracy": float(agree.mean()),
        "by_difficulty": {level: counts(truth[place], said[place], chance[place]) for level, place in places.items()},
    }


def counts(truth: Flags, said: Flags, chance: Floats) -> dict[str, Any]:
    """Return precision, recall and F1 of the decisions and AUROC of the probabilities, with the counts behind them.

    true: pairs labelled as disclosed; said: pairs that the detector calls so; right: both. An undefined value is None.
    """
    right = int((truth & said).sum())
    precision = right / int(said.sum()) if said.any() else None
    recall = right / int(truth.sum()) if truth.any() else None
    total = int(said.sum()) + int(truth.sum())
    return {
        "n": len(truth),
        "true": int(truth.sum()),
        "said": int(said.sum()),
        "right": right,
        "precision": precision,
        "recall": recall,
        "f1": 2 * right / total if total else None,
        "auroc": auroc(truth, chance),
    }


def auroc(truth: Flags, chance: Floats) -> float | None:
    """Return the share of (true, false) pairs in the right order, ties half (Mann-Whitney); None without both."""
    if truth.all() or not truth.any():
        return None
    from scipy.stats import mannwhitneyu

    wins = mannwhitneyu(chance[truth], chance[~truth]).statistic
    return float(wins / (truth.sum() * (~truth).sum()))


def of_transcripts(detector: LeakageDetector, rows: Sequence[LabelledTranscript]) -> dict[str, Any]:
    """Run a detector over transcripts and measure first turns and omniscient leaks (see `of_talks`)."""
    return of_talks(rows, track(detector, [(row.facts, row.turns) for row in rows]))


def of_talks(rows: Sequence[LabelledTranscript], talks: Sequence[Talk]) -> dict[str, Any]:
    """Measure findings in whole conversations against their labels.

    first_turn_accuracy: the share of disclosed facts whose first turn is found exactly. silence_accuracy: the share of
    facts that are never disclosed and for which nothing is found. An omniscient leak must be found at its own turn.
    disclosed, silent, omniscient_labelled and omniscient_found are the counts that divide these rates.
    """
    hits: list[bool] = []
    silences: list[bool] = []
    distances: list[float] = []
    omniscient = {"labelled": 0, "found": 0, "right": 0}
    for row, talk in zip(rows, talks, strict=True):
        found = {leak.fact.id: leak for leak in talk.leaks}
        for fact in row.facts:
            true, leak = row.disclosures.get(fact.id), found.get(fact.id)
            if true is None:
                silences.append(leak is None)
            else:
                hits.append(leak is not None and leak.turn == true.turn)
                if leak is not None:
                    distances.append(abs(leak.turn - true.turn) / max(1, len(row.turns) - 1))
        _count_omniscient(row, talk, omniscient)
    return {
        "n": len(rows),
        "facts": len(hits) + len(silences),
        "disclosed": len(hits),
        "silent": len(silences),
        "omniscient_labelled": omniscient["labelled"],
        "omniscient_found": omniscient["found"],
        "first_turn_accuracy": _mean(hits),
        "silence_accuracy": _mean(silences),
        "position_mae": _mean(distances),
        "omniscient_recall": _ratio(omniscient["right"], omniscient["labelled"]),
        "omniscient_precision": _ratio(omniscient["right"], omniscient["found"]),
    }


def _count_omniscient(row: LabelledTranscript, talk: Talk, totals: dict[str, int]) -> None:
    true = {(name, where.turn) for name, where in row.disclosures.items() if not where.by_owner}
    found = {(leak.fact.id, leak.turn) for leak in talk.leaks if leak.kind == "omniscient"}
    totals["labelled"] += len(true)
    totals["found"] += len(found)
    totals["right"] += len(true & found)


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
