"""The answer of a report: found, not told, withheld or absent, and the dial of players that peek."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localsim.conversation.measures import Measure
from localsim.families import family_of
from localsim.families.base import SUCCESS
from localsim.reports.comparison import Compared
from localsim.reports.compose.alone import report
from localsim.reports.document import Report, Run
from localsim.reports.results import Number, Result
from localsim.reports.validity.findings import effects
from localsim.reports.validity.headline import PEEKING, found_in, headline
from localsim.runs.plan import CONTRASTS, Plan
from localsim.runs.runner import start
from localsim.stats import Paired
from localsim.store.database import Store
from tests.conftest import Quiet, generated

DATA = Report(Run("@last"), measures=[SUCCESS])


def compared(contrast: str, difference: float, p: float | None, measure: Measure = SUCCESS, **changes: Any) -> Compared:
    """A comparison of success in the search for a friend over twelve scenarios; information is primary."""
    ends = {"low": difference - 0.1, "high": difference + 0.1}
    known = {"n": 12, "scenarios": 12, "difference": difference, **ends, "p": p, "p_least": 0.001, "icc": None}
    test = {**known, "effect": 0.5, **{name: changes.pop(name) for name in Paired._fields if name in changes}}
    given = {"primary": contrast == "information", "model": "starter", "first": "", "second": ""}
    rest = {"levels": (0.5, 0.5 + difference), "by_construction": False, "equivalence": None, "plays": True}
    row = {"family": "mutual_friends", "contrast": contrast, **given, **rest, "unpaired": (0, 0), **changes}
    return Compared(measure=measure, test=Paired(**test), **row)


def test_a_difference_is_found_only_by_its_test() -> None:
    found = headline(DATA, [compared("information", 0.3, 0.01), compared("authorship", 0.05, 0.4)])
    assert found.families[0].as_json()["verdicts"] == {"information": "found", "authorship": "not told"}
    assert list(found.sentences[:2]) == [
        "Mutual friends: seeing every side raised success by 30 points (95% interval 20 to 40, 12 scenarios).",
        "Mutual friends: no effect of one author for both sides on success was found: +5 points, 95% interval -5 to "
        "+15 (12 scenarios).",
    ]
    fewer = compared("information", -0.3, 0.01, levels=(0.8, 0.5), first="agents", second="mindreaders")
    assert headline(DATA, [fewer]).sentences[0] == (
        "Mutual friends: seeing every side lowered success by 30 points, from 80% in agents to 50% in mindreaders (95% "
        "interval 20 to 40, 12 scenarios)."
    )
    one = headline(DATA, [replace(fewer, variants=True)]).sentences[0]
    assert one.endswith("(95% interval 20 to 40, 12 variants of one scenario: this tells about this story only).")
    floor = headline(DATA, [replace(fewer, levels=(0.0, 0.0), test=fewer.test._replace(difference=0.0, p=1.0))])
    assert floor.sentences[0].startswith("Mutual friends: nobody succeeds in agents or mindreaders (0 points,")
    assert (
        floor.sentences[0].endswith("; take easier checks or a larger model.") and "design" not in floor.sentences[-1]
    )
    top = headline(DATA, [replace(fewer, levels=(1.0, 1.0), test=fewer.test._replace(difference=0.0, p=1.0))])
    assert top.sentences[0].endswith("changes; the number of turns may."), "a page names no option"
    neither = headline(DATA, [replace(fewer, test=fewer.test._replace(p=0.2))]).sentences
    assert neither[0] == (
        "Mutual friends: no effect of seeing every side on success was found: 80% in agents, 50% in mindreaders "
        "(difference -30 points, 95% interval -40 to -20, 12 scenarios), which is not found by the test over scenarios:"
        " p .200."
    )
    assert "did not change" not in neither[0] and "localsim design" in neither[-1]


def test_a_sign_that_turns_withholds_the_size() -> None:
    found = headline(DATA, [compared("information", 0.3, 0.01)], lambda *_: True)
    assert found.families[0].as_json()["verdicts"]["information"] == "withheld"
    assert "withholds" in found.sentences[0] and "30 points" not in found.sentences[0]


def levels(**shares: float) -> Report:
    """A report whose modes reached the goal in these shares of their conversations."""
    rows = [
        Result("mutual_friends", mode, "starter", mode, completed=12, numbers={"success_rate": Number("share", share)})
        for mode, share in shares.items()
    ]
    return replace(DATA, measures=[*DATA.measures, TURNS], comparison=rows)


TURNS = Measure("turns", "turns", "turns of a talk", score="turns")
PAIRS = {
    "information": ("agents", "mindreaders"),
    "both": ("agents", "script"),
    "authorship": ("mindreaders", "script"),
}


def by_turns(found: str = "", difference: float = -0.25, *, secondary: bool = True) -> list[Compared]:
    """The rows of a run whose primary outcome is the number of turns; success differs in the contrast `found` only."""
    primary = compared("information", -0.4, 0.9, TURNS, first="agents", second="mindreaders")
    declared = {"primary": False, "secondary": secondary, "tests": 3}
    sure, unsure = {"p": 0.01}, {"p": 0.5, "low": difference - 0.4, "high": difference + 0.4}
    tests = [
        compared(each, difference, **(sure if each == found else unsure), first=first, second=second, **declared)
        for each, (first, second) in PAIRS.items()
    ]
    return [primary, *tests]


def ranked(data: Report, *by_turns: Any) -> str:
    """The sentence on the success of the modes: it follows the findings, of which the primary one is first."""
    first, *_, last = [each for each in headline(data, *by_turns).sentences if each.startswith("Mutual friends: ")]
    assert first.startswith(
        "Mutual friends: no effect of seeing every side on turns was found: 0.50 in agents, 0.10 in"
    )
    return last


def test_the_modes_are_ranked_by_success_after_the_primary_outcome() -> None:
    data = levels(script=0.69, agents=0.94, mindreaders=0.81)
    assert ranked(data, by_turns()) == (
        "Mutual friends: agents reached the goal most often, in 94% of conversations, mindreaders in 81%, script in "
        "69%; chance can explain these differences."
    )
    assert ranked(data, by_turns("both")).endswith(
        "this run finds that agents and script differ by 25 points (95% interval 15 to 35), and can tell no other two "
        "modes apart."
    )
    assert ranked(data, by_turns("both", secondary=False)).endswith(
        "agents and script differ by 25 points (95% interval 15 to 35), which is exploratory: not declared before the "
        "run, p not corrected; this run can tell no other two modes apart."
    )
    turned = headline(data, by_turns("both"), lambda _, key, __: key == "success_rate").families[0].ranking[0]
    assert "depends on the wording" in turned and "finds" not in turned


def test_modes_that_reach_the_goal_alike_have_one_sentence() -> None:
    alike = ranked(levels(script=1.0, agents=1.0), by_turns())
    assert alike == "Mutual friends: every mode reached the goal in 100% of its conversations."
    tied = ranked(levels(script=0.5, agents=0.9, mindreaders=0.9), by_turns())
    assert "agents and mindreaders reached the goal most often, in 90%" in tied
    assert "most often" not in " ".join(headline(levels(agents=0.9), by_turns()).sentences), "one mode has no rank"


def test_the_plan_of_a_larger_run_falls_back_to_success() -> None:
    last = headline(levels(script=0.69, agents=0.94, mindreaders=0.81), by_turns()).sentences[-1]
    assert last.endswith("localsim design @last --measure success_rate --contrast information --difference .2")


def test_a_run_without_the_modes_says_what_is_needed() -> None:
    assert "localsim run --mode all" in headline(DATA, []).sentences[0]


def test_tasks_without_success_are_not_said_to_lack_modes() -> None:
    row = compared("information", 0.3, 0.01, replace(SUCCESS, key="payoff"), primary=False)
    (sentence,) = headline(DATA, [row]).sentences
    assert "no success" in sentence and "localsim compare" in sentence and "--mode all" not in sentence


def test_too_few_scenarios_are_named() -> None:
    row = compared("information", 0.5, 0.5, p_least=0.5, scenarios=2, low=None, high=None)
    assert (
        "2 scenarios are too few to tell whether seeing every side changes success (+50 points): chance can make "
        "any difference between so few (p is at least .500)" in headline(DATA, [row]).sentences[0]
    )


@given(st.floats(-1, 1), st.one_of(st.none(), st.floats(0, 1)))
def test_no_small_p_no_finding(difference: float, p: float | None) -> None:
    found = headline(DATA, [compared("information", difference, p)])
    told = found.families[0].as_json()["verdicts"]["information"] == "found"
    assert told is (p is not None and p <= 0.05 and abs(difference) > 0.1), "the interval is the difference +- .1"


def test_a_secondary_difference_is_found_only_after_the_correction() -> None:
    declared = {"secondary": True, "tests": 15}
    rows = [compared("information", 0.3, 0.01), compared("authorship", 0.3, 0.03, p_holm=0.45, **declared)]
    (found,) = headline(DATA, rows).families
    assert found.as_json()["verdicts"] == {"information": "found", "authorship": "not told"}
    assert found.sentences[1].startswith("Mutual friends: no effect of one author for both sides on success was found")
    assert found.sentences[1].endswith(
        "which does not survive the correction over 15 secondary outcomes: p .030 becomes .450."
    )
    (undeclared,) = headline(DATA, [rows[0], compared("authorship", 0.3, 0.03)]).families
    assert undeclared.as_json()["verdicts"]["authorship"] == "exploratory"
    assert undeclared.sentences[1].endswith("which is exploratory: not declared before the run, p not corrected.")


def test_each_pair_has_its_own_number_of_scenarios() -> None:
    """A pair of 5 scenarios is not said to be one of 12, and its number is named where it is too small."""
    few = compared("authorship", 0.3, 0.06, scenarios=5, p_least=0.0625)
    told = effects({"learning": found_in(compared("", 0.1, 0.4)), "scripts": found_in(few)}, "success")
    first, second = told.split("; ")
    assert first.startswith("no effect of learning on success") and first.endswith("(12 scenarios)")
    assert second.startswith("5 scenarios are too few to tell whether scripts changes success (+30 points")
    assert second.endswith(": chance can make any difference between so few (p is at least .062).")
    one, other, *_ = headline(DATA, [compared("information", 0.3, 0.01), few]).sentences
    assert one.endswith("12 scenarios).") and ": 5 scenarios are" in other


@pytest.mark.parametrize("contrast", list(CONTRASTS))
def test_every_contrast_can_be_primary_and_has_a_cause(contrast: str) -> None:
    found = headline(DATA, [compared(contrast, 0.3, 0.01, primary=True)])
    assert " raised success by 30 points" in found.sentences[0]


def test_models_are_not_mixed() -> None:
    """A difference between two models is none of information or authorship, and each model has its own sentence."""
    mixed = compared("authorship", 0.4, 0.001, model="")
    found = headline(DATA, [compared("information", 0.3, 0.01), mixed])
    assert found.families[0].as_json()["verdicts"]["authorship"] == "absent"
    assert "lacks a mode to tell what one author for both sides" in found.sentences[1]
    two = headline(DATA, [compared("information", 0.3, 0.01), compared("information", -0.3, 0.01, model="other")])
    assert [each.model for each in two.families] == ["starter", "other"]
    assert "(other): " in two.sentences[1]


@pytest.mark.parametrize("family", ["mutual_friends", "craigslist"])
@pytest.mark.parametrize(("player", "dial"), [("auto", 0.0), ("peeks-50", 0.5), ("peeks-100", 1.0)])
def test_the_dial_of_players_that_peek_is_recovered(store: Store, family: str, player: str, dial: float) -> None:
    """Agents see nothing to use, whatever the dial; mindreaders use the other side with the dial's probability."""
    scenarios = tuple(generated(family, seed) for seed in range(81_000, 81_060))
    plan = Plan(scenarios, ("agents", "mindreaders"), f"scripted:{player}", seed=3)
    done = start(plan, store, Quiet(), lambda _: None, leaks=False)
    data = report(store, done.run_id)
    measures = [measure for measure in family_of(family).measures if measure.key.endswith("peeking")]
    assert PEEKING in {measure.key for measure in measures}
    for row in data.comparison:
        expected = 0.0 if row.mode == "agents" else dial
        for measure in measures:
            found = row.number(measure.key)
            if found.value is None:  # a side that agrees to the other's first offer makes none
                assert measure.key != PEEKING and dial == 1
                continue
            low, high = found.interval or (1.0, 0.0)
            assert low - 1e-9 <= expected <= high + 1e-9 and high - low < 0.6, (row.mode, measure.key)
    sentence = next(text for text in data.headline.sentences if ": peeking (" in text)
    assert "agents " in sentence and "mindreaders " in sentence and "unknown" not in sentence


