"""Play a role: choose a scenario, play one side, then the reveal. A seat shows what an agent in its place would see."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from localsim.conversation.episode import Mode, Observation
from localsim.machine.room import qr_svg
from localsim.scenarios.find import shipped
from localsim.store.episodes import models_on
from localsim.web import view_data
from localsim.web.choices import by_family
from localsim.web.floor.pages import sent_action, talk_values
from localsim.web.floor.ways import KINDS
from localsim.web.guard import SentForm, address_of, is_loopback
from localsim.web.phrases.table import Refused
from localsim.web.play.stage import Game, Stage
from localsim.web.render import page
from localsim.web.view_pages import store_of

_MODES: dict[str, Mode] = {"agents": "agents", "mindreaders": "mindreaders"}


def stage_of(request: Request) -> Stage:
    """The games of this server."""
    stage = request.app.state.stage
    assert isinstance(stage, Stage)
    return stage


def choose(request: Request) -> Response:
    """The scenarios that can be played, by family."""
    return page(request, "play/choose", groups=by_family(), model=stage_of(request).model)


def begin(request: Request, form: SentForm) -> Response:
    """Open a game and go to the seat."""
    loaded, mode = shipped().get(form.get("scenario", "")), _MODES.get(form.get("mode", "agents"))
    role = form.get("role", "")
    if loaded is None or mode is None or role not in loaded.scenario.names:
        raise Refused("not_offered")
    people = loaded.scenario.names if form.get("against") == "person" else (role,)
    name, game = stage_of(request).open(loaded, people, mode)
    seat = next(seat for seat, holder in game.seats.items() if holder == role)
    return RedirectResponse(f"/play/{name}/{seat}", 303)


def seat(request: Request) -> Response:
    """A seat: the player's own side, the turns so far, a form for the next turn; after the end the reveal."""
    game, role = _game_and_role(request)
    if game.done:
        return _reveal(request, game, role)
    now = _turns(game, role, request)
    seen: Observation = now["seen"]
    now |= {
        "others": [_invitation(request, seat, name) for seat, name in game.seats.items() if seat not in game.taken],
        "here_only": is_loopback(request.url.hostname or ""),
        "kinds": [kind for kind in KINDS if kind in seen.allowed],
    }
    return page(request, "play/seat", **now)


def _invitation(request: Request, seat: str, name: str) -> dict[str, str]:
    """The address of a seat for the person who takes it, and its QR code; on a network it lets that person in."""
    path = f"/play/{request.path_params['game']}/{seat}"
    link = address_of(request.url.netloc, path, request.app.state.access)
    return {"name": name, "link": link, "qr": qr_svg(link)}


def turns(request: Request) -> Response:
    """The part of a seat that changes."""
    game, role = _game_and_role(request)
    return page(request, "play/turns", **_turns(game, role, request))


def say(request: Request, form: SentForm) -> Response:
    """Take a person's turn from the form."""
    game, role = _game_and_role(request)
    game.take(game.talk, role, *sent_action(game, game.talk, role, form))
    return RedirectResponse(request.url.path, 303)


def _game_and_role(request: Request) -> tuple[Game, str]:
    return stage_of(request).find(request.path_params["game"], request.path_params["seat"])


def _turns(game: Game, role: str, request: Request) -> dict[str, Any]:
    values = talk_values(game, game.talk, role)
    moving = bool(values["seen"].moves)
    return values | {
        "game": game,
        "address": f"/play/{request.path_params['game']}/{request.path_params['seat']}",
        "waiting": game.asked,
        # Moves change from turn to turn, so their forms are in the part that is fetched anew.
        "moving": moving,
        "forms": values["forms"] if moving else [],
    }


def _reveal(request: Request, game: Game, role: str) -> Response:
    store = store_of(request)
    marked = view_data.marked_episode(store, game.episode_id) if game.episode_id else None
    return page(
        request,
        "play/reveal",
        game=game,
        role=role,
        marked=marked,
        models=models_on(store, game.scenario.scenario.id) if marked else [],
    )
