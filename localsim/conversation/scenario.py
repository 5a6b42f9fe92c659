"""Scenarios: what a social task is made of, and apart from it the answer key that only judges see.

Pure, validated values. Reading files and reporting positions is `scenario_yaml`; who may see what is `visibility`.
Fields follow Sotopia's agent and environment profiles (arXiv 2310.11667) with private facts added.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator
from pydantic_core import PydanticCustomError

from localsim.conversation.transcript import ACTION_TYPES, ActionType

RelationshipLevel = Literal["stranger", "know_by_name", "acquaintance", "friend", "romantic", "family"]
DisclosureRule = Literal["free", "late", "never"]

WRITER = "writer"
"""Role of the one model that writes a script; no agent may have this name."""

CONFLICT = "conflict"
"""Type of the error that lists parts of a scenario which do not fit together, with their places."""

Place = tuple[str | int, ...]
_NAME = re.compile(r"[^\W\d_][\w .'’-]*", re.UNICODE)
Text = Annotated[str, Field(min_length=1, max_length=4000)]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=80)]


class _Value(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        str_strip_whitespace=True,
        use_attribute_docstrings=True,
        coerce_numbers_to_str=True,
    )


class After(_Value):
    """A rule for disclosure: not before something has happened. Exactly one is given."""

    turn: Annotated[int, Field(ge=0)] | None = None
    """A turn, counted from 0."""
    fact: Identifier | None = None
    """Another fact, by its id, that has come out."""
    said: Text | None = None
    """Words that somebody has said; case does not count."""

    @property
    def told(self) -> str:
        """The rule for people."""
        return ", ".join(f"{name} {value}" for name, value in self.model_dump(exclude_none=True).items())


def _kind_of_rule(value: Any) -> str:
    """Which form of rule a value was meant to be, so that only its own problems are told."""
    return "after" if isinstance(value, Mapping | After) else "rule"


class Fact(_Value):
    """Something an agent knows and others do not."""

    id: Identifier
    """Unique in the scenario."""
    text: Text
    """One plain sentence in the third person."""
    terms: tuple[Text, ...] = ()
    """Names, numbers or words whose utterance gives the fact away."""
    disclosure: Annotated[
        Annotated[DisclosureRule, Tag("rule")] | Annotated[After, Tag("after")], Discriminator(_kind_of_rule)
    ] = "free"
    """When the owner may tell it: `free`, `late` (not before the middle), `never`, or after a turn, fact or words."""


class Profile(_Value):
    """What others may come to see of an agent, by relationship level; every field is optional."""

    age: str | None = None
    """In years."""
    gender: str | None = None
    """In words."""
    pronouns: str | None = None
    """Such as she/her."""
    occupation: str | None = None
    """In words."""
    public_info: str | None = None
    """What acquaintances know."""
    personality_and_values: str | None = None
    """What friends know."""
    decision_making_style: str | None = None
    """What friends know."""


class Agent(_Value):
    """A participant."""

    name: Annotated[str, Field(max_length=40)]
    """Letters first; no brackets, colons or quotes, because names stand at the start of lines."""
    profile: Profile = Profile()
    """What others may see, by relationship level."""
    goal: Text
    """What the agent wants; private unless the mode shows it."""
    secret: Text | None = None
    """What the agent would rather hide; private unless the mode shows it."""
    facts: tuple[Fact, ...] = ()
    """What only this agent knows."""

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError("a name is letters, digits, spaces, dots, hyphens and apostrophes, a letter first")
        if name.casefold() == WRITER:
            raise ValueError(f"{WRITER!r} is the role that writes scripts; choose another name")
        return name


class Relationship(_Value):
    """How two agents know each other."""

    between: tuple[str, str]
    """Two agent names."""
    level: RelationshipLevel
    """From stranger to family."""


class Limits(_Value):
    """When an episode or a turn must end; equal in every mode."""

    turns: Annotated[int, Field(ge=1, le=200)] = 20
    """Turns of all agents together."""
    chars: Annotated[int, Field(ge=20, le=1000)] = 280
    """Characters of one turn's text; the grammar closes the text there."""
    tokens: Annotated[int, Field(ge=40, le=2000)] = 400
    """Tokens generated for one turn; high enough that `chars` ends a text first, in scripts with long tokens too."""
    silence: Annotated[int, Field(ge=1, le=20)] = 3
    """Consecutive `none` turns that end the episode."""


