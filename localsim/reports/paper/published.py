"""The numbers of arXiv 2403.05020 (version 4): Table 1, Table 2, Figures 2, 4 to 6 and 10 to 12, each with its source.

Numbers that belong to one of our measures are declared with it (`Measure.published`) and read from there.

`printed`: the number is in a table, a bar's label or the text. `figure`: it was read off a bar without a label.
`rebuilt`: Table 2 prints its six columns in another order than its text and Figure 2 say; read row by row they fit.
No number of Figure 3 is here, because none of our sources states one, nor do they state Mixtral's win rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from localsim.reports.measures import published
from localsim.stats import Estimate

How = Literal["printed", "figure", "rebuilt"]
MARKS: dict[How, str] = {"printed": "", "figure": "†", "rebuilt": "‡"}
"""Signs in tables for numbers that are not printed as they stand."""
GPT, MIXTRAL = "paper, GPT-3.5", "paper, Mixtral-8x7B"
CONDITIONS = ("agents", "mindreaders", "script", "agents-ft")
"""The conditions of the paper, in the order of columns; agents-ft are agents fine-tuned on scripts."""


@dataclass(frozen=True)
class Quantity:
    """A quantity by condition, as the paper states it or as one of our instruments measures it."""

    panel: str
    what: str
    """The quantity or the part of the scenarios, such as overall or believability."""
    by: str
    """The paper's model, or our instrument."""
    place: str
    """Where the paper has it; empty for ours."""
    values: Mapping[str, Estimate]
    """Name of a condition -> its value."""
    how: Mapping[str, How] = field(default_factory=dict)
    """Conditions whose value the paper does not print."""
    remark: str = ""
    share: bool = False
    """True if its values are shares, whatever those of its panel are."""

    @property
    def ours(self) -> bool:
        """True unless the paper states it."""
        return self.by not in (GPT, MIXTRAL)


_FT: dict[str, How] = {"agents-ft": "rebuilt"}
_REBUILT: dict[str, dict[str, How]] = {
    "cooperative": {**_FT, "script": "rebuilt"},
    "competitive": {**_FT, "agents": "rebuilt"},
}
"""Columns of Table 2 that stand under another heading in print; Figure 2 prints the goals of all but agents-ft."""
_READ: dict[str, How] = {"agents": "figure", "script": "figure"}


_MEASURES = published()


def _of(measure: str) -> dict[str, Estimate]:
    """Return the values of GPT-3.5 that one of our measures declares, in the order of columns."""
    return _row(*(_MEASURES[measure].get(name) for name in CONDITIONS))


def _row(*values: float | None) -> dict[str, Estimate]:
    given = zip(CONDITIONS, values, strict=False)
    return {name: Estimate(value, None, None, 0) for name, value in given if value is not None}


GOAL = (
    Quantity("goal", "overall", GPT, "Figures 2 and 5, Table 1", _row(6.95, 7.45, 8.44, 7.93)),
    Quantity("goal", "cooperative", GPT, "Figures 2 and 5, Table 2", _row(5.86, 9.75, 9.78, 6.00), _FT),
    Quantity("goal", "competitive", GPT, "Figures 2 and 5, Table 2", _row(2.73, 3.18, 7.75, 7.60), _FT),
    Quantity("goal", "overall", MIXTRAL, "Figure 2, Table 1", _row(7.49, 8.30, 8.40)),
    Quantity("goal", "cooperative", MIXTRAL, "Figure 2", _row(5.84, 9.84, 9.65)),
    Quantity("goal", "competitive", MIXTRAL, "Figure 2", _row(3.72, 5.65, 6.85)),
)
DIMENSIONS = ("believability", "relationship", "knowledge", "secret", "social_rules", "financial", "goal", "overall")
"""Columns of Table 1; `overall` is the plain mean of the seven, whose ranges differ."""
_TABLES: tuple[tuple[str, str, str, str, tuple[float, ...]], ...] = (
    ("Table 1", GPT, "", "agents", (9.35, 1.43, 3.83, -0.05, -0.07, 0.46, 6.95, 3.13)),
    ("Table 1", GPT, "", "mindreaders", (9.30, 1.42, 4.34, -0.11, -0.08, 0.49, 7.45, 3.26)),
    ("Table 1", GPT, "", "script", (9.35, 2.12, 4.61, -0.13, -0.10, 0.84, 8.44, 3.59)),
    ("Table 1", GPT, "", "agents-ft", (9.44, 1.99, 4.12, -0.02, -0.08, 0.74, 7.93, 3.45)),
    ("Table 1", MIXTRAL, "", "agents", (9.26, 1.90, 4.28, -0.20, -0.08, 0.68, 7.49, 3.33)),
    ("Table 1", MIXTRAL, "", "mindreaders", (9.22, 2.16, 4.46, -0.11, -0.07, 0.78, 8.30, 3.53)),
    ("Table 1", MIXTRAL, "", "script", (9.35, 2.23, 4.04, -0.10, -0.09, 0.71, 8.40, 3.51)),
    ("Table 1", GPT, "names only", "agents", (9.53, 1.38, 4.46, -0.15, -0.10, 0.42, 6.94, 3.21)),
    ("Table 1", GPT, "names only", "mindreaders", (9.60, 1.52, 4.94, -0.17, -0.12, 0.52, 7.64, 3.42)),
    ("Table 1", GPT, "names only", "script", (9.65, 1.86, 5.19, -0.12, -0.08, 0.87, 8.44, 3.69)),
    ("Table 1", MIXTRAL, "names only", "agents", (9.50, 1.55, 4.68, -0.15, -0.12, 0.36, 7.34, 3.31)),
    ("Table 1", MIXTRAL, "names only", "mindreaders", (9.50, 1.92, 4.99, -0.14, -0.12, 0.60, 8.03, 3.54)),
    ("Table 1", MIXTRAL, "names only", "script", (9.62, 2.22, 4.59, -0.12, -0.15, 0.81, 8.48, 3.63)),
    ("Table 2", GPT, "cooperative", "agents", (9.20, 1.72, 4.59, 0, 0, 0.12, 5.86, 3.07)),
    ("Table 2", GPT, "cooperative", "agents-ft", (9.46, 1.50, 3.56, 0, 0, 0.06, 6.00, 2.94)),
    ("Table 2", GPT, "cooperative", "script", (9.54, 2.58, 6.46, 0, 0, 0.37, 9.78, 4.10)),
    ("Table 2", GPT, "competitive", "agents", (9.50, 0.44, 4.73, 0, 0, 0.42, 2.73, 2.55)),
    ("Table 2", GPT, "competitive", "agents-ft", (9.61, 0.82, 6.59, 0, 0, 2.61, 7.60, 3.89)),
    ("Table 2", GPT, "competitive", "script", (9.46, 0.75, 5.99, 0, 0, 2.48, 7.75, 3.78)),
)


