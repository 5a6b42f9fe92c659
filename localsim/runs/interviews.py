"""The plan of an interview: a bank, the people who are asked, and for banks about stored talks, those talks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from localsim.runs.plan import Plan
from localsim.scenarios.interviews.banks import find_bank
from localsim.scenarios.interviews.sheets import chosen_people, sheets


def interview_plan(reference: str, people: Sequence[str], **settings: Any) -> Plan:
    """Return the plan that asks a bank (a name or a file) of people (`all`, `nobody`, or ids).

    `settings` are fields of `Plan`. Raises InvalidInput for unknown names, ScenarioInvalid for a bad file.
    """
    bank = find_bank(reference)
    return Plan(scenarios=sheets(bank, chosen_people(people, bank)), **settings)
