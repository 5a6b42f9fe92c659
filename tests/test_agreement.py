"""Results of annotations: agreement among raters, with judges and with the detector, and labels."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localsim.annotation import agreement as agreements
from localsim.annotation import measures
from localsim.annotation.agreement import agreement, sentences
from localsim.annotation.items import (
    PairItem,
    disclosures_from,
    talks_of,
)
from localsim.annotation.labels import labels
from localsim.annotation.results import Agreement
from localsim.conversation.episode import MODES, Score
from localsim.errors import InvalidInput
from localsim.evaluators.judge import DIMENSIONS
from localsim.leakage.pairs import LabelledPair, read_labelled
from localsim.paths import json_text
from localsim.store.database import Store
from localsim.store.records import Record, score_records
from tests.rated import best, detected, invoke
from tests.rated import given as answers_given

# ---- what it comes to ----------------------------------------------------------------------------------------------

# The example of https://en.wikipedia.org/wiki/Krippendorff%27s_alpha: three coders, fifteen units.
CODERS = ("*****34121133*3", "1*213343*******", "**21344*21133*4")
UNITS = [[int(mark) for mark in unit if mark != "*"] for unit in zip(*CODERS, strict=True)]


def test_alpha_of_a_published_example() -> None:
    assert measures.alpha(UNITS, "nominal").alpha == pytest.approx(0.691358, abs=1e-6)
    assert measures.alpha(UNITS, "interval").alpha == pytest.approx(0.810845, abs=1e-6)
    assert measures.alpha(UNITS, "nominal").items == sum(len(unit) > 1 for unit in UNITS)


def test_alpha_needs_two_raters_and_two_values() -> None:
    assert measures.alpha([["a"], ["b"]], "nominal") == measures.Alpha(None, 0, 0)
    assert measures.alpha([["a", "a"], ["a", "a"]], "nominal").alpha is None
    assert measures.alpha([["a", "a"], ["b", "b"]], "nominal").alpha == 1
    assert measures.alpha([], "interval").alpha is None


def test_a_preference_has_the_exact_p_and_the_interval_of_scenarios() -> None:
    found = measures.preference({str(number): [float(number < 8)] for number in range(10)})
    assert found.p == pytest.approx(2 * (45 + 10 + 1) / 1024), "both tails of ten throws of a coin"
    assert (found.first_chosen, found.scenarios) == (pytest.approx(0.8), 10)
    assert 0.4 < found.low < 0.6 and 0.9 < found.high <= 1
    alone = measures.preference({"a": [1.0] * 20})
    assert (alone.first_chosen, alone.low, alone.p) == (1, None, None), "one scenario, however many pairs"
    assert measures.preference({}) == (0, None, None, None, None)


@given(st.dictionaries(st.text(max_size=2), st.lists(st.floats(0, 1), min_size=1, max_size=4), min_size=1, max_size=9))
def test_more_raters_who_say_the_same_change_nothing(groups: dict[str, list[float]]) -> None:
    twice = {scenario: [*values, *values] for scenario, values in groups.items()}
    one, other = measures.preference(groups), measures.preference(twice)
    assert other == tuple(map(pytest.approx, one))
    if one.low is not None:
        assert 0 <= one.low <= one.first_chosen <= one.high <= 1 and one.low < one.high


def test_bradley_terry_has_the_odds_of_two_and_the_order_of_three() -> None:
    two = measures.strengths(MODES, [("script", "agents")] * 30 + [("agents", "script")] * 10)
    assert two.n == 40 and set(two.by_mode) == {"script", "agents"}
    assert two.by_mode["script"] - two.by_mode["agents"] == pytest.approx(1.0986, abs=0.01), "log 3"
    wins = {
        ("script", "agents"): 8,
        ("agents", "script"): 2,
        ("agents", "mindreaders"): 7,
        ("script", "mindreaders"): 9,
    }
    three = measures.strengths(MODES, [pair for pair, count in wins.items() for _ in range(count)]).by_mode
    assert three["script"] > three["agents"] > three["mindreaders"] and sum(three.values()) == pytest.approx(0)
    assert measures.strengths(MODES, []) == measures.Strengths(0, None)
    always = measures.strengths(MODES, [("script", "agents")] * 5).by_mode
    assert 0 < always["script"] < 10, "finite, though nothing was ever lost"


def test_kappa_of_a_published_example() -> None:
    # https://en.wikipedia.org/wiki/Cohen%27s_kappa: 20 and 15 equal, 5 and 10 not.
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert measures.kappa(pairs) == pytest.approx(0.4)
    assert measures.kappa([]) is None and measures.kappa([("y", "y")]) is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), max_size=30))
def test_kappa_is_what_its_definition_says(pairs: list[tuple[str, str]]) -> None:
    n = len(pairs)
    by_chance = sum(
        sum(one == label for one, _ in pairs) * sum(other == label for _, other in pairs) for label in "abc"
    )
    kappa = measures.kappa(pairs)
    if by_chance == n**2:
        assert kappa is None, "chance alone always agrees, or there is nothing to agree on"
    else:
        equal = n * sum(one == other for one, other in pairs)
        assert kappa == pytest.approx((equal - by_chance) / (n**2 - by_chance))


def test_small_measures() -> None:
    assert measures.correlation([(1, 10), (2, 20), (3, 15), (4, 30)]).rho == pytest.approx(0.8)
    assert measures.correlation([(1, 1), (2, 2)]) == (None, None, 2)
    assert measures.correlation([(1, 1), (2, 1), (3, 1)]).rho is None
    assert measures.majority([1, 1, 2]) == (True, 1)
    assert measures.majority([1, 2]) == measures.majority([]) == (False, None)
    found = measures.overlap({1, 2, 3}, {2, 3, 4, 5})
    assert (found.precision, found.recall, found.f1) == (0.5, pytest.approx(2 / 3), pytest.approx(4 / 7))
    assert measures.overlap(set(), set()).f1 is None


def test_preferences_of_a_run(store: Store, run: str) -> None:
    answers_given(store, run, "ann", best("agents", "mindreaders", "script"))
    answers_given(store, run, "bob", best("agents", "script", "mindreaders"))
    found = agreement(store, run).pairs
    assert (found.n, found.items, found.raters) == (24, 12, 2), "attention items are no judgements"
    assert (found.scenarios, found.kinds) == (2, {"person": 2})
    rates = {(row.first, row.second): row for row in found.rates}
    assert set(rates) == {("script", "agents"), ("script", "mindreaders"), ("agents", "mindreaders")}
    lost, drawn = rates["script", "agents"], rates["script", "mindreaders"]
    assert (lost.first_wins, lost.second_wins, lost.ties, lost.first_chosen) == (0, 8, 0, 0)
    assert (lost.decided, lost.items, lost.scenarios) == (8, 4, 2)
    assert lost.p == 0.5 and lost.p_holm == 1, "two scenarios, however many raters and pairs"
    assert lost.low == 0 and lost.high == 1, "two scenarios tell next to nothing"
    assert (drawn.first_wins, drawn.second_wins, drawn.p) == (4, 4, 1)
    assert found.strengths.n == 24
    assert found.strengths.by_mode["agents"] == max(found.strengths.by_mode.values())
    # Both choose agents on 8 pairs; on 4 one says script and the other mindreaders. Of 24 marks 16 are agents, 4 and 4:
    # expected disagreement (24*24 - 16*16 - 4*4 - 4*4) / (24*23) = 288/552, observed 8/24.
    assert found.alpha == measures.Alpha(pytest.approx(1 - (8 / 24) / (288 / 552)), 12, 24)


def test_ties_are_left_out_of_rates_and_named(store: Store, run: str) -> None:
    answers_given(store, run, "ann", lambda item: item.expected or 0, ties=True)
    found = agreement(store, run).pairs
    assert [(row.ties, row.decided, row.p) for row in found.rates] == [(4, 0, None)] * 3
    assert found.strengths.by_mode is None and found.alpha.alpha is None
    assert any("4 ties left out" in line for line in sentences(agreement(store, run)))


def test_raters_who_do_not_read_are_named_and_left_out(store: Store, run: str) -> None:
    def careless(item: PairItem) -> int:
        return 3 - item.expected if item.expected else best("script", "agents", "mindreaders")(item)

    answers_given(store, run, "ann", best("agents", "mindreaders", "script"))
    answers_given(store, run, "bob", careless)
    found = agreement(store, run)
    attention = {row.rater: row for row in found.pairs.attention}
    assert (attention["ann"].passed, attention["ann"].inattentive) == (1, False)
    assert (attention["bob"].failed, attention["bob"].inattentive) == (1, True)
    assert found.pairs.left_out == ["bob"] and found.pairs.n == 12
    assert any("bob fails 1 of 1 attention item and is left out" in line for line in sentences(found))
    everybody = agreement(store, run, drop_inattentive=False).pairs
    assert everybody.n == 24 and everybody.left_out == []


def test_judges_of_naturalness_beside_raters(store: Store, run: str) -> None:
    for rater in ("ann", "bob", "cy"):
        answers_given(store, run, rater, best("agents", "script", "mindreaders"))
    # The judge prefers script to all: right about script and mindreaders (4), wrong about script and agents (4);
    # of agents and mindreaders it has no stable opinion.
    records: list[Record] = []
    for talk in talks_of(store, run):
        mode = talk.episode.mode
        for other in MODES:
            if other != mode:
                value = 1.0 if mode == "script" else 0.0 if other == "script" else 0.5
                score = Score(f"natural_against_{other}", value)
                records += score_records(talk.episode.episode_id, "naturalness.toy", "1", [score])
    store.take_in(records)
    (judge,) = agreement(store, run).pairs.judges
    assert (judge.judge, judge.n, judge.decided, judge.equal) == ("toy", 12, 8, 0.5)
    # people: 4 agents, 4 script; the judge: 8 script. Equal 1/2, by chance 1/2.
    assert judge.kappa == pytest.approx(0)


def test_dimensions_beside_a_judge(store: Store, run: str) -> None:
    level = {"script": 2, "agents": 5, "mindreaders": 8}

    def mark(bias: int) -> Any:
        return lambda item: {**dict.fromkeys(DIMENSIONS, 0), "goal": level[item.episode.mode] + bias, "secret": None}

    answers_given(store, run, "ann", mark(0), "dimensions")
    answers_given(store, run, "bob", mark(1), "dimensions")
    records: list[Record] = []
    for talk in talks_of(store, run):
        scores = [
            Score("goal", float(level[talk.episode.mode]) / 2, agent=name) for name in talk.episode.scenario.names
        ]
        records += score_records(talk.episode.episode_id, "judge.toy", "2", scores)
    store.take_in(records)
    found = agreement(store, run).dimensions
    by_name = {row.dimension: row for row in found.by_dimension}
    goal = by_name["goal"]
    assert goal.means == {mode: measures.Mean(level[mode] + 0.5, 16) for mode in MODES} and goal.n == 48
    marks = [[value, value + 1] for value in level.values() for _ in range(8)]
    assert goal.alpha.alpha == pytest.approx(interval_alpha(marks)) and goal.alpha.items == 24
    assert list(map(astuple, goal.judges)) == [("toy", pytest.approx(1), pytest.approx(0, abs=1e-6), 24)]
    assert by_name["secret"].n == 0 and by_name["secret"].alpha.alpha is None
    assert by_name["knowledge"].judges[0].rho is None, "the judge did not judge it"
    assert any("goal: script 2.50 (n 16)" in line for line in sentences(agreement(store, run)))


def interval_alpha(units: Sequence[Sequence[float]]) -> float:
    """Alpha by its definition, for units with two marks each: 1 - observed / expected squared differences."""
    marks = [mark for unit in units for mark in unit]
    observed = sum((one - other) ** 2 for one, other in units) / len(units)
    pairs = [(one - other) ** 2 for place, one in enumerate(marks) for other in marks[:place]]
    return 1 - observed / (sum(pairs) / len(pairs))


def marks_of(bo: int | None) -> Any:
    """A rater of disclosures who marks Bo's fact in the talk and nothing elsewhere."""

    def choose(item: Any) -> dict[str, int | None]:
        return {fact.id: bo if fact.id == "bo_1" else None for fact in item.facts}

    return choose


