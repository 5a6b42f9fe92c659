"""A stored conversation as people read it, the same in the terminal, on pages and in the HTML report: turns with
their marks and notes.

First mentions are marked only where no leak is: readers would confuse two sets of marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from localsim.families.mentions import Mention
from localsim.reports import marks
from localsim.reports.marks import Mark
from localsim.store.episodes import StoredEpisode

Row = dict[str, Any]


@dataclass(frozen=True)
class MarkedTurn:
    """One turn with its marks and leaks."""

    row: Row
    """turn, speaker, action, text, words, truncated."""
    colour: int
    """Number of the speaker's colour, 0 to 7."""
    parts: Sequence[tuple[str, Mark | None]]
    """The text in parts, each with its mark or None."""
    mentions: Sequence[Mention]
    """Terms of facts that are first uttered in this turn."""
    leaks: Sequence[Row]
    """Leaks in this turn, as rows of leaks."""

    @property
    def strange(self) -> list[str]:
        """The terms first uttered in this turn by a speaker who holds no such fact."""
        return [mention.term for mention in self.mentions if not mention.by_owner]


def marked_turns(episode: StoredEpisode, leaks: Sequence[Row] | None = None) -> list[MarkedTurn]:
    """Return the turns of an episode; `leaks` are the rows to mark, by default its first disclosures."""
    shown = episode.leaks if leaks is None else leaks
    colours = marks.colours(episode.scenario.names)
    turns = []
    for row in episode.turns:
        here = [leak for leak in shown if leak["turn"] == row["turn"]]
        mentions = [mention for mention in episode.mentions if mention.turn == row["turn"]]
        marked = marks.of_leaks(row["text"], here) if shown else marks.of_mentions(mentions)
        parts = marks.parts(row["text"], marked)
        turns.append(MarkedTurn(row, colours.get(row["speaker"], 7), parts, mentions, here))
    return turns


def remark_on(leak: Row) -> str:
    """Return a short remark on a leak; '' if the owner disclosed the fact in due time."""
    if leak["kind"] == "omniscient":
        return "had not been told it"
    return "too early" if leak["early"] else ""
