"""What the pages of a floor have in common: who a browser is, what a person sees, and what they send."""

from __future__ import annotations

import hashlib
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from localsim.conversation.rules.deciding import every_way
from localsim.conversation.transcript import Action, ActionType
from localsim.families import family_of
from localsim.reports.evidence import marks
from localsim.web.floor.beats import start_of
from localsim.web.floor.floor import Floor
from localsim.web.floor.state import Live
from localsim.web.floor.ways import action_from, ended_by, forms_of
from localsim.web.guard import SentForm, cookie_name, number_in


def hashed(secret: str) -> str:
    """The form in which the secret of a browser is kept."""
    return hashlib.sha256(secret.encode()).hexdigest()[:32] if secret else ""


def secret_of(request: Request, what: str) -> str:
    """The secret in a cookie of this server; '' without one."""
    return request.cookies.get(cookie_name(request, what), "")


def remembered(request: Request, address: str, what: str, secret: str, seconds: int) -> Response:
    """Go to an address, with a secret that the browser keeps in a cookie."""
    answer = RedirectResponse(address, 303)
    answer.set_cookie(cookie_name(request, what), secret, max_age=seconds, httponly=True, samesite="lax")
    return answer


def talk_values(floor: Floor, live: Live, role: str) -> dict[str, Any]:
    """The values of a template that shows a conversation to the person in a role, and takes their turn."""
    scenario = live.spec.scenario
    with floor.changed:
        seen = floor.seen_by(live, role)
        ways = floor.ways(live, role)
        place = start_of(live.turns)
        awaited = floor.awaited(live, role)
    kinds: list[ActionType] = [kind for kind in ("speak", "leave") if kind in scenario.actions]
    return {
        "role": role,
        "talk": live.meeting.number,
        "seen": seen,
        "sides": [a for a in seen.agents if a.name != role and (a.goal or a.facts or a.secret)],
        "others": [agent.name for agent in seen.agents if agent.name != role],
        "awaited": awaited,
        "computers": live.computers,
        "turns": seen.transcript.turns,
        "turn": place,
        "mine": bool(ways),
        "moving": bool(scenario.moves),
        "forms": forms_of(ways) if scenario.moves else [],
        "kinds": kinds,
        "offered": family_of(scenario.family).offered(scenario, role) if "leave" in kinds else None,
        "chars": scenario.limits.chars,
        "colours": marks.colours(scenario.names),
        "scenario": scenario,
        "tongue": floor.tongues[scenario.id],
    }


def sent_action(floor: Floor, live: Live, role: str, form: SentForm) -> tuple[int, Action]:
    """The first turn of the beat that a form answers, and the action in it. Raises Refused."""
    scenario = live.spec.scenario
    sent = form.multi_items()
    if not scenario.moves and "kind" not in form:
        sent = [*sent, ("kind", "leave" if form.get("leave") else "speak")]
    with floor.changed:
        ways = floor.ways(live, role) or every_way(scenario, role)
    action = action_from(sent, ways, scenario.limits.chars)
    offered = family_of(scenario.family).offered(scenario, role)
    return number_in(form, "turn"), ended_by(action, offered, str(form.get("leave", "")), str(form.get("price", "")))
