"""The reliability of judges, and the rates at which naturalness judges prefer each mode, from stored scores."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from localsim import stats
from localsim.conversation.episode import CONDITIONS
from localsim.evaluators.choosing import AGAINST
from localsim.leakage.accuracy import auroc
from localsim.stats import NOTHING, Estimate, clustered
from localsim.store.conditions import Condition, in_order, names_of
from localsim.store.database import Store
from localsim.store.queries import judged as queries


@dataclass(frozen=True)
class Reliability:
    """What is known of a judge."""

    judge: str
    n: int
    """Conversations."""
    goal_by_mode: Mapping[str, float]
    """Condition -> mean goal score."""
    goal_auroc: float | None
    """The agreement of its goal score with the outcome.

    It compares a success with a failure of the same family and condition only: a judge that tells one family from
    another, or one condition from another, gets no credit for it.
    """
    goal_auroc_low: float | None
    goal_auroc_high: float | None
    goal_auroc_n: int
    """Conversations with an outcome and a goal score."""
    goal_auroc_pairs: int
    goal_auroc_scenarios: int
    spread: float | None
    """The mean spread between its own samples, as a share of the range."""
    warning: str | None
    """What a reader must know before using its scores."""

    @property
    def fails(self) -> bool:
        """True if its goal scores can be compared with outcomes, and are no better than chance or not told from it."""
        return self.goal_auroc is not None and (
            self.goal_auroc < POOR or self.goal_auroc_low is None or self.goal_auroc_low <= 0.5
        )

    def __str__(self) -> str:
        """Return in sentences the goal scores by mode, and what is known of their reliability."""
        scores = ", ".join(f"{mode} {goal:.1f}" for mode, goal in self.goal_by_mode.items())
        told = [f"Judge {self.judge} ({self.n} conversations){f', goal 0-10: {scores}' if scores else ''}."]
        if self.goal_auroc is not None:
            low, high = self.goal_auroc_low, self.goal_auroc_high
            ends = "" if low is None else f" ({low:.2f} to {high:.2f})"
            told.append(
                f"AUROC against the verifiable outcome, within families and modes: {self.goal_auroc:.2f}{ends}."
            )
        if self.spread is not None:
            told.append(f"Spread between its own samples: {self.spread:.2f} of the range.")
        return " ".join([*told, *([f"Warning: {self.warning}."] if self.warning else [])])


def reliability(store: Store, runs: Sequence[str]) -> list[Reliability]:
    """Return what is known of each judge of runs."""
    judged = stats.grouped((row.evaluator, row) for run in runs for row in queries.judge_goals(store, run))
    return [_judge(name, rows) for name, rows in judged.items()]


def _judge(name: str, rows: Sequence[queries.Goals]) -> Reliability:
    known = [Goal(row.family, row.scenario_id, row.condition, row.goal, row.success) for row in rows
             if row.success is not None and row.goal is not None]  # fmt: skip
    follows, pairs = follows_outcome(known)
    by_condition = stats.grouped((row.condition, row.goal) for row in rows if row.goal is not None)
    names = names_of(sorted({row.condition for row in rows}, key=in_order))
    means = {name: statistics.fmean(by_condition[each]) for each, name in names.items() if each in by_condition}
    spreads = [row.spread for row in rows if row.spread is not None]
    return Reliability(
        name.removeprefix("judge."),
        len(rows),
        means,
        *follows[:3],
        goal_auroc_n=len(known),
        goal_auroc_pairs=pairs,
        goal_auroc_scenarios=follows.n,
        spread=statistics.fmean(spreads) if spreads else None,
        warning=_warning(follows, len(known)),
    )


class Goal(NamedTuple):
    """The goal score of a conversation beside its outcome."""

    family: str
    scenario: str
    condition: Condition
    goal: float
    success: float


def follows_outcome(rows: Sequence[Goal]) -> tuple[Estimate, int]:
    """Return the share of pairs (a success, a failure) that the goal scores order rightly, and the number of pairs.

    Pairs are made within a family and condition; ties count half. The interval is a jackknife over scenarios.
    """
    value, pairs = _concordance(rows)
    if value is None:
        return NOTHING, 0
    scenarios = sorted({(row.family, row.scenario) for row in rows})
    without = {
        left_out: _concordance([row for row in rows if (row.family, row.scenario) != left_out])[0]
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


def _concordance(rows: Iterable[Goal]) -> tuple[float | None, int]:
    """Return the AUROC of each family and condition, weighted by its pairs of success and failure, and their number."""
    import numpy as np

    right, pairs = 0.0, 0
    for own in stats.grouped(((row.family, row.condition), row) for row in rows).values():
        truth = np.array([row.success > 0.5 for row in own], dtype=bool)
        follows = auroc(truth, np.array([row.goal for row in own]))
        here = int(truth.sum()) * int((~truth).sum())
        right += (follows or 0.0) * here
        pairs += here
    return (right / pairs if pairs else None), pairs


POOR = 0.6
"""A judge whose AUROC is below this is called no better than chance."""
ENOUGH = 50
"""Fewest conversations from which on a judge's agreement is shown without a warning."""


