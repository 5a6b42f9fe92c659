"""What participants answered to the items of a bank, from the fields of a sent form."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

from localsim.conversation.rules.lines import Bound
from localsim.conversation.transcript import Action, Turn, typed_move
from localsim.errors import InvalidInput
from localsim.families.interviews.answers import Answer
from localsim.families.interviews.items import Bank, Item, moves_of
from localsim.web.phrases.table import Refused

FIELD = "item."
"""What the name of a field begins with; the id of the item follows."""


def answers_from(bank: Bank, sent: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return item -> {value, number, right} for all items of a bank; only open answers may be empty.

    `number` is the chosen point, the number, or the place of the option from 1; None for words. `right` is None for an
    item without a right answer. Raises Refused with the first question that lacks an answer.
    """
    return {item.id: _answer(item, " ".join(sent.get(FIELD + item.id, "").split())) for item in bank.items}


def _answer(item: Item, text: str) -> dict[str, Any]:
    action = _action(item, text)
    answer = Answer(item, tuple(range(len(item.options))), Turn(0, "participant", action))
    number: float | None = None
    if item.options:
        number = ascii_uppercase.index(action.values[0] if action.values else "") + 1
    elif not item.open:
        number = answer.turn.number
    return {"value": answer.text, "number": number, "right": answer.right}


def _action(item: Item, text: str) -> Action:
    if item.open:
        if len(text) > item.open:
            raise Refused("item_long", item=item.ask, chars=item.open)
        return Action("speak", text)
    if not text:
        raise Refused("item_missing", item=item.ask)
    (move,) = moves_of([item])
    try:
        return typed_move(Bound(move, ()), text, "")
    except InvalidInput as error:
        raise Refused("item_wrong", item=item.ask) from error
