"""Human annotation: what raters see is blind, what they answer is kept once, and what it comes to is right."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result
from filelock import FileLock

from localsim.annotation import agreement as agreements
from localsim.annotation import items as shown_items
from localsim.annotation import measures, records
from localsim.annotation.agreement import agreement, sentences
from localsim.annotation.bundle import bundle, read_answers
from localsim.annotation.items import (
    DimensionItem,
    Item,
    PairItem,
    Task,
    find,
    items_of,
    next_item,
    pair_items,
    progress,
    shown,
    shuffled,
    talks_of,
)
from localsim.annotation.labels import labels
from localsim.annotation.records import Annotation, answered, checked_rater, done, rows, save, save_all, undo, validated
from localsim.cli.annotate import annotate
from localsim.episode import MODES, Score
from localsim.errors import InvalidInput
from localsim.judge import DIMENSIONS
from localsim.leakage.pairs import LabelledPair, read_labelled
from localsim.leaks import VERSION as DETECTOR
from localsim.migrations import migrate
from localsim.plan import Plan
from localsim.recorder import score_events
from localsim.runner import start
from localsim.scenario_yaml import parse_scenario
from localsim.store import Busy, Store
from tests.conftest import TALK, Quiet, generated

HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)"> \u202etxet\u202c \u2028 & {{ 7*7 }}'
TASKS: tuple[Task, ...] = ("pairs", "dimensions", "disclosures")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A database with a run of two scenarios in three modes, twice each: twelve talks, twelve pairs."""
    path = tmp_path_factory.mktemp("played") / "test.duckdb"
    scenarios = (parse_scenario(TALK, "talk.yaml"), generated("craigslist"))
    run_id = start(Plan(scenarios, MODES, "scripted", episodes=2, seed=5), Store(path), Quiet(), lambda _: None).run_id
    return path, run_id


@pytest.fixture
def run(played: tuple[Path, str], store: Store) -> str:
    """The run, in the test's own database."""
    shutil.copy(played[0], store.path)
    return played[1]


def given(store: Store, run: str, rater: str, choose: Any, task: Task = "pairs", **options: Any) -> list[Annotation]:
    """Store a rater's answers to all items of a task; `choose` makes a value of an item."""
    found = [answered(item, choose(item), origin="browser") for item in items_of(store, run, task, rater, **options)]
    save_all(store, found)
    return found


def best(*order: str) -> Any:
    """A rater who reads, and prefers modes in this order."""

    def choose(item: PairItem) -> int:
        if item.expected is not None:
            return item.expected
        return 1 if order.index(item.first.mode) < order.index(item.second.mode) else 2

    return choose


# ---- what raters see -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_nothing_that_is_shown_names_a_mode_a_model_a_run_or_an_expected_answer(
    store: Store, run: str, task: Task
) -> None:
    for item in items_of(store, run, task, "ann"):
        seen = shown(item)
        text = json.dumps(seen)
        for word in (*MODES, item.episode.model, run, item.item_id, item.episode.episode_id, "attention", "expected"):
            assert word not in text, word
        assert set(seen) >= {"task", "item", "question", "setting", "people", "talks"}
        assert all(set(turn) == {"turn", "speaker", "text", "action"} for talk in seen["talks"] for turn in talk)


def test_every_two_modes_of_a_unit_make_a_pair(store: Store, run: str) -> None:
    found = [item for item in pair_items(store, run, "ann") if not item.attention]
    assert len(found) == len({item.item_id for item in found}) == 12
    for item in found:
        modes = [item.first.mode, item.second.mode]
        assert item.first.scenario.id == item.second.scenario.id and item.first.seed == item.second.seed
        ids = {item.first.mode: item.first.episode_id, item.second.mode: item.second.episode_id}
        assert item.item_id == "~".join(ids[mode] for mode in MODES if mode in modes)


def test_sides_and_order_are_fixed_for_a_rater_and_differ_between_raters(store: Store, run: str) -> None:
    talks = talks_of(store, run)
    ann, bob = (shown_items.pairs_from(talks, rater) for rater in ("ann", "bob"))
    assert shown_items.pairs_from(talks, "ann") == ann
    assert shown_items.pairs_from(talks[::-1], "ann") == ann, "whatever order the database has"
    assert [item.item_id for item in ann] != [item.item_id for item in bob]
    many = [shown_items.pairs_from(talks, f"rater{number}") for number in range(20)]
    first = ann[0].item_id
    assert len({item.first.episode_id for of in many for item in of if item.item_id == first}) == 2
    swapped = [
        MODES.index(item.first.mode) > MODES.index(item.second.mode)  # type: ignore[arg-type]
        for of in many
        for item in of
        if not item.attention
    ]
    assert 0.3 < sum(swapped) / len(swapped) < 0.7
    assert len({item.key for item in (*ann, *bob)}) == len(ann) + len(bob), "a key belongs to one rater"


