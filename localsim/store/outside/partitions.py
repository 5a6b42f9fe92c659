"""Parquet partitions: one folder for each run, which holds all rows that belong to the run.

    FOLDER/manifest.json                                          what the folder holds
    FOLDER/run=RUN/manifest.json                                  version of the schema, number of rows in each table
    FOLDER/run=RUN/episodes.parquet                               one file for each table
    FOLDER/run=RUN/turns/scenario=SCENARIO/data_0.parquet         or, of large scenarios, a folder for each scenario

`run` and `scenario` are Hive partitions, which DuckDB, Polars, Spark and pandas read as columns. A partition needs no
other one: it can be copied, sent and deleted alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from localsim import __version__, paths
from localsim.errors import InvalidInput

MANIFEST = "manifest.json"
FORMAT = 1
"""Number of the layout of folders and files."""
LARGE = ("turns", "generations", "scores")
"""Tables that are divided by scenario too, where scenarios are large; their files have a column `scenario` anyway."""


@dataclass(frozen=True)
class Partition:
    """What a partition holds, as in its manifest."""

    run_id: str
    schema_version: str
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


def read(folder: Path) -> dict[Path, Partition]:
    """Return the partitions of a folder by run. Raises InvalidInput for a manifest that cannot be read."""
    return {each: read_manifest(each) for each in sorted(folder.glob("run=*")) if each.is_dir()}


def read_manifest(partition: Path) -> Partition:
    """Return the manifest of a partition. Raises InvalidInput if it is missing or not one."""
    file = partition / MANIFEST
    hint = "write the partition again: localsim export RUN --partitioned FOLDER"
    try:
        data: Any = paths.json_value(file.read_text(encoding="utf-8"))
        found = Partition(**data)
        if partition_of(found.run_id, partition.parent) != partition:
            raise InvalidInput(f"is the manifest of run {found.run_id}", where=str(file), hint=hint)
        counts = [*found.rows.values(), found.format]
        if not all(isinstance(each, int) for each in counts):
            raise ValueError("a count is not a number")
    except (OSError, ValueError, TypeError, AttributeError) as error:
        problem = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be used: {error}"
        raise InvalidInput(problem, where=str(file), hint=hint) from error
    return found
