"""The banks that ship: their files, and scripted subjects that prove what each of them measures."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from localsim.conversation.episode import Observation
from localsim.conversation.scenario import Agent, Fact, LoadedScenario, Scenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.errors import InvalidInput, ScenarioInvalid
from localsim.families import PLAYERS, Player
from localsim.families.interviews.answers import answers_in
from localsim.families.interviews.items import ABSTAIN, Item
from localsim.families.interviews.players import UNKNOWN
from localsim.families.interviews.players import asked as question_in
from localsim.families.players import any_way
from localsim.reports.audit import audit_run
from localsim.reports.evidence.interviews import Asked, Group, interviews, pairs
from localsim.runs.interviews import interview_plan
from localsim.runs.plan import command_of
from localsim.runs.runner import start
from localsim.runs.words import STOPS
from localsim.scenarios.casting.people import load_people
from localsim.scenarios.documents import shipped_files
from localsim.scenarios.interviews.guidelines import FRAMINGS
from localsim.scenarios.interviews.knowing import WORDINGS, SourceTalk, known_in, who_knows
from localsim.scenarios.interviews.sheets import chosen_people, find_bank, sheets
from localsim.scenarios.tagging import tags_of
from localsim.store.database import Store
from tests.conftest import Quiet, spec_of
from tests.interviews import interviewed, keyed, scores_of, texts_of

BANKS = [file.stem for file in shipped_files("banks")]
PEOPLE = list(load_people())[:3]
ONES = ("accuracy", "refusal", "in_form")
"""Scores that are 1 for who answers right and 0 for who answers wrong."""


def scenario_of_talk() -> Scenario:
    """Three people, one of whom tells another something in private."""
    agents = tuple(
        Agent(name=name, goal="Talk.", facts=(Fact(id=f"{name}_fact", text=f"{name} owns a {what}.", terms=(what,)),))
        for name, what in (("Ana", "boat"), ("Bo", "horse"), ("Cy", "violin"))
    )
    return Scenario(version=1, id="talk", title="T", info={"what": "w"}, setting="A room.", agents=agents)


def talk() -> SourceTalk:
    """A talk in which Ana tells everybody of the boat, Bo tells Ana alone of the horse, and Cy nothing."""
    turns = (
        Turn(0, "Ana", Action("speak", "I own a boat, you know.")),
        Turn(1, "Bo", Action("speak", "Do not tell Cy: I own a horse."), readers=("Bo", "Ana")),
        Turn(2, "Cy", Action("speak", "What a nice day.")),
    )
    return SourceTalk("e1", scenario_of_talk(), Transcript(turns))


@cache
def asked(bank: str) -> tuple[LoadedScenario, ...]:
    """The scenarios of a bank for some people."""
    found = find_bank(bank)
    return sheets(found, chosen_people(PEOPLE, found), [talk()])


@pytest.mark.parametrize("bank", BANKS)
def test_gold_answers_score_one_and_wrong_ones_nothing_in_each_rotation(bank: str) -> None:
    for loaded in asked(bank):
        for index in (0, 1, 3):
            right, wrong = (scores_of(loaded, keyed(loaded, right=way), index) for way in (True, False))
            assert [right[name] for name in ONES if name in right] == [1.0] * sum(name in right for name in ONES)
            assert [wrong[name] for name in ONES if name in wrong] == [0.0] * sum(name in wrong for name in ONES)
            if "over_refusal" in right:
                assert (right["over_refusal"], wrong["over_refusal"]) == (0.0, 1.0)
            assert any(name in right for name in (*ONES, "over_refusal", "rating"))


@pytest.mark.parametrize("bank", BANKS)
def test_no_prompt_holds_what_only_judges_know(bank: str) -> None:
    """Without its answer key an interview has the same prompts; gold is in them only where everybody is shown it."""
    for loaded in asked(bank):
        items = loaded.scenario.game["items"]
        assert all(set(item) <= {"id", "ask", "options", "scale", "number", "open", "follows"} for item in items)
        bare = LoadedScenario(loaded.scenario, type(loaded.answer)({"items": {}}), "x")
        one, other = (texts_of(interviewed(each, PLAYERS["highest"])[1]) for each in (loaded, bare))
        assert one == other


@pytest.mark.parametrize("bank", ["role_mcq", "reasoning", "reasoning_open", "personas", "who_knows"])
def test_random_answers_are_right_as_often_as_by_chance(bank: str) -> None:
    right, expected, spread = 0, 0.0, 0.0
    for loaded in asked(bank):
        for index in range(4):
            seed = random.Random(f"{bank}/{loaded.scenario.id}/{index}")
            random_player: Player = lambda seen, _rng, seed=seed: any_way(seen, seed)  # type: ignore[misc]  # noqa: E731
            transcript, _ = interviewed(loaded, random_player, index)
            for answer in answers_in(loaded.scenario, loaded.answer, transcript):
                right += bool(answer.right)
                expected += answer.chance
                spread += answer.chance * (1 - answer.chance)
    assert expected and abs(right - expected) < 3.3 * math.sqrt(spread), "within 99.9% of chance"


@pytest.mark.parametrize("bank", ["role_mcq", "reasoning", "personas", "who_knows"])
def test_who_always_takes_the_first_option_gains_nothing_over_all_rotations(bank: str) -> None:
    for loaded in asked(bank):
        counts = {len(item["options"]) for item in loaded.scenario.game["items"] if "options" in item}
        rotations = max(counts) if all(max(counts) % each == 0 for each in counts) else 12
        found = [scores_of(loaded, PLAYERS["first"], index) for index in range(rotations)]
        accuracy = sum(each["accuracy"] or 0 for each in found) / rotations
        assert accuracy == pytest.approx(found[0]["accuracy_chance"])


def test_who_reads_the_card_knows_the_role_and_what_it_cannot_know() -> None:
    for loaded in asked("role_mcq"):
        assert scores_of(loaded, PLAYERS["solver"])["accuracy"] == 1.0
        abouts = Counter(key["about"] for key in loaded.answer.answer["items"].values())
        assert abouts["own_life"] >= 3 and abouts["cannot_know"] >= 3
        lacking = Agent(name=loaded.scenario.names[0], goal="Answer the questions.")
        bare = LoadedScenario(loaded.scenario.model_copy(update={"agents": (lacking,)}), loaded.answer, "x")
        given = answers_in(bare.scenario, bare.answer, interviewed(bare, PLAYERS["solver"])[0])
        own = [bool(each.right) for each in given if each.item.about == "own_life"]
        assert sum(own) < len(own) - 1, "without the card the own life is not known"


def test_a_relative_is_found_in_two_steps_and_by_neither_alone() -> None:
    """Who reads the card has 1; without the relations, or with the first option, nobody is beyond chance."""
    bank = find_bank("relatives")
    found = sheets(bank, chosen_people(["all"], bank))
    assert len(found) >= 15
    for loaded in found:
        card = [fact.text for fact in loaded.scenario.agents[0].facts]
        for item in loaded.scenario.game["items"]:
            assert all(any(text.endswith(f" works as {option}.") for text in card) for option in item["options"])
        assert scores_of(loaded, PLAYERS["solver"])["accuracy"] == 1.0
    blind = []
    for loaded in found:
        (me,) = loaded.scenario.agents
        bare = me.model_copy(update={"facts": tuple(fact for fact in me.facts if not fact.id.startswith("kin_"))})
        without = LoadedScenario(loaded.scenario.model_copy(update={"agents": (bare,)}), loaded.answer, "x")
        blind += [
            answer.right
            for index in range(4)
            for answer in answers_in(loaded.scenario, loaded.answer, interviewed(without, PLAYERS["solver"], index)[0])
        ]
    assert abs(sum(blind) / len(blind) - 0.25) < 3.3 * math.sqrt(0.25 * 0.75 / len(blind)), (
        "it is not known who is meant"
    )
    first = [scores_of(found[0], PLAYERS["first"], index)["accuracy"] or 0 for index in range(4)]
    assert sum(first) / 4 == pytest.approx(0.25)


def test_right_options_of_role_knowledge_are_on_no_other_side() -> None:
    people = load_people()
    for loaded in asked("role_mcq"):
        own = people[loaded.scenario.id.partition("-")[2]]
        card = " ".join([*own.knows, *own.own_words, str(own.profile.occupation)])
        for item in loaded.scenario.game["items"]:
            (gold,) = loaded.answer.answer["items"][item["id"]]["gold"]
            if gold in card:
                assert not any(option in card for option in item["options"] if option != gold), item
            else:
                assert gold in (UNKNOWN, "I have never heard of it.")


def test_reasoning_is_the_same_for_everybody_and_its_answers_are_computed() -> None:
    sheets_ = asked("reasoning")
    assert len({str(loaded.scenario.game["items"]) for loaded in sheets_}) == 1
    assert {loaded.scenario.id for loaded in sheets_} >= {"reasoning-nobody"}, "it compares with somebody plain"
    for loaded in sheets_:
        assert scores_of(loaded, PLAYERS["solver"])["accuracy"] == 1.0


def test_traits_have_as_many_reversed_items_as_not_and_distances_by_hand() -> None:
    for loaded in asked("traits"):
        keys = loaded.answer.answer["items"].values()
        assert Counter((key["about"], key.get("reverse", False)) for key in keys) == dict.fromkeys(
            ((trait, way) for trait in loaded.answer.answer["traits"] for way in (False, True)), 4
        )
        card = loaded.answer.answer["traits"]
        found = scores_of(loaded, PLAYERS["highest"])
        assert {found[f"trait_{trait}"] for trait in card} == {50.0}
        assert found["trait_distance"] == pytest.approx(sum(abs(50 - value) for value in card.values()) / len(card))


FIVE = ("kept_knowledge", "kept_style", "kept_turns", "kept_nested", "kept_priority")


def test_instructions_on_a_passage_have_eighteen_sub_tasks_in_five_dimensions() -> None:
    for loaded in asked("rolemrc"):
        keys = loaded.answer.answer["items"]
        assert len({key["about"] for key in keys.values()}) == len(keys) == 18
        right, wrong, refuser = (
            {name: value for name, value in scores_of(loaded, player).items() if name.startswith("kept_")}
            for player in (keyed(loaded, right=True), keyed(loaded, right=False), PLAYERS["refuser"])
        )
        assert right == dict.fromkeys(FIVE, 1.0) and wrong == dict.fromkeys(FIVE, 0.0)
        # "I do not know that." keeps 2 of 4 plain questions, no narration, 1 of 2 second turns, no form, 1 of 2 orders.
        assert tuple(refuser[name] for name in FIVE) == (0.5, 0.0, 0.5, 0.0, 0.5)
        texts = texts_of(interviewed(loaded, keyed(loaded, right=True))[1])
        ids = [item["id"] for item in loaded.scenario.game["items"]]
        second = texts[ids.index("second_turn_1")]
        assert "three words at most" in second and "three words at most" not in texts[ids.index("second_turn_1") + 1]
        assert "has a gap" in texts[ids.index("second_turn_refuse_1")]


def test_who_knows_what_follows_from_readers_and_terms() -> None:
    found = {(known.fact.id, known.who): (known.yes, known.turn) for known in known_in(talk())}
    assert found == {
        ("Ana_fact", "Bo"): (True, 0), ("Ana_fact", "Cy"): (True, 0),
        ("Bo_fact", "Ana"): (True, 1), ("Bo_fact", "Cy"): (False, None),
        ("Cy_fact", "Ana"): (False, None), ("Cy_fact", "Bo"): (False, None),
    }  # fmt: skip
    items = who_knows([talk()], 1, {"facts": 6})
    assert len(items) == 6 * len(WORDINGS) and Counter(item.gold for item in items) == {("yes",): 24, ("no",): 24}
    assert len({item.about for item in items}) == len(WORDINGS) == 8
    assert all("only Bo and Ana can read this" in item.ask for item in items)
    assert who_knows([talk()], 1, {"facts": 2}) == who_knows([talk()], 1, {"facts": 2})


def test_who_can_tell_that_another_one_knows_follows_from_turns_that_both_read() -> None:
    """Ana knows of Bo's horse, and Cy, who did not read the whisper, cannot tell."""
    agents = {agent.name: agent for agent in scenario_of_talk().agents}
    tells = {
        (known.fact.id, known.who, by.name)
        for known in known_in(talk())
        for by in agents.values()
        if by.name != known.who and known.thought_by(by)
    }
    assert tells == {
        ("Ana_fact", "Bo", "Ana"), ("Ana_fact", "Bo", "Cy"), ("Ana_fact", "Cy", "Ana"), ("Ana_fact", "Cy", "Bo"),
        ("Bo_fact", "Ana", "Bo"),
    }  # fmt: skip
    items = who_knows([talk()], 1, {"facts": 0, "answers": 6, "beliefs": 10})
    gold = Counter((item.dimension, item.gold[0]) for item in items)
    assert gold == {("answerability", "yes"): 3, ("answerability", "no"): 3, ("belief", "yes"): 5, ("belief", "no"): 5}


