"""What was said, as people read it: `turns` has the marked turns of a conversation, `interviews` the answers."""

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
