"""The form of replies: lines of actions, as a GBNF grammar and as questions that an engine asks while it writes.

The grammar of a script contains the stop rules: after the last turn, a `leave` or the n-th `none` in a row it admits
no further line, so the writer obeys the same rules as agents. Rules about words, such as that all said goodbye, no
grammar can hold: `over` asks them after each line.
GBNF: https://github.com/ggml-org/llama.cpp/tree/master/grammars
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from os.path import commonprefix

from localsim.conversation.requests import Form
from localsim.conversation.rules.lines import Bound, Way, name_of
from localsim.conversation.rules.numbers import literal, values_gbnf

_HEADS = {"speak": ":", "leave": " [leave", "none": " [none]\n"}
"""The text that must follow the name once the action is decided; for actions not listed it is ` [action]:`.

The bracket after `leave` is not forced: if `]:` is one token, as in the default model's vocabulary, a model
that is given `]` does not continue with `:`, and the agent leaves without a goodbye.
"""


@dataclass(frozen=True)
class Line:
    """A line that will be written: its speaker, and the ways in which this agent can act."""

    speaker: str
    ways: tuple[Way, ...]
    closes: bool = True
    """True if the stop rules apply after it: it is the last one of its beat."""


@dataclass(frozen=True)
class Barred:
    """Characters that a text must not have."""

    first: str = ""
    """At its start."""
    never: str = ""
    """Anywhere."""


@dataclass(frozen=True)
class ActionLines(Form):
    """A form of one or more lines, the first one begun by the prefill."""

    lines: tuple[Line, ...]
    max_chars: int
    silence: int
    nones: int
    """Number of consecutive `none` turns directly before the first line."""
    barred: Barred = Barred()
    """Characters that the grammar keeps out of texts."""
    over: Callable[[Sequence[str]], bool] | None = field(default=None, compare=False)
    """Returns True if the talk is over after these closed lines by a rule that no grammar can hold."""
    spans: tuple[str, ...] = ()
    """What a single line may say; anything if empty."""

    def __getstate__(self) -> dict[str, object]:
        """Leave out `over`, which is asked only where the text is written."""
        return {**self.__dict__, "over": None}

    def grammar(self) -> str:
        """Return the GBNF of the text after the start of the first line."""
        if len(self.lines) == 1:
            # A last turn ends the form whatever the silence before it, so that all turns of agents share one grammar.
            return _grammar((Line("", self.lines[0].ways),), self.max_chars, self.silence, 0, self.barred, self.spans)
        return _grammar(self.lines, self.max_chars, self.silence, self.nones, self.barred)

    def finished(self, text: str) -> bool:
        return text.endswith("\n") and self._ends(self._written(text))

    def forced(self, text: str) -> str:
        """Return the rest of an action's word, or the name that begins the next line."""
        written, line = self._written(text), text.rpartition("\n")[2]
        if not line:
            return "" if self._ends(written) else self._line(len(written)).speaker
        current = self._line(len(written))
        rest = line.removeprefix(current.speaker)
        ways = [head for way in current.ways if (head := _head(way)).startswith(rest)]
        return commonprefix(ways)[len(rest) :]

    def choices(self, text: str) -> tuple[str, ...]:
        """Return the ways to act, or the fixed options of a move's value, where the next token decides among them.

        Forms without moves have none.
        """
        if not self._moving:
            return ()
        current = self.line(text)
        rest = text.rpartition("\n")[2].removeprefix(current.speaker)
        if rest in ("", " ["):
            heads = (_head(way).rstrip(":\n") or ":" for way in current.ways)
            return tuple(dict.fromkeys(head[len(rest) :] for head in heads if head.startswith(rest)))
        for way in current.ways:
            if not isinstance(way, str) and (rest == f" [{way.name}" or rest.startswith(f" [{way.name} ")):
                return _options(way, rest.removeprefix(f" [{way.name}"))
        return ()

    @cached_property
    def _moving(self) -> bool:
        return any(not isinstance(way, str) for line in self.lines for way in line.ways)

    def in_text(self, text: str) -> bool:
        return ":" in text.rpartition("\n")[2]

    def utterances(self, text: str) -> tuple[tuple[str, str], ...]:
        written = enumerate(self._written(text))
        said = ((self._line(number).speaker, line.partition(": ")[2]) for number, line in written)
        return tuple((name, body) for name, body in said if body)

    def speaker(self, text: str) -> str:
        return self.line(text).speaker

    def line(self, text: str) -> Line:
        """Return the line that is being written."""
        return self._line(len(self._written(text)))

    def _line(self, number: int) -> Line:
        """Return a line, counted from the first one; the last one stands for those that come too late."""
        return self.lines[min(number, len(self.lines) - 1)]

    def _written(self, text: str) -> list[str]:
        """Return the closed lines without blank ones."""
        return [line for line in text.split("\n")[:-1] if line]

    def _ends(self, lines: list[str]) -> bool:
        """Return True if a stop rule or the number of lines forbids another line after these."""
        written = [self._action(number, line) for number, line in enumerate(lines)]
        if not written:
            return False
        if len(written) >= len(self.lines):
            return True
        if self._line(len(written) - 1).closes:
            spoken = [index for index, action in enumerate(written) if action != "none"]
            silent = len(written) - spoken[-1] - 1 if spoken else len(written) + self.nones
            if written[-1] == "leave" or silent >= self.silence:
                return True
        return self.over is not None and self.over(lines)

    def _action(self, number: int, line: str) -> str:
        head = line.removeprefix(self._line(number).speaker).partition(":")[0]
        return head[2:-1] if head.startswith(" [") else "speak"


