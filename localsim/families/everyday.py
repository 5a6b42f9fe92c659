"""Scenarios without a task family: people with goals and secrets, and no outcome that is right or wrong."""

from __future__ import annotations

from localsim.families.base import Family


class Everyday(Family):
    """The family of scenarios that name none, so that reports need no special case."""

    name = "everyday"
    title = "Everyday scenes"
    about = "Conversations between people with goals and secrets of their own; no outcome is scored as right or wrong."
    invitation = "Everyday conversations"
    measures = ()
    figure = ("explicit_end_rate", "turns", "words_per_turn")


EVERYDAY = Everyday()
