"""The plan of an interview: a bank, the people who are asked, and for banks about stored talks, those talks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from localsim.runs.plan import Plan
from localsim.scenarios.interviews.knowing import SourceTalk
from localsim.scenarios.interviews.sheets import asks_about_talks, chosen_people, find_bank, sheets
from localsim.store.database import Store
from localsim.store.queries.scoring import subjects


def interview_plan(reference: str, people: Sequence[str], store: Store, about: str = "@last", **settings: Any) -> Plan:
    """Return the plan that asks a bank (a name or a file) of people (`all`, `nobody`, or ids).

    `about` is the run whose conversations a bank about talks asks about. `settings` are fields of `Plan`. Raises
    InvalidInput for unknown names, ScenarioInvalid for a bad file, DatabaseError where the run cannot be read.
    """
    bank = find_bank(reference)
    talks = talks_of(store, about) if asks_about_talks(bank) else ()
    return Plan(scenarios=sheets(bank, chosen_people(people, bank), talks), **settings)


def talks_of(store: Store, reference: str) -> tuple[SourceTalk, ...]:
    """Return the completed conversations of a run."""
    found = subjects(store, store.run_id(reference))
    return tuple(SourceTalk(each.episode_id, each.scenario, each.transcript) for each in found)
