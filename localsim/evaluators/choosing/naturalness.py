"""Naturalness: a model chooses the more natural of two conditions of the same scenario and seed, twice, with the order
swapped (the paper asks people, arXiv 2403.05020, section 4.2, and its appendix on annotation).

A choice counts only if both orders agree. `reports.validity.judges` measures how often they do, because small judges
choose a place rather than a conversation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

from localsim.conversation.episode import Sampling, Score, Subject, derive_seed
from localsim.conversation.requests import Message, Request
from localsim.evaluators.asking import Case, Verdict, judgement_records
from localsim.evaluators.base import Asked, Evaluation, Evaluator, Scored, Steps
from localsim.store.conditions import Condition, condition_of, in_order
from localsim.store.records import Record

VERSION = "2"
_SYSTEM = (
    "You compare two conversations about the same situation. Answer in two lines.\n"
    "Reason: one short sentence\nMore natural: 1 or 2"
)
QUESTION = "Which one sounds more like a natural interaction that people would have in this situation?"
FORM = Verdict(1, 2, "More natural")
PAIRS = 8
"""Pairs in one batch; the results are stored before the next batch."""
TURNS = 20
"""Turns of each conversation that the judge sees."""
_REASONS = {1.0: "chosen in both orders", 0.0: "the other was chosen in both orders", 0.5: "the orders differ"}


AGAINST = "natural_against_"
"""Start of a score's name: the other condition follows, or the other episode if its run or model is another one."""


class Naturalness(Evaluator):
    """A model that chooses the more natural of two conditions. A batch lists the two episodes of each pair in turn.

    `pairs` are the conditions to compare; without them, every two conditions of one run.
    """

    version = VERSION

    def __init__(self, model: str, pairs: Collection[tuple[Condition, Condition]] | None = None) -> None:
        self.name = f"naturalness.{model}"
        self.model = model
        self._pairs = None if pairs is None else {frozenset(pair) for pair in pairs}

    def batches(self, subjects: Sequence[Subject], scored: Scored) -> Iterator[tuple[Subject, ...]]:
        """Yield the pairs that this judge has not compared: two conditions of one scenario, index, seed and variant."""
        pairs = [
            (one, other)
            for unit in units_of(subjects)
            for one, other in combinations(unit, 2)
            if self._compares(one, other) and score_name(one, other) not in scored.get(one.episode_id, ())
        ]
        for start in range(0, len(pairs), PAIRS):
            yield tuple(subject for pair in pairs[start : start + PAIRS] for subject in pair)

    def _compares(self, one: Subject, other: Subject) -> bool:
        first, second = condition_of(vars(one)), condition_of(vars(other))
        if self._pairs is not None:
            return frozenset((first, second)) in self._pairs
        # The models of a run's conditions differ where a role has a model of its own.
        return first.run_id == second.run_id and first.name != second.name

    def evaluate(self, batch: tuple[Subject, ...]) -> Steps:
        """Ask about both orders of each pair. After a failed reply a pair has no score; the next call asks again."""
        orders = [
            (first, second, swap)
            for first, second in zip(batch[::2], batch[1::2], strict=True)
            for swap in (False, True)
        ]
        answers = yield [request(*order) for order in orders]
        evaluations = []
        for (first, second, swap), answer in zip(orders, answers, strict=True):
            case = Case(first.episode_id, score_name(first, second), sample=int(swap), other_id=second.episode_id)
            readable = choice_of(answer) is not None
            records: list[Record] = judgement_records(case, self.name, self.version, answer, readable=readable)
            evaluations.append(Evaluation(first.episode_id, (), tuple(records)))
        for (first, second, _), plain, swapped in zip(orders[::2], answers[::2], answers[1::2], strict=True):
            if plain.text is not None and swapped.text is not None:
                value = decide(choice_of(plain), choice_of(swapped))
                evaluations.append(_chosen(first, second, value))
                evaluations.append(_chosen(second, first, None if value is None else 1 - value))
        return evaluations


def units_of(subjects: Sequence[Subject]) -> list[list[Subject]]:
    """Return the conversations of the same scenario, index, seed and variant together, in the order of conditions."""
    units: dict[tuple[str, int, int, int], list[Subject]] = defaultdict(list)
    for subject in subjects:
        if subject.transcript.turns:
            units[subject.scenario.hash, subject.index, subject.seed, subject.variant].append(subject)
    return [sorted(unit, key=_place) for _, unit in sorted(units.items())]


def _chosen(subject: Subject, other: Subject, value: float | None) -> Evaluation:
    reason = "no reply could be read" if value is None else _REASONS[value]
    return Evaluation(subject.episode_id, (Score(score_name(subject, other), value, reason=reason),))


def score_name(subject: Subject, other: Subject) -> str:
    """Return the name of the score of an episode against another one."""
    first, second = condition_of(vars(subject)), condition_of(vars(other))
    alike = (first.run_id, first.model) == (second.run_id, second.model)
    return AGAINST + (second.name if alike else other.episode_id)


def _place(subject: Subject) -> tuple[tuple[int, str, str], str]:
    return in_order(condition_of(vars(subject))), subject.episode_id


def choice_of(asked: Asked) -> int | None:
    """Return the place (1 or 2) that a reply chooses; None if it cannot be read."""
    read = asked.read(FORM.read)
    return None if read is None else read[0]


def request(first: Subject, second: Subject, swap: bool) -> Request:
    """Return the question about a pair; `swap` shows its first conversation second."""
    parts = numbered((second, first) if swap else (first, second))
    return Request(
        session=f"{first.episode_id}/{second.episode_id}/{swap}",
        speaker="judge",
        messages=(Message("system", _SYSTEM), Message("user", "\n".join([*parts, "", QUESTION]))),
        prefill="Reason:",
        seed=derive_seed("naturalness", first.seed, int(swap)),
        max_tokens=120,
        sampling=Sampling(temperature=0.0),
        form=FORM,
    )


def numbered(shown: Sequence[Subject]) -> list[str]:
    """Return the lines of a prompt: situation, goals, and the conversations with their numbers."""
    scenario = shown[0].scenario
    parts = [f"Situation: {scenario.setting}"]
    parts += [f"{agent.name}'s goal: {agent.goal}" for agent in scenario.agents]
    for number, subject in enumerate(shown, start=1):
        parts += ["", f"Conversation {number}:", *(turn.line for turn in subject.transcript.turns[:TURNS])]
    return parts


def decide(plain: int | None, swapped: int | None) -> float | None:
    """Return 1 if both orders choose the first conversation, 0 if both choose the second, 0.5 if the order decides."""
    if plain is None or swapped is None:
        return None
    if plain == swapped:  # the same place twice is not the same conversation
        return 0.5
    return 1.0 if plain == 1 else 0.0
