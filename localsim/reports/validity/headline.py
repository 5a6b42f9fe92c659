"""The answer of a report in sentences: how much knowing every side changed success, and how much one author added.

Each sentence is computed from the primary comparison (`reports.comparison`) and says so when the run cannot tell. A
difference is said to be found only if its test finds it (p <= .05 over scenarios) and, in a perturbed run, no variant
turns its sign.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from localsim.families import family_of, title_of

Row = dict[str, Any]
LEVEL = 0.05
PEEKING = "peeking"
"""Key of the measure that estimates how often a first choice used the other side; families define it."""
INFORMATION, AUTHORSHIP = "information", "authorship"
Verdict = Literal["found", "not told", "withheld", "absent"]
Turns = Callable[[str, str, str], bool]
"""True if the sign of (family, measure, contrast) turns in some variant of the prompts."""


def headline(data: Row, compared: Sequence[Row], turns: Turns = lambda *_: False) -> Row:
    """Return sentence (all of them), families: a row of verdicts and sentences for each family and model.

    `data` is a report, `compared` the rows of `comparison.compare`; `turns` tells the signs that variants turn.
    """
    families = dict.fromkeys(row["family"] for row in compared)
    found = [row for family in families if (row := _family(family, data, compared, turns)) is not None]
    sentences = [sentence for row in found for sentence in row["sentences"]]
    if any("not told" in row["verdicts"].values() for row in found):
        sentences.append("localsim design computes how many scenarios a difference of 20 points takes.")
    if not sentences:
        sentences = [
            "This run cannot tell what knowing every side changes: that takes agents and mindreaders on the same "
            "scenarios (localsim run --mode all)."
        ]
    return {"sentences": sentences, "families": found}


def _family(family: str, data: Row, compared: Sequence[Row], turns: Turns) -> Row | None:
    primary = [row for row in compared if row["family"] == family and row.get("primary")]
    measure = primary[0]["measure"] if primary else "success_rate"
    contrasts = {
        name: next(
            (
                row
                for row in compared
                if (row["family"], row["measure"], row.get("contrast")) == (family, measure, name)
            ),
            None,
        )
        for name in (INFORMATION, AUTHORSHIP)
    }
    if all(row is None for row in contrasts.values()):
        return None
    verdicts = {name: _verdict(row, turns) for name, row in contrasts.items()}
    about = next(each for each in data["measures"] if each["key"] == measure)
    title = title_of(family_of(family))
    sentences = [f"{title}: {_sizes(contrasts, verdicts, about)}; {_tail(contrasts, verdicts)}."]
    sentences += _peeking(family, data)
    return {"family": family, "title": title, "measure": measure, "verdicts": verdicts, "sentences": sentences}


def _verdict(row: Row | None, turns: Turns) -> Verdict:
    if row is None:
        return "absent"
    if turns(row["family"], row["measure"], row["contrast"]):
        return "withheld"
    return "found" if row["p"] is not None and row["p"] <= LEVEL else "not told"


def _sizes(contrasts: Mapping[str, Row | None], verdicts: Mapping[str, Verdict], about: Row) -> str:
    """Return both differences with their intervals."""
    parts: list[str] = []
    for name, row in contrasts.items():
        if row is None:
            continue
        size = "by an amount that is withheld" if verdicts[name] == "withheld" else _amount(row, about["kind"])
        changed = f"changed {about['heading']}" if not parts else "changed it"
        parts.append(f"{_CAUSES[name]} {changed} {size}")
    return ", ".join(parts)


_CAUSES = {INFORMATION: "seeing every side", AUTHORSHIP: "writing both sides as one author"}


def _amount(row: Row, kind: str) -> str:
    interval = "" if row["low"] is None else f" (95% {_size(row['low'], kind)} to {_size(row['high'], kind)})"
    return f"by {_size(row['difference'], kind)}{' points' if kind == 'share' else ''}{interval}"


def _tail(contrasts: Mapping[str, Row | None], verdicts: Mapping[str, Verdict]) -> str:
    """Return what the test says of the differences."""
    rows = [row for row in contrasts.values() if row is not None]
    scenarios = max(row["scenarios"] for row in rows)
    n = f"{scenarios} scenario{'s' if scenarios != 1 else ''}"
    said = {name: verdict for name, verdict in verdicts.items() if verdict != "absent"}
    if "withheld" in said.values():
        return "a sign that turns with the wording of the instructions is no finding"
    found = [name for name, verdict in said.items() if verdict == "found"]
    if len(found) == len(said):
        return f"the test over {n} finds {'both' if len(found) > 1 else 'it'}"
    if found:
        return f"the test over {n} finds the {'first' if INFORMATION in found else 'second'} only"
    least = max(row["p_least"] for row in rows)
    limit = f", which allow no p below {_p(least)}" if least > LEVEL else ""
    return f"this run cannot tell {'either' if len(said) > 1 else 'it'} from no change with {n}{limit}"


def _peeking(family: str, data: Row) -> list[str]:
    """Return a sentence on choices that used the other side, for the modes that have this measure."""
    rows = [row for row in data["comparison"] if row["family"] == family and row.get(PEEKING) is not None]
    if not rows:
        return []
    several = len({row["model"] for row in rows}) > 1
    parts = [f"{row['mode']}{' ' + row['model'] if several else ''} {_share(PEEKING, row)}" for row in rows]
    return [f"First choices that used the other side, beyond chance: {', '.join(parts)}."]


def _share(key: str, row: Row) -> str:
    low, high = row[f"{key}_low"], row[f"{key}_high"]
    if low is None or high - low > 1:
        return "cannot be told"
    return f"{row[key]:.0%} ({low:.0%} to {high:.0%})"


def _size(value: float, kind: str) -> str:
    return f"{100 * value:+.0f}" if kind == "share" else f"{value:+.2f}"


def _p(value: float | None) -> str:
    return "unknown" if value is None else "< .001" if value < 0.001 else f"{value:.3f}".lstrip("0")
