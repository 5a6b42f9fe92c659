"""Journal events -> table rows. Pure: the same events always give the same rows.

Rows have the columns of `migrations.TABLES`, in that order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from localsim.store.journal import Event
from localsim.store.migrations import TABLES

Rows = dict[str, list[tuple[Any, ...]]]


def rows_of(events: Sequence[Event]) -> Rows:
    """Rows by table. Episodes without an end are `interrupted`; of two events about one thing the later one counts."""
    found: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {name: {} for name in TABLES}
    for event in events:
        _take(found, event)
    for row in found["episodes"].values():
        row["turns"] = max(row["turns"], sum(key[0] == row["episode_id"] for key in found["turns"]))
    return {
        name: [tuple(row.get(column) for column in TABLES[name][1]) for row in rows.values()]
        for name, rows in found.items()
    }


def _take(found: dict[str, dict[tuple[Any, ...], dict[str, Any]]], event: Event) -> None:
    kind = event["event"]
    row = {key: value for key, value in event.items() if key != "event"}
    if kind == "run":
        found["runs"][(row["run_id"],)] = row
    elif kind in ("run_ended", "run_died"):
        for run in found["runs"].values():
            if kind == "run_ended":
                run |= row
            elif run["status"] == "running":
                run["status"] = "interrupted"
    elif kind == "scenario":
        found["scenarios"][(row["scenario_hash"],)] = row
    elif kind == "content":
        found["contents"][(row["content_hash"],)] = row
    elif kind == "episode":
        found["episodes"][(row["episode_id"],)] = {"status": "interrupted", "turns": 0, **row}
    elif kind == "episode_ended":
        found["episodes"].setdefault((row["episode_id"],), {}).update(row)
    elif kind == "turn":
        found["turns"][(row["episode_id"], row["turn"])] = row
    elif kind == "generation":
        found["generations"][(row["episode_id"], row["generation"])] = {
            **row,
            "messages_json": json.dumps(row["messages"]),
            "details_json": json.dumps(row["details"]),
        }
    elif kind == "reject":
        found["generations"][(row["episode_id"], row["generation"])]["malformed"] = row["reason"]
    elif kind == "score":
        key = (row["episode_id"], row["evaluator"], row["version"], row["name"], row["agent"])
        found["scores"][key] = {**row, "turns_json": json.dumps(row["turns"])}
    elif kind == "judgement":
        judged = (row["episode_id"], row["evaluator"], row["version"], row["name"], row["agent"], row["sample"])
        found["judgements"][judged] = {**row, "details_json": json.dumps(row["details"])}
    elif kind == "leak":
        found["leaks"][(row["episode_id"], row["version"], row["fact_id"], row["turn"])] = row
    elif kind == "vector":
        found["vectors"][(row["text_hash"], row["model"])] = row
