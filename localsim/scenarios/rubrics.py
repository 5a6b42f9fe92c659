"""Rubric files: YAML -> validated `Rubric`, found by path or by the name of a bundled one.

A rubric says what a judge is asked about a conversation. It is no part of a scenario, and no agent ever sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from localsim import paths
from localsim.conversation.rules.values import Document, Identifier, Place, Text, Value
from localsim.errors import InvalidInput
from localsim.scenarios.documents import named_file, read_document, read_file, shipped_files
from localsim.scenarios.tagging import vocabulary

SOTOPIA = "sotopia"
"""The rubric that judges use unless another one is named."""
NAME = "{name}"
"""What a question holds in place of the agent's name."""
_TAKEN = ("overall", "malformed_judgements", "evaluator_error")
"""Names of the scores that judges give beside those of the dimensions."""
_DimensionName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
_Point = Annotated[int, Field(ge=-100, le=100)]
_Anchors = dict[_Point, Annotated[str, Field(min_length=1, max_length=200)]]


class Dimension(Value):
    """One question and its scale; what is left out is that of the rubric."""

    question: Text
    """The question, with {name} in place of the agent."""
    least: _Point | None = None
    """The lowest score."""
    most: _Point | None = None
    """The highest score."""
    anchors: _Anchors | None = None
    """What some scores mean, in the order in which the judge reads them."""


class Rubric(Document):
    """The questions that a judge answers about a conversation, each with a whole number."""

    version: Annotated[int, Field(ge=1, le=10_000)]
    """Version of the questions: raise it when one changes, so that new scores are not mixed with old ones."""
    id: Identifier
    """Name of the rubric; its scores are stored under it."""
    title: Text
    """Title in one line."""
    about: Text
    """What the rubric measures, for people."""
    per: Literal["agent", "talk"] = "agent"
    """Whether each agent is asked about, or the conversation as a whole."""
    profiles: bool = False
    """Whether the judge is shown the whole profile of each person, beside goals and secrets."""
    least: _Point | None = None
    """The lowest score of every dimension that names no other."""
    most: _Point | None = None
    """The highest score of every dimension that names no other."""
    anchors: _Anchors | None = None
    """What some scores mean in every dimension without anchors of its own."""
    suits: dict[Identifier, tuple[Text, ...]] = {}  # noqa: RUF012 - pydantic copies it
    """The words of the vocabulary of tags for which it is made, by dimension; it is refused for other conversations."""
    dimensions: Annotated[dict[_DimensionName, Dimension], Field(min_length=1, max_length=20)]
    """What is asked, by the name of the score."""

    def _conflicts(self) -> Iterator[tuple[Place, str]]:
        for name, words in self.suits.items():
            if (known := vocabulary().words(name)) is None:
                yield ("suits", name), "no dimension of the vocabulary of tags"
            elif wrong := [word for word in words if known and word not in known]:
                yield ("suits", name), f"{wrong[0]!r} is not one of {', '.join(known)}"
        for name, dimension in self.dimensions.items():
            place = ("dimensions", name)
            if name in _TAKEN or name.endswith("_spread"):
                yield place, f"{name!r} is the name of a score that every judge gives; choose another"
            yield from (((*place, "question"), message) for message in self._question_problems(dimension.question))
            least, most = self._bounds(dimension)
            if least is None or most is None:
                yield place, "least and most are missing, here and at the top of the file"
                continue
            if least >= most:
                yield place, f"the lowest score, {least}, must be below the highest one, {most}"
            where = (*place, "anchors") if dimension.anchors is not None else ("anchors",)
            for point in self._anchors(dimension):
                if not least <= point <= most:
                    yield where, f"{point} is no score of {name}, which goes from {least} to {most}"

    def _question_problems(self, question: str) -> Iterator[str]:
        rest = question.replace(NAME, "")
        if "{" in rest or "}" in rest:
            yield "the only word in braces is {name}"
        if self.per == "agent" and rest == question:
            yield "a question about each agent holds {name}"
        if self.per == "talk" and rest != question:
            yield "a question about the whole conversation holds no {name}"

    def _bounds(self, dimension: Dimension) -> tuple[int | None, int | None]:
        return (
            self.least if dimension.least is None else dimension.least,
            self.most if dimension.most is None else dimension.most,
        )

    def _anchors(self, dimension: Dimension) -> Mapping[int, str]:
        return (self.anchors if dimension.anchors is None else dimension.anchors) or {}

    def asked(self) -> dict[str, tuple[int, int, str]]:
        """Return for each dimension the lowest score, the highest score, and the question with its anchors."""
        found: dict[str, tuple[int, int, str]] = {}
        for name, dimension in self.dimensions.items():
            least, most = self._bounds(dimension)
            assert least is not None and most is not None, "checked when the rubric was read"
            anchors = ", ".join(f"{point}: {meaning}" for point, meaning in self._anchors(dimension).items())
            found[name] = (least, most, f"{dimension.question} {anchors}." if anchors else dimension.question)
        return found


def parse_rubric(text: str, name: str) -> Rubric:
    """Return the rubric in a YAML text. Raises ScenarioInvalid with all its problems, as file:line:column."""
    return read_document(text, name, Rubric, what="a rubric").valid()


def find_rubric(reference: str) -> Rubric:
    """Return the rubric that a path or a name means.

    Raises InvalidInput if there is none, or if a file changes a rubric that ships with localsim but keeps its id.
    """
    file, shipped = named_file(reference, "rubrics"), shipped_files("rubrics")
    if file in shipped:
        return shipped_rubric(file.stem)
    rubric = parse_rubric(read_file(file), str(file))
    if rubric.id in {each.stem for each in shipped} and rubric != shipped_rubric(rubric.id):
        raise InvalidInput(
            f"the id {rubric.id!r} is that of a rubric of localsim with other questions",
            where=str(file),
            hint="give your rubric an id of its own, so that scores of the two are not mixed",
        )
    return rubric


def find_rubrics(references: Iterable[str]) -> list[Rubric]:
    """Return the rubrics of paths and names, each once. Raises InvalidInput if two of them have the same id."""
    found: dict[str, Rubric] = {}
    for reference in references:
        rubric = find_rubric(reference)
        if found.setdefault(rubric.id, rubric) != rubric:
            hint = "give each rubric an id of its own"
            raise InvalidInput(f"two rubrics have the id {rubric.id!r}", where=reference, hint=hint)
    return list(found.values())


@cache
def shipped_rubric(name: str) -> Rubric:
    """Return a rubric that ships with localsim, read once."""
    file = paths.bundled("scenarios") / "rubrics" / f"{name}.yaml"
    return parse_rubric(read_file(file), str(file))
