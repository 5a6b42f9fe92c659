"""Relations between people: one level for each pair that knows each other; everybody else is a stranger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

from localsim.conversation.rules.values import Place, Text, Value
from localsim.conversation.scenario import RelationshipLevel
from localsim.scenarios.casting.people import RELATIONS, Person, people_folder
from localsim.scenarios.documents import read_document, read_file

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
    return Relations({frozenset(each.between): each.level for each in document.relations})


def load_relations(people: Mapping[str, Person], folder: Path | None = None) -> Relations:
    """Return the relations of a folder of people; nobody knows anybody if it has no relations.yaml."""
    file = (folder or people_folder()) / f"{RELATIONS}.yaml"
    return parse_relations(read_file(file), str(file), people) if file.is_file() else Relations({})
