"""Files of conversations of people -> talks. The format is recognised by the content, or named.

Formats of a family's corpus are declared by the family (`Family.corpus`); those without a family are in this folder. A
defect of a file is one InvalidInput that names file and line, or the number of the conversation from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localsim.conversation.human_talks import Corpus, HumanTalk, LeftOut
from localsim.errors import InvalidInput
from localsim.families import FAMILIES
from localsim.families.cocoa import kbs_of
from localsim.paths import json_values, read_text
from localsim.scenarios.formats.sotopia_form import type_of
from localsim.scenarios.talks import casino, dealornodeal, plain

Read = Iterator[HumanTalk | LeftOut]
AUTO = "auto"
_LINES = "dealornodeal"
_HINT = "localsim import talks --help lists the formats; --format names one"
_CASINO = Corpus("casino", "CaSiNo's JSON", casino.fits, casino.read)
_DIVISION = Corpus(_LINES, dealornodeal.CHATS, dealornodeal.fits, dealornodeal.read_chat)
_JSON = re.compile(r"""\s*(?:\[\s*[\[{"'\]]|\{\s*["'}])""")
"""Begins a list or an object; `[12.11.23, 10:15] Ana:` is a chat, and `{pause}` is a script."""
_LOOKED_AT = 20
"""So many conversations of a file are looked at to recognise its format: the first one may be the odd one."""


def corpora() -> dict[str, Corpus]:
    """Return the JSON formats of corpora by name: those without a family, whose form is stricter, come first."""
    declared = (FAMILIES[name].corpus for name in FAMILIES.own)
    return {corpus.name: corpus for corpus in (_DIVISION, *declared, _CASINO) if corpus is not None}


def formats() -> tuple[str, ...]:
    """Return the names of all formats."""
    return (AUTO, *corpora(), "csv", "jsonl")


def read_talks(path: Path, form: str, find: plain.Find, family: str | None = None) -> Read:
    """Yield the conversations of a file, and the reason for each one that is left out. Raises InvalidInput.

    `find` returns the scenario that a conversation names. `family` scores the conversations of a table.
    """
    text = read_text(path)
    start = text.lstrip()[:1]
    if not start:
        raise InvalidInput("the file is empty", where=str(path), hint=_HINT)
    is_json = _JSON.match(text) is not None
    items = _items(text, path) if (is_json and form != "csv") or form == "jsonl" else []
    known = form if form != AUTO else _form_of(items, path) if is_json else _form_of_text(text, path)
    if known in ("csv", "jsonl"):
        rows = plain.rows_of_csv(text, str(path)) if known == "csv" else _objects(items, path)
        return _tables(rows, path, find, family)
    if family is not None:
        hint = "leave --family out: the format decides it"
        raise InvalidInput(f"--family is for tables (csv, jsonl), and this is {known}", where=str(path), hint=hint)
    if known == _LINES and not is_json:
        return dealornodeal.read_lines(text, str(path))
    if not items:
        raise InvalidInput("no list of conversations", where=str(path), hint=_HINT)
    return _chats(items, path, known)


# ---- recognising ---------------------------------------------------------------------------------------------------


def _items(text: str, path: Path) -> list[tuple[str, Any]]:
    """Return the values of a JSON text; of one object that only wraps a list, those of the list."""
    items = json_values(text, str(path), _HINT, "conversation")
    if items and isinstance(items[0][1], dict):
        _refuse_foreign(items[0][1], items[0][0])
    if len(items) == 1 and isinstance(items[0][1], dict) and not items[0][1].keys() & {"conversation", "events"}:
        lists = [each for each in items[0][1].values() if isinstance(each, list) and each and isinstance(each[0], dict)]
        if len(lists) == 1 and not any(corpus.fits(items[0][1]) for corpus in corpora().values()):
            return [(f"{path}, conversation {number}", item) for number, item in enumerate(lists[0], start=1)]
    return items


def _refuse_foreign(item: dict[str, Any], where: str) -> None:
    """Raise InvalidInput for an object of another tool that no conversation of people is read from."""
    keys = item.keys()
    if type_of(item) is not None:
        problem = "objects of Sotopia, which have a command of their own"
        hint = "localsim scenarios import sotopia FILE..."
    elif {"seed", "vignette"} <= keys:
        problem = "seeds of PrivacyLens, which have a command of their own"
        hint = "localsim scenarios import privacylens FILE..."
    elif {"eval", "samples"} <= keys:
        problem, hint = "a log of Inspect, which is written and not read", f"give a table; {plain.HINT}"
    elif {"episode_id", "run_id"} <= keys:
        problem = "an export of localsim, which is written and not read"
        hint = "a run travels as an archive (localsim bundle, localsim replay) or in a database (localsim db merge)"
    elif _has_roles(item) or any(isinstance(each, list) and each and _has_roles(each[0]) for each in item.values()):
        problem = "a chat of roles, such as user and assistant, which does not say who reads a message"
        hint = f"give a table; {plain.HINT}"
    else:
        return
    raise InvalidInput(problem, where=where, hint=hint)


def _has_roles(item: Any) -> bool:
    """Return True for a message as OpenAI or ShareGPT writes it."""
    return isinstance(item, dict) and ({"role", "content"} <= item.keys() or {"from", "value"} <= item.keys())


def _form_of(items: list[tuple[str, Any]], path: Path) -> str:
    """Return the format of JSON values. Raises InvalidInput."""
    seen = [item for _, item in items[:_LOOKED_AT] if isinstance(item, dict)]
    for item in seen:
        for name, corpus in corpora().items():
            if corpus.fits(item):
                return name
        if "conversation" in item:
            return "jsonl"
    if not seen:
        raise InvalidInput("no list of conversations", where=str(path), hint=_HINT)
    if kbs_of(seen[0]):
        problem = "cocoa's JSON of a task that is not read here"
        hint = "MutualFriends, CraigslistBargain and Deal or No Deal are read; --format names one"
        raise InvalidInput(problem, where=items[0][0], hint=hint)
    if items[0][0].startswith(f"{path}:"):
        return "jsonl"  # one object on each line, whose defect is told with its line
    keys = ", ".join(list(seen[0])[:8])
    raise InvalidInput(f"the format is not recognised (keys: {keys})", where=items[0][0], hint=_HINT)


def _form_of_text(text: str, path: Path) -> str:
    """Return the format of a text that is no JSON. Raises InvalidInput."""
    if text.lstrip().startswith("<input>"):
        return _LINES
    if plain.is_table(text) or path.suffix.lower() in (".csv", ".tsv"):
        return "csv"
    raise InvalidInput("the format is not recognised", where=str(path), hint=_HINT)


# ---- reading -------------------------------------------------------------------------------------------------------


def _chats(items: list[tuple[str, Any]], path: Path, form: str) -> Read:
    corpus = corpora()[form]
    for where, item in items:
        if not isinstance(item, dict) or not corpus.fits(item):
            raise InvalidInput(f"not a conversation of {corpus.about}", where=where, hint=_HINT)
        try:
            yield corpus.read(item, where, str(path))
        except LeftOut as reason:
            yield reason


def _tables(rows: Iterator[tuple[str, dict[str, Any]]], path: Path, find: plain.Find, family: str | None) -> Read:
    for talk in plain.read_rows(rows, str(path), find, family):
        if isinstance(talk, HumanTalk):
            _check_family(talk)
        yield talk


def _objects(items: list[tuple[str, Any]], path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if not items:
        raise InvalidInput("no conversations", where=str(path), hint=_HINT)
    for where, value in items:
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
