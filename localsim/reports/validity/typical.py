"""The choice of conversations to show: by a stated rule, so that nobody picks the one that makes a point."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from localsim.families import in_order
from localsim.store.conditions import Condition, conditions_of
from localsim.store.database import Store
from localsim.store.episodes import StoredEpisode, load_episode
from localsim.store.queries import reports as queries

Group = dict[Condition, queries.Episode]
"""The episodes of one scenario and seed, by condition."""

RULE = (
    "The rule of choice: of the scenarios and seeds that most conditions completed, the one that is nearest to the "
    "medians of each condition, first in success, then in turns; of equals, the lowest seed."
)


@dataclass(frozen=True)
class Example:
    """Conversations in one scenario with one seed, one column for each mode."""

    family: str
    episodes: tuple[StoredEpisode, ...]


def examples(store: Store, run_id: str) -> list[Example]:
    """Return the conversations that RULE chooses for each family: one for each condition, by one model."""
    conditions = conditions_of(store, run_id)
    first = {each.name: each for each in reversed(conditions)}
    found = typical(store, [each for each in conditions if first[each.name] is each])
    return [Example(family, tuple(load_episode(store, each) for each in ids)) for family, ids in found.items()]


def typical(store: Store, conditions: Sequence[Condition]) -> dict[str, list[str]]:
    """Return family -> ids of the episodes to show, one for each condition, as RULE chooses them.

    Failed episodes and variants of the prompts are never shown.
    """
    families: dict[str, dict[tuple[Any, ...], Group]] = defaultdict(lambda: defaultdict(dict))
    success: dict[str, float | None] = {}
    for run_id in dict.fromkeys(each.run_id for each in conditions):
        success |= queries.success(store, run_id)
        for row in queries.episodes(store, run_id):
            if row.status == "completed" and row.variant == 0 and row.condition in conditions:
                unit = (row.seed, row.scenario_id, row.scenario_hash, row.episode_index)
                families[row.family][unit][row.condition] = row
    return {family: _chosen(families[family], conditions, success) for family in in_order(families)}


def _chosen(
    groups: Mapping[tuple[Any, ...], Group], conditions: Sequence[Condition], success: Mapping[str, float | None]
) -> list[str]:
    """Return the ids of the episodes of the unit that is nearest to the medians of each condition."""
    own = {each: [group[each] for group in groups.values() if each in group] for each in conditions}
    middles = {
        each: (
            median([value for row in rows if (value := success.get(row.episode_id)) is not None] or [0.0]),
            median(row.turns or 0 for row in rows),
        )
        for each, rows in own.items()
        if rows
    }

    def distance(group: Group) -> tuple[int, float, float]:
        apart = [abs((success.get(row.episode_id) or 0.0) - middles[each][0]) for each, row in group.items()]
        turns = [abs((row.turns or 0) - middles[each][1]) for each, row in group.items()]
        return -len(group), sum(apart), sum(turns)

    nearest = groups[min(groups, key=lambda unit: (*distance(groups[unit]), unit))]
    return [nearest[each].episode_id for each in conditions if each in nearest]
