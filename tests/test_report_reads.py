"""A report reads less than everything, and some things once for many: that must not change a number."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localsim import stats
from localsim.conversation.transcript import Action, Turn
from localsim.families.craigslist import reading
from localsim.families.craigslist.endings import bargain_ending, offers
from localsim.reports.compose.alone import beginning, report
from localsim.reports.evidence.rubrics import rubric_rows
from localsim.reports.figures import curves as drawing
from localsim.reports.validity import head
from localsim.reports.validity.judges import reliability
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from tests.conftest import simulated

LABELLED = Path(__file__).resolve().parent / "data" / "endings_people.jsonl"
ELLIPTIC = "p-d-131"
"""A bargain in which "It is." answers no question and is no consent: the turn counts for less than its words say."""
CACHES = (reading._prices_in, reading._read_words, reading._read_phrases)


@pytest.fixture(scope="module")
def bargains() -> list[tuple[dict[str, Any], list[Turn]]]:
    """Bargains of people with their turns."""
    rows = [row for row in map(json.loads, LABELLED.read_text(encoding="utf-8").splitlines()) if "list_price" in row]
    return [
        (row, [Turn(n, one["speaker"], Action(one["action"], one["text"])) for n, one in enumerate(row["turns"])])
        for row in (*rows[:60], *(row for row in rows if row["id"] == ELLIPTIC))
    ]


def readings(row: dict[str, Any], turns: list[Turn]) -> list[reading.Reading]:
    texts = ["", *(turn.action.text for turn in turns)]
    return [reading.read_turn(turn, row["list_price"], texts[turn.index]) for turn in turns]


def test_a_reading_that_talks_share_is_what_a_first_reading_finds(
    bargains: list[tuple[dict[str, Any], list[Turn]]],
) -> None:
    for cache in CACHES:
        cache.cache_clear()
    kept = [copy.deepcopy(readings(*each)) for each in bargains]
    for row, turns in bargains:
        offers(turns, list_price=row["list_price"])
        bargain_ending(turns, seller=row["seller"], buyer=row["buyer"], list_price=row["list_price"])
    assert [readings(*each) for each in bargains] == kept, "a bargain changes no reading"
    assert sum(cache.cache_info().hits for cache in CACHES) > 1000
    for (row, turns), found in zip(bargains, kept, strict=True):
        for cache in CACHES:
            cache.cache_clear()
        assert readings(row, turns) == found, row["id"]


def test_where_nothing_differs_every_flip_of_signs_is_as_far() -> None:
    drawn = stats.sign_flips(np.array([[0.0] * 20, [1.0] * 20]))
    assert [*stats.sign_flips(np.zeros((2, 20)))] == [drawn[0], 1.0] == [1.0, 1.0]
    assert [*stats.sign_flips(np.zeros((1, 3)))] == [1.0]
    assert drawn[1] == stats.least_p(20)


def test_curves_are_the_same_with_all_turns(run: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = simulated(store, "scripted:friends", ("agents",), range(1, 3))
    found = [drawing.curves(store, first), drawing.curves(store, run)]
    assert {curve.name for curves in found for curve in curves} >= {"named", "offers"}
    monkeypatch.setattr(drawing, "_reads_turns", lambda _: True)
    assert [drawing.curves(store, first), drawing.curves(store, run)] == found


def test_what_judges_found_is_in_the_report_only_if_they_were_asked(run: str, store: Store) -> None:
    assert report(store, run).judges == report(store, run).rubrics == []
    with store.writing() as connection:
        connection.execute(
            "INSERT INTO scores (episode_id, evaluator, version, name, agent, value, reason, turns_json) "
            "SELECT episode_id, 'judge.toy', '1', 'goal', '', episode_index + 3, '', '[]' FROM episodes"
        )
    data = report(store, run)
    assert data.judges == reliability(store, [run]) != []
    assert data.rubrics == rubric_rows(store, run) != []


def test_the_columns_that_are_left_out_leave_the_numbers_as_they_are(run: str, store: Store) -> None:
    data = beginning(store, run)
    whole = report(store, run)
    assert head.answer(data) and data.comparison == whole.comparison and data.headline == whole.headline
    counted = store.rows(
        "SELECT episode_id, count(*) AS turns, count(*) FILTER (truncated) AS cut FROM v_turns GROUP BY 1 ORDER BY 1"
    )
    own = sorted(queries.counts(store, run), key=lambda row: row.episode_id)
    assert [(row.episode_id, row.turns, row.truncated) for row in own] == [tuple(row.values()) for row in counted]
    every = {row.episode_id: row.value for row in queries.scores(store, run) if row.name == "success"}
    assert queries.success(store, run) == every != {}
