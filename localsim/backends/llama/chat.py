"""Chat templates: messages -> tokens, so that content is never control.

The template's own text (see `template`) is tokenized with control tokens, the contents without. An utterance that holds
`<|im_start|>` stays those characters, whatever kind of token the vocabulary has for them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from jinja2 import TemplateError

from localsim.backends.llama.lib import LlamaModel, is_mark, library
from localsim.backends.llama.template import TRIAL, ChatTemplate, marks_in
from localsim.conversation.requests import THINK, THOUGHT, Message, reply_begun
from localsim.errors import BackendUnavailable, InvalidInput


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
        self.role_marks = self._know_marks()
        """The marks of roles in the template's own text."""
        looking = model.mark_tokens()
        known = {*self.role_marks, *map(model.token_text, looking), *((THINK, THOUGHT) if self.template.thinks else ())}
        self.marks = tuple(sorted(known, key=lambda mark: (-len(mark), mark)))
        """All marks, the longest first: no content holds them as tokens, and no utterance may spell them."""
        named = (token for token, text in enumerate(model.texts()) if text in known)
        self.mark_tokens = frozenset(token for token in (*looking, *named) if not model.ends_text(token))
        """The tokens of all marks but those that end a reply; no utterance may hold them."""
        self.spelled = tuple(mark.encode() for mark in self.marks)
        self.last_of_marks = frozenset(mark[-1:] for mark in self.spelled)
        """The last bytes of all marks."""
        self._spelled = re.compile("|".join(map(re.escape, self.marks)) or r"(?!)")
        self._cuts = {mark: self._cut(mark) for mark in self.marks}
        self._template_part = lru_cache(maxsize=2_000)(self._part_tokens)
        self.content = lru_cache(maxsize=20_000)(self._content_tokens)

    def _cut(self, mark: str) -> int:
        """The first place at which a cut makes other tokens of a mark; 1 where each character is a token."""
        own = self._model.tokenize(mark, special=True)
        tokens = (self._plain(mark[:cut]) + self._plain(mark[cut:]) for cut in range(1, len(mark)))
        return next((cut for cut, found in enumerate(tokens, 1) if found != own), 1)

    def _plain(self, text: str) -> list[int]:
        return self._model.tokenize(text, special=False)

    def _know_marks(self) -> tuple[str, ...]:
        """The marks that the template writes, be they tokens of any kind or spelled."""
        found: set[str] = set()
        for thinking in (False, True) if self.template.thinks else (False,):
            for piece in self.template.pieces(TRIAL, thinking=thinking):
                if not piece.is_content:
                    tokens = self._model.tokenize(piece.text, special=True)
                    texts = {self._model.token_text(token): token for token in tokens}
                    own = [text for text, token in texts.items() if is_mark(text) or self._model.is_special(token)]
                    named = "|".join(map(re.escape, sorted(filter(str.strip, own), key=len, reverse=True)))
                    found |= marks_in(re.sub(named or "(?!)", "\n", piece.text)) | set(filter(str.strip, own))
        return tuple(sorted(found))

    def _part_tokens(self, text: str) -> tuple[int, ...]:
        return tuple(self._model.tokenize(text, special=True))

    def _content_tokens(self, text: str) -> tuple[int, ...]:
        """Tokens of a content; marks in it stay plain text.

        Some files declare their marks of roles as user-defined tokens, which llama.cpp reads from any text, and others
        have no tokens for them at all. So a mark is tokenized in two parts, which are other tokens than its own.
        """
        cuts = [found.start() + self._cuts[found[0]] for found in self._spelled.finditer(text)]
        parts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        return tuple(token for part in parts for token in self._plain(part))

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
