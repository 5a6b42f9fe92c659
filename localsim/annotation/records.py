"""Answers of raters: what may be answered, and how it is stored, one row for each task, item and rater.

Answering again replaces the answer, so that a double click or a second import changes nothing.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from localsim.annotation.items import TASKS, DimensionItem, Item, PairItem, Task
from localsim.errors import InvalidInput, LocalsimError
from localsim.evaluators.judge import DIMENSIONS
from localsim.store.database import Store
from localsim.store.migrations import TABLES

Origin = Literal["browser", "terminal", "bundle"]
Row = dict[str, Any]

PATIENCE_S = 60.0
"""How long an answer waits while a run or another program holds the database."""
_LIST = threading.Lock()
"""Guards `_waiting` and `_writing` for the moment of a change."""
_COLUMNS = tuple(TABLES["annotations"][1])
_KEY = ("task", "item_id", "rater")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


def now() -> datetime:
    """The time in UTC, without a time zone, as it is stored."""
    return datetime.now(UTC).replace(tzinfo=None)


@dataclass(frozen=True)
class Annotation:
    """An answer of one rater to one item."""

    task: Task
    item_id: str
    rater: str
    run_id: str
    value: Any
    """pairs: 1, 2 or 0; dimensions: {dimension: score or None}; disclosures: {fact id: turn or None}."""
    shown: Mapping[str, str]
    """`sides` of the item."""
    attention: bool
    origin: Origin
    seconds: float | None = None
    """Time on the item."""
    created_utc: datetime = field(default_factory=now)
    """UTC, without a time zone."""

    def row(self) -> tuple[Any, ...]:
        """Its columns in the order of `migrations.TABLES`."""
        given = {**vars(self), "value_json": _json(self.value), "shown_json": _json(dict(self.shown))}
        return tuple(given[column] for column in _COLUMNS)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


# ---- what may be answered ------------------------------------------------------------------------------------------


def checked_rater(name: str) -> str:
    """`name` where it is a pseudonym: 1 to 40 of A-Z, a-z, 0-9, _ and -. Raises InvalidInput."""
    if "@" in name:
        raise InvalidInput(
            "an e-mail address is not stored; raters have pseudonyms only", where="rater", hint="such as rater_01"
        )
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name[:60]!r} is no pseudonym: it has 1 to 40 letters (a-z), digits, _ or -",
            where="rater",
            hint="such as rater_01",
        )
    return name


def checked_task(name: str) -> Task:
    """`name` where it is a task. Raises InvalidInput."""
    for task in TASKS:
        if name == task:
            return task
    raise InvalidInput(f"no task {name[:60]!r}", where="task", hint=f"there are {', '.join(TASKS)}")


def validated(task: Task, item: Item, value: Any) -> Any:
    """`value` where it answers the item. Raises InvalidInput naming what is wrong.

    pairs: 1, 2, or 0 where ties are allowed. dimensions: an object with every dimension, an integer in its range or
    None (cannot say). disclosures: an object with every fact's id, the index of a turn or None (not disclosed).
    """
    if task != item.task:
        raise InvalidInput(f"an answer for {task} to an item of {item.task}", where=item.key)
    if isinstance(item, PairItem):
        allowed = (1, 2, 0) if item.ties else (1, 2)
        if not _is_whole(value) or value not in allowed:
            raise InvalidInput(f"{_short(value)} is not {_listed(allowed)}", where="answer")
        return value
    if isinstance(item, DimensionItem):
        ranges = {name: range(low, high + 1) for name, (low, high, _) in DIMENSIONS.items()}
        return _marks(value, ranges, "dimension")
    turns = range(len(item.episode.turns))
    return _marks(value, {fact.id: turns for fact in item.facts}, "fact")


def _marks(value: Any, ranges: Mapping[str, range], what: str) -> dict[str, int | None]:
    """An object with one whole number in its range, or None, for each name."""
    if not isinstance(value, dict):
        raise InvalidInput(f"{_short(value)} is not an object with a mark for each {what}", where="answer")
    if missing := [name for name in ranges if name not in value]:
        raise InvalidInput(f"no mark for {what} {', '.join(missing)}", where="answer")
    if unknown := [name for name in value if name not in ranges]:
        raise InvalidInput(f"no {what} is called {', '.join(map(_short, unknown))}", where="answer")
    for name, marks in ranges.items():
        mark = value[name]
        if mark is not None and (not _is_whole(mark) or mark not in marks):
            limits = f"{marks.start} to {marks.stop - 1}"
            raise InvalidInput(f"{what} {name}: {_short(mark)} is neither null nor {limits}", where="answer")
    return {name: value[name] for name in ranges}


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _listed(values: Sequence[int]) -> str:
    return " or ".join(map(str, values))


def _short(value: Any) -> str:
    return repr(value)[:60]


def checked_seconds(value: Any) -> float | None:
    """Seconds on an item: a finite number from 0, or None. Raises InvalidInput."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InvalidInput(f"{_short(value)} is no time in seconds", where="seconds")
    return float(value)


