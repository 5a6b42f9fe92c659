"""What a person calls a run: names, `@last`, and what is said about a run that was not searched for leaks."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import click
import pytest

from localsim.__main__ import run as command
from localsim.cli import common
from localsim.errors import InvalidInput
from localsim.families import Family
from localsim.runs import runner, telling
from localsim.store.conditions import chosen
from localsim.store.database import Store
from localsim.store.queries import runs as queries
from localsim.store.records import EpisodeEnded, EpisodeRecord, Record, RunRecord, ScenarioRecord
from tests.conftest import Quiet

PLAN = {"modes": ["mindreaders", "agents", "script"], "model": "starter", "roles": {}, "scenarios": ["s1", "s2", "s3"]}
TASKS = {
    "s1": ("friends_01", "Ana and Bo look for a friend", "friends"),
    "s2": ("friends_02", "Cy and Di look for a friend", "friends"),
    "s3": ("roommates", "One roommate has renewed the lease, the other moves out", ""),
}


def stored(
    number: int, ends: str, *, name: str | None = None, status: str = "finished", kind: str = "scripted"
) -> list[Record]:
    """The records of a run, with one episode for each letter of `ends`: completed, failed or interrupted."""
    run_id = f"20260101-00000{number}-abcd"
    plan = json.dumps(PLAN)
    started = f"2026-01-01T00:00:0{number}"
    models = json.dumps({"m": {"kind": kind, "name": "m"}})
    records: list[Record] = [
        RunRecord(run_id, status, started, None, 1, "stable", 1, 3, plan, models, "{}", None, name)
    ]
    for index, end in enumerate(ends):
        episode_id = f"{number}{index}episode"
        records.append(EpisodeRecord(episode_id, run_id, "s1", "agents", "starter", index, 1, f"{index}", "{}"))
        if end != "i":
            records.append(EpisodeEnded(episode_id, {"c": "completed", "f": "failed"}[end], None, None, 0, 1.0))
    return records


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("folder/own.gguf", "own.gguf"),
        ("mind:predict(of=agree/refuse)+reflect,starter", "mind:predict(of=agree/refuse)+reflect,starter"),
        ("mind:plan(acts=support),folder/own.gguf", "mind:plan(acts=support),own.gguf"),
        ("mind:predict(of=a/b),openvino:/far/own.gguf", "mind:predict(of=a/b),openvino:own.gguf"),
    ],
)
def test_a_model_is_called_by_its_file_and_a_mind_by_its_steps(name: str, short: str) -> None:
    assert telling.called(name) == short


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Six runs, oldest first: complete; named; named; a game that was left; all failed; stopped at once."""
    store = Store(tmp_path_factory.mktemp("names") / "d.duckdb")
    scenarios: list[Record] = [
        ScenarioRecord(key, name, title, family or None, '{"agents": [{"secret": "A cake."}]}', "{}", None)
        for key, (name, title, family) in TASKS.items()
    ]
    runs = [
        stored(1, "ccc"),
        stored(2, "cf", name="first pilot", status="interrupted"),
        stored(3, "c", name="Twice"),
        stored(4, "i", status="interrupted", kind="human"),
        stored(5, "ff", name="twice"),
        stored(6, "", status="interrupted", name="empty"),
    ]
    store.take_in([*scenarios, *itertools.chain.from_iterable(runs)])
    return store


def run_id(number: int) -> str:
    return f"20260101-00000{number}-abcd"


def test_last_skips_what_cannot_be_looked_at(kept: Store) -> None:
    assert [kept.run_id(reference) for reference in ("@last", "@last-1", "@last-2")] == [
        run_id(3),
        run_id(2),
        run_id(1),
    ]
    assert kept.episode_id("@last") == "30episode" and kept.episode_id("@last-1") == "20episode"
    with pytest.raises(InvalidInput, match="only 3 runs with a completed episode"):
        kept.run_id("@last-3")
    assert kept.run_id("@last", unfinished=True) == run_id(6), "a run that was stopped at once can go on"
    assert kept.run_id("@last-2", unfinished=True) == run_id(3), "a game cannot"


