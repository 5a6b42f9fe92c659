"""What a model writes beyond its own utterance is left out by one rule, is counted, and never becomes a turn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.backends.llama.lib import LlamaModel
from localsim.backends.person import PersonBackend
from localsim.backends.scripted import ScriptedBackend
from localsim.cli import cli
from localsim.conversation.episode import SIMULATED, EpisodeSpec, Mode
from localsim.conversation.modes import MODES, Ask, Reject, Say
from localsim.conversation.requests import TYPED, Generation
from localsim.conversation.rules.spill import utterance
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import ACTION_TYPES, Action
from localsim.reports.compose.alone import report
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.scenarios.parse import parse_scenario
from localsim.store.database import Store
from tests.conftest import TALK, Quiet, spec_of
from tests.test_grammar import admits

NAMES = ("Ana", "Bo", "Dr. Lee", "Jean-Luc O’Neil", "李雷", "Ольга")
ACTIONS = (*ACTION_TYPES, "offer")


def said(text: str, speaker: str = "Ana") -> str:
    return utterance(text, speaker, NAMES, ACTIONS).text


# ---- the rule ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Hi! Bo: Hello! Ana: How are you?", "Hi!"),
        ("Hi. Bo [leave]: Bye.", "Hi."),
        ("Hi.Bo : Hello", "Hi."),
        ("Hello there\nBo: Hi", "Hello there"),
        ('Hello there." Bo: "Hi', "Hello there."),
        ("Hi! **Bo:** Hello", "Hi!"),
        ("So? Dr. Lee: No.", "So?"),
        ("So? Jean-Luc O’Neil: No.", "So?"),
        ("你好！李雷：再见", "你好！"),
        ("Привет! Ольга: Пока", "Привет!"),
        *((f"{end} {line}: no", end) for end, line in (("نعم؟", "Bo"), ("Hi۔", "Bo"), ("हाँ।", "Bo"), ("ሰላም።", "Bo"))),
        *(
            (f"Hi. {line} no", "Hi.")
            for line in ("Bo﹕", "[Bo]:", "Bo (smiling):", "- Bo:", "> Bo:", "\u200bBo:", "(Bo):")
        ),
        ("« Oui. » Bo : Non.", "Oui."),
        ("Bo: Hello, Ana!", ""),
        ("Ana: Ana: Hello!", "Hello!"),
        ('"Ana: Hello!"', "Hello!"),
        ("Hello! Ana: How are you?", "Hello!"),
        ("Goodbye. [leave]", "Goodbye."),
        ("Goodbye [none] [none] [none]", "Goodbye"),
        ("Yes. Bo [none] Ana [none]", "Yes."),
        ("Fine [offer 40]: How about forty?", "Fine"),
        ("[none]", ""),
        ("Well [Non-verbal communication: nods] yes", "Well"),
        ("I go now [leav", "I go now [leav"),
        ("I go now [leave", "I go now"),
        ('"Hello there."', "Hello there."),
        ("“Hello there.”", "Hello there."),
        ("'I don't know him.'", "I don't know him."),
        ("«Bonjour.»", "Bonjour."),
        ("「こんにちは」", "こんにちは"),
        ('Hello there."', "Hello there."),
        ('"Hello there.', "Hello there."),
        ('"“Hello.”"', "Hello."),
        ('""', ""),
    ],
)
def test_what_is_no_speech_is_left_out(text: str, wanted: str) -> None:
    found = utterance(text, "Ana", NAMES, ACTIONS)
    assert (found.text, found.repaired) == (wanted, text != wanted)


@pytest.mark.parametrize(
    "text",
    [
        "I asked Bo: are you coming?",
        "As I told Bo and Dr. Lee: no.",
        "I met Mrs. Bo: she is nice.",
        "He is here! Hanna: that was her name.",
        "One thing. Tim: who is he?",
        "Bo, listen: it is late.",
        "Is it you, Bo? I thought so.",
        "“Dune” is my favourite, and “Emma” is yours.",
        "'Dune' is my favourite, and so is 'Emma'",
        '"Dune" and "Emma"',
        'The screen is 15"',
        "My friends' house",
        "I like lists: one, two.",
        "The sign said [closed], I think.",
        "At 10:30 p.m. Bo came.",
        "Annabel. Bob: no.",
        "Hi (Bo): no - Bo: yes",
        "",
    ],
)
def test_honest_speech_stays_as_it_is(text: str) -> None:
    assert utterance(text, "Ana", NAMES, ACTIONS) == utterance(text, "Bo", NAMES, ACTIONS)
    assert said(text) == text and not utterance(text, "Ana", NAMES, ACTIONS).repaired


PIECES = st.sampled_from(
    [
        "Ana",
        "Bo",
        "Bo:",
        "Ana: ",
        " [none]",
        "[offer 4]",
        '"',
        "“",
        "”",
        "'",
        ". ",
        "! ",
        "?",
        " ",
        "tea",
        "\n",
        "李雷：",
        "*",
    ]
)
ANY = st.lists(PIECES, max_size=14).map("".join) | st.text(max_size=40)


@settings(max_examples=200, deadline=None)
@given(ANY, st.sampled_from(NAMES))
def test_what_is_left_is_a_part_of_the_text_and_nothing_more_is_left_out_of_it(text: str, speaker: str) -> None:
    found = utterance(text, speaker, NAMES, ACTIONS)
    assert found.text in text and found.repaired == (found.text != text.strip())
    assert utterance(found.text, speaker, NAMES, ACTIONS).text == found.text


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_characters="[]:：\"“”„«»「」『』'‘’`"), max_size=60))
def test_a_text_without_colons_brackets_and_quotation_marks_is_speech(text: str) -> None:
    assert said(text) == text.strip()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["I", "told", "asked", "and", "tea", "please"]), min_size=1, max_size=6), st.data())
def test_a_name_in_the_middle_of_a_sentence_cuts_nothing(words: list[str], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    text = f"{' '.join(words)} {name}: {' '.join(words)}"
    assert said(text) == text
    assert said(f"{' '.join(words)}. {name}: {' '.join(words)}") == f"{' '.join(words)}."


def test_a_long_text_takes_no_long_time() -> None:
    """Texts that make a careless pattern try everything."""
    for unit in ("!", '"', "*", "! ", '"!', "Bo ", "[", "[leave", "Ana: ", "。“", "'\""):
        said(unit * 2000)


# ---- every mode ----------------------------------------------------------------------------------------------------


def steps_of(spec: EpisodeSpec, *texts: str, **given: Any) -> list[Ask | Say | Reject]:
    """The steps of an episode whose model writes these texts, each after the start of its line, and then leaves."""
    play, queue, steps, answer = MODES[spec.mode](spec), [*texts, " [leave]"], [], None
    while True:
        try:
            steps.append(play.send(answer))
        except StopIteration:
            return steps
        answer = Generation(queue.pop(0), "finished", "m", **given) if isinstance(steps[-1], Ask) else None


def turns_of(steps: list[Ask | Say | Reject]) -> list[tuple[str, bool]]:
    return [(step.turn.line, step.turn.repaired) for step in steps if isinstance(step, Say)]


@pytest.mark.parametrize("mode", ["agents", "mindreaders", "iterative"])
def test_a_turn_says_that_it_was_repaired_and_the_rest_is_nobodys(talk: LoadedScenario, mode: Mode) -> None:
    steps = steps_of(spec_of(talk, mode), ": Hi! Bo: Hello! Ana: And you?", ': "Good."')
    assert turns_of(steps) == [("Ana: Hi!", True), ("Bo: Good.", True), ("Ana [leave]", False)]


def test_a_reply_of_several_lines_ends_before_the_line_of_another(talk: LoadedScenario) -> None:
    """As a local model without a grammar writes it; its own second line is still no part of a turn."""
    assert turns_of(steps_of(spec_of(talk), ": Hi\nBo: Hello"))[0] == ("Ana: Hi", True)
    assert turns_of(steps_of(spec_of(talk), " [none]\nBo: Hello"))[0] == ("Ana [none]", True)
    steps = steps_of(spec_of(talk), ": Hi\nand more", ": Hi")
    assert [step.turn for step in steps if isinstance(step, Reject)] == [0]


def test_the_rest_of_a_line_of_a_script_is_dropped_and_the_next_lines_go_on(talk: LoadedScenario) -> None:
    text = ': "Hi!" Bo: Hello! Ana [leave]: Bye.\nBo: “How are you?”\nAna [leave]: Bye. [none]'
    steps = steps_of(spec_of(talk, "script"), text)
    assert sum(isinstance(step, Ask) for step in steps) == 1
    assert turns_of(steps) == [("Ana: Hi!", True), ("Bo: How are you?", True), ("Ana [leave]: Bye.", True)]


@pytest.mark.parametrize("mode", SIMULATED)
def test_a_line_without_an_utterance_is_malformed_and_asked_for_again(talk: LoadedScenario, mode: Mode) -> None:
    steps = steps_of(spec_of(talk, mode), ": Bo: Hello, Ana!", ": Hello.", " [leave]")
    assert next(step.reason for step in steps if isinstance(step, Reject)) == "an empty speak"
    assert turns_of(steps)[0] == ("Ana: Hello.", False)


def test_a_cut_text_is_whole_up_to_its_end(talk: LoadedScenario) -> None:
    steps = steps_of(spec_of(talk), ": Hi! Bo: " + "x" * (280 - len("Hi! Bo: ")))
    (turn,) = [step.turn for step in steps if isinstance(step, Say)][:1]
    assert (turn.action.text, turn.repaired, turn.truncated) == ("Hi!", True, False)
    quoted = steps_of(spec_of(talk), ': "' + "x" * 279)
    (turn,) = [step.turn for step in quoted if isinstance(step, Say)][:1]
    assert (turn.repaired, turn.truncated) == (True, True)


@pytest.mark.parametrize("given", [{"details": TYPED}, {}])
def test_the_words_of_people_and_of_old_episodes_are_never_repaired(talk: LoadedScenario, given: Any) -> None:
    spec = spec_of(talk) if given else replace(spec_of(talk), edition=1)
    words = 'Hi! Bo: "Hello!" [none]'
    assert turns_of(steps_of(spec, f": {words}", **given))[0] == (f"Ana: {words}", False)


def test_a_person_is_known_by_what_is_stored(talk: LoadedScenario) -> None:
    request = next(MODES["agents"](spec_of(talk)))
    assert isinstance(request, Ask)
    backend = PersonBackend(lambda _: Action("speak", "Hi! Bo: Hello!"))
    backend.submit(request.request)
    (done,) = backend.poll()
    assert isinstance(done.result, Generation) and done.result.typed
    assert not Generation("", "finished", "human").typed


# ---- the grammar ---------------------------------------------------------------------------------------------------


def form_of(loaded: LoadedScenario, **given: Any) -> Any:
    step = next(MODES["agents"](replace(spec_of(loaded), **given)))
    assert isinstance(step, Ask)
    return step.request.form


def test_the_grammar_keeps_out_what_it_can(engine_model: LlamaModel, talk: LoadedScenario) -> None:
    form = form_of(talk)
    assert admits(engine_model, form, ": 'Dune' is my \"favourite\".")
    for text in (': "Hello."', ": [none]", ": Well [none]", ": a ] b"):
        assert not admits(engine_model, form, text)
        assert admits(engine_model, form_of(talk, edition=1), text), "as in runs that began before"


def test_a_scenario_whose_texts_have_brackets_may_say_them(engine_model: LlamaModel) -> None:
    loaded = parse_scenario(TALK.replace("in a kitchen.", "at a door with a sign [closed]."), "talk.yaml")
    assert admits(engine_model, form_of(loaded), ": The sign says [closed].")
    assert not admits(engine_model, form_of(loaded), ': "Hello."')


# ---- storage and reports -------------------------------------------------------------------------------------------


def test_repairs_are_stored_counted_and_shown(store: Store, talk: LoadedScenario) -> None:
    run_id = start(Plan((talk,), ("agents",), "scripted:quoter"), store, Quiet(), lambda _: None).run_id
    turns = store.rows("SELECT text, repaired FROM v_turns ORDER BY turn")
    assert turns and all(row["repaired"] and not row["text"].startswith('"') for row in turns)
    raw = store.rows("SELECT text FROM generations ORDER BY generation LIMIT 1")[0]["text"]
    assert raw.startswith(': "'), "the whole text stays with its generation"
    assert report(store, run_id).as_json()["comparison"][0]["repaired_rate"] == 1
    plain = start(Plan((talk,), ("agents",), "scripted"), store, Quiet(), lambda _: None).run_id
    assert report(store, plain).as_json()["comparison"][0]["repaired_rate"] == 0
    episode = store.rows("SELECT episode_id FROM episodes WHERE run_id = ?", [run_id])[0]["episode_id"]
    assert (
        "what the model wrote beyond this utterance was left out" in CliRunner().invoke(cli, ["show", episode]).output
    )


def test_scripted_replies_are_read_as_those_of_a_model(talk: LoadedScenario) -> None:
    backend = ScriptedBackend(replies=[Action("speak", '"Hi."')])
    request = next(MODES["agents"](spec_of(talk)))
    assert isinstance(request, Ask)
    backend.submit(request.request)
    (done,) = backend.poll()
    assert isinstance(done.result, Generation) and not done.result.typed
