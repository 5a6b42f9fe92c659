"""Errors of instruments reach the reader, and rates are corrected for them from a random draw of labelled episodes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim import families
from localsim.annotation.items import disclosures_from, items_of, talks_of
from localsim.annotation.records import answered, rows, save_all
from localsim.conversation.episode import MODES, Score
from localsim.leakage.detector import VERSION as DETECTOR
from localsim.leakage.detector import Weights
from localsim.reports import card, sections
from localsim.reports.compose.alone import report
from localsim.reports.render import html, markdown
from localsim.reports.validity import correction, instruments
from localsim.reports.validity.correction import FEWEST, Outcome, corrected, corrections, drawn, naive
from localsim.reports.validity.judges import Reliability
from localsim.reports.validity.thresholds import Thresholds
from localsim.store.database import Store
from localsim.store.records import LeakRecord, Record, score_records
from scripts.leakage import data
from tests.rated import detected, invoke
from tests.rated import given as answers_given

ROOT = Path(__file__).resolve().parent.parent
QUERIES = ROOT / "db" / "queries"


# ---- corrected rates -----------------------------------------------------------------------------------------------


def simulated(
    rng: np.random.Generator, scenarios: int, episodes: int, labels: int, rate: float, found: float, false: float
) -> list[Outcome]:
    """Episodes with two facts each; scenarios differ. A detector finds `found` of what comes out and raises false
    alarms about `false` of the rest. A random draw of `labels` episodes is labelled without error.
    """
    alike = 4.0
    by_scenario = rng.beta(alike * rate, alike * (1 - rate), (scenarios, 1, 1))
    true = rng.random((scenarios, episodes, 2)) < by_scenario
    said = np.where(true, rng.random(true.shape) < found, rng.random(true.shape) < false)
    truth, predicted = true.mean(2).ravel(), said.mean(2).ravel()
    chosen = set(rng.permutation(scenarios * episodes)[:labels].tolist())
    return [
        Outcome(str(place // episodes), predicted[place], truth[place] if place in chosen else None)
        for place in range(scenarios * episodes)
    ]


@pytest.mark.parametrize(("scenarios", "episodes", "labels"), [(12, 5, 15), (45, 2, 30), (12, 5, 30)])
@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_the_corrected_rate_covers_the_truth_where_the_detectors_does_not(
    scenarios: int, episodes: int, labels: int, rate: float
) -> None:
    """The detector has the false alarms (44%) and the recall (81%) that are measured for localsim's own."""
    rng = np.random.default_rng(18)
    runs = 400
    covered = {"naive": 0, "corrected": 0}
    errors = []
    for _ in range(runs):
        outcomes = simulated(rng, scenarios, episodes, labels, rate, 0.81, 0.44)
        for name, estimate in (("naive", naive(outcomes)), ("corrected", corrected(outcomes))):
            assert estimate.low is not None and estimate.high is not None and estimate.value is not None
            assert 0 <= estimate.low < estimate.high <= 1
            covered[name] += estimate.low <= rate <= estimate.high
            if name == "corrected":
                errors.append(estimate.value - rate)
    assert covered["corrected"] >= 0.93 * runs
    assert covered["naive"] < 0.6 * runs
    assert abs(float(np.mean(errors))) < 0.02, "right on average (cut at 0, which moves it up a little)"


def test_a_wrong_probability_of_being_drawn_would_be_seen() -> None:
    """The check above can fail: a correction that forgets to weight the labels keeps the detector's error."""
    rng = np.random.default_rng(18)
    outcomes = [simulated(rng, 45, 2, 30, 0.15, 0.81, 0.44) for _ in range(100)]
    right = float(np.mean([corrected(one).value for one in outcomes]))
    unweighted = float(np.mean([
        np.mean([one.predicted if one.labelled is None else one.labelled for one in own]) for own in outcomes
    ]))  # fmt: skip
    assert abs(right - 0.15) < 0.02 < 0.1 < abs(unweighted - 0.15)


