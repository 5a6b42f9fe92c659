"""The answer of a report in sentences: how much knowing every side changed success, and how much one author added.

Each sentence is computed from the primary comparison (`reports.comparison`) and says so when the run cannot tell. A
difference is said to be found only if it is a finding (`validity.findings`). Nothing is said of a model whose talks do
not play (`playing`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from localsim.conversation.measures import Measure
from localsim.families import family_of, in_order, title_of
from localsim.reports.document import Report
from localsim.reports.evidence.interviews import answered
from localsim.reports.results import Number, Result
from localsim.reports.validity.findings import Answer, Finding, Headline, finding

Row = dict[str, Any]
SUCCESS = "success_rate"
PEEKING = "peeking"
"""Key of the measure that estimates how often a first choice used the other side; families define it."""
INFORMATION, AUTHORSHIP = "information", "authorship"
Findings = Mapping[str, Finding | None]
Turns = Callable[[str, str, str], bool]
"""True if the sign of (family, measure, contrast) turns in some variant of the prompts."""


def headline(data: Report, compared: Sequence[Row], turns: Turns = lambda *_: False) -> Headline:
    """Return the answer of a report: the modes of each family and model by success, then its findings.

    `compared` are the rows of `comparison.compare`; `turns` tells the signs that variants turn.
    """
    models = dict.fromkeys(row["model"] for row in compared if row["model"])
    withheld = data.playing.withheld
    cells = [(family, model) for family in in_order(row["family"] for row in compared) for model in models]
    cells = [cell for cell in cells if cell not in withheld]
    found = [each for cell in cells if (each := _answer(*cell, data, compared, turns)) is not None]
    sentences = [sentence for each in found for sentence in each.ranking]
    sentences += [sentence for each in found for sentence in each.sentences]
    if unknown := [each for each in found if each.peeking == "unknown"]:
        sentences.append(_unknown_peeking(unknown))
    if any(one and one.verdict == "not told" for each in found for one in each.findings.values()):
        sentences.append(_planning(data, compared))
    if not sentences and not withheld:
        sentences = answered(data.interviews) or [_untold(data, compared)]
    return Headline(sentences, found)


def _planning(data: Report, compared: Sequence[Row]) -> str:
    """Return the command that plans a larger run, or what a pilot needs if `localsim design` cannot use this run.

    It plans with the primary outcome, or with success if that is no share, from at least two scenarios whose
    differences vary.
    """
    run_id = data.run["run_id"]
    shares = [row for row in compared if row["kind"] == "share" and row["model"]]
    primary = [row for row in shares if row["primary"]]
    success = [row for row in shares if (row["measure"], row["contrast"]) == (SUCCESS, INFORMATION)]
    for pilots, options in ((primary, ""), (success, f" --measure {SUCCESS} --contrast {INFORMATION}")):
        if any(row["scenarios"] > 1 and (row["effect"] is not None or row["icc"] is not None) for row in pilots):
            command = f"localsim design {run_id}{options} --difference .2"
            return f"How many scenarios are needed to find a difference of 20 points: {command}"
    return (
        "This run cannot tell how many scenarios are needed: that takes a pilot of several scenarios that do not all "
        "have the same difference, such as 12 scenarios with -n 2."
    )


def _untold(data: Report, compared: Sequence[Row]) -> str:
    """Return what a run without a primary comparison needs: the modes, or another measure than success."""
    if not any(row["contrast"] == INFORMATION for row in compared):
        return (
            "This run cannot tell how much seeing every side changes: this needs agents and mindreaders on the same "
            "scenarios (localsim run --mode all)."
        )
    command = f"localsim compare {data.run['run_id']}"
    return f"The tasks of this run have no success to compare; see what else seeing every side changed: {command}"


def _answer(family: str, model: str, data: Report, compared: Sequence[Row], turns: Turns) -> Answer | None:
    """Return what is found about one family and model; differences between models tell nothing here."""
    own = [row for row in compared if (row["family"], row["model"]) == (family, model)]
    primary = next((row for row in own if row["primary"]), None)
    measure = primary["measure"] if primary else SUCCESS
    names = dict.fromkeys([*([primary["contrast"]] if primary else []), INFORMATION, AUTHORSHIP])
    of_measure = {row["contrast"]: row for row in own if row["measure"] == measure}
    findings = {name: found_in(of_measure[name], turns) if name in of_measure else None for name in names}
    if not any(findings.values()):
        return None
    about = next(each for each in data.measures if each.key == measure)
    several = len({row["model"] for row in compared if row["family"] == family and row["model"]}) > 1
    title = title_of(family_of(family)) + (f" ({model})" if several else "")
    if {each.verdict for each in findings.values() if each} == {"not told"}:
        sentences = [f"{title}: {_whether(findings, about)}{_missing(findings)}."]
    else:
        sentences = [f"{title}: {_sizes(findings, about.heading)}; {_tail(findings)}{_missing(findings)}."]
    peeking = _peeking(family, model, data)
    sentences += [peeking] if peeking not in ("", "unknown") else []
    success = next((row for row in own if (row["measure"], row["contrast"]) == (SUCCESS, INFORMATION)), None)
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


def found_in(row: Row, turns: Turns = lambda *_: False) -> Finding:
    """Return the finding of a row of `comparison.compare`; the p of a primary comparison needs no correction."""
    withheld = turns(row["family"], row["measure"], row["contrast"])
    return finding(row, row["p"] if row["primary"] else row["p_holm"], withheld=withheld)


def _ranking(title: str, data: Report, own: Sequence[Row], told: Collection[str], turns: Turns) -> list[str]:
    """Return a sentence on the modes in the order of their success, and on how sure their differences are.

    `own` are the rows of `compare` on one family and model, `told` the contrasts whose tests another sentence tells.
    It is empty if fewer than two modes have a success.
    """
    family, model = own[0]["family"], own[0]["model"]
    cells = [
        row
        for row in data.comparison
        if (row.family, row.model) == (family, model) and row.value(SUCCESS) is not None and not row.other
    ]
    if len(cells) < 2:
        return []
    shares: dict[float, list[str]] = {}
    for row in sorted(cells, key=lambda row: -(row.value(SUCCESS) or 0.0)):
        shares.setdefault(row.value(SUCCESS) or 0.0, []).append(row.condition)
    (best, leaders), *others = shares.items()
    if not others:
        return [f"{title}: every mode reached the goal in {best:.0%} of its conversations."]
    less = ", ".join(f"{' and '.join(names)} in {share:.0%}" for share, names in others)
    tests = [row for row in own if row["measure"] == SUCCESS and row["first"] and row["contrast"] not in told]
    sure = f"; {_sure([found_in(row, turns) for row in tests])}" if tests else ""
    said = f"{' and '.join(leaders)} reached the goal most often, in {best:.0%} of conversations, {less}"
    return [f"{title}: {said}{sure}."]


def _sure(tests: Sequence[Finding]) -> str:
    """Return which of the differences in success are found, each with its size and interval."""
    found = [each for each in tests if each.verdict == "found"]
    if any(each.verdict == "withheld" for each in tests):
        return "this order depends on the wording of the prompts"
    if not found:
        if len(tests) == 1:
            return "chance can explain the difference between {} and {}".format(*tests[0].conditions)
        return "chance can explain these differences"
    parts = []
    for each in found:
        sizes = [text.replace("+", "") for text in _known(_upwards(each), counted=False)]
        parts.append(f"{each.conditions[0]} and {each.conditions[1]} differ by {', '.join(sizes)}")
    rest = ", and can tell no other two modes apart" if len(found) < len(tests) else ""
    return f"this run finds that {', '.join(parts)}{rest}"


def _upwards(found: Finding) -> Finding:
    """Return a finding whose difference is not below 0: that of the other order, if it is."""
    if found.difference >= 0 or found.interval is None:
        return replace(found, difference=abs(found.difference))
    low, high = found.interval
    return replace(found, difference=-found.difference, interval=(-high, -low))


def _sizes(findings: Findings, heading: str) -> str:
    """Return the differences of causes, or of contrasts, with their intervals."""
    parts: list[str] = []
    counted = not _together(findings.values())
    for name, each in findings.items():
        cause, what = _CAUSES.get(name, name), "it" if parts else heading
        if each and each.verdict == "withheld":
            parts.append(f"{cause} changed {what} by an amount that this report withholds")
        elif each:
            size, *known = _known(each, counted)
            parts.append(f"{cause} changed {what} by {size}" + (f" ({', '.join(known)})" if known else ""))
    return ", ".join(parts)


def _whether(findings: Findings, about: Measure) -> str:
    """Return the differences of a run that finds none of them: it cannot tell whether they are changes."""
    known = {name: each for name, each in findings.items() if each}
    counted = not _together(known.values())
    parts: list[str] = []
    for name, each in known.items():
        what = about.heading if not parts else "it"
        parts.append(f"{_CAUSES[name]} changed {what} ({', '.join(_known(each, counted))})")
    if all(each.scenarios == 1 for each in known.values()):
        end = "; one scenario cannot tell a change from none"
    elif few := _too_few(known.values()):
        end = f"; {few.strip(' ()')}"
    else:
        end = "" if counted else f"; it has {_scenarios(next(iter(known.values())).scenarios)}"
    return f"this run cannot tell whether {' or '.join(parts)}{end}"


_CAUSES = {
    INFORMATION: "seeing every side",
    AUTHORSHIP: "one author for both sides",
    "both": "one author who sees every side",
    "author": "one author, turn by turn,",
    "text": "one text instead of turns",
    "information+author": "one author, turn by turn, who sees every side,",
}


def _known(found: Finding, counted: bool) -> list[str]:
    """Return a difference, then its interval, and if `counted` its number of scenarios."""
    size = _size(found.difference, found.kind)
    points = "" if found.kind != "share" else " point" if abs(float(size)) == 1 else " points"
    small = "less than a point" if points else "less than 0.01"
    shown = f"0{points}" if found.difference == 0 else f"{size}{points}" if float(size) else small
    interval = [f"95% {' to '.join(_size(end, found.kind) for end in found.interval)}"] if found.interval else []
    return [shown, *interval, *([_scenarios(found.scenarios)] if counted else [])]


def _scenarios(count: int) -> str:
    return f"{count} scenario{'s' if count != 1 else ''}"


def _together(findings: Iterable[Finding | None]) -> str:
    """Return "with 12 scenarios " if all findings have as many; "" if each has a number of its own."""
    counts = {each.scenarios for each in findings if each}
    return f"with {_scenarios(counts.pop())} " if len(counts) == 1 else ""


def _too_few(findings: Iterable[Finding]) -> str:
    """Return a note on the finding with the fewest scenarios if they are too few for any finding."""
    least = max(findings, key=lambda each: each.p_least)
    few = f"{_scenarios(least.scenarios)} cannot give a p below {_p(least.p_least)}"
    return f" ({few})" if least.too_few else ""


def _tail(findings: Findings) -> str:
    """Return what the tests say of the differences, in their order, if one is found or withheld."""
    verdicts = {name: each.verdict for name, each in findings.items() if each}
    if "withheld" in verdicts.values():
        return "its sign depends on the wording of the prompts, so this is no finding"
    found = [_CAUSES[name] for name, verdict in verdicts.items() if verdict == "found"]
    which = "all of it" if len(found) == len(verdicts) else f"only the change by {' and '.join(found)}"
    return f"{_together(findings.values())}this run finds {which}"


def _missing(findings: Findings) -> str:
    """Return what a run lacks a mode to tell."""
    absent = [_CAUSES[name] for name, each in findings.items() if each is None]
    return f"; it lacks a mode to tell what {' and '.join(absent)} changes" if absent else ""


def contrasts_sentence(causes: Mapping[str, Finding], heading: str) -> str:
    """Return the differences of several pairs of conditions, their intervals and what their tests say, as a sentence.

    The findings are about one measure, which has this heading. A cause is what tells the two conditions of a finding
    apart. Pairs with different numbers of scenarios state their own.
    """
    n = _together(causes.values())
    found = [cause for cause, each in causes.items() if each.verdict == "found"]
    if all(each.scenarios == 1 for each in causes.values()):
        tail = "one scenario cannot tell a change from none"
    elif found:
        tail = f"{n}this finds the change by {' and '.join(found)}"
    else:
        tail = f"{n}none of it can be told from no change{_too_few(causes.values())}"
    return f"{_sizes(causes, heading)}; {tail}."


def _peeking(family: str, model: str, data: Report) -> str:
    """Return a sentence on choices that used the other side, by mode; "unknown" if no mode has enough of them.

    It is empty if no mode has this measure.
    """
    cells = [row for row in data.comparison if (row.family, row.model) == (family, model)]
    cells = [row for row in cells if row.value(PEEKING) is not None]
    told = [row for row in cells if _tells(row.number(PEEKING))]
    if not told:
        return "unknown" if cells else ""
    used = [row for row in told if (row.number(PEEKING).low or 0.0) > 0]
    lucky = [row for row in told if row not in used]
    parts = [f"beyond chance in {', '.join(map(_share, used))}"] if used else []
    parts += [f"no more than chance explains in {', '.join(map(_share, lucky))}"] if lucky else []
    few = [row.condition for row in cells if row not in told]
    parts += [f"too few to tell in {', '.join(few)}"] if few else []
    return f"First guesses or offers that used the other side: {'; '.join(parts)}."


def _tells(peeking: Number) -> bool:
    """Return True if peeking has an interval that is not wider than all that it can be, -100% to 100%."""
    return peeking.low is not None and peeking.high is not None and peeking.high - peeking.low <= 2


def _unknown_peeking(answers: Sequence[Answer]) -> str:
    """Return one sentence for all families and models whose choices are too few to tell."""
    titles = " and ".join(dict.fromkeys(each.title for each in answers))
    return f"{titles}: too few first guesses or offers to tell whether they used the other side."


def _share(row: Result) -> str:
    """Return peeking in a condition with its interval, and with the judged conversations if these are not all."""
    found = row.number(PEEKING)
    judged = row.completed if found.n is None else found.n
    of = f", {judged} of {row.completed} judged" if judged < row.completed else ""
    return f"{row.condition} {found.value:.0%} (95% {found.low:.0%} to {found.high:.0%}{of})"


def _size(value: float, kind: str) -> str:
    return f"{100 * value:+.0f}" if kind == "share" else f"{value:+.2f}"


def _p(value: float | None) -> str:
    return "unknown" if value is None else "< .001" if value < 0.001 else f"{value:.3f}".lstrip("0")
