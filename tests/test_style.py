"""The style evaluator."""

from __future__ import annotations

import pytest

from localsim.evaluators import style
from localsim.transcript import Action, Transcript, Turn


def scores(*texts: str) -> dict[str, float]:
    turns = tuple(Turn(n, "AB"[n % 2], Action("speak" if text else "none", text)) for n, text in enumerate(texts))
    return {score.name: score.value for score in style.score(Transcript(turns)) if score.value is not None}


def test_repetition_by_anybody_and_by_oneself() -> None:
    found = scores("Hello there!", "hello there", "Hello, there.", "Fine.")
    assert found["repeated_turns"] == 0.5 and found["own_repeated_turns"] == 0.25


def test_variety() -> None:
    assert scores("a b c d")["distinct_1"] == 1.0
    found = scores("a a a a", "a a a a")
    assert found["distinct_1"] == 1 / 8 and found["distinct_2"] == 1 / 6


@pytest.mark.parametrize(
    ("text", "filler"), [("I completely understand.", 1), ("That's great!", 1), ("Is Nils here?", 0)]
)
def test_fillers_agree_and_say_nothing(text: str, filler: float) -> None:
    assert scores(text)["filler_turns"] == filler


def test_silence_has_turns_and_nothing_else() -> None:
    assert scores("", "") == {"turns": 2.0}
