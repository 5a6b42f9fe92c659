"""The reads of interviews: the probabilities of options."""

from __future__ import annotations

from dataclasses import dataclass

from localsim.store.database import Store


@dataclass(frozen=True)
class Weighed:
    """An answer whose options were weighed."""

    episode_id: str
    turn: int
    options: str
    """JSON, as the engine kept them."""


_WEIGHED = (
    "SELECT t.episode_id, t.turn, (g.details_json -> '$.options')::VARCHAR AS options FROM turns t "
    "JOIN generations g USING (episode_id, generation) JOIN episodes e USING (episode_id) "
    "WHERE {} = ? AND (g.details_json -> '$.options') IS NOT NULL ORDER BY t.episode_id, t.turn, options"
)


def weighed(store: Store, run_id: str) -> list[Weighed]:
    """The answers of a run whose options were weighed, by episode and turn."""
    return store.select(Weighed, _WEIGHED.format("e.run_id"), [run_id])


def weighed_in(store: Store, episode_id: str) -> list[Weighed]:
    """The answers of an episode whose options were weighed, by turn."""
    return store.select(Weighed, _WEIGHED.format("t.episode_id"), [episode_id])