def test_the_detector_beside_raters(store: Store, run: str) -> None:
    facts = {item.episode.episode_id: len(item.facts) for item in disclosures_from(talks_of(store, run), "ann")}
    for rater, turn in (("ann", 1), ("bob", 1), ("cy", None)):
        answers_given(store, run, rater, marks_of(turn), "disclosures")
    before = agreement(store, run).disclosures
    assert before.detector is None and before.undecided == 0
    assert before.facts == sum(facts.values()) and before.disclosed == 6
    detected(store, run, {"script": 1, "agents": 3})
    found = agreement(store, run).disclosures.detector
    # People: turn 1 in six talks. The detector: turn 1 in two (right), turn 3 in two (wrong), nothing in two.
    assert (found.true, found.said, found.both) == (6, 4, 2)
    assert (found.precision, found.recall, found.f1) == (0.5, pytest.approx(1 / 3), pytest.approx(0.4))
    assert found.n == sum(facts.values()) and found.first_turn == pytest.approx(1 - 4 / sum(facts.values()))
    assert any("precision 0.50 (of 4)" in line for line in sentences(agreement(store, run)))


def test_raters_without_a_majority_decide_nothing(store: Store, run: str) -> None:
    for rater, turn in (("ann", 1), ("bob", 2)):
        answers_given(store, run, rater, marks_of(turn), "disclosures")
    found = agreement(store, run).disclosures
    assert found.undecided == 6 and found.disclosed == 0 and found.alpha.items == found.facts