def test_eight_temperaments_are_asked_who_knows_what_and_compared_with_nobody() -> None:
    found = find_bank("who_knows")
    given = sheets(found, chosen_people(["temperaments"], found), [talk()])
    assert len(given) == 9 and {each.scenario.id.partition("-")[2] for each in given} > {"neuroticism", "nobody"}
    assert len({each.scenario.agents[0].goal for each in given}) == 9, "each is told another trait"
    assert len({json.dumps(each.scenario.game["items"]) for each in given}) == 1, "and asked the same"


def test_a_bank_about_talks_takes_them_from_a_stored_run(store: Store) -> None:
    from localsim.runs.plan import Plan
    from localsim.scenarios.find import find_scenarios

    plan = Plan(tuple(find_scenarios(["mutual_friends_01"])), ("agents",), "scripted", episodes=2)
    run_id = start(plan, store, Quiet(), print).run_id
    about = interview_plan("who_knows", PEOPLE[:1], store, run_id, modes=("agents",), model="scripted:any")
    assert len(about.scenarios) == 2 and about.scenarios[0].scenario.game["items"]
    asked_run = start(about, store, Quiet(), print, leaks=False).run_id
    assert audit_run(store, asked_run).violations == ()
    (bank,) = interviews(store, asked_run)
    row = bank.as_json()
    assert {each["about"] for each in row["topics"]} == {f"wording_{number}" for number in range(1, 9)}
    assert row["topic_variance"]["accuracy"]["n"] == 8


