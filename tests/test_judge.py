"""Judges: the form of a verdict, what is stored, and how far it may be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localsim import judge, runner
from localsim.backends.llama_lib import LlamaModel
from localsim.backends.scripted import ScriptedBackend
from localsim.plan import Plan
from localsim.store import Store
from localsim.transcripts import load_episode
from tests.conftest import Quiet, generated
from tests.test_grammar import admits


@pytest.fixture
def played(tmp_path: Path) -> tuple[Store, str]:
    store = Store(tmp_path / "d.duckdb")
    plan = Plan((generated("craigslist"),), ("script", "agents"), "scripted", episodes=2)
    return store, runner.start(plan, store, Quiet(), print).run_id


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (" She left.\nScore: 7", (7, "She left.")),
        (" a\nScore:0\n", (0, "a")),
        (" a\nScore: 11", None),
        (" a\nScore: -1", None),
        (" no score", None),
        ("\nScore: 3", None),
    ],
)
def test_a_verdict_is_read_or_refused(text: str, read: Any) -> None:
    assert judge.Verdict(0, 10).read(text) == read


def test_the_grammar_admits_the_range_and_nothing_else(engine_model: LlamaModel) -> None:
    form: Any = judge.Verdict(-5, 5)
    assert admits(engine_model, form, " Fine talk.\nScore: -5")
    assert admits(engine_model, form, " Fine talk.\nScore: 5\n")
    assert not admits(engine_model, form, " Fine talk.\nScore: 6")
    assert not admits(engine_model, form, "Score: 5")
    assert form.forced("Reason: x\n") == "Score:" and form.forced("Reason: x") == ""
    assert form.finished("Reason: x\nScore: 5\n") and not form.finished("Reason: x\n")


def test_every_dimension_of_every_agent_is_asked(played: tuple[Store, str]) -> None:
    store, run_id = played
    row = store.rows("SELECT episode_id FROM episodes WHERE run_id = ?", [run_id])[0]
    asked = list(judge.questions(load_episode(store, row["episode_id"]), samples=2))
    assert len(asked) == 2 * len(judge.DIMENSIONS) * 2
    assert len({question.request.seed for question in asked}) == len(asked)
    heads = {question.request.messages[1].content.rpartition("\n\nQuestion")[0] for question in asked}
    assert len(heads) == 1, "prompts about one talk share all but the question"


def replies(goal: str) -> list[str]:
    """What a judge writes about one talk, in the order of the questions."""
    return [f" Because.\nScore: {goal}" if name == "goal" else " Well.\nScore: 0" for name in judge.DIMENSIONS] * 2


def test_scores_are_kept_apart_and_nothing_is_asked_twice(
    played: tuple[Store, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run_id = played
    texts = [*replies("9"), *replies("nonsense"), *replies("2"), *replies("3")]
    monkeypatch.setattr(judge, "open_judge", lambda *_: ScriptedBackend("scripted", replies=texts))
    before = store.rows("SELECT * FROM scores ORDER BY ALL")
    assert judge.judge_run(store, run_id, "toy", print) == 4
    assert judge.judge_run(store, run_id, "toy", print) == 0
    after = store.rows("SELECT * FROM scores ORDER BY ALL")
    assert [row for row in after if not row["evaluator"].startswith("judge.")] == before
    goals = store.rows("SELECT value FROM scores WHERE name = 'goal' AND evaluator = 'judge.toy' ORDER BY value")
    assert sorted(row["value"] for row in goals if row["value"] is not None) == [2, 2, 3, 3, 9, 9]
    assert sum(row["value"] is None for row in goals) == 2, "a missing score is missing, never 0"
    malformed = store.rows("SELECT value FROM scores WHERE name = 'malformed_judgements' ORDER BY value")
    assert malformed[-1]["value"] == pytest.approx(1 / 7)


def test_a_judge_no_better_than_chance_is_called_so() -> None:
    def rows(goals: list[float]) -> list[dict[str, Any]]:
        outcomes = [1.0, 0.0] * (len(goals) // 2)
        return [
            {"mode": "agents", "goal": goal, "overall": goal, "spread": 0.1, "success": success}
            for goal, success in zip(goals, outcomes, strict=True)
        ]

    bad, good = judge._judge("judge.x", rows([5.0] * 8)), judge._judge("judge.x", rows([9.0, 1.0] * 40))
    assert bad["goal_auroc"] == 0.5 and "chance" in bad["warning"]
    assert good["goal_auroc"] == 1.0 and good["warning"] is None
    assert "could not" in judge._judge("judge.x", [])["warning"]


@pytest.mark.model
def test_a_real_model_judges_a_talk(played: tuple[Store, str]) -> None:
    store, run_id = played
    said: list[str] = []
    row = store.rows("SELECT episode_id FROM episodes WHERE run_id = ?", [run_id])[0]
    backend = judge.open_judge("starter", said.append)
    try:
        asked = list(judge.questions(load_episode(store, row["episode_id"]), samples=1))[:4]
        found = judge.ask(backend, asked)
    finally:
        backend.close()
    assert "judge" in said[0]
    for question, text in found:
        low, high, _ = judge.DIMENSIONS[question.dimension]
        assert text is not None and judge.Verdict(low, high).read(text) is not None
