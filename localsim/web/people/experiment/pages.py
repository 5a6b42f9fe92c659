"""The pages of a participant: consent, forms, talk with ratings, debrief. One address shows what comes next."""

from __future__ import annotations

import secrets
from itertools import groupby
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from localsim.errors import InvalidInput
from localsim.runs.words import STOPS
from localsim.web.classroom.floor import Live
from localsim.web.classroom.phone_pages import hashed, sent_action, talk_values
from localsim.web.guard import checked_form, cookie_name, visitor_of
from localsim.web.people.experiment.lab import LEFT, Lab, Step
from localsim.web.people.experiment.roster import Part, Participant
from localsim.web.people.experiment.rubric import UNKNOWN
from localsim.web.people.experiment.sitting import TIME_OVER
from localsim.web.render import page

HOME = "/experiment"
_COOKIE_S = 30 * 24 * 3600
_LIVE: dict[Step, int] = {"talk": 1200, "rate": 4000, "wait": 1500, "full": 10_000}
_PING_MS = 15_000
"""Every page asks once in a while, so that its participant counts as present."""


def lab_of(request: Request) -> Lab:
    """The experiment of this server."""
    lab = request.app.state.lab
    assert isinstance(lab, Lab)
    return lab


def _key(request: Request) -> str:
    return hashed(request.cookies.get(cookie_name(request, "participant"), ""))


def person_name(lab: Lab, request: Request) -> str:
    """The number of the participant whom a request comes from, for the limits of `guard`; '' for none."""
    person = lab.register.person_of(_key(request))
    return str(person.number) if person else ""


def _person(request: Request) -> Participant:
    person = lab_of(request).person_with(_key(request))
    if person is None:
        raise InvalidInput("you do not take part yet", hint="go to the start, and read what it is about")
    return person


def first(_request: Request) -> Response:
    """The address of the server leads to the experiment."""
    return RedirectResponse(HOME, 303)


def _state(request: Request) -> tuple[Step, dict[str, Any]]:
    """The step of a visitor, and the values of its template."""
    lab = lab_of(request)
    person = lab.person_with(_key(request))
    with lab.changed:
        step = lab.step(person)
        return step, _values(lab, person, step)


def show(request: Request) -> Response:
    """The page of a participant, or of a person who may become one."""
    step, values = _state(request)
    return page(request, f"experiment/{_TEMPLATES[step]}", **values)


_TEMPLATES: dict[Step, str] = {
    "consent": "consent", "full": "full", "complete": "full", "before": "form", "after": "form", "wait": "wait",
    "talk": "talk", "rate": "rate", "rubric": "rubric", "debrief": "debrief", "gone": "debrief",
}  # fmt: skip


def part(request: Request) -> Response:
    """The part of a page that changes; it asks for the whole page when another step has begun."""
    step, values = _state(request)
    if step != request.query_params.get("on"):
        return page(request, "class/still", changed=True)
    if step in ("talk", "wait"):
        return page(request, f"experiment/{step}_part", **values)
    return page(request, "class/still", changed=False)