def test_a_run_without_annotations_tells_nothing(store: Store, run: str) -> None:
    found = agreement(store, run)
    assert found == Agreement(run, [])
    assert sentences(found)[-1] == "Nothing is annotated yet."


def test_conversations_of_people_are_rated_like_others(store: Store, run: str) -> None:
    with store.writing() as connection:
        connection.execute("UPDATE episodes SET mode = 'people' WHERE mode = 'mindreaders'")
    answers_given(store, run, "ann", best("people", "agents", "script"))
    answers_given(store, run, "ann", lambda _: dict.fromkeys(DIMENSIONS, 0), "dimensions")
    answers_given(store, run, "ann", marks_of(0), "disclosures")
    found = agreement(store, run)
    rates = {(row.first, row.second): row.first_chosen for row in found.pairs.rates}
    assert rates == {("script", "agents"): 0, ("script", "people"): 0, ("agents", "people"): 0}
    assert found.dimensions.by_dimension[0].means["people"].n > 0
    assert any(line.startswith("  agents over people: 0%") for line in sentences(found))


def test_what_agreement_tells_is_json(store: Store, run: str) -> None:
    answers_given(store, run, "ann", best(*MODES))
    answers_given(store, run, "ann", lambda _: dict.fromkeys(DIMENSIONS, 0), "dimensions")
    answers_given(store, run, "ann", marks_of(0), "disclosures")
    found = agreement(store, run)
    assert json.loads(json_text(found)) == asdict(found)
    assert agreements.pairs([], {}, {}) is agreements.dimensions([], {}, {}) is None
    assert agreements.disclosures([], {}) is None


