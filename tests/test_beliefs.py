"""Agents that write down whom they take for the friend in common, and the measure of it on players of known beliefs."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localsim.backends.called import named
from localsim.conversation import modes, prompts
from localsim.conversation.episode import Belief, Mode, Subject
from localsim.conversation.minds.believe import START, Believe, Question
from localsim.conversation.minds.flows import Flow
from localsim.conversation.requests import Request
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.evaluators.beliefs import Beliefs
from localsim.evaluators.evaluate import evaluator_of, score_runs
from localsim.families import FAMILIES
from localsim.families.mutual_friends.family import friends_of
from localsim.reports.audit import audit_run
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.store.database import Store
from localsim.store.queries.scoring import subjects
from tests.conftest import Quiet, generated, spec_of
from tests.minded import minded, play, prompt, speaks

FAMILY = FAMILIES["mutual_friends"]
LEAST = 0.00005
"""The least probability that counts."""


@pytest.fixture
def friends() -> LoadedScenario:
    """Two lists of five with one friend in common."""
    return generated("mutual_friends")


# ---- the step ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["agents", "mindreaders"])
def test_an_agent_is_asked_about_its_own_friends_and_nobody_else_reads_it(friends: LoadedScenario, mode: Mode) -> None:
    first, other = friends.scenario.names
    own = friends_of(friends.scenario)[first]
    played = play(
        minded(friends, Believe(FAMILY.unknown), mode=mode),
        lambda asked: f" {own[1]}." if asked.step else speaks(asked),
    )
    assert played.steps() == ["believe", "line", "line", "believe", "line", "line"]
    question, line = played.requests[3:5]
    assert f"a friend of {other} too? Choose one of: {', '.join(own)}." in question.note and question.prefill == START
    assert set(re.findall(r'"(\w+)"', question.form.grammar())) == set(own)
    assert line.note.endswith(f"You think it is most likely {own[1]}.)")
    assert "most likely" not in question.note.partition("Which one")[0], "it is asked without its last answer"
    plain = play(spec_of(friends, mode=mode), speaks)
    alone = [[prompt(each) for each in found.requests if each.speaker == other] for found in (played, plain)]
    assert alone[0] == alone[1], "the other's prompts are what they are without it"


def test_it_is_asked_at_every_nth_turn_and_kept_between(friends: LoadedScenario) -> None:
    own = friends_of(friends.scenario)[friends.scenario.names[0]]
    names = iter(own)
    played = play(
        minded(friends, Believe(FAMILY.unknown, every=2)),
        lambda asked: f" {next(names)}." if asked.step else speaks(asked),
        turns=6,
    )
    assert played.steps() == ["believe", *["line"] * 4, "believe", "line", "line"]
    mine = [asked.note for asked in played.requests if asked.speaker == friends.scenario.names[0] and not asked.step]
    assert [re.findall(r"most likely (\w+)", note) for note in mine] == [[own[0]], [own[0]], [own[1]]]


def test_of_two_names_that_begin_alike_each_can_be_the_answer() -> None:
    form = Question("", ("Ann", "Anna")).form
    assert form.grammar() == 'root ::= " " ("Ann" | "Anna") "."\n'
    assert [form.finished(f"{START} {text}") for text in ("Ann", "Ann.", "Anna", "Anna.")] == [False, True, False, True]
    assert [form.read(text) for text in (" Ann.", " anna", " Annabel.")] == ["Ann", "Anna", None]


# ---- the measure ---------------------------------------------------------------------------------------------------


def test_the_posterior_by_hand(friends: LoadedScenario) -> None:
    scenario, (first, other) = friends.scenario, friends.scenario.names
    lists = friends_of(scenario)
    (shared,) = set(lists[first]) & set(lists[other])
    wrong = next(name for name in lists[first] if name != shared)

    def after(*lines: tuple[str, str], sees_all: bool = False) -> dict[str, float]:
        turns = (Turn(at, name, Action("speak", text)) for at, (name, text) in enumerate(lines))
        return dict(FAMILY.posterior(Transcript(tuple(turns)), scenario, first, sees_all=sees_all))

    asked = (first, f"Do you know {wrong}?")
    assert after() == after(asked) == dict.fromkeys(lists[first], 0.2)
    assert after(asked, (other, f"No, I do not know {wrong}.")) == dict.fromkeys(lists[first], 0.25) | {wrong: 0}
    certain = {name: float(name == shared) for name in lists[first]}
    assert after((other, f"Do you know {shared}?")) == after(sees_all=True) == certain
    for common in (0, 2):
        other_task = generated("mutual_friends", common=common).scenario
        assert FAMILY.posterior(Transcript(), other_task, other_task.names[0], sees_all=False) == {}


def believing(loaded: LoadedScenario, mode: Mode, believes: Callable[[dict[str, float]], dict[str, float]]) -> Subject:
    """A talk of honest players who answer the private question by what is right, as `believes` makes it."""
    turns: list[Turn] = []
    beliefs: list[Belief] = []

    def reply(asked: Request) -> str | tuple[str, dict[str, float]]:
        if asked.step:
            talk, sees_all = Transcript(tuple(turns)), mode == "mindreaders"
            weights = believes(dict(FAMILY.posterior(talk, loaded.scenario, asked.speaker, sees_all=sees_all)))
            text = f" {max(weights, key=lambda name: weights[name])}."
            beliefs.append(Belief(asked.turn, asked.speaker, text, weights))
            return text, weights
        assert asked.observation is not None
        action = FAMILY.players["honest"](asked.observation, random.Random(asked.seed))
        turns.append(Turn(asked.turn, asked.speaker, action))
        return f"{turns[-1].line.removeprefix(asked.speaker)}\n"

    minds = {name: Flow((Believe(FAMILY.unknown),)) for name in loaded.scenario.names}
    talk = play(spec_of(loaded, mode=mode, minds=minds), reply, turns=20)
    assert len(beliefs) == len(talk.says) >= 3
    transcript = Transcript(tuple(say.turn for say in talk.says))
    return Subject("e", loaded.scenario, loaded.answer, mode, 0, 1, transcript, beliefs=tuple(beliefs))


def scored(subject: Subject) -> dict[str, dict[str, float]]:
    """The scores of each agent by name."""
    found: dict[str, dict[str, float]] = {}
    for score in Beliefs().evaluation(subject).scores:
        assert score.agent is not None and score.value is not None
        found.setdefault(score.agent, {})[score.name.removeprefix("belief_")] = score.value
    return found


def uniform(right: Mapping[str, float]) -> dict[str, float]:
    """The same for each friend."""
    return dict.fromkeys(right, 1 / len(right))


def first(right: Mapping[str, float]) -> dict[str, float]:
    """All for the first friend of the list."""
    return dict.fromkeys(right, 0.0) | {next(iter(right)): 1.0}


@pytest.mark.parametrize("mode", ["agents", "mindreaders"])
@pytest.mark.parametrize("seed", [1, 2, 5])
def test_who_believes_the_posterior_has_no_error_and_others_have_theirs(seed: int, mode: Mode) -> None:
    loaded = generated("mutual_friends", seed)
    for found in scored(believing(loaded, mode, dict)).values():
        assert (found["agrees"], found["distance"]) == (1, 0) and found["loss"] == found["entropy"]
        assert found["entropy"] == 0 if mode == "mindreaders" else found["entropy"] > 1
        assert found["chance"] == pytest.approx(0.2) or mode == "agents"
    for found in scored(believing(loaded, mode, uniform)).values():
        assert found["loss"] == pytest.approx(math.log2(5)), "whatever is right"
        assert mode == "agents" or found["distance"] == pytest.approx(0.8**2 + 4 * 0.2**2)
    subject = believing(loaded, mode, first)
    starts = loaded.scenario.names[0]
    own = friends_of(loaded.scenario)[starts]
    hit = float(own[0] in friends_of(loaded.scenario)[loaded.scenario.names[1]])
    begun = scored(replace(subject, beliefs=subject.beliefs[:1]))[starts]
    wrong = 1 - hit if mode == "mindreaders" else 0.8
    assert begun["loss"] == pytest.approx(-wrong * math.log2(LEAST), abs=1e-9)
    assert begun["distance"] == pytest.approx(2 * wrong if mode == "mindreaders" else 0.8**2 + 4 * 0.2**2)
    assert begun["agrees"] == (hit if mode == "mindreaders" else 1), "before anything is said, each is as likely"


def test_without_probabilities_only_the_answer_counts_and_grants_are_left_out(friends: LoadedScenario) -> None:
    subject = believing(friends, "agents", dict)
    bare = replace(subject, beliefs=tuple(replace(each, weights={}) for each in subject.beliefs))
    assert {name for found in scored(bare).values() for name in found} == {"agrees", "chance"}
    assert Beliefs().applies(bare) and not Beliefs().applies(replace(bare, see="facts"))
    assert not Beliefs().applies(replace(bare, beliefs=()))


# ---- runs ----------------------------------------------------------------------------------------------------------


def believer(chat: list[dict[str, str]]) -> str:
    """A subject that names the first friend of its list, and says nothing about friends."""
    found = re.search(r"Choose one of: (\w+)", chat[-1]["content"])
    return f"{START} {found[1]}." if found else f"It is a fine day, number {len(chat)}."


MODEL = f"mind:believe,{named(believer)}"


def simulated(store: Store, loaded: LoadedScenario, model: str = MODEL) -> str:
    limits = loaded.scenario.limits.model_copy(update={"turns": 4})
    short = replace(loaded, scenario=loaded.scenario.model_copy(update={"limits": limits}))
    return start(Plan((short,), ("agents", "mindreaders"), model), store, Quiet(), print, leaks=False).run_id


def test_beliefs_are_read_from_a_run_and_shown_turn_by_turn(store: Store, friends: LoadedScenario) -> None:
    run = simulated(store, friends)
    for name, own in friends_of(friends.scenario).items():
        options = json.dumps([{"line": START, "options": {each: {"log": 0, "share": 0.2} for each in own}}])
        with store.writing() as connection:
            connection.execute(
                "UPDATE generations SET details_json = json_object('step', 'believe', 'options', ?::JSON) "
                "WHERE details_json ->> 'step' = 'believe' AND speaker = ?",
                [options, name],
            )
    assert score_runs(store, [run], [evaluator_of("beliefs")], print) == {"beliefs": 2}
    columns, rows = store.sql((Path(__file__).parent.parent / "db" / "queries" / "20_beliefs.sql").read_text())
    found = {
        (row[columns.index("mode")], row[columns.index("turn")]): dict(zip(columns, row, strict=True)) for row in rows
    }
    assert found["agents", 1] == found["agents", 1] | {
        "agrees": 1, "chance": 1, "loss": 2.32, "least": 2.32, "distance": 0, "questions": 1,
    }  # fmt: skip
    for (mode, _), row in found.items():
        assert mode == "agents" or (row["chance"], row["loss"], row["least"], row["distance"]) == (0.2, 2.32, 0, 0.8)


def test_a_belief_of_another_agent_in_a_prompt_is_found(
    store: Store, friends: LoadedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = audit_run(store, simulated(store, friends))
    assert sound.violations == () and sound.prompts_checked == 16
    thinks, reads = friends.scenario.names
    note_of = prompts.note_of

    def broken(seen: Any, *rest: Any) -> str:
        told = note_of(seen, *rest)
        own = friends_of(friends.scenario)[thinks][0]
        return f"{told} ({thinks} thinks: it is most likely {own}.)" if seen.viewer == reads else told

    monkeypatch.setattr(modes, "note_of", broken)
    found = audit_run(store, simulated(store, friends)).violations
    assert {each.viewer for each in found} == {reads}
    assert {each.mode for each in found if each.what == f"thought of {thinks}"} == {"agents", "mindreaders"}


@pytest.mark.model
def test_an_engine_keeps_the_probability_of_each_friend(store: Store, friends: LoadedScenario) -> None:
    agents, _ = sorted(subjects(store, simulated(store, friends, "mind:believe,starter")), key=lambda each: each.mode)
    for each in agents.beliefs:
        assert set(each.weights) == set(friends_of(friends.scenario)[each.agent])
        assert sum(each.weights.values()) == pytest.approx(1, abs=1e-3)
    assert len(agents.beliefs) > 1 and "loss" in scored(agents)[friends.scenario.names[0]]
