"""Models that choose between conversations of the same scenario and seed, once in each rotation of their order.

`Naturalness` chooses the more natural of two conditions (the paper asks people, arXiv 2403.05020, section 4.2, and its
appendix on annotation), `Choice` the best of any number. A choice counts only if all rotations name the same
conversation. How often they do, and the places that were named, are stored beside it, because small judges choose a
place rather than a conversation: `reports.validity.judges` and `reports.evidence.rubrics` count both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

from localsim.conversation.episode import Sampling, Score, Subject, derive_seed
from localsim.conversation.requests import Message, Request
from localsim.errors import InvalidInput
from localsim.evaluators.asking import Case, Verdict, judgement_records
from localsim.evaluators.base import Evaluation, Evaluator, Scored, Steps
from localsim.stats import grouped
from localsim.store.conditions import Condition, condition_of, in_order, names_of
from localsim.store.records import Record

QUESTION = "Which one sounds more like a natural interaction that people would have in this situation?"
TURNS = 20
"""Turns of each conversation that the judge sees."""
AGAINST = "natural_against_"
"""Start of a score's name: the other condition follows, or the other episode if its run or model is another one."""
CHOSEN = "chosen_among:"
"""Start of a score's name; the names of the conditions follow. Its value is 1 for the choice, 0 for the others, and
1/n for each of n in a tie."""
PLACE = "place_"
"""Start of the name of the share of rotations in which a place was named, from place 1; stored at the first candidate.
The set follows the number after a colon."""
_MOST = 6
"""Most candidates: more conversations do not fit into the context of a judge's question."""
_REASONS = {1.0: "chosen in both orders", 0.0: "the other was chosen in both orders", 0.5: "the orders differ"}
_UNREAD = "no reply could be read"


class _Chooser(Evaluator):
    """A model that is asked about every rotation of each set of conversations."""

    kind: str
    """What its seeds are derived from."""
    system: str
    label: str
    """Stands before the number in a reply."""
    sets: int
    """Sets in one batch; the results are stored before the next batch."""
    criterion = QUESTION

    def in_sets(self, batch: Sequence[Subject]) -> list[list[Subject]]:
        """Return the sets of a batch, which lists them one after another."""
        raise NotImplementedError

    def called(self, unit: Sequence[Subject]) -> str:
        """Return the name of the score of a set's first conversation."""
        raise NotImplementedError

    def verdicts(self, unit: Sequence[Subject], places: Sequence[int | None]) -> Iterator[Evaluation]:
        """Yield the scores of a set, given the place that each rotation names; None: it could not be read."""
        raise NotImplementedError

    def batched(self, waiting: Sequence[Sequence[Subject]]) -> Iterator[tuple[Subject, ...]]:
        """Yield sets in batches."""
        for start in range(0, len(waiting), self.sets):
            yield tuple(subject for unit in waiting[start : start + self.sets] for subject in unit)

    def evaluate(self, batch: tuple[Subject, ...]) -> Steps:
        """Ask about every rotation of each set. After a failed reply a set has no score; the next call asks again."""
        sets = self.in_sets(batch)
        answers = iter((yield [self.request(unit, turn) for unit in sets for turn in range(len(unit))]))
        found: list[Evaluation] = []
        for unit in sets:
            own = [next(answers) for _ in unit]
            read = [answer.read(self.form(unit).read) for answer in own]
            places = [None if each is None else each[0] for each in read]
            records: list[Record] = []
            for turn, (answer, place) in enumerate(zip(own, places, strict=True)):
                case = Case(unit[0].episode_id, self.called(unit), sample=turn, other_id=unit[1].episode_id)
                records += judgement_records(case, self.name, self.version, answer, readable=place is not None)
            found.append(Evaluation(unit[0].episode_id, (), tuple(records)))
            if all(answer.text is not None for answer in own):
                found += self.verdicts(unit, places)
        return found

    def form(self, unit: Sequence[Subject]) -> Verdict:
        """Return the form of a reply: the place of a conversation, from 1, with the reason."""
        return Verdict(1, len(unit), self.label)

    def request(self, unit: Sequence[Subject], turn: int) -> Request:
        """Return the question about one rotation of a set."""
        told = [*numbered(rotated(unit, turn)), "", self.criterion]
        return Request(
            session=f"{'/'.join(each.episode_id for each in unit)}/{turn}",
            speaker="judge",
            messages=(Message("system", self.system.format(n=len(unit))), Message("user", "\n".join(told))),
            prefill="Reason:",
            seed=derive_seed(self.kind, unit[0].seed, turn),
            max_tokens=120,
            sampling=Sampling(temperature=0.0),
            form=self.form(unit),
        )


