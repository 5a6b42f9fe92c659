"""The pages of a phone: join, wait, talk, two bets, and the result after the reveal."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from localsim.errors import InvalidInput
from localsim.reports.evidence import marks
from localsim.web.classroom import results
from localsim.web.classroom.hall import Hall
from localsim.web.classroom.replaying import is_earlier
from localsim.web.classroom.seats import MODES, Bet, Seat
from localsim.web.floor.pages import hashed, remembered, secret_of, sent_action, talk_values
from localsim.web.floor.state import Live
from localsim.web.guard import SentForm, csrf_of, equal, number_in, posted, visitor_of, with_access
from localsim.web.render import page

HOME, ENTRANCE = "/class", "/class/code"
_SEAT_S = 12 * 3600
_ALONE_AFTER_S = 15.0
"""A phone that has waited this long is offered the computer as a partner."""


def hall_of(request: Request) -> Hall:
    """The class of this server."""
    hall = request.app.state.hall
    assert isinstance(hall, Hall)
    return hall


def _key(request: Request) -> str:
    return hashed(secret_of(request, "seat"))


def seat_name(hall: Hall, request: Request) -> str:
    """The name of the seat that a request comes from, for the limits of `guard`; '' for none."""
    seat = hall.register.seat_of(_key(request))
    return str(seat.number) if seat else ""


def _seat(request: Request) -> Seat | None:
    return hall_of(request).seat_with(_key(request))


def _own_seat(request: Request) -> Seat:
    seat = _seat(request)
    if seat is None:
        raise InvalidInput("you have no seat", hint="join the class first; your seat may have been given to another")
    return seat


def state_of(hall: Hall, seat: Seat | None) -> str:
    """What a phone shows: join, wait, talk, bet, read (a talk of others, for a bet), done, reveal, ended or over."""
    if seat is None:
        return "over" if hall.register.ended else "join"
    live = hall.live_of(seat)
    if hall.register.ended:
        return "ended"
    if hall.register.revealed and (live is None or live.ended):
        return "reveal"
    if seat.waiting or live is None:
        return "wait"
    if not live.ended:
        return "talk"
    return "done" if live.problem else _next_bet(hall, seat, live)


def _next_bet(hall: Hall, seat: Seat, live: Live) -> str:
    bet = seat.bets.get(live.meeting.number, Bet())
    if bet.best is None and results.has_goal(hall):
        return "bet"
    return "read" if bet.saw is None and hall.to_read(seat) is not None else "done"


# ---- pages ---------------------------------------------------------------------------------------------------------


def first(_request: Request) -> Response:
    """The address of the server leads to the class."""
    return RedirectResponse(HOME, 303)


def phone(request: Request) -> Response:
    """The page of a phone in its present state."""
    hall, seat = hall_of(request), _seat(request)
    state = state_of(hall, seat)
    return page(request, f"class/{_TEMPLATES[state]}", state=state, seat=seat, **_values(request, seat, state))


_TEMPLATES = {
    "join": "join", "over": "join", "wait": "wait", "talk": "talk", "bet": "bet", "read": "bet", "done": "bet",
    "reveal": "reveal", "ended": "reveal",
}  # fmt: skip


def part(request: Request) -> Response:
    """The part of a phone's page that changes; it asks for the whole page when the state is another one."""
    hall, seat = hall_of(request), _seat(request)
    state = state_of(hall, seat)
    if state != request.query_params.get("on"):
        return page(request, "class/still", changed=True)
    if state not in ("wait", "talk"):
        return page(request, "class/still", changed=False)
    return page(request, f"class/{state}_part", state=state, seat=seat, **_values(request, seat, state))


def _values(request: Request, seat: Seat | None, state: str) -> dict[str, Any]:
    """The values of a phone's templates."""
    hall: Hall = hall_of(request)
    live = hall.live_of(seat) if seat else None
    values: dict[str, Any] = {
        "goal": results.has_goal(hall),
        "alone": hall.opening.alone,
        "replayed": is_earlier(hall.opening.computer),
        "live": live,
        "problem": bool(hall.problem),  # its words may name modes and models: for the projector alone
    }
    if seat is None or state in ("join", "over"):
        return values
    if state == "wait":
        return values | {"offer": hall.waited(seat) > _ALONE_AFTER_S, "computer": hall.opening.computer}
    if live is not None:
        values |= talk_values(hall, live, hall.register.role_of(seat))
    bet = seat.bets.get(live.meeting.number) if live else None
    if state in ("read", "done"):
        read = hall.to_read(seat)
        with hall.changed:
            others = any(seat.number not in each.meeting.people.values() for each in hall.live.values())
        values |= {
            "others": others,
            "read": read,
            "bet": bet,
            "read_colours": marks.colours(read.spec.scenario.names) if read else {},
        }
    if state in ("reveal", "ended"):
        rows = results.by_mode(hall)
        values |= {
            "answer": results.answer(rows, goal=values["goal"]),
            "best": results.best_mode(rows),
            "bet": bet,
            "about": hall.live[bet.about] if bet and bet.about is not None else None,
            "rivals": _rivals(live, request.app.state.before),
        }
    return values


