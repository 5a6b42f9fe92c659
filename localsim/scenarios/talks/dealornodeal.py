"""Deal or No Deal (Lewis et al. 2017, arXiv 1706.05125): two people divide books, hats and balls.

A line is a dialogue as one of the two saw it (`YOU:`), with tags. Most dialogues are in the file twice, once as each
person saw them; both lines become one conversation. What an item is worth to a person is a private fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localsim.conversation.episode import Score
from localsim.conversation.human_talks import NAMES, HumanTalk, LeftOut, Part, checked, id_of, loaded, turns_of
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.wording.wordings import counted, listed
from localsim.errors import InvalidInput
from localsim.families import cocoa

_ITEMS = ("book", "hat", "ball")
_HINT = "a line is <input> ... </input> <dialogue> YOU: ... <eos> THEM: ... </dialogue> <output> ... </output>"
_ITEM = re.compile(r"item(\d)=(\d+)")
_SPEAKER = re.compile(r"(YOU|THEM):\s*(.*)", re.DOTALL)
_PAIR = (NAMES[0], NAMES[1])


@dataclass(frozen=True)
class Line:
    """A line of the file; person 0 begins to speak, so both views of a dialogue are equal but for `began`."""

    turns: tuple[tuple[int, str], ...]
    """(0 or 1, words)."""
    counts: tuple[int, ...]
    """Number of books, hats and balls."""
    values: tuple[tuple[int, ...], tuple[int, ...]]
    """Worth of each item to person 0 and to person 1; () if the file does not tell."""
    shares: tuple[tuple[int, ...], tuple[int, ...]] | None
    """Items that each gets; None without agreement."""
    result: str
    """`agreed`, or the corpus's word for the failure."""
    began: bool
    """True if the person of this view began."""
    items: tuple[str, ...] = _ITEMS
    """The kinds of things."""


