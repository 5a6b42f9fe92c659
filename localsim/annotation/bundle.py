"""Annotation without a server: one HTML file that a rater opens from disk, and the file of answers that it saves.

The page contains only what `items.shown` returns. Items are named by their keys, which reveal neither modes nor
attention items. Answers are checked against the items of the run before any of them is stored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from localsim.annotation.items import Item, PairItem, Task, every_item, find, shown
from localsim.annotation.records import MadeBy, answered, checked_kind, checked_rater, checked_task, short
from localsim.errors import InvalidInput, LocalsimError
from localsim.paths import json_value
from localsim.store.database import Store
from localsim.store.queries import annotation as queries
from localsim.store.records import AnswerRow

FORMAT = "localsim-annotations"
VERSION = 1
LARGEST = 20_000_000
"""Most bytes of a file of answers; the answers to a hundred conversations need about ten thousand."""
TITLES: dict[Task, str] = {
    "pairs": "Which conversation is more natural?",
    "dimensions": "How do people fare in these conversations?",
    "disclosures": "Where are private facts given away?",
}
"""Headings of pages."""
_ESCAPED = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def bundle(items: Sequence[Item], task: Task, rater: str, title: str, made_by: MadeBy = "person") -> str:
    """One HTML page that works from file:// without a network, and saves the answers as a JSON file.

    Raises InvalidInput without items, and for a rater's name that is not a pseudonym.
    """
    checked_rater(rater)
    if not items:
        raise InvalidInput("there is nothing to annotate", where=task, hint="localsim run SCENARIO --mode all")
    data = {
        "format": FORMAT,
        "version": VERSION,
        # A reader of the file cannot tell which conversation is of which run.
        "run_id": ",".join(sorted({episode.run_id for item in items for episode in item.episodes})),
        "task": task,
        "rater": rater,
        "made_by": made_by,
        "ties": any(item.ties for item in items if isinstance(item, PairItem)),
        "items": [shown(item) for item in items],
    }
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("localsim.annotation"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("annotate_bundle.html.j2").render(title=title, data=Markup(embedded(data)))


def embedded(data: Any) -> str:
    """JSON for a `<script type="application/json">`: no character in it can end the element or start markup."""
    return json.dumps(data).translate(_ESCAPED)


# ---- answers -------------------------------------------------------------------------------------------------------


def read_answers(path: Path, store: Store) -> list[AnswerRow]:
    """Read the answers of a file that a page has saved, and check each against the items of its run and rater.

    Stores nothing. Raises InvalidInput with the place in the file if the file does not come from a page, its run is not
    in the database, or the rater was not shown one of its items in this arrangement.
    """
    data = _parsed(path)
    for name, wanted in (("format", FORMAT), ("version", VERSION)):
        if data.get(name) != wanted:
            hint = "give the file that the page saved"
            raise InvalidInput(f"{name} is {short(data.get(name))}, not {wanted!r}", where=str(path), hint=hint)
    try:
        rater, task = checked_rater(_text(data, "rater")), checked_task(_text(data, "task"))
        runs = [_known_run(store, run_id) for run_id in _text(data, "run_id").split(",")]
        made_by = checked_kind(data.get("made_by"))
    except InvalidInput as error:
        raise _placed(error, str(path)) from error
    items = every_item(store, runs, task, rater, ties=data.get("ties") is True)
    answers = data.get("answers")
    if not isinstance(answers, list):
        raise InvalidInput("answers is not a list", where=str(path))
    found: dict[str, AnswerRow] = {}
    for number, answer in enumerate(answers):
        where = f"{path}: answers[{number}]"
        try:
            row = _answer(answer, items, made_by)
        except InvalidInput as error:
            raise _placed(error, where) from error
        if row.item_id in found:
            raise InvalidInput(f"answers item {answer['item']} a second time", where=where)
        found[row.item_id] = row
    return list(found.values())


def _parsed(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST:
            raise InvalidInput(f"larger than {LARGEST / 1e6:.0f} MB, so no page saved it", where=str(path))
        data = json_value(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise InvalidInput(f"not JSON: {error.msg}", where=f"{path}:{error.lineno}:{error.colno}") from error
    except ValueError as error:
        raise InvalidInput(f"not a file of answers: {error}", where=str(path)) from error
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", where=str(path)) from error
    if not isinstance(data, dict):
        raise InvalidInput("not a file of answers: not an object", where=str(path))
    return data


def _known_run(store: Store, run_id: str) -> str:
    if not queries.has_run(store, run_id):
        raise InvalidInput(
            f"the answers are about run {short(run_id)}, which is not in {store.path}",
            hint="choose the database with --db; localsim runs list shows its runs",
        )
    return run_id


def _answer(answer: Any, items: Sequence[Item], made_by: MadeBy) -> AnswerRow:
    if not isinstance(answer, dict):
        raise InvalidInput("not an object")
    item: Item = find(items, _text(answer, "item"))
    if "value" not in answer:
        raise InvalidInput("has no value")
    seconds, created = answer.get("seconds"), _time(answer.get("answered_utc"))
    value = answer["value"]
    return answered(item, value, origin="bundle", seconds=seconds, created_utc=created, made_by=made_by)


def _text(data: dict[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str):
        raise InvalidInput(f"{name} is {short(value)}, not a text")
    return value


def _time(value: Any) -> datetime:
    """A time such as 2026-01-31T12:00:00.000Z, as UTC without a time zone."""
    try:
        at = datetime.fromisoformat(value)
        return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"answered_utc is {short(value)}, not a time") from error


def _placed(error: LocalsimError, where: str) -> InvalidInput:
    """The same error, with its place in the file first."""
    own = f"{error.where}: " if error.where else ""
    return InvalidInput(f"{own}{error.message}", where=where, hint=error.hint)
