"""The measures of play, and their controls."""

from __future__ import annotations

from localsim.conversation.controls import exactly
from localsim.conversation.measures import Measure

MEASURES = (
    Measure(
        key="plays_rate",
        head=True,
        heading="plays",
        meaning="share of conversations that play: neither repeats nor any other fault is above its limit",
        score="plays",
        kind="share",
        summed="episodes",
        compared=True,
    ),
)
CONTROLS = (
    exactly("parrot", "plays_rate", 0, "it repeats itself"),
    exactly("honest", "plays_rate", 1, "it plays its task"),
)
