"""Generated scenarios: parameters, answer keys, and that every file written is read back as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.__main__ import run as command
from localsim.conversation.scenario import LoadedScenario, ScenarioFile
from localsim.errors import InvalidInput, ScenarioInvalid
from localsim.families import FAMILIES
from localsim.scenarios.parse import dump_scenario, load_scenario
from tests.test_scenarios import BASE, only, places, read


def test_unknown_family() -> None:
    found = only(BASE + "family: mutual_freinds\n")
    assert (found.line, found.column, found.path) == (9, 9, "family")
    assert "did you mean mutual_friends?" in found.message


def instance(family: str, seed: int = 1, **parameters: Any) -> ScenarioFile:
    return FAMILIES[family].generate(f"{family}-{seed}", seed, parameters)


def with_answer(document: ScenarioFile, **changes: Any) -> str:
    return dump_scenario(document.model_copy(update={"answer": {**document.answer, **changes}}))


@pytest.mark.parametrize("answer", [[], ["Nobody"], 3, "Ann", [1, "a"], {"a": 1}, None, [["x"]]])
def test_mutual_friends_refuses_a_wrong_answer(answer: Any) -> None:
    document = instance("mutual_friends")
    text = with_answer(document, mutual_friends=answer)
    found = only(text)
    assert found.path == "answer.mutual_friends"
    assert text.splitlines()[found.line - 1].lstrip().startswith(("mutual_friends:", "- ", "a: "))
    assert document.answer["mutual_friends"][0] in found.message


def test_mutual_friends_needs_lists_of_friends() -> None:
    assert places(BASE + "family: mutual_friends\n") == [(7, 5, "agents[0]"), (8, 5, "agents[1]")]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"seller": "Nobody"}, "answer.seller"),
        ({"buyer": None}, "answer.buyer"),
        ({"list_price": 0}, "answer.list_price"),
        ({"list_price": "100"}, "answer.list_price"),
        ({"list_price": True}, "answer.list_price"),
        ({"seller_target": -1}, "answer.seller_target"),
        ({"buyer_target": []}, "answer.buyer_target"),
        ({"zone": None}, "answer.zone"),
        ({"zone": [1, 2]}, "answer.zone"),
        ({"zone": "yes"}, "answer.zone"),
    ],
)
def test_craigslist_refuses_a_wrong_answer(changes: dict[str, Any], path: str) -> None:
    assert only(with_answer(instance("craigslist"), **changes)).path == path


def test_craigslist_refuses_infinite_prices_and_one_person_in_both_roles() -> None:
    document = instance("craigslist")
    for key in ("list_price", "seller_target", "buyer_target"):
        wrong = document.model_copy(update={"answer": {**document.answer, key: float("nan")}})
        assert [place for place, _ in FAMILIES["craigslist"].check(wrong)] == [("answer", key)]
    assert only(with_answer(document, buyer=document.answer["seller"])).path == "answer.buyer"


def test_craigslist_is_for_two() -> None:
    document = instance("craigslist")
    third = document.agents[0].model_copy(update={"name": "Third", "facts": ()})
    text = dump_scenario(document.model_copy(update={"agents": (*document.agents, third)}))
    assert only(text).path == "agents"


def test_craigslist_without_answer_lists_all_that_lacks() -> None:
    assert {place[2] for place in places(BASE + "family: craigslist\n")} == {
        "answer.seller", "answer.buyer", "answer.list_price", "answer.seller_target", "answer.buyer_target",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("family", "parameters"),
    [
        ("mutual_friends", {"freinds": 5}),
        ("mutual_friends", {"friends": "many"}),
        ("mutual_friends", {"friends": 0}),
        ("mutual_friends", {"friends": 21}),
        ("mutual_friends", {"common": -1}),
        ("mutual_friends", {"friends": 2, "common": 3}),
        ("mutual_friends", {"attributes": "shoes"}),
        ("mutual_friends", {"attributes": " , "}),
        ("craigslist", {"zone": "maybe"}),
    ],
)
def test_bad_parameters(family: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        instance(family, **parameters)


def round_trip(document: ScenarioFile) -> LoadedScenario:
    text = dump_scenario(document)
    loaded = read(text)
    scenario, answer = document.split()
    assert loaded.scenario == scenario
    assert loaded.answer == answer
    assert loaded.scenario.hash == document.hash
    jsonschema.validate(document.model_dump(mode="json", exclude_none=True), ScenarioFile.model_json_schema())
    return loaded


seeds = st.integers(min_value=0, max_value=2**63)


@settings(deadline=None, max_examples=60)
@given(
    seed=seeds,
    friends=st.integers(1, 20),
    common=st.sampled_from([0, 1, 3]),
    attributes=st.sampled_from(["hobby,company", "town", "hobby,company,town"]),
)
def test_generated_mutual_friends(seed: int, friends: int, common: int, attributes: str) -> None:
    common = min(common, friends)
    parameters = {"friends": friends, "common": common, "attributes": attributes}
    document = instance("mutual_friends", seed, **parameters)
    loaded = round_trip(document)
    assert loaded.answer.parameters == {**parameters, "seed": seed}
    lists = [[fact.terms[0] for fact in agent.facts] for agent in loaded.scenario.agents]
    assert [len(names) for names in lists] == [friends, friends]
    assert all(len(set(names)) == friends for names in lists)
    assert set(lists[0]) & set(lists[1]) == set(loaded.answer.answer["mutual_friends"])
    assert len(loaded.answer.answer["mutual_friends"]) == common
    assert len(set(loaded.scenario.names)) == 2
    assert not set(loaded.scenario.names) & {*lists[0], *lists[1]}
    for agent in loaded.scenario.agents:
        for fact in agent.facts:
            assert fact.text.startswith(f"{fact.terms[0]} ")
    facts = [{fact.terms[0]: fact.text for fact in agent.facts} for agent in loaded.scenario.agents]
    for friend in document.answer["mutual_friends"]:
        assert facts[0][friend] == facts[1][friend]


@settings(deadline=None, max_examples=60)
@given(seed=seeds, zone=st.sampled_from(["yes", "no", "any"]))
def test_generated_craigslist(seed: int, zone: str) -> None:
    loaded = round_trip(instance("craigslist", seed, zone=zone))
    answer = loaded.answer.answer
    low, high, listed = answer["seller_target"], answer["buyer_target"], answer["list_price"]
    assert 0 < low < listed and 0 < high < listed
    assert answer["zone"] == ([low, high] if low <= high else None)
    if zone != "any":
        assert (answer["zone"] is not None) == (zone == "yes")
        assert abs(high - low) >= 0.05 * listed
    assert loaded.scenario.names == (answer["seller"], answer["buyer"])
    assert answer["seller"] != answer["buyer"]
    assert f"${listed}" in loaded.scenario.setting
    for agent, target in zip(loaded.scenario.agents, (low, high), strict=True):
        assert f"${target}" in agent.goal
        assert agent.facts[0].terms == (f"${target}",)
        assert agent.facts[0].disclosure == "never"


@settings(deadline=None, max_examples=30)
@given(family=st.sampled_from(sorted(FAMILIES)), one=seeds, other=seeds)
def test_the_seed_decides(family: str, one: int, other: int) -> None:
    family_of = FAMILIES[family]
    first = dump_scenario(family_of.generate("x", one, {}))
    assert dump_scenario(family_of.generate("x", one, {})) == first
    second = family_of.generate("x", other, {})
    assert (dump_scenario(second) == first) == (one == other)
    if one != other:
        assert second.hash != family_of.generate("x", one, {}).hash


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_many_seeds_give_many_scenarios(family: str) -> None:
    assert len({instance(family, seed).hash for seed in range(300)}) == 300


def test_parameters_may_be_given_as_text() -> None:
    typed = instance("mutual_friends", 4, friends=3, common=2)
    assert instance("mutual_friends", 4, friends="3", common="2") == typed


any_text = st.text(st.characters(exclude_categories=["Cs"]))
odd_text = st.sampled_from(["yes", "=", "<<", "1e3", "0o7", "1.", "~", "*a", "12:30", "007", ".nan", "1_000"])
numbers = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | any_text | odd_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=150)
@given(answer=st.dictionaries(st.sampled_from(["a", "yes", "1", "null", "2024-01-01"]), values, max_size=4))
def test_any_answer_is_written_and_read_back(answer: dict[str, Any]) -> None:
    document = ScenarioFile(**yaml.safe_load(BASE), answer=answer)
    assert read(dump_scenario(document)).answer.answer == document.answer


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60).filter(lambda text: text.strip())


@settings(deadline=None, max_examples=150)
@given(setting=texts, goal=texts, term=texts | st.from_regex(r"\A[0-9.:_e]{1,6}\Z"))
def test_any_text_is_written_and_read_back(setting: str, goal: str, term: str) -> None:
    base = yaml.safe_load(BASE)
    base["agents"][0] |= {"goal": goal, "facts": [{"id": "f", "text": "T", "terms": [term]}]}
    document = ScenarioFile(**(base | {"setting": setting}))
    assert read(dump_scenario(document)).scenario == document.split()[0]


@settings(deadline=None, max_examples=200)
@given(text=st.text(st.sampled_from("ab:-[]{}&*!?|>'\"#% \n\t,0.~=<1"), max_size=40))
def test_no_text_makes_anything_but_problems(text: str) -> None:
    for candidate in (text, BASE + "answer: " + text):
        try:
            read(candidate)
        except ScenarioInvalid as error:
            assert error.problems
            assert all(problem.line >= 1 and problem.column >= 1 for problem in error.problems)


@pytest.mark.parametrize(
    ("family", "solvable"),
    [
        ("mutual_friends", lambda answer: bool(answer["mutual_friends"])),
        ("craigslist", lambda answer: answer["seller_target"] <= answer["buyer_target"]),
    ],
)
def test_alternating_scenarios_have_a_solution_in_turn(family: str, solvable: Any, tmp_path: Path) -> None:
    """A player cannot be right by always agreeing; the files are the same as those of the tasks alone."""
    generate = ["scenarios", "generate", "--family", family, "--seed", "40", "-n", "4"]
    assert command([*generate, "-o", str(tmp_path), "--alternate"]) == 0
    found = [load_scenario(path) for path in sorted(tmp_path.glob("*.yaml"))]
    assert [solvable(loaded.answer.answer) for loaded in found] == [True, False, True, False]
