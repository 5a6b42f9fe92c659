"""A fact in the person of who speaks: "Kwame has pawned his guitar." is "I have pawned my guitar." in Kwame's mouth.

Embeddings and the reader compare what was said with what could have been said. The rules are those of English; in other
languages hardly more than the names is replaced.
"""

from __future__ import annotations

import re
from functools import lru_cache

from localsim.leakage.wording import OTHERS, REMEMBERED

_OWNER = "\x00"
_TITLES = frozenset(
    """Mr Mrs Ms Miss Dr Prof Professor Councillor Coach Constable Sergeant Inspector Judge Aunt Uncle Herr Frau Madame
    Monsieur Sir Lady""".split()
)
_TITLE = rf"(?:\b(?:{'|'.join(sorted(_TITLES))})\.? )?"
_WORD = re.compile(rf"{_OWNER}(?:['’]s?(?!\w))?|[^\W\d_]+(?:['’-][^\W\d_]+)*")
_FORMS = {
    True: {"subject": "I", "object": "me", "possessive": "my", "alone": "mine", "reflexive": "myself"},
    False: {"subject": "you", "object": "you", "possessive": "your", "alone": "yours", "reflexive": "yourself"},
}
_PRONOUNS = {
    "he": ("m", "subject"), "him": ("m", "object"), "his": ("m", "possessive"), "himself": ("m", "reflexive"),
    "she": ("f", "subject"), "her": ("f", "her"), "hers": ("f", "alone"), "herself": ("f", "reflexive"),
}  # fmt: skip
_FEMALE = frozenset(
    "mother mum mom sister aunt daughter wife ex-wife girlfriend ex-girlfriend niece Mrs Ms Miss".split()
)
_MALE = frozenset("father dad brother uncle son husband ex-husband boyfriend ex-boyfriend nephew Mr".split())
_NOBODY = frozenset(
    """them their theirs people everybody somebody someone anybody anyone nobody they January February March April May
    June July August September October November December Monday Tuesday Wednesday Thursday Friday Saturday
    Sunday Christmas Easter English German French Spanish Italian Dutch""".split()
)
_BEFORE_SUBJECT = frozenset(
    """and but or so that because if when while which whom what where why how as since before after until though
    although than whether""".split()
)
_ARTICLES = frozenset("the a an my his her their its this that these those some no another all two three".split())
_AFTER_OBJECT = _ARTICLES | frozenset(
    """and or but to in on at for from with by about of into out up down over when if as because before after who what
    how where he she they it""".split()
)
_AFTER_VERB = _ARTICLES | frozenset("there not up out off away in on at for from with by about of into to".split())
_ADVERBS = frozenset(
    """never also once still often always just already now soon even both not only no longer sometimes perhaps
    almost""".split()
)
_MODALS = frozenset("is was has had does did will would can could may might must shall should".split())
_IRREGULAR = {
    "is": ("am", "are"), "isn't": ("am not", "aren't"), "was": ("was", "were"), "wasn't": ("wasn't", "weren't"),
    "has": ("have", "have"), "hasn't": ("haven't", "haven't"), "does": ("do", "do"), "doesn't": ("don't", "don't"),
}  # fmt: skip


@lru_cache(maxsize=REMEMBERED)
def in_person(fact: str, owner: str, speaker: str) -> str:
    """The fact as `speaker` would say it: of itself (I, my) or to its owner (you, your).

    `owner` may be a whole name or a part of it; the speaker's name in somebody else's fact stays.
    """
    parts = [part for part in owner.split() if part.rstrip(".") not in _TITLES] or [owner]
    surname = r"(?: [A-Z][\w-]+)?" if len(parts) == 1 else ""
    for name in sorted({" ".join(parts), parts[0], parts[-1]}, key=len, reverse=True):
        fact = re.sub(rf"{_TITLE}\b{re.escape(name)}\b{surname}", _OWNER, fact)
    told = _WORD.sub(_Teller(first=owner == speaker).word, fact)
    return re.sub(r"^I and (\w+)", r"\1 and I", told)


def spoken(fact: str, owner: str, speaker: str) -> str:
    """The fact as a sentence that `speaker` could say in so many words."""
    text = in_person(fact, owner, speaker)
    return text[:1].upper() + text[1:]


class _Teller:
    """Goes through a fact word by word, from left to right."""

    def __init__(self, *, first: bool) -> None:
        self.first = first
        self.previous = ""
        self.named: set[str] = set()
        """Genders that others who were named may have: a pronoun of another one means the owner."""
        self.subject = False
        """The owner is the subject of the clause."""
        self.awaits_verb = False

    def word(self, found: re.Match[str]) -> str:
        """What stands for a word."""
        word, before, after = found[0], found.string[: found.start()], found.string[found.end() :]
        next_word = re.match(r"\s*([^\s.,;:!?]*)", after)
        following = next_word[1].lower() if next_word else ""
        role = self._role(word, before, following, after)
        told = _FORMS[self.first][role] if role else self._other(word, before, following)
        if role in ("subject", "object"):
            self.subject = self.awaits_verb = role == "subject"
        self.previous = word.lower()
        return told

    def _role(self, word: str, before: str, following: str, after: str) -> str:
        """How a word that means the owner stands in its sentence; '' for any other word."""
        if word.startswith(_OWNER):
            return "possessive" if len(word) > 1 else self._name_role(before, following)
        gender, role = _PRONOUNS.get(word.lower(), ("", ""))
        if not role or gender in self.named:
            return ""
        if role == "her":
            counted = following[:1].isdigit() and self.previous in ("cost", "gave", "owes", "pays", "lent")
            role = "object" if counted or not following or following in _AFTER_OBJECT else "possessive"
        ends = not after.strip() or after.lstrip()[0] in ".,;!?"
        return "alone" if role == "possessive" and ends else role

    def _name_role(self, before: str, following: str) -> str:
        opens = not before.strip() or before.rstrip()[-1] in ".!?;:,"
        subject = opens or following in _MODALS or (self.previous in _BEFORE_SUBJECT and following)
        return "subject" if subject and (self.previous != "was" or opens) else "object"

    def _other(self, word: str, before: str, following: str) -> str:
        lower = word.lower()
        if self.awaits_verb and lower not in _ADVERBS and not lower.endswith("ly"):
            self.awaits_verb = False
            return _agreeing(word, self.first)
        verb = lower in _IRREGULAR or following in _AFTER_VERB or following[:1].isdigit()
        if self.subject and self.previous in ("and", "but") and verb:
            return _agreeing(word, self.first)
        self._name_other(word, begins=not before.strip() or before.rstrip()[-1] in ".!?")
        return word

    def _name_other(self, word: str, *, begins: bool) -> None:
        """Take note of somebody else who is named."""
        plain = word.removesuffix("'s").removesuffix("’s")
        if plain in _FEMALE or plain in _MALE:
            self.named.add("f" if plain in _FEMALE else "m")
            return
        place = self.previous in ("in", "at") or (len(plain) > 1 and plain.isupper()) or plain in _NOBODY
        if not place and (plain.lower() in OTHERS or (plain[0].isupper() and not begins)):
            self.named |= {"f", "m"}


def _agreeing(verb: str, first: bool) -> str:
    """A verb of the third person in the form that goes with I, or with you; any other word as it is."""
    lower = verb.lower()
    if lower in _IRREGULAR:
        return _IRREGULAR[lower][0 if first else 1]
    if lower.endswith("ies") and len(lower) > 4:
        return f"{verb[:-3]}y"
    if lower.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return verb[:-2]
    return verb[:-1] if lower.endswith("s") and not lower.endswith(("ss", "us", "is")) else verb
