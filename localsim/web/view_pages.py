"""The viewer: runs, the matrix of a run, a transcript with its private sides, what was seen at a turn, SQL."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from localsim.errors import InvalidInput
from localsim.evaluators.leaks import by_name
from localsim.reports.card import card
from localsim.reports.html import examples, render
from localsim.reports.report import detector_accuracy, report
from localsim.store.database import Store
from localsim.store.episodes import prompt_of
from localsim.web import view_data
from localsim.web.render import page

_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'"
"""The report is one file with its styles in it, and has no script."""
_WORDS = 80


def store_of(request: Request) -> Store:
    """The database of this server."""
    store = request.app.state.store
    assert isinstance(store, Store)
    return store


def runs(request: Request) -> Response:
    """All runs, newest first."""
    store = store_of(request)
    found = view_data.runs(store) if store.path.is_file() else []
    return page(request, "runs", runs=found, database=str(store.path))


def run(request: Request) -> Response:
    """The matrix of a run, filtered."""
    store = store_of(request)
    run_id = store.run_id(request.path_params["run"])
    chosen = _filter(request)
    found = view_data.matrix(store, run_id, chosen)
    row = next(each for each in store.rows("SELECT * FROM v_runs WHERE run_id = ?", [run_id]))
    fields = {name: getattr(chosen, name) for name in ("family", "mode", "status", "outcome", "leaks", "words")}
    query = urlencode({name: value for name, value in fields.items() if value})
    return page(
        request,
        "run",
        run=row,
        live=row["status"] == "running",
        matrix=found,
        filter=chosen,
        choices={"family": view_data.families(store, run_id), **view_data.CHOICES},
        query=query,
    )


def _filter(request: Request) -> view_data.Filter:
    given = request.query_params
    number = given.get("page", "1")
    if not (number.isascii() and number.isdecimal()) or not 1 <= int(number[:9]) <= 1_000_000:
        raise InvalidInput("page is a number from 1", hint="leave it out")
    choices = {name: given.get(name, "") for name in view_data.CHOICES}
    for name, value in choices.items():
        if value and value not in view_data.CHOICES[name]:
            raise InvalidInput(f"{name} cannot be {value[:40]!r}", hint=f"one of {', '.join(view_data.CHOICES[name])}")
    return view_data.Filter(
        family=given.get("family", "")[:_WORDS], words=given.get("words", "")[:_WORDS], page=int(number[:9]), **choices
    )


def live(request: Request) -> Response:
    """The part of a run's page that shows what is being written now."""
    store = store_of(request)
    run_id = store.run_id(request.path_params["run"])
    row = store.rows("SELECT * FROM v_runs WHERE run_id = ?", [run_id])[0]
    return page(request, "live", run=row, talks=view_data.live(store, run_id))


def report_page(request: Request) -> Response:
    """The report with its card, as `localsim report -o` writes it."""
    store = store_of(request)
    run_id = store.run_id(request.path_params["run"])
    data = report(store, run_id)
    data["card"] = card(store, run_id, data=data)
    # The page stands by itself as a file; in the viewer it gets a way back.
    way_back = f'<body>\n<p><a href="/runs/{run_id}">‹ run {run_id}</a></p>'
    html = render(data, examples(store, run_id)).replace("<body>", way_back, 1)
    return HTMLResponse(html, headers={"content-security-policy": _REPORT_POLICY})


def episode(request: Request) -> Response:
    """A transcript with the private sides beside it, leaks with their evidence, scores with their reasons."""
    store = store_of(request)
    found = view_data.talk(store, request.path_params["episode"])
    before, after = view_data.neighbours(store, found.episode)
    return page(
        request,
        "episode",
        talk=found,
        episode=found.episode,
        timeline=view_data.timeline(found),
        errs=None if by_name(found.episode.scenario) or not found.looked else detector_accuracy().get("pairs"),
        judged=view_data.judged(store, found.episode.episode_id),
        before=before,
        after=after,
    )


def turn(request: Request) -> Response:
    """What the speaker of a turn was given, word for word, and all that was written for it."""
    store = store_of(request)
    episode_id, given = request.path_params["episode"], request.path_params["turn"]
    found = view_data.talk(store, episode_id)
    if not (given.isascii() and given.isdecimal() and len(given) < 9):
        raise InvalidInput("there is no such turn", hint="the transcript has links to all of them")
    number = int(given)
    messages = prompt_of(store, episode_id, number)
    attempts = view_data.attempts(store, episode_id, number)
    return page(
        request,
        "turn",
        episode=found.episode,
        number=number,
        messages=messages,
        attempts=attempts,
        count=len(found.turns),
    )


def judgements(request: Request) -> Response:
    """What judges were asked about an episode, word for word, and what they answered."""
    store = store_of(request)
    found = view_data.talk(store, request.path_params["episode"])
    asked = view_data.judgements(store, found.episode.episode_id)
    return page(request, "judgements", episode=found.episode, asked=asked)


def compare(request: Request) -> Response:
    """Two episodes side by side."""
    store = store_of(request)
    ids = [request.query_params.get(name, "") for name in ("a", "b")]
    talks = [view_data.talk(store, each) for each in ids]
    first, second = (each.episode for each in talks)
    same = first.scenario.hash == second.scenario.hash and first.seed == second.seed
    return page(request, "compare", talks=talks, same=same)


def sql(request: Request) -> Response:
    """A query, its result as a table and a chart."""
    query = request.query_params.get("q", "").strip()
    values: dict[str, Any] = {"query": query, "answer": None, "problem": "", "worked": view_data.worked_queries()}
    status = 200
    if query:
        try:
            values["answer"] = view_data.ask(store_of(request), query)
        except InvalidInput as error:
            values["problem"] = error.message
            status = 400
    return page(request, "sql", status, limit=view_data.SQL_ROWS, **values)
