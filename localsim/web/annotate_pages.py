"""Annotation in the browser: one item at a time, blind, every answer stored at once, with undo."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from localsim.annotation import agreement, items, records
from localsim.annotation.items import Item, Selection, Task, of_run
from localsim.errors import InvalidInput
from localsim.reports.evidence import marks
from localsim.store.database import Store
from localsim.store.queries import pages as page_queries
from localsim.web.guard import SentForm
from localsim.web.render import page
from localsim.web.view_pages import store_of

ABOUT: dict[Task, str] = {
    "pairs": "which of two conversations sounds more natural",
    "dimensions": "seven ratings of one person in a conversation",
    "disclosures": "where private facts are disclosed",
}


def choose(request: Request) -> Response:
    """The form that asks for a run, a task and a pseudonym."""
    store = store_of(request)
    selection = request.app.state.selection
    if selection is not None:  # a name that says nothing about runs and conditions
        runs = [(selection.key, len(_talks(store.path, selection, _completed(store, selection))))]
    else:
        every = page_queries.newest_runs(store) if store.path.is_file() else []
        runs = [(run.run_id, run.completed) for run in every if run.completed]
    blind = "view" not in request.app.state.parts
    chosen = request.query_params.get("run", "")
    return page(request, "annotate/choose", runs=runs, chosen=chosen, about=ABOUT, blind=blind)


def begin(request: Request) -> Response:
    """Go from the form to the first item."""
    given = request.query_params
    task, rater = records.checked_task(given.get("task", "")), records.checked_rater(given.get("rater", ""))
    chosen = _selection(request, given.get("run", "@last"))
    ties = "&ties=1" if given.get("ties") else ""
    return RedirectResponse(f"/annotate/{chosen.key}/{task}?rater={rater}{ties}", 303)


def item(request: Request) -> Response:
    """The next item of a rater, or the one that `item` names, to be answered again."""
    store, chosen, task, rater, ties = _work(request)
    every = _items(store, chosen, task, rater, ties)
    done = records.done(store, task, chosen.runs, rater)
    key = request.query_params.get("item", "")
    current = items.find(every, key) if key else items.next_item(every, done)
    return page(
        request,
        "annotate/item" if current else "annotate/done",
        task=task,
        rater=rater,
        progress=items.progress(every, done),
        shown=items.shown(current) if current else None,
        value=records.value_of(store, current) if current else None,
        begun=f"{time.monotonic():.1f}",
        colours=marks.colours(current.episode.scenario.names) if current else {},
        address=_address(request, rater, ties),
    )


def answer(request: Request, form: SentForm) -> Response:
    """Store an answer, or undo the last one."""
    store, chosen, task, rater, ties = _work(request)
    address = _address(request, rater, ties)
    every = _items(store, chosen, task, rater, ties)
    if "undo" in form:
        count = items.progress(every, records.done(store, task, chosen.runs, rater)).done
        # The form names the number of answers that its page showed, so that a double click undoes one answer only.
        mine = [each.item_id for each in every]
        undone = records.undo(store, task, chosen.runs, rater, mine) if form["undo"] == str(count) else None
        again = next((candidate for candidate in every if candidate.item_id == undone), None)
        address += f"&item={again.key}" if again else ""
    else:
        current = items.find(every, form.get("item", ""))
        seconds = _seconds(form.get("begun", ""))
        records.save(store, records.answered(current, _value(task, form), origin="browser", seconds=seconds))
    return RedirectResponse(address, 303)


def _address(request: Request, rater: str, ties: bool) -> str:
    """The address of a rater's next item; no character of a pseudonym needs quoting."""
    return f"{request.url.path}?rater={rater}{'&ties=1' if ties else ''}"


def results(request: Request) -> Response:
    """The agreement of raters with each other, with judges and with the detector. Not on a server for raters."""
    store = store_of(request)
    run_id = store.run_id(request.path_params["run"])
    measured = agreement.agreement(store, run_id)
    sentences = agreement.sentences(measured) if measured.raters else []
    return page(request, "annotate/results", run_id=run_id, sentences=sentences)


def _work(request: Request) -> tuple[Store, Selection, Task, str, bool]:
    task = records.checked_task(request.path_params["task"])
    rater = records.checked_rater(request.query_params.get("rater", ""))
    chosen = _selection(request, request.path_params["run"])
    return store_of(request), chosen, task, rater, bool(request.query_params.get("ties"))


def _selection(request: Request, name: str) -> Selection:
    """The conversations that a name in an address stands for: the server's selection, or a run."""
    selection: Selection | None = request.app.state.selection
    if selection is not None and name == selection.key:
        return selection
    return of_run(store_of(request).run_id(name))


def _items(store: Store, chosen: Selection, task: Task, rater: str, ties: bool) -> Sequence[Item]:
    talks = _talks(store.path, chosen, _completed(store, chosen))
    every: Sequence[Item]
    if task == "pairs":
        every = items.pairs_from(talks, rater, chosen, ties=ties)
    else:
        every = (items.dimensions_from if task == "dimensions" else items.disclosures_from)(talks, rater)
    if not every:
        items.items_of(store, chosen, task, rater, ties=ties)  # raises InvalidInput with the reason
    return every


def _completed(store: Store, chosen: Selection) -> int:
    return sum(page_queries.run_of(store, run_id).completed for run_id in chosen.runs)


@lru_cache(maxsize=3)
def _talks(database: Path, chosen: Selection, completed: int) -> Sequence[items.RatedEpisode]:  # noqa: ARG001 - part of the key
    """The completed episodes of a selection, read once for all raters, and again after more have been completed."""
    return items.talks_of(Store(database), chosen)


def _value(task: Task, form: SentForm) -> Any:
    """The answer in a form; `records.answered` refuses a wrong one."""
    if task == "pairs":
        return _whole(form.get("value", ""))
    fields = {name.removeprefix("mark."): text for name, text in form.items() if name.startswith("mark.")}
    return {name: None if text == "none" else _whole(text) for name, text in fields.items()}


def _whole(text: str) -> int:
    try:
        return int(text[:9])
    except ValueError:
        raise InvalidInput("an answer is missing", hint="go back and choose one in every line") from None


def _seconds(begun: str) -> float | None:
    try:
        seconds = time.monotonic() - float(begun)
    except ValueError:
        return None
    return seconds if 0 <= seconds <= 24 * 3600 else None  # the computer was started anew
