"""The kinds of files: scenarios, situations, people and their relations, rubrics, each checked by its own rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from localsim.errors import InvalidInput, Problem, ScenarioInvalid
from localsim.scenarios.casting.people import load_people, parse_person
from localsim.scenarios.casting.relations import parse_relations
from localsim.scenarios.casting.rules import parse_situation
from localsim.scenarios.casting.situations import situation_files
from localsim.scenarios.documents import keys_of
from localsim.scenarios.find import Source, sources_of
from localsim.scenarios.parse import parse_scenario, variants_in
from localsim.scenarios.rubrics import parse_rubric

VARIANTS = 500
"""So many variants of a file are checked."""


def validated(references: Sequence[str]) -> list[str]:
    """Check the files that the references name, of whatever kind, and return their ids.

    Raises ScenarioInvalid with the problems of all files together.
    """
    found: list[str] = []
    problems: list[Problem] = []
    for source in [source for reference in references for source in every_source(reference)]:
        try:
            found.append(_id_of(source))
        except ScenarioInvalid as error:
            problems += [problem for problem in error.problems if problem not in problems]
    if problems:
        raise ScenarioInvalid(problems)
    return found


def variants_of(references: Sequence[str]) -> dict[str, int]:
    """Return path -> number of different variants, for those of the valid files that vary."""
    files = {source.path: source.text for reference in references for source in every_source(reference)}
    return {path: variants_in(text, path) for path, text in files.items() if "vary" in keys_of(text)}


def every_source(reference: str) -> list[Source]:
    """Return what a reference means, which may be the name of a situation."""
    named = [Source(str(file)) for file in situation_files() if file.stem == reference]
    return named or sources_of(reference)


def renamed(source: Source, name: str) -> str:
    """Return the text of a file with another id. Raises InvalidInput for a name that no id can have."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}", name):
        raise InvalidInput(f"{name!r} cannot be an id", hint="use letters, digits, hyphens and underscores")
    return re.sub(r"^id: .*$", f"id: {name}", source.text, count=1, flags=re.MULTILINE)


def _id_of(source: Source) -> str:
    text, name = source.text, source.path
    keys = keys_of(text)
    if "relations" in keys:
        parse_relations(text, name, load_people(Path(name).parent))
        return source.name
    if keys & {"traits", "persona_type", "never_heard_of"}:
        return parse_person(text, name).id
    if "dimensions" in keys:
        return parse_rubric(text, name).id
    if keys & {"roles", "issues"}:
        return parse_situation(text, name).id
    if "vary" in keys:
        for number in range(2, min(variants_in(text, name), VARIANTS) + 1):
            parse_scenario(text, name, number)
    return parse_scenario(text, name).scenario.id
