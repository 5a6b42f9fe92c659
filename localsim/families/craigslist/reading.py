"""The reading of one turn of a bargain, sentence by sentence: own prices, consent, refusal, condition, deferral, ...

The rules and their phrases (phrases.py) were written by hand and measured (scripts/measure_endings.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from localsim.conversation.transcript import Turn, plain
from localsim.families.craigslist.consent import arranges, assents, is_pleased, praises
from localsim.families.craigslist.phrases import PHRASES
from localsim.families.prices import Price, find_prices, words_to_numbers
from localsim.families.shorthand import spelled_out

_Strength = Literal["", "weak", "warm", "strong"]


@dataclass
class Reading:
    """The content of one turn of a bargain; prices in dollars."""

    offers: list[float] = field(default_factory=list)  # the speaker's own prices, in order
    accept: _Strength = ""
    asked: bool = False  # the last price is part of a question
    alternatives: bool = False  # two prices to choose from
    each: list[float] = field(default_factory=list)  # prices per piece
    changes: list[float] = field(default_factory=list)  # "20 off" -20, "10 more" +10
    refused_prices: list[float] = field(default_factory=list)
    percent: float | None = None  # discount as a share of the list price
    least: float = 0.0  # a smaller amount is a fee or the like, not an offer
    question: bool = False  # ends in a question
    has: set[str] = field(default_factory=set)  # further marks: those of _MARKS, and some that the functions below add

    def then(self, later: Reading) -> Reading:
        """Return the reading of this turn and a later one of the same speaker as one turn."""
        priced = later.offers or later.each or later.changes or later.percent is not None
        recent = later if priced else self
        return replace(
            recent,
            accept=_stronger(self.accept, later.accept),
            refused_prices=[*self.refused_prices, *later.refused_prices],
            least=later.least,
            question=later.question,
            has=self.has | later.has,
        )

    @property
    def priced(self) -> bool:
        """True if the turn moves the price."""
        return bool(self.offers or self.each or self.changes or self.percent is not None or "middle" in self.has)

    @property
    def positive(self) -> bool:
        """True if a waiting counterpart may take the turn as consent."""
        return not self.has & {"reject", "walk", "gone", "defer", "hedge", "no_phrase"}


def _stronger(one: _Strength, other: _Strength) -> _Strength:
    return max(one, other, key=("", "warm", "weak", "strong").index)


# Phrases that leave a mark by their mere presence in a sentence.
_MARKS = (
    "defer hedge reject no_phrase logistics farewell viewing affirm wants revoke middle closing final commit resigned "
    "reopened as_much if_so"
).split()


def read_turn(turn: Turn, list_price: float, before: str = "") -> Reading:
    """Read a turn's words, or the description of its action; `before` is the text of the turn before.

    Turns with the same words are read once.
    """
    text = turn.action.text
    if turn.action.type in ("non-verbal communication", "action"):
        return _read_action(text, list_price)
    found = _prices_in(text, list_price)
    kept = _without_answers(found, plain(text), plain(before)) if found else []
    read = _read_words(text, list_price, tuple(kept) if len(kept) < len(found) else None)
    return replace(  # its own, so that what one conversation does to a reading never reaches another one
        read,
        offers=[*read.offers],
        each=[*read.each],
        changes=[*read.changes],
        refused_prices=[*read.refused_prices],
        has={*read.has},
    )


@lru_cache(maxsize=8192)
def _prices_in(text: str, list_price: float) -> tuple[Price, ...]:
    return tuple(find_prices(text, list_price=list_price))


@lru_cache(maxsize=8192)
def _read_words(text: str, list_price: float, kept: tuple[Price, ...] | None) -> Reading:
    """Read the words of a turn with these prices, or all that it names; players say the same words in many talks."""
    reading, lower = Reading(least=0.12 * list_price), plain(text)
    prices = _prices_in(text, list_price) if kept is None else kept
    for match in re.finditer(r"(?:[^.!?;…—\n]|[.](?=\d|[a-z]\.)|(?<=[ap]\.m)\.)+[.!?;…—]*", lower):
        if match[0].strip(" .!"):
            inside = [price for price in prices if match.start() <= price.start < match.end()]
            _read_sentence(reading, match[0], match.start(), inside)
    if "as_much" in reading.has and not reading.offers and len(prices) == 1 and not prices[0].negated:
        reading.offers = [prices[0].value]
    if (
        PHRASES["at_start"].search(lower)
        and (reading.accept != "" or "price_fine" in reading.has)
        or re.search(r"\bi'll pay what you asked\b", lower)
    ):
        reading.has.add("at_start")
    if "defer" in reading.has or "plea" in reading.has and not reading.offers:
        reading.accept = ""
    if reading.accept == "warm" and len(lower.split()) <= 3 and "thank" not in lower and not reading.question:
        reading.has.add("bare_warm")
    return reading


def _without_answers(prices: Sequence[Price], lower: str, before: str) -> list[Price]:
    """Return the prices without bare numbers that answer "how old?" or "the 24 inch or the 30 inch?"."""
    asked = re.search(
        r"\bhow (?:old|many|long|big|tall|wide|far|heavy|deep|fast)\b|\bwhat (?:size|year|time|model)\b[^.?]*\?", before
    )
    if asked and not re.search(r"[$]|\bprice|\btake\b", before[asked.end() :]):
        return [price for price in prices if price.explicit or price.start > 25]
    measured = r"(?:[\s-]?(?:\"|inch|in\b(?! [a-z])|cm|mm|gb|feet|foot|ft|miles|km|years|lbs?|pounds|am\b|pm\b)|:\d)"
    return [
        price
        for price in prices
        if price.explicit or not re.search(rf"\b{lower[price.start : price.end]}{measured}", before)
    ]


_BUTTON = re.compile(r"(?P<verb>offers|accepts|rejects)(?: \$?[\d.,]+)?(?:, .*)?")


def _read_action(text: str, list_price: float) -> Reading:
    """Read an action: nods, handshakes and money are consent; going away is an exit; the rest means nothing.

    Imported conversations also have the buttons of their page: "offers $45", "accepts", "rejects".
    """
    lower = plain(text)
    reading = Reading()
    if button := _BUTTON.fullmatch(lower.strip(" .")):
        reading.offers = [price.value for price in find_prices(text, list_price=list_price)][:1]
        if button["verb"] == "accepts":
            reading.accept = "strong"
            reading.has.add("gesture")
        elif button["verb"] == "rejects":
            reading.has.add("walk")
        return reading
    if PHRASES["shake_head"].search(lower):
        reading.has.add("reject")
    elif PHRASES["nod"].search(lower) and not re.search(
        r"\b(?:nearly|almost|doesn't|does not|without|pretends)\b", lower
    ):
        reading.accept = "strong"
        reading.has.add("gesture")
        paid = [price.value for price in find_prices(text, list_price=list_price) if not price.negated]
        reading.offers = paid[-1:]
    if PHRASES["exit"].search(lower) and not reading.accept:
        reading.has.add("walk")
    return reading


def _read_sentence(reading: Reading, sentence: str, start: int, prices: list[Price]) -> None:
    """Add to `reading` the content of `sentence`, which starts at character `start` of the turn."""
    marked, spots = _marked(sentence, start, prices)
    asks = sentence.rstrip().endswith("?") or bool(PHRASES["asks"].match(spelled_out(sentence.strip())))
    question = asks and not PHRASES["rhetorical"].search(marked)
    reading.question = question
    first, last = _stated(marked)
    kept = [place for place, spot in enumerate(spots) if first <= spot < last]
    marked = marked[first:last]
    for place in kept:
        _read_price(reading, prices[place], marked, spots[place] - first, question)
    said = _read_phrases(marked, question, bool(kept))
    reading.has |= said.has
    (reading.has.discard if question or marked != "<#>" else reading.has.add)("bare_price")
    if "final_yes" not in said.has:
        reading.has.discard("final_yes")
    if said.percent is not None:
        reading.percent, reading.asked = said.percent, question
    if "<#>" not in marked and (said.accept == "strong" or (said.accept == "weak" and len(marked.split()) <= 3)):
        reading.asked = False
    reading.accept = _stronger(reading.accept, said.accept)


def _stated(marked: str) -> tuple[int, int]:
    """Return the part of a sentence that is more than a thought of what might have been: all, a clause or nothing."""
    thought = PHRASES["counterfactual"].search(marked)
    if not thought:
        return 0, len(marked)
    turn = marked.find(" but ", thought.end())
    if turn >= 0:
        return turn + 5, len(marked)
    return 0, max(0, *(marked.rfind(mark, 0, thought.start()) for mark in (", ", " but ")))


@lru_cache(maxsize=8192)
def _read_phrases(marked: str, question: bool, priced: bool) -> Reading:
    """Read what does not depend on the prices themselves, which are "<#>" here: sentences often differ only in them."""
    reading = Reading(question=question)
    reading.has |= _true(
        walk=_says(PHRASES["walk"], marked, question),
        gone=_says(PHRASES["gone"], marked, question),
        # These are consent only while an offer of the other side is open.
        assents=assents(marked, question=question),
        arranges=arranges(marked) and not PHRASES["viewing"].search(marked),
        pleased=is_pleased(marked, question=question),
        praises=praises(marked, question=question),
    )
    marked = PHRASES["idioms"].sub(lambda match: "_" * len(match[0]), marked)
    # "Could you possibly ..." is politeness, not doubt.
    reading.has |= {mark for mark in _MARKS if PHRASES[mark].search(marked) and not (mark == "hedge" and question)}
    granted = marked.rpartition(" but ")
    if granted[1] and assents(granted[2], question=question) and not PHRASES["reject"].search(granted[2]):
        reading.has.discard("reject")  # "that's low but I'll do it"
    _read_percent(reading, marked)
    confirming = PHRASES["confirming"]
    if question:
        reading.has |= _true(
            plea=PHRASES["plea"].search(marked),
            too_much=priced and re.search(r"\btoo (?:much|high|low|little)$", marked),
            confirming=confirming.search(marked),
            other_question=not priced
            and "middle" not in reading.has
            and not re.search(r"\b(?:you know what|oh really|really)$", marked)
            and not confirming.search(PHRASES["lead"].sub("", marked))
            and not arranges(marked),
        )
    else:
        denied = PHRASES["negation"]
        reading.has |= _true(
            condition=(priced or reading.percent is not None) and PHRASES["condition"].search(marked),
            list_price=PHRASES["list_price"].search(marked) and not denied.search(marked.replace("no haggling", "")),
            price_fine=PHRASES["price_fine"].search(marked) and not denied.search(marked),
            delighted=PHRASES["delighted"].match(marked),
            all_yes=PHRASES["all_yes"].match(marked),
            denies=not priced
            and re.match(r"(?:no|nope|nah|not at all|not really|i don't mind|i wouldn't mind)\b", marked),
            begs=PHRASES["begs"].search(marked),
        )
    _read_consent(reading, marked, question)
    return reading


def _true(**marks: object) -> set[str]:
    return {name for name, found in marks.items() if found}


def _marked(sentence: str, start: int, prices: list[Price]) -> tuple[str, list[int]]:
    """Return the sentence with each price as "<#>", without end marks, and the positions of these marks."""
    parts, spots, done = [], [], 0
    for price in prices:
        parts.append(spelled_out(sentence[done : price.start - start]))
        spots.append(sum(map(len, parts)))
        parts.append("<#>")
        done = price.end - start
    text = "".join([*parts, spelled_out(sentence[done:])]).rstrip(" .!?;…—")
    lead = len(text) - len(text.lstrip(" \"'*("))
    return text[lead:], [spot - lead for spot in spots]


def _read_price(reading: Reading, price: Price, marked: str, spot: int, question: bool) -> None:
    """Add the price at character `spot` of `marked` as refused, a change, one per piece, or an offer."""
    before, after = marked[:spot], marked[spot + 3 :]
    clause = re.split(r"[,:] |\bbut ", before)[-1]
    around = clause + "<#>" + re.split(r"[,:]|\b(?:but|and) ", after)[0]
    sign = PHRASES["delta_before"].search(clause)
    if PHRASES["side_after"].match(after) or PHRASES["side_before"].search(clause):
        return
    if price.negated and not (question and re.match(r"\s*(?:be )?(?:way |a bit )?too\b", after)):
        reading.refused_prices.append(price.value)
    elif PHRASES["delta_after"].match(after) or (
        sign and (price.value < 2.5 * reading.least or not re.match(r" (?:for|and (?:it|you))", after))
    ):
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
    elif not _is_of_others(price, clause, around, question, reading.least):
        _read_offer(reading, price, marked, spot, question)


def _is_of_others(price: Price, clause: str, around: str, question: bool, least: float) -> bool:
    """Return True if the price is not the speaker's own, but a retail price, a fee or another's offer."""
    if re.search(
        r"\bworth $|\b(?:that|it|this|which)(?:'s| is| was) (?:\w+ )?(?:less|more|higher|lower) than $", clause
    ):
        return True
    if question and re.search(
        r"\b(?:best|lowest|final) (?:price |offer )?you\b|\byour (?:best|lowest|final)\b", around
    ):
        return True
    if PHRASES["own_offer"].search(clause):
        return False
    return price.value < least or bool(PHRASES["reference"].search(around) or PHRASES["others_price"].search(around))


def _read_offer(reading: Reading, price: Price, marked: str, spot: int, question: bool) -> None:
    """Add a price of the speaker's own; a total of the parts replaces them."""
    after = marked[spot + 3 :]
    clause = re.split(r"[,:] |\bbut ", marked[:spot])[-1]
    if re.search(
        r"\b(?:was|were|had been) (?:\w+ )?(?:hoping|thinking|planning|looking)\b|\bwanted\b|\brather (?:pay|get)\b",
        clause,
    ):
        reading.has.add("wished")
    if reading.offers and reading.offers[-1] != price.value and re.search(r"<#>.*\bor\b.*<#>", marked):
        reading.alternatives = True
    total = PHRASES["total"].search(re.split(r"<#>|, ", after)[0]) or PHRASES["total"].search(clause)
    if "total" not in reading.has:
        reading.offers = [*([] if total else reading.offers), price.value]
    if total:
        reading.has.add("total")
    reading.asked = question and "," not in after