def test_last_without_a_completed_episode_names_the_newest_run(tmp_path: Path) -> None:
    store = Store(tmp_path / "d.duckdb")
    store.take_in([ScenarioRecord("s1", "a", "a", None, "{}", "{}", None), *stored(1, "f")])
    with pytest.raises(InvalidInput, match="no runs with a completed episode") as caught:
        store.run_id("@last")
    assert f"localsim runs show {run_id(1)}" in str(caught.value.hint)


def test_a_name_means_the_only_run_that_has_it(kept: Store) -> None:
    assert kept.run_id("first pilot") == kept.run_id("First Pilot") == run_id(2)
    assert kept.run_id("Twice") == run_id(3), "as it is written, before any case"
    with pytest.raises(InvalidInput, match="2 runs have the name") as caught:
        kept.run_id("TWICE")
    assert run_id(3) in str(caught.value.hint) and run_id(5) in str(caught.value.hint)
    with pytest.raises(InvalidInput, match="is its name") as caught:
        kept.run_id("first pilto")
    assert caught.value.hint == "did you mean first pilot?"
    assert chosen(kept, "first pilot:agents").conditions[0].run_id == run_id(2)
    assert telling.namesakes(kept, "TWICE") == [run_id(5), run_id(3)]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (" ", "empty"),
        ("x" * 61, "61 characters"),
        ("a\x1b[31m", "cannot be printed"),
        ("two\nlines", "cannot be printed"),
        ("@last", "begins with @"),
        ("-n", "begins with -"),
        ("pilot:agents", "a :"),
        ("a=b", "a ="),
        ("2026", "taken for an id"),
        ("20260101-abc", "taken for an id"),
    ],
)
def test_names_that_commands_could_not_find_again_are_refused(name: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        telling.checked_name(name)


def test_a_name_is_made_of_the_plan() -> None:
    assert telling.checked_name("  Große Probe, 2 ") == "Große Probe, 2"
    several = "Everyday scenes (1), Friends (2) · starter"
    assert telling.default_name(PLAN, TASKS) == f"{several} · script, agents, mindreaders"
    assert telling.default_name(PLAN, TASKS, room=60) == f"{several} · all modes"
    assert telling.default_name(PLAN, TASKS, room=48) == "3 scenarios · starter · all modes"
    friends = {**PLAN, "scenarios": ["s1", "s2"]}
    assert telling.default_name(friends, TASKS, room=10) == "Friends (2) · starter · all modes"
    assert telling.default_name({**PLAN, "scenarios": []}, TASKS, room=48) == "no scenario · starter · all modes"
    one = {**PLAN, "scenarios": ["s3"], "modes": ["agents"], "model": "/models/own.gguf", "roles": {"Kit": "scripted"}}
    played = "own.gguf + scripted · agents"
    assert telling.default_name(one, TASKS) == f"{TASKS['s3'][1]} · {played}"
    assert telling.default_name(one, TASKS, room=48) == f"roommates · {played}", "what a person can enter"
    long = {"s3": ("corpus_7", "A buyer haggles with a seller: " + "x" * 30, "craigslist")}
    assert telling.default_name(one, long) == f"corpus_7 · {played}"
    granted = {**one, "see": ["none", "goal"]}
    assert telling.default_name(granted, TASKS).endswith("· agents, agents+goal")


def test_runs_of_a_package_that_cannot_be_loaded_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str | None) -> Family:
        raise InvalidInput("families plugin 'friends' cannot be loaded")

    monkeypatch.setattr(telling, "family_of", broken)
    assert telling.default_name({**PLAN, "scenarios": ["s1", "s2"]}, TASKS).startswith("friends (2) · starter")


