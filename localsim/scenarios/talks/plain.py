"""Conversations as a table: CSV, TSV or JSONL with one turn a row, or JSONL with one conversation a line.

Columns are conversation, speaker and text; action, readers, scenario, title, setting, goal and secret are optional.
`goal` and `secret` are the speaker's. A conversation that was held on a scenario of localsim names it by file, id or
hash, and keeps it as it is; in JSONL the scenario can also be an object with the fields of a scenario file.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localsim.conversation.human_talks import (
    NAMES,
    HumanTalk,
    LeftOut,
    Part,
    Readers,
    checked,
    id_of,
    loaded,
    names_are_usable,
    plain_text,
    shortened,
    turns_with_readers,
)
from localsim.conversation.names import same, tidy
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import ACTION_TYPES
from localsim.errors import InvalidInput, suggest

COLUMNS = ("conversation", "speaker", "text")
_OPTIONAL = ("action", "readers", "scenario", "title", "setting", "goal", "secret")
_HINT = f"columns: {', '.join(COLUMNS)}; optional: {', '.join(_OPTIONAL)}"
_SEPARATORS = ",;\t|"
_TOLD = re.compile(r'\s*"?sep=(.)"?[ \t\r]*(?:\n|$)', re.IGNORECASE)
_MAYBE_READERS = frozenset(
    "to private reader visible visible_to hidden recipient recipients addressee whisper whispered_to audience".split()
)
"""Columns of other people's tables that may say who reads a turn."""
RENAMED = "a name cannot be that of an agent here; Person A and so on stand for the speakers"
Find = Callable[[str, str], LoadedScenario]
"""Returns the scenario of (reference, place in the file). Raises InvalidInput."""


class Turn(Part):
    """One turn."""

    speaker: str
    text: str = ""
    action: str = "speak"
    readers: list[str] | str | None = None
    """Who can read it beside its speaker: a list, or names with commas between them; everybody if it is not given."""
    goal: str | None = None
    secret: str | None = None


class Whole(Part):
    """The fields of a conversation; `scenario` is a reference, or the fields of a scenario file."""

    conversation: str
    scenario: str | dict[str, Any] | None = None
    title: str | None = None
    setting: str | None = None


class _Lines(Part):
    turns: list[dict[str, Any]]


@dataclass
class _Gathered:
    """A conversation while its rows are read; the first value of a field counts."""

    where: str
    head: dict[str, Any]
    turns: list[tuple[str, Turn]] = field(default_factory=list)
    others: dict[str, None] = field(default_factory=dict)
    """Columns that nothing reads."""


def is_table(text: str) -> bool:
    """Return True if the first line of a text has a column `conversation`."""
    return "conversation" in _cells(_body(text).partition("\n")[0], _separator(text))


def _body(text: str) -> str:
    """Return a table without blank lines before it and without a line `sep=;`, which tells Excel the separator."""
    return (text.partition("\n")[2] if _TOLD.match(text) else text).lstrip("\r\n")


def _separator(text: str) -> str:
    """Return the separator of cells that gives the header most of the columns: Excel writes `;` in much of Europe."""
    if found := _TOLD.match(text):
        return found[1]
    header = text.lstrip().partition("\n")[0]
    return max(_SEPARATORS, key=lambda each: len(_cells(header, each) & {*COLUMNS, *_OPTIONAL}))


def _cells(header: str, separator: str) -> set[str]:
    return {cell.strip(' "\r').casefold() for cell in header.split(separator)}


