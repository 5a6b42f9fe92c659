"""Annotation in the browser: one item at a time, blind, every answer stored at its click, with undo."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from localsim.annotation import agreement, items, records
from localsim.annotation.items import Item, Task
from localsim.errors import InvalidInput
from localsim.reports import marks
from localsim.store.database import Store
from localsim.web import view_data
from localsim.web.guard import checked_form
from localsim.web.render import page
from localsim.web.view_pages import store_of

ABOUT: dict[Task, str] = {
    "pairs": "which of two talks sounds more natural",
    "dimensions": "seven dimensions of one person in one talk",
    "disclosures": "where private facts are given away",
}
_MAKERS: dict[Task, Callable[..., Sequence[Item]]] = {
    "pairs": items.pairs_from,
    "dimensions": items.dimensions_from,
    "disclosures": items.disclosures_from,
}


def choose(request: Request) -> Response:
    """Who rates what."""
    store = store_of(request)
    runs = [run for run in view_data.runs(store) if run["completed"]] if store.path.is_file() else []
    blind = "view" not in request.app.state.parts
    return page(request, "annotate", runs=runs, chosen=request.query_params.get("run", ""), about=ABOUT, blind=blind)


def begin(request: Request) -> Response:
    """From the form to the first item."""
    given = request.query_params
    task, rater = records.checked_task(given.get("task", "")), records.checked_rater(given.get("rater", ""))
    run_id = store_of(request).run_id(given.get("run", "@last"))
    ties = "&ties=1" if given.get("ties") else ""
    return RedirectResponse(f"/annotate/{run_id}/{task}?rater={rater}{ties}", 303)


def item(request: Request) -> Response:
    """The next item of a rater, or the one that `item` names, to be answered again."""
    store, run_id, task, rater, ties = _work(request)
    every = _items(store, run_id, task, rater, ties)
    done = records.done(store, task, run_id, rater)
    key = request.query_params.get("item", "")
    current = items.find(every, key) if key else items.next_item(every, done)
    return page(
        request,
        "annotate_item" if current else "annotate_done",
        task=task,
        rater=rater,
        progress=items.progress(every, done),
        shown=items.shown(current) if current else None,
        value=records.value_of(store, current) if current else None,
        begun=f"{time.time():.1f}",
        colours=marks.colours(current.episode.scenario.names) if current else {},
        address=_address(request, rater, ties),
    )


async def answer(request: Request) -> Response:
    """Store an answer, or take the last one back."""
    form = checked_form(request, (await request.form()).items())
    return await run_in_threadpool(_answer, request, form)


def _answer(request: Request, form: dict[str, str]) -> Response:
    store, run_id, task, rater, ties = _work(request)
    address = _address(request, rater, ties)
    every = _items(store, run_id, task, rater, ties)
    if "undo" in form:
        count = items.progress(every, records.done(store, task, run_id, rater)).done
        # The form says how many answers its page knew of, so that a second click takes nothing more back.
        undone = records.undo(store, task, run_id, rater) if form["undo"] == str(count) else None
        again = next((each for each in every if each.item_id == undone), None)
        address += f"&item={again.key}" if again else ""
    else:
        current = items.find(every, form.get("item", ""))
        seconds = _seconds(form.get("begun", ""))
        records.save(store, records.answered(current, _value(task, form), origin="browser", seconds=seconds))
    return RedirectResponse(address, 303)


def _address(request: Request, rater: str, ties: bool) -> str:
    """The page of a rater's next item; a pseudonym has nothing in it that must be quoted."""
    return f"{request.url.path}?rater={rater}{'&ties=1' if ties else ''}"


def results(request: Request) -> Response:
    """How far raters agree, with each other and with judges and detector. Not on a server for raters."""
    store = store_of(request)
    run_id = store.run_id(request.path_params["run"])
    found = agreement.agreement(store, run_id)
    told = agreement.sentences(found) if found["raters"] else []
    return page(request, "annotate_results", run_id=run_id, sentences=told)


def _work(request: Request) -> tuple[Store, str, Task, str, bool]:
    store = store_of(request)
    task = records.checked_task(request.path_params["task"])
    rater = records.checked_rater(request.query_params.get("rater", ""))
    return store, store.run_id(request.path_params["run"]), task, rater, bool(request.query_params.get("ties"))


def _items(store: Store, run_id: str, task: Task, rater: str, ties: bool) -> Sequence[Item]:
    """A rater's items."""
    completed = store.rows("SELECT completed FROM v_runs WHERE run_id = ?", [run_id])[0]["completed"]
    options = {"ties": ties} if task == "pairs" else {}
    found = _MAKERS[task](_talks(store.path, run_id, completed), rater, **options)
    if not found:
        items.items_of(store, run_id, task, rater, ties=ties)  # says what is missing
    return found


@lru_cache(maxsize=3)
def _talks(database: Path, run_id: str, completed: int) -> Sequence[items.Talk]:  # noqa: ARG001 - part of the key
    """The talks of a run, once for all raters; read again where more have been completed."""
    return items.talks_of(Store(database), run_id)


def _value(task: Task, form: dict[str, str]) -> Any:
    """The answer in a form; `records.validated` says whether it is one."""
    if task == "pairs":
        return _whole(form.get("value", ""))
    fields = {name.removeprefix("mark."): text for name, text in form.items() if name.startswith("mark.")}
    return {name: None if text == "none" else _whole(text) for name, text in fields.items()}


def _whole(text: str) -> int:
    try:
        return int(text[:9])
    except ValueError:
        raise InvalidInput("an answer is missing", hint="go back and choose one for every line") from None


def _seconds(begun: str) -> float | None:
    try:
        return max(0.0, min(24 * 3600.0, time.time() - float(begun)))
    except ValueError:
        return None
