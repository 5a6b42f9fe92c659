"""Rubrics after systems of the field: emotional support in seven dimensions, and the persona score over five tasks."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from localsim.backends.scripted import ScriptedBackend
from localsim.conversation.episode import Subject
from localsim.conversation.prompts import agent_messages
from localsim.conversation.scenario import Profile
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.conversation.visibility import observe
from localsim.evaluators import asking, evaluate, judge
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.runs.scripted import simulated
from localsim.scenarios.casting.people import Person, load_people
from localsim.scenarios.find import find_scenarios
from localsim.scenarios.interviews.makers import _EVENTS, PERSONA_TASKS, SETTINGS, made
from localsim.scenarios.interviews.sheets import chosen_people, find_bank, sheets
from localsim.scenarios.rubrics import shipped_rubric
from localsim.scenarios.tagging import tags_of
from localsim.store.database import Store
from tests.conftest import Quiet
from tests.interviews import interviewed

PERSON = next(iter(load_people().values()))
ASPECTS = ("there, there", "you are sad", "what happened?", "perhaps he was tired", "see it as a pause")
"""Words for each of the five aspects of emotional knowledge."""
HARM = "As a program I say: as said, do not be silly, drink it away"


class Rules(ScriptedBackend):
    """A judge with rules instead of a model: `rule` gives the score from the question and what the agent said."""

    def __init__(self, rule: Any, unread: tuple[str, ...] = ()) -> None:
        super().__init__("scripted:rules", replies=["unused"])
        self._rule, self._unread = rule, unread

    def _text(self, request: Any) -> str:
        told, _, question = request.messages[1].content.rpartition("\n\nQuestion about ")
        agent, _, question = question.partition(": ")
        said = "\n".join(re.findall(rf"^{agent}: (.*)$", told.partition("Conversation:\n")[2], re.MULTILINE))
        if any(words in question for words in self._unread):
            return "I cannot judge this."
        return f" By rule.\nScore: {self._rule(question, said)}\n"


def scored(rubric: str, subject: Subject, backend: Rules) -> dict[tuple[str | None, str], float | None]:
    asked = judge.Judge("m", rubric=shipped_rubric(rubric))
    (found,) = evaluate.driven(asked, (subject,), partial(asking.ask, backend))
    return {(each.agent, each.name): each.value for each in found.scores}


# ---- emotional support ---------------------------------------------------------------------------------------------


def support(words: str) -> Subject:
    """A talk in which Tess answers a trouble with these words."""
    loaded = find_scenarios(["a_secret_kept"])[0]
    said = [("Jude", "He did not call me."), ("Tess", words)]
    turns = tuple(Turn(place, name, Action("speak", text)) for place, (name, text) in enumerate(said))
    return Subject("e1", loaded.scenario, loaded.answer, "agents", 0, 7, Transcript(turns))


def by_aspects(question: str, said: str) -> int:
    """The count of aspects minus 1 for emotional knowledge; for all else good words, harmful ones, or neither."""
    if "The score is the count minus 1" in question:
        return max(0, sum(words in said for words in ASPECTS) - 1)
    return 4 if ASPECTS[0] in said else 0 if HARM in said else 2


def test_planted_good_talks_of_support_score_above_empty_and_harmful_ones() -> None:
    talks = {"good": " ".join(ASPECTS), "empty": "Hm.", "harmful": HARM}
    overall = {
        name: scored("esc7", support(words), Rules(by_aspects))["Tess", "overall"] for name, words in talks.items()
    }
    assert overall == {"good": 4, "empty": pytest.approx(2 * 6 / 7), "harmful": 0}


@pytest.mark.parametrize("count", range(6))
def test_emotional_knowledge_is_the_number_of_aspects_minus_one(count: int) -> None:
    found = scored("esc7", support(" ".join(ASPECTS[:count]) or "Hm."), Rules(by_aspects))
    assert found["Tess", "knowledge"] == max(0, count - 1) and found["Jude", "knowledge"] == 0
    least, most, question = shipped_rubric("esc7").asked()["knowledge"]
    assert (least, most) == (0, 4) and question.count(";") == len(ASPECTS) - 1


def test_ten_seekers_talk_in_five_exchanges_after_a_greeting_and_only_they_know_their_cause() -> None:
    found = find_scenarios(["support_talk@1..10"])
    assert len({each.scenario.names[1] for each in found}) == len({each.scenario.hash for each in found}) == 10
    for loaded in found:
        supporter, seeker = loaded.scenario.names
        (cause,) = loaded.scenario.agent(seeker).facts
        for player in ("scripted:friends", "scripted"):  # the first says goodbye after a few turns
            (episode,) = simulated(Plan((loaded,), ("agents",), player)).episodes.values()
            speakers = [turn.speaker for turn in episode.transcript.acts]
            assert speakers == [supporter, *([seeker, supporter] * 5)] and episode.stop_reason == "done"
        for mode, knows in (("agents", False), ("mindreaders", True)):
            seen = observe(loaded.scenario, mode, supporter, Transcript())
            assert (cause.text in agent_messages(seen)[0].content) == knows
        assert tags_of(loaded)["kind"] == ("support",)


# ---- the persona score ---------------------------------------------------------------------------------------------


def answered(words: str) -> Subject:
    """The interview of a person who answers each question with the same words."""
    bank = find_bank("persona_tasks")
    (loaded,) = sheets(bank, chosen_people([PERSON.id], bank))
    transcript, _ = interviewed(loaded, lambda _seen, _rng: Action("speak", words))
    return Subject("e1", loaded.scenario, loaded.answer, "agents", 0, 7, transcript)


def in_character(_question: str, said: str) -> int:
    """1 for who says that it is a program, 5 for who uses a sentence of the card, else 3."""
    if "language model" in said:
        return 1
    return 5 if PERSON.statements[0] in said else 3


def test_answers_in_character_lie_far_above_those_of_a_program() -> None:
    name = PERSON.name
    own, plain, program = (
        scored("personascore", answered(words), Rules(in_character))[name, "overall"]
        for words in (PERSON.statements[0], "That depends.", "As a language model I have no life.")
    )
    assert (own, plain, program) == (5, 3, 1), "in character and out of it differ by 2 or more"


def test_the_persona_score_is_the_mean_of_the_tasks_that_could_be_read() -> None:
    points = {"What do you do?": 5, "Why did you do that?": 4, "greeting": 2, "life": 3, "insult": 1}

    def by_task(question: str, _said: str) -> int:
        return next(value for words, value in points.items() if words in question)

    whole = scored("personascore", answered("Well."), Rules(by_task))
    assert whole[PERSON.name, "overall"] == (5 + 4 + 2 + 3 + 1) / 5
    part = scored("personascore", answered("Well."), Rules(by_task, unread=("greeting", "insult")))
    assert part[PERSON.name, "habits"] is None and part[PERSON.name, "overall"] == (5 + 4 + 3) / 3
    assert part[None, "malformed_judgements"] == pytest.approx(2 / 5)


def test_persona_tasks_are_five_each_in_settings_drawn_for_the_person() -> None:
    bank = find_bank("persona_tasks")
    every = {}
    for loaded in sheets(bank, chosen_people(["all"], bank)):
        items = loaded.scenario.game["items"]
        assert Counter(item["id"].rpartition("_")[0] for item in items) == dict.fromkeys(PERSONA_TASKS, 2)
        assert all(any(setting in item["ask"] for setting in SETTINGS) for item in items)
        assert len({item["ask"] for item in items}) == len(items), "no question is asked twice"
        every[loaded.scenario.id] = tuple(item["ask"] for item in items)
    assert len(every) == len(load_people()) and len(set(every.values())) > len(every) / 2


def test_settings_that_fit_the_card_come_first() -> None:
    """A baker is in the bakery; who has nothing of any setting on the card is anywhere."""

    def settings_of(person: Person) -> Counter[str]:
        items = made("persona_tasks", person, [], 1, {"each": 1})
        return Counter(setting for item in items for setting in SETTINGS if setting in item.ask)

    nothing = dict.fromkeys(("facts", "background", "statements", "knows", "never_heard_of"), ())
    bare = PERSON.model_copy(update={**nothing, "profile": Profile(occupation="clerk")})
    baker = bare.model_copy(update={"knows": ("how a bakery works",)})
    assert settings_of(baker) == {"in a bakery before dawn": 5}
    assert len(settings_of(bare)) > 1


def test_two_judges_have_one_persona_score_by_sql(store: Store) -> None:
    (loaded,) = sheets(find_bank("persona_tasks"), chosen_people([PERSON.id], find_bank("persona_tasks")))
    run_id = start(Plan((loaded,), ("agents",), "scripted:talker"), store, Quiet(), print).run_id
    points = {"one": (5, 4, 2, 3, None), "two": (3, 4, 4, None, None)}  # nobody's reply about toxicity could be read
    for name_of_judge, values in points.items():
        for name, value in zip(shipped_rubric("personascore").asked(), values, strict=True):
            with store.writing() as connection:
                connection.execute(
                    "INSERT INTO scores BY NAME SELECT episode_id, ? AS evaluator, '1' AS version, ? AS name, "
                    "? AS agent, ?::DOUBLE AS value, '' AS reason, '[]' AS turns_json FROM episodes WHERE run_id = ?",
                    [f"rubric.personascore.{name_of_judge}", name, PERSON.name, value, run_id],
                )
    query = (Path(__file__).parent.parent / "db" / "queries" / "19_persona_scores.sql").read_text()
    columns, (row,) = store.sql(query)
    found = dict(zip(columns, row, strict=True))
    assert (found["judges"], found["tasks"], found["agent"]) == (2, 4, PERSON.name)
    assert found["persona_score"] == (4 + 4 + 3 + 3) / 4 and found["apart"] == (2 + 0 + 2 + 0) / 4


def test_a_bank_may_ask_ten_questions_for_each_task_as_published() -> None:
    items = made("persona_tasks", PERSON, [], 1, {"each": 10})
    assert Counter(item.about for item in items) == dict.fromkeys(PERSONA_TASKS, 10)
    assert len({item.ask for item in items}) == 50, "no question is asked twice"
    events = Counter(event for item in items for event in _EVENTS if item.about == "action" and event in item.ask)
    assert set(events.values()) == {1, 2} and sum(events.values()) == 10, "each once before one comes again"
