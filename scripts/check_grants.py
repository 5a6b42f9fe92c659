#!/usr/bin/env python3
"""Audit many prompts with grants: scripted players play generated and bundled scenarios in conditions drawn at random.

.venv/bin/python scripts/check_grants.py                      # 100,000 prompts
.venv/bin/python scripts/check_grants.py --prompts 2000       # a short trial

Every prompt is stored and audited as in `localsim audit`. In a sample of the prompts, an item that the viewer was not
granted is planted afterwards; the audit must find it. The exit code is 1 if the audit finds anything else, or misses a
planted item.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.conversation.grants import EVERY, NOTHING, Grant, Grants, parse  # noqa: E402
from localsim.conversation.prompts import agent_messages  # noqa: E402
from localsim.conversation.scenario import LoadedScenario  # noqa: E402
from localsim.conversation.transcript import Transcript  # noqa: E402
from localsim.conversation.visibility import observe  # noqa: E402
from localsim.families import FAMILIES  # noqa: E402
from localsim.reports.audit import audit_run, held  # noqa: E402
from localsim.runs import runner  # noqa: E402
from localsim.runs.plan import Plan  # noqa: E402
from localsim.runs.scheduler import Watcher  # noqa: E402
from localsim.scenarios.find import shipped  # noqa: E402
from localsim.store.database import Store  # noqa: E402

FIRST = 300_000
"""First seed of the generated scenarios, apart from those that ship, train models or check measures."""
SCENARIOS, CONDITIONS, PLANTED = 20, 8, 5
"""Generated scenarios of each family, conditions of a run, and scenarios with a planted item, in each run."""
PLAYERS = ("peeks-50", "omniscient", "mix-up", "yes-sayer", "guesser", "list-reader", "honest")
TASKS: dict[str, tuple[dict[str, Any], ...]] = {
    "mutual_friends": ({}, {"common": 0}, {"common": 3}, {"friends": 10}),
    "craigslist": ({}, {"zone": "no"}),
}


@click.command()
@click.option("--prompts", default=100_000, show_default=True, help="Audit at least this many prompts.")
@click.option("--seed", default=1, show_default=True, help="Draw conditions with this seed.")
def main(prompts: int, seed: int) -> None:
    """Print the number of prompts, violations, planted items and seconds."""
    rng = random.Random(seed)
    everyday = [each for each in shipped().values() if not each.scenario.family]
    checked = planted = missed = runs = 0
    violations: Counter[str] = Counter()
    conditions: set[str] = set()
    began = time.monotonic()
    while checked < prompts:
        scenarios = [*_generated(runs), *everyday]
        see = [grants.text for grants in _drawn(rng)]
        conditions |= set(see)
        with tempfile.TemporaryDirectory() as scratch:
            store = Store(Path(scratch) / "grants.duckdb")
            model = f"scripted:{PLAYERS[runs % len(PLAYERS)]}"
            plan = Plan(tuple(scenarios), ("agents",), model, seed=runs, see=see)
            run_id = runner.start(plan, store, Watcher(), lambda _: None, leaks=False).run_id
            found = audit_run(store, run_id)
        checked += found.prompts_checked
        violations.update(f"{each.mode}: {each.what}: {each.text}" for each in found.violations)
        for loaded in rng.sample(scenarios, PLANTED):
            for text in see:
                hit = _finds_planted(loaded, parse(text).within(loaded.scenario.names), rng)
                planted, missed = planted + (hit is not None), missed + (hit is False)
        runs += 1
        print(f"{checked} prompts, {sum(violations.values())} violations", file=sys.stderr)
    for line, count in violations.most_common(20):
        print(f"{count} x {line}")
    print(
        f"{checked} prompts in {len(conditions)} conditions, {sum(violations.values())} violations; "
        f"{planted} planted items, {missed} missed; {time.monotonic() - began:.0f} s"
    )
    sys.exit(1 if violations or missed or not planted else 0)


def _generated(run: int) -> Iterator[LoadedScenario]:
    for family, tasks in TASKS.items():
        for seed in range(FIRST + run * SCENARIOS, FIRST + (run + 1) * SCENARIOS):
            scenario, answer = FAMILIES[family].generate(f"{family}_{seed}", seed, tasks[seed % len(tasks)]).split()
            yield LoadedScenario(scenario, answer, "generated")


def _drawn(rng: random.Random) -> list[Grants]:
    """Return different conditions that grant something or have decoys."""
    found: dict[Grants, None] = {}
    while len(found) < CONDITIONS:
        everyone = _grant(rng) if rng.random() < 0.7 else Grant()
        single = tuple((viewer, _grant(rng)) for viewer in ("1", "2") if rng.random() < 0.3)
        drawn = Grants(everyone, single, decoys=rng.random() < 0.4)
        if drawn.everyone or drawn.single:
            drawn = replace(drawn, announced=rng.random() < 0.5)
        if drawn != NOTHING:
            found[drawn] = None
    return list(found)


def _grant(rng: random.Random) -> Grant:
    goal, secret, profile = (rng.random() < 0.4 for _ in range(3))
    return Grant(goal, secret, rng.choice((0, 0, 1, 2, 3, 4, EVERY)), profile)


def _finds_planted(loaded: LoadedScenario, grants: Grants, rng: random.Random) -> bool | None:
    """Plant a hidden item in an opening prompt; return True if the audit finds it, None if nothing is hidden."""
    scenario = loaded.scenario
    viewer = rng.choice(scenario.names)
    seen = observe(scenario, "agents", viewer, Transcript(), grants)
    visible = "\n".join(message.content for message in agent_messages(seen))
    hidden = [
        text
        for agent in scenario.agents
        if agent.name != viewer
        for text in (agent.goal, agent.secret, *(fact.text for fact in agent.facts))
        if text and text not in visible
    ]
    if not hidden:
        return None
    planted = f"{visible}\n\n{rng.choice(hidden)}"
    return any(held(planted, loaded, "agents", viewer, [], 0, grants.text))


if __name__ == "__main__":
    main()
