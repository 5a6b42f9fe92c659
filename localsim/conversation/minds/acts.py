"""Acts: the agent chooses what its line is to do, from a table of acts (arXiv 2311.00262, without its learning)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from localsim.conversation.episode import Observation
from localsim.conversation.minds.steps import Answer, Consult, Note, Step, Work
from localsim.conversation.rules.forms import OneOf
from localsim.conversation.rules.values import Document, Identifier, Place, Text

ActName = Annotated[str, Field(pattern=r"^[a-z][a-z-]*$", max_length=30)]
ASK = "What should {name}'s next line do? Choose one of: {acts}."
TOLD = "In this line, {act}."


class Acts(Document):
    """What a line can do, in some kind of talk."""

    version: Literal[1]
    """Format of this file."""
    id: Identifier
    """Name of the table."""
    about: Text
    """Where the acts come from, for people."""
    acts: Annotated[dict[ActName, Annotated[str, Field(min_length=1, max_length=200)]], Field(min_length=2)]
    """What the agent is told to do, by the name of the act: `make the other an offer`."""

    def _conflicts(self) -> Iterator[tuple[Place, str]]:
        for name in self.acts:
            if other := next((each for each in self.acts if each != name and each.startswith(name)), None):
                yield ("acts", other), f"no act may begin with the name of another one, {name!r}"


@dataclass(frozen=True)
class Plan(Step):
    """One act for the next line, whose instruction the line is written with."""

    acts: Acts
    name: str = "plan"

    @property
    def tokens(self) -> int:
        return 60 + 8 * len(self.acts.acts)

    def work(self, seen: Observation, notes: tuple[Note, ...]) -> Work:  # noqa: ARG002 - the question reads the notes
        """Leave a note with the act."""
        names = tuple(self.acts.acts)
        ask = ASK.format(name=seen.viewer, acts=", ".join(names))
        answer: Answer = yield Consult(self.name, ask, "Act:", OneOf(names, "Act:"), 16)
        if not answer.text:
            return ()
        return (Note(self.name, answer.text, TOLD.format(act=self.acts.acts[answer.text].rstrip("."))),)

    def stated(self) -> Mapping[str, Any]:
        return {"version": "1", "acts": dict(self.acts.acts)}
