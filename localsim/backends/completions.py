"""Answers of the OpenAI chat API: words, thoughts, why the reply ended, counts, and the server's own reason for none.

https://platform.openai.com/docs/api-reference/chat/object - a server guarantees little of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from localsim.conversation.requests import MOST, half_pair
from localsim.conversation.rules.thoughts import parted

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Codes after which another attempt may help."""
_TOLD = 200
"""Characters of a server's own words that are kept."""
_LENGTH = re.compile(r"length|max|limit|window")
_WITHHELD = re.compile(
    r"filter|safety|toxic|guardrail|refus|block|prohibit|recitation|spii|sensitiv|abort|error|fail|malformed|cancel"
    r"|user_?stopped|insufficient|unload|interrupt|pause|tool|function|^other$|^language$"
)
_OWN = ("error", "message", "faultstring", "detail", "errors", "msg", "error_description", "fault", "reason", "title")
"""Where servers say what is wrong."""


@dataclass(frozen=True)
class Completion:
    """One answer of a server."""

    content: str | None
    text: str
    """The content without the thoughts in it."""
    thought: str
    thought_tokens: int
    """Tokens of the thought; 0 where the server does not count them separately."""
    cut: bool
    """True if a limit of tokens ended it."""
    prompt_tokens: int
    tokens: int
    withheld: str = ""
    """Why the server gives no whole reply, in its own words."""


class Again(Exception):
    """A failure after which another attempt may help, at once or after the seconds that the server asked for."""

    def __init__(self, problem: str, after_s: float | None = None) -> None:
        super().__init__(problem)
        self.after_s = after_s


class Refused(Exception):
    """The server's own reason, after which another attempt does not help."""


def decoded(body: bytes, secret: str) -> Any:
    """Return the JSON of a body, without a secret that the server repeats. Raises Again."""
    text = body.decode("utf-8-sig", "replace")
    try:
        return _without(json.loads(text), secret)
    except RecursionError:
        raise Again("a reply that is nested too deeply") from None
    except ValueError:
        raise Again(f"a reply that is not JSON: {' '.join(hidden(text, secret)[:60].split())!r}") from None


def hidden(text: str, secret: str) -> str:
    """Return a text without a secret, or a long part of it, in any case."""
    if len(secret) < _WORD:
        return text
    runs: list[list[int]] = []
    for found in _parts(secret).finditer(text):
        if runs and found.start() <= runs[-1][1]:
            runs[-1][1] = found.end(1)
        else:
            runs.append([found.start(), found.end(1)])
    for start, end in reversed(runs):
        text = f"{text[:start]}***{text[end:]}"
    return text


@lru_cache(maxsize=8)
def _parts(secret: str) -> re.Pattern[str]:
    """Return the pattern of every part of a secret with _TELLING characters; a shorter one is found as a whole word."""
    if len(secret) < _TELLING:  # often a name such as `lm-studio`
        return re.compile(rf"(?<!\w)(?=({re.escape(secret)})(?!\w))")
    most = min(_TELLING, len(secret))
    parts = {re.escape(secret[start : start + most]) for start in range(len(secret) - most + 1)}
    return re.compile(f"(?=({'|'.join(sorted(parts))}))", re.IGNORECASE)


_WORD = 6
"""A shorter secret is no key: servers without keys get words such as `none` and `EMPTY`, which people say too."""
_TELLING = 12
"""Characters of a secret that nobody may read; servers name a key by its first and last few."""


def _without(data: Any, secret: str) -> Any:
    if not secret:
        return data
    if isinstance(data, str):
        return hidden(data, secret)
    if isinstance(data, list):
        return [_without(each, secret) for each in data]
    if isinstance(data, dict):
        return {hidden(key, secret): _without(each, secret) for key, each in data.items()}
    return data


def completion(data: Any) -> Completion:
    """Read a server's answer. Raises Again or Refused, with the server's own words, where it has no message."""
    if not isinstance(data, dict) or data.get("error"):
        _raise_own(data)
    try:
        choice = data["choices"][0]
        message = choice["message"]
        content, apart = _content(message.get("content"))
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        _raise_own(data)
        raise Again(f"a reply without choices[0].message.content ({error!r})") from None
    if choice.get("error"):
        _raise_own(choice)
    counts = _counts(data.get("usage"))
    found = parted(content or "")
    thought = found.thought or apart or _thought_beside(message)
    if any(map(half_pair, (content or "", thought))):
        raise Again("a reply with half of a surrogate pair")
    reason = _reason(choice.get("finish_reason"))
    cut = _LENGTH.search(reason) is not None
    withheld = _withheld(message, reason, content, found.text, thought, cut=cut)
    return Completion(content, found.text, thought, counts[2], cut, counts[0], counts[1], withheld)


