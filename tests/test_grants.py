"""Grants: their text, their views and prompts, what the audit knows of them, and the response to their dose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from localsim.backends.scripted import open_scripted
from localsim.conversation.episode import EpisodeSpec, Mode
from localsim.conversation.grants import (
    EVERY,
    NOTHING,
    Grant,
    Grants,
    condition_name,
    first_facts,
    parse,
)
from localsim.conversation.modes import Ask, Say
from localsim.conversation.prompts import agent_messages, writer_messages
from localsim.conversation.requests import Message, reply_begun
from localsim.conversation.scenario import WRITER, LoadedScenario, Scenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.conversation.visibility import observe, transparency
from localsim.errors import InvalidInput
from localsim.families import FAMILIES, family_of
from localsim.reports import audit
from localsim.scenarios.parse import parse_scenario
from tests.conftest import TALK, answering, driven, generated, spec_of

THREE = TALK.replace(
    "answer:",
    """  - name: Cy
    profile: {age: 70, occupation: clockmaker, public_info: Cy walks with a stick.}
    goal: Taste some of the apple tart.
    secret: Cy never learned to bake.
    facts:
      - {id: cy_1, text: Cy saw Bo in the shed., terms: [shed]}
      - {id: cy_2, text: The oven is broken since Monday., terms: [oven]}
      - {id: cy_3, text: Cy owns the only key., terms: [key]}
