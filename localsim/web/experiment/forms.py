"""What participants answered to the items of a bank or a rubric, from the fields of a sent form.

By a rubric they answer about a talk what a judge is asked, in the same words, on the same scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Literal

from localsim.conversation.rules.lines import Bound
from localsim.conversation.transcript import Action, Turn, typed_move
from localsim.errors import InvalidInput
from localsim.families.interviews.answers import Answer
from localsim.families.interviews.items import Bank, Item, moves_of
from localsim.scenarios.rubrics import NAME, Rubric
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


# ---- a rubric --------------------------------------------------------------------------------------------------------

UNKNOWN = "cannot tell"
"""What a participant answers who did not see what a question asks about; it is no score."""


@dataclass(frozen=True)
class Question:
    """One dimension of one agent, or of the whole talk."""

    agent: str
    """The agent; empty for the whole talk."""
    dimension: str
    field: str
    """Name of the field of the form. It has a number in place of the agent, whose name may hold any character."""
    ask: str
    points: range


def questions_of(
    rubric: Rubric, names: Sequence[str], role: str, about: Literal["others", "self", "all"]
) -> list[Question]:
    """Return what the participant in a role is asked, agent by agent; `names` are all agents of the talk."""
    wanted = {"others": [name for name in names if name != role], "self": [role], "all": list(names)}
    agents = wanted[about] if rubric.per == "agent" else [""]
    return [
        Question(
            agent, dimension, f"rubric.{number}.{dimension}", ask.replace(NAME, agent), range(least, most + 1)
        )
        for number, agent in enumerate(agents)
        for dimension, (least, most, ask) in rubric.asked().items()
    ]  # fmt: skip


def ratings_from(questions: Sequence[Question], sent: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return for each question agent, dimension, value and number, which is None for `UNKNOWN`.

    Raises Refused with the first question that lacks an answer.
    """
    return [{"agent": each.agent, "dimension": each.dimension, **_rating(each, sent)} for each in questions]


def _rating(question: Question, sent: Mapping[str, str]) -> dict[str, Any]:
    text = sent.get(question.field, "")
    if text == UNKNOWN:
        return {"value": text, "number": None}
    point = next((point for point in question.points if str(point) == text), None)
    if point is None:
        raise Refused("item_missing", item=question.ask)
    return {"value": text, "number": point}
