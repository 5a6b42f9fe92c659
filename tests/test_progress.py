"""What a long command says while it works: no silence, a forecast from the first tokens on, few lines in a log."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localsim.__main__ import run
from localsim.cli import progress as shown
from localsim.cli.progress import Progress, Reassurance, duration, say
from localsim.conversation.episode import Episode
from localsim.conversation.transcript import Transcript
from localsim.evaluators import leaks
from localsim.evaluators.evaluate import score_runs
from localsim.leakage.detector import LeakageDetector
from localsim.machine.forecast import Remaining
from localsim.reports import audit as audited
from localsim.runs import telling
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from localsim.web.classroom import begin
from tests.conftest import generated, spec_of

SILENCE = 3.0
"""Seconds without a word that nobody should have to bear."""


class Clock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock, for a `Reassurance` whose thread sleeps: the test beats."""
    monkeypatch.setattr(Reassurance, "_watch", lambda _self: None)
    return Clock()


def waited(clock: Clock, reassurance: Reassurance, seconds: float, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of some seconds of silence, each with its second in front."""
    lines, begun = [], clock.now
    while clock.now < begun + seconds:
        clock.now += 0.25
        reassurance.beat()
        lines += [f"{clock.now - begun:.2f} {line}" for line in capsys.readouterr().err.splitlines() if line]
    return lines


def test_a_log_gets_a_line_soon_and_then_few(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Reassurance("reading the episodes", clock=clock) as reassurance:
        assert waited(clock, reassurance, 3, capsys) == ["2.00 still reading the episodes, 2 s"]
        say("loading starter (146 MB)")
        capsys.readouterr()
        lines = waited(clock, reassurance, 300, capsys)
        assert lines[0].endswith("still loading starter (146 MB), 4 s") and 8 <= len(lines) <= 14
        say("starter: 146 MB weights\x1b\x07")
        assert capsys.readouterr().err == "starter: 146 MB weights\n", "words of others cannot steer the terminal"
        waited(clock, reassurance, 1, capsys)
        assert reassurance._doing == "loading starter (146 MB)", "not every message says what begins"
        with reassurance.silent():
            assert waited(clock, reassurance, 100, capsys) == [], "a person is asked something"


def test_nothing_is_said_beside_json(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Reassurance("reading", quiet=True, clock=clock) as reassurance:
        assert shown._now is None
        assert not reassurance._thread.is_alive()
    assert capsys.readouterr().err == ""


def test_the_first_episode_is_forecast_from_its_first_tokens(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    specs = [spec_of(generated("mutual_friends"), "script", index) for index in range(4)]
    usual = Remaining(specs[:1], None)._mean
    progress = Progress(4, clock=clock)
    with Reassurance("reading", clock=clock) as reassurance:
        progress.begins(specs)
        assert "left" not in progress.line()
        clock.now += 2
        progress.working(0, 40)
        assert f"20 tokens/s, about {duration((4 * usual - 40) / 20)} left" in progress.line()
        (line,) = waited(clock, reassurance, 1, capsys)
        assert "0 of 4 episodes" in line
        progress.ended(Episode(specs[0], Transcript(), status="completed", stop_reason="turn_limit", error=None))
        assert "1 of 4 episodes" in progress.line()
    progress.close()


def test_a_forecast_learns_from_the_episodes_that_have_ended() -> None:
    specs = [spec_of(generated("mutual_friends"), "agents", index) for index in range(10)]
    remaining = Remaining(specs, None)
    usual = remaining._mean
    assert remaining.seconds(0, 0, 5.0) is None and remaining.seconds(0, 19, 5.0) is None
    assert remaining.seconds(0, 100, 10.0) == pytest.approx((10 * usual - 100) / 10)
    for spec in specs[:5]:
        remaining.end(spec)
    long = remaining.seconds(round(10 * usual), 0, 10.0)  # five episodes took twice the usual tokens
    assert long == pytest.approx(10 * (11 / 6 * 5 * usual) / (10 * usual), rel=0.01)
    assert remaining.seconds(0, 0, 10.0) == 10.0, "without tokens, the episodes are counted"
    assert [duration(each) for each in (1, 22, 100, 600, 9000)] == [
        "5 s",
        "20 s",
        "2 minutes",
        "10 minutes",
        "2.5 hours",
    ]


SLOW = """
import sys, time
from localsim.__main__ import main
from localsim.backends.scripted import ScriptedBackend
from localsim.runs import preview
poll = ScriptedBackend.poll
def slow(backend):
    time.sleep({step})
    return poll(backend)
ScriptedBackend.poll = slow
main()
"""


def test_a_person_at_a_terminal_never_waits_long_for_a_word(tmp_path: Path) -> None:
    """A real terminal and a player that takes four seconds a turn."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    command = [sys.executable, "-c", SLOW.format(step=4), "run", "roommates", "-m", "scripted", "--mode", "script"]
    process = subprocess.Popen([*command, "--db", str(tmp_path / "t.duckdb")], stdout=theirs, stderr=theirs)
    os.close(theirs)
    times, shown = [], b""
    while select.select([ours], [], [], 120)[0]:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        times.append(time.monotonic())
        shown += part
    assert process.wait() == 0, shown.decode()
    assert b"1 completed" in shown and b"0 of 1 episodes" in shown
    pauses = [late - early for early, late in pairwise(times)]
    assert max(pauses) < SILENCE, f"silent for {max(pauses):.1f} s"
    assert re.search(rb"episodes \|[^|]*\| 0?0:0[2-5]", shown), "the bar counts the seconds"


def test_help_of_json_stays_json(tmp_path: Path) -> None:
    """With --json and no terminal, a slow run writes one document and no line beside it."""
    command = [sys.executable, "-c", SLOW.format(step=2.5), "run", "roommates", "-m", "scripted", "--mode", "script"]
    found: Any = subprocess.run(
        [*command, "--json", "--db", str(tmp_path / "t.duckdb")], capture_output=True, text=True, check=True
    )
    assert found.stdout.startswith("{") and found.stderr == ""


def by_length(texts: Any) -> Any:
    """Unit vectors of texts without a model."""
    angles = np.array([len(text) for text in texts], dtype=np.float32)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_a_search_for_leaks_says_how_far_it_is_and_keeps_each_part(
    run: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaks.Leaks, "together", 5)
    detector = LeakageDetector(by_length, use_reader=False)
    searched = "SELECT count(DISTINCT episode_id) AS n FROM searches"
    said: list[tuple[str, int]] = []

    def heard(message: str) -> None:
        said.append((message, store.rows(searched)[0]["n"]))

    assert score_runs(store, [run], [leaks.Leaks(store, detector)], heard) == {"leakage": 12}
    assert said[:3] == [
        ("searching for leaks: 12 episodes", 0),
        ("searching for leaks: 5 of 12 episodes", 5),
        ("searching for leaks: 10 of 12 episodes", 10),
    ], "what was searched is stored before the next part begins"
    assert telling.unsearched(store, run) == ""


HOLD = "import sys, duckdb; held = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"


def test_a_run_begins_while_another_program_holds_the_database(run: str, store: Store) -> None:
    """A forecast is worth neither a long wait nor the run."""
    assert run
    command = [sys.executable, "-c", HOLD, str(store.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        progress = Progress(1, quiet=True, store=store)
        begun = time.monotonic()
        progress.begins([spec_of(generated("mutual_friends", 1), "agents")])
        assert time.monotonic() - begun < 5
        progress.close()
        other.communicate()


def test_an_audit_says_what_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "a.duckdb")
    monkeypatch.setattr(shown, "SILENCE_S", 0.1)
    assert run(["run", "mutual_friends_01", "-m", "scripted", "--db", file]) == 0
    audit = audited.audit_run

    def slow(store: Store, run_id: str) -> audited.Audit:
        time.sleep(0.6)
        return audit(store, run_id)

    monkeypatch.setattr(audited, "audit_run", slow)
    capsys.readouterr()
    assert run(["audit", "--db", file]) == 0
    assert "still checking the prompts" in capsys.readouterr().err


def test_a_class_says_what_it_does_before_and_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(begin, "run_app", lambda *_: told.append("served"))
    wish = begin.Wish(find_scenarios(["mutual_friends_01"]), "scripted", False, "127.0.0.1", None, False, None)

    def during(doing: str) -> AbstractContextManager[None]:
        told.append(doing)
        return nullcontext()

    begin.serve_class(Store(tmp_path / "c.duckdb"), wish, lambda _: None, open_browser=False, during=during)
    assert told == ["opening the class", "served", "storing what was played"]
