"""Leaks know who was told: a whisper tells its readers alone, and who passes it on is no mindreader."""

from __future__ import annotations

import pytest

from localsim.conversation.episode import Score, Subject
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.evaluators.leaks import evaluation, readers_of, turns_of
from localsim.leakage.detector import Finding, Weights
from localsim.leakage.pairs import PrivateFact
from localsim.leakage.track import Leakage, Readers, Row, decided
from localsim.scenarios.parse import parse_scenario

FACT = PrivateFact("ana_1", "Ana", "Ana sold the boat.")
SURE = Finding("disclosed", 0.99, 0.9, "sold the boat")
PARTY = """
version: 1
id: party
title: A party
info: {what: Four people talk.}
setting: Four people meet.
agents:
  - {name: Ana, goal: Talk., facts: [{id: ana_1, text: Ana sold the boat., disclosure: never}]}
  - {name: Bo, goal: Talk.}
  - {name: Cy, goal: Talk.}
  - {name: Di, goal: Talk.}
moves: [{name: to, tell: To whisper, values: [{agents: several}], text: must, readers: named}]
"""


def told(*turns: tuple[str, tuple[str, ...] | None]) -> Leakage:
    """A talk in which each turn says the fact to its readers."""
    rows: list[Row] = [(FACT, number, speaker, SURE) for number, (speaker, _) in enumerate(turns)]
    readers: Readers = [heard for _, heard in turns]
    return decided(rows, Weights.read(), readers=readers)


@pytest.mark.parametrize(
    ("turns", "kinds", "leaks"),
    [
        ([("Ana", None), ("Bo", None)], ["self", "repeat"], [0]),
        ([("Bo", None), ("Ana", None), ("Cy", None)], ["omniscient", "self", "repeat"], [0]),
        ([("Ana", ("Ana", "Bo")), ("Bo", ("Bo", "Cy")), ("Cy", None)], ["self", "passed_on", "passed_on"], [0]),
        ([("Ana", ("Ana", "Bo")), ("Cy", None)], ["self", "omniscient"], [0, 1]),
        ([("Ana", ("Ana", "Bo")), ("Bo", ("Bo", "Ana"))], ["self", "repeat"], [0]),
        ([("Ana", ("Ana", "Bo")), ("Ana", ("Ana", "Cy")), ("Cy", ("Cy", "Bo"))], ["self", "self", "repeat"], [0]),
        ([("Cy", ("Cy", "Di")), ("Di", None), ("Bo", None)], ["omniscient", "passed_on", "repeat"], [0]),
        ([("Ana", ("Ana",)), ("Bo", None)], ["self", "omniscient"], [0, 1]),
    ],
)
def test_the_kind_of_a_leak_depends_on_who_was_told(
    turns: list[tuple[str, tuple[str, ...] | None]], kinds: list[str], leaks: list[int]
) -> None:
    talk = told(*turns)
    assert list(talk.kinds) == kinds and [leak.turn for leak in talk.leaks] == leaks


def test_gossip_is_counted_for_each_agent_where_turns_are_private() -> None:
    loaded = parse_scenario(PARTY, "party.yaml")
    turns = (
        Turn(0, "Ana", Action("to", "I sold the boat.", ("Bo",)), readers=("Ana", "Bo")),
        Turn(1, "Bo", Action("to", "She sold the boat.", ("Cy", "Di")), readers=("Bo", "Cy", "Di")),
        Turn(2, "Cy", Action("speak", "Ana sold the boat.")),
    )
    subject = Subject("e", loaded.scenario, loaded.answer, "agents", 0, 1, Transcript(turns))
    rows: list[Row] = [(FACT, turn.index, turn.speaker, SURE) for turn in turns]
    talk = decided(rows, Weights.read(), readers=readers_of(subject))
    found = evaluation(subject, turns_of(subject), talk)
    assert _values(found.scores, "passed_on") == {"Ana": 0, "Bo": 1, "Cy": 0, "Di": 0}, "everybody knew it then"
    assert _values(found.scores, "disclosed_facts")["Ana"] == _values(found.scores, "early_disclosures")["Ana"] == 1
    assert set(_values(found.scores, "omniscient_leaks").values()) == {0}
    plain = Subject("e", loaded.scenario, loaded.answer, "agents", 0, 1, Transcript(turns[2:]))
    assert _values(evaluation(plain, turns_of(plain), decided([], Weights.read())).scores, "passed_on") == {}


def _values(scores: tuple[Score, ...], name: str) -> dict[str | None, float | None]:
    return {score.agent: score.value for score in scores if score.name == name}
