"""Conversations as a table: CSV, TSV or JSONL with one turn a row, or JSONL with one conversation a line.

Columns are conversation, speaker and text; action, readers, scenario, title, setting, goal and secret are optional.
`goal` and `secret` are the speaker's. A conversation that was held on a scenario of localsim names it by file, id or
hash, and keeps it as it is; in JSONL the scenario can also be an object with the fields of a scenario file.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
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
from localsim.conversation.names import problem_of, same, tidy, whole
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import ACTION_TYPES
from localsim.errors import InvalidInput
from localsim.paths import json_text

COLUMNS = ("conversation", "speaker", "text")
_OPTIONAL = ("action", "readers", "scenario", "title", "setting", "goal", "secret")
HINT = f"columns: {', '.join(COLUMNS)}; optional: {', '.join(_OPTIONAL)}"
_SEPARATORS = ",;\t|"
_TOLD = re.compile(r'\s*"?sep=(.)"?[ \t\r]*(?:\n|$)', re.IGNORECASE)
_MAYBE_READERS = re.compile(
    r"privat|privé|reader|visib|hidden|recipient|receiver|address(?:ed|ee)|whisper|audience|viewer|listener|confiden"
    r"|public|(?<![a-z])(?:to|cc|bcc|dm|seen|only|scope)(?![a-z])",
    re.IGNORECASE,
)
"""In the name of a column: it may say who reads a turn."""
_SOME_ONLY = re.compile(r"privat\w*|privé\w*|whisper\w*|hidden|secret|confidential|dm|direct( message)?", re.IGNORECASE)
"""A value of a column that says so."""
_YES_NO = frozenset(("true", "false", "yes", "no", "1", "0", "x"))
_MARKED = re.compile(
    r"\s*(?:[\[({<*（【]+\s*(?:privat\w*|whisper\w*\s*(?:to\b|->|→|:)|only (?:to|for)\b|aside\b|inner\b|[dp]m\b)"
    r"|/(?:w|whisper|msg|tell|[dp]m)\s)",
    re.IGNORECASE,
)
"""Begins a text that some only could read."""
_NAMED = re.compile(
    r"\s*(?:(?=[\[({<*（【]++\s*+(?:to\b|->|→|@|[^\])}>*）】]*\bonly\b))[^\])}>*）】]*|[dp]m\s[^:]{1,80}:)",
    re.IGNORECASE,
)
"""Begins a text that only those could read whom it names."""
_AIMED = re.compile(
    r"(?:->|→|=>|>|\bto\b|\bwhisper|\bprivat|\baside\b|\b[dp]m\b|\bonly\b|\bthink|\bthought|\binner\b)", re.IGNORECASE
)
"""Stands in the name of a speaker who may have spoken to some only."""
_PUBLIC = "which would become public"
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
    others: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    """Column that nothing reads -> (place, speaker or '', value)."""
    varies: dict[str, None] = field(default_factory=dict)
    """Fields that have several values, of which the first counts."""


def is_table(text: str) -> bool:
    """Return True if the first line of a text has a column `conversation`."""
    return "conversation" in _cells(_body(text).partition("\n")[0], _separator(text))


def _body(text: str) -> str:
    """Return a table without blank lines before it and without a line `sep=;`, which tells Excel the separator."""
    lines = text if "\n" in text else text.replace("\r", "\n")  # as old versions of Excel for the Mac wrote
    return (lines.partition("\n")[2] if _TOLD.match(lines) else lines).lstrip("\r\n")


def _separator(text: str) -> str:
    """Return the separator of cells that gives the header most of the columns: Excel writes `;` in much of Europe."""
    if found := _TOLD.match(text):
        return found[1]
    header = _body(text).partition("\n")[0]
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
            raise InvalidInput(f"no column {', '.join(missing)}{there}", where=f"{path}:{before + 1}", hint=HINT)
        if twice := [name for name in header if name and header.count(name) > 1]:
            problem = f"two columns have the name {twice[0]}"
            raise InvalidInput(problem, where=f"{path}:{before + 1}", hint="give each column a name of its own")
        reader.fieldnames = [name or f"without a name ({number})" for number, name in enumerate(header, start=1)]
        for row in reader:
            where = f"{path}:{before + reader.line_num}"
            if not any(cell for cells in row.values() for cell in ([cells] if isinstance(cells, str) else cells or ())):
                continue
            if None in row or None in row.values():
                raise InvalidInput("a row with more or fewer cells than the header", where=where, hint=HINT)
            yield where, {name: cell for name, cell in row.items() if cell}
    except csv.Error as error:
        problem = "a quotation mark opens and nothing closes it" if "end of data" in str(error) else str(error)
        raise InvalidInput(f"not CSV: {problem}", where=f"{path}:{before + reader.line_num}", hint=HINT) from error


def read_rows(
    rows: Iterator[tuple[str, dict[str, Any]]], path: str, find: Find, family: str | None
) -> Iterator[HumanTalk | LeftOut]:
    """Yield the conversations of a table in the order of their first rows. Raises InvalidInput.

    Rows with one name belong together; each line with `turns` is a conversation of its own.
    """
    gathered: dict[tuple[str, str], _Gathered] = {}
    for where, row in rows:
        given = _known_names(row)
        head = checked(Whole, given, where, HINT)
        is_whole = "turns" in given
        own = gathered.setdefault((head.conversation.strip(), where if is_whole else ""), _Gathered(where, {}))
        fields = head.model_dump(exclude_none=True)
        own.varies |= {key: None for key, value in fields.items() if own.head.get(key, value) != value}
        own.head = {**fields, **own.head}
        lines = list(map(_known_names, checked(_Lines, given, where, HINT).turns)) if is_whole else [given]
        own.turns += [(where, checked(Turn, line, where, HINT)) for line in lines]
        if is_whole:
            _unread(own, given, {*Whole.model_fields, "turns"}, where)
        for line in lines:
            _unread(own, line, set(Turn.model_fields) | (set() if is_whole else set(Whole.model_fields)), where)
    for one in gathered.values():
        try:
            yield _talk(one, path, find, family)
        except LeftOut as reason:
            yield reason


def _known_names(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an object that hold something, named as in a table; pandas writes NaN for nothing."""
    held = ((name, value) for name, value in row.items() if not (isinstance(value, float) and isnan(value)))
    return {name.strip().casefold(): value for name, value in held if value is not None}


