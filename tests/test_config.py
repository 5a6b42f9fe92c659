"""Options from the environment and localsim.toml, `config list`, and names that the shell completes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import localsim
from localsim.__main__ import run as command
from localsim.errors import InvalidInput

TOML = 'model = "scripted"\ndb = "x.duckdb"\n[run]\nseed = 7\nepisodes = 2\nmode = "all"\nfail-on-error = 3\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with localsim.toml."""
    monkeypatch.delenv("LOCALSIM_DB")
    file = tmp_path / "localsim.toml"
    file.write_text(TOML)
    return file


def plan(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, object]:
    capsys.readouterr()
    assert command(["run", "mutual_friends_01", "--dry-run", "--json", *options]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def settings(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, dict[str, object]]:
    capsys.readouterr()
    assert command(["config", "list", "--json", *options]) == 0
    return {row["setting"]: row for row in json.loads(capsys.readouterr().out)}


def test_option_before_environment_before_file_before_default(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (plan(capsys)["seed"], plan(capsys)["episodes"]) == (7, 6)
    monkeypatch.setenv("LOCALSIM_RUN_SEED", "8")
    assert plan(capsys)["seed"] == 8
    assert plan(capsys, "--seed", "9")["seed"] == 9
    project.unlink()
    assert plan(capsys, "-m", "scripted")["seed"] == 8
    monkeypatch.delenv("LOCALSIM_RUN_SEED")
    assert plan(capsys, "-m", "scripted")["seed"] == 1
    monkeypatch.setenv("LOCALSIM_RUN_MODE", "script,agents")
    assert plan(capsys, "-m", "scripted")["modes"] == ["script", "agents"]
    assert plan(capsys, "-m", "scripted", "--mode", "mindreaders")["modes"] == ["mindreaders"]


def test_modes_in_the_file_are_one_text_or_a_list(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for written in ('"script, agents"', '["script", "agents"]'):
        project.write_text(f'model = "scripted"\n[run]\nmode = {written}\n')
        assert plan(capsys)["modes"] == ["script", "agents"]


def test_a_table_for_the_commands_of_db_is_no_name_of_a_database(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write_text("[db.info]\njson = true\n")
    assert settings(capsys)["db"]["value"] == str(project.parent / "db" / "localsim.duckdb")
    assert settings(capsys)["db.info.json"]["value"] is True


def test_config_list_says_where_values_come_from(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALSIM_RUN_TEMPERATURE", "0.3")
    found = settings(capsys)
    assert found["db"] == {
        "setting": "db",
        "value": str(project.parent / "x.duckdb"),
        "origin": str(project),
        "variable": "LOCALSIM_DB",
    }
    assert (found["run.seed"]["value"], found["run.seed"]["origin"]) == (7, str(project))
    assert found["run.temperature"]["origin"] == "environment, LOCALSIM_RUN_TEMPERATURE"
    assert "run.episodes" in found and "run.threads" not in found
    every = settings(capsys, "--all")
    assert every["models.bench.threads"]["variable"] == "LOCALSIM_MODELS_BENCH_THREADS"
    assert len(every) > 100
    general = ("db", "model", "models", "cache")
    for name, row in every.items():
        if name not in general:
            assert row["variable"] == f"LOCALSIM_{name}".upper().replace(".", "_").replace("-", "_")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[run]\nsead = 1\n", "unknown setting run.sead"),
        ("[rum]\nseed = 1\n", "unknown setting rum"),
        ("run = 3\n", "run is not a table"),
        ("[run]\nseed = 'x'\n", "'--seed'"),
        ("[run\n", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_one_message(project: Path, capsys: pytest.CaptureFixture[str], text: str, said: str) -> None:
    project.write_text(text)
    assert command(["run", "mutual_friends_01", "-m", "scripted", "--dry-run"]) in (2, 3)
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error


def completed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str) -> list[str]:
    monkeypatch.setenv("_LOCALSIM_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    capsys.readouterr()
    assert command([]) == 0
    return [line.partition(",")[2] for line in capsys.readouterr().out.splitlines() if line]


def test_the_shell_completes_names(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert completed(monkeypatch, capsys, "localsim report ") == []  # no database yet, and none is made
    monkeypatch.delenv("_LOCALSIM_COMPLETE")
    done = localsim.run("mutual_friends_01", model="scripted")
    assert completed(monkeypatch, capsys, "localsim report ") == ["@last", done.run_id]
    assert completed(monkeypatch, capsys, f"localsim compare @last {done.run_id[:9]}") == [done.run_id]
    assert completed(monkeypatch, capsys, "localsim show ")[1:] == [done.episodes()[0]["episode_id"]]
    assert "roommates" in completed(monkeypatch, capsys, "localsim run roo")
    assert {"starter", "scripted"} <= set(completed(monkeypatch, capsys, "localsim run -m s"))
    assert "smollm2-135m" in completed(monkeypatch, capsys, "localsim models pull smo")
    assert {"index", "hub"} <= set(completed(monkeypatch, capsys, "localsim models pull smollm2-135m --from "))
    assert "config" in completed(monkeypatch, capsys, "localsim con")


@pytest.mark.parametrize("temperature", [float("nan"), float("inf")])
def test_python_refuses_a_temperature_that_is_no_number(temperature: float) -> None:
    with pytest.raises(InvalidInput, match="temperature"):
        localsim.run("mutual_friends_01", model="scripted", temperature=temperature)
