"""The reads of interviews: the probabilities of options."""

from __future__ import annotations

from localsim.store.database import Store


def weighed(store: Store, run_id: str | None = None, episode_id: str | None = None) -> dict[tuple[str, int], str]:
    """Episode id and turn -> options, as JSON that the engine kept, for the answers of a run or an episode whose
    options were weighed.
    """
    rows = store.rows(
        "SELECT t.episode_id, t.turn, (g.details_json -> '$.options')::VARCHAR AS options FROM turns t "
        "JOIN generations g USING (episode_id, generation) JOIN episodes e USING (episode_id) "
        "WHERE (e.run_id = $run OR t.episode_id = $episode) AND (g.details_json -> '$.options') IS NOT NULL",
        {"run": run_id, "episode": episode_id},
    )
    return {(row["episode_id"], row["turn"]): row["options"] for row in rows}
