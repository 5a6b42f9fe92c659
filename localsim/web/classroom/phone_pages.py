"""The pages of a phone: join, wait, talk, two bets, and the result after the reveal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from localsim.conversation.transcript import Turn
from localsim.families import family_of
from localsim.families.language import is_foreign, words_in, words_of
from localsim.reports.evidence import marks
from localsim.web.classroom import results, telling
from localsim.web.classroom.hall import Hall
from localsim.web.classroom.replaying import is_earlier
from localsim.web.classroom.results import picture
from localsim.web.classroom.seats import GUESSES, Bet, Guess, Seat
from localsim.web.classroom.telltale import found_in
from localsim.web.floor.pages import hashed, remembered, secret_of, sent_action, talk_values
from localsim.web.floor.state import Live
from localsim.web.guard import SentForm, csrf_of, equal, number_in, posted, visitor_of, with_access
from localsim.web.phrases.table import Phrases, Refused
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
        raise Refused("no_seat")
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
    asked = results.questions(hall)
    if any(getattr(bet, question) is None for question in asked):
        return "bet"
    reads = len(hall.opening.modes) > 1 and bet.saw is None and hall.to_read(seat) is not None
    return "read" if reads else "done"


# ---- pages ---------------------------------------------------------------------------------------------------------


def first(_request: Request) -> Response:
    """The address of the server leads to the class."""
    return RedirectResponse(HOME, 303)


def phone(request: Request) -> Response:
    """The page of a phone in its present state."""
    values = _state(request)
    return page(request, f"class/{_TEMPLATES[values['state']]}", **values)


_TEMPLATES = {
    "join": "join", "over": "join", "wait": "wait", "talk": "talk", "bet": "bet", "read": "bet", "done": "bet",
    "reveal": "reveal", "ended": "reveal",
}  # fmt: skip


def part(request: Request) -> Response:
    """The part of a phone's page that changes; it asks for the whole page when the state is another one."""
    values = _state(request)
    state = values["state"]
    if values["on"] != request.query_params.get("on"):
        return page(request, "class/still", changed=True)
    if state not in ("wait", "talk", "done"):
        return page(request, "class/still", changed=False)
    return page(request, f"class/{state}_part", **values)


def _state(request: Request) -> dict[str, Any]:
    """What a phone shows now, and the values of its template, read at one moment."""
    hall = hall_of(request)
    with hall.changed:
        seat = _seat(request)
        state = state_of(hall, seat)
        # What the reveal shows changes with each talk that ends after it.
        over = sum(live.ended for live in hall.live.values())
        on = f"{state}-{over}" if state in ("reveal", "ended") else state
        return {"state": state, "on": on, "seat": seat, **_values(request, seat, state)}


def _values(request: Request, seat: Seat | None, state: str) -> dict[str, Any]:
    """The values of a phone's templates. Only under the lock."""
    hall: Hall = hall_of(request)
    t: Phrases = request.app.state.phrases
    live = hall.live_of(seat) if seat else None
    values: dict[str, Any] = {
        "questions": results.questions(hall),
        "guesses": telling.NAMES,
        "tongues": set(hall.tongues.values()),
        "partner": partner_of(hall),
        "sight": telling.sight_of(hall.opening.computer),
        "live": live,
        "problem": bool(hall.problem),  # its words may name modes and models: for the projector alone
    }
    if seat is None or state in ("join", "over"):
        return values
    values["earlier"] = _earlier_talks(hall, seat, None if state == "wait" else live)
    if state == "wait":
        return values | {"offer": hall.waited(seat) > _ALONE_AFTER_S}
    if live is not None:
        values |= talk_values(hall, live, hall.register.role_of(seat))
        tongue = values["tongue"]
        said = words_of(live.turns, values["role"]) if state == "talk" else ""
        foreign = bool(said) and is_foreign(said, tongue, words_in(live.spec.scenario))
        values["other_tongue"] = t("talk.write_in", tongue=telling.tongue_in([tongue], t)) if foreign else ""
    bet = seat.bets.get(live.meeting.number) if live else None
    if state in ("read", "done"):
        read = hall.to_read(seat) if len(hall.opening.modes) > 1 else None
        values |= {
            "others": hall.is_one_to_come(seat),
            "why": hall.why_none(seat),
            "left": hall.register.has_left(seat.number),
            "unbet": sum(live.meeting.number not in hall.register.seats[n].bets for n in live.meeting.people.values())
            if live and bet
            else 0,
            "read": read,
            "bet": bet,
            "read_colours": marks.colours(read.spec.scenario.names) if read else {},
        }
    if state in ("reveal", "ended"):
        rows, apart = results.by_mode(hall)
        values |= revealed_in(hall, rows, apart, t) | {
            "truths": {question: results.truth(rows, question) for question in values["questions"]},
            "bet": bet,
            "about": hall.live[bet.about] if bet and bet.about is not None else None,
            "rivals": _rivals(live, request.app.state.before, t),
        }
    return values


@dataclass(frozen=True)
class _EarlierTalk:
    """A talk of a seat before the one that its page is about."""

    live: Live
    role: str
    turns: Sequence[Turn]
    colours: Mapping[str, int]
    bet: Bet | None
    about: Live | None
    """The talk of others on which the seat bet after it."""


