"""Conversations of people in every command, page and comparison, beside the modes that models play."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localsim.__main__ import run as localsim
from localsim.conversation.episode import MODES, PEOPLE
from localsim.errors import InvalidInput
from localsim.reports.comparison import compare
from localsim.reports.compose.alone import report
from localsim.reports.compose.beside import with_people
from localsim.reports.render.html import render
from localsim.reports.render.markdown import as_markdown
from localsim.runs.plan import Plan, command_of
from localsim.runs.runner import resume, start
from localsim.runs.transfer.imported import Options, import_talks, write_scenarios
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from tests.conftest import Quiet
from tests.test_talks import DATA, FILES, imported
from tests.web_server import client_of

# ---- views ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A database with a simulated run and people on the same tasks: path, run, run of people."""
    store = Store(tmp_path_factory.mktemp("people") / "t.duckdb")
    scenarios = tuple(find_scenarios(["mutual_friends_01", "craigslist_01"]))
    run_id = start(Plan(scenarios, MODES, "scripted"), store, Quiet(), lambda _: None, leaks=False).run_id
    found = imported(store, FILES["mutual-friends"], FILES["craigslist"])
    return store.path, run_id, found.run_id


COMMANDS = {
    "report": 0,
    "report --json": 0,
    "compare": 3,
    "card": 0,
    "audit": 0,
    "runs show": 0,
    "export -f jsonl -o out.jsonl": 0,
    "export -f csv -o out": 0,
    "export -f sft -o out.sft": 0,
    "resume": 3,
    "annotate agreement": 0,
    "annotate bundle --rater r --task dimensions -o a.html": 0,
    "annotate bundle --rater r --task disclosures -o a.html": 0,
    "annotate bundle --rater r -o a.html": 3,
    "design --difference .2": 3,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_answers_about_people(
    command: str,
    database: tuple[Path, str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "t.duckdb"
    shutil.copy(database[0], path)
    monkeypatch.chdir(tmp_path)
    words = command.split()
    place = 2 if words[0] in ("runs", "annotate") else 1
    code = localsim([*words[:place], database[2], *words[place:], "--db", str(path)])
    captured = capsys.readouterr()
    assert code == COMMANDS[command], captured.err
    assert "unexpected" not in captured.err


def test_prompts_of_people_are_refused_and_audits_say_so(
    database: tuple[Path, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    path, _, people = database
    store = Store(path)
    episode = store.rows("SELECT episode_id FROM episodes WHERE run_id = ? ORDER BY 1", [people])[0]["episode_id"]
    assert localsim(["show", episode, "--db", str(path)]) == 0
    assert "[people, people, seed 0]" in capsys.readouterr().out
    assert localsim(["show", episode, "--prompt", "1", "--db", str(path)]) == 3
    assert "people wrote it" in capsys.readouterr().err
    assert localsim(["audit", people, "--db", str(path)]) == 0
    assert "no prompts" in capsys.readouterr().out
    with pytest.raises(InvalidInput, match="nothing to resume"):
        resume(people, store, Quiet(), lambda _: None)
    plan = report(store, people).run.plan
    assert command_of(plan, []).startswith(f"localsim import talks {FILES['mutual-friends']} {FILES['craigslist']}")


def test_pages_show_people(database: tuple[Path, str, str]) -> None:
    path, _, people = database
    store = Store(path)
    client = client_of(store)
    rows = store.rows("SELECT episode_id FROM episodes WHERE run_id = ? ORDER BY 1", [people])
    first, second = (row["episode_id"] for row in rows[:2])
    for address in ("/", f"/runs/{people}?mode=people", f"/runs/{people}/report", f"/compare?a={first}&b={second}"):
        answer = client.get(address)
        assert answer.status_code == 200 and "people" in answer.text, address
    page = client.get(f"/episodes/{first}").text
    assert "no model wrote in it" in page and "opens its prompt" not in page
    assert client.get(f"/episodes/{first}/turns/0").status_code == 400


def test_people_stand_beside_the_modes(database: tuple[Path, str, str]) -> None:
    path, run_id, people = database
    store = Store(path)
    alone = report(store, run_id)
    before = json.dumps(alone.as_json(), default=str, sort_keys=True)
    data = with_people(store, alone, [people])
    assert json.dumps(alone.as_json(), default=str, sort_keys=True) == before, "the report itself stays as it is"
    rows = [row for row in data.comparison if row.mode == PEOPLE]
    assert {row.family for row in rows} == {"mutual_friends", "craigslist"}
    assert {row.model for row in rows} == {"other scenarios"}
    assert len(data.comparison) == len(alone.comparison) + 2
    curve = next(each for each in data.curves if each.family == "mutual_friends" and each.name == "named")
    assert [series.mode for series in curve.series][-1] == PEOPLE
    assert any("other scenarios" in line for line in data.warnings)
    page, text = render(data), as_markdown(data)
    assert 'class="bar people"' in page and 'class="course u0 people' in page and "other scenarios" in page
    assert f"{alone.run.episodes_planned}" in page and "people (other scenarios)" in text
    for runs, word in (([run_id], "no conversations of people"), ([people], "the run of this report")):
        with pytest.raises(InvalidInput, match=word):
            with_people(store, report(store, people), runs)


def test_report_and_plot_take_people(
    database: tuple[Path, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, run_id, people = database
    assert localsim(["report", run_id, "--people", people, "-o", str(tmp_path / "r.html"), "--db", str(path)]) == 0
    assert re.search("◆ people +other scenarios", capsys.readouterr().out)
    assert localsim(["plot", run_id, "--people", people, "-f", "svg", "-o", str(tmp_path), "--db", str(path)]) == 0
    figure = (tmp_path / "mutual_friends_success_rate.svg").read_text()
    assert "people other scenarios" in figure
    assert localsim(["report", people, "--people", run_id, "--db", str(path)]) == 3


# ---- people on a scenario of localsim ------------------------------------------------------------------------------


def lines_on(reference: str | dict[str, Any], names: tuple[str, ...], count: int = 2) -> str:
    """JSONL of conversations in which the first person names a friend, and the second says no."""
    talks = [
        {
            "conversation": str(number),
            "scenario": reference,
            "turns": [
                {"speaker": names[0], "text": "Do you know Xaver?"},
                {"speaker": names[1], "text": "No, I do not."},
                {"speaker": names[0], "text": "Bye then.", "action": "leave"},
            ],
        }
        for number in range(count)
    ]
    return "".join(json.dumps(talk) + "\n" for talk in talks)


def by_file(path: str, _loaded: Any) -> str:
    return path


def by_id(_path: str, loaded: Any) -> str:
    return str(loaded.scenario.id)


def by_hash(_path: str, loaded: Any) -> str:
    return str(loaded.hash)


@pytest.mark.parametrize("named", [by_file, by_id, by_hash])
def test_people_on_the_same_scenario_are_paired(
    named: Callable[[str, Any], str], database: tuple[Path, str, str], tmp_path: Path
) -> None:
    store = Store(tmp_path / "t.duckdb")
    shutil.copy(database[0], store.path)
    loaded = find_scenarios(["mutual_friends_01"])[0]
    file = tmp_path / "ours.jsonl"
    file.write_text(lines_on(named(str(loaded.path), loaded), loaded.scenario.names))
    found = imported(store, file, label="class")
    hashes = store.rows("SELECT DISTINCT scenario_hash FROM episodes WHERE run_id = ?", [found.run_id])
    assert [row["scenario_hash"] for row in hashes] == [loaded.hash]
    rows = [row for row in compare(store, database[1], found.run_id) if row.measure.key == "success_rate"]
    assert {(row.first.split(":")[-1], row.second.split(":")[-1]) for row in rows} == {(mode, PEOPLE) for mode in MODES}
    assert all(row.test.difference == -1 and row.test.scenarios == 1 for row in rows), (
        "everybody finds the friend but them"
    )
    data = with_people(store, report(store, database[1]), [found.run_id])
    assert data.comparison[-1].model == "class (same scenarios)"
    assert any("localsim compare" in line for line in data.warnings)


@pytest.mark.parametrize("form", FILES)
def test_the_scenarios_of_a_corpus_can_be_simulated(form: str, store: Store, tmp_path: Path) -> None:
    people = imported(store, FILES[form]).run_id
    files = write_scenarios(store, people, tmp_path / "corpus")
    scenarios = tuple(find_scenarios([str(tmp_path / "corpus")]))
    assert len(files) == len(scenarios)
    rows = store.rows("SELECT DISTINCT scenario_hash FROM episodes WHERE run_id = ?", [people])
    assert {loaded.hash for loaded in scenarios} == {row["scenario_hash"] for row in rows}
    run_id = start(Plan(scenarios, ("agents",), "scripted"), store, Quiet(), lambda _: None, leaks=False).run_id
    rows = [row for row in compare(store, run_id, people) if row.measure.key == "words_per_turn"]
    assert sum(row.test.scenarios for row in rows) == len(scenarios)


def test_a_scenario_in_the_file_needs_what_its_family_scores(store: Store, tmp_path: Path) -> None:
    scenario = json.loads((DATA / FILES["jsonl"]).read_text().splitlines()[1])["scenario"]
    file = tmp_path / "ours.jsonl"
    file.write_text(lines_on(scenario, ("Kai", "Lou")))
    assert imported(store, file).scenarios == 1
    with pytest.raises(InvalidInput, match="mutual_friends") as error:
        imported(store, file, family="mutual_friends")
    assert error.value.hint


def test_leaks_of_people_are_found_as_those_of_models(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "one.json"
    file.write_text(json.dumps(json.loads((DATA / FILES["mutual-friends"]).read_text())[:1]))
    found = import_talks(store, [file], Options(), lambda _: None)
    rows = store.rows("SELECT fact_id, speaker, kind FROM v_leaks WHERE run_id = ? ORDER BY turn", [found.run_id])
    assert [(row["fact_id"], row["speaker"], row["kind"]) for row in rows] == [
        ("person_a_friend_3", "Person A", "self"),
        ("person_b_friend_2", "Person B", "self"),
    ]
    assert localsim(["score", found.run_id, "--db", str(store.path)]) == 0
    assert "self" in capsys.readouterr().out
