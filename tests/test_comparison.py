"""Paired comparisons, and the simulation card."""

from __future__ import annotations

import itertools
import json
import re
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localsim import stats
from localsim.__main__ import run
from localsim.conversation.episode import MODES
from localsim.conversation.grants import parse
from localsim.conversation.measures import Measure
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput
from localsim.evaluators.evaluate import evaluator_of, score_runs
from localsim.evaluators.judge import Judge
from localsim.families.base import SUCCESS
from localsim.reports import comparison
from localsim.reports.card import HUMAN, _asymmetry, _conditions, card, missing, read_human, transparency
from localsim.reports.comparison import Compared, compare, compare_chosen, in_contrasts, pilot
from localsim.reports.compose.alone import report
from localsim.reports.figures.plots import figures
from localsim.reports.render.markdown import card_as_markdown
from localsim.reports.validity.headline import headline
from localsim.runs import runner
from localsim.runs.plan import CONTRASTS, Plan, secondary_in
from localsim.scenarios.find import find_scenarios
from localsim.scenarios.interviews.sheets import chosen_people, find_bank, sheets
from localsim.scenarios.tagging import INTERACTION, interaction_of, vocabulary
from localsim.store.conditions import Condition, choices, conditions_of, in_order
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


# ---- card ----------------------------------------------------------------------------------------------------------


def test_the_card_says_what_was_run(played: tuple[Store, str]) -> None:
    found = card(played[0], report(*played))
    details = found["simulation_details"]
    assert details["parties"] == [2] and details["domains"] == ["mutual_friends"]
    assert details["transparency_index"] == {"script": 1.0, "agents": 0.0}
    assert "rule-based" in next(iter(details["agent_types"].values()))
    assert "success" in card_as_markdown(found) and "## Not stated" in card_as_markdown(found)
    json.dumps(found)


def test_the_index_is_of_what_observe_shows() -> None:
    scenario = generated("craigslist").scenario
    assert [transparency([scenario], mode) for mode in ("script", "agents", "mindreaders")] == [1.0, 0.0, 1.0]


def test_a_grant_counts_only_where_its_agent_is() -> None:
    """`Ana=all` changes nothing in a scenario without Ana: it is played as `agents`, and counts there."""
    here = generated("mutual_friends", 1).scenario
    there = generated("craigslist", 2).scenario
    viewer = next(name for name in here.names if name not in there.names)
    plan = {"modes": ["mindreaders", "agents"], "see": [f"{viewer}=all"]}
    found = _conditions(plan, [here, there])
    granted = f"agents+{viewer}=all"
    assert {name: each[2] for name, each in found.items()} == {
        "agents": [there], granted: [here], "mindreaders": [here, there]
    }  # fmt: skip
    first = here.names[0] == viewer
    alike = transparency([here], "agents", parse("1=all" if first else "2=all"))
    assert transparency(found[granted][2], "agents", found[granted][1]) == alike
    assert transparency(found["agents"][2], "agents") == 0.0


@pytest.mark.parametrize(
    ("see", "words"),
    [
        ("all+announced", "none: separate models that each see every side"),
        ("goal,secret,facts,profile+announced", "none: separate models that each see every side"),
        ("1=all+2=all+announced", "none: separate models that each see every side"),
        ("all", "none: separate models that each see every side; only the viewer knows what it sees"),
        ("1=all+announced", "partial: each model knows its own side and the conversation, and of the others 1=all"),
        ("goal,secret,facts+announced", "partial: "),
        ("decoys", "full: "),
    ],
)
def test_asymmetry_is_none_where_every_side_is_seen(see: str, words: str) -> None:
    scenario = generated("craigslist", 2).scenario
    assert _asymmetry("agents", parse(see), [scenario]).startswith(words)


SEEN = ("facts:{}", "goal,facts:{}", "1=facts:{}")


@given(st.lists(st.integers(1, 99), unique=True, min_size=2), st.sampled_from(SEEN))
def test_grants_are_sorted_by_their_numbers(numbers: list[int], see: str) -> None:
    sorted_by = [Condition("r", "agents", "m", see.format(number)) for number in sorted(numbers)]
    every = Condition("r", "agents", "m", see.replace(":{}", ""))
    plain, after = Condition("r", "agents", "m"), Condition("r", "mindreaders", "m")
    for order in (in_order, in_contrasts):
        assert sorted([after, every, *sorted_by[::-1], plain], key=order) == [plain, *sorted_by, every, after]


def test_what_people_must_say_is_named_and_taken(played: tuple[Store, str], tmp_path: Path) -> None:
    assert len(missing(card(played[0], report(*played)))) == len(HUMAN)
    file = tmp_path / "card.yaml"
    file.write_text("\n".join(f"{name}: {'realism' if name == 'aim' else 'said'}" for name in HUMAN))
    full = card(played[0], report(*played), read_human(file))
    assert missing(full) == [] and "Not stated" not in card_as_markdown(full)
    file.write_text("purpose: x")
    with pytest.raises(InvalidInput, match="purpose"):
        read_human(file)


