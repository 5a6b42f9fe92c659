"""Guess my city (LMRL-Gym, arXiv 2311.18232): the home of another person is found by questions, also open ones.

The return is minus the number of questions before the one that names the city, and -20 if none does. Answers are in
words. The rules read those to the questions of the list; other questions are allowed, and their answers not checked.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.guessing.cities import QUESTIONS as ASKED
from localsim.families.games.guessing.cities import cities
from localsim.families.games.guessing.naming import QUESTIONS, Naming


class GuessCity(Naming):
    """One comes from a city, the other finds out which one by questions."""

    name, version = "guess_city", "1"
    title = "Guess my city"
    about = "One person comes from a city of the world; the other asks questions of any kind to find out which one."
    how = (
        "The return is minus the questions before the one that names the city. Who answers must not say the name; "
        "the report counts it."
    )
    tries: Sequence[str] = (
        "Compare -m scripted:halving with -m scripted:lister: open questions need few turns.",
        "Let -m scripted:gives-away answer, and see the measure for names that are given away.",
        "Compare agents with mindreaders: how often is the first name right beyond chance?",
    )
    bundled = {
        "world": {},
        "ten": {"listed": 10},
        "twenty": {"listed": 20},
        "forty": {"listed": 40, "questions": 10},
        "hurry": {"questions": 5},
    }
    kind = "city"
    asked = ASKED
    things = cities()
    measures = (
        *Naming.measures,
        g.share(
            "given_away", "given away", "share of conversations in which the name is given away", summed="episodes"
        ),
    )
    controls = (
        *Naming.controls,
        g.exactly("halving", "given_away", 0, "it answers without the name"),
        g.exactly("gives-away", "given_away", 1, "its first answer is the name", modes=("agents",)),
        g.exactly("gives-away", "return", -1, "the first answer is the name", modes=("agents",)),
        g.by_chance("lister", "success_rate", QUESTIONS / len(things), "it names 20 of all cities"),
        g.by_chance("names-any", "success_rate", QUESTIONS / len(things), "it names 20 of all cities"),
    )

    def setting(self, asker: str, answerer: str, chosen: Mapping[str, Any]) -> str:
        """Return who does what."""
        return (
            f"{answerer} comes from a large or well-known city. {asker} asks at most {chosen['questions']} questions "
            f"about it, and {answerer} answers without its name. {asker} wins by naming the city in a question."
        )

    def fact(self, answerer: str, meant: str) -> str:
        """Return the city in a sentence."""
        return f"{answerer} comes from {meant}."

    def answer_move(self, answerer: str) -> g.Move:
        """Return an answer in words."""
        return g.Move(name="answer", by=(answerer,), text="must", tell="To answer in a few words")

    def reply(self, value: str) -> g.Action:
        """Return a value as a sentence."""
        return g.move("answer", text=f"{value[0].upper()}{value[1:]}.")

    def read(self, key: str, reply: g.Turn) -> str | None:
        text = reply.action.text.casefold()
        values = {"yes", "no"} if key.startswith("=") else {thing[key] for thing in self.things.values()}
        found = (value for value in sorted(values, key=len, reverse=True) if _has(text, value))
        return next(found, None)

    def score(self, transcript: g.Transcript, scenario: g.Scenario, answer: g.AnswerKey) -> list[g.Score]:
        said = tuple(turn.index for turn in transcript.of("answer") if _has(turn.action.text, scenario.game["meant"]))
        return [*super().score(transcript, scenario, answer), g.Score("given_away", float(bool(said)), turns=said)]

    def still(self, seen: g.Observation) -> list[str]:
        """Return the cities that fit; only the one whose name an answer gave away, if any did."""
        answers = [turn.action.text for turn in seen.transcript.of("answer")]
        said = [city for city in self.things if any(_has(text, city) for text in answers)]
        return said[:1] or super().still(seen)

    def gives_away(self, seen: g.Observation, rng: random.Random) -> g.Action:
        """Answer every question with the name of the city; ask like `halving`."""
        if seen.may("ask"):
            return self.halving(seen, rng)
        return g.move("answer", text=f"I am from {self.seen_meant(seen)}.")


def _has(text: str, name: str) -> bool:
    """Return True if a text contains a name as whole words."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


_GAME = GuessCity()
GuessCity.players = {**_GAME.its_players(), "gives-away": _GAME.gives_away}
GuessCity.sensible = "halving"
