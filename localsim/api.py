"""The Python API: `localsim.run(...)` simulates as `localsim run` does; `localsim.open(path)` reads a database.

Every read opens the database read-only and closes it again, so that a run can continue to write.
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
from localsim.leakage.detector import BUILT_IN, Weights
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.scheduler import Watcher
from localsim.runs.telling import checked_name
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from localsim.store.queries import runs as queries

Row = dict[str, Any]


class Archive:
    """A database of runs. Raises DatabaseError if the file cannot be read, InvalidInput for a wrong query."""

    def __init__(self, path: str | None = None) -> None:
        self._store = Store(paths.database_path(path))

    def __repr__(self) -> str:
        return f"localsim.open({str(self._store.path)!r})"

    def runs(self) -> list[Row]:
        """Return all runs with their counts, newest first (columns of v_runs)."""
        return queries.run_list(self._store)

    def episodes(self, run: str | None = None) -> list[Row]:
        """Return the episodes (columns of v_episodes) of one run (`@last`, id or its start), or of all."""
        return queries.episodes(self._store, None if run is None else self._store.run_id(run))

    def turns(self, episode: str | None = None) -> list[Row]:
        """Return the turns (columns of v_turns) of one episode (`@last`, id or its start), or of all."""
        return queries.turns(self._store, None if episode is None else self._store.episode_id(episode))

    def leaks(self, run: str | None = None) -> list[Row]:
        """Return the first disclosures of private facts (columns of v_leaks) of one run, or of all."""
        return queries.leaks(self._store, None if run is None else self._store.run_id(run))

    def sql(self, query: str, run: str = "@last") -> list[Row]:
        """Return the rows of any read-only query; `$run` in it is the id of `run`, and files are out of its reach."""
        columns, rows = self._store.sql(query, run=run)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def df(self, query: str) -> Any:
        """Return the result of a query as a pandas DataFrame (needs pandas)."""
        return self._store.dataframe(query)


@dataclass(frozen=True)
class Simulated:
    """A run that has just ended, with access to its database."""

    run_id: str
    completed: int
    failed: int
    seconds: float
    archive: Archive

    def episodes(self) -> list[Row]:
        """Return its episodes (columns of v_episodes)."""
        return self.archive.episodes(self.run_id)

    def leaks(self) -> list[Row]:
        """Return its first disclosures of private facts (columns of v_leaks)."""
        return self.archive.leaks(self.run_id)

    def sql(self, query: str) -> list[Row]:
        """Return the rows of a read-only query on the whole database."""
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
    weights: str | None = None,
    sensitivity: float | None = None,
    name: str | None = None,
    on_turn: Callable[[EpisodeSpec, Turn], None] | None = None,
    say: Callable[[str], None] | None = None,
    cluster: str | None = None,
    **plan: Any,
) -> Simulated:
    """Simulate scenarios (files, folders or names) and store every prompt and turn.

    `modes` is one mode, several, or "all". `episodes` is the number for each scenario and mode. `leaks` decides if the
    run is searched for leaks (None: yes, unless scripted players write everything). `weights` is a file of thresholds
    for this search, made by `localsim leakage calibrate`, and `sensitivity` the share of false alarms that it allows.
    `name` is a name for the run. `cluster` is the address of a Ray cluster that plays it (docs/cluster.md). Further
    keywords are fields of `localsim.runs.plan.Plan` (perturb, parallel, repro, context, overflow, gpu, threads,
    primary). Raises the errors of the command: InvalidInput, ModelMissing,
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
            sampling=sampling,
            **plan,
        )
    except TypeError as error:
        raise InvalidInput(str(error), hint="help(localsim.run) lists the arguments") from error
    from localsim.reports.comparison import check_primary

    check_primary(whole)
    given = weights is not None or sensitivity is not None
    chosen = Weights.named(weights or BUILT_IN).at(sensitivity) if given else None
    called = checked_name(name) if name is not None else None
    store = Store(paths.database_path(db))
    watcher = _Turns(on_turn)
    result = runner.start(whole, store, watcher, tell, leaks=leaks, weights=chosen, name=called, cluster=cluster)
    summary = result.summary
    if summary.stopped:
        raise Interrupted("stopped before the end", hint=f"localsim resume {result.run_id} --db {store.path}")
    if leaks and not result.leaks_scored:
        raise DatabaseError(
            "the run is stored, but it was not searched for leaks", hint=f"localsim score {result.run_id}"
        )
    return Simulated(result.run_id, summary.completed, summary.failed, result.seconds, Archive(str(store.path)))


def _modes(modes: str | Sequence[Mode]) -> tuple[Mode, ...]:
    chosen = MODES if modes == "all" else (modes,) if isinstance(modes, str) else tuple(modes)
    return tuple(dict.fromkeys(chosen))  # type: ignore[arg-type]  # Plan checks them against MODES


class _Turns(Watcher):
    """Passes turns on to a function."""

    def __init__(self, on_turn: Callable[[EpisodeSpec, Turn], None] | None) -> None:
        self._on_turn = on_turn

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        """Handle a valid turn."""
        if self._on_turn:
            self._on_turn(spec, turn)
