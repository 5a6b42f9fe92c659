"""The reads of experiments with people."""

from __future__ import annotations

from dataclasses import dataclass

from localsim.store.database import Store


def runs_of_experiment(store: Store, experiment: str) -> list[str]:
    """The ids of the runs of an experiment that have participants, newest first."""
    query = "SELECT DISTINCT run_id FROM v_participants WHERE experiment = ? ORDER BY run_id DESC"
    return store.column(query, [experiment]) if store.path.exists() else []


@dataclass(frozen=True)
class ConditionCounts:
    """The participants of a condition, and what those who finished did."""

    condition: str
    assigned: int
    finished: int
    unpaired: int
    withdrawn: int
    away: int
    talks: int
    scored: int
    """Talks with an outcome."""
    successes: int
    messages: float | None
    """Mean of a talk; None without one."""
    before: int
    """Participants who answered the forms before the talk, as those after it."""
    after: int
    ratings: int


@dataclass(frozen=True)
class ItemAnswers:
    """The answers with a number to one item by those of a condition who finished."""

    condition: str
    part: str
    bank: str
    item: str
    n: int
    mean: float
    sd: float | None
    """None for one answer."""
    right_share: float | None
    """None without right answers."""


def by_condition(store: Store, run_id: str) -> list[ConditionCounts]:
    """The participants of a run by condition."""
    return store.select(
        ConditionCounts,
        "SELECT p.condition, count(*) AS assigned, "
        + ", ".join(
            f"count(*) FILTER (p.status = '{status}') AS {status}"
            for status in ("finished", "unpaired", "withdrawn", "away")
        )
        + ", coalesce(sum(t.talks), 0)::INTEGER AS talks, coalesce(sum(t.scored), 0)::INTEGER AS scored, "
        "coalesce(sum(t.successes), 0)::INTEGER AS successes, sum(t.messages) / sum(t.talks) AS messages, "
        "count(a.before) AS before, count(a.after) AS after, coalesce(sum(a.ratings), 0)::INTEGER AS ratings "
        "FROM v_participants p LEFT JOIN (SELECT participant, count(*) AS talks, count(success) AS scored, "
        "sum(success) AS successes, sum(messages) AS messages FROM v_participant_talks WHERE run_id = $run "
        "GROUP BY participant) t ON t.participant = p.participant AND p.status = 'finished' "
        "LEFT JOIN (SELECT participant, nullif(count(*) FILTER (part = 'before'), 0) AS before, "
        "nullif(count(*) FILTER (part = 'after'), 0) AS after, count(*) FILTER (part = 'message') AS ratings "
        "FROM v_participant_answers WHERE run_id = $run GROUP BY participant) a "
        "ON a.participant = p.participant AND p.status = 'finished' "
        "WHERE p.run_id = $run GROUP BY p.condition ORDER BY p.condition",
        {"run": run_id},
    )


def answers_by_condition(store: Store, run_id: str) -> list[ItemAnswers]:
    """The answers with a number of those who finished, by condition."""
    return store.select(
        ItemAnswers,
        "SELECT * FROM (SELECT condition, part, bank, item, count(number) AS n, avg(number) AS mean, "
        "stddev_samp(number) AS sd, avg(is_right::INTEGER) AS right_share FROM v_participant_answers "
        "WHERE run_id = ? AND status = 'finished' AND number IS NOT NULL GROUP BY ALL) "
        "ORDER BY list_position(['before', 'message', 'rubric', 'after'], part), bank, item, condition",
        [run_id],
    )


@dataclass(frozen=True)
class Outcome:
    """The mean of a participant who finished; partners in a talk are one, since their answers depend on each other."""

    condition: str
    outcome: str
    """`success`, `messages`, or part, bank and item of a question."""
    value: float


def outcomes(store: Store, run_id: str) -> list[Outcome]:
    """What those who finished did and answered in and after the talk, one value each, by outcome and condition."""
    return store.select(
        Outcome,
        "WITH units AS (SELECT a.participant, min(b.participant) AS unit FROM v_participant_talks a "
        "JOIN v_participant_talks b USING (run_id, episode_id) WHERE run_id = $run GROUP BY ALL), "
        "found AS (SELECT participant, 1 AS rank, unnest(['success', 'messages']) AS outcome, "
        "unnest([success, messages]) AS value FROM v_participant_talks WHERE run_id = $run "
        "UNION ALL SELECT participant, 2, concat_ws('/', part, bank, item), number FROM v_participant_answers "
        "WHERE run_id = $run AND part <> 'before') "
        "SELECT condition, outcome, avg(value) AS value FROM found JOIN v_participants p USING (participant) "
        "LEFT JOIN units USING (participant) WHERE p.run_id = $run AND status = 'finished' AND value IS NOT NULL "
        "GROUP BY rank, outcome, condition, coalesce(unit, participant) "
        "ORDER BY rank, outcome, condition, coalesce(unit, participant)",
        {"run": run_id},
    )


@dataclass(frozen=True)
class Rating:
    """The rating of a participant, beside the score of one judge."""

    rubric: str
    dimension: str
    episode_id: str
    agent: str | None
    """None for a rubric about talks."""
    participant: str
    rating: float | None
    """None if the participant could not tell."""
    judge: str | None
    """None if no judge was asked the same."""
    score: float | None
    """None if the reply could not be read."""


def rubric_ratings(store: Store, run_id: str) -> list[Rating]:
    """The ratings by rubrics of those who finished, each beside the scores of judges."""
    return store.select(
        Rating,
        "SELECT rubric, dimension, episode_id, agent, participant, rating, judge, score FROM v_rubric_ratings "
        "WHERE run_id = ? AND status = 'finished' ORDER BY ALL",
        [run_id],
    )


def description_of(store: Store, run_id: str) -> str | None:
    """The experiment of a run as JSON text; None if it is not stored."""
    query = (
        "SELECT c.text FROM v_participants p JOIN contents c ON c.content_hash = p.description_hash "
        "WHERE p.run_id = ? LIMIT 1"
    )
    return next(iter(store.column(query, [run_id])), None)
