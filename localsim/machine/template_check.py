"""What a model's chat template and vocabulary do to localsim's prompts: a list of findings, and a prompt as it is."""

from __future__ import annotations

from dataclasses import dataclass

from jinja2 import TemplateError

from localsim.backends.llama.chat import ChatTemplate, ChatTokenizer
from localsim.backends.llama.lib import LlamaModel, library
from localsim.conversation.exchange import THINK, Message
from localsim.errors import BackendUnavailable

_SYSTEM, _HEARD, _SAID = "You are Ana, talking with Ben.", "Ben: Good morning!", "Ana: Hello, Ben."
CHAT = (Message("system", _SYSTEM), Message("user", _HEARD), Message("assistant", _SAID), Message("user", "Ben: Well?"))


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    told: str


@dataclass(frozen=True)
class TemplateReport:
    """All checks of a model, and the prompt of a short talk with its number of tokens."""

    model: str
    checks: list[Check]
    prompt: str
    tokens: int

    @property
    def ok(self) -> bool:
        """Whether localsim can play on this model."""
        return all(check.ok for check in self.checks)


def check_template(model: LlamaModel) -> TemplateReport:
    """Look at a model (`vocab_only` is enough). Raises BackendUnavailable where the template cannot be used at all."""
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
        Check("context", True, f"trained on {model.n_ctx_train} tokens"),
    ]
    return TemplateReport(model.path.name, checks, shown(model, tokens), len(tokens))


def shown(model: LlamaModel, tokens: list[int]) -> str:
    """A prompt for people, control tokens by their names."""
    return "".join(
        (model.piece(token) or model.token_text(token).encode()).decode("utf-8", "replace") for token in tokens
    )


def _system(template: ChatTemplate) -> str:
    if template.folds_system:
        return "the template has no system role: instructions stand in front of the first user turn"
    return "the template has a system role"


def _alternation(template: ChatTemplate) -> str:
    """localsim joins what others said between two own turns, so it always alternates; what the template would do
    otherwise is told.
    """
    twice = [Message("user", "a"), Message("user", "b")]
    try:
        found = [piece.text for piece in template.pieces(twice) if piece.is_content]
    except TemplateError:
        return "user and assistant must alternate: they do, others' turns in a row are one user message"
    told = "two user messages in a row would be carried as well" if found == ["a", "b"] else "two would be merged"
    return f"user and assistant alternate in every prompt ({told})"


def _begin(model: LlamaModel, tokens: list[int]) -> Check:
    bos = library().llama_vocab_bos(model.vocab)
    count = tokens.count(bos) if bos >= 0 else 0
    wants = bool(model.begin_tokens())
    told = f"the prompt begins with {model.token_text(bos)!r}" if count else "no token for the beginning"
    return Check("beginning", count <= 1 and (not wants or tokens[0] == bos), told + (", once" if count == 1 else ""))


def _end(chat: ChatTokenizer) -> Check:
    try:
        last = chat.chat_pieces([*CHAT[:3]])[-1]
    except BackendUnavailable as error:
        return Check("end of a reply", False, error.message)
    return Check("end of a reply", True, f"{last.text.strip().split(chr(10))[0]!r} ends a generation")


def _inert(model: LlamaModel, chat: ChatTokenizer) -> Check:
    """Control tokens that stand in an utterance must come out as the characters that they are."""
    silent = [token for token in model.silent_tokens() if model.token_text(token)][:200]
    named = [model.token_text(token) for token in silent]
    named += [model.token_text(token) for token in range(model.n_vocab) if model.is_user_defined(token)][:200]
    wrong = [name for name in named if not name.isspace() and _is_control(model, chat, name)]
    told = "control tokens in an utterance stay plain characters"
    return Check("content", not wrong, told if not wrong else f"{', '.join(wrong[:3])} would act as control")


def _is_control(model: LlamaModel, chat: ChatTokenizer, name: str) -> bool:
    tokens = chat.content(f"Ana: {name} hello")
    marks = {token for token in tokens if not model.piece(token) or model.is_user_defined(token)}
    return any(model.token_text(token) == name and len(name) > 1 and name.strip("\n") for token in marks)


def _spaces(source: str) -> str:
    trims = "trim" in source or ".strip()" in source
    return "the template trims contents; localsim's stand as they are" if trims else "contents are not trimmed"


def _thinking(template: ChatTemplate, source: str) -> str:
    judge = "; as a judge it thinks before each verdict" if template.thinks else ""
    if "enable_thinking" in source:
        return f"a thinking model: thinking is switched off by its template, and the grammar allows none{judge}"
    if template.thinks or THINK in source or "reasoning" in source:
        told = "a thinking model: the grammar of a turn allows no thoughts; without a grammar they count as malformed"
        return told + judge
    return "no thinking"
