"""How a bargaining talk ended, read from its words: a deal and its price, no deal, or unknown.

Every turn is read sentence by sentence into a `_Reading` (own prices, acceptance, refusal, condition, deferral, ...);
`_Bargain` then keeps each side's standing offer and follows what was agreed, revoked and refused. The phrases were
written by hand; scripts/measure_endings.py says how often the result agrees with people.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from localsim.families.prices import PHRASES, Price, find_prices, plain, words_to_numbers
from localsim.transcript import Turn

EndingKind = Literal["deal", "no_deal", "unknown"]
_Strength = Literal["", "weak", "warm", "strong"]


@dataclass(frozen=True)
class Ending:
    """How a bargain ended. `price`: the agreed total in dollars, for a deal; `turn`: the index of the deciding turn."""

    kind: EndingKind
    price: float | None
    turn: int | None
    reason: str


@dataclass(frozen=True)
class Offer:
    """A price in dollars that `speaker` puts forward as their own in turn `turn`."""

    turn: int
    speaker: str
    price: float


@dataclass
class _Reading:
    """What one turn says about the bargain; prices in dollars."""

    offers: list[float] = field(default_factory=list)  # put forward as the speaker's own, in order
    accept: _Strength = ""
    asked: bool = False  # the last price stands in a question
    alternatives: bool = False  # two prices to choose from
    each: list[float] = field(default_factory=list)  # prices per piece
    changes: list[float] = field(default_factory=list)  # "20 off" -20, "10 more" +10
    refused_prices: list[float] = field(default_factory=list)
    other_prices: list[float] = field(default_factory=list)  # neither own nor refused: retail prices, others' offers
    percent: float | None = None  # discount as a share of the list price
    least: float = 0.0  # a smaller sum is a fee or the like, not an offer
    question: bool = False  # ends in a question
    has: set[str] = field(default_factory=set)  # further marks, see _MARKS

    @property
    def positive(self) -> bool:
        """Whether a waiting counterpart may take the turn as consent."""
        return not self.has & {"reject", "walk", "gone", "refuse", "defer", "hedge", "no_phrase"}


# Phrases whose mere presence in a sentence is noted.
_MARKS = (
    "defer",
    "hedge",
    "reject",
    "no_phrase",
    "logistics",
    "farewell",
    "viewing",
    "affirm",
    "wants",
    "revoke",
    "middle",
    "closing",
    "final",
    "commit",
)


def says_farewell(text: str) -> bool:
    """Whether `text` says goodbye ("bye", "take care", "see you tomorrow", "nice talking to you")."""
    lower = plain(text)
    return bool(PHRASES["farewell"].search(lower) or PHRASES["see_you"].search(lower))


def offers(turns: Sequence[Turn], *, list_price: float) -> list[Offer]:
    """Every price a speaker puts forward as their own, in order, in dollars; a price said twice in a turn once."""
    bargain, before = _Bargain(list_price, ""), ""
    found = []
    for turn in turns:
        reading = _read(turn, list_price, before)
        for price in dict.fromkeys(bargain.own_offers(turn.speaker, reading, bargain.standing)):
            found.append(Offer(turn.index, turn.speaker, price))
        bargain.take(turn, reading)
        before = turn.action.text
    return found


def bargain_ending(turns: Sequence[Turn], *, seller: str, buyer: str, list_price: float) -> Ending:
    """How the bargain over an item listed at `list_price` dollars ended between `seller` and `buyer`."""
    bargain, before = _Bargain(list_price, seller), ""
    for turn in turns:
        if turn.speaker in (seller, buyer):
            bargain.take(turn, _read(turn, list_price, before))
            before = turn.action.text
    return bargain.ending()


def _read(turn: Turn, list_price: float, before: str = "") -> _Reading:
    """The reading of a turn's words, or of what its action describes; `before` is the text of the turn before."""
    text = turn.action.text
    if turn.action.type in ("non-verbal communication", "action"):
        return _read_action(text, list_price)
    reading = _Reading(least=0.12 * list_price)
    lower = plain(text)
    prices = _without_answers(find_prices(text, list_price=list_price), lower, plain(before))
    for match in re.finditer(r"(?:[^.!?;…—\n]|[.](?=\d|[a-z]\.)|(?<=[ap]\.m)\.)+[.!?;…—]*", lower):
        if match[0].strip(" .!"):
            inside = [price for price in prices if match.start() <= price.start < match.end()]
            _read_sentence(reading, match[0], match.start(), inside)
    if PHRASES["at_start"].search(lower) and reading.accept != "" or re.search(r"\bi'll pay what you asked\b", lower):
        reading.has.add("at_start")
    if "deferred_accept" not in reading.has and reading.has & {"defer"} and reading.accept:
        reading.accept = ""
    if reading.accept == "warm" and len(lower.split()) <= 3 and "thank" not in lower and not reading.question:
        reading.has.add("bare_warm")
    return reading


