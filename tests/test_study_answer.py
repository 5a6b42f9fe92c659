"""The sentences of a study's answer: what a test over scenarios finds is said, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from localsim.families.base import SUCCESS
from localsim.reports.document import Section
from localsim.reports.evidence.playing import SILENT
from localsim.reports.validity.findings import Difference, Headline, effects, finding
from localsim.reports.validity.judges import Rate
from localsim.stats import Paired
from localsim.study.differences import BOTH, CAUSES, EVERY, Contrast, Equivalence, Premium
from localsim.study.lessons import Lesson
from localsim.study.page import answer
from localsim.study.results import Results, Twin

PAIRS = list(CAUSES)


def over_twelve(difference: float, p: float | None, **changes: Any) -> Paired:
    """A difference over twelve scenarios."""
    found = Paired(12, 12, difference, difference - 0.1, difference + 0.1, p, 0.0005, None, None)
    return found._replace(**changes)


def row(
    pair: tuple[str, str], difference: float, p: float | None, p_holm: float | None = None, **changes: Any
) -> Contrast:
    """A contrast of two conditions on success over all tasks."""
    test = over_twelve(difference, p, **changes)
    return Contrast("craigslist", SUCCESS, test, True, EVERY, *pair, p_holm=p if p_holm is None else p_holm)


def premium(who: str, difference: float, p: float, verdict: str, *, primary: bool = True) -> Premium:
    """What information changed in success."""
    equal = Equivalence(0.1, None, None, None, None)
    test = over_twelve(difference, p)
    return Premium("craigslist", SUCCESS, test, primary, "information", who, equal, verdict, p_holm=p)


def sentence(rows: Mapping[str, Difference]) -> str:
    """The sentence about rows of a study."""
    return effects({cause: finding(each) for cause, each in rows.items()}, "success")


@given(st.lists(st.tuples(st.floats(-1, 1), st.none() | st.floats(0, 1)), min_size=1, max_size=4))
def test_a_change_is_found_only_by_its_corrected_test(values: list[tuple[float, float | None]]) -> None:
    rows = {f"cause {place}": row(PAIRS[0], *value) for place, value in enumerate(values)}
    told = sentence(rows).split("; ")
    assert len(told) == len(values) and all(name in each for name, each in zip(rows, told, strict=True))
    found = {
        name for name, each in rows.items()
        if each.p_holm is not None and each.p_holm <= 0.05
        and each.test.low is not None and each.test.high is not None and not each.test.low <= 0 <= each.test.high
    }  # fmt: skip
    sure = re.compile("(raised|lowered) success by")
    assert {name for name, each in zip(rows, told, strict=True) if sure.search(each)} == found
    outside = {name for name, each in rows.items() if finding(each).doubt}
    assert {name for name, each in zip(rows, told, strict=True) if ", which " in each} == outside, "it is not chance"


def test_the_correction_counts_and_few_scenarios_are_named() -> None:
    corrected = sentence({"it": replace(row(PAIRS[0], 0.5, 0.01, p_holm=0.2), tests=20)})
    assert corrected.startswith("no effect of it on success was found: +50 points")
    assert corrected.endswith("which does not survive the correction over 20 primary outcomes: p .010 becomes .200.")
    few = sentence({"it": row(PAIRS[0], 0.5, 0.06, scenarios=4, p_least=0.125)})
    assert few.startswith("4 scenarios are too few to tell") and few.endswith("so few (p is at least .125).")
    one = sentence({"it": row(PAIRS[0], 0.5, None, scenarios=1, low=None, high=None, p_least=1.0)})
    assert one == "one scenario cannot tell whether it changes success (+50 points)."


def model(**changes: Any) -> Results:
    """The results of a model, as far as the answer reads them."""
    found: dict[str, Any] = dict.fromkeys((each.name for each in fields(Results)), ())
    found |= {
        "model": "m",
        "headline": Headline(["Nothing."]),
        "arms": [
            row(pair, 0.3, 0.001) if place == 4 else row(pair, 0.02 * place, 0.9) for place, pair in enumerate(PAIRS)
        ],
        "lessons": {"agents-ft": Lesson("scripts", "run", 4, 4, 900)},
        "judge": "j",
        "twin": None,
        "playing": SILENT,
    }
    return Results(**found | changes)


def test_arms_are_told_against_agents_and_against_their_controls() -> None:
    modes, arms = answer(model(), several=False)
    assert modes.lines == ["Nothing."]
    against, lessons = arms.lines
    assert against.startswith(
        "Bargaining, against agents: no effect of learning from scripts (agents-ft) on success was found: 0 points, "
    )
    assert "raised" not in against
    assert lessons.startswith("Bargaining, in the lessons: ") and lessons.count(" raised success by ") == 1
    assert "scripts instead of agents' talks (agents-ft against agents-ft-agents) raised success by " in lessons
    named = answer(model(), several=True)
    assert all(part.title.startswith("m: ") for part in named)


def test_the_null_and_the_gain_are_told_by_their_tests() -> None:
    rows = [
        premium("m", 0.01, 0.8, "null"),
        premium("t (constructed)", 0.4, 0.001, "change"),
        premium(BOTH, 0.39, 0.002, "change"),
        premium("t (constructed)", 0.9, 0.001, "change", primary=False),
    ]
    twin = Twin("t", "constructed: taught to peek", Headline(), [])
    changed, null = about(answer(model(premiums=rows, twin=twin), several=False))["Null and gain"]
    assert changed.startswith("Bargaining: no effect of seeing every side as m on success was found: +1 point")
    assert "seeing every side as t (constructed) raised success" in changed
    assert "what was built into the twin raised success" in changed
    assert null == "Bargaining: a change of success of m by 10 points or more is excluded."
    same = answer(model(premiums=[premium(BOTH, 0.39, 0.002, "null")]), several=False)
    told = about(same)["Null and gain"]
    assert told == ["Bargaining: the change of success of twin and model differs by less than 10 points."]
    assert about(answer(model(premiums=rows[:1]), several=False))["Null and gain"] == [null]


def about(parts: Sequence[Section]) -> dict[str, Sequence[str]]:
    """Heading of a part of the answer -> its sentences."""
    return {part.title: part.lines for part in parts}


def test_a_judge_that_picks_a_place_is_not_quoted_and_a_twin_is_labelled() -> None:
    rate = Rate("j", "script", "agents", 9, 8, 0.75, 0.5, 0.9, 0.9, 0.7, None, {}, {})
    bad = replace(rate, first="mindreaders", warning="picks a place: do not use it")
    twin = Twin("t", "constructed: taught to peek", Headline(["Twin."]), [])
    parts = about(answer(model(naturalness=[rate, bad], twin=twin), several=False))
    good, warned = parts["Naturalness"]
    assert "script over agents in 75%" in good and "mindreaders" not in good
    assert warned == "Of mindreaders and agents, the judge j picks a place: do not use it."
    assert parts["The same by t (constructed: taught to peek)"] == ["Twin."]