def told_of_peeking(**modes: tuple[float, float | None, float | None, int]) -> str:
    """The sentence about a run of ten conversations in each mode: value, ends of its interval, judged conversations."""
    rows = [
        Result(
            "mutual_friends",
            mode,
            "starter",
            mode,
            completed=10,
            numbers={PEEKING: Number("share", value, low, high, n)},
        )
        for mode, (value, low, high, n) in modes.items()
    ]
    found = headline(replace(DATA, comparison=rows), [compared("information", 0.3, 0.01)]).sentences
    (told,) = [each for each in found if "first guess" in each]
    return told


def test_peeking_is_told_with_its_interval_and_only_above_chance_as_found() -> None:
    text = told_of_peeking(script=(1.0, 0.26, 1.0, 5), agents=(0.12, -0.24, 0.57, 10), mindreaders=(0.5, -6.0, 1.0, 9))
    assert text == (
        "Mutual friends: peeking (a first guess or offer that used the other side) was found in script (100%, 95% "
        "interval 26% to 100%, 5 of 10 judged); none was found in agents (at most 57%); too few were judged to tell in "
        "mindreaders."
    )
    nobody = told_of_peeking(agents=(-0.3, -0.48, -0.06, 10), script=(0.1, -0.3, 0.2, 10))
    assert nobody.endswith("was not found in agents (at most 0%), script (at most 20%)."), "no share is below 0"
    for ends in ((1.0, -1.0, 1.0, 2), (1.0, None, None, 2), (0.4, -1.0, 0.8, 2)):
        assert str(Number("share", *ends)) == "– (2 judged)", "a table prints no number that no sentence tells"
    assert str(Number("share", 1.0, 0.26, 1.0, 5)) == "100% [26%, 100%]" and str(Number("share", 1.0)) == "100%"
    some = told_of_peeking(agents=(0.1, -0.3, 0.2, 10), mindreaders=(1.0, -0.33, 1.0, 3))
    assert some.endswith("in agents (at most 20%); too few were judged to tell in mindreaders."), (
        "it can be none or all"
    )
    assert "too few first guesses" in told_of_peeking(agents=(0.5, None, None, 10), script=(0.5, -6.0, 1.0, 10))


