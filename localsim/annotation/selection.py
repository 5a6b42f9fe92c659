"""The conversations that raters judge: those of one run, or those of conditions of several runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localsim.store import conditions as spelling
from localsim.store.conditions import Choice, Condition
from localsim.store.database import Store
from localsim.store.records import hash_of

Pair = frozenset[Condition]


@dataclass(frozen=True)
class Selection:
    """The runs and conditions whose conversations are judged, and the pairs of conditions that are compared."""

    runs: tuple[str, ...]
    conditions: frozenset[Condition] | None = None
    """None means all of the run."""
    pairs: frozenset[Pair] | None = None
    """None means every two conditions of one run."""

    @property
    def key(self) -> str:
        """The name of the selection in addresses: the run's id, or a hash that names no run and no condition."""
        if self.conditions is None:
            return self.runs[0]
        return "set-" + hash_of("\n".join(sorted(each.spelled() for each in self.conditions)))[:12]

    def has(self, condition: Condition) -> bool:
        """Return True if the conversations of a condition are judged."""
        return condition.run_id in self.runs and (self.conditions is None or condition in self.conditions)

    def compares(self, one: Condition, other: Condition) -> bool:
        """Return True if the conversations of two conditions are judged against each other."""
        if self.pairs is not None:
            return frozenset((one, other)) in self.pairs
        # The models of a run's conditions differ where a role has a model of its own.
        return one.run_id == other.run_id and one.name != other.name and self.has(one) and self.has(other)


@dataclass(frozen=True)
class Everything(Selection):
    """All conversations of some runs, and all pairs of two conditions: whatever a rater was shown is among them."""

    def compares(self, one: Condition, other: Condition) -> bool:
        """Return True if two conditions differ."""
        return one != other


def of_run(run_id: str) -> Selection:
    """Return the selection of all conversations of a run."""
    return Selection((run_id,))


def selected(store: Store, references: Sequence[str]) -> Selection:
    """Return what references of a command name, such as @last, or @last:agents @last-1:agents. Raises InvalidInput."""
    return of_choices(spelling.choices(store, references or ("@last",)))


def of_choices(found: Sequence[Choice]) -> Selection:
    """Return the selection of conditions that were named in a command, and of their pairs."""
    conditions = [each for choice in found for each in choice.conditions]
    runs = tuple(dict.fromkeys(each.run_id for each in conditions))
    if len(found) == 1 and found[0].whole:
        return of_run(runs[0])
    pairs = frozenset(frozenset(pair) for pair in spelling.pairs_of(found))
    return Selection(runs, frozenset(conditions), pairs)
