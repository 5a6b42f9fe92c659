"""The reads of interviews: the probabilities of options."""

from __future__ import annotations

from typing import Any

from localsim.store.database import Store

Row = dict[str, Any]


def weighed(store: Store, run_id: str) -> list[Row]:
    """The answers of a run whose options were weighed: episode_id, turn, options (JSON, as the engine kept them)."""
    return store.rows(
        "SELECT t.episode_id, t.turn, (g.details_json -> '$.options')::VARCHAR AS options "
        "FROM turns t JOIN generations g USING (episode_id, generation) JOIN episodes e USING (episode_id) "
        "WHERE e.run_id = ? AND (g.details_json -> '$.options') IS NOT NULL ORDER BY ALL",
        [run_id],
    )


def weighed_in(store: Store, episode_id: str) -> list[Row]:
    """The answers of an episode whose options were weighed: turn, options."""
    return store.rows(
        "SELECT t.turn, (g.details_json -> '$.options')::VARCHAR AS options "
        "FROM turns t JOIN generations g USING (episode_id, generation) "
        "WHERE t.episode_id = ? AND (g.details_json -> '$.options') IS NOT NULL ORDER BY t.turn",
        [episode_id],
    )
