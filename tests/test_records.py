"""Records on their way: through the journal and back, and into rows, without a change whatever they hold."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.store import records
from localsim.store.database import Store
from localsim.store.journal import Journal, read_journal
from localsim.store.records import (
    EpisodeEnded,
    EpisodeRecord,
    GenerationRecord,
    LeakRecord,
    Record,
    RejectRecord,
    RunDied,
    RunEnded,
    RunRecord,
    ScoreRecord,
    TurnRecord,
    as_json,
    from_json,
)
from localsim.store.schema import TABLES, rows_of

TEXT = st.text(max_size=30)
NUMBER = st.floats(allow_nan=False, allow_infinity=False, width=32)
COUNT = st.integers(0, 10**6)
KIND_OF = {
    "str": TEXT,
    "str | None": st.none() | TEXT,
    "int": COUNT,
    "int | None": st.none() | COUNT,
    "float": NUMBER,
    "float | None": st.none() | NUMBER,
    "bool": st.booleans(),
    "Sequence[str] | None": st.none() | st.lists(TEXT, max_size=3),
    "Sequence[int]": st.lists(COUNT, max_size=4),
    "Sequence[float]": st.lists(NUMBER, max_size=4),
    "Sequence[Sequence[str]]": st.lists(st.lists(TEXT, min_size=2, max_size=2), max_size=3),
    "Mapping[str, Any]": st.dictionaries(TEXT, COUNT | TEXT | st.booleans(), max_size=3),
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    return KIND_OF[re.sub(r"(typing|collections\.abc)\.", "", hint.__name__ if isinstance(hint, type) else str(hint))]


def any_record() -> st.SearchStrategy[Any]:
    """A record of any kind, each field drawn by its annotation."""
    return st.one_of(
        [
            st.builds(kind, **{field.name: values_of(get_type_hints(kind)[field.name]) for field in fields(kind)})
            for kind in records._EVENTS.values()
        ]
    )


@settings(max_examples=300, deadline=None)
@given(any_record())
def test_a_record_comes_back_from_its_journal_line(record: Record) -> None:
    assert from_json(json.loads(json.dumps(as_json(record)))) == record


@settings(max_examples=100, deadline=None)
@given(any_record(), st.dictionaries(st.text("xyz", min_size=4), COUNT, max_size=2))
def test_fields_of_a_later_localsim_are_left_out(record: Record, more: dict[str, int]) -> None:
    assert from_json({**as_json(record), **more}) == record


@settings(max_examples=40, deadline=None)
@given(st.lists(any_record().filter(lambda record: not isinstance(record, RejectRecord)), max_size=12))
def test_the_same_records_twice_make_the_same_rows(many: list[Record]) -> None:
    """Taking a journal in again changes nothing: rows depend on the last record of each key."""
    ended = {record.episode_id for record in many if isinstance(record, EpisodeEnded)}
    begun = {record.episode_id for record in many if isinstance(record, EpisodeRecord)}
    many = [record for record in many if not (isinstance(record, EpisodeEnded) and ended - begun)]
    assert rows_of([*many, *many]) == rows_of(many)


def test_rows_have_the_columns_of_their_table() -> None:
    score = ScoreRecord("e", "style", "3", "turns", "", 4.0, None, "", (1, 2))
    leak = LeakRecord("e", "5", "f", 1, "Ana", "A fact.", "Bo", "disclosed", "omniscient", 0.9, 0.5, "w", True, False)
    written = GenerationRecord("e", 0, 0, 0, "Ana", 7, None, [["user", "h"]], "p", None, details={"max_tokens": 9})
    rows = rows_of([score, leak, written, RejectRecord("e", 0, "no name")])
    for name, found in rows.items():
        assert all(len(row) == len(TABLES[name].columns) for row in found)
    named = {name: dict(zip(TABLES[name].columns, found[0], strict=True)) for name, found in rows.items() if found}
    assert named["scores"]["turns_json"] == "[1, 2]"
    assert named["leaks"]["kind"] == "omniscient", "the record's kind is the event's, the column's is the leak's"
    assert named["generations"]["messages_json"] == '[["user", "h"]]'
    assert json.loads(named["generations"]["details_json"]) == {"max_tokens": 9}
    assert named["generations"]["malformed"] == "no name"


def test_a_run_that_died_is_interrupted_and_one_that_ended_is_not() -> None:
    run = RunRecord("r", "running", "2026-01-01T00:00:00", None, 1, "stable", 1, 1, "{}", "{}", "{}")
    status = list(TABLES["runs"].columns).index("status")
    assert rows_of([run, RunDied()])["runs"][0][status] == "interrupted"
    assert rows_of([run, RunEnded("finished", "2026-01-01T00:00:01"), RunDied()])["runs"][0][status] == "finished"


def test_a_journal_line_of_an_older_localsim_is_read(store: Store) -> None:
    """Lines as written before records were typed: more keys, `kind` of a leak, a thought of a generation."""
    turn = {"event": "turn", "episode_id": "e", "turn": 0, "speaker": "Ana", "action": "speak", "text": "Hi"}
    turn |= {"words": 1, "truncated": False, "generation": 0}
    leak = {"event": "leak", "episode_id": "e", "version": "4", "fact_id": "f", "turn": 0, "owner": "Ana", "fact": "F"}
    leak |= {"speaker": "Bo", "label": "hint", "kind": "self", "probability": 0.1, "similarity": 0.2}
    leak |= {"evidence": "x", "first": False, "early": False}
    assert isinstance(from_json({**turn, "forgotten": 1}), TurnRecord)
    read = from_json(leak)
    assert isinstance(read, LeakRecord) and read.kind == "self"
    with pytest.raises(KeyError):
        from_json({"no": "event"})
    with pytest.raises(TypeError):
        from_json({"event": "turn"})
    journal = Journal(store.path, "r")
    journal.append(read)
    journal.close(remove=False)
    assert [from_json(line) for line in read_journal(journal.path)] == [read]
