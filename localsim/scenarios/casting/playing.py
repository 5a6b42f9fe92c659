"""Is a situation playable? Scripted players whose success is known play one casting of it.

The solver, who tells and reckons, must succeed; small talk, a yes-sayer and a refuser must not; and guessing must be
right as often as the share of right settlements says.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from fractions import Fraction

from localsim.conversation.controls import by_chance
from localsim.conversation.episode import Mode, Score, scores_of_episode
from localsim.conversation.rules.deciding import slots, told_turn
from localsim.conversation.rules.steps import Stop, Tell
from localsim.conversation.scenario import LoadedScenario, Scenario, ScenarioFile
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput
from localsim.families import Family, family_of, player_of, rules_of
from localsim.families.games.base import Game
from localsim.families.games.replayed import Replayed
from localsim.plugins import failure, place_of

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
            talk = talk.plus(slot.turn(scenario, len(talk), action))
    return talk


def try_out(family: Family, document: object, again: object) -> None:
    """Play a generated scenario of another package's family at random and score it; nothing is kept.

    `again` is what the same call of `generate` returned a second time. So an error in its rules or scores is found
    before a run begins: what it returns, and whether the same seed gives the same scenario and the same game. Raises
    InvalidInput, or what the family raises.
    """
    if not isinstance(document, ScenarioFile):
        raise InvalidInput(
            f"{family.name}.generate returned {document!r}, which is no scenario",
            where=place_of(family, "generate"),
            hint="return self.scenario(...) in a game, else ScenarioFile(...)",
        )
    if again != document:
        message = f"{family.name}.generate returned two different scenarios for the same arguments"
        hint = "draw with g.chance(seed, ...) or random.Random(seed)"
        raise InvalidInput(message, where=place_of(family, "generate"), hint=hint)
    scenario, answer = document.split()
    if family.rules is not None:
        _try_rules(family, LoadedScenario(scenario, answer, "generated"))


def _try_rules(family: Family, loaded: LoadedScenario) -> None:
    """Play a scenario at random and score it. Raises InvalidInput if anything but the acts and the seed matters."""
    talk, name = played(loaded, "any", "agents"), family.decides if isinstance(family, Game) else "step"
    if played(loaded, "any", "agents") != talk:
        message = f"{family.name}.{name}: a second game with the same seed and the same acts took another way"
        hint = f"{name} may depend on its arguments only; draw with chance"
        raise InvalidInput(message, where=place_of(family, name), hint=hint)
    scores = family.score(talk, loaded.scenario, loaded.answer)
    check_scores(family, scores, loaded.scenario, talk)
    if isinstance(family, Replayed) and not family.needs_no_seed(talk, loaded.scenario, loaded.answer):
        message = f"{family.name}.play: scores rest on what was drawn, and the seed is not known when they are computed"
        hint = "read it from the turn that told it: card = (yield from table.tell(...)).value"
        raise InvalidInput(message, where=place_of(family, "play"), hint=hint)


def check_scores(family: Family, given: Sequence[Score], scenario: Scenario, talk: Transcript) -> None:
    """Raise InvalidInput for scores that cannot be kept or that no measure can use."""
    where, measures = place_of(family, "score"), family.measures
    try:
        scores = scores_of_episode(given, scenario, talk)
    except (TypeError, ValueError) as error:
        if failure(error):  # `score` is a generator, and it failed at a line of its own
            raise
        raise InvalidInput(f"{family.name}.score: {error}", where=where) from error
    means = [each for each in measures if (each.kind, each.summed) == ("share", "mean")]
    read = {name for each in measures for name in (each.score, each.per, each.up_to) if name}
    absent = read - {score.name for score in scores}
    for score in scores:
        if score.name not in read and (close := get_close_matches(score.name, absent, n=1, cutoff=0.8)):
            message = f"no measure has the score {score.name!r} (did you mean {close[0]}?)"
            raise InvalidInput(f"{family.name}.score: {message}", where=where)
        shares = [each.key for each in means if each.score == score.name]
        if shares and score.value is not None and not 0 <= score.value <= 1:
            message = f"the score {score.name!r} is {score.value:g}, and the measure {shares[0]!r} is a share, 0 to 1"
            raise InvalidInput(f"{family.name}.score: {message}", where=where, hint='write it without kind="share"')


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
