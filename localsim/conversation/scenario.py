"""Scenarios: the parts of a social task, and separately the answer key that only judges see.

Pure, validated values. `scenario_yaml` reads files and reports positions; `visibility` decides what agents may see.
Fields follow Sotopia's agent and environment profiles (arXiv 2310.11667) with private facts added.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, field_validator

from localsim.conversation.checks import Check, GivenRule, SuccessRule, problems_of_checks
from localsim.conversation.memories import Memory, Recall
from localsim.conversation.names import LONGEST, problem_of, same
from localsim.conversation.names import WRITER as WRITER
from localsim.conversation.rules.values import (
    NEXT,
    Document,
    Identifier,
    Move,
    Phase,
    Place,
    Text,
    Value,
    idle,
    problems_of_move,
    problems_of_phase,
    repeats,
)
from localsim.conversation.transcript import ACTION_TYPES, ActionType

RelationshipLevel = Literal["stranger", "know_by_name", "acquaintance", "friend", "romantic", "family"]
DisclosureRule = Literal["free", "late", "never"]

PERSONA = ("statements", "background", "knows", "never_heard_of")
"""Fields of an agent that say what a described person would say and knows."""

FEWEST = 2
"""Fewest agents of a conversation; a family may have fewer (`Family.fewest`)."""


def too_few(agents: int) -> str:
    """Return the message about a scenario with too few agents."""
    return f"must have at least {FEWEST} items, not {agents}"


class After(Value):
    """A rule that forbids a disclosure until something has happened. Exactly one field is given."""

    turn: Annotated[int, Field(ge=0)] | None = None
    """The first turn in which the fact may come out, counted from 0."""
    fact: Identifier | None = None
    """The id of another fact that must have come out before."""
    said: Text | None = None
    """Words that an agent must have said before; case does not count."""

    @property
    def as_text(self) -> str:
        """The rule in words, for people."""
        return ", ".join(f"{name} {value}" for name, value in self.model_dump(exclude_none=True).items())


def _kind_of_rule(value: Any) -> str:
    """Return the form of rule that a value was meant to be, so that only its own problems are reported."""
    return "after" if isinstance(value, Mapping | After) else "rule"


class Fact(Value):
    """A piece of knowledge that an agent has and others do not."""

    id: Identifier
    """Unique in the scenario."""
    text: Text
    """One plain sentence in the third person."""
    terms: tuple[Text, ...] = ()
    """Names, numbers or words whose utterance gives the fact away."""
    disclosure: Annotated[
        Annotated[DisclosureRule, Tag("rule")] | Annotated[After, Tag("after")], Discriminator(_kind_of_rule)
    ] = "free"
    """When the owner may disclose it: `free`, `late` (from the middle on), `never`, or after a turn, fact or words."""
    means: tuple[Text, ...] = ()
    """What it decides, in the form that the family reads; for rules and scripted players, never in a prompt."""


class Profile(Value):
    """The part of an agent that others may see, by relationship level; every field is optional."""

    age: str | None = None
    """Age in years."""
    gender: str | None = None
    """Gender in words."""
    pronouns: str | None = None
    """Pronouns, such as she/her."""
    occupation: str | None = None
    """Occupation in words."""
    public_info: str | None = None
    """Information that acquaintances and closer people know."""
    personality_and_values: str | None = None
    """Personality and values, which friends and closer people know."""
    decision_making_style: str | None = None
    """Style of deciding, which friends and closer people know."""


class Passage(Value):
    """A part of what a person remembers or could tell about the own life."""

    id: Identifier
    """Unique among the passages of one person."""
    text: Text
    """One to four sentences in the third person."""


class Agent(Value):
    """A participant."""

    name: Annotated[str, Field(max_length=LONGEST)]
    """Begins with a letter of any script; no brackets, colons or quotes, because each line begins with a name."""
    profile: Profile = Profile()
    """The part of the agent that others may see, by relationship level."""
    goal: Text
    """The agent's goal, addressed to the agent as "you"; private unless the mode shows it."""
    secret: Text | None = None
    """Something the agent would rather hide; private unless the mode shows it."""
    facts: tuple[Fact, ...] = ()
    """Facts that only this agent knows."""
    statements: tuple[Text, ...] = ()
    """Sentences that the agent would say about itself, in the first person; own side only, as the next three."""
    background: tuple[Passage, ...] = ()
    """Passages about the agent's life."""
    knows: tuple[Text, ...] = ()
    """Subjects that the agent knows well."""
    never_heard_of: tuple[Text, ...] = ()
    """Things that the agent has never heard of."""
    memories: Annotated[tuple[Memory, ...], Field(max_length=1000)] = ()
    """What the agent remembers, of which `recall` shows what comes to mind; own side only."""

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if problem := problem_of(name):
            raise ValueError(problem)
        return name


