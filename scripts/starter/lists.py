"""Rows of lessons that are lists: paragraphs of questions and answers, in which the word that decides weighs most."""

from __future__ import annotations

from collections.abc import Callable

from localsim.backends.llama.chat import ChatTokenizer
from localsim.finetune.chats import TrainingRow

LENGTH = 1000
"""The greatest number of tokens in a row."""
REST = 0.05
"""Weight of the tokens after the one that decides."""


Piece = tuple[str, bool]
"""A piece of text, and True if its first token decides; only pieces that decide are learned."""


def packed(paragraph: Callable[[], list[Piece]], tokenizer: ChatTokenizer, group: str) -> TrainingRow:
    """Return as many paragraphs as fit into one row; a first paragraph that is too long is drawn again."""
    tokens: list[int] = []
    weights: list[float] = []
    while True:
        cut = [(tokenizer.content(text), decides) for text, decides in paragraph()]
        if len(tokens) + sum(len(ids) for ids, _ in cut) <= LENGTH:
            for ids, decides in cut:
                tokens += ids
                weights += [1.0] + [REST] * (len(ids) - 1) if decides else [0.0] * len(ids)
        elif tokens:
            return TrainingRow(tuple(tokens), tuple(weights), group)
