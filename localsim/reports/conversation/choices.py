"""What judges chose among several conversations: how often each condition won, ties, and the bias for a place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any

from localsim import stats
from localsim.evaluators.choosing.candidates import CHOSEN, PLACE
from localsim.reports.document import Table
from localsim.store.conditions import Condition, condition_of, in_order, names_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries

Row = dict[str, Any]
AGREE = 0.6
"""Below this share of decided sets a judge is called one that picks places."""


def choices(store: Store, run_id: str) -> list[Row]:
    """Return a row for each judge and set of conditions of a run.

    sets: sets of conversations that were compared. decided: those in which all rotations chose the same one; the others
    are ties. conditions: for each the share of decided sets that it won, with a 95% interval over scenarios. places:
    share of rotations in which each place was named; without a bias each has 1/n.
    """
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    places: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in queries.candidates(store, run_id):
        place, _, name = row["name"].removeprefix(PLACE).partition(":")
        if row["name"].startswith(PLACE):
            places[row["evaluator"], name][int(place)].append(row["value"])
        else:
            groups[row["evaluator"], row["name"]].append(row)
    return [_row(evaluator, rows, places[evaluator, name]) for (evaluator, name), rows in groups.items()]


def _row(evaluator: str, rows: Sequence[Row], places: dict[int, list[float]]) -> Row:
    criterion, _, judge = evaluator.removeprefix("choose.").partition(".")
    n = len(rows[0]["name"].removeprefix(CHOSEN).split("|"))
    by_condition: dict[Condition, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_condition[condition_of(row)][row["scenario_id"]].append(row["value"])
    names = names_of(sorted(by_condition, key=in_order))
    one = next(iter(by_condition.values()))
    values = [value for group in one.values() for value in group]
    decided = sum(value in (0.0, 1.0) for value in values)
    shares = [round(fmean(places[at]), 4) if places.get(at) else None for at in range(1, n + 1)]
    return {
        "judge": judge,
        "criterion": criterion,
        "n": n,
        "sets": len(values),
        "decided": decided,
        "conditions": [_share(called, by_condition[each]) for each, called in names.items()],
        "places": shares,
        "warning": "picks a place, not a conversation: do not use it" if decided < AGREE * len(values) else None,
    }


def _share(name: str, by_scenario: dict[str, list[float]]) -> Row:
    found = stats.rate(
        {
            scenario: (sum(value == 1 for value in own), sum(value in (0.0, 1.0) for value in own))
            for scenario, own in by_scenario.items()
        }
    )
    return {"condition": name, "chosen": found.value, "low": found.low, "high": found.high}


def choice_tables(found: Iterable[Row]) -> Iterator[Table]:
    """Yield a table for each judge and set: how often each condition was chosen, with ties and places below it."""
    for row in found:
        asked = "the most natural" if row["criterion"] == "natural" else f"the best by question {row['criterion']}"
        lines = [[each["condition"], _text(each)] for each in row["conditions"]]
        yield Table(f"Judge {row['judge']}, {asked} of {row['n']}", ["condition", "chosen"], lines, list(_notes(row)))


def _text(each: Row) -> str:
    if each["chosen"] is None:
        return "-"
    ends = "" if each["low"] is None else f" [{each['low']:.0%}, {each['high']:.0%}]"
    return f"{each['chosen']:.0%}{ends}"


def _notes(row: Row) -> Iterator[str]:
    n, ties = row["n"], row["sets"] - row["decided"]
    yield (
        f"{row['sets']} sets, each asked in all {n} rotations of its order: {row['decided']} decided alike in all, "
        f"{ties} ties. Shares are of the decided sets; without a preference each would be {1 / n:.0%}."
    )
    if None not in row["places"]:
        shares = ", ".join(f"{number}: {share:.0%}" for number, share in enumerate(row["places"], start=1))
        yield f"Place that was named, over all rotations: {shares}; without a bias {1 / n:.0%} each."
    if row["warning"]:
        yield f"This judge {row['warning']}."
