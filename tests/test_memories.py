"""Memories: the published ranks by hand, shown only when they come to mind, and carried from one talk to the next."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from localsim.cli import cli
from localsim.conversation.episode import SIMULATED, Mode
from localsim.conversation.memories import DECAY, Memory, Recall, bm25, emotions_of, recalled
from localsim.conversation.modes import MODES
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput
from localsim.evaluators.scorers import Overlap
from localsim.finetune.chats import chats_of
from localsim.leakage.meaning import encode
from localsim.reports.audit import audit_run
from localsim.reports.audit.prompts import held, leaks_at_first
from localsim.runs.plan import Plan
from localsim.runs.remembering import remembered
from localsim.runs.runner import start
from localsim.runs.scripted import simulated
from localsim.scenarios.parse import dump_scenario, parse_scenario
from localsim.store.database import Store
from localsim.store.episodes import load_episode
from localsim.store.queries.scoring import subjects
from scripts.check_rules import played
from tests.conftest import TALK, Quiet, generated, spec_of

# ---- ranks -----------------------------------------------------------------------------------------------------------


def best_of(name: str, k: int) -> str:
    """The names of the memories that come to mind, the best first.

    Each has an embedding by hand and a strength of joy; all other emotions, and all of the question, have strength 1.
    """
    places = {"?": (0.0, 0.0), "a": (0.1, 0.0), "b": (0.3, 0.0), "c": (0.5, 0.0), "d": (0.9, 0.0)}
    joys = {"a": 8.2, "b": 6.4, "c": 1.9, "d": 1.45}
    memories = [Memory(text=text, emotion=(joy, *([1.0] * 7))) for text, joy in joys.items()]
    recall = Recall(k=k, by=name)  # type: ignore[arg-type]
    return "".join(
        each.text for each in recalled(memories, recall, "?", lambda texts: [places[text] for text in texts])
    )


def test_the_four_published_combinations_rank_hand_made_vectors_as_by_hand() -> None:
    """d_s is .1, .3, .5, .9 and d_e = 1 - (joy + 7) / (sqrt 8 sqrt(joy^2 + 7)) is .376, .316, .034, .010.

    Sums .476, .616, .534, .910; products .038, .095, .017, .009. The two nearest are a and b, of which b is felt more
    alike; the two that are felt most alike are c and d, of which c is nearer.
    """
    assert best_of("C-A", 4) == "acbd"
    assert best_of("C-M", 4) == "dcab"
    assert (best_of("S-C", 1), best_of("S-C", 2)) == ("b", "dc")
    assert (best_of("S-S", 1), best_of("S-S", 2)) == ("c", "ab")
    assert best_of("emotion", 2) == "dc"


def test_words_are_ranked_by_bm25_as_by_hand() -> None:
    """N = 2, both of four words: idf = ln(1 + 1.5/1.5) for a word of one text, and tf * 2.5 / (tf + 1.5)."""
    texts = ["red boat harbour storm", "red bicycle red street"]
    once, twice = bm25("boat", texts), bm25("red", texts)
    assert once == pytest.approx([math.log(2) * 2.5 / 2.5, 0])
    rare = math.log(1 + 0.5 / 2.5)
    assert twice == pytest.approx([rare, rare * 2 * 2.5 / 3.5])


def test_recency_emotion_and_weights_as_by_hand() -> None:
    old, new = Memory(text="The boat sank.", age=100), Memory(text="We had tea.", age=1)
    glad, mad = Memory(text="x", emotion="joy"), Memory(text="y", emotion="anger")

    def best(by: Any, query: str, *memories: Memory) -> str:
        return recalled(memories, Recall(k=1, by=by), query)[0].text

    assert best("recency", "boat", old, new) == new.text and best("words", "boat", old, new) == old.text
    # words: 1 against 0; recency: .995^100 = .606 against .995
    assert best({"words": 1, "recency": 1}, "boat", old, new) == old.text
    assert pytest.approx(2.57, abs=0.01) == 1 / (DECAY - DECAY**100)
    assert best({"words": 1, "recency": 2.5}, "boat", old, new) == old.text
    assert best({"words": 1, "recency": 2.6}, "boat", old, new) == new.text
    assert best("emotion", "I was so happy and laughed.", mad, glad) == "x"
    assert best("emotion", "That is unfair, I am furious.", glad, mad) == "y"
    assert emotions_of("Happy, happy, glad!")[:2] == [10, 1]
    assert recalled((old, new), Recall(k=0), "boat") == ()
    assert recalled((old, new), Recall(by="meaning"), "boat") == (), "nothing compares meanings"


def test_meaning_finds_what_shares_no_word_and_comes_with_the_spec() -> None:
    boat, tea = Memory(text="His boat lies in the harbour."), Memory(text="She likes green tea.", age=0)
    question = "Which ship does Cy own?"
    assert recalled((boat, tea), Recall(k=1), question) == (tea,), "no common word: the later of two equals"
    assert recalled((boat, tea), Recall(k=1, by="meaning"), question, encode) == (boat,)
    loaded = with_recall(REMEMBERING, by="S-S")
    assert Plan((loaded,), ("agents",), "scripted").specs()[0].encode is encode
    assert Plan((with_recall(REMEMBERING, by="words"),), ("agents",), "scripted").specs()[0].encode is None
    with pytest.raises(ValueError, match="recalled by meaning"):
        next(MODES["agents"](spec_of(loaded)))


# ---- what is shown ---------------------------------------------------------------------------------------------------

BOAT, TEA, BEE = "Cy said: My boat is called Kestrel.", "Cy likes green tea.", "Dee sold the seventh hive in spring."
REMEMBERING = TALK.replace(
    "goal: Find out", f"memories: [{{text: '{BOAT}'}}, {{text: {TEA}}}]\n    goal: Find out"
).replace("goal: Keep", f"memories: [{{text: {BEE}}}]\n    goal: Keep")


def with_recall(text: str, **recall: Any) -> LoadedScenario:
    return parse_scenario(text + f"recall: {json.dumps(recall)}\n", "talk.yaml")


@pytest.mark.parametrize("mode", SIMULATED)
@pytest.mark.parametrize("layout", ["3", "4"])
def test_a_prompt_has_what_comes_to_mind_for_its_turn_and_nothing_else(mode: Mode, layout: str) -> None:
    """Ana's two memories are about a boat and tea; the one that the last words ask for is in the note, and no other."""
    loaded = with_recall(REMEMBERING, k=1)
    asks = {"Ana": "What about tea?", "Bo": "What is the name of the boat?"}
    requests, _ = played(loaded, mode, 1, lambda seen, _rng: said(asks[seen.viewer]), layout)
    assert not any(
        text in message.content for each in requests for text in (BOAT, TEA, BEE) for message in each.messages
    )
    alone = mode == "agents"
    for each in [request for request in requests if request.turn in (2, 4)]:
        assert (BOAT in each.note) and (TEA not in each.note)
        assert (BEE in each.note) == (not alone)
        assert f"({'You remember' if each.speaker == 'Ana' else 'Ana remembers'}: {BOAT})" in each.note


