"""The page on which a teacher chooses a class and starts it; the choices are those of the command line."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from localsim.backends.scripted import PEEKS, PREFIX
from localsim.conversation.episode import Mode
from localsim.errors import LocalsimError
from localsim.machine.room import addresses
from localsim.scenarios.find import shipped
from localsim.web.choices import by_family
from localsim.web.classroom.hall import MOST_SEATS, Form, Wish
from localsim.web.classroom.seats import MODES
from localsim.web.classroom.telltale import PREPARED
from localsim.web.guard import HOST, SentForm, number_in, posted
from localsim.web.phrases.table import Refused, find, languages
from localsim.web.render import page
from localsim.web.start.pages import players

FORM = "/class/new"
_FIRST = ("mutual_friends_01", "mutual_friends_02")
_PHONE = "phone"
_MODES: dict[str, tuple[Mode, ...]] = {"all": MODES, **{mode: (mode,) for mode in MODES}}


def _form_of(request: Request) -> Form:
    form = request.app.state.form
    assert isinstance(form, Form)
    return form


def choose(request: Request) -> Response:
    """The form."""
    return _page(request, {}, _FIRST)


def _page(request: Request, given: Mapping[str, str], scenarios: tuple[str, ...], problem: str = "") -> Response:
    form = _form_of(request)
    first = [] if form.host == HOST else [form.host]
    usual = {"modes": "all", "partner": _PHONE, "language": form.language, "seats": "40", "host": "", "fresh": ""}
    return page(
        request,
        "class/new",
        400 if problem else 200,
        problem=problem,
        last=form.last,
        tongue=find(form.last.wish.language).name if form.last else "",
        groups=by_family(without=PREPARED),
        chosen_scenarios=scenarios,
        modes=tuple(_MODES),
        partners=players(PREFIX),
        own={PEEKS: "peeks", PREFIX: "scripted"},
        languages=[(name, find(name).name) for name in languages()],
        hosts=list(dict.fromkeys([*first, *(address for _, address in addresses()), HOST])),
        here=HOST,
        most=MOST_SEATS,
        chosen={**usual, **given},
    )


def start(request: Request, form: SentForm) -> Response:
    """Begin the class, and lead to its projector page, which another server has."""
    scenarios = tuple(value for name, value in form.multi_items() if name == "scenario")
    try:
        asked = _form_of(request)
        address = asked.begin(asked.last.wish if asked.last and form.get("resume") else _wish(form, scenarios))
    except LocalsimError as error:
        problem = f"{error.message}. {error.hint or ''}".strip()
        return _page(request, {name: str(value) for name, value in form.items()}, scenarios, problem)
    # A redirect would lead a form to another address, which the pages forbid.
    return page(request, "class/begun", address=address)


def _wish(form: SentForm, scenarios: tuple[str, ...]) -> Wish:
    offered, partner = shipped(), form.get("partner", _PHONE)
    models = {each.model for each in players(PREFIX)}
    modes, seats = _MODES.get(form.get("modes", "all")), number_in(form, "seats")
    if not scenarios or not set(scenarios) <= offered.keys() or modes is None or not 0 < seats <= MOST_SEATS:
        raise Refused("not_offered")
    if partner not in models | {_PHONE} or form.get("language") not in languages():
        raise Refused("not_offered")
    return Wish(
        [offered[name] for name in scenarios],
        PREFIX if partner == _PHONE else partner,
        partner != _PHONE,
        form.get("host", HOST),
        None,
        bool(form.get("fresh")),
        None,
        modes=modes,
        language=form["language"],
        seats=seats,
    )


ROUTES: list[BaseRoute] = [
    Route("/", choose),
    Route(FORM, choose),
    Route(FORM, posted(start), methods=["POST"]),
]