some = st.integers(0, 4).map(lambda quarter: quarter / 4)
episodes_ = st.lists(st.tuples(st.sampled_from("abcdef"), some, some), min_size=1, max_size=60)


@given(episodes_)
@settings(deadline=None)
def test_labels_of_all_episodes_decide_alone(made: list[tuple[str, float, float]]) -> None:
    whole = [Outcome(scenario, predicted, label) for scenario, predicted, label in made]
    said = [Outcome(scenario, label) for scenario, _, label in made]
    assert corrected(whole) == pytest.approx(naive(said)), "whatever the instrument says"


@given(episodes_, st.data())
@settings(deadline=None)
def test_a_right_instrument_is_not_changed_and_nothing_leaves_the_range(
    made: list[tuple[str, float, float]], data: st.DataObject
) -> None:
    chosen = data.draw(st.sets(st.integers(0, len(made) - 1)))
    right = [Outcome(name, value, value if place in chosen else None) for place, (name, value, _) in enumerate(made)]
    wrong = [Outcome(name, one, other if place in chosen else None) for place, (name, one, other) in enumerate(made)]
    if len(chosen) < min(FEWEST, len(made)):
        assert corrected(right).value is corrected(wrong).value is None
        return
    assert corrected(right) == pytest.approx(naive(right))
    found = corrected(wrong)
    assert found.value is not None and 0 <= found.value <= 1
    if len({name for name, *_ in made}) > 1:
        assert found.low is not None and found.high is not None and 0 <= found.low <= found.value <= found.high <= 1
    else:
        assert found.low is found.high is None, "one scenario has no interval"


# ---- from stored labels --------------------------------------------------------------------------------------------


def marking(turn: int | None) -> Any:
    """A rater of disclosures who marks Bo's fact in this turn, and nothing else."""
    return lambda item: {fact.id: turn if fact.id == "bo_1" else None for fact in item.facts}


def rates_of(store: Store, run: str, family: str = "everyday") -> dict[tuple[str, str], Any]:
    found = [row for row in corrections(store, run) if row.family == family]
    return {(row.mode, row.measure): row for row in found}


def test_labels_of_all_episodes_replace_the_detectors_rate(store: Store, run: str) -> None:
    assert corrections(store, run) == [], "nothing was searched for leaks"
    detected(store, run, {"script": 1, "agents": 1})
    before = rates_of(store, run)["script", "disclosed_rate"]
    assert (before.naive.value, before.corrected.value, before.labelled) == (0.5, None, 0), "one of two facts"
    # Bo speaks in turn 1, Ana in turn 2: an untold fact.
    answers_given(store, run, "ann", marking(2), "disclosures")
    after = rates_of(store, run)
    for mode in MODES:
        own, used = after[mode, "disclosed_rate"], after[mode, "omniscient_leaks"]
        assert (own.corrected.value, used.corrected.value) == (0, 0.5), mode
        assert (own.labelled, own.episodes, own.scenarios, own.needed) == (2, 2, 1, 0)
        assert own.kinds == {"person": 1} and own.alpha.alpha is None
    assert after["script", "disclosed_rate"].naive.value == 0.5
    assert after["mindreaders", "disclosed_rate"].naive.value == 0
    told = correction.sentences(corrections(store, run), run)
    assert any("50% by the instrument, 0% corrected; 2 of 2 episodes labelled by 1 person" in line for line in told)
    listed = [row.as_json() for row in corrections(store, run)]
    assert json.loads(json.dumps(listed)) == listed


