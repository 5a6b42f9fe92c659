"""Training rows: p(next turn | instructions, own side, conversation so far), exactly as an agent is prompted.

An agent has one row for each episode: the whole chat as it saw it at its last turn. It has a further one from each turn
on at which it was not shown what came before. Only the agent's own turns
are training targets, each with the mark that ends it. A script gives one row, the writer's. A target counts in the loss
by its weight.

In a layout with notes, a prompt ends with a note that later prompts do not hold. So a row has all lines once, and after
them an aside for each note: the note and what was written after it. An aside sees the lines before its note, and no
other aside, as if each turn were a row of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from localsim.backends.llama.chat import ChatTokenizer
from localsim.conversation.beginning import own_from
from localsim.conversation.episode import Mode, Observation
from localsim.conversation.grants import NOTHING
from localsim.conversation.modes import at_once
from localsim.conversation.prompts import agent_messages, lines_of, note_of, writer_messages
from localsim.conversation.requests import Message
from localsim.conversation.rules.deciding import PHASED, Slot, slots
from localsim.conversation.rules.steps import Act, Rules, Stop, Tell
from localsim.conversation.scenario import WRITER, Scenario
from localsim.conversation.transcript import Transcript, Turn
from localsim.conversation.visibility import observe
from localsim.conversation.wording.layouts import FIRST, LAYOUTS
from localsim.errors import InvalidInput
from localsim.leakage.meaning import encode_of


@dataclass(frozen=True)
class TrainingRow:
    """One chat as tokens of the base model; tokens[i] counts `weights[i]` in the loss, and 0 is no training target."""

    tokens: Sequence[int]
    weights: Sequence[float]
    group: str
    """Rows of one group stand on one side of the split into training and validation: the scenario's id."""
    asides: Sequence[tuple[int, int]] = ()
    """For each aside the index of its first token, and the number of tokens at the row's start that it follows. The
    first aside ends the lines; each ends where the next begins."""

    @property
    def parts(self) -> tuple[tuple[int, int, int], ...]:
        """Start, end and the number of tokens followed of the lines (which follow none) and of each aside."""
        starts = [start for start, _ in self.asides]
        return tuple(zip([0, *starts], [*starts, len(self.tokens)], [0, *(at for _, at in self.asides)], strict=True))

    @property
    def reach(self) -> int:
        """The number of places that the row takes in a model's context: an aside stands in the place of later lines."""
        return max(at + end - start for start, end, at in self.parts)

    @property
    def learnt(self) -> tuple[bool, ...]:
        """The training targets: learnt[i] is True where tokens[i] has a weight."""
        return tuple(weight > 0 for weight in self.weights)

    @property
    def learnt_tokens(self) -> int:
        """The number of training targets."""
        return sum(self.learnt)


@dataclass(frozen=True)
class Noted:
    """A note, and the lines that were written after it."""

    at: int
    """The number of messages of the chat before them."""
    speaker: str
    """Given to the model as the start of the first line."""
    text: str
    lines: int = 1


@dataclass(frozen=True)
class Chat:
    """A chat in the roles of any chat format; the agent's own turns are replies, and the last message is one.

    With notes, all turns are lines of one reply, as in the layouts that have them.
    """

    name: str
    """The agent's name, given to the model as the start of each reply."""
    messages: tuple[Message, ...]
    group: str
    weights: tuple[float, ...] = ()
    """The weight of each reply in the loss, 0 for a reply that is no target. A chat with one reply may have a weight
    for each line of it. With notes, a weight belongs to a written line. Empty: all replies count 1."""
    notes: tuple[Noted, ...] = ()

    def weighed(self, weight: float) -> Chat:
        """The chat with each weight times a number."""
        count = sum(each.lines for each in self.notes) or sum(each.role == "assistant" for each in self.messages)
        return replace(self, weights=tuple(weight * each for each in self.weights or (1.0,) * count))


def chats_of(
    scenario: Scenario,
    mode: Mode,
    transcript: Transcript,
    layout: str = FIRST,
    rules: Rules | None = None,
    seed: int = 0,
) -> list[Chat]:
    """The chats of an episode: of each agent who had a turn, or the writer's in script mode.

    `layout` is that of the model to train (`conversation.wording.layouts`), `rules` are those of the scenario's game,
    and `seed` is that of the episode. An agent has one chat, and another one from each turn on at which it was not
    shown what came before, such as a question that is asked alone.
    """
    talk = _Talk(scenario, mode, transcript, layout, rules or PHASED, seed)
    names = (WRITER,) if mode == "script" else scenario.names
    if not LAYOUTS[layout].notes and any(agent.memories for agent in scenario.agents):
        hint = "train a model whose layout has notes"
        raise InvalidInput(
            "memories come to mind in notes, which this layout's rows lack", where=scenario.id, hint=hint
        )
    noted = LAYOUTS[layout].notes and (mode == "script" or len(names) > 1)
    return [chat for name in names for chat in (talk.noted(name) if noted else talk.plain(name))]


