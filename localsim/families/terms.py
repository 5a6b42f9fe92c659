"""Terms of private facts in texts: is one uttered, and where first? By wording alone, without a model.

A mention is not yet a disclosure (a name may be guessed, a price denied); it shows a reader where to look.
"""

from __future__ import annotations

import re

from localsim.families.prices import find_prices


def utters(text: str, term: str) -> bool:
    """Whether `text` holds a term: an amount of dollars in any spelling, or whole words."""
    if re.fullmatch(r"\$\d+(\.\d+)?", term):
        return any(price.value == float(term[1:]) for price in find_prices(text))
    return re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text, re.IGNORECASE) is not None
