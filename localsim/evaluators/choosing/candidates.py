"""A model chooses the best of n conversations of the same scenario and seed, once in each rotation of their order.

A choice counts only if all rotations name the same conversation; anything else is a tie. The shares of the places that
were named are stored beside it, because small judges choose a place rather than a conversation.
`reports.evidence.choices` counts both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from localsim.conversation.episode import Sampling, Score, Subject, derive_seed
from localsim.conversation.requests import Message, Request
from localsim.errors import InvalidInput
from localsim.evaluators.asking import Case, Verdict, judgement_records
from localsim.evaluators.base import Asked, Evaluation, Evaluator, Scored, Steps
from localsim.evaluators.choosing.naturalness import QUESTION, numbered, units_of
from localsim.store.conditions import condition_of, names_of
from localsim.store.records import Record

CHOSEN = "chosen_among:"
"""Start of a score's name; the names of the conditions follow. Its value is 1 for the choice, 0 for the others, and
1/n for each of n in a tie."""
PLACE = "place_"
"""Start of the name of the share of rotations in which a place was named, from place 1; stored at the first candidate.
The set follows the number after a colon."""
LABEL = "Best"
_BATCH = 4
"""Sets of candidates in one batch; the results are stored before the next batch."""
_MOST = 6
"""Most candidates: more conversations do not fit into the context of a judge's question."""
_SYSTEM = (
    "You compare {n} conversations about the same situation. Answer in two lines.\n"
    "Reason: one short sentence\nBest: a number from 1 to {n}"
)


class Choice(Evaluator):
    """A model that chooses the best of all conditions of a scenario and seed, by default the most natural one.

    `criterion` is the question; each has an evaluator's name of its own, `choose.NAME.MODEL`.
    """

    version = "1"

    def __init__(self, model: str, criterion: str = QUESTION) -> None:
        self.name = f"choose.{criterion_name(criterion)}.{model}"
        self.model = model
        self._criterion = criterion

    def batches(self, subjects: Sequence[Subject], scored: Scored) -> Iterator[tuple[Subject, ...]]:
        """Yield sets of candidates that this judge has not compared; a batch lists the sets one after another."""
        waiting = [
            unit
            for unit in units_of(subjects)
            if len(unit) > 1 and not all(set_name(unit) in scored.get(each.episode_id, ()) for each in unit)
        ]
        if (n := max(map(len, waiting), default=0)) > _MOST:
            raise InvalidInput(f"{n} candidates, and at most {_MOST} can be compared", hint="name fewer conditions")
        for start in range(0, len(waiting), _BATCH):
            yield tuple(subject for unit in waiting[start : start + _BATCH] for subject in unit)

    def evaluate(self, batch: tuple[Subject, ...]) -> Steps:
        """Ask about every rotation of each set. After a failed reply a set has no score; the next call asks again."""
        sets = units_of(batch)
        asked = [(unit, turn) for unit in sets for turn in range(len(unit))]
        answers = dict(
            zip(
                [(id(unit), turn) for unit, turn in asked],
                (yield [request(unit, turn, self._criterion) for unit, turn in asked]),
                strict=True,
            )
        )
        found: list[Evaluation] = []
        for unit in sets:
            own = [answers[id(unit), turn] for turn in range(len(unit))]
            found.append(Evaluation(unit[0].episode_id, (), tuple(self._records(unit, own))))
            if all(answer.text is not None for answer in own):
                found += verdicts(unit, [place_of(answer, len(unit)) for answer in own])
        return found

    def _records(self, unit: Sequence[Subject], answers: Sequence[Asked]) -> Iterator[Record]:
        for turn, answer in enumerate(answers):
            case = Case(unit[0].episode_id, set_name(unit), sample=turn, other_id=unit[1].episode_id)
            readable = place_of(answer, len(unit)) is not None
            yield from judgement_records(case, self.name, self.version, answer, readable=readable)


def criterion_name(criterion: str) -> str:
    """Return the name of a question in the name of its evaluator: `natural`, or the start of its hash."""
    return "natural" if criterion == QUESTION else hashlib.sha256(criterion.encode()).hexdigest()[:8]


def set_name(unit: Sequence[Subject]) -> str:
    """Return the name of the scores of a set of candidates."""
    return CHOSEN + "|".join(names_of(condition_of(vars(each)) for each in unit).values())


def rotated(unit: Sequence[Subject], turn: int) -> list[Subject]:
    """Return the candidates with the one at `turn` first."""
    return [*unit[turn:], *unit[:turn]]


def request(unit: Sequence[Subject], turn: int, criterion: str = QUESTION) -> Request:
    """Return the question about one rotation of a set."""
    n = len(unit)
    return Request(
        session=f"{'/'.join(each.episode_id for each in unit)}/{turn}",
        speaker="judge",
        messages=(
            Message("system", _SYSTEM.format(n=n)),
            Message("user", "\n".join([*numbered(rotated(unit, turn)), "", criterion])),
        ),
        prefill="Reason:",
        seed=derive_seed("choose", unit[0].seed, turn),
        max_tokens=120,
        sampling=Sampling(temperature=0.0),
        form=Verdict(1, n, LABEL),
    )


def place_of(answer: Asked, n: int) -> int | None:
    """Return the place, from 1, that a reply names; None if it cannot be read."""
    read = answer.read(Verdict(1, n, LABEL).read)
    return None if read is None else read[0]


def decide(places: Sequence[int | None]) -> int | None:
    """Return the candidate, from 0, that every rotation names; None for a tie.

    `places` are the places named in the rotations, in their order. One that could not be read makes a tie.
    """
    n = len(places)
    named = {None if place is None else (turn + place - 1) % n for turn, place in enumerate(places)}
    return named.pop() if len(named) == 1 else None


def verdicts(unit: Sequence[Subject], places: Sequence[int | None]) -> Iterator[Evaluation]:
    """Yield the scores of a set; those that could not be read in any rotation have no value."""
    n, name = len(unit), set_name(unit)
    read = [place for place in places if place is not None]
    winner = decide(places)
    for number, subject in enumerate(unit):
        if not read:
            score = Score(name, None, reason="no reply could be read")
        elif winner is None:
            score = Score(name, 1 / n, reason=f"a tie: the {n} rotations differ")
        else:
            reason = f"{'chosen' if number == winner else 'another was chosen'} in all {n} rotations"
            score = Score(name, float(number == winner), reason=reason)
        yield Evaluation(subject.episode_id, (score,))
    if read:
        shares = [Score(f"{PLACE}{at}:{name}", read.count(at) / len(read)) for at in range(1, n + 1)]
        yield Evaluation(unit[0].episode_id, tuple(shares))
