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
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import yaml

Place = tuple[str | int, ...]
Values = Sequence[Mapping[str, yaml.ScalarNode]]
"""The values of one slot; the words of a value are '' for {slot}, and KEY for {slot.KEY}."""
KEY = "vary"
ORDER = "facts"
"""The entry of `vary` that is no slot: it shuffles facts."""
_SLOT = re.compile(r"\{([a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)?)\}")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Varied:
    """What a file says about its variants."""

    slots: Mapping[str, Values]
    shuffled: bool

    @property
    def total(self) -> int:
        """The number of different choices of values; the orders of facts are not counted."""
        return math.prod(len(values) for values in self.slots.values())

    def chosen(self, number: int) -> dict[str, yaml.ScalarNode]:
        """Return `slot` or `slot.key` -> the value in variant `number`, counted from 1.

        The variants walk through all choices in steps of about the golden ratio, so that a few of them already hold
        the values of each slot about equally often, and none comes twice before all have come.
        """
        step = max(1, round(self.total * _GOLDEN))
        while math.gcd(step, self.total) != 1:
            step += 1
        rest = (number - 1) * step % self.total
        found: dict[str, yaml.ScalarNode] = {}
        for name, values in self.slots.items():
            rest, index = divmod(rest, len(values))
            found |= {f"{name}.{key}".rstrip("."): value for key, value in values[index].items()}
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
    found = Varied(slots, ORDER in entries)
    return found, list(_loose(root, found))


def fill(root: yaml.MappingNode, found: Varied, number: int) -> list[tuple[Place, str]]:
    """Make a document its variant `number`, counted from 1: the slots filled, the id with the number behind it.

    The values are also `parameters` of the document. Returns a defect where there is no such variant.
    """
    if number > found.total and not found.shuffled:
        return [((KEY,), f"the lists give {found.total} variants, so there is no variant {number}")]
    chosen = found.chosen(number)
    root.value[:] = [pair for pair in root.value if pair[0].value != KEY]
    for node in _scalars(root):
        whole = _SLOT.fullmatch(node.value)
        if whole:
            node.value, node.tag = chosen[whole[1]].value, chosen[whole[1]].tag
        else:
            node.value = _SLOT.sub(lambda match: chosen[match[1]].value, node.value)
    entries = {key.value: value for key, value in root.value}
    if isinstance(entries.get("id"), yaml.ScalarNode):
        entries["id"].value += f"-{number}"
    if found.shuffled:
        _shuffle(entries.get("agents"), number)
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
        elif set(_words(item)) != set(_words(values[0])):
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
    for place, node in _placed(root, ()):
        if place[0] == KEY:
            continue
        for slot in _SLOT.findall(node.value):
            used.add(slot)
            if slot not in known:
                yield place, f"{{{slot}}} has no values under `vary`"
    for name, values in found.slots.items():
        for key in values[0]:
            if (slot := f"{name}.{key}".rstrip(".")) not in used:
                yield (KEY, name), f"no text has the slot {{{slot}}}"


def _placed(node: yaml.Node, place: Place) -> Iterator[tuple[Place, yaml.ScalarNode]]:
    """Yield every value that is no mapping and no list, with its place."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _placed(value, (*place, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _placed(item, (*place, index))
    elif isinstance(node, yaml.ScalarNode):
        yield place, node


def _scalars(root: yaml.Node) -> Iterator[yaml.ScalarNode]:
    return (node for _, node in _placed(root, ()))


def _shuffle(agents: yaml.Node | None, number: int) -> None:
    for index, agent in enumerate(agents.value if isinstance(agents, yaml.SequenceNode) else ()):
        for key, value in agent.value if isinstance(agent, yaml.MappingNode) else ():
            if key.value == ORDER and isinstance(value, yaml.SequenceNode):
                random.Random(f"{number}/{index}").shuffle(value.value)


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
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, at.start_mark, at.end_mark)
