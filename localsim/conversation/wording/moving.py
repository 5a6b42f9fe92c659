"""The sentences that tell agents and writers about moves and phases. They have one wording in all variants."""

from __future__ import annotations

from localsim.conversation.episode import Observation
from localsim.conversation.rules.lines import described
from localsim.conversation.rules.values import Move, Param
from localsim.conversation.scenario import WRITER
from localsim.conversation.transcript import Action, line_of

_ONLY_YOU = "only you can read this line"
_ONLY_NAMED = "only those whom you name can read this line"
_OPEN_SELF = "everybody can read this line, though it is meant for nobody"
_OPEN_NAMED = "everybody can read this line, though it is meant only for those whom you name"
_SCRIPT_SELF = "nobody else hears it"
_SCRIPT_NAMED = "only those who are named hear it"
_BY = "only {names}"
WRITE_PHASES = "Write the conversation now. Each line begins with the name of the one who acts."
"""The request for a script whose phases decide who acts; lines in brackets tell the writer about them."""
_BEGIN = "{about}: begin the line with {start}"
FEW_LEFT = "Few turns are left."
"""The note of the last turns before the limit, where moves can be made."""
SENTENCES = (_ONLY_YOU, _ONLY_NAMED, _OPEN_SELF, _OPEN_NAMED, _SCRIPT_SELF, _SCRIPT_NAMED, WRITE_PHASES, FEW_LEFT)


def move_lines(seen: Observation, name: str, *, example: bool = True) -> list[str]:
    """Return a line about each move that the viewer can make: what it is for, its values, its readers, an example.

    Without an example it says how the line begins: models that nobody taught the form choose the value of the example,
    and copy its dots (docs/log/prompts.md).
    """
    others = [agent.name for agent in seen.agents if agent.name != name]
    return [_line(seen, move, name, others, example=example) for move in seen.moves]


def move_note(seen: Observation) -> list[str]:
    """Return how the lines begin with which the viewer can make its moves now; a writer, those of all."""
    found = []
    for move in seen.moves:
        if seen.viewer == WRITER:
            by = f" ({_BY.format(names=' and '.join(move.by))})" if move.by else ""
            found.append(_begun(move, move.tell + by))
        elif seen.may(move.name):
            found.append(_begun(move, move.tell, seen.viewer))
    return found


def _begun(move: Move, about: str, name: str = "") -> str:
    start = f"{name} [{move.name}".strip() + ("" if move.values else "]")
    return f"{_BEGIN.format(about=about, start=start)}."


def _line(seen: Observation, move: Move, name: str, others: list[str], *, example: bool) -> str:
    writes = seen.viewer == WRITER
    notes = [described(param) for param in move.values]
    if move.readers == "self":
        notes.append(_SCRIPT_SELF if writes else _OPEN_SELF if seen.omniscient else _ONLY_YOU)
    elif move.readers == "named":
        notes.append(_SCRIPT_NAMED if writes else _OPEN_NAMED if seen.omniscient else _ONLY_NAMED)
    if writes and move.by:
        notes.append(_BY.format(names=" and ".join(move.by)))
        name = move.by[0]
        others = [agent.name for agent in seen.agents if agent.name != name]
    about = move.tell + (f" ({'; '.join(notes)})" if notes else "")
    if not example:
        return _begun(move, about, name)
    values = tuple(value for param in move.values for value in _example(param, others))
    return f"{about}: {line_of(name, Action(move.name, '' if move.text == 'no' else '...', values))}"


def _example(param: Param, others: list[str]) -> list[str]:
    if param.number is not None:
        low, high = param.number
        return [param.written(low + param.step * int((high - low) / param.step / 2))]
    if param.one_of is not None:
        return [param.one_of[0]]
    if param.agents is not None:
        return others[: 2 if param.agents == "several" else 1]
    return ["..."]
