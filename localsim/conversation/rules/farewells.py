"""Goodbyes in everyday English: whether a text has one, and whether a speaker takes leave with it.

The second question is narrower, because the first finds goodbyes in "I have a new one" and "we should go", too.
docs/rules.md says on what it was measured.
"""

from __future__ import annotations

import re
from functools import lru_cache

from localsim.conversation.transcript import plain

SMALL = frozenset(
    """a an the oh ok okay well so and but then just really very um uh hm hmm ah hey hi hello too also please now again
    i you he she it we they me him her us them my your his its our their this that these those is are was were be been
    am i'm you're it's that's we're they're i've you've i'll we'll i'd do does did have has had will would can could
    shall should may might must to of in on at for from with about as by if or let's let me""".split()
)
"""Words without which a sentence says the same; names, numbers and negations are never among them."""
FAREWELL = re.compile(
    r"\b(?:good ?bye|farewell|bye(?:-?bye)?|buh-bye|so long|cheerio|ciao|adieu|adios|ttyl|toodles|au revoir)\b"
    r"|\btake care\b(?! of)|\bhave an? (?:\w+ )?(?:\w+ )?(?:day|one|evening|night|weekend|afternoon|week|morning|trip"
    r"|time)\b|\bgood ?night\b|\b(?:gotta|got to|have to|must|should|need to|'d better|better) (?:be )?(?:go|run|dash"
    r"|head|get going|going|leave|off|heading)(?: now| home| soon| off)?(?=$|[.!,?])|\b(?:nice|lovely|good|great"
    r"|pleasure|pleasant|wonderful|fun|enjoyed) (?:was )?(?:talking|chatting|speaking|meeting|to have (?:met|talked)"
    r"|seeing|it was)\b|\b(?:was|been) (?:a |so |really |very )?(?:nice|lovely|good|great|pleasure"
    r"|wonderful)(?: to)? (?:talk|chat|meet|speak|see)\w*\b|\b(?:until|till) next time\b|\bbest wishes\b"
    r"|\ball the best\b|\bhappy (?:hunting|trails)\b|\bgood day\b(?! to (?:meet|come))"
)
"""Goodbyes, for text that `plain` returns."""
SEE_YOU = re.compile(
    r"\bsee (?:you|ya|u)(?: (?:later|around|soon|then|tomorrow|there|next \w+|on \w+|at \w+|\w+day))?(?=$|[ .!,])"
    r"|\bcatch (?:you|ya) later\b|^later\b|\blaters\b|\bcya\b"
)
"""Phrases that are goodbyes or appointments."""
_GREETING = re.compile(r"good day|\w+ (?:meeting|seeing)")
"""Phrases of `FAREWELL` with which people also meet."""
_OPEN = re.compile(
    r"[?？\d$€£]|\b(?:dollars?|bucks?|hundred|thousand|grand|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|offer(?:ing)?"
    r"|how about|what about|what if|unless)\b"
)
"""Signs of a question or an offer, which wait for an answer."""
_BEFORE = re.compile(
    r"(?:(?:ok|okay|k|well|alright|all right|right|then|so(?! long)|and|but|now|thanks|thank you|thx|so much|very much"
    r"|a lot|again|too|as well|you too|same to you|likewise|anyway|great|good(?! ?(?:bye|night))|sure|yes|yeah|yep|oh"
    r"|no problem|you're welcome|welcome|cheers|everyone|it(?= (?:was|has))|it's(?= been)|has(?= been)|that(?= was)"
    r"|i(?= (?:gotta|got to|have to|must|should|need to|better))|i've(?= got to)|i'd(?= better)"
    r"|(?:i'll|i will|we'll)(?= see)|(?:i )?(?:really )?hope (?:that )?(?:you|u)(?= have)|you(?= have a)"
    r"|(?:i )?wish(?:ing)? you) +)*"
)
"""Words that may stand before a goodbye in its clause."""
_PART = re.compile(r"[.!;,:…\n()—–]+| - ")
_THANKS = re.compile(r"(?:and |many )?(?:thanks?|thx)\b")
_AFTER = 3
"""The most words that may follow a goodbye, besides thanks: "goodbye, my dear Ana"."""


def says_farewell(text: str) -> bool:
    """Return True if `text` says goodbye ("bye", "take care", "see you tomorrow", "nice talking to you")."""
    lower = plain(text)
    return bool(FAREWELL.search(lower) or SEE_YOU.search(lower))


@lru_cache(maxsize=4096)
def takes_leave(text: str) -> bool:
    """Return True if `text` ends with a goodbye, and neither asks nor offers anything that waits for an answer."""
    lower = plain(text).replace("good-bye", "goodbye")
    if _OPEN.search(lower):
        return False
    after = 0
    for part in reversed([part.strip() for part in _PART.split(lower)]):
        rest = _goodbye(part)
        if rest is not None and after + rest <= _AFTER:
            return True
        after += 0 if _THANKS.match(part) else len(part.split())
        if after > _AFTER:
            return False
    return False


def _goodbye(part: str) -> int | None:
    """Return the number of words after the goodbye with which a clause begins; None if it begins with none."""
    start = _BEFORE.match(part)
    assert start is not None
    for pattern in (FAREWELL, SEE_YOU):
        found = pattern.match(part, start.end())
        if found is not None and not _GREETING.match(found[0]):
            rest = part[found.end() :].strip()
            another = _goodbye(rest.removeprefix("and ")) if rest.startswith("and ") else None
            return 0 if _THANKS.match(rest) else len(rest.split()) if another is None else another
    return None
