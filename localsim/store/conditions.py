"""Conditions: the circumstances that episodes were played under, and the names that commands give them.

A condition is one mode of one run by one model, with the information that was granted. A command names it
RUN:CONDITION, such as @last:agents or @last:agents+goal, and RUN:CONDITION:MODEL if the run has several models. RUN
alone means all conditions of a run. NAME=RUN:CONDITION gives it another name in tables and figures.

The number after `facts:` always belongs to the condition: agents+facts:2 is never a model with a 2 in its name. A model
whose name is a number follows two colons: agents+facts::2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

from localsim.conversation.episode import CONDITIONS, PEOPLE
from localsim.conversation.grants import EVERY, condition_name, parse
from localsim.errors import InvalidInput, suggest
from localsim.store.database import Store

_NAME = re.compile(r"(?:[^:]|(?<=facts):\d+(?=[:,+]|\Z))*")
"""The condition at the start of a text; a colon is part of it in facts:N only."""


@dataclass(frozen=True)
class Condition:
    """One mode of one run by one model, with the information that was granted."""

    run_id: str
    mode: str
    model: str
    see: str = ""
    """The grants of information, as stored in `episodes.see`; empty where nothing is granted."""
    label: str = field(default="", compare=False)
    """Another name for tables and figures, such as agents-ft; empty if the name follows from the rest."""

    @property
    def name(self) -> str:
        """The mode, with the grants if there are any, such as agents+goal."""
        return condition_name(self.mode, self.see)

    def spelled(self) -> str:
        """Return the condition as a command names it: RUN:CONDITION:MODEL."""
        short = f"{self.name}:{self.model}"
        return f"{self.run_id}:{short if _parts(short) == (self.name, self.model) else f'{self.name}::{self.model}'}"


@dataclass(frozen=True)
class Conditioned:
    """A row of a query that belongs to a condition."""

    run_id: str
    mode: str
    model: str
    see: str | None

    @property
    def condition(self) -> Condition:
        """The condition."""
        return Condition(self.run_id, self.mode, self.model, self.see or "")


def condition_of(row: Mapping[str, Any]) -> Condition:
    """Return the condition of a row with run_id, mode, model and see."""
    return Condition(row["run_id"], row["mode"], row["model"], row.get("see") or "")


def in_order(condition: Condition) -> tuple[int, str, str]:
    """Return the place of a condition within its run: by mode as in tables, then grants, then model."""
    return CONDITIONS.index(condition.mode), by_number(condition.see), condition.model


def by_number(see: str) -> str:
    """Return grants as a text that sorts by their numbers: facts:2 before facts:10, and all facts last."""
    numbered = re.sub(r"\bfacts\b(?!:)", f"facts:{EVERY}", see)
    return re.sub(r"\d+", lambda number: number[0].zfill(len(str(EVERY))), numbered)


def conditions_of(store: Store, run_id: str) -> list[Condition]:
    """Return the conditions of a run in the order of tables."""
    query = "SELECT DISTINCT run_id, mode, model, coalesce(see, '') AS see FROM episodes WHERE run_id = ?"
    return sorted(store.select(Condition, query, [run_id]), key=in_order)


def without_episodes(store: Store, references: Sequence[str]) -> str:
    """Return the run if the references (else @last) name one whole run of which no episode has ended; else ''."""
    reference = references[0] if references else "@last"
    if len(references) > 1 or ":" in reference or "=" in reference:
        return ""
    run_id = store.run_id(reference)
    return "" if conditions_of(store, run_id) else run_id


class Choice(NamedTuple):
    """The conditions that one reference of a command names."""

    conditions: tuple[Condition, ...]
    whole: bool
    """True if the reference is a run alone."""


def chosen(store: Store, reference: str) -> Choice:
    """Return what a reference names. Raises InvalidInput for an unknown run or condition, with those that exist."""
    label, text = _label(reference)
    run, colon, wanted = text.partition(":")
    run_id = store.run_id(run)
    known = conditions_of(store, run_id)
    if not known:
        raise InvalidInput(
            f"run {run_id} has no episodes yet, so it has no conditions",
            where=reference,
            hint=f"localsim resume {run_id} simulates them",
        )
    found = _named(wanted, known) if colon else known
    if not found:
        names = list(dict.fromkeys(each.name for each in known))
        hint = suggest(wanted, names) or f"its conditions are {', '.join(names)}"
        raise InvalidInput(f"run {run_id} has no condition {wanted!r}", where=reference, hint=hint)
    if label and len(found) > 1:
        raise InvalidInput(
            f"the name {label!r} would mean {len(found)} conditions",
            where=reference,
            hint=f"choose one, such as {label}={found[0].spelled()}",
        )
    return Choice(tuple(replace(each, label=label) for each in found), whole=not colon)


def _label(reference: str) -> tuple[str, str]:
    """Return the name before = and the rest; grants may hold a =, but only after the first colon."""
    label, equals, rest = reference.partition("=")
    return (label.strip(), rest) if equals and ":" not in label else ("", reference)


def _named(wanted: str, known: Sequence[Condition]) -> list[Condition]:
    """Return the conditions that a text names, without or with a model, or with a part of the model's name."""
    name, model = _parts(wanted)
    alike = [each for each in known if each.name in (name, _usual(name))]
    if model is None:
        return alike
    exact = [each for each in alike if each.model == model]
    return exact or [each for each in alike if model and model.casefold() in each.model.casefold()]