def _values(lab: Lab, person: Participant | None, step: Step) -> dict[str, Any]:
    """The values of the template of a step. Only under the lock."""
    experiment = lab.study.experiment
    values: dict[str, Any] = {
        "experiment": experiment, "step": step, "person": person, "every": _LIVE.get(step, _PING_MS),
        "problem": bool(lab.problem), "early": "",
    }  # fmt: skip
    if person is None:
        return values
    live = lab.live_of(person)
    values["early"] = _early(live) if live is not None and step != "wait" else ""
    if step in ("before", "after"):
        bank = lab.next_form(person, step)
        banks = lab.study.before if step == "before" else lab.study.after
        return values | {"bank": bank, "number": 1 + banks.index(bank) if bank else 0, "count": len(banks)}
    if step == "wait":
        return values | {"offer": lab.may_go_on(person)}
    if step in ("talk", "rate") and live is not None:
        role = lab.role_of(person, live)
        left = lab.seconds_left(live)
        values |= {
            **talk_values(lab, live, role),
            "hints": lab.study.arm(person.condition).condition.hints,
            "minutes": None if left is None else max(0, int(left // 60) + 1),
            "rated": lab.to_rate(person, live),
            "rating": lab.study.ratings,
        }
    if step == "rubric" and live is not None:
        role = lab.role_of(person, live)
        asked = {agent: list(own) for agent, own in groupby(lab.to_judge(person, live), lambda each: each.agent)}
        return values | {**talk_values(lab, live, role), "talk": live.talk.number, "asked": asked, "unknown": UNKNOWN}
    return values


def _early(live: Live) -> str:
    """What a participant is told of a talk that ended without their doing; '' for one that did not."""
    if live.stop_reason in ("closing", "stale"):
        return f"The talk is over: {STOPS[live.stop_reason]}."
    if not live.problem:
        return ""
    told = {TIME_OVER: "The time of the talk is over.", LEFT: "The other side has left the talk."}
    return told.get(live.problem, "The talk broke off, which is not your fault.")


# ---- what participants send ----------------------------------------------------------------------------------------


async def _form(request: Request) -> dict[str, str]:
    return checked_form(request, (await request.form()).items())


async def agree(request: Request) -> Response:
    """Let a person take part who agrees; pressing the button twice changes nothing."""
    await _form(request)
    lab, visitor = lab_of(request), visitor_of(request)
    secret = request.cookies.get(cookie_name(request, "participant"), "")
    if lab.register.person_of(hashed(secret)) is None:
        if not lab.newcomers.is_left(visitor):
            raise InvalidInput("too many people came from this address", hint="wait some minutes, then try again")
        lab.newcomers.count(visitor)
        secret = secrets.token_urlsafe(18)
    await run_in_threadpool(lab.agree, hashed(secret))
    answer = RedirectResponse(HOME, 303)
    name = cookie_name(request, "participant")
    answer.set_cookie(name, secret, max_age=_COOKIE_S, httponly=True, samesite="lax")
    return answer


def decline(request: Request) -> Response:
    """Thank a person who does not agree; nothing is stored."""
    return page(request, "experiment/declined", experiment=lab_of(request).study.experiment, early="")


async def answer(request: Request) -> Response:
    """Keep the answers to a form."""
    form = await _form(request)
    person, which = _person(request), form.get("part", "")
    if which not in ("before", "after"):
        raise InvalidInput("this form has no part", hint="load the page again")
    which_part: Part = "before" if which == "before" else "after"
    await run_in_threadpool(lab_of(request).answer, person, which_part, form.get("bank", ""), form)
    return RedirectResponse(HOME, 303)


async def say(request: Request) -> Response:
    """Take a turn."""
    form = await _form(request)
    lab, person = lab_of(request), _person(request)
    live = lab.live_of(person)
    if live is None:
        raise InvalidInput("you have no talk", hint="load the page again")
    place, action = await sent_action(request, lab, live, lab.role_of(person, live), form)
    await run_in_threadpool(lab.say, person, place, action)
    return RedirectResponse(HOME, 303)


async def rate(request: Request) -> Response:
    """Keep the rating of a message."""
    form = await _form(request)
    turn = form.get("turn", "")
    number = int(turn[:6]) if turn.isascii() and turn.isdecimal() else -1
    await run_in_threadpool(lab_of(request).rate, _person(request), number, None if form.get("skip") else form)
    return RedirectResponse(HOME, 303)


async def judge(request: Request) -> Response:
    """Keep the answers to the rubric about a talk."""
    form = await _form(request)
    talk = form.get("talk", "")
    number = int(talk[:6]) if talk.isascii() and talk.isdecimal() else -1
    await run_in_threadpool(lab_of(request).judge, _person(request), number, form)
    return RedirectResponse(HOME, 303)


async def withdraw(request: Request) -> Response:
    """Let a participant stop."""
    form = await _form(request)
    if not form.get("sure"):
        raise InvalidInput("the box is not ticked", hint="go back and tick it, or go on with the experiment")
    await run_in_threadpool(lab_of(request).withdraw, _person(request))
    return RedirectResponse(HOME, 303)


async def go_on(request: Request) -> Response:
    """Let a participant without a partner go on."""
    await _form(request)
    await run_in_threadpool(lab_of(request).go_on_alone, _person(request))
    return RedirectResponse(HOME, 303)


ROUTES: list[BaseRoute] = [
    Route("/", first),
    Route(HOME, show),
    Route(f"{HOME}/part", part),
    Route(f"{HOME}/declined", decline),
    *(
        Route(f"{HOME}/{name}", act, methods=["POST"])
        for name, act in (
            ("agree", agree), ("answer", answer), ("say", say), ("rate", rate), ("judge", judge),
            ("stop", withdraw), ("alone", go_on),
        )
    ),
]  # fmt: skip