def answered(
    item: Item, value: Any, *, origin: Origin, seconds: Any = None, created_utc: datetime | None = None
) -> Annotation:
    """The annotation that an answer to an item makes. Raises InvalidInput where value, rater or seconds are wrong."""
    return Annotation(
        task=item.task,
        item_id=item.item_id,
        rater=checked_rater(item.rater),
        run_id=item.episode.run_id,
        value=validated(item.task, item, value),
        shown=item.sides,
        attention=item.attention,
        origin=origin,
        seconds=checked_seconds(seconds),
        created_utc=created_utc or now(),
    )


# ---- storing -------------------------------------------------------------------------------------------------------


def save(store: Store, annotation: Annotation) -> None:
    """Store an answer; it replaces an earlier one to the same item by the same rater. Safe from many threads.

    Waits up to PATIENCE_S seconds while somebody else holds the database. Raises DatabaseError after that.
    """
    own = _Waiting(store.path, annotation, Future())
    with _LIST:
        _waiting.append(own)
        leads = store.path not in _writing
        _writing.add(store.path)
    if leads:
        _write_waiting(store)
    own.written.result()


class _Waiting(NamedTuple):
    path: Path
    annotation: Annotation
    written: Future[None]


_waiting: list[_Waiting] = []
"""Answers that no thread has written yet. The first that finds nobody writing writes what the others bring, too:
opening the database takes longer than many rows do, and thirty raters who click at once are not to wait for thirty.
"""
_writing: set[Path] = set()
"""Databases to which a thread is writing what waits."""


def _write_waiting(store: Store) -> None:
    """Write until nothing waits. What cannot be written is told to those who wait for it."""
    batch: list[_Waiting] = []
    try:
        while batch := _taken(store.path):
            _write(store, [each.annotation for each in batch], "")
            for each in batch:
                each.written.set_result(None)
    except BaseException as error:
        for each in [*batch, *_taken(store.path, last=True)]:
            if not each.written.done():
                each.written.set_exception(error)
        if not isinstance(error, LocalsimError):
            raise


def _taken(path: Path, *, last: bool = False) -> list[_Waiting]:
    """Take what waits for a database; where that is nothing or the `last`, nobody is writing any more."""
    with _LIST:
        batch = [each for each in _waiting if each.path == path]
        _waiting[:] = [each for each in _waiting if each.path != path]
        if last or not batch:
            _writing.discard(path)
    return batch


def save_all(store: Store, annotations: Sequence[Annotation]) -> None:
    """Store what was answered elsewhere, all or nothing; an answer that is here already and later stays.

    Raises as `save` does.
    """
    ordered = sorted(annotations, key=lambda each: each.created_utc)
    _write(store, ordered, " WHERE excluded.created_utc >= annotations.created_utc")


_ROWS = 500
"""Answers in one statement."""


def _write(store: Store, annotations: Sequence[Annotation], where: str) -> None:
    # One statement may not meet the same key twice; of two answers to one item the last one counts.
    rows = list({(found.task, found.item_id, found.rater): found.row() for found in annotations}.values())
    if not rows:
        return
    place = f"({', '.join('?' for _ in _COLUMNS)})"
    changed = ", ".join(f"{column} = excluded.{column}" for column in _COLUMNS if column not in _KEY)
    with store.writing(PATIENCE_S) as connection:
        # An error closes the connection, and with it what was begun is undone.
        connection.begin()
        for start in range(0, len(rows), _ROWS):
            part = rows[start : start + _ROWS]
            connection.execute(
                f"INSERT INTO annotations ({', '.join(_COLUMNS)}) VALUES {', '.join([place] * len(part))} "
                f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET {changed}{where}",
                [value for row in part for value in row],
            )
        connection.commit()


def undo(store: Store, task: Task, run_id: str, rater: str) -> str | None:
    """Remove the rater's latest answer in a task of a run; returns the item's id, None where there was no answer.

    Waits and raises as `save` does.
    """
    with store.writing(PATIENCE_S) as connection:
        row = connection.execute(
            "DELETE FROM annotations WHERE task = $1 AND rater = $3 AND item_id = (SELECT item_id FROM annotations "
            "WHERE task = $1 AND run_id = $2 AND rater = $3 ORDER BY created_utc DESC, item_id LIMIT 1) "
            "RETURNING item_id",
            [task, run_id, rater],
        ).fetchone()
    return str(row[0]) if row else None


def done(store: Store, task: Task, run_id: str, rater: str) -> set[str]:
    """Ids of the items that a rater has answered."""
    query = "SELECT item_id FROM annotations WHERE task = ? AND run_id = ? AND rater = ?"
    return {row["item_id"] for row in store.rows(query, [task, run_id, rater])}


def value_of(store: Store, item: Item) -> Any:
    """What the rater has answered to an item; None where nothing."""
    query = "SELECT value_json FROM annotations WHERE task = ? AND item_id = ? AND rater = ?"
    found = store.rows(query, [item.task, item.item_id, item.rater])
    return json.loads(found[0]["value_json"]) if found else None


def rows(store: Store, run_id: str) -> list[Row]:
    """All answers about a run: the columns of v_annotations, with `value` and `shown` read from their JSON.

    Ordered by task, item and rater.
    """
    found = store.rows("SELECT * FROM v_annotations WHERE run_id = ? ORDER BY task, item_id, rater", [run_id])
    for row in found:
        row["value"] = json.loads(row.pop("value_json"))
        row["shown"] = json.loads(row.pop("shown_json"))
    return found
