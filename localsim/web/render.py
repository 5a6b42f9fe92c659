"""Renders the templates of the pages. Every printed value is escaped; nothing here knows the content of a page."""

from __future__ import annotations

from functools import cache
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse

from localsim.models.registry import labelled
from localsim.runs import words
from localsim.web.guard import csrf_of

_MENU = (
    ("view", "/", "Runs"),
    ("view", "/start", "Start"),
    ("view", "/sql", "SQL"),
    ("annotate", "/annotate", "Annotate"),
    ("play", "/play", "Play"),
)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("localsim.web"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: "–" if value is None else value,
    )
    environment.filters["labelled"] = labelled
    environment.globals["words"] = words
    return environment


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A whole page; `template` is its place below templates/, without the ending."""
    given = {"csrf": csrf_of(request), "path": request.url.path, "menu": _menu(request), **values}
    return HTMLResponse(_environment().get_template(f"{template}.html.j2").render(given), status)


def _menu(request: Request) -> list[tuple[str, str]]:
    state = request.app.state
    closed = {"/start"} if state.desk is None else set()
    return [(href, name) for part, href, name in _MENU if part in state.parts and href not in closed]
