"""Findings in words: what a cause changed in a measure, by how much, and how sure that is. Every clause has an amount,
unless the report withholds it.
"""

from __future__ import annotations

from collections.abc import Mapping

from localsim.reports.validity.findings import Finding, p_text

CAUSES = {
    "information": "seeing every side",
    "authorship": "one author for both sides",
    "both": "one author who sees every side",
    "author": "one author, turn by turn,",
    "text": "one text instead of turns",
    "information+author": "one author, turn by turn, who sees every side,",
}
"""Name of a contrast -> what tells its two modes apart."""
EXPLORATORY = "exploratory: not declared before the run, p not corrected"
"""What is said of a difference that would be found if it had been declared."""


def effect(cause: str, found: Finding, heading: str) -> str:
    """Return what a cause changed in the measure of this heading, as a clause."""
    if found.verdict == "withheld":
        return f"how {cause} changes {heading} depends on the wording of the prompts, so this report withholds it"
    levels = _levels(found)
    if found.verdict in ("found", "exploratory") and found.interval:
        did = "lowered" if found.difference < 0 else "raised"
        low, high = (_size(abs(end), found.kind, "") for end in sorted(found.interval, key=abs))
        amount = amount_of(abs(found.difference), found.kind, sign="")
        way = f", from {' to '.join(levels)}" if levels else ""
        known = f"95% interval {low} to {high}, {scenarios(found.scenarios)}"
        hint = f", which is {EXPLORATORY}" if found.verdict == "exploratory" else ""
        return f"{cause} {did} {heading} by {amount}{way} ({known}){hint}"
    known = ", ".join(known_of(found))
    if found.scenarios == 1:
        return f"one scenario cannot tell whether {cause} changes {heading} ({known})"
    if found.too_few:
        return (
            f"{scenarios(found.scenarios)} are too few to tell whether {cause} changes {heading} ({known}): p cannot "
            f"be below {p_text(found.p_least)}"
        )
    if found.alike:
        return f"{cause} changed {heading} by {known} in all {scenarios(found.scenarios)}, so it has no interval"
    many = scenarios(found.scenarios)
    told = f"{', '.join(levels)} (difference {known}, {many})" if levels else f"{known} ({many})"
    return f"no effect of {cause} on {heading} was found: {told}" + (f", which {found.doubt}" if found.doubt else "")


def effects(causes: Mapping[str, Finding], heading: str) -> str:
    """Return what several causes changed in one measure, as a sentence."""
    return "; ".join(effect(cause, each, heading) for cause, each in causes.items()) + "."


def known_of(found: Finding) -> list[str]:
    """Return a difference, then its interval if it has one."""
    if found.interval is None:
        return [amount_of(found.difference, found.kind)]
    between = " to ".join(_size(end, found.kind) for end in found.interval)
    return [amount_of(found.difference, found.kind), f"95% interval {between}"]


def amount_of(value: float, kind: str, sign: str = "+") -> str:
    """Return a difference with its unit, never rounded to 0 if it is not."""
    size = _size(value, kind, sign)
    points = "" if kind != "share" else " point" if abs(float(size)) == 1 else " points"
    if value == 0:
        return f"0{points}"
    return f"{size}{points}" if float(size) else "less than a point" if points else "less than 0.01"


def scenarios(count: int) -> str:
    """Return a number of scenarios in words."""
    return f"{count} scenario{'s' if count != 1 else ''}"


def _levels(found: Finding) -> list[str]:
    """Return the values of both conditions; none if they are not known."""
    if not all(found.conditions):
        return []
    texts = (f"{level:.0%}" if found.kind == "share" else f"{level:.2f}" for level in found.levels)
    return [f"{text} in {name}" for text, name in zip(texts, found.conditions, strict=False)]


def _size(value: float, kind: str, sign: str = "+") -> str:
    return f"{100 * value:{sign}.0f}" if kind == "share" else f"{value:{sign}.2f}"
