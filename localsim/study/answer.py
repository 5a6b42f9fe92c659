"""The answer of a study in sentences, each from a test over scenarios.

First it says whose talks do not play. Nothing is concluded then from the tasks in which they do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from localsim.families import family_of, in_order, title_of
from localsim.reports.validity.findings import Finding, finding
from localsim.reports.validity.headline import contrasts_sentence
from localsim.reports.validity.judges import sentence as rate_sentence
from localsim.study.premium import BOTH
from localsim.study.results import CAUSES

Row = dict[str, Any]


def answer(model: Row, *, several: bool) -> list[Row]:
    """Return the answer about one model: rows of about (a heading) and sentences; `several` names the model."""
    lead = f"{model['model']}: " if several else ""
    parts = {
        "Talks that do not play": model["playing"]["sentences"],
        "Seeing every side, and one author for both": _modes(model["headline"]),
        "Null and premium": [*_premiums(model)],
        "Learning from scripts, and its controls": [*_arms(model)],
        "Naturalness": [*_naturalness(model)],
    }
    if model["twin"]:
        parts[f"The same by {twin_name(model)}"] = _modes(model["twin"]["headline"])
    return [{"about": f"{lead}{about}", "sentences": said} for about, said in parts.items() if said]


def twin_name(model: Row) -> str:
    """Return the name of a model's twin with the note that it is constructed."""
    return f"{model['twin']['name']} ({model['twin']['made']})"


def _modes(headline: Row) -> list[str]:
    """Return what a report says of the differences between modes, without its advice on further runs."""
    said = [sentence for row in headline["families"] for sentence in row["sentences"]]
    return said or list(headline["sentences"])


def _concluded(model: Row, rows: Iterable[Row]) -> list[str]:
    """Return the families of rows in which the talks of all conditions play, in order."""
    withheld = {each["family"] for each in model["playing"]["withheld"]}
    return [family for family in in_order(row["family"] for row in rows) if family not in withheld]


def _premiums(model: Row) -> Iterator[str]:
    """Yield for each family how much seeing every side changed the model, its twin, and the twin more than the model.

    Without a twin there is only the null, which the modes do not tell: that a change is small.
    """
    primary = [row for row in model["premiums"] if row["primary"]]
    for family in _concluded(model, primary):
        title = title_of(family_of(family))
        for key in dict.fromkeys(row["measure"] for row in primary):
            own = [row for row in primary if (row["family"], row["measure"]) == (family, key)]
            about = next(each for each in model["measures"] if each["key"] == key)
            if model["twin"] and own:
                causes = {_cause(row["who"]): finding(row, row["p_holm"]) for row in own}
                yield f"{title}: {contrasts_sentence(causes, about['heading'])}"
            for row in own:
                if row["verdict"] == "null":
                    yield f"{title}: {_excluded(row, about)}."


def _excluded(row: Row, about: Row) -> str:
    margin = row["equivalence"]["margin"]
    size = f"{100 * margin:.0f} points" if about["kind"] == "share" else f"{margin:g}"
    if row["who"] == BOTH:
        return f"the change of {about['heading']} of twin and model differs by less than {size}"
    return f"a change of {about['heading']} of {row['who']} by {size} or more is excluded"


def _cause(who: str) -> str:
    return "what was built into the twin" if who == BOTH else f"seeing every side as {who}"


def _arms(model: Row) -> Iterator[str]:
    """Yield for each family success of the arms against agents, and of the paper's arm against its controls."""
    about = next(each for each in model["measures"] if each["key"] == "success_rate")
    found = [row for row in model["arms"] if row["primary"]]
    for family in _concluded(model, found):
        own = {(row["first"], row["second"]): finding(row, row["p_holm"]) for row in found if row["family"] == family}
        taught = {CAUSES[pair]: each for pair, each in own.items() if pair[0] == "agents"}
        controls = {f"{CAUSES[pair]} ({pair[1]} against {pair[0]})": own[pair] for pair in own if pair[0] != "agents"}
        yield from _of_family(f"{title_of(family_of(family))}, against agents", taught, about)
        yield from _of_family(f"{title_of(family_of(family))}, in the lessons", controls, about)
    for name, row in model["lessons"].items():
        if "left_out" in row:
            yield f"{name} was not taught: {row['left_out']}."


def _of_family(title: str, causes: Mapping[str, Finding], about: Row) -> Iterator[str]:
    if causes:
        yield f"{title}: {contrasts_sentence(causes, about['heading'])}"


def _naturalness(model: Row) -> Iterator[str]:
    """Yield the choices of the judge where both orders agree often enough, then those of people."""
    for rate in model["naturalness"]:
        if not rate.warning:
            yield f"{rate_sentence(rate)}."
    for warning in dict.fromkeys(rate.warning for rate in model["naturalness"] if rate.warning):
        pairs = [f"{rate.first} and {rate.second}" for rate in model["naturalness"] if rate.warning == warning]
        yield f"Of {', '.join(pairs)}, the judge {model['judge']} {warning}."
    yield from model["people"]
