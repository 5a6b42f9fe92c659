"""The steps of an episode: somebody acts, the rules tell something, or it is over. `Rules` decides between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Transcript

StopReason = Literal["turn_limit", "left", "silence", "closing", "stale", "ended", "done"]
"""Rule that ended an episode; `closing`: all said goodbye and nobody left; `stale`: nothing new was said any more;
`ended`: people stopped, and no rule applied; `done`: the last phase or a game is over.
"""


@dataclass(frozen=True)
class Act:
    """Agents act: one, or several at the same time, none of whom sees the others' acts of this beat."""

    speakers: tuple[str, ...]
    actions: tuple[str, ...]
    """Names of the actions and moves that are allowed now."""
    phase: str = ""
    floor: tuple[str, ...] = ()
    """The agents to whom a moderator can give the floor."""
    named: tuple[str, ...] = ()
    """The agents whom moves can name now, such as those who are still in a game; everybody present if not given."""
    since: int = 0
    """The first turn that agents are shown: a question that must not depend on those before it begins at its own."""


@dataclass(frozen=True)
class Tell:
    """The rules tell somebody something; nothing reaches a prompt from them in another way."""

    text: str
    readers: tuple[str, ...] | None = None
    """Who is told; None: everybody."""
    phase: str = ""
    values: tuple[str, ...] = ()
    """Numbers and words behind the text, for the rules themselves and for queries; nobody is shown them."""


@dataclass(frozen=True)
class Stop:
    """The episode is over."""

    reason: StopReason


Next = Act | Tell | Stop


class Rules(Protocol):
    """What decides about an episode."""

    def next(self, scenario: Scenario, talk: Transcript, seed: int) -> Next:
        """Return what comes next. Nothing but the arguments may matter."""
