"""Runs that begin in the browser: the form, stop and resume, refusals, and what is stored."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from localsim.conversation.episode import MODES
from localsim.errors import InvalidInput
from localsim.evaluators import leaks
from localsim.runs import runner, words
from localsim.runs.plan import Plan
from localsim.scenarios.parse import parse_scenario
from localsim.store.database import Store
from localsim.store.queries import runs as run_queries
from localsim.web.app import Site, create_app
from localsim.web.guard import Access
from localsim.web.start import pages, talks, work
from tests.conftest import TALK, Quiet, generated
from tests.test_cli import ask
from tests.test_report_html import Page
from tests.web_server import BASE, HOSTS, client_of, field

SCRIPTED = {"scenario": "mutual_friends_01", "seed": "1", "players": "scripted:omniscient"}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause between turns, and no search for leaks, which has a test of its own."""
    monkeypatch.setattr(work, "PACE_S", 0.0)
    monkeypatch.setattr(runner, "search", lambda *_: None)


@pytest.fixture
def client(store: Store) -> Iterator[TestClient]:
    """A browser without scripts on an empty database."""
    with client_of(store) as found:
        yield found


def begun(client: TestClient, **chosen: str) -> Any:
    """The answer to the form."""
    data = {"csrf": field(client.get("/start").text, "csrf"), **SCRIPTED, **chosen}
    return client.post("/start", data=data, follow_redirects=False)


def press(client: TestClient, action: str, **fields: str) -> Any:
    data = {"csrf": field(client.get("/start").text, "csrf"), **fields}
    return client.post(f"/start/{action}", data=data)


def until(client: TestClient, *phases: str, seconds: float = 120) -> str:
    """The page at /start/now, once its part says one of these phases."""
    deadline = time.monotonic() + seconds
    while True:
        text = client.get("/start/now").text
        found = re.search(r'data-phase="(\w+)"', text)
        if found and found[1] in phases:
            return text
        assert time.monotonic() < deadline, text
        time.sleep(0.1)


def until_turns(client: TestClient, least: int) -> None:
    """Wait for turns of agents and mindreaders, which come one by one."""
    deadline = time.monotonic() + 60
    while sum(len(turns) for mode, turns in desk_of(client).work.turns.items() if mode != "script") < least:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def desk_of(client: TestClient) -> Any:
    return client.app.state.desk  # type: ignore[attr-defined]


def turns_of(store: Store) -> list[tuple[Any, ...]]:
    query = "SELECT e.mode, t.turn, t.speaker, t.action, t.text FROM turns t JOIN episodes e USING (episode_id)"
    return sorted(tuple(row.values()) for row in store.rows(query))


# ---- from the front page to the verdicts ---------------------------------------------------------------------------


def test_a_newcomer_gets_three_stored_talks_and_their_verdicts(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "PACE_S", 0.0)
    assert '<a class="button" href="/start">' in client.get("/").text
    assert begun(client).headers["location"] == "/start/now"
    text = until(client, "finished", seconds=300)
    Page(text)
    run_id = store.run_id("@last")
    assert [row["status"] for row in run_queries.episode_list(store, run_id)] == ["completed"] * 3
    assert text.count("Goal reached.") == 3 and text.count("Jasper") > 3
    assert text.count(words.KINDS["hit"]) == 1, "what an untold hit is stands there once"
    assert '<details class="note' in text and "private fact" in text, "marks and verdicts say what came out"
    assert f'href="/runs/{run_id}"' in text and f'href="/runs/{run_id}/report"' in text
    assert "Look for leaks" not in text, "leaks were looked for"
    assert client.get(f"/start/runs/{run_id}").status_code == 200
    assert 'href="/start"' in client.get("/").text
    assert json_plan(store) == {"modes": list(MODES), "episodes": 1, "model": "scripted:omniscient", "seed": 1}


