"""Scripted searches of two strangers for a friend in common. Each knows its own list and the turns so far.

A player goes down its own list and asks about one friend at a time, by name or by description. It looks every question
up in its list, says who comes nearest, and names a person when the description fits. Players differ in style. A player
that peeks also knows which friends are on both lists, and uses that with a stated probability in each turn.
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


@dataclass(frozen=True)
class Style:
    """Habits of a player. They vary, so that no measure is the habit of one teacher."""

    by_name: float = 0.15
    """Share of its questions that name a person; the others describe one."""
    lingers: bool = False
    """True if it says a last word before it leaves, and gives up only when the other has given up too."""
    chatty: bool = False
    """True if it adds small remarks."""

    @classmethod
    def draw(cls, rng: random.Random) -> Style:
        """Draw the style of one player."""
        return cls(rng.choice((0.1, 0.4, 0.8)), rng.random() < 0.5, rng.random() < 0.4)


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

    def __init__(
        self,
        rng: random.Random,
        friends: list[Friend],
        *,
        sloppy: bool = False,
        thorough: bool,
        style: Style,
        common: list[Friend] | None = None,
        peeks: float = 0.0,
    ) -> None:
        """`common`: the friends on both lists, for a player that uses them with probability `peeks` in each turn.

        Where there is none, it plays as everybody does: it does not give up at once.
        """
        self.rng = rng
        self.friends = friends
        self.style = style
        self.common = common
        self.peeks = peeks
        self.speaker = Speaker(rng, BANK)
        self.left = list(friends)
        self.done = False
        self.found = 0
        self.sloppy = sloppy
        self.thorough = thorough

    def turn(self, heard: Move | None) -> tuple[str, Move, bool]:
        """Return the words, the move, and True if the player leaves."""
        say = self.speaker.say
        if heard is None or heard.kind == "greet":
            return self._question(say("greeting") if self.rng.random() < 0.75 else "")
        if heard.kind == "bye":
            return say("bye"), Move("bye"), True
        self.found += heard.kind == "confirm"
        if heard.kind == "confirm" and self.thorough:
            return self._question(say("one_found", name=heard.name))
        if heard.kind == "confirm":
            words = say("found_bye", name=heard.name) if self.rng.random() < 0.6 else say("found_bye_plain")
            return words, Move("bye"), not self.style.lingers
        if heard.kind == "recognise":
            if self._knows(heard.name):
                return self._confirm(heard.name)
            return self._question(say("not_that_one", name=heard.name))
        if heard.kind == "describe":
            return self._described(heard)
        if heard.kind == "ask":
            return self._answer(heard)
        return self._question(self.speaker.maybe(0.6 if self.style.chatty else 0.2, "react"))

    def _knows(self, name: str) -> bool:
        return any(friend.name == name for friend in self.friends)

    def _confirm(self, name: str) -> tuple[str, Move, bool]:
        """Confirm a friend who is on the own list too, and do not ask about them again."""
        self.left = [friend for friend in self.left if friend.name != name]
        self.found += 1
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
        mine = say("mine", both=both(friend))
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
        """Ask about the next friend; after the last one give up, and leave then or the second time."""
        if self.common and self.rng.random() < self.peeks:
            self.left = [friend for friend in self.left if friend in self.common]
            self.done = self.done or not self.left
            if self.left:
                name = self.left.pop(0).name
                return joined(before, self.speaker.say("ask_name", name=name)), Move("ask", name), False
        if not self.left:
            leaves = self.done or not self.style.lingers
            self.done = True
            words = self.speaker.say("that_was_all" if self.found else "give_up")
            return joined(before, words), Move("bye" if leaves else "give_up"), leaves
        words, move = self._ask(self.left.pop(0))
        return joined(before, self.speaker.maybe(0.2 if self.style.chatty else 0.0, "bridge"), words), move, False

    def _ask(self, friend: Friend) -> tuple[str, Move]:
        attributes = dict(friend.attributes)
        single = len(attributes) == 1
        chance = self.rng.random()
        named = max(self.style.by_name, 0.5 if single else 0.0)
        if chance < 0.7 * named:
            return self.speaker.say("ask_name", name=friend.name), Move("ask", friend.name)
        if chance < named:
            kind = self.rng.choice(list(attributes))
            words = self.speaker.say(f"ask_name_{kind}", name=friend.name, **{kind: attributes[kind]})
            return words, Move("ask", friend.name)
        if single or self.rng.random() < 0.06:
            kind = self.rng.choice(list(attributes))
            return self.speaker.say(f"ask_{kind}", **{kind: attributes[kind]}), Move(
                "ask", about={kind: attributes[kind]}
            )
        kinds = list(attributes)[:2] if len(attributes) < 3 else sorted(self.rng.sample(KINDS, 2), key=KINDS.index)
        about = {kind: attributes[kind] for kind in kinds}
        return self.speaker.say(f"ask_{kinds[0]}_{kinds[1]}", **about), Move("ask", about=about)


def both(friend: Friend) -> str:
    """Describe a friend in the words and the order of the list."""
    return " and ".join(f"{_VERBS[kind]} {value}" for kind, value in friend.attributes)


COMMON = ((0, 0.28), (1, 0.36), (2, 0.16), (3, 0.2))
"""Numbers of friends in common, and the share of the scenarios that have them."""


def scenario(rng: random.Random, number: int, *, common: int | None = None) -> ScenarioFile:
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
    if common is None:
        common = min(size, rng.choices([each for each, _ in COMMON], [share for _, share in COMMON])[0])
    parameters = {"friends": size, "attributes": attributes, "common": common}
    return MutualFriends(words).generate(f"starter_friends_{number}", rng.randrange(1 << 30), parameters)


def _company(rng: random.Random) -> str:
    """Draw a company; half of them are made up, so the model must look them up."""
    if rng.random() < 0.5:
        return rng.choice(BANK["companies"])
    return f"{made_up(rng)} {rng.choice(_TRADES)}".strip()


def talk(
    rng: random.Random, document: ScenarioFile, *, sloppy: int | None = None, peeks: float | None = None
) -> Transcript:
    """Play a whole conversation. Agent number `sloppy` makes mistakes; with `peeks`, both use what is on both lists."""
    lists = lists_of(document)
    common = [friend for friend in lists[0] if friend.name in {other.name for other in lists[1]}]
    players = [
        Player(
            rng,
            friends,
            sloppy=number == sloppy,
            thorough=document.parameters["common"] > 1,
            style=Style.draw(rng),
            common=None if peeks is None else common,
            peeks=peeks or 0.0,
        )
        for number, friends in enumerate(lists)
    ]
    turns: list[Turn] = []
    move: Move | None = None
    leaves = False
    while len(turns) < document.limits.turns and not leaves:
        player = players[len(turns) % 2]
        if not turns and rng.random() < (0.0 if peeks else 0.15):
            words, move = player.speaker.say("greeting"), Move("greet")
        else:
            words, move, leaves = player.turn(move)
        turns.append(Turn(len(turns), document.names[len(turns) % 2], Action("leave" if leaves else "speak", words)))
    return Transcript(tuple(turns))


def lists_of(document: ScenarioFile) -> list[list[Friend]]:
    """Read the lists of friends of a scenario's agents from their facts."""
    attributes = document.parameters["attributes"].split(",")
    return [_friends(agent.facts, attributes) for agent in document.agents]


def _friends(facts: object, attributes: list[str]) -> list[Friend]:
    found = []
    for fact in facts:  # type: ignore[attr-defined]
        rest = fact.text.removeprefix(fact.terms[0]).strip(" .")
        values = rest.split(" and ") if len(attributes) > 1 else [rest]
        pairs = [(kind, part.removeprefix(_VERBS[kind]).strip()) for kind, part in zip(attributes, values, strict=True)]
        found.append(Friend(fact.terms[0], tuple(pairs)))
    return found
