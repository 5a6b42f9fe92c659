"""The reads of runs: their rows, episodes that are finished or train a model, and generations to resume from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from localsim.conversation.grants import condition_name
from localsim.conversation.requests import Generation
from localsim.store.database import Store
from localsim.store.episodes import TURN
from localsim.store.queries import PEOPLE, SEARCHED, condition_sql
from localsim.store.records import WRITTEN

Row = dict[str, Any]

TOGETHER = (
    "SELECT family, mode, count(DISTINCT run_id) AS runs, count(*) AS talks, round(avg(value), 2) AS success "
    "FROM v_scores WHERE name = 'success' AND newest GROUP BY ALL ORDER BY ALL"
)
"""Success by mode over all runs of a database, also in docs/scale.md; no double quotes, for it is typed in a shell."""


@dataclass(frozen=True)
class Recorded:
    """A stored generation of an interrupted episode."""

    turn: int
    attempt: int
    seed: int
    result: Generation


def has_run(store: Store, run_id: str) -> bool:
    """Return True if the database has a run with exactly this id."""
    return store.path.exists() and bool(store.rows("SELECT 1 FROM runs WHERE run_id = ?", [run_id]))


def run_row(store: Store, run_id: str) -> Row:
    """All columns of `runs` for one run."""
    return store.rows("SELECT * FROM runs WHERE run_id = ?", [run_id])[0]


_FACTS = (
    "SELECT r.run_id, r.name, r.status, r.started_utc, r.plan_json, r.episodes_planned AS planned, "
    f"{PEOPLE} AS people, "
    "count(e.episode_id) FILTER (e.status = 'completed') AS completed, "
    "count(e.episode_id) FILTER (e.status = 'failed') AS failed, "
    "count(s.episode_id) FILTER (e.status = 'completed') AS searched "
    "FROM runs r LEFT JOIN episodes e ON e.run_id = r.run_id "
    f"LEFT JOIN ({SEARCHED}) s ON s.episode_id = e.episode_id "
)


def every_run(store: Store) -> list[Row]:
    """What lists say about runs, newest first: run_id, name, status, started_utc, plan_json, planned, completed,
    failed, searched (completed episodes that were searched for leaks), people (True if people took part).
    """
    return store.rows(f"{_FACTS} GROUP BY ALL ORDER BY r.started_utc DESC, r.run_id DESC")


def run_facts(store: Store, run_id: str) -> Row:
    """The columns of `every_run` for one run."""
    return store.rows(f"{_FACTS} WHERE r.run_id = ? GROUP BY ALL", [run_id])[0]


def runs_named(store: Store, name: str) -> list[str]:
    """The ids of the runs with this name in any case, newest first."""
    query = "SELECT run_id FROM runs WHERE lower(name) = lower(?) ORDER BY started_utc DESC"
    return store.column(query, [name])


def tasks_of(store: Store, hashes: Sequence[str]) -> dict[str, tuple[str, str, str]]:
    """Scenario hash -> id, title and family ('' for none) of stored scenarios."""
    query = (
        "SELECT scenario_hash, scenario_id, title, coalesce(family, '') AS family FROM scenarios "
        "WHERE scenario_hash IN (SELECT unnest(?))"
    )
    rows = store.rows(query, [list(hashes)])
    return {row["scenario_hash"]: (row["scenario_id"], row["title"], row["family"]) for row in rows}


def runs_of_plan(store: Store, forms: Sequence[str]) -> list[Row]:
    """All columns of `runs` for the runs of one plan, which may be stored in several forms, newest first."""
    places = ", ".join("?" for _ in forms)
    return store.rows(f"SELECT * FROM runs WHERE plan_json IN ({places}) ORDER BY started_utc DESC", list(forms))


def imported_runs(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Run id -> identities of the people or models in it, for the runs of imported conversations."""
    found = {}
    for row in store.rows("SELECT run_id, models_json FROM runs WHERE repro = 'imported' ORDER BY run_id"):
        identities = json.loads(row["models_json"]).values()
        found[row["run_id"]] = [identity for identity in identities if identity["kind"] in ("people", "imported")]
    return found


