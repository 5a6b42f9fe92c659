"""Chat templates: messages -> tokens, so that content is never control.

The template in a GGUF file is rendered with a placeholder for each content; the pieces between placeholders are
tokenized with control tokens, the contents without. An utterance that holds `<|im_start|>` stays those characters.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from localsim.backends.llama.lib import LlamaModel, library
from localsim.conversation.requests import THINK, THOUGHT, Message, reply_begun
from localsim.errors import BackendUnavailable, InvalidInput

_MARK = re.compile("\ue000(\\d+)\ue001")
_TRIAL = (Message("system", "s"), Message("user", "u"), Message("assistant", "a"), Message("user", "v"))


@dataclass(frozen=True)
class Piece:
    """A part of a rendered prompt: the template's own text, or the content of a message."""

    text: str
    is_content: bool
    role: str = ""
    """The role of the message whose content it is."""


class ChatTemplate:
    """A model's chat template. Raises BackendUnavailable where it does not render every content once and in order."""

    def __init__(self, source: str, *, bos: str, eos: str, name: str) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = lambda form: datetime.date(2025, 1, 1).strftime(form)
        self._name = name
        self._tokens = {"bos_token": bos, "eos_token": eos}
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise BackendUnavailable(f"{name}: its chat template is not valid Jinja: {error}") from error
        self.folds_system = False
        """True if the system message is put before the first user message, because the template has no system role."""
        self._check()
        self.thinks = THOUGHT in source and self._carries(_TRIAL, thinking=True)
        """True if the template belongs to a model that thinks before it replies."""

    def _check(self) -> None:
        """Try a conversation with every role; fold the system message where the template has no system role."""
        if self._carries(_TRIAL):
            return
        self.folds_system = True
        if not self._carries(_TRIAL):
            raise BackendUnavailable(
                f"{self._name}: its chat template does not render every message once and in order",
                hint="choose an instruct model whose template has plain user and assistant messages",
            )

    def _carries(self, messages: Sequence[Message], *, thinking: bool = False) -> bool:
        try:
            found = [piece.text for piece in self.pieces(messages, thinking=thinking) if piece.is_content]
        except TemplateError:
            return False
        folded = "".join(found).replace("\n\n", "") if self.folds_system else "".join(found)
        return folded == "".join(message.content for message in messages)

    def pieces(self, messages: Sequence[Message], *, thinking: bool = False) -> list[Piece]:
        """The prompt up to where the assistant's reply begins, or with `thinking` the thought before it."""
        contents = [message.content for message in messages]
        roles = [message.role for message in messages]
        bodies = [f"\ue000{index}\ue001" for index in range(len(messages))]
        if self.folds_system and roles and roles[0] == "system":
            contents[1] = f"{contents[0]}\n\n{contents[1]}"
            roles, contents, bodies = roles[1:], contents[1:], bodies[: len(bodies) - 1]
        chat = [{"role": role, "content": body} for role, body in zip(roles, bodies, strict=True)]
        rendered = self._template.render(
            messages=chat,
            add_generation_prompt=True,
            enable_thinking=thinking,
            tools=None,
            documents=None,
            **self._tokens,
        )
        if thinking:
            rendered = _opened(rendered)
        parts = _MARK.split(rendered)
        pieces = []
        for index, part in enumerate(parts):
            if index % 2 and int(part) >= len(contents):
                raise TemplateError("the template changes the contents of messages")
            text = contents[int(part)] if index % 2 else part
            if text:
                pieces.append(Piece(text, is_content=bool(index % 2), role=roles[int(part)] if index % 2 else ""))
        return pieces


def _opened(rendered: str) -> str:
    """Open a thought at the end of a prompt, unless the template has done so."""
    reply = _MARK.split(rendered)[-1]
    if THOUGHT in reply:
        raise TemplateError("the template closes the thought itself")
    return rendered if THINK in reply else f"{rendered}{THINK}\n"


def _raise(message: str) -> None:
    raise TemplateError(message)


@dataclass(frozen=True)
class ChatPiece:
    """A tokenized part of a finished chat."""

    text: str
    tokens: tuple[int, ...]
    role: str
    """The role of the message whose content it is; `template` for the template's own text."""
    ends_reply: int = 0
    """The number of its first tokens that end the reply before it."""


