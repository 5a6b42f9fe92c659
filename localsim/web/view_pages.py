"""The viewer: runs, the matrix of a run, an episode with its private sides, the prompt of a turn, judgements, SQL."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from localsim.errors import InvalidInput
from localsim.families import family_of
from localsim.reports.card import card
from localsim.reports.html import examples, render
from localsim.reports.report import report
from localsim.reports.validity.thresholds import labels_of, sentences, thresholds
from localsim.store.database import Store
from localsim.store.episodes import prompt_of
from localsim.store.queries import pages as page_queries
from localsim.web import view_data
from localsim.web.render import page

_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'"
"""The report is one file that holds its own styles, and has no script."""
_LONGEST_WORDS = 80


def store_of(request: Request) -> Store:
    """The database of this server."""
    store = request.app.state.store
    assert isinstance(store, Store)
    return store


def runs(request: Request) -> Response:
    """All runs, newest first."""
    store = store_of(request)
    rows = view_data.runs(store) if store.path.is_file() else []
    return page(request, "view/runs", runs=rows, database=str(store.path))


def run(request: Request) -> Response:
    """The matrix of a run, filtered."""
    store = store_of(request)
    run_id = store.run_id(request.path_params["run"])
    chosen = _filter(request)
    row = page_queries.run_with_counts(store, run_id)
    fields = {name: getattr(chosen, name) for name in ("family", "mode", "status", "outcome", "leaks", "words")}
    query = urlencode({name: value for name, value in fields.items() if value})
    return page(
        request,
        "view/run",
        run=row,
        live=row["status"] == "running",
        matrix=view_data.matrix(store, run_id, chosen),
        filter=chosen,
        choices={"family": page_queries.families_of_run(store, run_id), **view_data.CHOICES},
        query=query,
    )


def _filter(request: Request) -> page_queries.EpisodeFilter:
    given = request.query_params
    number = given.get("page", "1")
    if not (number.isascii() and number.isdecimal()) or not 1 <= int(number[:9]) <= 1_000_000:
        raise InvalidInput("page must be a number from 1", hint="leave it out")
    choices = {name: given.get(name, "") for name in view_data.CHOICES}
    for name, value in choices.items():
        if value and value not in view_data.CHOICES[name]:
            raise InvalidInput(f"{name} cannot be {value[:40]!r}", hint=f"one of {', '.join(view_data.CHOICES[name])}")
    return page_queries.EpisodeFilter(
        family=given.get("family", "")[:_LONGEST_WORDS],
        words=given.get("words", "")[:_LONGEST_WORDS],
        page=int(number[:9]),
        **choices,
    )


def live(request: Request) -> Response:
    """The part of a run's page that shows the episodes in progress."""
    store = store_of(request)
    run_id = store.run_id(request.path_params["run"])
    row = page_queries.run_with_counts(store, run_id)
    return page(request, "view/live", run=row, episodes=view_data.live(store, run_id))


def report_page(request: Request) -> Response:
    """The report with its card, the same as `localsim report -o` writes."""
    store = store_of(request)
    run_id = store.run_id(request.path_params["run"])
    data = report(store, run_id)
    data["card"] = card(store, run_id, data=data)
    # The report is made to be read as a file of its own; in the viewer it gets a link back.
    way_back = f'<body>\n<p><a href="/runs/{run_id}">‹ run {run_id}</a></p>'
    html = render(data, examples(store, run_id)).replace("<body>", way_back, 1)
    return HTMLResponse(html, headers={"content-security-policy": _REPORT_POLICY})


def episode(request: Request) -> Response:
    """The turns with the private sides beside them, leaks with their evidence, scores with their reasons."""
    store = store_of(request)
    marked = view_data.marked_episode(store, request.path_params["episode"])
    stored = marked.episode
    before, after = page_queries.neighbours(store, stored.run_id, stored.episode_id)
    by_wording = marked.scored_for_leaks and not family_of(stored.scenario.family).terms_disclose
    used = thresholds(store, stored.run_id) if by_wording else []
    usual = all(labels_of(row) is None for row in used)
    return page(
        request,
        "view/episode",
        marked=marked,
        episode=stored,
        timeline=view_data.timeline(marked),
        accuracy=used[0]["accuracy"].get("pairs") if used and usual else None,
        found_with=[] if usual else sentences(used),
        judgement_count=page_queries.judgement_count(store, stored.episode_id),
        before=before,
        after=after,
    )


def turn(request: Request) -> Response:
    """The prompt of a turn, word for word, and every generation for it."""
    store = store_of(request)
    episode_id, given = request.path_params["episode"], request.path_params["turn"]
    marked = view_data.marked_episode(store, episode_id)
    if not (given.isascii() and given.isdecimal() and len(given) < 9):
        raise InvalidInput("there is no such turn", hint="the episode's page has links to all of them")
    number = int(given)
    return page(
        request,
        "view/turn",
        episode=marked.episode,
        number=number,
        messages=prompt_of(store, episode_id, number),
        attempts=page_queries.attempts(store, episode_id, number),
        count=len(marked.turns),
    )


def judgements(request: Request) -> Response:
    """The questions that judges were asked about an episode, word for word, and their replies."""
    store = store_of(request)
    stored = view_data.marked_episode(store, request.path_params["episode"]).episode
    return page(
        request, "view/judgements", episode=stored, judgements=page_queries.judgements(store, stored.episode_id)
    )


def compare(request: Request) -> Response:
    """Two episodes side by side."""
    store = store_of(request)
    both = [view_data.marked_episode(store, request.query_params.get(name, "")) for name in ("a", "b")]
    first, second = (each.episode for each in both)
    same = first.scenario.hash == second.scenario.hash and first.seed == second.seed
    return page(request, "view/compare", both=both, same=same)


def sql(request: Request) -> Response:
    """The SQL box: a query, its result as a table and a chart."""
    query = request.query_params.get("q", "").strip()
    values: dict[str, Any] = {"query": query, "answer": None, "problem": "", "examples": view_data.example_queries()}
    status = 200
    if "q" in request.query_params:
        try:
            values["answer"] = view_data.ask(store_of(request), query)
        except InvalidInput as error:
            values["problem"] = error.message
            status = 400
    return page(request, "view/sql", status, limit=view_data.SQL_ROWS, **values)