def dimensions() -> list[Quantity]:
    """Return a row for each dimension of Tables 1 and 2, model and part of the scenarios."""
    rows = []
    for column, name in enumerate(DIMENSIONS):
        found: dict[tuple[str, str, str], dict[str, Estimate]] = {}
        for place, model, part, condition, numbers in _TABLES:
            found.setdefault((place, model, part), {})[condition] = Estimate(numbers[column], None, None, 0)
        for (place, model, part), values in found.items():
            how = _REBUILT.get("" if name == "goal" else part, _FT) if place == "Table 2" else {}
            rows.append(Quantity("dimensions", f"{name}, {part}" if part else name, model, place, values, how))
    return rows


_CHOSEN = "people chose, 30 judgements"
NATURALNESS = (
    Quantity("naturalness", "script over agents", GPT, "Figure 4", _row(None, None, 22 / 30), _READ, _CHOSEN),
    Quantity("naturalness", "script over agents-ft", GPT, "Figure 6", {}, {}, "no significant difference, p = .07"),
    Quantity("naturalness", "mindreaders over agents", GPT, "text", {}, {}, "said to be similar, without a number"),
)
WORDS = (
    Quantity("words", "words per turn", GPT, "text", _of("words_per_turn")),
    Quantity("words", "words per turn", MIXTRAL, "text", _row(33.72, 31.96, 13.36)),
)
FIRST_MENTION = (
    Quantity("first_mention", "mean position", GPT, "text", _of("first_mention")),
    Quantity("first_mention", "mean position", GPT, "Figure 10", _row(0.38, None, 0.10), _READ),
)
DEALS = (Quantity("deals", "share with a deal", GPT, "text, Figure 11", _of("deal_rate")),)
_SPREAD = "script and mindreaders early and alike, agents spread out, agents-ft a mix of both; no heights of bars"
HISTOGRAM = (Quantity("histogram", "position of the first mention", GPT, "Figure 12", {}, {}, _SPREAD),)
ROWS: tuple[Quantity, ...] = (*GOAL, *dimensions(), *NATURALNESS, *WORDS, *FIRST_MENTION, *DEALS, *HISTOGRAM)


@dataclass(frozen=True)
class Panel:
    """One table or figure of the paper, or several that show the same quantity."""

    key: str
    heading: str
    places: str
    differs: tuple[str, ...]
    """Keys of `differences.differences` that apply to it."""
    share: bool = False
    """True if its values are shares, printed as percentages."""


_ALWAYS = ("model", "scenarios", "turn limit", "temperature", "profiles", "form", "training")
PANELS = (
    Panel("goal", "Goal completion", "Figures 2 and 5, Table 1", ("scale", "judge", "answer key", *_ALWAYS)),
    Panel("dimensions", "All seven dimensions", "Tables 1 and 2", ("judge", "answer key", *_ALWAYS)),
    Panel("naturalness", "Naturalness: share of choices", "Figures 4 and 6", ("raters", *_ALWAYS), share=True),
    Panel("words", "Words per turn", "text", ("length", *_ALWAYS)),
    Panel("first_mention", "First mention of the friend", "Figure 10", ("answer key", "friends", *_ALWAYS)),
    Panel("deals", "Deals in bargaining", "Figure 11", ("judge", "zone", *_ALWAYS), share=True),
    Panel("histogram", "When the friend is first named", "Figure 12", ("answer key", "friends", *_ALWAYS)),
)
