"""A run that is interrupted on the command line, by a kill or by Ctrl-C, and resumed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from localsim.store.database import Store
from tests.conftest import TALK


def turns_in(db: Path) -> list[tuple[Any, ...]]:
    columns = "e.mode, e.seed, t.turn, t.speaker, t.action, t.text"
    rows = Store(db).rows(f"SELECT {columns} FROM turns t JOIN episodes e USING (episode_id) ORDER BY ALL")
    return [tuple(row.values()) for row in rows]


def completed_in(db: Path) -> set[str]:
    rows = Store(db).rows("SELECT episode_id FROM episodes WHERE status = 'completed'")
    return {row["episode_id"] for row in rows}


def resumed(db: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "localsim", "resume", "--db", str(db), "--json"]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def ended_in(journal: Path) -> int:
    return journal.read_text().count('"episode_ended"') if journal.exists() else 0


@pytest.mark.model
def test_kill_and_resume_equal_an_uninterrupted_run(tmp_path: Path, short_scenario: str) -> None:
    whole, broken = tmp_path / "whole.duckdb", tmp_path / "broken.duckdb"
    options = [
        "--mode",
        "all",
        "-n",
        "4",
        "--seed",
        "3",
        "--repro",
        "exact",
        "-j",
        "4",
        "--fail-on-error",
        "99",
        "--no-leaks",
    ]
    command = [sys.executable, "-m", "localsim", "run", short_scenario, *options, "--db"]
    subprocess.run([*command, str(whole)], check=True, capture_output=True)
    process = subprocess.Popen([*command, str(broken)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    folder = tmp_path / "broken.duckdb.d"
    while process.poll() is None and sum(map(ended_in, folder.glob("*.jsonl"))) < 5:
        time.sleep(0.05)
    process.kill()
    assert process.wait() == -signal.SIGKILL, "it was killed in the middle"
    before = {
        row["episode_id"] for row in Store(broken).rows("SELECT episode_id FROM episodes WHERE status = 'completed'")
    }
    assert 5 <= len(before) < 12
    resumed = subprocess.run(
        [sys.executable, "-m", "localsim", "resume", "--db", str(broken), "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(resumed.stdout)["episodes"] == 12
    store = Store(broken)
    assert store.check() == []
    assert len(store.rows("SELECT 1 FROM episodes")) == 12
    assert before <= {
        row["episode_id"] for row in store.rows("SELECT episode_id FROM episodes WHERE status = 'completed'")
    }
    assert turns_in(broken) == turns_in(whole)
    again = subprocess.run(
        [sys.executable, "-m", "localsim", "resume", "--db", str(broken), "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(again.stdout)["tokens_generated"] == 0


@pytest.fixture
def short_scenario(tmp_path: Path) -> str:
    """A scenario with few and short turns."""
    text = TALK + "limits: {turns: 4, chars: 40}\n"
    path = tmp_path / "short.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.model
def test_control_c_finishes_the_turn_and_prints_the_resume_line(tmp_path: Path, short_scenario: str) -> None:
    db = tmp_path / "int.duckdb"
    command = [sys.executable, "-m", "localsim", "run", short_scenario, "-n", "6", "--db", str(db)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    folder = tmp_path / "int.duckdb.d"
    while process.poll() is None and not any('"turn"' in p.read_text() for p in folder.glob("*.jsonl")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "localsim resume" in err and "Traceback" not in err
    resumed = subprocess.run(
        [sys.executable, "-m", "localsim", "resume", "--db", str(db), "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(resumed.stdout)["completed"] == 6