def scenario_named(store: Store, reference: str) -> str | None:
    """Return the hash of the scenario with this id or hash; None if the database has none, or several by this id."""
    query = "SELECT scenario_hash FROM scenarios WHERE scenario_id = ? OR scenario_hash = ?"
    found = store.column(query, [reference, reference])
    return str(found[0]) if len(found) == 1 else None


def models_of_episodes(store: Store, run_id: str) -> dict[str, dict[str, str]]:
    """Episode id -> role -> model, in the order of scenario, mode and index; of completed and failed episodes."""
    specs = store.pairs(
        "SELECT e.episode_id, e.spec_json FROM episodes e JOIN scenarios s USING (scenario_hash) "
        "WHERE e.run_id = ? AND e.status <> 'interrupted' "
        "ORDER BY s.scenario_id, e.mode, e.see, e.variant, e.episode_index, e.episode_id",
        [run_id],
    )
    return {episode_id: json.loads(spec)["models"] for episode_id, spec in specs.items()}


def texts_of_run(store: Store, run_id: str) -> tuple[list[Row], dict[str, list[Row]], dict[str, list[Row]]]:
    """Return what was written in a run, without anything that another run of its plan would have differently: its ended
    episodes in the order of scenario, mode and index, and by episode id the turns and the raw replies.
    """
    episodes = store.rows(
        "SELECT e.episode_id, s.scenario_id AS scenario, e.mode, e.see, e.variant, "
        "e.episode_index, e.seed, e.status, e.stop_reason, e.error FROM episodes e JOIN scenarios s "
        "USING (scenario_hash) WHERE e.run_id = ? AND e.status <> 'interrupted' ORDER BY ALL",
        [run_id],
    )
    episodes.sort(key=lambda row: [row[name] for name in ("scenario", "mode", "see", "variant", "episode_index")])
    ofs: list[dict[str, list[Row]]] = []
    for table, columns, order in (
        ("turns", TURN, "turn"),
        ("generations", "generation, turn, attempt, speaker, seed, text, cause, malformed", "generation"),
    ):
        found: dict[str, list[Row]] = {}
        rows = store.rows(
            f"SELECT t.episode_id, {', '.join(f't.{name.strip()}' for name in columns.split(','))} FROM {table} t "
            f"JOIN episodes e USING (episode_id) WHERE e.run_id = ? ORDER BY t.episode_id, t.{order}",
            [run_id],
        )
        for row in rows:
            found.setdefault(row.pop("episode_id"), []).append(row)
        ofs.append(found)
    return episodes, ofs[0], ofs[1]


def only_scripted(models_json: str) -> bool:
    """Return True if a run with these models used no language model."""
    return all(identity["kind"] == "scripted" for identity in json.loads(models_json).values())


def finished_episodes(store: Store, run_id: str) -> dict[str, str]:
    """Episode id -> status (completed or failed) of the episodes that have ended."""
    query = "SELECT episode_id, status FROM episodes WHERE run_id = ? AND status <> 'interrupted'"
    return store.pairs(query, [run_id])


def progress_of(store: Store, run_id: str) -> tuple[int, int]:
    """Return the number of planned episodes of a run, and the number that have ended."""
    query = "SELECT episodes_planned AS planned, completed + failed AS done FROM v_runs WHERE run_id = ?"
    row = store.rows(query, [run_id])[0]
    return int(row["planned"]), int(row["done"])


def recorded_generations(store: Store, run_id: str) -> dict[str, list[Recorded]]:
    """The generations of a run's unfinished episodes, in order, by episode id."""
    rows = store.rows(
        "SELECT g.* FROM generations g JOIN episodes e ON e.episode_id = g.episode_id "
        "WHERE e.run_id = ? AND e.status = 'interrupted' AND g.cause <> 'error' ORDER BY g.episode_id, g.generation",
        [run_id],
    )
    recorded: dict[str, list[Recorded]] = {}
    for row in rows:
        result = Generation(**{name: row[name] for name in WRITTEN}, details=json.loads(row["details_json"]))
        recorded.setdefault(row["episode_id"], []).append(Recorded(row["turn"], row["attempt"], row["seed"], result))
    return recorded


