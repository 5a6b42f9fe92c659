"""Talks of two strangers who look for a friend in common. Each agent knows its own list and what has been said.

They ask about one friend of theirs at a time, mostly by description, go down their list without asking twice, look
every question up in their own list, and name a person when the description fits.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from localsim.families.mutual_friends import MutualFriends
from localsim.families.vocabulary import Vocabulary
from localsim.scenario import ScenarioFile
from localsim.transcript import Action, Transcript, Turn
from scripts.starter.bank import Speaker, bank, joined
from scripts.starter.names import names

BANK = bank("friends")
KINDS = ("hobby", "company", "town")
_VERBS = {"hobby": "likes", "company": "works at", "town": "lives in"}


@dataclass(frozen=True)
class Friend:
    """An entry of a list; attributes by kind, in the order of the list."""

    name: str
    attributes: tuple[tuple[str, str], ...]

    def has(self, asked: dict[str, str]) -> bool:
        """Whether all that was asked holds."""
        return asked.items() <= dict(self.attributes).items()


@dataclass
class Move:
    """What a turn does, as its hearer understands it from the words."""

    kind: str
    """ask, describe, recognise, confirm, give_up, bye."""
    name: str = ""
    about: dict[str, str] = field(default_factory=dict)


class Player:
    """One side. Sees its own list; hears moves."""

    def __init__(self, rng: random.Random, friends: list[Friend]) -> None:
        self.rng = rng
        self.friends = friends
        self.speaker = Speaker(rng, BANK)
        start = rng.randrange(len(friends)) if rng.random() < 0.3 else 0
        self.left = friends[start:] + friends[:start]
        self.done = False
        self.chatty = rng.random()

    def turn(self, heard: Move | None) -> tuple[str, Move, bool]:
        """(words, move, whether it leaves)."""
        say = self.speaker.say
        if heard is None or heard.kind == "greet":
            return self._question(say("greeting") if self.rng.random() < 0.75 else "")
        if heard.kind == "bye":
            return say("bye"), Move("bye"), True
        if heard.kind == "confirm":
            words = say("found_bye", name=heard.name) if self.rng.random() < 0.6 else say("found_bye_plain")
            return words, Move("bye"), True
        if heard.kind == "recognise":
            if any(friend.name == heard.name for friend in self.friends):
                return say("confirm", name=heard.name), Move("confirm", heard.name), False
            return self._question(say("not_that_one", name=heard.name))
        if heard.kind == "describe":
            return self._described(heard)
        if heard.kind == "ask":
            return self._answer(heard)
        return self._question(self.speaker.maybe(0.5, "react"))

    def _answer(self, heard: Move) -> tuple[str, Move, bool]:
        say = self.speaker.say
        if heard.name:
            if any(friend.name == heard.name for friend in self.friends):
                return say("confirm", name=heard.name), Move("confirm", heard.name), False
            return self._question(say("no_name", name=heard.name))
        fits = [friend for friend in self.friends if friend.has(heard.about)]
        if not fits:
            return self._question(self._none_of(heard.about))
        whole = [friend for friend in fits if len(heard.about) == len(friend.attributes)]
        if whole:
            return say("recognise", name=whole[0].name), Move("recognise", whole[0].name), False
        friend, kind = self.rng.choice(fits), next(iter(heard.about))
        rest = {key: value for key, value in friend.attributes if key not in heard.about}
        other = " and ".join(f"{_VERBS[key]} {value}" for key, value in rest.items())
        words = say(f"some_{kind}", **heard.about, other=other)
        return words, Move("describe", about=dict(friend.attributes)), False

    def _none_of(self, about: dict[str, str]) -> str:
        if len(about) == 1 and self.rng.random() < 0.6:
            kind = next(iter(about))
            return self.speaker.say(f"no_{kind}", **about)
        return self.speaker.say("no_both" if len(about) > 1 and self.rng.random() < 0.5 else "no")

    def _described(self, heard: Move) -> tuple[str, Move, bool]:
        for friend in self.friends:
            if friend.has(heard.about):
                return self.speaker.say("recognise", name=friend.name), Move("recognise", friend.name), False
        return self._question(self.speaker.say("no"))

    def _question(self, before: str) -> tuple[str, Move, bool]:
        """Ask about the next friend; when all have been asked about, give up, and leave at the second time."""
        if not self.left:
            if self.done:
                return joined(before, self.speaker.say("give_up")), Move("bye"), True
            self.done = True
            return joined(before, self.speaker.say("give_up")), Move("give_up"), False
        friend = self.left.pop(0)
        bridge = self.speaker.maybe(0.35 * self.chatty, "bridge")
        words, move = self._ask(friend)
        return joined(before, bridge, words), move, False

    def _ask(self, friend: Friend) -> tuple[str, Move]:
        attributes = dict(friend.attributes)
        chance = self.rng.random()
        if chance < (0.1 if len(attributes) > 1 else 0.45):
            return self.speaker.say("ask_name", name=friend.name), Move("ask", friend.name)
        if chance < (0.18 if len(attributes) > 1 else 0.65):
            kind = self.rng.choice(list(attributes))
            words = self.speaker.say(f"ask_name_{kind}", name=friend.name, **{kind: attributes[kind]})
            return words, Move("ask", friend.name)
        if len(attributes) == 1 or chance < 0.3:
            kind = self.rng.choice(list(attributes))
            return self.speaker.say(f"ask_{kind}", **{kind: attributes[kind]}), Move(
                "ask", about={kind: attributes[kind]}
            )
        kinds = sorted(self.rng.sample(list(attributes), 2), key=KINDS.index)
        about = {kind: attributes[kind] for kind in kinds}
        return self.speaker.say(f"ask_{kinds[0]}_{kinds[1]}", **about), Move("ask", about=about)


def scenario(rng: random.Random, number: int) -> ScenarioFile:
    """A fresh instance of the family, in words that no other scenario of localsim uses."""
    pools = {
        kind: rng.sample(BANK[section], 8)
        for kind, section in (("hobby", "hobbies"), ("company", "companies"), ("town", "towns"))
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
    parameters = {"friends": size, "attributes": attributes, "common": int(rng.random() < 0.88)}
    return MutualFriends(words).generate(f"starter_friends_{number}", rng.randrange(1 << 30), parameters)


def talk(rng: random.Random, document: ScenarioFile) -> Transcript:
    """A whole talk."""
    attributes = document.parameters["attributes"].split(",")
    players = [Player(rng, _friends(agent.facts, attributes)) for agent in document.agents]
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
    """Lists as the facts state them."""
    found = []
    for fact in facts:  # type: ignore[attr-defined]
        rest = fact.text.removeprefix(fact.terms[0]).strip(" .")
        values = rest.split(" and ") if len(attributes) > 1 else [rest]
        pairs = [(kind, part.removeprefix(_VERBS[kind]).strip()) for kind, part in zip(attributes, values, strict=True)]
        found.append(Friend(fact.terms[0], tuple(pairs)))
    return found
