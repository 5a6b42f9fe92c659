"""The queries of the web pages. The `web` folder itself sends only SQL that a person typed.

Each function opens the database for one query and closes it. A missing value is None.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from localsim.conversation.episode import CONDITIONS
from localsim.conversation.grants import condition_name
from localsim.conversation.scenario import AnswerKey
from localsim.store.conditions import by_number
from localsim.store.database import Store
from localsim.store.queries import condition_sql

_EPISODES = (
    "WITH found AS (SELECT e.episode_id, e.scenario_id, e.title, coalesce(e.family, 'everyday') AS family, e.mode, "
    "e.see, e.model, e.episode_index, e.status, coalesce(t.turns, 0) AS turns, s.success, "
    "coalesce(s.hits, 0) AS hits, coalesce(s.by_chance, 0) AS by_chance, "
    "coalesce(l.disclosed, 0) AS disclosed, "
    "coalesce(l.early, 0) AS early, coalesce(l.omniscient, 0) AS omniscient FROM v_episodes e "
    "LEFT JOIN (SELECT episode_id, any_value(value) FILTER (name = 'success') AS success, "
    "sum(value) FILTER (list_contains(?, name)) AS hits, "
    "sum(value) FILTER (list_contains(?, name)) AS by_chance FROM v_scores WHERE run_id = ? AND newest GROUP BY 1) s "
    "ON s.episode_id = e.episode_id "
    "LEFT JOIN (SELECT episode_id, count(*) AS turns FROM v_turns WHERE run_id = ? AND speaker <> '' GROUP BY 1) t "
    "ON t.episode_id = e.episode_id "
    "LEFT JOIN (SELECT episode_id, count(*) FILTER (kind = 'self') AS disclosed, count(*) FILTER (early) AS early, "
    "count(*) FILTER (kind = 'omniscient') AS omniscient FROM v_leaks WHERE run_id = ? GROUP BY 1) l "
    "ON l.episode_id = e.episode_id WHERE e.run_id = ?)"
)
_OUTCOMES = {
    "success": "success = 1",
    "no success": "success < 1",
    "failures": "(success < 1 OR status <> 'completed')",
}
_LEAK_CONDITIONS = {
    "any": "disclosed + omniscient > 0",
    "early": "early > 0",
    "omniscient": "omniscient > 0",
    "hits": "hits > 0",
}


@dataclass(frozen=True)
class RunRow:
    """A run with its counts."""

    run_id: str
    name: str | None
    status: str
    started_utc: datetime
    seed: int
    repro: str
    episodes_planned: int
    completed: int
    failed: int
    plan_json: str


@dataclass(frozen=True)
class Sibling:
    """An episode, one of those that share a scenario, seed, index and variant."""

    episode_id: str
    mode: str
    see: str | None
    model: str

    @property
    def condition(self) -> str:
        """The mode, and what was granted."""
        return condition_name(self.mode, self.see)

    @property
    def place(self) -> tuple[int, str, str]:
        """What is sorted by: modes in their order, then grants, then models."""
        return CONDITIONS.index(self.mode), by_number(self.see or ""), self.model


@dataclass(frozen=True)
class ResultRow:
    """The results of a run in one family and condition."""

    run_id: str
    family: str
    """`everyday` for scenarios of no family."""
    mode: str
    see: str | None
    episodes: int
    scored: int
    """Episodes with a success that is known."""
    success: float
    """The number of successes."""


@dataclass(frozen=True)
class EpisodeRow(Sibling):
    """An episode of a run."""

    scenario_id: str
    title: str
    family: str
    episode_index: int
    status: str
    turns: int
    """Of agents."""
    success: float | None
    """None where it is not scored."""
    hits: float
    """Untold hits."""
    by_chance: float
    """Those to expect of players who know their own side only."""
    disclosed: int
    early: int
    """Facts that were disclosed too early."""
    omniscient: int


@dataclass(frozen=True)
class Attempt:
    """A generation for a turn."""

    turn: int
    attempt: int
    speaker: str
    model: str
    seed: int
    cause: str
    malformed: str | None
    text: str
    prompt_tokens: int
    generated_tokens: int
    duration_ms: float
    step: str | None
    """The step of a mind that asked for it."""


@dataclass(frozen=True)
class Judgement:
    """A question that a judge answered about an episode, alone or beside another one."""

    evaluator: str
    version: str
    name: str
    agent: str | None
    sample: int
    mode: str
    """With grants, as is the other one."""
    other_mode: str | None
    instructions: str
    prompt: str
    thought: str | None
    reply: str
    malformed: str | None
    truncated: bool
    judge: str
    seed: int
    prompt_tokens: int
    thought_tokens: int | None
    generated_tokens: int
    duration_ms: float


@dataclass(frozen=True)
class EpisodeFilter:
    """The filter of a run's page; an empty field does not restrict."""

    family: str = ""
    mode: str = ""
    status: str = ""
    outcome: str = ""
    """`success`, `no success`, or `failures`: no success, or broken off."""
    leaks: str = ""
    """`any`, `early`, `omniscient`, or `hits`: untold hits."""
    words: str = ""
    """Part of the scenario's title or of any turn, in any case."""
    page: int = 1
    """Page of the table, from 1; the query ignores it."""

    def condition(self) -> tuple[str, list[Any]]:
        """The SQL condition on one row of `_EPISODES`, and its parameters."""
        parts, values = ["true"], []
        for column in ("family", "mode", "status"):
            if getattr(self, column):
                parts.append(f"{column} = ?")
                values.append(getattr(self, column))
        if self.outcome:
            parts.append(_OUTCOMES[self.outcome])
        if self.leaks:
            parts.append(_LEAK_CONDITIONS[self.leaks])
        if self.words:
            parts.append(
                "(contains(lower(title), lower(?)) OR episode_id IN "
                "(SELECT episode_id FROM turns WHERE contains(lower(text), lower(?))))"
            )
            values += [self.words, self.words]
        return " AND ".join(parts), values


