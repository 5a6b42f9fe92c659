"""What scripted players reach on the scenarios of a run: random play and the best that is known.

A family names these players (`Family.references`). They play the scenarios of the run in its modes and with its seed,
so that nature draws the same. Results are kept in the cache folder, under everything that they depend on, so that only
the first report of a set of scenarios plays.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import localsim
from localsim.conversation.episode import SIMULATED, Mode
from localsim.conversation.measures import Measure
from localsim.families import family_of
from localsim.families.base import Family, Reference
from localsim.models.remembered import recall_object, remember
from localsim.reports.measures import Cell, estimate
from localsim.reports.results import Result
from localsim.runs.plan import Plan
from localsim.runs.scripted import Sample, played
from localsim.stats import NOTHING, Estimate
from localsim.store.database import Store
from localsim.store.episodes import stored_scenario
from localsim.store.queries import reports as queries

CONVERSATIONS = 40
"""Conversations of a player in each mode, at least: few scenarios are repeated with further seeds."""
SCENARIOS = 100
"""Scenarios that a player plays, at most: the first by hash, which is as good as a draw."""


@dataclass(frozen=True)
class Reached:
    """What one scripted player reaches in a family, mode and grant of a run."""

    family: str
    player: str
    label: str
    why: str
    mode: str
    see: str
    scenarios: int
    """Scenarios that it plays, `of` those of the run."""
    of: int
    conversations: int = 0
    values: Mapping[str, Estimate] = field(default_factory=dict)
    """Key of a measure of the family -> its value; a measure without a value is left out."""

    def as_json(self) -> dict[str, Any]:
        """Return a row of `references` in `report --json`."""
        return {**vars(self), "values": {key: each._asdict() for key, each in self.values.items()}}


def of_run(store: Store, run_id: str, seed: int) -> list[Reached]:
    """Return what these players reach in each family, mode and grant of a run.

    The database is not held while players play.
    """
    with store.held() as reader:
        asked = list(_asked(reader, run_id, seed))
    return [_reached(*each) for each in asked]


def are_known(store: Store, run_id: str, seed: int) -> bool:
    """Return True if `of_run` would play nothing."""
    return all(plan is None for _, _, plan in _asked(store, run_id, seed))


def _asked(store: Store, run_id: str, seed: int) -> Iterator[tuple[Reached, str, Plan | None]]:
    """Yield each reference of a run, the name of its result, and what is to be played if it is not known."""
    for row in queries.conditions_with_scenarios(store, run_id):
        family, hashes = family_of(row.family), row.hashes[:SCENARIOS]
        for each in family.references if row.mode in SIMULATED else ():
            # Results of a player that heeds nothing that modes show are the same in all of them.
            mode, see = ("agents", "") if each.blind else (row.mode, row.see)
            about = (row.family, each.player, each.label, each.why, row.mode, row.see, len(hashes), len(row.hashes))
            name = _name(family, each, (mode, see), hashes, seed)
            plan = None if recall_object(name) else _plan(store, each.player, mode, see, hashes, seed)
            yield Reached(*about), name, plan


def _plan(store: Store, player: str, mode: str, see: str, hashes: Sequence[str], seed: int) -> Plan:
    scenarios, modes = tuple(stored_scenario(store, each) for each in hashes), cast("tuple[Mode]", (mode,))
    episodes = -(-CONVERSATIONS // len(hashes))
    return Plan(scenarios, modes, f"scripted:{player}", episodes=episodes, seed=seed, see=(see,) if see else ())


def _reached(about: Reached, name: str, plan: Plan | None) -> Reached:
    found = recall_object(name)  # also what a reference before has just played
    if not found and plan is not None:
        found = _values(family_of(about.family), played(plan)[plan.modes[0]])
        remember(name, found)
    if not found:
        return about
    values = {key: Estimate(**each) for key, each in found["values"].items()}
    return replace(about, conversations=found["conversations"], values=values)


def _values(family: Family, sample: Sample) -> dict[str, Any]:
    """Return conversations and values, as they are kept."""
    cell = Cell(family.name, **vars(sample))
    found = {measure.key: estimate(measure, cell) for measure in family.measures}
    values = {key: Estimate(*each.rounded(), each.n)._asdict() for key, each in found.items() if each.value is not None}
    return {"conversations": cell.count("completed"), "values": values}


def _name(family: Family, reference: Reference, played_in: tuple[str, str], hashes: Sequence[str], seed: int) -> str:
    """Return the name under which a result is kept: it changes with all that the result depends on."""
    about = [localsim.__version__, _code_of(family.name), reference.player, *played_in, seed, CONVERSATIONS, *hashes]
    return f"references/{hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]}"


@cache
def _code_of(family: str) -> str:
    """Return the hash of the files that define a family, with its players."""
    files = dict.fromkeys(inspect.getfile(each) for each in type(family_of(family)).__mro__ if each is not object)
    return hashlib.sha256(b"".join(Path(each).read_bytes() for each in files)).hexdigest()


# ---- as texts ------------------------------------------------------------------------------------------------------


def heading(found: Iterable[Reached], family: str) -> str:
    """Return the labels of a family's references, such as `random / optimal`; '' without any."""
    return " / ".join(dict.fromkeys(each.label for each in found if each.family == family))


def beside(found: Iterable[Reached], measure: Measure, rows: Iterable[Result]) -> list[str]:
    """Return for each row of a comparison the values of the references in one measure, such as `31% / 81%`.

    Empty if the references have no value in any of the rows.
    """
    texts: dict[tuple[str, str, str], list[str]] = {}
    for each in found:
        value = each.values.get(measure.key, NOTHING).value
        text = "-" if value is None else f"{value:.0%}" if measure.kind == "share" else f"{value:.2f}"
        texts.setdefault((each.family, each.mode, each.see), []).append(text)
    if not texts:  # a study's rows are conditions of many runs, without references
        return []
    keys = [("", "", "") if row.other else (row.family, row.mode, row.see) for row in rows]
    cells = [" / ".join(texts.get(key, ())) for key in keys]
    return cells if any(char.isdigit() for cell in cells for char in cell) else []


def sentences(found: Iterable[Reached], family: str) -> list[str]:
    """Return what the references of a family are: who plays, how often, on which scenarios, and why they."""
    own = [each for each in found if each.family == family]
    if not own:
        return []
    some, every, number = own[0].scenarios, own[0].of, own[0].conversations
    which = "the same scenario" if every == 1 else f"the same {every} scenarios"
    which = f"{some} of the {every} scenarios" if some < every else which
    who = f"{heading(own, family)}: scripted players take all sides on {which} with the same seed"
    seen = dict.fromkeys((each.label, each.player, each.why) for each in own)
    return [
        f"{who}, {number} conversations each.",
        *(f"{label} (scripted:{player}): {why}." for label, player, why in seen),
    ]
