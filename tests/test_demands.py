"""`localsim check`: demands on a run, for automatic checks."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from localsim.__main__ import run as command
from localsim.families import FAMILIES
from localsim.store.database import Store
from tests.test_author import DESK

RUN = ["run", "mutual_friends_01", "craigslist_01", "--mode", "agents,mindreaders", "-m", "scripted:omniscient"]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("demands") / "a.duckdb"
    assert command([*RUN, "--db", str(path)]) == 0
    return ["--db", str(path)]


def check(database: list[str], *demands: str) -> int:
    return command(["check", "@last", *demands, *database])


def test_what_holds_ends_with_0_and_what_does_not_with_6(
    database: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(database, "success_rate >= 0.9", "plays > 50%", "malformed == 0") == 0
    capsys.readouterr()
    assert check(database, "success_rate >= 90%", "mindreaders / turns > 100") == 6
    out = capsys.readouterr()
    assert out.out.count("ok ") == 4 and out.out.count("NO ") == 2, "each demand on each row that it is on"
    assert "2 of 6 demands do not hold" in out.err


def test_a_demand_on_a_measure_of_one_family_is_on_that_family(
    database: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(database, "unearned_hits <= 5") == 0
    assert "craigslist" not in capsys.readouterr().out


def test_json_and_junit(database: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "check.xml"
    capsys.readouterr()
    assert check(database, "agents / turns < 1", "--junit", str(file), "--json") == 6
    rows = json.loads(capsys.readouterr().out)["demands"]
    assert [(row["family"], row["condition"], row["passed"]) for row in rows] == [
        ("mutual_friends", "agents", False),
        ("craigslist", "agents", False),
    ]
    assert check(database, "omniscient_leaks <= 0", "--junit", str(file)) == 6
    said = capsys.readouterr().out
    assert "leaks were not looked for: localsim score " in said
    assert check(database, "agents / turns < 1", "--junit", str(file)) == 6
    suite = ElementTree.parse(file).getroot()
    assert suite.attrib["tests"] == suite.attrib["failures"] == "2"
    assert suite[0].attrib["name"] == "agents / turns < 1" and suite[0][0].attrib["message"].startswith("it is ")


@pytest.mark.parametrize(
    ("demand", "said"),
    [
        ("success", "'success' is no demand"),
        ("sucess_rate > 0", "no measure 'sucess_rate'\nhint: did you mean success_rate?"),
        ("check.plays > 0", "these scenarios have no checks"),
        ("plays >= 90", "did you mean 90%?"),
        ("success_rate > much", "'much' is no number"),
        ("agent / success_rate > 0", "no family, mode or model 'agent' (did you mean agents"),
    ],
)
def test_a_demand_that_cannot_be_read_is_one_clear_error(
    demand: str, said: str, database: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert check(database, demand) == 3
    assert said in capsys.readouterr().err


def test_several_models_play_the_same_scenarios_and_seeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["-m", "scripted", "-m", "scripted:omniscient", "--db", str(tmp_path / "a.duckdb")]
    capsys.readouterr()
    assert command(["run", "mutual_friends_01", *names, "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)
    assert [each["completed"] for each in runs] == [1, 1]
    rows = Store(tmp_path / "a.duckdb").rows("SELECT model, seed FROM v_episodes ORDER BY model")
    assert [row["model"] for row in rows] == ["scripted", "scripted:omniscient"] and rows[0]["seed"] == rows[1]["seed"]
    assert command(["run", "mutual_friends_01", *names, "--name", "both"]) == 2
    assert "--name names one run" in capsys.readouterr().err


def test_a_strict_run_ends_with_1_if_an_evaluator_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_arguments: object) -> object:
        raise NameError("name 'mutal' is not defined")

    monkeypatch.setattr(type(FAMILIES["mutual_friends"]), "score", broken)
    line = ["run", "mutual_friends_01", "-m", "scripted", "--db", str(tmp_path / "a.duckdb")]
    assert command(line) == 0
    capsys.readouterr()
    assert command([*line, "--strict"]) == 1
    err = capsys.readouterr().err
    assert "evaluators failed" in err and "name 'mutal' is not defined" in err and "localsim score RUN" in err


def test_the_files_for_continuous_integration_work_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parent.parent / "docs" / "build.md").read_text(encoding="utf-8")
    script, github, gitlab = re.findall(r"```(?:bash|yaml)\n(.*?)```", page, re.DOTALL)
    for file, name in ((github, "jobs"), (gitlab, "omniscience")):
        assert "bash omniscience.sh" in file and "LOCALSIM:" in file and yaml.safe_load(file)[name]
    (tmp_path / "my_scenario.yaml").write_text(DESK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCALSIM_DB", "ci.duckdb")
    lines = [shlex.split(line) for line in script.splitlines() if line.startswith("localsim ")]
    rules, model = lines[:3], lines[4:]
    assert [command(words[1:]) for words in rules] == [0, 0, 0]
    assert (tmp_path / "rules.xml").read_text().count("<testcase") == 2
    played = [word if word != "starter" else "scripted" for word in model[0]]
    assert [command(words[1:]) for words in (played, model[1])] == [0, 0]
    assert command(rules[2][1:]) == 6, "players who see nothing of each other do not pass for mindreaders"
    assert "NO  mindreaders / success_rate >= 80%" in capsys.readouterr().out
