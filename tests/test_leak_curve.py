"""The curve of false alarms: thresholds for a stated share, prefixes, and --sensitivity from option to report."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim import api
from localsim.cli.report import report as report_command
from localsim.cli.score import leakage, score
from localsim.errors import InvalidInput
from localsim.evaluators import leaks
from localsim.evaluators.leaks import Leaks, search, weights_of
from localsim.leakage import accuracy, calibrate, curve, detector
from localsim.leakage.curve import Point
from localsim.leakage.detector import BUILT_IN, VERSION, Finding, LeakageDetector, Weights, odds_of
from localsim.leakage.pairs import Disclosure, LabelledTranscript, Pair, PrivateFact
from localsim.leakage.quotes import QUOTED
from localsim.leakage.track import Row, decided, read, track
from localsim.reports.compose.alone import report
from localsim.reports.validity.thresholds import sentences, thresholds
from localsim.runs import runner
from localsim.runs.plan import Plan, command_of
from localsim.scenarios.parse import parse_scenario
from localsim.store.database import Store
from tests.conftest import TALK, Quiet
from tests.test_own_thresholds import Given, letters, quiet

POINTS = (
    Point(0.01, 0.9, 200, 199, 100, 50, 20, 8, 7),
    Point(0.1, 0.5, 200, 180, 100, 70, 20, 16, 12),
    Point(0.3, 0.2, 200, 140, 100, 80, 20, 30, 14),
)
EVEN = replace(
    Weights.read(),
    talk_slope=1.0,
    talk_intercept=0.0,
    talk_words=0.0,
    talk_rival=0.0,
    talk_from=0.5,
    talk_share=0.1,
    talk_curve=POINTS,
)
FACT, KEPT = PrivateFact("a", "Ana", "Ana has sold her piano."), PrivateFact("b", "Ana", "Ana owes her brother money.")
chances = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@pytest.fixture(autouse=True)
def by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaks are searched by words alone."""
    plain = LeakageDetector(letters, use_reader=False)
    monkeypatch.setattr(leaks, "Leaks", lambda store, weights: Leaks(store, plain.having(weights)))


def rows_of(*series: list[float]) -> list[Row]:
    """Findings about FACT and KEPT in turns that Ana and Bo speak by turns."""
    length = max(map(len, series))
    return [
        (fact, turn, ("Ana", "Bo")[turn % 2], Finding("none", given[turn], 0.5, "words"))
        for turn in range(length)
        for fact, given in zip((FACT, KEPT), series, strict=False)
        if turn < len(given)
    ]


def test_a_turn_is_judged_by_its_length_and_by_the_other_facts() -> None:
    """Even odds, with one more for each e-fold of words and one less for each by which another fact fits better."""
    weights = replace(EVEN, talk_words=1.0, talk_rival=1.0)
    odds = [odds_of(weights.beside(0.5, words, 0.5)) for words in (1, 5, 10, 30, 99)]
    assert odds == pytest.approx([math.log(0.5), math.log(0.5), 0, math.log(3), math.log(3)]), "5 to 30 words count"
    assert odds_of(weights.beside(0.5, 10, 0.8)) == pytest.approx(-math.log(4))
    assert odds_of(weights.beside(0.5, 10, 0.999)) == pytest.approx(-3), "at most"
    assert weights.beside(QUOTED[2], 3, QUOTED[2]) == QUOTED[2] and weights.beside(0.0, 30, 0.9) == 0.0

    class Said:
        def __init__(self, weights: Weights) -> None:
            self.weights = weights

        def classify(self, pairs: list[Pair]) -> list[Finding]:
            return [Finding("none", 0.6 if "piano" in pair.fact else 0.9, 0.0, "") for pair in pairs]

    turns = (("Ana", "Ten words are in this turn of hers, no less."),)
    for judge, told in ((Said(EVEN), {"a", "b"}), (Said(weights), {"b"})):
        (talk,) = track(judge, [((FACT, KEPT), turns)])  # type: ignore[arg-type]
        assert {leak.fact.id for leak in talk.leaks} == told
        assert all(leak.finding.evidence for leak in talk.leaks), "the words that show it"


# ---- prefixes ------------------------------------------------------------------------------------------------------


@given(chances, chances, st.floats(0.01, 0.99))
@settings(deadline=None)
def test_a_later_turn_never_changes_an_earlier_label(before: list[float], after: list[float], least: float) -> None:
    weights = replace(EVEN, talk_from=least)
    short, whole = decided(rows_of(before), weights), decided(rows_of([*before, *after]), weights)
    assert whole.findings[: len(short.findings)] == short.findings
    assert not short.leaks or whole.leaks == short.leaks, "the first disclosure stays the first"
    assert all(turn >= len(before) for _, turn, _ in whole.findings[len(short.findings) :])


