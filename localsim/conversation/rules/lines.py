"""Moves in lines: reads the values between the brackets, and says who can read a move.

Ana [offer 40]: How about forty?        Ana [to Bo, Cy]: Psst.        Ana [accept]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from localsim.conversation.rules.values import Move, Param
from localsim.errors import MalformedReply

SEPARATOR = ", "
_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,12})?")


@dataclass(frozen=True)
class Bound:
    """A move as one agent can make it now."""

    move: Move
    others: tuple[str, ...]
    """The agents whom it can name, in the order of the scenario."""

    @property
    def name(self) -> str:
        """The name of the move."""
        return self.move.name


Way = str | Bound
"""One way to act: the type of an action without values, or a move."""


def name_of(way: Way) -> str:
    """Return the name of an action or move."""
    return way if isinstance(way, str) else way.name


def shown(way: Way) -> str:
    """Return an action or move with what its values can be, in words: `hunt (one of stag, hare)`."""
    values = [] if isinstance(way, str) else [described(param) for param in way.move.values]
    return f"{name_of(way)} ({'; '.join(values)})" if values else name_of(way)


def described(param: Param) -> str:
    """Return what a value can be, in words."""
    if param.number is not None:
        low, high = (param.written(each) for each in param.number)
        steps = "" if param.step == 1 else f" in steps of {param.step}"
        return f"a number from {low} to {high}{steps}"
    if param.one_of is not None:
        return f"one of {', '.join(param.one_of)}"
    if param.agents is not None:
        return "another person" if param.agents == "one" else "one or more other people"
    return f"at most {param.words} characters"


def read_values(way: Bound, text: str) -> tuple[str, ...]:
    """Return the values in a bracket, in the form in which lines have them. Raises MalformedReply."""
    params = way.move.values
    if not params:
        if text:
            raise MalformedReply(f"{way.name} takes no value, not {text!r}")
        return ()
    parts = text.split(SEPARATOR, len(params) - 1) if text else []
    if len(parts) != len(params):
        wanted = "; ".join(described(param) for param in params)
        raise MalformedReply(f"{way.name} takes {wanted}, not {text!r}")
    found: list[str] = []
    for param, part in zip(params, parts, strict=True):
        found += _agents(way, param, part) if param.agents else [_value(way, param, part)]
    return tuple(found)


def _value(way: Bound, param: Param, part: str) -> str:
    if param.number is not None:
        number = Decimal(part) if _NUMBER.fullmatch(part) else None
        low, high = param.number
        if number is not None and low <= number <= high and not (number - low) % param.step:
            return param.written(number)
    elif param.one_of is not None and part in param.one_of:
        return part
    elif param.words is not None:
        part = part.strip()
        if part and len(part) <= param.words and not any(char in part for char in "[]:"):
            return part
    raise MalformedReply(f"{way.name} takes {described(param)}, not {part!r}")


def _agents(way: Bound, param: Param, part: str) -> list[str]:
    named = part.split(SEPARATOR) if param.agents == "several" else [part]
    for name in named:
        if name not in way.others:
            raise MalformedReply(f"{way.name} takes {described(param)}, not {name!r}")
    if len(set(named)) < len(named):
        raise MalformedReply(f"{way.name} names an agent twice: {part!r}")
    return sorted(named, key=way.others.index)


def agents_in(move: Move, values: Sequence[str]) -> tuple[str, ...]:
    """Return the agents among the values of a move."""
    found: list[str] = []
    for place, param in enumerate(move.values):
        if param.agents is not None:
            found += values[place:] if param.agents == "several" else values[place : place + 1]
    return tuple(found)


def readers_of(move: Move | None, speaker: str, values: Sequence[str]) -> tuple[str, ...] | None:
    """Return who can read an action, its author first; None: everybody. `move` is None for an action without values."""
    if move is None or move.readers == "all":
        return None
    return (speaker,) if move.readers == "self" else (speaker, *agents_in(move, values))
