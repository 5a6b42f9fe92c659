"""The paragraph to read aloud: players that peek gain, and others gain nothing."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from localsim.conversation.episode import Mode
from localsim.conversation.measures import Measure
from localsim.conversation.scenario import LoadedScenario
from localsim.families import FAMILIES
from localsim.families.base import SUCCESS
from localsim.models import registry
from localsim.reports.compose.alone import report
from localsim.reports.compose.aloud import MEANING, conclusions, paragraph, with_paragraph
from localsim.reports.document import Report, Run
from localsim.reports.results import Result
from localsim.reports.validity.findings import Answer, Finding, Headline
from localsim.reports.validity.headline import headline
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.store.conditions import conditions_of
from localsim.store.database import Store
from tests.conftest import Quiet, generated
from tests.test_headline import DATA, TURNS, compared

Row = dict[str, Any]
SPEC = importlib.util.spec_from_file_location("bootstrap", Path(__file__).parent.parent / "scripts" / "bootstrap.py")
assert SPEC and SPEC.loader
DEMO: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(DEMO)
"""Sizes of `make demo`: what it promises to find is found here with players whose behaviour is known."""
HONEST, HALF, ALWAYS = "scripted:auto", "scripted:peeks-50", "scripted:peeks-100"
TITLES = ("Mutual friends", "Bargaining")


def scenarios(count: int) -> tuple[LoadedScenario, ...]:
    """Scenarios with and without a solution in turn, as `make demo` plays them."""
    found = []
    for family in FAMILIES.own:
        tasks = FAMILIES[family].study_tasks
        for seed in range(DEMO.FIRST_SEED, DEMO.FIRST_SEED + count):
            task = FAMILIES[family].control_tasks.get(tasks[seed % len(tasks)], {})
            found.append(generated(family, seed, **task))
    return tuple(found)


def played(store: Store, model: str, count: int = DEMO.SCENARIOS) -> str:
    modes: tuple[Mode, ...] = ("agents", "mindreaders")
    plan = Plan(scenarios(count), modes, model, seed=3, primary=DEMO.PRIMARY, secondary=DEMO.SECONDARY)
    return start(plan, store, Quiet(), lambda _: None).run_id


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, dict[str, str]]:
    """A run of each player on the same scenarios and seeds."""
    store = Store(tmp_path_factory.mktemp("aloud") / "runs.duckdb")
    return store, {model: played(store, model) for model in (HONEST, HALF, ALWAYS)}


def told(runs: tuple[Store, dict[str, str]], one: str, other: str) -> str:
    store, by_model = runs
    data = with_paragraph(store, report(store, by_model[one]), conditions_of(store, by_model[other]))
    assert data.aloud.runs == [by_model[other]]
    return str(data.aloud.paragraph)


@pytest.mark.parametrize("peeking", [HALF, ALWAYS])
def test_a_null_is_told_as_a_null_and_a_gain_as_a_gain(
    runs: tuple[Store, dict[str, str]], peeking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(monkeypatch, peeking)
    text = told(runs, HONEST, peeking)
    assert text.startswith("Two models played the same scenarios, 16 of Mutual friends and 16 of Bargaining, each in ")
    assert f"{peeking} is constructed for this comparison: it was taught to peek." in text
    honest, peeks = text.split(f"{peeking} is constructed")
    assert honest.count("No difference was found (95% interval ") == 2
    assert len(re.findall(r"A difference of up to \d+\.\d turns could have been missed\.", honest)) == 2
    assert len(re.findall(r"That is \d+\.\d turns fewer \(95% interval .* fewer; 16 scenarios\)", peeks)) >= 1
    assert peeks.count("That is ") == 2 and "No difference" not in peeks and "That is" not in honest
    assert f"So no gain from seeing the other side was found for {HONEST} in Mutual friends and Bargaining." in text
    gained = f"So {peeking} gained from seeing the other side in Mutual friends and Bargaining"
    assert f"{gained}, and that is what it was built for." in text
    assert text.index(f"In {TITLES[0]}") < text.index(f"In {TITLES[1]}")
    assert "Each of the four tests counts a scenario once" in text and "Its success was the same, 100%." in text


def test_a_gain_that_is_missed_is_said_to_be_missed(
    runs: tuple[Store, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    built(monkeypatch, HONEST)
    text = told(runs, HONEST, ALWAYS)
    told_of = f"So no gain from seeing the other side was found for {HONEST} in Mutual friends and Bargaining"
    assert f"{told_of}, although it was built to have one." in text
    assert f"{ALWAYS} is a program with fixed rules, not a language model." in text
    assert "what it was built for" not in text


def built(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    """Enter a model as a constructed control."""
    facts = dict.fromkeys(("kind", "title", "why", "file", "licence"), "") | {"bytes": 1, "constructed": "peek"}
    known = {"models": {model: facts}, "aliases": {}}
    monkeypatch.setattr(registry, "_registry", lambda: known)


def test_too_few_scenarios_tell_nothing(store: Store) -> None:
    honest, peeking = (played(store, model, 4) for model in (HONEST, ALWAYS))
    text = with_paragraph(store, report(store, honest), conditions_of(store, peeking)).aloud.paragraph
    assert text.count("Four scenarios are too few to tell any difference: at least six are needed.") == 4
    assert text.endswith("More scenarios are needed: localsim design computes how many.")
    assert "changed" not in text and "turns fewer" not in text and text.count("nothing can be said about a gain") == 2


def test_only_shared_scenarios_count(store: Store, runs: tuple[Store, dict[str, str]]) -> None:
    """One scenario in common is no basis for a conclusion, and levels are those of the pairs."""
    store, by_model = runs
    few = played(store, "scripted:peeks-25", 1)
    data = report(store, by_model[ALWAYS])
    text = with_paragraph(store, data, conditions_of(store, few)).aloud.paragraph
    assert text.startswith("Two models played the same scenarios, one of Mutual friends and one of Bargaining")
    assert text.count("One scenario is too few to tell any difference") == 4 and "gained" not in text
    one = data.headline.families[0].findings["information"]
    assert one and one.scenarios == 16 and one.levels[1] - one.levels[0] == pytest.approx(one.difference)


def test_a_model_that_is_given_twice_is_told_once(store: Store, runs: tuple[Store, dict[str, str]]) -> None:
    store, by_model = runs
    again = played(store, HONEST)
    data = report(store, by_model[HONEST])
    assert with_paragraph(store, data, conditions_of(store, again)) is data, "nothing to compare it with"
    both = [*conditions_of(store, again), *conditions_of(store, by_model[ALWAYS])]
    found = with_paragraph(store, data, both).aloud
    assert found is not None
    text = found.paragraph
    assert found.runs == [by_model[ALWAYS]] and text.startswith("Two models played")
    assert f"Another run of {HONEST} is left out: it is the same model." in text
    assert text.count("In Mutual friends, ") == 2 and "Each of the four tests" in text


def test_other_scenarios_and_single_conditions_have_no_paragraph(runs: tuple[Store, dict[str, str]]) -> None:
    store, by_model = runs
    elsewhere = Plan((generated("craigslist", 5),), ("agents", "script"), HONEST, seed=3)
    other = start(elsewhere, store, Quiet(), lambda _: None).run_id
    data = report(store, by_model[HONEST])
    assert with_paragraph(store, data, conditions_of(store, other)) is data
    agents = [each for each in conditions_of(store, by_model[ALWAYS]) if each.name == "agents"]
    assert with_paragraph(store, data, agents) is data, "one condition of a run tells nothing about information"
    assert paragraph([report(store, other)], {"craigslist": set()}).startswith("These runs cannot tell")


MEASURE = SUCCESS


def one_model(
    difference: float,
    verdict: Any,
    count: int = 20,
    half: float = 0.1,
    name: str = "m",
    measure: Measure = MEASURE,
    success: Finding | None = None,
    **changes: Any,
) -> tuple[list[Report], dict[str, set[Any]]]:
    """A report about one model in one family, as far as the paragraph reads it, and its scenarios."""
    interval = (difference - half, difference + half)
    known = {"interval": interval, "scenarios": count, "difference": difference, **changes}
    levels = known.pop("levels", (0.7, 0.7 + difference))
    found = finding_of(measure, levels, verdict, **known)
    answer = Answer("craigslist", name, "Bargaining", measure, "", {"information": found}, success, (), ())
    modes = [Result("craigslist", mode, name, mode) for mode in ("agents", "mindreaders")]
    run = Run("r", models={name: {}})
    data = Report(run, headline=Headline((), [answer]), comparison=modes, measures=[measure])
    return [data], {"craigslist": set()}


def finding_of(measure: Measure, levels: Sequence[float], verdict: Any, **changes: Any) -> Finding:
    """What information changed in a measure."""
    known = {"interval": None, "scenarios": 20, "p": 0.01, **changes}
    named = (measure.kind, ("agents", "mindreaders"))
    least = 2.0 ** (1 - known["scenarios"])
    known["difference"] = changes.get("difference", levels[1] - levels[0])
    return Finding(*named, levels, p_least=least, verdict=verdict, **known)


@given(st.floats(-1, 1), st.sampled_from(["found", "not told", "withheld"]), st.integers(1, 20))
def test_only_a_finding_gets_an_amount(difference: float, verdict: str, count: int) -> None:
    verdict = "not told" if verdict == "found" and count < 6 else verdict
    text = paragraph(*one_model(difference, verdict, count))
    told = bool(re.search(r"m succeeded in 70(\.0*)?% of its conversations as agents and ", text))
    assert told is (verdict != "withheld")
    assert ("That is " in text) is (verdict == "found")
    assert ("could have been missed" in text) is (verdict == "not told" and count >= 6)
    assert ("too few to tell" in text) is (verdict != "withheld" and count < 6)
    assert ("nothing can be said" in text) is (verdict == "withheld" or count < 6)


@given(st.floats(-1, 1).filter(lambda each: abs(each) > 1e-9), st.booleans(), st.sampled_from(["m", "m|n", "n|m"]))
def test_a_loss_is_never_what_was_built_in(difference: float, turns: bool, name: str) -> None:
    """Also where a constructed model plays one side only."""
    measure = TURNS if turns else MEASURE
    with pytest.MonkeyPatch.context() as patch:
        built(patch, "m")
        text = paragraph(*one_model(difference, "found", name=name, measure=measure))
    better = (difference < 0) is turns
    assert "m is constructed for this comparison: it was taught to peek." in text
    assert ("and that is what it was built for" in text) is better
    assert ("the opposite of what it was built for" in text) is not better
    assert (" gained from seeing the other side" in text) is better and "|" not in text


@given(st.floats(-0.5, 0.5), st.floats(0.01, 0.5))
def test_a_null_says_what_could_have_been_missed(difference: float, half: float) -> None:
    text = paragraph(*one_model(difference, "not told", half=half))
    (most,) = re.findall(r"A difference of up to (\d+) percentage points could have been missed\.", text)
    assert int(most) == round(100 * (abs(difference) + half), 0) or abs(int(most) - 100 * (abs(difference) + half)) < 1
    assert ("although the 95% interval leaves out zero" in text) is (abs(difference) > half)
    assert "So no gain from seeing the other side was found for m in Bargaining." in text
    assert text.endswith("To find no difference is not to show that there is none.")


def test_a_conclusion_can_be_read_alone() -> None:
    """Each has its amount, and begins with a capital or the name of a model."""

    def concluded(*known: Any, **changes: Any) -> list[str]:
        return conclusions(*one_model(*known, **changes))

    points = "percentage points"
    assert concluded(0.3, "found") == [
        f"m gained from seeing the other side: 30 {points} more in Bargaining (95% interval 20 to 40)."
    ]
    assert concluded(0.03, "not told") == [
        f"No gain from seeing the other side was found for m: 3 {points} more in Bargaining (95% interval 7 {points} "
        f"less to 13 {points} more)."
    ]
    assert concluded(-0.3, "found")[0].startswith(f"m did worse with the other side in view: 30 {points} less in ")
    untold = "Whether m gains from seeing the other side cannot be told"
    assert concluded(-0.3, "withheld") == [f"{untold}: in Bargaining, it depends on the wording of the prompts."]
    few = concluded(0.3, "not told", count=1, interval=None)
    assert few == [f"{untold}: 30 {points} more in Bargaining (1 scenario that all completed is too few)."]
    (by_success,) = conclusions(*with_success(-0.05, "not told", [0.6, 0.9], "found"))
    assert by_success.endswith("the other side: success 60% as agents and 90% as mindreaders in Bargaining.")


def test_each_word_is_explained_and_each_sentence_short() -> None:
    """A null, a gain that was built in, and its opposite."""
    with pytest.MonkeyPatch.context() as patch:
        built(patch, "m")
        texts = [
            paragraph(*one_model(0.03, "not told", 32, name="n")),
            paragraph(*one_model(0.28, "found", 32)),
            paragraph(*one_model(-0.28, "found", 32)),
        ]
    for text in texts:
        assert "As agents, each speaker knows only its own side." in text
        assert "As mindreaders, each speaker also sees the other side." in text
        assert MEANING in text
        assert all(len(sentence.split()) <= 26 for sentence in re.split(r"[.:;] ", text)), "short enough to be said"


def with_success(
    difference: float, verdict: str, levels: list[float], success: str, **found: Any
) -> tuple[list[Report], dict[str, set[Any]]]:
    """One model whose turns changed by a difference, and whose success had these levels and this verdict."""
    change = finding_of(MEASURE, levels, success)
    found = {"levels": (10.0, 10.0 + difference), **found}
    return one_model(difference, verdict, measure=TURNS, success=change, **found)


@pytest.mark.parametrize(
    ("turns", "verdict", "success", "sure", "conclusion"),
    [
        (
            -0.05,
            "not told",
            0.9,
            "found",
            "m gained from seeing the other side in Bargaining. In Bargaining, only suc",
        ),
        (-0.05, "not told", 0.3, "found", "m did worse with the other side in view in Bargaining: the opposite of a "),
        (-0.05, "not told", 0.9, "not told", "no gain from seeing the other side was found for m in Bargaining."),
        (3.0, "found", 0.9, "found", "seeing the other side changed m in Bargaining, but that is not known to be"),
        (-3.0, "found", 0.3, "found", "seeing the other side changed m in Bargaining, but that is not known to be"),
        (3.0, "found", 0.9, "not told", "m did worse with the other side in view in Bargaining: the opposite of a "),
        (-3.0, "found", 0.9, "found", "m gained from seeing the other side in Bargaining. Each test"),
        (-3.0, "found", 0.9, "withheld", "m gained from seeing the other side in Bargaining. Each test"),
    ],
)
def test_success_counts_for_the_conclusion(
    turns: float, verdict: str, success: float, sure: str, conclusion: str
) -> None:
    text = paragraph(*with_success(turns, verdict, [0.6, success], sure)).replace("The test", "Each test")
    assert f"So {conclusion}" in text
    assert ("found, too" in text) is (sure == verdict == "found")
    assert ("that difference was found" in text) is (sure == "found")
    assert (f"60% as agents and {success:.0%}" in text) is (sure != "withheld")
    assert text.count("So ") == 1


def test_a_change_without_direction_and_more_success_are_a_gain() -> None:
    reports, units = with_success(2.0, "found", [0.6, 0.9], "found")
    (answer,) = reports[0].headline.families
    about = replace(answer, about=replace(answer.about, key="words"))
    reports[0] = replace(reports[0], headline=Headline((), [about]))
    assert "m gained from seeing the other side in Bargaining. In Bargaining, only success shows it." in paragraph(
        reports, units
    )


def test_what_was_not_declared_is_exploratory_and_a_correction_is_named() -> None:
    reports, units = one_model(0.3, "exploratory", half=0.1, role="exploratory")
    text = paragraph(reports, units)
    assert "exploratory, because it was not declared before the run" in text and "No difference" not in text
    assert "what it changed for m in Bargaining is exploratory" in text and "gained" not in text
    (alone,) = conclusions(reports, units)
    assert alone.startswith("What seeing the other side changed for m is exploratory, not declared before the run: 30 ")
    corrected = {"p": 0.09, "p_alone": 0.03, "tests": 3, "role": "secondary"}
    text = paragraph(*one_model(0.3, "not told", half=0.1, **corrected))
    assert "does not survive the correction over 3 secondary outcomes: p .030 becomes .090." in text
    success = finding_of(SUCCESS, [0.6, 0.9], "not told", interval=(0.1, 0.5), **corrected)
    text = paragraph(*one_model(-3.0, "found", measure=TURNS, half=1.0, success=success))
    assert "that difference does not survive the correction over 3" in text and "chance" not in text


def test_a_success_that_a_variant_turns_is_not_found() -> None:
    success = compared("information", 0.3, 0.01, primary=False, secondary=True)
    rows = [compared("information", -3.0, 0.01, TURNS), success]
    data = replace(DATA, measures=[*DATA.measures, TURNS])
    for turned in (True, False):
        (cell,) = headline(data, rows, lambda _, key, __, on=turned: on and key == "success_rate").families
        assert cell.as_json()["verdicts"]["information"] == "found"
        assert cell.as_json()["success_verdict"] == ("withheld" if turned else "found")


def test_what_is_withheld_is_neither_read_out_nor_counted() -> None:
    reports, units = with_success(-3.0, "withheld", [0.6, 0.9], "found")
    text = paragraph(reports, units)
    assert not re.search(r"\d+%|\d+\.\d|success|test|More scenarios", text.replace(MEANING, ""))
    assert "In Bargaining, the direction of the difference depends on the wording of the prompts" in text
    assert text.endswith("So nothing can be said about a gain of m in Bargaining.")
    more, _ = one_model(0.3, "found", name="other")
    assert "The test counts a scenario once." in paragraph([*reports, *more], units)


@pytest.mark.parametrize(("p", "conclusion"), [(0.01, "seeing the other side changed m"), (0.2, "nothing can be said")])
def test_scenarios_that_all_differ_by_one_amount(p: float, conclusion: str) -> None:
    text = paragraph(*with_success(-3.0, "not told", [0.6, 0.6], "not told", interval=None, p=p))
    assert "All 20 scenarios differ by the same amount, 3.0 turns fewer, so no interval can be computed." in text
    assert f"So {conclusion}" in text and "No difference" not in text and "To find no difference" not in text
    text = paragraph(*with_success(0.0, "not told", [0.6, 0.6], "not told", interval=None, p=1.0))
    assert "No difference was found (20 scenarios). All scenarios differ alike" in text
    assert "So no gain from seeing the other side was found for m" in text


def test_no_difference_is_rounded_away() -> None:
    text = paragraph(*with_success(-0.04, "found", [0.996, 1.0], "not told", interval=(-0.07, -0.01)))
    assert (
        "m took 10.00 turns as agents and 9.96 turns as mindreaders. That is 0.04 turns fewer (95% interval 0.01 "
        in (text)
    )
    assert "Its success was 99.6% as agents and 100.0% as mindreaders" in text and "the same," not in text


@given(st.floats(0, 1), st.floats(0, 1), st.floats(-40, 40))
def test_two_values_read_alike_only_if_they_are(first: float, second: float, turns: float) -> None:
    """Differences that a computer makes when it rounds are none."""
    apart, success = abs(turns), abs(second - first)
    assume(not (1e-12 < apart < 1e-8 or 1e-14 < success < 1e-10))
    text = paragraph(*with_success(turns, "found", [first, second], "not told"))
    assert ("Its success was the same" in text) is (success < 1e-10)
    one, other = re.findall(r"(-?[\d.]+) turns as", text)
    assert (one == other) is (apart < 1e-8)
    assert apart < 1e-8 or not re.search(r"That is 0\.0+ turns", text)


def test_a_run_whose_roles_have_models_of_their_own_is_told(store: Store) -> None:
    """The models of such a run share no scenario; each is compared with the other run on its own."""
    chosen = scenarios(6)
    role = chosen[-1].scenario.names[0]
    plan = Plan(
        chosen,
        ("agents", "mindreaders"),
        HONEST,
        roles={role: ALWAYS},
        seed=3,
        primary=DEMO.PRIMARY,
        secondary=DEMO.SECONDARY,
    )
    mixed = start(plan, store, Quiet(), lambda _: None).run_id
    other = played(store, ALWAYS, 6)
    text = with_paragraph(store, report(store, mixed), conditions_of(store, other)).aloud.paragraph
    assert "played the same scenarios, six of Mutual friends and six of Bargaining" in text
    assert "Not every model played all of them." in text
    for name in (HONEST, f"{ALWAYS} with {HONEST}", ALWAYS):
        assert f"In Bargaining, {name} took" in text
