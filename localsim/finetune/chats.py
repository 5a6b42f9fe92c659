"""Training rows: p(next turn | instructions, own side, conversation so far), exactly as an agent is prompted.

One row for each (episode, agent): the whole chat as that agent saw it at its last turn. Only the agent's own turns
are training targets, each with the mark that ends it. A script gives one row, the writer's. A target counts in the loss
by its weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from localsim.backends.llama.chat import ChatTokenizer
from localsim.conversation.episode import Mode
from localsim.conversation.prompts import agent_messages, writer_messages
from localsim.conversation.requests import Message
from localsim.conversation.scenario import WRITER, Scenario
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput


@dataclass(frozen=True)
class TrainingRow:
    """One chat as tokens of the base model; tokens[i] counts `weights[i]` in the loss, and 0 is no training target."""

    tokens: Sequence[int]
    weights: Sequence[float]
    group: str
    """Rows of one group stand on one side of the split into training and validation: the scenario's id."""

    @property
    def learnt(self) -> tuple[bool, ...]:
        """The training targets: learnt[i] is True where tokens[i] has a weight."""
        return tuple(weight > 0 for weight in self.weights)

    @property
    def learnt_tokens(self) -> int:
        """The number of training targets."""
        return sum(self.learnt)


@dataclass(frozen=True)
class Chat:
    """A chat in the roles of any chat format; the agent's own turns are replies, and the last message is one."""

    name: str
    """The agent's name, given to the model as the start of each reply."""
    messages: tuple[Message, ...]
    group: str
    weights: tuple[float, ...] = ()
    """The weight of each reply in the loss, 0 for a reply that is no target. A chat with one reply may have a weight
    for each line of it. Empty: all replies count 1."""


def chats_of(scenario: Scenario, mode: Mode, transcript: Transcript) -> list[Chat]:
    """The chats of an episode: one for each agent who had a turn, or the writer's in script mode."""
    if not transcript.turns:
        return []
    if mode == "script":
        lines = "\n".join(turn.line for turn in transcript.turns)
        prompt = writer_messages(observe(scenario, mode, WRITER, Transcript()))
        # The writer did not write what the rules told.
        weights = tuple(0.0 if turn.told else 1.0 for turn in transcript.turns)
        weights = weights if 0.0 in weights else ()
        return [Chat(transcript.turns[0].speaker, (*prompt, Message("assistant", lines)), scenario.id, weights)]
    chats = []
    for name in scenario.names:
        own = [turn.index for turn in transcript.turns if turn.speaker == name]
        if own:
            heard = Transcript(transcript.turns[: own[-1]])
            messages = agent_messages(observe(scenario, mode, name, heard))
            last = Message("assistant", transcript.turns[own[-1]].line)
            chats.append(Chat(name, (*messages, last), scenario.id))
    return chats


def row_of(chat: Chat, tokenizer: ChatTokenizer) -> TrainingRow:
    """The tokens that the engine would evaluate and write: each reply is a fixed start, the rest, and an end mark."""
    tokens: list[int] = []
    weights: list[float] = []
    replies = iter(_weights_of_replies(chat))
    lines: tuple[float, ...] = (0.0,)
    for piece in tokenizer.chat_pieces(chat.messages):
        if piece.role == "assistant":
            start, rest = tokenizer.content(chat.name), tokenizer.content(piece.text.removeprefix(chat.name))
            lines = next(replies)
            tokens += [*start, *rest]
            weights += [0.0] * len(start) + _weights_of_tokens(rest, lines, tokenizer)
        else:
            tokens += piece.tokens
            weights += [lines[-1] if index < piece.ends_reply else 0.0 for index in range(len(piece.tokens))]
    return TrainingRow(tuple(tokens), tuple(weights), chat.group)


def _weights_of_replies(chat: Chat) -> list[tuple[float, ...]]:
    """The weights of each reply: one for the whole reply, or one for each of its lines. Raises InvalidInput."""
    replies = [message.content for message in chat.messages if message.role == "assistant"]
    given = chat.weights or (1.0,) * len(replies)
    if not all(math.isfinite(weight) and weight >= 0 for weight in given):
        raise InvalidInput("a weight of a chat must be 0 or a positive number", where=chat.group)
    if len(given) == len(replies):
        return [(weight,) for weight in given]
    if len(replies) == 1 and len(given) == replies[0].count("\n") + 1:
        return [given]
    raise InvalidInput(
        f"a chat with {len(replies)} replies has {len(given)} weights",
        where=chat.group,
        hint="give one weight for each reply, or for a single reply one for each of its lines",
    )


def _weights_of_tokens(rest: Sequence[int], lines: tuple[float, ...], tokenizer: ChatTokenizer) -> list[float]:
    """The weight of each token of a reply. A token belongs to the line in which it begins, a line break to its line."""
    if len(lines) == 1:
        return [lines[0]] * len(rest)
    weights, line = [], 0
    for token in rest:
        weights.append(lines[line])
        line += tokenizer.piece(token).count(b"\n")
    return weights


def clipped(rows: Sequence[TrainingRow], limit: int) -> tuple[list[TrainingRow], int]:
    """Rows of at most `limit` tokens, and the number of longer rows that were left out."""
    short = [row for row in rows if len(row.tokens) <= limit and row.learnt_tokens]
    return short, len(rows) - len(short)
