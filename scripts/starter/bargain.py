"""Scripted haggling of a seller and a buyer. Each knows the advert, its own target price and the turns so far."""

from __future__ import annotations

import random
from dataclasses import dataclass

from localsim.conversation.scenario import ScenarioFile
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.families.craigslist.family import Craigslist
from localsim.families.vocabulary import Vocabulary
from scripts.starter.bank import Speaker, bank, joined
from scripts.starter.names import names

BANK = bank("bargain")


@dataclass
class Move:
    """The move of a turn: hello, condition, detail, offer, accept, walk or close; `price` belongs to an offer."""

    kind: str
    price: int = 0
    final: bool = False


class Player:
    """One side, with a target that it never passes, an opening price and a pace of conceding.

    Its offers keep a margin from the target, so it never says the private number; the other's offer may reach it.
    """

    def __init__(self, rng: random.Random, *, selling: bool, item: str, detail: str, asked: int, target: int) -> None:
        self.rng, self.selling, self.item, self.detail = rng, selling, item, detail
        self.target = target
        self.speaker = Speaker(rng, BANK)
        self.pace = rng.choice((0.3, 0.5))
        margin = max(1, round(0.04 * asked))
        self.bound = min(asked, target + margin) if selling else max(1, target - margin)
        low = min(self.bound, round_price(rng, asked * rng.uniform(0.4, 0.7)))
        self.offer = asked if selling else max(1, low)
        self.named = selling  # the list price is the seller's first offer
        self.theirs = asked if not selling else 0
        self.firm = 0
        self.offers = 0

    def turn(self, heard: Move | None) -> tuple[str, Move, bool]:
        """Return the words, the move, and True if the player leaves."""
        say = self.speaker.say
        if heard is None:
            return say("seller_hello", item=self.item), Move("hello"), False
        if heard.kind == "accept":
            return say("close_after_deal"), Move("close"), True
        if heard.kind == "walk":
            return say("bye_no_deal"), Move("close"), True
        if heard.kind == "condition":
            return (
                joined(self.speaker.maybe(0.1, "seller_greets"), say("praise_detail", detail=self.detail)),
                Move("detail"),
                False,
            )
        if heard.kind == "hello" and not self.selling:
            return self._first()
        if heard.kind == "hello":
            return say("seller_greets"), Move("hello"), False
        if heard.kind == "detail":
            return self._offer(self.speaker.maybe(0.4, "buyer_likes"))
        return self._reply(heard)

    def _first(self) -> tuple[str, Move, bool]:
        """Open the conversation as the buyer."""
        chance = self.rng.random()
        hello = self.speaker.say("buyer_hello", item=self.item) if chance < 0.6 else ""
        if chance < 0.2:
            asked = self.speaker.say("ask_condition")
            return joined(hello if chance < 0.1 else "", asked), Move("condition"), False
        if chance < 0.3:
            return self.speaker.say("ask_condition_item", item=self.item), Move("condition"), False
        return self._offer(hello if chance < 0.6 else "")

    def _reply(self, heard: Move) -> tuple[str, Move, bool]:
        """Answer an offer: accept it if it is as good as the own next offer, else offer, stand firm or walk away."""
        self.theirs = heard.price
        following = self._next()
        mine = following if self.named else self.offer
        good = heard.price >= mine if self.selling else heard.price <= mine
        allowed = heard.price >= self.target if self.selling else heard.price <= self.target
        tired = self.offers >= 1 and self.rng.random() < 0.7
        if allowed and (good or heard.final or tired):
            return self.speaker.say("accept", price=f"${heard.price}"), Move("accept"), False
        if self.firm or (heard.final and self.offers > 2):
            return self.speaker.say("walk_seller" if self.selling else "walk_buyer"), Move("walk"), True
        react = self.speaker.maybe(0.2, "react_low" if self.selling else "react_high")
        return self._offer(react)

    def _next(self) -> int:
        """Return the next own price: part of the way to the bound."""
        if not self.named:
            return self.offer
        price = self.offer + round((self.bound - self.offer) * self.pace)
        price = round_price(self.rng, price) if abs(self.bound - price) > 5 else price
        if self.selling:
            return max(self.bound, self.theirs, min(price, self.offer))
        return min(self.bound, self.theirs or self.bound, max(price, self.offer))

    def _offer(self, before: str) -> tuple[str, Move, bool]:
        price = self._next()
        same = self.named and price == self.offer and self.offers > 0
        first = not self.named
        self.named, self.offer = True, price
        self.offers += 1
        side = "seller" if self.selling else "buyer"
        if same or self.offers >= 5:
            self.firm += 1
            return (
                joined(before, self.speaker.say(f"{side}_firm", price=f"${price}")),
                Move("offer", price, True),
                False,
            )
        section = "seller_counter" if self.selling else "first_offer" if first else "lower_offer"
        words = self.speaker.say(section, price=f"${price}")
        reason = self.speaker.maybe(0.2, f"reason_{side}")
        return joined(before, words, reason), Move("offer", price), False


def round_price(rng: random.Random, price: float) -> int:
    """Round a price as people do, mostly to multiples of 5."""
    if price >= 30 and rng.random() < 0.8:
        return round(price / 5) * 5
    return max(1, round(price))


def scenario(rng: random.Random, number: int) -> ScenarioFile:
    """Generate a fresh scenario of the family with goods that no other scenario of localsim has."""
    goods = [tuple(part.strip() for part in line.split("|")) for line in BANK["goods"]]
    items = tuple((item, about, int(low), int(high)) for item, about, low, high in goods)
    friends = bank("friends")
    words = Vocabulary(names=names(rng, 4), occupations=friends["occupations"], goods=items)
    zone = "no" if rng.random() < 0.3 else "yes"
    return Craigslist(words).generate(f"starter_bargain_{number}", rng.randrange(1 << 30), {"zone": zone})


def talk(rng: random.Random, document: ScenarioFile) -> Transcript:
    """Play a whole conversation."""
    key = document.answer
    advert = document.setting.partition("second-hand ")[2]
    item, _, rest = advert.partition(" (")
    details = rest.partition(")")[0].split(", ")
    common = {"item": item, "detail": rng.choice(details), "asked": key["list_price"]}
    players = [
        Player(rng, selling=True, target=key["seller_target"], **common),
        Player(rng, selling=False, target=key["buyer_target"], **common),
    ]
    turns: list[Turn] = []
    move: Move | None = None
    leaves = False
    while len(turns) < document.limits.turns and not leaves:
        words, move, leaves = players[len(turns) % 2].turn(move)
        turns.append(Turn(len(turns), document.names[len(turns) % 2], Action("leave" if leaves else "speak", words)))
    return Transcript(tuple(turns))
