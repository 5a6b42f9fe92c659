"""Records -> table rows. Pure: the same records always give the same rows.

Rows have the columns of `schema.TABLES`, in that order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from localsim.store.records import (
    ContentRecord,
    EpisodeEnded,
    EpisodeRecord,
    GenerationRecord,
    JudgementRecord,
    LeakRecord,
    Record,
    RejectRecord,
    RunDied,
    RunEnded,
    RunRecord,
    ScenarioRecord,
    ScoreRecord,
    TurnRecord,
    VectorRecord,
)
from localsim.store.schema import TABLES

Rows = dict[str, list[tuple[Any, ...]]]
_Tables = dict[str, dict[tuple[Any, ...], dict[str, Any]]]

_TABLE: dict[type[Any], str] = {
    RunRecord: "runs",
    ScenarioRecord: "scenarios",
    ContentRecord: "contents",
    EpisodeRecord: "episodes",
    TurnRecord: "turns",
    GenerationRecord: "generations",
    ScoreRecord: "scores",
    LeakRecord: "leaks",
    VectorRecord: "vectors",
    JudgementRecord: "judgements",
}
"""The table of each record that is a row by itself."""
_JSON = {"messages": "messages_json", "details": "details_json", "turns": "turns_json"}
"""Fields that are stored as JSON text under another name."""
_RENAMED = {"leak": "kind"}


def rows_of(records: Sequence[Record]) -> Rows:
    """Rows by table. An episode without an end is `interrupted`; a later record of the same row replaces an earlier."""
    tables: _Tables = {name: {} for name in TABLES}
    for record in records:
        _take(tables, record)
    for row in tables["episodes"].values():
        row["turns"] = max(row["turns"], sum(key[0] == row["episode_id"] for key in tables["turns"]))
    return {
        name: [tuple(row.get(column) for column in TABLES[name].columns) for row in rows.values()]
        for name, rows in tables.items()
    }


def _take(tables: _Tables, record: Record) -> None:
    if isinstance(record, RunEnded):
        for run in tables["runs"].values():
            run |= vars(record)
    elif isinstance(record, RunDied):
        for run in tables["runs"].values():
            if run["status"] == "running":
                run["status"] = "interrupted"
    elif isinstance(record, EpisodeEnded):
        tables["episodes"].setdefault((record.episode_id,), {}).update(vars(record))
    elif isinstance(record, RejectRecord):
        tables["generations"][record.episode_id, record.generation]["malformed"] = record.reason
    else:
        name = _TABLE[type(record)]
        row = _row(record)
        tables[name][tuple(row[column] for column in TABLES[name].key)] = row


def _row(record: Record) -> dict[str, Any]:
    if isinstance(record, EpisodeRecord):
        return {"status": "interrupted", "turns": 0, **vars(record)}
    if isinstance(record, TurnRecord | VectorRecord):  # by far the most; they have nothing to rename
        return vars(record)
    row = {_RENAMED.get(name, name): value for name, value in vars(record).items()}
    for name, column in _JSON.items():
        if name in row and column in TABLES[_TABLE[type(record)]].columns:
            row[column] = json.dumps({} if row[name] is None else row.pop(name))
    return row
