#!/usr/bin/env python3
"""Let a model play every situation once in each mode, and write docs/log/situations-starter.md.

    .venv/bin/python scripts/table_situations.py --db situations.duckdb           # the starter, all 90 situations
    .venv/bin/python scripts/table_situations.py --db situations.duckdb --page    # write the page from what is stored

Each situation is played by its first casting. The same command goes on where it was interrupted. Every stored prompt is
audited: the page cannot be written while one of them holds what its reader must not see.
"""

from __future__ import annotations

import os
import platform
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.conversation.episode import MODES, Mode  # noqa: E402
from localsim.errors import LocalsimError  # noqa: E402
from localsim.reports.audit import audit_run  # noqa: E402
from localsim.runs.plan import Plan  # noqa: E402
from localsim.scenarios.casting.rules import load_situation  # noqa: E402
from localsim.scenarios.casting.situations import Situation  # noqa: E402
from localsim.scenarios.documents import shipped_files  # noqa: E402
from localsim.scenarios.find import find_casting  # noqa: E402
from localsim.store.database import Store  # noqa: E402
from localsim.store.queries import reports as queries  # noqa: E402
from localsim.store.queries.runs import episodes, runs_named  # noqa: E402
from scripts.tables import day_of, markdown_table, play  # noqa: E402

PAGE = ROOT / "docs" / "log" / "situations-starter.md"
SEED = 24
REPEATS = 0.5
"""From this share of repeated turns on a talk is said to repeat itself."""
Row = dict[str, Any]


def situations(names: Sequence[str] = ()) -> list[Situation]:
    """Return the situations that ship, by kind and name; only those that are named, if any are."""
    found = [each for each in map(load_situation, shipped_files("situations")) if not names or each.id in names]
    if unknown := set(names) - {each.id for each in found}:
        raise click.BadParameter(f"no situation is called {', '.join(sorted(unknown))}")
    return sorted(found, key=lambda each: (each.kind, each.id))


def plan_of(chosen: Iterable[Situation], model: str, threads: int | None, parallel: int | None) -> Plan:
    """Return the plan: the first casting of each situation, once in each mode."""
    loaded = [find_casting(each.id) for each in chosen]
    return Plan(
        tuple(each for each in loaded if each is not None), MODES, model, seed=SEED, parallel=parallel, threads=threads
    )


def name_of(model: str, chosen: Sequence[Situation]) -> str:
    """Return the name of the run, under which it goes on."""
    return f"{model} {len(chosen)} situations"


# ---- what became of an episode -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class End:
    """How one episode ended."""

    completed: bool
    right: bool
    why: str
    """In one or two words; `right` for a success."""


def end_of(row: Row, value: Mapping[str, float | None], malformed: int) -> End:
    """Return how an episode ended, from its scores by name and the number of its unreadable replies."""
    if row["status"] != "completed":
        return End(completed=False, right=False, why="unreadable replies" if malformed else _short(row["error"]))
    if value.get("success") == 1:
        return End(completed=True, right=True, why="right")
    if value.get("settled") == 1:
        why = "wrong settlement"
        if value.get("fit") == 1:
            why = "promise broken" if value.get("kept") == 0 else "not told before"
        return End(completed=True, right=False, why=why)
    ends = {"turn_limit": "out of turns", "left": "one left", "silence": "silence"}
    why = ends.get(row["stop_reason"], str(row["stop_reason"]))
    repeats = (value.get("repeated_turns") or 0) >= REPEATS
    return End(completed=True, right=False, why=f"{why}, repeats itself" if repeats else why)


def _short(error: str | None) -> str:
    return " ".join(str(error or "no error was stored").split())[:60].replace("|", "/")


def ends(store: Store, run_id: str) -> dict[tuple[str, Mode], End]:
    """Return (situation, mode) -> how its episode ended, for the episodes that have ended."""
    values: dict[str, dict[str, float | None]] = {}
    for row in queries.scores(store, run_id):
        if row.agent is None:
            values.setdefault(row.episode_id, {})[row.name] = row.value
    malformed = {row.episode_id: row.malformed or 0 for row in queries.counts(store, run_id)}
    return {
        (row["scenario_id"].rpartition("-")[0], row["mode"]): end_of(
            row, values.get(row["episode_id"], {}), malformed[row["episode_id"]]
        )
        for row in episodes(store, run_id)
        if row["status"] in ("completed", "failed")
    }


# ---- the page ------------------------------------------------------------------------------------------------------


