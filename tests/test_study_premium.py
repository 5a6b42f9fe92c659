"""Null and gain: constructed differences, and what their tests tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localsim import stats
from localsim.families.base import SUCCESS
from localsim.reports.validity.findings import effects, finding
from localsim.store.conditions import Condition
from localsim.study import SIZES, differences
from localsim.study.differences import BOTH, MARGINS, Premium, premiums
from localsim.study.page import _premiums

RUNS = {"m": "run", "t (constructed)": "twin"}
NAMES = (*RUNS, BOTH)
NOTHING: Any = None
"""A store that is not read."""


def found(changes: Mapping[str, Sequence[float]]) -> dict[str, Premium]:
    """The rows of success by information; `changes` are those of each scenario, by run."""
    values = {
        Condition(run_id, mode, "m"): {(f"s{place}", 0, 1, ""): float(base) for place, base in enumerate(of_mode)}
        for run_id, own in changes.items()
        for mode, of_mode in (
            ("agents", [max(0.0, -each) for each in own]),
            ("mindreaders", [max(0.0, each) for each in own]),
        )
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(differences, "values_of", lambda *_: [("craigslist", SUCCESS, values)])
        runs = {name: run_id for name, run_id in RUNS.items() if run_id in changes}
        return {row.who: row for row in premiums(NOTHING, runs)}


def verdicts(changes: Mapping[str, Sequence[float]]) -> list[str]:
    rows = found(changes)
    return [rows[name].verdict for name in NAMES if name in rows]


def test_many_scenarios_show_the_models_null_and_the_twins_change() -> None:
    assert verdicts({"run": [0.0] * 45, "twin": [1.0] * 30 + [0.0] * 15}) == ["null", "change", "change"]
    assert verdicts({"run": [0.0] * 90, "twin": [0.0] * 90}) == ["null", "null", "null"]
    assert verdicts({"run": [1.0] * 12 + [-1.0] * 9 + [0.0] * 24}) == ["not told"]


def test_too_few_scenarios_for_a_null_are_named() -> None:
    """All differences are 0, and still no test could show that they are less than the margin."""
    for size in SIZES.values():
        count = size.scenarios
        cannot = f"{count} scenarios cannot exclude it"
        one = "null" if count >= 40 else cannot
        assert verdicts({"run": [0.0] * count, "twin": [0.0] * count}) == [one, one, cannot]
    assert verdicts({"run": [0.0]}) == ["1 scenario cannot exclude it"]
    table = _premiums(list(found({"run": [0.0] * 12}).values()))
    assert {row[-1] for row in table.rows} == {"12 scenarios cannot exclude it"}


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=2, max_size=50))
def test_no_null_is_possible_where_the_page_says_so(changes: list[float]) -> None:
    row = found({"run": changes})["m"]
    none = stats.equivalence({str(n): [0.0] for n in range(len(changes))}, MARGINS[SUCCESS.key], SUCCESS.bounds)
    assert none.p is not None and row.equivalence.p_least == none.p
    assert row.equivalence.p is not None and row.equivalence.p >= none.p - 1e-12
    if row.verdict.endswith("cannot exclude it"):
        assert row.equivalence.p > 0.05


def test_a_declared_outcome_is_found_here_as_in_the_report_of_its_run() -> None:
    """Six scenarios have p = .031, which a correction would raise above .05; the report of the run does not correct."""
    rows = found({"run": [1.0] * 6, "twin": [1.0, -1.0, 0.0, 0.0, 0.0, 0.0]})
    assert rows["m"].test.p == rows["m"].p_holm == 1 / 32
    assert rows["m"].verdict == "change" and rows["t (constructed)"].verdict != "change"
    by_report = {name: finding(rows[name]) for name in RUNS}
    for name, each in by_report.items():
        assert (rows[name].verdict == "change") == (each.verdict == "found"), "the rule of the report"
    told = effects(by_report, "success")
    assert told.startswith("m raised success by 100 points"), "the sentence of the answer"
    assert "; no effect of t (constructed) on success was found" in told


def test_all_other_p_are_corrected_those_of_the_second_test_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two families with a twin: the differences of twin and model are corrected together, and no declared outcome."""
    values = {
        Condition(run_id, mode, "m"): {(f"s{place}", 0, 1, ""): value for place in range(90)}
        for run_id in RUNS.values()
        for mode, value in (("agents", 0.0), ("mindreaders", 0.0))
    }
    measures = [(family, SUCCESS, values) for family in ("craigslist", "mutual_friends")]
    monkeypatch.setattr(differences, "values_of", lambda *_: measures)
    rows = premiums(NOTHING, RUNS)
    assert len(rows) == 6
    for row in rows:
        equal, factor = row.equivalence, 2 if row.who == BOTH else 1
        assert equal.p is not None and equal.p_holm == pytest.approx(factor * equal.p)
        assert row.p_holm == 1.0
