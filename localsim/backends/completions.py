"""Answers of the OpenAI chat API: words, thoughts, why the reply ended, counts, and the server's own reason for none.

https://platform.openai.com/docs/api-reference/chat/object - a server guarantees little of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localsim.conversation.requests import MOST, half_pair
from localsim.conversation.rules.thoughts import parted

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Codes after which another attempt may help."""
_TOLD = 200
"""Characters of a server's own words that are kept."""
_LENGTH = frozenset({"length", "max_tokens", "max_output_tokens", "max_length", "model_length"})
_WITHHELD = re.compile(r"filter|safety|refus|block|prohibit|recitation|spii|sensitiv|abort|error|cancel|tool|function")


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
    text = body.decode("utf-8", "replace")
    try:
        return _without(json.loads(text), secret)
    except RecursionError:
        raise Again("a reply that is nested too deeply") from None
    except ValueError:
        raise Again(f"a reply that is not JSON: {' '.join(hidden(text, secret)[:60].split())!r}") from None


def hidden(text: str, secret: str) -> str:
    """Return a text without a secret."""
    return text.replace(secret, "***") if secret else text


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
        usage = data.get("usage") or {}
        counted = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
        counts = [_count(each) for each in (usage.get("prompt_tokens"), usage.get("completion_tokens"), counted)]
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        _raise_own(data)
        raise Again(f"a reply without choices[0].message.content ({error!r})") from None
    found = parted(content or "")
    thought = found.thought or apart or _thought_beside(message)
    if any(map(half_pair, (content or "", thought))):
        raise Again("a reply with half of a surrogate pair")
    reason = str(choice.get("finish_reason") or "").lower()
    cut = reason in _LENGTH
    withheld = _withheld(message, reason, content, found.text, thought, cut=cut)
    return Completion(content, found.text, thought, counts[2], cut, counts[0], counts[1], withheld)


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
    for name in ("error", "message", "detail", "errors", "msg"):
        found = data.get(name)
        if isinstance(found, str) and found.strip():
            return " ".join(found.split())[:_TOLD]
        if isinstance(found, dict | list) and found:
            return own_words(found) or " ".join(json.dumps(found)[:_TOLD].split())
    return ""


def _code(data: Any) -> int | None:
    error = data.get("error") if isinstance(data, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return int(code) if isinstance(code, int) or isinstance(code, str) and code.isdecimal() else None


def _content(content: Any) -> tuple[str | None, str]:
    """Return the words of a content, which may be a list of parts, and the thoughts among its parts."""
    if not isinstance(content, list):
        return (content if isinstance(content, str) else None), ""
    words, thoughts = [], []
    for part in content:
        if isinstance(part, dict) and isinstance(part.get("text"), str) and part.get("type") in (None, "text"):
            words.append(part["text"])
        elif isinstance(part, dict) and isinstance(part.get("thinking"), list | str):
            inner = part["thinking"]
            thoughts.append(inner if isinstance(inner, str) else _content(inner)[0] or "")
    return "".join(words), "\n".join(thoughts)


def _thought_beside(message: Mapping[str, Any]) -> str:
    names = ("reasoning_content", "reasoning", "thinking", "thought", "reasoning_text")
    return next((message[name].strip() for name in names if isinstance(message.get(name), str) and message[name]), "")


def _count(value: Any) -> int:
    """Return a number of tokens. Raises Again for what is none, because a server that errs there errs anywhere."""
    if value is None:
        return 0
    if not isinstance(value, int | float) or not 0 <= value < MOST or value != int(value):
        raise Again(f"a reply that counts {str(value)[:40]} tokens")
    return int(value)


def _withheld(
    message: Mapping[str, Any], reason: str, content: str | None, text: str, thought: str, *, cut: bool
) -> str:
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        return f"the model refused: {' '.join(refusal.split())[:_TOLD]}"
    if _WITHHELD.search(reason):
        return f"the server gave no whole reply (finish_reason {reason[:60]})"
    if text.strip():
        return ""
    if thought:
        return "the limit of tokens ended it within its thoughts" if cut else "it holds thoughts and no words"
    return "" if content is None else "an empty reply"