def _reason(told: Any) -> str:
    """Return why a reply ended, in lower case; some servers tell it as `{"type": "length"}`."""
    return str((told.get("type") if isinstance(told, dict) else told) or "").lower()


def _raise_own(data: Any) -> None:
    """Raise the server's own reason, if the answer holds one."""
    told, code = own_words(data), _code(data)
    if not isinstance(data, dict) and not told:
        raise Again("a reply that is not a JSON object")
    if told and (code is None or code in RETRIED):
        raise Again(told)
    if told:
        raise Refused(told)


def own_words(data: Any) -> str:
    """Return what a server says is wrong, from any of the usual places; '' where it says nothing."""
    if isinstance(data, list):
        return own_words(data[0]) if data else ""
    if not isinstance(data, dict):
        return ""
    for name in _OWN:
        found = data.get(name)
        if isinstance(found, str) and found.strip():
            return " ".join(found.split())[:_TOLD]
        if isinstance(found, dict | list) and found and not (name == "message" and "content" in found):
            return own_words(found) or " ".join(json.dumps(found)[:_TOLD].split())
    return ""


def _code(data: Any) -> int | None:
    error = data.get("error") if isinstance(data, dict) else None
    places = [each for each in (error, data) if isinstance(each, dict)]
    code = next((each[name] for each in places for name in ("code", "status") if name in each), None)
    if isinstance(code, str) and code.isdecimal() and len(code) < 6:
        return int(code)
    return code if isinstance(code, int) else None


def _content(content: Any) -> tuple[str | None, str]:
    """Return the words of a content, which may be a list of parts, and the thoughts among its parts."""
    if isinstance(content, str):
        return content, ""
    if not isinstance(content, list | dict):
        return None, ""
    words, thoughts = [], []
    for part in content if isinstance(content, list) else [content]:
        kind = part.get("type") if isinstance(part, dict) else "text"
        if kind in (None, "text", "output_text") and (isinstance(part, str) or isinstance(part.get("text"), str)):
            words.append(part if isinstance(part, str) else part["text"])
        elif kind in ("thinking", "reasoning", "thought"):
            thoughts.append(_thoughts(part))
    return ("".join(words) if words or isinstance(content, list) else None), "\n".join(filter(None, thoughts))


def _thoughts(told: Any) -> str:
    """Return the text of thoughts, which may be a text, a part with one, or a list of these."""
    if isinstance(told, list):
        return "\n".join(filter(None, map(_thoughts, told)))
    if isinstance(told, dict):
        return next(
            filter(None, (_thoughts(told.get(name)) for name in ("thinking", "text", "content", "summary"))), ""
        )
    return told.strip() if isinstance(told, str) else ""


def _thought_beside(message: Mapping[str, Any]) -> str:
    names = ("reasoning_content", "reasoning", "thinking", "thought", "reasoning_text", "reasoning_details")
    return next(filter(None, (_thoughts(message.get(name)) for name in (*names, "thinking_blocks"))), "")


def _counts(usage: Any) -> list[int]:
    """Return the tokens of prompt, reply and thought. Raises Again."""
    told = usage if isinstance(usage, dict) else {}
    details = told.get("completion_tokens_details")
    counted = details.get("reasoning_tokens") if isinstance(details, dict) else None
    prompt = told.get("prompt_tokens", told.get("input_tokens"))
    return [_count(each) for each in (prompt, told.get("completion_tokens", told.get("output_tokens")), counted)]


def _count(value: Any) -> int:
    """Return a number of tokens. Raises Again for what is none, because a server that errs there errs anywhere."""
    if value is None:
        return 0
    if not isinstance(value, int | float) or not 0 <= value < MOST or value != int(value):
        raise Again(f"a reply that counts {repr(value)[:40]} tokens")
    return int(value)


def _withheld(
    message: Mapping[str, Any], reason: str, content: str | None, text: str, thought: str, *, cut: bool
) -> str:
    parts = message.get("content")
    places = [message, *parts] if isinstance(parts, list) else [message]
    refusals = (each.get("refusal") for each in places if isinstance(each, dict))
    if refusal := next((each for each in refusals if isinstance(each, str) and each.strip()), ""):
        return f"the model refused: {' '.join(refusal.split())[:_TOLD]}"
    if _WITHHELD.search(reason):
        return f"the server gave no whole reply (finish_reason {reason[:60]})"
    if text.strip():
        return ""
    if message.get("tool_calls") or message.get("function_call"):
        return "the model called a tool"
    if thought:
        return "the limit of tokens ended it within its thoughts" if cut else "it holds thoughts and no words"
    return "" if content is None else "an empty reply"
