"""Search for scenario files by path, by folder, or by the name of a bundled scenario."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from localsim import paths
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput, Problem, ScenarioInvalid, suggest
from localsim.scenarios.casting.find import find_casting
from localsim.scenarios.casting.situations import situation_files
from localsim.scenarios.parse import load_scenario


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
        for file in scenario_paths(reference):
            try:
                found.append(load_scenario(file))
            except ScenarioInvalid as error:
                problems += error.problems
    if problems:
        raise ScenarioInvalid(problems)
    return found


def scenario_paths(reference: str) -> list[Path]:
    """Return the files that a path, a folder or a name means. Raises InvalidInput if there are none."""
    path = Path(reference).expanduser()
    if path.is_dir():
        files = sorted(path.glob("*.yaml"))
        if not files:
            raise InvalidInput("no *.yaml files in this folder", where=reference)
        return files
    if path.suffix and not path.exists() and (paths.bundled("scenarios") / path.name).is_file():
        raise InvalidInput(
            "no such file", where=reference, hint=f"a bundled scenario needs no folder and no ending: {path.stem}"
        )
    if path.exists() or path.suffix:
        return [path]
    for shipped in shipped_files():
        if shipped.stem == reference:
            return [shipped]
    every = [*shipped_files(), *situation_files()]
    suggestion = suggest(reference.partition("@")[0], [file.stem for file in every], inline=True)
    raise InvalidInput(f"no scenario {reference!r}{suggestion}", hint="localsim scenarios list shows names")


def shipped_files() -> list[Path]:
    """Return the scenario files that ship with localsim."""
    folder = paths.bundled("scenarios")
    return [*sorted(folder.glob("*.yaml")), *sorted((folder / "games").glob("*.yaml"))]


@cache
def shipped() -> dict[str, LoadedScenario]:
    """Return every bundled scenario by its id, read once."""
    every = [load_scenario(file) for file in shipped_files()]
    return {loaded.scenario.id: loaded for loaded in every}
