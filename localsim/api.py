"""The Python API: `localsim.run(...)` simulates as `localsim run` does; `localsim.open(path)` reads a database.

Every read opens the database read-only, answers and closes, so that a run can go on writing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localsim import paths
from localsim.backends.open import absolute, chosen_model
from localsim.conversation.episode import MODES, EpisodeSpec, Mode, Sampling
from localsim.conversation.transcript import Turn
from localsim.errors import DatabaseError, Interrupted, InvalidInput
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.scheduler import Watcher
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from localsim.store.queries import runs as queries

Row = dict[str, Any]


class Archive:
    """A database of runs. Raises DatabaseError where the file cannot be read, InvalidInput for a wrong query."""

    def __init__(self, path: str | None = None) -> None:
        self._store = Store(paths.database_path(path))

    def __repr__(self) -> str:
        return f"localsim.open({str(self._store.path)!r})"

    def runs(self) -> list[Row]:
        """All runs with their counts, newest first (columns of v_runs)."""
        return queries.run_list(self._store)

    def episodes(self, run: str | None = None) -> list[Row]:
        """Episodes (columns of v_episodes) of one run (`@last`, id or its start), or of all."""
        return queries.episodes(self._store, None if run is None else self._store.run_id(run))

    def turns(self, episode: str | None = None) -> list[Row]:
        """Turns (columns of v_turns) of one episode (`@last`, id or its start), or of all."""
        return queries.turns(self._store, None if episode is None else self._store.episode_id(episode))

    def leaks(self, run: str | None = None) -> list[Row]:
        """First disclosures of private facts (columns of v_leaks) of one run, or of all."""
        return queries.leaks(self._store, None if run is None else self._store.run_id(run))

    def sql(self, query: str) -> list[Row]:
        """Rows of any read-only query; files and settings are out of its reach."""
        columns, rows = self._store.sql(query)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def df(self, query: str) -> Any:
        """The result of a query as a pandas DataFrame (needs pandas)."""
        return self._store.dataframe(query)


@dataclass(frozen=True)
class Simulated:
    """A run that has just ended, and its database to ask."""

    run_id: str
    completed: int
    failed: int
    seconds: float
    archive: Archive

    def episodes(self) -> list[Row]:
        """Its episodes (columns of v_episodes)."""
        return self.archive.episodes(self.run_id)

    def leaks(self) -> list[Row]:
        """First disclosures of private facts (columns of v_leaks)."""
        return self.archive.leaks(self.run_id)

    def sql(self, query: str) -> list[Row]:
        """Rows of a read-only query on the whole database."""
        return self.archive.sql(query)


def run(
    *scenarios: str,
    modes: str | Sequence[Mode] = "agents",
    model: str | None = None,
    roles: Mapping[str, str] | None = None,
    episodes: int = 1,
    seed: int = 1,
    db: str | None = None,
    sampling: Sampling | None = None,
    leaks: bool | None = None,
    on_turn: Callable[[EpisodeSpec, Turn], None] | None = None,
    say: Callable[[str], None] | None = None,
    **plan: Any,
) -> Simulated:
    """Simulate scenarios (files, folders or names) and store every prompt and turn.

    `modes` is one mode, several, or "all"; `episodes` counts for each scenario and mode; `leaks` says whether to look
    for leaks at the end (None: unless all is scripted); further keywords are fields of `localsim.runs.plan.Plan`
    (parallel, repro, context, overflow, gpu, threads). Raises what the command would say: InvalidInput, ModelMissing,
    DatabaseError, BackendUnavailable, Interrupted.
    """
    tell = say or (lambda _line: None)
    loaded = tuple(find_scenarios(scenarios))
    try:
        whole = Plan(
            scenarios=loaded,
            modes=_modes(modes),
            model=chosen_model(model),
            roles={role: absolute(name) for role, name in (roles or {}).items()},
            episodes=episodes,
            seed=seed,
            sampling=sampling or Sampling(),
            **plan,
        )
    except TypeError as error:
        raise InvalidInput(str(error), hint="help(localsim.run) lists what there is") from error
    store = Store(paths.database_path(db))
    result = runner.start(whole, store, _Turns(on_turn), tell, leaks=leaks)
    summary = result.summary
    if summary.stopped:
        raise Interrupted("stopped before the end", hint=f"localsim resume {result.run_id} --db {store.path}")
    if leaks and not result.leaks_scored:
        raise DatabaseError("the run is stored, but leaks were not looked for", hint=f"localsim score {result.run_id}")
    return Simulated(result.run_id, summary.completed, summary.failed, result.seconds, Archive(str(store.path)))


def _modes(modes: str | Sequence[Mode]) -> tuple[Mode, ...]:
    chosen = MODES if modes == "all" else (modes,) if isinstance(modes, str) else tuple(modes)
    return tuple(dict.fromkeys(chosen))  # type: ignore[arg-type]  # Plan checks them against MODES


class _Turns(Watcher):
    """Passes turns on to a function."""

    def __init__(self, on_turn: Callable[[EpisodeSpec, Turn], None] | None) -> None:
        self._on_turn = on_turn

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        """A turn stands."""
        if self._on_turn:
            self._on_turn(spec, turn)
