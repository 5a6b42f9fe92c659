"""The Python API: a run and what can be asked of it, a dictionary as a scenario, a function as a model."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import localsim
from localsim.backends.called import CalledBackend
from localsim.backends.endpoint import sent
from localsim.errors import DatabaseError, InvalidInput, ScenarioInvalid
from localsim.store.episodes import prompt_of

LAMP: dict[str, Any] = {
    "version": 1,
    "id": "lamp",
    "title": "A lamp",
    "info": {"what": "A test."},
    "setting": "Ana and Ben talk about a lamp.",
    "agents": [
        {"name": "Ana", "goal": "Sell it.", "facts": [{"id": "crack", "text": "It is cracked.", "terms": ["cracked"]}]},
        {"name": "Ben", "goal": "Buy it."},
    ],
    "limits": {"turns": 4},
    "checks": [{"name": "hello", "said": ["hello"]}],
}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> localsim.Simulated:
    database = tmp_path_factory.mktemp("api") / "a.duckdb"
    names = ("mutual_friends_01", "mutual_friends_02")
    return localsim.run(*names, modes="script,agents,mindreaders", model="scripted:omniscient", db=str(database))


def test_all_that_a_run_can_be_asked(done: localsim.Simulated, tmp_path: Path) -> None:
    assert (done.completed, done.failed, len(done.episodes())) == (6, 0, 6)
    successes = [row["value"] for row in done.scores() if row["name"] == "success"]
    assert successes == [1.0] * 6
    (turns,) = [row for row in done.compare() if (row["measure"], row["contrast"]) == ("turns", "information")]
    assert turns["difference"] < 0
    assert {row["mode"] for row in done.report()["comparison"]} == {"agents", "mindreaders", "script"}
    assert done.report(tmp_path / "r.html")["run"]["run_id"] == done.run_id
    assert "<h1" in (tmp_path / "r.html").read_text() and done.report(tmp_path / "r.md")
    assert (tmp_path / "r.md").read_text().startswith("# ")
    with pytest.raises(InvalidInput, match="a report is a page or Markdown"):
        done.report(tmp_path / "r.pdf")
    assert done.audit() == []
    assert (tmp_path / "out" / "turns.csv") in done.export(tmp_path / "out")
    assert done.sql("SELECT count(*) AS n FROM v_episodes WHERE run_id = $run") == [{"n": 6}]
    if find_spec("pandas") is None:
        with pytest.raises(InvalidInput, match="data frames need pandas") as error:
            done.df("FROM v_turns WHERE run_id = $run")
        assert error.value.hint == "pip install pandas; without it, sql(QUERY)"
    else:
        assert len(done.df("FROM v_episodes WHERE run_id = $run")) == 6


def test_figures(done: localsim.Simulated, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert all(file.exists() for file in done.plot(tmp_path, ["svg"]))


def test_a_stored_run_can_be_asked_the_same(done: localsim.Simulated) -> None:
    again = localsim.open(str(done.archive.store.path)).run("@last")
    assert again.run_id == done.run_id and again.scores() == done.scores()


def test_a_dictionary_is_a_scenario_and_a_function_a_model(tmp_path: Path) -> None:
    seen: list[Any] = []

    def model(chat: list[dict[str, str]]) -> str:
        seen.append(chat)
        return f"Hello number {len(seen)}."

    drawn = {"temperature": 0}
    done = localsim.run(
        LAMP,
        modes="agents",
        model="scripted",
        roles={"Ana": model, "Ben": model},
        sampling=drawn,
        db=str(tmp_path / "a.duckdb"),
    )
    assert [turn["text"] for turn in done.turns()] == [f"Hello number {number}." for number in range(1, 5)]
    assert seen[0][0]["role"] == "system" and "cracked" in str(seen[0]) and "cracked" not in str(seen[1])
    assert [row["value"] for row in done.scores() if row["name"] == "success"] == [1.0]
    assert json.loads(done.sql("SELECT plan_json FROM runs")[0]["plan_json"])["sampling"]["temperature"] == 0
    assert {row["model"] for row in done.sql("SELECT model FROM v_generations")} == {
        f"python:{__name__}.{model.__qualname__}"
    }
    shown = prompt_of(done.archive.store, done.episodes()[0]["episode_id"], 2, sent)
    assert [{"role": row["role"], "content": row["text"]} for row in shown[:-2]] == seen[2]
    assert [row["text"] for row in shown[-2:]] == ["Ana: Hello number 3.", "Hello number 3."]
    assert done.sql("SELECT raw FROM v_generations WHERE turn = 2") == [{"raw": "Hello number 3."}]
    with pytest.raises(InvalidInput, match="a function of another Python process"):
        CalledBackend("python:gone")


def test_a_function_that_fails_is_a_row_with_its_reason(tmp_path: Path) -> None:
    def broken(_chat: list[dict[str, str]]) -> str:
        raise KeyError("nothing there")

    def wrong(_chat: list[dict[str, str]]) -> Any:
        return 7

    for model, reason in ((broken, "KeyError: 'nothing there'"), (wrong, "returned 7, which is no text")):
        done = localsim.run(LAMP, model=model, db=str(tmp_path / f"{model.__name__}.duckdb"))
        assert (done.completed, done.failed) == (0, 1)
        assert reason in done.episodes()[0]["error"]


def test_wrong_arguments_are_errors_of_localsim(tmp_path: Path) -> None:
    with pytest.raises(ScenarioInvalid, match="the dictionary") as invalid:
        localsim.run({"id": "x"}, model="scripted", db=str(tmp_path / "a.duckdb"))
    assert invalid.value.hint is None
    with pytest.raises(InvalidInput, match="7 is no scenario"):
        localsim.run(7, model="scripted")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"^localsim.run\(\) got an unexpected keyword argument 'epsodes'"):
        localsim.run(LAMP, model="scripted", epsodes=2)
    with pytest.raises(InvalidInput, match=r"^sampling of localsim.run\(\) got .* 'temprature'"):
        localsim.run(LAMP, model="scripted", sampling={"temprature": 0})
    with pytest.raises(DatabaseError, match="no database here yet"):
        localsim.open(str(tmp_path / "b.duckdb")).run("@last")