def _earlier_talks(hall: Hall, seat: Seat, shown: Live | None) -> list[_EarlierTalk]:
    """The talks of a seat that have ended, without the one that is shown. Only under the lock."""
    found = []
    for number, live in sorted(hall.live.items()):
        if live is shown or seat.number not in live.meeting.people.values():
            continue
        role, bet = live.meeting.role_of(seat.number), seat.bets.get(number)
        about = hall.live[bet.about] if bet and bet.about is not None else None
        turns, colours = hall.seen_by(live, role).transcript.turns, marks.colours(live.spec.scenario.names)
        found.append(_EarlierTalk(live, role, turns, colours, bet, about))
    return found


def partner_of(hall: Hall) -> str:
    """Who the other side is: a phone, the computer, or what an earlier class did."""
    return "replayed" if is_earlier(hall.opening.computer) else "computer" if hall.opening.alone else "phone"


def revealed_in(
    hall: Hall, rows: Sequence[results.ModeRow], apart: Sequence[results.ModeRow], t: Phrases
) -> dict[str, Any]:
    """What the reveal shows on phones and projector. Only under the lock."""
    count, _ = results.parted(results.outcomes(hall))
    own = found_in(hall.live[number] for number in count)
    families = [family_of(loaded.scenario.family) for loaded in hall.scenarios]
    judged = all(family.hits for family in families)
    return {
        "finding": telling.finding(rows, t),
        "certainty": telling.certainty(rows, t),
        "doubt": telling.certainty(rows, t, "hits"),
        "computer_talks": telling.computer_sentence(rows, apart, hall.opening.computer, t),
        "foreign_talks": telling.foreign_sentence(hall.live.values(), hall.tongues, t),
        "tongue_of": hall.tongues,
        "mixed": results.mixed(rows, {loaded.scenario.id: loaded.scenario.family for loaded in hall.scenarios}),
        "picture": picture(rows),
        "counted": any(family.hits for family in families),
        "judged": judged,
        "unseen": "mindreaders" not in hall.opening.modes,
        "shown": own or (hall.scripted if judged else None),
        "colours_of": marks.colours,
    }


def _rivals(live: Live | None, before: results.Earlier | None, t: Phrases) -> str:
    """How a talk did against the earlier class."""
    talk = results.outcome_of(live) if live else None
    return telling.rivals_sentence(talk, before.rivals(talk), t) if talk and before else ""


# ---- what phones send ----------------------------------------------------------------------------------------------


def join(request: Request, _: SentForm) -> Response:
    """Give the phone a seat; pressing the button twice gives the same one."""
    hall, visitor = hall_of(request), visitor_of(request)
    secret = secret_of(request, "seat") or csrf_of(request)
    with hall.changed:
        if hall.register.seat_of(hashed(secret)) is None:
            if not hall.new_seats.is_left(visitor):
                raise Refused("many_seats")
            hall.new_seats.count(visitor)
        hall.join(hashed(secret))
    return remembered(request, HOME, "seat", secret, _SEAT_S)


def say(request: Request, form: SentForm) -> Response:
    """Take a turn."""
    hall, seat = hall_of(request), _own_seat(request)
    live = hall.live_of(seat)
    if live is None:
        raise Refused("no_talk_yet")
    role = hall.register.role_of(seat)
    hall.take(live, role, *sent_action(hall, live, role, form))
    return RedirectResponse(HOME, 303)


def bet(request: Request, form: SentForm) -> Response:
    """Take the bets on the modes, or the one on a talk of others."""
    hall, seat = hall_of(request), _own_seat(request)
    given: dict[str, Guess] = {
        question: guess for question in results.questions(hall) for guess in GUESSES if form.get(question) == guess
    }
    about = number_in(form, "about")
    if about >= 0 and form.get("saw") in ("yes", "no"):
        hall.bet_saw(seat, about, form["saw"] == "yes")
    elif given and len(given) == len(results.questions(hall)):
        hall.bet_modes(seat, **given)
    else:
        raise Refused("no_answer")
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
            raise Refused("many_codes")
        if not equal(given, wanted.replace("-", "")):
            hall.wrong_codes.count(visitor)
            wrong = _wrong(request.app.state.phrases, given, wanted)
            return page(request, "class/join", 400, state="code", given=typed[:20], wrong=wrong)
    return with_access(RedirectResponse(HOME, 303), request, hall.opening.access)


def _wrong(t: Phrases, given: str, code: str) -> str:
    """What is wrong with a code, as far as that is no help to somebody who guesses."""
    letters = len(code.replace("-", ""))
    if len(given) != letters:
        return t.plain("join.letters", letters=letters, typed=len(given))
    return t.plain("join.differs")


ROUTES: list[BaseRoute] = [
    Route("/", first),
    Route(HOME, phone),
    Route(f"{HOME}/part", part),
    *(Route(f"{HOME}/{act.__name__}", posted(act), methods=["POST"]) for act in (join, say, bet, again, computer)),
    Route(ENTRANCE, code),
    Route(ENTRANCE, posted(give_code), methods=["POST"]),
]
