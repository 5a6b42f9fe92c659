"""The sentences of a study's answer: what a test over scenarios finds is said, and nothing else."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from localsim.reports.validity.findings import finding
from localsim.reports.validity.headline import contrasts_sentence
from localsim.study.answer import answer
from localsim.study.premium import BOTH
from localsim.study.results import CAUSES

Row = dict[str, Any]
ABOUT: Row = {"key": "success_rate", "heading": "success", "kind": "share"}
PAIRS = list(CAUSES)


def row(pair: tuple[str, str], difference: float, p: float | None, **changes: Any) -> Row:
    """A contrast of two conditions on success over all tasks."""
    found = {
        "family": "craigslist",
        "kind": "share",
        "first": pair[0],
        "second": pair[1],
        "measure": "success_rate",
        "primary": True,
        "difference": difference,
        "low": difference - 0.1,
        "high": difference + 0.1,
        "p": p,
        "p_holm": p,
        "p_least": 0.0005,
        "scenarios": 12,
    }
    return found | changes


def sentence(rows: dict[str, Row]) -> str:
    """The sentence about rows of a study."""
    return contrasts_sentence({cause: finding(each, each["p_holm"]) for cause, each in rows.items()}, "success")


@given(st.lists(st.tuples(st.floats(-1, 1), st.none() | st.floats(0, 1)), min_size=1, max_size=4))
def test_a_change_is_found_only_by_its_corrected_test(values: list[tuple[float, float | None]]) -> None:
    rows = {f"cause {place}": row(PAIRS[0], *value) for place, value in enumerate(values)}
    told, _, tail = sentence(rows).partition("; ")
    verb = "changed success by "
    assert told.startswith(f"cause 0 {verb}") and told.count("cause") == len(values)
    found = {
        name for name, each in rows.items()
        if each["p_holm"] is not None and each["p_holm"] <= 0.05 and not each["low"] <= 0 <= each["high"]
    }  # fmt: skip
    assert {name for name in rows if name in tail} == found
    assert tail.startswith("with 12 scenarios this finds" if found else "with 12 scenarios none of it can be told")


def test_the_correction_counts_and_few_scenarios_are_named() -> None:
    assert "none of it" in sentence({"it": row(PAIRS[0], 0.5, 0.01, p_holm=0.2)})
    few = sentence({"it": row(PAIRS[0], 0.5, 0.06, scenarios=4, p_least=0.125)})
    assert "(4 scenarios cannot give a p below .125)" in few
    one = sentence({"it": row(PAIRS[0], 0.5, None, scenarios=1, low=None, high=None, p_least=1.0)})
    assert one == "it changed success by +50 points; one scenario cannot tell a change from none."


def model(**changes: Any) -> Row:
    """The results of a model, as far as the answer reads them."""
    found: Row = {
        "model": "m",
        "headline": {"families": [], "sentences": ["Nothing."]},
        "measures": [ABOUT],
        "arms": [row(pair, 0.1 * place, 0.001 if place == 3 else 0.9) for place, pair in enumerate(PAIRS)],
        "lessons": {"agents-ft": {}},
        "premiums": [],
        "naturalness": [],
        "judge": "j",
        "people": [],
        "twin": None,
        "playing": {"sentences": [], "withheld": []},
    }
    return found | changes


def test_arms_are_told_against_agents_and_against_their_controls() -> None:
    modes, arms = answer(model(), several=False)
    assert modes["sentences"] == ["Nothing."]
    against, lessons = arms["sentences"]
    assert against.startswith(
        "Bargaining, against agents: learning from scripts (agents-ft) changed success by 0 points (95% -10 to +10)"
    )
    assert against.endswith("none of it can be told from no change.")
    assert lessons.startswith(
        "Bargaining, in the lessons: scripts instead of agents' talks (agents-ft against agents-ft-"
    )
    assert lessons.endswith(
        "finds the change by scripts instead of agents' talks (agents-ft against agents-ft-agents)."
    )
    named = answer(model(), several=True)
    assert all(part["about"].startswith("m: ") for part in named)


def test_the_null_and_the_premium_are_told_by_their_tests() -> None:
    rows = [
        row(PAIRS[0], 0.01, 0.8, who="m", verdict="null", equivalence={"margin": 0.1}),
        row(PAIRS[0], 0.4, 0.001, who="t (constructed)", verdict="change"),
        row(PAIRS[0], 0.39, 0.002, who=BOTH, verdict="change"),
        row(PAIRS[0], 0.9, 0.001, who="t (constructed)", verdict="change", primary=False),
    ]
    twin = {"name": "t", "made": "constructed: taught to peek", "headline": {"families": [], "sentences": []}}
    parts = answer(model(premiums=rows, twin=twin), several=False)
    premium, null = next(part["sentences"] for part in parts if part["about"] == "Null and premium")
    assert premium.startswith("Bargaining: seeing every side as m changed success by +1 point (")
    assert premium.endswith(
        "this finds the change by seeing every side as t (constructed) and what was built into the twin."
    )
    assert null == "Bargaining: a change of success of m by 10 points or more is excluded."
    same = answer(model(premiums=[rows[2] | {"verdict": "null", "equivalence": {"margin": 0.1}}]), several=False)
    told = next(part["sentences"] for part in same if part["about"] == "Null and premium")
    assert told == ["Bargaining: the change of success of twin and model differs by less than 10 points."]
    alone = answer(model(premiums=rows[:1]), several=False)
    assert next(part["sentences"] for part in alone if part["about"] == "Null and premium") == [null]


def test_a_judge_that_picks_a_place_is_not_quoted_and_a_twin_is_labelled() -> None:
    rate = {
        "judge": "j", "first": "script", "second": "agents", "first_chosen": 0.75, "low": 0.5, "high": 0.9,
        "decided": 8, "n": 9, "orders_agree": 0.9, "warning": None,
    }  # fmt: skip
    bad = rate | {"first": "mindreaders", "warning": "picks a place: do not use it"}
    twin = {"name": "t", "made": "constructed: taught to peek", "headline": {"families": [], "sentences": ["Twin."]}}
    parts = {
        part["about"]: part["sentences"] for part in answer(model(naturalness=[rate, bad], twin=twin), several=False)
    }
    good, warned = parts["Naturalness"]
    assert "script over agents in 75%" in good and "mindreaders" not in good
    assert warned == "Of mindreaders and agents, the judge j picks a place: do not use it."
    assert parts["The same by t (constructed: taught to peek)"] == ["Twin."]
