"""Talks about particulars: each side has things to find out, and private facts that answer the other's questions.

What is said can be read off the prompt and off what was heard: a question comes from the own goal, an answer from the
own facts, a reaction from the answer. Who has no such fact says so, and who is not to tell keeps it back.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache

from localsim.families.vocabulary import Vocabulary, person
from localsim.leakage.person import in_person
from localsim.scenario import Agent, Fact, Info, ScenarioFile
from localsim.transcript import Action, Transcript, Turn
from scripts.starter.bank import Speaker, bank, joined, topics
from scripts.starter.names import made_up, names

_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_MONTHS = "January February March April May June July August September October November December".split()
_TIMES = "half past six,noon,eight in the morning,quarter to nine,ten at night,five o'clock,quarter past two".split(",")
_LEVELS = ("friend", "friend", "acquaintance", "family", "stranger", "acquaintance")
KNOWN, TOLD = 0.92, 0.95
"""Shares of questions that the other has a fact for, and of facts that are not to be kept back: a model that meets more
of these keeps everything back that it does not find at once.
"""
PARTS = ("goal", "question", "question", "fact", "answer", "answer", "reaction")
"""Of a row in phrases/points.txt, in order."""


# Ways to put a goal; {wanted} is a list of what to find out.
GOALS = (
    "Find out {wanted}.",
    "Find out {wanted}.",
    "Ask {other} {wanted}.",
    "You want to know {wanted}.",
    "Learn from {other} {wanted}. You care about {about}.",
)
HELPFUL = (
    "Tell {other} about {about} when you are asked.",
    "Answer what {other} asks about {about}.",
    "Have a friendly talk with {other} about {about}.",
)


@dataclass(frozen=True)
class Point:
    """Something that one side wants to know and the other may know."""

    goal: str
    questions: tuple[str, str]
    fact: str
    answers: tuple[str, str]
    reaction: str
    known: bool
    told: bool


@lru_cache(maxsize=1)
def subjects() -> dict[str, dict[str, list[str]]]:
    """Topics, each with its sections."""
    found = {words[1]: sections for words, sections in topics("points").items()}
    return {name: sections for name, sections in found.items() if name != "general"}


@lru_cache(maxsize=1)
def _general() -> dict[str, list[str]]:
    """Phrases for any topic."""
    everyday = topics("favours")[("general", "all")]
    return {**everyday, **topics("points")[("points", "general")]}


class Maker:
    """One talk in the making: speaker 0 asks about the first topic, speaker 1 mostly about another."""

    def __init__(self, rng: random.Random, number: int) -> None:
        self.rng = rng
        self.names = names(rng, 2)
        self.speakers = [Speaker(rng, _general()) for _ in self.names]
        drawn = rng.sample(sorted(subjects()), 2)
        self.id = f"starter_points_{drawn[0]}_{number}"
        self.topics = [subjects()[name] for name in drawn]
        both = rng.random() < 0.6
        counts = (rng.choice((2, 3, 3, 4)), rng.choice((1, 2, 3)) if both else 0)
        drawn_points = [self._points(asker, count + rng.choice((0, 1, 2))) for asker, count in enumerate(counts)]
        self.asked = [points[:count] for points, count in zip(drawn_points, counts, strict=True)]
        self.spare = [points[count:] for points, count in zip(drawn_points, counts, strict=True)]
        self.volunteered = [self._to_tell(who) for who in (0, 1)]

    def make(self) -> tuple[ScenarioFile, Transcript]:
        """The scenario, and what was said in it."""
        lines = self._talk()
        turns = [
            Turn(index, self.names[index % 2], Action("leave" if leaves else "speak", words))
            for index, (words, leaves) in enumerate(lines)
        ]
        return self._scenario(), Transcript(tuple(turns))

    def _points(self, asker: int, count: int) -> list[Point]:
        """What `asker` may ask the other about."""
        return [self._point(row, self.names[1 - asker]) for row in self.rng.sample(self.topics[asker]["row"], count)]

    def _point(self, row: str, owner: str) -> Point:
        rng = self.rng
        values = {
            "n": str(rng.randint(2, 90)),
            "name": names(rng, 1)[0],
            "place": made_up(rng),
            "day": rng.choice(_DAYS),
            "month": rng.choice(_MONTHS),
            "time": rng.choice(_TIMES),
            "me": owner,
            "b": owner,
        }
        goal, ask, ask_too, fact, answer, answer_too, reaction = (part.format(**values) for part in row.split(" | "))
        known, told = rng.random() < KNOWN, rng.random() < TOLD
        return Point(goal, (ask, ask_too), fact, (answer, answer_too), reaction, known, told)

    def _to_tell(self, who: int) -> list[Point]:
        """What `who` is to say without being asked: now and then one of the spare facts."""
        return [point for point in self.spare[1 - who][:1] if point.known and self.rng.random() < 0.5]

    # ---- the talk ----------------------------------------------------------------------------------------------

    def _talk(self) -> list[tuple[str, bool]]:
        rng = self.rng
        left, to_tell = [list(points) for points in self.asked], [list(points) for points in self.volunteered]
        lines: list[tuple[str, bool]] = []
        who, question, heard = 0, None, None
        if rng.random() < 0.3:
            lines += [(self.speakers[0].say("greet"), False), (self.speakers[1].say("greet"), False)]
        while True:
            say = self.speakers[who].say
            reply = self._answer(who, question) if question else ""
            react = heard.reaction if heard and heard.known and heard.told and rng.random() < 0.6 else ""
            heard, question = question, None
            # Who has answered often waits for the other's next question.
            if left[who] and (not reply or not left[1 - who] or rng.random() < 0.5):
                question = left[who].pop(0)
            elif to_tell[who] and not reply:
                heard = to_tell[who].pop()
                reply = heard.answers[0].removeprefix("Yes, ").removeprefix("No, ")
            if not question and not reply and not left[0] and not left[1] and not to_tell[1 - who]:
                lines.append((joined(react, say("thanks"), say("bye")), False))
                return [*lines, (self.speakers[1 - who].say("bye"), True)]
            ask = rng.choice(question.questions) if question else ""
            lines.append((joined(react, reply, ask) or say("go_on"), False))
            who = 1 - who

    def _answer(self, who: int, point: Point) -> str:
        if not point.known:
            return self.speakers[who].say("unknown")
        return self.rng.choice(point.answers) if point.told else self.speakers[who].say("withheld")

    # ---- the scenario ------------------------------------------------------------------------------------------

    def _scenario(self) -> ScenarioFile:
        rng = self.rng
        words = Vocabulary(occupations=bank("friends")["occupations"])
        setting = rng.choice(self.topics[0]["setting"]).format(a=self.names[0], b=self.names[1])
        agents = []
        for who, name in enumerate(self.names):
            theirs = [point for point in self.asked[1 - who] + self.spare[1 - who] if point.known]
            rng.shuffle(theirs)
            facts = [Fact(id=f"f{who}_{number}", text=point.fact) for number, point in enumerate(theirs, 1)]
            profile = person(rng, name, words)
            agents.append(Agent(name=name, profile=profile, goal=self._goal(who), facts=tuple(facts)))
        return ScenarioFile(
            version=1,
            id=self.id,
            title=self.id.replace("_", " "),
            info=Info(what="Training material."),
            setting=setting,
            relationship=rng.choice(_LEVELS),
            agents=tuple(agents),
        )

    def _goal(self, who: int) -> str:
        """What the agent is after; a goal speaks to its agent: you, not its name."""
        own, other, mine = self.names[who], self.names[1 - who], [point.goal for point in self.asked[who]]
        asks = who if mine else 1 - who
        about = self.topics[asks]["about"][0].format(a=self.names[asks], b=self.names[1 - asks])
        about = in_person(about, own, other)
        news = [in_person(point.fact, own, other) for point in self.volunteered[who]]
        kept = [in_person(point.goal, own, other) for point in self.asked[1 - who] if point.known and not point.told]
        return joined(
            self.rng.choice(GOALS if mine else HELPFUL).format(other=other, wanted=_listed(mine), about=about),
            f"Tell {other} that {news[0]}" if news else "",
            f"Do not tell {other} {_listed(kept)}." if kept else "",
        )


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
