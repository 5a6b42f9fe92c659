"""The trial of a model: four short scenarios in the three modes, always the same, to see if it holds the talks."""

from __future__ import annotations

from pathlib import Path

from localsim import paths
from localsim.conversation.episode import MODES
from localsim.runs.plan import Plan
from localsim.scenarios.find import find_scenarios

SCENARIOS = ("mutual_friends_01", "craigslist_01", "roommates", "a_bad_week")
"""A search, a bargain, an everyday talk and a situation: two people each, and at most 20 turns."""


def trial_of(model: str, *, parallel: int | None = None, gpu: str = "auto", threads: int | None = None) -> Plan:
    """Return the plan of a model's trial: one talk for each scenario and mode, with the same seeds for all models."""
    scenarios = tuple(find_scenarios(SCENARIOS))
    return Plan(scenarios, MODES, model, parallel=parallel, gpu=gpu, threads=threads)


def trials_path() -> Path:
    """Return the database of all trials on this machine."""
    return paths.cache_folder() / "trials.duckdb"
