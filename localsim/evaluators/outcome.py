"""The outcome of a task, scored by the scenario's family."""

from __future__ import annotations

from localsim.conversation.episode import Score, Subject
from localsim.conversation.scenario import AnswerKey, Scenario
from localsim.conversation.transcript import Transcript
from localsim.evaluators.base import Scorer, kept
from localsim.families import Family


class Outcome(Scorer):
    """The scores of one family."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self.name = f"outcome.{family.name}"
        self.version = family.version
        self.measures = tuple(family.measures)

    def applies(self, subject: Subject) -> bool:
        return subject.scenario.family == self._family.name

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Return the scores of `Family.score`. Raises ValueError or TypeError for one that cannot be kept."""
        return kept(self._family, self._family.score(transcript, scenario, answer), scenario, transcript)