def test_several_raters_count_by_their_mean(store: Store, run: str) -> None:
    detected(store, run, {})
    for rater, turn in (("ann", 1), ("bob", 1), ("cy", None)):
        answers_given(store, run, rater, marking(turn), "disclosures")
    row = rates_of(store, run)["agents", "disclosed_rate"]
    assert row.corrected.value == pytest.approx(1 / 3, abs=1e-4), "two of three raters, one of two facts"
    assert row.kinds == {"person": 3} and row.alpha.alpha is not None
    assert "labelled by 3 people, agreement alpha" in row.labels


def test_only_a_random_draw_counts(store: Store, run: str) -> None:
    """Answers after the first gap in the rater's order may have been chosen, so they do not count."""
    detected(store, run, {})
    items = items_of(store, run, "disclosures", "ann")
    chosen = [answered(item, marking(None)(item), origin="bundle") for item in items]
    save_all(store, [*chosen[:2], *chosen[3:]])
    talks = talks_of(store, run)
    kept = drawn(talks, rows(store, run))
    assert [row.item_id for row in kept] == [item.item_id for item in items[:2]]
    assert not any(row.corrected.value is not None and row.labelled < row.episodes for row in corrections(store, run))
    save_all(store, chosen)
    assert len(drawn(talks, rows(store, run))) == len(items)


def test_every_episode_is_equally_likely_to_be_drawn_first(store: Store, run: str) -> None:
    talks = talks_of(store, run)
    raters = 600
    firsts = [disclosures_from(talks, f"rater{number}")[0].item_id for number in range(raters)]
    ids = {talk.episode.episode_id for talk in talks}
    counts = [firsts.count(one) for one in ids]
    expected = raters / len(ids)
    chi2 = sum((count - expected) ** 2 / expected for count in counts)
    assert chi2 < len(ids) + 4 * (2 * len(ids)) ** 0.5, "mean and four standard deviations"


def test_labels_of_people_come_before_those_of_models(store: Store, run: str) -> None:
    detected(store, run, {})
    items = items_of(store, run, "disclosures", "bot")
    save_all(store, [answered(item, marking(1)(item), origin="bundle", made_by="language model") for item in items])
    row = rates_of(store, run)["agents", "disclosed_rate"]
    assert row.corrected.value == 0.5 and row.kinds == {"language model": 1}
    assert "1 language model" in correction.sentence(row)
    answers_given(store, run, "ann", marking(None), "disclosures")
    row = rates_of(store, run)["agents", "disclosed_rate"]
    assert row.corrected.value == 0 and row.kinds == {"person": 1}


def test_without_labels_the_reader_is_told_how_many_and_the_command(store: Store, run: str) -> None:
    detected(store, run, {})
    (line,) = correction.sentences(corrections(store, run), run)
    command = correction.command(run)
    assert "not corrected" in line and line.endswith(command)
    total = len(items_of(store, run, "disclosures", "ann"))
    assert all(0 < row.needed <= total for row in corrections(store, run))
    arguments = command.replace("NAME", "ann").split()[2:]
    assert invoke(*arguments, text="q\n").exit_code == 0, "the command works as printed"


def test_a_rater_who_goes_on_as_told_corrects_the_rest(store: Store, run: str) -> None:
    detected(store, run, {})
    items = items_of(store, run, "disclosures", "ann")
    save_all(store, [answered(item, marking(None)(item), origin="bundle") for item in items[:1]])
    rest = [row for row in corrections(store, run) if row.corrected.value is None]
    needed = max(row.needed for row in rest)
    assert rest and {row.rater for row in rest} == {"ann"}
    assert f"about {needed} more episodes" in correction.sentences(rest, run)[0]
    for more, left in ((needed - 1, True), (needed, False)):
        save_all(store, [answered(item, marking(None)(item), origin="bundle") for item in items[: 1 + more]])
        assert any(row.corrected.value is None for row in corrections(store, run)) is left


# ---- errors of instruments -----------------------------------------------------------------------------------------


def by_error(found: Sequence[instruments.Error], instrument: str) -> dict[str, dict[str, Any]]:
    return {row.error: vars(row) for row in found if row.instrument == instrument}


