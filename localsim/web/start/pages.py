"""Start a run in the browser: choose scenario and players, watch three talks grow, stop, resume, read the verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from localsim.backends.scripted import PEEKS
from localsim.conversation.episode import MODES
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput
from localsim.families import FAMILIES, family_of, title_of
from localsim.models.registry import aliases, entries, installed_path, labelled
from localsim.runs.plan import Plan
from localsim.scenarios.find import shipped
from localsim.web.guard import SentForm
from localsim.web.play.pages import stage_of
from localsim.web.render import page
from localsim.web.start import talks
from localsim.web.start.work import Desk, InProgress
from localsim.web.view_pages import store_of

NEW = "new:"
"""Begins the choice of a scenario that a family makes from a number."""
_MOST_DIGITS = 6
_QUICK = "Seconds, without a language model."
_FIRST = "mutual_friends_10"
"""The scenario that is chosen first: with these players only omniscient modes have an untold hit in it."""


@dataclass(frozen=True)
class PlayerChoice:
    """One choice of who plays."""

    model: str
    label: str
    about: str


def desk_of(request: Request) -> Desk:
    """The run in progress of this server. Raises HTTPException where others on a network could start runs."""
    desk = request.app.state.desk
    if desk is None:
        raise HTTPException(403, "Runs start on the computer itself: there, enter localsim view --new.")
    assert isinstance(desk, Desk)
    return desk


def _groups() -> list[tuple[str, list[tuple[str, str]]]]:
    """The scenarios to choose from: a heading, then value and label of each."""
    scenarios = [loaded.scenario for loaded in shipped().values()]
    groups = [
        (
            title_of(family_of(name or None)),
            [(each.id, each.title) for each in scenarios if (each.family or "") == name],
        )
        for name in sorted({each.family or "" for each in scenarios}, key=lambda name: (not name, name))
    ]
    everywhere = [name for name in FAMILIES if set(MODES) <= set(FAMILIES[name].modes)]
    made = [(f"{NEW}{name}", f"{title_of(FAMILIES[name])}: a new task") for name in everywhere]
    return [*groups, ("Made from the number below", made)]


def players(usual: str) -> list[PlayerChoice]:
    """Who can play: scripted players, the server's own model `usual`, and the models that are installed."""
    found = [
        PlayerChoice(
            PEEKS,
            "Scripted players who use all that they see",
            f"{_QUICK} They show best how the modes differ.",
        ),
        PlayerChoice(
            "scripted",
            "Scripted players",
            f"{_QUICK} They use their own side only, in every mode.",
        ),
    ]
    short = {names[0]: alias for alias, names in aliases().items()}
    for entry in sorted(entries(), key=lambda each: short.get(each.name) != "starter"):
        name = short.get(entry.name, entry.name)
        here = installed_path(entry) is not None
        if entry.kind == "chat" and (here or name == "starter"):
            minutes = f"Minutes; you see a forecast before it starts. {entry.title}."
            absent = f"Not installed. In a terminal, enter: localsim models pull {name}"
            found.append(PlayerChoice(name, labelled(name, whole=False), minutes if here else absent))
    if usual not in {each.model for each in found} | set(short):
        found.append(PlayerChoice(usual, labelled(usual, whole=False), "The model that this server was started with."))
    return found


# ---- choose --------------------------------------------------------------------------------------------------------


def choose(request: Request) -> Response:
    """The form, the run in progress, and the runs that can be resumed."""
    return _chooser(request, {})


def _chooser(request: Request, chosen: Mapping[str, str], problem: str = "", status: int = 200) -> HTMLResponse:
    desk = desk_of(request)
    return page(
        request,
        "start/choose",
        status,
        groups=_groups(),
        players=players(stage_of(request).model),
        chosen={"scenario": _FIRST, "seed": "1", "players": PEEKS, **chosen},
        problem=problem,
        busy=desk.busy,
        unfinished=[] if desk.busy else talks.unfinished(store_of(request)),
    )


def begin(request: Request, form: SentForm) -> Response:
    """Start what the form asks for, or measure a model first."""
    desk = desk_of(request)
    try:
        desk.begin(_plan(form, stage_of(request).model))
    except InvalidInput as error:
        return _chooser(request, form, _said(error), 409 if isinstance(error, InProgress) else 400)
    return RedirectResponse("/start/now", 303)


