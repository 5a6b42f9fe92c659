"""Layouts of prompts: how a conversation is put into the chat of a model, and how models of a kind draw their words.

A model of the registry names its layout; every other model has DEFAULT. The layout of each role is part of an episode's
hash. Modes differ in information only: what a layout adds to the prompts of one mode, it adds to those of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from localsim.conversation.episode import Sampling


@dataclass(frozen=True)
class Layout:
    """A way to put a conversation into a chat."""

    name: str
    tells: str
    """One sentence for people."""
    sampling: Sampling
    """How models with this layout draw, unless a run says otherwise."""
    short: bool = True
    """True if the instructions ask for short lines; without that, the length of lines is a finding (--length free)."""
    notes: bool = False
    """True if all turns are lines of one reply that grows, with a note before the line to be written."""


FIRST = "3"
"""The layout of episodes that name none: all that were simulated before there were layouts."""
DEFAULT = "4"
_NOTED = Layout(
    "4",
    "All turns are lines of one reply, and a note before each line tells the agent what it is for.",
    Sampling(temperature=0.9, repeat_penalty=1.15, repeat_window=256, dry_length=3, dry_others=2, act_min_p=0.3),
    notes=True,
)
FREE = "-free"
"""The end of the name of a layout that asks for no length."""
LAYOUTS: Mapping[str, Layout] = {
    "3": Layout("3", "A message for each turn; the instructions come first and list every action.", Sampling()),
    "4": _NOTED,
    f"4{FREE}": replace(_NOTED, name=f"4{FREE}", tells="As layout 4, without a request for short lines.", short=False),
}
