"""The protocol of evaluators, which turn completed episodes into scores.

`evaluate.score_runs` drives all of them: rules that only read (style, outcome, checks), the leakage detector, models as
judges, and evaluators of other packages. If an evaluator breaks, its scores are missing and a score without a value
says why; the run continues, and nothing becomes a 0.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from localsim import paths, plugins
from localsim.conversation.beginning import own_from
from localsim.conversation.controls import Control
from localsim.conversation.episode import Score, Subject, checked_scores, scores_of_episode
from localsim.conversation.measures import Measure
from localsim.conversation.requests import Generation, Request
from localsim.conversation.scenario import AnswerKey, Scenario
from localsim.conversation.transcript import Transcript
from localsim.errors import BackendUnavailable, DatabaseError, GenerationFailed, Interrupted, InvalidInput, ModelMissing
from localsim.scenarios.tagging import Tags, tags_of
from localsim.store.records import Record

_log = logging.getLogger("localsim.evaluators")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Evaluation:
    """The scores of one evaluator about one episode, and further rows."""

    episode_id: str
    scores: tuple[Score, ...]
    records: tuple[Record, ...] = ()
    """Leaks, vectors and judgements, which are stored with the scores in one transaction."""


@dataclass(frozen=True)
class Asked:
    """A request to a judge, and the reply or the reason why there is none."""

    request: Request
    reply: Generation | GenerationFailed

    @property
    def text(self) -> str | None:
        """The text after the prefill; None if there is no reply."""
        return self.reply.text if isinstance(self.reply, Generation) else None

    def read(self, reader: Callable[[str], _Result | None]) -> _Result | None:
        """Return what a reader makes of the text; None if there is no reply, or if it cannot be read."""
        return None if self.text is None else reader(self.text)


Steps = Generator[Sequence[Request], Sequence[Asked], list[Evaluation]]
"""A generator that yields requests to a judge, receives the answers in the same order, and returns evaluations."""
Scored = Mapping[str, frozenset[str]]
"""Episode id -> names of the scores that this version of an evaluator has already given."""


BETWEEN: Tags = {"level": ("scenario", "society")}
"""What suits an evaluator of talks between people."""


class Evaluator:
    """The base class of whatever scores completed episodes. Subclasses override `evaluate`, or `Scorer.score`."""

    name: str = ""
    """Name of the evaluator in the database."""
    version: str = "1"
    """Version, a whole number as text; scores of a new version are stored beside the old ones."""
    measures: Sequence[Measure] = ()
    """Columns of reports that use its scores."""
    controls: Sequence[Control] = ()
    """The values that its measures must have for players whose behaviour is known."""
    model: str | None = None
    """The model that answers its requests; None if it asks no model."""
    together: int = 1
    """Episodes that are scored and stored in one transaction."""
    doing: str = ""
    """What is said before each batch, such as "searching for leaks"; empty for an evaluator that takes no time."""

    suits: Mapping[str, tuple[str, ...]] = {}
    """The words of the vocabulary for which it is made, by dimension; a scenario without a word of it suits too."""

    def applies(self, subject: Subject) -> bool:
        """Return True if the evaluator can score an episode."""
        tags = tags_of(subject) if self.suits else {}
        return all(set(words) & set(tags.get(name, words)) for name, words in self.suits.items())

    def batches(self, subjects: Sequence[Subject], scored: Scored) -> Iterator[tuple[Subject, ...]]:
        """Yield groups of episodes to score and store in one transaction; by default those that are not scored."""
        waiting = [subject for subject in subjects if subject.episode_id not in scored]
        yield from (tuple(waiting[at : at + self.together]) for at in range(0, len(waiting), self.together))

    def evaluate(self, batch: tuple[Subject, ...]) -> Steps:
        """Score a batch."""
        raise NotImplementedError


class Scorer(Evaluator):
    """An evaluator that needs only the transcript, the scenario and the answer key of one episode."""

    together = 50
    """Opening the database takes longer than scoring an episode."""

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Return the scores of a completed episode, each with its turns; a score that is unknown is left out."""
        raise NotImplementedError

    def evaluate(self, batch: tuple[Subject, ...]) -> Steps:
        yield from ()
        return [self.evaluation(subject) for subject in batch]

    def evaluation(self, subject: Subject) -> Evaluation:
        """Return the evaluation of one episode. A score whose turns were all given is left out: nobody earned it."""
        own = own_from(subject.scenario, subject.transcript)

        def scores() -> tuple[Score, ...]:
            found = checked_scores(self.score(subject.transcript, subject.scenario, subject.answer))
            return tuple(score for score in found if not score.turns or max(score.turns) >= own)

        return Evaluation(subject.episode_id, guarded(self.name, scores, lambda error: (error,)))


class Plugin(Scorer):
    """An evaluator of another package: any object with `name`, `version` and `score`."""

    def __init__(self, made: Any) -> None:
        self.name, self.version = made.name, made.version
        self.measures, self.suits = tuple(getattr(made, "measures", ())), getattr(made, "suits", {})
        if not callable(getattr(made, "score", None)):
            hint = "docs/extending.md shows what it must have"
            raise InvalidInput(f"evaluators plugin {made.name!r} has no score()", hint=hint)
        self._made = made

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Return the scores of the object's `score`. Raises ValueError or TypeError for one that cannot be kept."""
        return kept(self._made, self._made.score(transcript, scenario, answer), scenario, transcript)


def kept(owner: object, given: Sequence[Score], scenario: Scenario, transcript: Transcript) -> list[Score]:
    """Return the scores that the `score` of an owner gave. Raises ValueError or TypeError, with its line, for one that
    cannot be kept.
    """
    try:
        return list(scores_of_episode(given, scenario, transcript))
    except (TypeError, ValueError) as error:
        if plugins.failure(error):  # `score` is a generator, and it failed at a line of its own
            raise
        raise type(error)(f"{error} ({plugins.place_of(owner, 'score')})") from None


ERROR = "evaluator_error"
"""The score of an episode on which an evaluator failed: without a value, with the reason."""
_OF_THE_MACHINE = (BackendUnavailable, DatabaseError, Interrupted, ModelMissing)


def guarded(name: str, work: Callable[[], _Result], failed: Callable[[Score], _Result]) -> _Result:
    """Return the result of `work`, or of `failed` with a score that says why it raised.

    Errors of the machine and not of the evaluator pass: a missing model, a database that is held, an interruption.
    """
    try:
        return work()
    except _OF_THE_MACHINE:
        raise
    except Exception as error:  # noqa: BLE001 - a broken evaluator must not cost an hour's simulation
        place = f" ({inside.where})" if (inside := plugins.failure(error)) else ""
        reason = f"{type(error).__name__}: {error}{place}"
        _told(name, reason)
        return failed(Score(ERROR, None, reason=reason))


@lru_cache(maxsize=100)
def _told(name: str, reason: str) -> None:
    """Say once that an evaluator fails for a reason, which each of its episodes would repeat."""
    _log.warning("evaluator %s failed: %s; its scores are missing", name, reason, exc_info=paths.debug())
