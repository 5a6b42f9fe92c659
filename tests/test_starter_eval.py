"""The evaluation of the starter, with scripted players whose results are known by construction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from localsim.reports.measures import Cell
from localsim.store.database import Store
from localsim.store.queries.reports import Episode, Score
from scripts import eval_starter
from scripts.eval_starter import GOALS, MODES, TASKS, evaluate, generated, main, table

FOUND, ZONE = "exactly the friends in common found", "decision about the zone right"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    store = Store(tmp_path_factory.mktemp("eval") / "eval.duckdb")
    players = ("scripted", "scripted:refuser", "scripted:yes-sayer", "scripted:omniscient")
    return {player: evaluate(player, store, scenarios=6, first_seed=70_000) for player in players}


def value(found: dict[str, Any], title: str, mode: str = "agents") -> dict[str, Any]:
    """One goal of one model in one mode."""
    (row,) = [row for row in found["goals"] if (row["title"], row["mode"]) == (title, mode)]
    return dict(row)


def test_the_tasks_of_both_families_alternate() -> None:
    scenarios = [each.scenario for each in generated(6, 70_000)]
    common = [
        len(set.intersection(*({fact.terms[0] for fact in agent.facts} for agent in each.agents)))
        for each in scenarios
        if each.family == "mutual_friends"
    ]
    assert common == [1, 0, 3, 1, 0, 3]
    zones = [bool(each.answer.answer["zone"]) for each in generated(4, 70_000) if each.scenario.family == "craigslist"]
    assert zones == [True, False, True, False]
    assert {each.scenario.family for each in generated(2, 1, ["no zone"])} == {"craigslist"}
    assert len({each.id for each in scenarios}) == 12


@pytest.mark.parametrize("mode", MODES)
def test_players_reach_what_they_were_made_to_reach(mode: str, results: dict[str, dict[str, Any]]) -> None:
    """A refuser is right only where nothing is to be agreed on, a yes-sayer only where everything is."""
    refuser, yes_sayer = results["scripted:refuser"], results["scripted:yes-sayer"]
    assert value(refuser, "- none in common", mode)["value"] == 1
    assert value(refuser, "- one friend in common", mode)["value"] == 0
    assert value(refuser, "- no deal where there is no zone", mode)["value"] == 1
    assert value(refuser, "- deal inside the zone", mode)["value"] == 0
    assert value(refuser, FOUND, mode)["value"] == pytest.approx(1 / 3) and value(refuser, FOUND, mode)["n"] == 6
    assert value(refuser, ZONE, mode)["value"] == 0.5 and value(refuser, ZONE, mode)["met"] is False
    assert value(yes_sayer, "claims of knowing a person who is not on the list", mode)["value"] > 0.3
    assert value(results["scripted"], "claims of knowing a person who is not on the list", mode)["value"] == 0
    assert (
        value(results["scripted"], ZONE, mode)["value"] == 1 and value(results["scripted"], ZONE, mode)["met"] is True
    )
    assert value(results["scripted"], "words per turn, friends", mode)["met"] is None


def test_modes_are_compared_scenario_by_scenario(results: dict[str, dict[str, Any]]) -> None:
    """A player that uses the other side finds a price where no price is right, in the modes that show it."""
    rows = {(row["title"], row["second"]): row for row in results["scripted:omniscient"]["equality"]}
    for mode in ("mindreaders", "script"):
        difference = value(results["scripted:omniscient"], ZONE, mode)["value"] - 1
        assert rows[ZONE, mode]["difference"] == pytest.approx(difference) and difference <= -0.05
        assert rows[ZONE, mode]["within"] is False and rows[ZONE, mode]["scenarios"] == 6
    same = {(row["title"], row["second"]): row for row in results["scripted:refuser"]["equality"]}
    assert same[FOUND, "script"]["difference"] == 0 and same[FOUND, "script"]["within"] is True
    assert same[FOUND, "script"]["low"] < -0.05 and same[FOUND, "script"]["high"] > 0.05


def test_the_table_shows_all_models_and_marks_misses(results: dict[str, dict[str, Any]]) -> None:
    text = table(results)
    lines = text.splitlines()
    assert lines[0] == f"| | mode | goal | {' | '.join(results)} |"
    assert len({line.count("|") for line in lines if line}) == 1, "all rows have a cell for each model"
    row = next(line for line in lines if line.startswith("| - no deal where there is no zone | script |"))
    none, refuser, yes_sayer, omniscient = row.split(" | ")[3:]
    assert none.startswith("100%") and refuser.startswith("100%")
    assert yes_sayer.startswith("**0%**") and omniscient.startswith("**")
    assert ">= 85%" in row
    (equal,) = [line for line in lines if line.startswith(f"| {FOUND} | script - agents |")]
    assert "within 5 points" in equal and "+0.0: within; the interval allows -" in equal
    (apart,) = [line for line in lines if line.startswith(f"| {ZONE} | script - agents |")]
    assert "**: not within; the interval allows" in apart


def test_an_episode_without_a_score_is_a_miss() -> None:
    """An ending that cannot be read has no score of success; it must not make the share greater."""
    about = ("completed", 0, 0, 0, 2)
    episodes = [Episode("r", "agents", "m", "", name, "craigslist", name, name, *about) for name in "ab"]
    scores = [Score("a", "craigslist", "craigslist", "success", None, 1.0)]
    goal = next(goal for goal in GOALS if goal.title == ZONE)
    assert eval_starter._strict(goal, Cell("craigslist", episodes, scores, {})) == {"a": [1.0], "b": [0.0]}


def test_the_command_prints_json_of_chosen_modes_and_tasks() -> None:
    command = ["scripted", "--scenarios", "2", "--modes", "agents,script", "--tasks", "no zone", "--json"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    rows = found["models"]["scripted"]["goals"]
    assert {row["mode"] for row in rows} == {"agents", "script"} and {row["family"] for row in rows} == {"craigslist"}
    assert found["tasks"] == ["no zone"] and {row["second"] for row in found["models"]["scripted"]["equality"]} == {
        "script"
    }


def test_an_interrupted_run_is_continued_and_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["scripted", "--scenarios", "2", "--modes", "agents", "--db", str(tmp_path / "e.duckdb"), "--json"]
    with monkeypatch.context() as stopped:
        stopped.setattr(eval_starter.Silent, "stops", lambda _self: True)
        assert "to go on" in CliRunner().invoke(main, command).output
    result = CliRunner().invoke(main, [*command, "--run", "@last"])
    assert result.exit_code == 0, result.output
    again = json.loads(result.stdout)["models"]["scripted"]
    assert {row["n"] for row in again["goals"] if row["title"] == "decision about the zone right"} == {2}
    assert CliRunner().invoke(main, ["scripted", "--run", "@last"]).exit_code == 2


@pytest.mark.parametrize("option", ["--modes", "--tasks"])
def test_a_wrong_mode_or_task_is_named(option: str) -> None:
    result = CliRunner().invoke(main, ["scripted", option, "agents,tea"])
    assert result.exit_code == 2 and ("'tea'" in result.output) == (option == "--modes")


def test_goals_name_tasks_and_measures_that_exist() -> None:
    for goal in GOALS:
        assert not goal.task or goal.task in TASKS[goal.family], goal.title
        assert goal.measure == "false_claims" or goal.measure in eval_starter.MEASURES, goal.title
    assert len({goal.title for goal in GOALS}) == len(GOALS)
