"""The differences of task between the paper's numbers and ours, each with what the paper did and what we do."""

from __future__ import annotations

import json
from collections.abc import Sequence

from localsim.conversation.scenario import Scenario
from localsim.families import EVERYDAY, family_of
from localsim.reports.paper.published import CONDITIONS
from localsim.store.conditions import Condition
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.runs import run_row

FINE_TUNED = CONDITIONS[-1]
"""The beginning of the labels of conditions whose agents were taught on conversations."""


def differences(store: Store, conditions: Sequence[Condition], judges: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return name of a difference -> (the paper, here); what is equal is left out. `judges` scored the conditions."""
    runs = list(dict.fromkeys(each.run_id for each in conditions))
    scenarios = {
        text: Scenario.model_validate_json(text) for run in runs for text in queries.scenario_documents(store, run)
    }
    plans = [json.loads(run_row(store, run)["plan_json"]) for run in runs]
    found = {
        "model": (
            "GPT-3.5 (gpt-3.5-turbo-0613) and Mixtral-8x7B",
            ", ".join(dict.fromkeys(e.model for e in conditions)),
        ),
        "scenarios": (
            "90 scenarios of eight kinds x 5 pairs of people, 450 conversations a mode; 10 of them in the cooperative "
            "family and 10 in the competitive one",
            _scenarios(list(scenarios.values())),
        ),
        "scale": ("0 to 10", "share of conversations whose outcome is verified; a judge's 0 to 10 in a row of its own"),
        "judge": ("GPT-4 at temperature 0", _judges(judges)),
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
        "length": ("no limit is known", _lengths(list(scenarios.values()))),
        "friends": ("one friend in common", "as many as the scenario has, also none or several"),
        "zone": ("prices drawn, so that some bargains allow no deal", "scenarios with and without room for a deal"),
    }
    if any(each.label.startswith(FINE_TUNED) for each in conditions):
        found["training"] = (
            f"{FINE_TUNED}: GPT-3.5 fine-tuned for one epoch on 1,252 scripts of 269 other scenarios",
            f"{FINE_TUNED}: a LoRA adapter on scripts of other scenarios",
        )
    turns = sorted({each.limits.turns for each in scenarios.values()})
    if turns != [20]:
        found["turn limit"] = ("20 (its code: 21)", ", ".join(map(str, turns)))
    warm = sorted({plan.get("sampling", {}).get("temperature") or 0.0 for plan in plans})
    if warm != [0.7]:
        found["temperature"] = (
            "0.7 (its code: 1.0 for agents and mindreaders)",
            ", ".join(f"{each:g}" for each in warm),
        )
    return found


def _scenarios(scenarios: Sequence[Scenario]) -> str:
    names = [each.family or EVERYDAY.name for each in scenarios]
    parts = []
    for name in dict.fromkeys(names):
        kind = family_of(name).interests
        parts.append(f"{names.count(name)} of {name}{f' ({kind})' if kind else ''}")
    return ", ".join(parts)


def _judges(judges: Sequence[str]) -> str:
    return f"rules on the text; as a judge, {', '.join(judges)}" if judges else "rules on the text; no judge was asked"


def _lengths(scenarios: Sequence[Scenario]) -> str:
    most = sorted({each.limits.chars for each in scenarios})
    return f"one or two short sentences are asked for, at most {', '.join(map(str, most))} characters"
