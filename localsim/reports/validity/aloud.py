"""One paragraph about runs of several models on the same scenarios, to be read aloud.

It says what differed between agents who know their own side and agents who see both, by how much, how sure that is,
and which models are constructed controls. It says nothing that the headlines of the runs do not find.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from localsim.families import in_order
from localsim.models.registry import constructed, taught
from localsim.reports.report import report
from localsim.reports.validity.headline import INFORMATION, LEVEL
from localsim.runs.plan import CONTRASTS
from localsim.store.conditions import Condition
from localsim.store.database import Store
from localsim.store.queries import reports as queries

Row = dict[str, Any]
SUCCESS = "success_rate"
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def with_paragraph(store: Store, data: Row, conditions: Sequence[Condition]) -> Row:
    """Return a report with `aloud`: `runs` beside its own, and the paragraph about all of them, its own run first.

    A run counts if its agents and its mindreaders are among the conditions, and it shares a scenario and seed with the
    report's run. Without such a run the report is returned as it is.
    """
    own = data["run"]["run_id"]
    names: dict[str, set[str]] = defaultdict(set)
    for each in conditions:
        names[each.run_id].add(each.name)
    both = [run_id for run_id in names if run_id != own and names[run_id].issuperset(CONTRASTS[INFORMATION])]
    runs = [run_id for run_id in both if not _units(store, own).isdisjoint(_units(store, run_id))]
    if not runs:
        return data
    return {**data, "aloud": {"runs": runs, "paragraph": paragraph([data, *(report(store, each) for each in runs)])}}


def _units(store: Store, run_id: str) -> set[tuple[str, int]]:
    rows = queries.episodes(store, run_id)
    return {(row["scenario_hash"], row["seed"]) for row in rows if row["status"] == "completed"}


def paragraph(reports: Sequence[Row]) -> str:
    """Return the paragraph about the runs of these reports."""
    told = [row for data in reports for row in _told(data)]
    if not told:
        return (
            "These runs cannot tell how much seeing the other side changes: this needs agents and mindreaders on the "
            "same scenarios."
        )
    models = list(dict.fromkeys(row["model"] for row in told))
    sentences = [_opening(told, len(models))]
    for model in models:
        own = [row for row in told if row["model"] == model]
        sentences += [_origin(model), *(_finding(row) for row in own)]
    sentences += [_conclusion(model, [row for row in told if row["model"] == model]) for model in models]
    return " ".join([*sentences, _certainty(told)])


def _told(data: Row) -> Iterator[Row]:
    """Yield what a report tells about information, for each family and model, families in the order of a report."""
    rows = data["headline"]["families"]
    for family in in_order(row["family"] for row in rows):
        for row in rows:
            if row["family"] == family and row["contrasts"].get(INFORMATION):
                cells = {
                    cell["mode"]: cell
                    for cell in data["comparison"]
                    if (cell["family"], cell["model"]) == (family, row["model"])
                    and cell.get("condition", cell["mode"]) in CONTRASTS[INFORMATION]
                }
                about = next(each for each in data["measures"] if each["key"] == row["measure"])
                levels = [cells.get(mode, {}) for mode in CONTRASTS[INFORMATION]]
                yield {**row, "about": about, "levels": levels, "row": row["contrasts"][INFORMATION]}


# ---- sentences -----------------------------------------------------------------------------------------------------


def _opening(told: Sequence[Row], models: int) -> str:
    scenarios: dict[str, int] = {}
    for row in told:
        scenarios[row["title"]] = max(scenarios.get(row["title"], 0), row["row"]["scenarios"])
    played = " and ".join(f"{_number(count)} of {title}" for title, count in scenarios.items())
    who = f"{_number(models)} models" if models != 1 else "one model"
    many = "scenario" if sum(scenarios.values()) == 1 else "scenarios"
    return (
        f"{who.capitalize()} played the same {many}, {played}, with the same seeds: once as agents who each know only "
        "their own side, and once as agents who each see both sides."
    )


def _origin(model: str) -> str:
    """Return a sentence on what a model was taught about the other side."""
    if found := constructed(model):
        return f"{model} is constructed: it was {found}."
    if found := taught(model):
        return f"{model} was {found}."
    if model.startswith("scripted"):
        return f"{model} is a script and not a language model."
    return f"{model} was not made for this comparison."


def _finding(row: Row) -> str:
    """Return a sentence on one family: both levels, the difference, and what its test says."""
    about, found = row["about"], row["row"]
    levels = [_size(each.get(about["key"]), about["kind"]) for each in row["levels"]]
    noun = "" if about["key"] == SUCCESS else f" {about['heading']}"
    verb = "it succeeded in" if about["key"] == SUCCESS else "it had"
    sentence = f"In {row['title']} {verb} {levels[0]}{noun} without the other side's facts and {levels[1]} with them"
    if about["key"] != SUCCESS:
        success = [_size(each.get(SUCCESS), "share") for each in row["levels"]]
        if "unknown" not in success:
            sentence += f", with {success[0]} and {success[1]} success"
    return f"{sentence}: {_verdict(row, found)}."


def _verdict(row: Row, found: Row) -> str:
    verdict, kind = row["verdicts"][INFORMATION], row["about"]["kind"]
    if verdict == "withheld":
        return "the direction of the difference depends on the wording of the prompts, so nothing is told"
    if found["p_least"] > LEVEL:
        count = found["scenarios"]
        return f"{_number(count)} scenario{'s are' if count != 1 else ' is'} too few to tell any difference"
    if verdict == "found":
        unit = "points" if kind == "share" else row["about"]["heading"]
        low, high = sorted((found["low"], found["high"]), key=abs)
        interval = f"95% interval {_amount(low, kind)} to {_amount(high, kind)}"
        difference = f"{_amount(found['difference'], kind)} {unit} {_direction(found['difference'])}"
        return f"{difference} with them ({interval}, {_p(found)})"
    if found["low"] is None:
        return "no difference could be told"
    low, high = (f"{_amount(end, kind)} {_direction(end)}" for end in (found["low"], found["high"]))
    return f"no difference could be told (95% interval {low} to {high})"


def _conclusion(model: str, rows: Sequence[Row]) -> str:
    """Return a sentence on a model: where a difference was found, and whether it was built in."""
    found = [row["title"] for row in rows if row["verdicts"][INFORMATION] == "found"]
    missed = [row["title"] for row in rows if row["verdicts"][INFORMATION] != "found"]
    built = bool(constructed(model))
    if not found:
        return f"So no change could be told for {model}{', although one was built in' if built else ''}."
    rest = f", and no change could be told in {' and '.join(missed)}" if missed else ""
    return f"So seeing both sides changed {model} in {' and '.join(found)}{', as was built in' if built else ''}{rest}."


def _certainty(told: Sequence[Row]) -> str:
    tests = sum(row["row"]["p_least"] <= LEVEL for row in told)
    if not tests:
        return "More scenarios are needed: localsim design computes how many."
    each = f"Each of the {_number(tests)} tests" if tests > 1 else "The test"
    return (
        f"{each} counts a scenario once, and finds a difference in one of twenty cases where there is none; that none "
        "could be told does not show that there is none."
    )


# ---- words ---------------------------------------------------------------------------------------------------------


def _number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)


def _size(value: float | None, kind: str) -> str:
    if value is None:
        return "unknown"
    return f"{value:.0%}" if kind == "share" else f"{value:.1f}"


def _amount(value: float, kind: str) -> str:
    return f"{100 * abs(value):.0f}" if kind == "share" else f"{abs(value):.1f}"


def _direction(value: float) -> str:
    return "more" if value > 0 else "fewer"


def _p(found: Row) -> str:
    p = found["p"] if found["primary"] else found["p_holm"]
    return "p below .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".")
