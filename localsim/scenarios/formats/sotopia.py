"""Sotopia's JSON -> scenarios with typed visibility, and conversations (arXiv 2310.11667).

A goal is private to its agent, `<extra_info>` becomes a fact, hints stay in the goal, and what only the judge may see
goes to the answer key. A scenario is a situation with the characters who play it: those of a combination or a log, or
pairs of characters whose relationship and ages fit, or characters without a profile if there are none.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from pathlib import Path
from typing import Any

from localsim.conversation.human_talks import NAMES, checked, id_of, loaded, names_are_usable
from localsim.conversation.names import same, tidy
from localsim.conversation.scenario import LoadedScenario, RelationshipLevel
from localsim.errors import InvalidInput
from localsim.scenarios.formats.markup import HINTS, JUDGE, Piece, pieces, plain, unlabelled
from localsim.scenarios.formats.reading import Missing, objects
from localsim.scenarios.formats.sotopia_form import (
    FORMS,
    Combination,
    Environment,
    Log,
    Person,
    Tie,
    Type,
    constraint,
    keys_of,
    level_of,
    type_of,
)

HINT = (
    "Sotopia's files have environment profiles (scenario, agent_goals), agent profiles (first_name), relationships "
    "(agent_1_id), combinations (env_id) and episodes (messages)"
)
LONGEST = 4000
"""Characters of a text in a scenario."""
_LEFT_IN_PERSON = ("big_five", "moral_values", "schwartz_personal_values")


@dataclass
class Files:
    """The objects of files by type and key, each with its place."""

    environments: dict[str, tuple[str, Environment]] = field(default_factory=dict)
    people: dict[str, tuple[str, Person]] = field(default_factory=dict)
    ties: list[tuple[str, Tie]] = field(default_factory=list)
    chosen: list[tuple[str, Combination]] = field(default_factory=list)
    logs: list[tuple[str, Log]] = field(default_factory=list)
    missing: Missing = field(default_factory=Missing)
    playing: set[int] = field(default_factory=set)
    """The ids (of Python) of the situations and people that are in some scenario."""


@dataclass(frozen=True)
class Side:
    """One agent of a scenario, before it is checked."""

    name: str
    goal: str
    profile: Mapping[str, str] = field(default_factory=dict)
    secret: str = ""


@dataclass(frozen=True)
class Task:
    """A situation with its agents, before it is checked."""

    where: str
    codename: str
    setting: str
    sides: Sequence[Side]
    level: RelationshipLevel
    about: Mapping[str, Any] = field(default_factory=dict)
    """Kept as parameters, which only judges see."""
    story: str = ""


def gather(files: Sequence[Path]) -> Files:
    """Read the objects of files. Raises InvalidInput."""
    held = Files()
    for path in files:
        for where, data in objects(path, HINT):
            kind = type_of(data)
            if kind is None:
                keys = ", ".join(list(data)[:6])
                raise InvalidInput(f"not an object of Sotopia (keys: {keys})", where=where, hint=HINT)
            if kind == "annotation":
                held.missing.note(where, "rewards", "a rating by a person; localsim annotate import reads its own only")
                continue
            _keep(held, kind, where, data)
    return held


def _keep(held: Files, kind: Type, where: str, data: Mapping[str, Any]) -> None:
    found = checked(FORMS[kind], data, where, HINT)
    held.missing.unknown(where, data, keys_of(kind) | {"rewards_prompt", "raw_rewards_prompt"})
    if isinstance(found, Log) and found.pk:
        same_key = [each for _, each in held.logs if each.pk == found.pk]
        if any(each != found for each in same_key):
            raise InvalidInput(f"another episode has the key {found.pk!r}", where=where, hint="give each its own pk")
        if same_key:
            held.missing.note(where, "episode", "it is given twice", found.pk)
            return
    if isinstance(found, Environment | Person):
        known: dict[str, tuple[str, Any]] = held.environments if isinstance(found, Environment) else held.people
        if known.setdefault(found.pk or where, (where, found))[1] != found:
            raise InvalidInput(f"another object has the key {found.pk!r}", where=where, hint="give each its own pk")
    elif isinstance(found, Tie):
        held.ties.append((where, found))
    elif isinstance(found, Combination):
        held.chosen.append((where, found))
    elif isinstance(found, Log):
        held.logs.append((where, found))


# ---- who plays ------------------------------------------------------------------------------------------------------


def combined(held: Files) -> Iterator[Task]:
    """Yield the situations with the characters of combinations. Raises InvalidInput."""
    for where, combination in held.chosen:
        if combination.env_id not in held.environments:
            raise InvalidInput(f"no environment profile {combination.env_id}", where=where, hint="give its file, too")
        _, environment = held.environments[combination.env_id]
        yield task_of(environment, [person_of(held, key, where) for key in combination.agent_ids], held, where)


def person_of(held: Files, key: str, where: str) -> Person:
    """Return a character by its key. Raises InvalidInput."""
    if key not in held.people:
        raise InvalidInput(f"no agent profile {key}", where=where, hint="give the file of agent profiles, too")
    return held.people[key][1]


def paired(held: Files, most: int) -> Iterator[Task]:
    """Yield the situations that nobody plays yet with at most `most` pairs of characters that fit."""
    for where, environment in held.environments.values():
        if id(environment) in held.playing:
            continue
        fitting = list(islice(_pairs(held, environment, where), most))
        if fitting:
            yield from (task_of(environment, pair, held, where) for pair in fitting)
        else:
            if held.people:
                why = f"no pair has the relationship and the ages of the situation; {NAMES[0]} and so on play it"
                held.missing.note(where, "agent profiles", why)
            yield task_of(environment, [], held, where)


def note_idle(held: Files) -> None:
    """Note the characters who play in no scenario."""
    for where, person in held.people.values():
        if id(person) not in held.playing:
            held.missing.note(where, "agent profile", "this character plays in no situation of the files", person.name)


def _pairs(held: Files, environment: Environment, where: str) -> Iterator[list[Person]]:
    """Yield pairs of characters with the relationship and the ages that a situation wants, in the order of files."""
    if len(environment.agent_goals) != 2:
        return
    level = level_of(environment.relationship, where)
    known = {frozenset((tie.agent_1_id, tie.agent_2_id)): level_of(tie.relationship, at) for at, tie in held.ties}
    for one, other in combinations(held.people, 2):
        if known.get(frozenset((one, other)), "stranger") == level:
            pair = [held.people[one][1], held.people[other][1]]
            if _fit(environment, pair):
                yield pair
            elif _fit(environment, pair[::-1]):
                yield pair[::-1]


def _fit(environment: Environment, pair: Sequence[Person]) -> bool:
    ages = constraint(environment.age_constraint) or []
    jobs = constraint(environment.occupation_constraint) or []
    for person, bounds in zip(pair, ages, strict=False):
        try:
            low, high = bounds
            if not low <= int(person.age) <= high:
                return False
        except (TypeError, ValueError):
            continue
    return all(
        not isinstance(allowed, list | tuple) or not allowed or person.occupation in allowed
        for person, allowed in zip(pair, jobs, strict=False)
    )


# ---- a scenario -----------------------------------------------------------------------------------------------------


def task_of(environment: Environment, people: Sequence[Person], held: Files, where: str) -> Task:
    """Return a situation with its characters; without any, they have no profile. Raises InvalidInput."""
    goals = environment.agent_goals
    held.playing.update(map(id, [environment, *people]))
    if people and len(people) != len(goals):
        raise InvalidInput(f"{len(people)} agents for {len(goals)} goals", where=where, hint="one goal for each agent")
    names = [person.name for person in people] or list(NAMES[: len(goals)])
    about = {
        "sotopia": {
            name: value
            for name, value in {
                "pk": environment.pk,
                "codename": environment.codename,
                "source": environment.source,
                "age_constraint": constraint(environment.age_constraint) or environment.age_constraint,
                "occupation_constraint": constraint(environment.occupation_constraint)
                or environment.occupation_constraint,
                "agent_constraint": environment.agent_constraint,
            }.items()
            if value
        }
    }
    sides = [
        Side(name, goal, *(_profile(people[number], held) if people else ({}, "")))
        for number, (name, goal) in enumerate(zip(names, goals, strict=True))
    ]
    keys = {person.pk for person in people}
    story = next((tie.background_story for _, tie in held.ties if {tie.agent_1_id, tie.agent_2_id} == keys), None)
    base = environment.codename or environment.pk or "situation"
    if sum(each.codename == environment.codename for _, each in held.environments.values()) > 1:
        base = f"{base}_{environment.pk[-6:]}"
    codename = "_".join([base, *(_called(person, held) for person in people)])
    level = level_of(environment.relationship, where)
    return Task(where, codename, environment.scenario, sides, level, about, story or "")


def _called(person: Person, held: Files) -> str:
    """Return a character's part of an id; of two characters with one name it has the key, too."""
    twins = sum(same(each.name) == same(person.name) for _, each in held.people.values())
    return f"{person.name.lower()}_{person.pk[-6:]}" if twins > 1 else person.name.lower()


