"""Files of conversations of people -> talks. The format is recognised by the content, or named.

Formats of a family's corpus are declared by the family (`Family.corpus`); those without a family are in this folder. A
defect of a file is one InvalidInput that names file and line, or the number of the conversation from 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localsim.conversation.human_talks import Corpus, HumanTalk, LeftOut
from localsim.errors import InvalidInput
from localsim.families import FAMILIES
from localsim.paths import json_value, read_json_lines
from localsim.scenarios.talks import casino, dealornodeal, plain

Read = Iterator[HumanTalk | LeftOut]
AUTO = "auto"
_LINES = "dealornodeal"
_HINT = "localsim import talks --help lists the formats; --format names one"
_CASINO = Corpus("casino", "CaSiNo's JSON", casino.fits, casino.read)


def corpora() -> dict[str, Corpus]:
    """Return the JSON formats of corpora by name: those of families, then CaSiNo."""
    declared = [family.corpus for name in FAMILIES.own if (family := FAMILIES[name]).corpus is not None]
    return {corpus.name: corpus for corpus in (*declared, _CASINO) if corpus is not None}


def formats() -> tuple[str, ...]:
    """Return the names of all formats."""
    return (AUTO, *corpora(), _LINES, "csv", "jsonl")


def read_talks(path: Path, form: str, find: plain.Find, family: str | None = None) -> Read:
    """Yield the conversations of a file, and the reason for each one that is left out. Raises InvalidInput.

    `find` returns the scenario that a conversation names. `family` scores the conversations of a table.
    """
    text = _text(path)
    known = form if form != AUTO else _format_of(text, path)
    if known in ("csv", "jsonl"):
        return _tables(text, path, known, find, family)
    if family is not None:
        hint = "leave --family out: the format decides it"
        raise InvalidInput(f"--family is for tables (csv, jsonl), and this is {known}", where=str(path), hint=hint)
    return dealornodeal.read_lines(text, str(path)) if known == _LINES else _chats(_list_of(text, path), path, known)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"not UTF-8 text: {error}", where=str(path), hint="save it as UTF-8") from error
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", where=str(path), hint=_HINT) from error


# ---- recognising ---------------------------------------------------------------------------------------------------


def _format_of(text: str, path: Path) -> str:
    """Return the format that the content shows. Raises InvalidInput."""
    start = text.lstrip()
    if not start:
        raise InvalidInput("the file is empty", where=str(path), hint=_HINT)
    if start.startswith("<input>"):
        return _LINES
    if start.startswith("["):
        return _form_of_list(text, path)
    if start.startswith("{"):
        return "jsonl"
    header = [cell.strip(' "').casefold() for cell in start.split("\n", 1)[0].replace("\t", ",").split(",")]
    if "conversation" in header or path.suffix.lower() in (".csv", ".tsv"):
        return "csv"
    raise InvalidInput("the format is not recognised", where=str(path), hint=_HINT)


def _form_of_list(text: str, path: Path) -> str:
    items = _list_of(text, path)
    first = items[0] if items else None
    if not isinstance(first, dict):
        raise InvalidInput("no list of conversations", where=str(path), hint=_HINT)
    for name, corpus in corpora().items():
        if corpus.fits(first):
            return name
    if "conversation" in first:
        return "jsonl"
    keys = ", ".join(list(first)[:8])
    raise InvalidInput(f"the format is not recognised (keys: {keys})", where=f"{path}, conversation 1", hint=_HINT)


def _list_of(text: str, path: Path) -> list[Any]:
    try:
        value = json_value(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"not JSON: {error.msg}", where=f"{path}:{error.lineno}:{error.colno}", hint=_HINT
        ) from error
    except ValueError as error:
        raise InvalidInput(f"not JSON: {error}", where=str(path), hint=_HINT) from error
    if not isinstance(value, list):
        raise InvalidInput("no list of conversations", where=str(path), hint=_HINT)
    return value


# ---- reading -------------------------------------------------------------------------------------------------------


def _chats(items: list[Any], path: Path, form: str) -> Read:
    corpus = corpora()[form]
    for number, item in enumerate(items, start=1):
        where = f"{path}, conversation {number}"
        if not isinstance(item, dict) or not corpus.fits(item):
            raise InvalidInput(f"not a conversation of {corpus.about}", where=where, hint=_HINT)
        try:
            yield corpus.read(item, where, str(path))
        except LeftOut as reason:
            yield reason


def _tables(text: str, path: Path, form: str, find: plain.Find, family: str | None) -> Read:
    rows = plain.rows_of_csv(text, str(path)) if form == "csv" else _objects(text, path)
    for talk in plain.read_rows(rows, str(path), find, family):
        if isinstance(talk, HumanTalk):
            _check_family(talk)
        yield talk


def _objects(text: str, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of a JSONL file, or of a JSON list."""
    if text.lstrip().startswith("["):
        values = [(f"{path}, item {number}", item) for number, item in enumerate(_list_of(text, path), start=1)]
    else:
        values = read_json_lines(path)
    for where, value in values:
        if not isinstance(value, dict):
            raise InvalidInput("not an object", where=where, hint="a JSONL file has one object on each line")
        yield where, value


def _check_family(talk: HumanTalk) -> None:
    """Raise InvalidInput where the family of a scenario cannot score it."""
    scenario = talk.scenario.scenario
    if scenario.family is None:
        return
    if scenario.family not in FAMILIES:
        hint = f"families: {', '.join(FAMILIES)}"
        raise InvalidInput(f"unknown family {scenario.family!r}", where=talk.where, hint=hint)
    problems = FAMILIES[scenario.family].check(talk.scenario.document)
    if problems:
        place, message = problems[0]
        hint = "give the conversation a scenario with facts and answer: a file, or an object in JSONL"
        raise InvalidInput(f"{'.'.join(map(str, place))}: {message}", where=talk.where, hint=hint)
