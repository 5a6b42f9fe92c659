"""The reads and writes of human annotation: episodes to judge, answers, and what answers are compared with.

Each function opens the database for one query and closes it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any

from localsim.conversation.scenario import Scenario
from localsim.store.conditions import Condition, Conditioned
from localsim.store.database import Store
from localsim.store.episodes import TURN, StoredEpisode
from localsim.store.lock import transaction
from localsim.store.queries import SEARCHED
from localsim.store.records import AnswerRow
from localsim.store.schema import inserts

Unit = tuple[str, int, int, int]
"""scenario_hash, episode_index, seed, variant: the same in both episodes of a pair."""


# ---- episodes ------------------------------------------------------------------------------------------------------


def has_run(store: Store, run_id: str) -> bool:
    """True if a run has exactly this id."""
    return bool(store.rows("SELECT 1 FROM runs WHERE run_id = ?", [run_id]))


def completed_episodes(store: Store, run_id: str) -> list[tuple[Unit, StoredEpisode]]:
    """The completed episodes of a run that have turns, without scores and leaks, by scenario, index and seed."""
    # Two queries for the whole run: each query opens the database, and a rater's page must not wait for hundreds.
    rows = store.rows(
        "SELECT e.episode_id, e.run_id, e.mode, e.model, e.see, e.seed, e.status, e.stop_reason, e.error, "
        "e.scenario_hash, e.episode_index, e.variant, s.document_json "
        "FROM v_episodes e JOIN scenarios s USING (scenario_hash) WHERE e.run_id = ? "
        "AND e.status = 'completed' AND e.turns > 0 ORDER BY e.scenario_hash, e.episode_index, e.seed, e.episode_id",
        [run_id],
    )
    turns = turns_by_episode(store, run_id)
    read = {text: Scenario.model_validate_json(text) for text in {row["document_json"] for row in rows}}
    found = []
    for row in rows:
        unit = (row.pop("scenario_hash"), row.pop("episode_index"), row["seed"], row.pop("variant"))
        scenario, own = read[row.pop("document_json")], turns.get(row["episode_id"], [])
        row["see"] = row["see"] or ""
        found.append((unit, StoredEpisode(**row, scenario=scenario, turns=own, scores=[], mentions=[], leaks=[])))
    return found


def turns_by_episode(store: Store, run_id: str) -> dict[str, list[dict[str, Any]]]:
    """The turns of every episode of a run by episode_id: words, and the columns TURN of `episodes`."""
    turns: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in store.rows(
        f"SELECT episode_id, {TURN}, words FROM v_turns WHERE run_id = ? ORDER BY episode_id, turn",
        [run_id],
    ):
        turns[row.pop("episode_id")].append(row)
    return dict(turns)


# ---- answers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Answer(AnswerRow):
    """An answer, and the episodes that its rater saw as 1 and 2; None where there is none, or its run was deleted."""

    scenario: str | None
    """Hash of the scenario."""
    side_1: dict[str, str] | None
    side_2: dict[str, str] | None
    """The conditions of the conversations that the rater saw; attention items have none."""

    @cached_property
    def value(self) -> Any:
        """The answer itself."""
        return json.loads(self.value_json)

    @cached_property
    def shown(self) -> dict[str, str]:
        """What its item displayed."""
        shown: dict[str, str] = json.loads(self.shown_json)
        return shown

    @cached_property
    def sides(self) -> tuple[Condition, ...]:
        """The conditions that are known."""
        return tuple(Condition(**side) for side in (self.side_1, self.side_2) if side is not None)


def answers_of_runs(store: Store, runs: Sequence[str]) -> list[Answer]:
    """All answers about conversations of some runs by task, item and rater."""
    return store.select(
        Answer,
        "SELECT a.* EXCLUDE (mode_1, mode_2, see_1, see_2, chosen_mode), e.scenario_hash AS scenario, "
        "CASE WHEN a.mode_1 IS NOT NULL THEN {'run_id': e.run_id, 'mode': e.mode, 'model': e.model, "
        "'see': coalesce(e.see, '')} END AS side_1, "
        "CASE WHEN a.mode_2 IS NOT NULL THEN {'run_id': o.run_id, 'mode': o.mode, 'model': o.model, "
        "'see': coalesce(o.see, '')} END AS side_2 "
        "FROM v_annotations a LEFT JOIN episodes e ON e.episode_id = a.shown_json ->> '$.\"1\"' "
        "LEFT JOIN episodes o ON o.episode_id = a.shown_json ->> '$.\"2\"' "
        "WHERE list_has_any([a.run_id, e.run_id, o.run_id], ?) ORDER BY a.task, a.item_id, a.rater",
        [list(runs)],
    )


def answered_items(store: Store, task: str, runs: Sequence[str], rater: str) -> set[str]:
    """The ids of the items of a task and some runs that a rater has answered."""
    query = "SELECT item_id FROM annotations WHERE task = ? AND run_id IN (SELECT unnest(?)) AND rater = ?"
    return set(store.column(query, [task, list(runs), rater]))


def answer_to(store: Store, task: str, item_id: str, rater: str) -> str | None:
    """The value_json that a rater answered to an item; None without an answer."""
    query = "SELECT value_json FROM annotations WHERE task = ? AND item_id = ? AND rater = ?"
    return next(iter(store.column(query, [task, item_id, rater])), None)


def store_answers(store: Store, answers: Sequence[AnswerRow], patience_s: float, *, keep_later: bool = False) -> None:
    """Store answers in one transaction; of two answers to one item by one rater the last counts.

    `keep_later` keeps a stored answer that was given later. Raises DatabaseError if another program holds the database
    for more than `patience_s` seconds.
    """
    # One statement may not write the same key twice.
    fresh = {(answer.task, answer.item_id, answer.rater): answer for answer in answers}
    if not fresh:
        return
    with store.writing(patience_s) as connection, transaction(connection):
        if keep_later:
            query = "SELECT task, item_id, rater, created_utc FROM annotations WHERE task IN (SELECT unnest(?))"
            known = connection.execute(query, [[each.task for each in answers]]).fetchall()
            times = {(task, item_id, rater): given for task, item_id, rater, given in known}
            fresh = {key: each for key, each in fresh.items() if each.created_utc >= times.get(key, each.created_utc)}
        for statement, values in inserts({"annotations": [astuple(answer) for answer in fresh.values()]}):
            connection.execute(statement, values)


def remove_latest_answer(
    store: Store, task: str, runs: Sequence[str], rater: str, patience_s: float, among: Collection[str] | None = None
) -> str | None:
    """Delete the latest answer of a rater in a task of some runs; return the item's id, None without an answer.

    `among` are the ids of the items that may be deleted. Raises as `store_answers` does.
    """
    with store.writing(patience_s) as connection:
        row = connection.execute(
            "DELETE FROM annotations WHERE task = $1 AND rater = $3 AND item_id = (SELECT item_id FROM annotations "
            "WHERE task = $1 AND run_id IN (SELECT unnest($2)) AND rater = $3 AND ($4 IS NULL OR item_id IN "
            "(SELECT unnest($4))) ORDER BY created_utc DESC, item_id LIMIT 1) RETURNING item_id",
            [task, list(runs), rater, None if among is None else list(among)],
        ).fetchone()
    return str(row[0]) if row else None


# ---- what answers are compared with --------------------------------------------------------------------------------


Scores = dict[str, dict[tuple[str, str | None, str], float]]
"""Evaluator -> (episode id, agent, name) -> value."""


def judge_scores(store: Store, runs: Sequence[str]) -> Scores:
    """The newest scores by judges of naturalness and of dimensions that have a value, in a fixed order."""
    found: Scores = defaultdict(dict)
    for row in store.rows(
        "SELECT evaluator, episode_id, agent, name, value FROM v_scores WHERE run_id IN (SELECT unnest(?)) AND "
        "newest AND value IS NOT NULL AND (starts_with(evaluator, 'naturalness.') OR starts_with(evaluator, 'judge.')) "
        "ORDER BY ALL",
        [list(runs)],
    ):
        found[row["evaluator"]][row["episode_id"], row["agent"], row["name"]] = row["value"]
    return dict(found)


@dataclass(frozen=True)
class LeakVerdict(Conditioned):
    """What a judge of leaks found about a fact."""

    judge: str
    episode_id: str
    fact_id: str
    label: str | None
    """None if it is missing."""
    turn: int | None
    """None if the fact is not disclosed, or the turn is not known."""
    questions: int
    missing: int
    """Questions without a reply that could be read."""


def leak_verdicts(store: Store, runs: Sequence[str]) -> list[LeakVerdict]:
    """The verdicts of the newest version of each judge of leaks on each fact that it was asked about."""
    return store.select(
        LeakVerdict,
        "SELECT q.judge, q.run_id, q.mode, q.model, q.see, q.episode_id, q.fact_id, c.label, "
        "TRY_CAST(c.turns_json ->> '$[0]' AS INTEGER) AS turn, q.questions, q.missing "
        "FROM (SELECT judge, evaluator, version, run_id, mode, model, see, episode_id, owner, "
        "fact_id, count(*) AS questions, count(*) FILTER (missing) AS missing FROM v_leak_judgements "
        "WHERE run_id IN (SELECT unnest(?)) GROUP BY ALL) q LEFT JOIN scores c ON c.episode_id = q.episode_id "
        "AND c.evaluator = q.evaluator AND c.version = q.version AND c.agent = q.owner "
        "AND c.name = 'fact.' || q.fact_id ORDER BY ALL",
        [list(runs)],
    )


def leak_checks(store: Store, runs: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Judge of leaks -> the number of checks of its verdicts, and of those that contradict them."""
    rows = store.rows(
        "SELECT substr(evaluator, 12) AS judge, coalesce(sum(value) FILTER (name = 'checks'), 0)::BIGINT AS checks, "
        "coalesce(sum(value) FILTER (name = 'contradictions'), 0)::BIGINT AS contradictions FROM v_scores "
        "WHERE run_id IN (SELECT unnest(?)) AND newest AND starts_with(evaluator, 'leak_judge.') GROUP BY 1",
        [list(runs)],
    )
    return {row["judge"]: (row["checks"], row["contradictions"]) for row in rows}


@dataclass(frozen=True)
class Disclosure:
    """The first disclosure of a fact, as the leakage detector finds it."""

    episode_id: str
    fact_id: str
    turn: int
    owner: str
    speaker: str


def first_disclosures(store: Store, run_id: str) -> list[Disclosure]:
    """The first disclosure of each fact in a run by the leakage detector."""
    query = "SELECT episode_id, fact_id, turn, owner, speaker FROM v_leaks WHERE run_id = ? ORDER BY ALL"
    return store.select(Disclosure, query, [run_id])


def episodes_with_leak_scores(store: Store, run_id: str) -> set[str]:
    """The ids of the episodes of a run that the leakage detector has searched."""
    query = f"SELECT episode_id FROM episodes WHERE run_id = ? AND episode_id IN ({SEARCHED})"
    return set(store.column(query, [run_id]))