def rows_of_csv(text: str, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a table with their places; empty cells and rows are left out. Raises InvalidInput."""
    body = _body(text)
    before = text.count("\n") - body.count("\n")
    reader = csv.DictReader(io.StringIO(body), delimiter=_separator(text), strict=True)
    try:
        header = [str(name or "").strip().casefold() for name in reader.fieldnames or ()]
        missing = [name for name in COLUMNS if name not in header]
        if missing:
            there = f"; there are {', '.join(filter(None, header))}" if any(header) else ""
            raise InvalidInput(f"no column {', '.join(missing)}{there}", where=f"{path}:{before + 1}", hint=_HINT)
        reader.fieldnames = header
        for row in reader:
            where = f"{path}:{before + reader.line_num}"
            if not any(cell for cells in row.values() for cell in ([cells] if isinstance(cells, str) else cells or ())):
                continue
            if None in row or None in row.values():
                raise InvalidInput("a row with more or fewer cells than the header", where=where, hint=_HINT)
            yield where, {name: cell for name, cell in row.items() if cell}
    except csv.Error as error:
        raise InvalidInput(f"not CSV: {error}", where=f"{path}:{before + reader.line_num}", hint=_HINT) from error


def read_rows(
    rows: Iterator[tuple[str, dict[str, Any]]], path: str, find: Find, family: str | None
) -> Iterator[HumanTalk | LeftOut]:
    """Yield the conversations of a table in the order of their first rows. Raises InvalidInput.

    Rows with one name belong together; each line with `turns` is a conversation of its own.
    """
    gathered: dict[tuple[str, str], _Gathered] = {}
    for where, row in rows:
        given = {key: value for key, value in row.items() if value is not None}
        head = checked(Whole, given, where, _HINT)
        own = gathered.setdefault((head.conversation.strip(), where if "turns" in given else ""), _Gathered(where, {}))
        own.head = {**head.model_dump(exclude_none=True), **own.head}
        lines = checked(_Lines, given, where, _HINT).turns if "turns" in given else [given]
        own.turns += [(where, checked(Turn, line, where, _HINT)) for line in lines]
        for line in (given, *(lines if "turns" in given else ())):
            own.others |= _unread(line, where)
    for one in gathered.values():
        try:
            yield _talk(one, path, find, family)
        except LeftOut as reason:
            yield reason


def _unread(line: Mapping[str, Any], where: str) -> dict[str, None]:
    """Return the columns that nothing reads. Raises InvalidInput for one that may say who reads a turn."""
    others = [name for name in line if name not in (*COLUMNS, *_OPTIONAL, "turns")]
    for name in others:
        if name.casefold() in _MAYBE_READERS:
            hint = "call it readers if it says who can read a turn; leave it out if everybody can"
            raise InvalidInput(f"{name!r} may say who reads a turn, which would become public", where=where, hint=hint)
    return dict.fromkeys(filter(None, others))


def _talk(one: _Gathered, path: str, find: Find, family: str | None) -> HumanTalk:
    for where, turn in one.turns:
        if turn.action not in ACTION_TYPES:
            hint = suggest(turn.action, ACTION_TYPES) or f"actions: {', '.join(ACTION_TYPES)}"
            raise InvalidInput(f"unknown action {turn.action!r}", where=where, hint=hint)
    speakers = list(dict.fromkeys(tidy(turn.speaker) for _, turn in one.turns))
    scenario, names = _scenario(one, speakers, path, find, family)
    said = [
        (names[tidy(turn.speaker)], turn.action, turn.text, _readers(turn, names, where)) for where, turn in one.turns
    ]
    turns, readers = turns_with_readers(said)
    renamed = [RENAMED] if "scenario" not in one.head and any(names[name] != name for name in speakers) else []
    unread = [f"columns that are not read: {', '.join(one.others)}"] if one.others else []
    return HumanTalk(
        name=one.head["conversation"],
        where=one.where,
        scenario=scenario,
        turns=turns,
        readers=readers,
        stop_reason="left" if said[-1][1] == "leave" else "ended",
        note="; ".join(renamed + unread),
    )


def _readers(turn: Turn, names: Mapping[str, str], where: str) -> Readers:
    """Return who can read a turn, its author first. Raises InvalidInput for somebody who does not take part."""
    if turn.readers is None:
        return None
    given = turn.readers if isinstance(turn.readers, list) else re.split(r"[,;]", turn.readers)
    known = {same(name): agent for name, agent in names.items()}
    others = [tidy(name) for name in given if name.strip()]
    for name in others:
        if same(name) not in known:
            hint = f"readers are among {', '.join(names)}"
            raise InvalidInput(f"{name!r} reads a turn and takes no part", where=where, hint=hint)
    return tuple(dict.fromkeys((names[tidy(turn.speaker)], *(known[same(name)] for name in others))))


def _scenario(
    one: _Gathered, speakers: list[str], path: str, find: Find, family: str | None
) -> tuple[LoadedScenario, Mapping[str, str]]:
    """Return the scenario, and the name of a speaker or agent -> name of an agent."""
    given = one.head.get("scenario")
    if given is None:
        return _made(one, speakers, path, family)
    if isinstance(given, dict):
        scenario = loaded(path, one.where, **{"family": family, **given})
    else:
        scenario = find(given, one.where)
    names = scenario.scenario.names
    known = {same(name): name for name in names}
    for speaker in speakers:
        if same(speaker) not in known:
            hint = f"speakers of this conversation are {', '.join(names)}"
            raise InvalidInput(f"{scenario.scenario.id} has no agent {speaker!r}", where=one.where, hint=hint)
    return scenario, {**{name: name for name in names}, **{speaker: known[same(speaker)] for speaker in speakers}}


def _made(
    one: _Gathered, speakers: list[str], path: str, family: str | None
) -> tuple[LoadedScenario, Mapping[str, str]]:
    """Return a scenario for a conversation that names none."""
    if len(speakers) < 2:
        raise LeftOut("only one person has a turn")
    if len(speakers) > len(NAMES):
        raise LeftOut(f"it has more than {len(NAMES)} speakers")
    names = dict(zip(speakers, speakers if names_are_usable(speakers) else NAMES, strict=False))
    agents = []
    for speaker, name in names.items():
        own = [turn for _, turn in one.turns if tidy(turn.speaker) == speaker]
        goal = next((turn.goal for turn in own if turn.goal), None)
        secret = next((turn.secret for turn in own if turn.secret), None)
        secrets = {"secret": shortened(secret)} if secret else {}
        agents.append({"name": name, "goal": shortened(goal) if goal else "Not recorded.", **secrets})
    title = plain_text(one.head.get("title") or f"Conversation {one.head['conversation']}")
    scenario = loaded(
        path,
        one.where,
        id=id_of("talk", Path(path).stem, one.head["conversation"]),
        title=title[:300],
        info={"what": "A conversation of people that was imported."},
        setting=shortened(one.head.get("setting") or f"{' and '.join(names.values())} talk."),
        agents=agents,
        family=family,
    )
    return scenario, names
