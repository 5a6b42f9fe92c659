"""Is a situation playable? Scripted players whose success is known play one casting of it.

The solver, who tells and reckons, must succeed; small talk, a yes-sayer and a refuser must not; and guessing must be
right as often as the share of right settlements says.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction

from localsim.conversation.controls import by_chance
from localsim.conversation.episode import Mode, Score
from localsim.conversation.rules.deciding import slots, told_turn
from localsim.conversation.rules.steps import Stop, Tell
from localsim.conversation.scenario import LoadedScenario, ScenarioFile
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput
from localsim.families import Family, family_of, player_of, rules_of

SOLVER, GUESSER = "solver", "guesser"
FOILS = ("parrot", "yes-sayer", "refuser")
"""Players who must fail: small talk, whoever accepts anything, whoever refuses everything."""
PLAYED: tuple[Mode, ...] = ("agents", "mindreaders")
"""Scripted players see the same in script mode as in mindreaders."""
GUESSES = 100


def played(loaded: LoadedScenario, player: str, mode: Mode, seed: int = 1) -> Transcript:
    """Return the talk of a scripted player with itself in all roles; nothing is stored."""
    scenario, talk = loaded.scenario, Transcript()
    rules, play = rules_of(scenario), player_of(player)
    if rules is None:
        raise ValueError(f"{scenario.id} has no rules of its own")
    while not isinstance(step := rules.next(scenario, talk, seed), Stop):
        if isinstance(step, Tell):
            talk = talk.plus(told_turn(len(talk), step))
            continue
        for slot in slots(scenario, talk, step):
            seen = observe(scenario, mode, slot.speaker, talk, allowed=slot.ways)
            action = play(seen, random.Random(f"{seed}/{len(talk)}"))
            talk = talk.plus(slot.turn(scenario, len(talk), action, truncated=False))
    return talk


def try_out(family: Family, document: object) -> None:
    """Play a generated scenario of another package's family once at random and score it; nothing is kept.

    So an error in its rules or scores is found before a run begins. Raises InvalidInput, or what the family raises.
    """
    if not isinstance(document, ScenarioFile):
        raise InvalidInput(
            f"{family.name}.generate returned {document!r}, which is no scenario",
            hint="return self.scenario(...) in a game, else ScenarioFile(...)",
        )
    scenario, answer = document.split()
    if family.rules is not None:
        talk = played(LoadedScenario(scenario, answer, "generated"), "any", "agents")
        family.score(talk, scenario, answer)


def scores_of(loaded: LoadedScenario, talk: Transcript) -> dict[str, Score]:
    """Return the scores of the whole episode by name."""
    found = family_of(loaded.scenario.family).score(talk, loaded.scenario, loaded.answer)
    return {score.name: score for score in found if score.agent is None}


def unplayable(loaded: LoadedScenario) -> Iterator[str]:
    """Yield the reasons why a casting tells nothing about those who play it; none for a good one."""
    for mode in PLAYED:
        success = scores_of(loaded, played(loaded, SOLVER, mode))["success"]
        if success.value != 1:
            yield f"the solver fails in {mode} ({success.reason}): are there enough turns to tell all facts?"
        for foil in FOILS:
            success = scores_of(loaded, played(loaded, foil, mode))["success"]
            if success.value != 0:
                yield f"{foil} succeeds in {mode}: {success.reason}"
    chance = Fraction(loaded.answer.answer["chance"])
    hits = sum(guess(loaded, seed) for seed in range(GUESSES))
    if not by_chance(GUESSER, "fit", float(chance), "").passes(hits / GUESSES, GUESSES):
        yield f"guessing is right {hits} of {GUESSES} times, and the share of right settlements is {chance}"


def guess(loaded: LoadedScenario, seed: int) -> bool:
    """Return True if a settlement drawn at random is right."""
    fit = scores_of(loaded, played(loaded, GUESSER, "agents", seed)).get("fit")
    return fit is not None and fit.value == 1