def _without_answers(prices: list[Price], lower: str, before: str) -> list[Price]:
    """The prices without bare numbers that answer "how old?" or "the 24 inch or the 30 inch?"."""
    asked = re.search(
        r"\bhow (?:old|many|long|big|tall|wide|far|heavy|deep|fast)\b|\bwhat (?:size|year|time|model)\b[^.?]*\?", before
    )
    if asked and not re.search(r"[$]|\bprice|\btake\b", before[asked.end() :]):
        return [price for price in prices if price.explicit or price.start > 25]
    measured = r"(?:[\s-]?(?:\"|inch|in\b|cm|mm|gb|feet|foot|ft|miles|km|years|lbs?|pounds|am\b|pm\b)|:\d)"
    return [
        price
        for price in prices
        if price.explicit or not re.search(rf"\b{lower[price.start : price.end]}{measured}", before)
    ]


def _read_action(text: str, list_price: float) -> _Reading:
    """Nods, handshakes and money are consent; going away is an exit; the rest says nothing."""
    lower = plain(text)
    reading = _Reading()
    if PHRASES["shake_head"].search(lower):
        reading.has.add("reject")
    elif PHRASES["nod"].search(lower) and not re.compile(
        r"\b(?:nearly|almost|doesn't|does not|without|pretends)\b"
    ).search(lower):
        reading.accept = "strong"
        reading.has.add("gesture")
        paid = [price.value for price in find_prices(text, list_price=list_price) if not price.negated]
        reading.offers = paid[-1:]
    if PHRASES["exit"].search(lower) and not reading.accept:
        reading.has.add("walk")
    return reading


def _read_sentence(reading: _Reading, sentence: str, start: int, prices: list[Price]) -> None:
    """Add what `sentence`, which starts at character `start` of the turn, says to `reading`."""
    question = sentence.rstrip().endswith("?")
    reading.question = question
    marked, spots = _marked(sentence, start, prices)
    if PHRASES["counterfactual"].search(marked):
        return
    for price, spot in zip(prices, spots, strict=True):
        _read_price(reading, price, marked, spot, question)
    if _says(PHRASES["walk"], marked, question):
        reading.has.add("walk")
    if _says(PHRASES["gone"], marked, question):
        reading.has.add("gone")
    marked = PHRASES["idioms"].sub(lambda match: "_" * len(match[0]), marked)
    for mark in _MARKS:
        if PHRASES[mark].search(marked):
            reading.has.add(mark)
    _read_percent(reading, marked)
    if prices and not question and PHRASES["condition"].search(marked):
        reading.has.add("condition")
    if (
        PHRASES["list_price"].search(marked)
        and not question
        and not PHRASES["negation"].search(marked.replace("no haggling", ""))
    ):
        reading.has.add("list_price")
    if question and PHRASES["confirming"].search(marked):
        reading.has.add("confirming")
    if (
        question
        and not prices
        and not re.search(r"\b(?:you know what|oh really|really)$", marked)
        and not PHRASES["confirming"].search(marked)
    ):
        reading.has.add("other_question")
    _read_consent(reading, marked, question)


def _marked(sentence: str, start: int, prices: list[Price]) -> tuple[str, list[int]]:
    """The sentence with each price as "<#>", stripped of its end marks, and where those marks are."""
    parts, spots, done = [], [], 0
    for price in prices:
        parts.append(sentence[done : price.start - start])
        spots.append(sum(map(len, parts)))
        parts.append("<#>")
        done = price.end - start
    text = "".join([*parts, sentence[done:]]).rstrip(" .!?;…—")
    lead = len(text) - len(text.lstrip(" \"'*("))
    return text[lead:], [spot - lead for spot in spots]


