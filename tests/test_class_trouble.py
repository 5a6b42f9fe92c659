"""A class in which something goes wrong: odd phones, a crash at the end, a new address, a defect, intruders."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click.testing
import pytest
from starlette.testclient import TestClient

from localsim.cli.config import doctor
from localsim.errors import InvalidInput, LocalsimError
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from localsim.store.lock import Busy
from localsim.web.classroom import begin, results, telling
from localsim.web.classroom.begin import opening_of, serve_class
from localsim.web.classroom.hall import Hall, Wish
from localsim.web.classroom.phone_pages import ENTRANCE
from localsim.web.classroom.seats import MODES, Register, Seat
from localsim.web.floor.floor import Floor
from localsim.web.floor.ledger import Ledger
from localsim.web.floor.state import Live, Meeting
from localsim.web.guard import Allowance
from localsim.web.phrases.table import english
from tests.test_class import SCENARIOS, app_of, first_speaker, free_port, hall_at, joined, placed
from tests.web_server import field


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def said_goodbye(hall: Hall, clients: tuple[TestClient, TestClient], number: int = 1) -> TestClient:
    """Let a talk of the first two phones end; return the phone that ended it."""
    speaker = clients[first_speaker(hall, number) - 1]
    page = speaker.get("/class").text
    speaker.post("/class/say", data={"csrf": field(page, "csrf"), "turn": "0", "text": "Bye", "leave": "1"})
    return speaker


def played(live: Live, hall: Hall, clients: Sequence[TestClient]) -> None:
    """Let a talk take its course."""
    until(lambda: any(hall.ways(live, role) for role in live.meeting.people))
    for words in ("First words", "Last words"):
        role = next(role for role in live.meeting.people if hall.ways(live, role))
        speaker = clients[live.meeting.people[role] - 1]
        said = {"csrf": field(speaker.get("/class").text, "csrf"), "turn": str(len(live.turns)), "text": words}
        speaker.post("/class/say", data={**said, **({"leave": "1"} if words == "Last words" else {})})
        until(lambda: live.ended or any(hall.ways(live, role) for role in live.meeting.people))


def wish(host: str = "127.0.0.1", fresh: bool = False) -> Wish:
    return Wish(find_scenarios(list(SCENARIOS)), "scripted", False, host, free_port(), fresh, None)


def test_a_phone_that_waits_at_the_reveal_sees_the_results_of_the_class(tmp_path: Path) -> None:
    with hall_at(tmp_path / "w.duckdb") as hall, app_of(hall) as one, app_of(hall) as two, app_of(hall) as three:
        for client in (one, two, three):
            joined(client)
        hall.reveal()
        answer = three.get("/class")
        assert answer.status_code == 200 and "The reveal" in answer.text and "Your talk" not in answer.text
        assert three.get("/class/part?on=reveal").status_code == 200
        hall.end()
        until(lambda: hall.register.closed)
        assert three.get("/class").status_code == 200


def test_a_crash_after_the_end_was_pressed_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "k.duckdb"
    with hall_at(path) as hall, app_of(hall) as one, app_of(hall) as two, app_of(hall) as three, app_of(hall) as four:
        for client in (one, two, three, four):
            joined(client)
        said_goodbye(hall, (one, two))
        run = hall.opening.run_id
    with path.with_name("k.duckdb.class").open("a") as ledger:  # what the crash leaves: the bet is in no database yet
        ledger.write(json.dumps({"event": "bet", "seat": 1, "talk": 1, "turns": "agents"}) + "\n")
        ledger.write(json.dumps({"event": "end"}) + "\n")
    with hall_at(path) as hall:
        assert hall.opening.run_id == run and hall.register.ended
        until(lambda: hall.register.closed)
    store = Store(path)
    assert [row["status"] for row in store.rows("SELECT status FROM runs")] == ["finished"]
    ended = store.rows("SELECT status FROM v_episodes ORDER BY status")
    assert [row["status"] for row in ended] == ["completed", "interrupted"]
    assert len(store.rows("SELECT * FROM annotations WHERE task = 'bet'")) == 1
    with hall_at(path) as hall:
        assert hall.opening.run_id != run, "a class whose run is complete does not go on"


def test_bets_that_the_database_did_not_take_keep_the_class_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b.duckdb"

    def busy(*_: object) -> None:
        raise Busy("another program holds it")

    with hall_at(path) as hall, app_of(hall) as one, app_of(hall) as two:
        monkeypatch.setattr("localsim.web.floor.floor.annotation_queries.store_answers", busy)
        for client in (one, two):
            joined(client)
        speaker = said_goodbye(hall, (one, two))
        bet = {"csrf": field(speaker.get("/class").text, "csrf"), "turns": "agents", "hits": "same"}
        assert speaker.post("/class/bet", data=bet).status_code == 200
        hall.end()
        hall.leave()
        assert not hall.register.closed
    monkeypatch.undo()
    with hall_at(path) as hall:
        until(lambda: hall.register.closed)
    assert len(Store(path).rows("SELECT * FROM annotations WHERE task = 'bet'")) == 1


def test_a_class_goes_on_at_another_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, told, runs = Store(tmp_path / "a.duckdb"), list[str](), list[str]()

    def visited(app: object, *_: object) -> None:
        hall = app.state.hall  # type: ignore[attr-defined]
        runs.append(hall.opening.run_id)
        if not hall.register.seats:
            hall.join("a phone")

    monkeypatch.setattr(begin, "run_app", visited)
    for host in ("127.0.0.1", "127.0.0.2", "127.0.0.2"):
        serve_class(store, wish(host), told.append, open_browser=False)
    assert len(set(runs)) == 1
    assert [line.startswith("this computer has another address") for line in told].count(True) == 1
    assert any("http://127.0.0.2:" in line for line in told)


def test_the_last_line_of_a_new_class_says_how_to_go_on_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(begin, "run_app", lambda *_: None)
    serve_class(Store(tmp_path / "n.duckdb"), wish(fresh=True), told.append, open_browser=False)
    assert told[-1] == "the class has stopped; the same command without --new goes on with it"
    serve_class(Store(tmp_path / "n.duckdb"), wish(), told.append, open_browser=False)
    assert told[-1] == "the class has stopped; the same command goes on with it"


def test_a_class_plays_against_an_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "v.duckdb"
    with hall_at(path) as hall, app_of(hall) as one, app_of(hall) as two:
        for client in (one, two):
            joined(client)
        said_goodbye(hall, (one, two))
        hall.end()
        until(lambda: hall.register.closed)
        run = hall.opening.run_id
    before = results.earlier(Store(path), run)
    (old,) = before.talks
    assert old.success == 0
    with hall_at(path) as hall, app_of(hall) as one, app_of(hall) as two, app_of(hall) as projector:
        for client in (one, two):
            joined(client)
        speaker = said_goodbye(hall, (one, two))
        (live,) = hall.live.values()
        until(lambda: live.completed)
        assert results.contest(hall, replace(before, talks=[replace(old, scenario_id="other")])) == (0, 0, 0)
        before = replace(before, talks=[replace(old, scenario_id=live.spec.scenario.id, mode=live.meeting.mode)])
        assert results.contest(hall, before) == (0, 0, 1), "neither reached its goal"
        live.success = 1.0
        for client in (speaker, projector):
            client.app.state.before = before  # type: ignore[attr-defined]
        hall.reveal()
        assert "it beats 1 of them and loses to 0" in speaker.get("/class").text
        page = projector.get(f"/class/teacher?key={hall.opening.teacher}").text
        assert "won 1, lost 0, tied 0 of 1" in page


def test_a_talk_wins_if_it_alone_reaches_its_goal_or_reaches_it_sooner() -> None:
    def talk(success: float | None, turns: int, mode: str = "agents") -> results.Outcome:
        return results.Outcome("friends", mode, success, turns)

    assert talk(1, 9).beats(talk(0, 3)) and not talk(0, 3).beats(talk(1, 9))
    assert talk(1, 5).beats(talk(1, 6)) and not talk(1, 6).beats(talk(1, 6))
    assert not talk(0, 2).beats(talk(0, 9)), "nobody wins without the goal"
    other = [talk(1, 6), talk(0, 9), talk(1, 8, "mindreaders")]
    before = results.Earlier("run", [], results.Bets((), {}), other)
    assert before.rivals(talk(None, 3)) == [] and before.rivals(talk(1, 3)) == other[:2]
    t = english()
    told = telling.rivals_sentence(talk(1, 7), before.rivals(talk(1, 7)), t)
    assert "2 times and reached the goal 1 times. It took 6 turns" in told and "beats 1 of them and loses to 1" in told
    assert telling.rivals_sentence(talk(1, 7), [], t) == telling.contest_sentence(0, 0, 0, t) == ""


def test_a_scenario_that_is_named_twice_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    halls: list[Hall] = []
    monkeypatch.setattr(begin, "run_app", lambda app, *_: halls.append(app.state.hall))
    twice = replace(wish(), scenarios=[*wish().scenarios, *wish().scenarios])
    serve_class(Store(tmp_path / "d.duckdb"), twice, lambda _: None, open_browser=False)
    assert len(halls[0].scenarios) == len(SCENARIOS)
    ledger = Ledger(tmp_path / "d.duckdb")
    try:
        opening, _ = opening_of(ledger, wish())
        assert len(opening.scenarios) == len(SCENARIOS)
    finally:
        ledger.close()


# ---- the thread of the talks ---------------------------------------------------------------------------------------


def test_phones_and_projector_say_that_the_talks_have_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[tuple[threading.Thread | None, str]]()

    def failing() -> bool:
        raise RuntimeError("a defect")

    monkeypatch.setattr(threading, "excepthook", lambda about: seen.append((about.thread, str(about.exc_value))))
    with hall_at(tmp_path / "x.duckdb") as hall, app_of(hall) as one, app_of(hall) as two, app_of(hall) as three:
        for client in (one, two, three):
            joined(client)
        said = {"csrf": field(one.get("/class").text, "csrf"), "turn": "0", "text": "Hello."}
        monkeypatch.setattr(hall, "leaves", failing)
        until(lambda: bool(hall.problem))
        begun = time.monotonic()
        assert "nothing more can be said" in one.post("/class/say", data=said).text
        assert time.monotonic() - begun < 10, "nobody waits for a disk that nothing is written to"
        for client, state in ((one, "talk"), (two, "talk"), (three, "wait")):
            assert "talks have stopped" in client.get(f"/class/part?on={state}").text
        page = three.get(f"/class/teacher?key={hall.opening.teacher}").text
        assert "something unexpected happened" in page
    assert [told for thread, told in seen if thread is hall._thread] == ["a defect"], "the terminal shows the details"


def test_players_bet_on_a_talk_of_others_which_their_own_page_does_not_give_away(tmp_path: Path) -> None:
    path = tmp_path / "r.duckdb"
    with hall_at(path) as hall, ExitStack() as phones:
        clients = [phones.enter_context(app_of(hall)) for _ in range(6)]
        for client in clients:
            joined(client)
        three, first = clients[2], said_goodbye(hall, (clients[0], clients[1]))
        page = first.get("/class").text
        assert (
            "Which half needs fewer turns?" in page
            and "did not reach its goal" in page
            and "could these two see" not in page
        )
        page = first.post("/class/bet", data={"csrf": field(page, "csrf"), "turns": "agents", "hits": "same"}).text
        assert "When a talk of others has ended, it appears here" in page
        assert "1 phone of this talk has not bet yet." in page, "its partner"
        played(hall.live[2], hall, clients)
        beside = {"csrf": field(page, "csrf"), "about": "2", "saw": "yes"}
        assert "When a talk of others" in first.get("/class").text, (
            "a neighbour has the other mode, so its number tells"
        )
        assert first.post("/class/bet", data=beside).status_code == 400
        other = hall.live[3]
        played(other, hall, clients)
        page = first.get("/class").text
        assert "First words" in page and "What could these two see" in page and "agents" not in page
        assert "data-reload" in first.get("/class/part?on=done").text, "a phone that waits loads the talk by itself"
        bet = {"csrf": field(page, "csrf"), "about": field(page, "about"), "saw": "yes"}
        assert "Your bets are stored" in first.post("/class/bet", data=bet).text
        bets = results.bets_of(hall)
        assert (bets.count, placed(bets)) == (1, 3) and bets.right == (other.meeting.mode == "mindreaders")
        page = three.get(f"/class/teacher?key={hall.opening.teacher}").text
        assert '<progress value="1" max="6">' in page, "one of six phones has bet"
        asked = three.get("/class/room/reveal").text
        assert "5 phones have not bet after their newest talk." in asked and "on a talk of others" not in asked
        for client in (each for each in clients if each is not first):
            client.post(
                "/class/bet", data={"csrf": field(client.get("/class").text, "csrf"), "turns": "same", "hits": "same"}
            )
        asked = three.get("/class/room/reveal").text
        assert "after their newest talk" not in asked and "5 phones have not bet on a talk of others." in asked
        hall.reveal()
        for mode in MODES:  # whoever sees the own side alone has guessed, or worked it out
            hall.live[1].meeting.mode, hall.live[1].hits = mode, (0,)
            page = first.get("/class").text.partition("Both sides</h2>")[2]
            assert ("guessed, or worked out from the talk" in page) is (mode == "agents")
            assert ("nobody could know this" in page) is (mode == "mindreaders")
        revealed = first.get("/class").text
        assert (
            "Of the talk that you read" in revealed
            and "You bet on fewer turns: Each sees only its own side" in revealed
        )
        hall.end()
        assert "The class has ended." in first.get("/class").text


def test_two_phones_read_that_the_reveal_follows_and_see_their_bet_again(tmp_path: Path) -> None:
    with hall_at(tmp_path / "r.duckdb") as hall, app_of(hall) as one, app_of(hall) as two:
        for client in (one, two):
            joined(client)
        first = said_goodbye(hall, (one, two))
        page = first.get("/class").text
        page = first.post("/class/bet", data={"csrf": field(page, "csrf"), "turns": "mindreaders", "hits": "same"}).text
        assert "The reveal follows" in page and "When a talk of others" not in page
        hall.reveal()
        page = first.get("/class").text
        assert "fewer turns: Both sides see everything – this class does not decide it" in page
        assert "cannot compare the two halves" in page


def test_a_class_that_cannot_begin_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Floor) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(Floor, "_needs", broken)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    with pytest.raises(LocalsimError, match="unexpected"), hall_at(tmp_path / "y.duckdb"):
        pass


# ---- visitors ------------------------------------------------------------------------------------------------------


def test_a_key_of_foreign_letters_is_refused_as_any_other(tmp_path: Path) -> None:
    with hall_at(tmp_path / "e.duckdb") as hall, app_of(hall) as phone:
        assert phone.get("/class/teacher?key=é").status_code == 400


def test_wrong_codes_and_seats_are_counted_for_each_address(tmp_path: Path) -> None:
    with hall_at(tmp_path / "v.duckdb") as hall:
        hall.wrong_codes, hall.new_seats = Allowance(2, seconds=60), Allowance(1, seconds=60)
        rules = {"access": hall.opening.access, "entrance": ENTRANCE}
        with app_of(hall, **rules) as one, app_of(hall, **rules) as other:
            other._transport.client = ("192.168.1.7", 1)  # type: ignore[attr-defined]
            codes = []
            for code in ("WRONG", "WRONG", hall.opening.code):
                csrf = field(one.get(ENTRANCE).text, "csrf")
                codes.append(one.post(ENTRANCE, data={"csrf": csrf, "code": code}).text)
            assert "you typed 5" in codes[0] and "too many wrong codes" in codes[2]
            csrf = field(other.get(ENTRANCE).text, "csrf")
            assert "Take a seat" in other.post(ENTRANCE, data={"csrf": csrf, "code": hall.opening.code}).text
            joined(other)
            assert other.post("/class/join", data={"csrf": csrf}).status_code == 200
            assert len(hall.register.seats) == 1, "its own seat again"
            other.cookies.clear()
            csrf = field(other.get(f"/class?token={hall.opening.access}").text, "csrf")
            assert "too many seats" in other.post("/class/join", data={"csrf": csrf}).text
            one.get(f"/class?token={hall.opening.access}")
            joined(one)
            assert len(hall.register.seats) == 2


def test_a_seat_is_found_while_another_phone_joins() -> None:
    register = Register([("Ana", "Bo")], 1)

    class Joining(Seat):
        def __getattribute__(self, name: str) -> object:
            if name == "key":
                register.seats.setdefault(len(register.seats) + 1, Seat(9, "other"))
            return super().__getattribute__(name)

    register.seats = {1: Joining(1, "first"), 2: Seat(2, "second")}
    assert register.seat_of("second") is register.seats[2]


def test_a_phone_that_asks_in_the_instant_in_which_its_talk_begins_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins, goes_on, add = threading.Event(), threading.Event(), Floor._add

    def slow(hall: Floor, meeting: Meeting) -> Live:
        begins.set()  # the seats have the talk, and `live` has not
        goes_on.wait(timeout=10)
        return add(hall, meeting)

    with hall_at(tmp_path / "i.duckdb") as hall:
        first, found = hall.join("one"), list[Live | None]()
        monkeypatch.setattr(Floor, "_add", slow)
        second = threading.Thread(target=hall.join, args=("two",))
        second.start()
        assert begins.wait(timeout=10) and first.talk == 1
        asks = threading.Thread(target=lambda: found.append(hall.live_of(first)))
        asks.start()
        asks.join(timeout=0.2)
        goes_on.set()
        for thread in (second, asks):
            thread.join(timeout=10)
        assert found == [hall.live[1]]


def test_an_allowance_comes_back_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("localsim.web.guard.time.monotonic", lambda: now[0])
    allowance = Allowance(2, seconds=60)
    for at in (0.0, 30.0):
        now[0] = at
        assert allowance.is_left("one")
        allowance.count("one")
    assert not allowance.is_left("one") and allowance.is_left("another")
    now[0] = 61.0
    assert allowance.is_left("one")
    allowance.count("one")
    assert not allowance.is_left("one")


def test_without_scripts_no_page_is_loaded_again_while_somebody_writes(tmp_path: Path) -> None:
    refresh = 'http-equiv="refresh"'
    with hall_at(tmp_path / "r.duckdb") as hall, app_of(hall) as one, app_of(hall) as two:
        assert refresh in joined(one)
        joined(two)
        speaks = first_speaker(hall)
        speaker, listener = (one, two) if speaks == 1 else (two, one)
        assert refresh not in speaker.get("/class").text and refresh in listener.get("/class").text
        said_goodbye(hall, (one, two))
        page = speaker.get("/class").text
        assert "Your bets</h1>" in page and refresh not in page and 'class="pick"' in page
        page = speaker.post("/class/bet", data={"csrf": field(page, "csrf"), "turns": "agents", "hits": "same"}).text
        assert "Thank you" in page and refresh in page


# ---- doctor --room -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", [("--port", "7600"), ("--host", "192.168.1.20")])
def test_options_of_the_room_are_refused_without_it(option: tuple[str, str]) -> None:
    result = click.testing.CliRunner().invoke(doctor, list(option))
    assert isinstance(result.exception, InvalidInput) and option[0] in str(result.exception)


def test_the_test_page_ends_with_the_exit_code_of_its_signal() -> None:
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 0)):
        command = [sys.executable, "-m", "localsim", "doctor", "--room", "--host", "127.0.0.1", "--port"]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        page = subprocess.Popen(
            [*command, str(free_port())],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            preexec_fn=hear_control_c,
        )
        try:
            assert page.stderr is not None
            for line in page.stderr:
                if "scan the code" in line:
                    break
            time.sleep(0.3)
            page.send_signal(number)
            assert page.wait(timeout=30) == code
        finally:
            page.kill()
            page.communicate()


def hear_control_c() -> None:
    """Let a process end by Ctrl-C, which a shell's background jobs, and so the tests, may ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
