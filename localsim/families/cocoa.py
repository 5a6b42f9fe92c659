"""The JSON that cocoa stores conversations in (github.com/stanfordnlp/cocoa): MutualFriends and CraigslistBargain.

A file is a list of chats. A chat has `events` (who did what), the `scenario` with one `kbs` for each of two agents, and
the `outcome`. Messages become speech; what people did with buttons becomes actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from localsim.conversation.episode import Score, StopReason
from localsim.conversation.human_talks import HumanTalk, LeftOut, Part, checked, money, turns_of
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action

Turns = tuple[tuple[str, Action], ...]
_DECORATION = ("join", "typing", "eval", "leave")
"""Events of the page and not of the conversation; `leave` is a closed window."""
HINT = "cocoa's format is a list of chats with uuid, events, scenario and outcome; --format names another format"


class Event(Part):
    """Something that an agent did."""

    agent: Literal[0, 1]
    action: str
    data: Any = None


class Outcome(Part):
    """The outcome of a chat; `offer` is the last one of a bargain."""

    reward: float | None = None
    offer: dict[str, Any] | None = None


class Setup(Part):
    """The scenario of a chat: what each of the two agents knows."""

    uuid: str
    kbs: tuple[Any, Any]


class Chat(Part):
    """A conversation between agent 0 and agent 1."""

    uuid: str
    events: list[Event]
    scenario: Setup
    outcome: Outcome | None = None
    agents: dict[str, Any] | None = None


def chat_of(data: Mapping[str, Any], where: str) -> Chat:
    """Return a chat of two people. Raises InvalidInput, and LeftOut where a program took part."""
    chat = checked(Chat, data, where, HINT)
    if any(kind != "human" for kind in (chat.agents or {}).values()):
        raise LeftOut("held with a program, not between people")
    return chat


def kbs_of(data: Mapping[str, Any]) -> list[Any]:
    """Return what the two agents know, if a value looks like a chat; else []."""
    scenario = data.get("scenario")
    kbs = scenario.get("kbs") if isinstance(scenario, dict) and "events" in data else None
    return kbs if isinstance(kbs, list) and len(kbs) == 2 else []


def turns_in(chat: Chat, names: tuple[str, str]) -> Turns:
    """Return the turns of a chat; `names` are those of agent 0 and agent 1. Raises LeftOut."""
    return turns_of([
        (names[event.agent], *_action(event)) for event in chat.events if event.action not in _DECORATION
    ])  # fmt: skip


def talk_of(
    chat: Chat, where: str, scenario: LoadedScenario, turns: Turns, outcome: Iterable[Score], note: str
) -> HumanTalk:
    """Return a chat as a talk."""
    end: StopReason = "left" if any(event.action == "quit" for event in chat.events) else "ended"
    return HumanTalk(chat.uuid, where, scenario, turns, end, tuple(outcome), note)


def _action(event: Event) -> tuple[str, str]:
    """Return the type and the words of an event."""
    if event.action == "message":
        return "speak", event.data if isinstance(event.data, str) else ""
    if event.action == "quit":
        return "leave", ""
    if event.action == "offer":
        return "action", _offer(event.data)
    if event.action == "select":
        return "action", f"selects {selected(event.data)}"
    if event.action in ("accept", "reject"):
        return "action", f"{event.action}s"
    raise LeftOut(f"it has an event of an unknown kind ({event.action})")


def _offer(data: Any) -> str:
    given = data if isinstance(data, dict) else {}
    price, sides = given.get("price"), str(given.get("sides") or "").strip()
    words = f"offers {money(price)}" if isinstance(price, int | float) else "makes an offer without a price"
    return f"{words}, {sides}" if sides else words


def selected(item: Any) -> str:
    """Return the friend that was selected: the name, else all values."""
    if not isinstance(item, dict):
        return str(item)
    return str(item.get("Name") or ", ".join(map(str, item.values())))
