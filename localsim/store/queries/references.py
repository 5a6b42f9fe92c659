"""What a person calls a run or an episode (`@last`, `@last-N`, a name, an id or its start), and the id it means.

`@last` counts only what can be looked at: runs with a completed episode, and completed episodes. A game that its
players left and a run that was stopped at once are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from localsim.errors import InvalidInput, refuse_empty, suggest
from localsim.store.queries import PEOPLE

Rows = Callable[[str, Sequence[Any]], list[dict[str, Any]]]
"""Runs one of our own queries, as `Store.rows` does."""

_LAST = re.compile(r"@last(?:-(\d+))?")
_RUNS = (
    f"SELECT r.run_id AS id, r.name, {PEOPLE} AS people, "
    "count(e.episode_id) FILTER (e.status = 'completed') > 0 AS completed "
    "FROM runs r LEFT JOIN episodes e ON e.run_id = r.run_id "
    "GROUP BY r.run_id, r.name, r.repro, r.models_json, r.started_utc ORDER BY r.started_utc DESC, r.run_id DESC"
)
_EPISODES = (
    "SELECT e.episode_id AS id, e.scenario_id AS name, false AS people, e.status = 'completed' AS completed "
    "FROM v_episodes e JOIN runs r ON r.run_id = e.run_id "
    "ORDER BY r.started_utc DESC, e.episode_index DESC, e.scenario_id DESC, e.mode DESC, e.episode_id"
)
_LIST = {"run": "localsim runs lists all runs", "episode": "localsim show without an id lists episodes"}


@dataclass(frozen=True)
class _Known:
    id: str
    name: str | None
    """Of an episode, that of its scenario."""
    people: bool
    completed: bool


def is_last(reference: str) -> bool:
    """Return True for `@last` and `@last-N`."""
    return _LAST.fullmatch(reference) is not None


def run_of(rows: Rows, path: Path, reference: str, *, unfinished: bool = False) -> str:
    """Return the id of the run that a reference names. Raises InvalidInput.

    `unfinished` lets `@last` count every run of models, also one without a completed episode.
    """
    refuse_empty(reference, "the name of a run", _LIST["run"])
    known = _known(rows, "run", path)
    if is_last(reference):
        counted = [each.id for each in known if (not each.people if unfinished else each.completed)]
        return _last(reference, counted, "run", newest=known[0].id)
    if any(each.id == reference for each in known):
        return reference
    for same in (str, str.casefold):
        named = [each.id for each in known if each.name and same(each.name) == same(reference)]
        if len(named) == 1:
            return named[0]
        if named:
            raise InvalidInput(
                f"{len(named)} runs have the name {reference!r}", hint=f"their ids: {', '.join(named)} (newest first)"
            )
    return _by_start(reference, [each.id for each in known], "run", [each.name for each in known if each.name])


def episode_of(rows: Rows, path: Path, reference: str) -> str:
    """Return the id of the episode that a reference names. Raises InvalidInput."""
    refuse_empty(reference, "the id of an episode", _LIST["episode"])
    known = _known(rows, "episode", path)
    if is_last(reference):
        return _last(reference, [each.id for each in known if each.completed], "episode", newest=known[0].id)
    try:
        return _by_start(reference, [each.id for each in known], "episode", ())
    except InvalidInput as error:
        if hint := _meant(known, _read(rows, _RUNS), reference):
            raise InvalidInput(str(error), hint=hint) from None
        raise


def _meant(episodes: Sequence[_Known], runs: Sequence[_Known], reference: str) -> str:
    """Return a hint for the name of a run or a scenario, or nearly one, where the id of an episode is needed."""
    if any(each.id.startswith(reference) for each in episodes):
        return ""
    names = {each.name or each.id: each.id for each in runs}
    if named := near(reference, names):
        return f"for run {named}: localsim show --typical {named}; @last is the newest episode"
    newest = {each.name or "": each.id for each in reversed(episodes) if each.completed}
    if named := near(reference, newest):
        return f"for the newest episode of {named}: localsim show {newest[named]}; @last is the newest of all"
    return f"@last is the newest episode; {_LIST['episode']}"


def near(word: str, names: Iterable[str]) -> str:
    """Return the name that has a word in it, or is closest to it; '' if none is."""
    known = list(names)
    inside = [name for name in known if word.casefold() in name.casefold()]
    return min(inside) if inside else next(iter(get_close_matches(word, known, n=1, cutoff=0.5)), "")


def _read(rows: Rows, query: str) -> list[_Known]:
    return [_Known(**row) for row in rows(query, ())]


def _known(rows: Rows, what: str, path: Path) -> list[_Known]:
    found = _read(rows, _RUNS if what == "run" else _EPISODES)
    if not found:
        raise InvalidInput(f"no {what} in the database yet", where=str(path), hint="localsim run makes one")
    return found


def _last(reference: str, ids: Sequence[str], what: str, *, newest: str) -> str:
    matched = _LAST.fullmatch(reference)
    place = int((matched and matched[1]) or 0)
    if place < len(ids):
        return ids[place]
    counted = "runs with a completed episode" if what == "run" else "completed episodes"
    if not ids:
        hint = f"the newest {what} is {newest}: localsim {'runs show' if what == 'run' else 'show'} {newest}"
        raise InvalidInput(f"{reference}: there are no {counted} yet", hint=hint)
    raise InvalidInput(f"{reference}: there are only {len(ids)} {counted}", hint=_LIST[what])


def _by_start(reference: str, ids: Sequence[str], what: str, names: Sequence[str]) -> str:
    found = [candidate for candidate in ids if candidate.startswith(reference)]
    if reference in found or len(found) == 1:
        return reference if reference in found else found[0]
    named = " or is its name" if what == "run" else ""
    problem = f"{len(found)} {what}s begin with this" if found else f"no {what} begins with this{named}"
    raise InvalidInput(f"{reference!r}: {problem}", hint=suggest(reference, names) or _LIST[what])
