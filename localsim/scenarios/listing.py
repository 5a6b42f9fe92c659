"""The list of what can be run: scenario files and situations, each with its tags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput
from localsim.scenarios.casting.cast import casted
from localsim.scenarios.casting.rules import load_situation
from localsim.scenarios.casting.situations import filled
from localsim.scenarios.documents import keys_of, shipped_files
from localsim.scenarios.find import Source, people_beside, shipped_sources, sources_of
from localsim.scenarios.tagging import Tags, tags_of, vocabulary


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
