"""A run that is interrupted on the command line, by a kill, by Ctrl-C or by SIGTERM, and resumed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from localsim.__main__ import run as typed
from localsim.runs import stopping
from localsim.store.database import Store
from tests.conftest import TALK

NOTHING: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def turns_in(db: Path) -> list[tuple[Any, ...]]:
    columns = "e.mode, e.seed, t.turn, t.speaker, t.action, t.text"
    rows = Store(db).rows(f"SELECT {columns} FROM turns t JOIN episodes e USING (episode_id) ORDER BY ALL")
    return [tuple(row.values()) for row in rows]


def completed_in(db: Path) -> set[str]:
    rows = Store(db).rows("SELECT episode_id FROM episodes WHERE status = 'completed'")
    return {row["episode_id"] for row in rows}


def ended_in(journal: Path) -> int:
    return journal.read_text().count('"episode_ended"') if journal.exists() else 0


@pytest.mark.model
def test_kill_and_resume_equal_an_uninterrupted_run(
    tmp_path: Path, short_scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, broken = tmp_path / "whole.duckdb", tmp_path / "broken.duckdb"
    wanted = ["--mode", "all", "--seed", "3", "--repro", "exact", "-j", "2", "--fail-on-error", "99", "--no-leaks"]
    command = ["run", short_scenario, *wanted, "--db"]
    process = subprocess.Popen([sys.executable, "-m", "localsim", *command, str(broken)], **NOTHING)
    folder = tmp_path / "broken.duckdb.d"
    while process.poll() is None and not sum(map(ended_in, folder.glob("*.jsonl"))):
        time.sleep(0.05)
    process.kill()
    assert process.wait() == -signal.SIGKILL, "it was killed in the middle"
    before = completed_in(broken)
    assert 1 <= len(before) < 3
    resume = ["resume", "--db", str(broken), "--json"]
    capsys.readouterr()
    assert typed(resume) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 3
    store = Store(broken)
    assert store.check() == []
    assert len(store.rows("SELECT 1 FROM episodes")) == 3
    assert before <= completed_in(broken)
    assert typed([*command, str(whole)]) == 0
    assert turns_in(broken) == turns_in(whole)
    capsys.readouterr()
    assert typed(resume) == 0
    assert json.loads(capsys.readouterr().out)["tokens_generated"] == 0


@pytest.fixture
def short_scenario(tmp_path: Path) -> str:
    """A scenario with few and short turns."""
    text = TALK + "limits: {turns: 4, chars: 40}\n"
    path = tmp_path / "short.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.model
def test_control_c_finishes_the_turn_and_prints_the_resume_line(
    tmp_path: Path, short_scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    db = tmp_path / "int.duckdb"
    command = [sys.executable, "-m", "localsim", "run", short_scenario, "-n", "3", "--db", str(db)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    folder = tmp_path / "int.duckdb.d"
    while process.poll() is None and not any('"turn"' in p.read_text() for p in folder.glob("*.jsonl")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "localsim resume" in err and "Traceback" not in err
    assert typed(["resume", "--db", str(db), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["completed"] == 3


SLOW = """
import sys, time
from localsim.__main__ import main
from localsim.backends.scripted import ScriptedBackend
poll = ScriptedBackend.poll
ScriptedBackend.poll = lambda backend: (time.sleep(0.1), poll(backend))[1]
main()
"""


def test_sigterm_finishes_the_turn_and_prints_the_resume_line(
    tmp_path: Path, short_scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `kill`, `timeout` and job schedulers send: as Ctrl-C, with the exit code that shells give it."""
    db = tmp_path / "term.duckdb"
    plan = ["run", short_scenario, "-m", "scripted", "-n", "30", "-j", "1", "--name", "cut short", "--db", str(db)]
    process = subprocess.Popen([sys.executable, "-c", SLOW, *plan], stderr=subprocess.PIPE, text=True)
    folder = tmp_path / "term.duckdb.d"
    while process.poll() is None and not sum(map(ended_in, folder.glob("*.jsonl"))):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 143, err
    assert "finishing the current turns" in err and "Traceback" not in err
    assert f"--db {db}" in err and "localsim resume" in err and "leaks were not looked for" in err
    assert 1 <= len(completed_in(db)) < 30
    assert typed(["runs", "list", "--db", str(db)]) == 0
    listed = capsys.readouterr()
    assert "cut short" in listed.out and "interrupted" in listed.out and "not searched for leaks" in listed.err
    assert typed(["show", "@last", "--db", str(db)]) == 0
    assert "was not searched for leaks: localsim resume" in capsys.readouterr().out
    assert typed(["resume", "cut short", "--db", str(db), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["completed"] == 30
    assert Store(db).rows("SELECT name, status FROM runs") == [{"name": "cut short", "status": "finished"}]


def test_sigterm_ends_any_command_and_a_training_says_how_it_continues(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    previous = signal.getsignal(signal.SIGTERM)
    stopping.listen()
    try:
        monkeypatch.setattr("localsim.finetune.source.source_of", lambda *_, **__: signal.raise_signal(signal.SIGTERM))
        assert typed(["finetune", "x.jsonl", "--dry-run"]) == stopping.TERMINATED == 143
        assert "the same command continues: localsim finetune x.jsonl" in capsys.readouterr().err
    finally:
        signal.signal(signal.SIGTERM, previous)
    # A shell lets its background jobs ignore Ctrl-C, and the tests may run in one.
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr("localsim.finetune.source.source_of", lambda *_, **__: signal.raise_signal(signal.SIGINT))
        assert typed(["finetune", "x.jsonl", "--dry-run"]) == 130, "an earlier signal is forgotten"
    finally:
        signal.signal(signal.SIGINT, previous)
