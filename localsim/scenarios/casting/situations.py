"""Situations: scenarios whose parts are taken by people, with texts, needs and private facts for each role.

A situation says what its facts mean for the settlement, so that its right outcome follows from them without a language
model (`families.games.situations`). Formats and rules are in scenarios/situations/README.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Literal, get_args

from pydantic import Field

from localsim.conversation.rules.values import Amount, Identifier, Param, Place, Text, Value
from localsim.conversation.scenario import DisclosureRule, Info, RelationshipLevel
from localsim.families.games.situations.meaning import ALL, TELL, Issue, Meaning, Rule, parse_meanings

Kind = Literal["information", "bargaining", "division", "persuasion", "norms", "favours", "support", "secrets"]
"""Kinds of interaction, one for each source of the 90 scenarios of arXiv 2310.11667 (README of the situations)."""
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
RoleName = Annotated[str, Field(pattern=r"^[a-z][a-z_]*$", max_length=30)]


class Means(Value):
    """What a fact means for the settlement. `{role}` stands for a name here, too."""

    out: tuple[Text, ...] = ()
    """Options that the role rules out."""
    needs: tuple[Text, ...] = ()
    """Properties that the settlement must have."""
    has: dict[str, tuple[Text, ...]] = {}  # noqa: RUF012 - pydantic copies it
    """Option -> properties that it has."""
    points: dict[str, Annotated[int, Field(ge=-99, le=99)]] = {}  # noqa: RUF012
    """Option -> what it is worth to the role."""
    least: dict[str, Amount] = {}  # noqa: RUF012
    """Issue -> least number that the role agrees to."""
    most: dict[str, Amount] = {}  # noqa: RUF012
    """Issue -> greatest number that the role agrees to."""
    tell: bool = False
    """True if the role should tell this before the matter is settled."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The meanings in the form of `Fact.means`."""
        found = [f"out: {option}" for option in self.out]
        found += [f"needs: {what}" for what in self.needs]
        found += [f"has: {option} = {what}" for option, each in self.has.items() for what in each]
        found += [f"points: {option} = {value}" for option, value in self.points.items()]
        for name, bounds in (("least", self.least), ("most", self.most)):
            found += [f"{name}: {issue} = {value:f}" for issue, value in bounds.items()]
        return (*found, *([TELL] if self.tell else []))

    @property
    def decides(self) -> bool:
        """True if the fact has a part in what is right."""
        return any(text != TELL for text in self.texts)


class RoleFact(Value):
    """A private fact of a role."""

    id: Identifier
    """Unique in the situation."""
    text: Text
    """One plain sentence in the third person."""
    terms: tuple[Text, ...] = ()
    """Words of the text whose utterance tells the fact."""
    disclosure: DisclosureRule = "free"
    """When the role may tell it: `free`, `late` (from the middle on) or `never`."""
    means: Means = Means()
    """What it means for the settlement; nothing for facts that only colour the talk."""


class RoleNeeds(Value):
    """Whom a role can be given to."""

    age: tuple[Annotated[int, Field(ge=18)], Annotated[int, Field(le=99)]] = (18, 99)
    """Least and greatest age in years."""


class Role(Value):
    """A part for one person."""

    role: RoleName
    """The name that stands in braces for the person's name."""
    needs: RoleNeeds = RoleNeeds()
    goal: Text
    """Addressed to the person as "you"."""
    secret: Text | None = None
    """Replaces the person's own secret."""
    facts: tuple[RoleFact, ...] = ()


class IssueOf(Value):
    """Something to settle. Exactly one of options and number is given."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z ]*$", max_length=30)]
    """A noun without an article, such as `day`."""
    options: tuple[Annotated[str, Field(min_length=1, max_length=40)], ...] | None = None
    number: tuple[Amount, Amount] | None = None
    """Least and greatest number."""
    step: Annotated[Decimal, Field(gt=0, le=1_000_000, decimal_places=2)] = Decimal(1)


class Needs(Value):
    """Which people can be cast together."""

    relation: Annotated[tuple[RelationshipLevel, ...], Field(min_length=1)] = get_args(RelationshipLevel)
    """Levels, one of which each pair must have."""


class Situation(Value):
    """A situation for people to be cast in."""

    version: Literal[1]
    id: Identifier
    """The name of the file without its ending."""
    title: Text
    kind: Kind
    tags: dict[str, Text | tuple[Text, ...]] = {}  # noqa: RUF012
    """Words out of the vocabularies in tags.yaml."""
    hard: bool = False
    """True if the author finds it hard: many facts, opposed wishes, or something to keep."""
    info: Info
    setting: Text
    """What everybody knows."""
    needs: Needs = Needs()
    roles: Annotated[tuple[Role, ...], Field(min_length=2, max_length=4)]
    """In speaking order."""
    issues: Annotated[tuple[IssueOf, ...], Field(min_length=1, max_length=3)]
    decides: str = ALL
    """`all`, or the role that chooses while the others suggest."""
    rule: Rule = "fits"
    """Which settlements are right: all that fit everybody's facts, or of these the best or the fairest ones."""
    otherwise: tuple[Text, ...] = ()
    """Options that are right only if no other one fits; only with a single issue."""
    right: Annotated[tuple[tuple[Text, ...], ...], Field(min_length=1)]
    """The right settlements as the author sees them; the check compares them with what follows from the facts."""
    turns: Annotated[int, Field(ge=6, le=60)] = 14
    """Most turns of all together."""
    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}$")] = "en"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the roles."""
        return tuple(role.role for role in self.roles)

    @property
    def agenda(self) -> tuple[Issue, ...]:
        """The issues with their values, in which placeholders are as in the file."""
        return tuple(Issue(issue.name, param_of(issue)) for issue in self.issues)

    @property
    def sides(self) -> dict[str, Meaning]:
        """What the facts of each role mean."""
        return {
            role.role: parse_meanings(text for fact in role.facts for text in fact.means.texts) for role in self.roles
        }


def param_of(issue: IssueOf) -> Param:
    """Return the value of an issue in a move."""
    return Param(one_of=issue.options, number=issue.number, step=issue.step if issue.number else Decimal(1))


def texts_of(situation: Situation) -> Iterator[tuple[Place, str]]:
    """Yield each text that can hold placeholders, with its place."""
    for field in ("title", "setting"):
        yield (field,), getattr(situation, field)
    info = situation.info
    yield ("info", "what"), info.what
    yield ("info", "how"), info.how or ""
    yield from ((("info", "things_to_try", place), text) for place, text in enumerate(info.things_to_try))
    for number, issue in enumerate(situation.issues):
        yield from ((("issues", number, "options", place), text) for place, text in enumerate(issue.options or ()))
    for number, role in enumerate(situation.roles):
        yield ("roles", number, "goal"), role.goal
        if role.secret:
            yield ("roles", number, "secret"), role.secret
        for place, fact in enumerate(role.facts):
            here: Place = ("roles", number, "facts", place)
            yield (*here, "text"), fact.text
            yield from (((*here, "terms", each), term) for each, term in enumerate(fact.terms))


def filled(text: str, names: Mapping[str, str]) -> str:
    """Return a text with the names of people for the roles in braces."""
    return PLACEHOLDER.sub(lambda match: names.get(match[1], match[0]), text)
