"""The Python API for reading: `localsim.open(path)` gives an Archive for notebooks and scripts.

Every call opens the database read-only, answers and closes, so that a run can go on writing.
"""

from __future__ import annotations

from typing import Any

from localsim import paths
from localsim.store import Store

Row = dict[str, Any]


class Archive:
    """A database of runs. Raises DatabaseError where the file cannot be read, InvalidInput for a wrong query."""

    def __init__(self, path: str | None = None) -> None:
        self._store = Store(paths.database_path(path))

    def __repr__(self) -> str:
        return f"localsim.open({str(self._store.path)!r})"

    def runs(self) -> list[Row]:
        """All runs with their counts, newest first (columns of v_runs)."""
        return self._store.rows("SELECT * FROM v_runs ORDER BY started_utc DESC")

    def episodes(self, run: str | None = None) -> list[Row]:
        """Episodes (columns of v_episodes) of one run (`@last`, id or its start), or of all."""
        query = "SELECT * FROM v_episodes {} ORDER BY run_id, scenario_id, mode, episode_index"
        if run is None:
            return self._store.rows(query.format(""))
        return self._store.rows(query.format("WHERE run_id = ?"), [self._store.run_id(run)])

    def turns(self, episode: str | None = None) -> list[Row]:
        """Turns (columns of v_turns) of one episode (`@last`, id or its start), or of all."""
        query = "SELECT * FROM v_turns {} ORDER BY episode_id, turn"
        if episode is None:
            return self._store.rows(query.format(""))
        return self._store.rows(query.format("WHERE episode_id = ?"), [self._store.episode_id(episode)])

    def leaks(self, run: str | None = None) -> list[Row]:
        """First disclosures of private facts (columns of v_leaks) of one run, or of all."""
        query = "SELECT * FROM v_leaks {} ORDER BY episode_id, turn, fact_id"
        if run is None:
            return self._store.rows(query.format(""))
        return self._store.rows(query.format("WHERE run_id = ?"), [self._store.run_id(run)])

    def sql(self, query: str) -> list[Row]:
        """Rows of any read-only query; files and settings are out of its reach."""
        columns, rows = self._store.sql(query)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def df(self, query: str) -> Any:
        """The result of a query as a pandas DataFrame (needs pandas)."""
        return self._store.dataframe(query)
