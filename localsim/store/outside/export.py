"""Export of runs for other tools: jsonl (one episode per line), parquet and csv (one file per view), and partitions."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock

from localsim import paths
from localsim.errors import writing
from localsim.store.database import Store
from localsim.store.episodes import load_episode
from localsim.store.lock import Connection
from localsim.store.outside.partitions import FORMAT, LARGE, MANIFEST, Partition, partition_of, read
from localsim.store.outside.sources import quoted
from localsim.store.schema import TABLES, version

_VIEWS = (
    "v_runs v_episodes v_turns v_generations v_scores v_leaks v_annotations v_judgements v_leak_judgements"
).split()


def export_run(store: Store, run_id: str, form: str, target: Path, *, empty: bool = True) -> list[Path]:
    """Write one run as `jsonl`, `parquet` or `csv`; return the files. Raises InvalidInput if it cannot write.

    `empty`: also write a file for a view without rows.
    """
    with writing(target):
        if form == "jsonl":
            return [_jsonl(store, run_id, target)]
        target.mkdir(parents=True, exist_ok=True)
        any_row = "SELECT 1 FROM {} WHERE run_id = ? LIMIT 1"
        filled = [view for view in _VIEWS if empty or store.rows(any_row.format(view), [run_id])]
        return _views(store, run_id, filled, form, target)


def _jsonl(store: Store, run_id: str, target: Path) -> Path:
    episodes = store.rows(
        "SELECT episode_id FROM v_episodes WHERE run_id = ? ORDER BY scenario_id, mode, episode_index", [run_id]
    )
    with paths.whole_file(target) as part, part.open("w", encoding="utf-8") as file, store.held() as held:
        for row in episodes:
            file.write(paths.json_text(load_episode(held, row["episode_id"]).as_json()) + "\n")
    return target


def _views(store: Store, run_id: str, views: Sequence[str], form: str, folder: Path) -> list[Path]:
    files = []
    with store.reading() as connection:
        for view in views:
            file = folder / f"{view.removeprefix('v_')}.{form}"
            columns = _harmless(connection, view) if form == "csv" else "*"
            connection.execute(
                f"COPY (SELECT {columns} FROM {view} WHERE run_id = ?) TO {quoted(file)} (FORMAT {form})", [run_id]
            )
            files.append(file)
    return files


def _harmless(connection: Connection, view: str) -> str:
    """Return the columns of a view for a table of cells: a text that a spreadsheet would run gets a quote in front.

    Excel and others take a cell that begins with one of = + - @, a tab or a return as a formula.
    """
    text = r"""CASE WHEN regexp_matches({0}, '^[=+@\-\t\r]') THEN chr(39) || {0} ELSE {0} END AS {0}"""
    rows = connection.execute(f"DESCRIBE {view}").fetchall()
    return ", ".join(text.format(f'"{name}"') if kind == "VARCHAR" else f'"{name}"' for name, kind, *_ in rows)


# ---- partitions -----------------------------------------------------------------------------------------------------

LARGE_SCENARIO = 20_000
"""Turns of a run per scenario from which each scenario gets files of its own: every small file makes reading slower."""
_OF_EPISODES = ("leaks", "searches", "judgements")
_TEXTS = (
    "SELECT unnest(g.messages_json ->> '$[*][1]') AS content_hash FROM generations g SEMI JOIN own USING (episode_id) "
    "UNION SELECT unnest([g.prefill_hash, g.grammar_hash]) FROM generations g SEMI JOIN own USING (episode_id) "
    "UNION SELECT unnest([j.instructions_hash, j.prompt_hash, j.grammar_hash]) "
    "FROM judgements j SEMI JOIN own USING (episode_id) "
    "UNION SELECT q.weights_hash FROM searches q SEMI JOIN own USING (episode_id) "
    "UNION SELECT split_part(r.plan_json ->> '$.weights', ' ', -1) FROM runs r WHERE r.run_id = $run "
    "UNION SELECT a.value_json ->> '$.description' FROM annotations a WHERE a.run_id = $run AND a.task = 'participant'"
)
"""The texts that the rows of a run refer to."""
_OWN = "WITH own AS (SELECT episode_id, scenario_hash FROM episodes WHERE run_id = $run) "
_ORDER = {"contents": "content_hash", "vectors": "text", "turns": "episode_id, turn"}


def write_partition(store: Store, run_id: str, folder: Path, by_scenario: bool | None = None) -> Partition:
    """Write a run to its partition in `folder`; an older partition of the run is replaced once the new one is whole.

    `by_scenario` None divides by scenario if scenarios are large. Raises InvalidInput if it cannot write.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f".writing-{uuid.uuid4().hex[:12]}"
        fresh.mkdir()
        try:
            with store.reading() as connection:
                split = _are_large(connection, run_id) if by_scenario is None else by_scenario
                rows = {table: _copy(connection, table, run_id, fresh, split and table in LARGE) for table in TABLES}
            size = sum(file.stat().st_size for file in fresh.rglob("*.parquet"))
            now = datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="seconds")
            made = Partition(run_id, version(), rows, split, size, now)
            (fresh / MANIFEST).write_text(paths.json_text(asdict(made), indent=2) + "\n", encoding="utf-8")
            with FileLock(str(folder / ".lock"), timeout=60):
                _put_in_place(fresh, partition_of(run_id, folder))
                _describe(folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return made


def _are_large(connection: Connection, run_id: str) -> bool:
    query = "SELECT sum(turns) / count(DISTINCT scenario_hash) FROM episodes WHERE run_id = ?"
    found = connection.execute(query, [run_id]).fetchone()
    return bool(found and found[0] and found[0] >= LARGE_SCENARIO)


def _copy(connection: Connection, table: str, run_id: str, folder: Path, split: bool) -> int:
    """Write the rows of a table that belong to a run; return their number."""
    columns = ", ".join(f"t.{column}" for column in TABLES[table].columns)
    source = _rows_of_run(table)
    order = _ORDER.get(table) or ", ".join(TABLES[table].key)
    place, options = folder / f"{table}.parquet", ""
    if split:
        place, options = folder / table, ", PARTITION_BY (scenario)"
    if table in LARGE:
        columns, order = f"{columns}, s.scenario_id AS scenario", f"scenario, {order}"
        source += " JOIN scenarios s ON s.scenario_hash = own.scenario_hash"
    found = connection.execute(
        f"COPY ({_OWN} SELECT {columns} FROM {source} ORDER BY {order}) "
        f"TO {quoted(place)} (FORMAT parquet, COMPRESSION zstd{options})",
        {"run": run_id},
    ).fetchone()
    return int(found[0]) if found else 0


def _rows_of_run(table: str) -> str:
    """Return the FROM clause, with the table as `t`, that yields the rows of one run; it may use the episodes `own`."""
    if table in ("runs", "annotations", "episodes"):
        return f"(SELECT * FROM {table} WHERE run_id = $run) t"
    if table in LARGE:
        return f"{table} t JOIN own ON own.episode_id = t.episode_id"
    if table in _OF_EPISODES:
        return f"{table} t SEMI JOIN own ON own.episode_id = t.episode_id"
    if table == "scenarios":
        return "scenarios t SEMI JOIN own ON own.scenario_hash = t.scenario_hash"
    if table == "contents":
        return f"contents t SEMI JOIN ({_TEXTS}) n ON n.content_hash = t.content_hash"
    assert table == "vectors", f"no rule says which rows of {table} belong to a run"
    return (
        "vectors t SEMI JOIN (SELECT u.text FROM turns u SEMI JOIN own USING (episode_id) "
        "UNION SELECT l.fact FROM leaks l SEMI JOIN own USING (episode_id)) n ON n.text = t.text"
    )


def _put_in_place(fresh: Path, partition: Path) -> None:
    """Replace a partition by a new one; readers see the old one, or for a moment none, or the new one."""
    old = fresh.with_name(fresh.name.replace("writing", "old"))
    with suppress(FileNotFoundError):
        partition.rename(old)
    fresh.rename(partition)
    shutil.rmtree(old, ignore_errors=True)


def _describe(folder: Path) -> None:
    """Write what the folder holds, for people and other programs; localsim reads the manifests of the partitions."""
    runs = {
        each.run_id: {**each.rows, "bytes": each.bytes, "written_utc": each.written_utc}
        for each in read(folder).values()
    }
    about = {"format": FORMAT, "runs": runs}
    (folder / MANIFEST).write_text(paths.json_text(about, indent=2) + "\n", encoding="utf-8")
