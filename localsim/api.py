"""The Python API for simulating: `localsim.run(...)` does what `localsim run` does, and gives what it came to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localsim import paths, runner
from localsim.archive import Archive, Row
from localsim.engines import absolute
from localsim.episode import MODES, Episode, EpisodeSpec, Mode, Sampling
from localsim.errors import DatabaseError, Interrupted, InvalidInput
from localsim.leaks import look_after
from localsim.plan import Plan
from localsim.scenario_files import find_scenarios
from localsim.store import Store
from localsim.transcript import Turn


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
    for leaks at the end (None: unless all is scripted); further keywords are fields of `localsim.plan.Plan`
    (parallel, repro, context, overflow, gpu, threads). Raises what the command would say: InvalidInput, ModelMissing,
    DatabaseError, BackendUnavailable, Interrupted.
    """
    tell = say or (lambda _line: None)
    loaded = tuple(find_scenarios(scenarios))
    try:
        whole = Plan(
            scenarios=loaded,
            modes=_modes(modes),
            model=absolute(model or paths.default_model()),
            roles={role: absolute(name) for role, name in (roles or {}).items()},
            episodes=episodes,
            seed=seed,
            sampling=sampling or Sampling(),
            **plan,
        )
    except TypeError as error:
        raise InvalidInput(str(error), hint="help(localsim.run) lists what there is") from error
    store = Store(paths.database_path(db))
    result = runner.start(whole, store, _Watcher(on_turn), tell)
    summary = result.summary
    if summary.stopped:
        raise Interrupted("stopped before the end", hint=f"localsim resume {result.run_id} --db {store.path}")
    looked = result.in_database and look_after(store, result.run_id, leaks, tell)
    if leaks and not looked:
        raise DatabaseError("the run stands, but leaks were not looked for", hint=f"localsim score {result.run_id}")
    return Simulated(result.run_id, summary.completed, summary.failed, result.seconds, Archive(str(store.path)))


def _modes(modes: str | Sequence[Mode]) -> tuple[Mode, ...]:
    chosen = MODES if modes == "all" else (modes,) if isinstance(modes, str) else tuple(modes)
    return tuple(dict.fromkeys(chosen))  # type: ignore[arg-type]  # Plan checks them against MODES


class _Watcher:
    """Hands turns on."""

    def __init__(self, on_turn: Callable[[EpisodeSpec, Turn], None] | None) -> None:
        self._on_turn = on_turn

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        """A turn stands."""
        if self._on_turn:
            self._on_turn(spec, turn)

    def ended(self, episode: Episode) -> None:
        """Its reasons lie in the database."""

    def tokens(self, generated: int) -> None:
        """Not of interest here."""
