"""Run every evaluator that applies to an episode.

An evaluator that breaks leaves its scores missing and says so; it neither stops the run nor becomes a 0.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from localsim.episode import Episode, Score
from localsim.evaluators import checks, style
from localsim.families import FAMILIES
from localsim.scenario import AnswerKey

_log = logging.getLogger("localsim.evaluators")


@dataclass(frozen=True)
class Evaluation:
    """The scores of one evaluator at one version."""

    evaluator: str
    version: str
    scores: tuple[Score, ...]


def evaluate(episode: Episode, answer: AnswerKey) -> list[Evaluation]:
    """Style, outcome (where the scenario has a family) and the author's checks of a completed episode; else nothing."""
    if episode.status != "completed":
        return []
    scenario = episode.spec.scenario
    found = [_guarded("style", style.VERSION, lambda: style.score(episode.transcript, scenario))]
    family = FAMILIES.get(scenario.family or "")
    if family is not None:
        scores = _guarded(
            f"outcome.{family.name}", family.version, lambda: family.score(episode.transcript, scenario, answer)
        )
        found.append(scores)
    if answer.checks:
        wanted = answer.checks
        found.append(_guarded("checks", checks.VERSION, lambda: checks.score(episode.transcript, scenario, wanted)))
    return found


def _guarded(name: str, version: str, scores: Callable[[], list[Score]]) -> Evaluation:
    try:
        return Evaluation(name, version, tuple(scores()))
    except Exception as error:  # noqa: BLE001 - a broken evaluator must not cost an hour's simulation
        _log.exception("evaluator %s failed", name)
        return Evaluation(name, version, (Score("evaluator_error", None, reason=f"{type(error).__name__}: {error}"),))
