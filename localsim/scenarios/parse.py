"""Scenario files: YAML -> validated `LoadedScenario`. Every defect is reported together, as file:line:column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from localsim.conversation.scenario import LoadedScenario, ScenarioFile, too_few
from localsim.errors import InvalidInput, suggest
from localsim.scenarios.documents import dumped, read_document, read_file
from localsim.scenarios.vary import KEY, Place, fill, varied

_TYPED = ("version", "answer", "game", "parameters", KEY)
"""Top-level keys under which a number is a number; elsewhere a text field keeps it as it was typed."""


def load_scenario(path: str | Path, variant: int | None = None) -> LoadedScenario:
    """Read and validate one scenario file, or one of its variants, counted from 1.

    Raises InvalidInput where the file cannot be read, ScenarioInvalid with all problems where it is not a scenario.
    """
    file = Path(path)
    return parse_scenario(read_file(file), str(file), variant)


def parse_scenario(text: str, name: str, variant: int | None = None) -> LoadedScenario:
    """Validate a scenario given as YAML text; `name` stands for the file in messages.

    `variant` is the number of one of its variants; None is the first, or the scenario itself if it does not vary.
    """

    def filled(root: yaml.MappingNode) -> list[tuple[Place, str]]:
        found, problems = varied(root)
        if found is None and variant is not None and not problems:
            raise InvalidInput("has no `vary`, so it has no variants", where=name, hint="see scenarios/README.md")
        return fill(root, found, variant or 1, _TYPED) if found is not None and not problems else problems

    read = read_document(text, name, ScenarioFile, typed=_TYPED, change=filled)
    document = read.valid(_family_problems(read.value) if read.value is not None and read.value.family else ())
    scenario, answer = document.split()
    return LoadedScenario(scenario, answer, name if variant is None else f"{name}@{variant}")


def variants_in(text: str, name: str) -> int:
    """Return the number of variants of a valid scenario file; 0 if it does not vary."""
    totals: list[int] = []

    def counted(root: yaml.MappingNode) -> list[tuple[Place, str]]:
        found, problems = varied(root)
        totals.append(found.total * found.orders if found else 0)
        return problems or (fill(root, found, 1) if found else [])

    read_document(text, name, ScenarioFile, typed=_TYPED, change=counted)
    return sum(totals)


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