class Relationship(Value):
    """The relationship between two agents."""

    between: tuple[str, str]
    """The names of the two agents."""
    level: RelationshipLevel
    """Closeness of the two, from stranger to family."""


class Limits(Value):
    """Limits that end an episode or a turn; equal in every mode."""

    turns: Annotated[int, Field(ge=1, le=5000)] = 20
    """Most turns of all agents together."""
    chars: Annotated[int, Field(ge=20, le=1000)] = 280
    """Most characters in the text of one turn; the grammar ends the text there."""
    tokens: Annotated[int, Field(ge=40, le=2000)] = 400
    """Most tokens generated for one turn; enough for `chars` to end a text first, also where words need many tokens."""
    silence: Annotated[int, Field(ge=1, le=20)] = 3
    """Consecutive `none` turns that end the episode."""
    leave: Literal["ends", "goes_on"] = "ends"
    """Whether the episode ends when somebody leaves, or when fewer than two are left."""
    closing: bool = True
    """Whether a talk in turn ends when everybody has said goodbye and nobody has left."""
    stale: Annotated[int, Field(ge=0, le=1000)] = 6
    """Turns in a row that repeat earlier ones and so end a talk in turn, though at least two of each agent; 0: none."""


class Info(Value):
    """Information for people who choose a scenario; never part of a prompt."""

    what: Text
    """The situation that is simulated."""
    how: Text | None = None
    """The rules of the task and its scores."""
    things_to_try: tuple[Text, ...] = ()
    """Experiments worth making."""