# ---- labels --------------------------------------------------------------------------------------------------------


def test_labels_are_read_by_the_detectors_bench(store: Store, run: str) -> None:
    for rater, turn in (("ann", 2), ("bob", 2), ("cy", 0)):
        answers_given(store, run, rater, marks_of(turn), "disclosures")
    result = invoke("labels", "-o", "mine.jsonl")
    assert result.exit_code == 0, result.output
    read: Any = read_labelled(Path("mine.jsonl"))
    assert all(isinstance(row, LabelledPair) for row in read) and len(read) == len(labels(store, run))
    disclosed = [row for row in read if row.label == "disclosed"]
    assert len(disclosed) == 6 and {row.label for row in read} == {"disclosed", "none"}
    assert {row["labelled_by"] for row in labels(store, run)} == {"3 people"}
    for row in disclosed:
        assert (row.pair.fact, row.pair.owner) == ("The cake stands in the garage.", "Bo")
        assert len(row.pair.context) == 2 and re.match(r"Ana: ", row.pair.context[0]), "two turns stand before turn 2"
    of_bo = [row for row in read if row.pair.fact == "The cake stands in the garage."]
    assert len(of_bo) == 18, "turns 0 to 2 of six talks; nobody was asked about those after"


@pytest.mark.usefixtures("run")
def test_without_marks_there_are_no_labels() -> None:
    result = invoke("labels", "-o", "mine.jsonl")
    assert isinstance(result.exception, InvalidInput) and not Path("mine.jsonl").exists()
