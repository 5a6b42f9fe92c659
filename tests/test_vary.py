"""Variants of a scenario file: slots, lists of values, and the order of facts."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from localsim.__main__ import run as command
from localsim.errors import InvalidInput, ScenarioInvalid
from localsim.scenarios.find import find_scenarios
from localsim.scenarios.parse import load_scenario, parse_scenario
from localsim.scenarios.vary import Varied
from localsim.store.database import Store

TEXT = """version: 1
id: lamp
title: A lamp for {buyer}
info: {what: A test.}
setting: "{seller} and {buyer} talk about a {thing}."
agents:
  - name: "{seller}"
    goal: Sell it for {deal.most} dollars.
    facts:
      - {id: floor, text: "{seller} needs {deal.least} dollars.", terms: ["{deal.least}"]}
      - {id: crack, text: The foot is cracked., terms: [cracked]}
      - {id: old, text: It is old., terms: [old]}
  - {name: "{buyer}", goal: Buy it.}
checks:
  - {name: fair, price_agreed: ["{deal.least}", "{deal.most}"]}
vary:
  seller: [Ana, Bea]
  buyer: [Carl, Dan, Emil]
  thing: [lamp, desk]
  deal: [{least: 10, most: 20}, {least: 30, most: 45}]
"""


def test_a_variant_fills_every_slot() -> None:
    found = parse_scenario(TEXT, "lamp.yaml", 2)
    scenario = found.scenario
    seller, buyer = scenario.names
    assert scenario.id == "lamp-2" and found.path == "lamp.yaml@2"
    assert scenario.title == f"A lamp for {buyer}" and scenario.setting.startswith(f"{seller} and {buyer} talk")
    least, most = found.answer.checks[0].price_agreed or (0, 0)
    assert scenario.agents[0].goal == f"Sell it for {most:.0f} dollars." and (least, most) in {(10, 20), (30, 45)}
    assert scenario.agents[0].facts[0].terms == (f"{least:.0f}",)
    assert found.answer.parameters == {
        "variant": 2,
        "seller": seller,
        "buyer": buyer,
        "thing": scenario.setting.split()[-1].rstrip("."),
        "deal.least": least,
        "deal.most": most,
    }


def test_all_variants_differ_and_are_the_same_every_time() -> None:
    one, two = ([parse_scenario(TEXT, "a", number).hash for number in range(1, 25)] for _ in range(2))
    assert one == two and len(set(one)) == 24
    assert parse_scenario(TEXT, "a").scenario == parse_scenario(TEXT, "a", 1).scenario, "a name alone is the first"
    with pytest.raises(ScenarioInvalid, match="the lists give 24 variants, so there is no variant 25") as caught:
        parse_scenario(TEXT, "a", 25)
    assert caught.value.problems[0].path == "vary" and caught.value.problems[0].line == TEXT.count("\n") - 3


@given(st.lists(st.integers(1, 12), min_size=1, max_size=4))
def test_variants_come_once_and_few_of_them_are_balanced(sizes: list[int]) -> None:
    slots = {
        f"s{number}": [{"": yaml.ScalarNode("tag:yaml.org,2002:str", str(value))} for value in range(size)]
        for number, size in enumerate(sizes)
    }
    found = Varied(slots)
    every = [tuple(node.value for node in found.chosen(k).values()) for k in range(1, min(found.total, 600) + 1)]
    assert len(set(every)) == len(every)
    if found.total <= 600:
        for position, size in enumerate(sizes):
            counts = Counter(values[position] for values in every)
            assert set(counts.values()) == {found.total // size}


def test_twenty_of_many_variants_have_each_value_about_equally_often() -> None:
    text = TEXT.replace("[lamp, desk]", "[lamp, desk, chair, sofa, clock]")
    seen = [parse_scenario(text, "a", number).answer.parameters for number in range(1, 21)]
    for slot, size in (("seller", 2), ("buyer", 3), ("thing", 5), ("deal.least", 2)):
        counts = Counter(values[slot] for values in seen)
        assert len(counts) == size and max(counts.values()) - min(counts.values()) <= 3, counts


def test_numbers_stay_as_they_were_typed() -> None:
    text = (
        TEXT.replace("least: 10,", "least: 1.50,")
        .replace("least: 30,", "least: 1.50,")
        .replace("id: lamp", "id: '{thing}'")
    )
    found = parse_scenario(text, "lamp.yaml", 3)
    assert found.scenario.agents[0].facts[0].terms == ("1.50",) and found.scenario.agents[0].facts[0].text.count("1.50")
    assert (found.answer.checks[0].price_agreed or ())[0] == 1.5 and found.answer.parameters["deal.least"] == 1.5


@pytest.mark.parametrize("sizes", [[6, 5, 3, 4, 2], [4, 6, 5, 6, 6, 4], [2, 2, 2, 2], [3, 4, 6], [10, 10], [7]])
def test_the_values_of_a_list_are_about_equally_frequent_in_few_variants(sizes: list[int]) -> None:
    slots = {f"s{n}": [{"": yaml.ScalarNode("", str(value))} for value in range(size)] for n, size in enumerate(sizes)}
    found = Varied(slots)
    for most in (12, 20):
        every = [[node.value for node in found.chosen(k).values()] for k in range(1, min(most, found.total) + 1)]
        for column, size in zip(zip(*every, strict=True), sizes, strict=True):
            counts = Counter(column)
            spread = max(counts.values()) - (min(counts.values()) if len(counts) == size else 0)
            assert spread <= max(3, most // size), (most, size, counts)


def test_facts_stand_in_another_order() -> None:
    text = TEXT + "  facts: shuffled\n"
    with pytest.raises(ScenarioInvalid, match="no agent has two facts"):
        parse_scenario(re.sub(r"      - .id: (crack|old).*\n", "", text), "a")
    with pytest.raises(ScenarioInvalid, match="give 144 variants"):
        parse_scenario(text, "a", 145)
    orders = {
        tuple(fact.id for fact in parse_scenario(text, "a", number).scenario.agents[0].facts) for number in range(1, 30)
    }
    assert len(orders) > 3 and all(sorted(order) == ["crack", "floor", "old"] for order in orders)


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("{thing}.", "{thingy}.", "setting", "{thingy} has no values under `vary`"),
        ("{thing}.", "lamp.", "vary.thing", "no text has the slot {thing}"),
        ("[lamp, desk]", "lamp", "vary.thing", "must be a list of values"),
        ("[lamp, desk]", "[]", "vary.thing", "must be a list of values"),
        ("[lamp, desk]", "[lamp, [desk]]", "vary.thing[1]", "must be a text or number"),
        ("{least: 30, most: 45}", "{least: 30}", "vary.deal[1]", "the same words as the first value"),
        ("  thing: [", "  Thing: [", "vary.Thing", "a slot is a word of small letters"),
        ("  thing: [lamp, desk]", "  facts: [a]", "vary.facts", "can only be `shuffled`"),
        ("[lamp, desk]", "['lamp of {buyer}', desk]", "vary.thing[0]", "a value is not filled itself"),
        ("{thing}.", "{ thing }.", "setting", "{ thing } has no values"),
        ("{thing}.", "{Thing}.", "setting", "{Thing} has no values"),
        ("[lamp, desk]", "[[lamp], desk]", "vary.thing[0]", "must be a text or number"),
        ("id: lamp", "id: lamp\nanswer: {'{buyer}': 1}", "answer.{buyer}", "a key is not filled"),
        ("id: lamp", "id: lamp\nparameters: {thing: 1}", "parameters.thing", "is written here by `vary`"),
        ("  thing: [", "  variant: [a, b]\n  thing: [", "vary.variant", "choose another"),
    ],
)
def test_a_defect_is_named_with_its_place(old: str, new: str, place: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(ScenarioInvalid) as caught:
        parse_scenario(TEXT.replace(old, new, 1), "lamp.yaml")
    problem = caught.value.problems[0]
    assert problem.path == place and message in problem.message, caught.value.problems
    assert problem.line > 1


def test_a_value_that_does_not_suit_its_field_is_named_where_the_slot_is() -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        parse_scenario(TEXT.replace("least: 10", "least: ten").replace("least: 30", "least: ten"), "lamp.yaml")
    assert any(problem.path.startswith("checks[0].price_agreed") for problem in caught.value.problems)


def test_validate_tries_every_variant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lamp.yaml"
    file.write_text(TEXT)
    assert command(["scenarios", "validate", str(file)]) == 0
    file.write_text(TEXT.replace("[Carl, Dan, Emil]", "[Carl, Dan, Ana]"))
    assert command(["scenarios", "validate", str(file)]) == 3
    assert "agent name given more than once" in capsys.readouterr().err


def test_braces_are_text_where_nothing_varies(tmp_path: Path) -> None:
    file = tmp_path / "plain.yaml"
    file.write_text(
        TEXT.partition("vary:")[0].replace('"{seller}"', "Ana").replace('"{buyer}"', "Ben").partition("checks:")[0]
    )
    assert load_scenario(file).scenario.setting.startswith("{seller} and {buyer}")
    with pytest.raises(InvalidInput, match="has no `vary`"):
        load_scenario(file, 2)


def test_a_range_of_variants_is_named_in_a_word(tmp_path: Path) -> None:
    file = tmp_path / "lamp.yaml"
    file.write_text(TEXT)
    found = find_scenarios([f"{file}@1..20"])
    assert [loaded.scenario.id for loaded in found] == [f"lamp-{number}" for number in range(1, 21)]
    assert [loaded.path for loaded in find_scenarios([f"{file}@2-3"])] == [f"{file}@2", f"{file}@3"]
    assert find_scenarios([str(file)])[0].scenario.id == "lamp-1"
    assert [each.scenario.id for each in find_scenarios(["the_ferry_home@2..3"])] == [
        "the_ferry_home-2",
        "the_ferry_home-3",
    ]
    for wrong, said in (("@3..1", "numbers go from 1"), ("@0..4", "numbers go from 1"), ("@25", "give 24 variants")):
        with pytest.raises(InvalidInput, match=said):
            find_scenarios([f"{file}{wrong}"])
    with pytest.raises(InvalidInput, match="has no `vary`"):
        find_scenarios(["mutual_friends_01@2"])
    with pytest.raises(InvalidInput, match="has no variants"):
        find_scenarios(["ultimatum_plain@2"])


def test_twenty_variants_give_intervals(tmp_path: Path) -> None:
    file = tmp_path / "lamp.yaml"
    file.write_text(TEXT)
    database = str(tmp_path / "a.duckdb")
    assert command(["run", f"{file}@1..6", "--mode", "agents,mindreaders", "-m", "scripted", "--db", database]) == 0
    (row,) = Store(Path(database)).rows("SELECT count(DISTINCT scenario_hash) AS n FROM v_episodes")
    assert row["n"] == 6