def _rivals(live: Live | None, before: results.Earlier | None) -> str:
    """How a talk did against the earlier class."""
    talk = results.outcome_of(live) if live else None
    return results.rivals_sentence(talk, before.rivals(talk)) if talk and before else ""


# ---- what phones send ----------------------------------------------------------------------------------------------


def join(request: Request, _: SentForm) -> Response:
    """Give the phone a seat; pressing the button twice gives the same one."""
    hall, visitor = hall_of(request), visitor_of(request)
    secret = secret_of(request, "seat") or csrf_of(request)
    with hall.changed:
        if hall.register.seat_of(hashed(secret)) is None:
            if not hall.new_seats.is_left(visitor):
                hint = "wait some minutes, then try again"
                raise InvalidInput("too many seats were taken from this address", hint=hint)
            hall.new_seats.count(visitor)
        hall.join(hashed(secret))
    return remembered(request, HOME, "seat", secret, _SEAT_S)


def say(request: Request, form: SentForm) -> Response:
    """Take a turn."""
    hall, seat = hall_of(request), _own_seat(request)
    live = hall.live_of(seat)
    if live is None:
        raise InvalidInput("you have no talk yet", hint="wait for a partner")
    role = hall.register.role_of(seat)
    hall.take(live, role, *sent_action(hall, live, role, form))
    return RedirectResponse(HOME, 303)


def bet(request: Request, form: SentForm) -> Response:
    """Take the bet on the better mode, or the one on a talk of others."""
    hall, seat = hall_of(request), _own_seat(request)
    best = next((mode for mode in MODES if mode == form.get("best")), None)
    about = number_in(form, "about")
    if about >= 0 and form.get("saw") in ("yes", "no"):
        hall.bet_saw(seat, about, form["saw"] == "yes")
    elif best is not None and results.has_goal(hall):
        hall.bet_best(seat, best)
    else:
        raise InvalidInput("an answer is missing", hint="go back and answer the question")
    return RedirectResponse(HOME, 303)


def again(request: Request, _: SentForm) -> Response:
    """Wait for another talk."""
    hall_of(request).again(_own_seat(request))
    return RedirectResponse(HOME, 303)


def computer(request: Request, _: SentForm) -> Response:
    """Begin a talk with the computer instead of waiting for a person."""
    hall_of(request).with_computer(_own_seat(request))
    return RedirectResponse(HOME, 303)


# ---- the join code -------------------------------------------------------------------------------------------------


def code(request: Request) -> Response:
    """The page that asks for the join code."""
    return page(request, "class/join", state="code", given="", wrong="")


def give_code(request: Request, form: SentForm) -> Response:
    """Let a visitor in who knows the join code."""
    hall, visitor = hall_of(request), visitor_of(request)
    wanted, typed = hall.opening.code, form.get("code", "")
    given = "".join(char for char in typed.upper() if char.isalpha())
    with hall.changed:
        if not hall.wrong_codes.is_left(visitor):
            raise InvalidInput("too many wrong codes were given", hint="wait a minute, then try again")
        if not equal(given, wanted.replace("-", "")):
            hall.wrong_codes.count(visitor)
            return page(request, "class/join", 400, state="code", given=typed[:20], wrong=_wrong(given, wanted))
    return with_access(RedirectResponse(HOME, 303), request, hall.opening.access)


def _wrong(given: str, code: str) -> str:
    """What is wrong with a code, as far as that is no help to somebody who guesses."""
    letters = len(code.replace("-", ""))
    if len(given) != letters:
        return f"The code has {letters} letters, and you typed {len(given)}."
    return "This is not the code: at least one letter differs from those on the projector."


ROUTES: list[BaseRoute] = [
    Route("/", first),
    Route(HOME, phone),
    Route(f"{HOME}/part", part),
    *(Route(f"{HOME}/{act.__name__}", posted(act), methods=["POST"]) for act in (join, say, bet, again, computer)),
    Route(ENTRANCE, code),
    Route(ENTRANCE, posted(give_code), methods=["POST"]),
]
