"""What an evaluator is: it turns completed episodes into scores, with the same protocol for every kind of evidence.

`evaluate.score_run` drives all of them: rules that only read (style, outcome, checks), the leakage detector, models as
judges, and evaluators of other packages. An evaluator that breaks leaves its scores missing and says so; it neither
stops the run nor becomes a 0.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localsim.conversation.episode import Score, Subject
from localsim.conversation.exchange import Generation, Request
from localsim.conversation.measures import Measure
from localsim.conversation.scenario import AnswerKey, Scenario
from localsim.conversation.transcript import Transcript
from localsim.errors import GenerationFailed, InvalidInput
from localsim.store.records import Record

_log = logging.getLogger("localsim.evaluators")


@dataclass(frozen=True)
class Evaluation:
    """The scores of one evaluator about one episode, and the rows that go with them."""

    episode_id: str
    scores: tuple[Score, ...]
    records: tuple[Record, ...] = ()
    """Leaks, vectors, judgements: stored with the scores in one transaction."""


@dataclass(frozen=True)
class Asked:
    """A request as it was sent to a judge, and the reply or the reason why there is none."""

    request: Request
    reply: Generation | GenerationFailed

    @property
    def text(self) -> str | None:
        """The text after the prefill; None where there is no reply."""
        return self.reply.text if isinstance(self.reply, Generation) else None


Steps = Generator[Sequence[Request], Sequence[Asked], list[Evaluation]]
"""Yields requests to the model that judges, is sent the answers in the same order, and returns evaluations."""
Scored = Mapping[str, frozenset[str]]
"""Episode id -> names of the scores that this version of an evaluator has given already."""


class Evaluator:
    """Something that scores completed episodes. Subclasses override `evaluate`, or `Scorer.score`."""

    name: str = ""
    """Name under which its scores are stored."""
    version: str = "1"
    """A whole number as text; a new version adds a new set of scores beside the old one."""
    measures: Sequence[Measure] = ()
    """Columns that its scores add to reports."""
    model: str | None = None
    """The model that answers its requests; None for an evaluator that asks none."""

    def applies(self, subject: Subject) -> bool:  # noqa: ARG002 - overridden
        """Whether an episode can be scored at all."""
        return True

    def batches(self, subjects: Sequence[Subject], scored: Scored) -> Iterator[tuple[Subject, ...]]:
        """Groups of episodes to score together and store in one transaction; by default one by one, unless scored."""
        yield from ((subject,) for subject in subjects if subject.episode_id not in scored)

    def evaluate(self, batch: tuple[Subject, ...]) -> Steps:
        """Score a batch."""
        raise NotImplementedError


BATCH = 50


class Scorer(Evaluator):
    """An evaluator that needs nothing but the transcript, the scenario and the answer key of one episode."""

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Scores of a completed episode, each citing its turns; a score that cannot be known is left out."""
        raise NotImplementedError

    def batches(self, subjects: Sequence[Subject], scored: Scored) -> Iterator[tuple[Subject, ...]]:
        """Groups of BATCH episodes: opening the database takes longer than scoring one."""
        waiting = [subject for subject in subjects if subject.episode_id not in scored]
        yield from (tuple(waiting[at : at + BATCH]) for at in range(0, len(waiting), BATCH))

    def evaluate(self, batch: tuple[Subject, ...]) -> Steps:
        """Score each episode by itself."""
        yield from ()
        return [self.evaluation(subject) for subject in batch]

    def evaluation(self, subject: Subject) -> Evaluation:
        """The evaluation of one episode."""
        scores = guarded(self.name, lambda: self.score(subject.transcript, subject.scenario, subject.answer))
        return Evaluation(subject.episode_id, scores)


class Plugin(Scorer):
    """An evaluator of another package: any object with `name`, `version` and `score`."""

    def __init__(self, made: Any) -> None:
        self.name, self.version = made.name, made.version
        self.measures = tuple(getattr(made, "measures", ()))
        if not callable(getattr(made, "score", None)):
            raise InvalidInput(
                f"evaluators plugin {made.name!r} has no score()", hint="docs/extending.md shows what it must have"
            )
        self.score = made.score  # type: ignore[method-assign]


def guarded(name: str, scores: Callable[[], list[Score]]) -> tuple[Score, ...]:
    """The scores that `scores` returns; one score without a value, which says why, where it breaks."""
    try:
        found = tuple(scores())
        wrong = [
            score for score in found if not isinstance(score, Score) or not isinstance(score.value, int | float | None)
        ]
        if wrong:
            raise TypeError(f"not a Score with a number or None: {wrong[0]!r}")
        return found
    except Exception as error:  # noqa: BLE001 - a broken evaluator must not cost an hour's simulation
        _log.exception("evaluator %s failed", name)
        return (Score("evaluator_error", None, reason=f"{type(error).__name__}: {error}"),)
