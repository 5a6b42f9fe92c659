"""Text as lexicons read it."""

from __future__ import annotations

_STRAIGHT = str.maketrans("’‘“”\u00a0", "''\"\" ")


def plain(text: str) -> str:
    """Return `text` in lower case with straight quotes, character for character, so that positions stay the same."""
    if text.isascii():
        return text.lower()
    straight = text.translate(_STRAIGHT)
    if straight.isascii():
        return straight.lower()
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in straight)
