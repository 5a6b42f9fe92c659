"""The reads of classes: the talks of people in one run, and their bets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from localsim.conversation.episode import Mode, StopReason
from localsim.store.database import Store
from localsim.store.episodes import TURN


@dataclass(frozen=True)
class PlayedTalk:
    """An episode of people."""

    episode_id: str
    scenario_id: str
    mode: Mode
    status: str
    stop_reason: StopReason | None
    error: str | None
    turns: int
    success: float | None
    """None if it is not scored."""
    fault: str | None
    """The worst fault of a talk that does not play; '' if it plays, None if that is not scored."""
    family: str | None
    decided: int | None
    """The last turn that is evidence of its success; None without success or evidence."""
    model: str
    """Who played it."""


@dataclass(frozen=True)
class StoredBet:
    """A bet of a player."""

    episode_id: str
    """The talk that it is about."""
    value_json: str


@dataclass(frozen=True)
class ReplayCount:
    """Decisions that were replayed from an earlier class, and that the fallback made instead."""

    replayed: int
    fallback: int


def talks_of_run(store: Store, run_id: str) -> list[PlayedTalk]:
    """The episodes of a run."""
    return store.select(
        PlayedTalk,
        "SELECT e.episode_id, e.scenario_id, e.mode, e.status, e.stop_reason, e.error, e.turns, "
        "e.success::DOUBLE AS success, CASE WHEN p.value >= 1 THEN '' WHEN p.value < 1 THEN p.label END AS fault, "
        "e.family, e.model, (SELECT max(list_max(c.turns_json::JSON::INTEGER[])) FROM v_scores c "
        "WHERE c.name = 'success' AND c.episode_id = e.episode_id AND c.agent IS NULL AND c.newest AND c.value = 1) "
        "AS decided "
        "FROM v_episodes e LEFT JOIN v_scores p ON p.episode_id = e.episode_id AND p.name = 'plays' AND p.newest "
        "WHERE e.run_id = ? ORDER BY e.mode, e.episode_id",
        [run_id],
    )


def bets_of_run(store: Store, run_id: str) -> list[StoredBet]:
    """The bets of the players of a run."""
    return store.select(
        StoredBet,
        "SELECT item_id AS episode_id, value_json FROM v_annotations "
        "WHERE task = 'bet' AND run_id = ? ORDER BY item_id, rater",
        [run_id],
    )


def decisions(store: Store, run_id: str, writer: str) -> list[dict[str, Any]]:
    """The turns that a writer, such as the people of a class, made in the completed episodes of a run.

    Columns: episode_id, scenario_hash, mode, and TURN, by episode and turn.
    """
    return store.rows(
        f"SELECT t.episode_id, e.scenario_hash, e.mode, {TURN} FROM turns t JOIN episodes e USING (episode_id) "
        "WHERE e.run_id = ? AND e.status = 'completed' AND EXISTS (SELECT 1 FROM generations g "
        "WHERE g.episode_id = t.episode_id AND g.speaker = t.speaker AND g.model = ?) ORDER BY t.episode_id, t.turn",
        [run_id, writer],
    )


def replayed(store: Store, run_id: str) -> ReplayCount:
    """How many decisions of a run were replayed."""
    return store.select(
        ReplayCount,
        "SELECT count(*) FILTER (NOT json_exists(details_json, '$.fallback')) AS replayed, "
        "count(*) FILTER (json_exists(details_json, '$.fallback')) AS fallback "
        "FROM generations JOIN episodes USING (episode_id) "
        "WHERE run_id = ? AND json_exists(details_json, '$.replayed')",
        [run_id],
    )[0]
