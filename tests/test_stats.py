"""Statistics at the level of scenarios, on simulated scenarios whose truth is known (scripts/check_stats.py)."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t

from localsim import stats

ROOT = Path(__file__).resolve().parent.parent
SHARE: stats.Bounds = (0.0, 1.0)


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_stats_under_test", ROOT / "scripts" / "check_stats.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def rng(*numbers: int) -> np.random.Generator:
    return np.random.default_rng([20261122, *numbers])


# ---- error rates on synthetic scenarios ----------------------------------------------------------------------------


@pytest.mark.parametrize("scenarios", [6, 12, 45])
@pytest.mark.parametrize("icc", [0.0, 0.5, 0.9])
def test_no_difference_is_rarely_called_one(check: ModuleType, scenarios: int, icc: float) -> None:
    flips, over_pairs = check.size(rng(scenarios), 3000, scenarios, 5, icc)
    assert flips <= 0.055
    if icc >= 0.5:
        assert over_pairs > 0.2, "pairs counted as independent: the error that the unit avoids"


@pytest.mark.parametrize("scenarios", [6, 12, 45])
@pytest.mark.parametrize("icc", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("seeds", [1, 5])
def test_intervals_of_shares_hold_the_truth(check: ModuleType, scenarios: int, icc: float, seeds: int) -> None:
    for mean in (0.03, 0.5):
        drawn = check.outcomes(rng(scenarios, seeds), mean, icc, (600, scenarios, seeds))
        assert check.coverage(drawn, mean, SHARE)[0] >= 0.93


@pytest.mark.parametrize("icc", [0.0, 0.9])
@pytest.mark.parametrize(("scenarios", "widest"), [(6, 2.2), (45, 0.65)])
def test_intervals_of_numbers_hold_the_truth(check: ModuleType, scenarios: int, widest: float, icc: float) -> None:
    drawn = check.numbers(rng(scenarios), 10.0, icc, (1500, scenarios, 3))
    held, width = check.coverage(drawn, 10.0, (None, None))
    assert held >= 0.93 and width < widest


@pytest.mark.parametrize("scenarios", [6, 12, 45])
@pytest.mark.parametrize("icc", [0.0, 0.5, 0.9])
def test_intervals_of_paired_differences_hold_the_truth(check: ModuleType, scenarios: int, icc: float) -> None:
    for means in ((0.5, 0.5), (0.02, 0.3)):
        assert check.paired_coverage(rng(scenarios), 500, (scenarios, 2), icc, means)[0] >= 0.93


@pytest.mark.parametrize("scenarios", [6, 12, 45])
@pytest.mark.parametrize("icc", [0.0, 0.5, 0.9])
def test_intervals_of_turns_hold_the_truth_and_are_not_stretched_to_the_limit(
    check: ModuleType, scenarios: int, icc: float
) -> None:
    # Where nearly all talks are as short as can be, fewer do (docs/log/statistics.md).
    for means in ((9.0, 9.0), (12.0, 9.0), *([(5.0, 2.5)] if icc == 0 else [])):
        shape = (scenarios, 1)
        held, width = check.paired_coverage(rng(scenarios), 2000, shape, icc, means)
        assert held >= 0.93
        spread = float((check.turns(rng(4), means[0], icc, (4000, *shape)) - means[0]).std())
        assert width < 2.7 * 2**0.5 * 2 * spread / scenarios**0.5, "Student's t of the differences, for 6 scenarios"


@pytest.mark.parametrize("peeks", [0.0, 0.5])
def test_intervals_of_hits_beyond_chance_hold_the_truth(check: ModuleType, peeks: float) -> None:
    assert check.excess_coverage(rng(1), 400, 12, 0.5, peeks) >= 0.93


def test_a_difference_as_large_as_the_margin_is_rarely_called_equivalent(check: ModuleType) -> None:
    at_margin, none = check.equivalence_size(rng(2), 400, 45, 0.0)
    assert at_margin <= 0.055 and none > 0.8


@pytest.mark.parametrize(("icc", "seeds"), [(0.0, 5), (0.5, 2)])
def test_the_stated_number_of_scenarios_has_the_stated_power(check: ModuleType, icc: float, seeds: int) -> None:
    scenarios, power = check.achieved(rng(3, seeds), 2000, icc, seeds)
    assert 10 < scenarios < 100 and power == pytest.approx(0.8, abs=0.05)


# ---- intervals -----------------------------------------------------------------------------------------------------


def test_one_value_for_each_scenario_has_students_interval() -> None:
    found = stats.clustered({"a": [1.0], "b": [2.0], "c": [3.0], "d": [4.0]})
    # sd = sqrt(5/3) = 1.29099, error = sd / 2 = 0.645497, t(0.975, 3) = 3.182446: 2.5 -+ 2.054260
    assert list(found) == [2.5, pytest.approx(0.445740, abs=1e-5), pytest.approx(4.554260, abs=1e-5), 4]


def test_seeds_that_repeat_themselves_tell_nothing_new() -> None:
    once = {"a": [1.0], "b": [0.0], "c": [1.0], "d": [1.0]}
    often = {name: values * 10 for name, values in once.items()}
    assert stats.clustered(often, SHARE)[:3] == pytest.approx(stats.clustered(once, SHARE)[:3])
    assert stats.clustered(often, SHARE).n == 40


def test_the_limit_of_a_number_cuts_its_interval_and_equal_numbers_have_none() -> None:
    turns = {"a": [20.0], "b": [20.0], "c": [19.0], "d": [20.0]}
    found = stats.clustered(turns, (0.0, 20.0), number=True)
    # sd = .5, error = .25, t(0.975, 3) = 3.182446: 19.75 -+ .795612, cut at 20
    assert found.value == 19.75 and found.low == pytest.approx(18.954388, abs=1e-5) and found.high == 20
    equal = {name: [20.0] for name in turns}
    assert stats.clustered(equal, (0.0, 20.0), number=True) == (20, None, None, 4)
    assert stats.clustered(equal, (0.0, 20.0)).low is not None, "a share or a position keeps one"
    assert stats.paired({name: [-2.0] for name in turns}, (0.0, 20.0), number=True) == stats.paired(
        {name: [-2.0] for name in turns}, (0.0, 20.0)
    ), "a difference keeps one"


def test_a_share_that_is_the_same_everywhere_has_a_wide_interval() -> None:
    found = stats.clustered({str(place): [1.0] for place in range(6)}, SHARE)
    # one scenario at each end: mean 7/8, squares 7/8, error sqrt(7/8 * 8/7) / 8 = 1/8, t(0.975, 5) = 2.570582
    assert found.value == found.high == 1 and found.low == pytest.approx(7 / 8 - 2.570582 / 8, abs=1e-6)


def test_what_cannot_be_known_has_no_interval() -> None:
    assert stats.clustered({}) == stats.rate({}) == stats.excess({}) == stats.NOTHING
    assert stats.clustered({"a": [0.0, 1.0, 0.0, 1.0]}, SHARE) == (0.5, None, None, 4), "one scenario"
    assert stats.clustered({"a": [2.0, 2.0], "b": [2.0]}) == (2.0, None, None, 3), "no bounds, and nothing varies"
    assert stats.clustered({"a": [0.0], "b": [0.0]}, (0, None)) == (0.0, None, None, 2)
    assert stats.clustered({"a": [0.1 + 0.2], "b": [0.3]})[1:] == (None, None, 2), "rounding is no spread"


def test_a_count_has_an_interval_above_zero() -> None:
    found = stats.clustered({str(place): [float(place == 3)] for place in range(6)}, (0, None))
    assert found.low is not None and found.high is not None and 0 < found.low < 1 / 6 < found.high
    two = stats.clustered({"a": [9.0], "b": [1.0]}, (0, None))
    assert two.low == 0 and two.high == pytest.approx(5 + t.ppf(0.975, 1) * 4), "too few for logarithms"


def test_a_rate_weighs_scenarios_by_their_totals() -> None:
    found = stats.rate({"a": (1, 10), "b": (5, 10), "c": (0, 0)})
    assert (found.value, found.n) == (0.3, 20)
    assert found.low is not None and found.high is not None and 0 <= found.low < 0.3 < found.high <= 1


def test_hits_beyond_chance() -> None:
    right = stats.excess({"a": [(1, 0.25), (1, 0.5)], "b": [(1, 0.25)]})
    assert right.value == right.high == 1 and right.low is not None and right.low < 0.7
    # hits 2, chance 1, n 4: (2 - 1) / (4 - 1)
    assert stats.excess({"a": [(1, 0.25), (0, 0.25)], "b": [(1, 0.25), (0, 0.25)]}).value == pytest.approx(1 / 3)
    assert (stats.excess({"a": [(0, 0.5)], "b": [(0, 0.5)]}).value or 0) == pytest.approx(-1), "worse than chance"
    assert stats.excess({"a": [(1, 1.0)], "b": [(1, 1.0)]}) == stats.NOTHING, "nothing can be beyond a chance of 1"


unit = st.floats(0, 1) | st.sampled_from([0.0, 1.0])
scenarios_of_shares = st.dictionaries(
    st.text(max_size=3), st.lists(unit, min_size=1, max_size=5), min_size=2, max_size=20
)


@settings(deadline=None)
@given(scenarios_of_shares)
def test_intervals_of_shares_stay_inside_and_never_collapse(groups: dict[str, list[float]]) -> None:
    found = stats.clustered(groups, SHARE)
    assert found.value is not None and found.low is not None and found.high is not None
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.high - found.low > 0.2 / len(groups)


@settings(deadline=None)
@given(scenarios_of_shares)
def test_intervals_of_differences_stay_inside_and_never_collapse(groups: dict[str, list[float]]) -> None:
    differences = {name: [2 * value - 1 for value in values] for name, values in groups.items()}
    found = stats.paired(differences, SHARE)
    assert found is not None and found.low is not None and found.high is not None
    assert -1 <= found.low <= found.difference + 1e-9 and found.difference - 1e-9 <= found.high <= 1
    assert found.high - found.low > 0.2 / len(groups)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=3),
        st.lists(st.tuples(st.sampled_from([0, 1]), st.floats(0.01, 0.9)), min_size=1, max_size=4),
        min_size=2,
        max_size=12,
    )
)
def test_intervals_of_hits_beyond_chance_end_at_one_and_never_collapse(
    groups: dict[str, list[tuple[int, float]]],
) -> None:
    found = stats.excess(groups)
    assert found.value is not None and found.low is not None and found.high is not None
    assert found.low <= found.value <= found.high <= 1 + 1e-9 and found.high - found.low > 0.1 / len(groups)


# ---- paired --------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=2, max_size=8))
def test_p_is_the_share_of_all_sign_flips(means: list[int]) -> None:
    flipped = [sum(map(int.__mul__, means, signs)) for signs in itertools.product((1, -1), repeat=len(means))]
    wanted = sum(abs(each) >= abs(sum(means)) for each in flipped) / len(flipped)
    found = stats.paired({str(place): [float(mean)] for place, mean in enumerate(means)})
    assert found is not None and found.p == pytest.approx(wanted)


def test_flips_that_are_drawn_agree_with_all_flips() -> None:
    means = rng(4).normal(0.4, 1, size=(20, 14))
    exact = stats.sign_flips(means)
    drawn = stats.sign_flips(np.hstack([means, np.zeros((20, 1))]))  # a scenario without difference changes nothing
    assert np.abs(exact - drawn).max() < 0.02
    assert stats.sign_flips(np.full((1, 40), 5.0))[0] == stats.least_p(40) == 1e-4


@pytest.mark.parametrize("scenarios", [2, 4, 6, 14])
def test_the_least_p_is_stated(scenarios: int) -> None:
    found = stats.paired({str(place): [1.0, 2.0] for place in range(scenarios)})
    assert found is not None and found.p == found.p_least == 2 ** (1 - scenarios)


def test_every_scenario_counts_once() -> None:
    found = stats.paired({"a": [1.0] * 9, "b": [0.0]})
    assert found is not None and (found.difference, found.n, found.scenarios) == (0.5, 10, 2)


def test_what_does_not_vary_is_no_finding() -> None:
    found = stats.paired({"a": [0.0, 0.0], "b": [0.0]})
    assert found is not None and (found.p, found.effect, found.icc, found.low) == (1.0, None, None, None)
    one = stats.paired({"a": [1.0, 0.0]}, SHARE)
    assert one is not None and (one.p, one.low, one.p_least) == (None, None, 1.0), "one scenario shows no spread"
    assert stats.paired({}) is None


def test_the_effect_is_of_scenario_means() -> None:
    found = stats.paired({"a": [1.0, 3.0], "b": [4.0]})
    # means 2 and 4: mean 3, standard deviation sqrt(2)
    assert found is not None and found.effect == pytest.approx(3 / 2**0.5)


def test_icc() -> None:
    assert stats.icc([[1, 1], [2, 2], [5, 5]]) == pytest.approx(1), "seeds repeat themselves"
    assert stats.icc([[0, 1], [1, 0], [0, 1]]) == pytest.approx(-1), "scenarios are alike, seeds are not"
    assert stats.icc([[1], [2]]) is None and stats.icc([[1, 2]]) is None and stats.icc([[1, 1], [1, 1]]) is None
    scenario, seed = rng(5).normal(size=(4000, 1)), rng(6).normal(size=(4000, 3))
    assert stats.icc((scenario + seed * 2).tolist()) == pytest.approx(1 / 5, abs=0.03)


def test_no_difference_is_shown_by_many_scenarios_only() -> None:
    few = stats.equivalence({str(place): [0.0] for place in range(6)}, 0.1, SHARE)
    many = stats.equivalence({str(place): [0.0] for place in range(60)}, 0.1, SHARE)
    assert few.p is not None and few.p > 0.2 and many.p is not None and many.p < 0.01
    assert few.high is not None and few.high > 0.1 and many.high is not None and many.high < 0.1
    assert stats.equivalence({"a": [0.0]}, 0.1, SHARE)[1:] == (None, None, None)
    assert stats.equivalence({"a": [0.5], "b": [0.5]}, 0.1)[1:] == (None, None, None), "no bounds, and nothing varies"


@settings(deadline=None)
@given(scenarios_of_shares, st.floats(0.01, 0.5))
def test_equivalence_is_an_interval_inside_the_margin(groups: dict[str, list[float]], margin: float) -> None:
    found = stats.equivalence(groups, margin, SHARE)
    assert found.p is not None and found.low is not None and found.high is not None
    if abs(found.p - 0.05) > 1e-6:
        assert (found.p < 0.05) == (max(-found.low, found.high) < margin)


def test_holm() -> None:
    assert stats.holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06])
    assert stats.holm([0.6, 0.7]) == [1.0, 1.0]


# ---- design --------------------------------------------------------------------------------------------------------


def test_the_spread_of_a_pilot() -> None:
    scenario, seed = rng(7).normal(0, 2, size=(3000, 1)), rng(8).normal(0, 1, size=(3000, 2))
    found = stats.spread_of({str(place): list(values) for place, values in enumerate((scenario + seed).tolist())})
    assert found is not None and (found.scenarios, found.separated, found.whole) == (3000, True, False)
    assert found.between == pytest.approx(4, rel=0.1) and found.within == pytest.approx(1, rel=0.1)
    single = stats.spread_of({"a": [1.0], "b": [3.0]})
    assert single == stats.Spread(2.0, 0.0, 2, separated=False, whole=True)
    assert stats.spread_of({"a": [1.0, 2.0]}) is None


def test_power_grows_with_scenarios_seeds_and_difference() -> None:
    spread = stats.Spread(0.05, 0.2, 10, separated=True, whole=False)
    assert stats.power(spread, 0.2, 5, 2) == 0, "five scenarios cannot reach p <= .05"
    assert stats.power(spread, 0.2, 12, 2) < stats.power(spread, 0.2, 24, 2) < stats.power(spread, 0.2, 24, 5)
    assert stats.power(spread, 0.2, 12, 2) < stats.power(spread, 0.4, 12, 2)
    assert stats.smallest(spread, 0.01, 1) is None, "more than are tried"
    enough = stats.smallest(spread, 0.2, 2)
    assert enough is not None
    assert stats.power(spread, 0.2, enough - 1, 2) < 0.8 <= stats.power(spread, 0.2, enough, 2)


def test_a_permutation_of_two_groups_by_hand() -> None:
    assert stats.permutation([1, 2, 3], [4, 5, 6]) == pytest.approx(2 / 20), "this division and its mirror image"
    assert stats.permutation([1, 0], [0, 1]) == stats.permutation([2], [2]) == 1
    assert stats.permutation([0] * 4, [1] * 4) == stats.permutation([1] * 4, [0] * 4) == pytest.approx(2 / 70)
    assert stats.permutation([0] * 20, [1] * 20) == 1 / 10_000, "drawn: none of them is as far apart"


def test_shuffled_conditions_are_rarely_found_to_differ() -> None:
    """The control: without a difference, at most one test in twenty has p <= .05, up to chance."""
    rng = np.random.default_rng(5)
    found = [stats.permutation(values[:5], values[5:]) for values in rng.normal(size=(400, 10)).tolist()]
    assert 0.01 < np.mean([p <= 0.05 for p in found]) < 0.083