def test_who_is_blind_to_the_persona_has_no_variance_and_no_drop(store: Store) -> None:
    plan = interview_plan("reasoning", PEOPLE, store, modes=("agents",), model="scripted:solver")
    run_id = start(plan, store, Quiet(), print, leaks=False).run_id
    assert audit_run(store, run_id).violations == ()
    (bank,) = interviews(store, run_id)
    row = bank.as_json()
    assert row["variance"]["accuracy"] == {"n": len(PEOPLE), "mean": 1.0, "variance": 0}
    own = [each["against_nobody"] for each in row["people"] if each["person"] != "nobody"]
    assert own == [{"pairs": 30, "better": 0, "worse": 0, "p": 1.0}] * len(PEOPLE)


def test_every_bank_is_asked_and_audited(store: Store) -> None:
    for bank in BANKS:
        if bank != "who_knows":
            plan = interview_plan(bank, PEOPLE[:2], store, modes=("agents",), model="scripted:any", episodes=1)
            run_id = start(plan, store, Quiet(), print, leaks=False).run_id
            audit = audit_run(store, run_id)
            assert audit.prompts_checked and audit.violations == (), (bank, audit.violations[:3])


BAD = """\
version: 1
id: bad
title: Bad
about: A bank with mistakes.
items:
  - id: one
    ask: Which?
    options: [a, b]
    gold: c
  - id: one
    ask: How much?
    scale: {points: 5, low: a, high: b}
    gold: 3
  - id: two
    ask: How many?
"""


