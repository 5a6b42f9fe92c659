#!/usr/bin/env python3
"""Times of large databases: insert, export, attach, the worked queries of docs/sql.md, and a report.

.venv/bin/python scripts/bench_scale.py --turns 1000000 --folder SCRATCH
.venv/bin/python scripts/bench_scale.py --turns 10000000 --folder SCRATCH --runs 10

The data are SYNTHETIC: scripted players talk for real, and their conversations are copied under other ids until there
are enough turns. All runs have names that begin with SYNTHETIC. Because texts repeat, sizes are taken from the run that
was played, and not from its copies. Delete the folder afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.conversation.episode import MODES  # noqa: E402
from localsim.conversation.scenario import LoadedScenario  # noqa: E402
from localsim.families import FAMILIES  # noqa: E402
from localsim.reports.compose.alone import report  # noqa: E402
from localsim.runs import runner  # noqa: E402
from localsim.runs.plan import Plan  # noqa: E402
from localsim.runs.scheduler import Watcher  # noqa: E402
from localsim.store.database import Store  # noqa: E402
from localsim.store.lock import scratch  # noqa: E402
from localsim.store.outside.attached import attach_all  # noqa: E402
from localsim.store.outside.export import write_partition  # noqa: E402
from localsim.store.outside.partitions import partition_of  # noqa: E402
from localsim.store.schema import TABLES  # noqa: E402

OF_EPISODES = [name for name, table in TABLES.items() if "episode_id" in table.columns]
QUERIES = ROOT / "db" / "queries"
EVERYTHING = "SELECT mode, count(*), avg(words) FROM v_turns GROUP BY mode"


class Clock:
    """Prints a line for each step: seconds by the clock, and of processor time, which other programs do not change."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def timed(self, name: str, action: Callable[[], Any], count: int = 0) -> Any:
        """Run an action and print its times; `count` rows give a rate."""
        wall, own = time.perf_counter(), time.process_time()
        result = action()
        row = {"step": name, "seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - own}
        if count:
            row["rows_per_cpu_second"] = round(count / max(1e-9, row["cpu_seconds"]))
        self.rows.append(row)
        print(f"| {name} | {row['seconds']:.2f} | {row['cpu_seconds']:.2f} | {row.get('rows_per_cpu_second', '')} |")
        sys.stdout.flush()
        return result


def play(path: Path, scenarios: int) -> Store:
    """Let scripted players talk on generated scenarios of every paper family."""
    store = Store(path)
    if not path.is_file():
        found = []
        for family in ("mutual_friends", "craigslist"):
            for seed in range(scenarios):
                scenario, answer = FAMILIES[family].generate(f"{family}_{seed}", seed, {}).split()
                found.append(LoadedScenario(scenario, answer, "generated"))
        plan = Plan(tuple(found), MODES, model="scripted:auto", episodes=2)
        runner.start(plan, store, Watcher(), lambda _: None, name="SYNTHETIC base")
    return store


def multiplied(base: Store, path: Path, turns: int) -> tuple[Store, str, int]:
    """Fill a database with copies of the played run, as one run of `turns` turns; return the number of rows too."""
    store, base_id = Store(path), base.run_id("@last")
    have = base.rows("SELECT count(*) AS n FROM turns")[0]["n"]
    copies = -(-turns // have)
    run_id = f"{base_id[:15]}-s001"
    written = 0
    with store.writing() as connection:
        connection.execute(f"ATTACH '{base.path}' AS base (READ_ONLY)")
        connection.execute(f"CREATE TEMP TABLE copies AS SELECT range AS k FROM range({copies})")
        for table in TABLES:
            names = ", ".join(TABLES[table].columns)
            values = "t.*"
            if table == "episodes":
                values = (
                    "t.* REPLACE (left(md5(t.episode_id || k), 16) AS episode_id, $run AS run_id, "
                    "t.episode_index + 2 * k::INTEGER AS episode_index, t.seed + k AS seed)"
                )
            elif table in OF_EPISODES:
                values = "t.* REPLACE (left(md5(t.episode_id || k), 16) AS episode_id)"
            elif table == "runs":
                planned = f"t.episodes_planned * {copies} AS episodes_planned"
                values = f"t.* REPLACE ($run AS run_id, 'SYNTHETIC' AS name, {planned})"
            join = ", copies" if table in OF_EPISODES else ""
            statement = f"INSERT INTO {table} ({names}) SELECT {values} FROM base.main.{table} t{join}"
            row = connection.execute(statement, {"run": run_id} if "$run" in statement else None).fetchone()
            written += int(row[0]) if row else 0
    return store, run_id, written


def more_partitions(folder: Path, first: str, runs: int) -> None:
    """Write copies of a partition under other ids of run and episodes, two at a time."""
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda number: _copy(folder, first, number), range(2, runs + 1)))


