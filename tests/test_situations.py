"""Situations: each file is playable, cast purely, told apart by its outcome, and its answer reaches no prompt."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from localsim.conversation.episode import MODES
from localsim.conversation.grants import parse as grants_of
from localsim.conversation.prompts import agent_messages, writer_messages
from localsim.conversation.scenario import WRITER, LoadedScenario
from localsim.conversation.transcript import Action, Transcript
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput, ScenarioInvalid
from localsim.families import FAMILIES
from localsim.families.games.situations.meaning import Meaning, heard, parse_meanings, right, said
from localsim.reports.audit import audit_run
from localsim.reports.audit.prompts import leaks_at_first
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.runs.scripted import simulated
from localsim.scenarios.casting.cast import cast, castings
from localsim.scenarios.casting.people import Relations, load_people
from localsim.scenarios.casting.playing import FOILS, SOLVER, played, scores_of, unplayable
from localsim.scenarios.casting.rules import load_situation, parse_situation
from localsim.scenarios.documents import shipped_files
from localsim.scenarios.find import find_scenarios, people_beside
from localsim.scenarios.parse import dump_scenario, parse_scenario
from localsim.scenarios.writing import validated
from localsim.store.database import Store
from tests.conftest import Quiet
from tests.games import after

FILES = {file.stem: file for file in shipped_files("situations")}
PEOPLE = {name: person for name, person in load_people().items() if name in ("helmi", "juhan", "nadia")}
"""Three people: mother and son, who has a friend."""
RELATIONS = Relations({frozenset(("helmi", "juhan")): "family", frozenset(("juhan", "nadia")): "friend"})
FERRY = FILES["the_ferry_home"].read_text(encoding="utf-8")


def casting(name: str, number: int = 1) -> LoadedScenario:
    """A casting with the people who ship."""
    return find_scenarios([f"{name}@{number}"])[0]


def success(loaded: LoadedScenario, player: str) -> dict[str, float]:
    """The success of a player in each mode, simulated as in a run."""
    kept = simulated(Plan((loaded,), MODES, f"scripted:{player}", seed=5))
    return {
        episode.spec.mode: float(scores_of(loaded, episode.transcript)["success"].value or 0)
        for name, episode in kept.episodes.items()
    }


@pytest.mark.parametrize("name", FILES)
def test_the_solver_succeeds_and_the_foils_fail_in_every_mode(name: str) -> None:
    loaded = casting(name)
    assert success(loaded, SOLVER) == dict.fromkeys(MODES, 1)
    for foil in FOILS:
        assert success(loaded, foil) == dict.fromkeys(MODES, 0), foil
    assert Fraction(loaded.answer.answer["chance"]) <= Fraction(1, 4)
    assert list(unplayable(loaded)) == [] and list(leaks_at_first(loaded)) == []


def test_the_audit_of_a_run_of_all_finds_nothing(store: Store) -> None:
    every = tuple(casting(name) for name in FILES)
    run_id = start(
        Plan(every, MODES, "scripted:solver", seed=7), store, Quiet(), lambda _line: None, leaks=False
    ).run_id
    audit = audit_run(store, run_id)
    assert audit.prompts_checked > len(every) and audit.violations == ()


@pytest.mark.parametrize("name", FILES)
def test_another_answer_leaves_every_prompt_as_it_is(name: str) -> None:
    situation = load_situation(FILES[name])
    document = cast(situation, *people_beside(FILES[name]), 1)
    other = document.model_copy(update={"answer": {"right": [["something else"]], "chance": "1/99"}})
    assert prompts(LoadedScenario(*document.split(), "a")) == prompts(LoadedScenario(*other.split(), "b"))
    assert document.hash == other.hash


def prompts(loaded: LoadedScenario) -> list[str]:
    """The first prompts of all viewers in all modes, and those after a proposal."""
    found = []
    proposed = Transcript(played(loaded, "yes-sayer", "agents").turns[:1])
    for mode in MODES:
        for viewer in (WRITER,) if mode == "script" else loaded.scenario.names:
            for talk in (Transcript(), proposed):
                seen = observe(loaded.scenario, mode, viewer, talk, grants_of("none"))
                render = writer_messages if viewer == WRITER else agent_messages
                found.append("\n".join(message.content for message in render(seen)))
    return found


def test_a_casting_is_a_function_of_its_arguments_and_no_pair_comes_twice() -> None:
    situation = load_situation(FILES["whose_umbrella"])
    groups = castings(situation, PEOPLE, RELATIONS)
    assert len({frozenset(group) for group in groups}) == len(groups) == 3
    one, again = (cast(situation, PEOPLE, RELATIONS, 2) for _ in range(2))
    assert one == again and one.id == "whose_umbrella-2" and one.names == tuple(PEOPLE[i].name for i in groups[1])
    assert one.names[0] in one.setting and "{" not in dump_scenario(one)
    assert parse_scenario(dump_scenario(one), "x.yaml").scenario == one.split()[0]
    with pytest.raises(InvalidInput, match="3 castings, and no number 4"):
        cast(situation, PEOPLE, RELATIONS, 4)
    friends = castings(load_situation(FILES["a_bad_week"]), PEOPLE, RELATIONS)
    assert {frozenset(group) for group in friends} == {frozenset(("helmi", "juhan")), frozenset(("juhan", "nadia"))}


def test_people_must_have_the_age_that_a_role_needs() -> None:
    old = FERRY.replace("  - role: early\n", "  - role: early\n    needs: {age: [60, 80]}\n")
    situation = parse_situation(old, "the_ferry_home.yaml")
    assert castings(situation, PEOPLE, RELATIONS) == [("helmi", "juhan")]


def test_a_name_means_the_first_casting_and_a_number_another_one(tmp_path: Path) -> None:
    assert casting("the_ferry_home").scenario == find_scenarios(["the_ferry_home"])[0].scenario
    assert casting("the_ferry_home", 2).scenario.id == "the_ferry_home-2"
    own = tmp_path / "the_ferry_home.yaml"
    own.write_text(FERRY, encoding="utf-8")
    assert find_scenarios([f"{own}@2", str(own)])[0].scenario == casting("the_ferry_home", 2).scenario
    assert [each.id for each in validated([str(own), "the_ferry_home"])] == ["the_ferry_home"] * 2
    with pytest.raises(InvalidInput, match="did you mean the_ferry_home"):
        find_scenarios(["the_fery_home@2"])


@pytest.mark.parametrize(
    ("before", "after_", "message"),
    [
        ("{early} starts a shift", "{earl} starts a shift", "no role is called 'earl'"),
        ("{early} starts a shift", "{early starts a shift", "a single brace"),
        ("terms: [shift]", "terms: [hours]", "is not in the text of the fact"),
        ("terms: [shift]", "terms: [night ferry]", "is in the setting or an option"),
        ("means: {out: [night ferry]}", "means: {out: [late ferry]}", "no option is called 'late ferry'"),
        ("means: {out: [night ferry]}", "means: {out: [mail boat]}", "the text does not name 'mail boat'"),
        ("means: {out: [night ferry]}", "means: {most: {price: 3}}", "no issue with a number is called 'price'"),
        ("means: {out: [night ferry]}", "disclosure: never\n        means: {out: [night ferry]}", "must be allowed"),
        ("right: [[mail boat]]", "right: [[noon ferry]]", "by the facts, the right settlements are [['mail boat']]"),
        ("right: [[mail boat]]", "right: [[mail boat]]\nrule: worst", "is not one of"),
        (
            "[dawn ferry, noon ferry, mail boat, night ferry]",
            "[mail boat, dawn ferry, noon ferry, night ferry]",
            "the first option",
        ),
        ("options: [dawn ferry, noon", "options: [dawn ferry, Dawn ferry, noon", "option given more than once"),
        ("        means: {out: [dawn ferry]}\n", "", "all on one side"),
        (
            "goal: You want to finish what you came for and",
            "goal: It is time to finish and",
            'speaks to the person as "you"',
        ),
        ("kind: favours", "kind: favour", "did you mean favours"),
        ("id: the_ferry_home\n", "id: the_ferry\n", "the file is called the_ferry_home.yaml"),
        ("right: [[mail boat]]", "right: [[mail boat]]\ndecides: nobody", "is all or one of early, late"),
        ("relation: [friend,", "relation: [pal,", "is not one of"),
    ],
)
def test_a_defect_has_a_place_and_a_reason(before: str, after_: str, message: str) -> None:
    assert before in FERRY
    with pytest.raises(ScenarioInvalid) as caught:
        parse_situation(FERRY.replace(before, after_, 1), "folder/the_ferry_home.yaml")
    text = str(caught.value)
    assert message in text and "folder/the_ferry_home.yaml:" in text


def test_a_price_inside_both_limits_is_right_and_no_other() -> None:
    loaded = casting("a_bicycle_with_a_trailer")
    one, other = loaded.scenario.names
    for price, day, wanted in (("120", "Friday", 1), ("140", "Friday", 1), ("115", "Friday", 0), ("120", "Monday", 0)):
        talk = after(loaded, (one, Action("propose", "", (price, day))), (other, Action("accept", "", ())))
        found = scores_of(loaded, talk)
        assert found["success"].value == wanted and found["settled"].value == 1
        assert found["fit"].value == (1 if wanted else 0.5)


def test_a_refused_proposal_is_closed_and_a_settlement_ends_the_talk() -> None:
    loaded = casting("the_ferry_home")
    one, other = loaded.scenario.names
    boat, no = Action("propose", "", ("mail boat",)), Action("refuse", "", ())
    talk = after(loaded, (one, boat), (other, no))
    assert scores_of(loaded, talk)["settled"].value == 0
    ended = after(loaded, (one, boat), (other, no), (one, boat), (other, Action("accept", "Good.", ())))
    assert scores_of(loaded, ended)["success"].turns == (2, 3)
    with pytest.raises(AssertionError, match="is over"):
        after(loaded, (one, boat), (other, Action("accept", "", ())), (one, Action("speak", "More?")))


def test_three_settle_only_when_all_others_have_accepted() -> None:
    loaded = casting("three_at_one_stove")
    one, two, three = loaded.scenario.names
    seven, yes = Action("propose", "", ("at seven",)), Action("accept", "", ())
    assert scores_of(loaded, after(loaded, (one, seven), (two, yes)))["settled"].value == 0
    assert scores_of(loaded, after(loaded, (one, seven), (two, yes), (three, yes)))["success"].value == 1


def test_a_promise_is_broken_by_its_owner_alone_and_news_must_come_first() -> None:
    loaded = casting("the_empty_saturday")
    planner, guest = loaded.scenario.names
    saturday, yes = Action("propose", "", ("Saturday",)), Action("accept", "", ())
    clean = after(
        loaded, (planner, saturday), (guest, Action("speak", "A brass band?")), (planner, saturday), (guest, yes)
    )
    assert scores_of(loaded, clean)["success"].value == scores_of(loaded, clean)["kept"].value == 1
    told = after(loaded, (planner, Action("speak", "A brass band!")), (guest, saturday), (planner, yes))
    assert scores_of(loaded, told)["success"].value == scores_of(loaded, told)["kept"].value == 0
    helped = casting("a_bad_week")
    listener, friend = helped.scenario.names
    form = (friend, Action("choose", "", ("a form",)))
    silent = after(helped, (listener, Action("speak", "Well?")), form)
    open_ = after(helped, (listener, Action("speak", "Well?")), (friend, Action("speak", "A burst pipe.")),
                  (listener, Action("suggest", "", ("a form",))), form)  # fmt: skip
    assert [scores_of(helped, talk)["success"].value for talk in (silent, open_)] == [0, 1]
    assert scores_of(helped, silent)["told"].value == 0


def test_what_players_say_is_heard_as_it_was_meant() -> None:
    texts = ["out: Monday", "needs: a garden", "has: villa = a garden", "points: villa = 3", "least: price = 20"]
    told = "; ".join([*said(texts), "that is all"])
    assert heard(f"Some words. In short: {told}.") == (parse_meanings(texts), True)
    assert heard("Monday is out.") == (Meaning(), False)
    with pytest.raises(ValueError, match="means nothing"):
        parse_meanings(["perhaps Monday"])


def test_best_and_fair_differ_and_a_way_out_is_last() -> None:
    issues = parse_situation(FERRY, "the_ferry_home.yaml").agenda
    one = parse_meanings(["points: dawn ferry = 9", "points: noon ferry = 4", "points: mail boat = 1"])
    other = parse_meanings(["points: dawn ferry = 1", "points: noon ferry = 4", "points: mail boat = 2"])
    assert right(issues, "best", [one, other]) == [("dawn ferry",)]
    assert right(issues, "fair", [one, other]) == [("noon ferry",)]
    strict = parse_meanings(["out: dawn ferry", "out: noon ferry", "out: mail boat"])
    assert right(issues, "fits", [strict], ("mail boat",)) == [("night ferry",)]
    assert right(issues, "fits", [parse_meanings(["out: dawn ferry", "out: noon ferry"])], ("mail boat",)) == [
        ("night ferry",)
    ]
    assert right(issues, "fits", [parse_meanings([f"out: {o}" for o in ("dawn ferry", "noon ferry", "night ferry")])],
                 ("mail boat",)) == [("mail boat",)]  # fmt: skip


def test_a_file_whose_answer_does_not_follow_from_its_facts_is_refused() -> None:
    document = cast(load_situation(FILES["whose_umbrella"]), PEOPLE, RELATIONS, 1)
    family = FAMILIES["situations"]
    assert family.check(document) == []
    wrong = document.model_copy(update={"answer": {"right": [["judge"]], "chance": "1/6"}})
    assert "the answer is" in family.check(wrong)[0][1]
    assert family.check(document.model_copy(update={"game": {"public": {}}}))[0][0] == ("moves",)