def _read_price(reading: _Reading, price: Price, marked: str, spot: int, question: bool) -> None:
    before, after = marked[:spot], marked[spot + 3 :]
    clause = re.split(r"[,:] |\bbut ", before)[-1]
    around = clause + "<#>" + re.split(r"[,:]|\b(?:but|and) ", after)[0]
    sign = PHRASES["delta_before"].search(clause)
    if price.negated:
        reading.refused_prices.append(price.value)
    elif PHRASES["delta_after"].match(after) or sign and not re.match(r" (?:for|and (?:it|you))", after):
        down = re.match(r"\s*(?:off|less|lower|discount|under)", after) or (
            sign
            and re.match(r"knock|take|drop|shave|minus", sign[0])
            and not re.match(r"\s*(?:more|extra|on top)", after)
        )
        if not re.match(r"\s*(?:apart|short|shy|over|higher|toward)", after):
            reading.changes.append(-price.value if down else price.value)
    elif PHRASES["each"].match(after):
        reading.each.append(price.value)
        reading.asked = question
    elif (
        re.search(r"\bworth $", clause)
        or price.value < reading.least
        and not PHRASES["own_offer"].search(clause)
        or (PHRASES["reference"].search(around) or PHRASES["others_price"].search(around))
        and not PHRASES["own_offer"].search(clause)
    ):
        reading.other_prices.append(price.value)
    else:
        if re.search(r"\b(?:was|were|had been) (?:\w+ )?(?:hoping|thinking|planning|looking)\b|\bwanted\b", clause):
            reading.has.add("wished")
        if reading.offers and reading.offers[-1] != price.value and re.search(r"<#>.*\bor\b.*<#>", marked):
            reading.alternatives = True
        total = PHRASES["total"].search(re.split(r"<#>|, ", after)[0]) or PHRASES["total"].search(clause)
        if "total" not in reading.has:
            reading.offers = [*([] if total else reading.offers), price.value]
        if total:
            reading.has.add("total")
        reading.asked = question and "," not in after


def _read_percent(reading: _Reading, marked: str) -> None:
    match = PHRASES["percent"].search(marked)
    if match:
        word = match[1] or match[2]
        values = [float(word)] if word[0].isdigit() else words_to_numbers(word)
        if values and 0 < values[0] < 100:
            reading.percent = values[0] / 100
            reading.asked = reading.question
    elif re.search(r"\bhalf (?:price|off|of that|the price)\b", marked):
        reading.percent = 0.5
        reading.asked = reading.question


def _says(pattern: re.Pattern[str], marked: str, question: bool) -> bool:
    """Whether the sentence states the pattern: no question, no threat ("or I walk"), not denied."""
    for match in pattern.finditer(marked):
        clause = re.split(r"[,:] ", marked[: match.start()])[-1]
        denied = re.search(r"\b(?:not|never|no need to|don't|didn't|isn't|can't|won't)\b[^,]*$", clause)
        if (
            not denied
            and not PHRASES["threat"].search(marked[: match.start()])
            and not (question and "," not in marked[match.end() :])
        ):
            return True
    return False