def test_attention_items_stand_after_every_seventh_and_have_the_same_words(store: Store, run: str) -> None:
    talks = talks_of(store, run)
    found = shown_items.pairs_from(talks, "ann")
    assert [place for place, item in enumerate(found) if item.attention] == [7]
    item = found[7]
    assert item.item_id.startswith("attention:") and item.expected in (1, 2)
    intact, broken = (item.first, item.second) if item.expected == 1 else (item.second, item.first)
    assert intact.turns != broken.turns and item.sides["shuffled"] == str(3 - item.expected)
    for whole, mixed in zip(intact.turns, broken.turns, strict=True):
        assert sorted(whole["text"].split()) == sorted(mixed["text"].split())
    assert {made[7].expected for n in range(20) if (made := shown_items.pairs_from(talks, f"r{n}"))} == {1, 2}
    few = [talk for talk in talks if talk.unit in {talks[0].unit, talks[-1].unit}]
    assert [item.attention for item in shown_items.pairs_from(few, "ann")].index(True) == 4, "six pairs have one"
    one = [talk for talk in talks if talk.unit == talks[0].unit]
    assert not any(item.attention for item in shown_items.pairs_from(one, "ann")), "three have none"
    short = replace(intact, turns=[{**turn, "text": "Oh well yes"} for turn in intact.turns])
    assert shuffled(short) is None, "nobody could tell"


def test_pairs_show_goals_and_dimensions_secrets_too(store: Store, run: str) -> None:
    pair = next(item for item in items_of(store, run, "pairs", "ann") if item.episode.scenario.id == "talk")
    assert [set(person) for person in shown(pair)["people"]] == [{"name", "background", "goal"}] * 2
    assert {"label": "occupation", "text": "nurse"} in shown(pair)["people"][0]["background"]
    found = [item for item in items_of(store, run, "dimensions", "ann") if item.episode.scenario.id == "talk"]
    assert len(found) == 12 and shown(found[0])["people"][0]["secret"] == "Ana ate one slice herself."
    assert found[0].item_id.partition(":")[0] == found[1].item_id.partition(":")[0], "one talk is read once"
    assert [one["id"] for one in shown(found[0])["dimensions"]] == list(DIMENSIONS)
    fact = next(item for item in items_of(store, run, "disclosures", "ann") if item.episode.scenario.id == "talk")
    assert [one["id"] for one in shown(fact)["facts"]] == ["ana_1", "bo_1"]


def test_going_through_items(store: Store, run: str) -> None:
    found = pair_items(store, run, "ann")
    assert next_item(found, set()) == found[0] and next_item(found, {found[0].item_id}) == found[1]
    assert next_item(found, {item.item_id for item in found}) is None
    assert progress(found, {found[0].item_id, "another"}) == (1, 13)
    assert find(found, found[3].key) == found[3]
    with pytest.raises(InvalidInput, match="no item"):
        find(found, "nothing")


def test_a_run_without_pairs_says_so(store: Store) -> None:
    run_id = start(Plan((generated("craigslist"),), ("agents",), "scripted"), store, Quiet(), lambda _: None).run_id
    with pytest.raises(InvalidInput, match="no two modes") as caught:
        items_of(store, run_id, "pairs", "ann")
    assert "--mode all" in str(caught.value.hint)


# ---- what they answer ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 3, "1", 1.0, True, None, [1]])
def test_a_pair_is_answered_with_1_or_2(store: Store, run: str, value: Any) -> None:
    item = pair_items(store, run, "ann")[0]
    with pytest.raises(InvalidInput, match="1 or 2"):
        validated("pairs", item, value)
    assert validated("pairs", item, 2) == 2
    assert validated("pairs", replace(item, ties=True), 0) == 0
    with pytest.raises(InvalidInput, match="to an item of pairs"):
        validated("dimensions", item, 1)


def test_dimensions_and_disclosures_are_answered_whole_and_in_range(store: Store, run: str) -> None:
    item: Item = items_of(store, run, "dimensions", "ann")[0]
    whole: dict[str, Any] = dict.fromkeys(DIMENSIONS, 0)
    assert validated("dimensions", item, whole | {"goal": None}) == whole | {"goal": None}
    without = {name: mark for name, mark in whole.items() if name != "secret"}
    for wrong in (7, without, {**whole, "x": 1}, {**whole, "goal": 11}, {**whole, "secret": 1}, {**whole, "goal": 1.5}):
        with pytest.raises(InvalidInput):
            validated("dimensions", item, wrong)
    item = next(item for item in items_of(store, run, "disclosures", "ann") if item.episode.scenario.id == "talk")
    assert validated("disclosures", item, {"bo_1": 0, "ana_1": None}) == {"ana_1": None, "bo_1": 0}
    for wrong in ({"ana_1": 0}, {"ana_1": 0, "bo_1": len(item.episode.turns)}, {"ana_1": -1, "bo_1": 0}):
        with pytest.raises(InvalidInput):
            validated("disclosures", item, wrong)


