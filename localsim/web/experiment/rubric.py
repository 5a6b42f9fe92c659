"""A rubric as a form: participants answer about a talk what a judge is asked, in the same words, on the same scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from localsim.scenarios.rubrics import NAME, Rubric
from localsim.web.phrases.table import Refused

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
    return [{"agent": each.agent, "dimension": each.dimension, **_answer(each, sent)} for each in questions]


def _answer(question: Question, sent: Mapping[str, str]) -> dict[str, Any]:
    text = sent.get(question.field, "")
    if text == UNKNOWN:
        return {"value": text, "number": None}
    point = next((point for point in question.points if str(point) == text), None)
    if point is None:
        raise Refused("item_missing", item=question.ask)
    return {"value": text, "number": point}