@pytest.mark.usefixtures("quick")
def test_what_is_chosen_first_shows_an_unearned_hit_where_players_see_everything_and_only_there(
    client: TestClient, store: Store
) -> None:
    form = client.get("/start").text
    chosen = re.search(r'<option value="(\w+)" selected', form)
    assert chosen is not None and "without a language model" in form
    begun(client, scenario=chosen[1])
    text = until(client, "finished")
    assert "No language model writes these talks" in text
    summary = text.split("The run is complete.</b> ", 1)[1].split("</p>", 1)[0]
    assert re.match(
        r"Goal reached: script after (\d+) turns, agents after (\d+) turns, mindreaders after \1 turns. "
        r"Untold hits: 1 in script, 1 in mindreaders.",
        summary,
    ), summary
    query = "SELECT mode, sum(value) AS hits FROM v_scores WHERE name = 'unearned_hits' AND newest GROUP BY 1"
    hits = {row["mode"]: row["hits"] for row in store.rows(query)}
    assert hits["agents"] == 0 and hits["script"] > 0 and hits["mindreaders"] > 0
    panels = {mode: text.split(f'id="{mode}"', 1)[1].split("</section>", 1)[0] for mode in MODES}
    assert {mode: words.SIGNS["hit"] in panel for mode, panel in panels.items()} == {
        "script": True, "agents": False, "mindreaders": True,
    }  # fmt: skip


@pytest.mark.usefixtures("quick")
def test_a_game_without_private_facts_says_nothing_about_leaks(client: TestClient) -> None:
    begun(client, scenario="public_goods_four")
    text = until(client, "finished")
    assert "The run is complete." in text
    assert "not looked for" not in text and "not been looked for" not in text and "Look for leaks" not in text


def json_plan(store: Store) -> dict[str, Any]:
    import json

    plan = json.loads(run_queries.run_row(store, store.run_id("@last"))["plan_json"])
    return {key: plan[key] for key in ("modes", "episodes", "model", "seed")}


@pytest.mark.usefixtures("quick")
def test_leaks_that_were_not_looked_for_can_be_looked_for_later(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(client)
    text = until(client, "finished")
    assert "Leaked facts have not been looked for yet." in text
    monkeypatch.setattr(runner, "search", leaks.search)
    press(client, "resume", run=store.run_id("@last"))
    assert "Look for leaks" not in until(client, "finished", seconds=300)
    assert len(store.rows("SELECT 1 FROM episodes")) == 3


@pytest.mark.usefixtures("quick")
def test_a_new_task_comes_from_its_number(client: TestClient, store: Store) -> None:
    begun(client, scenario="new:craigslist", seed="41")
    until(client, "finished")
    row = store.rows("SELECT scenario_id, scenario_hash FROM scenarios")[0]
    assert row == {"scenario_id": "craigslist_41", "scenario_hash": generated("craigslist", 41).hash}


# ---- stop and resume -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
def test_a_run_that_is_stopped_and_resumed_equals_one_that_was_not(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(work, "PACE_S", 0.05)
    begun(client, scenario="new:craigslist", seed="7", players="scripted")
    until_turns(client, 3)
    press(client, "stop")
    text = until(client, "stopped")
    run_id = store.run_id("@last")
    before = turns_of(store)
    assert run_queries.run_row(store, run_id)["status"] == "interrupted" and len(before) >= 3
    assert text.count('class="who"') == len(before), "what was said stays in view"
    assert "Resume" in client.get("/start").text, "the form offers the run too"
    press(client, "resume", run=run_id)
    until(client, "finished")
    whole = Store(tmp_path / "whole.duckdb")
    runner.start(Plan((generated("craigslist", 7),), MODES, "scripted", seed=7), whole, Quiet(), lambda _: None)
    assert turns_of(store) == turns_of(whole) and len(before) < len(turns_of(whole))
    assert store.check() == [] and len(store.rows("SELECT 1 FROM episodes")) == 3


@pytest.mark.usefixtures("quick")
def test_a_server_that_ends_stores_what_was_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "PACE_S", 0.2)
    with client_of(store) as client:
        begun(client, scenario="craigslist_02", players="scripted")
        until_turns(client, 2)
    assert run_queries.run_row(store, store.run_id("@last", unfinished=True))["status"] == "interrupted"
    with client_of(store) as client:
        assert "Resume" in client.get("/start/now").text, "the next server offers the run"


def test_only_runs_that_these_pages_can_show_are_offered(store: Store, client: TestClient, talk: Any) -> None:
    class Stops(Quiet):
        def stops(self) -> bool:
            return len(self.turns) > 3

    runner.start(Plan((talk,), ("agents",), "scripted"), store, Stops(), lambda _: None)
    single = store.run_id("@last", unfinished=True)
    runner.start(Plan((talk,), MODES, "scripted"), store, Stops(), lambda _: None)
    assert [run.run_id for run, *_ in talks.unfinished(store)] == [store.run_id("@last", unfinished=True)] != [single]
    assert client.get(f"/start/runs/{single}").status_code == 400
    assert press(client, "resume", run=single).status_code == 400
    assert press(client, "resume", run="no-such").status_code == 400


# ---- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
def test_a_second_run_waits_for_the_first(client: TestClient, store: Store, monkeypatch: Any) -> None:
    monkeypatch.setattr(work, "PACE_S", 5.0)
    begun(client)
    refused = begun(client, seed="12")
    assert refused.status_code == 409 and "A run is in progress" in refused.text
    assert 'href="/start/now"' in refused.text and 'value="12"' in refused.text
    press(client, "stop")
    until(client, "stopped")
    assert len(store.rows("SELECT 1 FROM runs")) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seed": "-1"}, "whole number"),
        ({"seed": "9" * 30}, "whole number"),
        ({"scenario": "../../etc"}, "No such scenario"),
        ({"scenario": "new:nothing"}, "No such scenario"),
        ({"players": "/etc/passwd.gguf"}, "not on the list"),
    ],
)
def test_a_wrong_form_is_explained_and_starts_nothing(
    client: TestClient, store: Store, wrong: dict[str, str], message: str
) -> None:
    answer = begun(client, **wrong)
    assert answer.status_code == 400 and message in answer.text
    assert desk_of(client).work is None and not store.path.exists()


