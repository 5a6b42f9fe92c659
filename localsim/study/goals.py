"""Goals and the other six dimensions of Sotopia as a stage: a judge model scores the paper's conditions.

Its numbers are shown only if it passes its control: of scripted players of known success it must score the one that
reaches its goals above the one that refuses everything, on the same tasks. Where it can be compared with outcomes of
the studied model's own conversations, it must follow them, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from localsim import stats
from localsim.evaluators.evaluate import score_runs
from localsim.evaluators.judge import Judge
from localsim.reports.validity.judges import Reliability, reliability
from localsim.stats import text_of
from localsim.store.database import Store
from localsim.store.queries.judged import judge_goals
from localsim.study.stages import Session

LEAST = 0.8
"""Share of the control's scenarios in which a judge must score the successful player above the other."""


@dataclass(frozen=True)
class Judged:
    """What is known of the judge of a study."""

    judge: str
    control: float | None
    """Share of scenarios in which it scores the successful player above the one that refuses, equal scores as half,
    with its 95% interval; None without scores."""
    low: float | None
    high: float | None
    scenarios: int
    own: Reliability
    """Its agreement with the outcomes of the studied conversations, and with itself."""

    @property
    def passes(self) -> bool:
        """Return True if its numbers may be shown."""
        if self.control is None or self.low is None or self.own.fails:
            return False
        return self.control >= LEAST and self.low > 0.5

    def as_json(self) -> dict[str, Any]:
        """Return `judged` of a model in `study.json`."""
        return {**vars(self), "passes": self.passes, "sentences": self.sentences()}

    def sentences(self) -> list[str]:
        """Return what is known of it, and whether its numbers are shown."""
        ordered = text_of(self.control, self.low, self.high, ".0%")
        found = [
            f"As a control {self.judge} scored scripted players: it put the successful one above the one that refuses "
            f"everything in {ordered} of {self.scenarios} scenarios ({LEAST:.0%} are asked for, and an interval above "
            "50%).",
            str(replace(self.own, goal_by_mode={}, warning=None)),
        ]
        shown = "The table beside the paper has its scores." if self.passes else "So its scores are not shown."
        return [*found, *([f"{self.own.warning}."] if self.own.warning else []), shown]


def judge_all(session: Session, runs: Sequence[str], judge: str) -> None:
    """Let the judge score the conversations of runs that it has not scored.

    Raises ModelMissing or BackendUnavailable, as a run does.
    """
    score_runs(session.store, runs, [Judge(judge, session.study.size.answers)], session.say, panel=session.panel)


def judged(store: Store, runs: Sequence[str], controls: Sequence[str], judge: str) -> Judged | None:
    """Return what is known of a judge from a study's runs and those of the scripted players; None if it scored none."""
    own = next((each for each in reliability(store, runs) if each.judge == judge), None)
    if own is None:
        return None
    scores = [
        {
            row.scenario_id: (row.goal, row.success)
            for row in judge_goals(store, run)
            if row.evaluator == f"judge.{judge}"
        }
        for run in controls
    ]
    found = stats.clustered(dict(_ordered(*scores)), (0.0, 1.0))
    return Judged(judge, found.value, found.low, found.high, found.n or 0, own)


Goals = Mapping[str, tuple[float | None, float | None]]
"""Scenario -> a judge's score of the goals and the outcome."""


def _ordered(good: Goals, bad: Goals) -> Iterator[tuple[str, list[float]]]:
    """Yield each scenario in which one player succeeded and the other failed, with 1 if the first has more, or .5."""
    for scenario in sorted(good.keys() & bad.keys()):
        (high, won), (low, lost) = good[scenario], bad[scenario]
        if high is not None and low is not None and (won, lost) == (1, 0):
            yield scenario, [0.5 if high == low else float(high > low)]
