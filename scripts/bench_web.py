#!/usr/bin/env python3
"""How long the viewer's pages take on a database of many turns.

.venv/bin/python scripts/bench_web.py                 # 200,000 turns, about two minutes to make
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import click
from starlette.testclient import TestClient

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.conversation.episode import MODES  # noqa: E402
from localsim.conversation.scenario import LoadedScenario  # noqa: E402
from localsim.families import FAMILIES  # noqa: E402
from localsim.runs import runner  # noqa: E402
from localsim.runs.plan import Plan  # noqa: E402
from localsim.store.database import Store  # noqa: E402
from localsim.web.app import Site, create_app  # noqa: E402
from localsim.web.guard import Access, hosts_of  # noqa: E402
from scripts.bench_engine import Silent  # noqa: E402

REPEATS = 5


@click.command()
@click.option("--turns", default=200_000, show_default=True)
@click.option("--db", type=click.Path(path_type=Path), help="Keep the database here, or use the one that is there.")
def main(turns: int, db: Path | None) -> None:
    """A line for each page: median and worst of five, in milliseconds."""
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(db or Path(scratch) / "many.duckdb")
        run_id = fill(store, turns)
        episode = store.rows("SELECT episode_id FROM episodes WHERE run_id = ? LIMIT 1", [run_id])[0]["episode_id"]
        rules = Access(hosts_of("127.0.0.1"), rate=1e6, burst=1e6)
        with TestClient(create_app(Site(store, rules)), base_url="http://127.0.0.1:7580") as client:
            print("| page | median ms | worst ms |\n|---|---|---|")
            for path in ("/", f"/runs/{run_id}", f"/runs/{run_id}?words=goodbye", f"/episodes/{episode}",
                         f"/runs/{run_id}/report",
                         "/sql?q=SELECT mode, avg(words) FROM v_turns GROUP BY mode"):  # fmt: skip
                times = [timed(client, path) for _ in range(REPEATS)]
                name = path.replace(run_id, "RUN").replace(episode, "EPISODE")
                print(f"| {name} | {1000 * statistics.median(times):.0f} | {1000 * max(times):.0f} |")


def fill(store: Store, turns: int) -> str:
    """Simulate scripted talks once, and copy them until there are `turns`; returns the newest run."""
    if not store.path.is_file():
        scenarios = []
        for family in FAMILIES.own:
            for seed in range(100):
                scenario, answer = FAMILIES[family].generate(f"{family}_{seed}", seed, {}).split()
                scenarios.append(LoadedScenario(scenario, answer, "generated"))
        runner.start(Plan(tuple(scenarios), MODES, model="scripted:auto", episodes=2), store, Silent(), lambda _: None)
        _copy(store, turns)
    counts = store.rows("SELECT count(*) AS n FROM turns")[0]["n"]
    print(f"{counts} turns, {store.path.stat().st_size / 1e6:.0f} MB", file=sys.stderr)
    return str(store.rows("SELECT run_id FROM runs ORDER BY started_utc DESC LIMIT 1")[0]["run_id"])


def _copy(store: Store, turns: int) -> None:
    with store.writing() as connection:
        have = connection.execute("SELECT count(*) FROM turns").fetchone()
        copies = -(-turns // (have[0] if have else 1)) - 1
        for number in range(copies):
            connection.execute(
                f"INSERT INTO runs SELECT * REPLACE (run_id || 'x{number}' AS run_id) FROM runs "
                "WHERE NOT contains(run_id, 'x')"
            )
            connection.execute(
                f"INSERT INTO episodes SELECT * REPLACE (episode_id || 'x{number}' AS episode_id, "
                f"run_id || 'x{number}' AS run_id) FROM episodes WHERE NOT contains(episode_id, 'x')"
            )
            for table in ("turns", "generations", "scores"):
                connection.execute(
                    f"INSERT INTO {table} SELECT * REPLACE (episode_id || 'x{number}' AS episode_id) FROM {table} "
                    "WHERE NOT contains(episode_id, 'x')"
                )


def timed(client: TestClient, path: str) -> float:
    """Seconds of one request."""
    begun = time.perf_counter()
    answer = client.get(path)
    if answer.status_code != 200:
        raise SystemExit(f"{path}: HTTP {answer.status_code}")
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