# ---- runs ----------------------------------------------------------------------------------------------------------

_RUNS = (
    "SELECT v.run_id, v.name, v.status, v.started_utc, v.seed, v.repro, v.episodes_planned, v.completed, v.failed, "
    "r.plan_json FROM v_runs v JOIN runs r USING (run_id) "
)


def newest_runs(store: Store) -> list[RunRow]:
    """The newest 200 runs, the newest first."""
    return store.select(RunRow, f"{_RUNS} ORDER BY v.started_utc DESC LIMIT 200")


def run_of(store: Store, run_id: str) -> RunRow:
    """One run, which must exist."""
    return store.select(RunRow, f"{_RUNS} WHERE v.run_id = ?", [run_id])[0]


def results(store: Store, runs: Sequence[str]) -> list[ResultRow]:
    """The results of runs by family and condition, in no order."""
    return store.select(
        ResultRow,
        "SELECT e.run_id, coalesce(s.family, 'everyday') AS family, e.mode, e.see, "
        "count(*) AS episodes, "
        "count(c.value) AS scored, coalesce(sum(c.value), 0) AS success "
        "FROM episodes e JOIN scenarios s USING (scenario_hash) LEFT JOIN "
        "(SELECT episode_id, arg_max(value, split_part(version, '+', 1)::INTEGER) AS value FROM scores "
        "WHERE name = 'success' GROUP BY 1) c ON c.episode_id = e.episode_id "
        "WHERE list_contains(?, e.run_id) GROUP BY e.run_id, s.family, e.mode, e.see",
        [runs],
    )


def episodes_of_run(
    store: Store, run_id: str, chosen: EpisodeFilter, hits: Sequence[str], chances: Sequence[str] = ()
) -> list[EpisodeRow]:
    """The episodes of a run that pass a filter, by family, scenario and index.

    The scores `hits` are untold hits, and `chances` their number by chance.
    """
    condition, values = chosen.condition()
    return store.select(
        EpisodeRow,
        f"{_EPISODES} SELECT * FROM found WHERE {condition} ORDER BY family, scenario_id, episode_index",
        [list(hits), list(chances), run_id, run_id, run_id, run_id, *values],
    )


def families_of_run(store: Store, run_id: str) -> list[str]:
    """The families in a run by name; scenarios of no family count as `everyday`."""
    query = "SELECT DISTINCT coalesce(family, 'everyday') AS family FROM v_episodes WHERE run_id = ? ORDER BY 1"
    return store.column(query, [run_id])


def episode_ids(store: Store, run_id: str) -> list[str]:
    """The ids of all episodes of a run."""
    return store.column("SELECT episode_id FROM v_episodes WHERE run_id = ? ORDER BY episode_id", [run_id])


