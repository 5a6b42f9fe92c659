"""Twenty questions (LMRL-Gym, arXiv 2311.18232): one thinks of an object, the other asks for yes or no.

The return is minus the number of questions before the one that names the object, and -20 if none does. The answerer is
an agent, so answers can be wrong; the list of objects says which are. With N objects no way to ask needs fewer than
log2(N) - 1 questions on average before the naming one, because the questions tell the N objects apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.guessing.naming import QUESTIONS, Naming
from localsim.families.games.guessing.objects import ALIASES, KINDS, TRAITS, objects

_YES, _NO = "yes", "no"
_ASKED: Mapping[str, str] = {**{kind: f"Is it {kind}?" for kind in KINDS}, **TRAITS}


class TwentyQuestions(Naming):
    """One thinks of an object, the other finds out which one by questions for yes or no."""

    name, version = "twenty_questions", "1"
    title = "Twenty questions"
    about = "One person thinks of an object; the other asks at most twenty questions for yes or no to find it."
    how = (
        "The return is minus the questions before the one that names the object. A first name that is right more often "
        "than the answers allow was known from elsewhere."
    )
    tries: Sequence[str] = (
        "Compare -m scripted:halving with -m scripted:lister: how much are good questions worth?",
        "Compare agents with mindreaders: how often is the first name right beyond chance?",
        "Play it yourself: localsim play twenty_questions_all -m scripted:halving",
    )
    bundled = {
        "all": {},
        "eight": {"listed": 8, "questions": 6},
        "sixteen": {"listed": 16, "questions": 10},
        "thirty": {"listed": 30},
        "hurry": {"questions": 10},
    }
    kind = "object"
    asked = _ASKED
    things = {name: {key: _YES if key in true else _NO for key in _ASKED} for name, true in objects().items()}
    aliases = ALIASES
    controls = (
        *Naming.controls,
        g.by_chance("lister", "success_rate", QUESTIONS / len(things), "it names 20 of all objects"),
        g.by_chance("names-any", "success_rate", QUESTIONS / len(things), "it names 20 of all objects"),
    )

    def setting(self, asker: str, answerer: str, chosen: Mapping[str, Any]) -> str:
        """Return who does what, and of which kinds objects are."""
        kinds = "" if chosen["listed"] else f" It is {', '.join(list(KINDS)[:-1])} or {list(KINDS)[-1]}."
        return (
            f"{answerer} thinks of an object. {asker} asks at most {chosen['questions']} questions, and {answerer} "
            f"answers yes or no. {asker} wins by naming the object in a question.{kinds}"
        )

    def fact(self, answerer: str, meant: str) -> str:
        """Return the object in a sentence."""
        return f"The object is: {meant}."

    def answer_move(self, answerer: str) -> g.Move:
        """Return yes or no."""
        return g.Move(name="answer", by=(answerer,), values=(g.one_of(_YES, _NO),), text="no", tell="To answer")

    def reply(self, value: str) -> g.Action:
        """Return yes or no."""
        return g.move("answer", value)

    def read(self, key: str, reply: g.Turn) -> str | None:
        return reply.value

    def name_it(self, name: str) -> str:
        """Return the question with an article."""
        return f"Is it {'an' if name[0] in 'aeiou' else 'a'} {name}?"


TwentyQuestions.players = TwentyQuestions().its_players()
TwentyQuestions.sensible = "halving"
