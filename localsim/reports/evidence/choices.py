"""What judges chose among several conversations: how often each condition won, ties, and the bias for a place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from localsim import stats
from localsim.evaluators.choosing import CHOSEN, PLACE
from localsim.reports.document import Table
from localsim.store.conditions import Condition, in_order, names_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries

AGREE = 0.6
"""Below this share of decided sets a judge is called one that picks places."""


@dataclass(frozen=True)
class Share:
    """The share of decided sets that a condition won, with a 95% interval over scenarios."""

    condition: str
    chosen: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Choices:
    """What a judge chose in the sets of some conditions: a row of `choices` in `report --json`."""

    judge: str
    criterion: str
    n: int
    """Conversations of a set."""
    sets: int
    decided: int
    """Sets in which all rotations chose the same conversation; the others are ties."""
    conditions: Sequence[Share]
    places: Sequence[float | None]
    """The share of rotations in which each place was named; without a bias each has 1/n."""
    warning: str | None


def choices(store: Store, run_id: str) -> list[Choices]:
    """Return what each judge chose in each set of conditions of a run."""
    groups: dict[tuple[str, str], list[queries.Chosen]] = defaultdict(list)
    places: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in queries.candidates(store, run_id):
        place, _, name = row.name.removeprefix(PLACE).partition(":")
        if row.name.startswith(PLACE):
            places[row.evaluator, name][int(place)].append(row.value)
        else:
            groups[row.evaluator, row.name].append(row)
    return [_of_set(rows, places[key]) for key, rows in groups.items()]


def _of_set(rows: Sequence[queries.Chosen], places: Mapping[int, Sequence[float]]) -> Choices:
    criterion, _, judge = rows[0].evaluator.removeprefix("choose.").partition(".")
    n = len(rows[0].name.removeprefix(CHOSEN).split("|"))
    by_condition: dict[Condition, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_condition[row.condition][row.scenario_id].append(row.value)
    names = names_of(sorted(by_condition, key=in_order))
    values = [value for group in next(iter(by_condition.values())).values() for value in group]
    decided = sum(value in (0.0, 1.0) for value in values)
    shares = [_share(called, by_condition[each]) for each, called in names.items()]
    named = [round(fmean(places[at]), 4) if places.get(at) else None for at in range(1, n + 1)]
    warning = "picks a place, not a conversation: do not use it" if decided < AGREE * len(values) else None
    return Choices(judge, criterion, n, len(values), decided, shares, named, warning)


def _share(name: str, by_scenario: Mapping[str, Sequence[float]]) -> Share:
    won = {
        key: (sum(value == 1 for value in own), sum(value in (0, 1) for value in own))
        for key, own in by_scenario.items()
    }
    return Share(name, *stats.rate(won)[:3])


def choice_tables(found: Iterable[Choices]) -> Iterator[Table]:
    """Yield a table for each judge and set: how often each condition was chosen, with ties and places below it."""
    for row in found:
        asked = "the most natural" if row.criterion == "natural" else f"the best by question {row.criterion}"
        lines = [[each.condition, stats.text_of(each.chosen, each.low, each.high, ".0%")] for each in row.conditions]
        yield Table(f"Judge {row.judge}, {asked} of {row.n}", ["condition", "chosen"], lines, list(_notes(row)))


def _notes(row: Choices) -> Iterator[str]:
    yield (
        f"{row.sets} sets, each asked in all {row.n} rotations of its order: {row.decided} decided alike in all, "
        f"{row.sets - row.decided} ties. Shares are of the decided sets; without a preference each would be "
        f"{1 / row.n:.0%}."
    )
    if None not in row.places:
        shares = ", ".join(f"{number}: {share:.0%}" for number, share in enumerate(row.places, start=1))
        yield f"Place that was named, over all rotations: {shares}; without a bias {1 / row.n:.0%} each."
    if row.warning:
        yield f"This judge {row.warning}."
