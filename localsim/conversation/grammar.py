"""The form of replies: lines of actions, as a GBNF grammar and as questions that an engine asks while it writes.

The grammar of a script contains the stop rules: after the last turn, a `leave` or the n-th `none` in a row it admits
no further line, so the writer obeys the same rules as agents.
GBNF: https://github.com/ggml-org/llama.cpp/tree/master/grammars
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from os.path import commonprefix

_HEADS = {"speak": ":", "leave": " [leave", "none": " [none]\n"}
"""The text that must follow the name once the action is decided; for actions not listed it is ` [action]:`.

The bracket after `leave` is not forced: if `]:` is one token, as in the default model's vocabulary, a model
that is given `]` does not continue with `:`, and the agent leaves without a goodbye.
"""


@dataclass(frozen=True)
class ActionLines:
    """A form of `turns` lines from `turn` on, the first one begun by the prefill. Implements `exchange.Form`."""

    names: tuple[str, ...]
    """Names of the agents in speaking order."""
    actions: tuple[str, ...]
    max_chars: int
    silence: int
    turn: int
    turns: int
    nones: int
    """Number of consecutive `none` turns directly before `turn`."""
    given: int = 0
    """Number of whole lines in the prefill."""

    def grammar(self) -> str:
        """Return the GBNF of the text after the start of the first line."""
        start = self.turn % len(self.names)
        order = self.names[start:] + self.names[:start]
        # A last turn ends the form whatever the silence before it, so that all turns of agents share one grammar.
        nones = self.nones if self.turns > 1 else 0
        following = order if self.turns > 1 else ()
        return _grammar(following, self.actions, self.max_chars, self.silence, self.turns, nones)

    def finished(self, text: str) -> bool:
        """Return True if the last line is closed and no other may follow."""
        return text.endswith("\n") and self._ends(self._written(text))

    def forced(self, text: str) -> str:
        """Return the rest of an action's word, or the name that begins the next line."""
        written, line = self._written(text), text.rpartition("\n")[2]
        if not line:
            return "" if self._ends(written) else self._name(len(written))
        rest = line.removeprefix(self._name(len(written)))
        ways = [way for action in self.actions if (way := _head(action)).startswith(rest)]
        return commonprefix(ways)[len(rest) :]

    def in_text(self, text: str) -> bool:
        """Return True if the last line has reached the text after its colon."""
        return ":" in text.rpartition("\n")[2]

    def utterances(self, text: str) -> tuple[tuple[str, str], ...]:
        """Return (speaker, text) of the closed lines from `turn` on."""
        said = ((self._name(number), line.partition(": ")[2]) for number, line in enumerate(self._written(text)))
        return tuple((name, body) for name, body in said if body)

    def speaker(self, text: str) -> str:
        """Return the speaker of the line that is being written."""
        return self._name(len(self._written(text)))

    def _name(self, line: int) -> str:
        """Return the speaker of a line, counted from `turn`."""
        return self.names[(self.turn + line) % len(self.names)]

    def _written(self, text: str) -> list[str]:
        """Return the closed lines from `turn` on, without blank ones."""
        return [line for line in text.split("\n")[self.given : -1] if line]

    def _ends(self, lines: list[str]) -> bool:
        """Return True if a stop rule or the number of lines forbids another line after these."""
        written = [self._action(number, line) for number, line in enumerate(lines)]
        if not written:
            return False
        if len(written) >= self.turns or written[-1] == "leave":
            return True
        spoken = [index for index, action in enumerate(written) if action != "none"]
        silent = len(written) - spoken[-1] - 1 if spoken else len(written) + self.nones
        return silent >= self.silence

    def _action(self, number: int, line: str) -> str:
        head = line.removeprefix(self._name(number)).partition(":")[0]
        return head[2:-1] if head.startswith(" [") else "speak"


def _head(action: str) -> str:
    return _HEADS.get(action, f" [{action}]:")


@lru_cache(maxsize=512)
def _grammar(
    order: tuple[str, ...], actions: tuple[str, ...], max_chars: int, silence: int, turns: int, nones: int
) -> str:
    """Return the GBNF of `turns` lines by the speakers in `order`; rule tInC is turn I after C `none` turns in a row.

    The last line may end with a line break or with the model's own end of text.
    """
    rules = [f"root ::= t0n{nones}", *_shared_rules(max_chars)]
    rules += [f"{_rule(action)} ::= {_tail(action)}" for action in actions]
    for index in range(turns):
        last = index + 1 == turns
        following = "" if last else _literal("\n" + order[(index + 1) % len(order)])
        for count in range(silence):
            ways = []
            for action in actions:
                after = count + 1 if action == "none" else 0
                ends = last or action == "leave" or after >= silence
                then = r'"\n"?' if ends else f"{following} t{index + 1}n{after}"
                ways.append(f"{_rule(action)} {then}")
            rules.append(f"t{index}n{count} ::= {' | '.join(ways)}")
    return "\n".join(rules) + "\n"


def _shared_rules(max_chars: int) -> list[str]:
    """Return the rules of a text of 1 to max_chars characters on one line that does not begin with a space."""
    return [
        f'text ::= ": " first char{{0,{max_chars - 1}}}',
        r"first ::= [^ \x00-\x1f\x7f]",
        r"char ::= [^\x00-\x1f\x7f]",
    ]


def _tail(action: str) -> str:
    """Return the GBNF of the part of a line after the name, for one action."""
    if action == "speak":
        return "text"
    word = _literal(f" [{action}]")
    return {"leave": f"{word} text?", "none": word}.get(action, f"{word} text")


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _rule(action: str) -> str:
    return "do-" + action.replace(" ", "-")