def page(store: Store, model: str, chosen: Sequence[Situation], machine: str, command: str) -> str:
    """Return the page. Raises LocalsimError if an episode is missing, or the audit finds a violation."""
    (run_id, *_) = runs_named(store, name_of(model, chosen)) or [""]
    found = ends(store, run_id) if run_id else {}
    missing = [f"{each.id} in {mode}" for each in chosen for mode in MODES if (each.id, mode) not in found]
    if missing:
        raise LocalsimError(f"{len(missing)} episodes are missing, such as {missing[0]}", hint="play without --page")
    audit = audit_run(store, run_id)
    if audit.violations:
        raise LocalsimError(
            f"{len(audit.violations)} prompts hold what their reader must not see", hint=f"localsim audit {run_id}"
        )
    parts = [
        f"# The situations on `{model}`",
        f"`{model}` plays all roles of each of {len(chosen)} situations once in each mode, with the people of the\n"
        f"first casting: {len(found)} episodes, of which {sum(end.completed for end in found.values())} were completed."
        f" The audit read {audit.prompts_checked}\nprompts and found 0 violations.",
        "## Right outcomes by kind",
        markdown_table(_HEADS, _totals(chosen, found)),
        "## Why talks ended",
        markdown_table(("end", *MODES), _reasons(chosen, found)),
        NOTES,
        f"Measured on {day_of([run_id])} on {machine} with\n\n    {command}",
    ]
    return "\n\n".join(parts) + "\n"


_HEADS = ("kind", "situations", *MODES)
NOTES = """- *right*: they settled on a right outcome, kept what must be kept and told what should be told. No language
  model decides this ([what success means](../people-and-situations.md#what-success-means)).
- *wrong settlement*: they settled on something that does not follow from the facts of all sides.
- *promise broken*, *not told before*: the settlement is right, but a private fact came out that must be kept, or one
  did not come out that should be told.
- *out of turns*: nothing was settled when the turns ended; *repeats itself* where half of the turns or more repeat
  earlier ones.
- *unreadable replies*: the episode failed, because replies were not lines of an allowed move.
- Each situation was played once in each mode. A difference of a few episodes is no difference between modes."""


def _totals(chosen: Sequence[Situation], found: Mapping[tuple[str, Mode], End]) -> Iterator[list[object]]:
    kinds = Counter(each.kind for each in chosen)
    for kind in [*kinds, "all"]:
        own = [each.id for each in chosen if kind in ("all", each.kind)]
        yield [kind, len(own), *(sum(found[name, mode].right for name in own) for mode in MODES)]


def _reasons(chosen: Sequence[Situation], found: Mapping[tuple[str, Mode], End]) -> Iterator[list[object]]:
    counts = {mode: Counter(found[each.id, mode].why for each in chosen) for mode in MODES}
    every = sum(counts.values(), Counter[str]())
    for why, _ in sorted(every.items(), key=lambda item: (item[0] != "right", -item[1], item[0])):
        yield [why, *(counts[mode][why] for mode in MODES)]


def this_machine() -> str:
    """Return the processor and the number of cores that this process may use."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = [line.partition(":") for line in info.read_text(encoding="utf-8", errors="replace").splitlines()]
        name = next((value.strip() for key, _, value in lines if key.strip() == "model name"), name)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return f"{cores} core{'' if cores == 1 else 's'} of {name}"


@click.command()
@click.option("-m", "--model", default="starter", show_default=True, help="The model that plays.")
@click.option("--situation", "names", multiple=True, metavar="ID", help="Only this situation; may be repeated.")
@click.option("--db", type=click.Path(path_type=Path), required=True, help="Keep the episodes in this database.")
@click.option("-j", "--parallel", type=int, help="Episodes side by side [chosen by localsim].")
@click.option("--threads", type=int, help="Threads of llama.cpp [one for each core].")
@click.option("--page", "only_page", is_flag=True, help="Write the page from what is stored, and play nothing.")
@click.option("--to", type=click.Path(path_type=Path), default=PAGE, show_default="docs", help="Write this file.")
def main(
    model: str,
    names: tuple[str, ...],
    db: Path,
    parallel: int | None,
    threads: int | None,
    only_page: bool,
    to: Path,
) -> None:
    """Play, then write docs/log/situations-starter.md."""
    store, chosen = Store(db), situations(names)
    if not only_page:
        play(store, name_of(model, chosen), plan_of(chosen, model, threads, parallel))
    command = " ".join(["python scripts/table_situations.py", "-m", model, *(f"--situation {name}" for name in names)])
    to.write_text(page(store, model, chosen, this_machine(), f"{command} --db situations.duckdb"), encoding="utf-8")
    print(to)


if __name__ == "__main__":
    try:
        main(standalone_mode=False)
    except LocalsimError as error:
        sys.exit(f"error: {error.message}" + (f" ({error.hint})" if error.hint else ""))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
