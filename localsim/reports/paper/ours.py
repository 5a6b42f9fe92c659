"""Our side of the paper's tables: the same quantities of stored conditions over scenarios, and how tasks differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from localsim import stats
from localsim.conversation.scenario import Scenario
from localsim.conversation.wording.layouts import FREE
from localsim.evaluators.judge import DIMENSIONS
from localsim.families import EVERYDAY, family_of
from localsim.families.base import SUCCESS
from localsim.reports.compose.alone import cells
from localsim.reports.measures import Cell, measures_of, of_family, sided, within
from localsim.reports.paper.published import CONDITIONS, Quantity
from localsim.stats import Bounds, Estimate
from localsim.store.conditions import Condition
from localsim.store.database import Store
from localsim.store.episodes import stored_scenarios
from localsim.store.queries.runs import run_row

Found = Mapping[str, Sequence[Cell]]
"""Name of a condition -> its cells, one for each family."""
BINS = 10
"""Bars of a histogram of positions."""
RULES = "here, rules"
_JUDGE = "judge."


def read(store: Store, names: Mapping[Condition, str]) -> dict[str, list[Cell]]:
    """Return the cells of conditions."""
    found: dict[str, list[Cell]] = {name: [] for name in names.values()}
    for run_id in dict.fromkeys(each.run_id for each in names):
        for (_, condition), cell in cells(store, run_id, sided(store, run_id)).items():
            if condition in names:
                found[names[condition]].append(cell)
    return found


def judges_of(found: Found) -> list[str]:
    """Return the names of the judges that scored any of the conditions."""
    evaluators = {row.evaluator for own in found.values() for cell in own for row in cell.scores}
    return sorted(name.removeprefix(_JUDGE) for name in evaluators if name.startswith(_JUDGE))


def lines(found: Found, names: Sequence[str]) -> list[Quantity]:
    """Return our lines of all panels but naturalness and the histogram, with the judges of these names; lines without a
    value are left out.
    """
    every = [Quantity("goal", scope, RULES, "", _each(found, SUCCESS.key, scope), share=True) for scope in _SCOPES]
    judges = [(judge, f"here, judge {judge}") for judge in names]
    every += [
        Quantity("goal", scope, by, "", _judged(found, judge, "goal", scope))
        for judge, by in judges
        for scope in _SCOPES
    ]
    for judge, by in judges:
        for name in [*DIMENSIONS, "overall"]:
            for scope in _SCOPES:
                what = name if scope == "overall" else f"{name}, {scope}"
                every.append(Quantity("dimensions", what, by, "", _judged(found, judge, name, scope)))
    every += [
        Quantity("words", "words per turn", RULES, "", _each(found, "words_per_turn", "overall")),
        Quantity("first_mention", "mean position", RULES, "", _each(found, "first_mention", "overall")),
        Quantity("deals", "share with a deal", RULES, "", _each(found, "deal_rate", "overall"), share=True),
    ]
    return [line for line in every if line.values]


_SCOPES = ("overall", "cooperative", "competitive")


def _of_scope(own: Sequence[Cell], scope: str) -> list[Cell]:
    return [cell for cell in own if scope in ("overall", family_of(cell.family).interests)]


def _each(found: Found, key: str, scope: str) -> dict[str, Estimate]:
    """Return a measure of each condition that has a value; scenarios of several families count alike."""
    families = {cell.family for own in found.values() for cell in own} - {EVERYDAY.name}
    measure = next(each for each in measures_of(sorted(families)) if each.key == key)
    values = {}
    for condition, own in found.items():
        groups: dict[str, list[float]] = {}
        bounds: Bounds = measure.bounds
        for cell in _of_scope(own, scope):
            exact = within(of_family(measure, cell.family), cell.by_name)
            groups |= cell.by_scenario(exact)
            bounds = exact.bounds
        estimate = stats.clustered(groups, bounds, measure.is_number)
        if estimate.value is not None:
            values[condition] = estimate
    return values


def _judged(found: Found, judge: str, dimension: str, scope: str) -> dict[str, Estimate]:
    """Return a judge's mean score of a dimension, over agents, for each condition that it scored."""
    low, high = DIMENSIONS[dimension][:2] if dimension in DIMENSIONS else (None, None)
    bounds: Bounds = (None, None) if low is None or high is None else (float(low), float(high))
    values = {}
    for condition, own in found.items():
        groups: dict[str, list[float]] = {}
        for cell in _of_scope(own, scope):
            scores = [
                (row.episode_id, row.value)
                for row in cell.scores
                if (row.evaluator, row.name) == (_JUDGE + judge, dimension) and row.value is not None
            ]
            groups |= cell.grouped(scores)
        estimate = stats.clustered(groups, bounds)
        if estimate.value is not None:
            values[condition] = estimate
    return values


