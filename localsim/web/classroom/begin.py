"""Begins or continues a class and serves it: ledger, hall, pages, and the lines that are printed."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from starlette.applications import Starlette

from localsim.backends.scripted import PREFIX
from localsim.conversation.episode import EDITION
from localsim.errors import InvalidInput
from localsim.machine import PORT
from localsim.machine.room import addresses
from localsim.runs.runner import new_run_id
from localsim.scenarios.find import shipped
from localsim.store.database import Store
from localsim.web.app import During, Site, create_app
from localsim.web.classroom import replaying, results
from localsim.web.classroom.form_pages import FORM
from localsim.web.classroom.hall import ClassOpening, Form, Hall, Unended, Wish, new_tokens
from localsim.web.classroom.phone_pages import ENTRANCE, seat_name
from localsim.web.classroom.seats import MODES
from localsim.web.floor.ledger import Ledger
from localsim.web.guard import HOST, Access, address_of, hosts_of, is_loopback, shown
from localsim.web.phrases.table import find
from localsim.web.serve import Address, listen, run_app, settled

Say = Callable[[str], None]


@dataclass(frozen=True)
class Begun:
    """A class that has begun, and waits for its server."""

    hall: Hall
    app: Starlette
    listening: socket.socket
    teacher: str
    """The address of the projector page."""
    fresh: bool


def serve_class(store: Store, wish: Wish, say: Say, *, open_browser: bool, during: During = nullcontext) -> None:
    """Serve a class until Ctrl-C; `during` is that of `Site`.

    Raises InvalidInput, ModelMissing, DatabaseError or BackendUnavailable.
    """
    _serve(begun(store, wish, say, during), say, during, open_browser=open_browser)


def serve_form(store: Store, wish: Wish, say: Say, *, open_browser: bool, during: During = nullcontext) -> None:
    """Serve the page on which a class is chosen, to this computer alone, and then the class that begins there.

    The form begins with the address and the language of `wish`, and takes its port. So does its class at an address of
    the room; a rehearsal takes the next one.
    """
    found: list[Begun] = []

    def begin(chosen: Wish) -> str:
        port = wish.port and wish.port + is_loopback(chosen.host)
        found.append(begun(store, replace(chosen, port=port, by_form=True), say, during))
        app.state.stop()
        return found[0].teacher

    listening = listen(Address(port=wish.port or PORT, fixed=wish.port is not None))
    form = Form(wish.host, wish.language, begin, _unended(store, wish))
    rules = Access(hosts_of(HOST), None)
    app = create_app(Site(store, rules, PREFIX, frozenset({"form"}), form=form, phrases=find(wish.language)))
    address = f"http://{HOST}:{listening.getsockname()[1]}{FORM}"
    say(f"choose and start the class at {address}  (Ctrl-C stops it)")
    run_app(app, listening, address if open_browser else "")
    if found:
        _serve(found[0], say, during, open_browser=False)


def _unended(store: Store, wish: Wish) -> Unended | None:
    """The class of this database that the form can go on with: of shipped scenarios, with a phone that has a seat."""
    with closing(Ledger(store.path)) as ledger:
        first, seats = ledger.first(), {event["seat"] for event in ledger.events if event.get("event") == "sit"}
        ended = ledger.has("closed")
    offered = {loaded.hash: loaded for loaded in shipped().values()}
    if first is None or ended or not seats or not offered.keys() >= set(first["scenarios"]):
        return None
    if replaying.is_earlier(first["computer"]):
        return None
    old = opening_from(first)
    here = [HOST, *(address for _, address in addresses())]
    again = Wish(
        [offered[each] for each in old.scenarios], old.computer, old.alone, old.host if old.host in here else wish.host,
        None, False, None, modes=old.modes, language=old.language, seats=old.seats,
    )  # fmt: skip
    return Unended(again, old.code, len(seats))


def begun(store: Store, wish: Wish, say: Say, during: During = nullcontext) -> Begun:
    """Begin a class or go on with the one that has not ended; the command line and the form do it in this one way."""
    # A scenario that is named twice counts once: its talks are told apart by their number within the scenario.
    wish = replace(wish, scenarios=list({loaded.hash: loaded for loaded in wish.scenarios}.values()))
    phrases = find(wish.language)
    before = None
    if wish.against is not None:
        with during("reading the earlier class"):
            run_id = store.run_id(wish.against)
            before = results.earlier(store, run_id)
        if not any(row.finished for row in before.rows):
            raise InvalidInput(
                f"run {run_id} has no finished talk in agents or mindreaders", hint="localsim runs list shows all runs"
            )
        if wish.replay:
            replaying.refuse_without(replaying.decisions_of(store, run_id), wish.scenarios, run_id)
            wish = replace(wish, computer=replaying.name_for(run_id), alone=True)
    store.ensure_usable()
    ledger = Ledger(store.path)
    try:
        opening, continued = opening_of(ledger, wish)
        opening, listening, moved = settled(ledger, opening, wish.host, wish.port, continued=continued)
        with during("opening the class"):
            hall = Hall(store, wish.scenarios, ledger, opening, say)
            hall.by_form = wish.by_form
            hall.start()
    except BaseException:
        ledger.close()
        raise
    # A rehearsal on loopback asks for the code, too, so that a teacher sees what the room will see.
    rules = Access(
        hosts_of(shown(wish.host)), opening.access, seat_of=lambda request: seat_name(hall, request), entrance=ENTRANCE
    )
    site = Site(store, rules, wish.computer, frozenset({"class"}), hall=hall, before=before, phrases=phrases)
    teacher = address_of(f"{shown(wish.host)}:{opening.port}", f"/class/teacher?key={opening.teacher}", opening.access)
    if continued:
        _tell_continued(say, hall, moved)
    _tell(say, hall, teacher)
    return Begun(hall, create_app(site), listening, teacher, wish.fresh)


def _serve(begun: Begun, say: Say, during: During, *, open_browser: bool) -> None:
    try:
        run_app(begun.app, begun.listening, begun.teacher if open_browser else "")
    finally:
        with during("storing what was played"):
            begun.hall.stop()
        if not begun.hall.register.closed:
            without = " without --new" if begun.fresh else ""
            say(f"the class has stopped; the same command{without} goes on with it")


def opening_of(ledger: Ledger, wish: Wish) -> tuple[ClassOpening, bool]:
    """How the class begins, and True if it continues the one in the ledger."""
    hashes = tuple(loaded.hash for loaded in wish.scenarios)
    fresh = ClassOpening(
        run_id=new_run_id(datetime.now(UTC)), scenarios=hashes, computer=wish.computer, alone=wish.alone,
        host=wish.host, seed=secrets.randbelow(1 << 31), port=wish.port or 0, edition=EDITION, modes=wish.modes,
        language=wish.language, seats=wish.seats, at=round(time.time(), 1), **new_tokens(),
    )  # fmt: skip
    first = None if ledger.has("closed") else ledger.first()  # a class that was ended goes on until its run is complete
    if first is None or wish.fresh:
        return fresh, False
    old = replace(opening_from(first), language=wish.language, seats=wish.seats)
    if not (ledger.has("sit") or old.continues(fresh)):
        return fresh, False
    if not old.continues(fresh):
        raise InvalidInput(
            "the class before has not ended, and this command differs from the one that began it",
            hint="repeat that command to go on, or begin another class with --new",
        )
    ledger.mend()
    return old, True


def opening_from(first: Mapping[str, Any]) -> ClassOpening:
    """The opening that the first line of a ledger states."""
    lists = {"scenarios": tuple(first["scenarios"]), "modes": tuple(first.get("modes", MODES))}
    return ClassOpening(**{**first, **lists})


def _tell_continued(say: Say, hall: Hall, moved: bool) -> None:
    seats, talks = len(hall.register.seats), len(hall.register.meetings)
    if hall.register.ended:
        say(f"the class was ended before: its run is completed ({seats} seats, {talks} talks; --new begins another)")
    else:
        say(f"the class goes on: {seats} seats, {talks} talks (--new begins another)")
        if moved:
            say("this computer has another address: free the seats on the projector page, then phones join again")


def _tell(say: Say, hall: Hall, teacher: str) -> None:
    say(f"projector page, for the teacher alone: {teacher}  (Ctrl-C stops the server; nothing is lost)")
    address = f"http://{shown(hall.opening.host)}:{hall.opening.port}"
    if not is_loopback(hall.opening.host):
        say(f"phones scan the code on that page, or open {address} and type {hall.opening.code}")
        return
    found = [address for _, address in addresses()]
    hint = f"--host {found[0]}" if found else "--host ADDRESS"
    say(f"a rehearsal: open {address} in private windows of this computer, and type {hall.opening.code}")
    say(f"only this computer can join; for phones on the room's network add {hint} (localsim doctor --room checks it)")
