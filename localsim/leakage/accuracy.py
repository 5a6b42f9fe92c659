"""How often a detector is right, on labelled pairs and transcripts."""

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
    """n, precision, recall, f1 and auroc of `disclosed`, the labels' agreement, and the same by difficulty."""
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
    """Precision, recall and F1 of what was said, AUROC of how sure it was; None where it has no meaning."""
    right = int((truth & said).sum())
    precision = right / int(said.sum()) if said.any() else None
    recall = right / int(truth.sum()) if truth.any() else None
    total = int(said.sum()) + int(truth.sum())
    return {
        "n": len(truth),
        "precision": precision,
        "recall": recall,
        "f1": 2 * right / total if total else None,
        "auroc": auroc(truth, chance),
    }


def auroc(truth: Flags, chance: Floats) -> float | None:
    """Share of (true, false) pairs that are in the right order, ties half (Mann-Whitney); None without both."""
    if truth.all() or not truth.any():
        return None
    from scipy.stats import mannwhitneyu

    wins = mannwhitneyu(chance[truth], chance[~truth]).statistic
    return float(wins / (truth.sum() * (~truth).sum()))


def of_transcripts(detector: LeakageDetector, rows: Sequence[LabelledTranscript]) -> dict[str, Any]:
    """First turns and omniscient leaks, by a detector (`of_talks`)."""
    return of_talks(rows, track(detector, [(row.facts, row.turns) for row in rows]))


def of_talks(rows: Sequence[LabelledTranscript], talks: Sequence[Talk]) -> dict[str, Any]:
    """How right talks have been read.

    first_turn_accuracy: of the facts that come out, the share whose first turn is found exactly. silence_accuracy: of
    those that never do, the share of which nothing is found. An omniscient leak counts as found at its very turn.
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
