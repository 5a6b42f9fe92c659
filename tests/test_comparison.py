"""Paired comparisons, designs and figures."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from localsim import stats
from localsim.__main__ import run
from localsim.backends import person
from localsim.conversation.episode import MODES
from localsim.conversation.measures import Measure
from localsim.errors import InvalidInput
from localsim.families.base import SUCCESS
from localsim.reports import comparison
from localsim.reports.comparison import Compared, compare, compare_chosen, pilot
from localsim.reports.compose.alone import report
from localsim.reports.figures.plots import figures
from localsim.reports.validity.headline import headline
from localsim.runs import runner
from localsim.runs.plan import CONTRASTS, Plan, secondary_in
from localsim.store.conditions import choices, conditions_of
from localsim.store.database import Store
from localsim.store.queries.runs import run_row
from tests.conftest import Quiet, generated
from tests.test_headline import DATA, compared


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    store = Store(tmp_path_factory.mktemp("compare") / "d.duckdb")
    scenarios = tuple(generated("mutual_friends", seed) for seed in range(1, 5))
    plan = Plan(scenarios, ("script", "agents"), "scripted:guesser", episodes=3)
    return store, runner.start(plan, store, Quiet(), print).run_id


# ---- compare -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "people"), [("human", True), ("starter|human", True), ("superhuman.gguf", False)])
def test_people_are_told_from_models_with_such_a_name(model: str, people: bool) -> None:
    assert person.has_part(model) is people


def test_modes_are_paired_by_scenario_and_seed(played: tuple[Store, str]) -> None:
    rows = compare(*played)
    turns = next(row for row in rows if row.measure.key == "turns")
    assert (turns.first, turns.second, turns.test.n, turns.test.scenarios) == ("agents", "script", 12, 4)
    store, run_id = played
    means = store.rows(
        "SELECT mode, avg(value) AS m FROM v_scores WHERE name = 'turns' AND run_id = ? GROUP BY 1 ORDER BY 1", [run_id]
    )
    assert turns.test.difference == pytest.approx(means[1]["m"] - means[0]["m"])
    assert all(row.p_holm is None or row.p_holm >= row.test.p for row in rows)


def test_two_runs_are_compared_mode_by_mode(played: tuple[Store, str]) -> None:
    store, first = played
    scenarios = tuple(generated("mutual_friends", seed) for seed in range(1, 5))
    second = runner.start(
        Plan(scenarios, ("script", "agents"), "scripted:friends", episodes=3), store, Quiet(), print
    ).run_id
    rows = compare(store, first, second)
    assert {row.first.split(":")[1] for row in rows} == {"script", "agents"}
    assert all(row.first.split(":")[1] == row.second.split(":")[1] for row in rows)
    assert not any(row.primary or row.contrast for row in rows), "two runs declare no outcome together"


@pytest.fixture(scope="module")
def three_modes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    """Players that peek in half of their turns, on twelve scenarios, with a primary outcome of its own."""
    store = Store(tmp_path_factory.mktemp("modes") / "d.duckdb")
    scenarios = tuple(generated("mutual_friends", seed) for seed in range(1, 13))
    named = ("turns", "turns:authorship", "wrong_guesses", "success_rate:both")
    plan = Plan(scenarios, MODES, "scripted:peeks-50", episodes=2, primary="turns:both", secondary=named)
    return store, runner.start(plan, store, Quiet(), print).run_id


def test_differences_are_named_by_what_differs(three_modes: tuple[Store, str]) -> None:
    turns = {row.contrast: row for row in compare(*three_modes) if row.measure.key == "turns"}
    named = {name: f"{row.second} - {row.first}" for name, row in turns.items()}
    assert named == {
        "information": "mindreaders - agents",
        "authorship": "script - mindreaders",
        "both": "script - agents",
    }
    parts = turns["information"].test.difference + turns["authorship"].test.difference
    assert turns["both"].test.difference == pytest.approx(parts), "the two parts add up"


def test_the_primary_outcome_is_apart(three_modes: tuple[Store, str]) -> None:
    rows = compare(*three_modes)
    assert [(row.measure.key, row.contrast) for row in rows if row.primary] == [("turns", "both")]
    assert rows[0].primary and rows[0].p_holm is None, "first, and not corrected"
    secondary = [row for row in rows if row.secondary]
    assert [row.p_holm for row in secondary] == stats.holm([row.test.p for row in secondary])
    assert {row.tests for row in secondary} == {len(secondary)} == {4}, "only the named ones"
    rest = [row for row in rows if row.role == "exploratory"]
    assert [row.role for row in rows] == ["primary", *["secondary"] * 4, *["exploratory"] * len(rest)]
    assert {(row.p_holm, row.tests) for row in rest} == {(None, 0)} and len(rest) > 20


PLANTED = 158 / 4096
"""p of twelve scenarios of which two differ the other way: 2 (1 + 12 + 66) of 2^12 flips lead as far from 0."""


def test_holm_corrects_the_named_outcomes_and_sentences_say_what_it_takes(
    three_modes: tuple[Store, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three outcomes with the same p below .05, which Holm over all three raises above it, and over one does not."""
    store, run_id = three_modes
    modes = {each.mode: each for each in conditions_of(store, run_id)}
    planted = {
        modes["agents"]: {(f"s{n}", 0, 1, 0): float(n < 2) for n in range(12)},
        modes["mindreaders"]: {(f"s{n}", 0, 1, 0): float(n >= 2) for n in range(12)},
    }
    measures = [replace(SUCCESS, key=key) for key in ("success_rate", "b", "c")]
    values = [("mutual_friends", measure, planted) for measure in measures]
    monkeypatch.setattr(comparison, "values_of", lambda *_: values)

    def told(named: str) -> tuple[list[Compared], str]:
        rows = compare_chosen(store, choices(store, [run_id]), secondary=secondary_in(named))
        return rows, headline(replace(DATA, measures=measures), rows).sentences[0]

    rows, sentence = told("success_rate,b,c")
    assert {(row.test.p, row.p_holm, row.tests) for row in rows} == {(PLANTED, 3 * PLANTED, 3)}
    assert "does not survive the correction over 3 secondary outcomes: p .039 becomes .116" in sentence
    assert "chance" not in sentence and "no effect of seeing every side on success was found" in sentence
    rows, sentence = told("success_rate")
    assert (rows[0].role, rows[0].p_holm, rows[0].tests) == ("secondary", PLANTED, 1)
    assert {(row.role, row.p_holm, row.tests) for row in rows[1:]} == {("exploratory", None, 0)}
    assert "seeing every side raised success by 67 points" in sentence and "exploratory" not in sentence
    with pytest.raises(InvalidInput, match="no two conditions are compared by d:information"):
        told("d")


