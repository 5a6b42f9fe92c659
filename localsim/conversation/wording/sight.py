"""The sentences that tell agents who sees what, where private items are granted. They have one wording in all variants.

With three agents or more, each sentence also says of whom. After `{others}`, which may be one name or several, only
modal verbs follow.
"""

from __future__ import annotations

from collections.abc import Iterator

from localsim.conversation.episode import Observation
from localsim.conversation.grants import EVERY, NO_ITEM, Grant, Sight
from localsim.conversation.wording.wordings import listed

_PRIVATE = "You can see {items} of {others}. Only you know this: {others} cannot know it."
_PRIVATE_OF_EACH = "You can see {list}. Only you know this: {others} cannot know it."
_ANNOUNCED = "Everybody is told what each one can see of the others: {list}."
_HIDDEN = "{others} cannot see {items}."
_OWN = {"goal": "your goal", "secret": "your secret", "facts": "what you know"}
ABSENT = "{name} is not here and has nothing to do with this conversation."
SENTENCES = (_PRIVATE, _PRIVATE_OF_EACH, _ANNOUNCED, _HIDDEN, ABSENT)


def visibility_lines(seen: Observation, others: str, closed: str) -> list[str]:
    """Return what an agent is told about its view of the others and theirs of it; `closed` is what is usual."""
    several = len(seen.agents) > 2
    lines = []
    if seen.announced:
        told = "; ".join(f"{name} can see {_seen_of(sight, several) or 'nothing'}" for name, sight in seen.announced)
        lines.append(_ANNOUNCED.format(list=told))
    elif seen.sees and several:
        lines.append(_PRIVATE_OF_EACH.format(list=_seen_of(seen.sees, several), others=others))
    elif seen.sees:
        lines.append(_PRIVATE.format(items=_seen_of(seen.sees, several), others=others))
    return [*lines, *_hidden(seen)] if seen.exposed else [*lines, closed]


def _seen_of(sight: Sight, several: bool) -> str:
    """Return the items that are seen; with several others, those of each of them."""
    if not several:
        return "".join(listed(_items(grant)) for _, grant in sight)
    owners: dict[str, list[str]] = {}
    for owner, grant in sight:
        owners.setdefault(listed(_items(grant, several)), []).append(owner)
    parts = [f"{items} of {'each of ' * (len(of) > 1)}{listed(of)}" for items, of in owners.items()]
    return f"{', '.join(parts[:-1])}, and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def _hidden(seen: Observation) -> Iterator[str]:
    """Yield who cannot see which of the viewer's items.

    Without an announcement, an item that one of the others sees is mentioned to no one, so that access stays private.
    """
    me, exposed = seen.me(), dict(seen.exposed)
    kept = {"goal": bool(me.goal), "secret": bool(me.secret), "facts": bool(me.facts)}
    by_any = NO_ITEM
    for grant in exposed.values():
        by_any |= grant
    groups: dict[str, list[str]] = {}
    for name in (agent.name for agent in seen.agents if agent.name != me.name):
        grant = exposed.get(name, NO_ITEM) if seen.announced else by_any
        hidden = [_OWN[part] for part, has in kept.items() if has and not getattr(grant, part)]
        groups.setdefault(listed(hidden, "or"), []).append(name)
    yield from (_HIDDEN.format(others=listed(names), items=items) for items, names in groups.items() if items)


def _items(grant: Grant, several: bool = False) -> list[str]:
    facts = f"{'all' if grant.facts >= EVERY else grant.facts} of the facts"
    given = {"the goal": grant.goal, "the secret": grant.secret, facts: grant.facts, "the whole profile": grant.profile}
    # A whole profile comes with the relationships among the others, which only exist with several of them.
    given["the relationships"] = grant.profile and several
    return [text for text, is_given in given.items() if is_given]
