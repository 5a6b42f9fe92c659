"""A run as one archive, and the archive played again: the same bytes, the same texts, and errors that name a change."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from localsim.__main__ import run as localsim
from localsim.errors import InvalidInput, ModelMissing
from localsim.models.registry import ModelFile
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.runs.transfer.bundle import MANIFEST, bundle, open_archive, sha256
from localsim.runs.transfer.replay import Replayed, installed, replay
from localsim.scenarios.parse import parse_scenario
from localsim.store.database import Store
from tests.conftest import TALK, Quiet, generated


def played(store: Store, **changes: Any) -> str:
    """A run of three scenarios: a talk, one of a family, one whose agents see something of each other."""
    scenarios = (parse_scenario(TALK, "talk.yaml"), generated("mutual_friends"), generated("craigslist"))
    given = {"modes": ("script", "agents", "mindreaders"), "model": "scripted", "episodes": 2, "seed": 11}
    plan = Plan(scenarios, **{**given, "repro": "exact", "see": ("none", "goal"), **changes})
    return start(plan, store, Quiet(), lambda _: None, leaks=False).run_id


def again(file: Path, store: Store) -> Replayed:
    return replay(file, store, lambda _: Quiet(), lambda _: None)


def texts(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name.startswith("episodes/")}


def changed(file: Path, name: str, change: Callable[[bytes], bytes], *, listed: bool = False) -> Path:
    """A copy of an archive with one file changed; `listed`: the manifest has the checksum of the new content."""
    with zipfile.ZipFile(file) as archive:
        contents = {each: archive.read(each) for each in archive.namelist()}
    contents[name] = change(contents[name])
    if listed:
        manifest = json.loads(contents[MANIFEST])
        manifest["files"][name] = sha256(contents[name])
        contents[MANIFEST] = json.dumps(manifest).encode()
    target = file.with_name("changed.zip")
    with zipfile.ZipFile(target, "w") as archive:
        for each, content in contents.items():
            archive.writestr(each, content)
    return target


@pytest.fixture
def archive(store: Store, tmp_path: Path) -> Path:
    """The archive of a small run."""
    file = tmp_path / "run.zip"
    bundle(store, played(store, modes=("agents",), episodes=1, see=()), file)
    return file


# ---- writing --------------------------------------------------------------------------------------------------------


def test_the_same_run_gives_the_same_bytes(store: Store, tmp_path: Path) -> None:
    run_id = played(store)
    one, other = tmp_path / "one.zip", tmp_path / "other.zip"
    bundle(store, run_id, one)
    bundle(store, run_id, other)
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as archive:
        names = archive.namelist()
        assert names[1:] == sorted(names[1:]) and names[0] == MANIFEST
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_an_archive_holds_everything_that_the_texts_depend_on_and_the_texts(store: Store, tmp_path: Path) -> None:
    run_id = played(store)
    manifest = bundle(store, run_id, tmp_path / "run.zip")
    assert {"plan", "models", "versions", "device", "repro", "parallel"} <= set(manifest)
    assert manifest["versions"]["localsim"] and manifest["device"]["cores"]
    found = open_archive(tmp_path / "run.zip")
    assert {loaded.scenario.id for loaded in found.scenarios.values()} == {"talk", "mutual_friends_01", "craigslist_01"}
    said = [row["text"] for row in store.rows("SELECT text FROM turns ORDER BY ALL")]
    kept = [
        json.loads(line)["turn"]["text"]
        for content in found.episodes.values()
        for line in content.decode().splitlines()
        if line.startswith('{"turn"')
    ]
    assert sorted(kept) == sorted(said) and len(found.episodes) == 3 * 2 * 4


# ---- playing again --------------------------------------------------------------------------------------------------


def test_an_exact_run_of_scripted_players_comes_out_byte_identical(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "run.zip"
    bundle(store, played(store), file)
    other = Store(tmp_path / "other.duckdb", patience_s=5)
    found = again(file, other)
    assert found.identical == len(found.episodes) == 24
    bundle(other, found.result.run_id, tmp_path / "replay.zip")
    assert texts(tmp_path / "replay.zip") == texts(file)


@pytest.mark.model
def test_an_exact_run_of_the_starter_comes_out_byte_identical(store: Store, starter: ModelFile, tmp_path: Path) -> None:
    short = TALK.replace("answer:", "limits: {turns: 4, chars: 60}\nanswer:")
    plan = Plan(
        (parse_scenario(short, "talk.yaml"),), ("agents", "script"), "starter", seed=3, repro="exact", threads=1
    )
    run_id = start(plan, store, Quiet(), lambda _: None, leaks=False).run_id
    file = tmp_path / "run.zip"
    manifest = bundle(store, run_id, file)
    assert manifest["models"]["starter"]["sha256"] == starter.sha256 and manifest["models"]["starter"]["build"]
    found = again(file, store)
    assert [each.identical for each in found.episodes] == [True, True]
    bundle(store, found.result.run_id, tmp_path / "replay.zip")
    assert texts(tmp_path / "replay.zip") == texts(file) and len(texts(file)) == 2


def test_lines_of_a_scripted_player_travel_with_the_archive(store: Store, tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(f"Line {number} & <|im_start|>.\n" for number in range(60)))
    file = tmp_path / "run.zip"
    run_id = played(store, model=f"scripted:@{lines}", modes=("agents",), episodes=1, see=(), parallel=1)
    bundle(store, run_id, file)
    lines.unlink()
    found = again(file, store)
    assert found.identical == len(found.episodes) == 3


def test_a_text_that_differs_is_told_with_its_turn(archive: Path, store: Store) -> None:
    name = sorted(texts(archive))[0]

    def other_words(content: bytes) -> bytes:
        lines = content.decode().splitlines(keepends=True)
        turn = json.loads(lines[2])
        turn["turn"]["text"] += " And more."
        return "".join([*lines[:2], json.dumps(turn) + "\n", *lines[3:]]).encode()

    found = again(changed(archive, name, other_words, listed=True), store)
    assert {each.file: (each.identical, each.turn) for each in found.episodes}[name] == (False, 1)
    assert found.identical == len(found.episodes) - 1


def test_the_commands_say_what_they_did_and_an_exact_run_that_differs_has_exit_code_6(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert localsim(["bundle", "@last", "-o", "mine.zip"]) == 0
    assert "mine.zip: 3 episodes, 3 scenarios" in capsys.readouterr().out
    assert localsim(["replay", "mine.zip", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["identical"], told["repro"], len(told["episodes"])) == (3, "exact", 3)
    name = sorted(texts(archive))[0]
    bad = changed(archive, name, lambda content: content + b'{"turn": {"turn": 99}}\n', listed=True)
    assert localsim(["replay", str(bad)]) == 6
    assert "1 episode of an exact run differ" in capsys.readouterr().err
    with duckdb.connect(os.environ["LOCALSIM_DB"]) as connection:
        connection.execute("""UPDATE runs SET models_json = '{"openai:http://127.0.0.1:1/v1#m": {"kind": "remote"}}'""")
    assert localsim(["bundle", "@last", "-o", "mine.zip"]) == 0
    assert "localsim replay will refuse this archive: openai:" in capsys.readouterr().err


# ---- what was changed is named --------------------------------------------------------------------------------------


def test_a_changed_scenario_is_named(archive: Path, store: Store) -> None:
    def other_goal(content: bytes) -> bytes:
        return content.replace(b"Keep the cake", b"Eat the cake")

    with pytest.raises(InvalidInput, match=r"scenarios/talk\.yaml was changed"):
        again(changed(archive, "scenarios/talk.yaml", other_goal), store)
    with pytest.raises(InvalidInput, match="no scenario has the hash"):
        again(changed(archive, "scenarios/talk.yaml", other_goal, listed=True), store)


def test_a_model_that_is_not_here_is_named_with_its_sha256(archive: Path, store: Store) -> None:
    def other_model(content: bytes) -> bytes:
        manifest = json.loads(content)
        manifest["plan"]["model"] = "starter"
        manifest["models"] = {"starter": {"kind": "llama", "file": "starter.gguf", "sha256": "0" * 64}}
        return json.dumps(manifest).encode()

    with pytest.raises(
        ModelMissing, match=r"starter \(starter.gguf, sha256 000000000000\.\.\.\) is not installed; starter is"
    ):
        again(changed(archive, MANIFEST, other_model), store)


def test_a_model_under_another_name_is_found_by_its_sha256(starter: ModelFile) -> None:
    assert installed("/nowhere/else.gguf", starter.sha256, "else.gguf") == str(starter.path)
    assert installed("starter", starter.sha256, "x") == "starter"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": 9}, "an archive of format 9"),
        ({"plan": 1}, "no archive of a run"),
        ({"parallel": 10**9}, "1000000000 side by side"),
        ({"repro": "imported"}, "imported conversations"),
        ({"models": {"human": {"kind": "human"}}}, "a person played in it"),
        ({"models": {"openai:http://127.0.0.1:1/v1#m": {"kind": "remote"}}}, "which an archive cannot hold"),
    ],
)
def test_an_archive_that_cannot_be_played_says_why(
    change: dict[str, Any], problem: str, archive: Path, store: Store
) -> None:
    def other(content: bytes) -> bytes:
        return json.dumps({**json.loads(content), **change}).encode()

    with pytest.raises(InvalidInput, match=problem):
        again(changed(archive, MANIFEST, other), store)
    for content in (b"\xff", b"[1]\n", b'{"turn": ' + b"[" * 5000 + b"]" * 5000 + b"}"):
        name = sorted(texts(archive))[0]
        with pytest.raises(InvalidInput, match=r"not UTF-8|no object of JSON"):
            open_archive(changed(archive, name, lambda _, new=content: new, listed=True))


def test_a_file_that_is_no_archive_is_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "no.zip").write_text("nothing")
    for file, problem in (("no.zip", "no archive of a run"), ("none.zip", "no such file")):
        assert localsim(["replay", file]) == 3
        told = capsys.readouterr().err
        assert problem in told and file in told and "Traceback" not in told


def test_other_versions_are_named(archive: Path, store: Store) -> None:
    def older(content: bytes) -> bytes:
        manifest = json.loads(content)
        manifest["versions"]["prompts"] = "0"
        return json.dumps(manifest).encode()

    said: list[str] = []
    replay(changed(archive, MANIFEST, older), store, lambda _: Quiet(), said.append)
    assert any("prompts 0 in the archive" in line for line in said)


def test_the_scenarios_of_an_archive_are_files_of_their_own(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        document = yaml.safe_load(opened.read("scenarios/talk.yaml"))
    assert document["answer"] == {"where": "JUDGE-ONLY-GARAGE"}
