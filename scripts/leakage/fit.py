"""Thresholds of the detector: fitted to writers that its parts were not trained on, measured on others again."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from localsim.leakage import accuracy, curve, track
from localsim.leakage.calibrate import Read, best_threshold, with_curve, with_prior
from localsim.leakage.detector import WEIGHTS, LeakageDetector, Weights, odds_of, turn_of
from localsim.leakage.pairs import LabelledPair, LabelledTranscript, pairs_of
from localsim.leakage.track import Leakage
from scripts.leakage import data
from scripts.leakage.scores import Floats, Parts, between, pairs_in, parts_of, rows_in

MIXES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
"""Weights of the cheap classifier beside the reader that are tried."""
ALMOST = 1.02
"""A loss up to so many times the least one is almost as good."""


def fit(*, of_train: bool = True, share: float = curve.DEFAULT_SHARE) -> list[str]:
    """Fit all thresholds, write them with their accuracy, and return lines that say what they are."""
    detector = LeakageDetector()
    rows, talks = data.threshold_pairs(), data.threshold_talks(of_train=of_train)
    of_rows = parts_of(detector, [row.pair for row in rows])
    of_turns = parts_of(detector, pairs_in(talks))
    weights = mixed(detector.weights, talks, of_turns)
    weights = fitted_to_pairs(weights, rows, of_rows, above_strangers(detector, weights, rows))
    weights, _ = beside(weights, talks, of_turns)
    found: Read = (talks, rows_in(talks, of_turns.both(weights)[:, 2], weights))
    weights = with_prior(weights, found)
    held_rows = [row for part in data.held_out_pairs().values() for row in part]
    kinds = data.held_out_talks()
    held_talks = [talk for part in kinds.values() for talk in part]
    of_held = parts_of(detector, pairs_in(held_talks))
    measured: Read = (held_talks, rows_in(held_talks, of_held.both(weights)[:, 2], weights))
    weights = replace(with_curve(weights, found, measured, share), fitted={}, name=WEIGHTS.stem)
    decided = [track.decided(rows, weights) for rows in measured[1]]
    leaks = iter(decided)
    by_kind = {
        data.KINDS[name]: curve.rates(accuracy.of_talks(talks, list(itertools.islice(leaks, len(talks)))))
        for name, talks in kinds.items()
    }
    pairs = accuracy.of_pairs(detector.having(weights), held_rows)
    measured_by = {"pairs": pairs, "transcripts": weights.accuracy["transcripts"], "by_kind": by_kind}
    weights = replace(weights, accuracy=measured_by)
    weights.write(WEIGHTS)
    return [
        f"cheap weight {weights.cheap:g}, disclosed from {weights.disclosed_from:.3f}, hint from "
        f"{weights.hint_from:.3f}, odds in talks {weights.talk_intercept:.2f} + {weights.talk_slope:.2f} x (odds + "
        f"{weights.talk_words:.2f} x length - {weights.talk_rival:.2f} x rival)",
        *(f"at most {p.share:g}: {_counts(p)}" for p in weights.talk_curve),
        _spans(held_talks, decided),
    ]


def _spans(talks: Sequence[LabelledTranscript], found: Sequence[Leakage]) -> str:
    """Return how often the true first turn is one of the turns that `v_leaks` gives, and how many these are."""
    widths, right = [], 0
    for talk, leakage in zip(talks, found, strict=True):
        for leak in leakage.leaks:
            if told := talk.disclosures.get(leak.fact.id):
                chances = {turn: each.probability for fact, turn, each in leakage.findings if fact.id == leak.fact.id}
                first, last = between(chances, leak.turn)
                widths.append(last - first + 1)
                right += first <= told.turn <= last
    return f"between earliest and latest: {right} of {len(widths)}, on average {np.mean(widths):.1f} turns"


def _counts(point: curve.Point) -> str:
    return (
        f"from {point.talk_from:.4f}, silence {point.silences_kept}/{point.silent}, first turn "
        f"{point.first_turns_right}/{point.disclosed}, partner {point.omniscient_right} right of "
        f"{point.omniscient_found} found and {point.omniscient_labelled} labelled"
    )


def mixed(weights: Weights, talks: Sequence[LabelledTranscript], of_turns: Parts) -> Weights:
    """Return weights with the least share of the cheap classifier that tells first turns almost as well as the best.

    The reader resists misleading words better, so the cheap classifier gets no more than it is worth.
    """
    losses = {mix: beside(replace(weights, cheap=mix), talks, of_turns)[1] for mix in MIXES}
    return replace(weights, cheap=next(mix for mix in MIXES if losses[mix] <= ALMOST * min(losses.values())))


def beside(weights: Weights, talks: Sequence[LabelledTranscript], of_turns: Parts) -> tuple[Weights, float]:
    """Return weights with what the length of a turn and its other facts add, and the loss of that logistic regression.

    It tells the first turn of a fact from the turns before; later turns are neither.
    """
    chance = iter(of_turns.both(weights)[:, 2].tolist())
    table, truth = [], []
    for talk in talks:
        found = [(fact, turn, pair, next(chance)) for fact, turn, pair in pairs_of(talk.facts, talk.turns)]
        for fact, turn, pair, own in found:
            told = talk.disclosures.get(fact.id)
            if told is None or turn <= told.turn:
                best = max(other for _, place, _, other in found if place == turn)
                table.append([odds_of(own), *turn_of(own, len(pair.utterance.split()), best)])
                truth.append(told is not None and turn == told.turn)
    model = LogisticRegression(C=100, max_iter=3000).fit(table, truth)
    slope, words, rival = model.coef_[0]
    loss = log_loss(truth, model.predict_proba(table)[:, 1], normalize=False)
    added = {"talk_words": round(words / slope, 6), "talk_rival": round(-rival / slope, 6)}
    return replace(weights, **added), float(loss)


def fitted_to_pairs(weights: Weights, rows: Sequence[LabelledPair], parts: Parts, least_hint: float) -> Weights:
    """Return weights with thresholds for single turns; a hint is at least as sure as `least_hint`."""
    chances, cheap = parts.both(weights), parts.cheap
    truth = np.array([row.label == "disclosed" for row in rows])
    some = np.array([row.label != "none" for row in rows])
    return replace(
        weights,
        disclosed_from=best_threshold(truth, chances[:, 2]),
        hint_from=max(best_threshold(some, chances[:, 1] + chances[:, 2]), least_hint),
        words_disclosed_from=best_threshold(truth, cheap[:, 2]),
        words_hint_from=best_threshold(some, cheap[:, 1] + cheap[:, 2]),
    )


def above_strangers(detector: LeakageDetector, weights: Weights, rows: Sequence[LabelledPair]) -> float:
    """Return the probability of a hint that 19 of 20 unrelated pairs stay below.

    Labelled pairs are hard; in a conversation most pairs are unrelated.
    """
    unrelated = data.strangers(rows, 0.3, random.Random(2))
    chances: Floats = parts_of(detector, [row.pair for row in unrelated]).both(weights)
    return float(np.quantile(chances[:, 1] + chances[:, 2], 0.95))
