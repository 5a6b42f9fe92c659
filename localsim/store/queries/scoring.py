"""The reads of evaluators: completed episodes as values, stored scores, embeddings."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from localsim.conversation.episode import Belief, Subject
from localsim.conversation.minds.steps import weights_in
from localsim.store.conditions import Conditioned
from localsim.store.database import Store
from localsim.store.episodes import TURN, stored_scenarios, transcript_of


def subjects(store: Store, run_id: str, reads: Callable[[str | None], bool] = lambda _: True) -> list[Subject]:
    """The completed episodes of a run with their transcripts and answer keys, by episode id.

    `reads` tells if the turns of a family are read; the other transcripts are empty.
    """
    episodes = store.rows(
        "SELECT episode_id, scenario_hash, mode, model, episode_index, seed, variant, see FROM episodes "
        "WHERE run_id = ? AND status = 'completed' ORDER BY episode_id",
        [run_id],
    )
    scenarios = stored_scenarios(store, run_id)
    read = [name for name, loaded in scenarios.items() if reads(loaded.scenario.family)]
    turns: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in store.rows(
        f"SELECT episode_id, {TURN} FROM turns t JOIN episodes e USING (episode_id) "
        "WHERE e.run_id = ? AND e.scenario_hash IN (SELECT unnest(?)) ORDER BY episode_id, turn",
        [run_id, read],
    ):
        turns[row["episode_id"]].append(row)
    # The name of a mind has its steps: without this one there is nothing to read.
    believed = _beliefs(store, run_id) if any("believe" in row["model"] for row in episodes) else {}
    return [
        Subject(
            episode_id=row["episode_id"],
            scenario=scenarios[row["scenario_hash"]].scenario,
            answer=scenarios[row["scenario_hash"]].answer,
            mode=row["mode"],
            index=row["episode_index"],
            seed=row["seed"],
            transcript=transcript_of(turns[row["episode_id"]]),
            variant=row["variant"],
            see=row["see"] or "",
            run_id=run_id,
            model=row["model"],
            beliefs=tuple(believed.get(row["episode_id"], ())),
        )
        for row in episodes
    ]


def _beliefs(store: Store, run_id: str) -> dict[str, list[Belief]]:
    """Episode id -> what its agents believed, in order."""
    found: dict[str, list[Belief]] = defaultdict(list)
    for row in store.rows(
        "SELECT g.episode_id, g.turn, g.speaker, g.text, g.details_json FROM generations g JOIN episodes e "
        "USING (episode_id) WHERE e.run_id = ? AND g.details_json ->> 'step' = 'believe' AND g.malformed IS NULL "
        "ORDER BY g.episode_id, g.generation",
        [run_id],
    ):
        weights = weights_in(json.loads(row["details_json"]))
        found[row["episode_id"]].append(Belief(row["turn"], row["speaker"], row["text"], weights))
    return found


def scored(store: Store, run_id: str, evaluator: str, version: str) -> dict[str, frozenset[str]]:
    """Episode id -> names of the scores that a version of an evaluator has given in a run."""
    names: dict[str, set[str]] = defaultdict(set)
    for row in store.rows(
        "SELECT s.episode_id, s.name FROM scores s JOIN episodes e USING (episode_id) "
        "WHERE e.run_id = ? AND s.evaluator = ? AND s.version = ? AND s.name <> 'evaluator_error'",
        [run_id, evaluator, version],
    ):
        names[row["episode_id"]].add(row["name"])
    return {episode_id: frozenset(given) for episode_id, given in names.items()}


def forget_errors(store: Store, evaluator: str, version: str) -> None:
    """Delete the errors of a version of an evaluator for the episodes that it has scored since."""
    error = "evaluator = ? AND version = ? AND name = 'evaluator_error'"
    if not store.rows(f"SELECT 1 FROM scores WHERE {error} LIMIT 1", [evaluator, version]):
        return
    with store.writing() as connection:
        connection.execute(
            f"DELETE FROM scores WHERE {error} AND episode_id IN (SELECT episode_id FROM scores "
            "WHERE evaluator = ? AND version = ? AND name <> 'evaluator_error')",
            [evaluator, version, evaluator, version],
        )


def families_of(store: Store, run_id: str) -> list[str | None]:
    """The families of a run's scenarios, None for scenarios without one."""
    return store.column("SELECT DISTINCT family FROM v_episodes WHERE run_id = ? ORDER BY family", [run_id])


def vectors(store: Store, model: str, hashes: Sequence[str]) -> dict[str, Sequence[float]]:
    """The embeddings of texts that are stored, by text hash."""
    query = "SELECT text_hash, vector FROM vectors WHERE model = ? AND text_hash IN (SELECT unnest(?))"
    return store.pairs(query, [model, list(hashes)])


def leak_versions(store: Store, run_id: str) -> dict[str, str]:
    """Episode id -> version of the search for leaks whose findings count."""
    query = "SELECT DISTINCT episode_id, version FROM v_scores WHERE run_id = ? AND evaluator = 'leakage' AND newest"
    return store.pairs(query, [run_id])


def last_search(store: Store, run_id: str) -> tuple[str, str] | None:
    """The weights of a run's last search for leaks, and the text of their file; None if it was not searched."""
    rows = store.rows(
        "SELECT q.weights, c.text FROM searches q JOIN episodes e USING (episode_id) "
        "JOIN contents c ON c.content_hash = q.weights_hash WHERE e.run_id = ? ORDER BY q.searched_utc DESC LIMIT 1",
        [run_id],
    )
    return (rows[0]["weights"], rows[0]["text"]) if rows else None


@dataclass(frozen=True)
class LeakCount(Conditioned):
    """The first disclosures of one condition and kind."""

    kind: str
    facts: int
    early: int
    """Those that break the scenario's rule."""


def leaks_by_condition(store: Store, run_id: str) -> list[LeakCount]:
    """The first disclosures of a run by condition and kind."""
    return store.select(
        LeakCount,
        "SELECT run_id, mode, model, see, kind, count(*) AS facts, "
        "sum(early::INTEGER)::BIGINT AS early FROM v_leaks WHERE run_id = ? GROUP BY ALL ORDER BY ALL",
        [run_id],
    )
