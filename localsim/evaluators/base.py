"""Run every evaluator that applies to an episode.

An evaluator that breaks leaves its scores missing and says so; it neither stops the run nor becomes a 0.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from localsim.conversation.episode import Episode, Score
from localsim.conversation.scenario import AnswerKey, Scenario
from localsim.conversation.transcript import Transcript
from localsim.evaluators import checks, style
from localsim.families import FAMILIES

_log = logging.getLogger("localsim.evaluators")


@dataclass(frozen=True)
class Evaluation:
    """The scores of one evaluator at one version."""

    evaluator: str
    version: str
    scores: tuple[Score, ...]


class Evaluator(Protocol):
    """An evaluator of another package (entry point `localsim.evaluators`), run by `localsim score --evaluator`."""

    name: str
    version: str
    """Of the scoring; a new one is a new set of scores beside the old."""

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Scores of a completed episode, each citing the turns it rests on; what cannot be known is left out."""


def evaluate(episode: Episode, answer: AnswerKey) -> list[Evaluation]:
    """Style, outcome (where the scenario has a family) and the author's checks of a completed episode; else nothing."""
    if episode.status != "completed":
        return []
    scenario = episode.spec.scenario
    found = [guarded("style", style.VERSION, lambda: style.score(episode.transcript, scenario))]
    family = FAMILIES.get(scenario.family or "")
    if family is not None:
        scores = guarded(
            f"outcome.{family.name}", family.version, lambda: family.score(episode.transcript, scenario, answer)
        )
        found.append(scores)
    if answer.checks:
        wanted = answer.checks
        found.append(guarded("checks", checks.VERSION, lambda: checks.score(episode.transcript, scenario, wanted)))
    return found


def guarded(name: str, version: str, scores: Callable[[], list[Score]]) -> Evaluation:
    """What `scores` gives; where it breaks, one score without a value that says so."""
    try:
        found = tuple(scores())
        wrong = [
            score for score in found if not isinstance(score, Score) or not isinstance(score.value, int | float | None)
        ]
        if wrong:
            raise TypeError(f"not a Score with a number or None: {wrong[0]!r}")
        return Evaluation(name, version, found)
    except Exception as error:  # noqa: BLE001 - a broken evaluator must not cost an hour's simulation
        _log.exception("evaluator %s failed", name)
        return Evaluation(name, version, (Score("evaluator_error", None, reason=f"{type(error).__name__}: {error}"),))