def _unread(own: _Gathered, line: Mapping[str, Any], known: set[str], where: str) -> None:
    """Keep the columns that nothing reads. Raises InvalidInput for one that may say who reads a turn."""
    for name, value in line.items():
        if name not in known:
            own.others.setdefault(name, []).append((where, str(line.get("speaker", "")), json_text(value)))
            if _MAYBE_READERS.search(name) or _SOME_ONLY.fullmatch(str(value).strip()):
                raise _may_be_private(name, where)


def _may_be_private(name: str, where: str) -> InvalidInput:
    hint = "call it readers if it says who can read a turn; leave it out if everybody can"
    return InvalidInput(f"{name!r} may say who reads a turn, {_PUBLIC}", where=where, hint=hint)


def _names_in(text: str, speakers: Sequence[str], but: str) -> list[str]:
    return [name for name in speakers if name != but and whole(name, re.IGNORECASE).search(text)]


def _refuse_private(one: _Gathered, speakers: Sequence[str]) -> None:
    """Raise InvalidInput where a speaker, a text or a column may say that some only could read a turn."""
    for where, turn in one.turns:
        name = turn.speaker
        others, bad, aimed = _names_in(name, speakers, name), problem_of(name) is not None, _AIMED.search(name)
        if aimed and (bad or others) or bad and others:
            hint = "name only the speaker there, and who can read the turn in the column readers"
            raise InvalidInput(f"the speaker {name!r} may speak to some only, {_PUBLIC}", where=where, hint=hint)
        if (turn.secret or "").strip().casefold() in _YES_NO:
            raise _may_be_private("secret", where)
        mark = _NAMED.match(turn.text)
        heard = _names_in(mark[0], speakers, name) if mark else []
        if _MARKED.match(turn.text) or 0 < len(heard) < len(speakers) - 1:
            hint = "put who can read it into the column readers, and leave the mark out"
            raise InvalidInput(f"a text for some only, {_PUBLIC}: {turn.text[:60]!r}", where=where, hint=hint)
    names = [name for name in speakers if len(name) > 1 and problem_of(name) is None]
    for column, values in one.others.items():
        for where, speaker, value in values:
            named = {name for name in names if whole(name, re.IGNORECASE).search(value)}
            if named - {tidy(speaker)} and len(named) < len(speakers):
                raise _may_be_private(column, where)


def _talk(one: _Gathered, path: str, find: Find, family: str | None) -> HumanTalk:
    for where, turn in one.turns:
        if turn.action not in ACTION_TYPES:
            hint = f"actions: {', '.join(ACTION_TYPES)}"
            raise InvalidInput(f"unknown action {turn.action!r}", where=where, hint=hint)
    first: dict[str, str] = {}
    """What nobody can tell from another name -> the first spelling of it."""
    one.turns = [
        (where, turn.model_copy(update={"speaker": first.setdefault(same(name), name)}))
        for where, turn, name in ((where, turn, tidy(turn.speaker)) for where, turn in one.turns)
    ]
    speakers = list(first.values())
    _refuse_private(one, speakers)
    scenario, names = _scenario(one, speakers, path, find, family)
    said = [(names[turn.speaker], turn.action, turn.text, _readers(turn, names, where)) for where, turn in one.turns]
    turns, readers = turns_with_readers(said)
    notes = [RENAMED] if "scenario" not in one.head and any(names[name] != name for name in speakers) else []
    if empty := sum(not plain_text(text) and action not in ("leave", "none") for _, action, text, _ in said):
        notes.append(f"turns without words, which are left out: {empty}")
    notes += [f"columns that are not read: {', '.join(one.others)}"] if one.others else []
    notes += [f"several values, of which the first counts: {', '.join(one.varies)}"] if one.varies else []
    return HumanTalk(
        name=one.head["conversation"],
        where=one.where,
        scenario=scenario,
        turns=turns,
        readers=readers,
        stop_reason="left" if said[-1][1] == "leave" else "ended",
        note="; ".join(notes),
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
    return tuple(dict.fromkeys((names[turn.speaker], *(known[same(name)] for name in others))))


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
        raise LeftOut("only one person has a turn" if speakers else "nothing is said")
    if len(speakers) > len(NAMES):
        raise LeftOut(f"it has more than {len(NAMES)} speakers")
    names = dict(zip(speakers, speakers if names_are_usable(speakers) else NAMES, strict=False))
    agents = []
    for speaker, name in names.items():
        own = [turn for _, turn in one.turns if turn.speaker == speaker]
        told = {key: [text for turn in own if (text := getattr(turn, key))] for key in ("goal", "secret")}
        one.varies |= {key: None for key, texts in told.items() if len(set(texts)) > 1}
        goal, secret = (next(iter(texts), None) for texts in told.values())
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
