"""The answer of a report in sentences: how much knowing every side changed success, and how much one author added.

Each sentence is computed from the primary comparison (`reports.comparison`) and says so when the run cannot tell. A
difference is said to be found only if its test finds it (p <= .05 over scenarios; corrected, if it is not primary), its
interval leaves out 0 and, in a perturbed run, no variant turns its sign. Nothing is said of a model whose talks do not
play (`playing`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from localsim.families import family_of, in_order, title_of
from localsim.reports.conversation.interviews import answered
from localsim.reports.document import Report

Row = dict[str, Any]
LEVEL = 0.05
SUCCESS = "success_rate"
PEEKING = "peeking"
"""Key of the measure that estimates how often a first choice used the other side; families define it."""
INFORMATION, AUTHORSHIP = "information", "authorship"
Verdict = Literal["found", "not told", "withheld", "absent"]
Turns = Callable[[str, str, str], bool]
"""True if the sign of (family, measure, contrast) turns in some variant of the prompts."""


def headline(data: Report, compared: Sequence[Row], turns: Turns = lambda *_: False) -> Row:
    """Return sentences (all of them), families: a row of verdicts and sentences for each family and model.

    The sentences begin with the modes of each family and model in the order of their success.

    `data` is a report, `compared` the rows of `comparison.compare`; `turns` tells the signs that variants turn.
    """
    models = dict.fromkeys(row["model"] for row in compared if row["model"])
    withheld = data.playing.withheld
    cells = [(family, model) for family in in_order(row["family"] for row in compared) for model in models]
    cells = [cell for cell in cells if cell not in withheld]
    found = [row for cell in cells if (row := _cell(*cell, data, compared, turns)) is not None]
    sentences = [sentence for part in ("ranking", "sentences") for row in found for sentence in row[part]]
    if any(row["peeking"] == "unknown" for row in found):
        sentences.append(_unknown_peeking([row for row in found if row["peeking"] == "unknown"]))
    if any("not told" in row["verdicts"].values() for row in found):
        sentences.append(_planning(data, compared))
    if not sentences and not withheld:
        sentences = answered(data.interviews) or [_untold(data, compared)]
    return {"sentences": sentences, "families": found}


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


def _cell(family: str, model: str, data: Report, compared: Sequence[Row], turns: Turns) -> Row | None:
    """Return the verdicts and sentences about one family and model; differences between models tell nothing here."""
    own = [row for row in compared if (row["family"], row["model"]) == (family, model)]
    primary = next((row for row in own if row["primary"]), None)
    measure = primary["measure"] if primary else SUCCESS
    names = dict.fromkeys([*([primary["contrast"]] if primary else []), INFORMATION, AUTHORSHIP])
    found = {row["contrast"]: row for row in own if row["measure"] == measure}
    contrasts = {name: found.get(name) for name in names}
    if all(row is None for row in contrasts.values()):
        return None
    verdicts = {name: _verdict(row, turns) for name, row in contrasts.items()}
    about = next(each for each in data.measures if each["key"] == measure)
    several = len({row["model"] for row in compared if row["family"] == family and row["model"]}) > 1
    title = title_of(family_of(family)) + (f" ({model})" if several else "")
    told = {verdict for verdict in verdicts.values() if verdict != "absent"}
    if told == {"not told"}:
        sentences = [f"{title}: {_whether(contrasts, about)}{_missing(verdicts)}."]
    else:
        sentences = [
            f"{title}: {_sizes(contrasts, verdicts, about)}; {_tail(contrasts, verdicts)}{_missing(verdicts)}."
        ]
    peeking = _peeking(family, model, data)
    sentences += [peeking] if peeking not in ("", "unknown") else []
    success = next((row for row in own if (row["measure"], row["contrast"]) == (SUCCESS, INFORMATION)), None)
    shown: Row = {"family": family, "model": model, "title": title, "measure": measure, "peeking": peeking}
    shown |= {"success": success, "success_verdict": _verdict(success, turns)}
    shown["ranking"] = _ranking(title, data, own, contrasts if measure == SUCCESS else (), turns)
    return {**shown, "contrasts": contrasts, "verdicts": verdicts, "sentences": sentences}


def _verdict(row: Row | None, turns: Turns) -> Verdict:
    if row is None:
        return "absent"
    if turns(row["family"], row["measure"], row["contrast"]):
        return "withheld"
    return "found" if finds(row) else "not told"


def _ranking(title: str, data: Report, own: Sequence[Row], told: Collection[str], turns: Turns) -> list[str]:
    """Return a sentence on the modes in the order of their success, and on how sure their differences are.

    `own` are the rows of `compare` on one family and model, `told` the contrasts whose tests another sentence tells.
    It is empty if fewer than two modes have a success.
    """
    family, model = own[0]["family"], own[0]["model"]
    cells = [
        row
        for row in data.comparison
        if (row["family"], row["model"]) == (family, model)
        and row.get(SUCCESS) is not None
        and not (row.get("other_run") or row.get("people_run"))
    ]
    if len(cells) < 2:
        return []
    shares: dict[float, list[str]] = {}
    for row in sorted(cells, key=lambda row: -float(row[SUCCESS])):
        shares.setdefault(row[SUCCESS], []).append(_name(row))
    (best, leaders), *others = shares.items()
    if not others:
        return [f"{title}: every mode reached the goal in {best:.0%} of its conversations."]
    less = ", ".join(f"{' and '.join(names)} in {share:.0%}" for share, names in others)
    tests = [row for row in own if row["measure"] == SUCCESS and row["first"] and row["contrast"] not in told]
    sure = f"; {_sure(tests, turns)}" if tests else ""
    said = f"{' and '.join(leaders)} reached the goal most often, in {best:.0%} of conversations, {less}"
    return [f"{title}: {said}{sure}."]


def _sure(tests: Sequence[Row], turns: Turns) -> str:
    """Return which of the differences in success are found, each with its size and interval."""
    verdicts = [_verdict(row, turns) for row in tests]
    found = [row for row, verdict in zip(tests, verdicts, strict=True) if verdict == "found"]
    if "withheld" in verdicts:
        return "this order depends on the wording of the prompts"
    if not found:
        if len(tests) == 1:
            return f"chance can explain the difference between {tests[0]['first']} and {tests[0]['second']}"
        return "chance can explain these differences"
    parts = []
    for row in found:
        size, *interval = (each.replace("+", "") for each in _known(_upwards(row), row["kind"], counted=False))
        parts.append(f"{row['first']} and {row['second']} differ by {', '.join([size, *interval])}")
    rest = ", and can tell no other two modes apart" if len(found) < len(tests) else ""
    return f"this run finds that {', '.join(parts)}{rest}"


def _upwards(row: Row) -> Row:
    """Return a comparison whose difference is not below 0: that of the other order, if it is."""
    if row["difference"] >= 0 or row["low"] is None:
        return {**row, "difference": abs(row["difference"])}
    return {**row, "difference": -row["difference"], "low": -row["high"], "high": -row["low"]}


def finds(row: Row) -> bool:
    """Return True if the test of a row of `comparison.compare` finds a difference, and its interval leaves out 0."""
    return _found(row, tested(row))


def tested(row: Row) -> float | None:
    """Return the p that counts: that of the primary comparison as it is, any other corrected."""
    p: float | None = row["p"] if row["primary"] else row["p_holm"]
    return p


def _found(row: Row, p: float | None) -> bool:
    excludes_0 = row["low"] is not None and (row["low"] > 0 or row["high"] < 0)
    return p is not None and p <= LEVEL and excludes_0


def _sizes(contrasts: Mapping[str, Row | None], verdicts: Mapping[str, Verdict], about: Row) -> str:
    """Return both differences with their intervals."""
    parts: list[str] = []
    counted = not _together(row for row in contrasts.values() if row is not None)
    for name, row in contrasts.items():
        if row is None:
            continue
        withheld = verdicts[name] == "withheld"
        what = about["heading"] if not parts else "it"
        if withheld:
            parts.append(f"{_CAUSES[name]} changed {what} by an amount that this report withholds")
        else:
            parts.append(f"{_CAUSES[name]} {_change(what, row, about['kind'], counted)}")
    return ", ".join(parts)


def _whether(contrasts: Mapping[str, Row | None], about: Row) -> str:
    """Return the differences of a run that finds none of them: it cannot tell whether they are changes."""
    rows = {name: row for name, row in contrasts.items() if row is not None}
    counted = not _together(rows.values())
    parts: list[str] = []
    for name, row in rows.items():
        what = about["heading"] if not parts else "it"
        parts.append(f"{_CAUSES[name]} changed {what} ({', '.join(_known(row, about['kind'], counted))})")
    if all(row["scenarios"] == 1 for row in rows.values()):
        end = "; one scenario cannot tell a change from none"
    elif few := _too_few(rows.values()):
        end = f"; {few.strip(' ()')}"
    else:
        end = "" if counted else f"; it has {_scenarios(next(iter(rows.values()))['scenarios'])}"
    return f"this run cannot tell whether {' or '.join(parts)}{end}"


_CAUSES = {
    INFORMATION: "seeing every side",
    AUTHORSHIP: "one author for both sides",
    "both": "one author who sees every side",
    "author": "one author, turn by turn,",
    "text": "one text instead of turns",
    "information+author": "one author, turn by turn, who sees every side,",
}


def _change(what: str, row: Row, kind: str, counted: bool) -> str:
    """Return a difference as a predicate with its interval, and if `counted` with its number of scenarios."""
    size, *known = _known(row, kind, counted)
    return f"changed {what} by {size}" + (f" ({', '.join(known)})" if known else "")


def _known(row: Row, kind: str, counted: bool) -> list[str]:
    """Return a difference, then its interval, and if `counted` its number of scenarios."""
    size = _size(row["difference"], kind)
    points = "" if kind != "share" else " point" if abs(float(size)) == 1 else " points"
    small = "less than a point" if points else "less than 0.01"
    shown = f"0{points}" if row["difference"] == 0 else f"{size}{points}" if float(size) else small
    interval = [f"95% {_size(row['low'], kind)} to {_size(row['high'], kind)}"] if row["low"] is not None else []
    return [shown, *interval, *([_scenarios(row["scenarios"])] if counted else [])]


def _scenarios(count: int) -> str:
    return f"{count} scenario{'s' if count != 1 else ''}"


def _together(rows: Iterable[Row]) -> str:
    """Return "with 12 scenarios " if all rows have as many; "" if each has a number of its own."""
    counts = {row["scenarios"] for row in rows}
    return f"with {_scenarios(counts.pop())} " if len(counts) == 1 else ""


def _too_few(rows: Iterable[Row]) -> str:
    """Return a note on the row with the fewest scenarios if they are too few for any finding."""
    least = max(rows, key=lambda row: float(row["p_least"]))
    few = least["p_least"] > LEVEL
    return f" ({_scenarios(least['scenarios'])} cannot give a p below {_p(least['p_least'])})" if few else ""


def _tail(contrasts: Mapping[str, Row | None], verdicts: Mapping[str, Verdict]) -> str:
    """Return what the tests say of the differences, in their order, if one is found or withheld."""
    rows = [row for row in contrasts.values() if row is not None]
    n = _together(rows)
    said = {name: verdict for name, verdict in verdicts.items() if verdict != "absent"}
    if "withheld" in said.values():
        return "its sign depends on the wording of the prompts, so this is no finding"
    found = [name for name, verdict in said.items() if verdict == "found"]
    all_found = len(found) == len(said)
    which = "all of it" if all_found else f"only the change by {' and '.join(_CAUSES[each] for each in found)}"
    return f"{n}this run finds {which}"


def _missing(verdicts: Mapping[str, Verdict]) -> str:
    """Return what a run lacks a mode to tell."""
    absent = [_CAUSES[name] for name, verdict in verdicts.items() if verdict == "absent"]
    return f"; it lacks a mode to tell what {' and '.join(absent)} changes" if absent else ""


def contrasts_sentence(causes: Mapping[str, Row], about: Row) -> str:
    """Return the differences of several pairs of conditions, their intervals and what their tests say, as a sentence.

    The rows are like those of `comparison.compare`, have a corrected p and are about one measure, which `about`
    describes. A cause is what tells the two conditions of a row apart. Pairs with different numbers of scenarios state
    their own.
    """
    parts: list[str] = []
    n = _together(causes.values())
    for cause, row in causes.items():
        what = about["heading"] if not parts else "it"
        parts.append(f"{cause} {_change(what, row, about['kind'], counted=not n)}")
    found = [cause for cause, row in causes.items() if _found(row, row["p_holm"])]
    if all(row["scenarios"] == 1 for row in causes.values()):
        tail = "one scenario cannot tell a change from none"
    elif found:
        tail = f"{n}this finds the change by {' and '.join(found)}"
    else:
        tail = f"{n}none of it can be told from no change{_too_few(causes.values())}"
    return f"{', '.join(parts)}; {tail}."


def _peeking(family: str, model: str, data: Report) -> str:
    """Return a sentence on choices that used the other side, by mode; "unknown" if no mode has enough of them.

    It is empty if no mode has this measure.
    """
    cells = [row for row in data.comparison if (row["family"], row["model"]) == (family, model)]
    cells = [row for row in cells if row.get(PEEKING) is not None]
    told = [row for row in cells if _tells(row)]
    if not told:
        return "unknown" if cells else ""
    used = [row for row in told if row[f"{PEEKING}_low"] > 0]
    lucky = [row for row in told if row not in used]
    parts = [f"beyond chance in {', '.join(map(_share, used))}"] if used else []
    parts += [f"no more than chance explains in {', '.join(map(_share, lucky))}"] if lucky else []
    few = [_name(row) for row in cells if row not in told]
    parts += [f"too few to tell in {', '.join(few)}"] if few else []
    return f"First guesses or offers that used the other side: {'; '.join(parts)}."


def _tells(row: Row) -> bool:
    """Return True if peeking has an interval that is not wider than all that it can be, -100% to 100%."""
    low, high = row[f"{PEEKING}_low"], row[f"{PEEKING}_high"]
    return low is not None and high - low <= 2


def _name(row: Row) -> str:
    return str(row.get("condition") or row["mode"])


def _unknown_peeking(rows: Sequence[Row]) -> str:
    """Return one sentence for all families and models whose choices are too few to tell."""
    titles = " and ".join(dict.fromkeys(row["title"] for row in rows))
    return f"{titles}: too few first guesses or offers to tell whether they used the other side."


def _share(row: Row) -> str:
    """Return peeking in a condition with its interval, and with the judged conversations if these are not all."""
    value, low, high = (row[f"{PEEKING}{end}"] for end in ("", "_low", "_high"))
    judged = row.get(f"{PEEKING}_n", row["completed"])
    of = f", {judged} of {row['completed']} judged" if judged < row["completed"] else ""
    return f"{_name(row)} {value:.0%} (95% {low:.0%} to {high:.0%}{of})"


def _size(value: float, kind: str) -> str:
    return f"{100 * value:+.0f}" if kind == "share" else f"{value:+.2f}"


def _p(value: float | None) -> str:
    return "unknown" if value is None else "< .001" if value < 0.001 else f"{value:.3f}".lstrip("0")