def _warning(follows: Estimate, n: int) -> str | None:
    if follows.value is None:
        return (
            "its goal scores cannot be checked: that needs conversations of one family and condition of which some "
            "succeed and others fail"
        )
    over = f"AUROC {follows.value:.2f} over {n} conversations on {follows.n} scenarios"
    if follows.value < POOR:
        return f"its goal scores are no better than chance ({over}): do not use them"
    if follows.low is None or follows.low <= 0.5:
        between = "" if follows.low is None else f", 95% {follows.low:.2f} to {follows.high:.2f}"
        return f"its goal scores cannot be told from chance ({over}{between}): do not use them"
    return f"AUROC {follows.value:.2f} rests on only {n} conversations" if n < ENOUGH else None


Pair = tuple[Condition, Condition]
Values = dict[str, dict[Pair, dict[str, list[float]]]]
"""Judge -> pair of conditions -> scenario -> choices."""


@dataclass(frozen=True)
class Rate:
    """How often a judge of naturalness chose the first of two conditions."""

    judge: str
    first: str
    second: str
    n: int
    """Pairs of conversations."""
    decided: int
    """Pairs that are decided alike in both orders: only these count."""
    first_chosen: float | None
    """The share in which the first condition was chosen, with its 95% interval over scenarios."""
    low: float | None
    high: float | None
    orders_agree: float
    half_credit: float
    warning: str | None
    first_condition: Mapping[str, str]
    """What the name stands for."""
    second_condition: Mapping[str, str]


def rates(store: Store, run_id: str) -> list[Rate]:
    """Return the rates of each judge and two conditions of which one is of this run."""

    def ordered(*pair: Condition) -> Pair:
        one, other = sorted(pair, key=lambda each: (each.run_id != run_id, each.run_id, in_order(each)))
        return one, other

    found = _values(queries.choices(store, [run_id]), ordered)
    return _rates(found, names_of(each for pairs in found.values() for pair in pairs for each in pair))


def rates_between(store: Store, pairs: Sequence[Pair]) -> list[Rate]:
    """Return the rates for pairs of conditions, the first of each pair first, called by their names."""
    every = list(dict.fromkeys(each for pair in pairs for each in pair))
    wanted = {frozenset(pair): pair for pair in pairs}
    choices = queries.choices(store, list(dict.fromkeys(each.run_id for each in every)))
    found = _values(choices, lambda *pair: wanted.get(frozenset(pair)))
    by_judge = {judge: {pair: own[pair] for pair in pairs if pair in own} for judge, own in found.items()}
    return _rates(by_judge, names_of(every))


def _values(choices: Sequence[queries.Choice], ordered: Callable[[Condition, Condition], Pair | None]) -> Values:
    """Return the choices of the first condition (1, 0 or .5); `ordered` gives a pair its order, None leaves it out."""
    found: Values = {}
    seen = set()
    for row in choices:
        other = _other(row)
        pair = None if other is None else ordered(row.condition, other)
        if pair is None:
            continue
        turned = pair[0] != row.condition
        if row.other_id is None and turned:
            continue  # within a run both directions are stored
        both = frozenset((row.evaluator, row.episode_id, row.other_id))
        if row.other_id is not None and both in seen:
            continue
        seen.add(both)
        groups = found.setdefault(row.evaluator, {}).setdefault(pair, {})
        groups.setdefault(row.scenario_id, []).append(1 - row.value if turned else row.value)
    return found


def _other(row: queries.Choice) -> Condition | None:
    """Return the condition that a choice was made against; None if its run was deleted."""
    if row.other_run is not None and row.other_mode is not None and row.other_model is not None:
        return Condition(row.other_run, row.other_mode, row.other_model, row.other_see or "")
    mode, _, see = row.name.removeprefix(AGAINST).partition("+")
    return Condition(row.run_id, mode, row.model, see) if mode in CONDITIONS else None


def _rates(found: Values, names: Mapping[Condition, str]) -> list[Rate]:
    return [
        _rate(judge.removeprefix("naturalness."), pair, names, values)
        for judge, by_pair in found.items()
        for pair, values in by_pair.items()
    ]


def _rate(judge: str, pair: Pair, names: Mapping[Condition, str], by_scenario: Mapping[str, Sequence[float]]) -> Rate:
    values = [value for group in by_scenario.values() for value in group]
    decided = sum(value != 0.5 for value in values)
    estimate = stats.rate({
        name: (int(sum(value == 1 for value in group)), sum(value != 0.5 for value in group))
        for name, group in by_scenario.items()
    })  # fmt: skip
    agree = decided / len(values)
    return Rate(
        judge,
        names[pair[0]],
        names[pair[1]],
        n=len(values),
        decided=decided,
        first_chosen=estimate.value,
        low=estimate.low,
        high=estimate.high,
        orders_agree=agree,
        half_credit=statistics.fmean(values),
        warning="picks a place, not a conversation: do not use it" if agree < 0.6 else None,
        first_condition=vars(pair[0]),
        second_condition=vars(pair[1]),
    )


def sentence(rate: Rate) -> str:
    """Return a rate as a sentence."""
    chosen = stats.text_of(rate.first_chosen, rate.low, rate.high, ".0%")
    preference = f"{rate.first} over {rate.second} in {chosen} of {rate.decided} pairs"
    warning = f" ({rate.warning})" if rate.warning else ""
    agreement = f"orders agree in {rate.orders_agree:.0%} of {rate.n}"
    return f"Naturalness, {rate.judge}: {preference}; {agreement}{warning}"