def test_what_the_detector_asks_about_a_turn_ends_with_it() -> None:
    plain = LeakageDetector(letters, use_reader=False)
    turns = (("Bo", "Hello."), ("Ana", "I have sold my piano."), ("Bo", "Oh."), ("Ana", "I owe my brother money."))
    whole = read(plain, [((FACT, KEPT), turns)])[0]
    for length in range(1, len(turns)):
        part = read(plain, [((FACT, KEPT), turns[:length])])[0]
        for one, other in zip(part, whole, strict=False):
            assert one[:3] == other[:3] and one[3].label == other[3].label
            assert one[3].probability == pytest.approx(other[3].probability)


# ---- thresholds ----------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 0.99), min_size=1, max_size=120), st.sampled_from(curve.SHARES))
@settings(deadline=None)
def test_no_more_false_alarms_than_the_share(silent: list[float], share: float) -> None:
    least = curve.threshold_for(silent, share)
    assert sum(chance >= least for chance in silent) <= share * len(silent)


def test_the_share_holds_for_facts_that_the_threshold_has_not_seen() -> None:
    rng = np.random.default_rng(3)
    alarms = [rng.random() >= curve.threshold_for(rng.random(29).tolist(), 0.1) for _ in range(4000)]
    assert 0.085 < float(np.mean(alarms)) <= 0.11


@given(st.floats(0.011, 0.29), st.floats(0.011, 0.29))
@settings(deadline=None)
def test_fewer_false_alarms_need_a_higher_threshold(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert EVEN.at(low).talk_from >= EVEN.at(high).talk_from
    assert POINTS[0].talk_from >= EVEN.at(low).talk_from >= POINTS[-1].talk_from


def test_a_share_of_the_curve_has_its_own_threshold_and_errors() -> None:
    built_in = EVEN.at(0.3)
    assert (built_in.talk_from, built_in.talk_share) == (0.2, 0.3)
    assert built_in.accuracy["transcripts"]["silence_accuracy"] == 0.7
    assert built_in.accuracy["transcripts"]["omniscient_found"] == 30
    between = EVEN.at(0.05).accuracy["transcripts"]
    assert 180 < between["silences_kept"] < 199 and between["silent"] == 200
    assert EVEN.at(None) is EVEN and EVEN.at(0.1) is EVEN
    for share in (0.005, 0.5):
        with pytest.raises(InvalidInput, match=r"from 0\.01 to 0\.3"):
            EVEN.at(share)
    with pytest.raises(InvalidInput, match="no share"):
        replace(EVEN, talk_curve=()).at(0.2)


def test_the_shipped_curve_is_whole() -> None:
    weights = Weights.read()
    assert tuple(point.share for point in weights.talk_curve) == curve.SHARES
    assert weights.talk_share == curve.DEFAULT_SHARE
    told = " ".join(CliRunner().invoke(score, ["--help"]).output.split())
    shares = [point.share for point in weights.talk_curve]
    assert f"thresholds have {curve.DEFAULT_SHARE}, and go from {shares[0]} to {shares[-1]}" in told
    assert weights.talk_from == curve.between(weights.talk_curve, curve.DEFAULT_SHARE).talk_from
    usual = weights.accuracy["transcripts"]
    assert curve.rates(vars(curve.between(weights.talk_curve, curve.DEFAULT_SHARE))).items() <= usual.items()
    assert weights.at(0.02).at(curve.DEFAULT_SHARE).text == weights.text, "there and back"
    assert weights.at(0.02).at(curve.DEFAULT_SHARE).identity == BUILT_IN


@pytest.mark.parametrize(
    "bad",
    [
        3,
        [3],
        [{"share": 0.1}],
        [{"share": 0.1, "talk_from": 1.5}],
        [{"share": "x", "talk_from": 0.5}],
        [{"share": 0.1, "talk_from": 0.5, "more": 1}],
        [{"share": 0.1, "talk_from": 0.5, "silent": 3, "silences_kept": 4}],
        [{"share": 0.1, "talk_from": 0.5, "silent": -3}],
        [{"share": 0.1, "talk_from": 0.5, "silent": 2.5}],
        [{"share": 0.1, "talk_from": 0.5}, {"share": 0.05, "talk_from": 0.6}],
        [{"share": 0.05, "talk_from": 0.5}, {"share": 0.1, "talk_from": 0.6}],
    ],
)
def test_a_bad_curve_is_refused(tmp_path: Path, bad: Any) -> None:
    file = tmp_path / "w.json"
    file.write_text(json.dumps(json.loads(EVEN.text) | {"talk_curve": bad}))
    with pytest.raises(InvalidInput, match="not weights") as refused:
        Weights.read(file)
    assert "calibrate" in str(refused.value.hint) and refused.value.where == str(file)


def test_a_curve_is_read_as_it_was_written(tmp_path: Path) -> None:
    EVEN.write(tmp_path / "w.json")
    again = Weights.read(tmp_path / "w.json")
    assert again.talk_curve == POINTS and again.text == EVEN.text
    (tmp_path / "w.json").write_text(json.dumps(json.loads(EVEN.text) | {"talk_slope": -1.0}))
    with pytest.raises(InvalidInput, match="talk_slope"):
        Weights.read(tmp_path / "w.json")


# ---- own labels ----------------------------------------------------------------------------------------------------


def talks(silent: int, told: int) -> list[LabelledTranscript]:
    """Conversations in which the piano is sold in words, or something else is said."""
    loud = (("Bo", "Nice weather."), ("Ana", "I have sold my piano."))
    still = (("Bo", "Nice weather."), ("Ana", "It may rain, though."))
    one = LabelledTranscript((FACT,), loud, {"a": Disclosure(1, True)})
    return [*(LabelledTranscript((FACT,), still, {}) for _ in range(silent)), *(one for _ in range(told))]


def test_own_conversations_fit_a_curve_as_far_as_they_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeakageDetector, "classify", Given.classify)
    plain = LeakageDetector(letters, use_reader=False)
    fitted = calibrate.calibrated(plain, talks=talks(20, 10), files=["t.jsonl"])
    assert [point.share for point in fitted.talk_curve] == [0.05, 0.1, 0.2, 0.3]
    assert fitted.fitted["silent"] == 20 and fitted.fitted["sensitivity"] == fitted.talk_share == curve.DEFAULT_SHARE
    found = fitted.accuracy["transcripts"]
    assert found["silences_kept"] == 20 and found["first_turns_right"] == 10, "the turn that tells it is surer"
    stricter = calibrate.calibrated(plain, talks=talks(20, 10), files=["t.jsonl"], share=0.2)
    assert stricter.talk_share == 0.2 and stricter.at(0.2) is stricter
    assert stricter.at(0.05).name == "t.jsonl at 0.05" and stricter.at(0.05).at(0.2).text == stricter.text
    assert stricter.at(0.05).at(0.2).name == "t.jsonl"
    few = calibrate.calibrated(plain, talks=talks(3, 5))
    assert [point.share for point in few.talk_curve] == [curve.DEFAULT_SHARE, 0.3]
    assert few.accuracy["transcripts"]["silences_kept"] == 3


