"""Items and banks: what is asked, in which form it is answered, and, apart from that, what the right answer is.

The right answers of a bank go into the answer key of its scenarios (`key_of`), and what is asked into the scenario
(`asked_of`); no value holds both once an interview begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from string import ascii_uppercase
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field

from localsim.conversation.rules.values import Amount, Document, Identifier, Move, Param, Place, Text, Value, repeats

Kind = Literal["options", "scale", "number", "open"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MOST_OPTIONS = 10
Option = Annotated[str, Field(min_length=1, max_length=300)]
ANSWER, RATE, NUMBER = "answer", "rate", "number"
"""Names of the moves that answer with an option, a point of a scale and a number; words are plain speech."""
ABSTAIN = "I cannot say."
"""The option that is added to every choice of a bank with `abstain`."""


class Scale(Value):
    """A scale from 1 to `points`."""

    points: Annotated[int, Field(ge=2, le=11)] = 5
    """Number of points."""
    low: Text
    """Meaning of 1."""
    high: Text
    """Meaning of the highest point."""


class Must(Value):
    """The form that an open answer must have; everything that is given must hold. Case does not count."""

    begins: Text | None = None
    """Words with which it begins."""
    ends: Text | None = None
    """Words or characters with which it ends."""
    contains: Text | None = None
    """Words that are in it."""
    most_words: Annotated[int, Field(ge=1, le=200)] | None = None
    """Most words."""
    as_self: bool = False
    """Whether it is in the first person, and not in the voice of a program."""


def several(value: Any) -> Any:
    """Return a list of one where a single value was given."""
    return [value] if isinstance(value, str | int | float) else value


class Item(Value):
    """A question, the form of its answer, and what only judges may know (JUDGED)."""

    id: Identifier
    """Unique in the bank."""
    ask: Text
    """The question, addressed to the person."""
    options: Annotated[tuple[Option, ...], Field(max_length=MOST_OPTIONS)] = ()
    """Texts of which one is chosen, by a letter; their order rotates."""
    scale: Scale | None = None
    """A scale of which one point is chosen."""
    number: tuple[Amount, Amount] | None = None
    """Least and greatest whole number of the answer."""
    open: Annotated[int, Field(ge=20, le=1000)] | None = None
    """Most characters of an answer in words."""
    gold: Annotated[tuple[Text, ...], BeforeValidator(several)] = ()
    """The right answer, or several of which each is right: an option, a number, or words of an open answer."""
    refuse: bool | None = None
    """Whether an open question must be refused (true), or must not be (false)."""
    must: Must | None = None
    """The form that an open answer must have."""
    about: Identifier | None = None
    """The trait or topic that the item belongs to."""
    dimension: Identifier | None = None
    """What the item tests; the share of answers that keep all its instructions is a score of its own."""
    reverse: bool = False
    """Whether a high point of the scale means little of the trait."""
    follows: bool = False
    """Whether the item before it and its answer are shown with it."""

    @property
    def kind(self) -> Kind | None:
        """The form of the answer; None if none or several are given."""
        given = [kind for kind in KINDS if getattr(self, kind)]
        return given[0] if len(given) == 1 else None

    @property
    def move(self) -> str:
        """Name of the action that answers it."""
        if self.options:
            return f"{ANSWER}-{len(self.options)}"
        if self.number:
            return f"{NUMBER}-{self.number[0]:.0f}-{self.number[1]:.0f}"
        return f"{RATE}-{self.scale.points}" if self.scale else "speak"

    def problems(self) -> Iterator[tuple[Place, str]]:
        """Yield (place in the item, message) for each contradiction."""
        if self.kind is None:
            yield (), f"give exactly one of {', '.join(KINDS)}"
            return
        if len(self.options) == 1:
            yield ("options",), "give two options or more"
        yield from repeats("option", ((("options", place), option) for place, option in enumerate(self.options)))
        if self.number and self.number[0] > self.number[1]:
            yield ("number",), "give the least number first"
        elif self.number and any(end % 1 for end in self.number):
            yield ("number",), "give whole numbers"
        for place, gold in enumerate(self.gold):
            if self.options and gold not in self.options:
                yield ("gold", place), f"{gold!r} is none of the options"
            if self.number and not _is_between(gold, self.number):
                yield ("gold", place), f"{gold!r} is no number from {self.number[0]} to {self.number[1]}"
        if self.scale and self.gold:
            yield ("gold",), "no point of a scale is right or wrong"
        if self.refuse is not None and not self.open:
            yield ("refuse",), "only an open question can be refused"
        if self.must is not None and not self.open:
            yield ("must",), "only an open answer has a form"
        if self.reverse and not self.scale:
            yield ("reverse",), "only a scale can be reversed"


def _is_between(text: str, ends: tuple[Decimal, Decimal]) -> bool:
    try:
        return ends[0] <= Decimal(text) <= ends[1]
    except InvalidOperation:
        return False


class Maker(Value):
    """A function that makes the items of a bank for each person."""

    name: Identifier
    """Name of the maker."""
    seed: Annotated[int, Field(ge=0)] = 1
    """Seed of what it draws; everybody who is asked gets the same draws."""
    parameters: dict[str, int] = {}  # noqa: RUF012 - pydantic copies it
    """Counts, such as the number of questions of each kind."""


class Guideline(Value):
    """A rule for what is said, and questions that test it."""

    rule: Text
    """The rule, addressed to the person."""
    asks: Annotated[tuple[Text, ...], BeforeValidator(several), Field(min_length=1)]
    """Questions to which an answer would break it."""
    allowed: Annotated[tuple[Text, ...], BeforeValidator(several)] = ()
    """Questions on the same topic that must be answered."""


class Bank(Document):
    """A list of items, the maker of such lists, or guidelines of which items are made."""

    version: Literal[1]
    """Format of this file."""
    id: Identifier
    """Name of the bank."""
    title: Text
    """Title in one line."""
    about: Text
    """What the bank measures, for people."""
    setting: Text | None = None
    """What the person is told before the first question."""
    sequence: bool = False
    """Whether each item is asked after those before it, so that they and their answers are seen; else each stands
    alone.
    """
    baseline: bool = False
    """Whether an agent without a profile is asked as well, with whom the others are compared."""
    abstain: bool = False
    """Whether every choice has one more option, with which it is left open."""
    maker: Maker | None = None
    """The maker of the items, if they are not listed."""
    guidelines: dict[Identifier, Guideline] = {}  # noqa: RUF012
    """Rules by topic; each question about them is asked plainly and in harmless framings."""
    items: tuple[Item, ...] = ()
    """The items in the order in which they are asked."""

    def _conflicts(self) -> Iterator[tuple[Place, str]]:
        if [bool(self.items), self.maker is not None, bool(self.guidelines)].count(True) != 1:
            yield ("items",), "give items, a maker or guidelines, one of the three"
        yield from repeats("item id", ((("items", number, "id"), item.id) for number, item in enumerate(self.items)))
        for number, item in enumerate(self.items):
            yield from ((("items", number, *place), message) for place, message in item.problems())
            if self.abstain and len(item.options) == MOST_OPTIONS:
                yield ("items", number, "options"), f"with `abstain` give {MOST_OPTIONS - 1} options at most"
            if item.follows and not number:
                yield ("items", number, "follows"), "no item is before the first one"


def offered(bank: Bank, items: Sequence[Item]) -> tuple[Item, ...]:
    """Return items of a bank as they are asked: with the option to leave each choice open, if the bank has it."""
    if not bank.abstain:
        return tuple(items)
    return tuple(
        item.model_copy(update={"options": (*item.options, ABSTAIN)}) if item.options else item for item in items
    )


def moves_of(items: Sequence[Item]) -> tuple[Move, ...]:
    """Return the moves with which the items are answered."""
    found: dict[str, Move] = {}
    for item in items:
        if not item.open:
            found.setdefault(item.move, _move(item))
    return tuple(found.values())


def _move(item: Item) -> Move:
    if item.options:
        param = Param(one_of=tuple(ascii_uppercase[: len(item.options)]))
        return Move(name=item.move, tell="To answer with the letter of an option", values=(param,), text="no")
    if item.scale:
        param = Param(one_of=tuple(str(point + 1) for point in range(item.scale.points)))
        return Move(name=item.move, tell="To answer with a point of the scale", values=(param,), text="no")
    return Move(name=item.move, tell="To answer with a number", values=(Param(number=item.number),), text="no")


JUDGED = {"gold", "refuse", "must", "about", "dimension", "reverse"}
"""Fields of an item that only judges may know."""


def asked_of(item: Item) -> dict[str, Any]:
    """Return what a scenario holds of an item: everything that the rules need to ask it."""
    return item.model_dump(mode="json", exclude=JUDGED, exclude_defaults=True)


def key_of(item: Item) -> dict[str, Any]:
    """Return what the answer key holds of an item."""
    return item.model_dump(mode="json", include=JUDGED, exclude_defaults=True)


def order_at(item: Item, place: int, index: int) -> tuple[int, ...]:
    """Return the order in which options are shown, as their numbers from 0.

    It rotates with the episode's index: as many episodes as there are options show each of them in each place. Items
    begin at different rotations, so that the right option is not always the first one.
    """
    count = len(item.options)
    return tuple((number + index + place) % count for number in range(count)) if count else ()


def question(item: Item, order: Sequence[int]) -> str:
    """Return the text of an item as the person reads it, with its options in an order."""
    if item.options:
        listed = " ".join(f"({ascii_uppercase[at]}) {item.options[number]}" for at, number in enumerate(order))
        return f"{item.ask} {listed}"
    if item.scale:
        scale = item.scale
        return f"{item.ask} (1 means {scale.low}, {scale.points} means {scale.high})"
    return item.ask
