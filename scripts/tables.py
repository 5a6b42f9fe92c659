"""What the tables of runs share: runs that go on under their names, the day of a run, Markdown rows."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.store.database import Store
from localsim.store.queries.runs import runs_named
from scripts.bench_engine import Silent


def play(store: Store, name: str, plan: Plan) -> None:
    """Start a run, or go on with it; a finished one is kept."""
    known = runs_named(store, name) if store.path.exists() else []
    if known:
        runner.resume(known[0], store, Silent(), say, leaks=False)
    else:
        runner.start(plan, store, Silent(), say, leaks=False, name=name)


def say(line: str) -> None:
    """Print a line of progress."""
    print(line, file=sys.stderr)


def day_of(runs: Iterable[str]) -> str:
    """Return the day of the newest run, from the beginning of its id; `-` without runs."""
    newest = max(runs, default="")
    return f"{newest[:4]}-{newest[4:6]}-{newest[6:8]}" if newest else "-"


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as Markdown."""
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])