def _plan(form: SentForm, usual: str) -> Plan:
    seed = form.get("seed", "1").strip()
    if not (seed.isascii() and seed.isdecimal() and len(seed) <= _MOST_DIGITS):
        raise InvalidInput("the number must be a whole number from 0 to 999999")
    model = form.get("players", "")
    if model not in {each.model for each in players(usual)}:
        raise InvalidInput("these players are not on the list", hint="choose some from the list")
    return Plan((_scenario(form.get("scenario", ""), int(seed)),), MODES, model, seed=int(seed))


def _scenario(choice: str, seed: int) -> LoadedScenario:
    family = FAMILIES.get(choice.removeprefix(NEW)) if choice.startswith(NEW) else None
    if family is not None:
        name = f"{family.name}_{seed:02d}"
        scenario, answer = family.generate(name, seed, {}).split()
        return LoadedScenario(scenario, answer, f"{name}.yaml")  # the file that `scenarios generate` would write
    loaded = shipped().get(choice)
    if loaded is None:
        raise InvalidInput("no such scenario", hint="choose one from the list")
    return loaded


def _said(error: InvalidInput) -> str:
    """The message of an error and its hint as two sentences."""
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in (error.message, error.hint) if text)


# ---- watch ---------------------------------------------------------------------------------------------------------


def now(request: Request) -> Response:
    """The run in progress; without one, the run that can be resumed, or the form."""
    found = _current(request)
    if isinstance(found, str):
        return RedirectResponse(found, 303)
    return _watch(request, found)


def part(request: Request) -> Response:
    """The parts of the page that change, for the script; an empty one where the page must be loaded again."""
    found = _current(request)
    if isinstance(found, str):
        return HTMLResponse('<div data-phase="gone"></div>')
    return _watch(request, found, "part")


def run(request: Request) -> Response:
    """The three talks of a run in the database side by side."""
    desk, store = desk_of(request), store_of(request)
    run_id = store.run_id(request.path_params["run"])
    own = desk.work if desk.work is not None and desk.work.run_id == run_id else None
    if own is not None and desk.busy:
        return RedirectResponse("/start/now", 303)
    work = talks.stored(store, run_id)
    watched = talks.watched(work, work.phase, store)
    if own is not None and not watched.searched:
        watched = replace(watched, notes=own.notes[-3:])
    return _watch(request, watched)


def _watch(request: Request, watched: talks.Watched, template: str = "watch") -> Response:
    return page(request, f"start/{template}", watched=watched, names=talks.names_of(watched.work.model))


def _current(request: Request) -> talks.Watched | str:
    """The run in progress, or the address of the page to show instead."""
    desk, store = desk_of(request), store_of(request)
    work = desk.work
    phase = work.phase if work is not None else None
    if work is not None and phase is not None and (work.run_id or phase != "stopped"):
        return f"/start/runs/{work.run_id}" if phase in ("finished", "stopped") else talks.watched(work, phase, store)
    waiting = talks.unfinished(store) if work is None else []
    return f"/start/runs/{waiting[0][0].run_id}" if waiting else "/start"


# ---- buttons -------------------------------------------------------------------------------------------------------


def go(request: Request, form: SentForm) -> Response:  # noqa: ARG001 - a form without fields
    """Start the run whose forecast was shown."""
    desk_of(request).go()
    return RedirectResponse("/start/now", 303)


def stop(request: Request, form: SentForm) -> Response:  # noqa: ARG001 - a form without fields
    """Stop the run in progress after its current turns."""
    desk = desk_of(request)
    desk.stop()
    return RedirectResponse("/start/now" if desk.work else "/start", 303)


def resume(request: Request, form: SentForm) -> Response:
    """Continue an interrupted run, or look for leaks where that is what is missing."""
    desk, store = desk_of(request), store_of(request)
    work = talks.stored(store, store.run_id(form.get("run", "")))
    if desk.busy and desk.work is not None and desk.work.run_id == work.run_id:
        return RedirectResponse("/start/now", 303)  # the button was pressed twice
    try:
        if work.phase != "finished" or not talks.watched(work, work.phase, store).searched:
            desk.resume(work)
    except InProgress as error:
        return _chooser(request, {}, _said(error), 409)
    return RedirectResponse(f"/start/runs/{work.run_id}" if not desk.busy else "/start/now", 303)
