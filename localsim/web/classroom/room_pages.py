"""The projector page and its buttons, for the teacher alone."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from localsim.errors import InvalidInput
from localsim.machine.room import qr_svg
from localsim.web.classroom import results
from localsim.web.classroom.hall import HERE_S, Hall
from localsim.web.classroom.phone_pages import hall_of
from localsim.web.floor.pages import hashed, remembered, secret_of
from localsim.web.guard import SentForm, address_of, equal, is_loopback, number_in, posted, shown
from localsim.web.render import page

_LONG_S = 120.0
"""A seat whose phone has been away for this long can be freed."""


def _check(request: Request) -> Hall:
    hall = hall_of(request)
    if not equal(secret_of(request, "teacher"), hashed(hall.opening.teacher)):
        raise InvalidInput("this page is for the teacher", hint="open the address that the command has printed")
    return hall


def teacher(request: Request) -> Response:
    """Let the teacher in, who has the key in the printed address."""
    hall = hall_of(request)
    if not equal(request.query_params.get("key", ""), hall.opening.teacher):
        raise InvalidInput("this is not the address of the teacher", hint="open the address that the command printed")
    return remembered(request, "/class/room", "teacher", hashed(hall.opening.teacher), 12 * 3600)


def room(request: Request) -> Response:
    """The projector page."""
    hall = _check(request)
    address = f"{shown(hall.opening.host)}:{hall.opening.port}"
    here_only = is_loopback(hall.opening.host)
    link = address_of(address, "/class", hall.opening.access)
    return page(
        request,
        "class/room",
        address=address,
        qr=qr_svg(link),
        code=hall.opening.code,
        here_only=here_only,
        **_values(hall, request),
    )


def part(request: Request) -> Response:
    """The part of the projector page that changes."""
    hall = _check(request)
    if _stage(hall) != request.query_params.get("on"):
        return page(request, "class/still", changed=True)
    return page(request, "class/room_part", **_values(hall, request))


def seats_part(request: Request) -> Response:
    """The list of seats, with what has become of each phone."""
    return page(request, "class/seats_part", **_values(_check(request), request))


def sure(request: Request) -> Response:
    """Ask once before the reveal, and say what it does to the talks that go on."""
    hall = _check(request)
    if hall.register.revealed:
        return RedirectResponse("/class/room", 303)
    return page(request, "class/sure", **_values(hall, request))


def _stage(hall: Hall) -> str:
    return "ended" if hall.register.ended else "revealed" if hall.register.revealed else "open"


def _values(hall: Hall, request: Request) -> dict[str, Any]:
    rows, bets, goal = results.by_mode(hall), results.bets_of(hall), results.has_goal(hall)
    before = request.app.state.before
    with hall.changed:
        seats = [_seat_row(hall, number) for number in sorted(hall.register.seats)]
    return {
        "stage": _stage(hall),
        "revealed": hall.register.revealed,
        "rows": rows if hall.register.revealed else sorted(rows, key=lambda row: hall.register.letters()[row.mode]),
        "letters": hall.register.letters(),
        "bets": bets,
        "goal": goal,
        "answer": results.answer(rows, goal=goal),
        "best": results.best_mode(rows),
        "bets_text": results.bets_sentence(bets),
        "before": before,
        "contest": results.contest_sentence(*results.contest(hall, before)) if before else "",
        "seats": seats,
        "ended_talks": sum(live.ended for live in hall.live.values()),
        "here": sum(seat["here"] for seat in seats),
        "waiting": sum(seat["state"] == "waits" for seat in seats),
        "problem": hall.problem,
        "run": hall.opening.run_id,
    }


def _seat_row(hall: Hall, number: int) -> dict[str, Any]:
    seat = hall.register.seats[number]
    away, live = hall.away(seat), hall.live_of(seat)
    if seat.waiting or live is None:
        state = "waits"
    elif not live.ended:
        state = f"talks, {len(live.turns)} turns"
    else:
        state = "has bet" if live.meeting.number in seat.bets else "has talked"
    gone = away is None or away > _LONG_S
    return {
        "number": number,
        "state": state,
        "here": bool(seat.key) and away is not None and away < HERE_S,
        "away": None if away is None else int(away // 60),
        "free": not seat.key,
        "can_free": bool(seat.key) and gone and not hall.register.ended,
    }


def act(request: Request, form: SentForm) -> Response:
    """Do what a button of the projector page asks: reveal, end, or free a seat."""
    hall = _check(request)
    what, number = request.path_params["what"], number_in(form, "seat")
    if what == "reveal":
        if not any(live.ended for live in list(hall.live.values())):
            raise InvalidInput("no talk has ended, so there is nothing to reveal", hint="go back and wait for a talk")
        hall.reveal()
    elif what == "end" and form.get("sure"):
        hall.end()
    elif what == "free" and number >= 0:
        hall.free(number)
    else:
        raise InvalidInput("this button needs a tick or a seat", hint="go back, and tick the box before you end it")
    return RedirectResponse("/class/room", 303)


ROUTES: list[BaseRoute] = [
    Route("/class/teacher", teacher),
    Route("/class/room", room),
    Route("/class/room/part", part),
    Route("/class/room/seats", seats_part),
    Route("/class/room/reveal", sure),
    Route("/class/room/{what}", posted(act), methods=["POST"]),
]
