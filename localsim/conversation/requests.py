"""The values that a conversation exchanges with the writer of its text: messages, requests, forms, generations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from localsim.conversation.episode import Observation, Sampling

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
