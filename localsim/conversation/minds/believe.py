"""Belief: the agent writes down what it infers about the other (arXiv 2403.05020, section 5.3).

The family says what there is to infer, from the agent's own view. The engine weighs the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from localsim.conversation.episode import Observation
from localsim.conversation.minds.steps import Answer, Consult, Note, Step, Work
from localsim.conversation.rules.forms import OneOf

ASK = "{ask} Choose one of: {words}."
START = "It is most likely"
TOLD = "You think it is most likely {word}."


@dataclass(frozen=True)
class Question:
    """What an agent can infer: a question, and the answers that its own view has."""

    ask: str
    words: tuple[str, ...]

    @property
    def form(self) -> OneOf:
        """The form of an answer."""
        return OneOf(self.words, START, end=".")


Unknown = Callable[[Observation], Question | None]
"""What a viewer can infer now; None where there is nothing."""


@dataclass(frozen=True)
class Believe(Step):
    """The likeliest answer at every n-th turn of the agent, with the probabilities of all; it is kept."""

    unknown: Unknown
    every: int = 1
    name: str = "believe"
    tokens: int = 240

    def work(self, seen: Observation, notes: tuple[Note, ...]) -> Work:
        """Leave a note with the likeliest answer, or keep the old one; it is asked for without the old one."""
        own = sum(turn.speaker == seen.viewer for turn in seen.transcript.turns)
        others = tuple(note for note in notes if note.name != self.name)
        question = self.unknown(seen)
        if question is None or (own % self.every and others != notes):
            return ()
        ask = ASK.format(ask=question.ask, words=", ".join(question.words))
        answer: Answer = yield Consult(self.name, ask, START, question.form, 24, sure=True, notes=others)
        return (Note(self.name, answer.text, TOLD.format(word=answer.text), keep=True),) if answer.text else ()

    def stated(self) -> Mapping[str, Any]:
        """As in `Step`; the version of the family is stored beside."""
        return {"version": "1", "every": self.every}
