"""A model's chat template: messages -> the template's own text and the contents between it.

It is rendered with a placeholder for each content, so a text in a conversation is no part of the program. Templates
differ in what they expect; the first dialect in which one renders every message once and in order is taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError

from localsim.backends.llama.jinja import Program, TemplateLimit
from localsim.conversation.requests import THINK, THOUGHT, Message
from localsim.conversation.rules.thoughts import parted
from localsim.errors import BackendUnavailable

_PLACE = re.compile("\ue000(\\d+)\ue001")
TRIAL = (Message("system", "s"), Message("user", "u"), Message("assistant", "a"), Message("user", "v"))
"""A conversation with every role."""
_MARK = re.compile(
    r"<[|｜][^<>|｜\n]{1,60}[|｜]>|</?[A-Za-z][\w:-]{0,40}>|\[/?[A-Z_]{2,30}\]|<</?[A-Z]+>>|◁[^◁▷\n]{1,30}▷"
    r"|#{2,}\s*\w[\w ]{0,30}:"
)
_ROLE = re.compile(r"(?:^|\n)[ \t]*([^\W\d_][\w ]{1,30}:)[ \t]*$")
_SYMBOL, _INNER = r"[^\w\s.,:;!?'\"()-]", r"[\w.,:;!?'\"()-]{1,38}"
_BRACKETED = re.compile("|".join(rf"{_SYMBOL}{{{size}}}{_INNER}{_SYMBOL}{{1,{size}}}" for size in (3, 2, 1)))
"""A word between symbols, as in `[|user|]`, `«user»` or `]~b]`."""
_NOTHING: dict[str, Any] = {"tools": None, "documents": None}
_EMPTY: dict[str, Any] = {"tools": [], "documents": []}


@dataclass(frozen=True)
class Piece:
    """A part of a rendered prompt: the template's own text, or the content of a message."""

    text: str
    is_content: bool
    role: str = ""
    """The role of the message whose content it is."""


@dataclass(frozen=True)
class _Dialect:
    """What a template expects."""

    folds: bool
    """The system message is put before the first user message."""
    typed: bool
    """A content is a list of parts."""
    variables: tuple[tuple[str, Any], ...]


_DIALECTS = [
    _Dialect(folds, typed, tuple(variables.items()))
    for folds in (False, True)
    for typed in (False, True)
    for variables in (_NOTHING, _EMPTY, {})
]


