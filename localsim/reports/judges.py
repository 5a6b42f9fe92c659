"""The reliability of judges, and the rates at which naturalness judges prefer each mode, from stored scores."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from localsim.conversation.episode import MODES
from localsim.leakage.accuracy import auroc
from localsim.stats import share
from localsim.store.database import Store
from localsim.store.queries import reports as queries

Row = dict[str, Any]


def reliability(store: Store, run_id: str) -> list[Row]:
    """Return for each judge: means by mode, agreement of its goal score with the outcome, and its consistency."""
    rows = queries.judge_goals(store, run_id)
    return [_judge(name, [row for row in rows if row["evaluator"] == name]) for name in dict.fromkeys(
        row["evaluator"] for row in rows
    )]  # fmt: skip


def _judge(name: str, rows: list[Row]) -> Row:
    import numpy as np

    known = [row for row in rows if row["success"] is not None and row["goal"] is not None]
    truth = np.array([row["success"] > 0.5 for row in known], dtype=bool)
    follows = auroc(truth, np.array([row["goal"] for row in known])) if known else None
    spreads = [row["spread"] for row in rows if row["spread"] is not None]
    return {
        "judge": name.removeprefix("judge."),
        "n": len(rows),
        "goal_by_mode": {
            mode: statistics.fmean(values)
            for mode in dict.fromkeys(row["mode"] for row in rows)
            if (values := [row["goal"] for row in rows if row["mode"] == mode and row["goal"] is not None])
        },
        "goal_auroc": follows,
        "goal_auroc_n": len(known),
        "spread": statistics.fmean(spreads) if spreads else None,
        "warning": _warning(follows, len(known)),
    }


def _warning(follows: float | None, n: int) -> str | None:
    if follows is None:
        return "its goal scores cannot be checked: that needs conversations that succeed and others that fail"
    if follows < 0.6:
        return (
            f"its goal scores are no better than chance (AUROC {follows:.2f} over {n} conversations): do not use them"
        )
    return f"AUROC {follows:.2f} rests on only {n} conversations" if n < 50 else None


def rates(store: Store, run_id: str) -> list[Row]:
    """Return for each judge and pair of modes the share of pairs in which the first mode was chosen.

    Only pairs that are decided alike in both orders count. Rows have a 95% interval, and the share of agreeing orders.
    """
    rows = queries.choices(store, run_id)
    found = []
    for judge in dict.fromkeys(row["evaluator"] for row in rows):
        for one, other in combinations(MODES, 2):
            values = [
                float(row["value"])
                for row in rows
                if (row["evaluator"], row["mode"], row["name"]) == (judge, one, f"natural_against_{other}")
            ]
            if values:
                found.append(_rate(judge.removeprefix("naturalness."), one, other, values))
    return found


def _rate(judge: str, one: str, other: str, values: Sequence[float]) -> Row:
    decided = [value for value in values if value != 0.5]
    estimate = share(int(sum(decided)), len(decided))
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
