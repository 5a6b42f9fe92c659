"""Casting: people take the roles of a situation. Pure functions of the situation, the people and their relations.

In a sample every person takes part about equally often, and no pair comes twice in a situation. The paper plays 90
scenarios with 5 pairs each, 450 tasks (arXiv 2403.05020).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import comb

from localsim.conversation.rules.values import Move
from localsim.conversation.scenario import Agent, Fact, Info, Limits, Relationship, RelationshipLevel, ScenarioFile
from localsim.errors import InvalidInput
from localsim.families.base import listed
from localsim.families.games.situations.meaning import ALL, answer_of
from localsim.families.vocabulary import with_article
from localsim.scenarios.casting.people import Person, Relations
from localsim.scenarios.casting.situations import Role, Situation, filled, param_of

FAMILY = "situations"
"""The family that plays and scores situations."""


DRAWS = 10_000
"""So many groups are tried where there are more; all of them only if few of these suit."""
FEW = 200


def castings(situation: Situation, people: Mapping[str, Person], relations: Relations) -> list[tuple[str, ...]]:
    """Return castings of a situation, as ids in the order of its roles, in an order drawn by its id.

    Each group of people is in it at most once, whoever of them could take which role; of more than DRAWS groups, those
    that were drawn.
    """
    rng = random.Random(f"{situation.id}/castings")
    names, size = sorted(people), len(situation.roles)
    groups: list[tuple[str, ...]] = []
    if comb(len(names), size) > DRAWS:
        drawn = dict.fromkeys(tuple(sorted(rng.sample(names, size))) for _ in range(DRAWS))
        groups = [group for group in drawn if _know_each_other(situation, group, relations)]
    if len(groups) < FEW:
        groups = list(_groups(situation, names, size, relations))
    found = [way for group in groups if (way := _way(situation, group, people, rng))]
    rng.shuffle(found)
    return found


def _groups(
    situation: Situation, names: Sequence[str], size: int, relations: Relations, chosen: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Yield all groups in which every pair has an allowed relation."""
    if len(chosen) == size:
        yield chosen
        return
    for place, name in enumerate(names):
        if all(relations.level(name, other) in situation.needs.relation for other in chosen):
            yield from _groups(situation, names[place + 1 :], size, relations, (*chosen, name))


def _know_each_other(situation: Situation, group: Sequence[str], relations: Relations) -> bool:
    return all(relations.level(*pair) in situation.needs.relation for pair in combinations(group, 2))


def _way(
    situation: Situation, group: Sequence[str], people: Mapping[str, Person], rng: random.Random
) -> tuple[str, ...] | None:
    """Return one way to give the roles to a group; None if ages allow none."""
    ages = [role.needs.age for role in situation.roles]
    for way in permutations(rng.sample(list(group), len(group))):
        if all(low <= people[name].age <= high for (low, high), name in zip(ages, way, strict=True)):
            return way
    return None


def cast(situation: Situation, people: Mapping[str, Person], relations: Relations, seed: int) -> ScenarioFile:
    """Return a situation with the people of its casting number `seed`, from 1. Raises InvalidInput beyond the last."""
    found = castings(situation, people, relations)
    if not 1 <= seed <= len(found):
        raise InvalidInput(
            f"{situation.id} has {len(found)} castings, and no number {seed}",
            hint=f"{situation.id}@1 is the first; other people need to suit its ages and relations",
        )
    return casted(situation, [people[name] for name in found[seed - 1]], relations, seed)


def casted(situation: Situation, group: Sequence[Person], relations: Relations, number: int) -> ScenarioFile:
    """Return a situation as a scenario with these people in the order of its roles."""
    names = {role.role: person.name for role, person in zip(situation.roles, group, strict=True)}
    document = ScenarioFile(
        version=1,
        id=f"{situation.id}-{number}",
        title=filled(situation.title, names),
        info=Info(
            what=filled(situation.info.what, names),
            how=filled(situation.info.how, names) if situation.info.how else None,
            things_to_try=tuple(filled(text, names) for text in situation.info.things_to_try),
        ),
        setting=filled(situation.setting, names),
        relationship=_relationship(group, relations),
        agents=tuple(_agent(role, person, names) for role, person in zip(situation.roles, group, strict=True)),
        actions=("speak",),
        moves=moves_of(situation, names),
        limits=Limits(turns=situation.turns),
        family=FAMILY,
        game={
            "public": {
                "issues": [issue.name for issue in situation.issues],
                "decides": names.get(situation.decides, ALL),
                "rule": situation.rule,
                "otherwise": [filled(option, names) for option in situation.otherwise],
            }
        },
        language=situation.language,
        parameters={
            "situation": situation.id,
            "casting": number,
            "people": [person.id for person in group],
            "tags": {"kind": situation.kind, **situation.tags, "persona_type": persona_types(group)},
        },
    )
    assert len(set(names.values())) == len(names), "first names of people are unique"
    return document.model_copy(update={"answer": answer_of(document)})


def persona_types(group: Sequence[Person]) -> list[str]:
    """Return the types of the personas in a group, each once."""
    return list(dict.fromkeys(person.persona_type for person in group))


def _relationship(group: Sequence[Person], relations: Relations) -> RelationshipLevel | tuple[Relationship, ...]:
    pairs = list(combinations(group, 2))
    levels = [relations.level(one.id, other.id) for one, other in pairs]
    if len(set(levels)) == 1:
        return levels[0]
    return tuple(
        Relationship(between=(one.name, other.name), level=level)
        for (one, other), level in zip(pairs, levels, strict=True)
    )