class ChatTemplate:
    """A model's chat template. Raises BackendUnavailable where it does not render every content once and in order."""

    def __init__(self, source: str, *, bos: str, eos: str, name: str) -> None:
        self._name = name
        self._tokens = {"bos_token": bos, "eos_token": eos}
        self._rendered: dict[tuple[tuple[str, ...], bool], list[str]] = {}
        try:
            self._program = Program(source)
        except TemplateError as error:
            raise BackendUnavailable(f"{name}: its chat template is not valid Jinja: {error}") from error
        self.asks_elsewhere = ""
        """The text after which the template alone would ask for a reply, if its own replies begin after another one."""
        self._dialect = self._found()
        self.folds_system = self._dialect.folds
        """True if the system message is put before the first user message, because the template has no system role."""
        self.begins = self._begins()
        """The text between a user's message and a reply."""
        self.thinks = THOUGHT in source and self._carries_thoughts()
        """True if the template belongs to a model that thinks before it replies."""

    def _found(self) -> _Dialect:
        """Try a conversation with every role in each dialect."""
        reasons: list[str] = []
        for dialect in _DIALECTS:
            self._dialect = dialect
            self.folds_system = dialect.folds
            self._rendered.clear()
            try:
                if self._in_order(thinking=False):
                    return dialect
            except TemplateLimit as error:
                raise BackendUnavailable(f"{self._name}: its chat template cannot be used: {error}") from error
            except TemplateError as error:
                reasons.append(str(error))
        told = "its chat template does not render every message once and in order"
        if len(reasons) == len(_DIALECTS):
            told = f"its chat template refuses a conversation: {reasons[len(reasons) // 2]}"
        raise BackendUnavailable(
            f"{self._name}: {told}",
            hint="choose an instruct model whose template has plain user and assistant messages",
        )

    def _in_order(self, *, thinking: bool) -> bool:
        found = [piece.text for piece in self.pieces(TRIAL, thinking=thinking) if piece.is_content]
        folded = "".join(found).replace("\n\n", "") if self.folds_system else "".join(found)
        return folded == "".join(message.content for message in TRIAL)

    def _carries_thoughts(self) -> bool:
        try:
            return self._in_order(thinking=True)
        except TemplateError:
            return False

    def _begins(self) -> str:
        """Compare where the template asks for a reply with where its own replies begin; the latter counts.

        Templates of thinking models ask for a thought, and leave it open; those with channels ask for the name of one.
        Closed thoughts, with which a template switches thinking off, stay.
        """
        parts = self._parts([message.role for message in TRIAL if not self.folds_system or message.role != "system"])
        own, asked = parts[-5], parts[-1]
        more = "".join(asked.split()).removeprefix("".join(own.split()))
        rest = parted(more)
        if "".join(asked.split()).startswith("".join(own.split())) and not rest.open and not rest.text.strip():
            return asked
        self.asks_elsewhere = asked
        self._rendered.clear()
        return own

    def pieces(self, messages: Sequence[Message], *, thinking: bool = False) -> list[Piece]:
        """The prompt up to where the assistant's reply begins, or with `thinking` the thought before it.

        Raises TemplateError with the template's reason where it refuses the messages.
        """
        contents = [message.content for message in messages]
        roles = [message.role for message in messages]
        if self.folds_system and roles and roles[0] == "system":
            contents[1] = f"{contents[0]}\n\n{contents[1]}"
            roles, contents = roles[1:], contents[1:]
        pieces = []
        for index, part in enumerate(self._parts(roles, thinking=thinking)):
            if index % 2 and int(part) >= len(contents):
                raise TemplateError("the template changes the contents of messages")
            text = contents[int(part)] if index % 2 else part
            if text:
                pieces.append(Piece(text, is_content=bool(index % 2), role=roles[int(part)] if index % 2 else ""))
        return pieces

    def _parts(self, roles: Sequence[str], *, thinking: bool = False) -> list[str]:
        """The template's own texts, and between them the numbers of contents. Contents play no part in it."""
        key = (tuple(roles), thinking)
        if key not in self._rendered:
            self._rendered[key] = _PLACE.split(self._render(roles, thinking=thinking))
            if self.asks_elsewhere and not thinking and roles[-1:] == ["user"]:
                self._rendered[key][-1] = self.begins
        return self._rendered[key]

    def _render(self, roles: Sequence[str], *, thinking: bool) -> str:
        chat = [{"role": role, "content": self._placed(index)} for index, role in enumerate(roles)]
        rendered = self._program.render(
            messages=chat,
            add_generation_prompt=True,
            enable_thinking=thinking,
            thinking=thinking,
            **dict(self._dialect.variables),
            **self._tokens,
        )
        return _opened(rendered) if thinking else rendered

    def _placed(self, index: int) -> Any:
        text = f"\ue000{index}\ue001"
        return [{"type": "text", "text": text}] if self._dialect.typed else text


def _opened(rendered: str) -> str:
    """Open a thought at the end of a prompt, unless the template has done so."""
    reply = _PLACE.split(rendered)[-1]
    if THOUGHT in reply:
        raise TemplateError("the template closes the thought itself")
    return rendered if THINK in reply else f"{rendered}{THINK}\n"


def marks_in(text: str) -> set[str]:
    """The marks of roles that a template spells in its own text, such as `<|user|>`, `[INST]` or `USER:` at its end."""
    rest = _MARK.sub("\n", text)
    lines = rest.split()
    found = (mark for word in {*lines[:1], *lines[-1:]} for mark in _BRACKETED.findall(word))
    role = _ROLE.search(rest)
    return {*_MARK.findall(text), *found, *([role[1]] if role else ())}