def test_few_silent_facts_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detector, "LeakageDetector", lambda **_: LeakageDetector(letters, use_reader=False))
    file = tmp_path / "t.jsonl"
    for silent, known in ((3, "not known with fewer than 9"), (12, "uncertain")):
        rows = [
            {
                "facts": [{"id": fact.id, "owner": fact.owner, "text": fact.text} for fact in talk.facts],
                "turns": [{"speaker": speaker, "text": text} for speaker, text in talk.turns],
                "disclosures": [
                    {"fact_id": name, "turn": told.turn, "by_owner": told.by_owner}
                    for name, told in talk.disclosures.items()
                ],
            }
            for talk in talks(silent, 3)
        ]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        result = called(leakage, "calibrate", str(file), "-o", str(tmp_path / "w.json"), "--sensitivity", "0.1")
        assert result.exit_code == 0, result.output
        assert f"facts that never come out: {silent}. A share of 0.1 false alarms is {known}" in result.output


@given(st.floats(0.3, 3.0), st.floats(-6, 1))
@settings(deadline=None)
def test_probabilities_in_talks_are_those_of_the_talks(slope: float, intercept: float) -> None:
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.01, 0.99, 40_000)
    truth = rng.random(40_000) < 1 / (1 + np.exp(-(intercept + slope * np.log(chance / (1 - chance)))))
    found = calibrate._logistic(chance, truth)
    assert found == pytest.approx((slope, intercept), abs=0.35)
    never = calibrate._logistic(chance, np.zeros(40_000, dtype=bool))
    assert np.isfinite(never).all() and never[0] > 0, "a higher probability of a pair is never a lower one"