def _profile(person: Person, held: Files) -> tuple[dict[str, str], str]:
    """Return the profile and the secret of a character."""
    where = next((at for at, known in held.people.values() if known is person), "")
    lists = {name: _listed(getattr(person, name)) for name in _LEFT_IN_PERSON}
    values = person.personality_and_values
    if not values:
        values = " ".join(text for text in lists.values() if text)
    else:
        for name, text in lists.items():
            if text:
                held.missing.note(where, name, "personality_and_values already says it in words")
    profile = {
        "age": person.age if person.age != "0" else "",
        "gender": person.gender,
        "pronouns": person.gender_pronoun,
        "occupation": person.occupation,
        "public_info": person.public_info,
        "personality_and_values": values,
        "decision_making_style": person.decision_making_style,
    }
    return {name: text for name, text in profile.items() if text}, person.secret


def _listed(value: list[str] | str) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def scenario_of(task: Task, missing: Missing) -> LoadedScenario:
    """Return the scenario of a task: each part of its texts goes to those who may see it. Raises InvalidInput."""
    where = task.where
    scene = pieces(task.setting, f"{where}, scenario")
    goals = [pieces(side.goal, f"{where}, agent_goals {number}") for number, side in enumerate(task.sides)]
    secrets = [pieces(side.secret, f"{where}, secret of {side.name}") for side in task.sides]
    profiles = [
        {key: pieces(text, f"{where}, {key} of {side.name}") for key, text in side.profile.items()}
        for side in task.sides
    ]
    hidden = [piece for each in goals for piece in each if piece.reader]
    hidden += [p for number, each in enumerate(secrets) for p in each if p.reader not in ("", f"agent_{number}")]
    hidden += [p for each in profiles for found in each.values() for p in found if p.reader]
    everything = [*scene, *hidden]
    names = agent_names([side.name for side in task.sides], where, missing)
    facts = {number: list[str]() for number in range(len(names))}
    judge = [plain([piece]) for piece in everything if piece.reader == JUDGE]
    for piece in everything:
        if piece.reader not in ("", JUDGE):
            number = int(piece.reader.removeprefix("agent_"))
            if number not in facts:
                raise InvalidInput(f"a part of a text is for {piece.reader}, who is not there", where=where)
            facts[number].append(unlabelled(piece.text))
    setting = plain([piece for piece in scene if not piece.reader])
    agents = []
    for number, name in enumerate(names):
        own = [piece for piece in goals[number] if not piece.reader]
        shown = [piece for found in profiles[number].values() for piece in found if not piece.reader]
        told = [unlabelled(piece.text) for piece in (*own, *shown) if piece.kind == "extra_info"] + facts[number]
        agent: dict[str, Any] = {"name": name, "goal": cut(_goal(own), where, "goal", missing) or "-"}
        agent["facts"] = [
            {"id": f"agent_{number + 1}_{count}", "text": cut(text, where, "facts", missing)}
            for count, text in enumerate(dict.fromkeys(filter(None, told)), start=1)
        ]
        seen = [piece for piece in secrets[number] if piece.reader in ("", f"agent_{number}")]
        if secret := plain(seen):
            agent["secret"] = cut(secret, where, "secret", missing)
        agent["profile"] = {
            key: cut(text, where, key, missing)
            for key, found in profiles[number].items()
            if (text := plain([piece for piece in found if piece.kind == "text" and not piece.reader]))
        }
        agents.append(agent)
    title = " ".join(setting.partition(". ")[0].split())[:300] or task.codename
    return loaded(
        where,
        where,
        id=id_of(task.codename) or "situation",
        title=title,
        info={
            "what": "A situation of Sotopia's format.",
            **({"how": cut(task.story, where, "story", missing)} if task.story else {}),
        },
        setting=cut(setting, where, "scenario", missing) or f"{' and '.join(names)} meet.",
        relationship=task.level,
        agents=agents,
        answer={"judge_only": judge} if judge else {},
        parameters=dict(task.about),
    )


