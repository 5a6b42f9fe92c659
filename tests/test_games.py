"""Every game: its file form, its controls, all its players in all modes, its audit, its bundled scenarios."""

from __future__ import annotations

import hashlib
import json
import random
from functools import lru_cache
from pathlib import Path

import pytest

from localsim.conversation.episode import MODES, Mode
from localsim.conversation.prompts import agent_instructions
from localsim.conversation.rules.deciding import slots, told_turn
from localsim.conversation.rules.steps import Act, Stop, Tell
from localsim.conversation.scenario import LoadedScenario, Scenario
from localsim.conversation.transcript import ACTION_TYPES, Transcript
from localsim.conversation.visibility import observe
from localsim.families import FAMILIES, PLAYERS, rules_of
from localsim.families.games.base import Game
from localsim.families.players import any_way
from localsim.reports.audit import audit_run
from localsim.reports.measures import measures_of
from localsim.reports.validity.controls import controls_of, run_controls
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.runs.scripted import simulated
from localsim.scenarios.find import find_scenarios
from localsim.scenarios.parse import dump_scenario, parse_scenario
from localsim.store.database import Store
from localsim.store.episodes import load_episode, transcript_of
from localsim.store.queries.runs import spoken_turns
from tests.conftest import Quiet, generated

GAMES = FAMILIES.games
GOLDEN = json.loads((Path(__file__).parent / "data" / "games.json").read_text())
"""Game -> scenario that ships -> its digest, made from the files that shipped before games generated them."""


def quiet(_line: str) -> None:
    """Say nothing."""


@pytest.mark.parametrize("game", GAMES)
def test_a_generated_file_reads_back_and_depends_on_its_seed_alone(game: str) -> None:
    family = FAMILIES[game]
    assert isinstance(family, Game) and family.rules is family and family.about and family.title
    one, again, other = (family.generate("g", seed, {}) for seed in (1, 1, 2))
    assert one == again and one.model_copy(update={"parameters": {}}) != other.model_copy(update={"parameters": {}})
    read = parse_scenario(dump_scenario(one), "g.yaml")
    assert read.scenario == one.split()[0] and read.answer == one.split()[1]
    for agent in one.agents:
        assert all(fact.terms for fact in agent.facts), "players and audit read terms"


@pytest.mark.parametrize("game", GAMES)
def test_its_prompts_speak_of_speaking_where_somebody_may_speak_and_only_there(game: str) -> None:
    """Of all scenarios that ship, for each seat: no prompt offers speech that the rules never allow, or hides it."""
    for scenario in (loaded.scenario for loaded in shipped(game)):
        asked: set[str] = set()
        for seed in range(4):
            asked |= {name for step in steps_of(scenario, seed) for name in step.actions}
        assert set(scenario.actions) == asked & set(ACTION_TYPES), scenario.id
        for name in scenario.names:
            prompt = agent_instructions(observe(scenario, "agents", name, Transcript()))
            assert ("To speak:" in prompt) == ("speak" in scenario.actions), (scenario.id, name)


def steps_of(scenario: Scenario, seed: int) -> list[Act]:
    """The acts of a game in which everybody takes any way."""
    rules, talk, found = rules_of(scenario), Transcript(), list[Act]()
    assert rules is not None
    while not isinstance(step := rules.next(scenario, talk, seed), Stop):
        if isinstance(step, Tell):
            talk = talk.plus(told_turn(len(talk), step))
            continue
        found.append(step)
        for slot in slots(scenario, talk, step):
            seen = observe(scenario, "agents", slot.speaker, talk, allowed=slot.ways)
            action = any_way(seen, random.Random(f"{seed}/{len(talk)}"))
            talk = talk.plus(slot.turn(scenario, len(talk), action))
    return found


@pytest.mark.parametrize("scenarios", [6, pytest.param(20, marks=pytest.mark.verify)])
@pytest.mark.parametrize("game", GAMES)
def test_its_controls_name_what_exists_and_hold(game: str, scenarios: int) -> None:
    family, known = FAMILIES[game], {measure.key for measure in measures_of([game])}
    covered = {control.measure for control in controls_of(game)}
    assert {measure.key for measure in family.measures} <= covered, "a measure without a control does not ship"
    for control in controls_of(game):
        assert control.player in PLAYERS and control.measure in known and control.why, control
        assert control.task in {"", *family.control_tasks}, control
    assert set(family.figure) <= known
    assert [each.as_json() for each in run_controls([game], scenarios) if not each.passed] == []


