"""People: described persons who take roles in situations and answer interviews.

A person is pure data, one YAML file each (scenarios/people/README.md). Profile, secret and visibility follow Sotopia's
agent profiles (arXiv 2310.11667); traits are the five factors (Goldberg 1990) as numbers that no prompt shows: only the
sentences that follow from them are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from localsim import paths
from localsim.conversation.rules.values import Identifier, Place, Text, Value, repeats
from localsim.conversation.scenario import Agent, Fact, Passage, Profile, RelationshipLevel
from localsim.errors import InvalidInput
from localsim.scenarios.documents import each_read, read_document, read_file

YOUNGEST, OLDEST = 18, 80
"""Ages of people, in years."""
DecisionStyle = Literal["rational", "intuitive", "dependent", "avoidant", "spontaneous"]
"""General decision-making styles (Scott and Bruce 1995)."""
PersonaType = Literal["demographic", "character", "individual"]
"""Types of personas (arXiv 2404.18231): drawn from a group, an established character, or one person's own data."""
Score = Annotated[int, Field(ge=0, le=100)]

LOW, HIGH = 35, 65
"""Up to LOW and from HIGH on, a trait is strong enough to be said."""
_SAID: Mapping[str, tuple[str, str]] = {
    "openness": ("I like things to stay as I know them.", "I am curious about everything that is new to me."),
    "conscientiousness": ("I leave things lying until the last moment.", "I finish what I begin, and on time."),
    "extraversion": ("I prefer a quiet evening to a party.", "I talk to anyone, and I like company around me."),
    "agreeableness": ("I say what I think, even where it hurts.", "I try to make it right for everyone."),
    "neuroticism": ("It takes a lot to upset me.", "I worry easily, and small things keep me awake."),
}
"""What people with a low and with a high value say; our own sentences, not items of a test."""
_DECIDES: Mapping[str, str] = {
    "rational": "I decide after I have compared everything.",
    "intuitive": "I decide by how it feels.",
    "dependent": "I ask others before I decide.",
    "avoidant": "I put decisions off as long as I can.",
    "spontaneous": "I decide at once.",
}


class Traits(Value):
    """Traits as interviews measure them: numbers from 0 to 100 and a style of deciding."""

    openness: Score
    conscientiousness: Score
    extraversion: Score
    agreeableness: Score
    neuroticism: Score
    decision_style: DecisionStyle

    def statements(self) -> tuple[str, ...]:
        """Return the sentences that somebody with these traits says: one for each strong trait, one for the style."""
        found = []
        for name, (low, high) in _SAID.items():
            value = getattr(self, name)
            if value <= LOW or value >= HIGH:
                found.append(low if value <= LOW else high)
        return (*found, _DECIDES[self.decision_style])


class Person(Value):
    """A described person."""

    version: Literal[1]
    """Format of this file."""
    id: Identifier
    """The name of the file without its ending."""
    name: Annotated[str, Field(max_length=20, pattern=r"^[^\W\d_]+(?:-[^\W\d_]+)?$")]
    """First name, with which everybody speaks to the person; unique among all people."""
    family_name: Annotated[str, Field(max_length=30)]
    place: Text
    """Town and country in which the person lives."""
    persona_type: PersonaType = "character"
    profile: Profile
    """Every field is given; others see it by relationship."""
    secret: Text
    """Something that the person would rather hide, addressed as "you"."""
    facts: tuple[Fact, ...] = ()
    """Things that only this person knows, in the third person."""
    statements: Annotated[tuple[Text, ...], Field(min_length=3, max_length=8)]
    """Sentences that the person says about itself."""
    background: Annotated[tuple[Passage, ...], Field(min_length=2, max_length=8)]
    """Passages about the person's life."""
    knows: Annotated[tuple[Text, ...], Field(min_length=2, max_length=8)]
    """Subjects that the person knows well."""
    never_heard_of: Annotated[tuple[Text, ...], Field(min_length=2, max_length=8)]
    """Things that the person has never heard of."""
    traits: Traits
    """Never shown as numbers, only as the sentences that follow from them."""

    @property
    def age(self) -> int:
        """Age in years."""
        return int(self.profile.age or 0)

    @property
    def own_words(self) -> tuple[str, ...]:
        """The statements of the file, then those that follow from the traits."""
        return (*self.statements, *self.traits.statements())

    def agent(self, goal: str, *, secret: str | None = None, facts: tuple[Fact, ...] = (), whole: bool) -> Agent:
        """Return the person as an agent with a goal.

        `secret` replaces the person's own. With `whole` the agent also has the person's facts, background and
        knowledge; without, only `facts`, the profile and the statements, since small models lose long prompts.
        """
        return Agent(
            name=self.name,
            profile=self.profile,
            goal=goal,
            secret=secret or self.secret,
            facts=(*facts, *self.facts) if whole else facts,
            statements=self.own_words if whole else self.statements[:3],
            background=self.background if whole else (),
            knows=self.knows if whole else (),
            never_heard_of=self.never_heard_of if whole else (),
        )


