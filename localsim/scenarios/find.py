"""Finding scenario files: paths, folders and names of what ships with localsim."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from localsim import paths
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput, Problem, ScenarioInvalid
from localsim.scenarios.parse import load_scenario


def find_scenarios(references: Sequence[str]) -> list[LoadedScenario]:
    """Load every scenario that the references name; problems of all files are reported at once."""
    found: list[LoadedScenario] = []
    problems: list[Problem] = []
    for file in [file for reference in references for file in scenario_paths(reference)]:
        try:
            found.append(load_scenario(file))
        except ScenarioInvalid as error:
            problems += error.problems
    if problems:
        raise ScenarioInvalid(problems)
    return found


def scenario_paths(reference: str) -> list[Path]:
    """The files that a path, a folder or a name means. Raises InvalidInput where there are none."""
    path = Path(reference).expanduser()
    if path.is_dir():
        files = sorted(path.glob("*.yaml"))
        if not files:
            raise InvalidInput("no *.yaml files in this folder", where=reference)
        return files
    if path.exists() or path.suffix:
        return [path]
    shipped = paths.bundled("scenarios") / f"{reference}.yaml"
    if shipped.is_file():
        return [shipped]
    close = difflib.get_close_matches(reference, [file.stem for file in shipped_files()], n=1)
    suggestion = f" (did you mean {close[0]}?)" if close else ""
    raise InvalidInput(f"no scenario {reference!r}{suggestion}", hint="localsim scenarios list shows names")


def shipped_files() -> list[Path]:
    """The scenario files that ship with localsim."""
    return sorted(paths.bundled("scenarios").glob("*.yaml"))
