"""The form of replies: lines of actions, as a GBNF grammar and as questions that an engine asks while it writes.

The grammar of a script holds the stop rules themselves: after the last turn, a `leave` or the n-th `none` in a row
nothing more can be written, so the writer is bound exactly as agents are.
GBNF: https://github.com/ggml-org/llama.cpp/tree/master/grammars
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from os.path import commonprefix

from localsim.transcript import LINE_END, TEXT_START, line_start

_TEXTS = {"leave": "maybe", "none": ""}
"""Grammar rule of each action's text, where it is not `filled`."""


@dataclass(frozen=True)
class ActionLines:
    """`turns` lines from `turn` on, the first one's start given as prefill; see `localsim.backends.base.Form`."""

    names: tuple[str, ...]
    """Speaking order."""
    actions: tuple[str, ...]
    max_chars: int
    silence: int
    turn: int
    turns: int
    nones: int
    """How many turns of `none` stand before `turn`."""
    given: int = 0
    """Whole lines that stand in the prefill."""

    def grammar(self) -> str:
        """GBNF of what comes after the start of the first line."""
        start = self.turn % len(self.names)
        order = self.names[start:] + self.names[:start]
        # A last turn ends whatever was silent before it, so that all turns of agents share one grammar.
        nones = self.nones if self.turns > 1 else 0
        following = order if self.turns > 1 else ()
        return _grammar(following, self.actions, self.max_chars, self.silence, self.turns, nones)

    def finished(self, text: str) -> bool:
        """Whether the last line is closed and no other may follow."""
        return _closed(_last_line(text)) and self._ends(text)

    def forced(self, text: str) -> str:
        """The rest of an action's word and what stands before its text, or the start of the next line."""
        line = _last_line(text)
        if _closed(line):
            following = self.turn + len(self._written(text))
            return "" if self._ends(text) else "\n" + line_start(self.names[following % len(self.names)])
        if _ACTION not in line or TEXT_START in line:
            return ""
        word = line.partition(_ACTION)[2]
        ways = [way for action in self.actions if (way := _fixed(action)).startswith(word)]
        return commonprefix(ways)[len(word) :]

    def in_text(self, text: str) -> bool:
        """Whether the last line's text has begun and is not closed."""
        line = _last_line(text)
        return TEXT_START in line and not _closed(line)

    def utterances(self, text: str) -> tuple[str, ...]:
        """What the closed lines from `turn` on say or do, in plain characters."""
        said = (_text_of(line) for line in self._written(text) if _closed(line))
        return tuple(body for body in said if body)

    def _written(self, text: str) -> list[str]:
        return text.split("\n")[self.given :]

    def _ends(self, text: str) -> bool:
        """Whether a stop rule or the number of lines forbids another line after those of `text`, all closed."""
        written = [_action_of(line) for line in self._written(text)]
        if len(written) >= self.turns or written[-1] == "leave":
            return True
        spoken = [index for index, action in enumerate(written) if action != "none"]
        silent = len(written) - spoken[-1] - 1 if spoken else len(written) + self.nones
        return silent >= self.silence


_ACTION = '"action":"'


def _fixed(action: str) -> str:
    """What is certain once the action is: its word, the start of the text and, for none, the end of the line."""
    return action + TEXT_START + (LINE_END if action == "none" else "")


def _action_of(line: str) -> str:
    return line.partition(_ACTION)[2].partition('"')[0]


def _last_line(text: str) -> str:
    return text.rpartition("\n")[2]


def _text_of(line: str) -> str:
    body = line.partition(TEXT_START)[2].removesuffix(LINE_END)
    return re.sub(r"\\(.)", r"\1", body)


def _closed(line: str) -> bool:
    """Whether a line's text is closed: it ends with a quote that is not an escaped part of it, and a brace."""
    body = line.partition(TEXT_START)[2]
    before = body.removesuffix(LINE_END)
    return before != body and (len(before) - len(before.rstrip("\\"))) % 2 == 0


@lru_cache(maxsize=512)
def _grammar(
    order: tuple[str, ...], actions: tuple[str, ...], max_chars: int, silence: int, turns: int, nones: int
) -> str:
    """`turns` lines by the speakers in `order`; rule tInC stands for turn I after C turns of none in a row."""
    rules = [f"root ::= t0n{nones}", *_shared_rules(max_chars)]
    rules += [f"{_rule(action)} ::= {_tail(action)}" for action in actions]
    for index in range(turns):
        last = index + 1 == turns
        following = "" if last else _literal("\n" + line_start(order[(index + 1) % len(order)]))
        for count in range(silence):
            ways = []
            for action in actions:
                after = count + 1 if action == "none" else 0
                ends = last or action == "leave" or after >= silence
                ways.append(_rule(action) if ends else f"{_rule(action)} {following} t{index + 1}n{after}")
            rules.append(f"t{index}n{count} ::= {' | '.join(ways)}")
    return "\n".join(rules) + "\n"


def _shared_rules(max_chars: int) -> list[str]:
    """A text of 1 to max_chars characters that does not begin with a space, and one that may be empty."""
    return [
        f"filled ::= first char{{0,{max_chars - 1}}}",
        f"maybe ::= char{{0,{max_chars}}}",
        r'first ::= [^ "\\\x00-\x1f\x7f] | "\\" ["\\]',
        r'char ::= [^"\\\x00-\x1f\x7f] | "\\" ["\\]',
    ]


def _tail(action: str) -> str:
    """What follows the start of a line when the action is taken."""
    return f"{_literal(action + TEXT_START)} {_TEXTS.get(action, 'filled')} {_literal(LINE_END)}"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _rule(action: str) -> str:
    return "do-" + action.replace(" ", "-")
