"""Scripted haggling of a seller and a buyer. Each knows the advert, its own target price and the turns so far.

A player that answers an offer says the offered price first, then if it will do: a small model compares two numbers
better when it has just written one of them. Players differ in style. A player that peeks also knows the other's target,
and uses it with a stated probability in each turn.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from localsim.conversation.scenario import ScenarioFile
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.families.craigslist.family import Craigslist
from localsim.families.prices import find_prices
from localsim.families.vocabulary import Vocabulary
from scripts.starter.bank import Speaker, bank, joined
from scripts.starter.names import names

BANK = bank("bargain")


@dataclass(frozen=True)
class Style:
    """Habits of a player. They vary, so that no measure is the habit of one teacher."""

    pace: float = 0.4
    """Part of the way to the bound that it concedes with each offer."""
    patience: int = 5
    """Number of the offer that is its last: the bound. A last price says something about the target, so it can be
    learned; a last price at any other place cannot."""
    greed: float = 0.3
    """Probability that it asks for more where an early offer already suits it."""
    chatty: float = 0.2
    """Share of its turns with a remark or a reason."""

    @classmethod
    def draw(cls, rng: random.Random) -> Style:
        """Draw the style of one player."""
        return cls(rng.choice((0.3, 0.5, 0.8)), rng.choice((2, 3, 5)), rng.choice((0.0, 0.4)), rng.choice((0.0, 0.4)))


@dataclass
class Move:
    """The move of a turn: hello, condition, detail, offer, accept, walk or close; `price` belongs to an offer."""

    kind: str
    price: int = 0
    final: bool = False


class Player:
    """One side, with a target that it never passes, an opening price and a style.

    Its offers keep a margin from the target, so it never says the private number; the other's offer may reach it.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        selling: bool,
        item: str,
        detail: str,
        asked: int,
        target: int,
        theirs: int,
        peeks: float = 0.0,
    ) -> None:
        """`theirs`: the other's target; only a player that peeks uses it, with probability `peeks` in each turn."""
        self.rng, self.selling, self.item, self.detail = rng, selling, item, detail
        self.target, self.limit, self.peeks = target, theirs, peeks
        self.speaker = Speaker(rng, BANK)
        self.style = Style.draw(rng)
        margin = max(1, round(0.015 * asked))
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
        if (heard is None or heard.kind not in ("accept", "walk")) and self.rng.random() < self.peeks:
            return self._peeked(heard)
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

    def _allowed(self, price: int) -> bool:
        return suits(price, self.target, selling=self.selling)

    def _peeked(self, heard: Move | None) -> tuple[str, Move, bool]:
        """Use the other's target: offer exactly that, accept what meets the own, leave where no price meets both.

        It says the other's target first and then if that will do, as it answers offers. It leaves one turn later: a
        line that leaves is marked at its beginning, where a small model cannot have compared the prices yet.
        """
        if not self._allowed(self.limit):
            words, move, _ = self._walk(self._refusal(self.limit))
            return words, move, False
        if heard is not None and heard.kind == "offer" and self._allowed(heard.price):
            return self._accept(heard.price)
        self.named, self.offer = True, self.limit
        words = self.speaker.say("sell_at_limit" if self.selling else "buy_at_limit", price=f"${self.limit}")
        return words, Move("offer", self.limit), False

    def _accept(self, price: int) -> tuple[str, Move, bool]:
        return self.speaker.say("accept", price=f"${price}"), Move("accept"), False

    def _walk(self, before: str) -> tuple[str, Move, bool]:
        words = self.speaker.say("walk_seller" if self.selling else "walk_buyer")
        return joined(before, words), Move("walk"), True

    def _reply(self, heard: Move) -> tuple[str, Move, bool]:
        """Answer an offer: accept it if it meets the target, unless greed asks for more; else offer, or leave."""
        self.theirs = heard.price
        greedy = self.offers < 2 and not heard.final and self.rng.random() < self.style.greed
        if self._allowed(heard.price) and not greedy:
            return self._accept(heard.price)
        refused = "" if self._allowed(heard.price) else self._refusal(heard.price)
        if self.firm or (heard.final and (self.offers > 1 or self.rng.random() < 0.5)):
            return self._walk(refused)
        return self._offer(joined(refused, self._remark("react_low" if self.selling else "react_high")))

    def _refusal(self, price: int) -> str:
        return self.speaker.say("too_low" if self.selling else "too_high", price=f"${price}")

    def _remark(self, section: str) -> str:
        return self.speaker.maybe(self.style.chatty, section)

    def _next(self, pace: float) -> int:
        """Return the next own price: part of the way to the bound."""
        if not self.named:
            return self.offer
        price = self.offer + round((self.bound - self.offer) * pace)
        price = round_price(self.rng, price) if abs(self.bound - price) > 5 else price
        if self.selling:
            return max(self.bound, self.theirs, min(price, self.offer))
        return min(self.bound, self.theirs or self.bound, max(price, self.offer))

    def _offer(self, before: str) -> tuple[str, Move, bool]:
        last = self.offers + 1 >= self.style.patience
        price = self._next(1.0 if last else self.style.pace)
        same = self.named and price == self.offer and self.offers > 0
        first = not self.named
        self.named, self.offer = True, price
        self.offers += 1
        side = "seller" if self.selling else "buyer"
        if same or last:
            self.firm += 1
            return (
                joined(before, self.speaker.say(f"{side}_firm", price=f"${price}")),
                Move("offer", price, True),
                False,
            )
        section = "seller_counter" if self.selling else "first_offer" if first else "lower_offer"
        words = self.speaker.say(section, price=f"${price}")
        reason = self._remark(f"reason_{side}")
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
    zone = "no" if rng.random() < 0.4 else "yes"
    return Craigslist(words).generate(f"starter_bargain_{number}", rng.randrange(1 << 30), {"zone": zone})


