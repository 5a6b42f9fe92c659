"""A window for conversations that outgrow their context: the instructions and the newest turns stay.

The number of messages left out is stored with the turn; nothing is summarised or invented.
"""

from __future__ import annotations

from dataclasses import replace

from localsim.backends.llama.chat import ChatTokenizer
from localsim.conversation.requests import Request, reply_begun

STRIDE = 4
"""Turns that leave the window at a time: between two moves the cache of the rest stays usable."""


def windowed(
    chat: ChatTokenizer, request: Request, written: dict[str, tuple[int, ...]] | None, room: int
) -> tuple[list[int], int] | None:
    """Tokens of the longest newest part that fits into `room` tokens, and the number of messages or lines left out.

    A reply that has begun loses its oldest lines; another prompt loses its oldest pairs of user and assistant
    messages, so that roles still alternate. None where even the instructions and the last turn do not fit.
    """
    for dropped in range(STRIDE, _droppable(request) + STRIDE, STRIDE):
        shorter, missing = _without(request, min(dropped, _droppable(request)))
        tokens = chat.prompt(shorter.messages, shorter.prefill, written, note=request.note)
        if len(tokens) <= room:
            return tokens, missing
    return None


def _droppable(request: Request) -> int:
    """The number of lines, or of message pairs, that may be left out."""
    chat, lines = reply_begun(request.messages)
    return len(lines) or (len(chat) - 2) // 2


def _without(request: Request, count: int) -> tuple[Request, int]:
    """The request without its `count` oldest pairs or lines, and the number of messages or lines left out."""
    chat, lines = reply_begun(request.messages)
    if lines:
        return replace(request, messages=(*chat, *request.messages[len(chat) + count :])), count
    return replace(request, messages=(chat[0], *chat[1 + 2 * count :])), 2 * count
