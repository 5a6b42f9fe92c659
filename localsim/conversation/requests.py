"""The values that a conversation exchanges with the writer of its text: messages, requests, forms, generations."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from localsim.conversation.episode import Observation, Sampling

UNREAD = "unread"
"""The detail of a generation that says why it is not what was asked for; it is stored, so that a resume knows it."""
LEFT_OUT = "left_out"
"""The detail of a generation from which something that is no speech was left out."""
MOST = 2**31
"""Numbers of tokens are smaller; the database has no larger ones."""
TYPED = {"typed": True}
"""Details of a generation that a person wrote; they are stored, so that a resume knows it, too."""
Role = Literal["system", "user", "assistant", "line"]
"""`line`: a finished line of the reply that is being written; such messages come last."""
StopCause = Literal["finished", "end_of_text", "length"]
THINK, THOUGHT = "<think>", "</think>"
"""The marks that open and close a thought, in templates and replies."""


@dataclass(frozen=True)
class Message:
    """One message of a chat; `content` is data and never control."""

    role: Role
    content: str


def reply_begun(messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """Return the messages of a chat before the reply, and the finished lines of the reply."""
    chat = tuple(message for message in messages if message.role != "line")
    return chat, tuple(message.content for message in messages[len(chat) :])


class Form(Protocol):
    """The form of a reply. Every method receives the prefill and the text so far, as one string.

    What a form inherits holds for a reply without utterances of agents, such as a judge's.
    """

    def grammar(self) -> str:
        """Return the GBNF of the text after the prefill.

        https://github.com/ggml-org/llama.cpp/tree/master/grammars
        """

    def finished(self, text: str) -> bool:
        """Return True if the reply is complete; called when a line has just ended."""

    def forced(self, text: str) -> str:  # noqa: ARG002 - overridden
        """Return the text that must follow, which needs no drawing of tokens; '' if the model is free."""
        return ""

    def choices(self, text: str) -> tuple[str, ...]:  # noqa: ARG002 - overridden
        """Return the texts of which exactly one comes next, where the next token decides among fixed options; else ().

        A backend that sees probabilities keeps those of the options.
        """
        return ()

    def in_text(self, text: str) -> bool:  # noqa: ARG002 - overridden
        """Return True if the next token belongs to an utterance; repetition penalties act only there."""
        return False

    def utterances(self, text: str) -> tuple[tuple[str, str], ...]:  # noqa: ARG002 - overridden
        """Return (speaker, words) of the closed lines that this reply has added."""
        return ()

    def speaker(self, text: str) -> str:  # noqa: ARG002 - overridden
        """Return the speaker of the line that is being written."""
        return ""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request for one text."""

    session: str
    """Requests of one session share a growing prompt; a backend may keep its cache until `release`."""
    speaker: str
    """The agent, or `writer`."""
    turn: int = 0
    attempt: int = 0
    messages: tuple[Message, ...]
    note: str = ""
    """A line before the one that is written; later prompts do not have it."""
    prefill: str
    """The fixed start of the next line of the reply; the generation holds the text after it."""
    seed: int
    """1 .. 2**31-1."""
    max_tokens: int
    sampling: Sampling
    form: Form
    """The form that the reply must have."""
    heard: tuple[tuple[str, str], ...] = ()
    """(speaker, words) of the utterances so far, oldest first. Repetition penalties look back only on the speaker's
    own: repeating another agent's words is an answer.
    """
    observation: Observation | None = None
    """The source of the prompt; scripted players and people use it instead of the prompt. None for a judge."""
    think: int = 0
    """Limit of tokens for thoughts before the reply; only for a backend that `thinks`."""
    opening: str = ""
    """Name of the beginning that this prompt has in common with others; a backend may evaluate it once. Empty: the
    instructions name it."""
    step: str = ""
    """The step of a mind that asks its agent this; '' for a request of the agent's own line, and for a judge."""


@dataclass(frozen=True)
class Thought:
    """The text that a model wrote as a thought before its reply; it is stored and never read as a reply."""

    text: str
    tokens: int
    cut: bool
    """True if the thought was cut at its limit."""


@dataclass(frozen=True)
class Generation:
    """A text that a backend wrote, and what it cost."""

    text: str
    """The text after the request's prefill."""
    cause: StopCause
    model: str
    """Identity of the writer, such as a file name with its sha256."""
    prompt_tokens: int = 0
    evaluated_tokens: int = 0
    """Prompt tokens that were evaluated; the others were in the cache."""
    shared_tokens: int = 0
    """Cached prompt tokens that another conversation had evaluated."""
    dropped_messages: int = 0
    """Messages, or lines of a script, that were left out because the context was full."""
    generated_tokens: int = 0
    """Tokens of thought and reply."""
    duration_ms: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)
    """Effective settings and counts, such as draws that the grammar refused."""
    thought: Thought | None = None

    @property
    def typed(self) -> bool:
        """True if a person wrote it: their words are taken as they are."""
        return self.details.get("typed") is True

    @property
    def unread(self) -> str:
        """Why it is not what was asked for; '' if it is, or if that shows when it is read."""
        return str(self.details.get(UNREAD, ""))

    @property
    def defect(self) -> str:
        """Why it cannot be stored; '' if it can."""
        thought = self.thought.text if self.thought else ""
        if not all(isinstance(text, str) for text in (self.text, self.model, thought)):
            return "a reply that is no text"
        try:
            whole = json.dumps([self.text, self.model, thought, self.details], allow_nan=False, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            return f"a reply with details that cannot be stored ({type(error).__name__})"
        if half_pair(whole):
            return "a reply with half of a surrogate pair"
        counts = [getattr(self, name) for name in _COUNTS] + ([self.thought.tokens] if self.thought else [])
        wrong = next((each for each in counts if not isinstance(each, int) or each not in range(MOST)), None)
        if wrong is not None:
            return f"a reply that counts {str(wrong)[:40]} tokens"
        return "" if math.isfinite(self.duration_ms) else f"a reply that took {self.duration_ms} ms"


_COUNTS = ("prompt_tokens", "evaluated_tokens", "shared_tokens", "dropped_messages", "generated_tokens")


def half_pair(text: str) -> bool:
    """Return True if a text holds half of a surrogate pair, which no file and no database can store."""
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)
