"""Do the talks of a run play? A conclusion about a model that cannot hold the talk is no finding, so it is withheld.

`evaluators/play.py` scores each talk (`plays`). This module counts them by cell (family, condition, model), decides,
and says so in sentences, which every renderer prints as they are. Runs without these scores are silent.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from localsim.backends.called import PREFIX
from localsim.backends.person import NAME
from localsim.conversation.episode import PEOPLE
from localsim.conversation.wording.wordings import listed
from localsim.families import family_of, in_order, title_of
from localsim.runs.telling import called
from localsim.stats import grouped
from localsim.store.conditions import Condition
from localsim.store.conditions import in_order as place_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.reports import PlayVerdict, Said

LIMIT = 0.2
"""The share of a cell's talks that need not play. From a larger share on, conclusions about its model are withheld.

Runs are planned to find differences of 20 points (`localsim design --difference .2`). If more than 20% of the talks in
a cell do not play, they alone could make or hide such a difference.
"""
RULE = (
    "The rule of choice: the first talk, by scenario, mode and number, of each of the two most frequent faults; of a "
    "single fault, its first talk and its first one in another condition. Quoted are the first two turns that show it."
)
QUOTED, LONGEST, TOLD = 2, 80, 3
"""Examples and turns of each; characters of a quoted turn; faults that a sentence names."""


def too_many(not_playing: int, talks: int) -> bool:
    """Return True if more than LIMIT of the talks do not play."""
    return not_playing > LIMIT * talks


@dataclass(frozen=True)
class Cell:
    """The talks of one family, condition and model."""

    family: str
    condition: Condition
    talks: int
    faults: Mapping[str, int]
    """Worst fault of a talk -> number of talks."""

    @property
    def not_playing(self) -> int:
        """The number of talks that do not play."""
        return sum(self.faults.values())

    @property
    def holds(self) -> bool:
        """True unless too many talks do not play."""
        return not too_many(self.not_playing, self.talks)


@dataclass(frozen=True)
class Example:
    """A talk that does not play, with the words that show it."""

    episode_id: str
    model: str
    condition: str
    scenario_id: str
    fault: str
    reason: str
    quotes: Sequence[Said]
    """The turns that show the fault."""


@dataclass(frozen=True)
class Playing:
    """What the talks of some conditions say about their models."""

    cells: tuple[Cell, ...] = ()
    examples: tuple[Example, ...] = ()
    of: str = "this run"
    """What has no conclusion."""

    @property
    def withheld(self) -> frozenset[tuple[str, str]]:
        """Family and model of each conclusion that is withheld.

        One such condition withholds them all: a comparison of the others would be chosen after the results.
        """
        return frozenset((each.family, each.condition.model) for each in self.cells if not each.holds)

    def holds(self, family: str, conditions: Collection[Condition]) -> bool | None:
        """Return whether the cells of these conditions hold; None if none of them has scores."""
        own = [each.holds for each in self.cells if each.family == family and each.condition in conditions]
        return all(own) if own else None

    def claims(self) -> list[str]:
        """Return a sentence about each model that does not hold its conversations."""
        broken = [each for each in self.cells if not each.holds]
        return [self._claim(model, broken) for model in dict.fromkeys(each.condition.model for each in broken)]

    def sentences(self) -> list[str]:
        """Return what is said first: the claims with what is withheld, two examples and the next command."""
        claims = self.claims()
        if not claims:
            return []
        return [f"{' '.join(claims)} {self._so()}", *map(_quoted, self.examples), *self._next()]

    def remarks(self) -> list[tuple[str, str]]:
        """Return (family, sentence) for each withheld conclusion, to stand beside the numbers of the family."""
        found = []
        for family, model in sorted(self.withheld):
            cells = [each for each in self.cells if (each.family, each.condition.model) == (family, model)]
            counts = [f"{each.not_playing} of {each.talks} ({each.condition.name})" for each in cells if not each.holds]
            text = f"Talks of {_named(model)} that do not play: {listed(counts)}."
            found.append((family, f"{text} The numbers about this model are no finding."))
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the object `playing` of `report --json` and `run --json`."""
        cells = [
            {
                "family": each.family,
                "condition": each.condition.name,
                "model": each.condition.model,
                "talks": each.talks,
                "not_playing": each.not_playing,
                "faults": dict(each.faults),
                "holds": each.holds,
            }
            for each in self.cells
        ]
        withheld = [{"family": family, "model": model} for family, model in sorted(self.withheld)]
        said = {"sentences": self.sentences(), "examples": list(map(asdict, self.examples)), "rule": RULE}
        return {"limit": LIMIT, "cells": cells, "withheld": withheld, "claims": self.claims(), **said}

    def _claim(self, model: str, broken: Sequence[Cell]) -> str:
        own = [each for each in broken if each.condition.model == model]
        every = [each for each in self.cells if each.condition.model == model]
        faults = sum((Counter(each.faults) for each in own), Counter[str]())
        which = "these conversations" if len(own) == len(every) else f"the conversations of {_places(own, every)}"
        talks = sum(each.talks for each in own)
        count = f"{faults.total()} of {talks} talk{'s' if talks > 1 else ''} do{'es' if talks == 1 else ''} not play"
        return f"{_named(model)} does not hold {which}: {count} ({_in_words(faults)})."

    def _so(self) -> str:
        """Return which conclusions are withheld."""
        every = {(each.family, each.condition.model) for each in self.cells}
        if self.withheld == every:
            return f"So {self.of} has no conclusion."
        several = len({model for _, model in every}) > 1
        about = [
            title_of(family_of(family)) + (f" by {_named(model)}" if several else "")
            for family in in_order({family for family, _ in self.withheld})
            for model in sorted(model for each, model in self.withheld if each == family)
        ]
        return f"So {self.of} has no conclusion about {listed(about)}."

    def _next(self) -> list[str]:
        """Return the command that shows what a language model of a withheld conclusion can hold."""
        models = (part for _, model in sorted(self.withheld) for part in model.split("|"))
        model = next((each for each in models if each != NAME and not each.startswith(("scripted", PREFIX))), None)
        return [f"To see what it can hold: localsim models try {shlex.quote(model)}"] if model else []


