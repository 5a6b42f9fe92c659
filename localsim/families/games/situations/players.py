"""Scripted players of situations: one that tells and reckons, and others that fail in known ways.

They depend on nothing but their observation: on facts that it shows, and on what was said in the form that `meaning`
reads. In the omniscient modes the solver sees all facts, tells only what should be told, and settles the matter.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial

from localsim.conversation.episode import Observation
from localsim.conversation.scenario import After, Fact
from localsim.conversation.transcript import Action
from localsim.families.games.situations.meaning import (
    DONE_TELLING,
    IN_SHORT,
    TELL,
    Meaning,
    Settlement,
    favourite,
    heard,
    issues_of,
    open_proposal,
    parse_meanings,
    right,
    said,
)
from localsim.families.players import Player

_LONGEST = 270
"""Most characters of an utterance."""
_WAIT = "I am listening."


def solver(seen: Observation, _rng: random.Random, *, blurts: bool = False) -> Action:
    """Tell all own facts that may be told, hear the others', and settle what is right by all of them.

    `blurts`: also tell what must be kept.
    """
    lines = _lines(seen, blurts=blurts)
    spoken = sum(IN_SHORT in turn.action.text for turn in seen.transcript.turns if turn.speaker == seen.viewer)
    if spoken < len(lines):
        line, fact = lines[spoken]
        return Action("speak", line if fact is None or _may_tell(fact, seen) else "Let me think for a moment.")
    sides, complete = _sides(seen)
    return _settling(seen, sides) if complete else Action("speak", _WAIT)


def _lines(seen: Observation, *, blurts: bool) -> list[tuple[str, Fact | None]]:
    """Return what the viewer says about its facts, each with the fact, in the order in which it may be told."""
    facts = [fact for fact in seen.me().facts if blurts or fact.disclosure != "never"]
    if seen.omniscient:
        facts = [fact for fact in facts if TELL in fact.means or fact.disclosure == "never"]
    facts.sort(key=lambda fact: (fact.disclosure not in ("free", "never"), TELL not in fact.means))
    found: list[tuple[str, Fact | None]] = []
    for fact in facts:
        short = "; ".join(said(fact.means)) or "no more about this"
        whole = f"{fact.text} {IN_SHORT} {short}."
        if len(whole) <= _LONGEST:
            found.append((whole, fact))
        else:
            found += [(f"{IN_SHORT} {clause}.", fact) for clause in said(fact.means)]
    if not seen.omniscient:
        found.append((f"{IN_SHORT} {DONE_TELLING}.", None))
    return found


def _may_tell(fact: Fact, seen: Observation) -> bool:
    """Return True if the rule of a fact allows its owner to tell it now."""
    turn = len(seen.transcript.turns)
    if isinstance(fact.disclosure, After) and fact.disclosure.turn is not None:
        return turn >= fact.disclosure.turn
    return fact.disclosure != "late" or 2 * turn >= seen.turn_limit


def _sides(seen: Observation) -> tuple[Mapping[str, Meaning], bool]:
    """Return what is known of each side, seen or heard, and whether that is everything."""
    sides = {agent.name: parse_meanings(text for fact in agent.facts for text in fact.means) for agent in seen.agents}
    complete = {name for name in sides if seen.omniscient or name == seen.viewer}
    for turn in seen.transcript.of("speak"):
        told, over = heard(turn.action.text)
        sides[turn.speaker] |= told
        complete |= {turn.speaker} if over else set()
    return sides, complete == set(sides)


def _settling(seen: Observation, sides: Mapping[str, Meaning]) -> Action:
    found = right(
        issues_of(seen.moves, {"public": seen.game}), seen.game["rule"], sides.values(), seen.game.get("otherwise", ())
    )
    proposal, _ = open_proposal(seen.transcript)
    if proposal in found:
        return Action("accept", "", ()) if seen.may("accept") else Action("speak", _WAIT)
    return _offer(seen, found[0]) if found else Action("speak", "I see nothing that suits us all.")


def _offer(seen: Observation, settlement: Settlement) -> Action:
    """Propose, suggest or choose, whichever the viewer can do now."""
    name = next((name for name in ("propose", "choose", "suggest") if seen.may(name)), "speak")
    return Action(name, "", settlement) if name != "speak" else Action("speak", _WAIT)


def _own_favourite(seen: Observation) -> Settlement:
    own = parse_meanings(text for fact in seen.me().facts for text in fact.means)
    issues = issues_of(seen.moves, {"public": seen.game})
    return favourite(issues, seen.game["rule"], own, seen.game.get("otherwise", ()))


def _yes_sayer(seen: Observation, _rng: random.Random) -> Action:
    """Accept any proposal, choose what was suggested last, and propose the own favourite where there is none."""
    if seen.may("accept"):
        return Action("accept", "", ())
    suggested = seen.transcript.of("suggest")
    if seen.may("choose") and suggested:
        return Action("choose", "", tuple(suggested[-1].action.values or ()))
    if seen.may("choose") and len(seen.transcript.acts) < len(seen.agents) - 1:
        return Action("speak", "What do you suggest?")
    return _offer(seen, _own_favourite(seen))


def _refuser(seen: Observation, _rng: random.Random) -> Action:
    if seen.may("refuse"):
        return Action("refuse", "", ())
    return Action("speak", "No.") if seen.may("choose") else _offer(seen, _own_favourite(seen))


def _guesser(seen: Observation, rng: random.Random) -> Action:
    if seen.may("accept"):
        return Action("accept", "", ())
    return _offer(seen, tuple(rng.choice(issue.values) for issue in issues_of(seen.moves, {"public": seen.game})))


PLAYERS: Mapping[str, Player] = {
    "solver": solver,
    "blurter": partial(solver, blurts=True),
    "yes-sayer": _yes_sayer,
    "refuser": _refuser,
    "guesser": _guesser,
}