def test_no_change_and_one_point_are_told_in_words() -> None:
    none, one, *_ = headline(DATA, [compared("information", 0.0, 1.0), compared("authorship", 0.01, 1.0)]).sentences
    assert "no effect of seeing every side on success was found: 0 points, 95% interval -10 to +10" in none
    assert "no effect of one author for both sides on success was found: +1 point, 95%" in one
    small = headline(DATA, [compared("information", 0.001, 1.0)]).sentences[0]
    assert "was found: less than a point, 95%" in small
    alike = compared("information", -2.0, 0.001, TURNS, low=None, high=None)
    assert (
        "changed turns by -2.00 in all 12 scenarios, so it has no interval"
        in (headline(replace(DATA, measures=[TURNS]), [alike]).sentences[0])
    )


def test_the_command_of_a_design_names_the_run() -> None:
    found = headline(replace(DATA, run=Run("r7")), [compared("information", 0.3, 0.2)])
    assert found.sentences[-1].endswith(": localsim design r7 --difference .2")


@pytest.mark.parametrize(
    "changes",
    [{"scenarios": 1, "effect": None}, {"effect": None}, {"measure": replace(SUCCESS, kind="number")}],
    ids=["one scenario", "all equal", "no share"],
)
def test_no_design_is_proposed_where_it_would_fail(changes: dict[str, Any]) -> None:
    last = headline(DATA, [compared("information", 0.3, 0.2, **changes)]).sentences[-1]
    assert "localsim design" not in last and "a pilot of several scenarios" in last
    by_seeds = compared("information", 0.3, 0.2, effect=None, icc=-0.2)
    assert "localsim design" in headline(DATA, [by_seeds]).sentences[-1], "seeds of a scenario vary"


def test_scenarios_that_one_mode_alone_has_played_are_told() -> None:
    row = replace(compared("information", 0.3, 0.9, first="agents", second="mindreaders"), unpaired=(1, 3))
    told = [each for each in headline(DATA, [row]).sentences if "pair" in each]
    assert told == [
        "Mutual friends: seeing every side is compared on 12 scenarios that both agents and mindreaders completed; "
        "1 of agents and 3 of mindreaders have no pair."
    ]
    assert not [each for each in headline(DATA, [replace(row, unpaired=(0, 0))]).sentences if "pair" in each]
