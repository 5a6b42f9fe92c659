"""The viewer: runs, the matrix of a run, an episode with its private sides, the prompt of a turn, judgements, SQL."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from localsim.conversation.rules.lanes import is_divided
from localsim.errors import InvalidInput
from localsim.reports.compose.between import compared
from localsim.reports.figures import pairs
from localsim.reports.figures.talk import image
from localsim.reports.render.html import LINES, Opening, render
from localsim.reports.report import Ask, of
from localsim.runs import telling
from localsim.store.database import Store
from localsim.store.queries import pages as page_queries
from localsim.store.queries import runs as run_queries
from localsim.web import asking, heads, view_data
from localsim.web.lane_data import lane_page
from localsim.web.render import page

_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'"
"""The report is one file that holds its own styles, and has no script."""
_LONGEST_WORDS = 80
_MOST_RUNS = 12
"""Runs that a page compares: each is compared with each."""


def store_of(request: Request) -> Store:
    """The database of this server."""
    store = request.app.state.store
    assert isinstance(store, Store)
    return store


def _reading(view: Callable[[Request, Store], Response]) -> Callable[[Request], Response]:
    """Give a page one connection for all its queries: to open one takes longer than most of them."""

    @wraps(view)
    def answered(request: Request) -> Response:
        with store_of(request).held() as store:
            return view(request, store)

    return answered


def runs(request: Request) -> Response:
    """All runs, newest first."""
    store = store_of(request)
    rows = []
    if store.path.is_file():
        with store.held() as reader:
            rows = heads.runs(reader)
    return page(request, "view/runs", runs=rows, database=str(store.path))


def run(request: Request) -> Response:
    """The matrix of a run, filtered."""
    if "answer" in request.query_params:  # before the database is held: scripted players may have to play first
        store = store_of(request)
        view_data.answer(store, store.run_id(request.path_params["run"]))
    return _matrix(request)


@_reading
def _matrix(request: Request, store: Store) -> Response:
    run_id = store.run_id(request.path_params["run"])
    chosen = _filter(request)
    fields = {name: getattr(chosen, name) for name in ("family", "mode", "status", "outcome", "leaks", "words")}
    head = heads.run_head(store, run_id)
    at_once = "answer" in request.query_params or view_data.answer_is_near(store, head.row)
    return page(
        request,
        "view/run",
        **about_run(store, run_id, view_data.matrix(store, run_id, chosen), at_once=at_once),
        filter=chosen,
        choices={"family": page_queries.families_of_run(store, run_id), **view_data.CHOICES},
        query=urlencode({name: value for name, value in fields.items() if value}),
    )


def about_run(store: Store, run_id: str, matrix: view_data.Matrix, *, at_once: bool) -> dict[str, Any]:
    """What the page of a run shows; its answer only if it can be had at once."""
    head = heads.run_head(store, run_id)
    return {
        "head": head,
        "run": head.row,
        "live": head.row.status == "running",
        "answer": view_data.answer(store, run_id) if at_once else None,
        "remark": telling.remark(run_queries.run_facts(store, run_id)),
        "matrix": matrix,
    }


def answer(request: Request) -> Response:
    """The part of a run's page that answers it, where computing it takes a while."""
    store = store_of(request)
    run_id = store.run_id(request.path_params["run"])
    return page(request, "view/answer", answer=view_data.answer(store, run_id))


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


@_reading
def live(request: Request, store: Store) -> Response:
    """The part of a run's page that shows the episodes in progress."""
    run_id = store.run_id(request.path_params["run"])
    return page(request, "view/live", run=page_queries.run_of(store, run_id), episodes=view_data.live(store, run_id))


def report_page(request: Request) -> Response:
    """The report with its card, the same as `localsim report -o` writes."""
    store = store_of(request)
    run_id = store.run_id(request.path_params["run"])
    html = _report(store, run_id, view_data.key_of(store, run_id))
    return HTMLResponse(html, headers={"content-security-policy": _REPORT_POLICY})


@lru_cache(maxsize=8)
def _report(store: Store, run_id: str, state: tuple[Any, ...]) -> str:  # noqa: ARG001 - part of the key
    return render(of(store, Ask(run_id, talks=True)), back=f"/runs/{run_id}")


@_reading
def episode(request: Request, store: Store) -> Response:
    """The turns with the private sides beside them, leaks with their evidence, scores with their reasons."""
    marked = view_data.marked_episode(store, request.path_params["episode"])
    return page(
        request, "view/episode", **about_talk(store, marked, heads.run_head(store, marked.episode.run_id)), prompts=()
    )