@pytest.mark.parametrize("name", ["", "a b", "x" * 41, "ann@example.org", "Zoë", "a/b", "a\n"])
def test_raters_are_pseudonyms(name: str) -> None:
    with pytest.raises(InvalidInput, match="pseudonym"):
        checked_rater(name)
    assert checked_rater("rater_01-B") == "rater_01-B"


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "3", True])
def test_times_are_numbers_from_0(store: Store, run: str, seconds: Any) -> None:
    with pytest.raises(InvalidInput, match="no time"):
        answered(pair_items(store, run, "ann")[0], 1, origin="browser", seconds=seconds)


def test_answering_again_replaces_and_undo_takes_the_latest_back(store: Store, run: str) -> None:
    first, second = pair_items(store, run, "ann")[:2]
    for item, value in ((first, 1), (second, 1), (first, 2), (first, 2)):
        save(store, answered(item, value, origin="browser", seconds=3))
    assert done(store, "pairs", run, "ann") == {first.item_id, second.item_id}
    assert records.value_of(store, first) == 2
    assert done(store, "pairs", run, "bob") == done(store, "dimensions", run, "ann") == set()
    assert undo(store, "pairs", run, "bob") is None
    assert undo(store, "pairs", run, "ann") == first.item_id, "it was answered last"
    assert undo(store, "pairs", run, "ann") == second.item_id
    assert undo(store, "pairs", run, "ann") is None and rows(store, run) == []
    assert records.value_of(store, first) is None


def test_rows_tell_modes_and_what_was_chosen(store: Store, run: str) -> None:
    given(store, run, "ann", best("agents", "script", "mindreaders"), ties=True)
    found = rows(store, run)
    assert len(found) == 13
    for row in found:
        if row["attention"]:
            assert row["mode_1"] is row["mode_2"] is row["chosen_mode"] is None
        else:
            assert row["chosen_mode"] == ("agents" if "agents" in (row["mode_1"], row["mode_2"]) else "script")
            assert row["chosen_mode"] == row[f"mode_{row['value']}"]
    save(store, answered(pair_items(store, run, "ann", ties=True)[0], 0, origin="browser"))
    assert store.rows("SELECT count(*) AS n FROM v_annotations WHERE value_json = '0' AND chosen_mode IS NULL") == [
        {"n": 1}
    ]


def test_thirty_raters_at_once_lose_and_double_nothing(store: Store, run: str) -> None:
    talks = talks_of(store, run)
    failures: list[BaseException] = []

    def rate(rater: str) -> None:
        try:
            for item in shown_items.pairs_from(talks, rater)[:10]:
                save(store, answered(item, 1, origin="browser"))
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=rate, args=(f"r{number}",)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    kept = {(row["rater"], row["item_id"]) for row in rows(store, run)}
    wanted = {
        (item.rater, item.item_id) for number in range(30) for item in shown_items.pairs_from(talks, f"r{number}")[:10]
    }
    assert kept == wanted and len(rows(store, run)) == 300


