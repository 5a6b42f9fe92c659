"""Scenario files: YAML -> validated `LoadedScenario`. Every defect is reported together, as file:line:column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from localsim.conversation.scenario import LoadedScenario, ScenarioFile, too_few
from localsim.errors import suggest
from localsim.scenarios.documents import dumped, read_document, read_file

_TYPED = ("version", "answer", "game", "parameters")
"""Top-level keys under which a number is a number; elsewhere a text field keeps it as it was typed."""


def load_scenario(path: str | Path) -> LoadedScenario:
    """Read and validate one scenario file.

    Raises InvalidInput where the file cannot be read, ScenarioInvalid with all problems where it is not a scenario.
    """
    file = Path(path)
    return parse_scenario(read_file(file), str(file))


def parse_scenario(text: str, name: str) -> LoadedScenario:
    """Validate a scenario given as YAML text; `name` stands for the file in messages."""
    read = read_document(text, name, ScenarioFile, typed=_TYPED)
    document = read.valid(_family_problems(read.value) if read.value is not None and read.value.family else ())
    scenario, answer = document.split()
    return LoadedScenario(scenario, answer, name)


def dump_scenario(document: ScenarioFile) -> str:
    """Return a scenario file as YAML text that `parse_scenario` reads back to the same values."""
    data = document.model_dump(mode="json", exclude_defaults=True)
    data["version"] = document.version
    return "# yaml-language-server: $schema=scenario-1.schema.json\n" + dumped(_ordered(data))


def _ordered(data: dict[str, Any]) -> dict[str, Any]:
    fields = ("version", "id", "title", "family", "parameters", "info", "setting")
    first = {key: data[key] for key in fields if key in data}
    return first | {key: value for key, value in data.items() if key not in first}


def _family_problems(document: ScenarioFile) -> list[tuple[tuple[str | int, ...], str]]:
    """Return the problems that the named family finds in the file."""
    from localsim.families import FAMILIES

    family = FAMILIES.get(document.family or "")
    if family is None:
        meant = suggest(document.family or "", FAMILIES, inline=True)
        return [(("family",), f"unknown family {document.family!r}{meant}, or its package is not installed here")]
    if len(document.agents) < family.fewest:
        return [(("agents",), too_few(len(document.agents)))]
    problems = family.check(document)
    if document.success is not None and family.decides_success:
        problems.append((("success",), f"the family {family.name} decides success itself; leave this out"))
    return problems