def _copy(folder: Path, first: str, number: int) -> None:
    source, run_id = partition_of(first, folder), f"{first[:-3]}{number:03d}"
    manifest = json.loads((source / "manifest.json").read_text())
    target = partition_of(run_id, folder)
    target.mkdir()
    with scratch() as connection:
        for table, columns in ((name, each.columns) for name, each in TABLES.items()):
            changed = [f"'{run_id}' AS run_id"] if "run_id" in columns else []
            changed += [f"episode_id || '-{number}' AS episode_id"] if "episode_id" in columns else []
            values = f"* REPLACE ({', '.join(changed)})" if changed else "*"
            connection.execute(
                f"COPY (SELECT {values} FROM read_parquet('{source}/{table}.parquet', hive_partitioning = false)) "
                f"TO '{target}/{table}.parquet' (FORMAT parquet)"
            )
    (target / "manifest.json").write_text(json.dumps({**manifest, "run_id": run_id}))


@click.command()
@click.option("--turns", default=1_000_000, show_default=True, help="Turns in all.")
@click.option("--runs", default=1, show_default=True, help="Divide the turns over this number of runs.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Folder for the synthetic data.")
@click.option("--scenarios", default=100, show_default=True, help="Scenarios of each family.")
@click.option("--report/--no-report", "with_report", default=True, help="Also time a report of the first run.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Also write the times to this JSON file.")
def main(turns: int, runs: int, folder: Path, scenarios: int, with_report: bool, output: Path | None) -> None:
    """Print a table of steps with their times."""
    folder.mkdir(parents=True, exist_ok=True)
    base = play(folder / "played.duckdb", scenarios)
    clock = Clock()
    print(f"{turns} turns in {runs} runs, {os.cpu_count()} processors, load {os.getloadavg()[0]:.0f}")
    print("| step | seconds | processor seconds | rows per processor second |\n|---|---|---|---|")
    for name in ("large.duckdb", "large.duckdb.wal"):
        with suppress(FileNotFoundError):
            (folder / name).unlink()
    begun = time.process_time()
    store, run_id, rows = clock.timed("make", lambda: multiplied(base, folder / "large.duckdb", turns // runs))
    spent = time.process_time() - begun
    print(f"insert: {rows} rows, {rows / spent:.0f} a processor second, {store.path.stat().st_size / 1e6:.0f} MB")
    parts = folder / "parts"
    shutil.rmtree(parts, ignore_errors=True)
    made = clock.timed("export of a run", lambda: write_partition(store, run_id, parts), rows)
    print(f"export: {made.bytes / 1e6:.0f} MB, {made.rows['turns']} turns, {made.rows['episodes']} episodes")
    clock.timed("copies of the partition", lambda: more_partitions(parts, run_id, runs))
    clock.timed("db attach", lambda: attach_all([str(parts)], folder / "all.duckdb", print))
    for place, asked in (("Parquet", Store(folder / "all.duckdb")), ("DuckDB", store)):
        for file in sorted(QUERIES.glob("*.sql")):
            query = file.read_text()
            clock.timed(f"{file.stem}, one run, {place}", lambda q=query, s=asked: s.sql(q, run=run_id))
        clock.timed(f"words per mode, all runs, {place}", lambda s=asked: s.sql(EVERYTHING))
    if with_report:
        clock.timed("report, Parquet", lambda: report(Store(folder / "all.duckdb"), run_id))
    if output:
        output.write_text(json.dumps(clock.rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
