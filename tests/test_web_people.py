"""People on the pages: raters and players lose nothing and see nothing they should not; seats cannot be guessed."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from starlette.testclient import TestClient

from localsim.annotation import records
from localsim.conversation.episode import Mode, Observation
from localsim.conversation.grants import Grants
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Action, Transcript
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from localsim.web.app import Site, create_app
from localsim.web.guard import Access
from localsim.web.phrases.table import find
from localsim.web.play.stage import Stage
from tests.conftest import generated
from tests.web_server import BASE, HOSTS, at_once, client_of, field, serving, simulated

# ---- annotate ------------------------------------------------------------------------------------------------------


def test_thirty_raters_at_once_lose_and_duplicate_nothing(tmp_path: Path) -> None:
    store, run_id = simulated(tmp_path / "r.duckdb")
    problems: list[str] = []

    def rate(number: int) -> None:
        address = f"{base}/annotate/{run_id}/pairs?rater=rater-{number}"
        with httpx2.Client(follow_redirects=True, timeout=120) as browser:
            text = browser.get(address).text
            for _ in range(4):
                data = {"csrf": field(text, "csrf"), "item": field(text, "item"), "begun": "1", "value": "1"}
                answer = browser.post(address, data=data)
                again = browser.post(address, data=data)  # a double click
                if answer.status_code != 200 or again.status_code != 200:
                    problems.append(answer.text[:200])
                text = again.text

    with serving(store, parts=("annotate",)) as base, at_once(range(30), rate):
        pass
    assert not problems
    counts = store.rows("SELECT rater, count(*) AS n FROM annotations GROUP BY rater")
    assert len(counts) == 30 and {row["n"] for row in counts} == {4}


def test_undo_takes_the_last_answer_back_and_shows_it_again(tmp_path: Path) -> None:
    store, run_id = simulated(tmp_path / "u.duckdb")
    address = f"/annotate/{run_id}/pairs?rater=undoer"
    with client_of(store) as client:
        page = client.get(address).text
        first = field(page, "item")
        page = client.post(address, data={"csrf": field(page, "csrf"), "item": first, "value": "2"}).text
        assert field(page, "item") != first
        page = client.post(address, data={"csrf": field(page, "csrf"), "undo": "1"}).text
        assert field(page, "item") == first
    assert not records.done(store, "pairs", run_id, "undoer")


def test_raters_see_no_modes_models_or_runs(tmp_path: Path) -> None:
    store, run_id = simulated(tmp_path / "b.duckdb")
    site = Site(store, Access(HOSTS), "scripted", frozenset({"annotate"}))
    with TestClient(create_app(site), base_url=BASE) as client:
        for task in ("pairs", "dimensions", "disclosures"):
            text = client.get(f"/annotate/{run_id}/{task}?rater=blind").text
            while 'name="item"' in text:
                assert not re.search(r"mindreaders|agents|omniscient|scripted|script mode|attention", text)
                marks = dict.fromkeys(re.findall(r'name="(mark\.[^"]+)"', text), "none")
                data = {"csrf": field(text, "csrf"), "item": field(text, "item"), "value": "1", **marks}
                text = client.post(f"/annotate/{run_id}/{task}?rater=blind", data=data).text
            assert "All done" in text
        assert client.get(f"/runs/{run_id}").status_code == 404
        assert client.get("/sql").status_code == 404
        assert client.get(f"/annotate/{run_id}").status_code == 404


def test_killing_the_server_loses_no_click(tmp_path: Path) -> None:
    store, run_id = simulated(tmp_path / "k.duckdb")
    command = [sys.executable, "-m", "localsim", "annotate", "serve", run_id, "--db", str(store.path), "--port", "0"]
    command[-1] = str(_free_port())
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        base = f"http://127.0.0.1:{command[-1]}"
        with httpx2.Client(follow_redirects=True, timeout=30) as browser:
            text = _first_answer(browser, f"{base}/annotate/{run_id}/pairs?rater=k")
            for _ in range(5):
                data = {"csrf": field(text, "csrf"), "item": field(text, "item"), "value": "1"}
                text = browser.post(f"{base}/annotate/{run_id}/pairs?rater=k", data=data).text
        server.send_signal(signal.SIGKILL)
    finally:
        server.kill()
        server.wait()
    assert len(records.done(store, "pairs", run_id, "k")) == 5


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _first_answer(browser: httpx2.Client, address: str) -> str:
    deadline = time.monotonic() + 60
    while True:
        try:
            return browser.get(address).text
        except httpx2.TransportError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


# ---- play ----------------------------------------------------------------------------------------------------------


def wait_for(check: object, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not check():  # type: ignore[operator]
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.02)


def test_two_people_play_each_other_and_see_their_own_side_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "p.duckdb")
    with client_of(store) as client:
        page = client.get("/play").text
        data = {"csrf": field(page, "csrf"), "scenario": "craigslist_01", "against": "person"}
        role = re.search(r'name="role" value="([^"]+)"', page.split('value="craigslist_01"')[1])
        assert role
        seat = client.post("/play", data={**data, "role": role[1]}, follow_redirects=False).headers["location"]
        game, own = client.app.state.stage.find(*seat.split("/")[2:])  # type: ignore[attr-defined]
        other = next(address for address, name in game.seats.items() if name != own)
        seats = {own: seat, next(n for n in game.seats.values() if n != own): f"{seat.rpartition('/')[0]}/{other}"}
        names = game.scenario.scenario.names
        for name, address in seats.items():
            text = client.get(address).text
            partner = game.scenario.scenario.agent(next(each for each in names if each != name))
            assert partner.facts[0].text.replace("'", "&#39;") not in text
        for name, address in seats.items():
            text = client.get(address).text
            assert all(other not in text for each, other in seats.items() if each != name), "a way to the other's seat"
        for number in range(4):
            name = names[number % 2]
            wait_for(lambda name=name: game.asked == name)
            kind = "leave" if number == 3 else "speak"
            said = {"csrf": data["csrf"], "turn": str(number), "kind": kind, "text": f"line {number} <b>"}
            wrong = next(each for each in names if each != name)
            assert client.post(seats[wrong], data={**said, "text": "not my turn"}).status_code == 400
            client.post(seats[name], data=said)
            client.post(seats[name], data=said)  # a double click
        wait_for(lambda: game.done, 120)
        rows = store.rows("SELECT speaker, text, action FROM v_turns ORDER BY turn")
        assert [row["text"] for row in rows] == [f"line {number} <b>" for number in range(4)]
        reveal = client.get(seats[own]).text
        assert reveal.index('class="verdict') < reveal.index("Who disclosed what") < reveal.index("<summary>Scores")
        assert "The reveal" in reveal and all(
            agent.goal.replace("'", "&#39;") in reveal for agent in game.scenario.scenario.agents
        )
        client.app.state.phrases = find("de")  # type: ignore[attr-defined]
        german = client.get(seats[own]).text
        assert "Goal missed" in reveal and "Goal missed" not in german
        assert "Euer Gespräch hat sein Ziel nicht erreicht.</b> Ihr habt euch auf keinen Preis geeinigt" in german


def test_the_address_of_a_seat_lets_a_second_phone_in(tmp_path: Path) -> None:
    """On a network the address has the token; without one the page says that only this computer can open it."""
    for rules, here_only in (({"access": "secret-token"}, True), ({}, True)):
        with client_of(Store(tmp_path / "a.duckdb"), **rules) as client:
            page = client.get("/play?token=secret-token").text
            data = {"csrf": field(page, "csrf"), "scenario": "mutual_friends_01", "against": "person", "role": "Oscar"}
            text = client.post("/play", data=data).text
            link = re.search(r'class="address" href="([^"]+)">\1<', text)
            assert link and link[1].startswith(BASE) and "<svg" in text
            assert ("token=secret-token" in link[1]) is bool(rules)
            assert ("localsim play --host ADDRESS" in text) is here_only
            client.cookies.clear()
            seat = client.get(link[1])
            assert seat.status_code == 200 and "You are Beatrix" in seat.text and "token" not in str(seat.url)


@pytest.mark.parametrize("mode", ["agents", "mindreaders"])
def test_a_seat_shows_its_own_observation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """A turn that `observe` hides from an agent is hidden on the pages of its seat, and the seat can still answer."""

    def deaf(
        scenario: Scenario, mode: Mode, viewer: str, transcript: Transcript, grants: Grants, **_: object
    ) -> Observation:
        seen = observe(scenario, mode, viewer, transcript, grants)
        heard = tuple(turn for turn in transcript.turns if viewer == turn.speaker or "psst" not in turn.action.text)
        hidden_goal = tuple(replace(agent, goal="only this goal") for agent in seen.agents)
        return replace(seen, transcript=Transcript(heard), agents=hidden_goal, allowed=("speak", "leave"))

    monkeypatch.setattr("localsim.web.floor.floor.observe", deaf)
    store = Store(tmp_path / "o.duckdb")
    with client_of(store) as client:
        page = client.get("/play").text
        first, second = find_scenarios(["craigslist_01"])[0].scenario.names
        data = {"csrf": field(page, "csrf"), "scenario": "craigslist_01", "against": "person", "mode": mode}
        seat = client.post("/play", data={**data, "role": first}, follow_redirects=False).headers["location"]
        game, _ = client.app.state.stage.find(*seat.split("/")[2:])  # type: ignore[attr-defined]
        other = f"{seat.rpartition('/')[0]}/{next(key for key, name in game.seats.items() if name == second)}"
        for number, (address, kind, text) in enumerate(
            [(seat, "speak", "psst, the secret line"), (other, "speak", "I heard nothing"), (seat, "leave", "Bye")]
        ):
            wait_for(lambda name=(first, second)[number % 2]: game.asked == name)
            shown = client.get(address).text
            assert "only this goal" in shown and "show without words" not in shown
            said = {"csrf": data["csrf"], "turn": field(shown, "turn"), "kind": kind, "text": text}
            assert client.post(address, data=said).status_code == 200
            wait_for(lambda count=number + 1: len(game.talk.turns) == count)
            for part in ("", "/turns"):
                assert "psst" in client.get(seat + part).text or game.done
                assert "psst" not in client.get(other + part).text or game.done
        wait_for(lambda: game.done, 120)
        assert "psst" in client.get(other).text  # the reveal hides nothing


def test_a_seat_cannot_be_guessed_and_games_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localsim.web.play.stage.MOST_GAMES", 1)
    stage = Stage(Store(tmp_path / "s.duckdb"), "scripted")
    loaded = generated("craigslist", 1)
    name, game = stage.open(loaded, loaded.scenario.names, "agents")
    with pytest.raises(InvalidInput, match="no such seat"):
        stage.find(name, "guess")
    with pytest.raises(InvalidInput, match="in progress"):
        stage.open(loaded, loaded.scenario.names, "agents")
    wait_for(lambda: game.asked is not None)
    assert game.asked is not None
    game.take(game.talk, game.asked, 0, Action("leave", "bye"))
    wait_for(lambda: game.done, 120)
