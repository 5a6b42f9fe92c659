"""Scenario files as commands handle them: listed with their tags, checked, generated, sampled and copied."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput
from localsim.families import FAMILIES, family_of
from localsim.scenarios.casting.cast import Sample, casted, sample
from localsim.scenarios.casting.people import load_people, load_relations, parse_person, parse_relations
from localsim.scenarios.casting.playing import try_out
from localsim.scenarios.casting.rules import load_situation, parse_situation
from localsim.scenarios.casting.situations import filled
from localsim.scenarios.documents import each_read, keys_of, shipped_files
from localsim.scenarios.find import Source, people_beside, shipped_sources, sources_of
from localsim.scenarios.interviews.sheets import parse_personas
from localsim.scenarios.parse import dump_scenario, parse_scenario, variants_in
from localsim.scenarios.rubrics import parse_rubric
from localsim.scenarios.tagging import Tags, tags_of, vocabulary


def free_file(folder: Path, name: str, *, force: bool = False, hint: str = "--force overwrites it") -> Path:
    """Return the place of a new file in a folder. Raises InvalidInput if it is taken."""
    file = folder / f"{name}.yaml"
    if file.exists() and not force:
        raise InvalidInput("this file exists already", where=str(file), hint=hint)
    return file


def write_file(file: Path, text: str) -> None:
    """Write a file, and the folder that it is in."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def write_copy(reference: str, folder: Path, name: str) -> Path:
    """Write a copy of a scenario or situation under another name. Raises InvalidInput."""
    file = free_file(folder, name, hint="choose another name")
    write_file(file, renamed(every_source(reference)[0], name))
    validated([str(file)])
    return file


def write_generated(
    family: str, seeds: range, folder: Path, parameters: Mapping[str, str], *, alternate: bool, force: bool
) -> None:
    """Write a scenario of a family for each seed; `alternate` changes between the tasks of its studies.

    The first scenario of another package's family is tried out. Raises InvalidInput, or what the family raises.
    """
    declared = FAMILIES[family]
    tasks = declared.study_tasks if alternate else ("",)
    for seed in seeds:
        name = f"{family}_{seed:02d}"
        file = free_file(folder, name, force=force)
        given = {**parameters, **declared.control_tasks.get(tasks[seed % len(tasks)], {})}
        document = declared.generate(name, seed, given)
        if seed == seeds[0] and family not in FAMILIES.all:
            try_out(declared, document, declared.generate(name, seed, given))
        write_file(file, dump_scenario(document))


def draw_sample(pairs: int, seed: int, folder: Path | None = None, *, hard: bool = False) -> Sample:
    """Return a sample of castings of the situations that ship; with a folder, also write them there as scenarios."""
    people = load_people()
    relations = load_relations(people)
    every = {each.id: each for each in map(load_situation, shipped_files("situations")) if each.hard or not hard}
    drawn = sample(list(every.values()), people, relations, pairs, seed)
    if folder is not None:
        for task in drawn.tasks:
            document = casted(every[task.situation], [people[who] for who in task.people], relations, task.number)
            write_file(folder / f"{document.id}.yaml", dump_scenario(document))
    return drawn


VARIANTS = 500
"""So many variants of a file are checked."""


@dataclass(frozen=True)
class Checked:
    """A valid file."""

    id: str
    warnings: Sequence[str] = ()
    """What several agents know although a check counts it as disclosed."""


def validated(references: Sequence[str]) -> list[Checked]:
    """Check the files that the references name, of whatever kind.

    Raises ScenarioInvalid with the problems of all files together.
    """
    return each_read([source for reference in references for source in every_source(reference)], _checked)


def variants_of(references: Sequence[str]) -> dict[str, int]:
    """Return path -> number of different variants, for those of the valid files that vary."""
    files = {source.path: source.text for reference in references for source in every_source(reference)}
    return {path: variants_in(text, path) for path, text in files.items() if "vary" in keys_of(text)}


def every_source(reference: str) -> list[Source]:
    """Return what a reference means, which may be the name of a situation."""
    named = [Source(str(file)) for file in shipped_files("situations") if file.stem == reference]
    return named or sources_of(reference)