def problems_of_person(person: Person, stem: str) -> Iterator[tuple[Place, str]]:
    """Yield (place, message) for each contradiction in a person; `stem` is the name of its file."""
    if person.id != stem:
        yield ("id",), f"the file is called {stem}.yaml"
    for name in Profile.model_fields:
        if not getattr(person.profile, name):
            yield ("profile",), f"{name} is missing"
    age = person.profile.age or ""
    if age and not (age.isdigit() and YOUNGEST <= int(age) <= OLDEST):
        yield ("profile", "age"), f"must be a whole number from {YOUNGEST} to {OLDEST}"
    yield from repeats("id", ((("facts", number, "id"), fact.id) for number, fact in enumerate(person.facts)))
    passages = enumerate(person.background)
    yield from repeats("id", ((("background", number, "id"), passage.id) for number, passage in passages))
    for number, fact in enumerate(person.facts):
        if not fact.id.startswith(f"{person.id}_"):
            yield ("facts", number, "id"), f"must begin with {person.id}_, so that it is unique in every scenario"
    known = {text.casefold() for text in person.knows}
    for number, text in enumerate(person.never_heard_of):
        if text.casefold() in known:
            yield ("never_heard_of", number), f"{text!r} is also among what the person knows"
    for number, text in enumerate(person.statements):
        if person.name in text.split():
            yield ("statements", number), "is in the first person, so it does not name the person"


def parse_person(text: str, name: str) -> Person:
    """Check a person given as YAML text; `name` stands for the file in messages, and its stem is the person's id."""
    read = read_document(text, name, Person, what="a person")
    return read.valid(problems_of_person(read.value, Path(name).stem) if read.value is not None else ())


def people_folder() -> Path:
    """Return the folder of the people who ship with localsim."""
    return paths.bundled("scenarios") / "people"


def load_people(folder: Path | None = None) -> dict[str, Person]:
    """Return all people of a folder by id, in the order of their files. Problems of all files are reported together.

    Raises InvalidInput for a folder without people and for a first name that two people share.
    """
    where = folder or people_folder()
    owners: dict[str, str] = {}

    def read(file: Path) -> Person:
        person = parse_person(read_file(file), str(file))
        other = owners.setdefault(person.name.casefold(), person.id)
        if other != person.id:
            document = read_document(read_file(file), str(file), Person, what="a person")
            document.valid([(("name",), f"{other} has this first name too, and first names are unique")])
        return person

    found = each_read([file for file in sorted(where.glob("*.yaml")) if file.stem != RELATIONS], read)
    if not found:
        raise InvalidInput("no people in this folder", where=str(where), hint="a person is one file ID.yaml")
    return {person.id: person for person in found}


RELATIONS = "relations"
"""The file with the relations between the people of a folder, without its ending."""


Kin = Literal["parent", "grandparent", "aunt_or_uncle", "sibling", "cousin", "in_law"]

GAPS: Mapping[Kin, tuple[int, int]] = {
    "parent": (16, 50),
    "grandparent": (34, 62),
    "aunt_or_uncle": (-5, 50),
    "sibling": (-25, 25),
    "cousin": (-35, 35),
    "in_law": (-50, 50),
}
"""Least and greatest number of years by which the first of a pair is older, for each kind of family."""


