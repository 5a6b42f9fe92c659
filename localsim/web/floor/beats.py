"""Who can act now in a conversation: the one who is asked, or all of a beat in which several act at the same time.

The run asks one agent after the other. In a simultaneous beat nobody sees what the others choose, so everybody may
choose at once: a choice waits in the ledger until the run asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localsim.conversation.episode import EpisodeSpec
from localsim.conversation.rules.deciding import present, rules_in, ways_of
from localsim.conversation.rules.lines import Way
from localsim.conversation.rules.steps import Act
from localsim.conversation.transcript import Transcript, Turn


@dataclass(frozen=True)
class Beat:
    """A beat that is not over."""

    start: int
    """The number of its first turn."""
    act: Act
    waiting: tuple[str, ...]
    """The agents who have not acted in it."""

    @property
    def together(self) -> bool:
        """True if several act at the same time."""
        return len(self.act.speakers) > 1


def start_of(turns: Sequence[Turn]) -> int:
    """Return the number of the first turn of the beat that is open, or of the next one."""
    if not turns:
        return 0
    last = turns[-1]
    taken = sum(turn.beat == last.beat for turn in turns[-last.beat_size :])
    return last.beat if taken < last.beat_size else len(turns)


def open_beat(spec: EpisodeSpec, turns: Sequence[Turn]) -> Beat | None:
    """Return the beat in which somebody can act now; None while the rules tell something, and after the end."""
    start = start_of(turns)
    step = rules_in(spec).next(spec.scenario, Transcript(tuple(turns[:start])), spec.seed)
    if not isinstance(step, Act):
        return None
    acted = {turn.speaker for turn in turns[start:]}
    return Beat(start, step, tuple(name for name in step.speakers if name not in acted))


def ways_in(spec: EpisodeSpec, turns: Sequence[Turn], beat: Beat, role: str) -> tuple[Way, ...]:
    """Return the ways in which a role can act in a beat; () if it has acted, or does not act in it."""
    if role not in beat.waiting:
        return ()
    here = present(spec.scenario, Transcript(tuple(turns[: beat.start])))
    return ways_of(spec.scenario, beat.act, role, here)
