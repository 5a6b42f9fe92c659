"""Whether a model's template and vocabulary suit localsim: `models check` shows it, a run refuses or warns by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from localsim.backends.llama.chat import ChatTokenizer
from localsim.backends.llama.lib import LlamaModel, library
from localsim.backends.llama.sampler import Candidates
from localsim.conversation.requests import THINK, Message
from localsim.errors import BackendUnavailable

_SYSTEM, _HEARD, _SAID = "You are Ana, talking with Ben.", "Ben: Good morning!", "Ana: Hello, Ben."
CHAT = (Message("system", _SYSTEM), Message("user", _HEARD), Message("assistant", _SAID), Message("user", "Ben: Well?"))
_MOST = 200
"""Marks that are tried; vocabularies have hundreds that are of one kind."""


@dataclass(frozen=True)
class Check:
    """The result of one check."""

    name: str
    ok: bool
    """False where a run refuses the model."""
    told: str
    warns: bool = False
    """True where a run takes the model and says this."""


def suitability(model: LlamaModel, chat: ChatTokenizer) -> list[Check]:
    """Return all checks that decide about a run; `vocab_only` is enough."""
    return [
        _begin(model, chat.prompt(CHAT, "Ana")),
        _reply_begins(chat),
        _end(chat),
        _inert(model, chat),
        _drawn(model, chat),
    ]


def ensure_suits(model: LlamaModel, say: Callable[[str], None]) -> None:
    """Say what a run with this model has to know. Raises BackendUnavailable where it cannot be used."""
    for check in suitability(model, ChatTokenizer(model)):
        if not check.ok:
            raise BackendUnavailable(
                f"{model.path.name}: {check.told}", hint=f"localsim models check {model.path} shows all of it"
            )
        if check.warns:
            say(f"warning: {model.path.name}: {check.told}")


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


def _reply_begins(chat: ChatTokenizer) -> Check:
    template = chat.template
    if not template.asks_elsewhere:
        return Check("reply", True, "a reply begins where the template asks for it")
    own, asked = _end_of(template.begins), _end_of(template.asks_elsewhere)
    told = (
        f"a reply begins after {own!r}, as the template's own replies do, and not after {asked!r}, where it asks for it"
    )
    return Check("reply", True, told, warns=True)


def _end_of(text: str) -> str:
    return text if len(text) <= 60 else f"...{text[-60:]}"


def _end(chat: ChatTokenizer) -> Check:
    try:
        last = chat.chat_pieces([*CHAT[:3]])[-1]
    except BackendUnavailable as error:
        told = f"{error.message}; so a line break ends each turn, and it cannot be fine-tuned"
        return Check("end of a reply", True, told, warns=True)
    return Check("end of a reply", True, f"{last.text.strip().split(chr(10))[0]!r} ends a generation")


def _marks(model: LlamaModel, chat: ChatTokenizer) -> list[str]:
    """The names of tokens that are no text, those of the template first."""
    silent = [model.token_text(token) for token in model.silent_tokens()[:_MOST]]
    others = [model.token_text(token) for token in model.mark_tokens()[:_MOST]]
    return [name for name in dict.fromkeys([*chat.role_marks, *silent, *others]) if len(name.strip()) > 1]


def _inert(model: LlamaModel, chat: ChatTokenizer) -> Check:
    """Check that marks written in an utterance are no marks in a prompt."""
    alone = {name: model.tokenize(name, special=True) for name in _marks(model, chat)}
    wrong = [name for name, tokens in alone.items() if _holds(chat.content(f"Ana: {name} hello"), tokens)]
    told = ", ".join(wrong[:3])
    if not wrong:
        return Check("content", True, "marks written in an utterance stay plain characters")
    if all(len(alone[name]) > 1 for name in wrong):
        told += ": written in a scenario or by a person it reads like the template's own, which has no token for it"
        return Check("content", True, told, warns=True)
    return Check("content", False, f"{told} would act as control tokens")


def _holds(tokens: tuple[int, ...], mark: list[int]) -> bool:
    return any(list(tokens[place : place + len(mark)]) == mark for place in range(len(tokens)))


def _drawn(model: LlamaModel, chat: ChatTokenizer) -> Check:
    """Check that no token that is a mark can be drawn."""
    open_to_draw = chat.mark_tokens - Candidates(model, marks=chat.mark_tokens).barred
    wrong = sorted(map(model.token_text, open_to_draw))
    text = "no mark can be drawn inside an utterance"
    return Check("drawing", not wrong, text if not wrong else f"{', '.join(wrong[:3])} can be drawn in an utterance")


def thinking(chat: ChatTokenizer, source: str) -> str:
    """Return how a model thinks, for people."""
    template = chat.template
    judge = "; as a judge the model thinks before each verdict" if template.thinks else ""
    if "enable_thinking" in source:
        return f"a thinking model: for turns its template switches thinking off, and the grammar forbids it{judge}"
    if template.thinks or THINK in source or "reasoning" in source:
        turns = "a thinking model: the grammar of a turn forbids thoughts; without a grammar they count as malformed"
        return turns + judge
    return "the model does not think before it replies"
