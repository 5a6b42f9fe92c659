"""The queries of the web pages. The `web` folder itself sends only SQL that a person typed.

Each function opens the database for one query and closes it. Rows are dictionaries with the columns named in the
docstring; a missing value is None.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from localsim.conversation.scenario import AnswerKey
from localsim.store.database import Store
from localsim.store.queries import condition_sql

Row = dict[str, Any]

_EPISODES = (
    "WITH found AS (SELECT e.episode_id, e.scenario_id, e.title, coalesce(e.family, 'everyday') AS family, e.mode, "
    "e.see, e.model, e.episode_index, e.status, coalesce(t.turns, 0) AS turns, e.error, s.success, "
    "coalesce(s.hits, 0) AS hits, "
    "coalesce(l.disclosed, 0) AS disclosed, "
    "coalesce(l.early, 0) AS early, coalesce(l.omniscient, 0) AS omniscient FROM v_episodes e "
    "LEFT JOIN (SELECT episode_id, any_value(value) FILTER (name = 'success') AS success, "
    "sum(value) FILTER (list_contains(?, name)) AS hits FROM v_scores WHERE run_id = ? AND newest GROUP BY 1) s "
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
class EpisodeFilter:
    """The filter of a run's page; an empty field does not restrict."""

    family: str = ""
    mode: str = ""
    status: str = ""
    outcome: str = ""
    """`success`, `no success`, or `failures`: no success, or broken off."""
    leaks: str = ""
    """`any`, `early`, `omniscient`, or `hits`: unearned hits."""
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


def newest_runs(store: Store, limit: int = 200) -> list[Row]:
    """The newest runs first: all columns of v_runs, and plan_json."""
    return store.rows(
        "SELECT v.*, r.plan_json FROM v_runs v JOIN runs r USING (run_id) ORDER BY v.started_utc DESC LIMIT ?", [limit]
    )


def results(store: Store, runs: list[str]) -> list[Row]:
    """The results of runs by family and condition, in no order.

    Columns: run_id, family (`everyday` for scenarios of no family), mode, see, episodes, scored (those with a success
    that is known) and success (their number of successes).
    """
    return store.rows(
        "SELECT e.run_id, coalesce(s.family, 'everyday') AS family, e.mode, e.see, "
        "count(*) AS episodes, "
        "count(c.value) AS scored, coalesce(sum(c.value), 0) AS success "
        "FROM episodes e JOIN scenarios s USING (scenario_hash) LEFT JOIN "
        "(SELECT episode_id, arg_max(value, split_part(version, '+', 1)::INTEGER) AS value FROM scores "
        "WHERE name = 'success' GROUP BY 1) c ON c.episode_id = e.episode_id "
        "WHERE list_contains(?, e.run_id) GROUP BY e.run_id, s.family, e.mode, e.see",
        [runs],
    )


def run_with_plan(store: Store, run_id: str) -> Row:
    """All columns of v_runs for one run, and plan_json."""
    query = "SELECT v.*, r.plan_json FROM v_runs v JOIN runs r USING (run_id) WHERE v.run_id = ?"
    return store.rows(query, [run_id])[0]


def run_with_counts(store: Store, run_id: str) -> Row:
    """All columns of v_runs for one run."""
    return store.rows("SELECT * FROM v_runs WHERE run_id = ?", [run_id])[0]


def episodes_of_run(store: Store, run_id: str, chosen: EpisodeFilter, hits: Sequence[str]) -> list[Row]:
    """The episodes of a run that pass a filter, by family, scenario and index.

    Columns: episode_id, scenario_id, title, family, mode, see, model, episode_index, status, turns (of agents), error,
    success
    (None where it is not scored), and the number of unearned hits (the scores named `hits`), of facts disclosed, of
    those disclosed too early (early) and of omniscient leaks.
    """
    condition, values = chosen.condition()
    return store.rows(
        f"{_EPISODES} SELECT * FROM found WHERE {condition} ORDER BY family, scenario_id, episode_index",
        [list(hits), run_id, run_id, run_id, run_id, *values],
    )


def modes_and_models(store: Store, run_id: str) -> list[Row]:
    """Each condition (mode, see) with a model in a run, in no order."""
    return store.rows("SELECT DISTINCT mode, see, model FROM episodes WHERE run_id = ?", [run_id])


def families_of_run(store: Store, run_id: str) -> list[str]:
    """The families in a run by name; scenarios of no family count as `everyday`."""
    query = "SELECT DISTINCT coalesce(family, 'everyday') AS family FROM v_episodes WHERE run_id = ? ORDER BY 1"
    return [row["family"] for row in store.rows(query, [run_id])]


