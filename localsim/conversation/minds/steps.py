"""The protocol of steps: a step asks its agent questions, lets it draft lines, and leaves notes or a line.

A step is a generator without I/O, as a mode is. It never builds a message: the mode puts what a step asks, and the
notes that it may see, before the agent's next line, in the agent's own chat. So a question costs only its own words,
and a step can know nothing that its agent does not.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from localsim.conversation.episode import Observation
from localsim.conversation.requests import Form
from localsim.conversation.rules.lines import Way
from localsim.conversation.wording.wordings import listed


@dataclass(frozen=True)
class Note:
    """What a step leaves for later steps and for the line; no other agent ever sees it."""

    name: str
    value: str
    told: str = ""
    """The sentence in which the agent reads it before its line; '' for a note that only steps read."""
    opens: str = ""
    """A message after the instructions to which `value` is the agent's reply: the note opens the chat instead."""
    keep: bool = False
    """True if the agent has it at its later turns too, until a note of that name replaces it."""


@dataclass(frozen=True)
class Consult:
    """A question to the agent in its own chat, answered with an `Answer`."""

    step: str
    """The name under which the generation is stored."""
    ask: str
    start: str
    """The fixed start of the reply."""
    form: Readable
    max_tokens: int
    opens: bool = False
    """True if it is asked after the instructions, as the first message of the chat."""
    sure: bool = False
    """True if the likeliest reply is taken; else it is drawn as lines are."""
    notes: tuple[Note, ...] | None = None
    """The notes that the agent reads before the question; whoever runs the step adds those that it may see."""


@dataclass(frozen=True)
class Draft:
    """The agent's line itself, answered with a `Drafted`; written, read and repeated as every line is."""

    persona: bool = True
    """False if the agent is told neither who it is nor what it is like."""
    ways: tuple[Way, ...] | None = None
    """The ways in which it may act, fewer than the rules allow; None for all of them."""
    notes: tuple[Note, ...] | None = None
    """As in `Consult`."""


@dataclass(frozen=True)
class Answer:
    """The reply to a question."""

    text: str
    """What the form has read; '' where two replies did not have the form."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """The model's probability of each word that it could choose; empty where its backend sees none."""


@dataclass(frozen=True)
class Drafted:
    """A line that was drafted; returned by a step, it is the agent's turn."""

    number: int
    """Counts the drafts of the turn from 0."""
    line: str
    notes: tuple[Note, ...] = ()
    """What steps leave beside it, for later turns."""


Work = Generator[Consult | Draft, Any, tuple[Note, ...] | Drafted]
"""Questions and drafts, each answered with its own kind of value; then notes, or the line."""


class Readable(Form, Protocol):
    """A form that can be read back."""

    def read(self, text: str) -> str | None:
        """Return what a reply says; None if it does not have the form."""


class Step(Protocol):
    """One step. It is a value: everything that it depends on is in its fields, which are hashed."""

    @property
    def name(self) -> str:
        """Its name in the name of a mind."""

    @property
    def tokens(self) -> int:
        """The most tokens that its questions, replies and notes add to a prompt."""

    @property
    def aside(self) -> bool:
        """True if it drafts lines without the persona, which need a cache of their own."""
        return False

    def work(self, seen: Observation, notes: tuple[Note, ...]) -> Work:
        """Yield questions and drafts; return notes, or the line."""

    def stated(self) -> Mapping[str, Any]:
        """Return its version and settings, with the content of tables that it reads."""


def likelihood(answer: Answer, word: str) -> float:
    """Return the probability of a word; where no backend saw any, nearly 1 for the one that was chosen."""
    return answer.weights.get(word, UNSURE) if answer.weights else 1 - UNSURE if answer.text == word else UNSURE


UNSURE = 0.05
"""The probability of what was not chosen, where a backend sees no probabilities."""


def weights_in(details: Mapping[str, Any]) -> dict[str, float]:
    """Return the probabilities that an engine stored about the words of a reply (`details.options`).

    Words that begin with the same token share their probability equally.
    """
    found: dict[str, float] = {}
    for names, each in (details.get("options") or [{"options": {}}])[-1]["options"].items():
        words = names.split(" | ")
        found |= dict.fromkeys(words, each["share"] / len(words))
    return found


def others_of(seen: Observation) -> str:
    """Return the names of the other agents as a phrase; for an agent who is alone, the interviewer."""
    return listed([agent.name for agent in seen.agents if agent.name != seen.viewer]) or "the interviewer"


def told_of(notes: Sequence[Note]) -> tuple[str, ...]:
    """Return the sentences in which an agent reads its notes."""
    return tuple(note.told for note in notes if note.told and not note.opens)