def _parts(text: str) -> tuple[str, str | None]:
    """Return the condition and the model of CONDITION:MODEL or CONDITION::MODEL; None without a model."""
    found = _NAME.match(text)
    name = found[0] if found else ""
    rest = text[len(name) :]
    return name, rest.removeprefix("::" if rest.startswith("::") else ":") if rest else None


def _usual(name: str) -> str:
    """Return a condition with its grants as they are stored, such as agents+goal,facts:2 for agents+facts:2,goal."""
    mode, _, see = name.partition("+")
    try:
        return condition_name(mode, parse(see).text)
    except InvalidInput:
        return name


def choices(store: Store, references: Iterable[str]) -> list[Choice]:
    """Return what the references of a command name; a condition that is named twice counts once."""
    found: list[Choice] = []
    seen: set[Condition] = set()
    labels: set[str] = set()
    for reference in references:
        choice = chosen(store, reference)
        label = choice.conditions[0].label
        if label in labels - {""}:
            raise InvalidInput(
                f"the name {label!r} is given twice", where=reference, hint="give each condition its own"
            )
        labels.add(label)
        fresh = tuple(each for each in choice.conditions if each not in seen)
        seen |= set(fresh)
        if fresh:
            found.append(Choice(fresh, choice.whole))
    return found


def labelled(store: Store, references: Iterable[str]) -> list[Condition]:
    """Return all conditions that references name, in their order."""
    return [each for choice in choices(store, references) for each in choice.conditions]


def pairs_of(found: Sequence[Choice]) -> Iterator[tuple[Condition, Condition]]:
    """Yield the pairs of conditions to compare, second with first.

    One reference: its conditions with each other. Several: each condition of one with each of another; two whole runs
    only in conditions of the same name, or with people.
    """
    if len(found) == 1:
        yield from combinations(found[0].conditions, 2)
        return
    for first, second in combinations(found, 2):
        for one in first.conditions:
            for other in second.conditions:
                alike = one.name == other.name or PEOPLE in (one.mode, other.mode)
                if alike or not (first.whole and second.whole):
                    yield one, other


def names_of(conditions: Iterable[Condition]) -> dict[Condition, str]:
    """Return the shortest names that tell conditions apart: the label, else run, condition and model as needed."""
    every = list(dict.fromkeys(conditions))
    runs = len({each.run_id for each in every if not each.label}) > 1
    found = {}
    for one in every:
        twins = [each for each in every if (each.run_id, each.name) == (one.run_id, one.name)]
        name = f"{one.run_id}:{one.name}" if runs else one.name
        found[one] = one.label or (f"{name}:{one.model}" if len(twins) > 1 else name)
    return found
