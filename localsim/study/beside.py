"""Finished studies side by side: what their `study.json` say of success, and of the differences that matter.

Studies of one size and seed play the same scenarios, which `plan.scenarios` tells; others stand beside each other, too,
and a remark says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from localsim.errors import InvalidInput
from localsim.families import family_of, in_order, title_of
from localsim.families.base import SUCCESS
from localsim.reports.document import Table
from localsim.reports.validity.findings import CAUSES as EFFECTS
from localsim.reports.validity.findings import LEVEL
from localsim.reports.validity.headline import AUTHORSHIP, INFORMATION
from localsim.study.design import FINE_TUNED
from localsim.study.differences import CAUSES, EVERY

FILE = "study.json"
CONTRASTS = {name: EFFECTS[name] for name in (INFORMATION, AUTHORSHIP)}
"""Name of each contrast of the modes -> its cause."""


class Place(NamedTuple):
    """What a number is about: a family, and a condition or the cause of a difference."""

    family: str
    about: str


@dataclass(frozen=True)
class Success:
    """A share of successes, or a difference of two, with its 95% interval over scenarios."""

    value: float
    low: float | None
    high: float | None
    scenarios: int
    p: float | None = None
    """Corrected, as the study corrects it; None for a share."""


@dataclass(frozen=True)
class Chosen:
    """How often a judge chose the first of two conditions, of the pairs that it decided alike in both orders."""

    share: float | None
    low: float | None
    high: float | None
    pairs: int
    warning: str | None
    """Why its choices cannot be used."""


@dataclass(frozen=True)
class Finished:
    """One model of a finished study."""

    study: str
    """Name of its folder."""
    model: str
    identity: str
    """Name and checksum of its file."""
    size: Mapping[str, int | None]
    scenarios: str
    """Checksum over the compared scenarios."""
    command: str
    versions: str
    success: Mapping[Place, Success]
    differences: Mapping[Place, Success]
    withheld: frozenset[str]
    """Families in which talks of some condition do not play: their differences have no conclusion."""
    natural: Mapping[tuple[str, str], Chosen]
    """Two conditions -> how often the first was chosen as more natural, by the judge."""
    judge: Sequence[str]
    """What is known of the judge of goals; empty if none was asked."""
    answer: Sequence[tuple[str, Sequence[str]]]
    """Parts of the answer: what about, and its sentences."""

    def as_json(self) -> dict[str, Any]:
        """Return a row of `compare --json`."""
        row = {**vars(self), "withheld": sorted(self.withheld)}
        for name in ("success", "differences"):
            row[name] = [{**place._asdict(), **vars(each)} for place, each in row[name].items()]
        row["natural"] = [{"first": one, "second": two, **vars(each)} for (one, two), each in self.natural.items()]
        return row


def read(folder: Path) -> list[Finished]:
    """Return the models of a finished study. Raises InvalidInput if its file cannot be read."""
    file = folder / FILE
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return [_finished(folder.resolve().name, data, model) for model in data["models"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = "repeat the study: localsim study --dir FOLDER goes on with what is stored"
        message = f"no results of a study of this version ({type(error).__name__}: {error})"
        raise InvalidInput(message, where=str(file), hint=hint) from error


def _finished(name: str, data: Mapping[str, Any], model: Mapping[str, Any]) -> Finished:
    rows = [row for row in model["rows"] if row["task"] == EVERY and row[SUCCESS.key] is not None]
    several = len(data["models"]) > 1
    lead = f"{model['model']}: " if several else ""
    return Finished(
        name,
        model["model"],
        model["identity"],
        data["size"],
        data["plan"]["scenarios"],
        data["plan"]["command"],
        data["versions"],
        {
            Place(row["family"], row["condition"]): Success(
                row[SUCCESS.key], row[f"{SUCCESS.key}_low"], row[f"{SUCCESS.key}_high"], row["scenarios"]
            )
            for row in rows
        },
        dict(_differences(model)),
        frozenset(each["family"] for each in model["playing"]["cells"] if not each["holds"]),
        {(row["first"], row["second"]): Chosen(*(row[name] for name in _CHOSEN)) for row in model["naturalness"]},
        model["judged"]["sentences"] if model["judged"] else (),
        [
            (part["about"].removeprefix(lead), part["sentences"])
            for part in data["answer"]
            if part["about"].startswith(lead)
        ],
    )


_CHOSEN = ("first_chosen", "low", "high", "decided", "warning")


def _differences(model: Mapping[str, Any]) -> Iterator[tuple[Place, Success]]:
    """Yield the differences of success: of the modes, and of the arms over all tasks."""
    for row in model["premiums"]:
        if row["measure"] == SUCCESS.key and row["who"] == model["model"]:
            yield Place(row["family"], CONTRASTS[row["contrast"]]), _estimate(row)
    for row in model["arms"]:
        if row["measure"] == SUCCESS.key and row["task"] == EVERY:
            yield Place(row["family"], CAUSES[row["first"], row["second"]]), _estimate(row)


def _estimate(row: Mapping[str, Any]) -> Success:
    return Success(row["difference"], row["low"], row["high"], row["scenarios"], row["p_holm"])


# ---- the paper's claims ----------------------------------------------------------------------------------------------

TELLS = 0.2
"""A difference of success of this size should be told: what would be needed for it is said where nothing is."""
SOUNDS = {"Mindreaders": "mindreaders", "Scripts": "script", "Agents after learning from scripts": FINE_TUNED}
"""Name of each condition whose talks the paper finds more natural than agents' -> its label."""


