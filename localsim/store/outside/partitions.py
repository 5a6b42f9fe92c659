"""Parquet partitions: one folder for each run, which holds all rows that belong to the run.

    FOLDER/manifest.json                                          what the folder holds
    FOLDER/run=RUN/manifest.json                                  version of the schema, number of rows in each table
    FOLDER/run=RUN/episodes.parquet                               one file for each table
    FOLDER/run=RUN/turns/scenario=SCENARIO/data_0.parquet         or, of large scenarios, a folder for each scenario

`run` and `scenario` are Hive partitions, which DuckDB, Polars, Spark and pandas read as columns. A partition needs no
other one: it can be copied, sent and deleted alone.
"""

from __future__ import annotations

import shutil
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from filelock import FileLock

from localsim import __version__, paths
from localsim.errors import InvalidInput
from localsim.store.migrations import schema_version
from localsim.store.schema import TABLES

if TYPE_CHECKING:
    import duckdb

    from localsim.store.database import Store

MANIFEST = "manifest.json"
FORMAT = 1
"""Number of the layout of folders and files."""
LARGE = ("turns", "generations", "scores")
"""Tables that are divided by scenario too, where scenarios are large; their files have a column `scenario` anyway."""
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


@dataclass(frozen=True)
class Partition:
    """What a partition holds, as in its manifest."""

    run_id: str
    schema_version: int
    rows: dict[str, int]
    """Table -> number of rows."""
    by_scenario: bool
    """True if the tables LARGE have a folder for each scenario."""
    bytes: int = 0
    written_utc: str = ""
    localsim: str = __version__
    format: int = FORMAT


def partition_of(run_id: str, folder: Path) -> Path:
    """Return the folder of a run within a folder of partitions."""
    return folder / f"run={quote(run_id, safe='')}"  # DuckDB and others decode it


def write_partition(store: Store, run_id: str, folder: Path, by_scenario: bool | None = None) -> Partition:
    """Write a run to its partition in `folder`; an older partition of the run is replaced once the new one is whole.

    `by_scenario` None divides by scenario if scenarios are large. Raises InvalidInput if it cannot write.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f".writing-{uuid.uuid4().hex[:12]}"
        fresh.mkdir()
        try:
            with store.reading() as connection:
                split = _are_large(connection, run_id) if by_scenario is None else by_scenario
                rows = {table: _copy(connection, table, run_id, fresh, split and table in LARGE) for table in TABLES}
                version = schema_version(connection)
            made = Partition(run_id, version, rows, split, _size(fresh), _now())
            (fresh / MANIFEST).write_text(paths.json_text(asdict(made), indent=2) + "\n", encoding="utf-8")
            with FileLock(str(folder / ".lock"), timeout=60):
                _put_in_place(fresh, partition_of(run_id, folder))
                _describe(folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", where=str(folder)) from error
    return made


def _are_large(connection: duckdb.DuckDBPyConnection, run_id: str) -> bool:
    query = "SELECT sum(turns) / count(DISTINCT scenario_hash) FROM episodes WHERE run_id = ?"
    found = connection.execute(query, [run_id]).fetchone()
    return bool(found and found[0] and found[0] >= LARGE_SCENARIO)


def _copy(connection: duckdb.DuckDBPyConnection, table: str, run_id: str, folder: Path, split: bool) -> int:
    """Write the rows of a table that belong to a run; return their number."""
    columns = ", ".join(f"t.{column}" for column in TABLES[table].columns)
    source = _rows_of_run(table)
    order = _ORDER.get(table, TABLES[table].primary_key)
    place, options = folder / f"{table}.parquet", ""
    if split:
        place, options = folder / table, ", PARTITION_BY (scenario)"
    if table in LARGE:
        columns, order = f"{columns}, s.scenario_id AS scenario", f"scenario, {order}"
        source += " JOIN scenarios s ON s.scenario_hash = own.scenario_hash"
    target = str(place).replace("'", "''")
    found = connection.execute(
        f"COPY ({_OWN} SELECT {columns} FROM {source} ORDER BY {order}) "
        f"TO '{target}' (FORMAT parquet, COMPRESSION zstd{options})",
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
    runs = {each.run_id: {**each.rows, "bytes": each.bytes, "written_utc": each.written_utc} for each in read(folder)}
    about = {"format": FORMAT, "runs": runs}
    (folder / MANIFEST).write_text(paths.json_text(about, indent=2) + "\n", encoding="utf-8")


def read(folder: Path) -> list[Partition]:
    """Return the partitions of a folder by run. Raises InvalidInput for a manifest that cannot be read."""
    return [read_manifest(each) for each in sorted(folder.glob("run=*")) if each.is_dir()]


def read_manifest(partition: Path) -> Partition:
    """Return the manifest of a partition. Raises InvalidInput if it is missing or not one."""
    file = partition / MANIFEST
    hint = "write the partition again: localsim export RUN --partitioned FOLDER"
    try:
        data: Any = paths.json_value(file.read_text(encoding="utf-8"))
        found = Partition(**data)
        if partition_of(found.run_id, partition.parent) != partition:
            raise InvalidInput(f"is the manifest of run {found.run_id}", where=str(file), hint=hint)
        counts = [*found.rows.values(), found.schema_version, found.format]
        if not all(isinstance(each, int) for each in counts):
            raise ValueError("a count is not a number")
    except (OSError, ValueError, TypeError, AttributeError) as error:
        problem = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be used: {error}"
        raise InvalidInput(problem, where=str(file), hint=hint) from error
    return found


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*.parquet"))


def _now() -> str:
    return datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="seconds")
