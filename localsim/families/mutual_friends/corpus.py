"""The MutualFriends corpus (He et al. 2017, arXiv 1704.07130) in cocoa's JSON: conversations of people as talks.

The friend in common is the item that both lists hold with all attributes. The corpus counts a chat as a success if both
people select it; that is stored as `corpus_success`, beside what is read from the words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from localsim.conversation.episode import Score
from localsim.conversation.human_talks import NAMES, Corpus, HumanTalk, LeftOut, id_of, loaded
from localsim.errors import InvalidInput
from localsim.families import cocoa

_FAMILY = "mutual_friends"
Item = dict[str, Annotated[str, BeforeValidator(str)]]
_ITEMS = TypeAdapter(tuple[list[Item], list[Item]])
_PHRASES = {
    "hobby": "likes {}",
    "company": "works at {}",
    "town": "lives in {}",
    "school": "attended {}",
    "major": "studied {}",
    "location preference": "prefers {}",
    "time preference": "prefers {}",
}
_PAIR = (NAMES[0], NAMES[1])
UNCLEAR = "two different friends have one name, so words cannot tell who is meant"
NAMELESS = "friends have no names, so words cannot tell who is meant"


def read(data: Mapping[str, Any], where: str, path: str) -> HumanTalk:
    """Return a chat of the corpus as a talk."""
    chat = cocoa.chat_of(data, where)
    try:
        lists = _ITEMS.validate_python(chat.scenario.kbs)
    except ValidationError as error:
        problem = f"scenario.kbs: {error.errors()[0]['msg']}"
        raise InvalidInput(problem, where=where, hint="each of the two is a list of friends with attributes") from error
    named = all(item.get("Name") for item in (*lists[0], *lists[1]))
    clear = named and _names_identify(lists)
    note = "" if clear else UNCLEAR if named else NAMELESS
    shared = [item for item in lists[0] if item in lists[1]]
    fields: dict[str, Any] = {"answer": {"mutual_friends": sorted(item["Name"] for item in shared)}} if clear else {}
    turns = cocoa.turns_in(chat, _PAIR)
    scenario = loaded(
        path,
        where,
        id=id_of("mutual", chat.scenario.uuid),
        title="Two people look for a friend in common",
        info={"what": "People talk in pairs to find the friend whom both know (MutualFriends corpus)."},
        setting=f"{_PAIR[0]} and {_PAIR[1]} write to each other. Each has a list of friends.",
        agents=[_agent(me, other, items) for me, other, items in zip(_PAIR, reversed(_PAIR), lists, strict=True)],
        family=_FAMILY if clear else None,
        **fields,
    )
    return cocoa.talk_of(chat, where, scenario, turns, _outcome(chat, turns), note)


def _names_identify(lists: tuple[list[Item], list[Item]]) -> bool:
    """Return True if one name never stands for two different friends."""
    people = {tuple(sorted(item.items())) for items in lists for item in items}
    return len({dict(item)["Name"].casefold() for item in people}) == len(people)


def _agent(name: str, other: str, items: list[Item]) -> dict[str, Any]:
    if not items:
        raise LeftOut("a list of friends is empty")
    facts = [
        {
            "id": id_of(name.lower(), "friend", number),
            "text": _sentence(item),
            "terms": [item["Name"]] if item.get("Name") else [],
        }
        for number, item in enumerate(items, start=1)
    ]
    return {"name": name, "goal": f"Find out whether you and {other} have a friend in common.", "facts": facts}


def _sentence(item: Item) -> str:
    told = {key.lower(): value for key, value in item.items() if key != "Name" and value}
    said = " and ".join(_PHRASES[key].format(value) for key, value in told.items() if key in _PHRASES)
    more = ", ".join(f"{key}: {value}" for key, value in told.items() if key not in _PHRASES)
    return f"{item.get('Name') or 'A friend'} {said or 'is a friend'}{f' ({more})' if more else ''}."


def _outcome(chat: cocoa.Chat, turns: tuple[tuple[str, Any], ...]) -> Iterator[Score]:
    if chat.outcome is None or chat.outcome.shared is None:
        return
    cited = tuple(number for number, (_, action) in enumerate(turns) if action.text.startswith("selects "))
    chosen = [cocoa.selected(event.data) for event in chat.events if event.action == "select"]
    success = float(chat.outcome.shared == 1)
    reason = "both select the same friend" if success else "the two do not select the same friend"
    label = chosen[-1] if success and chosen else None
    yield Score("corpus_success", success, label=label, reason=reason, turns=cited[-2:])


def fits(data: Mapping[str, Any]) -> bool:
    """Return True for a chat of this corpus."""
    simple = (str, int, float)
    return cocoa.has_items(cocoa.kbs_of(data), lambda item: all(isinstance(value, simple) for value in item.values()))


CORPUS = Corpus("mutual-friends", "MutualFriends, cocoa's JSON", fits, read)
