"""Ways to write a conversation into an agent's prompt, and the tokens that the engine evaluates in each of them.

A layout changes neither what a viewer may know nor the words of a turn; it decides in which messages the turns stand
and how a line begins. The engine itself uses PRESENT. Its caches are followed turn by turn: the tokens that a prompt
has in common with the cache of its session are not evaluated again, all others are, also those of a line that was
written in one place and later stands in another. Conversations are of two agents who take turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os.path import commonprefix
from typing import Literal, Protocol

from localsim.conversation.episode import Observation
from localsim.conversation.exchange import Message
from localsim.conversation.prompts import agent_instructions, agent_messages
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Action, Transcript, Turn, line_of
from localsim.conversation.visibility import observe

Shape = Literal["messages", "one message", "one reply"]
Names = Literal["full", "short", "none"]
CONTINUE = "Continue the conversation, one line each turn."
"""The user's message before a reply that holds the whole conversation."""
_SHORT = "Lines begin with {letters}."
_NONE = "Lines have no names: {first} begins, then you take turns."


class Tokens(Protocol):
    """The part of `ChatTokenizer` that a layout needs."""

    def prompt(self, messages: Sequence[Message], prefill: str, written: dict[str, tuple[int, ...]]) -> list[int]:
        """Return the tokens of messages up to where the reply begins, and of its fixed start."""

    def content(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text that stands by itself."""


@dataclass(frozen=True)
class Prompt:
    """What one reply is written after."""

    messages: tuple[Message, ...]
    start: str
    """The fixed start of the reply's own line."""
    lines: tuple[str, ...] = ()
    """Closed lines at the beginning of the reply, before its own."""

    def tokens(self, chat: Tokens, written: Mapping[str, tuple[int, ...]]) -> list[int]:
        """Return the tokens; `written` has those of lines as the model wrote them."""
        found = chat.prompt(self.messages, "" if self.lines else self.start, dict(written))
        if not self.lines:
            return found
        for line in self.lines:
            found += [*(written.get(line) or chat.content(line)), *chat.content("\n")]
        return found + list(chat.content(self.start))


@dataclass(frozen=True)
class Layout:
    """A way to write the turns: in a message each (`messages`), as lines of one message that the user sends anew for
    each reply (`one message`), or as lines of one reply that grows (`one reply`).
    """

    name: str
    shape: Shape
    names: Names

    def label(self, agent: str, agents: Sequence[str]) -> str:
        """Return what a line of an agent begins with: its name, the shortest beginning that no other has, or ''."""
        if self.names == "full":
            return agent
        others = [other for other in agents if other != agent]
        lengths = range(1, len(agent) + 1)
        beginnings = (agent[:length] for length in lengths if not any(o.startswith(agent[:length]) for o in others))
        return next(beginnings, agent) if self.names == "short" else ""

    def rest(self, action: Action) -> str:
        """Return the part of a line after its label."""
        return self._line("", action)

    def _line(self, label: str, action: Action) -> str:
        whole = line_of(label, action)
        return whole.removeprefix(":").lstrip() if self.names == "none" else whole

    def prompt(self, seen: Observation) -> Prompt:
        """Return the prompt of the viewer's next turn."""
        agents = [agent.name for agent in seen.agents]
        start = self.label(seen.viewer, agents)
        told = Message("system", self._instructions(seen, agents))
        lines = [self._line(self.label(turn.speaker, agents), turn.action) for turn in seen.transcript.turns]
        if self.shape == "one reply":
            return Prompt((told, Message("user", CONTINUE)), start, tuple(lines))
        usual = agent_messages(seen)
        if self.shape == "one message":
            said = Message("user", "\n".join(lines)) if lines else usual[-1]
            return Prompt((told, said), start)
        by_present = {turn.line: line for turn, line in zip(seen.transcript.turns, lines, strict=True)}
        rest = (Message(each.role, by_present.get(each.content, each.content)) for each in usual[1:])
        return Prompt((told, *rest), start)

    def _instructions(self, seen: Observation, agents: Sequence[str]) -> str:
        """Return the usual instructions, with examples that begin as lines do here."""
        text = agent_instructions(seen)
        for kind in seen.actions:
            example = Action(kind, "" if kind == "none" else "...")
            old = line_of(seen.viewer, example)
            text = text.replace(f": {old}\n", f": {self._line(self.label(seen.viewer, agents), example)}\n")
        if self.names == "short":
            letters = " or ".join(f"{self.label(agent, agents)} for {agent}" for agent in agents)
            return f"{text}\n{_SHORT.format(letters=letters)}"
        if self.names == "none" and self.shape != "messages":
            return f"{text}\n{_NONE.format(first=agents[0])}"
        return text


PRESENT = Layout("a message for each turn", "messages", "full")
LAYOUTS = (
    PRESENT,
    Layout("a message for each turn, first letters", "messages", "short"),
    Layout("a message for each turn, no names", "messages", "none"),
    Layout("lines of one message", "one message", "full"),
    Layout("lines of one reply", "one reply", "full"),
    Layout("lines of one reply, first letters", "one reply", "short"),
    Layout("lines of one reply, no names", "one reply", "none"),
)


@dataclass
class Read:
    """What one turn costs in its speaker's session."""

    turn: Turn
    prompt: list[int]
    """Tokens of the whole prompt."""
    kept: int
    """The first of them, which the cache holds already."""
    reply: tuple[int, ...]
    """Tokens that are written."""
    opens: bool
    """True if it is the session's first turn."""


@dataclass
class Session:
    """The cache of one agent's session, as the engine holds it."""

    tokens: list[int] = field(default_factory=list)
    written: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def read(self, turn: Turn, prompt: Prompt, rest: str, chat: Tokens) -> Read:
        """Evaluate a prompt and write the rest of its line; the mark that ends it is drawn and never evaluated."""
        tokens, reply = prompt.tokens(chat, self.written), chat.content(rest)
        kept = len(commonprefix([self.tokens, tokens[:-1]]))
        found = Read(turn, tokens, kept, reply, opens=not self.tokens)
        self.tokens = [*tokens, *reply]
        self.written[prompt.start + rest] = (*chat.content(prompt.start), *reply)
        return found


def reads(scenario: Scenario, turns: Sequence[Turn], layout: Layout, chat: Tokens) -> Iterator[Read]:
    """Yield what each turn of a conversation in `agents` mode costs, in order."""
    sessions = {name: Session() for name in scenario.names}
    for index, turn in enumerate(turns):
        seen = observe(scenario, "agents", turn.speaker, Transcript(tuple(turns[:index])))
        yield sessions[turn.speaker].read(turn, layout.prompt(seen), layout.rest(turn.action), chat)
