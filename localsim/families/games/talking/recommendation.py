"""Conversational recommendation with yes/no questions (EAR, arXiv 2002.09102; SCPR, arXiv 2007.00194).

In each turn the adviser asks whether the customer's item has an attribute, or recommends a list of items. Rewards:
0.01 for an attribute that is confirmed, -0.1 for one that is not, 1 for a list with the item, -0.1 for one without, and
-0.3 when turn T is reached. As in the environment of UNICORN (arXiv 2105.09710), which took over that of SCPR, the
customer opens with one attribute, T - 1 turns are played, and turn T is the penalty; failures count T turns.

Candidates are the items with all confirmed attributes, without those that were refused. The player `max-entropy` asks
any attribute that splits them best. `scpr` asks only neighbours, attributes of a candidate, by entropy weighted with
sigmoid(score). What the systems learn is replaced by plain rules: a score is the overlap with what the customer bought
before (for a factorisation machine), and a threshold decides when to recommend (for a learned policy).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table

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


def path_of(talk: g.Transcript) -> Path:
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


ASK_YES, ASK_NO, TAKEN, REFUSED, REACHED = 0.01, -0.1, 1.0, -0.1, -0.3
"""The published rewards."""


class Recommendation(Replayed):
    """An adviser finds the item that a customer has in mind, by questions and recommendations."""

    name, version = "recommendation", "1"
    title = "Asking or recommending"
    about = "An adviser asks a customer about attributes, or recommends scarves, until the right one is in the list."
    defaults = {"items": 100, "list": 10, "turns": 15, "bought": 3}
    how = (
        "Success is a list with the customer's scarf. Reward: 0.01 and -0.1 for attributes that are right and wrong, 1 "
        "and -0.1 for lists, -0.3 at the last turn. A failure counts all turns."
    )
    tries = (
        "Compare -m scripted:scpr, -m scripted:max-entropy and -m scripted:random: average turns and reward.",
        "Compare agents with mindreaders, who know the scarf.",
        "Play the adviser yourself: localsim play recommendation_small --with scripted",
    )
    bundled = {
        "plain": {},
        "small": {"items": 30, "list": 3},
        "one_item": {"items": 30, "list": 1},
        "hurry": {"turns": 5},
        "unknown_taste": {"bought": 0},
    }
    interests = "cooperative"
    topics: Mapping[str, Sequence[str]] = {
        "recommends_by": ("asking", "several turns", "exploring or exploiting", "simulating the user")
    }
    measures = (
        g.SUCCESS,
        g.share("success_at_5", "success at 5", "share that succeeds within 5 turns", "success_5"),
        g.share("success_at_10", "success at 10", "share that succeeds within 10 turns", "success_10"),
        g.mean("average_turns", "turns", "turns of the adviser; a failure counts all", "rounds", compared=True),
        g.mean("reward", "reward", "sum of the published rewards of all turns", compared=True),
        g.share("truthful", "true answers", "share of the customer's answers that are true"),
    )
    figure = ("success_rate", "success_at_5", "truthful")
    references = (
        g.Reference(
            "random", "random", "an adviser who asks or recommends anything; the customer answers truly", blind=True
        ),
        g.Reference(
            "omniscient",
            "best known",
            "asks what tells most, and recommends the item once it is seen; optimal play is not computed",
        ),
    )
    control_tasks = {"ten items": {"items": 10}}
    controls = (
        g.exactly("max-entropy", "success_rate", 1, "14 turns are enough for 100 items"),
        g.exactly("max-entropy", "truthful", 1, "the customer answers as it is"),
        g.exactly("scpr", "success_rate", 1, "14 turns are enough for 100 items"),
        g.exactly("lister", "success_at_10", 1, "ten lists of ten items are all 100 items"),
        g.by_chance("lister", "success_at_5", 0.5, "five lists of ten items are half of 100 items"),
        g.exactly("lister", "reward", 1, "the only list has the item", "ten items"),
        g.exactly("lister", "average_turns", 1, "the only list has the item", "ten items"),
        g.exactly("denier", "success_rate", 0, "every list is refused"),
        g.exactly("denier", "average_turns", 15, "a failure counts all turns"),
        g.exactly("denier", "reward", -1.7, "14 lists of -0.1, and -0.3 at the end"),
        g.exactly("asker", "success_rate", 0, "nothing is recommended"),
        g.exactly("omniscient", "average_turns", 1, "the item is in the first list", modes=("script", "mindreaders")),
    )

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        size, turns = chosen["list"], chosen["turns"]
        if not (1 <= size <= 10 and size <= chosen["items"] <= 120):
            raise g.InvalidInput("recommendation: list 1 to 10, and items from list to 120")
        if not (2 <= turns <= 100 and 0 <= chosen["bought"] < chosen["items"]):
            raise g.InvalidInput("recommendation: turns 2 to 100, and bought less than items")
        (adviser, customer), rng = names, random.Random(f"{self.name}/{seed}")
        items = {str(n): rng.sample(ATTRIBUTES, 4) for n in range(1, chosen["items"] + 1)}
        # The customer likes some attributes, so what was bought says something about the item.
        taste = set(rng.sample(ATTRIBUTES, 5))
        liked = sorted(items, key=lambda item: rng.random() ** math.exp(-len(taste & set(items[item]))))
        target, bought = liked[-1], sorted(liked[-1 - chosen["bought"] : -1], key=int)
        catalogue = "; ".join(f"{item} {' '.join(found)}" for item, found in items.items())
        mind = f"{customer} has scarf {target} in mind: {' '.join(items[target])}."
        lists = f"To recommend {size} scarves by number (repeat one to recommend fewer)"
        return Scene(
            title=f"{adviser} finds the scarf that {customer} has in mind",
            setting=f"{customer} has one scarf in mind. In each turn {adviser} asks about an attribute, or recommends "
            f"{size} scarves, {turns - 1} times at most, and {customer} answers yes or no. "
            + (f"{customer} bought these before: {', '.join(bought)}. " if bought else "")
            + f"The scarves: {catalogue}.",
            goal=("Recommend the right scarf in few turns.", "Answer truly."),
            secrets=[Secret(customer, "target", mind, target)],
            moves=(
                g.can("ask", "To ask whether it has an attribute", g.one_of(*ATTRIBUTES), by=adviser, text="may"),
                g.can("recommend", lists, *(g.number(1, chosen["items"]),) * size, by=adviser, text="may"),
                g.can("yes", "To say that it is so, or that the scarf is in the list", by=customer, text="may"),
                g.can("no", "To say that it is not", by=customer, text="may"),
            ),
            public={"items": items, "bought": bought, "list": size, "turns": turns},
            turns=2 * (turns - 1),
        )

    def play(self, table: Table) -> Course:
        (adviser, customer), last = table.names, table.public["turns"]
        target = table.secret(customer) or ""
        own: list[str] = table.public["items"][target]
        reward = 0.0
        table.score("success", 0, reason=f"scarf {target} was not found; turn 0 of {last}")
        for name, value in (("success_5", 0), ("success_10", 0), ("rounds", last), ("reward", 0)):
            table.score(name, value)
        found = table.chance("opening").choice(own)
        yield from table.tell(f"{customer} is looking for something {found}.", found)
        for number in range(1, last):
            turn = yield from table.act(adviser, "ask", "recommend")
            reply = yield from table.act(customer, "yes", "no")
            yes, asked = reply.action.type == "yes", turn.action.type == "ask"
            right = turn.value in own if asked else target in turn.values
            success = yes and right and not asked
            # A list without the item earns nothing, also if the customer takes it.
            reward += (ASK_YES if yes else ASK_NO) if asked else (TAKEN if success else REFUSED)
            reached = not success and number == last - 1
            told = f"scarf {target} {'was in list' if success else 'was not found; turn'} {number} of {last}"
            table.score("success", success, (turn, reply), told)
            table.score("success_5", success and number <= 5)
            table.score("success_10", success and number <= 10)
            table.score("rounds", number if success else last, (turn, reply))
            table.score("reward", reward + (REACHED if reached else 0))
            table.mean("truthful", yes == right)
            if yes and not asked:
                return

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        target = g.known(seen, "target", g.others(seen)[0])
        if target is None or not seen.may("recommend"):
            return None
        return recommended([target], seen.game["list"])


def recommended(ranked: list[str], size: int) -> g.Action:
    """Return the move that recommends the first items; the last one is repeated where there are too few."""
    return g.move("recommend", *(ranked + ranked[-1:] * size)[:size])


# ---- players -------------------------------------------------------------------------------------------------------


def _true(seen: g.Observation, rng: random.Random) -> g.Action:
    target, last = g.known(seen, "target") or "", seen.transcript.acts[-1]
    asked = last.action.type == "ask"
    right = last.value in seen.game["items"][target] if asked else target in last.values
    return g.move("yes" if right else "no")


def _adviser(seen: g.Observation, rng: random.Random, *, learns: bool = False) -> g.Action:
    """Ask what splits the candidates best, and recommend when the list holds them.

    `learns`: ask neighbours only, weight the candidates, and recommend when the list holds half of their weight.
    """
    if not seen.may("ask"):
        return _true(seen, rng)
    items, size, path = seen.game["items"], seen.game["list"], path_of(seen.transcript)
    scores = scores_of_items(items, seen.game["bought"], path)
    found = sorted(path.candidates(items) or items, key=lambda item: -scores[item])
    weights = {item: 1 / (1 + math.exp(-scores[item])) if learns else 1.0 for item in found}
    whole = sum(weights.values())
    free = [each for each in ATTRIBUTES if each not in (*path.confirmed, *path.denied)]
    open_ = path.neighbours(items) if learns else free
    enough = learns and sum(weights[item] for item in found[:size]) >= whole / 2
    if len(found) <= size or enough or not open_:
        return recommended(found, size)
    split = {each: entropy(sum(weights[item] for item in found if each in items[item]) / whole) for each in open_}
    return g.move("ask", max(open_, key=lambda each: split[each]))


def _random(seen: g.Observation, rng: random.Random) -> g.Action:
    """Ask or recommend, whatever comes."""
    if not seen.may("ask"):
        return _true(seen, rng)
    if rng.random() < 0.5:
        return g.move("ask", rng.choice(ATTRIBUTES))
    return recommended(rng.sample(list(seen.game["items"]), seen.game["list"]), seen.game["list"])


def _lister(seen: g.Observation, rng: random.Random) -> g.Action:
    """Recommend all items, one list after the other."""
    if not seen.may("ask"):
        return _true(seen, rng)
    items, size = list(seen.game["items"]), seen.game["list"]
    start = size * len(seen.transcript.of("recommend")) % len(items)
    return recommended(items[start : start + size], size)


def _asker(seen: g.Observation, rng: random.Random) -> g.Action:
    return g.move("ask", ATTRIBUTES[len(seen.transcript.of("ask")) % 20]) if seen.may("ask") else _true(seen, rng)


Recommendation.players = {
    "max-entropy": _adviser,
    "scpr": partial(_adviser, learns=True),
    "random": _random,
    "lister": _lister,
    "denier": g.taking(g.move("no"), otherwise=_lister),
    "asker": _asker,
}
Recommendation.sensible = "max-entropy"
