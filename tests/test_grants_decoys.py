"""Decoys: made-up items as long as those that are hidden, with nothing of them."""

from __future__ import annotations

from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.conversation.grants import (
    parse,
)
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe
from localsim.conversation.wording.decoys import _BRIEF, NAMES
from localsim.families import FAMILIES
from localsim.families.vocabulary import DEFAULT
from tests.conftest import generated
from tests.test_grants import EVERY_SCENARIO, LOADED, changed, items_of, opening


@pytest.mark.parametrize("loaded", EVERY_SCENARIO, ids=lambda loaded: loaded.scenario.id)
@pytest.mark.parametrize("see", ["decoys", "goal,facts:1+decoys", "1=all+decoys"])
def test_decoys_are_as_long_as_what_is_hidden_and_nothing_of_it(loaded: LoadedScenario, see: str) -> None:
    scenario, grants = loaded.scenario, parse(see)
    true = {text.casefold() for agent in scenario.agents for text in items_of(agent)}
    terms = {term.casefold() for agent in scenario.agents for fact in agent.facts for term in fact.terms}
    for viewer in scenario.names:
        seen = observe(scenario, "agents", viewer, Transcript(), grants)
        assert seen == observe(scenario, "agents", viewer, Transcript(), grants)
        shown = {view.name: view for view in seen.agents}
        whole_views = {view.name: view for view in observe(scenario, "mindreaders", viewer, Transcript()).agents}
        hidden = [agent for agent in scenario.agents if shown[agent.name] != whole_views[agent.name]]
        assert len(seen.decoys) == len(hidden)
        for decoy, agent in zip(seen.decoys, hidden, strict=True):
            assert decoy.name in NAMES and decoy.name not in scenario.names
            for made in items_of(decoy):
                assert made.casefold() not in true
                assert not any(term in made.casefold() for term in terms)
            view = shown[agent.name]
            whole = sum(map(len, items_of(agent)))
            together = sum(map(len, items_of(decoy))) + sum(map(len, items_of(view)))
            assert abs(together - whole) <= max(8, 0.05 * whole)
            assert len(decoy.facts) == len(agent.facts) - len(view.facts)
        prompt = opening(scenario, viewer, grants)
        assert all(f"{decoy.name} is not here" in prompt for decoy in seen.decoys)


@pytest.mark.parametrize("family", FAMILIES.own)
def test_a_prompt_of_an_agent_with_decoys_is_as_long_as_that_of_a_mindreader(family: str) -> None:
    ratios = []
    for seed in range(40):
        scenario = generated(family, 500 + seed).scenario
        viewer = scenario.names[seed % 2]
        ratios.append(
            len(opening(scenario, viewer, parse("decoys"))) / len(opening(scenario, viewer, mode="mindreaders"))
        )
    assert 0.95 < fmean(ratios) < 1.1 and min(ratios) > 0.9 and max(ratios) < 1.15


BRIEF = st.text("Q7xé ok", min_size=1, max_size=8).filter(lambda text: text.strip() == text)


@given(goal=BRIEF, secret=BRIEF, fact=BRIEF)
@settings(max_examples=60, deadline=None)
def test_the_decoy_of_a_short_item_is_another_text_of_its_length(goal: str, secret: str, fact: str) -> None:
    known = LOADED[0].scenario
    facts = (known.agent("Bo").facts[0].model_copy(update={"text": fact, "terms": ()}),)
    scenario = changed(known, "Bo", goal=goal, secret=secret, facts=facts)
    true = {text.casefold() for agent in scenario.agents for text in items_of(agent)}
    (decoy,) = observe(scenario, "agents", "Ana", Transcript(), parse("decoys")).decoys
    assert decoy.goal and decoy.secret
    assert [len(decoy.goal), len(decoy.secret), len(decoy.facts[0].text)] == [len(goal), len(secret), len(fact)]
    assert not {text.casefold() for text in items_of(decoy)} & true
    assert not any("?" in text for text in items_of(decoy))


def test_an_item_has_a_decoy_of_question_marks_if_the_scenario_uses_every_other_text() -> None:
    scenario = LOADED[0].scenario
    fact = scenario.agent("Bo").facts[0]
    facts = tuple(
        fact.model_copy(update={"id": f"f{n}", "text": word, "terms": ()}) for n, word in enumerate(_BRIEF[1])
    )
    full = changed(scenario, "Bo", facts=facts, goal="x")
    (decoy,) = observe(full, "agents", "Ana", Transcript(), parse("decoys")).decoys
    assert decoy.goal == "?" and {made.text for made in decoy.facts} == {"?"}


@pytest.mark.parametrize(("age", "ages"), [("7", range(3, 10)), ("34", range(20, 80)), ("101", range(100, 110))])
def test_the_decoy_of_an_age_has_as_many_digits(age: str, ages: range) -> None:
    known = LOADED[1].scenario
    profile = known.agent("Bo").profile.model_copy(update={"age": age, "occupation": "vet"})
    (decoy, _) = observe(changed(known, "Bo", profile=profile), "agents", "Ana", Transcript(), parse("decoys")).decoys
    shown = dict(decoy.profile)
    assert int(shown["age"]) in ages and shown["age"] != age
    assert len(shown["occupation"]) <= 3 and shown["occupation"] != "vet"


def test_no_family_gives_the_name_of_a_decoy() -> None:
    assert not {name.casefold() for name in NAMES} & {name.casefold() for name in DEFAULT.names}
    assert len(set(NAMES)) == len(NAMES)
