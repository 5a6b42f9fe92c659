#!/usr/bin/env python3
"""Compare the minutes and the memory that `run --dry-run` forecasts with those of 48 real episodes.

    .venv/bin/python scripts/bench_forecast.py

4 scenarios x 3 modes x 4 seeds, the default model: once where no episode of the model has been seen, and once more,
with other seeds, in a database that holds the first 48. Each run is a process of its own (peak memory is VmHWM).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SCENARIOS = ("mutual_friends_01", "mutual_friends_02", "craigslist_01", "craigslist_02")


@click.command()
@click.option("--model", default="starter", show_default=True)
@click.option("--child", hidden=True, help="DATABASE,SEED")
def main(model: str, child: str | None) -> None:
    """Print a table."""
    if child:
        path, _, seed = child.rpartition(",")
        print(json.dumps(one(model, Path(path), int(seed))))
        return
    print("| earlier episodes | minutes stated | interval | minutes taken | ratio | MB stated | MB at peak | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for seed, before in ((1, "none"), (2, "48")):
            row = _in_a_process(model, Path(scratch) / "f.duckdb", seed)
            print(
                f"| {before} | {row['minutes']:.1f} | {row['low']:.1f} to {row['high']:.1f} | {row['taken']:.1f} | "
                f"{row['minutes'] / row['taken']:.2f} | {row['stated'] / 1e6:.0f} | {row['peak'] / 1e6:.0f} | "
                f"{row['stated'] / row['peak']:.2f} |",
                flush=True,
            )


def _in_a_process(model: str, path: Path, seed: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--model", model, "--child", f"{path},{seed}"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def one(model: str, path: Path, seed: int) -> dict[str, Any]:
    """Forecast a run, then run it."""
    from localsim.backends.llama.lib import LlamaModel
    from localsim.backends.open import gpu_layers, memory_plans, physical_cores
    from localsim.conversation.episode import MODES
    from localsim.machine import forecast
    from localsim.models.registry import resolve
    from localsim.runs import runner
    from localsim.runs.plan import Plan
    from localsim.runs.preview import needs_of
    from localsim.scenarios.find import find_scenarios
    from localsim.store.database import Store
    from scripts.bench_engine import Silent
    from scripts.bench_scaling import _peak

    plan = Plan(tuple(find_scenarios(SCENARIOS)), MODES, model=model, episodes=4, seed=seed, parallel=8)
    store = Store(path)
    loaded = LlamaModel(resolve(model).path, gpu_layers=gpu_layers("auto"))
    told = forecast.forecast(plan.specs(), forecast.measure(loaded, 8, physical_cores()), store)
    loaded.free()
    stated = sum(memory.total for memory in memory_plans(needs_of(plan, 8)))
    done = runner.start(plan, store, Silent(), lambda _line: None)
    taken = done.seconds / 60
    return {**vars(told), "taken": taken, "stated": stated, "peak": _peak()}


if __name__ == "__main__":
    main()
