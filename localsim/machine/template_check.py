"""`localsim models check`: whether a model's chat template and vocabulary suit localsim, and an example prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError

from localsim.backends.llama.chat import ChatTokenizer
from localsim.backends.llama.lib import LlamaModel
from localsim.backends.llama.suits import CHAT, Check, suitability, thinking
from localsim.backends.llama.template import ChatTemplate
from localsim.conversation.requests import Message


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
        *suitability(model, chat),
        Check("spaces", True, _spaces(source)),
        Check("thinking", True, thinking(chat, source)),
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


def _spaces(source: str) -> str:
    trims = "trim" in source or ".strip()" in source
    return "the template trims contents; localsim keeps its own unchanged" if trims else "contents are not trimmed"
