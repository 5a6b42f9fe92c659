"""Branches: the scenario of a stored episode whose beginning is the first turns of its conversation."""

from __future__ import annotations

from typing import Any

from localsim.conversation.beginning import beginning
from localsim.conversation.rules.deciding import PHASED
from localsim.conversation.scenario import LoadedScenario, ScenarioFile
from localsim.conversation.transcript import Transcript
from localsim.errors import InvalidInput, MalformedReply
from localsim.families import rules_of
from localsim.scenarios.parse import draws, dump_scenario, parse_scenario
from localsim.store.database import Store
from localsim.store.episodes import load_episode
from localsim.store.queries.pages import answer_key


def branch_of(store: Store, reference: str, at: int, act: str = "", without: str = "") -> ScenarioFile:
    """Return the scenario of a stored episode that begins with its first `at` turns, as `branched` does."""
    with store.held() as reads:
        episode_id = store.episode_id(reference)
        found = load_episode(reads, episode_id)
        whole = LoadedScenario(found.scenario, answer_key(reads, episode_id), f"episode {episode_id}")
    return branched(whole, found.transcript, found.seed, at, act, without)


def branched(
    whole: LoadedScenario, talk: Transcript, seed: int, at: int, act: str = "", without: str = ""
) -> ScenarioFile:
    """Return a scenario that begins with the first `at` turns of a talk in it; `seed` is that of its episode.

    `act`: a line that comes next. `without`: an agent who is left out with its lines. The rules draw what they drew.
    Raises InvalidInput if the conversation cannot go on from there.
    """
    if at > len(talk):
        hint = f"--at 0 to {len(talk) - 1}"
        raise InvalidInput(f"it has {len(talk)} turns, not {at}", where=whole.path, hint=hint)
    lines = [turn.line for turn in talk.turns[:at] if not turn.told and turn.speaker != without] + [act] * bool(act)
    drawn = whole.scenario.seed or (seed if lines and draws(whole.scenario) else None)
    changed = whole.document.model_copy(update={"begun": tuple(lines), "seed": drawn})
    if without:
        changed = _without(changed, without, whole.path)
    else:
        _check_prefix(changed, talk, seed, at, whole.path)
    return parse_scenario(dump_scenario(changed), whole.path).document


def _check_prefix(document: ScenarioFile, talk: Transcript, seed: int, at: int, where: str) -> None:
    """Raise InvalidInput if an episode of the document would not begin as the talk did."""
    scenario = document.split()[0]
    try:
        made = beginning(scenario, rules_of(scenario) or PHASED, seed)
    except MalformedReply as error:
        raise InvalidInput(error.message, where=where, hint="another --at or --act") from error
    again, before = ([(turn.line, turn.readers) for turn in each.turns[:at]] for each in (made, talk))
    if again != before[: len(again)]:
        line = next(one for one, other in zip(again, before, strict=False) if one != other)[0]
        raise InvalidInput(f"the rules would begin otherwise: {line}", where=where)


def _without(document: ScenarioFile, name: str, where: str) -> ScenarioFile:
    if name not in document.names:
        raise InvalidInput(f"nobody is called {name!r}", where=where, hint=f"--without {' or '.join(document.names)}")
    update: dict[str, Any] = {"agents": tuple(agent for agent in document.agents if agent.name != name)}
    if not isinstance(document.relationship, str):
        update["relationship"] = tuple(each for each in document.relationship if name not in each.between)
    return document.model_copy(update=update)