def usual_episodes(store: Store, models: list[str]) -> list[Row]:
    """Means over the completed episodes of some models: mode, family ('' for none), turns, written and heard tokens."""
    return store.rows(
        "SELECT e.mode, coalesce(e.family, '') AS family, avg(e.turns) AS turns, avg(g.written) AS written, "
        "avg(g.heard) AS heard FROM v_episodes e JOIN (SELECT episode_id, sum(generated_tokens) AS written, "
        "sum(evaluated_tokens) AS heard FROM v_generations GROUP BY 1) g ON g.episode_id = e.episode_id "
        "WHERE e.status = 'completed' AND e.model IN (SELECT unnest(?)) GROUP BY ALL",
        [models],
    )


# ---- lists and the audit -------------------------------------------------------------------------------------------


def run_list(store: Store) -> list[Row]:
    """All columns of `v_runs`, newest run first."""
    return store.rows("SELECT * FROM v_runs ORDER BY started_utc DESC")


def failed_episodes(store: Store, run_id: str) -> list[Row]:
    """The failed episodes of a run: episode_id, scenario_id, mode, see, error."""
    return store.rows(
        "SELECT episode_id, scenario_id, mode, see, error FROM v_episodes WHERE run_id = ? AND status = 'failed'",
        [run_id],
    )


def episode_list(store: Store, run_id: str) -> list[Row]:
    """The episodes of a run: episode_id, scenario_id, mode (with grants), model, i (index), variant, status, end."""
    return store.rows(
        f"SELECT episode_id, scenario_id, {condition_sql()} AS mode, model, "
        "episode_index AS i, variant, status, stop_reason, turns "
        "FROM v_episodes WHERE run_id = ? ORDER BY scenario_id, episode_index, variant, mode, see",
        [run_id],
    )


def newest_episodes(store: Store, limit: int) -> list[Row]:
    """The episodes of the newest runs: episode_id, scenario_id, mode (with grants)."""
    query = f"SELECT episode_id, scenario_id, {condition_sql()} AS mode FROM v_episodes ORDER BY run_id DESC LIMIT ?"
    return store.rows(query, [limit])


def only_episode(store: Store, run_id: str) -> str:
    """The id of the episode of a run that has one."""
    return str(store.column("SELECT episode_id FROM v_episodes WHERE run_id = ?", [run_id])[0])


def spoken_turns(store: Store, run_id: str) -> list[Row]:
    """The turns of a run in order: episode_id, and the columns TURN of `episodes`."""
    return store.rows(
        f"SELECT episode_id, {TURN} FROM turns JOIN episodes e USING (episode_id) "
        "WHERE e.run_id = ? ORDER BY episode_id, turn",
        [run_id],
    )


@dataclass(frozen=True)
class Prompt:
    """A prompt, with facts about its episode."""

    episode_id: str
    generation: int
    turn: int
    speaker: str
    parent: int | None
    """The generation whose prompt it continues."""
    messages_json: str
    prefill_hash: str
    mode: str
    see: str
    variant: int
    scenario_hash: str
    episode_index: int
    seed: int
    """Of the episode."""
    step: str | None
    """The step of a mind that asked for the reply."""
    reply: str
    """What an agent with a mind replied; '' of all others, which the audit need not hold."""
    said: bool
    """False if no turn says the reply: an answer to a step, a draft, or what could not be read."""

    @property
    def condition(self) -> str:
        """The mode, and what was granted."""
        return condition_name(self.mode, self.see)

    @property
    def hashes(self) -> list[str]:
        """The contents of its messages, after those of the prompt that it continues."""
        return [content_hash for _, content_hash in json.loads(self.messages_json)]


