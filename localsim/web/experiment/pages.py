"""The pages of a participant: consent, forms, talk with ratings, debrief. One address shows what comes next."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from itertools import groupby
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from localsim.web.experiment.forms import UNKNOWN
from localsim.web.experiment.lab import LEFT, TIME_OVER, Lab, Step
from localsim.web.experiment.roster import Participant
from localsim.web.floor.pages import hashed, remembered, secret_of, sent_action, talk_values
from localsim.web.floor.state import Live
from localsim.web.guard import SentForm, number_in, posted, visitor_of
from localsim.web.phrases.table import Phrases, Refused
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
    return hashed(secret_of(request, "participant"))


def person_name(lab: Lab, request: Request) -> str:
    """The number of the participant whom a request comes from, for the limits of `guard`; '' for none."""
    person = lab.register.person_of(_key(request))
    return str(person.number) if person else ""


def _person(request: Request) -> Participant:
    person = lab_of(request).person_with(_key(request))
    if person is None:
        raise Refused("no_part")
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
        return step, _values(lab, person, step, request.app.state.phrases)


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


def _values(lab: Lab, person: Participant | None, step: Step, t: Phrases) -> dict[str, Any]:
    """The values of the template of a step. Only under the lock."""
    experiment = lab.study.experiment
    values: dict[str, Any] = {
        "experiment": experiment, "step": step, "person": person, "every": _LIVE.get(step, _PING_MS),
        "problem": bool(lab.problem), "early": "",
    }  # fmt: skip
    if person is None:
        return values
    live = lab.live_of(person)
    values["early"] = _early(live, t) if live is not None and step != "wait" else ""
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
        return values | talk_values(lab, live, role) | {"asked": asked, "unknown": UNKNOWN}
    return values


def _early(live: Live, t: Phrases) -> str:
    """What a participant is told of a talk that ended without their doing; '' for one that did not."""
    if live.stop_reason in ("closing", "stale"):
        return t.plain(f"stop.{live.stop_reason}")
    if not live.problem:
        return ""
    told = {TIME_OVER: "experiment.time_over", LEFT: "experiment.left"}
    return t.plain(told.get(live.problem, "experiment.broke"))


# ---- what participants send ----------------------------------------------------------------------------------------


def agree(request: Request, _: SentForm) -> Response:
    """Let a person take part who agrees; pressing the button twice changes nothing."""
    lab, visitor, secret = lab_of(request), visitor_of(request), secret_of(request, "participant")
    with lab.changed:
        if lab.register.person_of(hashed(secret)) is None:
            if not lab.newcomers.is_left(visitor):
                raise Refused("many_people")
            lab.newcomers.count(visitor)
            secret = secrets.token_urlsafe(18)
        lab.agree(hashed(secret))
    return remembered(request, HOME, "participant", secret, _COOKIE_S)


def decline(request: Request) -> Response:
    """Thank a person who does not agree; nothing is stored."""
    return page(request, "experiment/declined", experiment=lab_of(request).study.experiment, early="")


def answer(lab: Lab, person: Participant, form: SentForm) -> None:
    """Keep the answers to a form."""
    part = form.get("part", "")
    if part not in ("before", "after"):
        raise Refused("other_form")
    lab.answer(person, "before" if part == "before" else "after", form.get("bank", ""), form)


def say(lab: Lab, person: Participant, form: SentForm) -> None:
    """Take a turn."""
    live = lab.live_of(person)
    if live is None:
        raise Refused("no_talk")
    lab.say(person, *sent_action(lab, live, lab.role_of(person, live), form))


def rate(lab: Lab, person: Participant, form: SentForm) -> None:
    """Keep the rating of a message."""
    lab.rate(person, number_in(form, "turn"), None if form.get("skip") else form)


def judge(lab: Lab, person: Participant, form: SentForm) -> None:
    """Keep the answers to the rubric about a talk."""
    lab.judge(person, number_in(form, "talk"), form)


def stop(lab: Lab, person: Participant, form: SentForm) -> None:
    """Let a participant stop."""
    if not form.get("sure"):
        raise Refused("no_tick")
    lab.withdraw(person)


def alone(lab: Lab, person: Participant, _: SentForm) -> None:
    """Let a participant without a partner go on."""
    lab.go_on_alone(person)


def _of_participant(act: Callable[[Lab, Participant, SentForm], None]) -> Route:
    """Make the route of what a participant sends; the next page is the participant's."""

    def handle(request: Request, form: SentForm) -> Response:
        act(lab_of(request), _person(request), form)
        return RedirectResponse(HOME, 303)

    return Route(f"{HOME}/{act.__name__}", posted(handle), methods=["POST"])


ROUTES: list[BaseRoute] = [
    Route("/", first),
    Route(HOME, show),
    Route(f"{HOME}/part", part),
    Route(f"{HOME}/declined", decline),
    Route(f"{HOME}/agree", posted(agree), methods=["POST"]),
    *map(_of_participant, (answer, say, rate, judge, stop, alone)),
]