def test_every_list_has_names(kept: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert telling.name_of(kept, queries.run_row(kept, run_id(2))) == "first pilot"
    assert command(["runs", "list", "--db", str(kept.path)]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert len(lines) == 8 and max(map(len, lines)) <= 100
    assert "first pilot" in lines[6] and "1 of 3, 1 failed" in lines[6] and "3 scenarios · starter" in lines[7]
    assert f"localsim score {run_id(2)} looks" in shown.err and f"localsim resume {run_id(6)}" in shown.err
    assert command(["runs", "list", "--json", "--db", str(kept.path)]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert (rows[4]["name"], rows[5]["name"]) == ("first pilot", None)
    assert rows[5]["called"].startswith("Everyday scenes (1), Friends (2)") and rows[5]["searched"] == 0


def test_a_run_that_was_not_searched_says_so_with_the_command(kept: Store) -> None:
    assert telling.unsearched(kept, run_id(1)) == f"Leaks were not looked for: localsim score {run_id(1)} does that."
    stopped = telling.unsearched(kept, run_id(2))
    assert "interrupted after 1 of 3 episodes and was not searched for leaks" in stopped
    assert f"localsim resume {run_id(2)}" in stopped and f"localsim score {run_id(2)}" in stopped
    assert "localsim score" not in telling.unsearched(kept, run_id(6)), "there is nothing to look in"
    game = telling.unsearched(kept, run_id(4))
    assert game == "The run was interrupted after 0 of 3 episodes and was not searched for leaks."
    row = queries.run_facts(kept, run_id(4))
    assert telling.remark({**row, "completed": 1, "searched": 1}) == "The run was interrupted after 1 of 3 episodes."
    half = telling.leaks_remark({**row, "completed": 1})
    assert half.endswith(f"searched for leaks: localsim score {run_id(4)} looks in what is there.")
    whole = telling.remark({**queries.run_facts(kept, run_id(2)), "searched": 1})
    assert whole.endswith(f"after 1 of 3 episodes: localsim resume {run_id(2)} continues it.")
    row = queries.run_facts(kept, run_id(1))
    assert telling.leaks_remark({**row, "searched": 3}) == "" == telling.leaks_remark({**row, "status": "running"})
    assert "in 1 of 3 episodes only" in telling.leaks_remark({**row, "searched": 1})


def test_a_run_with_a_person_in_a_role_is_not_resumed(kept: Store) -> None:
    plan = json.dumps({**PLAN, "modes": ["agents"], "roles": {"Ana": "human"}})
    with kept.writing() as connection:
        connection.execute("UPDATE runs SET plan_json = ? WHERE run_id = ?", [plan, run_id(4)])
    try:
        with pytest.raises(InvalidInput, match="there is nothing to resume"):
            runner.resume(run_id(4), kept, Quiet(), lambda _: None)
    finally:
        with kept.writing() as connection:
            connection.execute("UPDATE runs SET plan_json = ? WHERE run_id = ?", [json.dumps(PLAN), run_id(4)])


def test_last_says_once_what_it_is(kept: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["runs", "show", "--db", str(kept.path)]) == 0
    err = capsys.readouterr().err
    assert err.startswith(f"@last is {run_id(3)} (Twice), 1 of 3 episodes, 2026-0") and err.count("@last") == 1
    assert command(["runs", "show", "@last-2", "--db", str(kept.path), "--json"]) == 0
    assert capsys.readouterr().err == "", "what reads JSON gets nothing else"
    told: list[str] = []
    store = Store(kept.path, took=lambda _, reference, found: told.append(f"{reference} {found}"))
    with store.held() as held:
        for reference in ("@last", "@last", "@last-1", run_id(1)):
            held.run_id(reference)
    assert told == [f"@last {run_id(3)}", f"@last-1 {run_id(2)}"]


@pytest.mark.parametrize("group", ["annotate", "play"])
def test_raters_and_players_are_not_told_modes(kept: Store, capsys: pytest.CaptureFixture[str], group: str) -> None:
    whole = click.Context(click.Group("localsim"), info_name="localsim")
    for name, told in (("report", True), (group, False)):
        with click.Context(click.Command(name), parent=whole, info_name=name):
            common.store_of(str(kept.path)).run_id("@last-2")
        err = capsys.readouterr().err
        assert run_id(1) in err and ("mindreaders" in err) is told
