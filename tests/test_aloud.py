"""The paragraph to read aloud: players that do not peek as the null, players that peek as the premium."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localsim.conversation.episode import Mode
from localsim.conversation.scenario import LoadedScenario
from localsim.families import FAMILIES
from localsim.models import registry
from localsim.reports.report import report
from localsim.reports.validity.aloud import paragraph, with_paragraph
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.store.conditions import conditions_of
from localsim.store.database import Store
from tests.conftest import Quiet, generated

Row = dict[str, Any]
SPEC = importlib.util.spec_from_file_location("bootstrap", Path(__file__).parent.parent / "scripts" / "bootstrap.py")
assert SPEC and SPEC.loader
DEMO: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(DEMO)
"""Sizes of `make demo`: what it promises to find is found here with players whose behaviour is known."""
HONEST, HALF, ALWAYS = "scripted:auto", "scripted:peeks-50", "scripted:peeks-100"
TITLES = ("Mutual friends", "Bargaining")


def scenarios(count: int) -> tuple[LoadedScenario, ...]:
    """Scenarios with and without a solution in turn, as `make demo` plays them."""
    found = []
    for family in FAMILIES.own:
        tasks = FAMILIES[family].study_tasks
        for seed in range(DEMO.FIRST_SEED, DEMO.FIRST_SEED + count):
            task = FAMILIES[family].control_tasks.get(tasks[seed % len(tasks)], {})
            found.append(generated(family, seed, **task))
    return tuple(found)


def played(store: Store, model: str, count: int = DEMO.SCENARIOS) -> str:
    modes: tuple[Mode, ...] = ("agents", "mindreaders")
    plan = Plan(scenarios(count), modes, model, seed=3, primary=DEMO.PRIMARY)
    return start(plan, store, Quiet(), lambda _: None).run_id


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, dict[str, str]]:
    """A run of each player on the same scenarios and seeds."""
    store = Store(tmp_path_factory.mktemp("aloud") / "runs.duckdb")
    return store, {model: played(store, model) for model in (HONEST, HALF, ALWAYS)}


def told(runs: tuple[Store, dict[str, str]], one: str, other: str) -> str:
    store, by_model = runs
    data = with_paragraph(store, report(store, by_model[one]), conditions_of(store, by_model[other]))
    assert data["aloud"]["runs"] == [by_model[other]]
    return str(data["aloud"]["paragraph"])


@pytest.mark.parametrize("peeking", [HALF, ALWAYS])
def test_a_null_is_told_as_a_null_and_a_premium_as_a_premium(
    runs: tuple[Store, dict[str, str]], peeking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"models": {peeking: {"file": "", "constructed": "peek"}}, "aliases": {}}
    monkeypatch.setattr(registry, "_registry", lambda: known)
    text = told(runs, HONEST, peeking)
    assert text.startswith("Two models played the same scenarios, 16 of Mutual friends and 16 of Bargaining")
    assert f"{peeking} is constructed: it was taught to peek." in text
    honest, peeks = text.split(f"{peeking} is constructed")
    assert honest.count("no difference could be told (95% interval ") == 2 and "fewer with" not in honest
    assert peeks.count(" turns fewer with them (95% interval ") == 2 and "no difference" not in peeks
    assert f"So no change could be told for {HONEST}." in text
    assert f"So seeing both sides changed {peeking} in Mutual friends and Bargaining, as was built in." in text
    assert text.index(f"In {TITLES[0]}") < text.index(f"In {TITLES[1]}")
    assert "Each of the four tests counts a scenario once" in text and "with 100% and 100% success" in text


def test_a_premium_that_is_missed_is_said_to_be_missed(
    runs: tuple[Store, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"models": {HONEST: {"file": "", "constructed": "peek"}}, "aliases": {}}
    monkeypatch.setattr(registry, "_registry", lambda: known)
    text = told(runs, HONEST, ALWAYS)
    assert f"So no change could be told for {HONEST}, although one was built in." in text
    assert f"{ALWAYS} is a script and not a language model." in text


def test_too_few_scenarios_tell_nothing(store: Store) -> None:
    honest, peeking = (played(store, model, 4) for model in (HONEST, ALWAYS))
    text = with_paragraph(store, report(store, honest), conditions_of(store, peeking))["aloud"]["paragraph"]
    assert text.count("four scenarios are too few to tell any difference") == 4
    assert text.endswith("More scenarios are needed: localsim design computes how many.")
    assert "changed" not in text and "fewer with" not in text


def test_other_scenarios_and_single_conditions_have_no_paragraph(runs: tuple[Store, dict[str, str]]) -> None:
    store, by_model = runs
    elsewhere = Plan((generated("craigslist", 5),), ("agents", "script"), HONEST, seed=3)
    other = start(elsewhere, store, Quiet(), lambda _: None).run_id
    data = report(store, by_model[HONEST])
    assert with_paragraph(store, data, conditions_of(store, other)) is data
    agents = [each for each in conditions_of(store, by_model[ALWAYS]) if each.name == "agents"]
    assert with_paragraph(store, data, agents) is data, "one condition of a run tells nothing about information"
    assert paragraph([report(store, other)]).startswith("These runs cannot tell")


MEASURE = {"key": "success_rate", "heading": "success", "kind": "share"}


@given(st.floats(-1, 1), st.sampled_from(["found", "not told", "withheld"]), st.integers(1, 20))
def test_only_a_finding_gets_an_amount(difference: float, verdict: str, count: int) -> None:
    row = {"difference": difference, "low": -1.0, "high": 1.0, "p": 0.01, "primary": True, "scenarios": count}
    row |= {"p_least": 2.0 ** (1 - count)}
    cell = {"family": "craigslist", "model": "m", "title": "Bargaining", "measure": "success_rate"}
    cell |= {"contrasts": {"information": row}, "verdicts": {"information": verdict}}
    modes = [
        {"family": "craigslist", "model": "m", "mode": mode, "success_rate": share}
        for mode, share in (("agents", 0.7), ("mindreaders", 0.68))
    ]
    text = paragraph([{"headline": {"families": [cell]}, "comparison": modes, "measures": [MEASURE]}])
    assert "it succeeded in 70% without the other side's facts and 68% with them" in text
    assert (" points more " in text or " points fewer " in text) is (verdict == "found" and count >= 6)
    assert ("too few to tell" in text) is (verdict != "withheld" and count < 6)