class Naturalness(_Chooser):
    """A model that chooses the more natural of two conditions. A batch lists the two episodes of each pair in turn.

    `pairs` are the conditions to compare; without them, every two conditions of one run.
    """

    version = "2"
    kind, label, sets = "naturalness", "More natural", 8
    system = (
        "You compare two conversations about the same situation. Answer in two lines.\n"
        "Reason: one short sentence\nMore natural: 1 or 2"
    )

    def __init__(self, model: str, pairs: Collection[tuple[Condition, Condition]] | None = None) -> None:
        self.name = f"naturalness.{model}"
        self.model = model
        self._pairs = None if pairs is None else {frozenset(pair) for pair in pairs}

    def batches(self, subjects: Sequence[Subject], scored: Scored) -> Iterator[tuple[Subject, ...]]:
        """Yield the pairs that this judge has not compared: two conditions of one scenario, index, seed and variant."""
        pairs = (pair for unit in units_of(subjects) for pair in combinations(unit, 2) if self._compares(*pair))
        return self.batched([pair for pair in pairs if self.called(pair) not in scored.get(pair[0].episode_id, ())])

    def _compares(self, one: Subject, other: Subject) -> bool:
        first, second = condition_of(vars(one)), condition_of(vars(other))
        if self._pairs is not None:
            return frozenset((first, second)) in self._pairs
        # The models of a run's conditions differ where a role has a model of its own.
        return first.run_id == second.run_id and first.name != second.name

    def in_sets(self, batch: Sequence[Subject]) -> list[list[Subject]]:
        return [list(pair) for pair in zip(batch[::2], batch[1::2], strict=True)]

    def called(self, unit: Sequence[Subject]) -> str:
        first, second = (condition_of(vars(each)) for each in unit)
        alike = (first.run_id, first.model) == (second.run_id, second.model)
        return AGAINST + (second.name if alike else unit[1].episode_id)

    def verdicts(self, unit: Sequence[Subject], places: Sequence[int | None]) -> Iterator[Evaluation]:
        value = both_orders(*places)
        for pair, chosen in ((unit, value), (unit[::-1], None if value is None else 1 - value)):
            reason = _UNREAD if chosen is None else _REASONS[chosen]
            yield Evaluation(pair[0].episode_id, (Score(self.called(pair), chosen, reason=reason),))


class Choice(_Chooser):
    """A model that chooses the best of all conditions of a scenario and seed, by default the most natural one.

    `criterion` is the question; each has an evaluator's name of its own, `choose.NAME.MODEL`.
    """

    version = "1"
    kind, label, sets = "choose", "Best", 4
    system = (
        "You compare {n} conversations about the same situation. Answer in two lines.\n"
        "Reason: one short sentence\nBest: a number from 1 to {n}"
    )

    def __init__(self, model: str, criterion: str = QUESTION) -> None:
        name = "natural" if criterion == QUESTION else hashlib.sha256(criterion.encode()).hexdigest()[:8]
        self.name = f"choose.{name}.{model}"
        self.model = model
        self.criterion = criterion

    def batches(self, subjects: Sequence[Subject], scored: Scored) -> Iterator[tuple[Subject, ...]]:
        """Yield sets of candidates that this judge has not compared. Raises InvalidInput for too many candidates."""
        waiting = [
            unit
            for unit in units_of(subjects)
            if len(unit) > 1 and not all(self.called(unit) in scored.get(each.episode_id, ()) for each in unit)
        ]
        if (n := max(map(len, waiting), default=0)) > _MOST:
            raise InvalidInput(f"{n} candidates, and at most {_MOST} can be compared", hint="name fewer conditions")
        return self.batched(waiting)

    def in_sets(self, batch: Sequence[Subject]) -> list[list[Subject]]:
        return units_of(batch)

    def called(self, unit: Sequence[Subject]) -> str:
        return CHOSEN + "|".join(names_of(condition_of(vars(each)) for each in unit).values())

    def verdicts(self, unit: Sequence[Subject], places: Sequence[int | None]) -> Iterator[Evaluation]:
        n, name, winner = len(unit), self.called(unit), all_rotations(places)
        read = [place for place in places if place is not None]
        for number, subject in enumerate(unit):
            if not read:
                score = Score(name, None, reason=_UNREAD)
            elif winner is None:
                score = Score(name, 1 / n, reason=f"a tie: the {n} rotations differ")
            else:
                reason = f"{'chosen' if number == winner else 'another was chosen'} in all {n} rotations"
                score = Score(name, float(number == winner), reason=reason)
            yield Evaluation(subject.episode_id, (score,))
        if read:
            shares = [Score(f"{PLACE}{at}:{name}", read.count(at) / len(read)) for at in range(1, n + 1)]
            yield Evaluation(unit[0].episode_id, tuple(shares))


def units_of(subjects: Sequence[Subject]) -> list[list[Subject]]:
    """Return the conversations of the same scenario, index, seed and variant together, in the order of conditions."""
    units = grouped(
        ((subject.scenario.hash, subject.index, subject.seed, subject.variant), subject)
        for subject in subjects
        if subject.transcript.turns
    )
    return [
        sorted(unit, key=lambda each: (in_order(condition_of(vars(each))), each.episode_id))
        for _, unit in sorted(units.items())
    ]


def numbered(shown: Sequence[Subject]) -> list[str]:
    """Return the lines of a prompt: situation, goals, and the conversations with their numbers."""
    scenario = shown[0].scenario
    parts = [f"Situation: {scenario.setting}"]
    parts += [f"{agent.name}'s goal: {agent.goal}" for agent in scenario.agents]
    for number, subject in enumerate(shown, start=1):
        parts += ["", f"Conversation {number}:", *(turn.line for turn in subject.transcript.turns[:TURNS])]
    return parts


def rotated(unit: Sequence[Subject], turn: int) -> list[Subject]:
    """Return the candidates with the one at `turn` first."""
    return [*unit[turn:], *unit[:turn]]


def both_orders(plain: int | None, swapped: int | None) -> float | None:
    """Return 1 if both orders choose the first conversation, 0 if both choose the second, 0.5 if the order decides."""
    if plain is None or swapped is None:
        return None
    if plain == swapped:  # the same place twice is not the same conversation
        return 0.5
    return 1.0 if plain == 1 else 0.0


def all_rotations(places: Sequence[int | None]) -> int | None:
    """Return the candidate, from 0, that every rotation names; None for a tie.

    `places` are the places named in the rotations, in their order. One that could not be read makes a tie.
    """
    n = len(places)
    named = {None if place is None else (turn + place - 1) % n for turn, place in enumerate(places)}
    return named.pop() if len(named) == 1 else None
