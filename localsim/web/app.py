"""The application: routes, errors, and the guard around them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from localsim.errors import DatabaseError, InvalidInput, LocalsimError
from localsim.store.database import Store
from localsim.web import annotate_pages, play_pages, view_pages
from localsim.web.guard import Guard, Rules
from localsim.web.render import page
from localsim.web.stage import Stage

_ROUTES: dict[str, list[BaseRoute]] = {
    "view": [
        Route("/", view_pages.runs),
        Route("/runs/{run}", view_pages.run),
        Route("/runs/{run}/report", view_pages.report_page),
        Route("/runs/{run}/live", view_pages.live),
        Route("/episodes/{episode}", view_pages.episode),
        Route("/episodes/{episode}/turns/{turn}", view_pages.turn),
        Route("/episodes/{episode}/judgements", view_pages.judgements),
        Route("/compare", view_pages.compare),
        Route("/sql", view_pages.sql),
        Route("/annotate/{run}", annotate_pages.results),
    ],
    "annotate": [
        Route("/annotate", annotate_pages.choose),
        Route("/annotate/begin", annotate_pages.begin),
        Route("/annotate/{run}/{task}", annotate_pages.item),
        Route("/annotate/{run}/{task}", annotate_pages.answer, methods=["POST"]),
    ],
    "play": [
        Route("/play", play_pages.choose),
        Route("/play", play_pages.begin, methods=["POST"]),
        Route("/play/{game}/{seat}", play_pages.seat),
        Route("/play/{game}/{seat}", play_pages.say, methods=["POST"]),
        Route("/play/{game}/{seat}/talk", play_pages.talk),
    ],
}
PARTS = ("view", "annotate", "play")


@dataclass(frozen=True)
class Site:
    """What a server is about. Raters see no modes and players no secrets: such a server has only their pages."""

    store: Store
    rules: Rules
    model: str = "starter"
    """Plays the roles that nobody takes."""
    parts: frozenset[str] = frozenset(PARTS)


def create_app(site: Site) -> Starlette:
    """All pages of the chosen parts on one database."""
    routes = [route for part in ("annotate", "view", "play") if part in site.parts for route in _ROUTES[part]]
    if "view" not in site.parts:
        routes.append(Route("/", _first_part))
    app = Starlette(
        routes=[*routes, Mount("/static", StaticFiles(directory=static_folder()))],
        middleware=[Middleware(Guard, rules=site.rules)],
        exception_handlers={LocalsimError: _ours, HTTPException: _http},
    )
    app.state.store = site.store
    app.state.parts = site.parts
    app.state.stage = Stage(site.store, site.model)
    return app


def _first_part(request: Request) -> Response:
    return RedirectResponse(next(f"/{part}" for part in PARTS if part in request.app.state.parts), 303)


def static_folder() -> Path:
    """Styles and scripts in the installed package."""
    with as_file(files("localsim.web") / "static") as folder:
        return folder


def _ours(request: Request, error: Exception) -> Response:
    """A clear page instead of a traceback."""
    assert isinstance(error, LocalsimError)
    status = 503 if isinstance(error, DatabaseError) else 400 if isinstance(error, InvalidInput) else 500
    if isinstance(error, DatabaseError) and request.app.state.parts != frozenset(PARTS):
        # What holds the file is a command line with modes and models: nothing for raters, players or a network.
        message = "The database cannot be used at the moment. What was stored is stored."
        return page(request, "error", status, title="One moment", message=message, hint="Try again soon.")
    return page(request, "error", status, title="That did not work", message=error.message, hint=error.hint)


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    title = "Nothing here" if error.status_code == 404 else "That did not work"
    return page(request, "error", error.status_code, title=title, message=error.detail, hint="")
