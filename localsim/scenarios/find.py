"""Search for scenarios by path, by folder, or by the name of one that ships."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from localsim import paths
from localsim.conversation.scenario import LoadedScenario, ScenarioFile
from localsim.errors import InvalidInput, refuse_empty, suggest
from localsim.families.games import SHIPPED
from localsim.scenarios.casting.cast import cast
from localsim.scenarios.casting.people import Person, Relations, load_people, load_relations, people_folder
from localsim.scenarios.casting.rules import load_situation
from localsim.scenarios.documents import each_read, keys_of, read_file, shipped_files
from localsim.scenarios.parse import dump_scenario, load_scenario

MOST = 9_999
"""So many castings or variants can be named."""


@dataclass(frozen=True)
class Source:
    """Where a scenario comes from: a file, or a game that generates the scenarios that ship."""

    path: str
    """Path of the file, or name of the generated scenario."""
    generate: Callable[[], ScenarioFile] | None = None

    @property
    def name(self) -> str:
        """The name by which a scenario that ships is found."""
        return Path(self.path).stem

    @property
    def text(self) -> str:
        """The text of the file. Raises InvalidInput if it cannot be read."""
        return dump_scenario(self.generate()) if self.generate else read_file(Path(self.path))

    def load(self, variant: int | None = None) -> LoadedScenario:
        """Return the scenario, or a variant of it. Raises InvalidInput or ScenarioInvalid."""
        if self.generate is None:
            return load_scenario(self.path, variant)
        if variant is not None:
            hint = "localsim scenarios generate makes more tasks of this family"
            raise InvalidInput(f"{self.path} has no variants", hint=hint)
        return LoadedScenario(*self.generate().split(), self.path)


def find_scenarios(references: Sequence[str]) -> list[LoadedScenario]:
    """Load every scenario that the references name: by path, folder or name.

    `NAME@3` is the third casting of a situation, or the third variant of a file with `vary`; `NAME@1..20` are twenty of
    them, and a name alone is the first. Problems of all files are reported together.
    """
    every = each_read([each for given in references for each in numbered(given)], _loaded)
    return [loaded for each in every for loaded in each]


def numbered(reference: str) -> list[str]:
    """Return `NAME@1..20` as twenty references, and every other reference alone. Raises InvalidInput."""
    match = re.fullmatch(r"(.+)@(\d+)(?:\.\.|-)(\d+)", reference)
    if match is None or Path(reference).exists():
        return [reference]
    first, last = int(match[2]), int(match[3])
    if not 0 < first <= last <= MOST:
        raise InvalidInput(f"{reference}: numbers go from 1 to {MOST}, the smaller one first", hint=f"{match[1]}@1..20")
    return [f"{match[1]}@{number}" for number in range(first, last + 1)]


def _loaded(reference: str) -> list[LoadedScenario]:
    casting = find_casting(reference)
    if casting is not None:
        return [casting]
    match = _NUMBERED.fullmatch(reference)
    if match is None or Path(reference).exists():
        return every_loaded(sources_of(reference))
    return every_loaded(sources_of(match[1]), int(match[2]))


def every_loaded(sources: Iterable[Source], variant: int | None = None) -> list[LoadedScenario]:
    """Load all of these; problems of all files are reported together."""
    return each_read(sources, lambda source: source.load(variant))


def sources_of(reference: str) -> list[Source]:
    """Return the scenarios that a path, a folder or a name means. Raises InvalidInput if there are none."""
    refuse_empty(reference, "the name of a scenario", hint := "localsim scenarios list shows names")
    path = Path(reference).expanduser()
    if path.is_dir():
        files = sorted(path.glob("*.yaml"))
        if not files:
            raise InvalidInput("no *.yaml files in this folder", where=reference)
        return [Source(str(file)) for file in files]
    ships = {source.name: source for source in shipped_sources()}
    if path.suffix and not path.exists() and path.name == f"{path.stem}.yaml" and path.stem in ships:
        raise InvalidInput(
            "no such file", where=reference, hint=f"a bundled scenario needs no folder and no ending: {path.stem}"
        )
    if path.exists() or path.suffix:
        return [Source(str(path))]
    if reference in ships:
        return [ships[reference]]
    every = [*ships, *(file.stem for file in shipped_files("situations"))]
    suggestion = suggest(reference.partition("@")[0], every, inline=True)
    raise InvalidInput(f"no scenario {reference!r}{suggestion}", hint=hint)


def shipped_sources() -> list[Source]:
    """Return the scenarios that ship with localsim: the files, then those of games."""
    files = sorted(paths.bundled("scenarios").glob("*.yaml"))
    return [*(Source(str(file)) for file in files), *(Source(name, SHIPPED[name]) for name in sorted(SHIPPED))]


@cache
def shipped() -> dict[str, LoadedScenario]:
    """Return every scenario that ships by its name, read once; of variants the first."""
    return {source.name: source.load() for source in shipped_sources()}


_NUMBERED = re.compile(r"(.+)@([1-9]\d{0,6})")


def find_casting(reference: str) -> LoadedScenario | None:
    """Return the casting that a reference names; None if it names no situation.

    `NAME@3` and `FILE@3` are the third casting, without a number the first one. The people of a file are those in a
    folder `people` beside its folder, else those who ship. Raises InvalidInput and ScenarioInvalid.
    """
    match = _NUMBERED.fullmatch(reference)
    name, number = (match[1], int(match[2])) if match else (reference, 1)
    file = _file_of(name)
    if file is None:
        return None
    people, relations = people_beside(file)
    document = cast(load_situation(file), people, relations, number)
    return LoadedScenario(*document.split(), f"{file}@{number}")


def _file_of(name: str) -> Path | None:
    """Return the file of a situation by path or name; None for anything else."""
    path = Path(name).expanduser()
    if path.suffix == ".yaml" and path.is_file():
        return path if keys_of(read_file(path)) & {"roles", "issues"} else None
    return next((file for file in shipped_files("situations") if file.stem == name), None)


def people_beside(file: Path) -> tuple[dict[str, Person], Relations]:
    """Return the people for a situation's file and their relations."""
    beside = file.resolve().parent.parent / "people"
    return _people(beside if beside.is_dir() else people_folder())


@lru_cache(maxsize=4)
def _people(folder: Path) -> tuple[dict[str, Person], Relations]:
    people = load_people(folder)
    return people, load_relations(people, folder)
