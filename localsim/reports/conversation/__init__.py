"""What was said, and what was asked about it: marked turns, answers of interviews, scores by rubrics."""

from localsim.reports.conversation.turns import (
    MarkedTurn,
    hits_in,
    in_words,
    marked_turns,
    remark_on,
    tenths,
    unjudged_in,
    verdict_on,
)

__all__ = [
    "MarkedTurn",
    "hits_in",
    "in_words",
    "marked_turns",
    "remark_on",
    "tenths",
    "unjudged_in",
    "verdict_on",
]