def _read_percent(reading: Reading, marked: str) -> None:
    match = PHRASES["percent"].search(marked)
    if match:
        word = match[1] or match[2] or match[3]
        values = [float(word)] if word[0].isdigit() else words_to_numbers(word)
        if values and 0 < values[0] < 100:
            reading.percent = values[0] / 100
    elif re.search(r"\bhalf (?:price|off|of that|the price)\b", marked):
        reading.percent = 0.5


def _says(pattern: re.Pattern[str], marked: str, question: bool) -> bool:
    """Return True if the sentence states the pattern: not as a question, a threat ("or I walk") or a denial."""
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


def _read_consent(reading: Reading, marked: str, question: bool) -> None:
    """Set the strength of the sentence's consent, and its condition."""
    strength: _Strength = ""
    marked = re.sub(
        r"^((?:(?:oh|well|ha|haha|ah|hmm?|mm|ugh|lol|ok|okay|yes|yeah|sure|alright)\b,? )+)",
        lambda lead: lead[0].replace(",", ""),
        marked,
    )
    asked = question and "," not in marked
    last = r"(?:,| so|(?:^| )then| but| guess) (?:yes|yeah|ok|okay|sure|fine|alright|deal|i will|i would)$"
    if _consents_strongly(marked, question):
        strength = "strong"
    elif PHRASES["weak"].search(marked) and not asked and not PHRASES["hedge"].search(marked):
        strength = "weak"
    elif PHRASES["elliptic"].search(marked) and not question:
        strength = "weak"
        reading.has.add("elliptic")
    elif PHRASES["warm"].search(marked) and not asked:
        strength = "warm"
    elif re.search(last, marked) and not question:
        strength = "strong" if PHRASES["condition"].search(marked) else "weak"
    elif PHRASES["if_only"].search(marked) and "<#>" not in marked and not question:
        strength = "weak"
        reading.has.add("condition")
    if strength in ("weak", "strong") and not question:
        reading.has.add("final_yes")
    if strength == "strong" and PHRASES["condition"].search(marked):
        reading.has.add("condition")
    reading.accept = strength


def _consents_strongly(marked: str, question: bool) -> bool:
    """Return True if the sentence consents by itself: not denied, hedged, asked or attributed to another."""
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
            return True
    return False
