"""The answer of a report in sentences: how much knowing every side changed success, and how much one author added.

Each sentence is computed from the primary comparison (`reports.comparison`) and says so when the run cannot tell. A
difference is said to be found only if it is a finding (`validity.findings`). Nothing is said of a model whose talks do
not play (`playing`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from localsim.families import in_order
from localsim.reports.comparison import Compared
from localsim.reports.document import Report
from localsim.reports.evidence.interviews import answered
from localsim.reports.validity.findings import (
    CAUSES,
    EXPLORATORY,
    Answer,
    Finding,
    Headline,
    effect,
    finding,
    known_of,
    scenarios,
)
from localsim.stats import grouped

SUCCESS, LENGTH = "success_rate", "turns"
PEEKING = "peeking"
"""Key of the measure that estimates how often a first choice used the other side; families define it."""
INFORMATION, AUTHORSHIP = "information", "authorship"
Turns = Callable[[str, str, str], bool]
"""True if the sign of (family, measure, contrast) turns in some variant of the prompts."""


def headline(data: Report, compared: Sequence[Compared], turns: Turns = lambda *_: False) -> Headline:
    """Return the answer of a report: its primary findings, the others, and the modes of each family by success.

    `compared` are the rows of `comparison.compare`; `turns` tells the signs that variants turn.
    """
    models = dict.fromkeys(row.model for row in compared if row.model)
    withheld = data.playing.withheld
    cells = [(family, model) for family in in_order(row.family for row in compared) for model in models]
    cells = [cell for cell in cells if cell not in withheld]
    found = [each for cell in cells if (each := _answer(*cell, data, compared, turns)) is not None]
    sentences = [each.sentences[0] for each in found]
    sentences += [sentence for each in found for sentence in each.sentences[1:]]
    sentences += [sentence for each in found for sentence in each.ranking]
    if unknown := dict.fromkeys(each.title for each in found if each.peeking == "unknown"):
        few = "too few first guesses or offers to tell whether they used the other side"
        sentences.append(f"{' and '.join(unknown)}: {few}.")
    if any(one and one.verdict == "not told" and not one.flat for each in found for one in each.findings.values()):
        sentences.append(_planning(data, compared))
    if not sentences and not withheld:
        sentences = answered(data.interviews) or [_untold(data, compared)]
    return Headline(sentences, found)


def _planning(data: Report, compared: Sequence[Compared]) -> str:
    """Return the command that plans a larger run, or what a pilot needs if `localsim design` cannot use this run.

    It plans with the primary outcome, or with success if that is no share, from at least two scenarios whose
    differences vary.
    """
    run_id = data.run.run_id
    shares = [row for row in compared if row.measure.kind == "share" and row.model]
    primary = [row for row in shares if row.primary]
    success = [row for row in shares if (row.measure.key, row.contrast) == (SUCCESS, INFORMATION)]
    for pilots, options in ((primary, ""), (success, f" --measure {SUCCESS} --contrast {INFORMATION}")):
        tests = [row.test for row in pilots if row.test.scenarios > 1]
        if any(test.effect is not None or test.icc is not None for test in tests):
            command = f"localsim design {run_id}{options} --difference .2"
            return f"How many scenarios are needed to find a difference of 20 points: {command}"
    return (
        "This run cannot tell how many scenarios are needed: that takes a pilot of several scenarios that do not all "
        "have the same difference, such as 12 scenarios with -n 2."
    )


def _untold(data: Report, compared: Sequence[Compared]) -> str:
    """Return what a run without a primary comparison needs: the modes, or another measure than success."""
    if not any(row.contrast == INFORMATION for row in compared):
        return (
            "This run cannot tell how much seeing every side changes: this needs agents and mindreaders on the same "
            "scenarios (localsim run --mode all)."
        )
    command = f"localsim compare {data.run.run_id}"
    return f"The tasks of this run have no success to compare; see what else seeing every side changed: {command}"


def _answer(family: str, model: str, data: Report, compared: Sequence[Compared], turns: Turns) -> Answer | None:
    """Return what is found about one family and model; differences between models tell nothing here."""
    own = [row for row in compared if (row.family, row.model) == (family, model)]
    primary = next((row for row in own if row.primary), None)
    measure = primary.measure.key if primary else SUCCESS
    names = dict.fromkeys([*([primary.contrast] if primary else []), INFORMATION, AUTHORSHIP])
    of_measure = {row.contrast: row for row in own if row.measure.key == measure}
    findings = {name: found_in(of_measure[name], turns) if name in of_measure else None for name in names}
    if not any(findings.values()):
        return None
    about = next(each for each in data.measures if each.key == measure)
    several = len({row.model for row in compared if row.family == family and row.model}) > 1
    title = data.title_of(family) + (f" ({model})" if several else "")
    sentences = [f"{title}: {effect(CAUSES[name], each, about.heading)}." for name, each in findings.items() if each]
    turns_of = next((row for row in own if (row.measure.key, row.contrast) == (LENGTH, INFORMATION)), None)
    ceiling = findings.get(INFORMATION)
    if turns_of and measure == SUCCESS and ceiling and ceiling.flat and ceiling.levels[0] and turns_of.test.difference:
        sentences.insert(1, f"{title}: {effect(CAUSES[INFORMATION], found_in(turns_of, turns), LENGTH)}.")
    sentences += [_left_out(title, CAUSES[name], of_measure[name]) for name, each in findings.items()
                  if each and any(of_measure[name].unpaired)]  # fmt: skip
    peeking = _peeking(family, model, title, data)
    sentences += [peeking] if peeking not in ("", "unknown") else []
    if absent := [CAUSES[name] for name, each in findings.items() if each is None]:
        sentences.append(f"{title}: this run lacks a mode to tell what {' and '.join(absent)} changes.")
    success = next((row for row in own if (row.measure.key, row.contrast) == (SUCCESS, INFORMATION)), None)
    return Answer(
        family=family,
        model=model,
        title=title,
        about=about,
        peeking=peeking,
        findings=findings,
        success=found_in(success, turns) if success else None,
        ranking=_ranking(title, data, own, names if measure == SUCCESS else (), turns),
        sentences=sentences,
    )


def _left_out(title: str, cause: str, row: Compared) -> str:
    """Return the sentence on scenarios that only one of two modes has, as in a class whose phones draw theirs."""
    first, second = row.unpaired
    both = f"{scenarios(row.test.scenarios)} that both {row.first} and {row.second} completed"
    return f"{title}: {cause} is compared on {both}; {first} of {row.first} and {second} of {row.second} have no pair."


def found_in(row: Compared, turns: Turns = lambda *_: False) -> Finding:
    """Return the finding of a comparison; the p of a primary one needs no correction."""
    withheld = turns(row.family, row.measure.key, row.contrast)
    return finding(row, withheld=withheld, conditions=(row.first, row.second), levels=row.levels)


def _ranking(title: str, data: Report, own: Sequence[Compared], told: Collection[str], turns: Turns) -> list[str]:
    """Return a sentence on the modes in the order of their success, and on how sure their differences are.

    `own` are the rows of `compare` on one family and model, `told` the contrasts whose tests another sentence tells.
    It is empty if fewer than two modes have a success.
    """
    family, model = own[0].family, own[0].model
    cells = [
        row
        for row in data.comparison
        if (row.family, row.model) == (family, model) and row.value(SUCCESS) is not None and not row.other
    ]
    if len(cells) < 2:
        return []
    ordered = sorted(cells, key=lambda row: -(row.value(SUCCESS) or 0.0))
    shares = grouped((row.value(SUCCESS) or 0.0, row.condition) for row in ordered)
    (best, leaders), *others = shares.items()
    if not others:
        return [f"{title}: every mode reached the goal in {best:.0%} of its conversations."]
    less = ", ".join(f"{' and '.join(names)} in {share:.0%}" for share, names in others)
    tests = [row for row in own if row.measure.key == SUCCESS and row.first and row.contrast not in told]
    sure = f"; {_sure([found_in(row, turns) for row in tests])}" if tests else ""
    said = f"{' and '.join(leaders)} reached the goal most often, in {best:.0%} of conversations, {less}"
    return [f"{title}: {said}{sure}."]


def _sure(tests: Sequence[Finding]) -> str:
    """Return which of the differences in success are found, each with its size and interval."""
    found = [each for each in tests if each.verdict == "found"]
    hints = [each for each in tests if each.verdict == "exploratory"]
    doubtful = [each for each in tests if each.doubt]
    if any(each.verdict == "withheld" for each in tests):
        return "this order depends on the wording of the prompts"
    if not (found or hints or doubtful):
        if len(tests) == 1:
            return "chance can explain the difference between {} and {}".format(*tests[0].conditions)
        return "chance can explain these differences"
    parts = [f"this run finds that {', '.join(map(_apart, found))}"] if found else []
    parts += [f"{', '.join(map(_apart, hints))}, which is {EXPLORATORY}"] if hints else []
    parts += [f"{_apart(each)}, which {each.doubt}" for each in doubtful]
    if len(found) + len(hints) + len(doubtful) == len(tests):
        return "; ".join(parts)
    return "; ".join(parts) + ("; this run" if hints or doubtful else ", and") + " can tell no other two modes apart"


def _apart(found: Finding) -> str:
    """Return by how much two modes differ."""
    size, *between = (text.replace("+", "") for text in known_of(_upwards(found)))
    return f"{found.conditions[0]} and {found.conditions[1]} differ by {size} ({', '.join(between)})"


def _upwards(found: Finding) -> Finding:
    """Return a finding whose difference is not below 0: that of the other order, if it is."""
    if found.difference >= 0 or found.interval is None:
        return replace(found, difference=abs(found.difference))
    low, high = found.interval
    return replace(found, difference=-found.difference, interval=(-high, -low))


def _peeking(family: str, model: str, title: str, data: Report) -> str:
    """Return a sentence on first choices that used the other side, by mode; "unknown" if no mode has enough of them.

    It is empty if no mode has this measure.
    """
    cells = [row for row in data.comparison if (row.family, row.model) == (family, model)]
    cells = [row for row in cells if row.value(PEEKING) is not None]
    used, lucky, few = [], [], []
    for row in cells:
        found = row.number(PEEKING)
        judged = f", {found.n} of {row.completed} judged" if found.n is not None and found.n < row.completed else ""
        if found.undecided or found.interval is None:
            few.append(row.condition)
        elif found.interval[0] > 0:
            ends = f"95% interval {found.low:.0%} to {found.high:.0%}"
            used.append(f"{row.condition} ({found.value:.0%}, {ends}{judged})")
        else:
            lucky.append(f"{row.condition} (at most {max(0.0, found.interval[1]):.0%}{judged})")
    if not used and not lucky:
        return "unknown" if cells else ""
    parts = [f"was found in {', '.join(used)}"] if used else []
    parts += [f"{'none was found' if used else 'was not found'} in {', '.join(lucky)}"] if lucky else []
    parts += [f"too few were judged to tell in {', '.join(few)}"] if few else []
    return f"{title}: peeking (a first guess or offer that used the other side) {'; '.join(parts)}."
