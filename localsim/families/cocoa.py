"""The JSON that cocoa stores conversations in (github.com/stanfordnlp/cocoa): MutualFriends and CraigslistBargain.

A file is a list of chats. A chat has `events` (who did what), the `scenario` with one `kbs` for each of two agents, and
the `outcome`. Messages become speech; what people did with buttons becomes actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Literal

from localsim.conversation.episode import Score, StopReason
from localsim.conversation.human_talks import HumanTalk, LeftOut, Part, checked, money, turns_of
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action
from localsim.paths import json_value

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

    reward: float | dict[str, float] | None = None
    """One of both, or of each agent by its number."""
    valid_deal: bool | None = None
    offer: dict[str, Any] | None = None

    @property
    def shared(self) -> float | None:
        """The reward of both; None if there is none, or each has an own one."""
        return None if isinstance(self.reward, dict) else self.reward


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


def has_items(kbs: list[Any], attributes: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Return True if each of the two knows a list of objects, all with these attributes."""
    return bool(kbs) and all(
        isinstance(items, list) and all(isinstance(item, dict) and attributes(item) for item in items) for items in kbs
    )


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
        if not isinstance(event.data, str):
            raise LeftOut("a message is no text")
        return "speak", event.data
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
    """Return what was selected: the name of a friend, else all values, or the number of each thing."""
    if isinstance(item, str) and item.startswith("{"):
        with suppress(ValueError):
            item = json_value(item)
    if not isinstance(item, dict):
        return str(item)
    numbers = all(isinstance(value, int) for value in item.values())
    values = (f"{value} {key}" for key, value in item.items()) if numbers else map(str, item.values())
    return str(item.get("Name") or ", ".join(values))