def histogram(found: Found) -> dict[str, list[int]]:
    """Return the number of conversations in each tenth in which the friend was first named, by condition."""
    counts = {}
    for condition, own in found.items():
        bars = [0] * BINS
        for cell in own:
            for row in cell.scores:
                if row.name == "first_mention" and row.value is not None:
                    bars[min(BINS - 1, int(row.value * BINS))] += 1
        if any(bars):
            counts[condition] = bars
    return counts


# ---- differences of task ---------------------------------------------------------------------------------------------


FINE_TUNED = CONDITIONS[-1]
"""The beginning of the labels of conditions whose agents were taught on conversations."""


def differences(store: Store, conditions: Sequence[Condition], judges: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return name of a difference -> (the paper, here); what is equal is left out. `judges` scored the conditions."""
    runs = list(dict.fromkeys(each.run_id for each in conditions))
    every = [loaded.scenario for run in runs for loaded in stored_scenarios(store, run).values()]
    scenarios = list({scenario.hash: scenario for scenario in every}.values())
    plans = [json.loads(run_row(store, run)["plan_json"]) for run in runs]
    models = ", ".join(dict.fromkeys(each.model for each in conditions))
    judged = f"; as a judge, {', '.join(judges)}" if judges else "; no judge was asked"
    chars = ", ".join(map(str, sorted({each.limits.chars for each in scenarios})))
    free = {any(each.endswith(FREE) for each in plan.get("layouts", {}).values()) for plan in plans}
    asked = " or ".join(_ASKED[each] for each in sorted(free))
    found = {
        "model": ("GPT-3.5 (gpt-3.5-turbo-0613) and Mixtral-8x7B", models),
        "scenarios": (
            "90 scenarios of eight kinds x 5 pairs of people, 450 conversations a mode; 10 of them in the cooperative "
            "family and 10 in the competitive one",
            _scenarios(scenarios),
        ),
        "scale": ("0 to 10", "share of conversations whose outcome is verified; a judge's 0 to 10 in a row of its own"),
        "judge": ("GPT-4 at temperature 0", f"rules on the text{judged}"),
        "raters": ("nine graduate students, 30 judgements", "named with each row; pairs share scenario and seed"),
        "answer key": (
            "its code printed the answer (the friend in common) in the prompts of script and mindreaders; whether the "
            "reported runs did is not settled",
            "no prompt holds it",
        ),
        "profiles": (
            "its code kept an agent's own profile from it where strangers met, in agents mode only",
            "every agent sees its own",
        ),
        "form": (
            "script as free text, agents as JSON; a model repaired what could not be read",
            "one line a turn in every mode, under one grammar, one retry and one counted repair",
        ),
        "length": ("no limit is known", f"{asked}, at most {chars} characters"),
        "friends": ("one friend in common", "as many as the scenario has, also none or several"),
        "zone": ("prices drawn, so that some bargains allow no deal", "scenarios with and without room for a deal"),
    }
    if any(each.label.startswith(FINE_TUNED) for each in conditions):
        found["training"] = (
            f"{FINE_TUNED}: GPT-3.5 fine-tuned for one epoch on 1,252 scripts of 269 other scenarios",
            f"{FINE_TUNED}: a LoRA adapter on scripts of other scenarios",
        )
    turns = sorted({each.limits.turns for each in scenarios})
    if turns != [20]:
        found["turn limit"] = ("20 (its code: 21)", ", ".join(map(str, turns)))
    warm = sorted({plan.get("sampling", {}).get("temperature") or 0.0 for plan in plans})
    if warm != [0.7]:
        here = ", ".join(f"{each:g}" for each in warm)
        found["temperature"] = ("0.7 (its code: 1.0 for agents and mindreaders)", here)
    return found


_ASKED = {False: "one or two short sentences are asked for", True: "no length is asked for"}
"""What prompts ask for, by whether --length free leaves the request out."""


def _scenarios(scenarios: Sequence[Scenario]) -> str:
    names = [each.family or EVERYDAY.name for each in scenarios]
    parts = []
    for name in dict.fromkeys(names):
        kind = family_of(name).interests
        parts.append(f"{names.count(name)} of {name}{f' ({kind})' if kind else ''}")
    return ", ".join(parts)
