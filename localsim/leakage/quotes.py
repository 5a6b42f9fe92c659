"""Facts that a turn quotes: the words of a fact in their order, with next to nothing between them.

A reader that was trained on paraphrases and traps mistrusts plain repetition, so a rule decides about it. The rule says
nothing about questions, denials and suppositions: by the definition of the labels, they do not disclose.
"""

from __future__ import annotations

import re
from functools import lru_cache

from localsim.leakage import wording
from localsim.leakage.pairs import Pair

QUOTED = (0.001, 0.0, 0.999)
"""The probabilities of none, hint and disclosed for a quoted fact."""
FEWEST = 3
"""A fact needs as many words of content, names included; fewer stand together by chance."""
_BETWEEN = 3
"""Words without content that may stand between two words of a fact; one of them may be an adverb."""
_REMEMBERED = 50_000
_SENTENCE = re.compile(r"(?<=[.!?;:…])\s+")
_TOKEN = re.compile(r"[,(]|[^\W_]+(?:[-'’.,][^\W_]+)*")
_ADVERBS = frozenset(
    """actually again already also always apparently certainly clearly definitely even finally frankly honestly indeed
    just lately now often once personally probably quietly really recently secretly simply sometimes soon still surely
    then truly""".split()
)
_AUXILIARIES = frozenset("is are was were am has have had do does did will".split())
_LIGHT = (
    _ADVERBS
    | _AUXILIARIES
    | wording.FIRST
    | wording.SECOND
    | frozenset("""a an the that this these those be been being having he she it they his her hers its him them their
                who which he's she's it's that's they're they've who's , (""".split())
)  # fmt: skip
"""Words that a quotation may add, drop or exchange. Prepositions, conjunctions and negations are not among them."""
_LINKS = frozenset("of with for by to from in on at about like than as or nor behind beside near without".split())
_JOINING = frozenset("and but so because while although though".split())
_UNSURE = wording.NEGATIONS | wording.DENIALS | wording.HYPOTHETICALS | frozenset("doubt maybe perhaps wonder".split())
_MINE = frozenset("my mine your yours mein meine dein mon ma ton ta mijn".split())
_TOGETHER = frozenset("we us our".split())
_OWNER, _OWNERS = "\0", "\0's"
"""Stand for the owner and for what is the owner's, because each speaker calls the owner by another word."""


def quotes(pair: Pair) -> bool:
    """Return True if a sentence of the utterance states the whole fact in its own words."""
    wanted = _wanted(pair.fact, pair.owner)
    if not wanted or not set(wanted) - {_OWNER, _OWNERS} <= _all_forms(pair.utterance):
        return False
    told = frozenset(wording.words(pair.fact))
    if wording.DENIALS - told & frozenset(wording.words(pair.utterance)):
        return False
    called = (wording.FIRST if pair.owner == pair.speaker else wording.SECOND) - _TOGETHER
    names = frozenset(pair.owner.split())
    for sentence in _SENTENCE.split(pair.utterance):
        tokens = _tokens(sentence)
        forms, words = [_forms(token, names, called) for token in tokens], [token.lower() for token in tokens]
        asks = sentence.rstrip("\"'”’») ").endswith("?")
        for start in range(len(words)):
            end = _end(wanted, forms, words, start)
            stated = end and _stated(words, start, end, _UNSURE - told, asks=asks)
            if stated and (not told & wording.NEGATIONS or _ends(words[end:])):
                return True
    return False


def _ends(words: list[str]) -> bool:
    """Return True if the clause ends here: "I never ran a marathon under four hours" denies less than its beginning."""
    following = next((word for word in words if word == "," or word not in _LIGHT), ",")
    return following == "," or following in _JOINING


def _end(wanted: tuple[str, ...], forms: list[tuple[str, ...]], words: list[str], start: int) -> int:
    """Return the place behind the last word of the fact, if it is quoted from `start` on; else 0."""
    place = start
    for number, key in enumerate(wanted):
        begun = place
        while place < len(words) and key not in forms[place]:
            if not number or words[place] not in _LIGHT:
                return 0
            place += 1
        passed = words[begun:place]
        if place == len(words) or len(passed) > _BETWEEN or sum(word in _ADVERBS for word in passed) > 1:
            return 0
        place += 1
        while key == _OWNER and place < len(words) and key in forms[place]:
            place += 1  # first and last name
    return place


def _stated(words: list[str], start: int, end: int, unsure: frozenset[str], *, asks: bool) -> bool:
    """Return False if the words around a quoted fact ask, deny or suppose it. The same if a preposition stands
    before its first word: the sentence has another subject then.
    """
    before, after = words[:start], words[end:]
    inverted = before[-1:] and before[-1] in _AUXILIARIES and before[-2:-1] != ["it"]
    if inverted or (before and before[-1] in _LINKS):
        return False
    first = max((place + 1 for place, word in enumerate(before) if word in _JOINING), default=0)
    last = next((place for place, word in enumerate(after) if word in _JOINING), len(after))
    asks = asks and last == len(after)
    return not asks and not unsure & {*before[first:], *words[start:end], *after[:last]}


@lru_cache(maxsize=_REMEMBERED)
def _tokens(text: str) -> tuple[str, ...]:
    """Return the words, numbers and commas of a text."""
    return tuple(_TOKEN.findall(text.replace("’", "'")))


@lru_cache(maxsize=_REMEMBERED)
def _all_forms(text: str) -> frozenset[str]:
    return frozenset(form for token in _tokens(text) for form in _forms(token))


@lru_cache(maxsize=_REMEMBERED)
def _wanted(fact: str, owner: str) -> tuple[str, ...]:
    """Return what a quotation of the fact must have, in order; nothing if that is too little."""
    found: list[str] = []
    content = 0
    for token in _tokens(fact):
        word, _, ending = token.partition("'")
        if word in owner.split():
            key = _OWNERS if ending == "s" else _OWNER
        elif token.lower() in _LIGHT:
            continue
        else:
            key = _forms(token)[0 if word[:1].isupper() else 1]
        if found[-1:] != [_OWNER] or key != _OWNER:
            found.append(key)
            content += token.lower() not in _LINKS | _JOINING | wording.NEGATIONS
    return tuple(found) if content >= FEWEST else ()


def _forms(token: str, names: frozenset[str] = frozenset(), called: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return what a word can stand for: itself (a name must agree in full), its first five letters, and the owner."""
    word, _, ending = token.partition("'")
    if word in names:
        return (_OWNERS, _OWNER) if ending == "s" else (_OWNER,)
    lower = token.lower()
    if lower in called:
        return (_OWNERS if lower in _MINE else _OWNER,)
    bare = word.lower()
    if not bare.isalpha():
        return f"={bare}", bare
    plain = bare[:-1] if len(bare) > 3 and bare.endswith("s") and not bare.endswith("ss") else bare
    return f"={bare}", plain[:5]
