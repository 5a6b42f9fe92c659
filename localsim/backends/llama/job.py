"""One reply: its prompt, the thought before it, its text token by token, and the generation that it becomes.

The engine decides when tokens are evaluated; a job decides which tokens those are. It knows nothing of batches and
sequences.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NoReturn

import numpy as np
import numpy.typing as npt

from localsim.backends.base import THINKING_TEMPERATURE
from localsim.backends.evaluator import CHUNK, Place, Session
from localsim.backends.llama.chat import ChatTokenizer
from localsim.backends.llama.lib import LlamaModel
from localsim.backends.llama.sampler import Candidates, Sampler
from localsim.backends.llama.window import windowed
from localsim.conversation.episode import Overflow, Sampling
from localsim.conversation.requests import THOUGHT, Generation, Request, StopCause, Thought
from localsim.errors import GenerationFailed

OPENING_MESSAGES = 2
"""Messages of a prompt that is kept as an opening: the instructions and the first message after them."""
THINKING = Sampling(temperature=THINKING_TEMPERATURE, top_k=20, min_p=0.0, dry_multiplier=0.0, grammar=False)
"""The sampling of thoughts, which are free text."""
CLOSING = 32
"""Tokens kept free for the mark that closes a thought and the start of the reply."""

_SPELLED = 64
"""Bytes, or tokens, that are looked at for the text of a mark; none is longer."""

_UTF8 = codecs.getincrementaldecoder("utf-8")


@dataclass(frozen=True)
class Prompt:
    """The tokens that a reply, or the thought before it, begins after."""

    tokens: list[int]
    dropped_messages: int
    """Messages, or lines of a script, that a window left out."""
    thinking: int
    """Tokens that the thought may take; 0 where the reply begins at once."""


class Tools:
    """Everything that the replies of one model share: tokenizer, candidates for the next token, and limits.

    Raises BackendUnavailable where the model has no usable chat template.
    """

    def __init__(
        self,
        model: LlamaModel,
        *,
        identity: str,
        context: int,
        exact: bool,
        overflow: Overflow,
        clock: Callable[[], float],
    ) -> None:
        self.model = model
        self.chat = ChatTokenizer(model)
        self.identity = identity
        self.context = context
        self.exact = exact
        self.clock = clock
        self.candidates = Candidates(model, marks=self.chat.mark_tokens)
        self.thoughts = Candidates(model, THOUGHT, self.chat.mark_tokens) if self.thinks() else self.candidates
        """Candidates that include the mark that ends a thought."""
        self._overflow = overflow

    def thinks(self) -> bool:
        """True if the chat template has a place for thoughts."""
        return self.chat.template.thinks

    def prompt(self, request: Request, session: Session) -> Prompt:
        """The prompt of a request. Raises GenerationFailed where the context has no room for it."""
        tokens, dropped = self._reply_prompt(request, session)
        if request.think and self.thinks():
            opened = self.chat.prompt(request.messages, request.prefill, thinking=True)
            room = self.context - len(opened) - request.max_tokens - CLOSING
            if room > 0:
                return Prompt(opened, dropped, min(request.think, room))
        return Prompt(tokens, dropped, 0)

    def _reply_prompt(self, request: Request, session: Session) -> tuple[list[int], int]:
        """Tokens of the prompt, and the number of messages (or lines of a script) that the window left out of it."""
        # Under `exact` the prompt must not depend on how the model happened to cut its own words into tokens.
        written = None if self.exact else session.written
        tokens = self.chat.prompt(request.messages, request.prefill, written, note=request.note)
        if self._overflow == "window":
            room = self.context - min(request.max_tokens, self.context // 4)
            if len(tokens) > room:
                return windowed(self.chat, request, written, room) or self._refuse(request, len(tokens))
        elif len(tokens) >= self.context:
            self._refuse(request, len(tokens))
        return tokens, 0

    def _refuse(self, request: Request, prompt_tokens: int) -> NoReturn:
        raise outgrown(request, prompt_tokens, self.context)

    def sampler(self, request: Request, *, thinking: bool) -> Sampler:
        """The sampler of a reply, bound by its grammar, or of a free thought."""
        sampling = THINKING if thinking else request.sampling
        return Sampler(self.model, sampling, request.seed, request.form.grammar() if sampling.grammar else None)


class Job(Generic[Place]):
    """A request at work.

    `kept` tokens of the prompt are in the session's cache already; `shared` of them were evaluated by another session.
    """

    def __init__(
        self, tools: Tools, ticket: int, request: Request, cache: Place, prompt: Prompt, *, kept: int, shared: int
    ) -> None:
        self.ticket = ticket
        self.request = request
        self.cache = cache
        self.opening = opening_of(request)
        self.pending = prompt.tokens[kept:]
        """Tokens not yet in the cache; the logits of the last one give the next token."""
        self.text = ""
        self.tokens: list[int] = []
        self.prefilled = False
        """True if the whole prompt is in the cache."""
        self.thinking = prompt.thinking
        """Tokens that the thought being written may take; 0 while the reply is written."""
        self.thought: Thought | None = None
        self.candidates = tools.thoughts if prompt.thinking else tools.candidates
        self.sampler = tools.sampler(request, thinking=bool(prompt.thinking))
        self.prompt_tokens = len(prompt.tokens)
        self._tools = tools
        self._evaluated = len(prompt.tokens) - kept
        self._shared = shared
        self._dropped = prompt.dropped_messages
        self._forced = 0
        self._weighed: list[dict[str, Any]] = []
        self._started = tools.clock()
        self._decoder = _UTF8(errors="replace")
        self._hear()

    @property
    def full_text(self) -> str:
        """The reply so far, with the start that the request fixed."""
        return self.request.prefill + self.text

    def begins(self) -> bool:
        """True if the cache holds the first prompt of a session and nothing after it."""
        return not self.tokens and self.thought is None and len(self.request.messages) <= OPENING_MESSAGES

    def in_text(self) -> bool:
        """True if the next token is part of an utterance."""
        return not self.thinking and self.request.form.in_text(self.full_text)

    def spells_mark(self, token: int) -> bool:
        """Return True if a token would complete the text of a mark, which other tokens can spell letter by letter."""
        model = self._tools.model
        piece = model.piece(token)
        if self.thinking or not piece or not any(last in piece for last in self._tools.chat.last_of_marks):
            return False
        before = (self.request.prefill.encode() + model.text_of(self.tokens[-_SPELLED:]))[-_SPELLED:]
        whole = before + piece
        return any(whole.find(mark, max(0, len(before) + 1 - len(mark))) >= 0 for mark in self._tools.chat.spelled)

    def weigh(self, logits: npt.NDArray[np.float32]) -> None:
        """Keep the probabilities of the fixed options among which the next token decides, if there are any.

        They are the model's own (temperature 1, without penalties): `log` of the first token of each option, and the
        options' shares among themselves. Options with the same first token have one entry, joined by ` | `.
        """
        if self.thinking or not self.request.sampling.grammar:
            return
        options = self.request.form.choices(self.full_text)
        if len(options) < 2:
            return
        by_token: dict[int, list[str]] = {}
        for option in options:
            by_token.setdefault(self._tools.chat.content(option)[0], []).append(option.strip(" [:") or "speak")
        if len(by_token) < 2:
            return  # this token decides nothing: they begin with the same one, such as a space
        first = logits[list(by_token)].astype(np.float64)
        highest = float(logits.max())
        total = highest + float(np.log(np.exp(logits.astype(np.float64) - highest).sum()))
        shares = np.exp(first - first.max())
        shares /= shares.sum()
        self._weighed.append({
            "line": self.full_text.rpartition("\n")[2],
            "options": {
                " | ".join(names): {"log": round(float(logit) - total, 4), "share": round(float(share), 4)}
                for names, logit, share in zip(by_token.values(), first, shares, strict=True)
            },
        })  # fmt: skip

    def evaluated(self, count: int) -> None:
        """Count the first `count` pending tokens as evaluated; the evaluator has put them into the cache."""
        del self.pending[:count]
        if not self.prefilled:
            self.cache.canonical = len(self.cache.tokens) // CHUNK * CHUNK
            self.prefilled = not self.pending

    def take(self, token: int) -> StopCause | None:
        """Add a drawn token and the text that the form then forces; returns why the reply is over, or None."""
        if self.thinking:
            self._think(token)
            return None
        if self._tools.model.ends_text(token):
            return "end_of_text"
        self._append(token)
        form = self.request.form
        if self.text.endswith("\n") and form.finished(self.full_text):
            return "finished"
        if len(self.tokens) >= self.request.max_tokens:
            return "length"
        while self.request.sampling.grammar and (text := form.forced(self.full_text)):
            if not self._append_forced(text):
                break
        return "finished" if form.finished(self.full_text) else None

    def _append(self, token: int) -> None:
        self.tokens.append(token)
        self.pending.append(token)
        piece = self._tools.model.piece(token)
        self.text += self._decoder.decode(piece)
        if b"\n" in piece:
            self._hear()

    def _append_forced(self, text: str) -> bool:
        """Add text that the form leaves no choice about; the next decode evaluates it.

        Returns False where the vocabulary cannot write exactly this text, which is then drawn token by token.
        """
        tokens = self._tools.chat.content(text)
        if self._tools.model.text_of(tokens) != text.encode():
            return False
        self.sampler.take(tokens, in_text=False)
        for token in tokens:
            self._append(token)
        self._forced += len(tokens)
        return True

    def _hear(self) -> None:
        """Give the penalties, at the start of a line, the earlier utterances of its speaker and of the others."""
        window, form, chat = self.request.sampling.repeat_window, self.request.form, self._tools.chat
        # In a script the lines written so far count as heard, just as they would turn by turn.
        said = (*self.request.heard, *form.utterances(self.full_text))
        speaker = form.speaker(self.full_text)
        own: list[int] = []
        others: list[int] = []
        for words in [words for name, words in said if name == speaker][-window:]:
            own += chat.content(words)  # without a line break: penalties on it would drag lines out
        if self.request.sampling.dry_others:
            for words in [words for name, words in said if name != speaker][-window:]:
                others += [*chat.content(words), *chat.content("\n")]  # no sequence goes on from line to line
        self.sampler.hear(own[-window:], others[-window:])

    # ---- thinking ----------------------------------------------------------------------------------------------

    def _think(self, token: int) -> None:
        """Add a token to the thought; at the thought's end or limit close it and begin the reply."""
        model = self._tools.model
        silent_end = not model.piece(token) and model.token_text(token) == THOUGHT
        ended = silent_end or model.ends_text(token)
        if not ended:
            self._append(token)
            ended = THOUGHT in self.text
        if not ended and len(self.tokens) < self.thinking:
            return
        self.pending += self._tools.chat.after_thought(self.text, self.request.prefill)
        self.thought = Thought(self.text.partition(THOUGHT)[0].strip(), len(self.tokens), cut=not ended)
        self.thinking, self.text, self.tokens = 0, "", []
        self._decoder.reset()
        self.sampler.free()
        self.sampler = self._tools.sampler(self.request, thinking=False)
        self.candidates = self._tools.candidates
        self._hear()

    # ---- finishing ---------------------------------------------------------------------------------------------

    def generation(self, cause: StopCause) -> Generation:
        """The finished reply. The job is over: its sampler is freed, and its session remembers how it was written."""
        tools, request = self._tools, self.request
        if not tools.exact:
            self._keep_lines()
        details = {"forced": self._forced, "refused": self.sampler.refused, "sampling": request.sampling.stated()}
        if self._weighed:
            details["options"] = self._weighed
        self.sampler.free()
        return Generation(
            text=self.text,
            cause=cause,
            model=tools.identity,
            prompt_tokens=self.prompt_tokens,
            evaluated_tokens=self._evaluated,
            shared_tokens=self._shared,
            dropped_messages=self._dropped,
            generated_tokens=len(self.tokens) + (self.thought.tokens if self.thought else 0),
            duration_ms=(tools.clock() - self._started) * 1000,
            details=details,
            thought=self.thought,
        )

    def _keep_lines(self) -> None:
        """Remember the tokens of each line of the reply, without a break that is a token of its own."""
        model = self._tools.model
        line, text = list(self._tools.chat.content(self.request.prefill)), self.request.prefill.encode()
        for token in self.tokens:
            piece = model.piece(token)
            text += piece
            if piece != b"\n":
                line.append(token)
            if piece.endswith(b"\n"):
                self.cache.written[text.decode("utf-8", "replace").removesuffix("\n")] = tuple(line)
                line, text = [], b""
        if line:
            self.cache.written[text.decode("utf-8", "replace")] = tuple(line)


def opening_of(request: Request) -> str:
    """The name of what a session begins with, by default its instructions, which are the same for every seed."""
    return request.opening or request.messages[0].content


def outgrown(request: Request, prompt_tokens: int, context: int) -> GenerationFailed:
    """The error of a turn that does not fit into the context."""
    return GenerationFailed(
        f"turn {request.turn} of {request.speaker} outgrew the context of {context} tokens "
        f"(its prompt has {prompt_tokens})",
        hint="raise --ctx, lower limits.turns or limits.chars in the scenario, or run with --overflow window",
    )