def test_the_short_comparison_shows_the_main_measures_and_says_what_is_left(
    three_modes: tuple[Store, str], capsys: pytest.CaptureFixture[str]
) -> None:
    store, run_id = three_modes
    place = ["--db", str(store.path)]
    assert run(["compare", run_id, "--json", *place]) == 0
    rows = json.loads(capsys.readouterr().out)
    main = {row.measure.heading for row in comparison.main_rows(compare(store, run_id))}
    others = {row["heading"] for row in rows} - main
    assert {row["measure"] for row in rows if row["heading"] in main} >= {"success_rate", "peeking", "turns"}
    assert len(others) > len(main), "most measures are not the main ones"
    assert run(["compare", run_id, *place]) == 0
    short = capsys.readouterr().out
    assert f"{len(others)} more measures: localsim compare {run_id} --all" in short
    assert run(["compare", run_id, "--all", *place]) == 0
    whole = capsys.readouterr().out
    assert "more measures" not in whole
    for heading in others:
        assert re.search(rf"^{re.escape(heading)}  ", whole, re.MULTILINE)
        assert not re.search(rf"^{re.escape(heading)}  ", short, re.MULTILINE)
    assert all(heading in short for heading in main)


def test_a_family_without_a_main_measure_is_compared_whole() -> None:
    row = compared("information", 0.1, 0.5, primary=False)
    rows = [
        replace(row, family=family, measure=replace(row.measure, key=key))
        for family, key in (("a", "turns"), ("a", "x"), ("b", "x"))
    ]
    assert [(row.family, row.measure.key) for row in comparison.main_rows(rows)] == [("a", "turns"), ("b", "x")]


def test_a_plan_without_a_primary_outcome_is_of_success(played: tuple[Store, str]) -> None:
    store, run_id = played
    assert json.loads(run_row(store, run_id)["plan_json"])["primary"] == "success_rate:information"
    assert not any(row.primary for row in compare(store, run_id)), "the run has no mindreaders"


