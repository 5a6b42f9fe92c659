"""What only a seller, or only a buyer, says of itself; for text in lower case with plain apostrophes."""

from __future__ import annotations

import re

_WISH = (
    r"i(?:'m| am) (?:also )?(?:looking|trying|willing|ready) to {0}"
    r"|i(?:'d| would) (?:like|love|be happy|be willing) to {0}|i (?:want|need|have) to {0}"
    r"|i(?:'ll| will| can| can't| cannot| won't) {0}"
)
_THING = r"(?:it|this|that|the|an?|one|your|my|our|some)"
SELLS = re.compile(
    rf"\b(?:i(?:'m| am) (?:also )?selling|i sell|{_WISH.format('sell')}) {_THING}\b|\bmy asking price\b"
    r"|\bsell (?:it|this|that|the \w+) to you\b"
)
"""A seller."""
BUYS = re.compile(
    rf"\b(?:i(?:'m| am) (?:also )?(?:(?:really |very )?interested in )?buying|{_WISH.format('buy')}) {_THING}\b"
    r"|\bi(?:'m| am) (?:looking|searching) for an? (?:\w+ )?(?:second[- ]hand|used)\b"
    r"|\bi(?:'m| am) willing to pay\b|\bi(?:'d| would) (?:like|love) to pay\b"
)
"""A buyer."""
