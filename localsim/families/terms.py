"""Terms of private facts in texts, found by wording alone, without a model.

A mention is not yet a disclosure (a name may be guessed, a price denied), but shows a reader the place to look at.
"""

from __future__ import annotations

import re

from localsim.conversation.names import whole
from localsim.families.prices import find_prices


def span_of(text: str, term: str) -> tuple[int, int] | None:
    """Return start and end of the first place in `text` that utters a term.

    A term is an amount of dollars, which may have any spelling, or whole words.
    """
    if re.fullmatch(r"\$\d+(\.\d+)?", term):
        return next(((price.start, price.end) for price in find_prices(text) if price.value == float(term[1:])), None)
    match = whole(term, re.IGNORECASE).search(text)
    return match.span() if match else None


def utters(text: str, term: str) -> bool:
    """Return True if `text` utters a term."""
    return span_of(text, term) is not None