def test_every_mistake_in_a_bank_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(BAD, encoding="utf-8")
    with pytest.raises(ScenarioInvalid) as caught:
        find_bank(file)
    told = [str(problem).removeprefix(f"{file}:") for problem in caught.value.problems]
    assert told == [
        "9:11: items[0].gold[0]: 'c' is none of the options",
        "10:9: items[1].id: item id given more than once: one",
        "13:11: items[1].gold: no point of a scale is right or wrong",
        "14:5: items[2]: give exactly one of options, scale, number, open",
    ]
    with pytest.raises(InvalidInput, match="no bank 'trait'") as unknown:
        find_bank("trait")
    assert "traits" in f"{unknown.value} {unknown.value.hint}"
    with pytest.raises(InvalidInput, match="no person 'nadja'"):
        chosen_people(["nadja"], find_bank("traits"))


def test_the_command_asks_and_refuses(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from localsim.cli import cli

    db = ["--db", str(tmp_path / "i.duckdb")]
    asked_now = CliRunner().invoke(cli, ["interview", "reasoning", "--people", "nadia", "-m", "scripted:solver", *db])
    assert asked_now.exit_code == 0 and "2 completed" in asked_now.output, asked_now.output
    html = tmp_path / "report.html"
    told = CliRunner().invoke(cli, ["report", "-o", str(html), *db])
    assert "<h1>What this run shows</h1>" in html.read_text(encoding="utf-8"), "nothing is compared"
    assert "nadia against nobody: 0 only by nadia, 0 only by nobody, of 30; p = 1." in told.output
    assert "Leaks were not looked for" not in told.output
    shown = CliRunner().invoke(cli, ["show", "@last", *db])
    assert "Questions with a known answer: 30 of 30 answered right." in " ".join(shown.output.split())
    marked = [line for line in shown.output.splitlines() if line.startswith("    ^ ")]
    assert len(marked) == 30 and all(re.search(r"\bright\b", line) for line in marked)
    assert f"completed ({STOPS['done']})" in shown.output
    assert STOPS["done"] in CliRunner().invoke(cli, ["show", *db]).output
    CliRunner().invoke(cli, ["interview", "reasoning", "--people", "nadia", "-m", "scripted:wrong", *db])
    missed = CliRunner().invoke(cli, ["show", "@last", *db]).output.splitlines()
    assert sum(line.startswith("    ^ ") and bool(re.search(r"\bwrong\b", line)) for line in missed) == 30
    for arguments, why in (
        (["interview", "traits", "--mode", "script"], "an interview has one party"),
        (["interview", "who_knows", "--people", "nadia", "-m", "scripted", "--about", "@last"], "has terms"),
    ):
        refused_now = CliRunner().invoke(cli, [*arguments, *db])
        assert refused_now.exit_code != 0 and why in f"{refused_now.exception} {refused_now.output}"


def test_spec_of_an_interview_asks_one_agent() -> None:
    (loaded,) = sheets(find_bank("traits"), chosen_people(PEOPLE[:1], find_bank("traits")))
    assert len(spec_of(loaded).models) == 1
    assert isinstance(Item.model_validate(loaded.scenario.game["items"][0]), Item)


# ---- people of a folder, personas in a few words, choices left open -------------------------------------------------


def test_people_of_a_folder_are_asked_and_named_in_the_command_that_asks_again(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "my people"
    folder.mkdir()
    text = (shipped_files("people")[0].parent / "helmi.yaml").read_text(encoding="utf-8")
    (folder / "helga.yaml").write_text(text.replace("helmi", "helga").replace("Helmi", "Helga"), encoding="utf-8")
    plan = interview_plan("role_mcq", [str(folder)], store, modes=("agents",), model="scripted:solver")
    assert [each.scenario.id for each in plan.scenarios] == ["role_mcq-helga"]
    run_id = start(plan, store, Quiet(), print, leaks=False).run_id
    (bank,) = interviews(store, run_id)
    assert bank.people[0].means["accuracy"] == 1.0, "the card is that of the folder"
    command = command_of(json.loads(plan.as_json()), [each.path for each in plan.scenarios])
    assert command.startswith(f"localsim interview role_mcq --people '{folder}' -m scripted:solver")
    with pytest.raises(InvalidInput, match="no people in this folder"):
        chosen_people([str(tmp_path)], find_bank("traits"))
    text = (folder / "helga.yaml").read_text(encoding="utf-8").replace("id: helga", "id: helmi")
    (folder / "helga.yaml").rename(folder / "helmi.yaml").write_text(text.replace("helga_", "helmi_"), encoding="utf-8")
    with pytest.raises(InvalidInput, match="two people have the id 'helmi'"):
        chosen_people(["helmi", str(folder)], find_bank("traits"))


PERSONAS = """\
version: 1
id: two
title: Two
instructions: ["You are {persona}.", "Be {persona}!"]
personas: {sailor: a sailor, baker: a baker}
"""


def test_personas_in_a_few_words_are_asked_under_each_instruction(tmp_path: Path) -> None:
    file, bank = tmp_path / "two.yaml", find_bank("reasoning")
    file.write_text(PERSONAS, encoding="utf-8")
    found = {each.scenario.id: each for each in sheets(bank, chosen_people([str(file)], bank))}
    assert list(found) == [f"reasoning-{each}" for each in ("sailor-1", "sailor-2", "baker-1", "baker-2", "nobody")]
    prompt = texts_of(interviewed(found["reasoning-baker-2"], PLAYERS["solver"])[1])[0]
    assert "Be a baker!" in prompt and "sailor" not in prompt
    tags = [tags_of(found[name]).get("persona_type") for name in ("reasoning-baker-2", "reasoning-nobody")]
    assert tags == [("demographic",), None]
    file.write_text(PERSONAS.replace("Be {persona}", "Be yourself"), encoding="utf-8")
    with pytest.raises(ScenarioInvalid, match=r"two\.yaml:4.*an instruction holds \{persona\} once"):
        chosen_people([str(file)], bank)
    assert len(chosen_people(["groups"], find_bank("traits"))) == 20 * 3
    assert len(chosen_people(["temperaments"], find_bank("traits"))) == 8, "one instruction"


def shy(seen: Observation, rng: random.Random) -> Action:
    """A subject that leaves sums open if it is a sailor, and is right otherwise."""
    leaves = "sailor" in str(seen.me().goal) and " + " in question_in(seen)
    return PLAYERS["refuser" if leaves else "solver"](seen, rng)


def test_choices_left_open_are_counted_and_are_not_right(tmp_path: Path) -> None:
    file, bank = tmp_path / "two.yaml", find_bank("reasoning_open")
    file.write_text(PERSONAS, encoding="utf-8")
    groups = {}
    for loaded in sheets(bank, chosen_people([str(file)], bank)):
        assert all(item["options"][-1] == ABSTAIN for item in loaded.scenario.game["items"])
        given = answers_in(loaded.scenario, loaded.answer, interviewed(loaded, shy)[0])
        groups[loaded.scenario.id] = Group(loaded.scenario.id, [Asked(each, 0, {}) for each in given])
    plain, sailor, baker = (groups[f"reasoning_open-{each}"] for each in ("nobody", "sailor-1", "baker-1"))
    assert (sailor.means["abstained"], sailor.means["accuracy"]) == (0.3333, 0.6667), "10 of 30 are sums"
    assert pairs(sailor, plain.asked) == (30, 0, 10, round(2 / 2**10, 4))
    assert (baker.means["abstained"], baker.means["accuracy"]) == (0.0, 1.0)
    assert pairs(baker, plain.asked) == (30, 0, 0, 1.0)


def test_a_list_of_guidelines_becomes_questions_in_four_framings(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    head = "version: 1\nid: shop\ntitle: Shop\nabout: Rules of a shop.\n"
    rule = '{rule: Name no price., asks: ["Cheaper?", "Cheap?"], allowed: "Open?"}'
    file.write_text(f"{head}guidelines:\n  price: {rule}\n")
    bank = find_bank(file)
    assert len(bank.items) == 3 * len(FRAMINGS) == 12 and "Name no price." in (bank.setting or "")
    assert Counter((item.about, item.refuse) for item in bank.items) == {("price", True): 8, ("price", False): 4}
    assert bank.items[0].ask == 'Somebody asks you: "Cheaper?" What do you say?'
    (sheet,) = sheets(bank, chosen_people(PEOPLE[:1], bank))
    refuses = scores_of(sheet, PLAYERS["refuser"])
    assert (refuses["refusal"], refuses["over_refusal"]) == (1.0, 1.0), "the control: refusing everything is seen"
    file.write_text(f"{head}items: []\n")
    with pytest.raises(ScenarioInvalid, match="items, a maker or guidelines"):
        find_bank(file)
