"""What scripted players reach on the scenarios of a run: random play and the best that is known.

A family names these players (`Family.references`). They play the scenarios of the run in its modes and with its seed,
so that nature draws the same. Results are kept in the cache folder, under everything that they depend on, so that only
the first report of a set of scenarios plays.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import localsim
from localsim.conversation.episode import SIMULATED
from localsim.families import family_of
from localsim.families.base import Family, Reference
from localsim.models.remembered import recall, remember
from localsim.reports.measures import Cell, estimate
from localsim.reports.validity.controls import played
from localsim.runs.plan import Plan
from localsim.store.database import Store
from localsim.store.episodes import stored_scenario
from localsim.store.queries import reports as queries

Row = dict[str, Any]

CONVERSATIONS = 40
"""Conversations of a player in each mode, at least: few scenarios are repeated with further seeds."""
SCENARIOS = 100
"""Scenarios that a player plays, at most: the first by hash, which is as good as a draw."""


def references(store: Store, run_id: str, seed: int, rows: Iterable[Row]) -> list[Row]:
    """Return what the reference players reach in each family, mode and grant of a comparison's rows.

    Keys: family, player, label, why, mode, see, scenarios (played), of (scenarios in the run), conversations, and
    values: key of a measure of the family -> value, low, high, n; a measure without a value is left out.
    """
    hashes = queries.scenarios_by_family(store, run_id)
    asked = dict.fromkeys((row["family"], row["mode"], row["see"]) for row in rows if row["mode"] in SIMULATED)
    return [
        _reference(store, each, family, mode, see, hashes[family], seed)
        for family, mode, see in asked
        for each in family_of(family).references
    ]


def are_known(store: Store, run_id: str, seed: int, rows: Iterable[Row]) -> bool:
    """Return True if `references` would play nothing."""
    hashes = queries.scenarios_by_family(store, run_id)
    asked = {(row["family"], row["mode"], row["see"]) for row in rows if row["mode"] in SIMULATED}
    return all(
        recall(_name(family_of(family), each, *_played_in(each, mode, see), hashes[family][:SCENARIOS], seed))
        for family, mode, see in asked
        for each in family_of(family).references
    )


def _reference(
    store: Store, reference: Reference, family: str, mode: Any, see: str, hashes: Sequence[str], seed: int
) -> Row:
    about = {"family": family, "player": reference.player, "label": reference.label, "why": reference.why}
    about |= {"mode": mode, "see": see, "of": len(hashes)}
    chosen = hashes[:SCENARIOS]
    mode, see = _played_in(reference, mode, see)
    name = _name(family_of(family), reference, mode, see, chosen, seed)
    found = recall(name)
    if not isinstance(found, dict):
        plan = Plan(
            tuple(stored_scenario(store, each) for each in chosen),
            (mode,),
            model=f"scripted:{reference.player}",
            episodes=-(-CONVERSATIONS // len(chosen)),
            seed=seed,
            see=(see,) if see else (),
        )
        found = _values(family_of(family), played(plan, family)[mode])
        remember(name, found)
    return {**about, "scenarios": len(chosen), **found}


def _played_in(reference: Reference, mode: str, see: str) -> tuple[Any, str]:
    """Return the mode and the grant in which a reference plays: one for all if it heeds nothing that they show."""
    return ("agents", "") if reference.blind else (mode, see)


def _values(family: Family, cell: Cell) -> Row:
    values = {}
    for measure in family.measures:
        found = estimate(measure, cell)
        if found.value is not None:
            ends = [None if end is None else round(end, 4) for end in (found.low, found.high)]
            values[measure.key] = {"value": round(found.value, 4), "low": ends[0], "high": ends[1], "n": found.n}
    return {"conversations": cell.count("completed"), "values": values}


def _name(family: Family, reference: Reference, mode: str, see: str, hashes: Sequence[str], seed: int) -> str:
    """Return the name under which a result is kept: it changes with all that the result depends on."""
    about = [localsim.__version__, _code_of(type(family)), reference.player, mode, see, seed, CONVERSATIONS, *hashes]
    return f"references/{hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]}"


def _code_of(family: type[Family]) -> str:
    """Return the hash of the files that define a family, with its players."""
    files = dict.fromkeys(inspect.getfile(each) for each in family.__mro__ if each is not object)
    return hashlib.sha256(b"".join(Path(each).read_bytes() for each in files)).hexdigest()


# ---- as texts ------------------------------------------------------------------------------------------------------


def heading(found: Iterable[Row], family: str) -> str:
    """Return the labels of a family's references, such as `random / optimal`; '' without any."""
    return " / ".join(dict.fromkeys(each["label"] for each in found if each["family"] == family))


def beside(found: Iterable[Row], measure: Row, rows: Iterable[Row]) -> list[str]:
    """Return for each row of a comparison the values of the references in one measure, such as `31% / 81%`.

    Empty if the references have no value in any of the rows; `measure` is one of `report --json`.
    """
    texts: dict[tuple[str, str, str], list[str]] = {}
    for each in found:
        value = each["values"].get(measure["key"], {}).get("value")
        text = "-" if value is None else f"{value:.0%}" if measure["kind"] == "share" else f"{value:.2f}"
        texts.setdefault((each["family"], each["mode"], each["see"]), []).append(text)
    keys = [("", "", "") if _of_other(row) else (row["family"], row["mode"], row["see"]) for row in rows]
    cells = [" / ".join(texts.get(key, ())) for key in keys]
    return cells if any(char.isdigit() for cell in cells for char in cell) else []


def _of_other(row: Row) -> bool:
    return bool(row.get("other_run") or row.get("people_run"))


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