def _agent(role: Role, person: Person, names: Mapping[str, str]) -> Agent:
    facts = tuple(
        Fact(
            id=fact.id,
            text=filled(fact.text, names),
            terms=tuple(filled(term, names) for term in fact.terms),
            disclosure=fact.disclosure,
            means=tuple(filled(text, names) for text in fact.means.texts),
        )
        for fact in role.facts
    )
    secret = filled(role.secret, names) if role.secret else None
    return person.agent(filled(role.goal, names), secret=secret, facts=facts, whole=False)


def moves_of(situation: Situation, names: Mapping[str, str]) -> tuple[Move, ...]:
    """Return the moves with which a situation is settled."""
    what = listed([with_article(issue.name) for issue in situation.issues])
    values = tuple(
        param.model_copy(update={"one_of": tuple(filled(option, names) for option in param.one_of)})
        if param.one_of
        else param
        for param in map(param_of, situation.issues)
    )
    decides = names.get(situation.decides)
    if decides is None:
        return (
            Move(name="propose", values=values, tell=f"To propose {what}"),
            Move(name="accept", tell="To accept the last proposal, which settles the matter"),
            Move(name="refuse", tell="To refuse the last proposal"),
        )
    others = tuple(name for name in names.values() if name != decides)
    return (
        Move(name="choose", values=values, tell=f"To choose {what}, which settles the matter", by=(decides,)),
        Move(name="suggest", values=values, tell=f"To suggest {what}", by=others),
    )


# ---- samples ------------------------------------------------------------------------------------------------------

MOST = 1000
"""So many castings of a situation are considered."""


@dataclass(frozen=True)
class Task:
    """One casting of one situation."""

    situation: str
    number: int
    """Number of the casting, from 1."""
    people: tuple[str, ...]
    """Ids in the order of the roles."""

    @property
    def reference(self) -> str:
        """The name by which commands know it, such as `the_ferry_home@3`."""
        return f"{self.situation}@{self.number}"


@dataclass(frozen=True)
class Sample:
    """The tasks of a sample, and what could not be had."""

    tasks: tuple[Task, ...]
    """By situation, then by number."""
    missing: Mapping[str, int]
    """Situation -> castings that it lacks, because too few people suit it."""
    spread: float
    """The greatest distance of a person's number of tasks from the mean."""


def sample(
    situations: Sequence[Situation], people: Mapping[str, Person], relations: Relations, pairs: int, seed: int
) -> Sample:
    """Return `pairs` castings of each situation, drawn so that everybody takes part about equally often.

    Situations with few castings choose first. Then single castings are exchanged as long as this makes the numbers of
    tasks more equal; with enough people every number is within one of the mean.
    """
    rng = random.Random(f"sample/{seed}")
    pool = {each.id: _tasks(each, people, relations) for each in situations}
    load: Counter[str] = Counter(dict.fromkeys(people, 0))
    chosen: dict[str, list[Task]] = {}
    for name in sorted(pool, key=lambda each: (len(pool[each]), each)):
        chosen[name] = []
        for _ in range(min(pairs, len(pool[name]))):
            free = [task for task in pool[name] if task not in chosen[name]]
            free = rng.sample(free, len(free))
            best = min(
                free, key=lambda task: (max(load[who] for who in task.people), sum(load[w] for w in task.people))
            )
            chosen[name].append(best)
            load.update(best.people)
    while _exchange(pool, chosen, load):
        pass
    tasks = sorted((task for each in chosen.values() for task in each), key=lambda task: (task.situation, task.number))
    mean = sum(load.values()) / max(1, len(load))
    missing = {name: pairs - len(tasks_) for name, tasks_ in sorted(chosen.items()) if len(tasks_) < pairs}
    return Sample(tuple(tasks), missing, max((abs(each - mean) for each in load.values()), default=0.0))


def _tasks(situation: Situation, people: Mapping[str, Person], relations: Relations) -> list[Task]:
    groups = castings(situation, people, relations)[:MOST]
    return [Task(situation.id, number, group) for number, group in enumerate(groups, start=1)]


def _exchange(pool: Mapping[str, list[Task]], chosen: dict[str, list[Task]], load: Counter[str]) -> bool:
    """Make one exchange that makes the loads more equal; return False if there is none."""
    ranked = sorted(load, key=lambda who: (-load[who], who))
    heavy = [who for who in ranked if load[who] > load[ranked[-1]] + 1]
    for who in heavy:
        for name, old, new in _exchanges(pool, chosen, who):
            if _gain(old, new, load) > 0:
                chosen[name][chosen[name].index(old)] = new
                load.subtract(old.people)
                load.update(new.people)
                return True
    return False


def _exchanges(
    pool: Mapping[str, list[Task]], chosen: Mapping[str, list[Task]], who: str
) -> Iterator[tuple[str, Task, Task]]:
    """Yield (situation, task of a person, free task without the person)."""
    for name, tasks in chosen.items():
        for old in tasks:
            if who in old.people:
                yield from ((name, old, new) for new in pool[name] if who not in new.people and new not in tasks)


def _gain(old: Task, new: Task, load: Counter[str]) -> int:
    """Return by how much the sum of squared loads falls; who is in both tasks changes nothing."""
    falls = sum(2 * load[who] - 1 for who in old.people if who not in new.people)
    return falls - sum(2 * load[who] + 1 for who in new.people if who not in old.people)