def _options(way: Bound, written: str) -> tuple[str, ...]:
    """Return the options of the value that begins now; () in the middle of a value or after the last.

    They begin with a space, unless it is written already: in some vocabularies a space before a digit is a token.
    """
    values = way.move.values
    place = written.count(",")
    spaced = written == " " or written.endswith(", ")
    if place >= len(values) or not (spaced or written == "" or written.endswith(",")):
        return ()
    param = values[place]
    options = param.one_of or (way.others if param.agents == "one" else ())
    return tuple(option if spaced else f" {option}" for option in options)


def _head(way: Way) -> str:
    if isinstance(way, str):
        return _HEADS.get(way, f" [{way}]:")
    # A space or bracket is forced only where nothing else can follow, for the same reason as after `leave`.
    move = way.move
    if move.values or move.text == "may":
        return f" [{move.name}"
    return f" [{move.name}]\n" if move.text == "no" else f" [{move.name}]:"


@lru_cache(maxsize=512)
def _grammar(
    lines: tuple[Line, ...], max_chars: int, silence: int, nones: int, barred: Barred, spans: tuple[str, ...] = ()
) -> str:
    """Return the GBNF of some lines; rule tInC is line I after C `none` turns in a row.

    The last line may end with a line break or with the model's own end of text.
    """
    ways = dict.fromkeys(way for line in lines for way in line.ways)
    names = {way: _rule(way, number) for number, way in enumerate(ways)}
    rules = [f"root ::= t0n{nones}", *_shared_rules(max_chars, barred, spans)]
    rules += [f"{names[way]} ::= {_tail(way)}" for way in ways]
    for index, line in enumerate(lines):
        last = index + 1 == len(lines)
        following = "" if last else literal("\n" + lines[index + 1].speaker)
        # Within a beat the silence can last longer than the stop rule allows.
        most = silence if index == 0 or lines[index - 1].closes else silence + 1
        for count in range(most):
            tails = []
            for way in line.ways:
                after = min(count + 1, silence) if way == "none" else 0
                ends = last or (line.closes and (way == "leave" or after >= silence))
                then = r'"\n"?' if ends else f"{following} t{index + 1}n{after}"
                tails.append(f"{names[way]} {then}")
            rules.append(f"t{index}n{count} ::= {' | '.join(tails)}")
    return "\n".join(rules) + "\n"


def _shared_rules(max_chars: int, barred: Barred, spans: tuple[str, ...]) -> list[str]:
    """Return the rules of a text of 1 to max_chars characters on one line that does not begin with a space."""
    if spans:
        return [f'text ::= ": " ({" | ".join(map(literal, spans))})']
    never, first = (re.sub(r'(["\[\]])', r"\\\1", chars) for chars in (barred.never, barred.first))
    return [
        f'text ::= ": " first char{{0,{max_chars - 1}}}',
        rf"first ::= [^ \x00-\x1f\x7f{first}{never}]",
        rf"char ::= [^\x00-\x1f\x7f{never}]",
    ]


def _tail(way: Way) -> str:
    """Return the GBNF of the part of a line after the name, for one way to act."""
    if way == "speak":
        return "text"
    if isinstance(way, str):
        word = literal(f" [{way}]")
        return {"leave": f"{word} text?", "none": word}.get(way, f"{word} text")
    values = values_gbnf(way)
    word = f'{literal(f" [{way.name} ")} {values} "]"' if values else literal(f" [{way.name}]")
    return word + {"no": "", "may": " text?", "must": " text"}[way.move.text]


def _rule(way: Way, number: int) -> str:
    """Return the name of a rule; two speakers' ways to make the same move can differ."""
    return f"do-{way.replace(' ', '-')}" if isinstance(way, str) else f"move-{name_of(way)}-{number}"
