"""Variants of a scenario file: lists of values fill the slots of its texts, so that one idea becomes many scenarios.

    vary:
      place: [the library, the station]          # {place} in any text
      deal: [{least: 100, most: 120}, {least: 180, most: 240}]   # {deal.least} and {deal.most} change together
      facts: shuffled                             # each agent's facts stand in another order

All of this happens in the tree of YAML nodes, before anything is validated: a defect keeps its line and column.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import yaml

from localsim.conversation.rules.values import Place
from localsim.errors import suggest
from localsim.scenarios.documents import placed

Values = Sequence[Mapping[str, yaml.ScalarNode]]
"""The values of one slot; the words of a value are '' for {slot}, and KEY for {slot.KEY}."""
KEY = "vary"
ORDER = "facts"
"""The entry of `vary` that is no slot: it shuffles facts."""
_SLOT = re.compile(r"\{([a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)?)\}")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LIKE_A_SLOT = re.compile(r"\{\s*[A-Za-z]\w*(?:\.\w+)?\s*\}")
_BEGINNINGS = (6, 12, 20, 30)
"""Numbers of variants that people take; the values of each slot shall be about equally frequent in each of them."""
_TEXT = "tag:yaml.org,2002:str"


@dataclass(frozen=True)
class Varied:
    """What a file says about its variants."""

    slots: Mapping[str, Values]
    orders: int = 1
    """The number of orders that the facts of the agent with the most facts can have; 1 if they stay as they are."""

    @property
    def total(self) -> int:
        """The number of different choices of values; the orders of facts are not counted."""
        return math.prod(len(values) for values in self.slots.values())

    def chosen(self, number: int) -> dict[str, yaml.ScalarNode]:
        """Return `slot` or `slot.key` -> the value in variant `number`, counted from 1."""
        found: dict[str, yaml.ScalarNode] = {}
        for (name, values), index in zip(self.slots.items(), self._places(self._step, number), strict=True):
            found |= {f"{name}.{key}".rstrip("."): value for key, value in values[index].items()}
        return found

    @cached_property
    def _step(self) -> int:
        """The variants walk through all choices in steps of this size, so that none comes twice before all have come.

        Of steps near the golden ratio, the one whose first variants hold the values of each slot most equally.
        """
        near = self.total * 618_034 // 1_000_000
        steps = (step for step in range(max(1, near - 200), near + 400) if math.gcd(step, self.total) == 1)
        return min(islice(steps, 60), key=self._unequal, default=1)

    def _unequal(self, step: int) -> int:
        """By how much the values of slots differ in number among the first variants, summed over a few beginnings."""
        first = [self._places(step, number) for number in range(1, min(self.total, max(_BEGINNINGS)) + 1)]
        sizes = [len(values) for values in self.slots.values()]
        found = 0
        for most in _BEGINNINGS:
            for size, column in zip(sizes, zip(*first[:most], strict=True), strict=True):
                counts = Counter(column)
                found += max(counts.values()) - (min(counts.values()) if len(counts) == size else 0)
        return found

    def _places(self, step: int, number: int) -> list[int]:
        rest, found = (number - 1) * step % self.total, []
        for values in self.slots.values():
            rest, index = divmod(rest, len(values))
            found.append(index)
        return found


def varied(root: yaml.MappingNode) -> tuple[Varied | None, list[tuple[Place, str]]]:
    """Return what a document says about its variants, and the defects of that; None for a document without `vary`."""
    node = next((value for key, value in root.value if key.value == KEY), None)
    if node is None:
        return None, []
    defects = list(_defects(node))
    if defects:
        return None, defects
    entries = {key.value: value for key, value in node.value}
    slots = {name: [_words(item) for item in value.value] for name, value in entries.items() if name != ORDER}
    most = max(map(len, _facts(root)), default=0)
    found = Varied(slots, math.factorial(min(most, 12)) if ORDER in entries else 1)
    alone = [((KEY, ORDER), "no agent has two facts, so there is nothing to shuffle")]
    return found, [*_loose(root, found), *(alone if ORDER in entries and most < 2 else ())]


def fill(root: yaml.MappingNode, found: Varied, number: int, typed: Sequence[str] = ()) -> list[tuple[Place, str]]:
    """Make a document its variant `number`, counted from 1: the slots filled, the id with the number behind it.

    The values are also `parameters` of the document. `typed` are the keys under which a number is a number; elsewhere
    it stays the text that was typed. Returns a defect where there is no such variant.
    """
    most = found.total * found.orders
    if number > most:
        return [((KEY,), f"the lists give {most} variants, so there is no variant {number}")]
    chosen = found.chosen(number)
    root.value[:] = [pair for pair in root.value if pair[0].value != KEY]
    for place, node in _texts(root):
        whole = _SLOT.fullmatch(node.value)
        if whole:
            node.value = chosen[whole[1]].value
            node.tag = chosen[whole[1]].tag if place[0] in typed else _TEXT
        else:
            node.value = _SLOT.sub(lambda match: chosen[match[1]].value, node.value)
    entries = {key.value: value for key, value in root.value}
    if isinstance(entries.get("id"), yaml.ScalarNode):
        entries["id"].value, entries["id"].tag = f"{entries['id'].value}-{number}", _TEXT
    if found.orders > 1:
        for index, facts in enumerate(_facts(root)):
            random.Random(f"{number}/{index}").shuffle(facts)
    _note(root, entries.get("parameters"), chosen, number)
    return []


def _defects(node: yaml.Node) -> Iterator[tuple[Place, str]]:
    if not isinstance(node, yaml.MappingNode) or not node.value:
        yield (KEY,), "must be a mapping of slots to lists of values"
        return
    for key, value in node.value:
        place: Place = (KEY, key.value)
        if key.value == ORDER:
            if value.value != "shuffled":
                yield place, "can only be `shuffled`; a slot needs another name"
        elif not _NAME.fullmatch(key.value):
            yield place, "a slot is a word of small letters, digits and underscores"
        elif not isinstance(value, yaml.SequenceNode) or not value.value:
            yield place, "must be a list of values"
        else:
            yield from _defects_of_values(place, value.value)


def _defects_of_values(place: Place, values: Sequence[yaml.Node]) -> Iterator[tuple[Place, str]]:
    for index, item in enumerate(values):
        inner = [part for _, part in item.value] if isinstance(item, yaml.MappingNode) else [item]
        if not inner or not all(isinstance(each, yaml.ScalarNode) for each in inner):
            yield (*place, index), "must be a text or number, or a mapping of words to them"
        elif not isinstance(values[0], yaml.SequenceNode) and set(_words(item)) != set(_words(values[0])):
            yield (*place, index), "must have the same words as the first value of this slot"


def _words(item: yaml.Node) -> dict[str, yaml.ScalarNode]:
    if isinstance(item, yaml.MappingNode):
        return {key.value: value for key, value in item.value}
    assert isinstance(item, yaml.ScalarNode)
    return {"": item}


def _loose(root: yaml.MappingNode, found: Varied) -> Iterator[tuple[Place, str]]:
    """Yield slots of texts without values, and values that no text has a slot for."""
    known = set(found.chosen(1))
    used: set[str] = set()
    for place, node in _texts(root):
        slots = _LIKE_A_SLOT.findall(node.value)
        if slots and place[0] == KEY:
            yield place, f"{slots[0]}: a value is not filled itself"
            continue
        for written in slots:
            used.add(slot := written.strip("{}"))
            if slot not in known:
                yield place, f"{written} has no values under `vary`{suggest(slot, known, inline=True)}"
    for place, _ in placed(root):
        key = place[-1] if place and place[0] != KEY else None
        if isinstance(key, str) and _LIKE_A_SLOT.search(key):
            yield place, f"{key}: a key is not filled; only texts are"
        if place[:-1] == ("parameters",) and key in {"variant", *known}:
            yield place, f"{key} is written here by `vary`; leave it out"
    if "variant" in found.slots:
        yield (KEY, "variant"), "the number of the variant is stored under this name; choose another"
    for name, values in found.slots.items():
        for key in values[0]:
            if (slot := f"{name}.{key}".rstrip(".")) not in used:
                yield (KEY, name), f"no text has the slot {{{slot}}}"


def _texts(root: yaml.Node) -> Iterator[tuple[Place, yaml.ScalarNode]]:
    """Yield every value that is no mapping and no list, with its place."""
    return ((place, node) for place, node in placed(root) if isinstance(node, yaml.ScalarNode))


def _facts(root: yaml.MappingNode) -> list[list[yaml.Node]]:
    """Return the facts of each agent that has some: the lists of the document, to be changed in place."""
    agents = next((value for key, value in root.value if key.value == "agents"), None)
    return [
        value.value
        for agent in (agents.value if isinstance(agents, yaml.SequenceNode) else ())
        for key, value in (agent.value if isinstance(agent, yaml.MappingNode) else ())
        if key.value == ORDER and isinstance(value, yaml.SequenceNode)
    ]


def _note(root: yaml.MappingNode, noted: yaml.Node | None, chosen: Mapping[str, yaml.ScalarNode], number: int) -> None:
    """Add the number of the variant and its values to the parameters, which only judges see."""
    if noted is None:
        noted = yaml.MappingNode("tag:yaml.org,2002:map", [], root.start_mark, root.end_mark)
        root.value.append((_text("parameters", root), noted))
    if isinstance(noted, yaml.MappingNode):
        values = {"variant": yaml.ScalarNode("tag:yaml.org,2002:int", str(number), root.start_mark, root.end_mark)}
        values |= {slot: copy(value) for slot, value in chosen.items()}
        noted.value += [(_text(slot, root), value) for slot, value in values.items()]


def _text(text: str, at: yaml.Node) -> yaml.ScalarNode:
    return yaml.ScalarNode(_TEXT, text, at.start_mark, at.end_mark)
