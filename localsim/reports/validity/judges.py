"""The reliability of judges, and the rates at which naturalness judges prefer each mode, from stored scores."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from localsim import stats
from localsim.conversation.episode import CONDITIONS
from localsim.leakage.accuracy import auroc
from localsim.stats import NOTHING, Estimate, clustered
from localsim.store.database import Store
from localsim.store.queries import reports as queries

Row = dict[str, Any]


def reliability(store: Store, run_id: str) -> list[Row]:
    """Return for each judge: means by mode, agreement of its goal score with the outcome, and its consistency.

    The agreement (`goal_auroc`) compares a success with a failure of the same family and mode only: a judge that tells
    one family from another, or one mode from another, gets no credit for it.
    """
    rows = queries.judge_goals(store, run_id)
    return [_judge(name, [row for row in rows if row["evaluator"] == name]) for name in dict.fromkeys(
        row["evaluator"] for row in rows
    )]  # fmt: skip


def _judge(name: str, rows: list[Row]) -> Row:
    known = [row for row in rows if row["success"] is not None and row["goal"] is not None]
    follows, pairs = follows_outcome(known)
    spreads = [row["spread"] for row in rows if row["spread"] is not None]
    return {
        "judge": name.removeprefix("judge."),
        "n": len(rows),
        "goal_by_mode": {
            mode: statistics.fmean(values)
            for mode in dict.fromkeys(row["mode"] for row in rows)
            if (values := [row["goal"] for row in rows if row["mode"] == mode and row["goal"] is not None])
        },
        "goal_auroc": follows.value,
        "goal_auroc_low": follows.low,
        "goal_auroc_high": follows.high,
        "goal_auroc_n": len(known),
        "goal_auroc_pairs": pairs,
        "goal_auroc_scenarios": follows.n,
        "spread": statistics.fmean(spreads) if spreads else None,
        "warning": _warning(follows, len(known)),
    }


def follows_outcome(rows: Sequence[Row]) -> tuple[Estimate, int]:
    """Return the share of pairs (a success, a failure) that the goal scores order rightly, and the number of pairs.

    `rows` have family, mode, scenario_id, goal and success. Pairs are made within a family and mode; ties count half.
    The interval is a jackknife over scenarios.
    """
    value, pairs = _concordance(rows)
    if value is None:
        return NOTHING, 0
    scenarios = sorted({(row["family"], row["scenario_id"]) for row in rows})
    without = {
        left_out: _concordance([row for row in rows if (row["family"], row["scenario_id"]) != left_out])[0]
        for left_out in scenarios
    }
    # Without its only success or failure nothing can be ordered: too few scenarios for an interval.
    if None in without.values():
        return Estimate(value, None, None, len(scenarios)), pairs
    n = len(scenarios)
    pseudo = {"/".join(key): [n * value - (n - 1) * rest] for key, rest in without.items() if rest is not None}
    found = clustered(pseudo, (0.0, 1.0))
    if found.low is None or found.high is None:
        return Estimate(value, None, None, n), pairs
    return Estimate(value, min(value, max(0.0, found.low)), max(value, min(1.0, found.high)), n), pairs


def _concordance(rows: Iterable[Row]) -> tuple[float | None, int]:
    """Return the AUROC of each family and mode, weighted by its pairs of a success and a failure, and their number."""
    import numpy as np

    strata: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        strata[row["family"], row["mode"]].append(row)
    right, pairs = 0.0, 0
    for own in strata.values():
        truth = np.array([row["success"] > 0.5 for row in own], dtype=bool)
        follows = auroc(truth, np.array([row["goal"] for row in own]))
        here = int(truth.sum()) * int((~truth).sum())
        right += (follows or 0.0) * here
        pairs += here
    return (right / pairs if pairs else None), pairs


ENOUGH = 50
"""Fewest conversations from which on a judge's agreement is shown without a warning."""


def _warning(follows: Estimate, n: int) -> str | None:
    if follows.value is None:
        return (
            "its goal scores cannot be checked: that needs conversations of one family and mode of which some succeed "
            "and others fail"
        )
    over = f"AUROC {follows.value:.2f} over {n} conversations on {follows.n} scenarios"
    if follows.value < 0.6:
        return f"its goal scores are no better than chance ({over}): do not use them"
    if follows.low is None or follows.low <= 0.5:
        return f"its goal scores cannot be told from chance ({over}{_between(follows)}): do not use them"
    return f"AUROC {follows.value:.2f} rests on only {n} conversations" if n < ENOUGH else None


def _between(follows: Estimate) -> str:
    return "" if follows.low is None or follows.high is None else f", 95% {follows.low:.2f} to {follows.high:.2f}"


def rates(store: Store, run_id: str) -> list[Row]:
    """Return for each judge and pair of modes the share of pairs in which the first mode was chosen.

    Only pairs that are decided alike in both orders count. Rows have a 95% interval over scenarios, and the share of
    agreeing orders.
    """
    rows = queries.choices(store, run_id)
    found = []
    for judge in dict.fromkeys(row["evaluator"] for row in rows):
        for one, other in combinations(CONDITIONS, 2):
            values: dict[str, list[float]] = defaultdict(list)
            for row in rows:
                if (row["evaluator"], row["mode"], row["name"]) == (judge, one, f"natural_against_{other}"):
                    values[row["scenario_id"]].append(float(row["value"]))
            if values:
                found.append(_rate(judge.removeprefix("naturalness."), one, other, values))
    return found


def _rate(judge: str, one: str, other: str, by_scenario: Mapping[str, Sequence[float]]) -> Row:
    """Return the share of decided pairs in which the first mode was chosen; its interval is over scenarios."""
    values = [value for group in by_scenario.values() for value in group]
    decided = [value for value in values if value != 0.5]
    estimate = stats.rate(
        {
            name: (int(sum(value == 1 for value in group)), sum(value != 0.5 for value in group))
            for name, group in by_scenario.items()
        }
    )
    agree = len(decided) / len(values)
    warning = "picks a place, not a conversation: do not use it" if agree < 0.6 else None
    return {
        "judge": judge,
        "first": one,
        "second": other,
        "n": len(values),
        "decided": len(decided),
        "first_chosen": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "orders_agree": agree,
        "half_credit": statistics.fmean(values),
        "warning": warning,
    }


def sentence(rate: Row) -> str:
    """Return a row of `rates` as a sentence."""
    chosen, low, high = rate["first_chosen"], rate["low"], rate["high"]
    share_chosen = "-" if chosen is None else f"{chosen:.0%} [{low:.0%}, {high:.0%}]"
    preference = f"{rate['first']} over {rate['second']} in {share_chosen} of {rate['decided']} pairs"
    warning = f" ({rate['warning']})" if rate["warning"] else ""
    agreement = f"orders agree in {rate['orders_agree']:.0%} of {rate['n']}"
    return f"Naturalness, {rate['judge']}: {preference}; {agreement}{warning}"
