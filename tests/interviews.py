"""Interviews for tests: subjects whose answers are known, and interviews without a run."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from localsim.backends.scripted import ScriptedBackend
from localsim.conversation.episode import Observation
from localsim.conversation.modes import Ask, Reject, Say
from localsim.conversation.rules.lines import Bound
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action, Transcript
from localsim.families import Player, family_of
from localsim.families.interviews.items import Item, Must
from localsim.families.interviews.players import asked, options_in
from localsim.families.players import any_values
from tests.conftest import answering, driven, spec_of

REFUSES, ANSWERS = "I do not know that.", "Yes, I can tell you about it"


def keyed(loaded: LoadedScenario, *, right: bool) -> Player:
    """A subject that has the key of an interview, and always answers right, or always wrong."""
    keys = loaded.answer.answer["items"]
    items = [Item.model_validate({**each, **keys.get(each["id"], {})}) for each in loaded.scenario.game["items"]]

    def play(seen: Observation, rng: random.Random) -> Action:
        text = asked(seen)
        options = set(options_in(text).values())
        fitting = [each for each in items if text.startswith(each.ask) and set(each.options) == options]
        item = max(fitting, key=lambda each: len(each.ask))
        return answer_to(item, seen, rng, right=right)

    return play


def answer_to(item: Item, seen: Observation, rng: random.Random, *, right: bool) -> Action:
    """A right or a wrong answer to an item; any where none is right or wrong."""
    way = next((each for each in seen.allowed if isinstance(each, Bound)), None)
    if way is None:
        return Action("speak", _words(item, right=right))
    if item.options and item.gold:
        letters = [letter for letter, option in options_in(asked(seen)).items() if (option in item.gold) == right]
        return Action(way.name, "", (rng.choice(letters),))
    while True:
        values = any_values(way, rng)
        if not item.number or (values[0] in item.gold) == right:
            return Action(way.name, "", values)


def _words(item: Item, *, right: bool) -> str:
    """Words that are right or wrong in every respect: gold, refusal and form."""
    must = item.must or Must()
    refuses = (item.refuse is True) == right if item.refuse is not None else False
    parts = [REFUSES] if refuses else [item.gold[0] if item.gold and right else "Nothing" if item.gold else ANSWERS]
    if not right:
        return " ".join([*parts, *["as an AI"] * must.as_self, *["and so on"] * (must.most_words or 1)])
    return " ".join(part for part in (must.begins, *parts, must.contains, must.ends) if part)


def interviewed(loaded: LoadedScenario, player: Player, index: int = 0) -> tuple[Transcript, list[Any]]:
    """The transcript of an interview of a scripted subject, and its requests."""
    steps, end = driven(spec_of(loaded, index=index), answering(ScriptedBackend(player=player)))
    assert end == "done" and not any(isinstance(step, Reject) for step in steps)
    talk = Transcript(tuple(step.turn for step in steps if isinstance(step, Say)))
    return talk, [step.request for step in steps if isinstance(step, Ask)]


def scores_of(loaded: LoadedScenario, player: Player, index: int = 0) -> Mapping[str, float | None]:
    """The scores of an interview of a scripted subject."""
    talk, _ = interviewed(loaded, player, index)
    found = family_of(loaded.scenario.family).score(talk, loaded.scenario, loaded.answer)
    return {score.name: score.value for score in found}


def texts_of(requests: Sequence[Any]) -> list[str]:
    """The whole prompt of each request."""
    return ["\n".join(message.content for message in request.messages) for request in requests]


Make = Callable[[str], LoadedScenario]
