"""How a report and the page of its run begin: the answer, the finding first, and the first picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from localsim.reports.document import Report
from localsim.reports.evidence import playing
from localsim.reports.figures import pairs
from localsim.reports.validity import head


@dataclass(frozen=True)
class Opening:
    """The values of opening.html.j2."""

    first: Sequence[str]
    rest: Sequence[str]
    """Folded."""
    doubt: str
    """How examples of talks that do not play were chosen; empty if all models hold their talks."""
    pictures: Sequence[tuple[str, Sequence[Markup]]]
    """The title of each family with its pictures."""


def opening(data: Report) -> Opening:
    """Return the opening of a report. What talks that do not play show stands before all else, and is not folded."""
    told, pictures = head.answer(data), [(title, list(map(Markup, own))) for title, own in pairs.panels(data.pairs)]
    if data.playing.withheld:
        return Opening(told, (), playing.RULE, pictures)
    shown = len(head.conclusions(data))
    return Opening(told[:shown], told[shown:], "", pictures)