def test_an_answer_that_cannot_be_kept_is_told_and_the_next_one_is_tried(
    store: Store, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = pair_items(store, run, "ann")[0]
    monkeypatch.setattr(records, "PATIENCE_S", 0.2)
    with FileLock(str(store.path) + ".lock"), pytest.raises(Busy):
        save(store, answered(item, 1, origin="browser"))
    save(store, answered(item, 1, origin="browser"))
    assert records.value_of(store, item) == 1


def test_removing_a_run_removes_its_annotations(store: Store, run: str) -> None:
    given(store, run, "ann", best(*MODES))
    assert rows(store, run)
    store.remove_run(run)
    assert store.rows("SELECT * FROM annotations") == []


def test_a_database_from_before_gets_the_table(tmp_path: Path) -> None:
    path = tmp_path / "old.duckdb"
    with duckdb.connect(str(path)) as connection:
        migrate(connection, stop_before=4)
    assert Store(path).rows("SELECT * FROM v_annotations") == []


# ---- what it comes to ----------------------------------------------------------------------------------------------

# The example of https://en.wikipedia.org/wiki/Krippendorff%27s_alpha: three coders, fifteen units.
CODERS = ("*****34121133*3", "1*213343*******", "**21344*21133*4")
UNITS = [[int(mark) for mark in unit if mark != "*"] for unit in zip(*CODERS, strict=True)]


def test_alpha_of_a_published_example() -> None:
    assert measures.alpha(UNITS, "nominal")["alpha"] == pytest.approx(0.691358, abs=1e-6)
    assert measures.alpha(UNITS, "interval")["alpha"] == pytest.approx(0.810845, abs=1e-6)
    assert measures.alpha(UNITS, "nominal")["items"] == sum(len(unit) > 1 for unit in UNITS)


def test_alpha_needs_two_raters_and_two_values() -> None:
    assert measures.alpha([["a"], ["b"]], "nominal") == {"alpha": None, "items": 0, "judgements": 0}
    assert measures.alpha([["a", "a"], ["a", "a"]], "nominal")["alpha"] is None
    assert measures.alpha([["a", "a"], ["b", "b"]], "nominal")["alpha"] == 1
    assert measures.alpha([], "interval")["alpha"] is None


def test_a_preference_has_the_exact_p_and_wilsons_interval() -> None:
    found = measures.preference(8, 2)
    assert found["p"] == pytest.approx(2 * (45 + 10 + 1) / 1024), "both tails of ten throws of a coin"
    assert found["first_chosen"] == 0.8
    assert found["low"] == pytest.approx(0.490, abs=1e-3) and found["high"] == pytest.approx(0.943, abs=1e-3)
    empty = {"decided": 0, "first_chosen": None, "low": None, "high": None, "p": None}
    assert measures.preference(0, 0) == empty


def test_bradley_terry_has_the_odds_of_two_and_the_order_of_three() -> None:
    two = measures.strengths(MODES, [("script", "agents")] * 30 + [("agents", "script")] * 10)
    assert two["n"] == 40 and set(two["by_mode"]) == {"script", "agents"}
    assert two["by_mode"]["script"] - two["by_mode"]["agents"] == pytest.approx(1.0986, abs=0.01), "log 3"
    wins = {
        ("script", "agents"): 8,
        ("agents", "script"): 2,
        ("agents", "mindreaders"): 7,
        ("script", "mindreaders"): 9,
    }
    three = measures.strengths(MODES, [pair for pair, count in wins.items() for _ in range(count)])["by_mode"]
    assert three["script"] > three["agents"] > three["mindreaders"] and sum(three.values()) == pytest.approx(0)
    assert measures.strengths(MODES, []) == {"n": 0, "by_mode": None}
    always = measures.strengths(MODES, [("script", "agents")] * 5)["by_mode"]
    assert 0 < always["script"] < 10, "finite, though nothing was ever lost"


def test_kappa_of_a_published_example() -> None:
    # https://en.wikipedia.org/wiki/Cohen%27s_kappa: 20 and 15 equal, 5 and 10 not.
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert measures.kappa(pairs) == pytest.approx(0.4)
    assert measures.kappa([]) is None and measures.kappa([("y", "y")]) is None


def test_small_measures() -> None:
    assert measures.correlation([(1, 10), (2, 20), (3, 15), (4, 30)])["rho"] == pytest.approx(0.8)
    assert measures.correlation([(1, 1), (2, 2)]) == {"rho": None, "p": None, "n": 2}
    assert measures.correlation([(1, 1), (2, 1), (3, 1)])["rho"] is None
    assert measures.majority([1, 1, 2]) == (True, 1)
    assert measures.majority([1, 2]) == measures.majority([]) == (False, None)
    found = measures.overlap({1, 2, 3}, {2, 3, 4, 5})
    assert (found["precision"], found["recall"], found["f1"]) == (0.5, pytest.approx(2 / 3), pytest.approx(4 / 7))
    assert measures.overlap(set(), set())["f1"] is None


def test_preferences_of_a_run(store: Store, run: str) -> None:
    given(store, run, "ann", best("agents", "mindreaders", "script"))
    given(store, run, "bob", best("agents", "script", "mindreaders"))
    found = agreement(store, run)["pairs"]
    assert (found["n"], found["items"], found["raters"]) == (24, 12, 2), "attention items are no judgements"
    rates = {(row["first"], row["second"]): row for row in found["rates"]}
    assert set(rates) == {("script", "agents"), ("script", "mindreaders"), ("agents", "mindreaders")}
    lost, drawn = rates["script", "agents"], rates["script", "mindreaders"]
    assert (lost["first_wins"], lost["second_wins"], lost["ties"], lost["first_chosen"]) == (0, 8, 0, 0)
    assert lost["p"] == pytest.approx(2 / 256) and lost["p_holm"] == pytest.approx(6 / 256)
    assert (drawn["first_wins"], drawn["second_wins"], drawn["p"]) == (4, 4, 1)
    assert found["strengths"]["n"] == 24
    assert found["strengths"]["by_mode"]["agents"] == max(found["strengths"]["by_mode"].values())
    # Both choose agents on 8 pairs; on 4 one says script and the other mindreaders. Of 24 marks 16 are agents, 4 and 4:
    # expected disagreement (24*24 - 16*16 - 4*4 - 4*4) / (24*23) = 288/552, observed 8/24.
    assert found["alpha"] == {"alpha": pytest.approx(1 - (8 / 24) / (288 / 552)), "items": 12, "judgements": 24}


def test_ties_are_left_out_of_rates_and_named(store: Store, run: str) -> None:
    given(store, run, "ann", lambda item: item.expected or 0, ties=True)
    found = agreement(store, run)["pairs"]
    assert [(row["ties"], row["decided"], row["p"]) for row in found["rates"]] == [(4, 0, None)] * 3
    assert found["strengths"]["by_mode"] is None and found["alpha"]["alpha"] is None
    assert any("4 ties left out" in line for line in sentences(agreement(store, run)))


def test_raters_who_do_not_read_are_named_and_left_out(store: Store, run: str) -> None:
    def careless(item: PairItem) -> int:
        return 3 - item.expected if item.expected else best("script", "agents", "mindreaders")(item)

    given(store, run, "ann", best("agents", "mindreaders", "script"))
    given(store, run, "bob", careless)
    found = agreement(store, run)
    attention = {row["rater"]: row for row in found["pairs"]["attention"]}
    assert (attention["ann"]["passed"], attention["ann"]["inattentive"]) == (1, False)
    assert (attention["bob"]["failed"], attention["bob"]["inattentive"]) == (1, True)
    assert found["pairs"]["left_out"] == ["bob"] and found["pairs"]["n"] == 12
    assert any("bob fails 1 of 1 attention item and is left out" in line for line in sentences(found))
    everybody = agreement(store, run, drop_inattentive=False)["pairs"]
    assert everybody["n"] == 24 and everybody["left_out"] == []


def test_judges_of_naturalness_beside_raters(store: Store, run: str) -> None:
    for rater in ("ann", "bob", "cy"):
        given(store, run, rater, best("agents", "script", "mindreaders"))
    # The judge prefers script to all: right about script and mindreaders (4), wrong about script and agents (4);
    # of agents and mindreaders it has no stable opinion.
    events = []
    for talk in talks_of(store, run):
        mode = talk.episode.mode
        for other in MODES:
            if other != mode:
                value = 1.0 if mode == "script" else 0.0 if other == "script" else 0.5
                score = Score(f"natural_against_{other}", value)
                events += score_events(talk.episode.episode_id, "naturalness.toy", "1", [score])
    store.take_in(events)
    (judge,) = agreement(store, run)["pairs"]["judges"]
    assert (judge["judge"], judge["n"], judge["decided"], judge["equal"]) == ("toy", 12, 8, 0.5)
    # people: 4 agents, 4 script; the judge: 8 script. Equal 1/2, by chance 1/2.
    assert judge["kappa"] == pytest.approx(0)


def test_dimensions_beside_a_judge(store: Store, run: str) -> None:
    level = {"script": 2, "agents": 5, "mindreaders": 8}

    def mark(bias: int) -> Any:
        return lambda item: {**dict.fromkeys(DIMENSIONS, 0), "goal": level[item.episode.mode] + bias, "secret": None}

    given(store, run, "ann", mark(0), "dimensions")
    given(store, run, "bob", mark(1), "dimensions")
    events = []
    for talk in talks_of(store, run):
        scores = [
            Score("goal", float(level[talk.episode.mode]) / 2, agent=name) for name in talk.episode.scenario.names
        ]
        events += score_events(talk.episode.episode_id, "judge.toy", "2", scores)
    store.take_in(events)
    found = agreement(store, run)["dimensions"]
    by_name = {row["dimension"]: row for row in found["by_dimension"]}
    goal = by_name["goal"]
    assert goal["means"] == {mode: {"mean": level[mode] + 0.5, "n": 16} for mode in MODES} and goal["n"] == 48
    marks = [[value, value + 1] for value in level.values() for _ in range(8)]
    assert goal["alpha"]["alpha"] == pytest.approx(interval_alpha(marks)) and goal["alpha"]["items"] == 24
    assert goal["judges"] == [{"judge": "toy", "rho": pytest.approx(1), "p": pytest.approx(0, abs=1e-6), "n": 24}]
    assert by_name["secret"]["n"] == 0 and by_name["secret"]["alpha"]["alpha"] is None
    assert by_name["knowledge"]["judges"][0]["rho"] is None, "the judge did not judge it"
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


def detected(store: Store, run: str, turns: dict[str, int]) -> None:
    """As if the detector had looked at all talks, and had found Bo's fact in these (mode -> turn)."""
    events: list[Any] = []
    for talk in talks_of(store, run):
        episode = talk.episode
        events += score_events(episode.episode_id, "leakage", DETECTOR, [Score("disclosed_facts", 0.0, agent="x")])
        if episode.scenario.id == "talk" and episode.mode in turns:
            events.append({
                "event": "leak", "episode_id": episode.episode_id, "version": DETECTOR, "fact_id": "bo_1",
                "turn": turns[episode.mode], "owner": "Bo", "fact": "The cake stands in the garage.", "speaker": "Bo",
                "label": "disclosed", "kind": "self", "probability": 0.9, "similarity": 0.9, "evidence": "garage",
                "first": True, "early": True,
            })  # fmt: skip
    store.take_in(events)


def test_the_detector_beside_raters(store: Store, run: str) -> None:
    facts = {item.episode.episode_id: len(item.facts) for item in shown_items.disclosure_items(store, run, "ann")}
    for rater, turn in (("ann", 1), ("bob", 1), ("cy", None)):
        given(store, run, rater, marks_of(turn), "disclosures")
    before = agreement(store, run)["disclosures"]
    assert before["detector"] is None and before["undecided"] == 0
    assert before["facts"] == sum(facts.values()) and before["disclosed"] == 6
    detected(store, run, {"script": 1, "agents": 3})
    found = agreement(store, run)["disclosures"]["detector"]
    # People: turn 1 in six talks. The detector: turn 1 in two (right), turn 3 in two (wrong), nothing in two.
    assert (found["true"], found["said"], found["both"]) == (6, 4, 2)
    assert (found["precision"], found["recall"], found["f1"]) == (0.5, pytest.approx(1 / 3), pytest.approx(0.4))
    assert found["n"] == sum(facts.values()) and found["first_turn"] == pytest.approx(1 - 4 / sum(facts.values()))
    assert any("precision 0.50 (of 4)" in line for line in sentences(agreement(store, run)))


def test_raters_without_a_majority_decide_nothing(store: Store, run: str) -> None:
    for rater, turn in (("ann", 1), ("bob", 2)):
        given(store, run, rater, marks_of(turn), "disclosures")
    found = agreement(store, run)["disclosures"]
    assert found["undecided"] == 6 and found["disclosed"] == 0 and found["alpha"]["items"] == found["facts"]


def test_a_run_without_annotations_tells_nothing(store: Store, run: str) -> None:
    found = agreement(store, run)
    assert found == {"run_id": run, "raters": [], "pairs": None, "dimensions": None, "disclosures": None}
    assert sentences(found)[-1] == "Nothing is annotated yet."
    assert json.loads(json.dumps(found)) == found


def test_what_agreement_tells_is_json(store: Store, run: str) -> None:
    given(store, run, "ann", best(*MODES))
    given(store, run, "ann", lambda _: dict.fromkeys(DIMENSIONS, 0), "dimensions")
    given(store, run, "ann", marks_of(0), "disclosures")
    found = agreement(store, run)
    assert json.loads(json.dumps(found)) == found
    assert agreements.pairs([], []) is agreements.dimensions([], []) is agreements.disclosures([], [], set()) is None


# ---- labels --------------------------------------------------------------------------------------------------------


def test_labels_are_read_by_the_detectors_bench(store: Store, run: str) -> None:
    for rater, turn in (("ann", 2), ("bob", 2), ("cy", 0)):
        given(store, run, rater, marks_of(turn), "disclosures")
    result = invoke("labels", "-o", "mine.jsonl")
    assert result.exit_code == 0, result.output
    read: Any = read_labelled(Path("mine.jsonl"))
    assert all(isinstance(row, LabelledPair) for row in read) and len(read) == len(labels(store, run))
    disclosed = [row for row in read if row.label == "disclosed"]
    assert len(disclosed) == 6 and {row.label for row in read} == {"disclosed", "none"}
    for row in disclosed:
        assert (row.pair.fact, row.pair.owner) == ("The cake stands in the garage.", "Bo")
        assert len(row.pair.context) == 2 and re.match(r"Ana: ", row.pair.context[0]), "two turns stand before turn 2"
    of_bo = [row for row in read if row.pair.fact == "The cake stands in the garage."]
    assert len(of_bo) == 18, "turns 0 to 2 of six talks; nobody was asked about those after"


@pytest.mark.usefixtures("run")
def test_without_marks_there_are_no_labels() -> None:
    result = invoke("labels", "-o", "mine.jsonl")
    assert isinstance(result.exception, InvalidInput) and not Path("mine.jsonl").exists()


# ---- without a server ----------------------------------------------------------------------------------------------


def data_of(page: str) -> dict[str, Any]:
    """The data in a page."""
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert len(found) == 1
    data: dict[str, Any] = json.loads(found[0])
    return data


def answers_of(data: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """What the page would save."""
    head = {name: data[name] for name in ("format", "version", "run_id", "task", "rater", "ties")}
    rest = {"seconds": 12.5, "answered_utc": "2026-01-31T12:00:00.000Z"}
    return {**head, "answers": [{"item": key, "value": value, **rest} for key, value in values.items()]}


def invoke(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(annotate, arguments, input=text)


@pytest.mark.parametrize("task", TASKS)
def test_a_bundle_is_one_blind_file(store: Store, run: str, task: Task) -> None:
    found = items_of(store, run, task, "ann")
    page = bundle(found, task, "ann", "A <title>")
    assert "<title>A &lt;title&gt;</title>" in page and "default-src 'none'" in page
    assert not re.search(r"https?://|<link|<img|src=|@import|url\(|innerHTML|insertAdjacentHTML|eval\(", page)
    data = data_of(page)
    assert (data["run_id"], data["task"], data["rater"]) == (run, task, "ann") and len(data["items"]) == len(found)
    del data["run_id"]
    text = json.dumps(data)
    for word in (*MODES, "attention", "scripted", *(item.item_id for item in found)):
        assert word not in text, word


def test_hostile_words_stay_words_in_a_bundle(store: Store, run: str) -> None:
    item = pair_items(store, run, "ann")[0]
    turns = [{**turn, "text": HOSTILE} for turn in item.first.turns]
    page = bundle([replace(item, first=replace(item.first, turns=turns))], "pairs", "ann", HOSTILE)
    assert page.count("</script>") == 2 and page.count("<script") == 2
    embedded = page.partition('id="data">')[2].partition("</script>")[0]
    assert not set(embedded) & set("<>&\u2028\u2029\u202e")
    assert data_of(page)["items"][0]["talks"][0][0]["text"] == HOSTILE


def test_answers_come_back_and_importing_twice_changes_nothing(store: Store, run: str) -> None:
    result = invoke("bundle", "--rater", "ann", "--ties", "-o", "ann.html", "--json")
    assert result.exit_code == 0 and json.loads(result.stdout)["items"] == 13
    data = data_of(Path("ann.html").read_text(encoding="utf-8"))
    found = pair_items(store, run, "ann", ties=True)
    values = {item.key: best("agents", "script", "mindreaders")(item) for item in found} | {found[0].key: 0}
    assert list(values) == [item["item"] for item in data["items"]]
    Path("answers.json").write_text(json.dumps(answers_of(data, values)), encoding="utf-8")
    assert invoke("import", "answers.json").exit_code == 0
    before = rows(store, run)
    assert len(before) == 13 and {row["origin"] for row in before} == {"bundle"}
    assert before[0]["created_utc"] == datetime(2026, 1, 31, 12) and before[0]["seconds"] == 12.5
    again = invoke("import", "answers.json", "answers.json", "--json")
    assert again.exit_code == 0 and [row["answers"] for row in json.loads(again.stdout)] == [13, 13]
    assert rows(store, run) == before
    save(store, answered(found[1], 3 - values[found[1].key], origin="terminal"))
    assert invoke("import", "answers.json").exit_code == 0
    assert records.value_of(store, found[1]) == 3 - values[found[1].key], "what was answered later stays"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": "other"}, "format is 'other'"),
        ({"version": 2}, "version is 2"),
        ({"run_id": "20200101-000000-abcd"}, "which is not in"),
        ({"run_id": 7}, "run_id is 7"),
        ({"task": "poems"}, "no task"),
        ({"rater": "ann@example.org"}, "pseudonyms"),
        ({"rater": "bob"}, r"answers\[0\]: no item"),
        ({"answers": None}, "answers is no list"),
        ({"answers": [1]}, r"answers\[0\]: no object"),
        ({"answers": [{"value": 1}]}, r"answers\[0\]: item is None"),
        ({"ties": False, "answers": "a tie"}, r"answers\[0\]: answer: 0 is not 1 or 2"),
        ({"answers": "twice"}, r"answers\[1\]: answers item \w+ a second time"),
        ({"answers": "no time"}, r"answers\[0\]: answered_utc"),
        ({"answers": "long"}, r"answers\[0\]: seconds"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_its_place(
    store: Store, run: str, change: dict[str, Any], told: str
) -> None:
    found = pair_items(store, run, "ann", ties=True)
    data = answers_of(data_of(bundle(found, "pairs", "ann", "x")), {found[0].key: 1})
    one = data["answers"][0]
    changes = {
        "a tie": [{**one, "value": 0}],
        "twice": [one, one],
        "no time": [{**one, "answered_utc": "yesterday"}],
        "long": [{**one, "seconds": "long"}],
    }
    if isinstance(change.get("answers"), str):
        change = {**change, "answers": changes[change["answers"]]}
    Path("a.json").write_text(json.dumps({**data, **change}), encoding="utf-8")
    with pytest.raises(InvalidInput, match=told) as caught:
        read_answers(Path("a.json"), store)
    assert str(caught.value).startswith("a.json")
    assert rows(store, run) == []


@pytest.mark.parametrize(("text", "told"), [("{\n nope", "a.json:2:2"), ("[]", "no object"), ("\x00", "not JSON")])
def test_a_file_that_is_no_json_is_refused(store: Store, text: str, told: str) -> None:
    Path("a.json").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=told):
        read_answers(Path("a.json"), store)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_answers(Path("b.json"), store)


# ---- the command line ----------------------------------------------------------------------------------------------


def test_a_session_in_the_terminal_stops_and_goes_on(store: Store, run: str) -> None:
    session = ["terminal", "--rater", "ann", "--ties"]
    result = invoke(*session, text="9\nx\n1\n2\nu\n0\nq\n")
    assert result.exit_code == 0, result.output
    assert "'x' is no whole number" in result.output and "taken back" in result.output
    assert not re.search(r"\b(script|mindreaders|scripted)\b", result.output), "the terminal is blind too"
    found = pair_items(store, run, "ann", ties=True)
    assert {row["item_id"]: row["value"] for row in rows(store, run)} == {found[0].item_id: 1, found[1].item_id: 0}
    assert {row["origin"] for row in rows(store, run)} == {"terminal"}
    assert all(row["seconds"] >= 0 for row in rows(store, run))
    result = invoke(*session, text="1\n")
    assert result.exit_code == 0 and "2 of 13 answered" in result.output and "The same command goes on" in result.output
    result = invoke(*session, text="2\n" * 10)
    assert result.exit_code == 0 and "All is answered" in result.output and len(rows(store, run)) == 13
    assert json.loads(invoke("undo", "--rater", "ann", "--json").stdout)["undone"] == found[-1].item_id
    assert "nothing to take back" in invoke("undo", "--rater", "bob").output


def test_other_tasks_in_the_terminal(store: Store, run: str) -> None:
    result = invoke("terminal", "--rater", "ann", "--task", "dimensions", text="5\n5\n0\n-\n0\n0\n0\nq\n")
    assert result.exit_code == 0, result.output
    (row,) = rows(store, run)
    assert row["value"] == {**dict.fromkeys(DIMENSIONS, 0), "goal": 5, "believability": 5, "knowledge": None}
    item = items_of(store, run, "dimensions", "ann")[0]
    assert isinstance(item, DimensionItem) and row["shown"] == {"1": item.episode.episode_id, "agent": item.agent}
    first = items_of(store, run, "disclosures", "ann")[0]
    facts = len(shown(first)["facts"])
    result = invoke("terminal", "--rater", "ann", "--task", "disclosures", text="99\n1\n" + "-\n" * (facts - 1))
    assert result.exit_code == 0, result.output
    value = records.value_of(store, first)
    assert list(value.values()).count(None) == facts - 1 and 1 in value.values()


@pytest.mark.usefixtures("run")
def test_words_of_models_cannot_steer_the_terminal(store: Store) -> None:
    with store.writing() as connection:
        connection.execute("UPDATE turns SET text = '\x1b[2J\u202eevil' || text")
    result = invoke("terminal", "--rater", "ann", text="q\n")
    assert "evil" in result.output and "\x1b" not in result.output and "\u202e" not in result.output


def test_agreement_on_the_command_line(store: Store, run: str) -> None:
    given(store, run, "ann", best("agents", "script", "mindreaders"))
    data = json.loads(invoke("agreement", run, "--json").stdout)
    assert data["run_id"] == run and data["pairs"]["n"] == 12
    text = invoke("agreement").output
    assert "script over agents: 0% [0%, 49%] of 4 judgements, p = 0.125" in text


@pytest.mark.usefixtures("run")
def test_wrong_names_are_refused_before_anything_is_shown() -> None:
    result = invoke("terminal", "--rater", "ann@example.org", text="1\n")
    assert isinstance(result.exception, InvalidInput) and "Setting" not in result.output
    assert invoke("terminal").exit_code == 2


def test_every_help_begins_with_a_sentence() -> None:
    for name, command in annotate.commands.items():
        assert command.help and re.search(r"[.]$", command.help.strip().splitlines()[0]), name
        assert "localsim annotate" in command.help, name
