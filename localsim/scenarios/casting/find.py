"""Castings by name: `ID@3` is the third casting of a situation with the people who ship, or with those beside it."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from localsim.conversation.scenario import LoadedScenario
from localsim.scenarios.casting.cast import cast
from localsim.scenarios.casting.people import Person, load_people, people_folder
from localsim.scenarios.casting.relations import Relations, load_relations
from localsim.scenarios.casting.rules import load_situation
from localsim.scenarios.casting.situations import situation_files
from localsim.scenarios.documents import keys_of, read_file

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
    return next((file for file in situation_files() if file.stem == name), None)


def people_beside(file: Path) -> tuple[dict[str, Person], Relations]:
    """Return the people for a situation's file and their relations."""
    beside = file.resolve().parent.parent / "people"
    return _people(beside if beside.is_dir() else people_folder())


@lru_cache(maxsize=4)
def _people(folder: Path) -> tuple[dict[str, Person], Relations]:
    people = load_people(folder)
    return people, load_relations(people, folder)