def test_the_card_counts_the_scenarios_of_the_run_by_tag(store: Store) -> None:
    scenarios = (
        generated("mutual_friends", 3),
        generated("craigslist", 4),
        find_scenarios(["a_box_of_old_records"])[0],
    )
    run_id = runner.start(Plan(scenarios, ("agents",), "scripted"), store, Quiet(), lambda _: None, leaks=False).run_id
    found = card(store, report(store, run_id))
    assert found["scenario_tags"]["kind"] == {"bargaining": 1, "family": 2}
    assert found["scenario_tags"]["parties"] == {"2": 3} and found["scenario_tags"]["payoff"] == {"split": 1}
    assert "- **Kind**: bargaining 1, family 2" in card_as_markdown(found)
    assert found["people_and_models"] == {name: [] for name in INTERACTION}
    assert found["scenario_tags"]["interacts_with"] == {"model_tool": 3, "environment": 1}, "programs take both sides"
    assert found["persona_risks"].keys() == {"character"} and "**Persona type character**" in card_as_markdown(found)


def features(store: Store, *scenarios: LoadedScenario, modes: tuple[Any, ...] = ("agents",)) -> tuple[list[str], Any]:
    """What the card of a run tells of protocol and memory, and its tags."""
    run_id = runner.start(Plan(scenarios, modes, "scripted"), store, Quiet(), lambda _: None, leaks=False).run_id
    found = card(store, report(store, run_id))
    return found["simulation_details"]["other_features"][:2], found


def test_the_card_tells_the_protocol_and_the_memory_of_each_family(store: Store) -> None:
    bank = find_bank("reasoning")
    (asked,) = sheets(bank, chosen_people(["nobody"], bank))
    auction = find_scenarios(["auction_first"])[0]
    told, found = features(store, asked)
    assert told == ["protocol: one question after the other", "memory: each question alone, with those that it follows"]
    assert found["scenario_tags"]["level"] == {"individual": 1} and "structure" not in found["scenario_tags"]
    assert found["scenario_tags"]["interacts_with"] == {"environment": 1}, "nobody else takes part"
    assert found["simulation_details"]["information_asymmetry"] == {"agents": "none: nobody else takes part"}
    told, _ = features(store, auction)
    assert told == ["protocol: at the same time", "memory: the whole conversation"]
    told, _ = features(store, auction, asked, generated("craigslist", 4))
    assert told[0] == (
        "protocol: in turn (craigslist); at the same time (auction); one question after the other (interview)"
    )
    _, found = features(store, generated("craigslist", 4), modes=("script",))
    assert "interacts_with" not in found["scenario_tags"], "one writer meets nobody"


def test_an_evaluator_is_refused_where_the_level_or_the_type_of_persona_does_not_suit_it(store: Store) -> None:
    bank = find_bank("refusal")
    people = sheets(bank, chosen_people(["helmi"], bank))
    run_id = runner.start(Plan(people, ("agents",), "scripted"), store, Quiet(), lambda _: None, leaks=False).run_id
    scored = partial(score_runs, store, [run_id], say=print, named=True)
    with pytest.raises(InvalidInput, match=r"judge\.m suits none of these episodes") as caught:
        scored(evaluators=[Judge("m")])
    assert caught.value.hint == "it is for level scenario or society; these have level individual"
    for words, suited in (("character", True), ("demographic", False)):
        evaluator = evaluator_of("refusal")
        evaluator.suits = {"persona_type": (words,)}
        with nullcontext() if suited else pytest.raises(InvalidInput, match="refusal suits none"):
            assert scored(evaluators=[evaluator]) == {"refusal": 1}


def test_where_people_take_part_the_card_asks_why_in_a_word_of_the_vocabulary(
    played: tuple[Store, str], tmp_path: Path
) -> None:
    alone = report(*played)
    data = replace(alone, annotations=replace(alone.annotations, raters=["a", "b"]))
    found = card(played[0], data)
    assert found["people_and_models"] == {
        "goal": [], "phase": ["evaluation"], "component": ["scores"], "role": ["rater"], "means": ["pages for raters"],
    }  # fmt: skip
    assert missing(found)[-1].startswith("interaction_goal: one of understand people, test a model")
    file = tmp_path / "card.yaml"
    file.write_text("interaction_goal: because")
    with pytest.raises(InvalidInput, match="cannot be 'because'") as error:
        read_human(file)
    assert "test a model" in str(error.value.hint)
    file.write_text("interaction_goal: test a model")
    told = card(played[0], data, read_human(file))
    assert told["people_and_models"]["goal"] == ["test a model"] and len(missing(told)) == len(HUMAN)


@pytest.mark.parametrize("seen", [(True, False, False), (False, True, True), (True, True, True)])
def test_tags_of_people_in_a_run_are_words_of_the_vocabulary(seen: tuple[bool, bool, bool]) -> None:
    players, imported, raters = seen
    found = interaction_of(players=players, imported=imported, raters=raters, goal="teach")
    for name, words in found.items():
        assert words and set(words) <= set(vocabulary().words(f"interaction_{name}") or ())
    assert ("pages for players" in found["means"]) == players and ("rater" in found["role"]) == raters


def test_an_interval_of_turns_ends_at_the_turn_limit(store: Store) -> None:
    """Two scenarios with very different lengths: Student's t alone would go far beyond 20 turns and below 1."""
    scenarios = (generated("mutual_friends", 3), generated("mutual_friends", 4))
    run_id = runner.start(Plan(scenarios, ("agents",), "scripted:guesser"), store, Quiet(), lambda _: None).run_id
    (row,) = report(store, run_id).as_json()["comparison"]
    for key in ("first_mention_turn", "turns"):
        low, value, high = row[f"{key}_low"], row[key], row[f"{key}_high"]
        assert 0 <= low <= value <= high <= 20, key
