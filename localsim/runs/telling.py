"""What a person is told about a run: its name, and whether it was searched for leaks."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from localsim.conversation.episode import MODES
from localsim.conversation.grants import NONE, condition_name
from localsim.conversation.wording.wordings import counted
from localsim.errors import InvalidInput
from localsim.families import EVERYDAY, family_of, in_order, title_of
from localsim.models import minds
from localsim.models.registry import OPENVINO, is_path, labelled, split_engine
from localsim.store.database import Store
from localsim.store.queries import runs as queries
from localsim.store.queries.reports import with_secrets
from localsim.store.queries.scoring import families_of

Row = Mapping[str, Any]
Tasks = Mapping[str, tuple[str, str, str]]
"""Scenario hash -> id, title and family ('' for none) of the scenario."""

LONGEST_NAME = 60
"""Characters of a name that a person gives, and of the title of a scenario in a name that is made."""
_ID = re.compile(r"\d{8}(-.*)?")


def checked_name(text: str) -> str:
    """Return the name that a person gives a run, without blanks around it. Raises InvalidInput with the reason."""
    name = text.strip()
    reason = ""
    if not name:
        reason = "it is empty"
    elif len(name) > LONGEST_NAME:
        reason = f"it has {len(name)} characters, and at most {LONGEST_NAME} fit"
    elif not name.isprintable():
        reason = "it has characters that cannot be printed"
    elif name[0] in "@-":
        reason = f"it begins with {name[0]}"
    elif found := next((char for char in ":=" if char in name), ""):
        reason = f"it has a {found}, which separates a run from a condition"
    elif not any(char.isalpha() for char in name) or _ID.fullmatch(name):
        reason = "it could be taken for an id"
    if reason:
        raise InvalidInput(f"{text!r} cannot be the name of a run: {reason}", hint='such as --name "first pilot"')
    return name


def namesakes(store: Store, name: str) -> list[str]:
    """Return the ids of the stored runs with this name in any case, newest first; [] without a database."""
    return queries.runs_named(store, name) if store.path.is_file() else []


def name_of(store: Store, run: Row) -> str:
    """Return the name of a run: the given one, else one made of its plan.

    `run` has `run_id`, `name` and `plan_json`, as the rows of `run_row` and `newest_runs` have.
    """
    return names_of(store, [run])[run["run_id"]]


def names_of(store: Store, runs: Sequence[Row], *, room: int | None = None) -> dict[str, str]:
    """Return run id -> name, with one query for all runs; names of a plan are made to fit into `room` characters."""
    unnamed = {run["run_id"]: json.loads(run["plan_json"]) for run in runs if not run["name"]}
    hashes = sorted({each for plan in unnamed.values() for each in plan["scenarios"]})
    tasks = queries.tasks_of(store, hashes) if hashes else {}
    return {run["run_id"]: run["name"] or default_name(unnamed[run["run_id"]], tasks, room=room) for run in runs}


def default_name(plan: Mapping[str, Any], tasks: Tasks, *, room: int | None = None) -> str:
    """Return the name that a stored plan makes: what was played, models and modes.

    One scenario is called by its title, several by the titles of their families. If the name is longer than `room`
    characters, all modes are "all modes"; if that is too long as well, the scenario is called by its id, and several
    families by the number of their scenarios.
    """
    played, short = _played([tasks[each] for each in plan["scenarios"] if each in tasks])
    models = " + ".join(dict.fromkeys(map(called, [plan["model"], *plan["roles"].values()])))
    grants = [text if text != NONE else "" for text in plan.get("see", ())] or [""]
    names: dict[str, None] = {}
    for mode in (mode for mode in (*MODES, *plan["modes"]) if mode in plan["modes"]):
        names |= dict.fromkeys(condition_name(mode, see) for see in (grants if mode == "agents" else [""]))
    modes = ", ".join(names)
    fewer = "all modes" if set(names) == set(MODES) else modes
    forms = [" · ".join(parts) for parts in ((played, models, modes), (played, models, fewer), (short, models, fewer))]
    return next((form for form in forms if room is None or len(form) <= room), forms[-1])


def _played(tasks: Sequence[tuple[str, str, str]]) -> tuple[str, str]:
    """Return what was played in words and in short, from id, title and family of each scenario."""
    if len(tasks) == 1:
        name, title, _ = tasks[0]
        return title if len(title) <= LONGEST_NAME else name, name
    counts = Counter(family or EVERYDAY.name for *_, family in tasks)
    played = ", ".join(f"{_family(name)} ({counts[name]})" for name in in_order(counts)) or "no scenario"
    return played, f"{len(tasks)} scenarios" if len(counts) > 1 else played


def _family(name: str) -> str:
    """Return the title of a family; its name if its package cannot be loaded, so that runs can still be listed."""
    try:
        return title_of(family_of(name))
    except InvalidInput:
        return name


def called(name: str) -> str:
    """Return the name of a model for a sentence: a file without its folder; a constructed control with a note."""
    if minds.is_mind(name):
        steps, model = minds.split(name)
        return f"{minds.PREFIX}{steps},{called(model)}"
    if name.startswith("scripted:@"):
        return f"scripted:@{Path(name.partition('@')[2]).name}"
    engine, plain = split_engine(name)
    if is_path(plain) and "://" not in name:
        return f"{OPENVINO if engine == 'openvino' else ''}{Path(plain).name}"
    return labelled(name, whole=False)


def clock_of(started_utc: datetime) -> str:
    """Return the start of a run on the clock of this computer: 23:14, with the date if that was not today."""
    then = started_utc.replace(tzinfo=UTC).astimezone()
    return f"{then:%H:%M}" if then.date() == datetime.now().astimezone().date() else f"{then:%Y-%m-%d %H:%M}"


def heading_of(store: Store, run_id: str) -> str:
    """Return one line about a run: name, id, episodes and start."""
    row = queries.run_facts(store, run_id)
    return f"{name_of(store, row)} (run {run_id}, {episodes_of(row)}, {clock_of(row['started_utc'])})"


def episodes_of(row: Row) -> str:
    """Return the number of completed episodes of a row of `run_facts`, and of what number if some are missing."""
    done, planned = row["completed"], row["planned"]
    return counted(done, "episode") if done == planned else f"{done} of {planned} episodes"


def is_search(evaluator: str, value: float | None) -> bool:
    """Return True if a score shows that its episode was searched for leaks; a search that failed has no value."""
    return evaluator == "leakage" and value is not None


def of_people(repro: str, models: Mapping[str, Row]) -> bool:
    """Return True for a run of people, which nothing can resume; `models` are name -> identity."""
    return repro == "imported" or any(identity["kind"] == "human" for identity in models.values())


def leaks_remark(row: Row) -> str:
    """Return a sentence if a run was not searched for leaks, or only in part, with the commands for the rest; else "".

    `row` is one of `run_facts`. Runs of people are not resumed.
    """
    run_id, done, searched = row["run_id"], row["completed"], row["searched"]
    search = f"localsim score {run_id}"
    if row["status"] == "running" or (done and searched >= done):
        return ""
    if row["status"] == "interrupted":
        state = "only in part" if searched else "not"
        ways = [] if row["people"] else [f"localsim resume {run_id} continues it and looks for them"]
        ways += [f"{search} looks in what is there"] if done else []
        found = f"The run was interrupted after {done} of {row['planned']} episodes and was {state} searched for leaks"
        return f"{': '.join([found, '; '.join(ways)] if ways else [found])}."
    if not done:
        return ""
    if searched:
        return f"Leaks were looked for in {searched} of {done} episodes only: {search} looks in the others."
    return f"Leaks were not looked for: {search} does that."


def remark(row: Row) -> str:
    """Return `leaks_remark`, or for an interrupted run that was searched, how far it got and how it continues.

    `row` is one of `run_facts`.
    """
    if (found := leaks_remark(row)) or row["status"] != "interrupted":
        return found
    state = f"The run was interrupted after {row['completed']} of {row['planned']} episodes"
    return f"{state}." if row["people"] else f"{state}: localsim resume {row['run_id']} continues it."


def unsearched(store: Store, run_id: str) -> str:
    """Return `leaks_remark` for a run; '' where the rules ask questions, or where no agent has a private fact."""
    families = families_of(store, run_id)
    if families and (all(family_of(family).asks for family in families) or not with_secrets(store, run_id)):
        return ""
    return leaks_remark(queries.run_facts(store, run_id))
