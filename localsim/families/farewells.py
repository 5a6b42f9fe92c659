"""Goodbyes in everyday English."""

from __future__ import annotations

import re

from localsim.families.prices import plain

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
"""Goodbyes, for text that `prices.plain` returns."""
SEE_YOU = re.compile(
    r"\bsee (?:you|ya|u)(?: (?:later|around|soon|then|tomorrow|there|next \w+|on \w+|at \w+|\w+day))?(?=$|[ .!,])"
    r"|\bcatch (?:you|ya) later\b|^later\b|\blaters\b|\bcya\b"
)
"""Phrases that are goodbyes or appointments."""


def says_farewell(text: str) -> bool:
    """Return True if `text` says goodbye ("bye", "take care", "see you tomorrow", "nice talking to you")."""
    lower = plain(text)
    return bool(FAREWELL.search(lower) or SEE_YOU.search(lower))