class Info(_Value):
    """For people who choose a scenario; never part of a prompt."""

    what: Text
    """What is simulated."""
    how: Text | None = None
    """How it works and how it is scored."""
    things_to_try: tuple[Text, ...] = ()
    """Experiments worth making."""


class Check(_Value):
    """Something that an author wants to see in a talk, decided without a model; exactly one kind is given."""

    name: Identifier
    """What it is called in scores: check.NAME."""
    disclosed: Identifier | None = None
    """A fact, by its id, of which a term is uttered."""
    said: tuple[Text, ...] | None = None
    """Words of which one is said; case does not count."""
    left: Annotated[str, Field(max_length=40)] | None = None
    """An agent who leaves, or `anybody`."""
    price_agreed: tuple[float, float] | None = None
    """Least and most dollars of a price that two agents have both named; the last such price counts."""
    by: Annotated[str, Field(max_length=40)] | None = None
    """Whose turns count for `disclosed` and `said`; everybody's if not given."""
    after: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Part of the talk before which nothing counts."""
    before: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Part of the talk after which nothing counts."""
    expected: bool = True
    """Whether it should happen; false for what must not."""

    @property
    def kind(self) -> str:
        """The one kind that is given ('' if none or several are)."""
        given = [name for name in CHECK_KINDS if getattr(self, name) is not None]
        return given[0] if len(given) == 1 else ""


CHECK_KINDS = ("disclosed", "said", "left", "price_agreed")
ANYBODY = "anybody"


class Scenario(_Value):
    """A social task, without its answer key. Agents speak round-robin in the order given."""

    version: Literal[1]
    """Format of this file."""
    id: Identifier
    """Unique name; seeds depend on it."""
    title: Text
    """One line."""
    info: Info
    """What, how, things to try; for people only."""
    setting: Text
    """What everybody present knows."""
    relationship: RelationshipLevel | tuple[Relationship, ...] = "stranger"
    """One level for all pairs, or a list with one entry for each pair."""
    agents: Annotated[tuple[Agent, ...], Field(min_length=2, max_length=8)]
    """In speaking order."""
    actions: Annotated[tuple[ActionType, ...], Field(min_length=1)] = ACTION_TYPES
    """Allowed action types."""
    limits: Limits = Limits()
    """Stop rules."""
    family: Identifier | None = None
    """Task family that scores the outcome, such as mutual_friends or craigslist."""
    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}$")] | None = None
    """ISO 639 code of the language to be spoken; that of the setting if not given. Scored, never part of a prompt."""

    @model_validator(mode="after")
    def _check(self) -> Scenario:
        places = list(self._conflicts())
        if places:
            summary = "; ".join(message for _, message in places)
            raise PydanticCustomError(CONFLICT, "{summary}", {"summary": summary, "places": places})
        return self

    def _conflicts(self) -> Iterator[tuple[Place, str]]:
        """Where parts of the scenario do not fit together: (place, message) pairs."""
        names = [(("agents", number, "name"), agent.name.casefold()) for number, agent in enumerate(self.agents)]
        facts: list[tuple[Place, str]] = [
            (("agents", number, "facts", position, "id"), fact.id)
            for number, agent in enumerate(self.agents)
            for position, fact in enumerate(agent.facts)
        ]
        ids = {fact.id for agent in self.agents for fact in agent.facts}
        for number, agent in enumerate(self.agents):
            for position, fact in enumerate(agent.facts):
                rule = fact.disclosure
                if isinstance(rule, After):
                    place = ("agents", number, "facts", position, "disclosure")
                    if len(rule.model_dump(exclude_none=True)) != 1:
                        yield place, "give exactly one of turn, fact, said"
                    elif rule.fact is not None and rule.fact not in ids - {fact.id}:
                        yield place, f"no other fact has the id {rule.fact!r}"
        yield from _repeats("agent name", names)
        yield from _repeats("fact id", facts)
        yield from _repeats("action", [(("actions", number), kind) for number, kind in enumerate(self.actions)])
        if self.actions == ("none",):
            yield ("actions",), "some action besides none must be allowed"
        if not isinstance(self.relationship, str):
            wanted = {frozenset(pair) for pair in combinations(self.names, 2)}
            given = [frozenset(item.between) for item in self.relationship]
            if set(given) != wanted or len(given) != len(wanted):
                yield ("relationship",), f"needs exactly one entry for each pair of {', '.join(self.names)}"

    @property
    def names(self) -> tuple[str, ...]:
        """Agent names in speaking order."""
        return tuple(agent.name for agent in self.agents)

    def agent(self, name: str) -> Agent:
        """The agent called `name` (KeyError if none)."""
        for agent in self.agents:
            if agent.name == name:
                return agent
        raise KeyError(name)

    def level(self, one: str, other: str) -> RelationshipLevel:
        """How two agents know each other."""
        if isinstance(self.relationship, str):
            return self.relationship
        return next(item.level for item in self.relationship if set(item.between) == {one, other})

    @cached_property
    def hash(self) -> str:
        """sha256 of the canonical JSON of this scenario; the answer key has no part in it."""
        data = self.model_dump(mode="json", include=set(Scenario.model_fields))
        if self.language is None:  # so that files without it keep the hash that they had
            del data["language"]
        return canonical_hash(data)


