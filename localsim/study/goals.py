"""Goals and the other six dimensions of Sotopia as a stage: a judge model scores the paper's conditions.

Its numbers are shown only if it passes its control: of scripted players of known success it must score the one that
reaches its goals above the one that refuses everything, on the same tasks. Where it can be compared with outcomes of
the studied model's own conversations, it must follow them, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from localsim.evaluators.evaluate import score_runs
from localsim.evaluators.judge import Judge
from localsim.reports.validity.judges import Goal, Reliability, follows_outcome, reliability
from localsim.stats import text_of
from localsim.store.conditions import Condition
from localsim.store.database import Store
from localsim.store.queries.judged import judge_goals
from localsim.study.design import SAMPLES
from localsim.study.stages import Session

LEAST = 0.8
"""Share of pairs of scripted conversations, one successful and one not, whose order a judge must find."""


@dataclass(frozen=True)
class Judged:
    """What is known of the judge of a study."""

    judge: str
    control: float | None
    """Share of pairs of scripted conversations (a success, a failure) that it orders rightly, with its 95% interval
    over scenarios; None if no pair could be made."""
    low: float | None
    high: float | None
    pairs: int
    own: Reliability
    """Its agreement with the outcomes of the studied conversations, and with itself."""

    @property
    def passes(self) -> bool:
        """Return True if its numbers may be shown."""
        if self.control is None or self.low is None or self.own.fails:
            return False
        return self.control >= LEAST and self.low > 0.5

    def sentences(self) -> list[str]:
        """Return what is known of it, and whether its numbers are shown."""
        ordered = text_of(self.control, self.low, self.high, ".0%")
        found = [
            f"As a control {self.judge} scored scripted players: it put the successful one above the one that refuses "
            f"everything in {ordered} of {self.pairs} pairs ({LEAST:.0%} are asked for, and an interval above 50%).",
            str(replace(self.own, goal_by_mode={}, warning=None)),
        ]
        shown = "The table beside the paper has its scores." if self.passes else "So its scores are not shown."
        return [*found, *([f"{self.own.warning}."] if self.own.warning else []), shown]


def judge_all(session: Session, runs: Sequence[str], judge: str) -> None:
    """Let the judge score the conversations of runs that it has not scored.

    Raises ModelMissing or BackendUnavailable, as a run does.
    """
    score_runs(session.store, runs, [Judge(judge, SAMPLES)], session.say, panel=session.panel)


def judged(store: Store, runs: Sequence[str], controls: Sequence[str], judge: str) -> Judged | None:
    """Return what is known of a judge from a study's runs and those of the scripted players; None if it scored none."""
    own = next((each for each in reliability(store, runs) if each.judge == judge), None)
    if own is None:
        return None
    rows = [row for run in controls for row in judge_goals(store, run) if row.evaluator == f"judge.{judge}"]
    alike = Condition(controls[0], "agents", "")
    known = [
        Goal(row.family, row.scenario_id, alike, row.goal, row.success)
        for row in rows
        if row.goal is not None and row.success is not None
    ]
    found, pairs = follows_outcome(known)
    return Judged(judge, found.value, found.low, found.high, pairs, own)
