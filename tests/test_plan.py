"""A stored plan as the command line that makes it again."""

from __future__ import annotations

import json
import shlex
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.cli.run import run
from localsim.conversation.episode import MODES, OVERFLOWS, REPRO_LEVELS, Sampling
from localsim.runs.plan import Plan, command_of
from tests.conftest import generated

SCENARIO = generated("craigslist")
NAMES = SCENARIO.scenario.names

plans = st.fixed_dictionaries(
    {
        "modes": st.lists(st.sampled_from(MODES), min_size=1, unique=True).map(tuple),
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
        "sampling": st.builds(Sampling, temperature=st.floats(0, 5), grammar=st.booleans()),
    }
)


@settings(max_examples=60, deadline=None)
@given(plans)
def test_a_stored_plan_is_made_again_by_its_command(fields: dict[str, Any]) -> None:
    """Every option of the plan is in the line: a new option of `run` that is forgotten here fails."""
    plan = Plan((SCENARIO,), **fields)
    words = shlex.split(command_of(json.loads(plan.as_json()), ["one scenario.yaml"]))
    assert words[:2] == ["localsim", "run"]
    parsed = run.make_context("run", words[2:]).params
    assert parsed["scenarios"] == ("one scenario.yaml",)
    assert set(parsed["modes"]) == set(plan.modes)
    assert (parsed["temperature"], not parsed["no_grammar"]) == (plan.sampling.temperature, plan.sampling.grammar)
    same = ("model", "roles", "episodes", "seed", "repro", "parallel", "context", "overflow", "gpu", "threads")
    assert {name: parsed[name] for name in same} == {name: getattr(plan, name) for name in same}


def test_scenarios_that_are_not_known_are_left_open() -> None:
    plan = Plan((SCENARIO,), ("agents",), "starter")
    assert command_of(json.loads(plan.as_json()), []).startswith("localsim run SCENARIO... -m starter ")
