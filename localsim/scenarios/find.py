"""Search for scenarios by path, by folder, or by the name of one that ships."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from localsim import paths
from localsim.conversation.scenario import LoadedScenario, ScenarioFile
from localsim.errors import InvalidInput, Problem, ScenarioInvalid, suggest
from localsim.families.games import SHIPPED
from localsim.scenarios.casting.find import find_casting
from localsim.scenarios.casting.situations import situation_files
from localsim.scenarios.documents import read_file
from localsim.scenarios.parse import dump_scenario, load_scenario


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

    def load(self) -> LoadedScenario:
        """Return the scenario. Raises InvalidInput or ScenarioInvalid."""
        if self.generate is None:
            return load_scenario(self.path)
        return LoadedScenario(*self.generate().split(), self.path)


def find_scenarios(references: Sequence[str]) -> list[LoadedScenario]:
    """Load every scenario that the references name: by path, folder or name, and `NAME@3`, the third casting of a
    situation (a situation's name alone is its first casting). Problems of all files are reported together.
    """
    found: list[LoadedScenario] = []
    problems: list[Problem] = []
    for reference in references:
        try:
            cast = find_casting(reference)
            if cast is not None:
                found.append(cast)
                continue
        except ScenarioInvalid as error:
            problems += error.problems
            continue
        for source in sources_of(reference):
            try:
                found.append(source.load())
            except ScenarioInvalid as error:
                problems += error.problems
    if problems:
        raise ScenarioInvalid(problems)
    return found


def sources_of(reference: str) -> list[Source]:
    """Return the scenarios that a path, a folder or a name means. Raises InvalidInput if there are none."""
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
    every = [*ships, *(file.stem for file in situation_files())]
    suggestion = suggest(reference.partition("@")[0], every, inline=True)
    raise InvalidInput(f"no scenario {reference!r}{suggestion}", hint="localsim scenarios list shows names")


def shipped_sources() -> list[Source]:
    """Return the scenarios that ship with localsim: the files, then those of games."""
    files = sorted(paths.bundled("scenarios").glob("*.yaml"))
    return [*(Source(str(file)) for file in files), *(Source(name, SHIPPED[name]) for name in sorted(SHIPPED))]


@cache
def shipped() -> dict[str, LoadedScenario]:
    """Return every scenario that ships by its id, read once."""
    every = [source.load() for source in shipped_sources()]
    return {loaded.scenario.id: loaded for loaded in every}