class ScenarioFile(Scenario):
    """A whole scenario file: the scenario, how it was generated, and the answer key."""

    parameters: dict[str, Any] = {}
    """How the family generated this instance; judge-only."""
    answer: dict[str, Any] = {}
    """What only judges may know; never part of a prompt."""
    checks: tuple[Check, ...] = ()
    """What the author wants to see; judge-only."""

    def _conflicts(self) -> Iterator[tuple[Place, str]]:
        yield from super()._conflicts()
        names = [(("checks", number, "name"), check.name) for number, check in enumerate(self.checks)]
        yield from _repeats("check name", names)
        facts = {fact.id: fact for agent in self.agents for fact in agent.facts}
        for number, check in enumerate(self.checks):
            if not check.kind:
                yield ("checks", number), f"give exactly one of {', '.join(CHECK_KINDS)}"
            if check.disclosed is not None and check.disclosed not in facts:
                yield ("checks", number, "disclosed"), f"no fact has the id {check.disclosed!r}"
            elif check.disclosed is not None and not facts[check.disclosed].terms:
                yield ("checks", number, "disclosed"), f"the fact {check.disclosed} has no terms to look for"
            for place, known in (("by", self.names), ("left", (*self.names, ANYBODY))):
                given = getattr(check, place)
                if given is not None and given not in known:
                    yield ("checks", number, place), f"no agent is called {given!r}"
            if check.price_agreed is not None and check.price_agreed[0] > check.price_agreed[1]:
                yield ("checks", number, "price_agreed"), "the least price stands first"

    def split(self) -> tuple[Scenario, AnswerKey]:
        """The scenario, and apart from it the answer key."""
        scenario = Scenario(**{name: getattr(self, name) for name in Scenario.model_fields})
        return scenario, AnswerKey(answer=self.answer, parameters=self.parameters, checks=self.checks)


@dataclass(frozen=True)
class AnswerKey:
    """What only judges may know about a scenario."""

    answer: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """For storage; `checks` only where there are any, so that what had none keeps its hash."""
        data: dict[str, Any] = {"answer": dict(self.answer), "parameters": dict(self.parameters)}
        if self.checks:
            data["checks"] = [check.model_dump(mode="json", exclude_defaults=True) for check in self.checks]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AnswerKey:
        """What `as_json` wrote."""
        checks = tuple(Check.model_validate(check) for check in data.get("checks", ()))
        return cls(data["answer"], data["parameters"], checks)


@dataclass(frozen=True)
class LoadedScenario:
    """A scenario with its answer key and the path it came from."""

    scenario: Scenario
    answer: AnswerKey
    path: str

    @property
    def hash(self) -> str:
        """sha256 of the scenario with its answer key: what a stored scenario is known by."""
        return canonical_hash([self.scenario.hash, *self.answer.as_json().values()])


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces, so that equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical_hash(value: Any) -> str:
    """sha256 (hex) of `canonical_json(value)`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _repeats(what: str, values: Sequence[tuple[Place, str]]) -> Iterator[tuple[Place, str]]:
    seen: set[str] = set()
    for place, value in values:
        if value in seen:
            yield place, f"{what} given more than once: {value}"
        seen.add(value)
