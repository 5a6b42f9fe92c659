"""A stored plan as the command line that makes it again."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import localsim
from localsim.__main__ import run as main
from localsim.cli.running.commands import run
from localsim.conversation.episode import OVERFLOWS, REPRO_LEVELS, SIMULATED, Sampling
from localsim.conversation.wording.variants import MOST
from localsim.errors import InvalidInput
from localsim.runs.plan import Plan, command_of, outcomes_of, primary_of, sampling_of, secondary_in
from localsim.runs.runner import resume, start
from localsim.store.database import Store
from localsim.store.queries.runs import run_row, runs_of_plan
from tests.conftest import Quiet, generated

SCENARIO = generated("craigslist")
NAMES = SCENARIO.scenario.names

plans = st.fixed_dictionaries(
    {
        "modes": st.lists(st.sampled_from(SIMULATED), min_size=1, unique=True).map(tuple),
        "model": st.sampled_from(["starter", "scripted:firm", "/a b/c'd.gguf", "x+y"]),
        "roles": st.dictionaries(st.sampled_from([*NAMES, "writer"]), st.sampled_from(["scripted", "/m n.gguf"])),
        "episodes": st.integers(1, 9),
        "seed": st.integers(0, 2**63 - 1),
        "repro": st.sampled_from(REPRO_LEVELS),
        "parallel": st.none() | st.integers(1, 64),
        "context": st.none() | st.integers(256, 8192),
        "overflow": st.sampled_from(OVERFLOWS),
        "gpu": st.sampled_from(["auto", "off", "0", "12"]),
        "threads": st.none() | st.integers(1, 64),
        "perturb": st.integers(0, MOST),
        "see": st.sampled_from([(), ("goal,facts:2",), ("none", "1=all", "facts+announced+decoys")]),
        "primary": st.sampled_from(["success_rate:information", "turns:both", "deal_rate:authorship"]),
        "secondary": st.sampled_from([(), ("turns:information",), ("words_per_turn:both", "x:authorship")]),
        "sampling": st.builds(Sampling, temperature=st.floats(0, 5), grammar=st.booleans()),
    }
)


@settings(max_examples=60, deadline=None)
@given(plans)
def test_a_stored_plan_is_made_again_by_its_command(fields: dict[str, Any]) -> None:
    """Every option of the plan is in the line: a new option of `run` that is forgotten here fails."""
    fields["see"] = fields["see"] if "agents" in fields["modes"] else ()
    plan = Plan((SCENARIO,), **fields)
    words = shlex.split(command_of(json.loads(plan.as_json()), ["one scenario.yaml"]))
    assert words[:2] == ["localsim", "run"]
    parsed = run.make_context("run", words[2:]).params
    assert parsed["scenarios"] == ("one scenario.yaml",)
    assert (set(parsed["modes"]), tuple(parsed["see"])) == (set(plan.modes), plan.see)
    warm = sampling_of(plan.model).temperature if parsed["temperature"] is None else parsed["temperature"]
    assert (warm, not parsed["no_grammar"]) == (plan.draws.temperature, plan.draws.grammar)
    assert parsed["models"] == (plan.model,)
    same = (
        "roles",
        "episodes",
        "seed",
        "repro",
        "parallel",
        "context",
        "overflow",
        "gpu",
        "threads",
        "primary",
    )
    assert tuple(map(str, secondary_in(parsed["secondary"]))) == plan.secondary
    assert {name: parsed[name] for name in same} == {name: getattr(plan, name) for name in same}


def test_scenarios_that_are_not_known_are_left_open() -> None:
    plan = Plan((SCENARIO,), ("agents",), "starter")
    assert command_of(json.loads(plan.as_json()), []).startswith("localsim run SCENARIO... -m starter ")


# ---- the primary outcome -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "declared"),
    [
        ("", "success_rate:information"),
        ("turns", "turns:information"),
        ("turns:both", "turns:both"),
    ],
)
def test_a_plan_declares_one_outcome(given: str, declared: str) -> None:
    plan = Plan((SCENARIO,), ("agents",), "starter", primary=given)
    assert plan.primary == declared and json.loads(plan.as_json())["primary"] == declared
    assert primary_of(plan.as_json()) == tuple(declared.split(":"))


@pytest.mark.parametrize("given", [":both", "turns:all", "turns:both:more"])
def test_an_outcome_that_is_none(given: str) -> None:
    with pytest.raises(InvalidInput, match="primary"):
        Plan((SCENARIO,), ("agents",), "starter", primary=given)
    with pytest.raises(InvalidInput, match="secondary"):
        Plan((SCENARIO,), ("agents",), "starter", secondary=f"words_per_turn,{given}")


def test_secondary_outcomes_are_declared_once_and_beside_the_primary_one() -> None:
    plan = Plan((SCENARIO,), ("agents",), "starter", secondary="turns, turns:information,peeking:both")
    assert plan.secondary == ("turns:information", "peeking:both")
    assert outcomes_of(json.loads(plan.as_json())).secondary == (("turns", "information"), ("peeking", "both"))
    assert "secondary" not in json.loads(replace(plan, secondary=()).as_json()), "the text of older plans"
    with pytest.raises(InvalidInput, match="is the primary outcome"):
        Plan((SCENARIO,), ("agents",), "starter", primary="turns", secondary=["turns"])


def test_the_outcome_is_a_measure_that_modes_are_compared_by(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "roommates", "-m", "scripted", "--primary", "succes_rate"]) == 3
    assert "did you mean success_rate?" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="malformed_rate"):
        localsim.run("roommates", model="scripted", primary="malformed_rate")
    with pytest.raises(InvalidInput, match="malformed_rate"):
        localsim.run("roommates", model="scripted", secondary=["turns", "malformed_rate:both"])


def test_the_outcome_is_stored_and_hashed_before_the_run(store: Store) -> None:
    """And an older run, whose plan names none, is still found and resumed."""
    plan = Plan((SCENARIO,), ("agents",), "scripted", primary="turns:both")
    run_id = start(plan, store, Quiet(), print).run_id
    row = run_row(store, run_id)
    assert primary_of(row["plan_json"]) == ("turns", "both")
    assert row["plan_hash"] == hashlib.sha256(row["plan_json"].encode()).hexdigest()
    default = replace(plan, primary="")
    assert default.stored_forms() != plan.stored_forms()
    assert [one["run_id"] for one in runs_of_plan(store, plan.stored_forms())] == [run_id]
    assert runs_of_plan(store, default.stored_forms()) == [], "another outcome is another plan"

    old = {key: value for key, value in json.loads(default.as_json()).items() if key != "primary"}
    with store.writing() as connection:
        connection.execute("UPDATE runs SET plan_json = ?", [json.dumps(old, sort_keys=True)])
    assert [one["run_id"] for one in runs_of_plan(store, default.stored_forms())] == [run_id]
    assert runs_of_plan(store, plan.stored_forms()) == []
    assert resume(run_id, store, Quiet(), print).run_id == run_id
    assert primary_of(run_row(store, run_id)["plan_json"]) == ("success_rate", "information")