def test_zeros_by_construction_are_not_tested(three_modes: tuple[Store, str], monkeypatch: pytest.MonkeyPatch) -> None:
    known = comparison.of_family

    def with_zeros(measure: Measure, family: str | None) -> Measure:
        zero = ("agents",) if measure.key in ("turns", "wrong_guesses") else ()
        return replace(known(measure, family), structural_zero=zero)

    monkeypatch.setattr(comparison, "of_family", lambda *given: replace(known(*given), structural_zero=()))
    before = {(row.measure.key, row.contrast): row for row in compare(*three_modes)}
    monkeypatch.setattr(comparison, "of_family", with_zeros)
    after = {(row.measure.key, row.contrast): row for row in compare(*three_modes)}
    for key in ("turns", "wrong_guesses"):
        for contrast in ("information", "both"):
            row = after[key, contrast]
            assert row.by_construction and row.test.p is row.p_holm is None
            assert row.test.difference == before[key, contrast].test.difference, "shown, not tested"
        assert not after[key, "authorship"].by_construction and after[key, "authorship"].test.p is not None
    tested = [key for key, row in after.items() if row.p_holm is not None and before[key].test.p > 0.01]
    assert all(after[key].p_holm <= before[key].p_holm for key in tested if before[key].p_holm)


def test_shares_are_tested_for_equivalence(three_modes: tuple[Store, str]) -> None:
    rows = {(row.measure.key, row.contrast): row for row in compare(*three_modes)}
    ends = rows["explicit_end_rate", "information"].equivalence
    assert ends.margin == 0.1 and 0 < ends.p < 1 and ends.low < 0 < ends.high
    assert rows["turns", "both"].equivalence is None, "a number has no margin of its own"
    wide = {(row.measure.key, row.contrast): row for row in compare(*three_modes, margin=0.5)}
    assert wide["explicit_end_rate", "information"].equivalence.p < ends.p


def test_compare_prints_two_tables(three_modes: tuple[Store, str], capsys: pytest.CaptureFixture[str]) -> None:
    store, run_id = three_modes
    assert run(["compare", run_id, "--db", str(store.path), "--equivalent", ".2"]) == 0
    out = capsys.readouterr().out
    first, second, rest = re.split("Secondary outcomes, declared before .*|Mutual friends, exploratory: .*", out)
    assert first.startswith("Primary outcome") and "script - agents" in first and "p (Holm)" not in first
    assert "ICC" in first and "p (within 0.2)" in first and "p (Holm)" in second
    assert "p (Holm)" not in rest and "about one in twenty has p below .05 even if nothing differs" in rest
    assert "cannot be below" not in out, "twelve scenarios suffice"


def test_too_few_scenarios_are_named(played: tuple[Store, str], capsys: pytest.CaptureFixture[str]) -> None:
    store, run_id = played
    assert run(["compare", run_id, "--db", str(store.path)]) == 0
    assert "With 4 scenarios p cannot be below 0.125" in capsys.readouterr().out
    assert run(["compare", run_id, "--db", str(store.path), "--equivalent", "0"]) == 2


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (compared("information", 0.3, 0.01), False),
        (compared("information", 0.3, 0.01, low=0.1, high=0.42), True),
        (compared("information", 2.0, 0.01, Measure("turns", "turns", "turns", "turns"), low=1.0, high=2.2), False),
        (compared("information", 1.0, 0.01, low=None, high=None), False),
    ],
)
def test_an_interval_of_a_share_that_is_not_centred_is_explained(row: Compared, told: bool) -> None:
    assert ("its middle is nearer to 0" in " ".join(comparison.remarks([row]))) is told


def test_pairs_with_an_iterative_script_are_named(tmp_path: Path) -> None:
    """The effect of one author and that of one text add up to that of a script; families have the report's order."""
    store = Store(tmp_path / "d.duckdb")
    scenarios = (generated("craigslist", 1), generated("mutual_friends", 1), generated("mutual_friends", 2))
    plan = Plan(scenarios, (*MODES, "iterative"), "scripted:guesser")
    run_id = runner.start(plan, store, Quiet(), print).run_id
    rows = [row for row in compare(store, run_id) if row.measure.key == "turns" and row.family == "mutual_friends"]
    found = {row.contrast: (row.first, row.second, row.test.difference) for row in rows}
    assert {name: pair[:2] for name, pair in found.items()} == CONTRASTS
    assert found["author"][2] + found["text"][2] == pytest.approx(found["authorship"][2])
    assert found["information"][2] + found["author"][2] == pytest.approx(found["information+author"][2])
    for row in compare(store, run_id):
        assert row.levels[1] - row.levels[0] == pytest.approx(row.test.difference)
    one_order = ["mutual_friends", "craigslist"]
    assert list(dict.fromkeys(row["family"] for row in report(store, run_id).as_json()["comparison"])) == one_order
    assert list(dict.fromkeys(row.family for row in compare(store, run_id) if not row.primary)) == one_order


