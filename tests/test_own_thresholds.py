"""Own labels count: thresholds fitted to labels reach runs, scores and reports, and no report mixes them unsaid."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from localsim.annotation.labels import conversations
from localsim.cli.annotate import annotate
from localsim.cli.compare import compare
from localsim.cli.report import report as report_command
from localsim.cli.score import leakage, score
from localsim.errors import InvalidInput
from localsim.evaluators import leaks
from localsim.evaluators.leaks import Leaks, search, weights_of
from localsim.leakage import calibrate, detector
from localsim.leakage.detector import VERSION, LeakageDetector, Weights
from localsim.leakage.pairs import Disclosure, LabelledPair, LabelledTranscript, Pair, PrivateFact, read_labelled
from localsim.leakage.track import track
from localsim.reports.card import card
from localsim.reports.compose.alone import report
from localsim.reports.render.html import render
from localsim.reports.render.markdown import as_markdown, card_as_markdown
from localsim.runs import runner
from localsim.runs.plan import Plan, command_of
from localsim.scenarios.parse import parse_scenario
from localsim.store.conditions import conditions_of
from localsim.store.database import Store
from tests.conftest import TALK, Quiet
from tests.rated import given

FITTED = {"files": ["mine.jsonl"], "pairs": 128, "conversations": 0, "facts": 0, "labels": 128, "date": "2026-11-23"}
MEASURED = {"pairs": {"n": 128, "true": 40, "said": 50, "precision": 0.6, "recall": 0.75, "f1": 0.667, "auroc": 0.8}}
DATA = Path(__file__).resolve().parent.parent / "scenarios" / "leakage"


def letters(texts: Sequence[str]) -> Any:
    """Unit vectors that count the letters of texts: no model is loaded."""
    counts = np.array([[1.0, *(text.lower().count(letter) for letter in ascii_lowercase)] for text in texts])
    return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


def own(level: float, name: str = "mine.json") -> Weights:
    """Thresholds that find everything (0) or nothing (1) by words."""
    thresholds = {key: level for key in detector._THRESHOLDS if key != "gate"}
    return replace(Weights.read(), **thresholds, name=name, fitted=FITTED, accuracy=MEASURED)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaks are searched by words alone."""
    plain = LeakageDetector(letters, use_reader=False)
    monkeypatch.setattr(leaks, "Leaks", lambda store, weights: Leaks(store, plain.having(weights)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of thresholds that find everything."""
    path = tmp_path / "mine.json"
    own(0.0).write(path)
    return path


def quiet(_line: str) -> None:
    """Say nothing."""


def found(store: Store, run: str) -> set[tuple[Any, ...]]:
    """The leaks that count."""
    query = "SELECT episode_id, fact_id, turn, version, weights FROM v_leaks WHERE run_id = ?"
    return {tuple(row.values()) for row in store.rows(query, [run])}


def called(command: Any, *arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


# ---- weights -------------------------------------------------------------------------------------------------------


def test_a_file_of_thresholds_has_one_identity(file: Path) -> None:
    read = Weights.read(file)
    assert read.text == file.read_text() == own(0.0, "other.json").text, "the name is not in the file"
    assert read.identity == f"mine.json {read.hash[:8]}" and read.version == f"{VERSION}+{read.hash[:8]}"
    built_in = Weights.read()
    assert (built_in.identity, built_in.version) == ("built-in", VERSION)
    assert replace(built_in, name="copy.json").identity == "built-in", "a copy decides the same"
    assert own(0.1).identity != read.identity and read.fitted == FITTED and read.accuracy == MEASURED
    assert "fitted" not in json.loads(built_in.text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": "1"}, "version 1 of the leakage detector"),
        ({"names": ["a"]}, "other features"),
        ({"mean": [1.0]}, "other features"),
        ({"intercepts": [1.0, 2.0, float("nan")]}, "not finite"),
        ({"accuracy": {"pairs": {"f1": 7.5}}}, "accuracy"),
        ({"accuracy": [1]}, "not weights"),
        ({"fitted": {"files": "mine", "labels": 3, "date": "today"}}, "fitted"),
        ({"coefficients": "x"}, "not weights"),
    ],
)
def test_a_bad_file_gives_one_clear_error(file: Path, change: dict[str, Any], message: str) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    for command, arguments in ((score, ["@last"]), (report_command, ["@last"]), (leakage, ["bench", "none.jsonl"])):
        result = called(command, *arguments, "--weights", str(file))
        error = result.exception
        assert isinstance(error, InvalidInput) and error.exit_code == 3, result.output
        assert message in error.message and error.where == str(file) and "calibrate" in str(error.hint)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '"x"', "[" * 100_000])
def test_what_is_no_table_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "w.json").write_text(text)
    with pytest.raises(InvalidInput, match="not weights"):
        Weights.read(tmp_path / "w.json")
    with pytest.raises(InvalidInput, match="cannot be read"):
        Weights.read(tmp_path / "none.json")


# ---- searches ------------------------------------------------------------------------------------------------------


def test_the_last_thresholds_count_and_earlier_findings_stay(store: Store, run: str) -> None:
    assert search(store, [run], quiet) == 12
    before = found(store, run)
    assert search(store, [run], quiet) == 0, "these thresholds have searched it"
    everything = own(0.0)
    assert search(store, [run], quiet, everything) == 12
    after = found(store, run)
    assert (
        after > set() and after != before and {row[3:] for row in after} == {(everything.version, everything.identity)}
    )
    rows = "SELECT count(*) AS n FROM leaks WHERE version = ?"
    kept = store.rows(rows, [VERSION])[0]["n"], store.rows(rows, [everything.version])[0]["n"]
    assert search(store, [run], quiet, Weights.read()) == 0, "found again without a search"
    assert found(store, run) == before
    assert (store.rows(rows, [VERSION])[0]["n"], store.rows(rows, [everything.version])[0]["n"]) == kept
    names = "SELECT count(*) AS n, count(DISTINCT (episode_id, name, agent)) AS once FROM v_scores WHERE newest"
    counted = store.rows(f"{names} AND evaluator = 'leakage'")[0]
    assert counted["n"] == counted["once"], "one score counts"
    assert store.check() == []


def test_a_run_keeps_its_thresholds_without_the_file(store: Store, run: str) -> None:
    assert weights_of(store, run).identity == "built-in"
    search(store, [run], quiet, own(0.0))
    kept = weights_of(store, run)
    assert kept.identity == own(0.0).identity and kept.name == "mine.json"
    before = found(store, run)
    assert search(store, [run], quiet) == 0 and found(store, run) == before, "a later score changes no thresholds"


def test_kept_thresholds_of_another_version_are_refused(
    store: Store, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    search(store, [run], quiet, own(0.0))
    monkeypatch.setattr(detector, "VERSION", "99")
    with pytest.raises(InvalidInput, match=f"version {VERSION} of the leakage detector") as refused:
        search(store, [run], quiet)
    assert "--weights built-in" in str(refused.value.hint) and run in str(refused.value.hint)


def test_scores_before_searches_were_stored_count_as_built_in(store: Store, run: str) -> None:
    search(store, [run], quiet)
    with store.writing() as connection:
        connection.execute("DELETE FROM searches")
    assert {row[4] for row in found(store, run)} <= {"built-in"} and search(store, [run], quiet) == 0
    assert [row.weights for row in report(store, run).thresholds] == ["built-in"]
    search(store, [run], quiet, own(0.0))
    assert {row[4] for row in found(store, run)} == {own(0.0).identity}


def test_a_run_may_be_given_thresholds_and_a_resume_has_them(
    store: Store, monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    plan = Plan((parse_scenario(TALK, "talk.yaml"),), ("agents",), "scripted", seed=5)
    stopped: list[Any] = []
    real = runner.with_leaks
    monkeypatch.setattr(runner, "with_leaks", lambda result, *_: stopped.append(result) or result)
    run_id = runner.start(plan, store, Quiet(), quiet, weights=Weights.read(file)).run_id
    assert stopped and weights_of(store, run_id).identity == own(0.0).identity, "before any search"
    stored = json.loads(store.rows("SELECT plan_json FROM runs")[0]["plan_json"])
    assert "--weights mine.json" in command_of(stored, [])
    assert "weights" not in json.loads(plan.as_json()) and "--weights" not in command_of(json.loads(plan.as_json()), [])
    monkeypatch.setattr(runner, "with_leaks", real)
    file.unlink()
    assert runner.resume(run_id, store, Quiet(), quiet, leaks=True).leaks_scored
    assert {row[4] for row in found(store, run_id)} == {own(0.0).identity}
    with pytest.raises(InvalidInput, match="no search for leaks"):
        runner.start(plan, store, Quiet(), quiet, leaks=False, weights=own(0.0))


# ---- reports -------------------------------------------------------------------------------------------------------


def test_every_report_names_the_thresholds(store: Store, run: str) -> None:
    search(store, [run], quiet)
    usual = report(store, run)
    assert any("built-in thresholds" in line for line in usual.leak_sources)
    assert usual.as_json()["detector"] == Weights.read().accuracy
    search(store, [run], quiet, own(0.0))
    data = report(store, run)
    named = "thresholds fitted to mine.jsonl (128 labels, 2026-11-23; file mine.json"
    assert [row.weights for row in data.thresholds] == [own(0.0).identity]
    assert data.as_json()["detector"] == MEASURED and not any("different thresholds" in line for line in data.warnings)
    made = card(store, data)
    data = replace(data, card=made)
    shown = called(report_command, run, "--all")
    assert shown.exit_code == 0, shown.output
    for text in (shown.output, render(data), as_markdown(data), card_as_markdown(made), json.dumps(data.as_json())):
        assert named in text
    errors = [row for row in data.instruments if row.instrument.endswith(own(0.0).identity)]
    assert {row.error: row.value for row in errors} == {"precision of pairs": 0.6, "recall of pairs": 0.75}
    assert all("too good" in row.labelled_by for row in errors)


def test_a_mixture_in_a_run_is_said(store: Store, run: str) -> None:
    search(store, [run], quiet)
    one = conditions_of(store, run)[0]
    search(store, [run], quiet, own(0.0), only={one})
    data = report(store, run)
    assert len(data.thresholds) == 2
    (line,) = [line for line in data.warnings if "different thresholds" in line]
    assert "mine.jsonl" in line and "built-in" in line and line.endswith(f"localsim score {run}")
    assert line in called(compare, run).output
    assert called(score, run).exit_code == 0, "as the warning says"
    assert not any("different thresholds" in line for line in report(store, run).warnings)


def test_a_report_may_demand_thresholds(store: Store, run: str, file: Path) -> None:
    refused = called(report_command, run, "--weights", str(file)).exception
    assert isinstance(refused, InvalidInput) and "was not searched" in refused.message
    search(store, [run], quiet)
    assert called(report_command, run, "--weights", "built-in").exit_code == 0
    refused = called(report_command, run, "--weights", str(file)).exception
    assert isinstance(refused, InvalidInput) and refused.hint == f"localsim score {run} --weights {file}"
    scored = called(score, *str(refused.hint).split()[2:])
    assert scored.exit_code == 0, scored.output
    assert "thresholds fitted to mine.jsonl (128 labels" in scored.output
    assert called(report_command, run, "--weights", str(file)).exit_code == 0


def test_other_runs_with_other_thresholds_are_told_apart(store: Store, run: str) -> None:
    search(store, [run], quiet, own(0.0))
    plan = Plan((parse_scenario(TALK, "talk.yaml"),), ("agents",), "scripted", seed=5)
    other = runner.start(plan, store, Quiet(), quiet, leaks=True).run_id
    result = called(report_command, run, f"{other}:agents", "--json")
    told = [line for line in json.loads(result.stdout)["warnings"] if "do not compare its rates of leaks" in line]
    assert len(told) == 1 and other in told[0] and "mine.json" in told[0]
    assert told[0] in called(compare, run, f"{other}:agents").output


# ---- calibration ---------------------------------------------------------------------------------------------------

FACT = PrivateFact("a", "Ana", "Ana has sold her piano.")
KEPT = PrivateFact("b", "Ana", "Ana owes her brother money.")
TURNS = (("Bo", "Nice weather."), ("Ana", "I have sold my piano."), ("Bo", "Is it so? Well then."))
TALKS = (LabelledTranscript((FACT, KEPT), TURNS, {"a": Disclosure(1, True)}),)


def pairs() -> list[LabelledPair]:
    """Pairs of the training file."""
    rows: Any = read_labelled(DATA / "train.pairs.jsonl")
    return list(rows[:80])


def test_conversations_fit_their_own_thresholds() -> None:
    """Whatever the thresholds are named: those of conversations change by conversations, the others by pairs."""
    plain = LeakageDetector(letters, use_reader=False)

    def changed(weights: Weights) -> set[str]:
        return {name for name in detector._THRESHOLDS if getattr(weights, name) != getattr(plain.weights, name)}

    by_pairs = calibrate.calibrated(plain, pairs(), files=["p.jsonl"])
    start = plain.having(replace(plain.weights, talk_from=0.123, words_disclosed_from=0.0))
    by_talks = calibrate.calibrated(start, talks=TALKS, files=["t.jsonl"])
    assert changed(by_pairs) and not changed(by_pairs) & {"talk_from"}
    assert by_talks.talk_from != 0.123
    assert by_talks.fitted["labels"] == 2 and by_talks.fitted["conversations"] == 1 and "pairs" not in by_talks.accuracy
    both = calibrate.calibrated(plain, pairs(), TALKS, ["p.jsonl", "t.jsonl"])
    assert both.fitted["labels"] == 82 and both.fitted["files"] == ["p.jsonl", "t.jsonl"]
    assert {"pairs", "transcripts"} <= set(both.accuracy) and not both.built_in


class Given:
    """Findings that are given: the disclosing turn of the fact is surer than the false alarm about the kept one."""

    def classify(self, asked: Sequence[Pair]) -> list[detector.Finding]:
        """Return .8 for the piano told and .6 for every turn about the debt."""
        sure = [0.8 if pair.fact == FACT.text and "piano" in pair.utterance else 0.6 for pair in asked]
        return [detector.Finding("disclosed", chance, 0.5, "words") for chance in sure]


def test_the_best_thresholds_for_conversations_get_every_fact_right(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = LeakageDetector(letters, use_reader=False)
    monkeypatch.setattr(LeakageDetector, "classify", Given.classify)
    fitted = plain.having(calibrate.fitted_to_talks(plain, TALKS))
    (talk,) = track(fitted, [(one.facts, one.turns) for one in TALKS])
    assert [(leak.fact.id, leak.turn) for leak in talk.leaks] == [("a", 1)]


@pytest.mark.parametrize("told", [{}, {"a": Disclosure(1, True), "b": Disclosure(2, True)}])
def test_conversations_that_are_all_alike_fit_nothing(told: dict[str, Disclosure]) -> None:
    with pytest.raises(InvalidInput, match="never"):
        calibrate.calibrated(LeakageDetector(letters, use_reader=False), talks=[replace(TALKS[0], disclosures=told)])


def test_the_command_takes_pairs_and_conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = LeakageDetector(letters, use_reader=False)
    monkeypatch.setattr(detector, "LeakageDetector", lambda **_: plain)
    files = []
    for kind, count in (("pairs", 60), ("transcripts", 3)):
        lines = (DATA / f"train.{kind}.jsonl").read_text().splitlines(keepends=True)
        files.append(tmp_path / f"mine.{kind}.jsonl")
        files[-1].write_text("".join(lines[:count]))
    out = tmp_path / "mine.json"
    result = called(leakage, "calibrate", *map(str, files), "-o", str(out), "--json")
    assert result.exit_code == 0, result.output
    said, weights = json.loads(result.stdout), Weights.read(out)
    assert said["pairs"] == 60 and said["conversations"] == 3 and said["output"] == str(out)
    assert weights.fitted["files"] == ["mine.pairs.jsonl", "mine.transcripts.jsonl"] and not weights.built_in
    files[1].write_text('{"facts": 3, "turns": []}\n')
    error = called(leakage, "calibrate", *map(str, files), "-o", str(out)).exception
    assert isinstance(error, InvalidInput) and error.where == f"{files[1]}:1"


def test_marked_conversations_can_be_written_whole(store: Store, run: str) -> None:
    def first(turn: int | None) -> Any:
        return lambda item: {fact.id: turn if fact.id == "bo_1" else None for fact in item.facts}

    for rater, turn in (("ann", 2), ("bob", 2), ("cy", None)):
        given(store, run, rater, first(turn), "disclosures")
    result = called(annotate, "labels", "--conversations", "-o", "mine.transcripts.jsonl")
    assert result.exit_code == 0, result.output
    read: Any = read_labelled(Path("mine.transcripts.jsonl"))
    assert len(read) == len(conversations(store, run)) == 12
    told = [talk for talk in read if talk.disclosures]
    assert len(told) == 6 and {row["labelled_by"] for row in conversations(store, run)} == {"3 people"}
    for talk in told:
        (where,) = talk.disclosures.values()
        assert where.turn == 2 and where.by_owner is (talk.turns[2][0] == "Bo")
