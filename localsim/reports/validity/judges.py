"""The reliability of judges, and the rates at which naturalness judges prefer each mode, from stored scores."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from localsim import stats
from localsim.conversation.episode import CONDITIONS
from localsim.evaluators.choosing.naturalness import AGAINST
from localsim.leakage.accuracy import auroc
from localsim.stats import NOTHING, Estimate, clustered
from localsim.store.conditions import Condition, condition_of, in_order, names_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries

Row = dict[str, Any]


def reliability(store: Store, run_id: str) -> list[Row]:
    """Return for each judge: means by condition, agreement of its goal score with the outcome, and its consistency.

    The agreement (`goal_auroc`) compares a success with a failure of the same family and condition only: a judge that
    tells one family from another, or one condition from another, gets no credit for it.
    """
    rows = queries.judge_goals(store, run_id)
    return [_judge(name, [row for row in rows if row["evaluator"] == name]) for name in dict.fromkeys(
        row["evaluator"] for row in rows
    )]  # fmt: skip


def _judge(name: str, rows: list[Row]) -> Row:
    known = [row for row in rows if row["success"] is not None and row["goal"] is not None]
    follows, pairs = follows_outcome(known)
    by_condition: dict[Condition, list[float]] = defaultdict(list)
    for row in rows:
        by_condition[condition_of(row)] += [row["goal"]] if row["goal"] is not None else []
    names = names_of(sorted(by_condition, key=in_order))
    spreads = [row["spread"] for row in rows if row["spread"] is not None]
    return {
        "judge": name.removeprefix("judge."),
        "n": len(rows),
        "goal_by_mode": {
            called: statistics.fmean(goals) for each, called in names.items() if (goals := by_condition[each])
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

    `rows` have family, scenario_id, goal, success and the columns of a condition. Pairs are made within a family and
    condition; ties count half. The interval is a jackknife over scenarios.
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
    """Return the AUROC of each family and condition, weighted by its pairs of success and failure, and their number."""
    import numpy as np

    strata: dict[tuple[str, Condition], list[Row]] = defaultdict(list)
    for row in rows:
        strata[row["family"], condition_of(row)].append(row)
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
            "its goal scores cannot be checked: that needs conversations of one family and condition of which some "
            "succeed and others fail"
        )
    over = f"AUROC {follows.value:.2f} over {n} conversations on {follows.n} scenarios"
    if follows.value < 0.6:
        return f"its goal scores are no better than chance ({over}): do not use them"
    if follows.low is None or follows.low <= 0.5:
        return f"its goal scores cannot be told from chance ({over}{_between(follows)}): do not use them"
    return f"AUROC {follows.value:.2f} rests on only {n} conversations" if n < ENOUGH else None


def _between(follows: Estimate) -> str:
    return "" if follows.low is None or follows.high is None else f", 95% {follows.low:.2f} to {follows.high:.2f}"


Pair = tuple[Condition, Condition]


def rates(store: Store, run_id: str) -> list[Row]:
    """Return for each judge and two conditions the share of pairs in which the first condition was chosen.

    One of the two is of this run. Only pairs that are decided alike in both orders count. Rows have a 95% interval over
    scenarios, and the share of agreeing orders; first_condition and second_condition say what the names stand for.
    """
    found = _values(queries.choices(store, [run_id]), lambda each: (each.run_id != run_id, each.run_id, in_order(each)))
    return _rows(found, names_of(each for pairs in found.values() for pair in pairs for each in pair))


def rates_between(store: Store, pairs: Sequence[Pair]) -> list[Row]:
    """Return the rows of `rates` for pairs of conditions, the first of each pair first, called by their names."""
    every = list(dict.fromkeys(each for pair in pairs for each in pair))
    wanted = {frozenset(pair): pair for pair in pairs}
    choices = queries.choices(store, list(dict.fromkeys(each.run_id for each in every)))
    found: dict[str, dict[Pair, dict[str, list[float]]]] = {}
    for judge, by_pair in _values(choices, lambda each: (each.run_id, in_order(each))).items():
        kept = {pair: groups for pair, groups in by_pair.items() if frozenset(pair) in wanted}
        for pair, groups in kept.items():
            first = wanted[frozenset(pair)]
            turned = groups if first == pair else {name: [1 - value for value in own] for name, own in groups.items()}
            found.setdefault(judge, {})[first] = turned
    order = list(wanted.values())
    sorted_rows = {
        judge: dict(sorted(own.items(), key=lambda one: order.index(one[0]))) for judge, own in found.items()
    }
    return _rows(sorted_rows, names_of(every))


def _values(choices: Sequence[Row], place: Callable[[Condition], Any]) -> dict[str, dict[Pair, dict[str, list[float]]]]:
    """Return judge -> pair of conditions, in order of their places -> scenario -> choices of the first (1, 0 or .5)."""
    found: dict[str, dict[Pair, dict[str, list[float]]]] = {}
    seen = set()
    for row in choices:
        one, other = condition_of(row), _other(row)
        if other is None:
            continue
        turned = place(other) < place(one)
        if row["other_id"] is None and turned:
            continue  # within a run both directions are stored
        both = frozenset((row["evaluator"], row["episode_id"], row["other_id"]))
        if row["other_id"] is not None and both in seen:
            continue
        seen.add(both)
        pair, value = ((other, one), 1 - float(row["value"])) if turned else ((one, other), float(row["value"]))
        groups = found.setdefault(row["evaluator"], {}).setdefault(pair, {})
        groups.setdefault(row["scenario_id"], []).append(value)
    return found


def _other(row: Row) -> Condition | None:
    """Return the condition that a choice was made against; None if its run was deleted."""
    if row["other_id"] is not None:
        return Condition(row["other_run"], row["other_mode"], row["other_model"], row["other_see"] or "")
    mode, _, see = row["name"].removeprefix(AGAINST).partition("+")
    return Condition(row["run_id"], mode, row["model"], see) if mode in CONDITIONS else None


def _rows(found: Mapping[str, Mapping[Pair, Mapping[str, list[float]]]], names: Mapping[Condition, str]) -> list[Row]:
    rows = []
    for judge, by_pair in found.items():
        for (one, other), values in by_pair.items():
            row = _rate(judge.removeprefix("naturalness."), names[one], names[other], values)
            rows.append({**row, "first_condition": vars(one), "second_condition": vars(other)})
    return rows


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
    ends = "" if low is None or high is None else f" [{low:.0%}, {high:.0%}]"
    share_chosen = "-" if chosen is None else f"{chosen:.0%}{ends}"
    preference = f"{rate['first']} over {rate['second']} in {share_chosen} of {rate['decided']} pairs"
    warning = f" ({rate['warning']})" if rate["warning"] else ""
    agreement = f"orders agree in {rate['orders_agree']:.0%} of {rate['n']}"
    return f"Naturalness, {rate['judge']}: {preference}; {agreement}{warning}"


def goals(judge: Row) -> str:
    """Return a row of `reliability` in sentences: the goal scores by mode, and what is known of their reliability."""
    scores = ", ".join(f"{mode} {goal:.1f}" for mode, goal in judge["goal_by_mode"].items())
    told = [f"Judge {judge['judge']} ({judge['n']} conversations), goal 0-10: {scores}."]
    value, low, high = (judge[f"goal_auroc{end}"] for end in ("", "_low", "_high"))
    if value is not None:
        ends = "" if low is None else f" ({low:.2f} to {high:.2f})"
        told.append(f"AUROC against the verifiable outcome, within families and modes: {value:.2f}{ends}.")
    if judge["spread"] is not None:
        told.append(f"Spread between its own samples: {judge['spread']:.2f} of the range.")
    return " ".join([*told, *([f"Warning: {judge['warning']}."] if judge["warning"] else [])])