def _read_consent(reading: _Reading, marked: str, question: bool) -> None:
    """Set how strongly the sentence consents, and on which condition."""
    strength: _Strength = ""
    marked = re.sub(
        r"^((?:(?:oh|well|ha|haha|ah|hmm?|mm|ugh|lol|ok|okay|yes|yeah|sure|alright)\b,? )+)",
        lambda lead: lead[0].replace(",", ""),
        marked,
    )
    for match in PHRASES["strong"].finditer(marked):
        before = re.split(r"[,:] |\b(?:but|and|then) ", marked[: match.start()])[-1]
        clause = before + re.split(r"[,:]| but | and ", marked[match.start() :])[0]
        last = not re.search(r", ", marked[match.end() :])
        guarded = PHRASES["negation"].search(before) or PHRASES["hedge"].search(clause) or (question and last)
        if not guarded and not re.search(
            r"\b(?:you|they|he|she|would|could|never|who|when|once|until|lowest|most|least|best|all|minimum|maximum"
            r"|what|price)(?:'d| would| could)? (?:say |accept |take |think )?$",
            before,
        ):
            strength = "strong"
    if (
        not strength
        and PHRASES["weak"].search(marked)
        and not (question and "," not in marked)
        and not PHRASES["hedge"].search(marked)
    ):
        strength = "weak"
    if not strength and PHRASES["elliptic"].search(marked) and not question:
        strength = "weak"
        reading.has.add("elliptic")
    if not strength and PHRASES["warm"].search(marked) and not (question and "," not in marked):
        strength = "warm"
    if (
        not strength
        and re.search(r", (?:yes|yeah|ok|okay|sure|fine|alright|deal|i will|i would)$", marked)
        and not question
    ):
        strength = "strong" if PHRASES["condition"].search(marked) else "weak"
    if strength in ("weak", "strong") and not question:
        reading.has.add("final_yes")
    else:
        reading.has.discard("final_yes")
    if strength == "strong" and "<#>" not in marked:
        reading.asked = False
    if strength == "strong" and (PHRASES["condition"].search(marked) or re.search(r"^if\b", marked)):
        reading.has.add("condition")
    order = ("", "warm", "weak", "strong")
    reading.accept = max(reading.accept, strength, key=order.index)