def renamed(source: Source, name: str) -> str:
    """Return the text of a file with another id. Raises InvalidInput for a name that no id can have."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}", name):
        raise InvalidInput(f"{name!r} cannot be an id", hint="use letters, digits, hyphens and underscores")
    return re.sub(r"^id: .*$", f"id: {name}", source.text, count=1, flags=re.MULTILINE)


def _checked(source: Source) -> Checked:
    text, name = source.text, source.path
    keys = keys_of(text)
    if "relations" in keys:
        parse_relations(text, name, load_people(Path(name).parent))
        return Checked(source.name)
    if "personas" in keys:
        return Checked(parse_personas(text, name).id)
    if keys & {"traits", "persona_type", "never_heard_of"}:
        return Checked(parse_person(text, name).id)
    if "dimensions" in keys:
        return Checked(parse_rubric(text, name).id)
    if keys & {"roles", "issues"}:
        return Checked(parse_situation(text, name).id)
    numbers: list[int | None] = [None]
    if "vary" in keys:
        numbers = [*range(1, min(variants_in(text, name), VARIANTS) + 1)]
    loaded = [parse_scenario(text, name, number) for number in numbers]
    found: dict[tuple[str, int, int], str] = {}  # the first variant that shows a defect tells it
    for each in loaded:
        for place, told in _known_to_others(each):
            found.setdefault(place, f"{each.path}: {told}")
    return Checked(loaded[0].scenario.id, list(found.values()))


def _known_to_others(loaded: LoadedScenario) -> Iterator[tuple[tuple[str, int, int], str]]:
    """Yield place and sentence for each term that a check looks for and another agent is told at the start."""
    scenario, checked = loaded.scenario, {check.disclosed for check in loaded.answer.checks}
    utters = family_of(scenario.family).span
    for owner in scenario.agents:
        told = [("the setting", [scenario.setting])]
        for other in (each for each in scenario.agents if each is not owner):
            known = [other.goal, other.secret or "", *(each.text for each in other.facts)]
            told.append((f"what {other.name} is told", known))
        for fact in (each for each in owner.facts if each.id in checked):
            for (place, term), (number, (where, texts)) in product(enumerate(fact.terms), enumerate(told)):
                if any(utters(text, term) for text in texts):
                    why = f"the term {term!r} of the fact {fact.id} is in {where}, so a check can pass without telling"
                    yield (fact.id, place, number), why


@dataclass(frozen=True)
class Entry:
    """One scenario or situation of a list."""

    id: str
    title: str
    """A situation's title has the names of its roles."""
    family: str | None
    path: str
    parties: int
    tags: Tags
    hard: bool = False

    def has(self, wanted: Mapping[str, str | None]) -> bool:
        """Return True if it has each wanted tag; None wants nothing."""
        return all(word is None or word in self.tags.get(name, ()) for name, word in wanted.items())

    def as_json(self) -> dict[str, Any]:
        """The object that `scenarios list --json` prints."""
        return {
            "id": self.id,
            "title": self.title,
            "family": self.family,
            "kind": self.tags["kind"][0],
            "parties": self.parties,
            "path": self.path,
            "hard": self.hard,
            "tags": {name: list(words) for name, words in self.tags.items()},
        }


def listed_sources(references: Iterable[str]) -> list[Source]:
    """Return what the references mean; without references, all scenarios and situations that ship."""
    chosen = [source for reference in references for source in sources_of(reference)]
    return chosen or [*shipped_sources(), *(Source(str(file)) for file in shipped_files("situations"))]


def chosen(folders: Iterable[str], wanted: Mapping[str, str | None], *, hard: bool = False) -> list[Entry]:
    """Return the entries of `listed_sources` with the wanted tags. Raises InvalidInput for an unknown word."""
    for name, word in wanted.items():
        words = vocabulary().words(name)
        if word is not None and words and word not in words:
            raise InvalidInput(f"no {name} is called {word!r}", hint=f"one of {', '.join(words)}")
    return [each for each in entries(listed_sources(folders)) if each.has(wanted) and (each.hard or not hard)]


def entries(sources: Iterable[Source]) -> Iterator[Entry]:
    """Yield what sources hold. Raises ScenarioInvalid for the first one that is not valid."""
    for source in sources:
        situation = source.generate is None and keys_of(source.text) & {"roles", "issues"}
        yield _situation(Path(source.path)) if situation else _scenario(source)


def _scenario(source: Source) -> Entry:
    loaded = source.load()
    scenario = loaded.scenario
    return Entry(scenario.id, scenario.title, scenario.family, loaded.path, len(scenario.agents), tags_of(loaded))


def _situation(file: Path) -> Entry:
    """Return a situation with the tags of a casting; who is cast changes no tag but the type of the personas."""
    situation = load_situation(file)
    people, relations = people_beside(file)
    group = list(people.values())[: len(situation.roles)]
    document = casted(situation, group, relations, 1)
    loaded = LoadedScenario(*document.split(), str(file))
    title = filled(situation.title, {name: name for name in situation.names})
    return Entry(situation.id, title, document.family, str(file), len(group), tags_of(loaded), situation.hard)