@dataclass(frozen=True)
class _Talk:
    """A finished conversation, prompt by prompt."""

    scenario: Scenario
    mode: Mode
    transcript: Transcript
    layout: str
    rules: Rules
    seed: int

    @cached_property
    def own(self) -> int:
        """The first turn that was not given: those before it are no training targets."""
        return own_from(self.scenario, self.transcript)

    @cached_property
    def places(self) -> Mapping[int, Slot]:
        """Turn -> the place that the rules gave to it; turns from one that they would not have given are missing."""
        found: dict[int, Slot] = {}
        talk, turns = Transcript(), self.transcript.turns
        while len(talk) < len(turns) and not isinstance(step := self.rules.next(self.scenario, talk, self.seed), Stop):
            given = (None,) if isinstance(step, Tell) else slots(self.scenario, talk, step)
            for slot in given[: len(turns) - len(talk)]:
                turn = turns[len(talk)]
                if turn.speaker != (slot.speaker if slot else ""):
                    return found
                found |= {turn.index: slot} if slot else {}
                talk = talk.plus(turn)
        return found

    def seen(self, name: str, index: int) -> Observation:
        """What a viewer could know before a turn."""
        place, heard = self.places.get(index), Transcript(self.transcript.turns[:index])
        ways, since = (place.ways, 0 if name == WRITER else place.since) if place else (None, 0)
        return observe(self.scenario, self.mode, name, heard, NOTHING, ways, since, encode_of(self.scenario))

    def prompt(self, seen: Observation) -> tuple[Message, ...]:
        """The prompt of a viewer without its note."""
        if seen.viewer == WRITER:
            lines = lines_of(seen.transcript) if LAYOUTS[self.layout].notes else ()
            return (*writer_messages(seen, layout=self.layout), *lines)
        return agent_messages(seen, layout=self.layout)

    def plain(self, name: str) -> Iterator[Chat]:
        """The chats of a viewer in a layout without notes."""
        turns = self.transcript.turns
        if name == WRITER and turns:
            lines = "\n".join(turn.line for turn in turns)
            # The writer wrote neither what the rules told nor what was given.
            weights = tuple(0.0 if turn.told or turn.index < self.own else 1.0 for turn in turns)
            messages = (*self.prompt(self.seen(name, 0)), Message("assistant", lines))
            yield Chat(turns[0].speaker, messages, self.scenario.id, weights if 0.0 in weights else ())
        own = [turn for turn in turns if turn.speaker == name and not turn.told]
        for _, group in groupby(own, lambda turn: place.since if (place := self.places.get(turn.index)) else 0):
            shown = list(group)
            last = shown[-1]
            messages = (*self.prompt(self.seen(name, last.index)), Message("assistant", last.line))
            weights = tuple(float(turn.index >= self.own) for turn in shown)
            if any(weights):
                yield Chat(name, messages, self.scenario.id, weights if 0.0 in weights else ())

    def noted(self, name: str) -> list[Chat]:
        """The chats of a viewer in a layout with notes."""
        chats: list[Chat] = []
        for part in self._parts(name):
            seen = self.seen(name, part[0].index)
            prompt, lines = self.prompt(seen), tuple(Message("line", turn.line) for turn in part)
            earlier = chats.pop() if chats and prompt[: len(chats[-1].messages)] == chats[-1].messages else None
            noted = Noted(len(prompt), part[0].speaker, note_of(seen, layout=self.layout), len(part))
            notes = (*(earlier.notes if earlier else ()), noted)
            chats.append(Chat(noted.speaker, (*prompt, *lines), self.scenario.id, notes=notes))
        return chats

    def _parts(self, name: str) -> Iterator[tuple[Turn, ...]]:
        """Yield the turns that are written after one note: an agent's own one by one, a writer's up to the next."""
        turns = self.transcript.turns
        if name != WRITER:
            yield from ((turn,) for turn in turns[self.own :] if turn.speaker == name and not turn.told)
            return
        start = 0
        while start < len(turns):
            talk = Transcript(turns[:start])
            step = self.rules.next(self.scenario, talk, self.seed)
            if start < self.own or turns[start].told or isinstance(step, Tell):
                start += 1
                continue
            end = len(turns)  # where the rules had stopped
            if isinstance(step, Act):
                end = start + len(at_once(self.rules, self.scenario, talk, self.seed, step, self.layout))
            yield turns[start:end]
            start = end


def row_of(chat: Chat, tokenizer: ChatTokenizer) -> TrainingRow:
    """The tokens that the engine would evaluate and write: each reply is a fixed start, the rest, and an end mark."""
    if chat.notes:
        return _noted_row(chat, tokenizer)
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


def _noted_row(chat: Chat, tokenizer: ChatTokenizer) -> TrainingRow:
    """The prompt with its lines, then an aside for each note."""
    texts = [_written(chat, each) for each in chat.notes]
    own = {
        chat.messages[each.at].content: (*tokenizer.content(each.speaker), *tokenizer.content(text))
        for each, text in zip(chat.notes, texts, strict=True)
        if each.lines == 1
    }
    tokens = tokenizer.prompt(chat.messages[: chat.notes[-1].at], "", own)
    weights, asides = [0.0] * len(tokens), []
    left = iter(chat.weights or (1.0,) * sum(each.lines for each in chat.notes))
    for each, text in zip(chat.notes, texts, strict=True):
        asides.append((len(tokens), len(tokenizer.prompt(chat.messages[: each.at], "", own))))
        given = (*tokenizer.content(f"{each.text}\n"), *tokenizer.content(each.speaker))
        rest = tokenizer.content(text)
        tokens += [*given, *rest]
        weights += [0.0] * len(given)
        weights += _weights_of_tokens(rest, tuple(next(left) for _ in range(each.lines)), tokenizer)
    return TrainingRow(tuple(tokens), tuple(weights), chat.group, tuple(asides))


def _written(chat: Chat, noted: Noted) -> str:
    """The text that the model writes after a note and the first speaker's name; every line ends with a break."""
    lines = chat.messages[noted.at : noted.at + noted.lines]
    return "".join(f"{line.content}\n" for line in lines).removeprefix(noted.speaker)


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
    """Rows that reach over at most `limit` tokens, and the number of longer rows that were left out."""
    short = [row for row in rows if row.reach <= limit and row.learnt_tokens]
    return short, len(rows) - len(short)
