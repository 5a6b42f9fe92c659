"""Renders the templates of the pages. Every printed value is escaped; nothing here knows the content of a page."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse

from localsim.models.registry import labelled
from localsim.runs import words
from localsim.web.guard import csrf_of
from localsim.web.phrases.table import Phrases, english

_MENU = (
    ("view", "/", "Runs"),
    ("view", "/start", "Start"),
    ("view", "/sql", "SQL"),
    ("annotate", "/annotate", "Annotate"),
    ("play", "/play", "Play"),
)


def environment(url: Callable[[str], str], *, served: bool, phrases: Phrases | None = None) -> jinja2.Environment:
    """Return what renders the templates.

    `url` returns the address of a page or style, given its path on a server; "" if it is not there. `served` is False
    for pages without a server, which can be asked nothing. `phrases` are English without any.
    """
    found = jinja2.Environment(
        # The opening of a report and of the page of its run is one template.
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader("localsim.web"), jinja2.PackageLoader("localsim.reports.render")]
        ),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: "–" if value is None else value,
    )
    found.filters["labelled"] = labelled
    found.globals |= {"words": words, "url": url, "served": served, "t": phrases or english()}
    return found


@cache
def _on_a_server(phrases: Phrases) -> jinja2.Environment:
    return environment(lambda path: path, served=True, phrases=phrases)


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A whole page; `template` is its place below templates/, without the ending."""
    given = {"csrf": csrf_of(request), "path": request.url.path, "menu": _menu(request), **values}
    return HTMLResponse(rendered(_on_a_server(request.app.state.phrases), template, **given), status)


def rendered(environment: jinja2.Environment, template: str, **values: Any) -> str:
    """The text of a page."""
    return environment.get_template(f"{template}.html.j2").render(values)


def _menu(request: Request) -> list[tuple[str, str]]:
    state = request.app.state
    closed = {"/start"} if state.desk is None else set()
    return [(href, name) for part, href, name in _MENU if part in state.parts and href not in closed]