def said(text: str) -> Any:
    from localsim.conversation.transcript import Action

    return Action("speak", text)


def test_without_memories_notes_and_hashes_are_what_they_were() -> None:
    plain = parse_scenario(TALK, "talk.yaml")
    assert with_recall(TALK, k=3).scenario.hash == plain.scenario.hash
    assert with_recall(TALK, k=2).scenario.hash != plain.scenario.hash
    assert parse_scenario(REMEMBERING, "talk.yaml").scenario.hash != plain.scenario.hash
    requests, _ = played(plain, "agents", 1)
    assert {each.note for each in requests} == {""}


def test_the_audit_finds_a_foreign_memory_and_grants_the_own() -> None:
    loaded = parse_scenario(REMEMBERING, "talk.yaml")
    prompt = f"You are Ana. (You remember: {BOAT}) (Bo remembers: {BEE})"
    assert list(held(prompt, loaded, "agents", "Ana", [])) == [("memory of Bo", BEE)]
    assert list(held(prompt, loaded, "mindreaders", "Ana", [])) == []
    assert {what for what, _ in held(prompt, loaded, "agents", "Bo", [])} == {"memory of Ana"}
    assert list(held(prompt, loaded, "agents", "Ana", [], see="profile")) == [("memory of Bo", BEE)]
    assert list(leaks_at_first(loaded)) == []