def test_the_detectors_errors_have_the_counts_of_the_labelled_files() -> None:
    found = by_error(instruments.instruments(["craigslist"], ["craigslist"], []), instruments.DETECTOR)
    pairs = [row for rows in data.held_out_pairs().values() for row in rows]
    talks = [talk for rows in data.held_out_talks().values() for talk in rows]
    facts = sum(len(talk.facts) for talk in talks)
    told = [where for talk in talks for where in talk.disclosures.values()]
    assert found["recall of pairs"]["n"] == sum(row.label == "disclosed" for row in pairs)
    assert found["first turn"]["n"] == len(told)
    assert found["silence accuracy"]["n"] == facts - len(told)
    assert found["recall of untold facts"]["n"] == sum(not where.by_owner for where in told)
    accuracy = Weights.read().accuracy
    for error, part, key in (
        ("precision of pairs", "pairs", "precision"),
        ("silence accuracy", "transcripts", "silence_accuracy"),
        ("precision of untold facts", "transcripts", "omniscient_precision"),
        ("recall of untold facts", "transcripts", "omniscient_recall"),
    ):
        row = found[error]
        assert row["value"] == pytest.approx(accuracy[part][key]), "a whole number of n"
        assert 0 < row["low"] < row["value"] < row["high"] < 1
    assert {(row["labelled_by"], row["raters"], row["agreement"]) for row in found.values()} == {
        ("language models", "one for each item", "not measured")
    }


def test_errors_of_each_kind_of_conversation_add_up_and_stand_in_the_table_alone() -> None:
    errors = instruments.instruments(["craigslist"], ["craigslist"], [])
    found = by_error(errors, instruments.DETECTOR)
    for whole in ("first turn", "silence accuracy"):
        parts = [found[f"{whole}: {kind}"] for kind in data.KINDS.values()]
        right = [sum(round(row["value"] * row["n"]) for row in rows) for rows in (parts, [found[whole]])]
        assert right[0] == right[1] and sum(row["n"] for row in parts) == found[whole]["n"]
    assert "Qwen" not in " ".join(instruments.sentences(errors))
    other = Thresholds("built-in at 0.05", "", 0, {}, Weights.read().at(0.05).accuracy, None)
    at_other = instruments.instruments(["craigslist"], ["craigslist"], [], [other])
    assert not [row for row in at_other if row.part], "these were counted at another threshold"


def test_names_are_the_instrument_where_terms_decide() -> None:
    names = [name for name in families.FAMILIES.own if families.family_of(name).terms_disclose]
    words = [name for name in families.FAMILIES.own if name not in names]
    assert names and words
    assert not by_error(instruments.instruments(names, names, []), instruments.DETECTOR)
    assert by_error(instruments.instruments(words, words, []), instruments.DETECTOR)
    assert not by_error(instruments.instruments(words, [], []), instruments.DETECTOR), "nothing was searched"
    said = instruments.leak_sources([*names, *words])
    assert (
        "rely on names" in said[0] and "is not used" in said[0] and said[-1].endswith("rely on the leakage detector.")
    )


def test_errors_of_the_parser_may_be_counted_by_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = {
        "measures": {"ending": {"right": 3, "n": 4}, "other": {"right": 1, "n": 2, "family": "elsewhere"}},
        "endings": {"deal": {"right": 8, "n": 10}, "unknown": {"right": 0, "n": 0}},
        "labelled_by": "people",
    }
    monkeypatch.setattr(families, "accuracy", lambda: stored)
    found = by_error(instruments.instruments(["craigslist"], [], []), instruments.PARSER)
    assert set(found) == {"ending", "ending: deal"} and found["ending: deal"]["n"] == 10
    assert found["ending"]["labelled_by"] == "people" and found["ending"]["agreement"] == "not measured"
    monkeypatch.setattr(families, "accuracy", lambda: None)
    assert instruments.instruments(["craigslist"], [], []) == []


