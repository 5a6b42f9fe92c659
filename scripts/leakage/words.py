"""The cheap classifier: its training, and what each group of features adds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from localsim.leakage import accuracy, features
from localsim.leakage.calibrate import best_threshold
from localsim.leakage.detector import WEIGHTS, Weights
from localsim.leakage.embeddings import Embedder
from localsim.leakage.pairs import LABELS, LabelledPair
from scripts.leakage import data

C = 0.03
"""Inverse regularisation."""
STRANGERS = 0.15
"""Pairs with an unrelated fact for each labelled pair."""
LOST = 0.01
"""Share of the disclosures that the gate may keep from the reader."""


def fitted(table: npt.NDArray[np.float32], labels: npt.NDArray[np.int64]) -> Weights:
    """Return weights with a classifier fitted to features and labels (places in LABELS)."""
    scaler = StandardScaler().fit(table)
    model = LogisticRegression(C=C, max_iter=3000).fit(scaler.transform(table), labels)
    names = features.NAMES + features.CROSSED
    return Weights(names, scaler.mean_, scaler.scale_, model.coef_, model.intercept_)


def folded(
    table: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], facts: Sequence[str]
) -> npt.NDArray[np.float64]:
    """Return probabilities (pairs, 3), each by a classifier that has not seen the fact (five folds)."""
    chances = np.zeros((len(labels), len(LABELS)))
    for kept, left in GroupKFold(5).split(table, labels, groups=facts):
        scaler = StandardScaler().fit(table[kept])
        model = LogisticRegression(C=C, max_iter=3000).fit(scaler.transform(table[kept]), labels[kept])
        chances[left] = model.predict_proba(scaler.transform(table[left]))
    return chances


def train(most: int | None = None) -> list[str]:
    """Train on labelled pairs, turns of conversations and unrelated pairs, write the weights, return the ablation.

    Most pairs of a conversation are unrelated or silent; without such pairs, the gate would let everything pass. `most`
    takes only the first pairs, to try the command. The thresholds of whole conversations stay: `fit` comes next.
    """
    labelled = data.training_pairs()[:most]
    rows = [*labelled, *data.from_talks(data.training_talks())[:most]]
    rows += data.strangers(labelled, STRANGERS, random.Random(0))
    labels = np.array([LABELS.index(row.label) for row in rows])
    table = features.crossed(features.matrix([row.pair for row in rows], Embedder().encode))
    facts = [row.pair.fact for row in rows]
    chances = folded(table, labels, facts)
    truth, some = labels == 2, labels > 0
    passed = chances[:, 1] + chances[:, 2]
    before, found = Weights.read(), fitted(table, labels)
    weights = replace(
        before,
        **{name: getattr(found, name) for name in ("names", "mean", "scale", "coefficients", "intercepts")},
        words_disclosed_from=best_threshold(truth, chances[:, 2]),
        words_hint_from=best_threshold(some, passed),
        gate=float(np.quantile(passed[truth], LOST)),
    )
    if most is None:
        weights.write(WEIGHTS)
    silent = passed[len(labelled) :][labels[len(labelled) :] == 0]
    of_labelled, of_silent = (np.mean(part >= weights.gate) for part in (passed[: len(labelled)], silent))
    lines = [f"the gate {weights.gate:.3f} passes {of_labelled:.0%} of labelled pairs, {of_silent:.0%} of silent turns"]
    return [*lines, *_ablation(labelled, table, labels, facts, chances)]


def _ablation(
    rows: Sequence[LabelledPair],
    table: npt.NDArray[np.float32],
    labels: npt.NDArray[np.int64],
    facts: Sequence[str],
    chances: npt.NDArray[np.float64],
) -> list[str]:
    names = features.NAMES + features.CROSSED
    lines = [_line("all", rows, chances[:, 2])]
    for name, group in features.GROUPS.items():
        kept = np.array([not set(column.split(" x ")) & set(group) for column in names])
        lines.append(_line(f"without {name}", rows, folded(table[:, kept], labels, facts)[:, 2]))
    style = [names.index(name) for name in features.STYLE]
    lines.append(_line("style alone", rows, folded(table[:, style], labels, facts)[:, 2]))
    lines.append(_line("cosine alone", rows, table[:, names.index("cos_fact")].astype(np.float64)))
    lines.append(_line("words in common alone", rows, table[:, names.index("overlap")].astype(np.float64)))
    return lines


def _line(name: str, rows: Sequence[LabelledPair], chance: npt.NDArray[np.float64]) -> str:
    """Return AUROC of the labelled pairs by difficulty; further rows of `chance` are not counted."""
    parts = []
    for level in ("plain", "adversarial"):
        place = np.array([row.difficulty == level for row in rows])
        truth = np.array([row.label == "disclosed" for row in rows])[place]
        found = accuracy.auroc(truth, chance[: len(rows)][place]) if place.any() else None
        parts.append(f"{level} AUROC {'-' if found is None else f'{found:.3f}'}")
    return f"{name}: {', '.join(parts)}"
