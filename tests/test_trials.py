"""`localsim models try`: the trial of a model, its verdict, excerpts and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localsim.conversation.episode import MODES
from localsim.reports.evidence import trials
from localsim.reports.evidence.trials import SCENARIOS, Trial, trial, trial_of, trials_path
from localsim.store.database import Store
from localsim.store.queries.runs import run_row
from tests.test_cli import ask


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALSIM_CACHE", str(tmp_path / "cache"))


def test_the_trial_is_the_same_for_every_model() -> None:
    plan = trial_of("scripted")
    families = [loaded.scenario.family for loaded in plan.scenarios]
    assert families == ["mutual_friends", "craigslist", None, "situations"] and plan.modes == MODES
    assert len(plan.specs()) == 12 == 3 * len(SCENARIOS)
    assert all(len(loaded.scenario.agents) == 2 and loaded.scenario.limits.turns <= 20 for loaded in plan.scenarios)
    assert [spec.seed for spec in plan.specs()] == [spec.seed for spec in trial_of("scripted:parrot").specs()]


def test_a_player_that_holds_the_talks(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ask(capsys, "models", "try", "scripted:auto", "--strict")
    assert code == 0 and "4 scenarios in 3 modes: 12 talks" in err
    assert out.startswith(
        "scripted:auto holds these conversations: 12 of 12 talks play "
        "(script 4 of 4, agents 4 of 4, mindreaders 4 of 4)."
    )
    assert "worst talk" not in out and out.count("typical talk") == 2
    assert "Known to hold them" not in out and "tokens a second" not in out, "it wrote no tokens"
    *_, command = out.splitlines()
    shown = command.partition("localsim ")[2].split()
    assert shown[0] == "show" and str(trials_path()) == shown[-1]
    code, talk, _ = ask(capsys, *shown)
    assert code == 0 and f"episode {shown[1]}" in talk
    assert not Path("test.duckdb").exists(), "the user's own database is not touched"


def test_a_player_that_does_not(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "HELD", {"starter": "11 of 12"})
    given = ("models", "try", "scripted:parrot", "--db", str(tmp_path / "own.duckdb"))
    code, out, err = ask(capsys, *given, "--strict")
    verdict = "scripted:parrot does not hold these conversations: 0 of 12 talks play (script 0 of 4, agents 0 of 4, "
    assert code == 6 and out.startswith(verdict) and f"error: {verdict}" in err
    assert out.count("worst talk") == 2 and out.count("typical talk") == 2
    assert out.count("I really like long walks by the quiet river.") == 12, "three turns of each"
    assert "Known to hold them: starter (11 of 12 play)." in out
    code, out, _ = ask(capsys, *given, "--json")
    found = json.loads(out)
    assert code == 0 and found["holds"] is False and found["modes"]["script"] == {"plays": 0, "talks": 4}
    assert [each["kind"] for each in found["excerpts"]] == ["worst", "worst", "typical", "typical"]
    assert json.loads(run_row(Store(Path(found["db"])), found["run_id"])["plan_json"])["model"] == "scripted:parrot"
    assert not trials_path().exists()


def test_the_verdict_counts_all_talks_and_the_limit_holds() -> None:
    found = Trial("m", "r", {"script": (2, 4), "agents": (4, 4), "mindreaders": (4, 4)}, ())
    assert found.holds and found.verdict == (
        "m holds these conversations: 10 of 12 talks play (script 2 of 4, agents 4 of 4, mindreaders 4 of 4)."
    )
    assert not Trial("m", "r", {"script": (1, 4), "agents": (4, 4), "mindreaders": (4, 4)}, ()).holds
    assert not Trial("m", "r", {"script": (0, 0), "agents": (0, 0), "mindreaders": (0, 0)}, ()).holds, "nothing known"


def test_a_missing_model_is_one_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ask(capsys, "models", "try", "qwen2.5-1.5")
    assert code == 4 and not out and "did you mean qwen2.5-1.5b?" in err


def test_excerpts_of_typical_talks_are_in_the_middle(store: Store) -> None:
    from localsim.runs.runner import start
    from tests.conftest import Quiet

    run_id = start(trial_of("scripted:auto"), store, Quiet(), lambda _: None).run_id
    for excerpt in trial(store, run_id, "scripted:auto", MODES).excerpts:
        numbers = [turn for turn, _, _ in excerpt.turns]
        (last,) = store.rows("SELECT max(turn) AS turn FROM turns WHERE episode_id = ?", [excerpt.episode_id])
        assert len(numbers) == 3 and numbers[0] > 0 and numbers[-1] < last["turn"]
        assert excerpt.heading.startswith("typical talk, ") and "(plays; " in excerpt.heading
