"""The ways in which a person can act now, as fields of a form, and the action that a sent form means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from localsim.conversation.rules.lines import SEPARATOR, Bound, Way, name_of
from localsim.conversation.rules.values import Param
from localsim.conversation.transcript import Action, ActionType, typed_move
from localsim.errors import InvalidInput
from localsim.families.settling import DEAL, NOTHING, Offered, with_statement
from localsim.web.phrases.table import Refused

_PRICE = re.compile(r"\$?\s*(\d+(?:[.,]\d{1,2})?)\s*\$?")
KINDS: tuple[ActionType, ...] = ("speak", "action", "non-verbal communication", "none", "leave")
"""The actions in the order of the form; the phrases `way.` name them there."""


@dataclass(frozen=True)
class Field:
    """One value of a move: a number, one of some options, one or more people, or free words."""

    name: str
    kind: Literal["number", "option", "person", "people", "words"]
    options: tuple[str, ...] = ()
    least: str = ""
    most: str = ""
    step: str = ""
    chars: int = 0


@dataclass(frozen=True)
class Form:
    """One way to act: what it is called, its values, and whether words go with it."""

    name: str
    label: str = ""
    """The name of a move, for people; '' for an action, which has a phrase."""
    fields: tuple[Field, ...] = ()
    words: Literal["no", "may", "must"] = "must"


def forms_of(ways: Sequence[Way]) -> list[Form]:
    """Return a form for each way to act: moves first, then the actions."""
    moves = [_of_move(way) for way in ways if isinstance(way, Bound)]
    words: dict[str, Literal["no", "may", "must"]] = {"none": "no", "leave": "may"}
    return [*moves, *(Form(kind, words=words.get(kind, "must")) for kind in KINDS if kind in ways)]


def _of_move(way: Bound) -> Form:
    fields = tuple(_field(f"value{place}", param, way.others) for place, param in enumerate(way.move.values))
    return Form(way.name, way.name.replace("-", " "), fields, way.move.text)


def _field(name: str, param: Param, others: tuple[str, ...]) -> Field:
    if param.number is not None:
        least, most = (param.written(each) for each in param.number)
        return Field(name, "number", least=least, most=most, step=str(param.step))
    if param.one_of is not None:
        return Field(name, "option", param.one_of)
    if param.agents is not None:
        return Field(name, "person" if param.agents == "one" else "people", others)
    return Field(name, "words", chars=param.words or 0)


def action_from(sent: Sequence[tuple[str, str]], ways: Sequence[Way], chars: int) -> Action:
    """Return the action that a sent form means, from its (field, value) pairs. Raises Refused."""
    given = dict(sent)
    way = next((way for way in ways if name_of(way) == given.get("kind", "speak")), None)
    if way is None:
        raise Refused("not_allowed")
    text = " ".join(given.get("text", "").split())
    if len(text) > chars:
        raise Refused("too_long", has=len(text), chars=chars)
    if isinstance(way, Bound):
        names = [f"value{place}" for place in range(len(way.move.values))]
        values = [" ".join(value.split()) for name in names for each, value in sent if each == name]
        try:
            return typed_move(way, SEPARATOR.join(values), "" if way.move.text == "no" else text)
        except InvalidInput as error:
            raise Refused("no_value", move=way.name) from error
    if not text and way not in ("leave", "none"):
        raise Refused("no_words")
    return Action(way, "" if way == "none" else text)


def ended_by(action: Action, offered: Offered | None, chosen: str, price: str) -> Action:
    """Return the action of a person who ends a talk with what they state: a name or a price of the form.

    `price` is what was typed, in dollars. Raises Refused if a deal has no price.
    """
    if offered is None or action.type != "leave":
        return action
    if offered.price and chosen == DEAL:
        if not (number := _PRICE.fullmatch(price.strip())):
            raise Refused("no_price")
        dollars = f"{float(number[1].replace(',', '.')):.2f}".removesuffix(".00")
        return replace(action, text=with_statement(action.text, f"${dollars}"))
    known = chosen == NOTHING or chosen in offered.names
    return replace(action, text=with_statement(action.text, chosen)) if known else action
