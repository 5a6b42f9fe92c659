"""Taking a role: choose a scenario, play your side, then the reveal. A seat sees what an agent in that mode would."""

from __future__ import annotations

from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from localsim.conversation.episode import Mode
from localsim.conversation.prompts import relationship_lines
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput
from localsim.reports import marks
from localsim.scenarios.find import shipped_files
from localsim.scenarios.parse import load_scenario
from localsim.store.episodes import models_on
from localsim.web import view_data
from localsim.web.guard import checked_form
from localsim.web.render import page
from localsim.web.stage import KINDS, Game, Stage
from localsim.web.view_pages import store_of

_MODES: dict[str, Mode] = {"agents": "agents", "mindreaders": "mindreaders"}


def stage_of(request: Request) -> Stage:
    """The games of this server."""
    stage = request.app.state.stage
    assert isinstance(stage, Stage)
    return stage


@cache
def _scenarios() -> dict[str, LoadedScenario]:
    found = [load_scenario(file) for file in shipped_files()]
    return {each.scenario.id: each for each in found}


def choose(request: Request) -> Response:
    """What can be played."""
    everything = [each.scenario for each in _scenarios().values()]
    families = list(dict.fromkeys(each.family or "" for each in everything))
    grouped = {name: [each for each in everything if (each.family or "") == name] for name in sorted(families)}
    return page(request, "play", families=grouped, model=stage_of(request).model)


async def begin(request: Request) -> Response:
    """Open a talk and go to the seat."""
    form = checked_form(request, (await request.form()).items())
    loaded = _scenarios().get(form.get("scenario", ""))
    if loaded is None:
        raise InvalidInput("no such scenario", hint="choose one of the list")
    mode = _MODES.get(form.get("mode", "agents"))
    if mode is None:
        raise InvalidInput("mode is agents or mindreaders")
    role = form.get("role", "")
    people = loaded.scenario.names if form.get("against") == "person" else (role,)
    if role not in loaded.scenario.names:
        raise InvalidInput(f"{loaded.scenario.id} has no such role", hint="choose one of the list")
    name, game = stage_of(request).open(loaded, tuple(people), mode)
    seat = next(seat for seat, each in game.seats.items() if each == role)
    return RedirectResponse(f"/play/{name}/{seat}", 303)


def seat(request: Request) -> Response:
    """A seat: the own side, the talk so far, a line to say something; after the end the reveal."""
    game, role = _found(request)
    if game.ended:
        return _reveal(request, game, role)
    return page(
        request,
        "seat",
        **_talk(game, role, request),
        seen=observe(game.spec, role, game.transcript),
        others={seat: each for seat, each in game.seats.items() if seat not in game.taken},
        relations=relationship_lines(observe(game.spec, role, game.transcript)),
        kinds={kind: word for kind, word in KINDS.items() if kind in game.scenario.scenario.actions},
        chars=game.scenario.scenario.limits.chars,
    )


def talk(request: Request) -> Response:
    """The part of a seat that changes."""
    game, role = _found(request)
    return page(request, "seat_talk", **_talk(game, role, request))


async def say(request: Request) -> Response:
    """A person's turn."""
    form = checked_form(request, (await request.form()).items())
    game, role = _found(request)
    kind = next((kind for kind in KINDS if kind == form.get("kind", "speak")), None)
    if kind is None or kind not in game.scenario.scenario.actions:
        raise InvalidInput("this scenario does not allow that", hint="go back and choose another")
    limit = game.scenario.scenario.limits.chars
    text = " ".join(form.get("text", "").split())
    if len(text) > limit:
        raise InvalidInput(f"{len(text)} characters; at most {limit} are taken", hint="go back and shorten it")
    if not text and kind not in ("leave", "none"):
        raise InvalidInput("there are no words", hint="go back and write some")
    turn = form.get("turn", "")
    action = Action(kind, "" if kind == "none" else text)
    taken = game.say(role, action, int(turn[:6]) if turn.isdecimal() else -1)
    if not taken and not _just_said(game, role, action):
        raise InvalidInput(f"it is not your turn, so this was not said: {text}", hint="go back, and wait for your turn")
    return RedirectResponse(request.url.path, 303)


def _just_said(game: Game, role: str, action: Action) -> bool:
    """Whether it is the same again, as after a double click."""
    own = [turn.action for turn in game.turns if turn.speaker == role]
    return game.given == action or bool(own) and own[-1] == action


def _found(request: Request) -> tuple[Game, str]:
    return stage_of(request).find(request.path_params["game"], request.path_params["seat"])


def _talk(game: Game, role: str, request: Request) -> dict[str, Any]:
    names = game.scenario.scenario.names
    with game.turned:
        return {
            "game": game,
            "role": role,
            "address": f"/play/{request.path_params['game']}/{request.path_params['seat']}",
            "colours": marks.colours(names),
            "turns": list(game.turns),
            "turn": len(game.turns),
            "mine": game.asked == role and game.given is None,
            "waiting": game.asked,
        }


def _reveal(request: Request, game: Game, role: str) -> Response:
    store = store_of(request)
    found = view_data.talk(store, game.episode_id) if game.episode_id else None
    return page(
        request,
        "reveal",
        game=game,
        role=role,
        talk=found,
        timeline=view_data.timeline(found) if found else [],
        models=models_on(store, game.scenario.scenario.id) if found else [],
    )
