"""The values with which a scenario file declares moves and phases.

A move is an action with values: `Ana [offer 40]: How about forty?`. A phase says who acts, in which order, with which
moves, and when it is over. Everything here is plain data; `lines` reads and writes moves, `deciding` applies phases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

Place = tuple[str | int, ...]
Text = Annotated[str, Field(min_length=1, max_length=4000)]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=80)]
Name = Annotated[str, Field(max_length=40)]
MoveName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=30)]
Amount = Annotated[Decimal, Field(ge=-1_000_000_000, le=1_000_000_000, decimal_places=6)]
Order = Literal["in_turn", "random", "addressed", "together", "moderated"]

NEXT = "next"
"""The move with which the moderator of a phase names the next speaker."""
CONFLICT = "conflict"
"""Type of the error that lists contradictions between parts of a document, with their places."""
TOLD = "told"
"""The type of a turn in which the rules tell something; no move may have this name."""
WITH_ROUNDS: tuple[Order, ...] = ("in_turn", "random", "together")
"""The orders in which everybody acts once before anybody acts again."""
MOST_LISTED = 1000
"""The most numbers of a parameter whose grammar lists each of them, because its step is no power of ten."""
_RESERVED = "[],:"
"""Characters that have a meaning in the bracket of a line."""


class Value(BaseModel):
    """The base of all values in a scenario file: unknown keys are refused, and nothing changes afterwards."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        str_strip_whitespace=True,
        use_attribute_docstrings=True,
        coerce_numbers_to_str=True,
    )


class Document(Value):
    """What a YAML file describes: its parts are checked against each other, and all contradictions told together."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        places = list(self._conflicts())
        if places:
            summary = "; ".join(message for _, message in places)
            raise PydanticCustomError(CONFLICT, "{summary}", {"summary": summary, "places": places})
        return self

    def _conflicts(self) -> Iterable[tuple[Place, str]]:
        """Yield (place, message) for each contradiction between parts of the document."""
        raise NotImplementedError


class Param(Value):
    """One value of a move. Exactly one of number, one_of, agents and words is given."""

    number: tuple[Amount, Amount] | None = None
    """Least and greatest number."""
    step: Annotated[Decimal, Field(gt=0, le=1_000_000_000, decimal_places=6)] = Decimal(1)
    """Distance of one allowed number from the next, such as 0.01."""
    one_of: tuple[Annotated[str, Field(min_length=1, max_length=60)], ...] | None = None
    """The allowed words."""
    agents: Literal["one", "several"] | None = None
    """Another agent who is present, or one and more of them."""
    words: Annotated[int, Field(ge=1, le=200)] | None = None
    """Free text of at most so many characters."""

    @property
    def kind(self) -> str:
        """The kind that is given ('' if none or several are)."""
        given = [name for name in ("number", "one_of", "agents", "words") if getattr(self, name) is not None]
        return given[0] if len(given) == 1 else ""

    @property
    def open_ended(self) -> bool:
        """True if it can take several places of the bracket, so that it must be the last one."""
        return self.words is not None or self.agents == "several"

    @property
    def decimals(self) -> int:
        """Digits after the point, the same in every number of this parameter."""
        low = self.number[0] if self.number else Decimal(0)
        return max(_decimals(low), _decimals(self.step))

    @property
    def is_decimal(self) -> bool:
        """True if the allowed numbers are all multiples of a power of ten, in a range."""
        assert self.number is not None
        return self.step.normalize().as_tuple().digits == (1,) and not self.number[0] % self.step

    def numbers(self) -> Iterator[Decimal]:
        """Yield the allowed numbers, from the least on."""
        assert self.number is not None
        low, high = self.number
        yield from (low + self.step * place for place in range(int((high - low) / self.step) + 1))

    def written(self, number: Decimal) -> str:
        """Return a number as it stands in a line."""
        return f"{number or Decimal(0):.{self.decimals}f}"


class Move(Value):
    """An action with values that agents of this scenario can take, such as `offer` or `vote`."""

    name: MoveName
    """Its verb in a line: lower-case letters, digits and hyphens."""
    tell: Text
    """A phrase that explains it in prompts, such as `To offer a price`."""
    values: tuple[Param, ...] = ()
    """Its values, in the order in which a line has them."""
    text: Literal["no", "may", "must"] = "may"
    """Whether words follow: never, perhaps or always."""
    readers: Literal["all", "self", "named"] = "all"
    """Who can read it: everybody, only its author, or only its author and the agents among its values."""
    by: tuple[Name, ...] = ()
    """The agents who can make it; everybody if not given."""


class Event(Value):
    """Something that the narrator tells in the course of a phase."""

    round: Annotated[int, Field(ge=1, le=5000)] = 1
    """The round of the phase before which it is told, from 1."""
    to: tuple[Name, ...] = ()
    """The agents who are told; everybody if not given."""
    text: Text
    """The text, in one or two sentences."""


class Phase(Value):
    """A part of the conversation with an order of its own."""

    name: Identifier
    """Unique in the scenario."""
    who: tuple[Name, ...] = ()
    """The agents who act in it, in this order; everybody if not given."""
    order: Order = "in_turn"
    """`in_turn`; `random`: each round in a new order; `addressed`: who was addressed acts next; `together`: all choose
    without seeing the others' choices; `moderated`: the moderator names the next speaker.
    """
    moderator: Name | None = None
    """The agent who moderates; only with the order `moderated`."""
    actions: tuple[str, ...] = ()
    """Actions and moves that are allowed in it; all of the scenario's if not given."""
    turns: Annotated[int, Field(ge=1, le=5000)] | None = None
    """The phase is over after so many turns."""
    rounds: Annotated[int, Field(ge=1, le=5000)] | None = None
    """The phase is over when everybody has acted so often."""
    ends_with: tuple[str, ...] = ()
    """Actions and moves that end the phase."""
    announce: Text | None = None
    """Told to everybody when the phase begins."""
    events: tuple[Event, ...] = ()
    """What the narrator tells in it, in this order."""
    count: MoveName | None = None
    """A move whose values are counted; everybody is told the counts when the phase is over."""


