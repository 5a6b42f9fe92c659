"""Sheets to print: what to say in 45 minutes, the hand-out, its solution, and role cards for a class without phones."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from localsim.conversation.episode import Mode
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe
from localsim.web.classroom.room_pages import hall_for_teacher
from localsim.web.render import page

PARTS = {
    "say": "sheets.say.title",
    "students": "sheets.students.title",
    "solution": "sheets.solution.title",
    "cards": "sheets.cards.title",
}
"""A sheet -> the phrase that names it."""


def sheets(request: Request) -> Response:
    """All sheets, or the one that `only` names."""
    hall = hall_for_teacher(request)
    wanted = request.query_params.get("only")
    scenario = hall.scenarios[0].scenario
    return page(
        request,
        "class/sheets",
        parts=PARTS,
        shown=[wanted] if wanted in PARTS else list(PARTS),
        cards=[_card(scenario, mode, role) for mode in hall.opening.modes for role in scenario.names],
        tongue=hall.tongues[scenario.id],
    )


def _card(scenario: Scenario, mode: Mode, role: str) -> dict[str, object]:
    """What a player of a role sees before the first turn, as on a phone."""
    seen = observe(scenario, mode, role, Transcript())
    return {
        "role": role,
        "letter": "A" if mode == "agents" else "B",
        "setting": seen.setting,
        "own": next(agent for agent in seen.agents if agent.name == role),
        "sides": [agent for agent in seen.agents if agent.name != role and (agent.goal or agent.facts or agent.secret)],
    }


ROUTES: list[BaseRoute] = [Route("/class/sheets", sheets)]
