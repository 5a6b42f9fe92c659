"""Places where a text names a person: a word such as "Mark", "will" or "Grace" counts only if it is used as a name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from localsim.families.mutual_friends import phrases
from localsim.families.prices import plain


def mentions(text: str, name: str) -> list[int]:
    """Return the positions of `name` in `text` as a whole word that is used as a name."""
    return list(_mentions(text, name))


@lru_cache(maxsize=8192)
def _mentions(text: str, name: str) -> tuple[int, ...]:
    words = r"\s+".join(re.escape(word) for word in plain(name).split())
    if not words:
        return ()
    matches = re.finditer(rf"(?<![\w'])(?<!\w-){words}(?!\w|-\w|'(?!s\b|\W|$))", plain(text))
    return tuple(match.start() for match in matches if is_name(text, name, match.start(), match.end()))


def is_name(text: str, name: str, start: int, end: int) -> bool:
    """Return True if an occurrence of `name` is a name, which only ordinary words can fail to be."""
    if plain(name) not in phrases.WORD_NAMES:
        return True
    lower = plain(text)
    before, after = lower[:start], lower[end:]
    ends = re.match(r"\s*(?:$|[?!.,;:)\"…-])|'s\b", after)
    if not text[start].isupper():
        cue = re.search(
            r"\b(?:know|knew|met|named|called|friend|what about|how about|is it|its|it's|you mean|u mean|friends with"
            r"|named) (?:a |an |any |old )?$",
            before,
        )
        alone = (
            re.fullmatch(r"(?:.*[.?!,;] ?)?(?:and |or |so |ok |maybe |hmm |no |yes |yeah |um |uh |then )*", before)
            is not None
        )
        follows = re.match(r" (?:from|too|lol|as well|haha|who|yes|either|maybe|then|here)\b", after)
        return bool((cue and (ends or follows)) or (alone and re.match(r"\s*(?:\?|!|$)", after)))
    if plain(name) in phrases.PLACES_AND_MONTHS and re.search(
        r"\b(?:in|last|next|since|until|early|late|mid|near|of|during|visit|to|this|every) $", before
    ):
        return False
    opening = not before.strip() or before.rstrip()[-1] in '.!?…:"“'
    if not opening and (text.upper() != text):
        return not re.match(r" (?:i|you|we|my words)\b", after) or bool(
            re.search(r"\b(?:know|about|and|or|mean|called|named) $", before)
        )
    verb = re.match(
        r" (?:is|was|has|does|did|knows?|works|worked|lives|likes|loves|and|from|with|who|that|too|as well|in|over"
        r"|used|went|taught|plays|or|the|then|maybe|perhaps|isn't|"
        r"[A-Z]\w+)\b(?! (?:you|i|we|it|they|he|she)\b)",
        text[end:],
    )
    if plain(name) in phrases.VERB_NAMES and verb:
        return verb[0].strip() in phrases.AFTER_A_PERSON or verb[0].strip()[0].isupper()
    return bool(ends or verb)


_SOMEBODY = re.compile(r"\b(?:any(?:one|body)|some(?:one|body)|people|person|friends?|who)\b")


def speaks_of_friend(text: str, facts: Mapping[str, str]) -> bool:
    """Return True if a text names a friend or asks for one by a trait, given friend -> the fact about this friend."""
    if any(mentions(text, name) for name in facts):
        return True
    if not _SOMEBODY.search(plain(text)):
        return False
    known = [set(re.findall(r"\w+", plain(fact.replace(name, "")))) for name, fact in facts.items()]
    traits = set().union(*known).difference(set.intersection(*known)) if known else set()
    return bool(traits.intersection(re.findall(r"\w+", plain(text))))


def all_friends(friends: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names on all lists, each once."""
    return list(dict.fromkeys(name for names in friends.values() for name in names))
