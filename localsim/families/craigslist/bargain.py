"""The state of a bargain, turn by turn: standing offers, consent, refusals, agreements and their revocation.

A turn answers the other side's messages in a row, taken as one. Bare consent means the standing offer that is open.
Consent that is less than explicit ("ok", thanks, an appointment) makes a tentative agreement: a new price reopens it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from localsim.conversation.transcript import Turn, plain
from localsim.families.craigslist.phrases import PHRASES
from localsim.families.craigslist.reading import Reading
from localsim.families.prices import words_to_numbers

_GRANTING = {
    *("affirm", "assents", "arranges", "pleased", "praises", "logistics", "commit", "farewell", "closing", "final_yes")
}
"""Marks of a turn that lets stand what the other side claims or asks for."""


class Bargain:
    """The state of a bargain after some turns: offers, agreement, conflict. Prices in dollars, sides by name."""

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
        self.previous: tuple[str, Reading] | None = None
        self.runs: dict[str, Reading] = {}  # each side's latest messages in a row, as one turn
        self.last: str | None = None
        self.open: set[str] = set()  # sides whose standing offer was neither refused nor countered since
        self.tentative = False  # the agreement rests on "ok", thanks or an appointment: a new price reopens it
        self.named = list_price  # the price from which "20 off" counts: the last that the seller named as a number
        self.deferred = -9  # turn in which the decision was last put off
        self.sought: str | None = None  # who asked for something beside the price since the other side's offer

    def take(self, turn: Turn, reading: Reading) -> None:
        """Advance by one turn."""
        if turn.action.type == "none":
            return
        speaker, other = turn.speaker, self._other(turn.speaker)
        self._face(speaker, other)
        self._read_count(plain(turn.action.text))
        reading = self._answering_doubt(reading, other)
        prices = self.own_offers(speaker, reading)
        if reading.has & {"defer", "reopened"}:
            self.deferred = turn.index
        if "elliptic" in reading.has and reading.accept == "weak" and not (self.previous and self.previous[1].question):
            reading = replace(reading, accept="")
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
            self._remember(speaker, other, reading, prices)

    def _face(self, speaker: str, other: str) -> None:
        """Let `previous` be what the speaker answers: the other side's run, if the own one has not moved the price."""
        if self.last is None:
            return
        own = self.runs.get(speaker)
        answers = self.last != speaker or not own or not (own.priced or own.question)
        name = other if answers and other in self.runs else self.last
        self.previous = (name, self.runs[name])

    def _answering_doubt(self, reading: Reading, other: str) -> Reading:
        """Return the reading of an answer to "is 600 too low?", where "no" consents and "yes" does not."""
        if self.previous and self.previous[0] == other and "too_much" in self.previous[1].has:
            if "denies" in reading.has:
                return replace(reading, accept="weak", has=reading.has - {"reject"} | {"final_yes"})
            if reading.accept == "weak":
                return replace(reading, accept="", has=reading.has - {"assents", "affirm", "final_yes", "all_yes"})
        return reading

    def _remember(self, speaker: str, other: str, reading: Reading, prices: list[float]) -> None:
        """Note a turn for those that answer it."""
        continues = self.last == speaker and speaker in self.runs
        self.runs[speaker] = self.runs[speaker].then(reading) if continues else reading
        self.last = speaker
        self.previous = (speaker, self.runs[speaker])
        if prices:
            self.open = {speaker}
            self.sought = None
        elif not reading.positive and not reading.accept:
            heard = self.runs.get(other)
            if not (heard and heard.question and not heard.asked and not heard.priced):
                self.open.discard(other)
        elif reading.positive and not reading.has & {"plea", "begs"} and self.open == {other}:
            self.sought = speaker

    def own_offers(self, speaker: str, reading: Reading) -> list[float]:
        """Return the speaker's own prices, with middles, percentages, changes and prices per piece as totals."""
        standing, other = self.standing, self._other(speaker)
        if reading.offers:
            return reading.offers
        if reading.each:
            return [self._total(price) for price in reading.each]
        if self.previous and self.previous[0] == other and other in standing:
            last = self.previous[1]
            if "middle" in reading.has & last.has or (reading.changes and reading.changes == last.changes):
                return [standing[other]]
        if "middle" in reading.has and other in standing and speaker in standing:
            return [(standing[speaker] + standing[other]) / 2]
        if "middle" in reading.has and len(standing) == 1 and next(iter(standing)) != self.seller:
            return [(next(iter(standing.values())) + self.list_price) / 2]
        if reading.percent is not None:
            return [self.list_price * (1 - reading.percent)]
        if reading.changes and (reading.accept != "strong" or "if_so" in reading.has):
            amount = reading.changes[-1]
            base = standing.get(other if (amount > 0) == (speaker == self.seller) else speaker)
            if amount < 0:
                base = self.named
            if base is None:
                base = standing.get(speaker, standing.get(other))
            return [base + amount] if base is not None and base + amount > 0 else []
        if "at_start" in reading.has and self.history.get(other):
            return [self.history[other][0]]
        if "price_fine" in reading.has and speaker != self.seller:
            return [standing.get(other, self.list_price)]
        listed = "list_price" in reading.has and "reject" not in reading.has
        return [self.list_price] if listed and (reading.accept or speaker != self.seller) else []

    def _other(self, name: str) -> str:
        known = (*self.standing, *([self.previous[0]] if self.previous else []), self.seller)
        return next((side for side in known if side != name), "")

    def _read_count(self, lower: str) -> None:
        for match in PHRASES["count"].finditer(lower):
            word = match[1] or match[3]
            count = 2 if match[2] else (int(word) if word.isdigit() else int(words_to_numbers(word)[0]))
            if 2 <= count <= 24 and (self.count is None or match[1] or match[2]):
                self.count = count

    def _total(self, price: float) -> float:
        """Return a price per piece times the count said so far, if that fits the list price better."""
        if self.count and 0.3 * self.list_price <= price * self.count <= 1.6 * self.list_price:
            return price * self.count
        return price

    def _stand(self, speaker: str, prices: list[float], reading: Reading) -> None:
        self.standing[speaker] = prices[-1]
        if speaker == self.seller and reading.offers:
            self.named = prices[-1]
        self.history.setdefault(speaker, []).extend(prices)
        (self.ambiguous.add if reading.alternatives else self.ambiguous.discard)(speaker)

    def _agree(self, price: float, turn: int, *, tentative: bool = False) -> None:
        self.tentative = tentative
        self.agreed, self.pending, self.ended, self.conflict = (price, turn), None, None, None

    def _before_agreement(self, turn: Turn, reading: Reading, prices: list[float], other: str) -> None:
        if self._settles_conflict(turn, prices, other):
            return
        if reading.has & {"gone", "walk"} or (reading.has & {"no_phrase"} and not prices):
            self._end(turn, "the bargain is called off")
            return
        if self.pending and self._answers_pending(turn, reading, prices):
            return
        if prices:
            self._price_turn(turn, reading, prices[-1], other)
            return
        if reading.accept or reading.has & {"assents", "arranges", "pleased", "praises"}:
            self._bare_consent(turn, reading, other)
        if not self.agreed and self._resigns(reading, other):
            self._end(turn, "the refusal is taken")
        if not self.agreed and self.previous:
            self._tacit(turn, reading, other)
        late = turn.index > max(0, self.deferred + 5)
        if not self.agreed and late and reading.has & {"farewell", "closing"}:
            self._end(turn, "a farewell without agreement")

    def _resigns(self, reading: Reading, other: str) -> bool:
        """Return True if the turn takes a refusal, in a few words, while no offer is open."""
        last = self.runs.get(other)
        refused = (
            last is not None and "reject" in last.has and not last.priced and not last.accept and not last.question
        )
        if last is not None and "resigned" in reading.has and last.has & {"reject", "final"}:
            return reading.accept != "strong" and reading.positive and not reading.question
        taken = reading.accept in ("weak", "warm") or "pleased" in reading.has
        return refused and taken and not self.open and not reading.question and reading.positive

    def _tacit(self, turn: Turn, reading: Reading, other: str) -> None:
        """Read unusual words of consent from the thanks that the other side answers with ("You win." "Thanks!").

        A refusal of a price that was called final also ends the bargain.
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

    def _answers_pending(self, turn: Turn, reading: Reading, prices: list[float]) -> bool:
        """Return True if the turn resolves a condition that the other side, or anyone if granted, waits for."""
        assert self.pending is not None
        price, asker, kind = self.pending
        if (
            prices
            and not _same(prices[-1], price)
            or "reopened" in reading.has
            or reading.changes
            or "without" in plain(turn.action.text)
        ):
            self.pending = None
            return False
        if turn.speaker == asker and kind != "granted":
            return False
        if not reading.positive or reading.has & {"other_question"} and not reading.accept:
            self.pending = None if "reject" in reading.has and not reading.accept else self.pending
            return False
        if (
            kind in ("claim", "condition")
            and (prices or reading.accept or reading.has & _GRANTING)
            or kind != "clarify"
            and (reading.accept or reading.has & {"affirm", "commit"} or prices)
        ):
            self._agree(price, turn.index)
            return True
        if kind == "granted" and (reading.has & {"logistics", "farewell"} or "pleasure" in plain(turn.action.text)):
            self._agree(price, turn.index)
            return True
        self.pending = (price, asker, "granted")
        return kind == "clarify"

    def _price_turn(self, turn: Turn, reading: Reading, price: float, other: str) -> None:
        """Handle a turn that names a price: consent to the other's, a claim that it is agreed, or an offer."""
        if reading.has & {"defer", "hedge"} and reading.accept != "strong":
            self._offer(turn, price)
        elif {"wished", "final_yes"} <= reading.has and other in self.standing:
            self._agree(self.standing[other], turn.index)
        elif self._is_theirs(reading, price, other):
            self._echo(turn, reading, price, other)
        elif self._is_asking_price(reading, price, other):
            if self.previous and self.previous[1].has & {"final", "reject"} and not self.previous[1].question:
                self._agree(price, turn.index)
            elif reading.accept == "strong" or "list_price" in reading.has:
                self.pending = (price, turn.speaker, "claim")
            if reading.accept == "strong" or self.previous:
                self.ended = None
        elif reading.accept == "strong" and not reading.asked and not reading.has & {"condition", "reject"}:
            self._claim(turn, price, other)
        elif self._contradicts(turn.speaker, reading, price, other):
            self.claims[turn.speaker] = price
            self.conflict = turn.index
        else:
            self._offer(turn, price)
            if "condition" in reading.has:
                self.pending = (price, turn.speaker, "condition" if reading.accept == "strong" else "asked")

    def _is_theirs(self, reading: Reading, price: float, other: str) -> bool:
        """Return True if the price is the other's standing offer, or an earlier one that the turn accepts."""
        theirs = self.standing.get(other)
        if theirs is not None and _same(theirs, price) and not (other in self.ambiguous and reading.alternatives):
            return True
        earlier = any(_same(price, old) for old in self.history.get(other, []))
        return earlier and (reading.accept == "strong" or "at_start" in reading.has) and not reading.asked

    def _is_asking_price(self, reading: Reading, price: float, other: str) -> bool:
        """Return True if the price is the listed one, stated to a seller who has named none."""
        silent_seller = other == self.seller and other not in self.standing
        return silent_seller and _same(price, self.list_price) and not reading.asked and "reject" not in reading.has

    def _claim(self, turn: Turn, price: float, other: str) -> None:
        """Handle a claim that a price is agreed that the other side does not offer."""
        own = self.standing.get(turn.speaker)
        if other in self.standing and own is not None and _same(own, price) and other not in self.claims:
            self.claims[turn.speaker] = price
        self._offer(turn, price)
        self.pending = (price, turn.speaker, "claim")

    def _contradicts(self, speaker: str, reading: Reading, price: float, other: str) -> bool:
        """Return True if the speaker insists on another price than the one that the other claims to be agreed."""
        claimed = self.claims.get(other)
        if claimed is None or _same(claimed, price) or "reject" in reading.has:
            return False
        return bool(reading.accept) or self.standing.get(speaker) == price

    def _offer(self, turn: Turn, price: float) -> None:
        """Record an offer; a new one continues a bargain that had been called off."""
        if not any(_same(price, old) for old in self.history.get(turn.speaker, [])):
            self.ended = None
        self.pending = None

    def _echo(self, turn: Turn, reading: Reading, price: float, other: str) -> None:
        """Handle a repeat of the other's price: consent, unless it is asked, refused, deferred or conditional."""
        incredulous = "reject" in reading.has and not reading.accept and "bare_price" not in reading.has
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

    def _bare_consent(self, turn: Turn, reading: Reading, other: str) -> None:
        """Handle consent without a price: it means the other's standing offer, if there is one."""
        if not self.previous or self.ambiguous & {other}:
            return
        speaker_before, last = self.previous
        price = self.standing.get(other)
        granting = self.sought == other and self.open == {turn.speaker}
        if granting and reading.accept != "strong":
            return
        if reading.accept == "strong":
            if granting and not reading.question:
                price = self.standing[turn.speaker]
            if (
                price is None
                and other == self.seller
                and not self.standing
                and ("affirm" in reading.has or not reading.question)
            ):
                bought = re.search(r"\b(?:take|buy|grab|sold|deal|rent|in)\b", plain(turn.action.text))
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
        elif not self._fits_weakly(turn.speaker, reading, last, speaker_before == other):
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
            self._agree(price, turn.index, tentative=reading.accept != "strong")

    def _fits_weakly(self, speaker: str, reading: Reading, last: Reading, adjacent: bool) -> bool:
        """Return True if "ok" or "great" accepts an offer: one was just made, and the turn does not refuse it."""
        offered = bool(
            last.offers or last.each or last.changes or last.percent or "middle" in last.has or "list_price" in last.has
        )
        stands = speaker not in self.open and bool(self.open)
        open_offer = offered or last.has & {"confirming"} or stands and "begs" in last.has or self.pending is not None
        refused = not reading.positive or self.ended is not None or reading.has & {"viewing", "plea", "resigned"}
        if (
            adjacent
            and not refused
            and not last.question
            and {"commit"} & reading.has
            and "other_question" not in reading.has
        ):
            return True
        if not adjacent or refused or last.has & {"defer"} or "closing" in reading.has:
            return False
        if (open_offer or stands) and "arranges" in reading.has:
            return True
        if not open_offer or last.has & {"other_question"} and not last.asked:
            return False
        if "all_yes" in reading.has:
            return True
        if reading.has & {"logistics", "pleased"} or "praises" in reading.has and speaker != self.seller:
            return "other_question" not in reading.has and "farewell" not in reading.has
        if reading.accept == "weak" or "assents" in reading.has:
            return ("other_question" not in reading.has or "final_yes" in reading.has) and "farewell" not in reading.has
        warm = reading.accept and (last.asked or "bare_warm" in reading.has) or reading.has & {"delighted"}
        return bool(warm) and not reading.question and not reading.has & {"farewell", "other_question"}

    def _after_agreement(self, turn: Turn, reading: Reading, prices: list[float], other: str) -> None:
        """Handle a turn after a deal, which lasts until it is revoked, reopened or shown to be a misunderstanding."""
        assert self.agreed is not None
        agreed = self.agreed[0]
        new = [
            price
            for price in prices
            if not _same(price, agreed) and 0.3 * self.list_price <= price <= 1.5 * self.list_price
        ]
        off = reading.has & {"walk", "gone"} and not PHRASES["fine_after_deal"].search(plain(turn.action.text))
        refused = any(_same(price, agreed) for price in reading.refused_prices)
        if "reopened" in reading.has and not prices and reading.accept != "strong":
            self.agreed, self.open = None, set()
        elif new and self.tentative and not off:
            self.agreed = None
            self._before_agreement(turn, reading, prices, other)
        elif off and not new or refused and not prices:
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