class Relation(Value):
    """The relation of two people who know each other."""

    between: tuple[str, str]
    """Ids of two people; of a parent and a child, the parent first."""
    level: Literal["know_by_name", "acquaintance", "friend", "romantic", "family"]
    kin: Kin | None = None
    """What the first one is to the second one; for family, and only for family."""
    why: Text
    """From where they know each other, in one sentence without their secrets; never part of a prompt."""


class RelationsFile(Value):
    """The file relations.yaml."""

    version: Literal[1]
    relations: tuple[Relation, ...]


@dataclass(frozen=True)
class Relations:
    """The relations of all people."""

    levels: Mapping[frozenset[str], RelationshipLevel]
    kin: Mapping[tuple[str, str], Kin] = field(default_factory=dict)
    """(one, other) -> what the one is to the other."""

    def level(self, one: str, other: str) -> RelationshipLevel:
        """Return the relationship of two people by their ids: strangers, if no relation is given."""
        return self.levels.get(frozenset((one, other)), "stranger")


def problems_of_relations(document: RelationsFile, people: Mapping[str, Person]) -> Iterator[tuple[Place, str]]:
    """Yield (place, message) for each relation that does not fit the people."""
    pairs: set[frozenset[str]] = set()
    for number, relation in enumerate(document.relations):
        place: Place = ("relations", number)
        pair = frozenset(relation.between)
        unknown = [name for name in relation.between if name not in people]
        for name in unknown:
            yield (*place, "between", relation.between.index(name)), f"no person has the id {name!r}"
        if len(pair) == 1:
            yield (*place, "between"), "a relation is between two people"
        elif pair in pairs:
            yield (*place, "between"), "this pair is given twice"
        elif not unknown:
            one, other = (people[name] for name in relation.between)
            yield from (((*place, field), message) for field, message in _of_pair(relation, one, other))
        pairs.add(pair)
    yield from _of_siblings(document)


def _of_pair(relation: Relation, one: Person, other: Person) -> Iterator[tuple[str, str]]:
    if (relation.level == "family") != (relation.kin is not None):
        yield "level", "`kin` is given for family, and only for family"
    if relation.kin is None:
        return
    low, high = GAPS[relation.kin]
    older = one.age - other.age
    if not low <= older <= high:
        told = f"{one.name} is {abs(older)} years {'older' if older >= 0 else 'younger'} than {other.name}"
        yield "kin", f"{told}, and {relation.kin} allows {low} to {high} years older"
    same = one.family_name == other.family_name
    if relation.kin in ("parent", "sibling") and not same and "name" not in relation.why:
        yield (
            "why",
            f"say with the word name why {one.family_name} and {other.family_name} are different",
        )


def _of_siblings(document: RelationsFile) -> Iterator[tuple[Place, str]]:
    """Yield where two children of one parent are not siblings."""
    parents: dict[str, set[str]] = {}
    family: set[frozenset[str]] = set()
    for relation in document.relations:
        if relation.kin == "parent":
            parents.setdefault(relation.between[0], set()).add(relation.between[1])
        if relation.level == "family":
            family.add(frozenset(relation.between))
    for parent, children in parents.items():
        for pair in combinations(sorted(children), 2):
            if frozenset(pair) not in family:
                yield ("relations",), f"{pair[0]} and {pair[1]} are children of {parent}, so they are family, too"


def parse_relations(text: str, name: str, people: Mapping[str, Person]) -> Relations:
    """Check relations given as YAML text. Raises ScenarioInvalid with all problems."""
    read = read_document(text, name, RelationsFile, what="a file of relations")
    document = read.valid(problems_of_relations(read.value, people) if read.value is not None else ())
    levels = {frozenset(each.between): each.level for each in document.relations}
    return Relations(levels, {each.between: each.kin for each in document.relations if each.kin is not None})


def load_relations(people: Mapping[str, Person], folder: Path | None = None) -> Relations:
    """Return the relations of a folder of people; nobody knows anybody if it has no relations.yaml."""
    file = (folder or people_folder()) / f"{RELATIONS}.yaml"
    return parse_relations(read_file(file), str(file), people) if file.is_file() else Relations({})
