"""Everyday conversations: choosing something together, favours, secrets, advice, small talk.

Each side knows only its own goal and facts. It objects for its own tastes and private reasons only; it keeps a secret
without a lie, or tells its own.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

from localsim.conversation.scenario import Agent, Fact, Info, ScenarioFile
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.families.vocabulary import Vocabulary, person
from scripts.starter.bank import Speaker, bank, joined, topics
from scripts.starter.names import names

KINDS = ("choice", "favour", "secret", "advice", "chat")
_LEVELS = ("friend", "friend", "acquaintance", "family", "romantic", "acquaintance")
Sections = dict[str, list[str]]
Lines = list[tuple[int, str]]
"""Pairs of (speaker 0 or 1, words), in order."""


@lru_cache(maxsize=1)
def _topics() -> dict[str, list[tuple[str, Sections]]]:
    """The topics of each type of conversation."""
    found: dict[str, list[tuple[str, Sections]]] = {kind: [] for kind in KINDS}
    for words, sections in topics("choices").items():
        if words != ("general",):
            found["choice"].append((words[0], sections))
    for file in ("favours", "talks"):
        for words, sections in topics(file).items():
            if words[0] != "general":
                found[words[0]].append((words[1], sections))
    return found


@lru_cache(maxsize=1)
def _general() -> Sections:
    merged: Sections = dict(topics("choices")[("general",)])
    for section, phrases in topics("favours")[("general", "all")].items():
        merged[section] = merged.get(section, []) + phrases
    return merged


class Maker:
    """Builds one conversation."""

    def __init__(self, rng: random.Random, number: int, *, open_book: bool = False) -> None:
        """Create the builder; `open_book` means a situation without private facts, for examples of scripts."""
        self.rng = rng
        self.open_book = open_book
        self.kind = rng.choice(("choice", "chat", "advice") if open_book else ("choice", "choice", *KINDS))
        topic, self.sections = rng.choice(_topics()[self.kind])
        self.id = f"starter_{self.kind}_{topic}_{number}"
        self.names = names(rng, 2)
        self.speakers = [Speaker(rng, {**_general(), **self.sections}) for _ in self.names]
        self.facts: list[list[str]] = [[], []]
        self.goals = ["", ""]
        self.secret: str | None = None

    def make(self) -> tuple[ScenarioFile, Transcript]:
        """Return the scenario and its transcript."""
        lines = alternating(self._opening() + getattr(self, f"_{self.kind}")())
        first = lines[0][0]
        turns = []
        for index, (speaker, words) in enumerate(lines):
            last = index + 1 == len(lines)
            kind = "leave" if last else "speak"
            turns.append(Turn(index, self.names[speaker], Action(kind, words)))  # type: ignore[arg-type]
        order = [first, 1 - first]
        return self._scenario(order), Transcript(tuple(turns))

    def _say(self, who: int, section: str, **slots: Any) -> str:
        return self.speakers[who].say(section, **slots)

    def _opening(self) -> Lines:
        """Sometimes begin with a greeting and its answer."""
        if self.rng.random() < 0.75:
            return []
        asks = self.rng.random() < 0.5
        return [
            (0, joined(self._say(0, "greet"), self._say(0, "howareyou") if asks else "")),
            (1, self._say(1, "fine" if asks and self.kind != "favour" else "greet")),
        ]

    def _goal(self, who: int, section: str) -> None:
        self.goals[who] = self.rng.choice(self.sections[section]).format(other=self.names[1 - who])

    def _fact(self, who: int, section: str, **slots: str) -> None:
        if not self.open_book:
            text = self.rng.choice(self.sections[section]).format(me=self.names[who], **slots)
            self.facts[who].append(text)

    # ---- kinds -------------------------------------------------------------------------------------------------

    def _choice(self) -> Lines:
        """Propose own likes and object to own dislikes until an option suits both or none is left."""
        rng, options = self.rng, list(self.sections["options"])
        rng.shuffle(options)
        likes = [options[:2], options[2:4]]
        dislikes = [rng.sample(likes[1], rng.choice((0, 1, 2))), rng.sample(likes[0], rng.choice((0, 1, 2)))]
        for who in (0, 1):
            self._goal(who, "goal")
            for option in likes[who]:
                self._fact(who, "like", x=option)
            for option in dislikes[who]:
                self._fact(who, "dislike", x=option)
        lines: Lines = [(0, self._say(0, "open"))]
        who, left = 1, [list(likes[0]), list(likes[1])]
        if rng.random() < 0.5:
            option = left[0].pop(0)
            lines[0] = (0, joined(lines[0][1], self._say(0, "propose", x=option)))
        else:
            option = left[1].pop(0)
            lines.append((1, joined(self.speakers[1].maybe(0.3, "smalltalk"), self._say(1, "propose", x=option))))
            who = 0
        while True:
            if option not in dislikes[who]:
                return lines + self._settled(who, option)
            answer = self._say(who, "object", x=option)
            if not left[who]:
                lines.append((who, answer))
                who = 1 - who
                if not left[who]:
                    return [*lines, (who, self._say(who, "no_agreement"))]
                option = left[who].pop(0)
                lines.append((who, self._say(who, "propose", x=option)))
            else:
                option = left[who].pop(0)
                lines.append((who, joined(answer, self._say(who, "propose", x=option))))
            who = 1 - who

    def _settled(self, who: int, option: str) -> Lines:
        lines: Lines = [(who, self._say(who, "agree", x=option))]
        if self.rng.random() < 0.75:
            lines.append((1 - who, self._say(1 - who, "detail", x=option)))
            lines.append((who, joined(self._say(who, "ok"), self._say(who, "bye"))))
        else:
            lines.append((1 - who, self._say(1 - who, "bye")))
        return lines

    def _favour(self) -> Lines:
        self._goal(0, "goal_a")
        self._goal(1, "goal_b")
        self._fact(0, "fact_a")
        self._fact(1, "fact_b")
        lines: Lines = [(0, self._say(0, "ask")), (1, self._say(1, "question")), (0, self._say(0, "detail"))]
        if self.rng.random() < 0.4:
            lines += [(1, self._say(1, "question")), (0, self._say(0, "detail"))]
        if self.rng.random() < 0.65:
            return [*lines, (1, self._say(1, "yes")), (0, self._say(0, "thanks"))]
        return [*lines, (1, self._say(1, "no")), (0, self._say(0, "fine"))]

    def _secret(self) -> Lines:
        self._goal(0, "goal_a")
        self._goal(1, "goal_b")
        number = self.rng.randrange(len(self.sections["secret"]))
        self.secret = self.sections["secret"][number]
        if self.rng.random() < 0.7:
            self._fact(0, "fact")
        lines: Lines = [(1, self._say(1, "ask")), (0, self._say(0, "deflect"))]
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            lines += [(1, self._say(1, "press")), (0, self._say(0, "deflect"))]
        lines.append((1, self._say(1, "press")))
        if self.rng.random() < 0.85:
            return [*lines, (0, self._say(0, "boundary")), (1, joined(self._say(1, "accept"), self._say(1, "bye")))]
        return [*lines, (0, self._say(0, "tell")), (1, self._say(1, "relief")), (0, self._say(0, "bye"))]

    def _advice(self) -> Lines:
        self._goal(0, "goal_a")
        self._goal(1, "goal_b")
        lines: Lines = [(0, self._say(0, "problem"))]
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            lines += [(1, self._say(1, "ask")), (0, self._say(0, "answer"))]
        lines.append((1, self._say(1, "suggest")))
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            section = self.rng.choice(("second", "suggest"))
            lines += [(0, self._say(0, "doubt")), (1, self._say(1, section))]
        return [*lines, (0, self._say(0, "take")), (1, self._say(1, "bye"))]

    def _chat(self) -> Lines:
        for who in (0, 1):
            self._goal(who, "goal")
        lines: Lines = [(0, self._say(0, "say"))]
        who = 1
        for _ in range(self.rng.randint(3, 8)):
            asked = len(lines) > 0 and lines[-1][1].endswith("?")
            before = self._say(who, "answer") if asked else self.speakers[who].maybe(0.7, "react")
            then = self.rng.choice(("ask", "ask", "say"))
            lines.append((who, joined(before, self._say(who, then) if self.rng.random() < 0.75 or not before else "")))
            who = 1 - who
        if lines[-1][1].endswith("?"):
            lines.append((who, self._say(who, "answer")))
            who = 1 - who
        return [*lines, (who, self._say(who, "bye")), (1 - who, self._say(1 - who, "bye"))]

    # ---- the scenario ------------------------------------------------------------------------------------------

    def _scenario(self, order: list[int]) -> ScenarioFile:
        rng = self.rng
        words = Vocabulary(occupations=bank("friends")["occupations"])
        setting = rng.choice(self.sections["setting"]).format(a=self.names[0], b=self.names[1])
        agents = []
        for who in order:
            facts = [Fact(id=f"f{who}_{number}", text=text) for number, text in enumerate(self.facts[who], start=1)]
            goal = self.goals[who] if not self.open_book else "Have a friendly talk."
            secret = self.secret if who == 0 else None
            profile = person(rng, self.names[who], words)
            agents.append(Agent(name=self.names[who], profile=profile, goal=goal, secret=secret, facts=tuple(facts)))
        return ScenarioFile(
            version=1,
            id=self.id,
            title=self.id.replace("_", " "),
            info=Info(what="Training material."),
            setting=setting,
            relationship=rng.choice(_LEVELS),
            agents=tuple(agents),
        )


def alternating(lines: Lines) -> Lines:
    """Merge neighbouring turns of the same speaker."""
    found: Lines = []
    for who, words in lines:
        if found and found[-1][0] == who:
            found[-1] = (who, joined(found[-1][1], words))
        else:
            found.append((who, words))
    return found
