"""The objects of Sotopia's files, as far as localsim reads them (github.com/sotopia-lab/sotopia, sotopia/database).

Files of two generations are read: objects of its database with `pk`, and the lines of its published data sets, whose
names are longer (`scenario_id`, `agent_id`, `episode_id`, `raw_messages`).
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import AliasChoices, Field

from localsim.conversation.human_talks import Part
from localsim.conversation.scenario import RelationshipLevel
from localsim.errors import InvalidInput

LEVELS: dict[str, RelationshipLevel] = {
    "0": "stranger",
    "1": "know_by_name",
    "2": "acquaintance",
    "3": "friend",
    "4": "romantic",
    "5": "family",
    "romantic_relationship": "romantic",
    "family_member": "family",
}
"""Sotopia's codes and names of relationships; the other names are equal."""
CODES: dict[RelationshipLevel, int] = {level: int(code) for code, level in LEVELS.items() if code.isdigit()}
KNOWN = frozenset(CODES)
DIMENSIONS = {
    "believability": "believability",
    "relationship": "relationship",
    "knowledge": "knowledge",
    "secret": "secret",
    "social_rules": "social_rules",
    "financial_and_material_benefits": "financial",
    "goal": "goal",
    "overall_score": "overall",
}
"""Sotopia's name of a dimension -> ours."""
Type = Literal["environment", "agent", "relationship", "combination", "annotation", "episode"]


def _key(*names: str) -> Any:
    return Field(default="", validation_alias=AliasChoices("pk", *names))


class Environment(Part):
    """A situation with a goal for each agent."""

    pk: str = _key("scenario_id", "environment_id", "env_id")
    codename: str = ""
    source: str = ""
    scenario: str
    agent_goals: list[str]
    relationship: str = "0"
    age_constraint: Any = None
    occupation_constraint: Any = None
    agent_constraint: Any = None


class Person(Part):
    """A character."""

    pk: str = _key("agent_id")
    first_name: str
    last_name: str = ""
    age: str = ""
    occupation: str = ""
    gender: str = ""
    gender_pronoun: str = ""
    public_info: str = ""
    big_five: str = ""
    moral_values: list[str] | str = ""
    schwartz_personal_values: list[str] | str = ""
    personality_and_values: str = ""
    decision_making_style: str = ""
    secret: str = ""

    @property
    def name(self) -> str:
        """First and last name."""
        return f"{self.first_name} {self.last_name}".strip()


class Tie(Part):
    """The relationship of two characters."""

    pk: str = _key("relationship_id")
    agent_1_id: str = Field(validation_alias=AliasChoices("agent_1_id", "agent1_id"))
    agent_2_id: str = Field(validation_alias=AliasChoices("agent_2_id", "agent2_id"))
    relationship: str
    background_story: str | None = None


class Combination(Part):
    """A situation and the characters who play it."""

    pk: str = _key("combo_id")
    env_id: str
    agent_ids: list[str]


class Log(Part):
    """A conversation, and how a judge rated it."""

    pk: str = _key("episode_id")
    environment: str = Field(default="", validation_alias=AliasChoices("environment", "environment_id"))
    agents: list[str] = Field(default=[], validation_alias=AliasChoices("agents", "agent_ids"))
    tag: str | None = Field(default=None, validation_alias=AliasChoices("tag", "experiment_tag"))
    models: list[str] | None = Field(
        default=None, validation_alias=AliasChoices("models", "experiment_model_name_pairs")
    )
    messages: list[list[tuple[str, str, str]]] = Field(
        default=[], validation_alias=AliasChoices("messages", "raw_messages")
    )
    social_interactions: str = ""
    reasoning: str = ""
    rewards: list[Any] = Field(default=[], validation_alias=AliasChoices("raw_rewards", "rewards"))
    scenario: str = ""
    codename: str = ""
    agents_background: dict[str, str] = {}  # noqa: RUF012 - pydantic copies it
    social_goals: dict[str, str] = {}  # noqa: RUF012


FORMS: dict[Type, type[Part]] = {
    "environment": Environment,
    "agent": Person,
    "relationship": Tie,
    "combination": Combination,
    "episode": Log,
}
_SEEN: tuple[tuple[Type, tuple[tuple[str, ...], ...]], ...] = (
    ("annotation", (("episode", "annotator_id"),)),
    ("episode", (("messages",), ("raw_messages",), ("social_interactions",))),
    ("environment", (("agent_goals", "scenario"),)),
    ("relationship", (("agent_1_id", "agent_2_id"), ("agent1_id", "agent2_id"))),
    ("combination", (("env_id", "agent_ids"),)),
    ("agent", (("first_name",),)),
)


def type_of(data: Mapping[str, Any]) -> Type | None:
    """Return the type of an object by its keys; None for something else."""
    said = data.get("messages", data.get("raw_messages"))
    if isinstance(said, list) and said and not isinstance(said[0], list):
        return None  # a chat of roles, such as those of OpenAI and Inspect
    return next((kind for kind, ways in _SEEN if any(all(key in data for key in keys) for keys in ways)), None)


def keys_of(kind: Type) -> frozenset[str]:
    """Return the keys of a type that localsim reads."""
    names = set()
    for name, field in FORMS[kind].model_fields.items():
        alias = field.validation_alias
        names |= {str(choice) for choice in alias.choices} if isinstance(alias, AliasChoices) else {name}
    return frozenset(names)


def level_of(code: str, where: str) -> RelationshipLevel:
    """Return the level of a relationship. Raises InvalidInput for an unknown code or name."""
    given = code.strip().rpartition(".")[2] if not code.strip().replace(".", "").isdigit() else code.partition(".")[0]
    if given in LEVELS:
        return LEVELS[given]
    if given in KNOWN:
        return given
    known = ", ".join(f"{number} {level}" for level, number in CODES.items())
    raise InvalidInput(f"relationship {code!r} is unknown", where=where, hint=f"codes: {known}")


def constraint(value: Any) -> list[Any] | None:
    """Return a constraint, which files also hold as the text of a list; None if there is none that can be read."""
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value) if len(value) < 10_000 else None
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    try:
        listed = json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return None
    return listed if isinstance(listed, list) and listed else None
