"""A class on one laptop: thirty phones, a server that is killed, seats handed on, and nothing lost or doubled."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from starlette.testclient import TestClient

from localsim.annotation.agreement import agreement
from localsim.conversation.episode import Mode
from localsim.errors import DatabaseError, InvalidInput
from localsim.runs import telling as run_names
from localsim.scenarios.find import find_scenarios, shipped_sources
from localsim.store.database import Store
from localsim.web.app import Site, create_app
from localsim.web.classroom import results, telling
from localsim.web.classroom.begin import opening_of
from localsim.web.classroom.hall import Hall, Wish
from localsim.web.classroom.phone_pages import ENTRANCE, seat_name
from localsim.web.classroom.seats import MODES, Register
from localsim.web.floor.ledger import Ledger
from localsim.web.guard import Access, hosts_of
from localsim.web.phrases.table import english, find
from tests.web_server import at_once, field

SCENARIOS = ("mutual_friends_01", "mutual_friends_02")


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


# ---- a real server --------------------------------------------------------------------------------------------------


class Server:
    """`localsim class` in a process of its own, which can be killed and started again by the same command."""

    page = "/class"

    def __init__(self, folder: Path, *options: str, scenarios: Sequence[str] = SCENARIOS) -> None:
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.store = Store(folder / "c.duckdb")
        self._log = folder / "server.txt"
        self._command = [
            sys.executable, "-m", "localsim", *self.command(scenarios), "--db", str(self.store.path),
            "--port", str(self.port), *options,
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def command(self, scenarios: Sequence[str]) -> list[str]:
        return ["class", *scenarios]

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stderr=log, env={**os.environ, "PYTHONUNBUFFERED": "1"}, start_new_session=True
            )
        deadline = time.monotonic() + 60
        while True:
            try:
                httpx2.get(f"{self.base}{self.page}", timeout=5)
                return
            except httpx2.TransportError:
                assert self._process.poll() is None, self.told()
                assert time.monotonic() < deadline, self.told()
                time.sleep(0.1)

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(timeout=60)

    def told(self) -> str:
        return self._log.read_text()

    def code(self) -> str:
        """The join code, which a rehearsal on loopback prints as a class on a network does."""
        found = re.search(r"and type ([A-Z]+-[A-Z]+)", self.told())
        assert found
        return found[1].lower()

    def teacher(self) -> httpx2.Client:
        found = re.search(r"(/class/teacher\?key=\S+)", self.told())
        assert found
        client = httpx2.Client(base_url=self.base, follow_redirects=True, timeout=30)
        assert "Join" in client.get(found[1]).text
        return client


@contextmanager
def serving(folder: Path, *options: str, scenarios: Sequence[str] = SCENARIOS) -> Iterator[Server]:
    server = Server(folder, *options, scenarios=scenarios)
    server.start()
    try:
        yield server
    finally:
        server.kill()


class Phone:
    """A phone that keeps trying while the server is away, and sends everything twice as an impatient thumb does."""

    page = "/class"

    def __init__(self, base: str, number: int, code: str) -> None:
        self.client = httpx2.Client(base_url=base, follow_redirects=True, timeout=30)
        self.number, self.code = number, code
        self.said: list[str] = []
        self.problems: list[str] = []
        self.seat = ""

    def get(self) -> str:
        return self._until(lambda: self.client.get(self.page))

    def post(self, path: str, **data: str) -> str:
        """Send a form twice; the second answer counts, and no answer of the server may be an error of its own."""
        self._until(lambda: self.client.post(path, data=data))
        return self._until(lambda: self.client.post(path, data=data))

    def _until(self, ask: Callable[[], httpx2.Response]) -> str:
        deadline = time.monotonic() + 90
        while True:
            try:
                answer = ask()
            except httpx2.TransportError:
                assert time.monotonic() < deadline, "the server did not come back"
                time.sleep(0.1)
                continue
            if answer.status_code >= 429:
                self.problems.append(f"{answer.status_code} {answer.text[:200]}")
            return answer.text

    def play(self, lines: int, pause: Callable[[], None]) -> None:
        text = self.get()
        text = self.post(ENTRANCE, csrf=field(text, "csrf"), code=self.code)
        text = self.post("/class/join", csrf=field(text, "csrf"))
        deadline = time.monotonic() + 100
        while "Your bets are stored" not in text:
            assert time.monotonic() < deadline, text[-1500:]
            if "<h1>Your bet" in text:
                text = self.post("/class/bet", csrf=field(text, "csrf"), turns="agents", hits="same")
            elif "<h1>Read a talk of others" in text:
                saw = "yes" if self.number % 2 else "no"
                text = self.post("/class/bet", csrf=field(text, "csrf"), about=field(text, "about"), saw=saw)
            elif "It is your turn" in text:
                self._turn(text, lines)
                pause()
            time.sleep(0.3)
            text = self.get()

    def _turn(self, text: str, lines: int) -> None:
        words = f"phone {self.number} line {len(self.said)}"
        data = {"csrf": field(text, "csrf"), "turn": field(text, "turn"), "text": words}
        if len(self.said) + 1 >= lines:
            data["leave"] = "1"
        answer = self.post("/class/say", **data)
        if "was not said" not in answer or words in self.get():
            self.said.append(words)


def test_thirty_phones_lose_and_double_nothing_while_the_server_is_killed_twice(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        phones = [Phone(server.base, number, server.code()) for number in range(30)]
        said, lock = [0], threading.Lock()

        def pause() -> None:
            with lock:
                said[0] += 1

        with at_once(phones, lambda phone: phone.play(2, pause), 100) as errors:
            for wanted in (12, 28):
                while said[0] < wanted and not errors:
                    time.sleep(0.02)
                server.kill()
                server.start()
        assert not [problem for phone in phones for problem in phone.problems]
        register = json.loads("[" + ",".join((tmp_path / "c.duckdb.class").read_text().splitlines()) + "]")
        kinds = Counter(event["event"] for event in register)
        assert kinds["sit"] == 30 and kinds["talk"] == 15
        bets = [(each["seat"], name) for each in register for name in each if each["event"] == "bet"]
        assert len({(seat, name) for seat, name in bets if name in ("turns", "hits", "saw")}) == 90
        modes = Counter(event["mode"] for event in register if event["event"] == "talk")
        assert abs(modes["agents"] - modes["mindreaders"]) <= 1
        teacher = server.teacher()
        page = teacher.get("/class/room").text
        assert "<b>15</b> finished" in page and "have bet after their newest talk: <b>30</b> of 30" in page
        assert "mindreaders" not in page and "both sides" not in page, "the projector keeps the secret of the modes"
        page = teacher.post("/class/room/reveal", data={"csrf": field(page, "csrf")}).text
        assert "The answer" in page and "mindreaders" in page and "of 30 bets" in page
        assert "The reveal" in phones[0].get()
        teacher.post("/class/room/end", data={"csrf": field(page, "csrf"), "sure": "1"})
        deadline = time.monotonic() + 60
        while "leaks in each mode" not in server.told() and time.monotonic() < deadline:
            time.sleep(0.2)
    spoken = [row["text"] for row in server.store.rows("SELECT text FROM v_turns ORDER BY episode_id, turn")]
    assert sorted(spoken) == sorted(words for phone in phones for words in phone.said)
    assert len(spoken) == len(set(spoken))
    episodes = server.store.rows("SELECT status, count(*) AS n FROM v_episodes GROUP BY status")
    assert episodes == [{"status": "completed", "n": 15}]
    runs = server.store.rows("SELECT status, episodes_planned, json_keys(models_json) AS models FROM runs")
    assert runs == [{"status": "finished", "episodes_planned": 15, "models": ["human"]}]
    bets = server.store.rows("SELECT rater, mode_1, value_json FROM v_annotations WHERE task = 'bet'")
    values = [json.loads(row["value_json"]) for row in bets]
    assert sum("turns" in value for value in values) == 30 and sum("saw" in value for value in values) == 30
    assert all(row["mode_1"] in MODES for row in bets)
    name = server.store.rows("SELECT run_id, name, plan_json FROM runs")[0]
    assert run_names.name_of(server.store, name).split(" · ")[1] == "human", "no scripted player took part"


# ---- one process: rules of seats, pages and tokens -----------------------------------------------------------------


@contextmanager
def hall_at(
    path: Path, *scenarios: str, port: int | None = None, seed: int | None = None, modes: tuple[Mode, ...] = MODES
) -> Iterator[Hall]:
    """A class without a server; `seed` gives the same roles and modes each time."""
    loaded = find_scenarios(list(scenarios or SCENARIOS))
    wish = Wish(loaded, "scripted", False, "127.0.0.1", port, False, None, modes=modes)
    ledger = Ledger(path)
    try:
        opening, continued = opening_of(ledger, wish)
        if seed is not None:
            opening = replace(opening, seed=seed)
        if not continued:
            ledger.begin(opening)
        hall = Hall(Store(path), loaded, ledger, opening, lambda _: None)
        hall.start()
    except BaseException:
        ledger.close()
        raise
    try:
        yield hall
    finally:
        hall.stop()


def app_of(hall: Hall, language: str = "en", **changes: object) -> TestClient:
    rules = Access(hosts_of("127.0.0.1"), seat_of=lambda request: seat_name(hall, request), **changes)  # type: ignore[arg-type]
    app = create_app(Site(hall.store, rules, "scripted", frozenset({"class"}), hall=hall, phrases=find(language)))
    return TestClient(app, base_url="http://127.0.0.1:7580", raise_server_exceptions=False)


def joined(client: TestClient) -> str:
    page = client.get("/class").text
    return client.post("/class/join", data={"csrf": field(page, "csrf")}).text


def placed(bets: results.Bets) -> int:
    """The number of bets of all kinds."""
    return bets.count + sum(sum(each.values()) for each in bets.on.values())


def first_speaker(hall: Hall, number: int = 1) -> int:
    """The seat that speaks first in a talk, once it is asked."""
    live, deadline = hall.live[number], time.monotonic() + 60
    while (request := hall.players.asked(live.spec.hash)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return live.meeting.people[request.speaker]


def test_modes_are_balanced_in_every_block_of_talks() -> None:
    seed = 5  # by which an order of four drawn as one begins with a mode twice
    register = Register([("Ana", "Bo"), ("Cy", "Di")], seed)
    for number in range(12):
        for seat in (2 * number + 1, 2 * number + 2):
            register.apply({"event": "sit", "seat": seat, "key": str(seat)})
        event = register.next_talk([2 * number + 1, 2 * number + 2])
        assert event is not None
        register.apply(event)
        if number % 4 == 3:
            counts = Counter((talk.scenario, talk.mode) for talk in register.meetings.values())
            assert set(counts.values()) == {number // 4 + 1} and len(counts) == 4
        elif number % 2:
            first, second = list(register.meetings.values())[-2:]
            assert first.mode != second.mode and first.scenario != second.scenario, "the next four phones have both"


def test_a_phone_sees_its_own_observation_alone(tmp_path: Path) -> None:
    with hall_at(tmp_path / "o.duckdb") as hall, app_of(hall) as one, app_of(hall) as two, app_of(hall, "de") as other:
        page = other.get("/class").text
        assert "Schreib auf Englisch" in page and "auf dem Computer der Lehrkraft" in page, "before a phone agrees"
        joined(one)
        joined(two)
        for client, number in ((one, 1), (two, 2)):
            live = hall.live_of(hall.register.seats[number])
            assert live is not None
            role = hall.register.role_of(hall.register.seats[number])
            page = client.get("/class").text
            assert f'You are <bdi dir="auto">{role}' in page
            other = next(agent for agent in live.spec.scenario.agents if agent.name != role)
            secret = other.facts[0].text in page
            assert secret == (live.meeting.mode == "mindreaders")
            assert "mindreaders" not in page and "agents" not in page, "the page tells the mode"


def test_a_missing_partner_is_played_by_the_computer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hall_at(tmp_path / "m.duckdb") as hall, app_of(hall) as phone:
        page = joined(phone)
        assert "Waiting for a partner" in page and "Play with the computer" not in page
        monkeypatch.setattr("localsim.web.classroom.phone_pages._ALONE_AFTER_S", 0.0)
        page = phone.get("/class").text
        page = phone.post("/class/computer", data={"csrf": field(page, "csrf")}).text
        assert "is played by the computer" in page
        assert "<small>with the computer</small>" in phone.get(f"/class/teacher?key={hall.opening.teacher}").text
    rows = Store(tmp_path / "m.duckdb").rows("SELECT DISTINCT model FROM v_episodes")
    assert len(rows) == 1 and "human" in rows[0]["model"] and "scripted" in rows[0]["model"]


def test_a_freed_seat_goes_to_the_next_phone_with_its_talk(tmp_path: Path) -> None:
    with hall_at(tmp_path / "f.duckdb") as hall, app_of(hall) as one, app_of(hall) as two, app_of(hall) as three:
        joined(one)
        joined(two)
        role = hall.register.role_of(hall.register.seats[1])
        hall.free(1)
        assert "Take a seat" in one.get("/class").text
        assert f'You are <bdi dir="auto">{role}' in joined(three)
        assert len(hall.register.seats) == 2 and len(hall.register.meetings) == 1
        assert "Waiting for a partner" in joined(one)


def test_bets_close_with_the_reveal_and_words_out_of_turn_are_refused(tmp_path: Path) -> None:
    with hall_at(tmp_path / "b.duckdb") as hall, app_of(hall) as one, app_of(hall) as two:
        clients = {1: one, 2: two}
        for client in clients.values():
            joined(client)
        speaks = first_speaker(hall)
        waits = clients[3 - speaks]
        said = {"csrf": field(waits.get("/class").text, "csrf"), "turn": "0", "text": "too early"}
        assert waits.post("/class/say", data=said).status_code == 400
        speaker = clients[speaks]
        csrf = field(speaker.get("/class").text, "csrf")
        bet = {"csrf": csrf, "turns": "agents", "hits": "same"}
        assert speaker.post("/class/bet", data=bet).status_code == 400, "a bet before the end of the talk"
        assert (
            speaker.post("/class/say", data={"csrf": csrf, "turn": "0", "text": "Bye", "leave": "1"}).status_code == 200
        )
        assert speaker.post("/class/bet", data={"csrf": csrf, "saw": "yes"}).status_code == 400, "about no talk"
        own = {"csrf": csrf, "saw": "yes", "about": "1"}
        assert speaker.post("/class/bet", data=own).status_code == 400, "a player knows what their own talk showed"
        speaker.post("/class/bet", data=bet)
        assert speaker.post("/class/bet", data={"csrf": csrf, "turns": "agents"}).status_code == 400, "half an answer"
        speaker.post("/class/bet", data={**bet, "turns": "mindreaders"})
        assert placed(results.bets_of(hall)) == 2, "the second bet replaces the first"
        assert "Read a talk" not in speaker.get("/class").text, "there is no talk of others"
        hall.reveal()
        assert waits.post("/class/bet", data={**bet, "csrf": said["csrf"]}).status_code == 400
        hall.reveal()
    rows = Store(tmp_path / "b.duckdb").rows("SELECT rater, mode_1, value_json FROM v_annotations")
    assert [json.loads(row["value_json"]) for row in rows] == [{"turns": "mindreaders", "hits": "same"}] and rows[0][
        "mode_1"
    ] in MODES
    run = Store(tmp_path / "b.duckdb").run_id("@last")
    assert agreement(Store(tmp_path / "b.duckdb"), run).raters == [], "players are no raters"


def test_phones_need_the_token_or_the_code_and_the_projector_needs_its_key(tmp_path: Path) -> None:
    with hall_at(tmp_path / "t.duckdb") as hall:
        access = hall.opening.access
        with app_of(hall, access=access, entrance=ENTRANCE) as phone:
            page = phone.get("/class")
            assert page.url.path == ENTRANCE and "code on the projector" in page.text
            csrf = field(page.text, "csrf")
            wrong = phone.post(ENTRANCE, data={"csrf": csrf, "code": "WRONG"})
            assert wrong.status_code == 400 and 'value="WRONG"' in wrong.text, "what was typed stays"
            assert "The code has 8 letters, and you typed 5." in wrong.text
            assert phone.get("/class").url.path == ENTRANCE
            assert "Take a seat" in phone.post(ENTRANCE, data={"csrf": csrf, "code": hall.opening.code.lower()}).text
            assert phone.get("/class/room").status_code == 400
            assert phone.get("/class/teacher?key=guess").status_code == 400
            assert phone.post("/class/room/reveal", data={"csrf": csrf}).status_code == 400
            assert not hall.register.revealed
        with app_of(hall, access=access, entrance=ENTRANCE) as phone:
            assert "Take a seat" in phone.get(f"/class?token={access}").text


def test_each_seat_has_limits_of_its_own(tmp_path: Path) -> None:
    with hall_at(tmp_path / "l.duckdb") as hall:
        narrow = {"rate": 0.01, "burst": 12.0, "seat_rate": 0.01, "seat_burst": 20.0}
        with app_of(hall, **narrow) as client:
            joined(client)
            codes = [client.get("/class/part?on=wait").status_code for _ in range(25)]
            assert codes.count(200) == 19 and codes[-1] == 429, "20 requests of the seat, one of them after joining"
            client.cookies.clear()
            assert client.get("/class").status_code == 200, "the address has room, which the seat has not used up"


def test_the_same_command_continues_a_class_and_another_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.duckdb"
    with hall_at(path) as hall, app_of(hall) as one:
        joined(one)
        code, run = hall.opening.code, hall.opening.run_id
        with pytest.raises(DatabaseError, match="another process"):
            Ledger(path)
    with (path.with_name("g.duckdb.class")).open("ab") as file:
        file.write(b'{"event": "sit", "se')  # a line that a crash has torn
    with hall_at(path) as hall:
        assert (hall.opening.code, hall.opening.run_id, len(hall.register.seats)) == (code, run, 1)
        hall.join("another phone")
    with hall_at(path) as hall:
        assert len(hall.register.seats) == 2
    with pytest.raises(InvalidInput, match="differs"), hall_at(path, "craigslist_01"):
        pass


def test_an_end_breaks_off_what_goes_on_and_an_earlier_class_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "e.duckdb"
    with hall_at(path) as hall, app_of(hall) as one, app_of(hall) as two, app_of(hall) as three, app_of(hall) as four:
        for client in (one, two, three, four):
            joined(client)
        speaker = (one, two)[first_speaker(hall) - 1]
        page = speaker.get("/class").text
        speaker.post("/class/say", data={"csrf": field(page, "csrf"), "turn": "0", "text": "Bye", "leave": "1"})
        bet = {"csrf": field(page, "csrf"), "turns": "agents", "hits": "agents"}
        assert speaker.post("/class/bet", data=bet).status_code == 200
        hall.end()
        hall.leave()
        run = hall.opening.run_id
    store = Store(path)
    assert [row["status"] for row in store.rows("SELECT status FROM v_episodes ORDER BY status")] == [
        "completed", "interrupted",
    ]  # fmt: skip
    before = results.earlier(store, run)
    assert sum(row.finished for row in before.rows) == 1 and placed(before.bets) == 2
    assert "cannot compare" in telling.finding(before.rows, english())
    with hall_at(path) as hall, app_of(hall) as projector:
        assert not hall.register.seats, "after its end a class does not go on"
        projector.app.state.before = before  # type: ignore[attr-defined]
        page = projector.get(f"/class/teacher?key={hall.opening.teacher}").text
        assert "the earlier class" not in page, "its results would name the modes before the reveal"
        refused = projector.post("/class/room/reveal", data={"csrf": field(page, "csrf")})
        assert refused.status_code == 400 and not hall.register.revealed, "no talk has ended"
        assert "nothing to reveal" in projector.get("/class/room/reveal").text
        hall.reveal()
        page = projector.get("/class/room").text
        assert page.count(", the earlier class") == 2 and "(agents)" not in page


def test_every_bundled_scenario_says_what_to_notice_try_and_discuss() -> None:
    text = (Path(__file__).parent.parent / "docs" / "teach.md").read_text()
    for source in (source for source in shipped_sources() if source.generate is None):
        name = source.load().scenario.family or source.name
        row = next((line for line in text.splitlines() if line.startswith(f"| `{name}`")), "")
        assert len([cell for cell in row.split("|") if len(cell) > 20]) == 3, name