class _Bargain:
    """What stands between the two sides after the turns taken so far; prices in dollars, sides by name."""

    def __init__(self, list_price: float, seller: str) -> None:
        self.list_price = list_price
        self.seller = seller
        self.standing: dict[str, float] = {}
        self.history: dict[str, list[float]] = {}
        self.ambiguous: set[str] = set()
        self.count: int | None = None
        self.agreed: tuple[float, int] | None = None
        self.claims: dict[str, float] = {}
        self.conflict: int | None = None
        self.pending: tuple[float, str, str] | None = None  # price, who waits for an answer, kind of condition
        self.ended: tuple[int, str, str] | None = None  # turn, by whom, reason
        self.wanted: str | None = None
        self.tacit = False  # the last turn answered an offer in a few words that refuse nothing
        self.previous: tuple[str, _Reading] | None = None

    def ending(self) -> Ending:
        """The ending, if the talk stops here."""
        if self.conflict is not None:
            return Ending("unknown", None, self.conflict, "the two sides state different prices")
        if self.agreed:
            price, turn = self.agreed
            return Ending("deal", round(price, 2), turn, f"agreed on ${price:g}")
        if self.ended:
            return Ending("no_deal", None, self.ended[0], self.ended[2])
        return Ending("unknown", None, None, "the talk stops without agreement or refusal")

    def take(self, turn: Turn, reading: _Reading) -> None:
        """Move on by one turn."""
        if turn.action.type == "none":
            return
        speaker, other = turn.speaker, self._other(turn.speaker)
        self._read_count(plain(turn.action.text))
        prices = self.own_offers(speaker, reading, self.standing)
        if "elliptic" in reading.has and reading.accept == "weak" and not (self.previous and self.previous[1].question):
            reading.accept = ""
        if self.agreed:
            self._after_agreement(turn, reading, prices, other)
        else:
            self._before_agreement(turn, reading, prices, other)
        if prices:
            self._stand(speaker, prices, reading)
        elif self.agreed is None and "wants" in reading.has and not reading.question and speaker != self.seller:
            self.wanted = speaker
        if turn.action.type == "leave" and not self.agreed and self.conflict is None:
            self.ended = (turn.index, speaker, f"{speaker} leaves without agreement")
        if turn.action.type in ("speak", "leave") and turn.action.text or reading.accept:
            self.previous = (speaker, reading)

    def own_offers(self, speaker: str, reading: _Reading, standing: dict[str, float]) -> list[float]:
        """The reading's own prices, with middles, percentages, changes and prices per piece worked out."""
        other = self._other(speaker)
        if reading.offers:
            return reading.offers
        if reading.each:
            return [self._total(price) for price in reading.each]
        if self.previous and self.previous[0] == other and other in standing:
            last = self.previous[1]
            if "middle" in reading.has & last.has or (reading.changes and reading.changes == last.changes):
                return [standing[other]]
        if "middle" in reading.has and other in standing and speaker in standing and not reading.has & {"refuse"}:
            return [(standing[speaker] + standing[other]) / 2]
        if "middle" in reading.has and len(standing) == 1 and not self.seller_is(next(iter(standing))):
            return [(next(iter(standing.values())) + self.list_price) / 2]
        if reading.percent is not None:
            return [self.list_price * (1 - reading.percent)]
        if reading.changes and reading.accept != "strong":
            amount = reading.changes[-1]
            base = standing.get(other if (amount > 0) == self.seller_is(speaker) else speaker)
            if amount < 0:
                base = standing.get(self.seller, standing.get(other, self.list_price))
            if base is None:
                base = standing.get(speaker, standing.get(other))
            return [base + amount] if base is not None and base + amount > 0 else []
        if "at_start" in reading.has and self.history.get(other):
            return [self.history[other][0]]
        if (
            "list_price" in reading.has
            and (reading.accept or not self.seller_is(speaker))
            and "reject" not in reading.has
        ):
            return [self.list_price]
        return []

    def seller_is(self, name: str) -> bool:
        """Whether `name` is the seller."""
        return name == self.seller

    def _other(self, name: str) -> str:
        known = [
            side
            for side in (*self.standing, *([self.previous[0]] if self.previous else []), self.seller)
            if side != name
        ]
        return known[0] if known else ""

    def _read_count(self, lower: str) -> None:
        for match in PHRASES["count"].finditer(lower):
            word = match[1] or match[3]
            count = 2 if match[2] else (int(word) if word.isdigit() else int(words_to_numbers(word)[0]))
            if 2 <= count <= 24 and (self.count is None or match[1] or match[2]):
                self.count = count

    def _total(self, price: float) -> float:
        """A price per piece times the count said so far, if that fits the list price better."""
        if self.count and 0.3 * self.list_price <= price * self.count <= 1.6 * self.list_price:
            return price * self.count
        return price

    def _stand(self, speaker: str, prices: list[float], reading: _Reading) -> None:
        self.standing[speaker] = prices[-1]
        self.history.setdefault(speaker, []).extend(prices)
        (self.ambiguous.add if reading.alternatives else self.ambiguous.discard)(speaker)

    def _agree(self, price: float, turn: int) -> None:
        self.agreed, self.pending, self.ended, self.conflict = (price, turn), None, None, None

    def _before_agreement(self, turn: Turn, reading: _Reading, prices: list[float], other: str) -> None:
        if self._settles_conflict(turn, prices, other):
            return
        if reading.has & {"gone", "walk"} or (reading.has & {"no_phrase"} and not prices):
            self._end(turn, "the bargain is called off")
            return
        if self.pending and self._answers_pending(turn, reading, prices):
            return
        if prices:
            self._price_turn(turn, reading, prices[-1], other)
        elif reading.accept:
            self._bare_consent(turn, reading, other)
        if not self.agreed and not prices and self.previous:
            self._tacit(turn, reading, other)
        if (
            not self.agreed
            and not prices
            and turn.index
            and reading.has & {"farewell", "closing"}
            and "defer" not in reading.has | (self.previous[1].has if self.previous else set())
        ):
            self._end(turn, "a farewell without agreement")

    def _tacit(self, turn: Turn, reading: _Reading, other: str) -> None:
        """Consent in words of no known kind shows in the thanks of who made the offer ("You win." "Thanks!").

        A refusal of a price that was called final ends the bargain, too.
        """
        assert self.previous is not None
        speaker, last = self.previous
        short = len(turn.action.text.split()) <= 9 and turn.action.type == "speak"
        pleased = (
            (PHRASES["pleased"].search(plain(turn.action.text)) or "commit" in reading.has)
            and reading.positive
            and not reading.has & {"viewing", "closing", "farewell"}
        )
        if self.tacit and speaker == other and pleased and not self.ended and turn.speaker in self.standing:
            self._agree(self.standing[turn.speaker], turn.index - 1)
            return
        answers = speaker == other and last.offers and not reading.question and reading.accept != "strong"
        self.tacit = bool(answers and short and reading.positive and not reading.has & {"farewell", "closing"})
        if (
            answers
            and {"reject"} & reading.has
            and last.has & {"final"}
            and PHRASES["declines"].search(plain(turn.action.text))
        ):
            self._end(turn, "the final price is refused")

    def _end(self, turn: Turn, reason: str) -> None:
        self.ended = self.ended or (turn.index, turn.speaker, f"{turn.speaker}: {reason}")
        self.agreed = self.pending = None

    def _settles_conflict(self, turn: Turn, prices: list[float], other: str) -> bool:
        if self.conflict is None or not prices or prices[-1] != self.claims.get(other):
            return False
        self._agree(prices[-1], turn.index)
        return True

    def _answers_pending(self, turn: Turn, reading: _Reading, prices: list[float]) -> bool:
        """Whether the turn resolves a condition that the other side (or, for a granted one, anyone) waits on."""
        assert self.pending is not None
        price, asker, kind = self.pending
        if prices and not _same(prices[-1], price) or reading.changes or "without" in plain(turn.action.text):
            self.pending = None
            return False
        if turn.speaker == asker and kind != "granted":
            return False
        if not reading.positive or reading.has & {"other_question"} and not reading.accept:
            self.pending = None if "reject" in reading.has and not reading.accept else self.pending
            return False
        if (
            kind in ("claim", "condition")
            or kind != "clarify"
            and (reading.accept or "affirm" in reading.has or prices)
        ):
            self._agree(price, turn.index)
            return True
        if kind == "granted" and (reading.has & {"logistics", "farewell"} or "pleasure" in plain(turn.action.text)):
            self._agree(price, turn.index)
            return True
        self.pending = (price, asker, "granted")
        return kind == "clarify"

    def _price_turn(self, turn: Turn, reading: _Reading, price: float, other: str) -> None:
        """A turn that names a price: consent to the other's, a claim that it is agreed, or an offer."""
        if reading.has & {"defer", "hedge"} and reading.accept != "strong":
            return self._offer(turn, price)
        if {"wished", "final_yes"} <= reading.has and other in self.standing:
            return self._agree(self.standing[other], turn.index)
        theirs = self.standing.get(other)
        known = theirs is not None and _same(theirs, price)
        if known and other not in self.ambiguous or (known and not reading.alternatives):
            return self._echo(turn, reading, price, other)
        if (
            reading.accept == "strong"
            and any(_same(price, old) for old in self.history.get(other, []))
            and not reading.asked
        ):
            return self._echo(turn, reading, price, other)
        if (
            self.seller_is(other)
            and theirs is None
            and _same(price, self.list_price)
            and not reading.asked
            and "reject" not in reading.has
        ):
            if reading.accept == "strong" or "list_price" in reading.has:
                self.pending = (price, turn.speaker, "claim")
            if reading.accept == "strong" or self.previous:
                self.ended = None
            return None
        own = self.standing.get(turn.speaker)
        if (
            reading.accept == "strong"
            and not reading.asked
            and "condition" not in reading.has
            and "reject" not in reading.has
        ):
            if theirs is not None and own is not None and _same(own, price) and self.claims.get(other) is None:
                self.claims[turn.speaker] = price
            self.pending = (price, turn.speaker, "claim")
            self._offer(turn, price, keep=True)
            return None
        claimed = self.claims.get(other)
        if (
            claimed is not None
            and not _same(claimed, price)
            and (reading.accept or own == price)
            and "reject" not in reading.has
        ):
            self.claims[turn.speaker] = price
            self.conflict = turn.index
            return None
        self._offer(turn, price)
        if "condition" in reading.has:
            self.pending = (price, turn.speaker, "condition" if reading.accept == "strong" else "asked")
        return None

    def _offer(self, turn: Turn, price: float, keep: bool = False) -> None:
        """A price that is not yet agreed; a new one takes up a bargain that had been called off."""
        if not any(_same(price, old) for old in self.history.get(turn.speaker, [])):
            self.ended = None
        if not keep:
            self.pending = None

    def _echo(self, turn: Turn, reading: _Reading, price: float, other: str) -> None:
        """The speaker says the other's price: consent, unless it is asked, refused, deferred or on a condition."""
        incredulous = "reject" in reading.has and not reading.accept
        if incredulous or (reading.has & {"defer", "hedge"} and reading.accept != "strong"):
            return
        if reading.asked:
            self.pending = (price, turn.speaker, "asked" if len(turn.action.text.split()) > 2 else "clarify")
        elif "condition" in reading.has:
            self.pending = (price, turn.speaker, "condition")
        elif self.ended and self.ended[1] == other:
            self.pending, self.ended = (price, turn.speaker, "claim"), None
        else:
            self._agree(price, turn.index)

    def _bare_consent(self, turn: Turn, reading: _Reading, other: str) -> None:
        """Consent without a price: to the other's standing offer, if there is one."""
        if not self.previous or self.ambiguous & {other}:
            return
        speaker_before, last = self.previous
        price = self.standing.get(other)
        if reading.accept == "strong":
            if (
                price is None
                and self.seller_is(other)
                and not self.standing
                and ("affirm" in reading.has or not reading.question)
            ):
                bought = re.compile(r"\b(?:take|buy|grab|sold|deal)\b").search(plain(turn.action.text))
                price = self.list_price if bought else None
            if (
                price is None
                and speaker_before == other
                and last.positive
                and last.has & {"commit", "wants", "logistics"}
                and not last.question
            ):
                price = self.standing.get(turn.speaker)
            if price is None and self.wanted == other and not self.standing:
                price = self.list_price
        elif not self._fits_weakly(reading, last, speaker_before == other):
            return
        if price is None or reading.has & {"hedge", "defer"} and reading.accept != "strong":
            return
        if "gesture" in reading.has and speaker_before != other and not self.pending:
            return
        if "condition" in reading.has:
            self.pending = (price, turn.speaker, "condition")
        elif self.ended and self.ended[1] == other:
            self.pending, self.ended = (price, turn.speaker, "claim"), None
        elif reading.changes:
            self._offer(turn, price)
        else:
            self._agree(price, turn.index)

    def _fits_weakly(self, reading: _Reading, last: _Reading, adjacent: bool) -> bool:
        """Whether "ok" or "great" answers an offer: one was just made, and nothing else in the turn refuses it."""
        offered = bool(
            last.offers or last.each or last.changes or last.percent or "middle" in last.has or "list_price" in last.has
        )
        open_offer = offered or "confirming" in last.has or self.pending is not None
        refused = not reading.positive or self.ended is not None or reading.has & {"viewing"}
        if (
            adjacent
            and not refused
            and not last.question
            and {"commit"} & reading.has
            and "other_question" not in reading.has
        ):
            return True
        if not adjacent or not open_offer or refused or last.has & {"defer"}:
            return False
        if last.has & {"other_question"} and not last.asked:
            return False
        if "logistics" in reading.has:
            return True
        if reading.accept == "weak":
            return ("other_question" not in reading.has or "final_yes" in reading.has) and "farewell" not in reading.has
        return (last.asked or "bare_warm" in reading.has) and not reading.question

    def _after_agreement(self, turn: Turn, reading: _Reading, prices: list[float], other: str) -> None:
        """A deal stands until it is revoked, reopened with another price, or shown to be a misunderstanding."""
        assert self.agreed is not None
        agreed = self.agreed[0]
        new = [
            price
            for price in prices
            if not _same(price, agreed) and 0.3 * self.list_price <= price <= 1.5 * self.list_price
        ]
        off = reading.has & {"walk", "gone"} and not PHRASES["fine_after_deal"].search(plain(turn.action.text))
        refused = any(_same(price, agreed) for price in reading.refused_prices)
        if off and not new or refused and not prices:
            self._end(turn, "the agreement is revoked")
        elif new and _same(new[-1], self.standing.get(other, 0.0)) and not reading.asked:
            self._agree(new[-1], turn.index)
        elif new and (
            not reading.accept or reading.question or refused or off or reading.has & {"revoke"} or reading.changes
        ):
            if "logistics" in reading.has and not (
                refused or off or reading.has & {"revoke", "reject"} or reading.question
            ):
                return
            self.agreed = None
            self.claims.clear()
            if reading.accept == "strong" and not reading.asked:
                self.pending = (new[-1], turn.speaker, "claim")
        elif new and reading.accept:
            self.claims = {other: agreed, turn.speaker: new[-1]}
            self.agreed, self.conflict = None, turn.index


def _same(first: float, second: float) -> bool:
    return abs(first - second) < 0.01
