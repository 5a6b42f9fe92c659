"""The verdict on a bargain in words: how it ended, and which prices would have suited both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localsim.conversation.episode import Score
from localsim.families.base import Verdict
from localsim.families.craigslist.offering import targets_are_limits

_ENDINGS = {
    "deal": "They make a deal, but its price cannot be read.",
    "no_deal": "They part without a deal.",
    "ran_out": "They reach the limit of turns without a deal.",
    "stale": "They repeat themselves and make no deal.",
    "unknown": "The rules cannot read how this talk ends, so it counts neither as a deal nor as none.",
}


def verdict(scores: Mapping[str, Score], key: Mapping[str, Any]) -> Verdict | None:
    """Return the verdict from the scores of the whole episode by name; None if the ending was not read."""
    ending, price, success = (scores.get(name) for name in ("ending", "price", "success"))
    if ending is None:
        return None
    amount = None if price is None else price.value
    said = _ENDINGS.get(str(ending.label), "") if amount is None else f"They agree on {_money(amount)}."
    right = None if success is None or success.value is None else success.value == 1
    return Verdict(right, said, _truth(key))


def _truth(key: Mapping[str, Any]) -> str:
    seller, buyer = key["seller"], key["buyer"]
    low, high = _money(key["seller_target"]), _money(key["buyer_target"])
    if not targets_are_limits(key):
        return f"{seller} hopes for {low}, {buyer} for {high}; these are hopes and not limits."
    limits = f"{seller} wants at least {low}, and {buyer} wants to pay at most {high}"
    zone = key.get("zone")
    if not zone:
        return f"{limits}: no price suits both, so it is right to leave without a deal."
    return f"{limits}: every price from {low} to {high} suits both."


def _money(amount: float) -> str:
    return f"${amount:,.0f}" if float(amount).is_integer() else f"${amount:,.2f}"