def prompts_of_run(store: Store, run_id: str) -> list[Prompt]:
    """The prompts of a run in order."""
    return store.select(
        Prompt,
        "SELECT g.episode_id, g.generation, g.turn, g.speaker, g.parent, g.messages_json, g.prefill_hash, e.mode, "
        "coalesce(e.see, '') AS see, e.variant, e.scenario_hash, e.episode_index, e.seed, "
        "g.details_json ->> 'step' AS step, CASE WHEN bool_or(g.details_json ->> 'step' IS NOT NULL) "
        "OVER (PARTITION BY g.episode_id, g.speaker) THEN g.text ELSE '' END AS reply, "
        "t.generation IS NOT NULL AS said "
        "FROM generations g JOIN episodes e USING (episode_id) LEFT JOIN (SELECT DISTINCT episode_id, generation "
        "FROM turns) t USING (episode_id, generation) WHERE e.run_id = ? "
        "ORDER BY g.episode_id, g.generation",
        [run_id],
    )


def episodes(store: Store, run_id: str | None) -> list[Row]:
    """All columns of `v_episodes` for one run, or for all."""
    return _of_view(store, "v_episodes", "run_id", run_id, "run_id, scenario_id, mode, episode_index")


def turns(store: Store, episode_id: str | None) -> list[Row]:
    """All columns of `v_turns` for one episode, or for all."""
    return _of_view(store, "v_turns", "episode_id", episode_id, "episode_id, turn")


def failed_evaluators(store: Store, run_id: str) -> dict[str, str]:
    """Evaluator -> the reason why the newest version of it failed on some episode."""
    query = (
        "SELECT evaluator, min(reason) AS reason FROM v_scores WHERE run_id = ? AND newest "
        "AND name = 'evaluator_error' GROUP BY evaluator ORDER BY evaluator"
    )
    return store.pairs(query, [run_id])


def turns_of_run(store: Store, run_id: str) -> list[Row]:
    """All columns of `v_turns` for one run."""
    return _of_view(store, "v_turns", "run_id", run_id, "scenario_id, mode, episode_id, turn")


def scores(store: Store, run_id: str) -> list[Row]:
    """All columns of `v_scores` for one run, by the newest version of each evaluator."""
    query = "SELECT * FROM v_scores WHERE run_id = ? AND newest ORDER BY episode_id, evaluator, name, agent"
    return store.rows(query, [run_id])


def leaks(store: Store, run_id: str | None) -> list[Row]:
    """All columns of `v_leaks` for one run, or for all."""
    return _of_view(store, "v_leaks", "run_id", run_id, "episode_id, turn, fact_id")


def _of_view(store: Store, view: str, column: str, value: str | None, order: str) -> list[Row]:
    if value is None:
        return store.rows(f"SELECT * FROM {view} ORDER BY {order}")
    return store.rows(f"SELECT * FROM {view} WHERE {column} = ? ORDER BY {order}", [value])


# ---- fine-tuning -----------------------------------------------------------------------------------------------------


def chat_episodes(store: Store, run_id: str) -> list[str]:
    """The ids of the completed episodes of a run, by scenario, mode and index."""
    return store.column(
        "SELECT episode_id FROM v_episodes WHERE run_id = ? AND status = 'completed' "
        "ORDER BY scenario_id, mode, episode_index",
        [run_id],
    )


def episodes_in_mode(store: Store, episode_ids: Sequence[str], mode: str) -> list[str]:
    """Those of the episodes that were played in a mode, in the same order."""
    query = "SELECT episode_id FROM episodes WHERE mode = ? AND episode_id IN (SELECT unnest(?))"
    kept = set(store.column(query, [mode, list(episode_ids)]))
    return [episode_id for episode_id in episode_ids if episode_id in kept]


def scenario_hashes(store: Store, episode_ids: Sequence[str]) -> list[str]:
    """The hashes of the scenarios of episodes, each once, sorted."""
    query = "SELECT DISTINCT scenario_hash FROM episodes WHERE episode_id IN (SELECT unnest(?)) ORDER BY 1"
    return store.column(query, [list(episode_ids)])