class Scenario(Document):
    """A social task, without its answer key. Agents speak round-robin in the order given, unless phases say more."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"family": {"type": "null"}}},
            "then": {"properties": {"agents": {"minItems": FEWEST}}},
        }
    )

    version: Literal[1]
    """Format of this file."""
    id: Identifier
    """Unique name of the scenario; seeds depend on it."""
    title: Text
    """Title of the scenario in one line."""
    info: Info
    """Description for people; never part of a prompt."""
    setting: Text
    """The situation that all agents know."""
    relationship: RelationshipLevel | tuple[Relationship, ...] = "stranger"
    """One level for all pairs, or a list with one entry for each pair."""
    agents: Annotated[tuple[Agent, ...], Field(min_length=1, max_length=1000)]
    """The agents in speaking order; two and more, but for a family that asks one agent alone."""
    actions: tuple[ActionType, ...] = ACTION_TYPES
    """Action types that agents may use; an empty list if they act by moves alone."""
    moves: tuple[Move, ...] = ()
    """Actions with values, beside those types."""
    phases: tuple[Phase, ...] = ()
    """Parts of the conversation, each with its own order; without any, everybody acts in turn."""
    recall: Recall = Recall()
    """Which memories come to mind before a turn."""
    limits: Limits = Limits()
    """Limits of the episode and of its turns."""
    family: Identifier | None = None
    """Task family that scores the outcome, such as mutual_friends or craigslist."""
    game: dict[str, Any] = {}  # noqa: RUF012 - pydantic copies it
    """Numbers and words of a game, for its rules. Everybody knows those under `public`; the rest reaches nobody but by
    what the rules tell.
    """
    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}$")] | None = None
    """ISO 639 code of the language to be spoken; that of the setting if not given. Scored, never part of a prompt."""
    begun: Annotated[tuple[Text, ...], Field(max_length=5000)] = ()
    """Lines of agents with which each episode begins, such as `Ana: Hello.`; see `conversation.beginning`."""
    seed: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    """Seed of what the rules draw, so that a beginning fits in each episode; that of the episode if not given."""

    def _conflicts(self) -> Iterator[tuple[Place, str]]:
        """Yield (place, message) for each contradiction between parts of the scenario."""
        names = [(("agents", number, "name"), same(agent.name)) for number, agent in enumerate(self.agents)]
        if len(names) < FEWEST and self.family is None:
            yield ("agents",), too_few(len(names))
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
            passages = [
                (("agents", number, "background", position, "id"), passage.id)
                for position, passage in enumerate(agent.background)
            ]
            yield from repeats("passage id", passages)
        yield from repeats("agent name", names, [agent.name for agent in self.agents])
        yield from repeats("fact id", facts)
        yield from repeats("action", [(("actions", number), kind) for number, kind in enumerate(self.actions)])
        if not self.moves and set(self.actions) <= {"none"}:
            yield ("actions",), "without moves, some action besides none must be allowed"
        yield from self._conflicts_of_rules()
        if not isinstance(self.relationship, str):
            wanted = {frozenset(pair) for pair in combinations(self.names, 2)}
            given = [frozenset(item.between) for item in self.relationship]
            if set(given) != wanted or len(given) != len(wanted):
                yield ("relationship",), f"needs exactly one entry for each pair of {', '.join(self.names)}"

    def _conflicts_of_rules(self) -> Iterator[tuple[Place, str]]:
        """Yield the contradictions of moves and phases."""
        known = (*self.actions, *(move.name for move in self.moves))
        yield from repeats("move", [(("moves", number, "name"), move.name) for number, move in enumerate(self.moves)])
        yield from repeats(
            "phase", [(("phases", number, "name"), each.name) for number, each in enumerate(self.phases)]
        )
        for number, move in enumerate(self.moves):
            place: Place = ("moves", number)
            yield from (((*place, *inner), message) for inner, message in problems_of_move(move))
            if move.name in ACTION_TYPES:
                yield (*place, "name"), f"{move.name!r} is an action; choose another name"
            if move.name == NEXT and [param.agents for param in move.values] != ["one"]:
                yield (*place, "values"), f"the value of {NEXT!r} is one agent: {{agents: one}}"
            for position, name in enumerate(move.by):
                if name not in self.names:
                    yield (*place, "by", position), f"no agent is called {name!r}"
        if self.moves and not self.phases and not self.game:
            for name in idle(self.names, known, self.moves):
                yield ("actions",), f"nothing besides none is allowed to {name}"
        for number, phase in enumerate(self.phases):
            place = ("phases", number)
            found = problems_of_phase(phase, self.names, known, self.moves)
            yield from (((*place, *inner), message) for inner, message in found)
            if number < len(self.phases) - 1 and not (phase.turns or phase.rounds or phase.ends_with):
                yield place, "only the last phase can go on without turns, rounds or ends_with"

    @property
    def names(self) -> tuple[str, ...]:
        """Agent names in speaking order."""
        return tuple(agent.name for agent in self.agents)

    def agent(self, name: str) -> Agent:
        """Return the agent called `name` (KeyError if none)."""
        for agent in self.agents:
            if agent.name == name:
                return agent
        raise KeyError(name)

    def level(self, one: str, other: str) -> RelationshipLevel:
        """Return the relationship between two agents."""
        if isinstance(self.relationship, str):
            return self.relationship
        return next(item.level for item in self.relationship if set(item.between) == {one, other})

    @cached_property
    def has_brackets(self) -> bool:
        """True if one of its texts has square brackets, so that its agents may want to say them."""
        return any("[" in text for text in _texts(self.model_dump(mode="json", exclude={"begun"})))

    @cached_property
    def hash(self) -> str:
        """The sha256 of the canonical JSON of this scenario, without the answer key."""
        data = self.model_dump(mode="json", include=set(Scenario.model_fields))
        # Files without these fields keep the hash that they had before the fields existed.
        for name in ("language", "moves", "phases", "game", "begun", "seed"):
            if not data[name]:
                del data[name]
        usual = Limits()
        for name in ("leave", "closing", "stale"):
            if data["limits"][name] == getattr(usual, name):
                del data["limits"][name]
        if self.recall == Recall():
            del data["recall"]
        for agent in data["agents"]:
            _drop_empty(agent, (*PERSONA, "memories"))
            for fact in agent["facts"]:
                _drop_empty(fact, ("means",))
        return canonical_hash(data)


class ScenarioFile(Scenario):
    """A whole scenario file: the scenario, how it was generated, and the answer key."""

    parameters: dict[str, Any] = {}  # noqa: RUF012 - pydantic copies it
    """Parameters of the family's generator; only judges see them."""
    answer: dict[str, Any] = {}  # noqa: RUF012
    """The answer key, for judges only; never part of a prompt."""
    checks: tuple[Check, ...] = ()
    """Events that the author expects or excludes; only judges see them."""
    success: GivenRule | None = None
    """Which checks decide success, for a task whose family does not; only judges see it. All if it is not given."""
    vary: dict[str, Any] = {}  # noqa: RUF012
    """Slots and their values (`scenarios.vary`); empty once a file is read, for they are filled in before."""

    def _conflicts(self) -> Iterator[tuple[Place, str]]:
        yield from super()._conflicts()
        facts = {fact.id: fact.terms for agent in self.agents for fact in agent.facts}
        yield from problems_of_checks(self.checks, self.success, self.names, facts)

    def split(self) -> tuple[Scenario, AnswerKey]:
        """Return the scenario and, separately, the answer key."""
        scenario = Scenario(**{name: getattr(self, name) for name in Scenario.model_fields})
        return scenario, AnswerKey(self.answer, self.parameters, self.checks, self.success)


