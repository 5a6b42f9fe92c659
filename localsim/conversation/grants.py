"""Grants: private items of others that agents see in agents mode, between seeing nothing and seeing everything.

One text names them, on the command line (`run --see`), in a plan, in the column `see` and in the name of a condition:

    goal,facts:2            every agent sees the goal and two facts of each other agent
    Ana=secret,facts        only Ana sees the others' secrets and all their facts
    1=all                   only the first agent sees everything: a one-sided mindreader
    goal+Bo=facts           every agent sees goals, and Bo sees facts as well
    facts+announced         every agent is told what each one sees; without it, only the viewer knows that it sees this
    facts:2+decoys          made-up items stand beside what remains hidden
    none                    nothing is granted: agents mode as it is

`facts:N` means the same N facts of an agent in every mode, episode and variant: those that come first when the facts
are sorted by a hash of scenario id, owner and fact id. So `facts:1` is a part of `facts:2`, and a file's order of facts
does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from localsim.conversation.names import problem_of
from localsim.conversation.scenario import Fact, canonical_hash
from localsim.errors import InvalidInput, suggest

EVERY = 1_000_000
"""The number of facts that means all of them."""
NONE, ALL, ANNOUNCED, DECOYS = "none", "all", "announced", "decoys"
_PARTS = ("goal", "secret", "facts", "profile")
_NUMBER = re.compile(r"[1-9]\d{0,2}")
_HINT = "such as goal,facts:2 for every agent, Ana=secret for one of them, 1=all for the first; join several with +"


@dataclass(frozen=True)
class Grant:
    """Items of each other agent that one viewer sees."""

    goal: bool = False
    secret: bool = False
    facts: int = 0
    """Number of facts of each other agent; EVERY for all of them."""
    profile: bool = False
    """True if the whole profile is seen at any relationship, and the relationships among the others with it."""

    def __bool__(self) -> bool:
        return self != Grant()

    def __or__(self, other: Grant) -> Grant:
        return Grant(
            self.goal or other.goal,
            self.secret or other.secret,
            max(self.facts, other.facts),
            self.profile or other.profile,
        )

    @property
    def text(self) -> str:
        """The grant as `parse` reads it."""
        if self == EVERYTHING:
            return ALL
        facts = "facts" if self.facts >= EVERY else f"facts:{self.facts}"
        given = {"goal": self.goal, "secret": self.secret, facts: self.facts, "profile": self.profile}
        return ",".join(name for name, is_given in given.items() if is_given)


Sight = tuple[tuple[str, Grant], ...]
"""(agent, grant) pairs: what one agent sees of each other one, or each other one of it; none without items."""
NO_ITEM = Grant()
EVERYTHING = Grant(goal=True, secret=True, facts=EVERY, profile=True)


@dataclass(frozen=True)
class Grants:
    """The grants of an episode; a value without any is false, and changes no prompt and no hash."""

    everyone: Grant = NO_ITEM
    """Seen by every agent."""
    single: tuple[tuple[str, Grant], ...] = ()
    """(agent, grant) pairs: seen by one agent in addition. An agent is a name, or its number in speaking order."""
    announced: bool = False
    """True if all agents are told what each one sees; else only the viewer knows what it sees."""
    decoys: bool = False
    """True if made-up items, marked as those of people who are not here, stand for what remains hidden."""

    def __post_init__(self) -> None:
        viewers = dict.fromkeys(viewer for viewer, grant in self.single if grant)
        merged = {viewer: self._single(viewer) for viewer in viewers}
        object.__setattr__(self, "single", tuple(sorted(merged.items())))
        if self.announced and not (self.everyone or self.single):
            raise InvalidInput("nothing is granted that could be announced", hint=_HINT)

    def __bool__(self) -> bool:
        return self != NOTHING

    def _single(self, viewer: str) -> Grant:
        found = Grant()
        for name, grant in self.single:
            found |= grant if name == viewer else Grant()
        return found

    def of(self, viewer: str, names: Sequence[str]) -> Grant:
        """Return what a viewer sees of the others; `names` are the agents in speaking order."""
        return self.everyone | self._single(viewer) | self._single(number_of(viewer, names))

    def within(self, names: Sequence[str]) -> Grants:
        """Return the grants that concern a scenario with these agents."""
        known = {*names, *(str(number + 1) for number in range(len(names)))}
        kept = tuple((viewer, grant) for viewer, grant in self.single if viewer in known)
        return replace(self, single=kept, announced=self.announced and bool(self.everyone or kept))

    def open_to_all(self, names: Sequence[str]) -> bool:
        """Return True if all agents see everything and are told so, as in mindreaders mode."""
        return self.announced and all(self.of(name, names) == EVERYTHING for name in names)

    @property
    def text(self) -> str:
        """The grants as `parse` reads them; empty if there are none."""
        parts = [self.everyone.text, *(f"{viewer}={grant.text}" for viewer, grant in self.single)]
        flags = [name for name in (ANNOUNCED, DECOYS) if getattr(self, name)]
        return "+".join([part for part in parts if part] + flags)


NOTHING = Grants()


def number_of(name: str, names: Sequence[str]) -> str:
    """Return the number of an agent in speaking order, from 1, as --see and --role have it."""
    return str(names.index(name) + 1)


def check_agent(agent: str, scenarios: Iterable[Sequence[str]], purpose: str, others: Sequence[str] = ()) -> None:
    """Raise InvalidInput unless a name or number means an agent of a scenario, or is one of the `others`.

    `scenarios` are the names of the agents of each scenario, in speaking order; `purpose` ends the message.
    """
    scenarios = list(scenarios)
    names = sorted({name for each in scenarios for name in each})
    most = max(map(len, scenarios), default=0)
    if agent not in (*names, *others) and not (_NUMBER.fullmatch(agent) and int(agent) <= most):
        known = ", ".join([*names, *others, f"or 1 to {most} in their order"])
        raise InvalidInput(
            f"no scenario has an agent {agent!r}{purpose}",
            hint=suggest(agent, [*names, *others]) or f"agents here: {known}",
        )


def parse(text: str) -> Grants:
    """Return the grants that a text names. Raises InvalidInput with the part that cannot be read."""
    if text.strip() in (NONE, ""):
        return NOTHING
    everyone, single, flags = Grant(), [], set()
    for part in (piece.strip() for piece in text.split("+")):
        viewer, equals, items = (piece.strip() for piece in part.rpartition("="))
        if part in (ANNOUNCED, DECOYS):
            flags.add(part)
        elif part == NONE:
            rest = "+".join(piece for each in text.split("+") if (piece := each.strip()) != NONE)
            problem = "'none' cannot be granted together with other parts: it means agents mode as it is"
            raise InvalidInput(problem, where=f"see {text!r}", hint=f"leave none out: --see {rest or NONE}; {_HINT}")
        elif equals and problem_of(viewer) and not _NUMBER.fullmatch(viewer):
            raise InvalidInput(f"{part!r} is not NAME=ITEMS", where=f"see {text!r}", hint=_HINT)
        elif equals:
            single.append((viewer, _grant(items, text)))
        else:
            everyone |= _grant(items, text)
    return Grants(everyone, tuple(single), ANNOUNCED in flags, DECOYS in flags)


def _grant(items: str, text: str) -> Grant:
    found = Grant()
    for item in (piece.strip() for piece in items.split(",")):
        number = re.fullmatch(r"facts:([1-9]\d{0,4})", item)
        if item == ALL:
            found |= EVERYTHING
        elif number or item == "facts":
            found |= Grant(facts=int(number[1]) if number else EVERY)
        elif item in _PARTS:
            found |= Grant(**{item: True})
        else:
            known = [*_PARTS, ALL, ANNOUNCED, DECOYS, NONE]
            meant = suggest(item, known) if item and ":" not in item else ""
            hint = f"{meant} " if meant else ""
            problem = f"{item!r} cannot be granted: it is no goal, secret, facts, facts:N, profile or all"
            raise InvalidInput(problem, where=f"see {text!r}", hint=f"{hint}{_HINT}")
    return found


def first_facts(scenario_id: str, owner: str, facts: Sequence[Fact], number: int) -> tuple[Fact, ...]:
    """Return `number` of an agent's facts in the order of the scenario, always the same ones for a number."""
    ranked = sorted(facts, key=lambda fact: canonical_hash([scenario_id, owner, fact.id]))
    chosen = {fact.id for fact in ranked[:number]}
    return tuple(fact for fact in facts if fact.id in chosen)


def condition_name(mode: str, see: str | None) -> str:
    """Return the name of a condition: the mode, and what its agents are granted, such as `agents+goal,facts:2`."""
    return f"{mode}+{see}" if see else mode
