"""Task families: each generates scenarios from a seed, checks them, and scores their outcome without a language model.

Everything that is special about a task is in its family. Other rooms ask `family_of` and know no family by name. This
room may import `conversation` and the rooms below it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from typing import Any

from localsim import plugins
from localsim.conversation.episode import Observation
from localsim.conversation.rules.steps import Rules
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Action
from localsim.errors import InvalidInput, suggest
from localsim.families.base import EVERYDAY as EVERYDAY
from localsim.families.base import Family as Family
from localsim.families.base import Player as Player
from localsim.families.base import problems_of, unfinished
from localsim.families.craigslist import Craigslist
from localsim.families.games import GAMES
from localsim.families.interviews.family import Interview
from localsim.families.mutual_friends import MutualFriends
from localsim.families.players import CONTROL_PLAYERS, any_way, rememberer, smalltalk, teller


class Families(Mapping[str, Family]):
    """The families of localsim, and those of other packages, which are imported when they are requested by name."""

    def __init__(self, own: Sequence[Family], games: Sequence[Family], others: Sequence[Family] = ()) -> None:
        self.own = tuple(family.name for family in own)
        """Names of localsim's own families, which the study simulates."""
        self.games = tuple(family.name for family in games)
        """Names of localsim's games, which have rules of their own."""
        self._own = {family.name: family for family in (*own, *games, *others)}
        self.all = tuple(self._own)
        """Names of all families of localsim, in the order of reports."""
        self._loaded: dict[str, Family] = {}

    def __getitem__(self, name: str) -> Family:
        if name in self._own:
            return self._own[name]
        if name not in self._loaded:
            if name not in plugins.names("families"):
                raise KeyError(name)
            made = plugins.make("families", name)
            check(name, made)
            self._loaded[name] = made
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in plugins.names("families") if name not in self._own)

    def __len__(self) -> int:
        return len(list(iter(self)))


def check(name: str, made: object) -> None:
    """Check a family of another package, given the name of its entry point. Raises InvalidInput with all problems."""
    if not isinstance(made, Family):
        hint = "inherit from localsim.families.base.Family"
        raise InvalidInput(f"families plugin {name!r} is no Family", where=plugins.place_of(made), hint=hint)
    problems = problems_of(made, ANYWHERE)
    if problems and (added := _added()):
        problems = problems_of(made, ANYWHERE, added)
    problems = [*unfinished(made), *problems]
    if made.name != name:
        problems.append(f"name: it is {made.name!r}, and not {name!r}: give it and the entry point the same name")
    if problems:
        whole = "\n  ".join(["", *problems]) if len(problems) > 1 else f" {problems[0]}"
        raise InvalidInput(
            f"families plugin {name!r} cannot be used:{whole}",
            where=plugins.place_of(made, re.split(r"\W", problems[0], maxsplit=1)[0]),
            hint=f"repair {plugins.where_of('families', name)}",
        )


def _added() -> list[str]:
    """Return the keys of the measures that evaluators of other packages add; those that cannot be loaded add none."""
    found: list[str] = []
    for name in plugins.names("evaluators"):
        with suppress(InvalidInput):
            found += [measure.key for measure in getattr(plugins.make("evaluators", name), "measures", ())]
    return found


FAMILIES = Families((MutualFriends(), Craigslist()), GAMES, (Interview(),))


def family_of(name: str | None) -> Family:
    """Return the family of a scenario: EVERYDAY if it names none, a plain Family if its package is not installed."""
    if name is None or name == EVERYDAY.name:
        return EVERYDAY
    return FAMILIES[name] if name in FAMILIES else _missing(name)


def rules_of(scenario: Scenario, index: int = 0) -> Rules | None:
    """Return the rules of the scenario's game in an episode; None for a talk in turn or in phases."""
    return family_of(scenario.family).rules_at(index)


@lru_cache
def _missing(name: str) -> Family:
    family = Family()
    family.name = name
    return family


def title_of(family: Family) -> str:
    """Return the heading of a family for people."""
    return family.title or family.name.replace("_", " ").capitalize()


