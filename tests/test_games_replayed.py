"""Games as one generator: played as before, begun once for each episode, and scored without a seed."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from localsim.conversation.episode import Mode
from localsim.conversation.rules.deciding import slots, told_turn
from localsim.conversation.rules.steps import Next, Stop, Tell
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe
from localsim.families import FAMILIES, player_of, rules_of
from localsim.families.games.base import Game
from localsim.families.games.replayed import Replayed, Table
from localsim.scenarios.parse import dump_scenario
from tests.conftest import generated

GOLDEN: dict[str, dict[str, str]] = json.loads((Path(__file__).parent / "data" / "golden_games.json").read_text())
"""Game -> hashes that were computed when its rules and scores were still written by hand."""
MODES: tuple[Mode, ...] = ("agents", "mindreaders")
REPLAYED = [name for name in FAMILIES.games if isinstance(FAMILIES[name], Replayed)]


@pytest.mark.parametrize("game", FAMILIES.games)
def test_a_game_is_generated_played_and_scored_as_it_was(game: str) -> None:
    """A change here means that episodes before and after it must not be compared: raise the version of the game."""
    assert fingerprint(game) == GOLDEN[game]


def fingerprint(game: str) -> dict[str, str]:
    """Hashes of the scenarios of a game, of each step of all its players in two modes, and of their scores."""
    family = FAMILIES[game]
    assert isinstance(family, Game)
    kept = {"scenarios": hashlib.sha256(), "steps": hashlib.sha256(), "scores": hashlib.sha256()}
    for seed, (name, parameters) in enumerate(family.bundled.items()):
        scenario, answer = (document := family.generate(f"{game}_{name}", seed, parameters)).split()
        loaded = LoadedScenario(scenario, answer, "generated")
        sides = [family.side(agent, answer) for agent in scenario.names]
        kept["scenarios"].update(repr((family.version, dump_scenario(document), scenario.hash, sides)).encode())
        for mode in MODES:
            for player in (*family.players, "any", "omniscient"):
                steps, talk = course(loaded, player, mode, seed)
                kept["steps"].update(repr((steps, talk.turns)).encode())
                scores = family.score(talk, scenario, answer)
                rows = [
                    (each.name, each.agent or "", round(each.value or 0, 9), each.turns, each.reason) for each in scores
                ]
                kept["scores"].update(repr(sorted(rows)).encode())
    return {name: each.hexdigest()[:16] for name, each in kept.items()}


def course(loaded: LoadedScenario, player: str, mode: Mode, seed: int) -> tuple[list[Next], Transcript]:
    """The steps of a game in which one player takes all seats, and its transcript."""
    scenario, talk, found = loaded.scenario, Transcript(), list[Next]()
    family, rules = FAMILIES[scenario.family or ""], rules_of(scenario)
    play = family.players.get(player) or player_of(player)
    assert rules is not None
    while True:
        found.append(step := rules.next(scenario, talk, seed))
        if isinstance(step, Stop):
            return found, talk
        if isinstance(step, Tell):
            talk = talk.plus(told_turn(len(talk), step))
            continue
        for slot in slots(scenario, talk, step):
            seen = observe(scenario, mode, slot.speaker, talk, allowed=slot.ways)
            talk = talk.plus(slot.turn(scenario, len(talk), play(seen, random.Random(f"{seed}/{len(talk)}"))))


@pytest.mark.parametrize("game", REPLAYED)
def test_scores_rest_on_what_was_told_and_not_on_what_is_drawn(game: str) -> None:
    family, loaded = FAMILIES[game], generated(game, 5)
    assert isinstance(family, Replayed)
    _, talk = course(loaded, "any", "agents", 5)
    assert family.score(talk, loaded.scenario, loaded.answer)
    assert family.needs_no_seed(talk, loaded.scenario, loaded.answer)


def test_two_episodes_side_by_side_begin_their_generators_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal turns of two episodes, in turn: neither takes the generator of the other, and none begins anew."""
    begun: Counter[str] = Counter()
    trust = FAMILIES["trust"]
    assert isinstance(trust, Replayed)
    play = type(trust).play

    def counted(self: Any, table: Table) -> Any:
        begun["play"] += 1
        return play(self, table)

    monkeypatch.setattr(type(trust), "play", counted)
    loaded = generated("trust", 1, rounds=100)
    scenario, talks = loaded.scenario, [Transcript(), Transcript()]
    for _ in range(400):
        for number, talk in enumerate(talks):
            step = trust.next(scenario, talk, 1)
            if isinstance(step, Tell):
                talks[number] = talk.plus(told_turn(len(talk), step))
            elif not isinstance(step, Stop):
                (slot,) = slots(scenario, talk, step)
                seen = observe(scenario, "agents", slot.speaker, talk, allowed=slot.ways)
                action = player_of("trusting")(seen, random.Random(1))
                talks[number] = talk.plus(slot.turn(scenario, len(talk), action))
    assert [len(talk) for talk in talks] == [400, 400]
    assert begun["play"] == 4, "each episode once before its first turn, which is not kept, and once after it"
    assert all(isinstance(trust.next(scenario, talk, 1), Stop) for talk in talks)


def test_a_generator_that_has_gone_on_does_not_answer_for_an_earlier_turn_or_other_words() -> None:
    loaded = generated("ultimatum", 1)
    steps, talk = course(loaded, "half", "agents", 1)
    rules = FAMILIES["ultimatum"].rules
    assert rules is not None
    for end in reversed(range(len(talk) + 1)):
        assert rules.next(loaded.scenario, Transcript(talk.turns[:end]), 1) == steps[end]
    other, _ = course(loaded, "refuser", "agents", 1)
    _, refused = course(loaded, "refuser", "agents", 1)
    mixed = Transcript((refused.turns[0], *talk.turns[1:2]))
    assert rules.next(loaded.scenario, mixed, 1) != other[-2], "the offer of one and the answer of another episode"
