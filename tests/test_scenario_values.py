"""Scenario files: values stay what was typed, and the hash holds the scenario alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from localsim.conversation.scenario import PERSONA, ScenarioFile, canonical_hash
from localsim.errors import ScenarioInvalid
from localsim.scenarios.parse import load_scenario
from tests.test_scenarios import BASE, read


def test_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    file = tmp_path / "windows.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + BASE.replace("\n", "\r\n").encode())
    assert load_scenario(file).scenario == read(BASE).scenario


def test_values_stay_what_was_typed() -> None:
    text = (
        BASE
        + """\
answer: {x: yes, off: no, date: 2024-01-01, at: 12:30, code: 007, hex: 0x1F, sum: 1_000, sign: =, n: .nan, m: <<,
  whole: 12, minus: -3, part: 1.50, sure: true, nothing: null, quoted: "12", yes: 1, 5: five}
"""
    )
    assert read(text).answer.answer == {
        "x": "yes", "off": "no", "date": "2024-01-01", "at": "12:30", "code": "007", "hex": "0x1F", "sum": "1_000",
        "sign": "=", "n": ".nan", "m": "<<", "whole": 12, "minus": -3, "part": 1.5, "sure": True, "nothing": None,
        "quoted": "12", "yes": 1, "5": "five",
    }  # fmt: skip


def test_numbers_in_fields_of_text_stay_what_was_typed() -> None:
    fact = "{id: 1, text: 2024-01-01, terms: [12:30, 007, 1.50, 1400, yes, true, 1e3]}"
    text = BASE.replace("goal: Talk.", f"goal: 10, profile: {{age: 34}}, facts: [{fact}]") + "limits: {turns: 4}\n"
    scenario = read(text).scenario
    agent = scenario.agents[0]
    assert (agent.goal, agent.profile.age, scenario.limits.turns) == ("10", "34", 4)
    assert agent.facts[0].terms == ("12:30", "007", "1.50", "1400", "yes", "true", "1e3")
    assert (agent.facts[0].id, agent.facts[0].text) == ("1", "2024-01-01")


# --- the answer key ---


def test_answer_and_parameters_have_no_part_in_the_hash() -> None:
    plain = read(BASE)
    keyed = read(BASE + "answer: {x: 1}\nparameters: {seed: 2}\n")
    assert keyed.scenario.hash == plain.scenario.hash
    assert keyed.answer.answer == {"x": 1} and keyed.answer.parameters == {"seed": 2}
    assert not hasattr(keyed.scenario, "answer")
    assert read(BASE.replace("A room.", "A hall.")).scenario.hash != plain.scenario.hash
    file = ScenarioFile(**yaml.safe_load(BASE), answer={"x": 1})
    assert file.hash == file.split()[0].hash == plain.scenario.hash


def test_a_language_is_part_of_the_hash_only_where_one_is_named() -> None:
    plain = read(BASE).scenario
    data = plain.model_dump(mode="json")
    added = ("language", "moves", "phases", "game", "begun", "seed", "recall")
    before = {key: value for key, value in data.items() if key not in added}
    for field in ("leave", "closing", "stale"):
        del before["limits"][field]
    for agent in before["agents"]:
        for field in (*PERSONA, "memories"):
            del agent[field]
        for fact in agent["facts"]:
            del fact["means"]
    assert plain.hash == canonical_hash(before)
    assert read(BASE + "language: de\n").scenario.hash != plain.hash
    with pytest.raises(ScenarioInvalid, match="language"):
        read(BASE + "language: German\n")
