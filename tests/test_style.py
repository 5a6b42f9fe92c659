"""The style evaluator."""

from __future__ import annotations

import pytest

from localsim.conversation.episode import Score
from localsim.conversation.scenario import AnswerKey, Scenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.evaluators.style import STYLE
from localsim.families import language
from localsim.scenarios.parse import parse_scenario
from tests.conftest import TALK

ENGLISH = parse_scenario(TALK, "talk.yaml").scenario
GERMAN = ENGLISH.model_copy(update={"language": "de"})


def scored(*texts: str, scenario: Scenario = ENGLISH) -> dict[str, Score]:
    turns = tuple(Turn(n, "AB"[n % 2], Action("speak" if text else "none", text)) for n, text in enumerate(texts))
    return {score.name: score for score in STYLE.score(Transcript(turns), scenario, AnswerKey())}


def scores(*texts: str) -> dict[str, float]:
    return {name: score.value for name, score in scored(*texts).items() if score.value is not None}


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


def test_silence_has_turns_and_their_limit_and_nothing_else() -> None:
    assert scores("", "") == {"turns": 2.0, "turn_limit": 20.0}


TALK_OF_THREE = ("Where did you put the cake that I baked?", "Ich habe den Kuchen nicht gesehen.", "Garage!")


def test_turns_in_another_language_are_counted_and_short_ones_are_not_judged() -> None:
    found = scored(*TALK_OF_THREE)["other_language_turns"]
    assert (found.value, found.turns) == (0.5, (1,)) and "en" in found.reason and "2 turns" in found.reason


def test_the_language_is_the_one_that_the_scenario_names() -> None:
    found = scored(*TALK_OF_THREE, scenario=GERMAN)["other_language_turns"]
    assert (found.value, found.turns) == (0.5, (0,))
    unknown = ENGLISH.model_copy(update={"language": "xx"})
    assert "other_language_turns" not in scored(*TALK_OF_THREE, scenario=unknown)


def test_a_setting_tells_the_language_where_none_is_named() -> None:
    setting = "Zwei Nachbarn treffen sich im Treppenhaus und reden über den Lärm."
    agents = tuple(agent.model_copy(update={"goal": "Finde heraus, wer so laut war."}) for agent in ENGLISH.agents)
    scenario = ENGLISH.model_copy(update={"setting": setting, "agents": agents})
    assert language.language_of(scenario) == "de" and language.language_of(ENGLISH) == "en"


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("你好，我想把这把椅子卖给你", True),
        ("Привет, как у тебя дела сегодня?", True),
        ("I can offer $90 for the desk, Ana. Ewan? Joanna? Ingrid?", False),
        ("I know Xiulan Okonkwo, who likes pottery.", False),
    ],
)
def test_names_are_no_language_and_scripts_without_spaces_are_long_enough(text: str, foreign: bool) -> None:
    assert scores(text)["other_language_turns"] == foreign


def test_only_short_turns_have_no_language() -> None:
    assert "other_language_turns" not in scores("Ja.", "Oh no", "100 $ 200 $ 300 $ 400 $")
