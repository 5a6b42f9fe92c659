"""The reads of what judges said: goals, rubrics and choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localsim.store.conditions import Conditioned
from localsim.store.database import Store


@dataclass(frozen=True)
class Goals(Conditioned):
    """What a judge said of the goals of one episode: means over its agents."""

    evaluator: str
    family: str
    scenario_id: str
    episode_id: str
    goal: float | None
    spread: float | None
    success: float | None


def judge_goals(store: Store, run_id: str) -> list[Goals]:
    """The goals of each judge and episode."""
    return store.select(
        Goals,
        "SELECT j.evaluator, coalesce(j.family, 'everyday') AS family, j.scenario_id, j.run_id, j.mode, j.model, "
        "j.see, j.episode_id, avg(j.value) FILTER (j.name = 'goal') AS goal, "
        "avg(j.value) FILTER (suffix(j.name, '_spread')) AS spread, any_value(o.value) AS success "
        "FROM v_scores j LEFT JOIN (SELECT episode_id, value FROM v_scores WHERE run_id = $run "
        "AND name = 'success' AND newest) o ON o.episode_id = j.episode_id "
        "WHERE j.run_id = $run AND j.newest AND starts_with(j.evaluator, 'judge.') "
        "GROUP BY j.evaluator, j.family, j.scenario_id, j.run_id, j.mode, j.model, j.see, j.episode_id "
        "ORDER BY ALL",
        {"run": run_id},
    )


@dataclass(frozen=True)
class RubricScore(Conditioned):
    """A score of a judge by one dimension of a rubric."""

    evaluator: str
    name: str
    agent: str
    value: float | None
    """None if the reply could not be read."""
    family: str
    scenario_id: str
    episode_id: str
    success: float | None


def rubric_scores(store: Store, run_id: str) -> list[RubricScore]:
    """The newest scores of judges by rubrics, missing ones too."""
    return store.select(
        RubricScore,
        "SELECT j.evaluator, j.name, j.agent, j.value, coalesce(j.family, 'everyday') AS family, j.scenario_id, "
        "j.run_id, j.mode, j.model, j.see, j.episode_id, o.value AS success FROM v_scores j LEFT JOIN "
        "(SELECT episode_id, value FROM v_scores WHERE run_id = $run AND name = 'success' AND newest) o "
        "USING (episode_id) WHERE j.run_id = $run AND j.newest "
        "AND j.name NOT IN ('malformed_judgements', 'evaluator_error') "
        "AND (starts_with(j.evaluator, 'judge.') OR starts_with(j.evaluator, 'rubric.')) ORDER BY ALL",
        {"run": run_id},
    )


def rubric_replies(store: Store, run_id: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Evaluator and dimension -> replies to the newest version of its rubric, and how many cannot be read."""
    rows = store.rows(
        "SELECT evaluator, name, count(*) AS replies, count(malformed) AS unread FROM (SELECT evaluator, name, "
        "malformed FROM v_judgements WHERE run_id = ? AND (starts_with(evaluator, 'judge.') OR "
        "starts_with(evaluator, 'rubric.')) "
        "QUALIFY version::INTEGER = max(version::INTEGER) OVER (PARTITION BY evaluator)) GROUP BY ALL",
        [run_id],
    )
    return {(row["evaluator"], row["name"]): (row["replies"], row["unread"]) for row in rows}


@dataclass(frozen=True)
class Choice(Conditioned):
    """A choice of a judge of naturalness between two episodes; `other_...` are of the one that the score names."""

    evaluator: str
    episode_id: str
    scenario_id: str
    name: str
    """Of the score."""
    value: float
    other_id: str | None
    other_run: str | None
    other_mode: str | None
    other_model: str | None
    other_see: str | None


def choices(store: Store, runs: Sequence[str]) -> list[Choice]:
    """The choices of naturalness judges in pairs with an episode of these runs."""
    return store.select(
        Choice,
        "SELECT c.evaluator, c.episode_id, c.scenario_id, c.run_id, c.mode, c.model, c.see, c.name, c.value, "
        "o.episode_id AS other_id, o.run_id AS other_run, o.mode AS other_mode, o.model AS other_model, "
        "o.see AS other_see FROM v_scores c LEFT JOIN episodes o ON c.name = 'natural_against_' || o.episode_id "
        "WHERE c.run_id IN (SELECT unnest(?)) AND c.newest AND starts_with(c.evaluator, 'naturalness.') "
        "AND c.value IS NOT NULL ORDER BY ALL",
        [list(runs)],
    )


@dataclass(frozen=True)
class Chosen(Conditioned):
    """How a judge chose among several episodes: if it chose this one, or how often it named a place."""

    evaluator: str
    episode_id: str
    scenario_id: str
    name: str
    value: float


def candidates(store: Store, run_id: str) -> list[Chosen]:
    """The choices of judges among several episodes of a run, and the places that they named."""
    return store.select(
        Chosen,
        "SELECT evaluator, episode_id, scenario_id, run_id, mode, model, see, name, value FROM v_scores "
        "WHERE run_id = ? AND newest AND starts_with(evaluator, 'choose.') AND value IS NOT NULL "
        "AND name <> 'evaluator_error' ORDER BY ALL",
        [run_id],
    )