def _goal(own: Iterable[Piece]) -> str:
    """Return the text of a goal with its hints behind it."""
    found = list(own)
    hints = [f"Hint: {unlabelled(piece.text)}" for piece in found if piece.kind in HINTS]
    text = plain([piece for piece in found if piece.kind == "text"])
    return " ".join([f"{text}." if hints and text[-1:].isalnum() else text, *hints]).strip()


def agent_names(names: Sequence[str], where: str, missing: Missing) -> list[str]:
    """Return names that a scenario can have: those given, or Person A and so on where one of them cannot be used."""
    given = [tidy(name) for name in names]
    if names_are_usable(given):
        return given
    why = "two people have one name" if len({same(name) for name in given}) < len(given) else "one cannot begin a line"
    missing.note(where, "names", f"{why}; {NAMES[0]} and so on are used", ", ".join(given))
    return list(NAMES[: len(names)])


def cut(text: str, where: str, part: str, missing: Missing) -> str:
    """Return text for a field of a scenario; what is longer than the field is cut, and that is noted."""
    kept = printable(text, but="\n\t").strip()
    if len(kept) <= LONGEST:
        return kept
    missing.note(where, part, f"cut to {LONGEST} characters")
    return kept[: LONGEST - 2].rsplit(" ", 1)[0] + " …"


def printable(text: str, *, but: str) -> str:
    """Return text without halves of characters and without control characters, `but` for these."""
    kinds = {"Cs": "\ufffd", "Cc": " "}
    return "".join(char if char in but else kinds.get(unicodedata.category(char), char) for char in text)
