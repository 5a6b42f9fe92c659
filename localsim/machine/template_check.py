"""`localsim models check`: whether a model's chat template and vocabulary suit localsim, and an example prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError

from localsim.backends.llama.chat import ChatTemplate, ChatTokenizer
from localsim.backends.llama.lib import LlamaModel, library
from localsim.conversation.requests import THINK, Message
from localsim.errors import BackendUnavailable

_SYSTEM, _HEARD, _SAID = "You are Ana, talking with Ben.", "Ben: Good morning!", "Ana: Hello, Ben."
CHAT = (Message("system", _SYSTEM), Message("user", _HEARD), Message("assistant", _SAID), Message("user", "Ben: Well?"))


@dataclass(frozen=True)
class Check:
    """The result of one check."""

    name: str
    ok: bool
    told: str


@dataclass(frozen=True)
class TemplateReport:
    """All checks of a model, and the prompt of a short conversation with its number of tokens."""

    model: str
    checks: list[Check]
    prompt: str
    tokens: int

    @property
    def ok(self) -> bool:
        """True if localsim works with this model."""
        return all(check.ok for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        """The object that `models check --json` prints."""
        checks = [vars(check) for check in self.checks]
        return {"model": self.model, "ok": self.ok, "checks": checks, "prompt": self.prompt, "tokens": self.tokens}


def check_template(model: LlamaModel) -> TemplateReport:
    """Check a model (`vocab_only` is enough). Raises BackendUnavailable where the template cannot be used at all."""
    chat = ChatTokenizer(model)
    template, source = chat.template, model.chat_template() or ""
    tokens = chat.prompt(CHAT, "Ana")
    checks = [
        Check("messages", True, "the template carries every message once and in order"),
        Check("system", True, _system(template)),
        Check("alternation", True, _alternation(template)),
        _begin(model, tokens),
        _end(chat),
        _inert(model, chat),
        Check("spaces", True, _spaces(source)),
        Check("thinking", True, _thinking(template, source)),
        Check("context", True, f"the model was trained on contexts of up to {model.n_ctx_train} tokens"),
    ]
    return TemplateReport(model.path.name, checks, shown(model, tokens), len(tokens))


def shown(model: LlamaModel, tokens: list[int]) -> str:
    """A prompt in readable form, with control tokens as their names."""
    return "".join(
        (model.piece(token) or model.token_text(token).encode()).decode("utf-8", "replace") for token in tokens
    )


def _system(template: ChatTemplate) -> str:
    if template.folds_system:
        return "the template has no system role, so instructions are put before the first user message"
    return "the template has a system role"


def _alternation(template: ChatTemplate) -> str:
    """localsim always alternates roles: it joins all turns between two of an agent's own into one message. The result
    says what the template would do with two user messages in a row.
    """
    twice = [Message("user", "a"), Message("user", "b")]
    try:
        found = [piece.text for piece in template.pieces(twice) if piece.is_content]
    except TemplateError:
        return "the template says that user and assistant must alternate, and localsim's messages do"
    effect = "keep" if found == ["a", "b"] else "merge"
    return f"localsim's messages alternate between user and assistant (the template would {effect} two in a row)"


def _begin(model: LlamaModel, tokens: list[int]) -> Check:
    bos = library().llama_vocab_bos(model.vocab)
    count = tokens.count(bos) if bos >= 0 else 0
    wants = bool(model.begin_tokens())
    if not count:
        return Check("beginning", not wants, "no token marks the beginning of a prompt")
    doubled = tokens[:2] == [bos, bos]
    again = ", twice" if doubled else ", once" if count == 1 else ", which begins every message"
    begins = tokens[0] == bos or not wants
    return Check("beginning", begins and not doubled, f"the prompt begins with {model.token_text(bos)!r}{again}")


def _end(chat: ChatTokenizer) -> Check:
    try:
        last = chat.chat_pieces([*CHAT[:3]])[-1]
    except BackendUnavailable as error:
        return Check("end of a reply", False, error.message)
    return Check("end of a reply", True, f"{last.text.strip().split(chr(10))[0]!r} ends a generation")


def _inert(model: LlamaModel, chat: ChatTokenizer) -> Check:
    """Check that control tokens written in an utterance stay plain characters."""
    silent = [token for token in model.silent_tokens() if model.token_text(token)][:200]
    named = [model.token_text(token) for token in silent]
    named += [model.token_text(token) for token in range(model.n_vocab) if model.is_user_defined(token)][:200]
    wrong = [name for name in named if not name.isspace() and _is_control(model, chat, name)]
    text = "control tokens written in an utterance stay plain characters"
    return Check("content", not wrong, text if not wrong else f"{', '.join(wrong[:3])} would act as control tokens")


def _is_control(model: LlamaModel, chat: ChatTokenizer, name: str) -> bool:
    tokens = chat.content(f"Ana: {name} hello")
    marks = {token for token in tokens if not model.piece(token) or model.is_user_defined(token)}
    return any(model.token_text(token) == name and len(name) > 1 and name.strip("\n") for token in marks)


def _spaces(source: str) -> str:
    trims = "trim" in source or ".strip()" in source
    return "the template trims contents; localsim keeps its own unchanged" if trims else "contents are not trimmed"


def _thinking(template: ChatTemplate, source: str) -> str:
    judge = "; as a judge the model thinks before each verdict" if template.thinks else ""
    if "enable_thinking" in source:
        return f"a thinking model: for turns its template switches thinking off, and the grammar forbids it{judge}"
    if template.thinks or THINK in source or "reasoning" in source:
        turns = "a thinking model: the grammar of a turn forbids thoughts; without a grammar they count as malformed"
        return turns + judge
    return "the model does not think before it replies"
