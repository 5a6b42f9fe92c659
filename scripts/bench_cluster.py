#!/usr/bin/env python3
"""What a Ray cluster costs: the same episodes in one process, and on 1, 2 and 4 workers of this machine.

    .venv/bin/python scripts/bench_cluster.py
    .venv/bin/python scripts/bench_cluster.py --model starter --episodes 4 --repeats 1

Every engine has one thread and the same number of episodes at a time, and every cluster is measured beside a run in one
process, by turns. `CPU` is processor time of the driver and the workers, without opening models and without Ray's own
processes: on a machine with fewer cores than workers it shows the overhead, and the speed-up cannot show more than the
number of cores. Ray listens on the loopback address only.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))

WORKERS = (1, 2, 4)


@click.command()
@click.option("--model", default="scripted:guesser", show_default=True)
@click.option("--scenario", default="mutual_friends_01", show_default=True)
@click.option("--episodes", default=60, show_default=True, help="Episodes of each mode.")
@click.option("--parallel", "-j", default=4, show_default=True, help="Episodes at a time in each process.")
@click.option("--repeats", default=3, show_default=True)
@click.option("--workers", default=",".join(map(str, WORKERS)), show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(model: str, scenario: str, episodes: int, parallel: int, repeats: int, workers: str, as_json: bool) -> None:
    """Print a table of medians."""
    from localsim.runs.plan import Plan
    from localsim.scenarios.find import find_scenarios
    from tests.ray_cluster import nodes

    scenarios = tuple(find_scenarios([scenario]))
    plan = Plan(scenarios, ("agents",), model, episodes=episodes, parallel=parallel, threads=1)
    rows = []
    with tempfile.TemporaryDirectory() as scratch, nodes(1) as cluster:
        os.environ["RAY_ADDRESS"] = cluster.address
        for number, count in enumerate(map(int, workers.split(","))):
            while len(cluster.all()) < count:
                cluster.add()
            pairs = []
            for repeat in range(repeats):
                place = Path(scratch) / f"{number}-{repeat}"
                pairs.append(
                    (alone(plan, place.with_suffix(".one")), spread(plan, place.with_suffix(".many"), cluster))
                )
            rows.append(row_of(count, plan, pairs))
            click.echo(f"{count} workers: {rows[-1]}", err=True)
    if as_json:
        click.echo(json.dumps({"cores": psutil.cpu_count(), "model": model, "rows": rows}, indent=1))
        return
    click.echo(f"{model}, {psutil.cpu_count()} cores, medians of {repeats}\n")
    heads = list(rows[0])
    click.echo("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for row in rows:
        click.echo("| " + " | ".join(f"{value:.3g}" for value in row.values()) + " |")


def row_of(count: int, plan: Any, pairs: list[tuple[dict[str, float], dict[str, float]]]) -> dict[str, float]:
    """Return the medians of pairs of one run in a process and one on workers."""
    episodes = len(plan.specs())

    def median(value: Any) -> float:
        return float(statistics.median(value(one, many) for one, many in pairs))

    return {
        "workers": count,
        "episodes": episodes,
        "CPU ms an episode alone": median(lambda one, _: 1000 * one["cpu"] / episodes),
        "CPU ms an episode on workers": median(lambda _, many: 1000 * many["cpu"] / episodes),
        "CPU ratio": median(lambda one, many: many["cpu"] / one["cpu"]),
        "of it the driver": median(lambda _, many: many["driver"] / many["cpu"]),
        "s alone / s on workers": median(lambda one, many: one["wall"] / many["wall"]),
    }


def recorder_of(plan: Any, store: Any, run_id: str, identities: Any) -> Any:
    """Return a journal and a recorder for a new run."""
    from localsim.runs.recorder import Recorder
    from localsim.runs.runner import run_record
    from localsim.store.journal import Journal

    record = run_record(run_id, datetime.now(UTC), plan, plan.parallel, len(plan.specs()), identities)
    return Recorder(store, Journal(store.path, run_id), record, plan.scenarios, lambda _: None)


def alone(plan: Any, db: Path) -> dict[str, float]:
    """Play a plan in this process."""
    from localsim.backends.open import models_of, open_backends
    from localsim.runs.preview import needs_of
    from localsim.runs.runner import identities_of
    from localsim.runs.scheduler import Simulation, Watcher
    from localsim.store.database import Store

    answers = {loaded.scenario.hash: loaded.answer for loaded in plan.scenarios}
    with open_backends(models_of(plan.specs()), needs_of(plan, plan.parallel), lambda _: None) as backends:
        recorder = recorder_of(plan, Store(db), "r1", identities_of(backends))
        wall, cpu = time.perf_counter(), time.process_time()
        simulation = Simulation("r1", backends, answers, recorder, Watcher(), parallel=plan.parallel)
        simulation.run(plan.specs())
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        recorder.close(finished_utc="2026-01-01T00:00:00", complete=True)
    return {"wall": wall, "cpu": cpu}


def spread(plan: Any, db: Path, cluster: Any) -> dict[str, float]:
    """Play a plan on all workers of the cluster, once every one of them has opened the model."""
    from localsim.runs.cluster.crew import gathered
    from localsim.runs.cluster.playing import Players, orders_of
    from localsim.runs.scheduler import Watcher, Work
    from localsim.store.database import Store

    answers = {loaded.scenario.hash: loaded.answer for loaded in plan.scenarios}
    with gathered("auto", orders_of(plan, plan.specs()), lambda _: None) as crew:
        while len(crew.ready()) < len(cluster.all()):
            crew.turn()
        players = Players(crew)
        recorder = recorder_of(plan, Store(db), "r1", players.identities)
        processes = cluster.workers()
        before, driver, wall = spent(processes), time.process_time(), time.perf_counter()
        players.simulate(Work("r1", plan.specs(), {}, answers, recorder, Watcher(), lambda: False))
        wall, driver, workers = time.perf_counter() - wall, time.process_time() - driver, spent(processes) - before
        recorder.close(finished_utc="2026-01-01T00:00:00", complete=True)
    return {"wall": wall, "driver": driver, "cpu": driver + workers}


def spent(processes: list[psutil.Process]) -> float:
    """Return the processor time of processes in seconds."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


if __name__ == "__main__":
    main()
