"""An experiment with people in one process: places, forms, limits, and what is stored."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from localsim.cli import cli
from localsim.errors import InvalidInput
from localsim.store.database import Store
from tests.experiment_lab import SMALL, agreed, client_of, lab_at, post, ready, until, written
from tests.web_server import field


def test_nothing_personal_is_stored(tmp_path: Path) -> None:
    with lab_at(tmp_path) as lab:
        client = client_of(lab)
        client._transport.client = ("203.0.113.77", 50_000)  # type: ignore[attr-defined]
        client.headers["user-agent"] = "SecretBrowser/9.9"
        client.headers["accept-language"] = "xx-SECRET"
        with client:
            agreed(client)
            text = ready(client)
            post(client, "say", turn=field(text, "turn"), text="Goodbye", leave="1")
            until(lambda: lab.live[1].ended)
            client.get("/experiment")
            cookies = [value for _, value in client.cookies.items()]
    store = Store(tmp_path / "e.duckdb")
    tables = [row["name"] for row in store.rows("SELECT table_name AS name FROM duckdb_tables() WHERE NOT internal")]
    stored = repr([store.rows(f'SELECT * FROM "{table}"') for table in tables])
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert "Goodbye" in stored and any(b"agree" in data for data in files)
    for secret in ("203.0.113.77", "SecretBrowser", "xx-SECRET", *cookies):
        assert secret not in stored
        assert not any(secret.encode() in data for data in files), secret
    columns = {row["name"] for row in store.rows("SELECT column_name AS name FROM (DESCRIBE v_participants)")}
    assert columns == {
        "run_id", "experiment", "participant", "condition", "status", "place", "consent_version", "consented_utc",
        "seconds", "completion_code", "talks", "description_hash",
    }  # fmt: skip


def test_who_does_not_agree_is_not_stored(tmp_path: Path) -> None:
    with lab_at(tmp_path) as lab, client_of(lab) as client:
        assert "Do you agree?" in client.get("/experiment").text
        assert "Nothing about you is stored" in client.get("/experiment/declined").text
        assert not lab.register.people and client.post("/experiment/agree").status_code == 400
    assert not Store(tmp_path / "e.duckdb").path.exists() or not Store(tmp_path / "e.duckdb").rows("SELECT * FROM runs")


def test_a_form_needs_every_answer_and_counts_once(tmp_path: Path) -> None:
    with lab_at(tmp_path, begun=False) as lab, client_of(lab) as client:
        client.get("/experiment")
        assert "How sure are you?" in post(client, "agree").text
        data = {"part": "before", "bank": "before", "item.sure": "2"}
        for odd in ({}, {"item.sum": "12"}, {"item.sum": "x"}, {"item.sum": "4", "item.sure": "5"}):
            assert post(client, "answer", **{**data, **odd}).status_code == 400, odd
        assert post(client, "answer", **{**data, "part": "after", "item.sum": "4"}).status_code == 400
        assert not lab.register.people[1].forms
        for value in ("4", "5"):
            assert post(client, "answer", **data, **{"item.sum": value}).status_code == 200
        given = lab.register.people[1].forms["before", "before"]
        assert given["sum"] == {"value": "4", "number": 4.0, "right": True}
        assert given["sure"] == {"value": "2", "number": 2.0, "right": None}


def test_limits_of_messages_and_characters_are_kept_and_a_message_is_rated_first(tmp_path: Path) -> None:
    with lab_at(tmp_path, SMALL.replace("required: false", "required: true")) as lab, client_of(lab) as client:
        agreed(client)
        until(lambda: bool(lab.live) and bool(lab.live[1].turns))
        text = client.get("/experiment").text
        assert "Be kind." in text and "Nice?" in text and 'name="text"' not in text
        turn = field(text, "turn")
        assert "rate the last message first" in post(client, "say", turn="1", text="Hello").text
        assert post(client, "rate", turn=turn, skip="1").status_code == 400
        for number in range(3):
            text = ready(client)
            assert "At most 6 turns" in text
            long = post(client, "say", turn=field(text, "turn"), text="x" * 41)
            assert long.status_code == 400 and "at most 40" in long.text
            post(client, "say", turn=field(text, "turn"), text=f"Line {number}")
        until(lambda: lab.live[1].ended)
        live = lab.live[1]
        assert live.completed and len(live.turns) <= 6
        assert [each.action.text for each in live.turns if each.action.text.startswith("Line")] == [
            "Line 0", "Line 1", "Line 2",
        ]  # fmt: skip
        assert "Your completion code" in client.get("/experiment").text


def test_a_rating_can_be_skipped_if_the_file_allows_it(tmp_path: Path) -> None:
    with lab_at(tmp_path) as lab, client_of(lab) as client:
        agreed(client)
        until(lambda: bool(lab.live) and bool(lab.live[1].turns))
        text = client.get("/experiment").text
        assert "Skip" in text
        post(client, "rate", turn=field(text, "turn"), skip="1")
        assert list(lab.register.people[1].ratings.values()) == [{}] and "Nice?" not in client.get("/experiment").text


def test_the_time_of_a_talk_ends_it_and_the_participant_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lab_at(tmp_path) as lab, client_of(lab) as client:
        agreed(client)
        until(lambda: bool(lab.live) and bool(lab.live[1].turns))
        now = time.time()
        monkeypatch.setattr("localsim.web.experiment.lab.time.time", lambda: now + 3600)
        assert not lab.leaves() and 0 < (lab.seconds_left(lab.live[1]) or 0) <= 300, (
            "the clock was set, no time went by"
        )
        lab._begun -= 301
        until(lambda: lab.live[1].ended)
        assert not lab.live[1].completed
        post(client, "rate", turn="0", skip="1")
        page = client.get("/experiment").text
        assert "Your completion code" in page and "The time of the talk is over." in page
    rows = Store(tmp_path / "e.duckdb").rows("SELECT status, error, success FROM v_participant_talks")
    assert rows == [{"status": "failed", "error": "the time of the talk was over", "success": None}]


def test_a_place_of_somebody_who_is_away_goes_to_the_next_one(tmp_path: Path) -> None:
    with lab_at(tmp_path) as lab:
        clients = [client_of(lab) for _ in range(6)]
        for client in clients[:4]:
            agreed(client)
        assert "All places are taken" in clients[4].get("/experiment").text
        people = lab.register.people
        lost = next(each for each in people.values() if each.condition == "both")
        partner = lab.register.partners(lost)[0]
        lab._seen[lost.number] -= 61
        agreed(clients[4])
        assert people[5].place == lost.place and lost.status == "away"
        until(lambda: lab.live[lost.talks[0]].ended)
        assert lab.live[lost.talks[0]].problem == "a participant left the talk"
        assert "Your place was given to another person" in clients[lost.number - 1].get("/experiment").text
        page = clients[partner.number - 1].get("/experiment").text
        assert "Your completion code" in page and partner.status == "unpaired", "the partner is thanked"
        assert "The other side has left the talk." in page
        assert "Waiting for the other side" in clients[4].get("/experiment").text
        agreed(clients[5])
        assert people[6].place == partner.place and people[6].talks == people[5].talks != []


def test_who_stops_frees_the_place_at_once(tmp_path: Path) -> None:
    with lab_at(tmp_path) as lab, client_of(lab) as one, client_of(lab) as two:
        agreed(one)
        assert post(one, "stop").status_code == 400, "the box is not ticked"
        page = post(one, "stop", sure="1").text
        assert "You have stopped" in page and "completion code" not in page
        agreed(two)
        assert [each.place for each in lab.register.people.values()] == [0, 0]
        assert [each.status for each in lab.register.people.values()] == ["withdrawn", "taking part"]


def test_several_talks_of_a_participant_have_different_scenarios(tmp_path: Path) -> None:
    text = SMALL.replace("minutes: 5", "minutes: 5, talks: 2")
    text = text.replace(
        "scenarios: [mutual_friends_01], seat", "scenarios: [mutual_friends_01, mutual_friends_02], seat"
    )
    with lab_at(tmp_path, text) as lab, client_of(lab) as client:
        agreed(client)
        person = lab.register.people[1]
        assert person.condition == "alone"
        for number in (1, 2):
            assert len(person.talks) == number
            page = ready(client)
            assert f"Talk {number} of 2" in page
            post(client, "say", turn=field(page, "turn"), text="Goodbye", leave="1")
            until(lambda number=number: lab.live[number].ended)  # type: ignore[misc]
            client.get("/experiment")
        assert "Your completion code" in client.get("/experiment").text and person.talks == [1, 2]
    rows = Store(tmp_path / "e.duckdb").rows("SELECT talk, scenario_id FROM v_participant_talks ORDER BY talk")
    assert [row["talk"] for row in rows] == [1, 2] and len({row["scenario_id"] for row in rows}) == 2


def test_who_waits_in_vain_may_go_on_and_the_place_is_free(tmp_path: Path) -> None:
    text = SMALL.replace("away: 1", "away: 1, wait: 0.001").replace(
        "quota: 2, scenarios: [mutual_friends_01], seat", "quota: 1, scenarios: [mutual_friends_01], seat"
    )
    with lab_at(tmp_path, text) as lab:
        clients = [client_of(lab) for _ in range(2)]
        for client in clients:
            agreed(client)
        (lonely,) = [each for each in lab.register.people.values() if each.condition == "both"]
        client = clients[lonely.number - 1]
        until(lambda: "Go on without a talk" in client.get("/experiment").text)
        assert "Your completion code" in post(client, "alone").text
        assert lonely.status == "unpaired" and not lonely.holds, "the place is free again"


GAME = """\
version: 1
id: game
title: A game
consent: {version: "1", text: "Do you agree?"}
conditions:
  - {id: both, quota: 2, scenarios: [matrix_prisoners], partner: participant}
