"""The CraigslistBargain corpus (He et al. 2018, arXiv 1808.09637) in cocoa's JSON: conversations of people as talks.

Targets of the corpus are aspirations, not limits: the seller's is the list price, so no chat has a zone of agreement,
and a deal below it is no error. The answer key says so (`targets: aspirations`), and what would need limits is not
scored. The corpus's own deal and price are stored as `corpus_deal` and `corpus_price`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from localsim.conversation.episode import Score
from localsim.conversation.human_talks import Corpus, HumanTalk, Part, checked, id_of, loaded, money, shortened
from localsim.errors import InvalidInput
from localsim.families import cocoa

_FAMILY = "craigslist"
_HINT = "each of the two kbs has personal (Role, Target) and item (Title, Price, Description)"
_LIMIT = 200
"""The corpus had no turn limit; with a lower one, a long chat with an unclear ending would count as run out."""
INCOMPLETE = "a price of the scenario is missing, so the bargain cannot be scored"


class Personal(Part):
    """The private side of an agent."""

    Role: Literal["buyer", "seller"]
    Target: float | None = None


class Item(Part):
    """The listing, as an agent sees it; the buyer sees the first half of the description."""

    Title: str
    Price: float | None = None
    Description: list[str] | str = ""


class Side(Part):
    """The kb of one agent."""

    personal: Personal
    item: Item


class Sides(Part):
    """The kbs of both agents."""

    kbs: tuple[Side, Side]


def read(data: Mapping[str, Any], where: str, path: str) -> HumanTalk:
    """Return a chat of the corpus as a talk."""
    chat = cocoa.chat_of(data, where)
    sides = checked(Sides, {"kbs": chat.scenario.kbs}, where, _HINT).kbs
    roles = (sides[0].personal.Role, sides[1].personal.Role)
    if roles[0] == roles[1]:
        raise InvalidInput(f"both agents are the {roles[0]}", where=where, hint=_HINT)
    names = (roles[0].capitalize(), roles[1].capitalize())
    by_role = dict(zip(roles, sides, strict=True))
    buyer, seller = by_role["buyer"], by_role["seller"]
    complete = all(price and price > 0 for price in (buyer.personal.Target, seller.personal.Target, seller.item.Price))
    answer = {
        "seller": "Seller",
        "buyer": "Buyer",
        "list_price": seller.item.Price,
        "seller_target": seller.personal.Target,
        "buyer_target": buyer.personal.Target,
        "zone": None,
        "targets": "aspirations",
    }
    listed = f" for {money(seller.item.Price)}" if seller.item.Price else ""
    scenario = loaded(
        path,
        where,
        id=id_of("bargain", chat.scenario.uuid),
        title=f"A buyer haggles with a seller: {shortened(seller.item.Title, 200)}",
        info={"what": "A buyer and a seller haggle over a listing (CraigslistBargain corpus)."},
        setting=f"The seller lists this item{listed}: {_listing(buyer.item)}",
        agents=[_agent(role, side) for role, side in zip(roles, sides, strict=True)],
        family=_FAMILY if complete else None,
        answer=answer if complete else {},
        limits={"turns": _LIMIT},
    )
    turns, note = cocoa.turns_in(chat, names), "" if complete else INCOMPLETE
    return cocoa.talk_of(chat, where, scenario, turns, _outcome(chat), note)


def _listing(item: Item) -> str:
    lines = [item.Description] if isinstance(item.Description, str) else item.Description
    return shortened(f"{item.Title}. {' '.join(lines)}")


def _agent(role: str, side: Side) -> dict[str, Any]:
    verb, wish = ("Sell", "as much") if role == "seller" else ("Buy", "as little")
    target, name = side.personal.Target, role.capitalize()
    hoped = f" You hope for {money(target)}." if target else ""
    goal = f"{verb} the item for {wish} as you can.{hoped}"
    facts = []
    if target:
        text = f"{name}'s target price is {money(target)}."
        facts = [{"id": f"{role}_target", "text": text, "terms": [money(target)], "disclosure": "never"}]
    if role == "seller":
        goal = shortened(f"{goal} Your whole listing: {_listing(side.item)}")
    return {"name": name, "goal": goal, "facts": facts}


def _outcome(chat: cocoa.Chat) -> Iterator[Score]:
    """Yield the corpus's own outcome; nothing for a chat that broke off, which the corpus does not count."""
    told, done = chat.outcome, {event.action for event in chat.events}
    if told is None or (told.shared is None and not done & {"quit", "reject"}):
        return
    deal = (told.shared or 0) > 0
    yield Score("corpus_deal", float(deal), reason="the offer is accepted" if deal else "no offer is accepted")
    price = (told.offer or {}).get("price")
    if deal and isinstance(price, int | float):
        yield Score("corpus_price", float(price), reason="dollars")


def fits(data: Mapping[str, Any]) -> bool:
    """Return True for a chat of this corpus."""
    kbs = cocoa.kbs_of(data)
    return bool(kbs) and all(isinstance(side, dict) and {"personal", "item"} <= side.keys() for side in kbs)


CORPUS = Corpus("craigslist", "CraigslistBargain, cocoa's JSON", fits, read)
