"""The sentences that tell agents who sees what, where private items are granted. They have one wording in all variants.

After `{others}`, which may be one name or several, only modal verbs follow.
"""

from __future__ import annotations

from localsim.conversation.episode import Observation
from localsim.conversation.grants import EVERY, Grant

_PRIVATE = "You can see {items} of {others}. Only you know this: {others} cannot know it."
_ANNOUNCED = "Everybody is told what each one can see of the others: {list}."
_HIDDEN = "{others} cannot see {items}."
_OWN = {"goal": "your goal", "secret": "your secret", "facts": "what you know"}
ABSENT = "{name} is not here and has nothing to do with this conversation."
SENTENCES = (_PRIVATE, _ANNOUNCED, _HIDDEN, ABSENT)


def visibility_lines(seen: Observation, others: str, closed: str) -> list[str]:
    """Return what an agent is told about its view of the others and theirs of it; `closed` is what is usual."""
    lines = []
    if seen.announced:
        told = "; ".join(f"{name} can see {_listing(_items(grant)) or 'nothing'}" for name, grant in seen.announced)
        lines.append(_ANNOUNCED.format(list=told))
    elif seen.sees:
        lines.append(_PRIVATE.format(items=_listing(_items(seen.sees)), others=others))
    if not seen.exposed:
        return [*lines, closed]
    me = seen.me()
    kept = {"goal": bool(me.goal), "secret": bool(me.secret), "facts": bool(me.facts)}
    hidden = [_OWN[part] for part, has in kept.items() if has and not getattr(seen.exposed, part)]
    return [*lines, _HIDDEN.format(others=others, items=_listing(hidden, "or"))] if hidden else lines


def _items(grant: Grant) -> list[str]:
    facts = f"{'all' if grant.facts >= EVERY else grant.facts} of the facts"
    given = {"the goal": grant.goal, "the secret": grant.secret, facts: grant.facts, "the whole profile": grant.profile}
    return [text for text, is_given in given.items() if is_given]


def _listing(items: list[str], last: str = "and") -> str:
    return f"{', '.join(items[:-1])} {last} {items[-1]}" if len(items) > 1 else "".join(items)
