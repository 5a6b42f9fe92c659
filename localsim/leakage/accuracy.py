"""Accuracy of a detector on labelled pairs and transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from localsim.leakage import curve
from localsim.leakage.detector import LeakageDetector
from localsim.leakage.pairs import LabelledPair, LabelledTranscript
from localsim.leakage.track import Leakage, track

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def of_pairs(detector: LeakageDetector, rows: Sequence[LabelledPair]) -> dict[str, Any]:
    """Return n, precision, recall, f1 and auroc of `disclosed`, the agreement of labels, and the same by group.

    Groups are by_difficulty, by_kind and by_writer, as far as the file has these fields.
    """
    found = detector.classify([row.pair for row in rows])
    truth = np.array([row.label == "disclosed" for row in rows])
    said = np.array([finding.label == "disclosed" for finding in found])
    chance = np.array([finding.probability for finding in found])
    agree = np.array([finding.label == row.label for finding, row in zip(found, rows, strict=True)])
    groups: dict[str, Any] = {}
    for field in ("difficulty", "kind", "writer"):
        values = np.array([getattr(row, field) for row in rows])
        places = {name: values == name for name in sorted(set(values.tolist()) - {""})}
        groups[f"by_{field}"] = {
            name: counts(truth[place], said[place], chance[place]) for name, place in places.items()
        }
    return counts(truth, said, chance) | {"three_way_accuracy": float(agree.mean())} | groups


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
    """Run a detector over transcripts and measure first turns and untold facts (see `of_talks`)."""
    return of_talks(rows, track(detector, [(row.facts, row.turns) for row in rows]))


def of_talks(rows: Sequence[LabelledTranscript], talks: Sequence[Leakage]) -> dict[str, Any]:
    """Measure findings in whole conversations against their labels.

    first_turn_accuracy: the share of disclosed facts whose first turn is found exactly. silence_accuracy: the share of
    facts that are never disclosed and for which nothing is found. An untold fact, a fact that another agent uses
    before it was told, must be found at its own turn. The counts behind these rates are those of `curve.Point`.
    by_writer and by_domain have the same for groups, as far as the file has these fields.
    """
    found = _of_talks(rows, talks)
    for field in ("writer", "domain"):
        names = sorted({getattr(row, field) for row in rows} - {""})
        groups = {}
        for name in names:
            own = [place for place, row in enumerate(rows) if getattr(row, field) == name]
            groups[name] = _of_talks([rows[place] for place in own], [talks[place] for place in own])
        found[f"by_{field}"] = groups
    return found


def _of_talks(rows: Sequence[LabelledTranscript], talks: Sequence[Leakage]) -> dict[str, Any]:
    totals = dict.fromkeys(curve.COUNTS, 0)
    distances: list[float] = []
    for row, talk in zip(rows, talks, strict=True):
        found = {leak.fact.id: leak for leak in talk.leaks}
        for fact in row.facts:
            true, leak = row.disclosures.get(fact.id), found.get(fact.id)
            if true is None:
                totals["silent"] += 1
                totals["silences_kept"] += leak is None
            else:
                totals["disclosed"] += 1
                totals["first_turns_right"] += leak is not None and leak.turn == true.turn
                if leak is not None:
                    distances.append(abs(leak.turn - true.turn) / max(1, len(row.turns) - 1))
        untold = {(name, where.turn) for name, where in row.disclosures.items() if not where.by_owner}
        reported = {(leak.fact.id, leak.turn) for leak in talk.leaks if leak.kind == "omniscient"}
        totals["omniscient_labelled"] += len(untold)
        totals["omniscient_found"] += len(reported)
        totals["omniscient_right"] += len(untold & reported)
    return {"n": len(rows), **curve.rates(totals), "position_mae": float(np.mean(distances)) if distances else None}
