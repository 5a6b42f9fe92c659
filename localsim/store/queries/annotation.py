"""The reads and writes of human annotation: episodes to judge, answers, and what answers are compared with.

Each function opens the database for one query and closes it. Rows are dictionaries with the columns named in the
docstring; a missing value is None.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import astuple, fields
from typing import Any

from localsim.store.database import Store
from localsim.store.episodes import TURN
from localsim.store.queries import SEARCHED
from localsim.store.records import AnswerRow
from localsim.store.schema import TABLES

Row = dict[str, Any]

_ROWS = 500
"""Answers in one statement."""
_KEY = TABLES["annotations"].key


_COLUMNS = tuple(field.name for field in fields(AnswerRow))


# ---- episodes ------------------------------------------------------------------------------------------------------


def has_run(store: Store, run_id: str) -> bool:
    """True if a run has exactly this id."""
    return bool(store.rows("SELECT 1 FROM runs WHERE run_id = ?", [run_id]))


def completed_episodes(store: Store, run_id: str) -> list[Row]:
    """The completed episodes of a run that have turns: the columns of v_episodes, and document_json of the scenario.

    In a fixed order: by scenario, index and seed.
    """
    return store.rows(
        "SELECT e.*, s.document_json FROM v_episodes e JOIN scenarios s USING (scenario_hash) WHERE e.run_id = ? "
        "AND e.status = 'completed' AND e.turns > 0 ORDER BY e.scenario_hash, e.episode_index, e.seed, e.episode_id",
        [run_id],
    )


def turns_by_episode(store: Store, run_id: str) -> dict[str, list[Row]]:
    """The turns of every episode of a run by episode_id: words, and the columns TURN of `episodes`."""
    turns: dict[str, list[Row]] = defaultdict(list)
    for row in store.rows(
        f"SELECT episode_id, {TURN}, words FROM v_turns WHERE run_id = ? ORDER BY episode_id, turn",
        [run_id],
    ):
        turns[row.pop("episode_id")].append(row)
    return dict(turns)


# ---- answers -------------------------------------------------------------------------------------------------------


def answers_of_runs(store: Store, runs: Sequence[str]) -> list[Row]:
    """All answers about conversations of some runs by task, item and rater: the columns of v_annotations, the scenario
    of side 1, and run, model and see of both sides (run_1, run_2, ...).
    """
    return store.rows(
        "SELECT a.*, e.scenario_hash AS scenario, "
        "e.run_id AS run_1, e.model AS model_1, o.run_id AS run_2, o.model AS model_2 "
        "FROM v_annotations a LEFT JOIN episodes e ON e.episode_id = a.shown_json ->> '$.\"1\"' "
        "LEFT JOIN episodes o ON o.episode_id = a.shown_json ->> '$.\"2\"' "
        "WHERE list_has_any([a.run_id, e.run_id, o.run_id], ?) ORDER BY a.task, a.item_id, a.rater",
        [list(runs)],
    )


def answered_items(store: Store, task: str, runs: Sequence[str], rater: str) -> set[str]:
    """The ids of the items of a task and some runs that a rater has answered."""
    query = "SELECT item_id FROM annotations WHERE task = ? AND run_id IN (SELECT unnest(?)) AND rater = ?"
    return {row["item_id"] for row in store.rows(query, [task, list(runs), rater])}


def answer_to(store: Store, task: str, item_id: str, rater: str) -> str | None:
    """The value_json that a rater answered to an item; None without an answer."""
    query = "SELECT value_json FROM annotations WHERE task = ? AND item_id = ? AND rater = ?"
    rows = store.rows(query, [task, item_id, rater])
    return str(rows[0]["value_json"]) if rows else None


def store_answers(store: Store, answers: Sequence[AnswerRow], patience_s: float, *, keep_later: bool = False) -> None:
    """Store answers in one transaction; of two answers to one item by one rater the last counts.

    `keep_later` keeps a stored answer that was given later. Raises DatabaseError if another program holds the database
    for more than `patience_s` seconds.
    """
    # One statement may not write the same key twice.
    rows = list({tuple(getattr(answer, name) for name in _KEY): astuple(answer) for answer in answers}.values())
    if not rows:
        return
    place = f"({', '.join('?' for _ in _COLUMNS)})"
    changed = ", ".join(f"{column} = excluded.{column}" for column in _COLUMNS if column not in _KEY)
    condition = " WHERE excluded.created_utc >= annotations.created_utc" if keep_later else ""
    with store.writing(patience_s) as connection:
        # An error closes the connection, and DuckDB undoes an open transaction.
        connection.begin()
        for start in range(0, len(rows), _ROWS):
            part = rows[start : start + _ROWS]
            connection.execute(
                f"INSERT INTO annotations ({', '.join(_COLUMNS)}) VALUES {', '.join([place] * len(part))} "
                f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET {changed}{condition}",
                [value for row in part for value in row],
            )
        connection.commit()


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


def judge_scores(store: Store, runs: Sequence[str]) -> list[Row]:
    """The newest scores by judges of naturalness and of dimensions: evaluator, episode_id, agent, name, value.

    In a fixed order; scores without a value are left out.
    """
    return store.rows(
        "SELECT evaluator, episode_id, agent, name, value FROM v_scores WHERE run_id IN (SELECT unnest(?)) AND "
        "newest AND value IS NOT NULL AND (starts_with(evaluator, 'naturalness.') OR starts_with(evaluator, 'judge.')) "
        "ORDER BY ALL",
        [list(runs)],
    )


def leak_verdicts(store: Store, runs: Sequence[str]) -> list[Row]:
    """What judges of leaks found about each fact that they were asked about, by the newest version of each judge.

    Columns: judge, run_id, mode, model, see, episode_id, fact_id, label (None if it is missing), turn (None if the fact
    is not disclosed or the turn is not known), questions, missing (questions without a reply that could be read).
    """
    return store.rows(
        "SELECT q.judge, q.run_id, q.mode, q.model, q.see, q.episode_id, q.fact_id, c.label, "
        "TRY_CAST(c.turns_json ->> '$[0]' AS INTEGER) AS turn, q.questions, q.missing "
        "FROM (SELECT judge, evaluator, version, run_id, mode, model, see, episode_id, owner, "
        "fact_id, count(*) AS questions, count(*) FILTER (missing) AS missing FROM v_leak_judgements "
        "WHERE run_id IN (SELECT unnest(?)) GROUP BY ALL) q LEFT JOIN scores c ON c.episode_id = q.episode_id "
        "AND c.evaluator = q.evaluator AND c.version = q.version AND c.agent = q.owner "
        "AND c.name = 'fact.' || q.fact_id ORDER BY ALL",
        [list(runs)],
    )


def leak_checks(store: Store, runs: Sequence[str]) -> list[Row]:
    """How often the checks of judges of leaks fit their verdicts: judge, checks, contradictions."""
    return store.rows(
        "SELECT substr(evaluator, 12) AS judge, coalesce(sum(value) FILTER (name = 'checks'), 0)::BIGINT AS checks, "
        "coalesce(sum(value) FILTER (name = 'contradictions'), 0)::BIGINT AS contradictions FROM v_scores "
        "WHERE run_id IN (SELECT unnest(?)) AND newest AND starts_with(evaluator, 'leak_judge.') GROUP BY 1",
        [list(runs)],
    )


def first_disclosures(store: Store, run_id: str) -> list[Row]:
    """The first disclosure of each fact in a run by the leakage detector: episode_id, fact_id, turn, owner, speaker."""
    query = "SELECT episode_id, fact_id, turn, owner, speaker FROM v_leaks WHERE run_id = ? ORDER BY ALL"
    return store.rows(query, [run_id])


def episodes_with_leak_scores(store: Store, run_id: str) -> set[str]:
    """The ids of the episodes of a run that the leakage detector has searched."""
    query = f"SELECT episode_id FROM episodes WHERE run_id = ? AND episode_id IN ({SEARCHED})"
    return {row["episode_id"] for row in store.rows(query, [run_id])}
