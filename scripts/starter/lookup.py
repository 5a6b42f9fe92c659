"""Conversations in which one person is asked about one friend after the other: a lesson of looking things up.

In a script both lists are in the prompt, and an answer must come from the list of the person who speaks. Most questions
are about the asker's own friends or mix two friends, so that the wrong list gives the wrong answer. Nobody is asked
about twice: the second answer could be read off the first one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from localsim.conversation.scenario import ScenarioFile
from localsim.conversation.transcript import Action, Transcript, Turn
from scripts.starter.bank import Speaker, joined
from scripts.starter.friends import BANK, Friend, both, lists_of
from scripts.starter.names import names

QUESTIONS = (4, 10, 20)
"""Most questions in a conversation."""


def talk(rng: random.Random, document: ScenarioFile) -> Transcript:
    """Play a conversation in which one side asks and the other answers from its list, until the asker leaves."""
    asker = rng.randrange(2)
    lists = lists_of(document)
    asks, answers = Speaker(rng, BANK), Speaker(rng, BANK)
    texts = [] if asker == 0 else [answers.say("greeting")]
    for friend in _people(rng, *lists)[: rng.choice(QUESTIONS)]:
        by_name = rng.random() < 0.5
        texts += [_question(asks, friend, by_name=by_name), _answer(answers, lists[1 - asker], friend, by_name=by_name)]
    texts.append(asks.say("bye"))
    *said, last = [Turn(index, document.names[index % 2], Action("speak", text)) for index, text in enumerate(texts)]
    return Transcript((*said, Turn(last.index, last.speaker, Action("leave", last.action.text))))


def answerer(turns: Sequence[Turn]) -> int:
    """Return the number of the side that answers: the other one leaves."""
    return 1 - turns[-1].index % 2


def _people(rng: random.Random, first: Sequence[Friend], second: Sequence[Friend]) -> list[Friend]:
    """Return everybody on the two lists once, and half as many people made of two friends, in random order."""
    everybody = list({friend.name: friend for friend in (*first, *second)}.values())
    found = list(everybody)
    for name in names(rng, len(everybody) // 2):
        (kind, value), *rest = rng.choice(everybody).attributes
        other = rng.choice(everybody)
        found.append(Friend(name, ((kind, value), *(other.attributes[1:] if rest else ()))))
    return rng.sample(found, len(found))


def _question(speaker: Speaker, friend: Friend, *, by_name: bool) -> str:
    if by_name:
        return speaker.say("ask_name", name=friend.name)
    about = dict(friend.attributes[:2])
    return speaker.say("ask_" + "_".join(about), **about)


def _answer(speaker: Speaker, friends: Sequence[Friend], asked: Friend, *, by_name: bool) -> str:
    """Answer from a list: a name with yes or no, a description with the friend who comes nearest, as players do.

    A model that has both lists before it tends to describe its friend with the words of the question.
    """
    if by_name:
        known = any(friend.name == asked.name for friend in friends)
        return speaker.say("confirm" if known else "no_name", name=asked.name)
    about = dict(asked.attributes[:2])
    kind, value = next(iter(about.items()))
    fits = next((friend for friend in friends if friend.has(about)), None)
    near = fits or next((friend for friend in friends if friend.has({kind: value})), None)
    if near is None:
        return speaker.say(f"no_{kind}", **{kind: value})
    mine = speaker.say("mine", both=both(near))
    return joined(mine, speaker.say("is_it", name=near.name)) if fits else mine
