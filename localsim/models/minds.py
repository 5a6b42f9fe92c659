"""Minds: names such as `mind:immerse+plan(acts=negotiation),starter`, an agent's steps before its lines and its model.

STEP(+STEP...),MODEL. A step has options, `reflect(every=2)`, whose values can be lists, `predict(of=accept/refuse)`;
a step that is made of steps names them first: `loop(reflect+plan(acts=support),times=2)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from localsim.errors import InvalidInput

PREFIX = "mind:"
EXAMPLE = f"for example {PREFIX}immerse+plan(acts=negotiation),starter; docs/minds.md lists the steps"
_STEP = re.compile(r"(?P<name>[a-z]+)(?:\((?P<given>.*)\))?")
_FILE = re.compile(r"=([^=,()+]+\.ya?ml)")
_OPTION = re.compile(r"(?P<key>[a-z]+)=(?P<value>[^=,()]+)")


@dataclass(frozen=True)
class NamedStep:
    """A step as a name has it."""

    name: str
    options: Mapping[str, tuple[str, ...]]
    """Option -> its values."""
    inner: tuple[tuple[NamedStep, ...], ...] = ()
    """The steps that it is made of; several rows of them where it chooses among them."""


def is_mind(name: str) -> bool:
    """True if a model name means a mind and its model."""
    return name.startswith(PREFIX)


def split(name: str) -> tuple[str, str]:
    """The steps of a mind and its model, as texts. Raises InvalidInput."""
    steps, *rest = _parts(name.removeprefix(PREFIX), ",")
    model = ",".join(rest).strip()
    if not (steps.strip() and model):
        raise InvalidInput(f"{name!r} does not name steps and a model", hint=EXAMPLE)
    if model == "human" or is_mind(model) or model.startswith("mix:") or _is_player(model):
        raise InvalidInput(f"{name!r}: steps ask a model questions, and {model} answers none", hint=EXAMPLE)
    return steps.strip(), model


def _is_player(model: str) -> bool:
    """True for scripted players, which play roles; lines of a file are replies to anything."""
    return model == "scripted" or (model.startswith("scripted:") and not model.startswith("scripted:@"))


def absolute(name: str, model: str) -> str:
    """The name with its model named so, and with the paths of its tables made absolute. Raises InvalidInput."""
    steps = _FILE.sub(lambda found: f"={Path(found[1]).expanduser().absolute()}", split(name)[0])
    return f"{PREFIX}{steps},{model}"


def reads_file(name: str) -> bool:
    """True for a mind that reads a table of the user's own."""
    return is_mind(name) and _FILE.search(split(name)[0]) is not None


def steps_of(name: str) -> tuple[NamedStep, ...]:
    """The steps of a mind. Raises InvalidInput."""
    return tuple(_read(split(name)[0], name))


def _read(text: str, name: str) -> Iterator[NamedStep]:
    for part in _parts(text, "+"):
        match = _STEP.fullmatch(part.strip())
        if match is None:
            raise InvalidInput(f"{name!r}: {part.strip()!r} is no step", hint=EXAMPLE)
        options: dict[str, tuple[str, ...]] = {}
        inner = []
        for each in _parts(match["given"], ",") if match["given"] else ():
            option = _OPTION.fullmatch(each.strip())
            if option:
                options[option["key"]] = tuple(value.strip() for value in option["value"].split("/"))
            else:
                inner.append(tuple(_read(each, name)))
        yield NamedStep(match["name"], options, tuple(inner))


def _parts(text: str, mark: str) -> list[str]:
    """Split a text at a mark outside of brackets."""
    found, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == mark and not depth:
            found.append("")
        else:
            found[-1] += char
    return found