@pytest.mark.parametrize("game", GAMES)
def test_every_player_ends_in_every_mode_and_the_audit_finds_nothing(game: str, store: Store) -> None:
    loaded = generated(game, 3)
    for player in ("auto", "omniscient", "any"):
        run_id = start(Plan((loaded,), MODES, f"scripted:{player}", seed=5), store, Quiet(), quiet).run_id
        rows = store.rows("SELECT status, error FROM episodes WHERE run_id = ?", [run_id])
        assert [row["status"] for row in rows] == ["completed"] * len(MODES), (player, rows)
        audit = audit_run(store, run_id)
        assert audit.prompts_checked and audit.violations == (), (player, audit.violations[:3])
        talks: dict[str, list[dict[str, object]]] = {}
        for row in spoken_turns(store, run_id):
            talks.setdefault(str(row["episode_id"]), []).append(row)
        with store.held() as reads:
            assert {load_episode(reads, episode_id).run_id for episode_id in talks} == {run_id}
        for turns in talks.values():
            talk = transcript_of(turns)
            names = [score.name for score in FAMILIES[game].score(talk, loaded.scenario, loaded.answer)]
            assert names, (player, run_id)


@pytest.mark.parametrize("game", GAMES)
def test_the_rules_are_a_function_of_the_transcript(game: str) -> None:
    """Replayed on each of its prefixes, a played game asks for the same steps; a copy of the text decides the same."""
    loaded = generated(game, 4)
    rules = rules_of(loaded.scenario)
    assert rules is not None
    copy = parse_scenario(dump_scenario(FAMILIES[game].generate(f"{game}_04", 4, {})), "copy.yaml").scenario
    for mode in MODES:
        talk = played(game, mode)
        for end in range(len(talk) + 1):
            prefix = Transcript(talk.turns[:end])
            if end < len(talk) and prefix.turns and prefix.turns[-1].beat == talk.turns[end].beat:
                continue  # in the middle of a simultaneous beat nothing is decided
            step = rules.next(loaded.scenario, prefix, seed_of(game))
            assert step == rules.next(copy, prefix, seed_of(game))
            if end == len(talk):
                assert isinstance(step, Stop)
            elif isinstance(step, Tell):
                assert talk.turns[end].told and talk.turns[end].action.text == step.text
            else:
                assert isinstance(step, Act) and talk.turns[end].speaker == step.speakers[0]


def played(game: str, mode: Mode) -> Transcript:
    """A game in which everybody takes any way."""
    return _game(game, mode)[0]


def seed_of(game: str) -> int:
    """The seed of its episode."""
    return _game(game, "agents")[1]


@lru_cache(maxsize=8)
def _game(game: str, mode: Mode) -> tuple[Transcript, int]:
    (episode,) = simulated(Plan((generated(game, 4),), (mode,), "scripted:any", seed=9)).episodes.values()
    return episode.transcript, episode.spec.seed


@pytest.mark.parametrize("game", GAMES)
def test_five_scenarios_of_it_ship_and_stay_the_same(game: str) -> None:
    """No text, id, seed or hash of a scenario that ships may change: stored runs are compared by them."""
    found = shipped(game)
    assert len(found) >= 5 and all(each.scenario.info.things_to_try and each.scenario.info.how for each in found)
    assert len({each.hash for each in found}) == len(found), "each is another one"
    assert {each.path: digest(each) for each in found} == GOLDEN[game]


def shipped(game: str) -> list[LoadedScenario]:
    """The scenarios of a game that ship."""
    family = FAMILIES[game]
    assert isinstance(family, Game)
    return find_scenarios([f"{game}_{name}" for name in family.bundled])


def digest(loaded: LoadedScenario) -> str:
    """A short hash of the text of a scenario's file and of its stored hash."""
    return hashlib.sha256(f"{dump_scenario(loaded.document)}{loaded.hash}".encode()).hexdigest()[:12]
