"""What scripted players reach on the scenarios of a run: random play and the best that is known.

A family names these players (`Family.references`). They play the scenarios of the run in its modes and with its seed,
so that nature draws the same. Results are kept in the cache folder, under everything that they depend on, so that only
the first report of a set of scenarios plays.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import localsim
from localsim.conversation.episode import SIMULATED
from localsim.conversation.measures import Measure
from localsim.families import family_of
from localsim.families.base import Family, Reference
from localsim.models.remembered import recall, remember
from localsim.reports.document import Report
from localsim.reports.measures import Cell, estimate
from localsim.reports.results import Result
from localsim.runs.plan import Plan
from localsim.runs.scripted import Sample, played
from localsim.store.database import Store
from localsim.store.episodes import stored_scenario
from localsim.store.queries import reports as queries

Row = dict[str, Any]

CONVERSATIONS = 40
"""Conversations of a player in each mode, at least: few scenarios are repeated with further seeds."""
SCENARIOS = 100
"""Scenarios that a player plays, at most: the first by hash, which is as good as a draw."""


@dataclass(frozen=True)
class _Asked:
    """One reference in one condition of a run."""

    about: Row
    """family, player, label, why, mode, see, scenarios and of."""
    name: str
    """Under which its result is kept."""
    plan: Plan | None
    """What is to be played; None if the result is known."""


def with_references(store: Store, data: Report) -> Report:
    """Return a report with its references: what these players reach in each family, mode and grant.

    Keys of `references`: family, player, label, why, mode, see, scenarios (played), of (scenarios in the run),
    conversations, and values: key of a measure of the family -> value, low, high, n; a measure without a value is left
    out. The database is not held while players play.
    """
    with store.held() as reader:
        asked = _asked(reader, data.run["run_id"], data.run["seed"])
    return replace(data, references=[{**each.about, **_result(each)} for each in asked])


def are_known(store: Store, run_id: str, seed: int) -> bool:
    """Return True if `with_references` would play nothing."""
    return all(recall(name) is not None for _, name, _ in _named(store, run_id, seed))


def _asked(store: Store, run_id: str, seed: int) -> list[_Asked]:
    found = []
    for about, name, hashes in _named(store, run_id, seed):
        plan = None if isinstance(recall(name), dict) else _plan(store, about, hashes, seed)
        found.append(_Asked({key: value for key, value in about.items() if key != "played_in"}, name, plan))
    return found


def _named(store: Store, run_id: str, seed: int) -> Iterator[tuple[Row, str, list[str]]]:
    """Yield each reference of a run, the name of its result, and the hashes of the scenarios that it plays."""
    for row in queries.conditions_with_scenarios(store, run_id):
        family, chosen = family_of(row["family"]), row["hashes"][:SCENARIOS]
        for each in family.references if row["mode"] in SIMULATED else ():
            # Results of a player that heeds nothing that modes show are the same in all of them.
            played_in = ("agents", "") if each.blind else (row["mode"], row["see"])
            about = {"family": row["family"], "player": each.player, "label": each.label, "why": each.why}
            about |= {"mode": row["mode"], "see": row["see"], "scenarios": len(chosen), "of": len(row["hashes"])}
            yield {**about, "played_in": played_in}, _name(family, each, played_in, chosen, seed), chosen


def _plan(store: Store, about: Row, hashes: Sequence[str], seed: int) -> Plan:
    mode, see = about["played_in"]
    scenarios = tuple(stored_scenario(store, each) for each in hashes)
    episodes = -(-CONVERSATIONS // len(hashes))
    see = (see,) if see else ()
    return Plan(scenarios, (mode,), f"scripted:{about['player']}", episodes=episodes, seed=seed, see=see)


def _result(asked: _Asked) -> Row:
    """Return conversations and values, from the cache folder if they are there."""
    known = recall(asked.name)  # also what a reference before has just played
    if isinstance(known, dict) or asked.plan is None:
        return dict(known or {"conversations": 0, "values": {}})
    family = asked.about["family"]
    found = _values(family_of(family), played(asked.plan)[asked.plan.modes[0]])
    remember(asked.name, found)
    return found


def _values(family: Family, sample: Sample) -> Row:
    cell, values = Cell(family.name, **vars(sample)), {}
    for measure in family.measures:
        found = estimate(measure, cell)
        if found.value is not None:
            ends = [None if end is None else round(end, 4) for end in (found.low, found.high)]
            values[measure.key] = {"value": round(found.value, 4), "low": ends[0], "high": ends[1], "n": found.n}
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


def heading(found: Iterable[Row], family: str) -> str:
    """Return the labels of a family's references, such as `random / optimal`; '' without any."""
    return " / ".join(dict.fromkeys(each["label"] for each in found if each["family"] == family))


def beside(found: Iterable[Row], measure: Measure, rows: Iterable[Result]) -> list[str]:
    """Return for each row of a comparison the values of the references in one measure, such as `31% / 81%`.

    Empty if the references have no value in any of the rows.
    """
    texts: dict[tuple[str, str, str], list[str]] = {}
    for each in found:
        value = each["values"].get(measure.key, {}).get("value")
        text = "-" if value is None else f"{value:.0%}" if measure.kind == "share" else f"{value:.2f}"
        texts.setdefault((each["family"], each["mode"], each["see"]), []).append(text)
    if not texts:  # a study's rows are conditions of many runs, without references
        return []
    keys = [("", "", "") if row.other else (row.family, row.mode, row.see) for row in rows]
    cells = [" / ".join(texts.get(key, ())) for key in keys]
    return cells if any(char.isdigit() for cell in cells for char in cell) else []


def sentences(found: Iterable[Row], family: str) -> list[str]:
    """Return what the references of a family are: who plays, how often, on which scenarios, and why they."""
    own = [each for each in found if each["family"] == family]
    if not own:
        return []
    lines = [
        f"{heading(own, family)}: scripted players take all sides on {_which(own[0])} with the same seed, "
        f"{own[0]['conversations']} conversations each."
    ]
    seen = dict.fromkeys((each["label"], each["player"], each["why"]) for each in own)
    return [*lines, *(f"{label} (scripted:{player}): {why}." for label, player, why in seen)]


def _which(row: Row) -> str:
    if row["scenarios"] < row["of"]:
        return f"{row['scenarios']} of the {row['of']} scenarios"
    return "the same scenario" if row["of"] == 1 else f"the same {row['of']} scenarios"
