#!/usr/bin/env python3
"""Test whether cost is linear: 8 to 64 episodes, 4 to 20 turns, and peak memory beside the estimate.

    .venv/bin/python scripts/bench_scaling.py

Each measurement is a process of its own, so that peaks (VmHWM) do not add up. Conversations are real: `agents` mode,
mutual_friends, the default model. Times are divided by generated tokens, because texts differ in length.
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

EPISODES = (8, 16, 32, 64)
TURNS = (4, 8, 12, 16, 20)


@click.command()
@click.option("--model", default="starter", show_default=True)
@click.option("--child", hidden=True, help="EPISODES,TURNS")
@click.option("--json", "as_json", is_flag=True)
def main(model: str, child: str | None, as_json: bool) -> None:
    """Print two tables."""
    if child:
        episodes, turns = map(int, child.split(","))
        print(json.dumps(one(model, episodes, turns)))
        return
    cells = [(episodes, 8) for episodes in EPISODES] + [(8, turns) for turns in TURNS]
    rows = [_in_a_process(model, *cell) for cell in dict.fromkeys(cells)]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    print("| episodes | turns | tokens | seconds | ms a token | evaluated per generated | estimate MB | peak MB |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['episodes']} | {row['turns']} | {row['tokens']} | {row['seconds']:.0f} | "
            f"{1000 * row['seconds'] / row['tokens']:.1f} | {row['evaluated_per_generated']:.2f} | "
            f"{row['estimate'] / 1e6:.0f} | {row['peak'] / 1e6:.0f} |"
        )


def _in_a_process(model: str, episodes: int, turns: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--model", model, "--child", f"{episodes},{turns}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def one(model: str, episodes: int, turns: int) -> dict[str, Any]:
    """Run a plan; returns its time and memory and the estimate."""
    from localsim.backends.open import memory_plans
    from localsim.conversation.scenario import LoadedScenario
    from localsim.families import FAMILIES
    from localsim.runs import runner
    from localsim.runs.plan import Plan
    from localsim.runs.preview import needs_of
    from localsim.store.database import Store
    from scripts.bench_engine import Silent

    loaded = []
    for seed in range(8):
        scenario, answer = FAMILIES["mutual_friends"].generate(f"mf_{seed}", seed, {}).split()
        limits = scenario.limits.model_copy(update={"turns": turns})
        loaded.append(
            LoadedScenario(scenario.model_copy(update={"limits": limits, "actions": ("speak",)}), answer, "generated")
        )
    plan = Plan(tuple(loaded), ("agents",), model=model, episodes=episodes // 8, seed=3, parallel=8)
    estimate = sum(memory.total for memory in memory_plans(needs_of(plan, 8)))
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(Path(scratch) / "s.duckdb")
        done = runner.start(plan, store, Silent(), lambda _line: None)
        later = store.rows(
            "SELECT sum(evaluated_tokens + generated_tokens) AS n FROM v_generations g JOIN turns t "
            "ON t.episode_id = g.episode_id AND t.generation = g.generation WHERE g.turn >= 2"
        )[0]["n"]
        generated = store.rows("SELECT sum(generated_tokens) AS n FROM v_generations WHERE turn >= 2")[0]["n"]
    return {
        "episodes": episodes,
        "turns": turns,
        "tokens": done.summary.tokens_generated,
        "seconds": done.seconds,
        "evaluated_per_generated": float(later) / float(generated),
        "estimate": estimate,
        "peak": _peak(),
    }


def _peak() -> int:
    """The peak memory of the process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
