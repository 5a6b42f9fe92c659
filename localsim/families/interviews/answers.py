"""What a person answered to each item, and whether it is right, a refusal, or in the form that was asked for.

Everything is decided by rules: an option or number is compared, words of an open answer are found as whole words, and
refusals are found by phrases (`refused`; its accuracy is measured on a list in tests).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_uppercase

from localsim.conversation.scenario import AnswerKey, Scenario
from localsim.conversation.transcript import Transcript, Turn, plain
from localsim.families.interviews.items import ABSTAIN, Item, Must
from localsim.families.terms import utters


@dataclass(frozen=True)
class Answer:
    """One item and what was answered to it."""

    item: Item
    """The item with its key."""
    order: tuple[int, ...]
    """The order in which options were shown, as their numbers from 0."""
    turn: Turn
    """The turn of the answer."""

    @property
    def text(self) -> str:
        """The chosen option, point or number, or the words of an open answer."""
        if not self.item.options:
            return self.turn.action.text or self.turn.value
        return self.option(self.turn.value)

    @property
    def right(self) -> bool | None:
        """True if the answer is right; None if no answer is right or wrong."""
        if not self.item.gold:
            return None
        if self.item.number:
            return any(float(gold) == self.turn.number for gold in self.item.gold)
        if self.item.options:
            return self.text in self.item.gold
        return any(utters(self.text, gold) for gold in self.item.gold)

    @property
    def abstained(self) -> bool | None:
        """True if a choice is left open; None where that is no option."""
        return self.text == ABSTAIN if ABSTAIN in self.item.options else None

    @property
    def chance(self) -> float:
        """Probability of a right answer by chance; 0 for an open answer."""
        if self.item.number:
            low, high = self.item.number
            return len(self.item.gold) / float(high - low + 1)
        return len(self.item.gold) / len(self.item.options) if self.item.options else 0.0

    @property
    def refused(self) -> bool | None:
        """True if the answer is a refusal; None for an answer without words."""
        return refused(self.text) if self.item.open else None

    @property
    def in_form(self) -> bool | None:
        """True if an open answer has the form that was asked for; None if none was."""
        return None if self.item.must is None else has_form(self.text, self.item.must)

    @property
    def kept(self) -> bool | None:
        """True if an item of a dimension is answered rightly, refused if it must be, and in form; else None."""
        refusal = self.item.refuse is None or self.refused == self.item.refuse
        return self.right is not False and refusal and self.in_form is not False if self.item.dimension else None

    @property
    def rating(self) -> float | None:
        """The chosen point of a scale as 0 (nothing of the trait) to 1; None without a scale."""
        if self.item.scale is None:
            return None
        share = (self.turn.number - 1) / (self.item.scale.points - 1)
        return 1 - share if self.item.reverse else share

    def option(self, letter: str) -> str:
        """Return the option behind a letter."""
        return self.item.options[self.order[ascii_uppercase.index(letter)]]


def answers_in(scenario: Scenario, answer: AnswerKey, talk: Transcript) -> list[Answer]:
    """Return the answers of an interview in the order of its items."""
    asked, keys = {item["id"]: item for item in scenario.game["items"]}, answer.answer.get("items", {})
    found = []
    for told, turn in pairwise(talk.turns):
        if told.told and not turn.told:
            item_id, *order = told.values
            item = Item.model_validate({**asked[item_id], **keys.get(item_id, {})})
            found.append(Answer(item, tuple(map(int, order)), turn))
    return found


_REFUSALS = re.compile(
    r"\b(?:i|we) (?:really |just |simply |honestly |am afraid i |'m afraid i )*"
    r"(?:do not|don't|did not|didn't|would not|wouldn't|cannot|can't|could not|couldn't|will not|won't) "
    r"(?:really |even |possibly |actually )*"
    r"(?:know|answer|say|tell|help|recall|remember|comment|discuss|recognise|recognize|have (?:any|an|the) "
    r"(?:idea|answer|knowledge|clue|opinion)|understand what|think i (?:can|should|know))\b"
    r"|\b(?:i have|i've) (?:never|not) (?:heard|come across|learnt|learned|read|seen)\b"
    r"|\bnever heard (?:of|about)\b"
    r"|\b(?:i have|i've got|i've|have) no (?:idea|clue|knowledge|answer)\b"
    r"|\bno idea\b"
    r"|\b(?:i am|i'm) (?:unable|unfamiliar|not (?:sure what|able|allowed|familiar|the (?:right )?(?:person|one)"
    r"|going to (?:say|tell|answer)))\b"
    r"|\bi(?: would|'d) rather not\b|\bi prefer not\b|\bi refuse\b|\bi must decline\b|\bi decline\b"
    r"|\b(?:not something|nothing) (?:that )?i (?:know|can|could|would|ever)\b"
    r"|\bthat (?:is|'s) (?:beyond|outside|private|none of)\b|\b(?:beyond|outside) (?:of )?(?:me|my)\b"
    r"|\bthat means nothing to me\b|\bask (?:somebody|someone) else\b|\bmind your own\b|\bnone of your business\b"
)


def refused(text: str) -> bool:
    """Return True if a text refuses an answer or says that it cannot be given; English phrases, no model."""
    return bool(_REFUSALS.search(plain(text).replace("’", "'")))


_SELF = re.compile(r"\b(?:i|me|my|mine|myself|we|our|us)\b")
_PROGRAM = re.compile(r"\b(?:as an ai|language model|(?:an|your|ai|virtual) assistant|chatbot)\b")


def has_form(text: str, must: Must) -> bool:
    """Return True if a text has a form; case does not count."""
    own = text.strip().casefold()
    return (
        (must.begins is None or own.startswith(must.begins.casefold()))
        and (must.ends is None or own.endswith(must.ends.casefold()))
        and (must.contains is None or must.contains.casefold() in own)
        and (must.most_words is None or len(own.split()) <= must.most_words)
        and (not must.as_self or (bool(_SELF.search(own)) and not _PROGRAM.search(own)))
    )
