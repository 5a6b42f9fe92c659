"""Training rows: p(next turn | instructions, own side, conversation so far), exactly as an agent is prompted.

One row for each (episode, agent): the whole chat as that agent saw it at its last turn. Only the agent's own turns
are training targets, each with the mark that ends it. A script gives one row, the writer's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localsim.backends.llama.chat import ChatTokenizer
from localsim.conversation.episode import Mode
from localsim.conversation.exchange import Message
from localsim.conversation.prompts import agent_messages, writer_messages
from localsim.conversation.scenario import WRITER, Scenario
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe


@dataclass(frozen=True)
class TrainingRow:
    """One chat as tokens of the base model; `learnt[i]` says whether tokens[i] is a training target."""

    tokens: tuple[int, ...]
    learnt: tuple[bool, ...]
    group: str
    """Rows of one group stand on one side of the split into training and validation: the scenario's id."""

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


def chats_of(scenario: Scenario, mode: Mode, transcript: Transcript) -> list[Chat]:
    """The chats of an episode: one for each agent who had a turn, or the writer's in script mode."""
    if not transcript.turns:
        return []
    if mode == "script":
        lines = "\n".join(turn.line for turn in transcript.turns)
        prompt = writer_messages(observe(scenario, mode, WRITER, Transcript()))
        return [Chat(transcript.turns[0].speaker, (*prompt, Message("assistant", lines)), scenario.id)]
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
    learnt: list[bool] = []
    for piece in tokenizer.chat_pieces(chat.messages):
        if piece.role == "assistant":
            start, rest = tokenizer.content(chat.name), tokenizer.content(piece.text.removeprefix(chat.name))
            tokens += [*start, *rest]
            learnt += [False] * len(start) + [True] * len(rest)
        else:
            tokens += piece.tokens
            ends = piece.ends_reply
            learnt += [index < ends for index in range(len(piece.tokens))]
    return TrainingRow(tuple(tokens), tuple(learnt), chat.group)


def clipped(rows: Sequence[TrainingRow], limit: int) -> tuple[list[TrainingRow], int]:
    """Rows of at most `limit` tokens, and the number of longer rows that were left out."""
    short = [row for row in rows if len(row.tokens) <= limit and row.learnt_tokens]
    return short, len(rows) - len(short)