debrief: That was all.
"""


def test_two_participants_play_a_game_and_choose_at_the_same_time(tmp_path: Path) -> None:
    with lab_at(tmp_path, GAME) as lab, client_of(lab) as one, client_of(lab) as two:
        for client in (one, two):
            client.get("/experiment")
            post(client, "agree")
        live = lab.live[1]
        for client, choice in ((two, "F"), (one, "J")):
            until(lambda client=client: 'name="value0"' in client.get("/experiment").text)  # type: ignore[misc]
            text = client.get("/experiment").text
            post(client, "say", turn=field(text, "turn"), kind="choose", value0=choice)
        until(lambda: len(live.turns) >= 3)
        roles = {number: role for role, number in live.meeting.people.items()}
        chosen = {turn.speaker: turn.value for turn in live.turns[:2]}
        assert chosen == {roles[1]: "J", roles[2]: "F"}


def test_an_experiment_goes_on_only_as_it_began(tmp_path: Path) -> None:
    with lab_at(tmp_path) as lab, client_of(lab) as client:
        agreed(client)
        run = lab.run_id
    with lab_at(tmp_path) as lab, client_of(lab) as client:
        assert lab.run_id == run and len(lab.register.people) == 1
    with (
        pytest.raises(InvalidInput, match="another file, banks, rubric or scenarios"),
        lab_at(tmp_path, SMALL.replace("Be kind.", "Be quick.")),
    ):
        pass
    with lab_at(tmp_path, fresh=True) as lab:
        assert lab.run_id != run


def test_an_experiment_can_end_before_every_place_is_filled(tmp_path: Path) -> None:
    file, db = tmp_path / "small.yaml", tmp_path / "e.duckdb"
    end = ["experiment", "serve", str(file), "-m", "scripted:friends", "--db", str(db), "--end"]
    written(tmp_path)
    nobody = CliRunner().invoke(cli, end)
    assert "nobody has taken part" in str(nobody.exception)
    with lab_at(tmp_path) as lab, client_of(lab) as client:
        agreed(client)
        assert not lab.live[1].ended
    done = CliRunner().invoke(cli, end)
    assert done.exit_code == 0 and "ended with 0 of 4 places filled" in done.output
    store = Store(db)
    assert store.rows("SELECT status FROM runs") == [{"status": "finished"}]
    assert store.rows("SELECT status FROM episodes") == [{"status": "interrupted"}]
    again = CliRunner().invoke(cli, end)
    assert "has ended" in str(again.exception)
