"""The projector page, its buttons and sheets to print, for the teacher alone.

The sheets: what to say in 45 minutes, the hand-out, its solution, and role cards for a class without phones.
"""

from __future__ import annotations

import shlex
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from localsim.conversation.episode import Mode
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe
from localsim.families import family_of
from localsim.machine.room import qr_svg
from localsim.paths import db_option
from localsim.web.classroom import results, telling
from localsim.web.classroom.hall import HERE_S, MOST_SEATS, ClassOpening, Hall
from localsim.web.classroom.phone_pages import hall_of, revealed_in, state_of
from localsim.web.classroom.replaying import is_earlier
from localsim.web.classroom.telltale import PREPARED
from localsim.web.floor.beats import open_beat
from localsim.web.floor.pages import hashed, remembered, secret_of
from localsim.web.floor.state import Live, Meeting
from localsim.web.guard import SentForm, address_of, equal, is_loopback, number_in, posted, shown
from localsim.web.phrases.table import Phrases, Refused, english
from localsim.web.render import page

_LONG_S = 120.0
"""A seat whose phone has been away for this long can be freed."""


def hall_for_teacher(request: Request) -> Hall:
    """The class, for the teacher's browser alone. Raises Refused."""
    hall = hall_of(request)
    if not equal(secret_of(request, "teacher"), hashed(hall.opening.teacher)):
        raise Refused("no_teacher")
    return hall


def teacher(request: Request) -> Response:
    """Let the teacher in, who has the key in the printed address."""
    hall = hall_of(request)
    if not equal(request.query_params.get("key", ""), hall.opening.teacher):
        raise Refused("no_teacher")
    return remembered(request, "/class/room", "teacher", hashed(hall.opening.teacher), 12 * 3600)


def room(request: Request) -> Response:
    """The projector page."""
    hall = hall_for_teacher(request)
    address = f"{shown(hall.opening.host)}:{hall.opening.port}"
    link = address_of(address, "/class", hall.opening.access)
    return page(
        request,
        "class/room",
        address=address,
        qr=qr_svg(link),
        code=hall.opening.code,
        by_form=hall.by_form,
        seats_open="seats" in request.query_params,
        **_values(hall, request),
    )


def part(request: Request) -> Response:
    """The part of the projector page that changes."""
    hall = hall_for_teacher(request)
    if _stage(hall) != request.query_params.get("on"):
        return page(request, "class/still", changed=True)
    return page(request, "class/room_part", **_values(hall, request))


def seats_part(request: Request) -> Response:
    """The list of seats, with what has become of each phone."""
    return page(request, "class/seats_part", **_values(hall_for_teacher(request), request))


def sure(request: Request) -> Response:
    """Ask once before the reveal, and say what it does to the talks that go on."""
    hall = hall_for_teacher(request)
    if hall.register.revealed:
        return RedirectResponse("/class/room", 303)
    with hall.changed:
        reading = sum(
            state_of(hall, seat) == "read" and all(bet.saw is None for bet in seat.bets.values())
            for seat in hall.register.seats.values()
            if seat.key
        )
    return page(request, "class/sure", reading=reading, **_values(hall, request))


def _stage(hall: Hall) -> str:
    return "ended" if hall.register.ended else "revealed" if hall.register.revealed else "open"


