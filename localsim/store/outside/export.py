"""Export of runs for other tools: jsonl (one episode per line), parquet and csv (one file per view)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from localsim import paths
from localsim.errors import InvalidInput
from localsim.store.database import Store
from localsim.store.episodes import load_episode
from localsim.store.outside.sources import quoted

_VIEWS = (
    "v_runs",
    "v_episodes",
    "v_turns",
    "v_generations",
    "v_scores",
    "v_leaks",
    "v_annotations",
    "v_judgements",
    "v_leak_judgements",
)


def export_run(store: Store, run_id: str, form: str, target: Path, *, empty: bool = True) -> list[Path]:
    """Write one run as `jsonl`, `parquet` or `csv`; return the files. Raises InvalidInput if it cannot write.

    `empty`: also write a file for a view without rows.
    """
    try:
        if form == "jsonl":
            return [_jsonl(store, run_id, target)]
        target.mkdir(parents=True, exist_ok=True)
        filled = [view for view in _VIEWS if empty or _has_rows(store, view, run_id)]
        return _views(store, run_id, filled, form, target)
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", where=str(target)) from error


def _has_rows(store: Store, view: str, run_id: str) -> bool:
    return bool(store.rows(f"SELECT 1 FROM {view} WHERE run_id = ? LIMIT 1", [run_id]))


def _jsonl(store: Store, run_id: str, target: Path) -> Path:
    episodes = store.rows(
        "SELECT episode_id FROM v_episodes WHERE run_id = ? ORDER BY scenario_id, mode, episode_index", [run_id]
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", encoding="utf-8") as file:
        for row in episodes:
            file.write(paths.json_text(load_episode(store, row["episode_id"]).as_json()) + "\n")
    return target


def _views(store: Store, run_id: str, views: Sequence[str], form: str, folder: Path) -> list[Path]:
    files = []
    with store.reading() as connection:
        for view in views:
            file = folder / f"{view.removeprefix('v_')}.{form}"
            connection.execute(
                f"COPY (SELECT * FROM {view} WHERE run_id = ?) TO {quoted(file)} (FORMAT {form})", [run_id]
            )
            files.append(file)
    return files
