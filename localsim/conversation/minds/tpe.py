"""Think, plan, execute (arXiv 2309.16090): what moves the other, then a list of tools in order, then the line.

Tools are acts of a table, or the sources `persona` and `knowledge`: what the agent's own view says about itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localsim.conversation.episode import Observation
from localsim.conversation.minds.acts import TOLD, Acts
from localsim.conversation.minds.steps import Answer, Consult, Note, Step, Work, others_of
from localsim.conversation.rules.forms import Listed, Words
from localsim.conversation.rules.lines import SEPARATOR

THINK = "What is on the mind of {others}, and what should {name} heed? Answer in one sentence."
PLAN = "Which of these should {name} use in the next line, in which order? Choose at most {most}: {tools}."
THOUGHT = "You think: {text}"
SOURCES = ("persona", "knowledge")


@dataclass(frozen=True)
class Tpe(Step):
    """A thought, a plan, and the results of its tools in the note of the line."""

    acts: Acts | None = None
    """The tools; None: the sources alone."""
    most: int = 3
    name: str = "tpe"

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools."""
        return tuple(self.acts.acts) if self.acts else SOURCES

    @property
    def tokens(self) -> int:
        return 300 + 8 * len(self.tools)

    def work(self, seen: Observation, notes: tuple[Note, ...]) -> Work:
        """Leave the thought, the plan, and what the tools give in its order."""
        ask = THINK.format(others=others_of(seen), name=seen.viewer)
        thought: Answer = yield Consult("tpe.think", ask, "Thought:", Words(), 60)
        thinks = (Note("tpe.think", thought.text, THOUGHT.format(text=thought.text)),) if thought.text else ()
        ask = PLAN.format(name=seen.viewer, most=self.most, tools=SEPARATOR.join(self.tools))
        form = Listed(self.tools, self.most)
        planned: Answer = yield Consult("tpe.plan", ask, "Plan:", form, 12 * self.most, notes=(*notes, *thinks))
        if not planned.text:
            return thinks
        results = " ".join(filter(None, (self._use(tool, seen) for tool in planned.text.split(SEPARATOR))))
        return (*thinks, Note("tpe.plan", planned.text, results))

    def _use(self, tool: str, seen: Observation) -> str:
        """Return what a tool gives: the instruction of an act, or what a source holds."""
        if self.acts:
            return TOLD.format(act=self.acts.acts[tool].rstrip("."))
        me = seen.me()
        if tool == "knowledge":
            return " ".join(fact.text for fact in me.facts)
        return " ".join([*(f"{label}: {value}." for label, value in me.profile), *(me.persona and me.persona[0][1])])

    def stated(self) -> Mapping[str, Any]:
        return {"version": "1", "acts": dict(self.acts.acts) if self.acts else None, "most": self.most}