@pytest.mark.parametrize("path", ["/start", "/start/go", "/start/stop", "/start/resume"])
def test_every_button_wants_the_token_of_this_visit(client: TestClient, path: str) -> None:
    client.get("/start")
    answer = client.post(path, data={**SCRIPTED, "csrf": "x"})
    assert answer.status_code == 400 and "not from this visit" in answer.text
    assert client.post(path, data=SCRIPTED, headers={"origin": "http://evil.example"}).status_code == 403


def test_on_a_network_nobody_starts_runs(store: Store) -> None:
    with client_of(store, access="secret") as client:
        client.get("/?token=secret")
        assert 'href="/start"' not in client.get("/").text
        answer = client.get("/start")
        assert answer.status_code == 403 and "localsim view --new" in answer.text


def test_a_missing_model_has_one_message_with_the_next_command(store: Store, tmp_path: Path) -> None:
    missing = str(tmp_path / "gone.gguf")
    site = Site(store, Access(HOSTS, rate=10_000.0, burst=10_000.0), missing)
    with TestClient(create_app(site), base_url=BASE) as client:
        begun(client, players=missing)
        text = until(client, "failed")
        assert "no such model file" in text and "Next: localsim models list" in text
        assert text.count('role="alert"') == 1
        assert begun(client, players=missing).status_code == 303, "another attempt is possible"
        until(client, "failed")


def test_the_command_leads_a_newcomer_to_the_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = ask(capsys, "view", "--db", str(tmp_path / "no.duckdb"))
    assert code == 5 and "localsim view --new --db" in err
    assert ask(capsys, "view", "--new", "@last")[0] == 2
    assert ask(capsys, "view", "--new", "--host", "192.0.2.1")[0] == 2


def test_the_forecast_says_minutes_and_its_range() -> None:
    assert talks.duration(8) == "8 seconds" and talks.duration(150) == "2 minutes"
    with pytest.raises(InvalidInput):
        pages._plan({**SCRIPTED, "players": "human"}, "scripted")


# ---- a model -------------------------------------------------------------------------------------------------------


@pytest.mark.model
@pytest.mark.usefixtures("quick")
def test_the_starter_tells_its_forecast_and_plays(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = TALK.replace("answer:", "limits: {turns: 4, chars: 80}\nanswer:")
    monkeypatch.setattr(pages, "shipped", lambda: {"talk": parse_scenario(short, "talk.yaml")})
    begun(client, scenario="talk", players="starter")
    text = until(client, "ready", seconds=100)
    assert re.search(r"About \d+ (seconds|minutes) \(", text) and "Memory: " in text and "free" in text
    assert not store.path.exists(), "nothing starts before the forecast was read"
    press(client, "go")
    text = until(client, "finished", seconds=100)
    assert [row["status"] for row in run_queries.episode_list(store, store.run_id("@last"))] == ["completed"] * 3
    assert text.count('class="who"') >= 6