def about_talk(store: Store, marked: view_data.MarkedEpisode, head: heads.RunHead) -> dict[str, Any]:
    """What the page of a talk shows, without the prompts."""
    stored = marked.episode
    before, after = page_queries.neighbours(store, stored.run_id, stored.episode_id)
    return {
        "marked": marked,
        "episode": stored,
        "timeline": view_data.timeline(marked),
        "divided": is_divided(stored.scenario, stored.transcript),
        "head": head,
        "judgement_count": page_queries.judgement_count(store, stored.episode_id),
        "before": before,
        "after": after,
    }


@_reading
def turn(request: Request, store: Store) -> Response:
    """The prompt of a turn, word for word, and every generation for it."""
    episode_id, given = request.path_params["episode"], request.path_params["turn"]
    marked = view_data.marked_episode(store, episode_id)
    if not (given.isascii() and given.isdecimal() and len(given) < 9):
        raise InvalidInput("there is no such turn", hint="the episode's page has links to all of them")
    number = int(given)
    return page(
        request,
        "view/turn",
        episode=marked.episode,
        head=heads.run_head(store, marked.episode.run_id),
        number=number,
        shown=view_data.prompt(store, episode_id, number),
        count=len(marked.turns),
    )


def picture(request: Request) -> Response:
    """A talk as one picture, to be saved or put on a slide."""
    store, episode_id = store_of(request), request.path_params["episode"]
    if not page_queries.has_episode(store, episode_id):
        raise InvalidInput(f"no episode {episode_id}", hint="the list of runs has links to all of them")
    named = {"content-disposition": f'inline; filename="talk-{episode_id}.svg"'}
    return Response(image(store, episode_id), media_type="image/svg+xml", headers=named)


@_reading
def lanes(request: Request, store: Store) -> Response:
    """Who could read what: a lane for each agent and the narrator."""
    stored = view_data.marked_episode(store, request.path_params["episode"]).episode
    given = request.query_params.get("lane", "")
    number = int(given) if given.isascii() and given.isdecimal() and len(given) < 9 else None
    try:
        shown = lane_page(stored, number)
    except IndexError:
        raise InvalidInput("there is no such lane", hint="the talk's page has a link to its lanes") from None
    return page(request, "view/lanes", episode=stored, head=heads.run_head(store, stored.run_id), lanes=shown)


@_reading
def judgements(request: Request, store: Store) -> Response:
    """The questions that judges were asked about an episode, word for word, and their replies."""
    stored = view_data.marked_episode(store, request.path_params["episode"]).episode
    return page(
        request,
        "view/judgements",
        episode=stored,
        head=heads.run_head(store, stored.run_id),
        judgements=page_queries.judgements(store, stored.episode_id),
    )


@_reading
def compare(request: Request, store: Store) -> Response:
    """Episodes side by side: two, named `a` and `b`, or up to five."""
    given = request.query_params
    names = [name for name in "abcde" if name in ("a", "b") or given.get(name)]
    several = [view_data.marked_episode(store, given.get(name, "")) for name in names]
    first = several[0].episode
    same = all((each.episode.scenario.hash, each.episode.seed) == (first.scenario.hash, first.seed) for each in several)
    return page(request, "view/compare", several=several, same=same, head=heads.run_head(store, first.run_id))


@_reading
def compare_runs(request: Request, store: Store) -> Response:
    """What `localsim compare` says about the runs that were ticked, or about the modes of one; with their pictures."""
    given = request.query_params.getlist("run")[:_MOST_RUNS]
    runs = list(dict.fromkeys(store.run_id(each[:_LONGEST_WORDS]) for each in given))
    if not runs:
        raise InvalidInput("no run was ticked", hint="go back and tick two runs or more")
    everything = "all" in request.query_params
    drawn = [(title, list(map(Markup, own))) for title, own in pairs.panels(pairs.of_runs(store, runs))]
    return page(
        request,
        "view/compared",
        heads=[heads.run_head(store, run_id) for run_id in runs],
        opening=Opening((), (), "", drawn, LINES),
        compared=compared(store, runs, everything=everything),
        query=urlencode([("run", run_id) for run_id in runs]),
    )


def sql(request: Request) -> Response:
    """The SQL box: a query about a run that is chosen, its result as a table and a chart."""
    store, query = store_of(request), request.query_params.get("q", "").strip()
    runs, given = heads.named(store), request.query_params.get("run", "")[:_LONGEST_WORDS]
    chosen = store.run_id(given) if given else heads.newest(runs)
    values: dict[str, Any] = {"query": query, "answer": None, "problem": "", "examples": asking.example_queries()}
    status = 200
    if "q" in request.query_params:
        try:
            values["answer"] = asking.ask(store, query, chosen)
        except InvalidInput as error:
            values["problem"] = error.message
            status = 400
    return page(request, "view/sql", status, limit=asking.SQL_ROWS, runs=runs, chosen=chosen, **values)
