"""The simulation card: what it says of a run, and what only people can say."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localsim.conversation.grants import parse
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput
from localsim.evaluators.evaluate import evaluator_of, score_runs
from localsim.evaluators.judge import Judge
from localsim.reports.card import HUMAN, _asymmetry, _conditions, card, missing, read_human, transparency
from localsim.reports.comparison import in_contrasts
from localsim.reports.compose.alone import report
from localsim.reports.render.markdown import card_as_markdown
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.scenarios.find import find_scenarios
from localsim.scenarios.interviews.sheets import chosen_people, find_bank, sheets
from localsim.scenarios.tagging import INTERACTION, interaction_of, vocabulary
from localsim.store.conditions import Condition, in_order
from localsim.store.database import Store
from tests.conftest import Quiet, generated


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    store = Store(tmp_path_factory.mktemp("card") / "d.duckdb")
    scenarios = tuple(generated("mutual_friends", seed) for seed in range(1, 5))
    plan = Plan(scenarios, ("script", "agents"), "scripted:guesser", episodes=3)
    return store, runner.start(plan, store, Quiet(), print).run_id


def test_the_card_says_what_was_run(played: tuple[Store, str]) -> None:
    found = card(played[0], report(*played))
    details = found["simulation_details"]
    assert details["parties"] == [2] and details["domains"] == ["mutual_friends"]
    assert details["transparency_index"] == {"script": 1.0, "agents": 0.0}
    assert "rule-based" in next(iter(details["agent_types"].values()))
    assert "success" in card_as_markdown(found) and "## Not stated" in card_as_markdown(found)
    json.dumps(found)


def test_the_index_is_of_what_observe_shows() -> None:
    scenario = generated("craigslist").scenario
    assert [transparency([scenario], mode) for mode in ("script", "agents", "mindreaders")] == [1.0, 0.0, 1.0]


def test_a_grant_counts_only_where_its_agent_is() -> None:
    """`Ana=all` changes nothing in a scenario without Ana: it is played as `agents`, and counts there."""
    here = generated("mutual_friends", 1).scenario
    there = generated("craigslist", 2).scenario
    viewer = next(name for name in here.names if name not in there.names)
    plan = {"modes": ["mindreaders", "agents"], "see": [f"{viewer}=all"]}
    found = _conditions(plan, [here, there])
    granted = f"agents+{viewer}=all"
    assert {name: each[2] for name, each in found.items()} == {
        "agents": [there], granted: [here], "mindreaders": [here, there]
    }  # fmt: skip
    first = here.names[0] == viewer
    alike = transparency([here], "agents", parse("1=all" if first else "2=all"))
    assert transparency(found[granted][2], "agents", found[granted][1]) == alike
    assert transparency(found["agents"][2], "agents") == 0.0


@pytest.mark.parametrize(
    ("see", "words"),
    [
        ("all+announced", "none: separate models that each see every side"),
        ("goal,secret,facts,profile+announced", "none: separate models that each see every side"),
        ("1=all+2=all+announced", "none: separate models that each see every side"),
        ("all", "none: separate models that each see every side; only the viewer knows what it sees"),
        ("1=all+announced", "partial: each model knows its own side and the conversation, and of the others 1=all"),
        ("goal,secret,facts+announced", "partial: "),
        ("decoys", "full: "),
    ],
)
def test_asymmetry_is_none_where_every_side_is_seen(see: str, words: str) -> None:
    scenario = generated("craigslist", 2).scenario
    assert _asymmetry("agents", parse(see), [scenario]).startswith(words)


SEEN = ("facts:{}", "goal,facts:{}", "1=facts:{}")


@given(st.lists(st.integers(1, 99), unique=True, min_size=2), st.sampled_from(SEEN))
def test_grants_are_sorted_by_their_numbers(numbers: list[int], see: str) -> None:
    sorted_by = [Condition("r", "agents", "m", see.format(number)) for number in sorted(numbers)]
    every = Condition("r", "agents", "m", see.replace(":{}", ""))
    plain, after = Condition("r", "agents", "m"), Condition("r", "mindreaders", "m")
    for order in (in_order, in_contrasts):
        assert sorted([after, every, *sorted_by[::-1], plain], key=order) == [plain, *sorted_by, every, after]


def test_what_people_must_say_is_named_and_taken(played: tuple[Store, str], tmp_path: Path) -> None:
    assert len(missing(card(played[0], report(*played)))) == len(HUMAN)
    file = tmp_path / "card.yaml"
    file.write_text("\n".join(f"{name}: {'realism' if name == 'aim' else 'said'}" for name in HUMAN))
    full = card(played[0], report(*played), read_human(file))
    assert missing(full) == [] and "Not stated" not in card_as_markdown(full)
    file.write_text("purpose: x")
    with pytest.raises(InvalidInput, match="purpose"):
        read_human(file)


def test_the_card_counts_the_scenarios_of_the_run_by_tag(store: Store) -> None:
    scenarios = (
        generated("mutual_friends", 3),
        generated("craigslist", 4),
        find_scenarios(["a_box_of_old_records"])[0],
    )
    run_id = runner.start(Plan(scenarios, ("agents",), "scripted"), store, Quiet(), lambda _: None, leaks=False).run_id
    found = card(store, report(store, run_id))
    assert found["scenario_tags"]["kind"] == {"bargaining": 1, "family": 2}
    assert found["scenario_tags"]["parties"] == {"2": 3} and found["scenario_tags"]["payoff"] == {"split": 1}
    assert "- **Kind**: bargaining 1, family 2" in card_as_markdown(found)
    assert found["people_and_models"] == {name: [] for name in INTERACTION}
    assert found["scenario_tags"]["interacts_with"] == {"model_tool": 3, "environment": 1}, "programs take both sides"
    assert found["persona_risks"].keys() == {"character"} and "**Persona type character**" in card_as_markdown(found)


def features(store: Store, *scenarios: LoadedScenario, modes: tuple[Any, ...] = ("agents",)) -> tuple[list[str], Any]:
    """What the card of a run tells of protocol and memory, and its tags."""
    run_id = runner.start(Plan(scenarios, modes, "scripted"), store, Quiet(), lambda _: None, leaks=False).run_id
    found = card(store, report(store, run_id))
    return found["simulation_details"]["other_features"][:2], found


def test_the_card_tells_the_protocol_and_the_memory_of_each_family(store: Store) -> None:
    bank = find_bank("reasoning")
    (asked,) = sheets(bank, chosen_people(["nobody"], bank))
    auction = find_scenarios(["auction_first"])[0]
    told, found = features(store, asked)
    assert told == ["protocol: one question after the other", "memory: each question alone, with those that it follows"]
    assert found["scenario_tags"]["level"] == {"individual": 1} and "structure" not in found["scenario_tags"]
    assert found["scenario_tags"]["interacts_with"] == {"environment": 1}, "nobody else takes part"
    assert found["simulation_details"]["information_asymmetry"] == {"agents": "none: nobody else takes part"}
    told, _ = features(store, auction)
    assert told == ["protocol: at the same time", "memory: the whole conversation"]
    told, _ = features(store, auction, asked, generated("craigslist", 4))
    assert told[0] == (
        "protocol: in turn (craigslist); at the same time (auction); one question after the other (interview)"
    )
    _, found = features(store, generated("craigslist", 4), modes=("script",))
    assert "interacts_with" not in found["scenario_tags"], "one writer meets nobody"


def test_an_evaluator_is_refused_where_the_level_or_the_type_of_persona_does_not_suit_it(store: Store) -> None:
    bank = find_bank("refusal")
    people = sheets(bank, chosen_people(["helmi"], bank))
    run_id = runner.start(Plan(people, ("agents",), "scripted"), store, Quiet(), lambda _: None, leaks=False).run_id
    scored = partial(score_runs, store, [run_id], say=print, named=True)
    with pytest.raises(InvalidInput, match=r"judge\.m suits none of these episodes") as caught:
        scored(evaluators=[Judge("m")])
    assert caught.value.hint == "it is for level scenario or society; these have level individual"
    for words, suited in (("character", True), ("demographic", False)):
        evaluator = evaluator_of("refusal")
        evaluator.suits = {"persona_type": (words,)}
        with nullcontext() if suited else pytest.raises(InvalidInput, match="refusal suits none"):
            assert scored(evaluators=[evaluator]) == {"refusal": 1}


def test_where_people_take_part_the_card_asks_why_in_a_word_of_the_vocabulary(
    played: tuple[Store, str], tmp_path: Path
) -> None:
    alone = report(*played)
    data = replace(alone, annotations=replace(alone.annotations, raters=["a", "b"]))
    found = card(played[0], data)
    assert found["people_and_models"] == {
        "goal": [], "phase": ["evaluation"], "component": ["scores"], "role": ["rater"], "means": ["pages for raters"],
    }  # fmt: skip
    assert missing(found)[-1].startswith("interaction_goal: one of understand people, test a model")
    file = tmp_path / "card.yaml"
    file.write_text("interaction_goal: because")
    with pytest.raises(InvalidInput, match="cannot be 'because'") as error:
        read_human(file)
    assert "test a model" in str(error.value.hint)
    file.write_text("interaction_goal: test a model")
    told = card(played[0], data, read_human(file))
    assert told["people_and_models"]["goal"] == ["test a model"] and len(missing(told)) == len(HUMAN)


@pytest.mark.parametrize("seen", [(True, False, False), (False, True, True), (True, True, True)])
def test_tags_of_people_in_a_run_are_words_of_the_vocabulary(seen: tuple[bool, bool, bool]) -> None:
    players, imported, raters = seen
    found = interaction_of(players=players, imported=imported, raters=raters, goal="teach")
    for name, words in found.items():
        assert words and set(words) <= set(vocabulary().words(f"interaction_{name}") or ())
    assert ("pages for players" in found["means"]) == players and ("rater" in found["role"]) == raters
