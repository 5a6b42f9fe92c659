"""The answer of a study in sentences, each from a finding.

First it says whose talks do not play. Nothing is concluded then from the tasks in which they do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from localsim.families import family_of, in_order, title_of
from localsim.reports.document import Section
from localsim.reports.validity.effects import effects
from localsim.reports.validity.findings import Difference, Finding, Headline, finding
from localsim.reports.validity.judges import sentence as rate_sentence
from localsim.study.differences import BOTH, CAUSES, Premium
from localsim.study.results import Results


def answer(model: Results, *, several: bool) -> list[Section]:
    """Return the answer about one model in parts; `several` names the model."""
    lead = f"{model.model}: " if several else ""
    parts = {
        "Talks that do not play": model.playing.sentences(),
        "Seeing every side, and one author for both": _modes(model.headline),
        "Null and premium": [*_premiums(model)],
        "Learning from scripts, and its controls": [*_arms(model)],
        "Naturalness": [*_naturalness(model)],
    }
    if model.twin:
        parts[f"The same by {model.twin.title}"] = _modes(model.twin.headline)
    return [Section(lead + about, [], said) for about, said in parts.items() if said]


def _modes(headline: Headline) -> list[str]:
    """Return what a report says of the differences between modes, without its advice on further runs."""
    said = [sentence for each in headline.families for sentence in each.sentences]
    return said or list(headline.sentences)


def _concluded(model: Results, rows: Iterable[Difference]) -> list[str]:
    """Return the families of rows in which the talks of all conditions play, in order."""
    withheld = {family for family, _ in model.playing.withheld}
    return [family for family in in_order(row.family for row in rows) if family not in withheld]


def _premiums(model: Results) -> Iterator[str]:
    """Yield for each family how much seeing every side changed the model, its twin, and the twin more than the model.

    Without a twin there is only the null, which the modes do not tell: that a change is small.
    """
    primary = [row for row in model.premiums if row.primary]
    for family in _concluded(model, primary):
        title = title_of(family_of(family))
        for key in dict.fromkeys(row.measure.key for row in primary):
            own = [row for row in primary if (row.family, row.measure.key) == (family, key)]
            if model.twin and own:
                yield _compared(title, {_cause(row.who): finding(row) for row in own}, own[0])
            yield from (f"{title}: {_excluded(row)}." for row in own if row.verdict == "null")


def _excluded(row: Premium) -> str:
    margin, heading = row.equivalence.margin, row.measure.heading
    size = f"{100 * margin:.0f} points" if row.measure.kind == "share" else f"{margin:g}"
    if row.who == BOTH:
        return f"the change of {heading} of twin and model differs by less than {size}"
    return f"a change of {heading} of {row.who} by {size} or more is excluded"


def _cause(who: str) -> str:
    return "what was built into the twin" if who == BOTH else f"seeing every side as {who}"


def _arms(model: Results) -> Iterator[str]:
    """Yield for each family success of the arms against agents, and of the paper's arm against its controls."""
    found = [row for row in model.arms if row.primary]
    for family in _concluded(model, found):
        title = title_of(family_of(family))
        against: dict[str, Finding] = {}
        lessons: dict[str, Finding] = {}
        for row in (row for row in found if row.family == family):
            cause = CAUSES[row.first, row.second]
            if row.first == "agents":
                against[cause] = finding(row)
            else:
                lessons[f"{cause} ({row.second} against {row.first})"] = finding(row)
        for where, causes in (("against agents", against), ("in the lessons", lessons)):
            if causes:
                yield _compared(f"{title}, {where}", causes, found[0])
    for name, lesson in model.lessons.items():
        if lesson.left_out:
            yield f"{name} was not taught: {lesson.left_out}."


def _compared(title: str, causes: Mapping[str, Finding], row: Difference) -> str:
    return f"{title}: {effects(causes, row.measure.heading)}"


def _naturalness(model: Results) -> Iterator[str]:
    """Yield the choices of the judge where both orders agree often enough, then those of people."""
    warned: dict[str, list[str]] = {}
    for rate in model.naturalness:
        if rate.warning:
            warned.setdefault(rate.warning, []).append(f"{rate.first} and {rate.second}")
        else:
            yield f"{rate_sentence(rate)}."
    for warning, pairs in warned.items():
        yield f"Of {', '.join(pairs)}, the judge {model.judge} {warning}."
    yield from model.people