SILENT = Playing()
"""Nothing is known about any talk."""


def of_run(store: Store, run_id: str) -> Playing:
    """Return what the talks of a run say about its models."""
    return _playing(store, talks_of(store, run_id), "this run")


def of_conditions(store: Store, conditions: Collection[Condition], of: str = "this comparison") -> Playing:
    """Return what the talks of conditions say about their models."""
    runs = dict.fromkeys(each.run_id for each in conditions)
    talks = [talk for run_id in runs for talk in talks_of(store, run_id) if talk.condition in conditions]
    return _playing(store, talks, of)


def _playing(store: Store, talks: Sequence[PlayVerdict], of: str) -> Playing:
    cells = cells_of(talks)
    chosen = chosen_of(talks, cells)
    return Playing(tuple(cells), tuple(_example(store, each) for each in chosen), of)


def talks_of(store: Store, *runs: str) -> list[PlayVerdict]:
    """Return the scored talks of runs; those of people say nothing about a model."""
    return [each for each in queries.plays(store, *runs) if each.mode != PEOPLE]


def cells_of(talks: Iterable[PlayVerdict]) -> list[Cell]:
    """Return the cells of talks, in the order of a report."""
    groups = grouped(((each.family, each.condition), each) for each in talks)
    order = in_order(family for family, _ in groups)
    found = [
        Cell(family, condition, len(own), Counter(each.fault for each in own if not each.plays))
        for (family, condition), own in groups.items()
    ]
    return sorted(found, key=lambda cell: (order.index(cell.family), place_of(cell.condition)))


def chosen_of(talks: Sequence[PlayVerdict], cells: Iterable[Cell]) -> list[PlayVerdict]:
    """Return the examples that RULE chooses from the cells that do not hold."""
    broken = {(each.family, each.condition) for each in cells if not each.holds}
    found = [each for each in talks if not each.plays and (each.family, each.condition) in broken]
    if not found:
        return []
    ranked = [fault for fault, _ in Counter(each.fault for each in found).most_common(QUOTED)]
    first = [next(each for each in found if each.fault == fault) for fault in ranked]
    rest = [each for each in found if each.fault == ranked[0] and each not in first]
    rest.sort(key=lambda each: (each.family, each.condition) == (first[0].family, first[0].condition))
    return [*first, *rest][:QUOTED]


def _example(store: Store, talk: PlayVerdict) -> Example:
    cited = [said for said in queries.words(store, talk.episode_id) if said.turn in talk.turns and said.text]
    named = (talk.model, talk.condition.name, talk.scenario_id, talk.fault, talk.reason)
    return Example(talk.episode_id, *named, cited[:QUOTED])


# ---- words ---------------------------------------------------------------------------------------------------------


def _in_words(faults: Counter[str]) -> str:
    """Return the most frequent faults with their talks, such as "repeats itself: 18, goodbyes go on: 4"."""
    told = faults.most_common(TOLD)
    rest = faults.total() - sum(number for _, number in told)
    return ", ".join([*(f"{fault}: {number}" for fault, number in told), *([f"other faults: {rest}"] if rest else [])])


def _places(own: Sequence[Cell], every: Sequence[Cell]) -> str:
    """Return the families of cells, each with its conditions unless these are all that it has in `every`."""
    found = []
    for family in in_order({each.family for each in own}):
        names = [each.condition.name for each in own if each.family == family]
        whole = len(names) == sum(each.family == family for each in every)
        found.append(title_of(family_of(family)) + ("" if whole else f" in {listed(names)}"))
    return listed(found)


def _quoted(example: Example) -> str:
    """Return an example as a sentence with its words, or with the reason where no words show the fault."""
    lead = f"For example, {example.condition} of {_named(example.model)} ({example.fault}):"
    if not example.quotes:
        return f"{lead} {example.reason}."
    (turn, speaker, text), *others = example.quotes
    parts = [f"{speaker} says “{clipped(text)}” in turn {turn + 1}"]
    for again, other, words in others:
        who = "" if other == speaker else f"{other} "
        parts.append(f"{who}{'the same' if words == text else f'“{clipped(words)}”'} in turn {again + 1}")
    return f"{lead} {listed(parts)}."


def _named(model: str) -> str:
    """Return the name of a model in a sentence: A with B if two models play."""
    return " with ".join(map(called, dict.fromkeys(model.split("|"))))


def clipped(text: str) -> str:
    """Return the beginning of what was said, as one line."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1].rstrip()}…"