def _values(hall: Hall, request: Request) -> dict[str, Any]:
    t: Phrases = request.app.state.phrases
    before, here_only = request.app.state.before, is_loopback(hall.opening.host)
    with hall.changed:
        (rows, apart), bets = results.by_mode(hall), results.bets_of(hall)
        seats = [_seat_row(hall, number, t) for number in sorted(hall.register.seats)]
        pairs = [
            (number, len(live.turns), _end_of(live), bool(live.computers)) for number, live in sorted(hall.live.items())
        ]
        lives = list(hall.live.values())
        asked = any(state_of(hall, seat) in ("bet", "read") for seat in hall.register.seats.values() if seat.key)
        revealed = hall.register.revealed
        newest = {
            seat: number
            for number, live in sorted(hall.live.items())
            if not live.problem
            for seat in live.meeting.people.values()
        }
        has_bet = {seat: number in hall.register.seats[seat].bets for seat, number in newest.items()}
        placed, betting = sum(has_bet.values()), sum(bet or not _is_gone(hall, seat) for seat, bet in has_bet.items())
        shown = revealed_in(hall, rows, apart, t) if revealed else {}
    waiting = sum(seat["waits"] and seat["here"] for seat in seats)
    ended = sum(live.ended for live in lives)
    going = len(lives) - ended
    return shown | {
        "stage": _stage(hall),
        "revealed": revealed,
        "rows": rows,
        "apart": apart,
        "bets": bets,
        "questions": results.questions(hall),
        "betting": (placed, betting) if len(hall.opening.modes) > 1 else None,
        "tongues": set(hall.tongues.values()),
        "bets_text": telling.bets_sentence(bets, t),
        "guessed": telling.guessed(bets, rows, t),
        "before": before,
        "contest": telling.contest_sentence(*results.contest(hall, before), t) if before else "",
        "seats": seats,
        "most_seats": hall.opening.seats if hall.opening.seats < MOST_SEATS else None,
        "pairs": pairs,
        "here_only": here_only,
        "do": _now(here_only=here_only, begun=bool(pairs), going=going, asked=asked, waiting=waiting),
        "time": time.strftime("%H:%M"),
        "minutes": max(0, int((time.time() - hall.opening.at) // 60)) if hall.opening.at else 0,
        "ended_talks": ended,
        "finished": sum(live.completed for live in lives),
        "broken_off": sum(live.broken_off for live in lives),
        "going": going,
        "here": sum(seat["here"] for seat in seats),
        "waiting": waiting,
        "problem": hall.problem,
        "run": hall.opening.run_id,
        "searched": hall.searched,
        "report": f"localsim report {hall.opening.run_id}{db_option(hall.store.path)}",
    }


def _is_gone(hall: Hall, number: int) -> bool:
    seat = hall.register.seats[number]
    away = hall.away(seat)
    return not seat.key or away is None or away > _LONG_S


def _end_of(live: Live) -> str:
    """The phrase for how a talk ended; '' while it goes on."""
    if not live.ended:
        return ""
    return "seats.broken" if live.broken_off else "room.pair_stopped" if live.problem else "room.pair_done"


def _now(*, here_only: bool, begun: bool, going: int, asked: bool, waiting: int) -> str:
    """What the class does now, as the phrases `room.do.` name it; `wait` if all else is done and a phone waits."""
    if not begun:
        return "rehearse" if here_only else "join"
    return "talk" if going else "bet" if asked else "wait" if waiting else "reveal"


def _seat_row(hall: Hall, number: int, t: Phrases) -> dict[str, Any]:
    seat = hall.register.seats[number]
    away, live = hall.away(seat), hall.live_of(seat)
    waits = seat.waiting or live is None
    if seat.waiting or live is None:
        state = t.plain("seats.waits")
    elif not live.ended:
        state = t.plain("seats.talks", count=len(live.turns))
    elif live.broken_off or live.problem:
        state = t.plain(_end_of(live))
    else:
        state = t.plain("seats.bet" if live.meeting.number in seat.bets else "seats.talked")
    return {
        "number": number,
        "state": state,
        "waits": waits,
        "here": bool(seat.key) and away is not None and away < HERE_S,
        "away": None if away is None else int(away // 60),
        "free": not seat.key,
        "can_free": bool(seat.key) and _is_gone(hall, number) and not hall.register.ended,
    }


def act(request: Request, form: SentForm) -> Response:
    """Do what a button of the projector page asks: reveal, end, or free a seat."""
    hall = hall_for_teacher(request)
    what, number = request.path_params["what"], number_in(form, "seat")
    if what == "reveal":
        if not any(live.ended for live in list(hall.live.values())):
            raise Refused("nothing_to_reveal")
        hall.reveal()
    elif what == "end" and form.get("sure"):
        hall.end()
    elif what == "free" and number >= 0:
        hall.free(number)
        return RedirectResponse("/class/room?seats", 303)
    else:
        raise Refused("no_button")
    return RedirectResponse("/class/room", 303)


# ---- sheets ----------------------------------------------------------------------------------------------------------

PARTS = {
    "say": "sheets.say.title",
    "students": "sheets.students.title",
    "solution": "sheets.solution.title",
    "cards": "sheets.cards.title",
}
"""A sheet -> the phrase that names it."""
_SOLVED_WORDS = ("modes", "beside")
"""Words that give away what others see."""


def sheets(request: Request) -> Response:
    """All sheets, or the one that `only` names."""
    hall = hall_for_teacher(request)
    wanted = request.query_params.get("only")
    scenario, t = hall.scenarios[0].scenario, request.app.state.phrases
    foreign = hall.tongues[scenario.id] == english().code != t.code
    families = dict.fromkeys(loaded.scenario.family for loaded in hall.scenarios)
    names = [name.removeprefix("sheets.words.") for name in english().texts]
    told = [name for family in families for name in names if name.startswith(f"{family}.")]  # the words of its talks
    hit = ["hit"] if any(family_of(family).hits for family in families) else []
    words, more = (
        [tuple(each.plain(f"sheets.words.{word}") for each in (english(), t)) for word in listed if foreign]
        for listed in ([*told, *hit], _SOLVED_WORDS)
    )
    return page(
        request,
        "class/sheets",
        parts=PARTS,
        shown=[wanted] if wanted in PARTS else list(PARTS),
        cards=_cards(hall),
        tongues=set(hall.tongues.values()),
        tongue=hall.tongues[scenario.id],
        words=words,
        solved_words=words + more,
        command=_command(hall),
        prepared=" ".join(PREPARED),
    )


def _command(hall: Hall) -> str:
    """The command that begins such a class."""
    opening, chosen = hall.opening, [loaded.scenario.id for loaded in hall.scenarios]
    if opening.alone and not is_earlier(opening.computer):
        chosen += ["--with", opening.computer]
    if len(opening.modes) == 1:
        chosen += ["--mode", *opening.modes]
    if opening.language != ClassOpening.language:
        chosen += ["--language", opening.language]
    return shlex.join(["localsim", "class", *chosen])


def _cards(hall: Hall) -> list[dict[str, object]]:
    """The cards of all scenarios, which have a number where there are several."""
    cards = []
    for place, loaded in enumerate(hall.scenarios):
        scenario = loaded.scenario
        number = place + 1 if len(hall.scenarios) > 1 else ""
        for mode in hall.opening.modes:
            first = open_beat(hall.spec_of(Meeting(0, place, mode, 0, {})), ())
            begin = first.act.speakers if first else ()
            more = {"number": number, "begin": begin, "tongue": hall.tongues[scenario.id]}
            cards += [_card(scenario, mode, role) | more for role in scenario.names]
    return cards


def _card(scenario: Scenario, mode: Mode, role: str) -> dict[str, object]:
    """What a player of a role sees before the first turn, as on a phone."""
    seen = observe(scenario, mode, role, Transcript())
    return {
        "role": role,
        "letter": "A" if mode == "agents" else "B",
        "setting": seen.setting,
        "turns": seen.turn_limit,
        "own": next(agent for agent in seen.agents if agent.name == role),
        "sides": [agent for agent in seen.agents if agent.name != role and (agent.goal or agent.facts or agent.secret)],
    }


ROUTES: list[BaseRoute] = [
    Route("/class/teacher", teacher),
    Route("/class/room", room),
    Route("/class/room/part", part),
    Route("/class/room/seats", seats_part),
    Route("/class/room/reveal", sure),
    Route("/class/room/{what}", posted(act), methods=["POST"]),
    Route("/class/sheets", sheets),
]
