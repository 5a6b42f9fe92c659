"""The Python API: `localsim.run(...)` simulates as `localsim run` does; `localsim.open(path)` reads a database.

Every read opens the database read-only and closes it again, so that a run can continue to write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from localsim import paths
from localsim.backends.called import Function, named
from localsim.backends.open import absolute, chosen_model
from localsim.conversation.episode import MODES, EpisodeSpec, Mode, Sampling
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Turn
from localsim.errors import DatabaseError, Interrupted, InvalidInput, writing
from localsim.leakage.detector import BUILT_IN, Weights
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.scheduler import Watcher
from localsim.runs.telling import checked_name
from localsim.scenarios.documents import dumped
from localsim.scenarios.find import find_scenarios
from localsim.scenarios.parse import parse_scenario
from localsim.store.database import Store
from localsim.store.queries import runs as queries

Row = dict[str, Any]


class Archive:
    """A database of runs. Raises DatabaseError if the file cannot be read, InvalidInput for a wrong query."""

    def __init__(self, path: str | None = None) -> None:
        self.store = Store(paths.database_path(path))

    def __repr__(self) -> str:
        return f"localsim.open({str(self.store.path)!r})"

    def run(self, reference: str = "@last") -> Run:
        """Return one run: its id, the start of it, its name, `@last` or `@last-2`."""
        return Run(self.store.run_id(reference), self)

    def runs(self) -> list[Row]:
        """Return all runs with their counts, newest first (columns of v_runs)."""
        return queries.run_list(self.store)

    def episodes(self, run: str | None = None) -> list[Row]:
        """Return the episodes (columns of v_episodes) of one run (`@last`, id or its start), or of all."""
        return queries.episodes(self.store, None if run is None else self.store.run_id(run))

    def turns(self, episode: str | None = None) -> list[Row]:
        """Return the turns (columns of v_turns) of one episode (`@last`, id or its start), or of all."""
        return queries.turns(self.store, None if episode is None else self.store.episode_id(episode))

    def leaks(self, run: str | None = None) -> list[Row]:
        """Return the first disclosures of private facts (columns of v_leaks) of one run, or of all."""
        return queries.leaks(self.store, None if run is None else self.store.run_id(run))

    def sql(self, query: str, run: str = "@last") -> list[Row]:
        """Return the rows of any read-only query; `$run` in it is the id of `run`, and files are out of its reach."""
        columns, rows = self.store.sql(query, run=run)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def df(self, query: str, run: str = "@last") -> Any:
        """Return the result of a query as a pandas DataFrame (needs pandas)."""
        return self.store.dataframe(query, run)


@dataclass(frozen=True)
class Run:
    """A run in a database. Rows are dictionaries, so that `pandas.DataFrame(run.scores())` works."""

    run_id: str
    archive: Archive

    def episodes(self) -> list[Row]:
        """Return its episodes (columns of v_episodes)."""
        return self.archive.episodes(self.run_id)

    def turns(self) -> list[Row]:
        """Return its turns (columns of v_turns)."""
        return queries.turns_of_run(self.archive.store, self.run_id)

    def scores(self) -> list[Row]:
        """Return the scores by the newest version of each evaluator (columns of v_scores)."""
        return queries.scores(self.archive.store, self.run_id)

    def leaks(self) -> list[Row]:
        """Return its first disclosures of private facts (columns of v_leaks)."""
        return self.archive.leaks(self.run_id)

    def sql(self, query: str) -> list[Row]:
        """Return the rows of a read-only query; `$run` in it is the id of this run."""
        return self.archive.sql(query, run=self.run_id)

    def df(self, query: str) -> Any:
        """Return the result of such a query as a pandas DataFrame (needs pandas)."""
        return self.archive.df(query, run=self.run_id)

    def compare(self, other: str | None = None) -> list[Row]:
        """Return paired differences: between its modes, or with another run on the same scenarios and seeds."""
        from localsim.reports.comparison import compare

        store = self.archive.store
        rows = compare(store, self.run_id, None if other is None else store.run_id(other))
        return [row.as_json() for row in rows]

    def report(self, file: str | Path | None = None) -> Row:
        """Return the report as `localsim report --json` prints it; also written to a file that ends in .html or .md."""
        from localsim.reports.render.html import is_page, write
        from localsim.reports.report import Ask, of

        found = of(self.archive.store, Ask(self.run_id, talks=file is not None and is_page(file)))
        if file is not None:
            write(found, Path(file))
        return found.as_json()

    def plot(self, folder: str | Path, forms: Sequence[str] = ("svg", "png")) -> list[Path]:
        """Write the figures into a folder and return the files (needs matplotlib)."""
        from localsim.reports.figures.plots import figures

        with writing(folder):
            return figures(self.archive.store, self.run_id, Path(folder), forms)

    def audit(self) -> list[Row]:
        """Return the prompts that hold something that their reader may not know; [] is how it should be."""
        from localsim.reports.audit import audit_run

        return list(audit_run(self.archive.store, self.run_id).as_json()["details"])

    def export(self, folder: str | Path, form: Literal["csv", "parquet", "jsonl"] = "csv") -> list[Path]:
        """Write the run into a folder, one file for each view (jsonl: one file), and return the files."""
        from localsim.store.outside.export import export_run

        with writing(folder):
            return export_run(self.archive.store, self.run_id, form, Path(folder))


@dataclass(frozen=True)
class Simulated(Run):
    """A run that has just ended."""

    completed: int
    failed: int
    seconds: float


def run(
    *scenarios: str | Mapping[str, Any] | LoadedScenario,
    modes: str | Sequence[Mode] = "agents",
    model: str | Function | None = None,
    roles: Mapping[str, str | Function] | None = None,
    episodes: int = 1,
    seed: int = 1,
    db: str | None = None,
    sampling: Sampling | Mapping[str, Any] | None = None,
    leaks: bool | None = None,
    weights: str | None = None,
    sensitivity: float | None = None,
    name: str | None = None,
    on_turn: Callable[[EpisodeSpec, Turn], None] | None = None,
    say: Callable[[str], None] | None = None,
    cluster: str | None = None,
    **plan: Any,
) -> Simulated:
    """Simulate scenarios (files, folders, names, or dictionaries as in YAML) and store every prompt and turn.

    `model` is a name, or a function from a chat (a list of messages with `role` and `content`) to a reply; so is
    each of `roles`. `sampling` is a `Sampling` or a dictionary of its fields, such as `{"temperature": 0}`.
    `modes` is one mode, several, or "all". `episodes` is the number for each scenario and mode. `leaks` decides if the
    run is searched for leaks (None: yes; of scripted players only where names decide). `weights` is a file of
    thresholds for this search, made by `localsim leakage calibrate`, and `sensitivity` the share of false alarms that
    it allows. `name` is a name for the run. `cluster` is the address of a Ray cluster that plays it (docs/cluster.md).
    Further keywords are fields of `localsim.runs.plan.Plan` (see, perturb, parallel, repro, context, overflow, gpu,
    threads, primary, secondary). Raises the errors of the command: InvalidInput, ModelMissing, DatabaseError,
    BackendUnavailable, Interrupted.
    """
    tell = say or (lambda _line: None)
    loaded = tuple(found for given in scenarios for found in _scenarios(given))
    try:
        whole = Plan(
            scenarios=loaded,
            modes=_modes(modes),
            model=named(model) if callable(model) else chosen_model(model),
            roles={role: named(one) if callable(one) else absolute(one) for role, one in (roles or {}).items()},
            episodes=episodes,
            seed=seed,
            sampling=Sampling(**sampling) if isinstance(sampling, Mapping) else sampling,
            **plan,
        )
    except TypeError as error:
        names = {"Plan.__init__()": "localsim.run()", "Sampling.__init__()": "sampling of localsim.run()"}
        told = next((str(error).replace(*each) for each in names.items() if each[0] in str(error)), str(error))
        raise InvalidInput(told, hint="help(localsim.run) lists the arguments") from error
    from localsim.reports.comparison import check_outcomes

    check_outcomes(whole)
    given = weights is not None or sensitivity is not None
    chosen = Weights.named(weights or BUILT_IN).at(sensitivity) if given else None
    called = checked_name(name) if name is not None else None
    store = Store(paths.database_path(db))
    watcher = _Turns(on_turn)
    result = runner.start(whole, store, watcher, tell, leaks=leaks, weights=chosen, name=called, cluster=cluster)
    summary = result.summary
    if summary.stopped:
        raise Interrupted(
            "stopped before the end", hint=f"localsim resume {result.run_id}{paths.db_option(store.path)}"
        )
    if leaks and not result.leaks_scored:
        raise DatabaseError(
            "the run is stored, but it was not searched for leaks", hint=f"localsim score {result.run_id}"
        )
    return Simulated(result.run_id, Archive(str(store.path)), summary.completed, summary.failed, result.seconds)


def _scenarios(given: str | Mapping[str, Any] | LoadedScenario) -> list[LoadedScenario]:
    if isinstance(given, LoadedScenario):
        return [given]
    if isinstance(given, Mapping):
        return [parse_scenario(dumped(given), "the dictionary")]
    if isinstance(given, str | Path):
        return find_scenarios([str(given)])
    raise InvalidInput(f"{given!r} is no scenario", hint="give a name, a path, or a dictionary as in YAML")


def _modes(modes: str | Sequence[Mode]) -> tuple[Mode, ...]:
    chosen = MODES if modes == "all" else tuple(modes.split(",")) if isinstance(modes, str) else tuple(modes)
    return tuple(dict.fromkeys(chosen))  # type: ignore[arg-type]  # Plan checks them against MODES


class _Turns(Watcher):
    """Passes turns on to a function."""

    def __init__(self, on_turn: Callable[[EpisodeSpec, Turn], None] | None) -> None:
        self._on_turn = on_turn

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        """Handle a valid turn."""
        if self._on_turn:
            self._on_turn(spec, turn)
