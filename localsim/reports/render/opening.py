"""How a report and the page of its run begin: the answer, the finding first, and the first picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from localsim.models.registry import constructed
from localsim.reports.document import Report
from localsim.reports.evidence import playing
from localsim.reports.figures import pairs
from localsim.reports.validity import head

LINES = "A thin line is one scenario, a thick one several with the same values. Marks are means with 95% intervals."
"""How every picture is read."""


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
    caption: str
    """What the pictures show, and what they leave out."""


def opening(data: Report) -> Opening:
    """Return the opening of a report. What talks that do not play show stands before all else, and is not folded."""
    told, pictures = head.answer(data), [(title, list(map(Markup, own))) for title, own in pairs.panels(data.pairs)]
    if data.playing.withheld:
        return Opening(told, (), playing.RULE, pictures, _caption(data))
    shown = len(head.conclusions(data))
    return Opening(told[:shown], told[shown:], "", pictures, _caption(data))


def _caption(data: Report) -> str:
    texts = [
        "A thin line is one scenario, a thick one several with the same values. Marks are means with 95% intervals."
    ]
    if {row.mode for row in data.comparison} > {mode for each in data.pairs for mode in each.modes}:
        texts.append("Scripts are not compared here: one author writes both sides.")
    for model in dict.fromkeys(each.model for each in data.pairs if constructed(each.model)):
        texts.append(f"{model} is a control: it was built to use the other side, so it shows what a gain looks like.")
    return " ".join(texts)