@dataclass(frozen=True)
class AnswerKey:
    """The part of a scenario file that only judges may know."""

    answer: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    success: SuccessRule | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the stored form. It has `checks` and `success` only where they are given: others keep their hash."""
        data: dict[str, Any] = {"answer": dict(self.answer), "parameters": dict(self.parameters)}
        if self.checks:
            data["checks"] = [check.model_dump(mode="json", exclude_defaults=True) for check in self.checks]
        if self.success:
            data["success"] = self.success.model_dump(mode="json", exclude_defaults=True)
        return data

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield the right outcome, the checks and the rule of success: the score behind it ('' for none), a line."""
        yield from (("", f"{key}: {value}") for key, value in self.answer.items())
        yield from ((f"check.{check.name}", f"check {check.name}: {check}") for check in self.checks)
        if self.checks:
            yield "", f"success: {self.success or SuccessRule()}"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AnswerKey:
        """Return the answer key from the form that `as_json` returns."""
        checks = tuple(Check.model_validate(check) for check in data.get("checks", ()))
        rule = SuccessRule.model_validate(data["success"]) if "success" in data else None
        return cls(data["answer"], data["parameters"], checks, rule)


@dataclass(frozen=True)
class LoadedScenario:
    """A scenario with its answer key and the path of its file, or its name if a game generated it."""

    scenario: Scenario
    answer: AnswerKey
    path: str

    @property
    def hash(self) -> str:
        """The sha256 of the scenario with its answer key, which identifies a stored scenario."""
        return canonical_hash([self.scenario.hash, *self.answer.as_json().values()])

    @property
    def document(self) -> ScenarioFile:
        """Both as one scenario file."""
        fields = {name: getattr(self.scenario, name) for name in Scenario.model_fields}
        return ScenarioFile(**fields, **self.answer.as_json())


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys and no spaces, so that equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical_hash(value: Any) -> str:
    """Return the sha256 (hex) of `canonical_json(value)`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _drop_empty(data: dict[str, Any], names: Iterable[str]) -> None:
    for name in names:
        if not data[name]:
            del data[name]
