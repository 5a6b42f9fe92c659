"""Play a role: choose a scenario, play one side, then the reveal. A seat shows what an agent in its place would see."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from localsim.conversation.episode import Mode, Observation
from localsim.conversation.prompts import relationship_lines
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Action
from localsim.errors import InvalidInput
from localsim.families import family_of, title_of
from localsim.machine.room import qr_svg
from localsim.reports.conversation import marks
from localsim.scenarios.find import shipped
from localsim.store.episodes import models_on
from localsim.web import view_data
from localsim.web.guard import address_of, checked_form, is_loopback
from localsim.web.people.stage import Game, Stage
from localsim.web.people.ways import KINDS, action_from, forms_of
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
    every = [loaded.scenario for loaded in shipped().values()]
    groups: list[tuple[str, list[Scenario]]] = []
    for name in sorted({scenario.family or "" for scenario in every}):
        family = family_of(name or None)
        members = [scenario for scenario in every if (scenario.family or "") == name]
        groups.append((family.invitation or title_of(family), members))
    return page(request, "play/choose", groups=groups, model=stage_of(request).model)


async def begin(request: Request) -> Response:
    """Open a game and go to the seat."""
    form = checked_form(request, (await request.form()).items())
    loaded = shipped().get(form.get("scenario", ""))
    if loaded is None:
        raise InvalidInput("no such scenario", hint="choose one from the list")
    mode = _MODES.get(form.get("mode", "agents"))
    if mode is None:
        raise InvalidInput("the mode must be agents or mindreaders")
    role = form.get("role", "")
    people = loaded.scenario.names if form.get("against") == "person" else (role,)
    if role not in loaded.scenario.names:
        raise InvalidInput(f"{loaded.scenario.id} has no such role", hint="choose one from the list")
    name, game = stage_of(request).open(loaded, tuple(people), mode)
    seat = next(seat for seat, holder in game.seats.items() if holder == role)
    return RedirectResponse(f"/play/{name}/{seat}", 303)


def seat(request: Request) -> Response:
    """A seat: the player's own side, the turns so far, a form for the next turn; after the end the reveal."""
    game, role = _game_and_role(request)
    if game.ended:
        return _reveal(request, game, role)
    now = _turns(game, role, request)
    seen: Observation = now["seen"]
    return page(
        request,
        "play/seat",
        **now,
        others=[_invitation(request, seat, name) for seat, name in game.seats.items() if seat not in game.taken],
        here_only=is_loopback(request.url.hostname or ""),
        relations=relationship_lines(seen),
        kinds={kind: label for kind, label in KINDS.items() if kind in seen.allowed},
    )


def _invitation(request: Request, seat: str, name: str) -> dict[str, str]:
    """The address of a seat for the person who takes it, and its QR code; on a network it lets that person in."""
    path = f"/play/{request.path_params['game']}/{seat}"
    link = address_of(request.url.netloc, path, request.app.state.access)
    return {"name": name, "link": link, "qr": qr_svg(link)}


def turns(request: Request) -> Response:
    """The part of a seat that changes."""
    game, role = _game_and_role(request)
    return page(request, "play/turns", **_turns(game, role, request))


async def say(request: Request) -> Response:
    """Take a person's turn from the form."""
    sent = [(key, value) for key, value in (await request.form()).multi_items() if isinstance(value, str)]
    form = checked_form(request, sent)
    game, role = _game_and_role(request)
    action = action_from(sent, game.ways_of(role), game.scenario.scenario.limits.chars)
    turn = form.get("turn", "")
    taken = game.say(role, action, int(turn[:6]) if turn.isascii() and turn.isdecimal() else -1)
    if not taken and not _just_said(game, role, action):
        raise InvalidInput(
            f"it is not your turn, so this was not said: {action.text or action.type}",
            hint="go back, and wait for your turn",
        )
    return RedirectResponse(request.url.path, 303)


def _just_said(game: Game, role: str, action: Action) -> bool:
    """Return True where the action repeats the last one of its role, as after a double click."""
    own = [turn.action for turn in game.turns if turn.speaker == role]
    return game.given == action or bool(own) and own[-1] == action


def _game_and_role(request: Request) -> tuple[Game, str]:
    return stage_of(request).find(request.path_params["game"], request.path_params["seat"])


def _turns(game: Game, role: str, request: Request) -> dict[str, Any]:
    with game.turned:
        seen = game.seen_by(role)
        return {
            "game": game,
            "role": role,
            "address": f"/play/{request.path_params['game']}/{request.path_params['seat']}",
            "colours": marks.colours(game.scenario.scenario.names),
            "seen": seen,
            "turns": seen.transcript.turns,
            "turn": len(seen.transcript),
            "mine": game.is_asked(role),
            "waiting": game.asked,
            # Moves change from turn to turn, so their forms are in the part that is fetched anew.
            "moving": bool(seen.moves),
            "forms": forms_of(game.ways_of(role)) if seen.moves and game.is_asked(role) else [],
            "chars": game.scenario.scenario.limits.chars,
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
