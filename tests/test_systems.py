"""The page of systems is generated from rows whose files and tests exist; tags are derived from the scenario."""

from __future__ import annotations

from typing import Any

import pytest

from localsim.conversation.scenario import LoadedScenario
from localsim.families.games import SHIPPED
from localsim.runs.plan import Plan
from localsim.runs.scripted import simulated
from localsim.scenarios.find import find_scenarios
from localsim.scenarios.tagging import tags_of
from scripts import game_docs
from tests.conftest import generated

GAMES = {1, 5, 21, 27, 29, 30, 33, 37, 55, 56, 57}
PEOPLE = {4, 6, 9, 14, 15, 17, 18, 19, 32, 34, 45, 46, 47, 53, 60}
MINDS = {3, 7, 11, 26, 39, 41, 44, 52, 58}
REQUIRED = GAMES | PEOPLE | MINDS
TOGETHER = ("interaction", "structure", "strategy", "protocol")


@pytest.mark.parametrize("row", game_docs.systems(), ids=lambda row: row["name"])
def test_a_row_names_files_and_tests_that_exist(row: dict[str, Any]) -> None:
    assert row["files"] and row["tests"] and game_docs.missing(row) == []
    assert all(row[key] for key in ("name", "mechanism", "check", "limits"))


def test_every_system_that_is_claimed_has_a_row() -> None:
    assert {row["number"] for row in game_docs.systems()} >= REQUIRED


def test_a_row_is_marked_partial_by_its_field_and_says_what_is_missing() -> None:
    """`limits` alone never marks a row, so that a count of complete systems can be made."""
    page = {line.split(" | ")[0].removeprefix("| "): line for line in game_docs.systems_page().splitlines()}
    for row in game_docs.systems():
        assert row.get("partial") in (None, True) and not row["limits"].startswith("partial")
        assert ("| partial: " in page[row["name"]]) == ("partial" in row)
    partial = {row["number"] for row in game_docs.systems() if "partial" in row}
    assert not PEOPLE & partial, "complete, but for other people and less data"
    assert GAMES & partial == {21, 30, 56}


def test_a_row_without_its_test_is_found() -> None:
    row = game_docs.systems()[0]
    assert game_docs.missing(row | {"tests": ["test_nobody_wrote"], "files": ["none.py"]}) == [
        "none.py",
        "test_nobody_wrote",
    ]


def test_a_row_whose_test_was_skipped_or_failed_is_not_proved() -> None:
    row = game_docs.systems()[0]
    test, name = row["tests"][0], row["name"]
    assert game_docs.unproved({}) == game_docs.unproved({test: {"passed"}, "test_other": {"skipped"}}) == []
    for ends in ({"skipped"}, {"failed"}, {"passed", "failed"}):
        assert game_docs.unproved({test: ends}) == [f"{name}: {test}"]


def with_table(table: dict[str, list[int]]) -> LoadedScenario:
    loaded = generated("matrix")
    game = {"public": {**loaded.scenario.game["public"], "table": table}}
    return LoadedScenario(loaded.scenario.model_copy(update={"game": game}), loaded.answer, loaded.path)


@pytest.mark.parametrize(
    ("table", "interaction"),
    [
        ({"JJ": [1, -1], "JF": [-1, 1], "FJ": [-1, 1], "FF": [1, -1]}, "competition"),
        ({"JJ": [5, 5], "JF": [0, 0], "FJ": [0, 0], "FF": [3, 3]}, "cooperation"),
        ({"JJ": [8, 8], "JF": [0, 10], "FJ": [10, 0], "FF": [5, 5]}, "coopetition"),
    ],
)
def test_a_game_is_what_its_payoffs_say(table: dict[str, list[int]], interaction: str) -> None:
    tags = tags_of(with_table(table))
    assert [tags[name] for name in TOGETHER] == [(interaction,), ("peer-to-peer",), ("rule-based",), ("together",)]


@pytest.mark.parametrize(
    ("name", "tags"),
    [
        ("mutual_friends_01", ("cooperation", "peer-to-peer", "model-based", "in_turn")),
        ("craigslist_01", ("competition", "peer-to-peer", "role-based", "in_turn")),
        ("planning_a_trip", ("", "distributed", "model-based", "in_turn")),
        ("peer_review_three", ("", "centralised", "role-based", "in_turn together")),
        ("balloon_plain", ("competition", "peer-to-peer", "role-based", "in_turn")),
        ("balloon_coach", ("competition", "centralised", "role-based", "in_turn")),
        ("auction_first", ("competition", "distributed", "rule-based", "together")),
        ("restaurant_four", ("cooperation", "distributed", "rule-based", "in_turn together")),
        ("restaurant_silent", ("cooperation", "distributed", "rule-based", "together")),
        ("jury_addressed", ("cooperation", "distributed", "rule-based", "addressed together")),
    ],
)
def test_a_talk_has_tags_from_its_file_and_family(name: str, tags: tuple[str, ...]) -> None:
    found = tags_of(find_scenarios([name])[0])
    assert tuple(" ".join(found.get(each, ())) for each in TOGETHER) == tags


def beats_of(name: str) -> set[int]:
    """How many act at the same time in a game, 2 for more, as its sensible players play it."""
    loaded = LoadedScenario(*SHIPPED[name]().split(), name)
    kept = simulated(Plan((loaded,), ("agents",), "scripted"))
    return {min(turn.beat_size, 2) for each in kept.episodes.values() for turn in each.transcript.acts}


@pytest.mark.parametrize("name", SHIPPED)
def test_the_protocol_of_a_game_is_the_one_that_is_played(name: str) -> None:
    said = tags_of(LoadedScenario(*SHIPPED[name]().split(), name))["protocol"]
    assert {2 if word == "together" else 1 for word in said} == beats_of(name)
