"""The choice of conversations to show: by a stated rule, so that nobody picks the one that makes a point."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from localsim.families import in_order
from localsim.store.conditions import Condition, conditions_of
from localsim.store.database import Store
from localsim.store.episodes import StoredEpisode, load_episode
from localsim.store.queries import reports as queries

Group = dict[Condition, "Finished"]
"""The episodes of one scenario and seed, by condition."""

RULE = (
    "The rule of choice: the scenario and seed that most conditions completed and whose success, then number of turns, "
    "are nearest to the medians of each condition; of equals, the lowest seed."
)


@dataclass(frozen=True)
class Finished:
    """A completed episode with its success, or None where that is unknown."""

    episode: queries.Episode
    success: float | None

    @property
    def turns(self) -> int:
        """The number of its turns."""
        return self.episode.turns or 0


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
    for row in _completed(store, conditions):
        episode = row.episode
        unit = (episode.seed, episode.scenario_id, episode.scenario_hash, episode.episode_index)
        families[episode.family][unit][episode.condition] = row
    found = {}
    for family in in_order(families):
        groups = families[family]
        middles = _medians(row for group in groups.values() for row in group.values())
        unit = min(groups, key=lambda unit: (*_distance(groups[unit], middles), unit))
        found[family] = [groups[unit][each].episode.episode_id for each in conditions if each in groups[unit]]
    return found


def _completed(store: Store, conditions: Sequence[Condition]) -> list[Finished]:
    found = []
    for run_id in dict.fromkeys(each.run_id for each in conditions):
        success = queries.success(store, run_id)
        for row in queries.episodes(store, run_id):
            if row.status == "completed" and row.variant == 0 and row.condition in conditions:
                found.append(Finished(row, success.get(row.episode_id)))
    return found


def _medians(rows: Iterable[Finished]) -> dict[Condition, tuple[float, float]]:
    """Return the median success and number of turns of each condition."""
    by_condition: dict[Condition, list[Finished]] = defaultdict(list)
    for row in rows:
        by_condition[row.episode.condition].append(row)
    return {
        condition: (
            median([row.success for row in own if row.success is not None] or [0.0]),
            median(row.turns for row in own),
        )
        for condition, own in by_condition.items()
    }


def _distance(group: Group, middles: dict[Condition, tuple[float, float]]) -> tuple[int, float, float]:
    """Return minus the number of conditions, and the distances of success and of turns: the least is shown."""
    success = sum(abs((row.success or 0.0) - middles[each][0]) for each, row in group.items())
    turns = sum(abs(row.turns - middles[each][1]) for each, row in group.items())
    return -len(group), success, turns
