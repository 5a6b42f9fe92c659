"""Steps that are made of steps: one after another, again and again, or one of two; with declared notes.

A flow reads the notes that it declares (`reads`), and leaves those that it declares (`gives`); without a declaration
all of them. A note that is not declared is not seen: neither by its steps nor in the prompts of their questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from localsim.conversation.episode import Observation
from localsim.conversation.minds.steps import Answer, Drafted, Note, Step, Work

Notes = tuple[Note, ...]


@dataclass(frozen=True)
class Flow(Step):
    """Steps in a row."""

    steps: tuple[Step, ...]
    reads: tuple[str, ...] | None = None
    """The names of the notes that the steps see beside their own; None: all."""
    gives: tuple[str, ...] | None = None
    """The names of the notes that are seen after it; None: all."""
    name: str = "seq"

    @property
    def tokens(self) -> int:
        return sum(step.tokens for step in self.steps)

    @property
    def aside(self) -> bool:
        return any(step.aside for step in self.steps)

    def work(self, seen: Observation, notes: Notes) -> Work:
        """Run the steps; what they leave is added to the notes that they see."""
        return (yield from self._declared(self._all(seen, _named(notes, self.reads))))

    def _all(self, seen: Observation, notes: Notes) -> Work:
        left: Notes = ()
        for step in self.steps:
            done = yield from _run(step, seen, merged(notes, left))
            if isinstance(done, Drafted):
                return replace(done, notes=merged(left, done.notes))
            left = merged(left, done)
        return left

    def _declared(self, work: Work) -> Work:
        done = yield from work
        if isinstance(done, Drafted):
            return replace(done, notes=_named(done.notes, self.gives))
        return _named(done, self.gives)

    def stated(self) -> Mapping[str, Any]:
        steps = [[step.name, dict(step.stated())] for step in self.steps]
        return {"version": "1", "steps": steps, "reads": self.reads, "gives": self.gives}


@dataclass(frozen=True)
class Loop(Flow):
    """Steps again and again."""

    times: int = 2
    until: tuple[str, ...] = ()
    """A note and the values of it that end the loop."""
    name: str = "loop"

    def work(self, seen: Observation, notes: Notes) -> Work:
        """Run the steps so often, or until a note has one of the values."""
        return (yield from self._declared(self._again(seen, _named(notes, self.reads))))

    def _again(self, seen: Observation, notes: Notes) -> Work:
        left: Notes = ()
        for _ in range(self.times):
            done = yield from self._all(seen, merged(notes, left))
            if isinstance(done, Drafted):
                return replace(done, notes=merged(left, done.notes))
            left = merged(left, done)
            if self.until and holds(merged(notes, left), self.until):
                break
        return left

    def stated(self) -> Mapping[str, Any]:
        return {**super().stated(), "times": self.times, "until": self.until}


@dataclass(frozen=True)
class Branch(Flow):
    """The first of its steps if a note has one of some values, else the second, if there is one."""

    when: tuple[str, ...] = ()
    """The note and the values."""
    name: str = "branch"

    def work(self, seen: Observation, notes: Notes) -> Work:
        """Run one of the steps."""
        visible = _named(notes, self.reads)
        taken = self.steps[:1] if holds(visible, self.when) else self.steps[1:2]
        return (yield from self._declared(Flow(taken)._all(seen, visible)))

    def stated(self) -> Mapping[str, Any]:
        return {**super().stated(), "when": self.when}


def _run(step: Step, seen: Observation, notes: Notes) -> Work:
    """Run a step; its questions and drafts are made with the notes that it sees, and with no others."""
    work = step.work(seen, notes)
    answer: Answer | Drafted | None = None
    try:
        while True:
            asked = work.send(answer)  # a generator begins with None
            answer = yield asked if asked.notes is not None else replace(asked, notes=notes)
    except StopIteration as end:
        done: Notes | Drafted = end.value
        return done


def merged(notes: Notes, more: Notes) -> Notes:
    """Return notes with later ones, which replace those of the same name."""
    names = {note.name for note in more}
    return (*(note for note in notes if note.name not in names), *more)


def holds(notes: Sequence[Note], wanted: Sequence[str]) -> bool:
    """Return True if a note has one of some values; `wanted` is its name and the values."""
    return any(note.name == wanted[0] and note.value in wanted[1:] for note in notes)


def _named(notes: Notes, names: tuple[str, ...] | None) -> Notes:
    return notes if names is None else tuple(note for note in notes if note.name in names)
