"""Records -> table rows. Pure: the same records always give the same rows.

Rows have the columns of `schema.TABLES`, in that order.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from localsim.store.records import EpisodeEnded, EpisodeRecord, Record, RejectRecord, RunDied, RunEnded, TurnRecord
from localsim.store.schema import COLUMNS, TABLES

Rows = dict[str, list[tuple[Any, ...]]]
_Tables = dict[str, dict[tuple[Any, ...], dict[str, Any]]]


def rows_of(records: Sequence[Record]) -> Rows:
    """Return rows by table. An episode without an end is `interrupted`; a later record replaces an earlier one."""
    tables: _Tables = {name: {} for name in TABLES}
    for record in records:
        _take(tables, record)
    turns = Counter(episode_id for episode_id, _ in tables["turns"])
    for row in tables["episodes"].values():
        row["turns"] = max(row["turns"], turns[row["episode_id"]])
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
        row = _row(record)
        tables[record.table][tuple(row[column] for column in TABLES[record.table].key)] = row


def _row(record: Record) -> dict[str, Any]:
    row = {} if not isinstance(record, EpisodeRecord) else {"status": "interrupted", "turns": 0}
    for name, column in COLUMNS[type(record)].items():
        value = getattr(record, name)
        if value is None:  # of a journal line by another version, if the column may not be NULL
            row[column.name] = column.default
        else:
            row[column.name] = json.dumps(value) if column.is_json else value
    if isinstance(record, TurnRecord) and record.beat is None:
        row["beat"] = record.turn
    return row


_ROWS = 200
"""Rows in one INSERT."""


def inserts(tables: Rows) -> Iterator[tuple[str, list[Any]]]:
    """Yield statements with their values that write the rows, each for many of them: one for each takes 30 times as
    long. A row replaces the one with its key.
    """
    for table, rows in tables.items():
        columns = TABLES[table].columns
        places = f"({', '.join('?' for _ in columns)})"
        for start in range(0, len(rows), _ROWS):
            part = rows[start : start + _ROWS]
            values = ", ".join([places] * len(part))
            statement = f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES {values}"
            yield statement, [value for row in part for value in row]