# ---- design --------------------------------------------------------------------------------------------------------


def test_a_design_follows_from_a_pilot(three_modes: tuple[Store, str], capsys: pytest.CaptureFixture[str]) -> None:
    store, run_id = three_modes
    command = ["design", run_id, "--db", str(store.path), "--difference", "-3", "--seeds", "1,4"]
    assert run([*command, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["role"] == "primary"
    assert (row["measure"], row["contrast"], row["difference"]) == ("turns", "both", 3), "the primary outcome, by size"
    differences = pilot(store, run_id, "turns", "both")["mutual_friends"]
    spread = stats.spread_of(differences)
    assert spread is not None and row["pilot"] == spread._asdict() and spread.scenarios == 12
    assert row["smallest"] == {str(each): stats.smallest(spread, 3, each) for each in (1, 4)}
    assert row["smallest"]["4"] <= row["smallest"]["1"]
    assert run(command) == 0
    assert f"power 0.8 with 4 seeds: {row['smallest']['4']} scenarios" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({"--measure": "turnz"}, 3, "did you mean turns?"),
        ({"--contrast": "information"}, 3, "--mode agents,mindreaders"),
        ({"--seeds": "0"}, 2, "numbers from 1"),
        ({"--difference": "0"}, 2, "not 0"),
        ({"--measure": "false_affirmed"}, 3, "differences that vary"),
    ],
)
def test_a_design_that_cannot_be_made(
    played: tuple[Store, str], capsys: pytest.CaptureFixture[str], options: dict[str, str], code: int, words: str
) -> None:
    store, run_id = played
    chosen = {"--difference": "1", "--measure": "turns", "--contrast": "both", **options}
    assert run(["design", run_id, "--db", str(store.path), *itertools.chain(*chosen.items())]) == code
    assert words in capsys.readouterr().err


# ---- figures -------------------------------------------------------------------------------------------------------


def test_figures_are_written_and_repeat(played: tuple[Store, str], tmp_path: Path) -> None:
    first, again = figures(*played, tmp_path / "a"), figures(*played, tmp_path / "b")
    names = {file.name for file in first}
    wanted = {"success_rate.svg", "named_curve.png", "words_per_turn.svg"}
    assert {f"mutual_friends_{name}" for name in wanted} <= names
    for one, other in zip(first, again, strict=True):
        if one.suffix == ".svg":
            assert one.read_bytes() == other.read_bytes() and b"script" in one.read_bytes()
            assert "success_rate" not in one.name or b"100%" in one.read_bytes(), "shares are percentages"
        else:
            assert one.read_bytes().startswith(b"\x89PNG")


def test_figures_have_true_fonts_and_take_the_names_that_a_reader_sees(
    played: tuple[Store, str], tmp_path: Path
) -> None:
    files = figures(*played, tmp_path, ["pdf"], ["Wrong  guesses", "peeking"])
    names = {file.name for file in files if file.name.startswith("mutual_friends")}
    assert names == {"mutual_friends_wrong_guesses.pdf", "mutual_friends_peeking.pdf"}, "chosen measures alone"
    assert not any(b"/Type3" in file.read_bytes() for file in files)
    with pytest.raises(InvalidInput, match="no measure") as error:
        figures(*played, tmp_path, ["pdf"], ["wrong gueses"])
    assert error.value.hint in ("did you mean wrong_guesses?", "did you mean wrong guesses?")


def test_an_interval_of_turns_ends_at_the_turn_limit(store: Store) -> None:
    """Two scenarios with very different lengths: Student's t alone would go far beyond 20 turns and below 1."""
    scenarios = (generated("mutual_friends", 3), generated("mutual_friends", 4))
    run_id = runner.start(Plan(scenarios, ("agents",), "scripted:guesser"), store, Quiet(), lambda _: None).run_id
    (row,) = report(store, run_id).as_json()["comparison"]
    for key in ("first_mention_turn", "turns"):
        low, value, high = row[f"{key}_low"], row[key], row[f"{key}_high"]
        assert 0 <= low <= value <= high <= 20, key