def scenario_titles(store: Store) -> dict[str, str]:
    """The title of each stored scenario by its hash."""
    return store.pairs("SELECT scenario_hash, title FROM scenarios")


# ---- one episode ---------------------------------------------------------------------------------------------------


def answer_key(store: Store, episode_id: str) -> AnswerKey:
    """The answer key of an episode's scenario. The episode must exist."""
    query = "SELECT s.answer_json FROM episodes e JOIN scenarios s USING (scenario_hash) WHERE e.episode_id = ?"
    return AnswerKey.from_json(json.loads(store.column(query, [episode_id])[0]))


def has_episode(store: Store, episode_id: str) -> bool:
    """Return True where an episode has exactly this id."""
    return bool(store.rows("SELECT 1 FROM episodes WHERE episode_id = ?", [episode_id]))


def newest_leaks(store: Store, episode_id: str) -> list[dict[str, Any]]:
    """Disclosures and hints by the newest search for leaks, by turn and fact.

    Columns: fact_id, fact, owner, speaker, turn, label, kind, probability, evidence, first, early.
    """
    return store.rows(
        "SELECT fact_id, fact, owner, speaker, turn, label, kind, probability, evidence, first, early FROM leaks "
        "WHERE episode_id = ? AND version IN (SELECT version FROM v_scores WHERE episode_id = ? AND "
        "evaluator = 'leakage' AND newest) "
        "ORDER BY turn, fact_id",
        [episode_id, episode_id],
    )


def siblings(store: Store, episode_id: str) -> list[Sibling]:
    """The run's other episodes of one scenario, seed, index and variant, in order of modes."""
    found = store.select(
        Sibling,
        "SELECT o.episode_id, o.mode, o.see, o.model FROM v_episodes e JOIN v_episodes o ON o.run_id = e.run_id AND "
        "o.scenario_hash = e.scenario_hash AND o.seed = e.seed AND o.episode_index = e.episode_index AND "
        "o.variant = e.variant "
        "WHERE e.episode_id = ? AND o.episode_id <> e.episode_id",
        [episode_id],
    )
    return sorted(found, key=lambda each: each.place)


def neighbours(store: Store, run_id: str, episode_id: str) -> tuple[str | None, str | None]:
    """The ids of the episodes before and after this one in the order of its run's page."""
    rows = store.rows(
        "SELECT episode_id, lag(episode_id) OVER o AS before, lead(episode_id) OVER o AS after FROM v_episodes "
        "WHERE run_id = ? WINDOW o AS (ORDER BY family NULLS LAST, scenario_id, episode_index, mode, episode_id) "
        "QUALIFY episode_id = ?",
        [run_id, episode_id],
    )
    return (rows[0]["before"], rows[0]["after"]) if rows else (None, None)


def attempts(store: Store, episode_id: str) -> list[Attempt]:
    """Every generation for each turn, malformed ones too, in the order in which they were made."""
    return store.select(
        Attempt,
        "SELECT w.turn, g.attempt, g.speaker, g.model, g.seed, g.cause, g.malformed, g.text, g.prompt_tokens, "
        "g.generated_tokens, g.duration_ms, g.details_json ->> 'step' AS step FROM generations g "
        "JOIN (SELECT turn, generation FROM turns WHERE episode_id = $episode UNION "
        "SELECT turn, generation FROM generations WHERE episode_id = $episode) w "
        "USING (generation) WHERE g.episode_id = $episode AND w.turn IS NOT NULL ORDER BY w.turn, g.generation",
        {"episode": episode_id},
    )


def judgements(store: Store, episode_id: str) -> list[Judgement]:
    """Every question that judges answered about an episode."""
    return store.select(
        Judgement,
        f"SELECT evaluator, version, name, agent, sample, {condition_sql()} AS mode, "
        f"{condition_sql('other_mode', 'other_see')} AS other_mode, instructions, prompt, thought, reply, "
        "malformed, truncated, judge, seed, prompt_tokens, thought_tokens, generated_tokens, duration_ms "
        "FROM v_judgements WHERE episode_id = ? OR other_id = ? ORDER BY evaluator, version, agent, name, sample",
        [episode_id, episode_id],
    )


def judgement_count(store: Store, episode_id: str) -> int:
    """The number of questions that judges answered about an episode."""
    query = "SELECT count(*) FROM judgements WHERE episode_id = ? OR other_id = ?"
    return int(store.column(query, [episode_id, episode_id])[0])
