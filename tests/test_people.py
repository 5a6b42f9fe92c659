"""People: their files, their relations, and that what they would say reaches nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from localsim.conversation.episode import MODES
from localsim.conversation.grants import parse as grants_of
from localsim.conversation.prompts import agent_messages, writer_messages
from localsim.conversation.scenario import WRITER, Agent, AnswerKey, Info, LoadedScenario, Passage, ScenarioFile
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe
from localsim.conversation.wording.personas import SENTENCES
from localsim.errors import InvalidInput, ScenarioInvalid
from localsim.reports.audit import audit_run
from localsim.reports.audit.prompts import held
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.scenarios.casting.people import (
    Traits,
    load_people,
    load_relations,
    parse_person,
    parse_relations,
    people_folder,
)
from localsim.scenarios.parse import dump_scenario, parse_scenario
from localsim.scenarios.writing import validated
from localsim.store.database import Store
from tests.conftest import Quiet

PEOPLE = load_people()
HELMI = (people_folder() / "helmi.yaml").read_text(encoding="utf-8")


def whole(**changes: object) -> ScenarioFile:
    """Two whole people, strangers to each other, in a scenario."""
    agents = tuple(PEOPLE[name].agent("You want a quiet talk.", whole=True) for name in ("helmi", "nadia"))
    data: dict[str, object] = {
        "version": 1,
        "id": "two_people",
        "title": "Two people talk",
        "info": Info(what="A talk."),
        "setting": "Two people wait for a bus.",
        "agents": agents,
    }
    return ScenarioFile(**{**data, **changes})  # type: ignore[arg-type]


def loaded(document: ScenarioFile) -> LoadedScenario:
    """A document as a run takes it."""
    return LoadedScenario(*document.split(), "two_people.yaml")


def prompt(document: ScenarioFile, mode: str, viewer: str, see: str = "none") -> str:
    """The first prompt of a viewer."""
    seen = observe(document, mode, viewer, Transcript(), grants_of(see))  # type: ignore[arg-type]
    render = writer_messages if viewer == WRITER else agent_messages
    return "\n".join(message.content for message in render(seen))


def test_the_people_who_ship_are_valid_and_their_names_unique() -> None:
    assert len({person.name for person in PEOPLE.values()}) == len(PEOPLE) >= 3
    load_relations(PEOPLE)
    assert validated([str(people_folder())])


def test_what_a_person_would_say_is_on_the_own_side_only() -> None:
    helmi, nadia = PEOPLE["helmi"], PEOPLE["nadia"]
    own, other = prompt(whole(), "agents", "Helmi"), prompt(whole(), "agents", "Nadia")
    hers = [*helmi.own_words, *(each.text for each in helmi.background), *helmi.never_heard_of]
    shared = set(nadia.own_words)
    for text in hers:
        assert text in own
        assert text not in other or text in shared
    for mode, viewer in (("mindreaders", "Nadia"), ("script", WRITER)):
        assert all(text in prompt(whole(), mode, viewer) for text in hers)
    assert all(text in prompt(whole(), "agents", "Nadia", "profile") for text in hers)
    assert str(helmi.traits.conscientiousness) not in own and "conscientious" not in own


@pytest.mark.parametrize("level", ["friend", "family"])
def test_no_relationship_shows_more_than_the_profile(level: str) -> None:
    seen = prompt(whole(relationship=level), "agents", "Nadia")
    assert PEOPLE["helmi"].profile.decision_making_style.rstrip(".") in seen  # type: ignore[union-attr]
    assert PEOPLE["helmi"].statements[0] not in seen and PEOPLE["helmi"].background[0].text not in seen


def test_the_audit_passes_whole_people_and_finds_each_of_their_texts(store: Store) -> None:
    found = loaded(whole())
    run_id = start(Plan((found,), MODES, "scripted", seed=3), store, Quiet(), lambda _line: None).run_id
    audit = audit_run(store, run_id)
    assert audit.prompts_checked and audit.violations == ()
    clean = prompt(whole(), "agents", "Nadia")
    helmi = PEOPLE["helmi"]
    for text in (helmi.statements[0], helmi.background[1].text, helmi.knows[0], helmi.never_heard_of[1]):
        assert list(held(f"{clean}\n\n{text}", found, "agents", "Nadia", []))
    assert not list(held(clean, found, "agents", "Nadia", []))


def test_a_meaning_of_a_fact_is_never_in_a_prompt() -> None:
    fact = {"id": "f", "text": "Helmi has no time on Monday.", "means": ("out: Monday",)}
    agents = [Agent(name="Helmi", goal="You rest.", facts=(fact,)), Agent(name="Bo", goal="You rest.")]  # type: ignore[arg-type]
    document = whole(agents=tuple(agents))
    for mode, viewer in (("agents", "Helmi"), ("mindreaders", "Bo"), ("script", WRITER)):
        text = prompt(document, mode, viewer)
        assert "Helmi has no time on Monday." in text and "out: Monday" not in text
        assert list(held(f"{text}\n\nout: Monday", loaded(document), mode, viewer, []))


def test_new_fields_enter_the_hash_and_survive_a_file() -> None:
    plain = whole(agents=(Agent(name="A", goal="You rest."), Agent(name="B", goal="You rest.")))
    talkative = whole(agents=(Agent(name="A", goal="You rest.", statements=("I rest.",)), plain.agents[1]))
    assert plain.hash != talkative.hash
    read = parse_scenario(dump_scenario(whole()), "x.yaml")
    assert read.scenario == whole().split()[0] and read.scenario.hash == whole().hash
    twice = Agent(name="A", goal="You rest.", background=(Passage(id="p", text="x"), Passage(id="p", text="y")))
    with pytest.raises(ValueError, match="passage id given more than once"):
        whole(agents=(twice, plain.agents[1]))


def test_headings_of_personas_are_in_the_wording_that_the_audit_grants() -> None:
    assert all("{" not in sentence for sentence in SENTENCES) and len(set(SENTENCES)) == 10
    assert isinstance(AnswerKey(), AnswerKey)


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ("id: helmi\n", "id: helma\n", "helmi.yaml:2:5: id"),
        ("age: 61", "age: 17", "profile.age: must be a whole number"),
        ("  gender: woman\n", "", "gender is missing"),
        ("helmi_eyes", "eyes", "must begin with helmi_"),
        ("openness: 45", "openness: 145", "traits.openness"),
        ("[podcasts,", "[old furniture,", "also among what the person knows"),
        ("I would rather mend", "Helmi would rather mend", "does not name the person"),
        ("decision_style: rational", "decision_style: bold", "is not one of"),
        ("place: Tartu, Estonia\n", "plaice: Tartu\n", "unknown key"),
    ],
)
def test_a_defect_of_a_person_has_a_place_and_a_reason(before: str, after: str, place: str) -> None:
    assert before in HELMI
    with pytest.raises(ScenarioInvalid) as caught:
        parse_person(HELMI.replace(before, after, 1), "folder/helmi.yaml")
    assert place in str(caught.value) and "folder/helmi.yaml:" in str(caught.value)


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        ("{between: [helmi, bob], level: friend, why: x}", "no person has the id 'bob'"),
        ("{between: [helmi, helmi], level: friend, why: x}", "between two people"),
        ("{between: [juhan, nadia], level: stranger, why: x}", "is not one of"),
        ("{between: [juhan, nadia], level: friend, kin: cousin, why: x}", "only for family"),
        ("{between: [juhan, nadia], level: family, why: x}", "`kin` is given for family"),
        ("{between: [juhan, helmi], level: family, kin: parent, why: x}", "27 years younger"),
        ("{between: [helmi, nadia], level: family, kin: parent, why: x}", "say with the word name why"),
    ],
)
def test_a_relation_that_does_not_fit_is_refused(relation: str, message: str) -> None:
    with pytest.raises(ScenarioInvalid, match=r"relations\.yaml:3:") as caught:
        parse_relations(f"version: 1\nrelations:\n  - {relation}\n", "relations.yaml", PEOPLE)
    assert message in str(caught.value)


def test_a_pair_is_given_once_and_children_of_one_parent_are_family() -> None:
    twice = "version: 1\nrelations:\n" + "".join(
        f"  - {{between: [{pair}], level: friend, why: x}}\n" for pair in ("juhan, nadia", "nadia, juhan")
    )
    with pytest.raises(ScenarioInvalid, match="given twice"):
        parse_relations(twice, "r.yaml", PEOPLE)
    siblings = "version: 1\nrelations:\n" + "".join(
        f"  - {{between: [helmi, {child}], level: family, kin: parent, why: Another name by marriage.}}\n"
        for child in ("juhan", "nadia")
    )
    with pytest.raises(ScenarioInvalid, match="juhan and nadia are children of helmi"):
        parse_relations(siblings, "r.yaml", PEOPLE)


def test_two_people_with_one_first_name_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no people in this folder"):
        load_people(tmp_path)
    (tmp_path / "helmi.yaml").write_text(HELMI, encoding="utf-8")
    (tmp_path / "ina.yaml").write_text(HELMI.replace("helmi", "ina"), encoding="utf-8")
    with pytest.raises(ScenarioInvalid, match=r"ina\.yaml:3:7: name: helmi has this first name too"):
        load_people(tmp_path)


def test_only_strong_traits_are_said() -> None:
    middle = dict.fromkeys(("openness", "conscientiousness", "extraversion", "agreeableness", "neuroticism"), 50)
    assert Traits(**middle, decision_style="rational").statements() == (
        "I decide after I have compared everything.",
    )  # fmt: skip
    strong = Traits(**{**middle, "extraversion": 90, "neuroticism": 10}, decision_style="dependent").statements()
    assert len(strong) == 3 and "I like company" in strong[0] + strong[1]