def problems_of_move(move: Move) -> Iterator[tuple[Place, str]]:
    """Yield (place in the move, message) for each contradiction within a move."""
    for number, param in enumerate(move.values):
        place: Place = ("values", number)
        if not param.kind:
            yield place, "give exactly one of number, one_of, agents, words"
            continue
        if param.open_ended and number < len(move.values) - 1:
            yield place, "several agents or free words must be the last value"
        yield from (((*place, *inner), message) for inner, message in _problems_of_param(param))
    if move.readers == "named" and not any(param.agents for param in move.values):
        yield ("readers",), "`named` needs a value that names agents"
    if move.name == TOLD:
        yield ("name",), f"{TOLD!r} is the type of turns in which the rules tell something; choose another name"


def _problems_of_param(param: Param) -> Iterator[tuple[Place, str]]:
    if param.number is not None:
        low, high = param.number
        if low > high:
            yield ("number",), "give the least number first"
        elif (high - low) % param.step:
            yield ("number",), f"steps of {param.step} from {low} do not reach {high}"
        elif not param.is_decimal and (high - low) / param.step >= MOST_LISTED:
            yield (
                ("step",),
                f"more than {MOST_LISTED} numbers need steps of a power of ten (1, 10, 0.01) from a multiple of it",
            )
    elif param.step != 1:
        yield ("step",), "only a number has steps"
    if param.one_of is not None:
        if not param.one_of:
            yield ("one_of",), "must have at least 1 items, not 0"
        for place, option in enumerate(param.one_of):
            if any(char in option for char in _RESERVED) or not option.isprintable():
                yield ("one_of", place), "an option has no brackets, commas, colons or line breaks"
            elif option in param.one_of[:place]:
                yield ("one_of", place), f"option given more than once: {option}"


def problems_of_phase(
    phase: Phase, names: Sequence[str], known: Sequence[str], moves: Sequence[Move]
) -> Iterator[tuple[Place, str]]:
    """Yield (place in the phase, message) for each contradiction; `known` are the names of actions and moves."""
    told = [(("events", number, "to"), event.to) for number, event in enumerate(phase.events)]
    for place, given in ((("who",), phase.who), *told):
        for number, name in enumerate(given):
            if name not in names:
                yield (*place, number), f"no agent is called {name!r}"
            elif name in given[:number]:
                yield (*place, number), f"agent given more than once: {name}"
    for field in ("actions", "ends_with"):
        for number, action in enumerate(getattr(phase, field)):
            if action not in known:
                yield (field, number), f"no action or move of this scenario is called {action!r}"
            elif field == "ends_with" and phase.actions and action not in phase.actions:
                yield (field, number), f"{action!r} is not among the actions of this phase"
    if phase.count is not None and phase.count not in known:
        yield ("count",), f"no move of this scenario is called {phase.count!r}"
    yield from _problems_of_order(phase, names, known)
    who = [name for name in phase.who or names if name in names and name != phase.moderator]
    for name in idle(who, phase.actions or known, moves):
        yield ("actions",) if phase.actions else (), f"nothing besides none is allowed to {name} in this phase"


def idle(names: Sequence[str], allowed: Sequence[str], moves: Sequence[Move]) -> list[str]:
    """Return the agents who can do nothing with these actions and moves; `none` and naming the next do not count."""
    by = {move.name: move.by for move in moves if move.by}
    usable = [action for action in allowed if action not in (NEXT, "none")]
    return [name for name in names if not any(name in by.get(action, (name,)) for action in usable)]


def _problems_of_order(phase: Phase, names: Sequence[str], known: Sequence[str]) -> Iterator[tuple[Place, str]]:
    if phase.order not in WITH_ROUNDS:
        for field in ("rounds", "events"):
            if getattr(phase, field):
                yield (field,), f"the order {phase.order} has no rounds"
    for number, event in enumerate(phase.events):
        if phase.rounds is not None and event.round > phase.rounds:
            yield ("events", number, "round"), f"this phase has only {phase.rounds} rounds"
    if (phase.order == "moderated") != (phase.moderator is not None):
        yield ("moderator",), "a moderated phase, and no other, has a moderator"
    elif phase.moderator is not None and phase.moderator not in names:
        yield ("moderator",), f"no agent is called {phase.moderator!r}"
    elif phase.moderator is not None and NEXT not in known:
        yield ("moderator",), f"a moderator needs a move called {NEXT!r} whose value is one agent"
    elif phase.moderator in phase.who:
        yield ("who",), "the moderator is not among those who are called up"


def _decimals(number: Decimal) -> int:
    exponent = number.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def repeats(
    what: str, values: Iterable[tuple[Place, str]], shown: Sequence[str] | None = None
) -> Iterator[tuple[Place, str]]:
    """Yield (place, message) for each value that is there a second time; `shown` are the values as people see them."""
    seen: set[str] = set()
    for number, (place, value) in enumerate(values):
        if value in seen:
            yield place, f"{what} given more than once: {shown[number] if shown else value}"
        seen.add(value)
