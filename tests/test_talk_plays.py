"""The evaluator `play`: each fault is found where it is, and what people do is none; its error on labelled talks."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.conversation.episode import Score, Subject
from localsim.conversation.scenario import AnswerKey, Scenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.evaluators.play import PLAY
from localsim.evaluators.play.faults import FAULTS
from localsim.families import FAMILIES
from localsim.scenarios.find import find_scenarios
from localsim.scenarios.parse import parse_scenario
from tests.conftest import TALK

ROOT = Path(__file__).resolve().parent.parent
TALKING = parse_scenario(TALK, "talk.yaml").scenario
"""Ana and Bo."""
SEARCH, SEARCH_ANSWER = FAMILIES["mutual_friends"].generate("mutual_friends_61000", 61000, {}).split()
"""Nils, Jonas and their friends."""
BARGAIN, BARGAIN_ANSWER = FAMILIES["craigslist"].generate("craigslist_61001", 61001, {}).split()
"""Anders sells an espresso machine to Fiona."""


def scored(
    *texts: str | Action, scenario: Scenario = TALKING, answer: AnswerKey | None = None, beats: Sequence[int] = ()
) -> dict[str, Score]:
    """Return the scores of a talk in turn, by name."""
    names = scenario.names
    turns = tuple(
        Turn(
            at,
            names[at % len(names)],
            text if isinstance(text, Action) else Action("speak", text),
            beat=beats[at] if beats else -1,
        )
        for at, text in enumerate(texts)
    )
    return {score.name: score for score in PLAY.score(Transcript(turns), scenario, answer or AnswerKey())}


def turns_of(fault: str, *texts: str | Action, **more: Any) -> tuple[int, ...]:
    return scored(*texts, **more)[f"play_{fault}"].turns


INTRODUCTIONS = (
    "Hello, my name is Ana and I work as a nurse in the city.",
    "That is good to know.",
    "Hi there, my name is Ana and I work as a nurse in this city.",
    "Did you eat the cake?",
)


def test_a_repeat_with_small_changes_is_a_repeat() -> None:
    assert turns_of("own_repeats", *INTRODUCTIONS) == (2,)
    assert turns_of("own_repeats", "I saw the crumbs on the sofa.", "Where?", "I saw crumbs on the sofa.") == (2,)


@pytest.mark.parametrize(
    "texts",
    [
        ("Do you know Otto from the bank?", "No.", "Do you know Lionel from the bank?", "No."),
        ("I can give you 90 dollars for that.", "No.", "I can give you 95 dollars for that.", "No."),
        ("Yes.", "Do you want it?", "Yes.", "Are you sure?", "Yes."),
        ("do you know anyone who likes chess here?", "no", "do you know anyone who likes rowing here?", "no"),
    ],
)
def test_other_names_numbers_and_facts_make_other_turns_and_short_answers_are_free(texts: tuple[str, ...]) -> None:
    found = scored(*texts, scenario=SEARCH, answer=SEARCH_ANSWER)
    assert found["play_own_repeats"].value == 0 and found["plays"].value == 1


def test_a_sentence_three_times_in_one_turn_is_stuck() -> None:
    assert turns_of("own_repeats", "Goodbye. Goodbye. Goodbye. Goodbye.") == (0,)


def test_an_echo_is_parroting_but_not_a_shared_greeting_or_a_simultaneous_turn() -> None:
    line = "I would love to go to the lake with the others."
    assert turns_of("parroting", line, line) == (1,)
    assert turns_of("parroting", "Nice to meet you, how are you?", "Nice to meet you, how are you?") == ()
    assert turns_of("parroting", line, line, beats=(0, 0)) == ()


def test_loops_are_runs_of_four_and_a_stand_off_over_a_price_is_none() -> None:
    loop = ("What do you think?", "I do not know.") * 3
    assert turns_of("loop", *loop) == (0, 1, 2, 3, 4, 5)
    assert turns_of("loop", *loop[:3]) == ()
    assert turns_of("loop", *("Could we say $195?", "How about $141?") * 4) == ()
    assert turns_of("loop", "I am ready now, let us begin.", *["I am ready, let us begin."] * 4) == (0, 1, 2, 3, 4)


def test_polite_words_are_in_their_place_at_the_beginning_and_at_the_end() -> None:
    polite = ("Hello, how are you?", "I'm doing well, thank you. And you?")
    ending = ("Thank you so much!", "You're welcome. Goodbye!")
    assert turns_of("politeness", *polite, *polite, "Where is the cake?", "In the garage.", *ending, *ending) == ()
    assert len(turns_of("politeness", *polite * 5)) == 2
    assert len(turns_of("politeness", *["I'm doing well too. How about you?"] * 20)) == 12


ASSISTANTS = (
    "How can I assist you today?",
    "Feel free to ask if you need anything.",
    "I'm here to help!",
    "As an AI language model, I have no cake.",
    "Please let me know if there's anything else I can help with.",
)


@pytest.mark.parametrize("text", ASSISTANTS)
def test_the_speech_of_assistants_is_found(text: str) -> None:
    assert turns_of("assistant", text) == (0,)


@pytest.mark.parametrize("text", ["Can you help me with the cake?", "I can help you carry it.", "What can I say?"])
def test_people_offer_and_ask_for_help(text: str) -> None:
    assert turns_of("assistant", text) == ()


@pytest.mark.parametrize(
    ("text", "refuses"),
    [
        ("I'm sorry, but I can't assist with that.", True),
        ("I'm sorry, but I can't continue this conversation as it involves deception.", True),
        ("I can't continue this conversation now, the shop opens.", False),
        ("I’m sorry, I can’t help you with that.", True),
        ("I'm unable to fulfill this request.", True),
        ("Could you please provide more context or information?", True),
        ("I'm sorry, I can't go lower than that.", False),
        ("Sorry, I can't sell it for $46.", False),
        ("I can't help it, I love cake.", False),
        ("I'm sorry, I don't know him.", False),
    ],
)
def test_a_refusal_of_an_assistant_is_no_refusal_of_a_haggler(text: str, refuses: bool) -> None:
    assert bool(turns_of("refusals", text)) is refuses


@pytest.mark.parametrize(
    ("text", "as_another"),
    [
        ("Hi, I'm Fiona.", True),
        ("My name is Fiona, nice to meet you.", True),
        ("I'm the buyer.", True),
        ("I would like to buy your machine.", True),
        ("I'm looking for a second-hand espresso machine.", True),
        ("Thanks, Anders.", True),
        ("I need to know what Anders wants.", True),
        ("Hi Fiona, I'm Anders.", False),
        ("This is Anders, the seller.", False),
        ("Anders here.", False),
        ("I'm selling an espresso machine.", False),
        ("Do you want to buy it, Fiona?", False),
    ],
)
def test_speaking_as_another(text: str, as_another: bool) -> None:
    found = turns_of("other_role", text, scenario=BARGAIN, answer=BARGAIN_ANSWER)
    assert bool(found) is as_another


def test_an_introduction_as_a_friend_of_the_list_is_another_role() -> None:
    assert turns_of("other_role", "I'm Otto, I like chess.", scenario=SEARCH, answer=SEARCH_ANSWER) == (0,)


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("31 years old, pharmacist, Nils lives with two cats, Patient and dry-humoured; values fairness", True),
        ("I live with two cats. I am patient and dry-humoured and I value fairness.", True),
        (SEARCH.agents[0].goal, True),
        ("I want to find out whether I and Jonas have a friend in common, do not just read out your list.", True),
        ("To end the conversation, perhaps with a goodbye", True),
        ("I am 31 and work as a pharmacist. Do we have a friend in common?", False),
        ("Otto likes mountain biking and works at Oakfield Bank.", False),
    ],
)
def test_instructions_read_out_are_no_facts_told(text: str, reads: bool) -> None:
    assert bool(turns_of("read_out", text, scenario=SEARCH, answer=SEARCH_ANSWER)) is reads


def test_the_goods_may_be_named_in_the_words_of_the_setting() -> None:
    offer = "I have an espresso machine, two years old, descaled every month. Would $220 be fine?"
    assert turns_of("read_out", offer, scenario=BARGAIN, answer=BARGAIN_ANSWER) == ()
    assert turns_of("read_out", BARGAIN.setting, scenario=BARGAIN, answer=BARGAIN_ANSWER) == (0,)


@pytest.mark.parametrize(
    "text",
    [
        "Bo: I have it.",
        "Fine. Bo: Good. Ana: Then go.",
        "Fine. [none] [none]",
        "Fine. [leave]",
        "Assistant: Fine.",
        '"Where is the cake?"',
        '"Where is the cake?',
        "„Wo ist der Kuchen?“",
        "Hello [Your Name], fine.",
        "**Fine** with me.",
        "Fine.<|im_end|>",
        "Where is it? Bo",
        "...",
    ],
)
def test_a_form_spills_into_speech(text: str) -> None:
    assert turns_of("spill", text) == (0,)


@pytest.mark.parametrize(
    "text",
    ['He said "maybe" and left.', "'Tis late, Bo", "Tell me: where is it?", "Bo, where is it?", "It's $5 [sic]."],
)
def test_quotes_colons_and_names_are_speech(text: str) -> None:
    assert turns_of("spill", text) == ()


def test_a_form_spills_into_gestures_too() -> None:
    gesture = Action("non-verbal communication", "..., Ana [action]: ..., Ana [none]")
    found = scored(gesture, "Are you there?", gesture, "Ana?", gesture, "Oh well.")
    assert found["play_spill"].turns == (0, 2, 4) and found["plays"].value == 0


LEAVE = Action("leave", "Goodbye!")


def test_goodbyes_go_on_until_somebody_leaves() -> None:
    start = ("Where is the cake?", "In the garage, behind the bicycle.")
    assert turns_of("farewells", *start, "Goodbye!", "Goodbye!", *["See you soon!", "Take care."] * 2) == (4, 5, 6, 7)
    assert turns_of("farewells", *start, "Goodbye!", LEAVE) == ()
    again = ("Wait, is the key there, too?", "Yes, it is under the mat by the door.")
    assert turns_of("farewells", *start, "Goodbye!", "Bye!", *again, "Goodbye!", "Bye!") == ()


def test_each_fault_spoils_a_talk_above_its_limit_only() -> None:
    good = ("Where is the cake?", "I will not tell you.", "Is it in the kitchen?", "No, look somewhere else.")
    assert scored(*good)["plays"].value == 1
    bad = scored(*["I'm sorry, but I can't assist with that."] * 6)["plays"]
    assert (bad.value, bad.label) == (0, "refuses as an assistant") and bad.turns == (0, 1, 2, 3, 4, 5)
    assert "6 of 6 turns" in bad.reason and "can't assist" in bad.reason


def test_a_talk_needs_two_who_speak() -> None:
    nobody = scored(Action("none"), Action("none"))
    assert (nobody["plays"].value, nobody["plays"].label) == (0, "says nothing") and "play_loop" not in nobody
    assert scored("I am off.", Action("leave", ""))["plays"].label == "says nothing"
    assert scored(Action("leave", "Hello, Bo! Where is the cake?"))["plays"].value == 0
    assert scored(Action("leave", "I have to go. Goodbye!"))["plays"].value == 1
    third = TALKING.agents[1].model_copy(update={"name": "Cy", "facts": ()})
    three = TALKING.model_copy(update={"agents": (*TALKING.agents, third)})
    talk = ["Where is the cake?", "I ate it.", Action("none"), "All of it?", "To the crumb.", Action("none")]
    assert scored(*talk, scenario=three)["plays"].value == 1
    silent = scored(*talk, "Why, Bo?", "It was so good.", Action("none"), scenario=three)
    assert silent["play_silence"].turns == (2, 5, 8) and silent["plays"].label == "says nothing"


def test_moves_speak_for_themselves() -> None:
    loaded = find_scenarios(["matrix_prisoners"])[0]
    quiet = [Action("choose", "", ("cooperate",))] * 8
    found = scored(*quiet, scenario=loaded.scenario, answer=loaded.answer)
    assert "plays" not in found
    talked = [Action("choose", "I trust you.", ("cooperate",))] * 3
    assert scored(*talked, scenario=loaded.scenario, answer=loaded.answer)["play_own_repeats"].value == 0


GERMAN = ("Wo ist der Kuchen geblieben, den ich gestern für das Fest gebacken habe?", "Das weiß ich leider nicht.")


def test_english_phrases_are_not_looked_for_in_other_languages() -> None:
    found = scored(*GERMAN, *GERMAN, *GERMAN, scenario=TALKING.model_copy(update={"language": "de"}))
    assert {f"play_{fault.name}" for fault in FAULTS if fault.english}.isdisjoint(found)
    assert found["play_own_repeats"].turns == (2, 3, 4, 5) and found["plays"].value == 0
    assert scored("你好，我想把这把椅子卖给你。", "好的。", "你好，我想把这把椅子卖给你。")[
        "play_own_repeats"
    ].turns == (2,)


def test_the_task_is_touched_where_a_family_can_tell() -> None:
    assert "task_touched" not in scored("Where is the cake?")
    search = {"scenario": SEARCH, "answer": SEARCH_ANSWER}
    assert scored("Do you know Otto?", **search)["task_touched"].turns == (0,)
    assert scored("Do you know anybody who likes chess?", **search)["task_touched"].value == 1
    assert scored("I like chess.", "Do we have a friend in common?", **search)["task_touched"].value == 0
    bargain = {"scenario": BARGAIN, "answer": BARGAIN_ANSWER}
    assert scored("How about 150?", **bargain)["task_touched"].value == 1
    assert scored("What a nice machine!", **bargain)["task_touched"].value == 0


def test_interviews_are_no_talks() -> None:
    alone = TALKING.model_copy(update={"agents": TALKING.agents[:1]})

    def subject(scenario: Scenario) -> Subject:
        return Subject("e", scenario, AnswerKey(), "agents", 0, 1, Transcript())

    assert PLAY.applies(subject(TALKING)) and not PLAY.applies(subject(alone))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=80), max_size=12))
def test_any_text_has_shares_from_0_to_1(texts: list[str]) -> None:
    for scenario, answer in ((TALKING, AnswerKey()), (SEARCH, SEARCH_ANSWER), (BARGAIN, BARGAIN_ANSWER)):
        for score in scored(*texts, scenario=scenario, answer=answer).values():
            assert score.value is not None and 0 <= score.value <= 1
            assert all(turn < len(texts) for turn in score.turns)


# ---- labelled talks ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """scripts/measure_play.py as a module."""
    spec = importlib.util.spec_from_file_location("measure_play", ROOT / "scripts" / "measure_play.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["measure_play"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["measure_play"]


# A little below what scripts/measure_play.py prints, so that a small change may cost a talk.
BOUNDS = {"rules": (0.98, 0.96), "first": (0.97, 0.85), "held_out": (0.92, 0.85)}


@pytest.mark.parametrize("part", BOUNDS)
def test_talks_of_models_that_do_not_play_are_found(script: ModuleType, part: str) -> None:
    rows = [row for row in script.read() if row["part"] == part]
    count = script.measure(rows)[script.DOES_NOT_PLAY]
    precision, recall = BOUNDS[part]
    assert count.precision >= precision and count.recall >= recall, (count.measure_only, count.label_only)


def test_labels_name_faults_exactly_where_a_talk_does_not_play(script: ModuleType) -> None:
    known = {fault.name for fault in FAULTS}
    rows = script.read()
    assert len({row["id"] for row in rows}) == len(rows) > 200
    for row in rows:
        assert bool(row["faults"]) is not row["plays"] and set(row["faults"]) <= known, row["id"]
