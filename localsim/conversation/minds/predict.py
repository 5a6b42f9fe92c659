"""Prediction: what will the other do next? The engine weighs the options (arXiv 2303.03548).

`Predict` tells the agent what it expects. `Expectimax` asks what the other would do after each of the agent's own
moves, and makes the move with the highest expected payoff; the game says what moves lead to.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from localsim.conversation.episode import Observation
from localsim.conversation.minds.steps import Answer, Consult, Draft, Drafted, Note, Step, Work, likelihood, others_of
from localsim.conversation.rules.forms import OneOf
from localsim.conversation.rules.lines import Bound, Way
from localsim.conversation.rules.values import Param

ASK = "What will {others} do next? Choose one of: {words}."
EXPECTS = "You expect that {others} will {word}."
SUPPOSE = "Suppose that {told}. What does {others} do then? Choose one of: {words}."


@dataclass(frozen=True)
class Predict(Step):
    """The other's next move among some words, with their probabilities."""

    of: tuple[str, ...]
    name: str = "predict"
    tokens: int = 120

    def work(self, seen: Observation, notes: tuple[Note, ...]) -> Work:  # noqa: ARG002 - the question reads the notes
        """Leave a note with the likeliest word."""
        ask = ASK.format(others=others_of(seen), words=", ".join(self.of))
        answer: Answer = yield Consult(self.name, ask, "Next:", OneOf(self.of, "Next:"), 16, sure=True)
        if not answer.text:
            return ()
        return (Note(self.name, answer.text, EXPECTS.format(others=others_of(seen), word=answer.text)),)

    def stated(self) -> Mapping[str, Any]:
        return {"version": "1", "of": self.of}


@dataclass(frozen=True)
class Option:
    """One thing to do at a place of a game."""

    word: str
    """Its value in the move of the agent who looks ahead, or the word for the other's reply."""
    told: str
    """What is supposed if it is done: `you offer $40`."""
    after: Place | float
    """What follows: another place, or the agent's payoff."""


@dataclass(frozen=True)
class Place:
    """A place of a game: whose move it is, and what can be done."""

    options: tuple[Option, ...]
    move: str = ""
    """The name of the move of the agent who looks ahead; '' where the other acts."""


Prospect = Callable[[Observation, int], Place | None]
"""What the next moves of an agent lead to, so many of its own moves ahead; None where it makes no such move now."""


@dataclass(frozen=True)
class Expectimax(Step):
    """The move with the highest expected payoff, `depth` own moves ahead."""

    prospect: Prospect
    depth: int = 1
    name: str = "expectimax"
    tokens: int = 160

    def work(self, seen: Observation, notes: tuple[Note, ...]) -> Work:  # noqa: ARG002
        """Return the line that makes the move; nothing where the agent makes none."""
        place = self.prospect(seen, self.depth)
        if place is None:
            return ()
        best, worth = place.options[0], float("-inf")
        for option in place.options:
            value = yield from self._value(seen, option, ())
            if value > worth:
                best, worth = option, value
        draft: Drafted = yield Draft(ways=(_only(seen, place.move, best.word),))
        return draft

    def _value(self, seen: Observation, option: Option, before: tuple[str, ...]) -> Generator[Consult, Any, float]:
        if not isinstance(option.after, Place):
            return option.after
        told, place = (*before, option.told), option.after
        if place.move:
            found = []
            for each in place.options:
                found.append((yield from self._value(seen, each, told)))
            return max(found)
        words = tuple(each.word for each in place.options)
        ask = SUPPOSE.format(told=", and ".join(told), others=others_of(seen), words=", ".join(words))
        answer = yield Consult(self.name, ask, "Then:", OneOf(words, "Then:"), 16, sure=True)
        total, mass = 0.0, 0.0
        for each in place.options:
            share = likelihood(answer, each.word)
            total += share * (yield from self._value(seen, each, told)) if share else 0.0
            mass += share
        return total / mass

    def stated(self) -> Mapping[str, Any]:
        """As in `Step`; the version of the game's family is stored beside."""
        return {"version": "1", "depth": self.depth}


def _only(seen: Observation, move: str, value: str) -> Way:
    """Return a move as the agent can make it with one number alone."""
    way = next(way for way in seen.allowed if isinstance(way, Bound) and way.name == move)
    number = way.move.values[0].number
    assert number is not None, "expectimax chooses numbers"
    only = Param(number=(value, value), step=way.move.values[0].step)  # type: ignore[arg-type]  # pydantic reads it
    return Bound(way.move.model_copy(update={"values": (only,)}), way.others)