answer:""",
).replace("relationship: friend", "relationship: stranger")
LOADED = (parse_scenario(TALK, "talk.yaml"), parse_scenario(THREE, "three.yaml"))
FRIENDS, BARGAIN = generated("mutual_friends"), generated("craigslist", 4)
EVERY_SCENARIO = (*LOADED, FRIENDS, BARGAIN)

grants_of_one = st.builds(Grant, st.booleans(), st.booleans(), st.sampled_from([0, 0, 1, 2, 7, EVERY]), st.booleans())
viewers = st.sampled_from(["Ana", "Bo", "Jo-Ann O’Neill", "Dr. No", "1", "2", "12"])


@st.composite
def some_grants(draw: st.DrawFn, names: st.SearchStrategy[str] = viewers) -> Grants:
    """Any grants."""
    everyone = draw(grants_of_one)
    single = tuple(draw(st.lists(st.tuples(names, grants_of_one), max_size=3)))
    announced = draw(st.booleans()) and bool(everyone or any(grant for _, grant in single))
    return Grants(everyone, single, announced=announced, decoys=draw(st.booleans()))


def own_grants(loaded: LoadedScenario) -> st.SearchStrategy[Grants]:
    """Grants to the agents of a scenario."""
    return some_grants(st.sampled_from([*loaded.scenario.names, "1", "2"]))


def opening(scenario: Scenario, viewer: str, grants: Grants = NOTHING, mode: Mode = "agents") -> str:
    """The first prompt of a viewer."""
    return "\n".join(message.content for message in first(scenario, viewer, grants, mode))


def first(
    scenario: Scenario, viewer: str, grants: Grants = NOTHING, mode: Mode = "agents", variant: int = 0
) -> tuple[Message, ...]:
    return agent_messages(observe(scenario, mode, viewer, Transcript(), grants), variant)


def changed(scenario: Scenario, owner: str, **fields: Any) -> Scenario:
    """The scenario with other fields of one agent."""
    agents = tuple(agent.model_copy(update=fields) if agent.name == owner else agent for agent in scenario.agents)
    made = scenario.model_copy(update={"agents": agents})
    made.__dict__.pop("hash", None)  # the copy would keep the hash, and with it the decoys that are known for it
    return made


def items_of(agent: Any) -> Iterator[str]:
    """The goal, secret and facts of an agent."""
    yield from (text for text in (agent.goal, agent.secret) if text)
    yield from (fact.text for fact in agent.facts)


# ---- the text ------------------------------------------------------------------------------------------------------


@given(some_grants())
def test_a_text_names_the_grants_that_it_was_made_from(grants: Grants) -> None:
    assert parse(grants.text) == grants
    assert parse(grants.text).text == grants.text
    assert bool(grants) == bool(grants.text)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("facts:2,goal", "goal,facts:2"),
        ("goal,secret,facts,profile", "all"),
        ("goal + Bo=facts + Bo=goal", "goal+Bo=goal,facts"),
        ("facts:1,facts:3", "facts:3"),
        ("decoys", "decoys"),
        ("announced+goal", "goal+announced"),
        ("none", ""),
        ("", ""),
    ],
)
def test_grants_have_one_spelling(text: str, printed: str) -> None:
    assert parse(text).text == printed
    assert condition_name("agents", printed) == (f"agents+{printed}" if printed else "agents")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gaol", "did you mean goal?"),
        ("facts:0", "facts:N"),
        ("facts:x", "facts:N"),
        ("goal,,secret", "cannot be granted"),
        ("Ana=", "cannot be granted"),
        ("=goal", "NAME=ITEMS"),
        ("a,b=goal", "NAME=ITEMS"),
        ("Ana=Bo=goal", "NAME=ITEMS"),
        ("announced", "nothing is granted"),
        ("goal+", "cannot be granted"),
        ("none,goal", "cannot be granted"),
    ],
)
def test_bad_grants_give_one_clear_error(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(text)
    assert said in f"{caught.value} {caught.value.hint}"
    assert caught.value.hint and "goal,facts:2" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "left"),
    [("none+decoys", "decoys"), ("goal + none", "goal"), ("none+none", "none"), ("none+1=all", "1=all")],
)
def test_none_with_another_part_says_what_to_write_instead(text: str, left: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(text)
    error = caught.value
    assert error.where == f"see {text!r}"
    assert error.message == "'none' cannot be granted together with other parts: it means agents mode as it is"
    assert error.hint and error.hint.startswith(f"leave none out: --see {left};") and "goal,facts:2" in error.hint


@given(st.text(max_size=30))
def test_no_text_gives_another_error(text: str) -> None:
    try:
        assert parse(parse(text).text) == parse(text)
    except InvalidInput as error:
        assert error.hint


def test_facts_are_nested_and_do_not_depend_on_their_order_or_texts() -> None:
    for loaded in EVERY_SCENARIO:
        for agent in loaded.scenario.agents:
            ids: list[set[str]] = []
            for number in range(len(agent.facts) + 1):
                chosen = first_facts(loaded.scenario.id, agent.name, agent.facts, number)
                ids.append({fact.id for fact in chosen})
                assert len(chosen) == number and list(chosen) == [fact for fact in agent.facts if fact in chosen]
                other = [fact.model_copy(update={"text": "Other."}) for fact in reversed(agent.facts)]
                same = first_facts(loaded.scenario.id, agent.name, other, number)
                assert {fact.id for fact in same} == ids[-1]
            assert all(fewer < more for fewer, more in pairwise(ids))


# ---- views and prompts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", [0, 3])
@pytest.mark.parametrize("loaded", EVERY_SCENARIO, ids=lambda loaded: loaded.scenario.id)
def test_the_ends_of_the_continuum_are_agents_and_mindreaders(loaded: LoadedScenario, variant: int) -> None:
    scenario = loaded.scenario
    everything = parse("all+announced")
    for viewer in scenario.names:
        usual = agent_messages(observe(scenario, "agents", viewer, Transcript()), variant)
        assert first(scenario, viewer, parse("none"), variant=variant) == usual
        full = first(scenario, viewer, mode="mindreaders", variant=variant)
        assert first(scenario, viewer, everything, variant=variant) == full
        private = observe(scenario, "agents", viewer, Transcript(), parse("all"))
        mindreader = observe(scenario, "mindreaders", viewer, Transcript())
        assert (private.agents, private.relationships) == (mindreader.agents, mindreader.relationships)
        assert not private.omniscient, "the others do not know what this viewer sees"


def test_grants_count_in_agents_mode_only() -> None:
    scenario = LOADED[0].scenario
    for mode in ("script", "iterative"):
        one, other = (observe(scenario, mode, WRITER, Transcript(), each) for each in (NOTHING, parse("goal+decoys")))
        assert one == other
    assert first(scenario, "Ana", parse("goal+decoys"), "mindreaders") == first(scenario, "Ana", mode="mindreaders")


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_an_item_beyond_the_grant_changes_no_prompt(data: st.DataObject) -> None:
    loaded = data.draw(st.sampled_from(EVERY_SCENARIO), "scenario")
    scenario, grants = loaded.scenario, data.draw(own_grants(loaded), "grants")
    viewer = data.draw(st.sampled_from(scenario.names), "viewer")
    owner = data.draw(st.sampled_from([name for name in scenario.names if name != viewer]), "owner")
    agent, granted = scenario.agent(owner), grants.of(viewer, scenario.names)
    seen = {fact.id for fact in first_facts(scenario.id, owner, agent.facts, granted.facts)}

    def other(text: str) -> str:
        # As long as before, because a decoy is as long as what it stands for.
        return "".join(data.draw(st.lists(st.sampled_from("qxzj"), min_size=len(text), max_size=len(text))))

    hidden = [("goal", other(agent.goal))] * (not granted.goal)
    hidden += [("secret", other(agent.secret or ""))] * (agent.secret is not None and not granted.secret)
    facts = tuple(
        fact if fact.id in seen else fact.model_copy(update={"text": other(fact.text), "terms": ()})
        for fact in agent.facts
    )
    hidden += [("facts", facts)] * (len(seen) < len(facts))
    assume(hidden)
    for field, value in hidden:
        assert opening(changed(scenario, owner, **{field: value}), viewer, grants) == opening(scenario, viewer, grants)
    if granted.goal:
        different = changed(scenario, owner, goal="Something else altogether.")
        assert opening(different, viewer, grants) != opening(scenario, viewer, grants)


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_prompts_tell_the_truth_about_who_sees_what(data: st.DataObject) -> None:
    loaded = data.draw(st.sampled_from(EVERY_SCENARIO), "scenario")
    scenario, grants = loaded.scenario, data.draw(own_grants(loaded), "grants")
    assume(not grants.open_to_all(scenario.names))
    told = {viewer: opening(scenario, viewer, grants) for viewer in scenario.names}
    for viewer, prompt in told.items():
        own = grants.of(viewer, scenario.names)
        others = [name for name in scenario.names if name != viewer]
        lines = [line.partition(" cannot see ") for line in prompt.split("\n") if " cannot see " in line]
        for part, words in (("goal", "your goal"), ("secret", "your secret"), ("facts", "what you know")):
            seeing = {name for name in others if getattr(grants.of(name, scenario.names), part)}
            if seeing and getattr(scenario.agent(viewer), part):
                blind = {name for who, _, what in lines if words in what for name in others if name in who}
                assert not blind & seeing, "a prompt says that something seen is hidden"
                assert grants.announced or not blind, "a prompt shows that some of the others see what others do not"
        knows = "Only you know this" in prompt
        assert knows == (not grants.announced and bool(observe(scenario, "agents", viewer, Transcript(), grants).sees))
        assert knows <= bool(own)
    announced = [
        line for prompt in told.values() for line in prompt.split("\n") if line.startswith("Everybody is told")
    ]
    assert len(announced) == (len(told) if grants.announced else 0)
    assert len(set(announced)) <= 1, "common knowledge is the same for all"


def test_private_access_is_known_to_the_viewer_alone() -> None:
    scenario = LOADED[0].scenario
    one_sided = parse("Ana=secret,facts")
    assert "You can see the secret and all of the facts of Bo. Only you know this: Bo cannot know it." in opening(
        scenario, "Ana", one_sided
    )
    victim = opening(scenario, "Bo", one_sided)
    assert "can see" not in victim and "Ana cannot see your goal." in victim
    assert opening(scenario, "Bo", parse("Bo=goal")) != opening(scenario, "Bo")
    told = "Ana can see the secret and all of the facts; Bo can see nothing."
    assert all(told in opening(scenario, name, replace(one_sided, announced=True)) for name in scenario.names)


def seen_items(clause: str) -> dict[str, set[str]]:
    """Owner -> items in words, as a sentence about a viewer among Ana, Bo and Cy lists them."""
    names = "(?:Ana|Bo|Cy)"
    found = re.findall(rf"(?:^|, and )(.+?) of (?:each of )?({names}(?: and {names})?)(?=, and |$)", clause)
    return {owner: set(re.split(", | and ", items)) for items, owners in found for owner in owners.split(" and ")}


def shown_items(scenario: Scenario, viewer: str, grants: Grants) -> dict[str, set[str]]:
    """Owner -> items in words, as the view of a viewer shows them beyond its view without grants."""
    found = {}
    profile = grants.of(viewer, scenario.names).profile
    for view in observe(scenario, "agents", viewer, Transcript(), grants).agents:
        count = "all" if len(view.facts) == len(scenario.agent(view.name).facts) else len(view.facts)
        items = {"the goal": view.goal, "the secret": view.secret, f"{count} of the facts": view.facts}
        items |= {"the whole profile": profile, "the relationships": profile}
        if view.name != viewer and (seen := {name for name, is_seen in items.items() if is_seen}):
            found[view.name] = seen
    return found


@given(grants=some_grants(st.sampled_from(["Ana", "Bo", "Cy", "1", "3"])))
@settings(max_examples=60, deadline=None)
def test_with_three_agents_every_sentence_says_who_sees_what_of_whom(grants: Grants) -> None:
    scenario = changed(LOADED[1].scenario, "Bo", secret=None)
    assume(grants and not grants.open_to_all(scenario.names))
    truth = {name: shown_items(scenario, name, grants) for name in scenario.names}
    owned = {"goal": "your goal", "secret": "your secret", "facts": "what you know"}
    for viewer in scenario.names:
        lines = opening(scenario, viewer, grants).split("\n")
        private = [line for line in lines if "Only you know this" in line]
        if grants.announced:
            (line,) = [line for line in lines if line.startswith("Everybody is told")]
            clauses = line.removesuffix(".").partition(": ")[2].split("; ")
            told = {name: seen for name, _, seen in (clause.partition(" can see ") for clause in clauses)}
            assert {name: seen_items(seen) for name, seen in told.items()} == truth and not private
            assert all((told[name] == "nothing") == (not truth[name]) for name in told)
        elif truth[viewer]:
            (line,) = private
            assert seen_items(line.removeprefix("You can see ").partition(". Only")[0]) == truth[viewer]
        hidden = [line.removesuffix(".").partition(" cannot see ") for line in lines if " cannot see " in line]
        others = [name for name in scenario.names if name != viewer]
        for part, words in owned.items():
            blind = {name for who, _, what in hidden if words in what for name in re.findall("Ana|Bo|Cy", who)}
            seeing = {name for name in others if any(part in item for item in truth[name].get(viewer, set()))}
            there = bool(getattr(scenario.agent(viewer), part))
            if grants.announced:
                assert not there or blind == {*others} - seeing
            else:
                assert not there or blind == (set() if seeing else {*others})


@pytest.mark.parametrize(
    ("see", "index"), [("none", 0), ("decoys", 0), ("goal", 2 / 6), ("1=all", 0.5), ("all", 1), ("all+announced", 1)]
)
def test_the_index_of_transparency_is_the_share_of_items_seen(see: str, index: float) -> None:
    scenario = LOADED[0].scenario
    counts = [transparency(scenario, "agents", viewer, parse(see)) for viewer in scenario.names]
    assert sum(shown for shown, _ in counts) / sum(there for _, there in counts) == pytest.approx(index)
    assert transparency(scenario, "iterative", WRITER) == transparency(scenario, "script", WRITER) == (6, 6)


# ---- the audit -----------------------------------------------------------------------------------------------------


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_the_audit_knows_every_grant_and_no_more(data: st.DataObject) -> None:
    loaded = data.draw(st.sampled_from(EVERY_SCENARIO), "scenario")
    scenario, grants = loaded.scenario, data.draw(own_grants(loaded), "grants")
    viewer = data.draw(st.sampled_from(scenario.names), "viewer")
    sound = opening(scenario, viewer, grants)
    assert not list(audit.held(sound, loaded, "agents", viewer, [], 0, grants.text))
    hidden = sorted(
        text for agent in scenario.agents if agent.name != viewer for text in items_of(agent) if text not in sound
    )
    assume(hidden)
    planted = f"{sound}\n\n{data.draw(st.sampled_from(hidden), 'planted')}"
    assert list(audit.held(planted, loaded, "agents", viewer, [], 0, grants.text))


# ---- one author, turn by turn --------------------------------------------------------------------------------------


def requests_of(spec: EpisodeSpec) -> tuple[list[Any], list[str]]:
    """The requests and lines of an episode that scripted players write."""
    steps, _ = driven(spec, answering(open_scripted(next(iter(spec.models.values())))))
    lines = [step.turn.line for step in steps if isinstance(step, Say)]
    return [step.request for step in steps if isinstance(step, Ask)], lines


@pytest.mark.parametrize("loaded", EVERY_SCENARIO, ids=lambda loaded: loaded.scenario.id)
def test_an_iterative_script_is_a_script_that_is_written_line_by_line(loaded: LoadedScenario) -> None:
    asked, lines = requests_of(spec_of(loaded, "iterative"))
    whole = writer_messages(observe(loaded.scenario, "script", WRITER, Transcript()))
    assert len(asked) == len(lines) > 2
    for number, request in enumerate(asked):
        chat, begun = reply_begun(request.messages)
        assert chat == whole and request.speaker == WRITER
        name = loaded.scenario.names[number % len(loaded.scenario.names)]
        assert begun == tuple(lines[:number]) and request.prefill == name
        assert request.form.finished(f"{request.prefill}{lines[number].removeprefix(name)}\n")
        assert request.max_tokens == loaded.scenario.limits.tokens
    assert len({request.session for request in asked}) == 1, "the author keeps its cache"
    assert [request.seed for request in asked] == [
        request.seed for request in requests_of(spec_of(loaded, "mindreaders"))[0]
    ]


# ---- dose and response ---------------------------------------------------------------------------------------------

LADDERS = {
    "mutual_friends": ("none", "1=facts:1", "facts:1", "facts:2", "facts:3", "facts:4", "facts", "all"),
    "craigslist": ("none", "1=facts", "facts", "all"),
}
HITS = {"mutual_friends": "first_guess_hit", "craigslist": "limit_hit"}
"""Score that is 1 where the first guess or offer uses what only the other side knows."""


@pytest.mark.parametrize("player", ["omniscient", "peeks-50"])
@pytest.mark.parametrize("family", FAMILIES.own)
def test_the_response_to_a_dose_is_monotone(family: str, player: str) -> None:
    """A player that uses exactly what it sees is right the more often, the more it is shown."""
    found: list[tuple[float, float]] = []
    loaded = [generated(family, 900_000 + seed) for seed in range(60)]
    for see in LADDERS[family]:
        hits, shown, there = [], 0, 0
        for each in loaded:
            spec = spec_of(each, models=dict.fromkeys(each.scenario.names, f"scripted:{player}"), grants=parse(see))
            turns = Transcript(
                tuple(
                    Turn(number, each.scenario.names[number % 2], Action("speak", line.partition(": ")[2]))
                    for number, line in enumerate(requests_of(spec)[1])
                )
            )
            scores = family_of(family).score(turns, each.scenario, each.answer)
            hits += [score.value for score in scores if score.name == HITS[family] and score.value is not None]
            for viewer in each.scenario.names:
                some, all_ = transparency(each.scenario, "agents", viewer, spec.grants)
                shown, there = shown + some, there + all_
        found.append((shown / there, fmean(hits)))
    assert [index for index, _ in found] == sorted(index for index, _ in found)
    assert found[0][0] == 0 and found[-1][0] == 1
    responses = [value for _, value in found]
    assert all(low <= high + 1e-9 for low, high in pairwise(responses)), found
    assert responses[-1] >= responses[0] + 0.3, found
