"""What a transcript says about a situation: the open proposal, the settlement, and the issues and sides behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from localsim.conversation.rules.values import Move, Param
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Transcript
from localsim.families.games.situations.meaning import (
    Issue,
    Meaning,
    Settlement,
    count,
    parse_meanings,
    right,
    written,
)

ALL = "all"
"""The value of `decides` where a settlement needs everybody."""


def issues_of(moves: Sequence[Move], game: Mapping[str, Any]) -> tuple[Issue, ...]:
    """Return the issues: their names are public, their values those of the moves."""
    names = game.get("public", {}).get("issues", ())
    values: tuple[Param, ...] = next(
        (move.values for move in moves if move.name in ("propose", "choose", "suggest")), ()
    )
    if not names or len(names) != len(values):
        return ()
    return tuple(Issue(name, param) for name, param in zip(names, values, strict=True))


def sides_of(scenario: Scenario) -> dict[str, Meaning]:
    """Return what the facts of each agent mean."""
    return {
        agent.name: parse_meanings(text for fact in agent.facts for text in fact.means) for agent in scenario.agents
    }


def answer_of(scenario: Scenario) -> dict[str, Any]:
    """Return the answer key: the right settlements, and the share of all settlements that is right."""
    public, issues = scenario.game["public"], issues_of(scenario.moves, scenario.game)
    found = right(issues, public["rule"], sides_of(scenario).values(), public.get("otherwise", ()))
    return {"right": written(issues, found), "chance": f"{len(found)}/{count(issues)}"}


def open_proposal(talk: Transcript) -> tuple[Settlement | None, tuple[str, ...]]:
    """Return the newest proposal that nobody has refused, and who agrees with it; its author comes first."""
    settlement: Settlement | None = None
    agreed: tuple[str, ...] = ()
    for turn in talk.of("propose", "accept", "refuse"):
        if turn.action.type == "propose":
            settlement, agreed = tuple(turn.action.values or ()), (turn.speaker,)
        elif turn.action.type == "refuse":
            settlement, agreed = None, ()
        else:
            agreed = (*agreed, turn.speaker)
    return settlement, agreed


def settlement_of(scenario: Scenario, talk: Transcript) -> Settlement | None:
    """Return what is settled; None if nothing is."""
    chosen = talk.of("choose")
    if chosen:
        return tuple(chosen[-1].action.values or ())
    settlement, agreed = open_proposal(talk)
    return settlement if settlement and set(agreed) >= set(scenario.names) else None


def settling_turns(scenario: Scenario, talk: Transcript) -> tuple[int, ...]:
    """Return the turns of the settlement: a choice, or the proposal and the last acceptance."""
    if settlement_of(scenario, talk) is None:
        return ()
    if chosen := talk.of("choose"):
        return (chosen[-1].index,)
    return talk.of("propose")[-1].index, talk.of("accept")[-1].index