def test_measures_of_groups_add_up() -> None:
    rows = [replace(talk, writer=f"{place % 2}", domain="needs") for place, talk in enumerate(talks(4, 4))]
    found = accuracy.of_talks(rows, [decided(rows_of([0.1, 0.9]), EVEN) for _ in rows])
    assert found["by_domain"]["needs"] | {"by_writer": 0, "by_domain": 0} == found | {"by_writer": 0, "by_domain": 0}
    for name in curve.COUNTS:
        assert sum(part[name] for part in found["by_writer"].values()) == found[name]
    assert (found["first_turns_right"], found["silences_kept"]) == (4, 0)


# ---- --sensitivity -------------------------------------------------------------------------------------------------


def called(command: Any, *arguments: str) -> Any:
    return CliRunner().invoke(command, arguments)


def test_two_sensitivities_never_mix(store: Store, run: str) -> None:
    assert called(score, run).exit_code == 0
    assert called(score, run, "--sensitivity", "0.02").exit_code == 0
    at = Weights.read().at(0.02)
    assert at.identity == f"built-in at 0.02 {at.hash[:8]}" and at.version == f"{VERSION}+{at.hash[:8]}"
    (used,) = thresholds(store, run)
    assert (used.weights, used.version, used.sensitivity) == (at.identity, at.version, 0.02)
    assert used.accuracy == at.accuracy != Weights.read().accuracy
    assert "built-in thresholds" in sentences([used])[0] and "at most 2% false alarms" in sentences([used])[0]
    assert weights_of(store, run).identity == at.identity, "a later score keeps it"
    data = report(store, run)
    assert any("at most 2% false alarms" in line for line in data.leak_sources)
    assert {row.instrument for row in data.instruments} >= {f"leakage detector with {at.identity}"}
    assert called(report_command, run, "--sensitivity", "0.02").exit_code == 0
    refused = called(report_command, run, "--sensitivity", "0.2").exception
    assert isinstance(refused, InvalidInput) and refused.hint == f"localsim score {run} --sensitivity 0.2"
    assert called(score, *str(refused.hint).split()[2:]).exit_code == 0
    assert called(report_command, run, "--weights", "built-in", "--sensitivity", "0.2").exit_code == 0
    assert search(store, [run], quiet, share=curve.DEFAULT_SHARE) == 0, "the usual share has searched it"
    assert thresholds(store, run)[0].weights == BUILT_IN


def test_a_run_at_a_sensitivity_keeps_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan((parse_scenario(TALK, "talk.yaml"),), ("agents",), "scripted", seed=5)
    real = runner.with_leaks
    monkeypatch.setattr(runner, "with_leaks", lambda result, *_: result)
    run_id = runner.start(plan, store, Quiet(), quiet, weights=Weights.read().at(0.02)).run_id
    stored = json.loads(store.rows("SELECT plan_json FROM runs")[0]["plan_json"])
    assert "--weights built-in --sensitivity 0.02" in command_of(stored, [])
    monkeypatch.setattr(runner, "with_leaks", real)
    assert runner.resume(run_id, store, Quiet(), quiet, leaks=True).leaks_scored
    assert thresholds(store, run_id)[0].weights == Weights.read().at(0.02).identity


def test_own_thresholds_have_sensitivities_too(store: Store, run: str, tmp_path: Path) -> None:
    plain = LeakageDetector(letters, use_reader=False)
    file = tmp_path / "mine.json"
    calibrate.calibrated(plain, talks=talks(20, 10), files=["t.jsonl"]).write(file)
    assert called(score, run, "--weights", str(file), "--sensitivity", "0.2").exit_code == 0
    (used,) = thresholds(store, run)
    assert used.weights.startswith("mine.json at 0.2 ")
    assert "thresholds fitted to t.jsonl" in sentences([used])[0] and "at most 20% false alarms" in sentences([used])[0]
    assert called(score, run, "--sensitivity", "0.1").exit_code == 0, "of the run's own thresholds"
    assert thresholds(store, run)[0].weights == Weights.read(file).identity
    refused = called(score, run, "--sensitivity", "0.02").exception
    assert isinstance(refused, InvalidInput) and "from 0.05 to 0.3" in refused.message


@pytest.mark.parametrize("value", ["0", "1", "nan", "x", "-0.1"])
def test_a_sensitivity_is_a_share(value: str) -> None:
    for command, arguments in ((score, ["@last"]), (report_command, ["@last"]), (leakage, ["bench", "none.jsonl"])):
        result = called(command, *arguments, "--sensitivity", value)
        assert result.exit_code == 2 and "--sensitivity" in result.output


def test_python_takes_a_sensitivity(tmp_path: Path) -> None:
    scene = tmp_path / "talk.yaml"
    scene.write_text(TALK)
    with pytest.raises(InvalidInput, match="sensitivity 0"):
        api.run(str(scene), model="scripted", db=str(tmp_path / "a.duckdb"), sensitivity=0.9)