def read_lines(text: str, path: str) -> Iterator[HumanTalk | LeftOut]:
    """Yield the conversations of a file, and the reasons for those left out.

    Raises InvalidInput with the number of the line.
    """
    waiting: dict[tuple[Any, ...], int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        found = _line(line, where)
        # The other view of a dialogue may be any line, and the same words may be said in two dialogues.
        key = (found.turns, found.counts, found.result)
        if waiting.get((*key, not found.began), 0):
            waiting[*key, not found.began] -= 1
            continue
        waiting[*key, found.began] = waiting.get((*key, found.began), 0) + 1
        said = [(_PAIR[person], *_said(words)) for person, words in found.turns]
        try:
            yield HumanTalk(
                name=str(number),
                where=where,
                scenario=_scenario(found, where, path),
                turns=turns_of(said),
                outcome=tuple(_outcome(found, _points(found))),
            )
        except LeftOut as reason:
            yield reason


def _said(words: str) -> tuple[str, str]:
    return ("action", "selects the division") if words == "<selection>" else ("speak", words)


def _tagged(line: str, tag: str) -> str | None:
    match = re.search(rf"<{tag}>(.*?)</{tag}>", line, re.DOTALL)
    return match[1].strip() if match else None


def _line(line: str, where: str) -> Line:
    given, said, output = (_tagged(line, tag) for tag in ("input", "dialogue", "output"))
    if given is None or said is None or output is None:
        missing = "input" if given is None else "dialogue" if said is None else "output"
        raise InvalidInput(f"no <{missing}>", where=where, hint=_HINT)
    numbers = _numbers(given, where)
    theirs = _tagged(line, "partner_input")
    mine, other = tuple(numbers[1::2]), tuple(_numbers(theirs, where)[1::2]) if theirs else ()
    spoken = [_spoken(part.strip(), where) for part in said.split("<eos>") if part.strip()]
    began = not spoken or spoken[0][0]
    shares = [int(count) for _, count in _ITEM.findall(output)]
    agreed = len(shares) == 2 * len(_ITEMS)
    split = (tuple(shares[:3]), tuple(shares[3:])) if agreed else None
    failure = re.search(r"<(\w+)>", output)
    return Line(
        turns=tuple((int(you != began), words) for you, words in spoken),
        counts=tuple(numbers[0::2]),
        values=(mine, other) if began else (other, mine),
        shares=split if split is None or began else (split[1], split[0]),
        result="agreed" if agreed else failure[1] if failure else "no_agreement",
        began=began,
    )


def _numbers(text: str, where: str) -> list[int]:
    parts = text.split()
    if len(parts) != 2 * len(_ITEMS) or not all(part.isdecimal() for part in parts):
        raise InvalidInput(f"{text[:60]!r} is not a count and a value of three items", where=where, hint=_HINT)
    return [int(part) for part in parts]


def _spoken(part: str, where: str) -> tuple[bool, str]:
    match = _SPEAKER.fullmatch(part)
    if match is None:
        raise InvalidInput(f"neither YOU: nor THEM: before {part[:60]!r}", where=where, hint=_HINT)
    return match[1] == "YOU", match[2]


def _scenario(line: Line, where: str, path: str) -> LoadedScenario:
    things = ", ".join(counted(count, item) for count, item in zip(line.counts, line.items, strict=True))
    known = "_".join("-".join(map(str, values)) or "unknown" for values in line.values)
    kinds = () if line.items == _ITEMS else line.items
    return loaded(
        path,
        where,
        id=id_of("items", *kinds, "-".join(map(str, line.counts)), known),
        title=f"Two people divide {listed([f'{item}s' for item in line.items])}",
        info={"what": "Two people divide items that are worth different points to each (Deal or No Deal corpus)."},
        setting=f"{_PAIR[0]} and {_PAIR[1]} divide {things}. Without agreement both get nothing.",
        agents=[_agent(name, line.items, values) for name, values in zip(_PAIR, line.values, strict=True)],
    )


def _agent(name: str, items: Sequence[str], values: tuple[int, ...]) -> dict[str, Any]:
    facts = [
        {"id": id_of(name.lower(), item), "text": f"One {item} is worth {counted(value, 'point')} to {name}."}
        for item, value in zip(items, values, strict=False)
    ]
    return {"name": name, "goal": "Get as many points as you can.", "facts": facts}


def _points(line: Line) -> tuple[float | None, ...]:
    """Return what the share of each person is worth to the person; None where the worth is not told."""
    return tuple(
        sum(count * value for count, value in zip(share, values, strict=True)) if values else None
        for share, values in zip(line.shares or (), line.values, strict=False)
    )


def _outcome(line: Line, points: Sequence[float | None]) -> Iterator[Score]:
    if line.result == "disconnect":
        return
    yield Score("corpus_deal", float(line.result == "agreed"), label=line.result, reason="what both selected")
    for name, reached in zip(_PAIR, points, strict=False):
        if reached is not None:
            yield Score("corpus_points", float(reached), agent=name)


# ---- the same task in cocoa's JSON ----------------------------------------------------------------------------------

_THING = {"Name", "Count", "Value"}
CHATS = "cocoa's JSON of Deal or No Deal"


def fits(data: Mapping[str, Any]) -> bool:
    """Return True for a chat on this task in cocoa's JSON."""
    return cocoa.has_items(cocoa.kbs_of(data), lambda item: item.keys() >= _THING)


class Thing(Part):
    """A kind of thing as one person sees it."""

    Name: str
    Count: int
    Value: int


class _Sides(Part):
    kbs: tuple[list[Thing], list[Thing]]


def read_chat(data: Mapping[str, Any], where: str, path: str) -> HumanTalk:
    """Return a chat of cocoa's JSON as a talk. Raises LeftOut, and InvalidInput for a defect."""
    chat = cocoa.chat_of(data, where)
    mine, theirs = checked(_Sides, {"kbs": chat.scenario.kbs}, where, cocoa.HINT).kbs
    items, counts = tuple(thing.Name for thing in mine), tuple(thing.Count for thing in mine)
    if (items, counts) != (tuple(thing.Name for thing in theirs), tuple(thing.Count for thing in theirs)) or not items:
        raise InvalidInput("the two see different things", where=where, hint=cocoa.HINT)
    outcome = chat.outcome or cocoa.Outcome()
    result = {None: "disconnect", True: "agreed", False: "no_agreement"}[outcome.valid_deal]
    values = (tuple(thing.Value for thing in mine), tuple(thing.Value for thing in theirs))
    line = Line((), counts, values, None, result, began=True, items=items)
    reward = outcome.reward if isinstance(outcome.reward, dict) else {}
    points = tuple(reward.get(str(number)) for number in range(2))
    turns = cocoa.turns_in(chat, _PAIR)
    return cocoa.talk_of(chat, where, _scenario(line, where, path), turns, _outcome(line, points), "")
