"""Words that decide whether an utterance states a fact: person, clauses, numbers, and words that reverse a meaning.

English first; numerals and the short lists know German, French, Spanish, Italian and Dutch where that was cheap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from text_to_num import alpha2digit

_REMEMBERED = 50_000
"""Each function remembers its answers for this many texts, because every turn is compared with every fact."""
_CLAUSE = re.compile(
    r"(?<=[.!?;:])\s+|\s+[-–—]\s+|,\s+(?=(?:and|but|so|because|though|aber|mais|pero|ma)\b)|\.{3}\s*|…\s*"
)
_NUMBER = re.compile(r"\d+(?:[.,]\d{3})*(?:[.,]\d+)?")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")

NEGATIONS = frozenset(
    """no not never none nothing nobody nowhere neither nor without hardly don't doesn't didn't isn't wasn't aren't
    weren't won't wouldn't can't couldn't haven't hasn't hadn't shouldn't ain't cannot nope nah deny denied nicht nie
    kein keine keinen nichts pas jamais rien aucun nunca nada ningún non mai niente nessuno niet geen nooit""".split()
)
DENIALS = frozenset(
    "rubbish nonsense lie lies joking kidding wrong untrue false rumour rumor ridiculous absurd".split()
)
HYPOTHETICALS = frozenset(
    """if would could might suppose imagine say unless whether pretend wish dream dreamed film movie book novel story
    wenn würde falls si sería serait se als zou""".split()
)
OTHERS = frozenset(
    """he she they him her them his hers their theirs somebody someone anybody anyone everybody people cousin brother
    sister mother father mum mom dad friend neighbour neighbor colleague boss uncle aunt son daughter wife husband
    roommate flatmate er sie ihr sein il elle lui leur él ella su hij zij""".split()
)
FIRST = frozenset(
    "i me my mine myself i'm i've i'd i'll we our us ich mir mich mein meine je j'ai mon ma yo mi io ik mijn".split()
)
SECOND = frozenset(
    "you your yours yourself you're you've you'd you'll du dir dich dein tu te ton ta vous tú jij je".split()
)
ASSENTS = frozenset("yes yeah yep yup true right correct exactly guilty fine okay ok ja oui si sí sì".split())
REFUSALS = frozenset("no nope nah nein non never not".split())
_STOP = (
    NEGATIONS
    | FIRST
    | SECOND
    | frozenset(
        """a an the and or but of to in on at for from with by as is are was were be been being am has have had do does
        did
    will would that this these those it its he she they them his her their who which what when where how than then so
    too very just about into out up down over after before only also there here not""".split()
    )
)


@lru_cache(maxsize=_REMEMBERED)
def words(text: str) -> tuple[str, ...]:
    """Return the words in lower case, with their apostrophes."""
    return tuple(word.replace("’", "'") for word in _WORD.findall(text.lower()))


@lru_cache(maxsize=_REMEMBERED)
def content_words(text: str) -> frozenset[str]:
    """Return the first five letters of each word that carries meaning."""
    return frozenset(word.split("'")[0][:5] for word in words(text) if word not in _STOP and len(word) > 2)


@lru_cache(maxsize=_REMEMBERED)
def clauses(text: str) -> tuple[str, ...]:
    """Return the parts of an utterance that can state something alone, in order."""
    parts = [part.strip(" ,;:") for part in _CLAUSE.split(text)]
    return tuple(part for part in parts if part) or (text,)


@lru_cache(maxsize=_REMEMBERED)
def numbers(text: str) -> frozenset[float]:
    """Return the numbers in a text, written in digits or English words."""
    digits = alpha2digit(text, "en") if text else ""
    found = set()
    for raw in _NUMBER.findall(digits):
        plain = re.sub(r"[.,](?=\d{3}\b)", "", raw).replace(",", ".")
        if plain.count(".") <= 1:
            found.add(float(plain))
    return frozenset(found)


@lru_cache(maxsize=_REMEMBERED)
def person(fact: str, owner: str, speaker: str) -> str:
    """Return the fact in the person that `speaker` would use: I and my for its own, you and your to its owner."""
    subject, possessive = ("I", "my") if owner == speaker else ("you", "your")
    names = {owner, owner.split()[0], owner.split()[-1]}
    for name in sorted(names, key=len, reverse=True):
        title = r"\b(?:(?:Mr|Mrs|Ms|Miss|Dr)\.? )?"
        fact = re.sub(rf"{title}{re.escape(name)}['’]s?(?!\w)", possessive, fact)
        fact = re.sub(rf"{title}{re.escape(name)}\b", subject, fact)
    return fact


def count(found: Iterable[str], lexicon: frozenset[str]) -> int:
    """Return the number of words that are in the lexicon."""
    return sum(word in lexicon for word in found)
