"""Variants of a scenario file: slots, lists of values, and the order of facts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localsim.errors import InvalidInput, ScenarioInvalid
from localsim.scenarios.parse import load_scenario, parse_scenario
from localsim.scenarios.vary import Varied

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
    with pytest.raises(InvalidInput, match="give 24 variants, so there is no variant 25"):
        parse_scenario(TEXT, "a", 25)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=4))
def test_variants_come_once_and_few_of_them_are_balanced(sizes: list[int]) -> None:
    import yaml

    slots = {
        f"s{number}": [{"": yaml.ScalarNode("tag:yaml.org,2002:str", str(value))} for value in range(size)]
        for number, size in enumerate(sizes)
    }
    found = Varied(slots, False)
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


def test_facts_stand_in_another_order() -> None:
    text = TEXT + "  facts: shuffled\n"
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


def test_braces_are_text_where_nothing_varies(tmp_path: Path) -> None:
    file = tmp_path / "plain.yaml"
    file.write_text(
        TEXT.partition("vary:")[0].replace('"{seller}"', "Ana").replace('"{buyer}"', "Ben").partition("checks:")[0]
    )
    assert load_scenario(file).scenario.setting.startswith("{seller} and {buyer}")
    with pytest.raises(InvalidInput, match="has no `vary`"):
        load_scenario(file, 2)
