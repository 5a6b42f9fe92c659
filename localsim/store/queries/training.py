"""The reads of fine-tuning: which episodes to train on, and which scenarios they played.

Each function opens the database for one query and closes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from localsim.store.database import Store


def chat_episodes(store: Store, run_id: str) -> list[str]:
    """The ids of the completed episodes of a run, by scenario, mode and index."""
    rows = store.rows(
        "SELECT episode_id FROM v_episodes WHERE run_id = ? AND status = 'completed' "
        "ORDER BY scenario_id, mode, episode_index",
        [run_id],
    )
    return [row["episode_id"] for row in rows]


def episodes_in_mode(store: Store, episode_ids: Sequence[str], mode: str) -> list[str]:
    """Those of the episodes that were played in a mode, in the same order."""
    rows = store.rows(
        "SELECT episode_id FROM episodes WHERE mode = ? AND episode_id IN (SELECT unnest(?))", [mode, list(episode_ids)]
    )
    kept = {row["episode_id"] for row in rows}
    return [episode_id for episode_id in episode_ids if episode_id in kept]


def scenario_hashes(store: Store, episode_ids: Sequence[str]) -> list[str]:
    """The hashes of the scenarios of episodes, each once, sorted."""
    rows = store.rows(
        "SELECT DISTINCT scenario_hash FROM episodes WHERE episode_id IN (SELECT unnest(?)) ORDER BY 1",
        [list(episode_ids)],
    )
    return [row["scenario_hash"] for row in rows]
