"""The table of situations on a model: why talks ended, with players whose end is known, and what is not written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localsim.conversation.episode import MODES
from localsim.errors import LocalsimError
from localsim.store.database import Store
from scripts import table_situations
from scripts.table_situations import End, end_of, ends, name_of, page, plan_of, situations
from scripts.tables import play

CHOSEN = situations(["a_box_of_old_records", "the_ferry_home"])


def played(store: Store, player: str) -> str:
    model = f"scripted:{player}"
    play(store, name_of(model, CHOSEN), plan_of(CHOSEN, model, None, None))
    return model


def test_the_plan_has_every_situation_once_in_each_mode() -> None:
    plan = plan_of(situations(), "starter", None, None)
    specs = plan.specs()
    assert len(situations()) == 90 and len(specs) == 270
    assert {spec.mode for spec in specs} == set(MODES) and {spec.index for spec in specs} == {0}
    assert len({spec.scenario.id for spec in specs}) == 90 and all(spec.scenario.id.endswith("-1") for spec in specs)


@pytest.mark.parametrize(
    ("player", "wanted"),
    [
        ("solver", {"right"}),
        ("yes-sayer", {"wrong settlement", "not told before"}),
        ("refuser", {"out of turns"}),
        ("parrot", {"out of turns, repeats itself"}),
    ],
)
def test_a_player_whose_end_is_known_ends_so(store: Store, player: str, wanted: set[str]) -> None:
    model = played(store, player)
    found = ends(store, store.run_id("@last"))
    assert {
        end.why.removesuffix(", repeats itself") if player == "refuser" else end.why for end in found.values()
    } <= wanted
    assert all(end.completed and end.right == (player == "solver") for end in found.values())
    text = page(store, model, CHOSEN, "this machine", "the command")
    right = 2 if player == "solver" else 0
    assert f"| all | 2 | {right} | {right} | {right} |" in text
    assert "6 episodes, of which 6 were completed. The audit read" in text
    assert "found 0 violations" in text and "    the command" in text
    assert all(f"| {end.why} | " in text for end in found.values())


@pytest.mark.parametrize(
    ("change", "values", "malformed", "why"),
    [
        ({"status": "failed", "error": "no\nmove | here"}, {}, 0, "no move / here"),
        ({"status": "failed", "error": "x"}, {}, 2, "unreadable replies"),
        ({}, {"success": 0, "settled": 1, "fit": 0.5, "kept": 0}, 0, "wrong settlement"),
        ({}, {"success": 0, "settled": 1, "fit": 1, "kept": 0}, 0, "promise broken"),
        ({}, {"success": 0, "settled": 1, "fit": 1, "told": 0}, 0, "not told before"),
        ({"stop_reason": "left"}, {"success": 0, "settled": 0}, 1, "one left"),
        ({}, {"success": 0, "settled": 0, "repeated_turns": 0.5}, 0, "out of turns, repeats itself"),
        ({}, {"success": 1, "settled": 1, "repeated_turns": 0.9}, 0, "right"),
    ],
)
def test_each_end_has_its_words(change: dict[str, Any], values: dict[str, float], malformed: int, why: str) -> None:
    row = {"status": "completed", "stop_reason": "turn_limit", "error": None, **change}
    found = end_of(row, values, malformed)
    assert found == End(completed=row["status"] == "completed", right=why == "right", why=why)


def test_a_run_goes_on_under_its_name_and_no_page_is_written_with_gaps_or_violations(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = played(store, "solver")
    with pytest.raises(LocalsimError, match="6 episodes are missing"):
        page(store, "starter", CHOSEN, "m", "c")
    assert played(store, "solver") == model and len(store.rows("SELECT * FROM runs")) == 1
    audit = table_situations.audit_run(store, store.run_id("@last"))
    monkeypatch.setattr(table_situations, "audit_run", lambda *_: replace(audit, violations=(object(),)))
    with pytest.raises(LocalsimError, match="1 prompts hold"):
        page(store, model, CHOSEN, "m", "c")