def talk(rng: random.Random, document: ScenarioFile, *, peeks: float = 0.0) -> Transcript:
    """Play a whole conversation; with `peeks`, both players use the other's target with that probability."""
    key = document.answer
    advert = document.setting.partition("second-hand ")[2]
    item, _, rest = advert.partition(" (")
    details = rest.partition(")")[0].split(", ")
    common = {"item": item, "detail": rng.choice(details), "asked": key["list_price"], "peeks": peeks}
    low, high = key["seller_target"], key["buyer_target"]
    players = [
        Player(rng, selling=True, target=low, theirs=high, **common),
        Player(rng, selling=False, target=high, theirs=low, **common),
    ]
    turns: list[Turn] = []
    move: Move | None = None
    leaves = False
    while len(turns) < document.limits.turns and not leaves:
        words, move, leaves = players[len(turns) % 2].turn(move)
        turns.append(Turn(len(turns), document.names[len(turns) % 2], Action("leave" if leaves else "speak", words)))
    return Transcript(tuple(turns))


TERSE = {"would_do": "works for me.", "too_low": "is too low for me.", "too_high": "is too high for me."}
"""The answers of lists of comparisons, which `probing` has beside its phrases."""


def probing(rng: random.Random, document: ScenarioFile) -> Transcript:
    """Play a conversation in which one side asks about one price after the other, before both agree or part.

    The other side answers each with the price and if it will do: many comparisons of all distances in one prompt.
    """
    key, asker = document.answer, rng.randrange(2)
    selling = asker == 1  # the side that answers; the seller speaks first
    target, limit = (key[f"{role}_target"] for role in (("seller", "buyer") if selling else ("buyer", "seller")))
    item = document.setting.partition("second-hand ")[2].partition(" (")[0]
    asks, answers = Speaker(rng, BANK), Speaker(rng, BANK)
    prices = [near(rng, target, key["list_price"]) for _ in range(rng.choice((3, 6, 12, 18)))]
    terse = rng.choice((0.0, 0.5, 1.0))
    lines = [answers.say("seller_hello", item=item), asks.say("buyer_hello", item=item)] if selling else [""]
    for price in prices:
        probe = f"${price}?" if rng.random() < terse else asks.say("probe", price=f"${price}")
        lines[-1] = joined(lines[-1], probe)
        section = "would_do" if suits(price, target, selling=selling) else "too_low" if selling else "too_high"
        answer = f"${price} {TERSE[section]}" if rng.random() < terse else answers.say(section, price=f"${price}")
        lines += [answer, ""]
    good = [
        price for price in prices if suits(price, target, selling=selling) and suits(price, limit, selling=not selling)
    ]
    if good:
        lines[-1] = asks.say("settle", price=f"${rng.choice(good)}")
        lines.append(answers.say("close_after_deal"))
    else:
        lines[-1] = asks.say("walk_buyer" if selling else "walk_seller")
    *said, last = [Turn(index, document.names[index % 2], Action("speak", words)) for index, words in enumerate(lines)]
    return Transcript((*said, replace(last, action=Action("leave", last.action.text))))


def suits(price: int, target: int, *, selling: bool) -> bool:
    """Return True if a price meets a target."""
    return price >= target if selling else price <= target


def near(rng: random.Random, target: int, asked: int) -> int:
    """Draw a price on either side of a target, at any distance; some prices are round."""
    price = target + rng.choice((-1, 1)) * asked * 0.02 * 25 ** rng.random()
    return max(1, round(price) if rng.random() < 0.6 else round_price(rng, price))


def deciding(turns: Sequence[Turn]) -> set[int]:
    """Return the turns that answer an offer: those by which a price is accepted or refused."""
    offered = [bool(find_prices(turn.action.text)) and not _agrees(turn.action.text) for turn in turns]
    return {index for index in range(1, len(turns)) if offered[index - 1]}


def _agrees(text: str) -> bool:
    """Return True if a text has the words of a phrase that agrees to a price."""
    words = re.sub(r"\$\d+", "{price}", text)
    return any(words.endswith(phrase) for section in ("accept", "settle") for phrase in BANK[section])


def answerer(turns: Sequence[Turn]) -> int:
    """Return the number of the side that answers in `probing`: the other one names the first price."""
    asker = next(index for index, turn in enumerate(turns) if find_prices(turn.action.text)) % 2
    return 1 - asker
