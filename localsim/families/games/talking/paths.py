"""What an adviser of the game `recommendation` knows: the path over attributes, candidates, neighbours and scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from localsim.families.games.base import Transcript

ATTRIBUTES = (
    "red", "blue", "green", "black", "white", "wool", "silk", "cotton", "linen", "leather", "soft", "warm", "light",
    "heavy", "plain", "striped", "checked", "long", "short", "wide",
)  # fmt: skip
Items = Mapping[str, list[str]]
"""Attributes of each item."""


@dataclass
class Path:
    """The walk of a talk over attributes: those that were confirmed and denied, and the lists that were refused."""

    confirmed: list[str]
    denied: list[str] = field(default_factory=list)
    refused: list[tuple[str, ...]] = field(default_factory=list)

    def candidates(self, items: Items) -> list[str]:
        """Return the items with all confirmed attributes that were not refused."""
        gone = {item for each in self.refused for item in each}
        return [item for item, own in items.items() if item not in gone and set(self.confirmed) <= set(own)]

    def neighbours(self, items: Items) -> list[str]:
        """Return the attributes of candidates that were not asked: all that SCPR may ask."""
        near = {attribute for item in self.candidates(items) for attribute in items[item]}
        return [each for each in ATTRIBUTES if each in near - {*self.confirmed, *self.denied}]


def path_of(talk: Transcript) -> Path:
    """Return the path of a talk."""
    path = Path([turn.value for turn in talk.told])
    acts = talk.acts
    for turn, reply in zip(acts[::2], acts[1::2], strict=False):
        if turn.action.type == "recommend":
            path.refused.append(turn.action.values or ())
        else:
            (path.confirmed if reply.action.type == "yes" else path.denied).append(turn.value)
    return path


def scores_of_items(items: Items, bought: Sequence[str], path: Path) -> dict[str, float]:
    """Return a score for each item: its mean overlap with what was bought, less what was denied and refused.

    What was refused is EAR's reflection: an item loses what it shares with the items of a refused list on average.
    """
    weights = dict.fromkeys(ATTRIBUTES, 0.0)
    for item in bought:
        for attribute in items[item]:
            weights[attribute] += 1 / len(bought)
    for attribute in path.denied:
        weights[attribute] -= 1
    for refused in map(set, path.refused):
        for attribute in (each for item in refused for each in items[item]):
            weights[attribute] -= 1 / len(refused)
    return {item: sum(weights[each] for each in own) for item, own in items.items()}


def entropy(share: float) -> float:
    """Return the entropy of a yes/no answer in bits."""
    return 0.0 if share <= 0 or share >= 1 else -share * math.log2(share) - (1 - share) * math.log2(1 - share)
