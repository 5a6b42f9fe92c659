"""The application: routes, error pages, and the middleware around them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from localsim.annotation.items import Selection
from localsim.errors import DatabaseError, InvalidInput, LocalsimError
from localsim.store.database import Store
from localsim.web import annotate_pages, view_pages
from localsim.web.classroom import form_pages, phone_pages, room_pages
from localsim.web.classroom.hall import Form, Hall
from localsim.web.classroom.results import Earlier
from localsim.web.experiment import pages as experiment_pages
from localsim.web.experiment.lab import Lab
from localsim.web.guard import Access, Limits, Visitors, posted
from localsim.web.phrases.table import Phrases, english
from localsim.web.play import pages as play_pages
from localsim.web.play.stage import Stage
from localsim.web.render import page
from localsim.web.start import pages as start_pages
from localsim.web.start.work import Desk

_ROUTES: dict[str, list[BaseRoute]] = {
    "view": [
        Route("/", view_pages.runs),
        Route("/runs/{run}", view_pages.run),
        Route("/runs/{run}/report", view_pages.report_page),
        Route("/runs/{run}/live", view_pages.live),
        Route("/runs/{run}/answer", view_pages.answer),
        Route("/episodes/{episode}", view_pages.episode),
        Route("/episodes/{episode}/turns/{turn}", view_pages.turn),
        Route("/episodes/{episode}/talk.svg", view_pages.picture),
        Route("/episodes/{episode}/judgements", view_pages.judgements),
        Route("/episodes/{episode}/lanes", view_pages.lanes),
        Route("/compare", view_pages.compare),
        Route("/compare/runs", view_pages.compare_runs),
        Route("/sql", view_pages.sql),
        Route("/annotate/{run}", annotate_pages.results),
        Route("/start", start_pages.choose),
        Route("/start", posted(start_pages.begin), methods=["POST"]),
        Route("/start/now", start_pages.now),
        Route("/start/now/part", start_pages.part),
        Route("/start/runs/{run}", start_pages.run),
        *(
            Route(f"/start/{name}", posted(act), methods=["POST"])
            for name, act in (("go", start_pages.go), ("stop", start_pages.stop), ("resume", start_pages.resume))
        ),
    ],
    "annotate": [
        Route("/annotate", annotate_pages.choose),
        Route("/annotate/begin", annotate_pages.begin),
        Route("/annotate/{run}/{task}", annotate_pages.item),
        Route("/annotate/{run}/{task}", posted(annotate_pages.answer), methods=["POST"]),
    ],
    "play": [
        Route("/play", play_pages.choose),
        Route("/play", posted(play_pages.begin), methods=["POST"]),
        Route("/play/{game}/{seat}", play_pages.seat),
        Route("/play/{game}/{seat}", posted(play_pages.say), methods=["POST"]),
        Route("/play/{game}/{seat}/turns", play_pages.turns),
    ],
    "class": [*phone_pages.ROUTES, *room_pages.ROUTES],
    "form": form_pages.ROUTES,
    "experiment": experiment_pages.ROUTES,
}
PARTS = ("view", "annotate", "play")
_ORDER = ("annotate", "view", "play", "class", "form", "experiment")


During = Callable[[str], AbstractContextManager[object]]
"""Given words such as "opening the class", returns what stands around that work."""


@dataclass(frozen=True)
class Site:
    """The content of a server. One for raters or players has only their pages, without modes and secrets."""

    store: Store
    rules: Access
    model: str = "starter"
    """Plays the roles that no person takes."""
    parts: frozenset[str] = frozenset(PARTS)
    selection: Selection | None = None
    """The conversations that raters judge; None lets them choose a run."""
    hall: Hall | None = None
    """The class of the part `class`."""
    before: Earlier | None = None
    """The earlier class whose results stand beside those of `hall`."""
    lab: Lab | None = None
    """The experiment of the part `experiment`."""
    form: Form | None = None
    """The choice of a class of the part `form`."""
    phrases: Phrases = field(default_factory=english)
    """What pupils and participants read."""
    during: During = nullcontext
    """Stands around work that lasts; the command line counts its seconds."""


def create_app(site: Site) -> Starlette:
    """All pages of the chosen parts on one database."""
    routes = [route for part in _ORDER if part in site.parts for route in _ROUTES[part]]
    if "view" not in site.parts:
        routes.append(Route("/", _first_part))
    app = Starlette(
        routes=[*routes, Mount("/static", StaticFiles(directory=static_folder()))],
        middleware=[
            Middleware(Limits, rules=site.rules),
            Middleware(TrustedHostMiddleware, allowed_hosts=sorted(site.rules.hosts), www_redirect=False),
            Middleware(Visitors, rules=site.rules),
        ],
        lifespan=_until_stored,
        exception_handlers={LocalsimError: _error_page, HTTPException: _http_error_page},
    )
    app.state = State({**vars(site), "access": site.rules.access, "stage": Stage(site.store, site.model)})
    # Whoever is on a network with an access token may look, but not occupy this computer with runs.
    app.state.desk = Desk(site.store) if "view" in site.parts and site.rules.access is None else None
    return app


@asynccontextmanager
async def _until_stored(app: Starlette) -> AsyncIterator[None]:
    """Stop the run in progress when the server ends, so that all of it is stored."""
    yield
    if app.state.desk is not None:
        with app.state.during("storing the run in progress"):
            await run_in_threadpool(app.state.desk.close)


def _first_part(request: Request) -> Response:
    return RedirectResponse(next(f"/{part}" for part in PARTS if part in request.app.state.parts), 303)


def static_folder() -> Path:
    """The folder of styles and scripts in the installed package."""
    with as_file(files("localsim.web") / "static") as folder:
        return folder


def _error_page(request: Request, error: Exception) -> Response:
    """Our own errors as a page with the next step instead of a traceback."""
    assert isinstance(error, LocalsimError)
    status = 503 if isinstance(error, DatabaseError) else 400 if isinstance(error, InvalidInput) else 500
    t: Phrases = request.app.state.phrases
    if isinstance(error, DatabaseError) and request.app.state.parts != frozenset(PARTS):
        # The message names the command line that holds the file, with modes and models: not for raters and players.
        busy = {"title": t("page.busy"), "message": t("page.busy_what"), "hint": t("page.busy_hint")}
        return page(request, "error", status, **busy)
    message, hint = t.told(error) if isinstance(error, InvalidInput) else (error.message, error.hint)
    return page(request, "error", status, title=t("page.failed"), message=message, hint=hint)


def _http_error_page(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    t: Phrases = request.app.state.phrases
    if error.status_code == 404:
        return page(request, "error", 404, title=t("page.absent"), message=t("page.absent_what"), hint="")
    return page(request, "error", error.status_code, title=t("page.failed"), message=error.detail, hint="")
