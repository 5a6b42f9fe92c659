"""Another talk, the sheets to print and the last lines of a class."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from contextlib import ExitStack
from html import escape
from pathlib import Path

import pytest

from localsim.paths import database_path, db_option
from localsim.web.classroom.seats import MODES, Register
from localsim.web.phrases.table import OWN, find
from tests.test_class import SCENARIOS, app_of, hall_at, joined
from tests.test_class_trouble import said_goodbye, until
from tests.web_server import field


def seated(*numbers: int, open: frozenset[int] = frozenset()) -> Register:
    """Two scenarios of two roles, on which the first four seats have played one talk each."""
    register = Register([("Ana", "Bo"), ("Cy", "Di")], 5, open=open)
    for number in numbers:
        register.apply({"event": "sit", "seat": number, "key": str(number)})
    for pair in ([1, 2], [3, 4]):
        event = register.next_talk(pair)
        assert event is not None
        register.apply(event)
    assert register.meetings[1].scenario != register.meetings[2].scenario
    return register


def test_another_talk_is_on_a_scenario_that_nobody_in_it_has_played_or_read() -> None:
    register = seated(1, 2, 3, 4, 5)
    first, second = (register.meetings[number].scenario for number in (1, 2))
    event = register.next_talk([1, 2])
    assert event is not None and event["scenario"] == second and event["people"].keys() == {*register.scenarios[second]}
    assert register.next_talk([1, 3]) is None, "each has played what the other has not"
    event = register.next_talk([1, 3, 5])
    assert event is not None and 5 in event["people"].values()
    register.apply({"event": "bet", "seat": 1, "talk": 1, "about": 2, "saw": True})
    assert register.known(1) == {first, second} and not register.has_left(1)
    assert register.next_talk([1, 2]) is None and register.next_talk([1], alone=True) is None
    event = register.next_talk([1, 2, 5])
    assert event is not None and set(event["people"].values()) == {2, 5} and event["scenario"] == second


def test_a_scenario_in_which_nobody_hides_anything_can_be_played_again() -> None:
    register = seated(1, 2, 3, 4, open=frozenset({0, 1}))
    assert register.has_left(1) and register.next_talk([1, 3]) is not None


def test_a_larger_talk_waits_for_its_phones() -> None:
    register = Register([("Ana", "Bo", "Cy"), ("Di", "Ed")], 5)
    for number in range(1, 4):
        register.apply({"event": "sit", "seat": number, "key": str(number)})
    sizes = [len(event["people"]) for count in (1, 2, 3) if (event := register.next_talk([*range(1, count + 1)]))]
    assert sizes in ([2, 2], [3]), "the scenario that comes next is not passed over for want of phones"


def test_talks_of_returning_phones_stay_balanced() -> None:
    register = Register([("Ana", "Bo"), ("Cy", "Di")], 5)
    for number in range(1, 17):
        register.apply({"event": "sit", "seat": number, "key": str(number)})
    for _ in range(2):
        for seat in range(1, 17, 2):
            event = register.next_talk([seat, seat + 1])
            assert event is not None
            register.apply(event)
    counts = [(talk.scenario, talk.mode) for talk in register.meetings.values()]
    assert {counts.count((scenario, mode)) for scenario in (0, 1) for mode in MODES} == {4}


@pytest.mark.parametrize("seed", range(8))
def test_talks_with_the_computer_do_not_unbalance_the_modes_of_the_others(seed: int) -> None:
    register, talks = Register([("Ana", "Bo"), ("Cy", "Di"), ("Ed", "Flo")], seed), Counter[tuple[bool, str]]()
    for number in range(1, 40, 3):
        for seat in range(number, number + 3):
            register.apply({"event": "sit", "seat": seat, "key": str(seat)})
        for waiting in ([number], [number + 1, number + 2], *([[number, number + 1]] if number % 2 else [])):
            alone = len(waiting) == 1
            event = register.next_talk(waiting, alone=alone)
            assert event is not None
            register.apply(event)
            talks[alone, event["mode"]] += 1
            assert abs(talks[alone, "agents"] - talks[alone, "mindreaders"]) <= 1, "after each talk"
    keys = [(talk.scenario, talk.mode, talk.index) for talk in register.meetings.values()]
    assert len(set(keys)) == len(keys) == 33


def test_the_projector_does_not_announce_the_reveal_while_a_phone_waits(tmp_path: Path) -> None:
    with hall_at(tmp_path / "w.duckdb") as hall, app_of(hall) as one, app_of(hall) as two, app_of(hall) as three:
        for client in (one, two):
            joined(client)
        said_goodbye(hall, (one, two))
        bet = {"turns": "agents", "hits": "same"}
        for client in (one, two):
            client.post("/class/bet", data={"csrf": field(client.get("/class").text, "csrf"), **bet})
        room = f"/class/teacher?key={hall.opening.teacher}"
        assert '<h2 class="do">All talks are over, and no bet is open. The reveal follows.</h2>' in one.get(room).text
        joined(three)
        assert '<h2 class="do"><b>1</b> waiting</h2>' in one.get(room).text
        hall._seen[3] -= 60
        assert "The reveal follows." in one.get(room).text, "it has gone away"


def test_the_list_of_seats_stays_open_when_one_is_given_away(tmp_path: Path) -> None:
    with hall_at(tmp_path / "s.duckdb") as hall, app_of(hall) as one:
        joined(one)
        page = one.get(f"/class/teacher?key={hall.opening.teacher}").text
        assert "<details><summary>Seats" in page
        page = one.post("/class/room/free", data={"csrf": field(page, "csrf"), "seat": "1"}).text
    assert "<details open><summary>Seats" in page and hall.register.seats[1].key == ""


def test_a_phone_without_another_scenario_is_told_so(tmp_path: Path) -> None:
    with hall_at(tmp_path / "n.duckdb", *SCENARIOS) as hall, app_of(hall) as one, app_of(hall) as two:
        keys = [(client, field(client.get("/class").text, "csrf")) for client in (one, two)]
        for client, _ in keys:
            joined(client)
        for number, scenarios_left in ((1, True), (2, False)):
            speaker = said_goodbye(hall, (one, two), number)
            page = speaker.get("/class").text
            bet = {"csrf": field(page, "csrf"), "turns": "agents", "hits": "same"}
            page = speaker.post("/class/bet", data=bet).text
            assert ("Another talk" in page) is scenarios_left
            assert ("You have played or read every scenario of this class" in page) is not scenarios_left
            assert "1 phone of this talk has not bet yet." in speaker.get("/class/part?on=done").text
            for client, csrf in keys:
                client.post("/class/again", data={"csrf": csrf})
            page = one.get(f"/class/teacher?key={hall.opening.teacher}").text
            some = number - 1  # the newest talk of round 1 is the second one, which has just begun
            assert f"bet after their newest talk: <b>{some}</b> of 2" in page
            asked = one.get("/class/room/reveal").text
            assert ("1 phone has not bet after its newest talk." in asked) is (some == 1)
            assert ("2 phones have not bet after their newest talk." in asked) is (some == 0)
        assert len(hall.live) == 2 and hall.live[1].meeting.scenario != hall.live[2].meeting.scenario


def test_a_phone_keeps_its_earlier_talk_in_reach(tmp_path: Path) -> None:
    with hall_at(tmp_path / "e.duckdb", *SCENARIOS) as hall, app_of(hall) as one, app_of(hall) as two:
        clients = (one, two)
        for client in clients:
            joined(client)
        said_goodbye(hall, clients, 1)
        assert "Your earlier talk" not in one.get("/class").text, "it is on the page itself"
        role = escape(hall.live[1].meeting.role_of(1))
        earlier = re.compile(rf"Your earlier talk as <bdi[^>]*>{role}</bdi></summary>.*?<p>(.*?)</p>", re.DOTALL)
        for client in clients:
            client.post("/class/again", data={"csrf": field(client.get("/class").text, "csrf")})
            said = earlier.findall(one.get("/class").text)  # while it waits, and then in its second talk
            assert said == ['<bdi dir="auto">Bye</bdi>']
        said_goodbye(hall, clients, 2)
        assert "Your bets" in one.get("/class").text and len(earlier.findall(one.get("/class").text)) == 1
        hall.reveal()
        page = one.get("/class").text
    assert page.count('<span class="index">1</span>') >= 2, "the hand-out asks for the numbers of lines"
    saw = [page.index(f"In your talk {words}") for words in ("both sides saw everything", "each side saw only its own")]
    late, early = saw if hall.live[2].meeting.mode == "mindreaders" else reversed(saw)
    assert late < page.index("Your earlier talk") < early


def test_the_last_lines_name_the_database_that_the_class_was_started_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, told = tmp_path / "a class.duckdb", list[str]()
    with hall_at(path) as hall, app_of(hall) as one, app_of(hall) as two:
        hall._say = told.append
        for client in (one, two):
            joined(client)
        said_goodbye(hall, (one, two))
        hall.end()
        until(lambda: hall.register.closed)
        hall.leave()
        page = one.get(f"/class/teacher?key={hall.opening.teacher}").text
        where = f"--db {shlex.quote(str(path))}"
        assert f"localsim report {hall.opening.run_id} --db " in page
        assert told[-1].count(where) == 2, "view and report"
    monkeypatch.setenv("LOCALSIM_DB", str(path))
    assert database_path() == path and db_option(path) == ""


def test_the_solution_has_the_numbers_of_the_hand_out_and_each_names_its_command(tmp_path: Path) -> None:
    with hall_at(tmp_path / "s.duckdb") as hall, app_of(hall, "de") as teacher:
        teacher.get(f"/class/teacher?key={hall.opening.teacher}")
        found = {}
        for part in ("students", "solution"):
            page = teacher.get(f"/class/sheets?only={part}").text
            found[part] = re.findall(r"<b>(\d[a-d])</b>", page)
            assert f"<code>localsim class {' '.join(SCENARIOS)}</code>" in page
        assert found["students"] == found["solution"] == ["1a", "1b", "1c", "2a", "2b", "2c", "2d"]


@pytest.mark.parametrize("language", OWN)
def test_the_sheets_say_what_a_lesson_needs(tmp_path: Path, language: str) -> None:
    lesson = (Path(__file__).parent.parent / "docs" / "teach.md").read_text().replace("\n", " ")
    prepare = re.search(r"`(localsim run [^`]+)`", lesson)
    turns = re.search(r"in lines (\S / \S / \S) and (\S / \S / \S)", lesson)
    assert prepare and turns
    ends, talk = (escape(find(language).plain(f"sheets.{name}")) for name in ("students.ends", "say.talk.say"))
    with hall_at(tmp_path / "s.duckdb") as hall, app_of(hall, language) as teacher:
        teacher.get(f"/class/teacher?key={hall.opening.teacher}")
        said, handed, solved = (
            teacher.get(f"/class/sheets?only={part}").text for part in ("say", "students", "solution")
        )
    assert prepare[1] in said and talk in said and "localsim doctor --room" in said
    assert ends in handed and "arXiv 2403.05020" in handed
    assert turns[1] in solved and turns[2] in solved
    assert "agents, mindreaders" not in handed, "nobody learns that the others see more"
    assert ("agents, mindreaders" in solved) is (language != "en")
    for sheet in (handed, solved):
        assert (">friend in common</" in sheet) is (language != "en"), "the scenarios are in English"
        assert ">target price</" not in sheet
    assert "localsim play --open" + (f" --language {language}" if language != "en" else "") in said
    with hall_at(tmp_path / "c.duckdb") as hall, app_of(hall, language) as teacher:
        teacher.get(f"/class/teacher?key={hall.opening.teacher}")
        cards = teacher.get("/class/sheets?only=cards").text.split('<div class="card">')[1:]
    heads = [re.findall(r"<h3>([AB]\d) ", card)[0] for card in cards]
    assert heads == ["A1", "A1", "B1", "B1", "A2", "A2", "B2", "B2"], "two cards for each scenario and mode"
    begins = escape(find(language).plain("sheets.cards.first"))
    assert [begins in card for card in cards] == [True, False] * 4
    assert all(escape(find(language).plain("sheets.cards.ends", turns=20)) in card for card in cards)
    with hall_at(tmp_path / "b.duckdb", "craigslist_01") as hall, app_of(hall, language) as teacher:
        teacher.get(f"/class/teacher?key={hall.opening.teacher}")
        for part in ("students", "solution"):
            sheet = teacher.get(f"/class/sheets?only={part}").text
            assert (">target price</" in sheet) is (">untold hit</" in sheet) is (language != "en")
            assert ">friend in common</" not in sheet, "the words of a bargain"


def test_the_own_side_stands_first_on_a_phone_that_sees_both(tmp_path: Path) -> None:
    with hall_at(tmp_path / "o.duckdb") as hall, ExitStack() as phones:
        clients = [phones.enter_context(app_of(hall)) for _ in range(4)]
        for client in clients:
            joined(client)
        live = next(live for live in hall.live.values() if live.meeting.mode == "mindreaders")
        page = clients[min(live.meeting.people.values()) - 1].get("/class").text
        panels = re.findall(r'<section class="panel" aria-label="([^"]+)"', page)
        assert panels[0] == "Your side" and len(panels) == 2
