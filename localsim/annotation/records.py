"""Answers of raters: their checks and their storage, one row for each task, item and rater.

A second answer replaces the first, so that a double click or a second import changes nothing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from localsim.annotation.items import TASKS, DimensionItem, Item, PairItem, Task
from localsim.errors import InvalidInput
from localsim.evaluators.judge import DIMENSIONS
from localsim.store.database import Store
from localsim.store.queries import annotation as queries
from localsim.store.queries.annotation import Answer
from localsim.store.records import AnswerRow
from localsim.store.writer import Writers

Origin = Literal["browser", "terminal", "bundle"]
MadeBy = Literal["person", "language model"]
MADE_BY: tuple[MadeBy, ...] = get_args(MadeBy)
"""The kinds of raters. Without a statement a rater is a person."""

PATIENCE_S = 60.0
"""Seconds that an answer waits while a run or another program holds the database."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


# ---- checks --------------------------------------------------------------------------------------------------------


def checked_rater(name: str) -> str:
    """Return `name` if it is a pseudonym: 1 to 40 of A-Z, a-z, 0-9, _ and -. Raises InvalidInput."""
    wrong = (
        "" if _NAME.fullmatch(name) else f"{name[:60]!r} is not a pseudonym of 1 to 40 letters (a-z), digits, _ or -"
    )
    if "@" in name:
        wrong = "localsim stores pseudonyms of raters, never e-mail addresses"
    if wrong:
        raise InvalidInput(wrong, where="rater", hint="such as rater_01")
    return name


def checked_task(name: str) -> Task:
    """Return `name` if it is a task. Raises InvalidInput."""
    for task in TASKS:
        if name == task:
            return task
    raise InvalidInput(f"no task {name[:60]!r}", where="task", hint=f"the tasks are {', '.join(TASKS)}")


def checked_kind(name: Any) -> MadeBy:
    """Return `name` if it is a kind of rater; None is a person. Raises InvalidInput."""
    for kind in MADE_BY:
        if name == kind:
            return kind
    if name is None:
        return "person"
    raise InvalidInput(f"no kind of rater {short(name)}", where="made_by", hint=f"the kinds are {', '.join(MADE_BY)}")


def validated(item: Item, value: Any) -> Any:
    """Return `value` if it answers the item. Raises InvalidInput with the first problem.

    pairs: 1, 2, or 0 if ties are allowed. dimensions: an object with an integer in range or None (cannot say) for each
    dimension. disclosures: an object with the index of a turn or None (not disclosed) for each fact's id.
    """
    if isinstance(item, PairItem):
        allowed = (1, 2, 0) if item.ties else (1, 2)
        if not _is_whole(value) or value not in allowed:
            raise InvalidInput(f"{short(value)} is not {' or '.join(map(str, allowed))}", where="answer")
        return value
    if isinstance(item, DimensionItem):
        ranges = {name: range(low, high + 1) for name, (low, high, _) in DIMENSIONS.items()}
        return _marks(value, ranges, "dimension")
    turns = range(len(item.episode.turns))
    return _marks(value, {fact.id: turns for fact in item.facts}, "fact")


def _marks(value: Any, ranges: Mapping[str, range], what: str) -> dict[str, int | None]:
    """Return an object that has a whole number in range, or None, for each name. Raises InvalidInput."""
    if not isinstance(value, dict):
        raise InvalidInput(f"{short(value)} is not an object with a mark for each {what}", where="answer")
    if missing := [name for name in ranges if name not in value]:
        raise InvalidInput(f"no mark for {what} {', '.join(missing)}", where="answer")
    if unknown := [name for name in value if name not in ranges]:
        raise InvalidInput(f"no {what} is called {', '.join(map(short, unknown))}", where="answer")
    for name, marks in ranges.items():
        mark = value[name]
        if mark is not None and (not _is_whole(mark) or mark not in marks):
            limits = f"{marks.start} to {marks.stop - 1}"
            raise InvalidInput(f"{what} {name}: {short(mark)} is neither null nor {limits}", where="answer")
    return {name: value[name] for name in ranges}


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def short(value: Any) -> str:
    """Return the beginning of a value, for an error."""
    return repr(value)[:60]


def checked_seconds(value: Any) -> float | None:
    """Return the seconds on an item if they are a finite number from 0, or None. Raises InvalidInput."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InvalidInput(f"{short(value)} is not a time in seconds", where="seconds")
    return float(value)


def answered(
    item: Item,
    value: Any,
    *,
    origin: Origin,
    seconds: Any = None,
    created_utc: datetime | None = None,
    made_by: MadeBy = "person",
) -> AnswerRow:
    """Make the row of an answer to an item. Raises InvalidInput for a wrong value, rater or time."""
    return AnswerRow(
        task=item.task,
        item_id=item.item_id,
        rater=checked_rater(item.rater),
        run_id=item.run_id,
        value_json=_json(validated(item, value)),
        shown_json=_json(item.sides),
        attention=item.attention,
        seconds=checked_seconds(seconds),
        created_utc=created_utc or datetime.now(UTC).replace(tzinfo=None),
        origin=origin,
        made_by=made_by,
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


# ---- storing -------------------------------------------------------------------------------------------------------


def save(store: Store, answer: AnswerRow) -> None:
    """Store an answer; it replaces an earlier one to the same item by the same rater. Safe from many threads.

    Waits up to PATIENCE_S seconds while another program holds the database. Raises DatabaseError after that.
    """
    _writers.write(store, answer)


def _store(store: Store, answers: Sequence[AnswerRow]) -> None:
    queries.store_answers(store, answers, PATIENCE_S)


_writers: Writers[AnswerRow] = Writers(_store)


def save_all(store: Store, answers: Sequence[AnswerRow]) -> None:
    """Store answers that were given elsewhere, all or none; a stored answer that was given later stays.

    Raises as `save` does.
    """
    queries.store_answers(store, sorted(answers, key=lambda each: each.created_utc), PATIENCE_S, keep_later=True)


def undo(
    store: Store, task: Task, runs: str | Sequence[str], rater: str, among: Collection[str] | None = None
) -> str | None:
    """Remove the rater's latest answer in a task of some runs; return the item's id, or None without an answer.

    `among` are the ids of the items that may be undone; None means all of the runs. Waits and raises as `save` does.
    """
    return queries.remove_latest_answer(store, task, _several(runs), rater, PATIENCE_S, among)


def done(store: Store, task: Task, runs: str | Sequence[str], rater: str) -> set[str]:
    """The ids of the items that a rater has answered."""
    return queries.answered_items(store, task, _several(runs), rater)


def _several(runs: str | Sequence[str]) -> list[str]:
    return [runs] if isinstance(runs, str) else list(runs)


def value_of(store: Store, item: Item) -> Any:
    """The rater's answer to an item; None without one."""
    value = queries.answer_to(store, item.task, item.item_id, item.rater)
    return None if value is None else json.loads(value)


def rows(store: Store, runs: str | Sequence[str]) -> list[Answer]:
    """All answers of raters about conversations of some runs by task, item and rater.

    Bets of players are no answers of raters.
    """
    return [row for row in queries.answers_of_runs(store, _several(runs)) if row.task in TASKS]