def test_a_training_row_has_the_notes_of_the_prompts() -> None:
    loaded = with_recall(REMEMBERING, k=1)
    requests, turns = played(loaded, "agents", 1, layout="4")
    from localsim.conversation.transcript import Transcript

    talk = Transcript(tuple(turns))
    for chat in chats_of(loaded.scenario, "agents", talk, "4"):
        notes = [request.note for request in requests if request.speaker == chat.name]
        assert [each.text for each in chat.notes] == notes and any("remember" in note for note in notes)
    with pytest.raises(InvalidInput, match="memories come to mind in notes"):
        chats_of(loaded.scenario, "agents", talk, "3")


# ---- from one talk to the next ---------------------------------------------------------------------------------------

FIRST = """
version: 1
id: first
title: A talk about a boat
info: {what: One tells and the other hears.}
setting: Cy and Bo meet at the harbour.
agents:
  - {name: Cy, goal: Tell Bo about your boat., facts: [{id: boat, text: The boat is called Kestrel., terms: [Kestrel]}]}
  - {name: Bo, goal: Listen.}
limits: {turns: 4}
"""
SECOND = """
version: 1
id: second
title: Another talk
info: {what: A question about the boat.}
setting: Ana asks Bo in the kitchen about the boat of Cy.
agents: [{name: Ana, goal: Ask Bo about the boat.}, {name: Bo, goal: Answer Ana.}]
limits: {turns: 4}
begun: ["Ana: Bo, what is the boat called?"]
checks: [{name: knows, said: [Kestrel], by: Bo}]
"""


def passed(document: Any, mode: Mode = "agents") -> float | None:
    loaded = parse_scenario(dump_scenario(document), "second.yaml")
    kept = simulated(Plan((loaded,), (mode,), "scripted:rememberer"))
    (scores,) = kept.scores.values()
    return {each.name: each.value for each in scores if hasattr(each, "name")}["check.knows"]  # type: ignore[attr-defined]


def test_what_was_told_in_one_talk_is_answered_in_the_next(store: Store) -> None:
    """A player that says only what comes to its mind: 1 with the memories of its own talk; 0 without, and with those
    of another person.
    """
    first, second = parse_scenario(FIRST, "first.yaml"), parse_scenario(SECOND, "second.yaml")
    run_id = start(Plan((first,), ("agents",), "scripted:teller"), store, Quiet(), print, leaks=False).run_id
    document = remembered(store, run_id, second)
    ana, bo = document.agents
    assert (bo.memories[0].text, bo.memories[0].age) == ("Cy said: The boat is called Kestrel.", 2.0), (
        "two turns followed"
    )
    assert ana.memories == () and passed(document) == 1
    assert passed(second.document) == 0, "nothing is remembered"
    moved = (ana.model_copy(update={"memories": bo.memories}), bo.model_copy(update={"memories": ()}))
    foreign = document.model_copy(update={"agents": moved})
    assert passed(foreign) == 0, "Ana remembers, and Bo is asked"
    nothing = document.model_copy(update={"recall": Recall(k=0)})
    assert passed(nothing) == 0, "memories that nothing recalls"
    twice = remembered(store, run_id, LoadedScenario(*document.split(), "second"))
    assert len(twice.agents[1].memories) == 2 * len(bo.memories)
    assert twice.agents[1].memories[0].age == 2.0 + len(bo.memories)


def test_remember_writes_the_scenario_of_the_run_and_refuses_what_has_no_sense(store: Store) -> None:
    first, second = parse_scenario(FIRST, "first.yaml"), parse_scenario(SECOND, "second.yaml")
    start(Plan((first,), ("agents",), "scripted:teller"), store, Quiet(), print, leaks=False)
    told = CliRunner().invoke(cli, ["scenarios", "remember", "@last", "-o", "again.yaml"])
    assert told.exit_code == 0, told.output
    again = parse_scenario(Path("again.yaml").read_text(), "again.yaml")
    assert again.scenario.id == "first" and all(agent.memories for agent in again.scenario.agents)
    run_id = start(Plan((again,), ("agents", "script"), "scripted"), store, Quiet(), print, leaks=False).run_id
    assert audit_run(store, run_id).violations == ()
    with pytest.raises(InvalidInput, match="several modes"):
        remembered(store, run_id)
    strangers = parse_scenario(SECOND.replace("Bo", "Eve"), "second.yaml")
    with pytest.raises(InvalidInput, match="nobody in second was there"):
        remembered(store, store.run_id("@last-1"), strangers)
    assert second.scenario.begun


