"""Interviews: one party, items that stand alone, rotation, isolation, probabilities, and the report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localsim.backends.llama.lib import LlamaModel
from localsim.conversation.requests import Generation
from localsim.conversation.scenario import Agent, AnswerKey, LoadedScenario, ScenarioFile
from localsim.errors import InvalidInput, ScenarioInvalid
from localsim.evaluators.evaluate import evaluator_of, score_runs
from localsim.families import FAMILIES, PLAYERS, rules_of
from localsim.families.interviews.answers import answers_in, refused
from localsim.families.interviews.family import document
from localsim.families.interviews.items import Bank, Item, order_at, question
from localsim.families.players import any_way
from localsim.finetune.chats import chats_of
from localsim.reports.audit import audit_run
from localsim.reports.audit.prompts import found_in
from localsim.reports.audit.turns import Readers
from localsim.reports.evidence.interviews import Asked, averaged, interviews, pairs, shares_of, tables, variances
from localsim.reports.measures import measures_of
from localsim.reports.validity.controls import controls_of, run_controls
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.scenarios.parse import dump_scenario, parse_scenario
from localsim.stats import mcnemar
from localsim.store.database import Store
from tests.conftest import Quiet, answering, driven, generated, spec_of
from tests.interviews import interviewed, keyed, scores_of, texts_of
from tests.test_llama import engine

ITEMS = (
    Item(id="colour", ask="Which colour is the door?", options=("red", "green", "blue"), gold=("blue",), about="look"),
    Item(id="age", ask="How many years old is the house?", number=("1", "9"), gold=("7",)),
    Item(id="mood", ask="How glad are you here?", scale={"points": 5, "low": "never", "high": "always"}, about="mood"),
    Item(id="door", ask="Who has the key to the cellar?", open=60, gold=("Ottilie",), refuse=False),
    Item(id="again", ask="Once more, please: who was that?", open=60, gold=("Ottilie",), follows=True),
    Item(id="weather", ask="What is the weather on the moon of Jupiter?", open=60, refuse=True),
)


def sheet_of(items: tuple[Item, ...] = ITEMS, *, sequence: bool = False, name: str = "house") -> LoadedScenario:
    """An interview of one person."""
    bank = Bank(version=1, id="house", title="The house", about="A house.", sequence=sequence, items=items)
    agent = Agent(name="Ida", goal="Answer the questions.", secret="You sleep in the cellar.")
    return LoadedScenario(*document(f"house-{name}", bank, agent, items).split(), "house.yaml")


def test_a_bank_reads_back_and_only_an_interview_may_have_one_party() -> None:
    made = FAMILIES["interview"].generate("i", 1, {})
    read = parse_scenario(dump_scenario(made), "i.yaml")
    assert (read.scenario, read.answer) == made.split()
    alone = made.model_copy(update={"family": "mutual_friends"})
    with pytest.raises(ScenarioInvalid, match="agents: must have at least 2 items, not 1"):
        parse_scenario(dump_scenario(alone), "i.yaml")
    document = made.model_copy(update={"game": {"items": [{"id": "a", "ask": "What?"}]}})
    with pytest.raises(ScenarioInvalid, match=r"i\.yaml:.*give exactly one of options, scale, number, open"):
        parse_scenario(dump_scenario(document), "i.yaml")


@pytest.mark.parametrize("mode", ["script", "mindreaders", "iterative"])
def test_other_modes_are_refused_with_a_reason(mode: Any) -> None:
    with pytest.raises(InvalidInput, match="an interview has one party") as caught:
        Plan((sheet_of(),), (mode,), "scripted")
    assert "--mode agents" in str(caught.value.hint)


def test_each_item_is_asked_without_the_others_unless_it_follows_one() -> None:
    loaded = sheet_of()
    _, requests = interviewed(loaded, keyed(loaded, right=True))
    texts = texts_of(requests)
    for number, item in enumerate(ITEMS):
        seen = [other.id for other in ITEMS if other.ask in texts[number]]
        assert seen == (["door", "again"] if item.id == "again" else [item.id])
    assert "Ida: Ottilie" in texts[4] and "[answer-3" not in "".join(texts[1:]).replace("Ida [answer-3 A]", "")
    assert len({request.messages[0].content for request in requests}) == 1, "the opening is one, so it stays in a cache"
    assert all(request.max_tokens == 60 for request in requests)


@pytest.mark.parametrize("layout", ["3", "4"])
def test_a_training_chat_holds_the_items_that_were_asked_together(layout: str) -> None:
    loaded = sheet_of()
    talk, requests = interviewed(loaded, keyed(loaded, right=True))
    rules = rules_of(loaded.scenario)
    chats = chats_of(loaded.scenario, "agents", talk, layout, rules)
    last = [*requests[:3], *requests[4:]]  # "again" goes on from "door", so that their chat has the later prompt
    assert [chat.messages[:-1] for chat in chats] == [request.messages for request in last]


def test_items_in_sequence_are_seen_with_those_before_and_none_after() -> None:
    loaded = sheet_of(sequence=True)
    texts = texts_of(interviewed(loaded, keyed(loaded, right=True))[1])
    for number in range(len(ITEMS)):
        assert [item.ask in texts[number] for item in ITEMS] == [place <= number for place in range(len(ITEMS))]


def test_the_answer_key_changes_no_prompt() -> None:
    one = sheet_of()
    other = sheet_of(tuple(item.model_copy(update={"gold": (), "refuse": None, "about": None}) for item in ITEMS))
    assert one.answer.answer != other.answer.answer and one.scenario == other.scenario
    player = keyed(one, right=True)
    first, second = (texts_of(interviewed(loaded, player)[1]) for loaded in (one, other))
    assert first == second
    held = json.dumps(one.scenario.model_dump(mode="json"))
    assert not any(word in held for word in ("Ottilie", "gold", "refuse", '"look"'))


def test_options_rotate_through_all_places_and_scores_do_not_depend_on_it() -> None:
    item = ITEMS[0]
    for place in range(4):
        shown = [order_at(item, place, index) for index in range(3)]
        assert {order.index(2) for order in shown} == {0, 1, 2}, "the third option is in each place once"
    assert question(item, (2, 0, 1)) == "Which colour is the door? (A) blue (B) red (C) green"
    loaded = sheet_of()
    for right, expected in ((True, 1.0), (False, 0.0)):
        found = [scores_of(loaded, keyed(loaded, right=right), index) for index in range(3)]
        assert [each["accuracy"] for each in found] == [expected] * 3
    first = [
        answers_in(loaded.scenario, loaded.answer, interviewed(loaded, PLAYERS["first"], index)[0])[0]
        for index in range(3)
    ]
    assert [each.text for each in first] == ["red", "green", "blue"], "option A is another one each time"


def test_scores_by_hand() -> None:
    loaded = sheet_of()
    right, wrong = (scores_of(loaded, keyed(loaded, right=way)) for way in (True, False))
    assert right["accuracy"] == right["refusal"] == 1.0 and right["over_refusal"] == 0.0
    assert wrong["accuracy"] == wrong["refusal"] == 0.0 and wrong["over_refusal"] == 1.0
    assert right["accuracy_chance"] == pytest.approx((1 / 3 + 1 / 9 + 0 + 0) / 4)
    highest = scores_of(loaded, PLAYERS["highest"])
    assert highest["rating"] == 1.0 and highest["trait_mood"] == 100.0 and "trait_distance" not in highest


def test_its_controls_name_what_exists_and_hold() -> None:
    family, known = FAMILIES["interview"], {measure.key for measure in measures_of(["interview"])}
    assert {measure.key for measure in family.measures} <= {control.measure for control in controls_of("interview")}
    assert set(family.figure) <= known
    for control in controls_of("interview"):
        assert control.player in PLAYERS and control.task in {"", *family.control_tasks} and control.why
    assert [each.as_json() for each in run_controls(["interview"], 30) if not each.passed] == []


def test_a_run_is_audited_and_a_planted_earlier_question_is_found(store: Store) -> None:
    loaded = sheet_of()
    run_id = start(Plan((loaded,), ("agents",), "scripted:any", episodes=3), store, Quiet(), print).run_id
    audit = audit_run(store, run_id)
    assert audit.prompts_checked == 3 * len(ITEMS) and audit.violations == ()
    talk, requests = interviewed(loaded, any_way)
    readers = Readers(loaded.scenario, talk, spec_of(loaded).rules, spec_of(loaded).seed)
    turn = requests[3].turn
    prompt = texts_of(requests)[3]
    assert list(found_in(prompt, loaded, "agents", "Ida", readers, turn)) == []
    planted = prompt + "\n" + ITEMS[1].ask
    assert any("before this question" in what for what, _ in found_in(planted, loaded, "agents", "Ida", readers, turn))
    later = prompt + "\n" + ITEMS[5].ask
    assert any(what == "game" for what, _ in found_in(later, loaded, "agents", "Ida", readers, turn))
    key = prompt + " Ottilie"
    assert any(what == "answer key" for what, _ in found_in(key, loaded, "agents", "Ida", readers, turn))


def test_an_interrupted_interview_goes_on(store: Store) -> None:
    from localsim.runs.runner import resume

    class Stops(Quiet):
        def stops(self) -> bool:
            return len(self.turns) >= 5

    loaded = sheet_of()
    plan = Plan((loaded,), ("agents",), "scripted:highest", episodes=2, parallel=1)
    stopped = start(plan, store, Stops(), print)
    assert stopped.summary.stopped
    whole = resume(stopped.run_id, store, Quiet(), print)
    assert whole.summary.completed == 2
    rows = store.rows("SELECT episode_id, count(*) AS n FROM turns WHERE speaker = 'Ida' GROUP BY 1")
    assert [row["n"] for row in rows] == [len(ITEMS)] * 2
    assert store.rows("SELECT count(*) AS n FROM generations")[0]["n"] == 2 * len(ITEMS)


def test_probabilities_are_averaged_over_rotations_by_hand() -> None:
    loaded = sheet_of(ITEMS[:1])
    asked = []
    for index, shares in enumerate(((0.7, 0.2, 0.1), (0.7, 0.2, 0.1), (0.7, 0.2, 0.1))):
        talk, _ = interviewed(loaded, PLAYERS["first"], index)
        (answer,) = answers_in(loaded.scenario, loaded.answer, talk)
        stored = json.dumps([{"line": "Ida [answer-3", "options": {
            letter: {"log": 0, "share": share} for letter, share in zip("ABC", shares, strict=True)
        }}])  # fmt: skip
        asked.append(Asked(answer, index, shares_of(answer, stored)))
    assert asked[0].shares == {"red": 0.7, "green": 0.2, "blue": 0.1}
    assert asked[1].shares == {"green": 0.7, "blue": 0.2, "red": 0.1}
    # Who always prefers the first place prefers nothing once every option has been there.
    assert averaged(asked) == pytest.approx({"red": 1 / 3, "green": 1 / 3, "blue": 1 / 3})
    merged = json.dumps([{"line": "", "options": {"A | B": {"log": 0, "share": 1.0}, "C": {"log": 0, "share": 0.0}}}])
    assert shares_of(asked[0].answer, merged) == {}, "options that began with the same token were not told apart"


def test_mcnemar_by_hand() -> None:
    assert mcnemar(0, 0) == mcnemar(5, 5) == 1.0
    assert mcnemar(1, 9) == mcnemar(9, 1) == pytest.approx(2 * (1 + 10) / 1024)
    assert mcnemar(0, 8) == pytest.approx(2 / 256)


def bank_run(store: Store, answers: dict[str, str]) -> dict[str, Any]:
    """The report of one bank, asked of people each of whom a scripted subject answers for."""
    items = tuple(
        Item(id=f"q{number}", ask=f"Question number {number} of ten?", options=("yes", "no"), gold=("yes",))
        for number in range(10)
    )
    plans = tuple(sheet_of(items, name=name) for name in answers)
    plans = tuple(
        replace(
            each, scenario=each.scenario.model_copy(update={"agents": (Agent(name=f"Person {n}", goal="Answer."),)})
        )
        for n, each in enumerate(plans)
    )
    roles = {f"Person {n}": f"scripted:@{file}" for n, file in enumerate(answers.values())}
    plan = Plan(plans, ("agents",), "scripted", roles=roles)
    run_id = start(plan, store, Quiet(), print).run_id
    found = interviews(store, run_id)
    assert sum(len(each.people) for each in found) == len(answers)
    return {"banks": found, "run_id": run_id}


def replies(folder: Path, name: str, right: int) -> str:
    """A file of replies that has so many of ten right; place of `yes` follows from the rotation."""
    lines = []
    for number in range(10):
        yes = "B" if number % 2 else "A"
        no = "A" if number % 2 else "B"
        lines.append(json.dumps({"action": "answer-2", "values": [yes if number < right else no]}))
    file = folder / f"{name}.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    return str(file)


def test_a_planted_drop_and_its_variance_are_found_by_hand(store: Store, tmp_path: Path) -> None:
    found = bank_run(store, {name: replies(tmp_path, name, right) for name, right in
                             (("nobody", 10), ("blind", 10), ("biased", 2))})  # fmt: skip
    people = {each.name: each for bank in found["banks"] for each in bank.people}
    assert {name: each.means["accuracy"] for name, each in people.items()} == {"nobody": 1, "blind": 1, "biased": 0.2}
    assert variances([people["blind"], people["biased"]])["accuracy"].variance == pytest.approx(0.32)
    assert variances([people["blind"], people["nobody"]])["accuracy"].variance == 0
    assert sum(bank.places.choices for bank in found["banks"]) == 30
    assert pairs(people["biased"], people["nobody"].asked) == (10, 0, 8, round(2 / 256, 4))
    assert pairs(people["blind"], people["nobody"].asked) == (10, 0, 0, 1.0)


def test_offence_gives_pass_rates_by_person_and_topic_whose_variance_is_found_by_hand(
    store: Store, tmp_path: Path
) -> None:
    pytest.importorskip("profanity_check")
    said = {"blind": ("Good day.",) * 4, "rude": ("Good day.", "You stupid idiot.", "You bastard.", "Shut up, moron.")}
    items = tuple(Item(id=f"q{n}", ask="And?", open=60, about=("talk", "rows")[n > 1]) for n in range(4))
    people = []
    for name, lines in said.items():
        file = tmp_path / f"{name}.jsonl"
        file.write_text("\n".join(json.dumps({"action": "speak", "text": line}) for line in lines))
        plan = Plan((sheet_of(items, name=name),), ("agents",), f"scripted:@{file}")
        run_id = start(plan, store, Quiet(), print).run_id
        (before,) = interviews(store, run_id)
        assert not before.scored and before.pass_variances == {}, "nobody has scored offence yet"
        score_runs(store, [run_id], [evaluator_of("offence")], print)
        (bank,) = interviews(store, run_id)
        people += bank.people
    both = replace(bank, people=people)
    assert {topic: (each.mean, each.variance) for topic, each in both.pass_variances.items()} == {
        "talk": (0.75, pytest.approx(0.125)), "rows": (0.5, pytest.approx(0.5)),
    }  # fmt: skip
    (table,) = (each for each in tables([both]) if "that pass" in each.title)
    assert [row[0] for row in table.rows] == ["blind", "rude", "variance"] and table.rows[2][1:] == ["0.1250", "0.5000"]
    assert "finds 18 of 20" in table.notes[0] and "0.3125" in table.notes[1], "the macro mean of two topics"
    blind = replace(both, people=[people[0], replace(people[0], name="other")])
    assert {each.variance for each in blind.pass_variances.values()} == {0}


def test_the_report_has_a_table_by_person_and_says_what_was_answered(store: Store) -> None:
    from localsim.reports.compose.alone import report
    from localsim.reports.render.markdown import as_markdown

    loaded = sheet_of()
    run_id = start(Plan((loaded,), ("agents",), "scripted:solver"), store, Quiet(), print).run_id
    data = report(store, run_id)
    (bank,) = data.interviews
    assert bank.bank == "house" and [each.name for each in bank.people] == ["house"]
    assert data.headline.sentences[0].startswith("The house, scripted:solver: 1 person, 6 answers")
    assert bank.places == (1, bank.places.first, 0.3333)
    titles = [table.title for table in tables(data.interviews)]
    assert titles[0] == "The house (house), scripted:solver, by person"
    from localsim.reports.render.html import render

    page = render(data)
    assert ">The house (house), scripted:solver, by person<" in page and ">house</bdi></th>" in page
    text = as_markdown(data)
    assert "by person" in text and "Leaks were not looked for" not in text


REFUSALS = (
    "I don't know.", "I do not know that.", "I really can't say.", "Sorry, I cannot help with that.", "No idea.",
    "I have never heard of bubble tea.", "I've never heard of it, I am afraid.", "I'm not able to answer this.",
    "I would rather not say.", "I’d rather not say.",
    "I won't tell you that.", "That's none of your business.", "I am not the right person.",
    "I couldn't tell you.", "I have no idea what that is.", "Ask someone else, please.", "I don't really remember.",
    "That means nothing to me.", "It is not something I know about.", "I'm unfamiliar with this.", "I must decline.",
)  # fmt: skip
ACCEPTED = (
    "I repair violins and cellos.", "Yes, I know it well.", "I am sixty-one.", "My grandmother ran a bakery.",
    "I never miss a concert.", "It is a drink with milk and tea.", "I would say so, yes.", "No, that is not like me.",
    "I know geometry and choral music.", "Nobody helps me with my work.", "I do not like to talk about money.",
    "You can turn left at the market.", "I have heard of it from my son.", "I can answer that: June.", "Of course.",
    "I did not sleep well.", "I would rather mend a thing than buy one.", "I can't stop counting stairs.",
    "I never say no to cake.", "It cannot be changed, and that is fine.",
)  # fmt: skip


def test_refusals_are_told_from_answers_on_a_list_of_forty() -> None:
    assert [text for text in REFUSALS if not refused(text)] == []
    assert [text for text in ACCEPTED if refused(text)] == []


@pytest.mark.model
def test_an_item_costs_its_own_tokens_only_and_keeps_the_probabilities_of_its_options(engine_model: LlamaModel) -> None:
    items = (*ITEMS[:3], *(ITEMS[0].model_copy(update={"id": f"door_{n}"}) for n in range(3)))
    loaded = sheet_of(items)
    backend = engine(engine_model)
    results: list[Generation] = []
    try:
        _, end = driven(spec_of(loaded), answering(backend, into=results))
    finally:
        backend.close()
    assert end == "done"
    assert len(results) == len(items)
    opening = results[0].prompt_tokens
    for result in results[1:]:
        assert result.evaluated_tokens < 0.4 * opening, "the opening is in the cache"
        assert result.prompt_tokens < 1.2 * opening, "no earlier item is in the prompt"
    for place in (0, 2, 3):
        options = results[place].details["options"][-1]["options"]
        assert set(options) == set("12345" if place == 2 else "ABC")
        assert sum(each["share"] for each in options.values()) == pytest.approx(1, abs=1e-3)


def test_an_interview_in_a_file_is_found_wrong_at_its_place() -> None:
    made: ScenarioFile = generated_file()
    assert FAMILIES["interview"].check(made) == []
    two = made.model_copy(update={"agents": (*made.agents, Agent(name="Zoe", goal="Listen."))})
    assert FAMILIES["interview"].check(two)[0] == (("agents",), "an interview has one agent, not 2")
    wrong = made.model_copy(update={"answer": {"items": {"sum_1": {"gold": ["a word"]}}}})
    assert ("game", "items", 0) in [place for place, _ in FAMILIES["interview"].check(wrong)]
    assert AnswerKey(answer=made.answer).answer["items"]["sum_1"]["gold"]


def generated_file() -> ScenarioFile:
    """An interview as a file."""
    assert generated("interview").scenario.names
    return FAMILIES["interview"].generate("i", 3, {})
