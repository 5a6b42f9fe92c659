"""What passes between a conversation and whoever writes its text: messages, requests, forms of a reply, generations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from localsim.conversation.episode import Observation, Sampling

Role = Literal["system", "user", "assistant"]
StopCause = Literal["finished", "end_of_text", "length"]
THINK, THOUGHT = "<think>", "</think>"
"""What opens and closes a thought, in templates and replies."""


@dataclass(frozen=True)
class Message:
    """One message of a chat; `content` is data and never control."""

    role: Role
    content: str


class Form(Protocol):
    """The form of a reply; every method is given prefill + text so far."""

    def grammar(self) -> str:
        """GBNF (https://github.com/ggml-org/llama.cpp/tree/master/grammars) of what comes after the prefill."""

    def finished(self, text: str) -> bool:
        """Whether the reply is complete; asked when a line has just ended."""

    def forced(self, text: str) -> str:
        """What must come next whatever the model wants, so that it need not be drawn token by token; '' if free."""

    def in_text(self, text: str) -> bool:
        """Whether what comes next is part of an utterance; only there do repetition penalties act."""

    def utterances(self, text: str) -> tuple[tuple[str, str], ...]:
        """(speaker, words) of the lines closed so far that are not part of what was heard before the request."""

    def speaker(self, text: str) -> str:
        """Whose line is being written."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A text to be written."""

    session: str
    """Requests of one session share a growing prompt; a backend may keep its cache until `release`."""
    speaker: str
    """The agent, or `writer`."""
    turn: int = 0
    attempt: int = 0
    messages: tuple[Message, ...]
    prefill: str
    """Start of the reply that is already fixed; the generation holds what comes after it."""
    seed: int
    """1 .. 2**31-1."""
    max_tokens: int
    sampling: Sampling
    form: Form
    """What a reply must look like."""
    heard: tuple[tuple[str, str], ...] = ()
    """(speaker, words) of the utterances so far, oldest first. Repetition penalties look back on those of the speaker:
    saying what another has said is an answer and no repetition.
    """
    observation: Observation | None = None
    """What the prompt was made from; scripted policies and people use it instead of the prompt. None for a judge."""
    think: int = 0
    """Tokens that may be thought before the reply; only for a backend that `thinks`."""


@dataclass(frozen=True)
class Thought:
    """What a model thought before its reply; it is kept and never read as a reply."""

    text: str
    tokens: int
    cut: bool
    """Whether it was ended at its limit."""


@dataclass(frozen=True)
class Generation:
    """A text that was written, and what it took."""

    text: str
    """What came after the request's prefill."""
    cause: StopCause
    model: str
    """Identity of what wrote it, such as a file name with its sha256."""
    prompt_tokens: int = 0
    evaluated_tokens: int = 0
    """Prompt tokens that had to be evaluated; the others were in the cache."""
    shared_tokens: int = 0
    """Of those in the cache, the ones that another conversation had evaluated."""
    dropped_messages: int = 0
    """Messages, or lines of a script, that a window left out because the context was full."""
    generated_tokens: int = 0
    """Of thought and reply."""
    duration_ms: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)
    """Effective settings and counts, such as draws that the grammar refused."""
    thought: Thought | None = None
