"""Talks of a class that stand apart: with the computer, in another language, or over only after the reveal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from localsim.backends.scripted import PEEKS
from localsim.conversation.transcript import Action, Turn
from localsim.store.database import Store
from localsim.web.classroom import results, telling, telltale
from localsim.web.classroom.hall import Hall
from localsim.web.classroom.seats import MODES
from localsim.web.floor.state import Live
from localsim.web.phrases.table import english
from tests.test_class import app_of, hall_at, joined
from tests.test_class_trouble import until
from tests.web_server import client_of, field

GERMAN = ("Kennst du vielleicht auch Jasper?", "Ja, den kenne ich auch gut!", "Also dann, tschüss!")
OWN_SIDE = "The computer is shown what a person in its place would see, but uses only its own side."


@contextmanager
def class_of(path: Path, phones: int) -> Iterator[tuple[Hall, list[TestClient]]]:
    """A class with phones that have joined, two in each talk."""
    with hall_at(path) as hall, ExitStack() as stack:
        clients = [stack.enter_context(app_of(hall)) for _ in range(phones)]
        for client in clients:
            joined(client)
        yield hall, clients


def alone(hall: Hall) -> Live:
    """Give the newest phone a talk with the computer."""
    hall.with_computer(hall.register.seats[len(hall.register.seats)])
    return hall.live[len(hall.live)]


def play(live: Live, hall: Hall, clients: Sequence[TestClient], lines: Sequence[str] = ("Hello!", "Bye!")) -> None:
    """Let the phones of a talk say these lines, and end it with the last, unless it ends before."""
    for number, words in enumerate(lines):
        until(lambda: live.ended or any(hall.ways(live, role) for role in live.meeting.people))
        role = next((role for role in live.meeting.people if hall.ways(live, role)), None)
        if role is None:
            return
        speaker = clients[live.meeting.people[role] - 1]
        page = speaker.get("/class").text
        said = {"csrf": field(page, "csrf"), "turn": field(page, "turn"), "text": words}
        speaker.post("/class/say", data=said | ({"leave": "1"} if number == len(lines) - 1 else {}))
    until(lambda: live.ended)


def bet_on(client: TestClient) -> str:
    """Bet on the modes; return the page after it, which may offer a talk of others."""
    csrf = field(client.get("/class").text, "csrf")
    return client.post("/class/bet", data={"csrf": csrf, "turns": "same", "hits": "same"}).text


def projector_of(hall: Hall, client: TestClient) -> str:
    return client.get(f"/class/teacher?key={hall.opening.teacher}").text


def test_talks_with_the_computer_are_counted_apart(tmp_path: Path) -> None:
    path = tmp_path / "c.duckdb"
    with class_of(path, 4) as (hall, clients):
        people = [hall.live[1], hall.live[2]]
        for live in people:
            play(live, hall, clients)
        with app_of(hall) as late:
            joined(late)
            computer = alone(hall)
            page = bet_on(clients[0])
            play(computer, hall, [*clients, late], ["Hello!"] * 3 + ["Bye!"])
            assert "What could these two see" not in page, "the talk beside the own one gives its mode away"
            page = bet_on(clients[1])
            assert "What could these two see" in page and "is played by the computer" in page and OWN_SIDE in page
            about = {"csrf": field(page, "csrf"), "about": "3", "saw": "no"}
            clients[1].post("/class/bet", data=about)
            hall.reveal()
            counted, apart = results.by_mode(hall)
            assert [row.finished for row in counted] == [1, 1] and sum(row.finished for row in apart) == 1
            bets = results.bets_of(hall)
            assert bets.count == 0 and sum(row.count for row in bets.beside) == 1
            pages = [late.get("/class").text, projector_of(hall, late)]
            for page in pages:
                assert f"1 talk was with the computer: it is counted apart. {OWN_SIDE}" in page
                (drawn,) = re.findall(r'<figure class="dots">.*?</figure>', page, re.DOTALL)
                marks = drawn.split("</figcaption>")[1]
                assert marks.count('class="dot') == 2, "only people are in the picture"
            assert "is played by the computer" in pages[0].split("answer-text")[0], "its own talk"
            rows = re.findall(r'<tr class="quiet"><th scope="row">.*?with the computer</th>', pages[1])
            assert len(rows) == 2, "a row of talks and a row of bets"
            assert "Nobody has bet on a talk of others" in pages[1]
            assert telling.finding(counted, english()) in pages[1].replace("&#39;", "'")
        hall.end()
        until(lambda: hall.register.closed)
    before = results.earlier(Store(path), hall.opening.run_id)
    assert [row.finished for row in before.rows] == [1, 1] and before.bets.count == 0, "nor for a later class"


def test_where_every_talk_is_with_the_computer_they_count_and_the_class_is_told(tmp_path: Path) -> None:
    with class_of(tmp_path / "a.duckdb", 1) as (hall, clients):
        (phone,) = clients
        live = alone(hall)
        play(live, hall, clients, ["Hello!"] * 3 + ["Bye!"])
        hall.reveal()
        counted, apart = results.by_mode(hall)
        assert sum(row.finished for row in counted) == 1 and not any(row.talks for row in apart)
        for page in (phone.get("/class").text, projector_of(hall, phone)):
            assert f"In every talk here one side is the computer. {OWN_SIDE}" in page
        for mode in MODES:
            live.meeting.mode = mode
            said = phone.get("/class").text.split('class="task">')[1].split("</p>")[0]
            assert "is played by the computer" in said and (OWN_SIDE in said) is (mode == "mindreaders")


@pytest.mark.parametrize(
    ("computer", "says"),
    [("scripted", "only its own side"), (PEEKS, "uses all of it"), ("starter", "would see."), ("scripted:x", "see.")],
)
def test_a_class_is_told_what_its_computer_sees(computer: str, says: str) -> None:
    row = results.ModeRow("agents", [results.Outcome("friends", "agents", 1.0, 4, computer=True)])
    for rows, apart in (([row], []), ([], [row])):
        assert says in telling.computer_sentence(rows, apart, computer, english())
    people = results.ModeRow("agents", [results.Outcome("friends", "agents", 1.0, 4)])
    assert telling.computer_sentence([people], [], computer, english()) == ""


def test_a_talk_that_ends_after_the_reveal_changes_phones_as_the_projector(tmp_path: Path) -> None:
    with class_of(tmp_path / "r.duckdb", 4) as (hall, clients):
        play(hall.live[1], hall, clients)
        hall.reveal()
        phone = clients[0]

        def answer(page: str) -> str:
            return page.split('class="answer-text">')[1].split("</p>")[0]

        first = phone.get("/class").text
        live = re.findall(r'data-live="(/class/part\?on=reveal[^"]*)"', first)[0]
        assert "data-reload" not in phone.get(live).text and answer(first) == answer(projector_of(hall, phone))
        play(hall.live[2], hall, clients)
        assert "data-reload" in phone.get(live).text
        last = phone.get("/class").text
        assert answer(first) != answer(last) == answer(projector_of(hall, phone))


def test_a_talk_in_another_language_is_neither_offered_for_bets_nor_counted_in_them(tmp_path: Path) -> None:
    path = tmp_path / "g.duckdb"
    with class_of(path, 6) as (hall, clients):
        play(hall.live[1], hall, clients)
        play(hall.live[3], hall, clients, GERMAN)
        assert hall.live[3].foreign
        page = bet_on(clients[0])
        assert "What could these two see" not in page and "The reveal follows" in page, "and none is to come"
        refused = {"csrf": field(clients[0].get("/class").text, "csrf"), "about": "3", "saw": "yes"}
        assert clients[0].post("/class/bet", data=refused).status_code == 400
        # A class of the version before took such bets.
        with hall.changed:
            hall._record("bet", seat=1, talk=1, about=3, saw=True)
        assert results.bets_of(hall).count == 0
        play(hall.live[2], hall, clients)
        hall.end()
        until(lambda: hall.register.closed)
    store = Store(path)
    assert results.earlier(store, hall.opening.run_id).bets.count == 0
    with client_of(store) as viewer:
        page = viewer.get(f"/runs/{hall.opening.run_id}?answer=1").text
        assert "1 talk was written in another language than the scenario’s" in page
        for number, told in ((1, False), (3, True)):
            page = viewer.get(f"/episodes/{hall.live[number].episode_id}").text
            assert ("the reveal of a class does not count this talk" in page) is told


def test_the_star_of_a_bargain_says_why_its_price_is_the_right_one(tmp_path: Path) -> None:
    for scenario, told in (("craigslist_03", True), ("mutual_friends_01", False)):
        with hall_at(tmp_path / f"{scenario}.duckdb", scenario) as hall, app_of(hall) as one, app_of(hall) as two:
            for client in (one, two):
                joined(client)
            play(hall.live[1], hall, (one, two))
            hall.reveal()
            page = projector_of(hall, one)
            assert "nobody could know this from the talk" in page
            assert ("the price is the other side’s target price, or the middle of both" in page) is told


def test_a_hit_of_a_computer_that_uses_its_own_side_alone_is_a_guess(tmp_path: Path) -> None:
    with class_of(tmp_path / "o.duckdb", 1) as (hall, _):
        live = alone(hall)
        (computer,) = live.computers
        person = next(name for name in live.meeting.people)
        live.meeting.mode = "agents"
        assert live.own_alone == {computer, person}
        live.meeting.mode = "mindreaders"
        assert live.own_alone == {computer}
        live.turns = [
            Turn(place, name, Action("speak", "Do you know Jasper?")) for place, name in enumerate((computer, person))
        ]
        live.hits = (0, 1)
        assert telltale.own_hits(live) == {1}