class ChatTokenizer:
    """Messages -> token ids for one model; keeps the tokens of pieces, because each prompt repeats all but its end."""

    def __init__(self, model: LlamaModel) -> None:
        source = model.chat_template()
        name = model.path.name
        if not source:
            raise BackendUnavailable(
                f"{name} holds no chat template, so it is not an instruct model", hint="choose an instruct GGUF"
            )
        lib = library()
        bos, eos = lib.llama_vocab_bos(model.vocab), lib.llama_vocab_eos(model.vocab)
        self.template = ChatTemplate(source, bos=model.token_text(bos), eos=model.token_text(eos), name=name)
        self._begin = model.begin_tokens()
        self._model = model
        self._marks: set[int] = set()
        self._template_part = lru_cache(maxsize=2_000)(self._part_tokens)
        self.content = lru_cache(maxsize=20_000)(self._content_tokens)
        self._know_marks()

    def _know_marks(self) -> None:
        """Collect the template's marks before any content is tokenized, because no content may hold them."""
        for thinking in (False, True) if self.template.thinks else (False,):
            for piece in self.template.pieces(_TRIAL, thinking=thinking):
                if not piece.is_content:
                    self._template_part(piece.text)
        if self.template.thinks:
            self._template_part(THOUGHT)

    def _part_tokens(self, text: str) -> tuple[int, ...]:
        tokens = self._model.tokenize(text, special=True)
        self._marks |= {token for token in tokens if self._model.is_user_defined(token)}
        return tuple(tokens)

    def _content_tokens(self, text: str) -> tuple[int, ...]:
        """Tokens of a content; control tokens in it stay plain text.

        Some files declare their marks of roles as user-defined tokens, which llama.cpp reads from any text: such a mark
        is tokenized in two halves.
        """
        tokens = self._model.tokenize(text, special=False)
        if not self._marks.intersection(tokens):
            return tuple(tokens)
        found: list[int] = []
        for token in tokens:
            piece = self._model.piece(token).decode("utf-8", "replace")
            if token in self._marks and len(piece) > 1:
                found += self._model.tokenize(piece[:1], special=False) + self._model.tokenize(piece[1:], special=False)
            else:
                found.append(token)
        return tuple(found)

    def piece(self, token: int) -> bytes:
        """The bytes that a token stands for; nothing for control tokens."""
        return self._model.piece(token)

    def chat_pieces(self, messages: Sequence[Message]) -> list[ChatPiece]:
        """A chat that ends with a reply, cut after the mark that ends it. For training: see finetune.chats.

        Raises BackendUnavailable where the template does not end replies with a token that ends a generation.
        """
        asked = [*messages, Message("user", "-")]  # so that the template closes the last reply
        left = sum(message.role == "assistant" for message in messages)
        found = [ChatPiece("", self._begin, "template")] if self._begin else []
        try:
            pieces = self.template.pieces(asked)
        except TemplateError as error:
            raise InvalidInput(f"the model's chat template refuses a chat: {error}") from error
        for piece in pieces:
            if piece.is_content:
                left -= piece.role == "assistant"
                found.append(ChatPiece(piece.text, self.content(piece.text), piece.role))
                continue
            tokens = self._template_part(piece.text)
            if found and found[-1].role == "template" and tokens[: len(self._begin)] == self._begin:
                tokens = tokens[len(self._begin) :]
            after_reply = bool(found) and found[-1].role == "assistant"
            ends = self._end_mark(tokens) if after_reply else 0
            if after_reply and not left:
                return [*found, ChatPiece(piece.text, tokens[:ends], "template", ends)]
            found.append(ChatPiece(piece.text, tokens, "template", ends))
        raise BackendUnavailable("the chat template drops a reply, so a model cannot be trained on it")

    def _end_mark(self, tokens: Sequence[int]) -> int:
        for index, token in enumerate(tokens):
            if self._model.ends_text(token):
                return index + 1
        raise BackendUnavailable(
            "the chat template does not end a reply with a token that ends a generation",
            hint="fine-tuning needs an instruct model whose template closes every turn",
        )

    def prompt(
        self,
        messages: Sequence[Message],
        prefill: str,
        written: dict[str, tuple[int, ...]] | None = None,
        *,
        note: str = "",
        thinking: bool = False,
    ) -> list[int]:
        """Tokens of a whole prompt and the reply's fixed start, or with `thinking` the opening of a thought.

        `written` gives the tokens in which a model wrote some contents itself, so that its cache still fits them.
        """
        tokens: list[int] = []
        chat, lines = reply_begun(messages)
        for piece in self.template.pieces(chat, thinking=thinking):
            known = written.get(piece.text) if written and piece.is_content else None
            if known is None:
                known = self.content(piece.text) if piece.is_content else self._template_part(piece.text)
            tokens += known
        if self._begin and tuple(tokens[:1]) != self._begin:
            tokens[:0] = self._begin
        if thinking:
            return tokens
        for line in lines:
            tokens += self._line(line, written.get(line) if written else None)
        return [*tokens, *(self.content(f"{note}\n") if note else ()), *self.content(prefill)]

    def _line(self, line: str, known: tuple[int, ...] | None) -> tuple[int, ...]:
        """Tokens of a finished line with its break, which some vocabularies join with the last character."""
        if known is None:
            return self.content(f"{line}\n")
        return known if self._model.piece(known[-1]).endswith(b"\n") else (*known, *self.content("\n"))

    def after_thought(self, thought: str, prefill: str) -> list[int]:
        """Tokens that close a thought, as far as its text has not closed it, and begin the reply."""
        _, closed, after = thought.partition(THOUGHT)
        before = "" if thought.endswith("\n") else "\n"
        rest = "\n\n"[min(2, after.count("\n")) :] if closed else f"{before}{THOUGHT}\n\n"
        return [*(self._template_part(rest) if rest else ()), *self.content(prefill)]
