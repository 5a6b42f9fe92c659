"""Beliefs of agents with the step `believe` beside the exact posterior, which is what could be inferred."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping

from localsim.conversation.episode import OMNISCIENT, Score, Subject, checked_scores
from localsim.conversation.minds.believe import Question
from localsim.conversation.transcript import Transcript
from localsim.evaluators.base import Evaluation, Scorer, guarded
from localsim.families import family_of

_LEAST = 0.00005
"""The least probability that counts: engines store four digits, and nobody who is sure pays without end."""


class Beliefs(Scorer):
    """How far agents infer what they could: what they believe against the family's `posterior` of what they heard."""

    name = "beliefs"
    version = "1"

    def applies(self, subject: Subject) -> bool:
        """True if an agent was asked to infer something, and no part of another's side was granted."""
        return bool(subject.beliefs) and not subject.see

    def evaluation(self, subject: Subject) -> Evaluation:
        """Return for each agent the means over its answers, whose turns are cited and whose values are in the reason.

        belief_agrees: 1 if the answer is one of the likeliest of the posterior p; belief_chance: the share of answers
        that are. With probabilities b of all answers: belief_loss, the expected log score -sum p log b, and
        belief_entropy, the least that it can be, -sum p log p, in bits; belief_distance, the difference of their Brier
        scores, sum (b - p)^2, from 0 to 2.
        """
        found = guarded(self.name, lambda: checked_scores(_scores(subject)), lambda error: (error,))
        return Evaluation(subject.episode_id, found)


def _scores(subject: Subject) -> Iterator[Score]:
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    family, talk = family_of(subject.scenario.family), subject.transcript.turns
    for each in subject.beliefs:
        heard = Transcript(talk[: each.turn])
        right = family.posterior(heard, subject.scenario, each.agent, sees_all=subject.mode in OMNISCIENT)
        answer = Question("", tuple(right)).form.read(each.text)
        if answer is not None:
            for name, value in _values(answer, each.weights, right):
                found.setdefault((name, each.agent), []).append((each.turn, value))
    for (name, agent), values in found.items():
        reason = f"turn by turn: {' '.join(f'{value:.3f}' for _, value in values)}"
        turns = tuple(turn for turn, _ in values)
        yield Score(name, statistics.fmean(value for _, value in values), agent=agent, reason=reason, turns=turns)


def _values(answer: str, weights: Mapping[str, float], right: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    likeliest = [word for word, p in right.items() if p > max(right.values()) - 1e-9]
    yield "belief_agrees", float(answer in likeliest)
    yield "belief_chance", len(likeliest) / len(right)
    if weights:
        pairs = [(p, weights.get(word, 0.0)) for word, p in right.items()]
        yield "belief_loss", -sum(p * math.log2(max(b, _LEAST)) for p, b in pairs if p)
        yield "belief_entropy", -sum(p * math.log2(p) for p, _ in pairs if p)
        yield "belief_distance", sum((b - p) ** 2 for p, b in pairs)
