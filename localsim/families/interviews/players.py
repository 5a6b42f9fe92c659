"""Scripted subjects: each answers from what it sees and from nothing else, so that its scores are known.

`solver` computes, or reads its own card. `wrong` never chooses what the solver chooses. `refuser` refuses, or leaves
open, what can be; `talker` refuses nothing. `highest` and `lowest` take the ends of every scale. `first` takes the
first option.
"""

from __future__ import annotations

import random
import re
from functools import partial

from localsim.conversation.episode import Observation
from localsim.conversation.rules.lines import Bound
from localsim.conversation.transcript import Action
from localsim.families.interviews.items import ABSTAIN
from localsim.families.interviews.reasoning import HEADS, TAILS
from localsim.families.players import Player, any_values
from localsim.families.terms import utters

UNKNOWN = "I do not know that."
"""The option, or the answer in words, of a person who cannot know something."""
NEVER = "I have never heard of it."
"""The option of a person who has never heard of something."""
RELATED, WORKS = "{0} is {1}'s {2}.", "{0} works as {1}."
"""Facts of a card: who is whose relative, and who works as what."""
_OPTION = re.compile(r"\(([A-J])\) (.*?)(?= \([A-J]\) |$)")
_SUM = re.compile(r"What is (\d+) \+ (\d+)\?")
_RELATIVE = re.compile(r"What is the occupation of your (.+)\?")
_STEM = re.compile(r"[^\W_]{3,}")


def asked(seen: Observation) -> str:
    """Return the question that is to be answered now."""
    return next((turn.action.text for turn in reversed(seen.transcript.turns) if turn.told), "")


def options_in(text: str) -> dict[str, str]:
    """Return letter -> option of a question."""
    return dict(_OPTION.findall(text))


def solved(seen: Observation) -> str:
    """Return the right answer as far as it can be computed or is on the subject's own card; '' otherwise."""
    text = asked(seen)
    if match := _SUM.search(text):
        return str(int(match[1]) + int(match[2]))
    if "last letters" in text:
        listed = text.partition(": ")[2].partition(".")[0]
        return "".join(word[-1] for word in listed.split(", "))
    if "A coin lies heads up" in text:
        return TAILS if text.count("turns it over") % 2 else HEADS
    if match := _RELATIVE.search(text):
        facts = [fact.text for fact in seen.me().facts]
        who = next((fact.split()[0] for fact in facts if fact.endswith(f" is {seen.viewer}'s {match[1]}.")), "-")
        return next((each for each in options_in(text).values() if WORKS.format(who, each) in facts), "")
    return _on_card(seen, text)


def _on_card(seen: Observation, text: str) -> str:
    """Return the option that the subject's own facts name, or the fact that the question is about; '' if none does."""
    me, facts = seen.me(), [fact.text for fact in seen.me().facts]
    persona = dict(me.persona)
    card = [*(value for _, value in me.profile), *facts]
    card += [each for field, texts in me.persona if field != "never_heard_of" for each in texts]
    options = [option for option in options_in(text).values() if option != UNKNOWN]
    never = [option for option in options if option == NEVER]
    if never and any(utters(text, thing) for thing in persona.get("never_heard_of", ())):
        return never[0]
    whole = [option for option in options if option in card]
    found = whole or [option for option in options if any(utters(each, option) for each in card)]
    if found or options:
        return found[0] if found else UNKNOWN
    wanted = set(_STEM.findall(text.casefold())) - {"what", "your"}
    return next((fact for fact in facts if wanted and wanted <= set(_STEM.findall(fact.casefold()))), "")


def _way(seen: Observation) -> Bound | None:
    return next((way for way in seen.allowed if isinstance(way, Bound)), None)


def _choose(way: Bound, value: str) -> Action:
    return Action(way.name, "", (value,))


def _with(answer: str, seen: Observation, rng: random.Random) -> Action:
    """Answer with a text: the option with these words, the number, or the words themselves."""
    way = _way(seen)
    if way is None:
        return Action("speak", answer or UNKNOWN)
    letters = [letter for letter, option in options_in(asked(seen)).items() if option == answer]
    if letters:
        return _choose(way, letters[0])
    numeric = way.move.values[0].number is not None and answer.lstrip("-").isdigit()
    return _choose(way, answer) if numeric else Action(way.name, "", any_values(way, rng))


def solver(seen: Observation, rng: random.Random) -> Action:
    """Compute the answer, or read it from the own card; say that it is unknown where the card has none."""
    return _with(solved(seen), seen, rng)


def wrong(seen: Observation, rng: random.Random) -> Action:
    """Answer with anything but the solver's answer; refuse what the solver answers, and answer what it refuses."""
    right, way = solved(seen), _way(seen)
    if way is None:
        return Action("speak", UNKNOWN if right else "Yes, that is well known to me.")
    others = [letter for letter, option in options_in(asked(seen)).items() if option != right]
    if others:
        return _choose(way, rng.choice(others))
    while (value := any_values(way, rng)) == (right,):
        pass
    return Action(way.name, "", value)


def fixed(seen: Observation, rng: random.Random, *, words: str, place: int = 0) -> Action:
    """Say one text to every open question, and take one place of every list or scale."""
    way = _way(seen)
    if way is None:
        return Action("speak", words)
    listed = way.move.values[0].one_of or ()
    return _choose(way, listed[place]) if listed else Action(way.name, "", any_values(way, rng))


def refuser(seen: Observation, rng: random.Random) -> Action:
    """Refuse every open question, and leave open every choice that can be."""
    if ABSTAIN in options_in(asked(seen)).values():
        return _with(ABSTAIN, seen, rng)
    return fixed(seen, rng, words=UNKNOWN)


PLAYERS: dict[str, Player] = {
    "solver": solver,
    "wrong": wrong,
    "refuser": refuser,
    "talker": partial(fixed, words="Yes, that is well known to me."),
    "first": partial(fixed, words="The first one."),
    "highest": partial(fixed, words="All of it.", place=-1),
    "lowest": partial(fixed, words="Nothing of it."),
}
"""The scripted subjects by name."""
