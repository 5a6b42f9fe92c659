"""Scripted searches of two strangers for a friend in common. Each knows its own list and the turns so far.

A player goes down its own list and asks about one friend at a time, mostly by description. It looks every question up
in its list, says who comes nearest, and names a person when the description fits.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from localsim.conversation.scenario import ScenarioFile
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.families.mutual_friends.family import MutualFriends
from localsim.families.vocabulary import Vocabulary
from scripts.starter.bank import Speaker, bank, joined
from scripts.starter.names import made_up, names

BANK = bank("friends")
KINDS = ("hobby", "company", "town")
_VERBS = {"hobby": "likes", "company": "works at", "town": "lives in"}
_TRADES = ["", "", "Foods", "Press", "Bank", "Motors", "Hotels", "Games", "Tools", "Rail", "Textiles", "Farms", "Labs"]


@dataclass(frozen=True)
class Friend:
    """An entry of a list, with its attributes in the order of the list."""

    name: str
    attributes: tuple[tuple[str, str], ...]

    def has(self, asked: dict[str, str]) -> bool:
        """Return True if all the attributes asked about fit."""
        return asked.items() <= dict(self.attributes).items()


@dataclass
class Move:
    """The move of a turn, as the listener understands it."""

    kind: str
    """One of ask, describe, recognise, confirm, give_up, bye."""
    name: str = ""
    about: dict[str, str] = field(default_factory=dict)


class Player:
    """One side, which sees its own list and the other's moves.

    A `sloppy` player occasionally confuses one of its friends with the one in question; its turns are never training
    targets. A `thorough` player continues after a friend in common is found.
    """

    def __init__(self, rng: random.Random, friends: list[Friend], *, sloppy: bool = False, thorough: bool) -> None:
        self.rng = rng
        self.friends = friends
        self.speaker = Speaker(rng, BANK)
        self.left = list(friends)
        self.done = False
        self.sloppy = sloppy
        self.thorough = thorough

    def turn(self, heard: Move | None) -> tuple[str, Move, bool]:
        """Return the words, the move, and True if the player leaves."""
        say = self.speaker.say
        if heard is None or heard.kind == "greet":
            return self._question(say("greeting") if self.rng.random() < 0.75 else "")
        if heard.kind == "bye":
            return say("bye"), Move("bye"), True
        if heard.kind == "confirm" and self.thorough:
            return self._question(say("one_found", name=heard.name))
        if heard.kind == "confirm":
            words = say("found_bye", name=heard.name) if self.rng.random() < 0.6 else say("found_bye_plain")
            return words, Move("bye"), True
        if heard.kind == "recognise":
            if self._knows(heard.name):
                return self._confirm(heard.name)
            return self._question(say("not_that_one", name=heard.name))
        if heard.kind == "describe":
            return self._described(heard)
        if heard.kind == "ask":
            return self._answer(heard)
        return self._question(self.speaker.maybe(0.5, "react"))

    def _knows(self, name: str) -> bool:
        return any(friend.name == name for friend in self.friends)

    def _confirm(self, name: str) -> tuple[str, Move, bool]:
        """Confirm a friend who is on the own list too, and do not ask about them again."""
        self.left = [friend for friend in self.left if friend.name != name]
        return self.speaker.say("confirm", name=name), Move("confirm", name), False

    def _answer(self, heard: Move) -> tuple[str, Move, bool]:
        """Answer a question: by name with yes or no, by description with the best fitting friend, if any."""
        say = self.speaker.say
        if heard.name:
            return self._confirm(heard.name) if self._knows(heard.name) else self._no(say("no_name", name=heard.name))
        kind, value = next(iter(heard.about.items()))
        fits = [friend for friend in self.friends if friend.has(heard.about)]
        near = fits or [friend for friend in self.friends if friend.has({kind: value})]
        if not near:
            return self._no(say(f"no_{kind}", **{kind: value}))
        friend = near[0]
        mine = say("mine", both=_both(friend))
        if (fits and len(heard.about) == len(friend.attributes)) or self._slips():
            words = say("recognise", name=friend.name) if self.rng.random() < 0.3 else joined(mine, self._is_it(friend))
            return words, self._recognise(friend), False
        return mine, Move("describe", about=dict(friend.attributes)), False

    def _described(self, heard: Move) -> tuple[str, Move, bool]:
        for friend in self.friends:
            if friend.has(heard.about) or self._slips(0.1):
                return self.speaker.say("recognise", name=friend.name), self._recognise(friend), False
        return self._no(self.speaker.say("no"))

    def _recognise(self, friend: Friend) -> Move:
        """Name a friend, and do not ask about them again."""
        self.left = [other for other in self.left if other is not friend]
        return Move("recognise", friend.name)

    def _is_it(self, friend: Friend) -> str:
        return self.speaker.say("is_it", name=friend.name)

    def _no(self, words: str) -> tuple[str, Move, bool]:
        if self._slips(0.15):
            friend = self.rng.choice(self.friends)
            return self.speaker.say("recognise", name=friend.name), self._recognise(friend), False
        return self._question(words)

    def _slips(self, chance: float = 0.35) -> bool:
        return self.sloppy and self.rng.random() < chance

    def _question(self, before: str) -> tuple[str, Move, bool]:
        """Ask about the next friend; after the last one give up, and the second time leave."""
        if not self.left:
            if self.done:
                return joined(before, self.speaker.say("give_up")), Move("bye"), True
            self.done = True
            return joined(before, self.speaker.say("give_up")), Move("give_up"), False
        words, move = self._ask(self.left.pop(0))
        return joined(before, self.speaker.maybe(0.08, "bridge"), words), move, False

    def _ask(self, friend: Friend) -> tuple[str, Move]:
        attributes = dict(friend.attributes)
        single = len(attributes) == 1
        chance = self.rng.random()
        if chance < (0.3 if single else 0.07):
            return self.speaker.say("ask_name", name=friend.name), Move("ask", friend.name)
        if chance < (0.5 if single else 0.14):
            kind = self.rng.choice(list(attributes))
            words = self.speaker.say(f"ask_name_{kind}", name=friend.name, **{kind: attributes[kind]})
            return words, Move("ask", friend.name)
        if single or chance < 0.19:
            kind = self.rng.choice(list(attributes))
            return self.speaker.say(f"ask_{kind}", **{kind: attributes[kind]}), Move(
                "ask", about={kind: attributes[kind]}
            )
        kinds = list(attributes)[:2] if len(attributes) < 3 else sorted(self.rng.sample(KINDS, 2), key=KINDS.index)
        about = {kind: attributes[kind] for kind in kinds}
        return self.speaker.say(f"ask_{kinds[0]}_{kinds[1]}", **about), Move("ask", about=about)


def _both(friend: Friend) -> str:
    """Describe a friend in the words and the order of the list."""
    return " and ".join(f"{_VERBS[kind]} {value}" for kind, value in friend.attributes)


def scenario(rng: random.Random, number: int, *, thorough: bool) -> ScenarioFile:
    """Generate a fresh scenario of the family in words that no other scenario of localsim uses."""
    pools = {
        "hobby": rng.sample(BANK["hobbies"], 8),
        "company": [_company(rng) for _ in range(8)],
        "town": [made_up(rng) if rng.random() < 0.4 else rng.choice(BANK["towns"]) for _ in range(8)],
    }
    words = Vocabulary(
        names=names(rng, 24),
        occupations=BANK["occupations"],
        hobbies=pools["hobby"],
        companies=pools["company"],
        towns=pools["town"],
        meetings=BANK["meetings"],
    )
    attributes = rng.choice(["hobby,company"] * 6 + ["hobby,town", "company,town", "hobby,company,town", "hobby"])
    size = rng.choice([3, 4, 5, 5, 5, 6])
    common = rng.randint(2, min(4, size)) if thorough else int(rng.random() < 0.9)
    parameters = {"friends": size, "attributes": attributes, "common": common}
    made = MutualFriends(words).generate(f"starter_friends_{number}", rng.randrange(1 << 30), parameters)
    if not thorough:
        return made
    agents = tuple(agent.model_copy(update={"goal": _all_goal(made, agent.name)}) for agent in made.agents)
    return made.model_copy(update={"agents": agents})


def _all_goal(document: ScenarioFile, name: str) -> str:
    """Return the goal of a search for all friends: it gives more look-ups per conversation."""
    other = next(each for each in document.names if each != name)
    return f"Find out which friends you and {other} have in common, all of them. Do not just read out your list."


def _company(rng: random.Random) -> str:
    """Draw a company; half of them are made up, so the model must look them up."""
    if rng.random() < 0.5:
        return rng.choice(BANK["companies"])
    return f"{made_up(rng)} {rng.choice(_TRADES)}".strip()


def talk(rng: random.Random, document: ScenarioFile, side: int, *, sloppy: bool) -> Transcript:
    """Play a whole conversation; agent number `side` is the training target, the other may be `sloppy`."""
    attributes = document.parameters["attributes"].split(",")
    thorough = document.parameters["common"] > 1
    players = [
        Player(rng, _friends(agent.facts, attributes), sloppy=sloppy and number != side, thorough=thorough)
        for number, agent in enumerate(document.agents)
    ]
    turns: list[Turn] = []
    move: Move | None = None
    leaves = False
    while len(turns) < document.limits.turns and not leaves:
        player = players[len(turns) % 2]
        if not turns and rng.random() < 0.15:
            words, move = player.speaker.say("greeting"), Move("greet")
        else:
            words, move, leaves = player.turn(move)
        turns.append(Turn(len(turns), document.names[len(turns) % 2], Action("leave" if leaves else "speak", words)))
    return Transcript(tuple(turns))


def _friends(facts: object, attributes: list[str]) -> list[Friend]:
    """Read a list of friends from its facts."""
    found = []
    for fact in facts:  # type: ignore[attr-defined]
        rest = fact.text.removeprefix(fact.terms[0]).strip(" .")
        values = rest.split(" and ") if len(attributes) > 1 else [rest]
        pairs = [(kind, part.removeprefix(_VERBS[kind]).strip()) for kind, part in zip(attributes, values, strict=True)]
        found.append(Friend(fact.terms[0], tuple(pairs)))
    return found
