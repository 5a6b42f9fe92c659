"""Scenario files: YAML -> validated `LoadedScenario`. Every defect is reported together, as file:line:column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from localsim.conversation.beginning import problem_of_beginning
from localsim.conversation.rules.deciding import PHASED
from localsim.conversation.rules.values import Place
from localsim.conversation.scenario import FEWEST, LoadedScenario, Scenario, ScenarioFile, too_few
from localsim.errors import InvalidInput, suggest
from localsim.families import FAMILIES, rules_of
from localsim.scenarios.documents import dumped, read_document, read_file
from localsim.scenarios.vary import KEY, fill, varied

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
    document = read.valid(_problems(read.value) if read.value is not None else ())
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


def _problems(document: ScenarioFile) -> list[tuple[Place, str]]:
    """Return the problems that the named family finds in the file, else that of a given beginning."""
    problems = _family_problems(document) if document.family else []
    if not problems and document.begun and (problem := _problem_of_beginning(document)):
        return [(("begun",), problem)]
    return problems


def _problem_of_beginning(document: ScenarioFile) -> str:
    if len(document.agents) < FEWEST:
        return "questions that are put to one agent alone have no beginning"
    if document.seed is None and draws(document):
        return "give seed, too: what the rules draw must fit the beginning"
    return problem_of_beginning(document, rules_of(document) or PHASED, document.seed or 0)


def draws(scenario: Scenario) -> bool:
    """Return True if the rules of a scenario may draw something."""
    return rules_of(scenario) is not None or any(phase.order == "random" for phase in scenario.phases)


def _family_problems(document: ScenarioFile) -> list[tuple[Place, str]]:
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
