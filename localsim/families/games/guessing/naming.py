"""What twenty questions and guess my city have in common: one asks, one answers, and a question names what is meant.

The game follows LMRL-Gym (arXiv 2311.18232): at most 20 questions, -1 for each question, 0 for the one that names it.
LMRL-Gym ends the game when a question ends with the name and has no other noun. Without a tagger for nouns, a question
names a thing here if it ends with the name and all words before it are among a few that ask for nothing else.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table

QUESTIONS = 20
"""The most questions, as in LMRL-Gym."""
OPENERS = frozenset(
    "is it it's its are you your from a an the that this thing something object city am i right could be would so then "
    "maybe perhaps do does come live in or guess my answer thinking of kind type called".split()
)
"""Words that may stand before a name in the question that names a thing."""
LOOSE = frozenset("can what which has have made used people they there any".split())
"""More words that do not matter where a scripted player makes out what a question is about."""
NO_CLUE = "Can you tell me more?"
"""A question about nothing that the list knows."""

Learnt = tuple[str, str]
"""What an answer tells: (what was asked, the answer); a thing that was named stands as `=NAME`."""


class Naming(Replayed):
    """One agent asks and the other answers, until a question names what is meant or the questions are used up."""

    kind = "thing"
    """What is meant, as a word; also the kind of the private fact."""
    asked: Mapping[str, str] = {}
    """What can be asked about a thing -> the question about it."""
    things: Mapping[str, Mapping[str, str]] = {}
    """Name -> what can be asked -> the answer."""
    aliases: Mapping[str, str] = {}
    """Other names of things -> the name."""
    defaults = {"questions": QUESTIONS, "listed": 0, "meant": ""}
    measures: Sequence[g.Measure] = (
        g.SUCCESS,
        g.mean(
            "return",
            "return",
            "minus the questions before the one that names it",
            bounds=(-QUESTIONS, 0),
            compared=True,
        ),
        g.share("true_answers", "true answers", "share of the checked answers that are true", "true"),
        g.share("checked", "checked", "share of answers whose truth the rules can check"),
        g.mean(
            "unearned",
            "peeking",
            "how often the first name is right, beyond a choice by chance among what fits the answers",
            "first_name",
            summed="excess",
            per="first_name_chance",
            compared=True,
        ),
    )
    figure = ("success_rate", "return", "unearned")
    references = (
        g.Reference("names-any", "random", "names things drawn at random, and the answers are true", blind=True),
        g.Reference("halving", "best known", "asks what tells most; optimal play over all questions is not computed"),
    )
    controls: Sequence[g.Control] = (
        g.exactly("halving", "success_rate", 1, "its questions leave one thing after fewer than 20"),
        g.exactly(
            "halving", "return", 0, "it sees what is meant, and names it at once", modes=("script", "mindreaders")
        ),
        g.exactly("halving", "unearned", 1, "it names what nothing had told", modes=("script", "mindreaders")),
        g.exactly("halving", "true_answers", 1, "it answers as the list says", modes=("agents",)),
        g.exactly("halving", "checked", 1, "it asks questions of the list", modes=("agents",)),
        g.exactly("omniscient", "return", 0, "the first question names it", modes=("script", "mindreaders")),
        g.exactly("liar", "true_answers", 0, "each of its answers is wrong", modes=("agents",)),
        g.exactly("never-names", "success_rate", 0, "it names nothing"),
        g.exactly("never-names", "return", -QUESTIONS, "all questions are used up"),
        g.exactly("never-names", "unearned", None, "it names nothing"),
        g.exactly("never-names", "checked", 0, "nothing is known about its question"),
        g.exactly("never-names", "true_answers", None, "no answer can be checked"),
        g.exactly("any", "success_rate", 0, "it asks no question of the list"),
    )

    # ---- what a game adds ------------------------------------------------------------------------------------------

    def setting(self, asker: str, answerer: str, chosen: Mapping[str, Any]) -> str:
        """Return the first sentences of the setting."""
        raise NotImplementedError

    def fact(self, answerer: str, meant: str) -> str:
        """Return the sentence that only the answerer knows."""
        raise NotImplementedError

    def answer_move(self, answerer: str) -> g.Move:
        """Return the move that answers."""
        raise NotImplementedError

    def reply(self, value: str) -> g.Action:
        """Return an answer with this value."""
        raise NotImplementedError

    def read(self, key: str, reply: g.Turn) -> str | None:
        """Return the value that an answer to such a question gives; None if it gives none."""
        raise NotImplementedError

    def name_it(self, name: str) -> str:
        """Return the question that names a thing."""
        return f"Is it {name}?"

    # ---- the rules -------------------------------------------------------------------------------------------------

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        (asker, answerer), count, listed, meant = names, chosen["questions"], chosen["listed"], chosen["meant"]
        if not 1 <= count <= QUESTIONS:
            raise g.InvalidInput(f"{self.name}: questions = {count} is not from 1 to {QUESTIONS}")
        if listed and not 2 <= listed <= len(self.things):
            raise g.InvalidInput(f"{self.name}: listed = {listed} is neither 0 nor from 2 to {len(self.things)}")
        if meant and meant not in self.things:
            raise g.InvalidInput(
                f"{self.name}: meant = {meant!r} is not known", hint=f"such as {next(iter(self.things))}"
            )
        rng = random.Random(f"{self.name}/{seed}/meant")
        meant = meant or rng.choice(list(self.things))
        others = [name for name in self.things if name != meant]
        among = sorted([meant, *rng.sample(others, listed - 1)]) if listed else []
        return Scene(
            title=f"{asker} finds out what {answerer} knows, with {count} questions",
            setting=self.setting(asker, answerer, chosen)
            + (f" It is one of these: {', '.join(among)}." if among else ""),
            goal=(
                f"Name the {self.kind} after as few questions as you can.",
                "Answer each question truly, and do not say the name yourself.",
            ),
            secrets=[Secret(answerer, self.kind, self.fact(answerer, meant), meant)],
            moves=(
                g.can("ask", f"To ask a question, or to name the {self.kind}", by=asker, text="must"),
                self.answer_move(answerer),
            ),
            public={"questions": count, "listed": among},
            hidden={"meant": meant},
            turns=2 * count,
        )

    def play(self, table: Table) -> Course:
        (asker, answerer), meant = table.names, table.game["meant"]
        heard: list[Learnt | None] = []
        named = False
        table.score("success", 0, reason="nothing was asked")
        for number in range(1, table.public["questions"] + 1):
            asked = yield from table.act(asker, "ask")
            name = self.named(asked.action.text)
            if name is not None and not named:
                named = True
                self._first_name(table, heard, asked, hit=name == meant)
            if name == meant:
                table.score("success", 1, [asked], f"{meant} was named with question {number}")
                table.score("return", 1 - number, [asked])
                yield from table.tell(f"That is right. Questions: {number}.", number)
                return
            table.score("success", 0, reason=f"nobody named {meant}")
            table.score("return", -number, [asked])
            reply = yield from table.act(answerer, "answer")
            heard.append(self.learnt(asked, reply))
            table.mean("checked", heard[-1] is not None)
            if heard[-1] is not None:
                true = self.fits(meant, heard[-1])
                table.mean("true", true, [] if true else [reply])

    def _first_name(self, table: Table, heard: Sequence[Learnt | None], asked: g.Turn, *, hit: bool) -> None:
        """State whether the first name is right, and its probability among the things that fit all answers before."""
        told = [learnt for learnt in heard if learnt is not None]
        fitting = self.fitting(table.public["listed"], told)
        # An answer that the rules cannot read, or a wrong one, may have told something or nothing.
        if len(told) == len(heard) and table.game["meant"] in fitting:
            table.score("first_name", hit, [asked])
            table.score("first_name_chance", 1 / len(fitting), [asked])

    # ---- what questions and answers mean ---------------------------------------------------------------------------

    @cached_property
    def _names(self) -> Mapping[str, str]:
        names = {**{name: name for name in self.things}, **self.aliases}
        return {form.casefold(): name for alias, name in names.items() for form in (f"{alias}s", alias)}

    @cached_property
    def _about(self) -> Mapping[tuple[str, ...], str]:
        return {_words(question): key for key, question in self.asked.items()}

    def named(self, question: str) -> str | None:
        """Return the thing that a question names, if it asks for nothing else."""
        words = _words(question)
        for count in range(min(4, len(words)), 0, -1):
            name = self._names.get(" ".join(words[-count:]))
            if name is not None:
                return name if OPENERS.issuperset(words[:-count]) else None
        return None

    def key_of(self, question: str) -> str | None:
        """Return what a question is about, if it is one of the list or names a thing."""
        name = self.named(question)
        return f"={name}" if name is not None else self._about.get(_words(question))

    def loosely(self, question: str) -> str | None:
        """Return what a question is about, also if a question of the list has all its words that matter."""
        key, words = self.key_of(question), {*_words(question)} - OPENERS - LOOSE
        if key is None and words:
            key = next((key for about, key in self._about.items() if words <= {*about}), None)
        return key

    def truth(self, key: str, thing: str) -> str:
        """Return the true answer about a thing."""
        return ("yes" if key == f"={thing}" else "no") if key.startswith("=") else self.things[thing][key]

    def learnt(self, asked: g.Turn, reply: g.Turn) -> Learnt | None:
        """Return what an answer tells; None if the question is not of the list, or the answer is none to it."""
        key = self.key_of(asked.action.text)
        value = self.read(key, reply) if key is not None else None
        return (key, value) if key is not None and value is not None else None

    def fits(self, thing: str, learnt: Learnt) -> bool:
        """Return True if an answer is true of a thing."""
        return self.truth(learnt[0], thing) == learnt[1]

    def fitting(self, listed: Sequence[str], told: Sequence[Learnt]) -> list[str]:
        """Return the things of which all answers are true."""
        return [thing for thing in listed or self.things if all(self.fits(thing, learnt) for learnt in told)]

    # ---- players ---------------------------------------------------------------------------------------------------

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        meant = self.seen_meant(seen)
        return g.move("ask", text=self.name_it(meant)) if seen.may("ask") and meant is not None else None

    def seen_meant(self, seen: g.Observation) -> str | None:
        """Return what is meant, if the viewer can see it."""
        return g.known(seen, self.kind, seen.agents[1].name)

    def halving(self, seen: g.Observation, rng: random.Random) -> g.Action:
        """Ask what tells most, and name the thing when at most two are left, or when it can be seen; answer truly."""
        if not seen.may("ask"):
            return self.honest(seen, rng)
        meant = self.seen_meant(seen)
        if meant is not None:
            return g.move("ask", text=self.name_it(meant))
        return g.move("ask", text=self.question(self.still(seen), rng))

    def still(self, seen: g.Observation) -> list[str]:
        """Return the things that fit all answers so far."""
        pairs = zip(seen.transcript.of("ask"), seen.transcript.of("answer"), strict=False)
        return self.fitting(seen.game["listed"], [learnt for pair in pairs if (learnt := self.learnt(*pair))])

    def question(self, fitting: Sequence[str], rng: random.Random) -> str:
        """Return the question whose answer tells most about the things that are left, or the name of one."""
        if len(fitting) > 2:
            best = max(self.asked, key=lambda key: entropy(self.truth(key, thing) for thing in fitting))
            if len({self.truth(best, thing) for thing in fitting}) > 1:
                return self.asked[best]
        return self.name_it(fitting[0] if fitting else rng.choice(list(self.things)))

    def honest(self, seen: g.Observation, rng: random.Random) -> g.Action:
        """Answer as the list says; no where it does not know what is asked."""
        key = self.loosely(seen.transcript.of("ask")[-1].action.text)
        return self.reply(self.truth(key, self.seen_meant(seen) or "") if key is not None else "no")

    def liar(self, seen: g.Observation, rng: random.Random) -> g.Action:
        """Give a wrong answer to each question; ask like `halving`, but never use what it sees of others."""
        if seen.may("ask"):
            return g.move("ask", text=self.question(self.still(seen), rng))
        key, meant = self.loosely(seen.transcript.of("ask")[-1].action.text), self.seen_meant(seen) or ""
        if key is None or key.startswith("="):
            return self.reply("yes")
        values = sorted({thing[key] for thing in self.things.values()})
        return self.reply(rng.choice([value for value in values if value != self.truth(key, meant)]))

    def lister(self, seen: g.Observation, rng: random.Random) -> g.Action:
        """Name one thing after the other, in the order of the list; answer truly."""
        if not seen.may("ask"):
            return self.honest(seen, rng)
        names = list(seen.game["listed"] or self.things)
        return g.move("ask", text=self.name_it(names[len(seen.transcript.of("ask")) % len(names)]))

    def names_any(self, seen: g.Observation, rng: random.Random) -> g.Action:
        """Name things drawn at random, none twice; answer truly."""
        if not seen.may("ask"):
            return self.honest(seen, rng)
        asked = {turn.action.text for turn in seen.transcript.of("ask")}
        names = [self.name_it(name) for name in seen.game["listed"] or self.things]
        return g.move("ask", text=rng.choice([name for name in names if name not in asked] or names))

    def never_names(self, seen: g.Observation, rng: random.Random) -> g.Action:
        """Ask again and again a question that tells nothing; answer truly."""
        return g.move("ask", text=NO_CLUE) if seen.may("ask") else self.honest(seen, rng)

    def its_players(self) -> Mapping[str, g.Player]:
        """Return the players of the game by name."""
        return {
            "halving": self.halving,
            "lister": self.lister,
            "names-any": self.names_any,
            "never-names": self.never_names,
            "liar": self.liar,
        }


def _words(question: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[\w']+", question.casefold()))


def entropy(values: Iterable[str]) -> float:
    """Return the bits that an answer tells, if all things are equally likely; rounded, so that ties are ties."""
    counts = Counter(values)
    total = sum(counts.values())
    return round(-sum(n / total * math.log2(n / total) for n in counts.values()), 9)