def episode_ids(store: Store, run_id: str) -> list[str]:
    """The ids of all episodes of a run."""
    rows = store.rows("SELECT episode_id FROM v_episodes WHERE run_id = ? ORDER BY episode_id", [run_id])
    return [row["episode_id"] for row in rows]


def scenario_titles(store: Store) -> dict[str, str]:
    """The title of each stored scenario by its hash."""
    return {row["scenario_hash"]: row["title"] for row in store.rows("SELECT scenario_hash, title FROM scenarios")}


# ---- one episode ---------------------------------------------------------------------------------------------------


def answer_key(store: Store, episode_id: str) -> AnswerKey:
    """The answer key of an episode's scenario. The episode must exist."""
    query = "SELECT s.answer_json FROM episodes e JOIN scenarios s USING (scenario_hash) WHERE e.episode_id = ?"
    return AnswerKey.from_json(json.loads(store.rows(query, [episode_id])[0]["answer_json"]))


def has_episode(store: Store, episode_id: str) -> bool:
    """Return True where an episode has exactly this id."""
    return bool(store.rows("SELECT 1 FROM episodes WHERE episode_id = ?", [episode_id]))


def newest_leaks(store: Store, episode_id: str) -> list[Row]:
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


def siblings(store: Store, episode_id: str) -> list[Row]:
    """The run's other episodes of one scenario, seed, index and variant: episode_id, mode, see, model, in no order."""
    return store.rows(
        "SELECT o.episode_id, o.mode, o.see, o.model FROM v_episodes e JOIN v_episodes o ON o.run_id = e.run_id AND "
        "o.scenario_hash = e.scenario_hash AND o.seed = e.seed AND o.episode_index = e.episode_index AND "
        "o.variant = e.variant "
        "WHERE e.episode_id = ? AND o.episode_id <> e.episode_id",
        [episode_id],
    )


def neighbours(store: Store, run_id: str, episode_id: str) -> tuple[str | None, str | None]:
    """The ids of the episodes before and after this one in the order of its run's page."""
    rows = store.rows(
        "SELECT episode_id, lag(episode_id) OVER o AS before, lead(episode_id) OVER o AS after FROM v_episodes "
        "WHERE run_id = ? WINDOW o AS (ORDER BY family NULLS LAST, scenario_id, episode_index, mode, episode_id) "
        "QUALIFY episode_id = ?",
        [run_id, episode_id],
    )
    return (rows[0]["before"], rows[0]["after"]) if rows else (None, None)


def attempts(store: Store, episode_id: str, turn: int) -> list[Row]:
    """Every generation for a turn, malformed ones too, in the order in which they were made.

    Columns: generation, attempt, speaker, model, seed, cause, malformed, text, prompt_tokens, generated_tokens,
    duration_ms, details_json.
    """
    return store.rows(
        "SELECT generation, attempt, speaker, model, seed, cause, malformed, text, prompt_tokens, generated_tokens, "
        "duration_ms, details_json FROM generations WHERE episode_id = ? AND generation IN (SELECT generation FROM "
        "turns WHERE episode_id = ? AND turn = ? UNION SELECT generation FROM generations WHERE episode_id = ? AND "
        "turn = ?) ORDER BY generation",
        [episode_id, episode_id, turn, episode_id, turn],
    )


def judgements(store: Store, episode_id: str) -> list[Row]:
    """Every question that judges answered about an episode, alone or beside another, with thought and reply.

    Columns: evaluator, version, name, agent, sample, mode and other_mode with grants, instructions, prompt, thought,
    reply, malformed, truncated, judge, seed, prompt_tokens, thought_tokens, generated_tokens, duration_ms.
    """
    return store.rows(
        f"SELECT evaluator, version, name, agent, sample, {condition_sql()} AS mode, "
        f"{condition_sql('other_mode', 'other_see')} AS other_mode, instructions, prompt, thought, reply, "
        "malformed, truncated, judge, seed, prompt_tokens, thought_tokens, generated_tokens, duration_ms "
        "FROM v_judgements WHERE episode_id = ? OR other_id = ? ORDER BY evaluator, version, agent, name, sample",
        [episode_id, episode_id],
    )


def judgement_count(store: Store, episode_id: str) -> int:
    """The number of questions that judges answered about an episode."""
    query = "SELECT count(*) AS n FROM judgements WHERE episode_id = ? OR other_id = ?"
    return int(store.rows(query, [episode_id, episode_id])[0]["n"])
