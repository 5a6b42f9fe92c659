"""The results of a report: one row for each family and condition, with a number for each measure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from localsim.conversation.measures import Kind, Measure
from localsim.stats import text_of


@dataclass(frozen=True)
class Number:
    """The value of a measure with the ends of its 95% interval; None where they cannot be known."""

    kind: Kind = "number"
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    """Episodes that were judged; None for a measure that every episode has."""
    alike: int = 0
    """Episodes of several scenarios that all have this value, so that it has no interval; else 0."""

    def __post_init__(self) -> None:
        """End the interval of a share at what is possible: one beyond chance has no least value of its own."""
        if self.kind == "share" and self.low is not None and self.value is not None:
            object.__setattr__(self, "low", max(self.low, min(self.value, -1.0)))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the interval; None if it has none."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def undecided(self) -> bool:
        """True for a share beyond chance, such as peeking, that so few judged episodes cannot tell.

        It can be none and all, or none and as far below chance as is shown; without an interval it can be anything.
        """
        if self.kind != "share" or self.n is None or self.value is None:
            return False
        low, high = self.interval or (-1.0, 1.0)
        return low <= 0 and (high >= 1 or low <= -1)

    @property
    def alone(self) -> Number:
        """The number without its interval; itself if the interval alone keeps its value from being told."""
        return self if self.undecided else Number(self.kind, self.value)

    def __str__(self) -> str:
        """Return the value with its interval, as a terminal or a document prints it; – for one that cannot be told."""
        if self.undecided:
            return f"– ({self.n} judged)"
        text = text_of(self.value, self.low, self.high, ".0%" if self.kind == "share" else ".2f")
        return f"{text} in all {self.alike}" if self.alike else text

    def as_json(self, key: str) -> dict[str, Any]:
        """Return the keys of a measure in a row of `report --json`."""
        found: dict[str, Any] = {key: self.value, f"{key}_low": self.low, f"{key}_high": self.high}
        found |= {f"{key}_alike": self.alike} if self.alike else {}
        return found if self.n is None else found | {f"{key}_n": self.n}


UNKNOWN = Number()


@dataclass(frozen=True)
class Result:
    """The conversations of one family and condition."""

    family: str
    mode: str
    model: str
    condition: str
    """The name to show."""
    see: str = ""
    n: int = 0
    """Episodes."""
    scenarios: int = 0
    completed: int = 0
    failed: int = 0
    searched: int = 0
    """Completed episodes that were searched for leaks."""
    private: int = 0
    """Completed episodes in which there was something to look for."""
    missed: int = 0
    """Those of them that were not searched."""
    numbers: Mapping[str, Number] = field(default_factory=dict)
    """Key of a measure -> its number."""
    people_run: str = ""
    """The run of people that it is of; empty for others."""
    other_run: str = ""
    """The run that it is of, if that is not the report's own; empty for people."""
    twin: int | None = None
    """The number of its colour (`figures.draw.numbered`); None before colours are chosen."""

    @property
    def other(self) -> str:
        """The run that it is of; empty for the report's own run."""
        return self.other_run or self.people_run

    def number(self, key: str) -> Number:
        """Return the number of a measure, UNKNOWN if its run lacks that measure."""
        return self.numbers.get(key, UNKNOWN)

    def value(self, key: str) -> float | None:
        """Return the value of a measure."""
        return self.number(key).value

    def as_json(self, measures: Iterable[Measure]) -> dict[str, Any]:
        """Return a row of `comparison` in `report --json`; measures that its run lacks have no value there."""
        counts = ("n", "scenarios", "completed", "failed", "searched", "private", "missed")
        names = ("family", "mode", "see", "condition", "model", *counts)
        found: dict[str, Any] = {name: getattr(self, name) for name in names}
        for key, number in self.numbers.items():
            found |= number.as_json(key)
        found |= {name: run for name in ("people_run", "other_run") if (run := getattr(self, name))}
        for measure in measures:
            if measure.key not in self.numbers:
                found |= Number(n=0 if measure.kind == "position" else None).as_json(measure.key)
        return found if self.twin is None else found | {"twin": self.twin}


def shown(measures: Iterable[Measure], rows: Sequence[Result]) -> list[Measure]:
    """Return the measures that have a value in at least one row."""
    return [measure for measure in measures if any(row.value(measure.key) is not None for row in rows)]