def test_a_number_that_is_not_known_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    accuracy = json.loads(json.dumps(Weights.read().accuracy))
    del accuracy["transcripts"]["silent"]

    class Old:
        @staticmethod
        def read() -> Any:
            return type("W", (), {"accuracy": accuracy})()

    monkeypatch.setattr(instruments, "Weights", Old)
    rows_ = instruments.instruments(["craigslist"], ["craigslist"], [])
    row = by_error(rows_, instruments.DETECTOR)["silence accuracy"]
    kept = f"{accuracy['transcripts']['silence_accuracy']:.0%} of not recorded (silence accuracy)"
    assert (row["n"], row["low"]) == (0, None) and kept in instruments.sentences(rows_)[0]


def test_a_judge_is_an_instrument() -> None:
    judge = Reliability("toy", 60, {}, 0.7, 0.6, 0.8, 60, 9, 12, spread=None, warning=None)
    (row,) = instruments.instruments([], [], [judge, replace(judge, goal_auroc=None)])
    assert (row.instrument, row.value, row.n) == ("judge toy", 0.7, 60)
    assert "70% [60%, 80%] of 60" in instruments.sentences([row])[0]


def test_every_form_of_the_report_shows_the_errors(store: Store, run: str) -> None:
    detected(store, run, {"script": 1})
    answers_given(store, run, "ann", marking(2), "disclosures")
    data = report(store, run)
    data = replace(data, card=card.card(store, data))
    silence = next(str(each.share) for each in data.instruments if each.error == "silence accuracy")
    page, text = html.render(data), markdown.as_markdown(data)
    assert data.card
    stated = data.card["metrics"]
    assert silence in page and "language models" in page and "50% [" not in stated["corrected_rates"]
    assert "silence accuracy" in page and "precision of untold facts" in page and "recall of untold facts" in page
    assert silence in text and "Errors of the instruments" in text
    assert silence in stated["errors_of_instruments"] and stated["raters"] == "1 person"
    assert "{" not in markdown.card_as_markdown(data.card).partition("## Metrics")[2].partition("##")[0], (
        "sentences, not JSON"
    )
    assert "0% corrected" in stated["corrected_rates"] and "by 1 person" in page
    (section,) = sections.errors(data)
    assert len(section.tables) == 2, "the errors, and the rates corrected for them"
    for cell in {str(cell) for table in section.tables for row in table.rows for cell in row}:
        assert cell in unescape(page) and cell in text.replace("\\", ""), "every renderer prints every cell"
    assert all(isinstance(value, str | list) for value in stated.values())


def test_the_worked_query_on_leaks_and_success_compares_within_a_family_and_mode(store: Store, run: str) -> None:
    """A family in which everybody leaks and succeeds, beside one in which nobody does either, is no effect of leaks."""
    detected(store, run, {})
    records: list[Record] = []
    for talk in talks_of(store, run):
        easy = talk.episode.scenario.family is not None
        records += score_records(talk.episode.episode_id, "outcome", "9", [Score("success", float(easy))])
        if easy:
            fact = talk.episode.scenario.agents[0].facts[0]
            records.append(LeakRecord(
                episode_id=talk.episode.episode_id, version=DETECTOR, fact_id=fact.id, turn=0, owner="x", fact="x",
                speaker="y", label="disclosed", kind="omniscient", probability=0.9, similarity=0.9, evidence="x",
                first=True, early=False,
            ))  # fmt: skip
    store.take_in(records)
    (file,) = QUERIES.glob("15_*.sql")
    columns, answer = store.sql(file.read_text(encoding="utf-8"))
    assert columns[:4] == ["family", "mode", "player", "omniscient"]
    cells = [row[:3] for row in answer]
    assert len(cells) == len(set(cells)) == 2 * len(MODES), "no cell holds both, so nothing can be compared"