def in_order(names: Iterable[str]) -> list[str]:
    """Return names of families, each once, in the order of a report: own, everyday, games, then others by name."""
    first = [*FAMILIES.own, EVERYDAY.name, *(name for name in FAMILIES.all if name not in FAMILIES.own)]
    return sorted(set(names), key=lambda name: ([*first, name].index(name), name))


# ---- scripted players ----------------------------------------------------------------------------------------------


def auto(seen: Observation, rng: random.Random) -> Action:
    """Play the sensible player of the scenario's family."""
    family = family_of(seen.family)
    return family.players.get(family.sensible, smalltalk)(seen, rng)


def omniscient(seen: Observation, rng: random.Random) -> Action:
    """Use everything visible about other agents; play sensibly if only the own side is visible."""
    return family_of(seen.family).omniscient(seen, rng) or auto(seen, rng)


def hides_nothing(scenario: Scenario) -> bool:
    """Return True for a scenario without a family that has no fact with terms: `omniscient` then plays as `auto`."""
    facts = (fact for agent in scenario.agents for fact in agent.facts)
    return scenario.family in (None, EVERYDAY.name) and not any(fact.terms for fact in facts)


def peeks(share: float) -> Player:
    """Return a player that uses another agent's side with probability `share` in each turn, else plays sensibly."""

    def play(seen: Observation, rng: random.Random) -> Action:
        peeking = rng.random() < share
        return (peeking and family_of(seen.family).peek(seen, rng)) or auto(seen, rng)

    return play


def _in_each_family(name: str) -> Player:
    """Return the player of this name in the scenario's family; where it has none, its sensible player."""

    def play(seen: Observation, rng: random.Random) -> Action:
        return family_of(seen.family).players.get(name, auto)(seen, rng)

    return play


DOSES = (0.25, 0.5, 1.0)
"""Probabilities with which the players `peeks-25`, `peeks-50` and `peeks-100` use another agent's side."""
ANYWHERE: dict[str, Player] = {
    "any": any_way,
    "auto": auto,
    "omniscient": omniscient,
    "smalltalk": smalltalk,
    "rememberer": rememberer,
    "teller": teller,
    **CONTROL_PLAYERS,
    **{f"peeks-{dose:.0%}".rstrip("%"): peeks(dose) for dose in DOSES},
}
"""The players for any scenario, by name."""
PLAYERS: dict[str, Player] = {
    **{name: _in_each_family(name) for family in reversed(FAMILIES.all) for name in FAMILIES[family].players},
    **ANYWHERE,
}
"""The players of localsim's own families and games by name, and the players for any scenario."""


def player_of(name: str, families: Iterable[str | None] = ()) -> Player:
    """Return the scripted player of `scripted:NAME`, also from families of other packages. Raises InvalidInput.

    `families` are those of the scenarios that are played: the error lists their players and suggests one of them.
    """
    if name in PLAYERS:
        return PLAYERS[name]
    played = {each.name: each for each in map(family_of, families)}
    own = {each: player for family in played.values() for each, player in family.players.items()}
    if name in own:
        return own[name]
    others = _players_of_all()
    if name in others:
        return others[name]
    meant = suggest(name, {**own, **PLAYERS, **others}, inline=True)
    listed = [f"players of {family.name}: {', '.join(family.players)}" for family in played.values() if family.players]
    whole = ANYWHERE if played else {**PLAYERS, **others}
    listed.append(f"{'for any scenario' if played else 'there are'}: {', '.join(sorted(whole))}, or scripted:@FILE")
    raise InvalidInput(f"no scripted player {name!r}{meant}", hint="; ".join(listed))


def _players_of_all() -> dict[str, Player]:
    """Return the players of all families by name; a family of another package that cannot be loaded has none."""
    found: dict[str, Player] = {}
    for name in FAMILIES:
        with suppress(InvalidInput):
            found |= FAMILIES[name].players
    return found


# ---- accuracy ------------------------------------------------------------------------------------------------------


def accuracy() -> dict[str, Any] | None:
    """Return the accuracy of the rules that read endings, prices and names, or None if it has not been measured.

    `scripts/measure_endings.py` measures it on labelled conversations that were not used to write the rules.
    """
    file = files("localsim.families").joinpath("accuracy.json")
    found: dict[str, Any] | None = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
    return found
