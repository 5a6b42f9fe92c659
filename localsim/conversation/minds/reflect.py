"""Reflection: what situation is this, what person am I, what would such a person do? (Concordia, arXiv 2312.03664)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localsim.conversation.episode import Observation
from localsim.conversation.minds.steps import Answer, Consult, Note, Step, Work
from localsim.conversation.rules.forms import Words

QUESTIONS = (
    ("situation", "What kind of situation is {name} in right now?", "The situation: "),
    ("person", "What kind of person is {name}?", "{name}: "),
    ("would", "What would a person like {name} do in such a situation?", "Such a person: "),
)


@dataclass(frozen=True)
class Reflect(Step):
    """Three questions at every n-th turn of the agent, each asked with the answers before it; the answers are kept."""

    every: int = 3
    name: str = "reflect"
    tokens: int = 420

    def work(self, seen: Observation, notes: tuple[Note, ...]) -> Work:
        """Leave three notes, or keep the old ones."""
        own = sum(turn.speaker == seen.viewer for turn in seen.transcript.turns)
        if own % self.every and any(note.name == f"{self.name}.would" for note in notes):
            return ()
        known = tuple(note for note in notes if not note.name.startswith(f"{self.name}."))
        found: tuple[Note, ...] = ()
        for key, ask, told in QUESTIONS:
            step = f"{self.name}.{key}"
            asked = ask.format(name=seen.viewer)
            answer: Answer = yield Consult(step, asked, "Answer:", Words(), 60, notes=(*known, *found))
            if answer.text:
                found += (Note(step, answer.text, told.format(name=seen.viewer) + answer.text, keep=True),)
        return found

    def stated(self) -> Mapping[str, Any]:
        return {"version": "1", "every": self.every}