def claims(found: Sequence[Finished]) -> Table:
    """Return the paper's three claims, each answered for each model: yes, no, or what it would take to tell."""
    rows = []
    for cause, claim in (
        (CONTRASTS[INFORMATION], "Agents succeed more if they see every side"),
        (CAUSES["agents", FINE_TUNED], "Agents do not succeed more after learning from scripts"),
    ):
        for family in in_order({place.family for each in found for place in each.differences}):
            cells = [_succeeds(each, Place(family, cause), gains=cause == CONTRASTS[INFORMATION]) for each in found]
            rows.append([claim, title_of(family_of(family)), *cells])
    for name, condition in SOUNDS.items():
        cells = [_sounds(each.natural.get((condition, "agents"))) for each in found]
        rows.append([f"{name} sound more natural than agents", "all", *cells])
    return Table("The paper's claims", ["claim", "task", *_heads(found)], rows, words=2 + len(found))


def _succeeds(each: Finished, place: Place, *, gains: bool) -> str:
    """Return whether success rises; for a claim that it does not, a rise is a no."""
    value = each.differences.get(place)
    if value is None:
        return "not asked"
    if place.family in each.withheld:
        return "cannot be told: too many talks are no conversations, so a larger model is needed"
    text = _cell(value, points=True).removesuffix(" *")
    if value.p is not None and value.p <= LEVEL:
        return f"{'yes' if (value.value > 0) == gains else 'no'}: {text}"
    if value.low is None or value.high is None:
        return f"cannot be told: {text}; success does not vary"
    needed = ceil(value.scenarios * ((value.high - value.low) / 2 / TELLS) ** 2)
    return f"cannot be told: {text}; {100 * TELLS:.0f} points need about {max(needed, value.scenarios + 1)} scenarios"


def _sounds(chosen: Chosen | None) -> str:
    if chosen is None:
        return "not asked"
    if chosen.warning or chosen.share is None:
        return "cannot be told: the judge picks a place, so people or a larger judge are needed"
    text = f"chosen in {100 * chosen.share:.0f}%"
    if chosen.low is None or chosen.high is None or chosen.low <= 0.5 <= chosen.high:
        return f"cannot be told: {text} of {chosen.pairs} pairs"
    ends = f" [{100 * chosen.low:.0f}, {100 * chosen.high:.0f}]"
    return f"{'yes' if chosen.low > 0.5 else 'no'}: {text}{ends} of {chosen.pairs} pairs"


# ---- tables ----------------------------------------------------------------------------------------------------------


def tables(found: Sequence[Finished]) -> list[Table]:
    """Return the paper's claims, success by family and condition, and differences of success by family and cause; a
    column for each model.
    """
    heads = _heads(found)
    return [
        claims(found),
        Table("Success", ["family", "condition", *heads], [*_rows([each.success for each in found])], words=2),
        Table(
            "Differences of success, in points",
            ["family", "effect of", *heads],
            [*_rows([each.differences for each in found], points=True)],
            [_READ, *_withheld(found)],
            words=2,
        ),
    ]


def _heads(found: Sequence[Finished]) -> list[str]:
    names = [each.model for each in found]
    return [each.model if names.count(each.model) == 1 else f"{each.study}: {each.model}" for each in found]


_READ = "Brackets: 95% over scenarios. p: as the study corrects it; * marks those of .05 or less."


def _withheld(found: Sequence[Finished]) -> Iterator[str]:
    for each in found:
        if each.withheld:
            families = ", ".join(title_of(family_of(family)) for family in in_order(each.withheld))
            yield f"{each.model} does not hold the conversations of {families}: nothing follows from differences there."


def _rows(columns: Sequence[Mapping[Place, Success]], *, points: bool = False) -> Iterator[list[Any]]:
    places = list(dict.fromkeys(place for own in columns for place in own))
    for family in in_order(place.family for place in places):
        for place in (place for place in places if place.family == family):
            yield [title_of(family_of(family)), place.about, *(_cell(own.get(place), points) for own in columns)]


def _cell(found: Success | None, points: bool) -> str:
    if found is None:
        return "-"
    form, unit = ("+.0f", "") if points else (".0f", "%")
    value, *ends = (None if each is None else 100 * each for each in (found.value, found.low, found.high))
    text = f"{value:{form}}{unit}"
    if None not in ends:
        text += f" [{ends[0]:{form}}, {ends[1]:{form}}]"
    return text + (" *" if found.p is not None and found.p <= LEVEL else "")


def remarks(found: Sequence[Finished]) -> list[str]:
    """Return what a reader must know before comparing the columns."""
    if len({each.scenarios for each in found}) > 1:
        return ["These studies play different scenarios: differences between columns are not paired."]
    lines = [f"All played the same {sum_of(found[0])} scenarios with the same seeds."]
    if len({each.versions for each in found}) > 1:
        lines.append("Versions of prompts or programs differ: part of a difference between columns can come from them.")
    return lines


def sum_of(found: Finished) -> int:
    """Return the number of compared scenarios."""
    by_family = {place.family: each.scenarios for place, each in found.success.items()}
    return sum(by_family.values())
