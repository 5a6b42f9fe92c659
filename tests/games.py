"""Played games for tests: by scripted players without a run, or move by move."""

from __future__ import annotations

import random
from typing import Any

from localsim.conversation.episode import Mode
from localsim.conversation.rules.deciding import slots, told_turn
from localsim.conversation.rules.steps import Stop, Tell
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action, Transcript, Turn, parse_line
from localsim.conversation.visibility import observe
from localsim.families import FAMILIES, player_of, rules_of


def play(loaded: LoadedScenario, *players: str, mode: Mode = "agents", seed: int = 1) -> Transcript:
    """A game of scripted players, one for each agent in order; the last one plays all that are left."""
    scenario, talk = loaded.scenario, Transcript()
    rules = rules_of(scenario)
    assert rules is not None
    by = {name: player_of(players[min(n, len(players) - 1)]) for n, name in enumerate(scenario.names)}
    while not isinstance(step := rules.next(scenario, talk, seed), Stop):
        if isinstance(step, Tell):
            talk = talk.plus(told_turn(len(talk), step))
            continue
        for slot in slots(scenario, talk, step):
            seen = observe(scenario, mode, slot.speaker, talk, allowed=slot.ways)
            action = by[slot.speaker](seen, random.Random(f"{seed}/{len(talk)}"))
            talk = talk.plus(_turn(scenario, talk, slot, action))
    return talk


def after(loaded: LoadedScenario, *acts: tuple[str, Action], seed: int = 1) -> Transcript:
    """The transcript after these acts, with everything that the rules tell up to the next one."""
    scenario, talk, waiting = loaded.scenario, Transcript(), list(acts)
    rules = rules_of(scenario)
    assert rules is not None
    while not isinstance(step := rules.next(scenario, talk, seed), Stop):
        if isinstance(step, Tell):
            talk = talk.plus(told_turn(len(talk), step))
            continue
        if not waiting:
            return talk
        for slot in slots(scenario, talk, step):
            speaker, action = waiting.pop(0)
            assert speaker == slot.speaker, f"{slot.speaker} acts, not {speaker}"
            talk = talk.plus(_turn(scenario, talk, slot, action))
    assert not waiting, f"the game is over before {waiting}"
    return talk


def _turn(scenario: Any, talk: Transcript, slot: Any, action: Action) -> Turn:
    """The turn of an action, read back from its line, so that nothing passes that a model could not write."""
    turn = slot.turn(scenario, len(talk), action)
    read = parse_line(turn.line, slot.speaker, slot.ways, scenario.limits.chars)
    assert read.action == action, turn.line
    found: Turn = turn
    return found


def scores_of(loaded: LoadedScenario, talk: Transcript) -> dict[Any, float]:
    """The scores by name, and by (name, agent) where they are an agent's."""
    found = FAMILIES[loaded.scenario.family or ""].score(talk, loaded.scenario, loaded.answer)
    return {
        (score.name, score.agent) if score.agent else score.name: score.value
        for score in found
        if score.value is not None
    }


def outcome(loaded: LoadedScenario, *players: str, mode: Mode = "agents", seed: int = 1) -> dict[Any, float]:
    """The scores of a game of scripted players."""
    return scores_of(loaded, play(loaded, *players, mode=mode, seed=seed))