def test_who_remembers_a_fact_uses_nothing_untold() -> None:
    from localsim.conversation.episode import Subject
    from localsim.conversation.transcript import Action, Transcript, Turn
    from localsim.evaluators import leaks
    from localsim.leakage.detector import LeakageDetector
    from tests.test_leakage import finding

    def used(text: str) -> float | None:
        scenario = parse_scenario(text, "first.yaml").scenario
        talk = Transcript(
            (Turn(0, "Cy", Action("speak", "Hi.")), Turn(1, "Bo", Action("speak", "How is the Kestrel?")))
        )
        subject = Subject("e", scenario, parse_scenario(text, "f").answer, "agents", 0, 1, talk)
        rows = [(fact, 1, "Bo", finding("disclosed")) for fact in leaks.private_facts(scenario)]
        turns = leaks.turns_of(subject)
        found = leaks.evaluation(subject, turns, leaks.with_terms(scenario, turns, rows, LeakageDetector()))
        return {(each.name, each.agent): each.value for each in found.scores}["omniscient_leaks", "Bo"]

    memory = "{name: Bo, memories: [{text: Cy told Bo that the boat is called Kestrel.}], goal"
    assert used(FIRST) == 1 and used(FIRST.replace("{name: Bo, goal", memory)) == 0


# ---- documents as passages -------------------------------------------------------------------------------------------

FILM = (
    "The film is set in a lighthouse on a rocky island.",
    "Its keeper collects broken clocks and repairs them at night.",
    "A letter from the mainland arrives forty years too late.",
)


def film(**recall: Any) -> LoadedScenario:
    memories = json.dumps([{"text": text} for text in FILM])
    text = SECOND.replace("goal: Answer Ana.", f"memories: {memories}, goal: Answer Ana.")
    text = text.replace("turns: 4", "turns: 2")
    return with_recall(text.replace("what is the boat called?", "what does the keeper of the clocks do?"), **recall)


@pytest.mark.model
def test_a_span_is_said_word_by_word_and_a_foreign_sentence_is_flagged(store: Store) -> None:
    """The same seeds: who must say a span lies wholly in the document, who is shown nothing does not."""
    shares = {}
    for name, recall in {"ignore": {"k": 0}, "span": {"k": 1, "span": True}}.items():
        plan = Plan((film(**recall),), ("agents",), "starter", seed=3)
        (kept,) = subjects(store, start(plan, store, Quiet(), print, leaks=False).run_id)
        scores = {(each.name, each.agent): each for each in Overlap().evaluation(kept).scores}
        shares[name] = scores["overlap_own", "Bo"].value, scores["foreign_turns", "Bo"].turns
        if name == "span":
            own = [turn for turn in kept.transcript.turns[1:] if turn.speaker == "Bo" and turn.action.type == "speak"]
            assert own and all(turn.action.text in FILM for turn in own)
    assert shares["span"] == (1, ()) and shares["ignore"][0] < 0.5 and shares["ignore"][1]


# ---- a second scene --------------------------------------------------------------------------------------------------


def test_in_a_second_scene_each_remembers_what_it_noticed_in_the_first(store: Store) -> None:
    """A narrated scene is told to those who are there: nobody remembers what happened in another room, and two plays
    of the second scene are the same byte for byte.
    """
    scene = generated("narrated")
    start(Plan((scene,), ("agents",), "scripted:any", seed=3), store, Quiet(), print, leaks=False)
    document = remembered(store, "@last")
    talk = load_episode(store, store.episode_id("@last")).transcript
    unnoticed = 0
    for agent in document.agents:
        texts = [memory.text for memory in agent.memories]
        for turn in talk.turns:
            reads = turn.readers is None or agent.name in turn.readers
            unnoticed += turn.told and not reads and turn.action.text not in texts
            assert not turn.told or not reads or turn.action.text in texts
        own = {turn.action.text for turn in talk.turns if turn.readers is None or agent.name in turn.readers}
        assert all(any(said in text for said in own) for text in texts)
    assert unnoticed > 0, "somebody was elsewhere"
    second = Plan((LoadedScenario(*document.split(), "second"),), ("agents",), "scripted:any", seed=3)
    one, two = (next(iter(simulated(second).episodes.values())) for _ in range(2))
    assert [turn.line for turn in one.transcript.turns] == [turn.line for turn in two.transcript.turns]
    run_id = start(second, store, Quiet(), print, leaks=False).run_id
    assert audit_run(store, run_id).violations == ()
    assert store.rows("SELECT 1 FROM contents WHERE text LIKE '%(You remember: %'")
