"""Rubrics: their files, what a judge is asked, and what planted good, empty and bad conversations score."""

from __future__ import annotations

import hashlib

import pytest

from localsim.conversation.episode import Subject
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.evaluators import judge
from localsim.scenarios.find import find_scenarios


def talk(*lines: tuple[str, str], scenario: str = "a_secret_kept") -> Subject:
    """A conversation of these words on a bundled scenario."""
    loaded = find_scenarios([scenario])[0]
    turns = tuple(Turn(place, name, Action("speak", words)) for place, (name, words) in enumerate(lines))
    return Subject("e1", loaded.scenario, loaded.answer, "agents", 0, 7, Transcript(turns))


GOOD = talk(
    ("Jude", "How is school going?"),
    ("Tess", "I would rather talk about you. How is the workshop?"),
    ("Jude", "Busy, and I am glad of it."),
)


@pytest.mark.parametrize(
    ("samples", "digest"),
    [
        (1, "ba91b7efbab2d8efe482478092c4fcb61b7595fc4411187241d648043291e55a"),
        (3, "f683a66a2e23e7e474fb89c82a756adf08f3b327758b32556cf3d2e6bd573672"),
    ],
)
def test_the_seven_dimensions_are_asked_in_the_same_bytes_as_ever(samples: int, digest: str) -> None:
    """Scores of version 3 stand in databases: whoever changes a prompt, a seed or a form must raise the version."""
    asked = list(judge.questions(GOOD, samples))
    sent = [(each.case, each.request, each.request.form.grammar()) for each in asked]
    assert hashlib.sha256(repr(sent).encode()).hexdigest() == digest
    assert (judge.Judge("toy").name, judge.Judge("toy").version) == ("judge.toy", "3")
