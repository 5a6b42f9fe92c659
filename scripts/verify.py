#!/usr/bin/env python3
"""Measure the acceptance figures again and rewrite docs/log/acceptance.md and docs/sql.md. Takes minutes to an hour.

    make verify
    .venv/bin/python scripts/verify.py --queries    # docs/sql.md only, in a few minutes

Every figure comes from a command that runs here; no figure of an earlier run is kept.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim import __version__  # noqa: E402

TODAY = f"{datetime.now(UTC):%Y-%m-%d}"
BLIND = "tests/data/endings_heldout.jsonl"
CROWD = "tests/data/endings_people.jsonl"
VOICES = "tests/data/endings_voices.jsonl"
WRITERS = "tests/data/endings_writers.jsonl"
STUDY = [f"scenarios/{family}_{number:02d}.yaml" for family in ("mutual_friends", "craigslist") for number in (1, 2)]
POLICIES = {
    "mutual_friends": ("guesser", "friends", "omniscient"),
    "craigslist": ("random-haggler", "haggler", "firm", "omniscient"),
}
SQL_HEAD = f"""# Worked queries

Each query below asks about one run, `$run`, and keeps families, modes and players (models) apart. The files are in
`db/queries` and in `localsim view`. The columns of [views](reference.md#views) stay; tables may change.

    localsim sql -f db/queries/03_words_per_turn.sql                  # about the newest run
    localsim sql -f db/queries/03_words_per_turn.sql --run "my pilot" # a name, an id or its start, @last-1
    localsim sql 'SELECT count(*) FROM v_turns WHERE run_id = $run'   # in double quotes the shell takes $run away

A query without `$run` asks about all runs. To compare runs, write `WHERE run_id IN (...)` and group by `run_id`.
`v_episodes.success` is true, false, or null where nothing decides it: `SELECT mode, avg(success::INT) FROM v_episodes
GROUP BY mode` needs no join.

The answers come from a small study on the starter (24 episodes, {TODAY}; `make verify` runs it again). Queries
without an answer below found no rows in it."""


def main() -> None:
    """Measure every figure, then write the two pages; with --queries, only the page of queries."""
    wanted = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    wanted.add_argument("--queries", action="store_true", help="write docs/sql.md only")
    if wanted.parse_args().queries:
        with tempfile.TemporaryDirectory() as scratch:
            study(Path(scratch))
            queries(Path(scratch) / "study.duckdb")
        print("wrote docs/sql.md")
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        parts = [
            part("Start-up", start_up),
            part("Reading endings and names", parser),
            part("Controls", controls),
            part("Baselines", lambda: baselines(folder)),
            part("A study on the embedded model", lambda: study(folder)),
            part("Reproducibility", lambda: exactness(folder)),
        ]
        queries(folder / "study.duckdb")
    head = (
        "# Log: acceptance figures\n\n"
        f"`make verify` measured these figures on {TODAY} with localsim {__version__} "
        f"({platform.processor() or platform.machine()}, {platform.system()}, Python {platform.python_version()}). "
        "Run it again to measure your own machine. Figures in brackets are 95% intervals.\n\n"
    )
    (ROOT / "docs" / "log" / "acceptance.md").write_text(head + "\n".join(parts), encoding="utf-8")
    print("wrote docs/log/acceptance.md and docs/sql.md")


def part(title: str, measure: Callable[[], str]) -> str:
    """Measure one section of the page and print it."""
    print(f"==> {title}", flush=True)
    text = f"## {title}\n\n{measure()}\n"
    print(text, flush=True)
    return text


def localsim(*arguments: str, check: bool = True) -> str:
    """Run a localsim command and return its standard output."""
    command = [sys.executable, "-m", "localsim", *arguments]
    return subprocess.run(command, cwd=ROOT, check=check, stdout=subprocess.PIPE, text=True).stdout


def start_up() -> str:
    """Measure the seconds that `localsim --help` takes."""
    times = []
    for _ in range(11):
        start = time.perf_counter()
        localsim("--help")
        times.append(time.perf_counter() - start)
    return f"`localsim --help`: {statistics.median(times):.3f} s (median of {len(times)}; target: at most 0.2 s)."


def parser() -> str:
    """Measure the rules on the blind set. The result is stored with the package, because reports print it."""
    command = [sys.executable, "scripts/measure_endings.py", BLIND, "--write"]
    out = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    head = f"`python scripts/measure_endings.py {BLIND}` (the rules were written without these conversations):"
    command = [sys.executable, "scripts/measure_endings.py", CROWD, "--half", "heldout", "--write", "--key", "people"]
    crowd = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    second = f"The same on the held-out half of `{CROWD}`, bargains in the manner of crowd workers:"
    command = [sys.executable, "scripts/measure_endings.py", VOICES, "--half", "heldout", "--by", "source"]
    voices = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    kept = [line for line in voices.splitlines() if line.startswith(("==", "ending ", "deal_price"))]
    command = [sys.executable, "scripts/measure_endings.py", WRITERS, "--half", "heldout"]
    odd = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    fourth = f"The held-out half of `{WRITERS}`, eight voices that agree in unusual ways:"
    third = f"The held-out half of `{VOICES}` by its source: two voices of people, and two small models; then all:"
    blocks = zip((head, second, third, fourth), (out, crowd, "\n".join(kept) + "\n", odd), strict=True)
    told = "\n\n".join(f"{title}\n\n```\n{block}```" for title, block in blocks)
    return f"{told}\n\nLanguage models wrote and labelled all but the talks of the two models, which one labelled."


def controls() -> str:
    """Check the table of controls."""
    out = localsim("controls", "--json")
    rows = json.loads(out)
    return (
        f"`localsim controls`: {sum(row['passed'] for row in rows)} of {len(rows)} values are what they must be "
        "([the table](../reference.md#controls))."
    )


def baselines(folder: Path) -> str:
    """Measure scripted players on fresh scenarios: the success of guessing and of knowing everything."""
    lines = [
        "60 fresh scenarios of each family (seeds 5000 to 5059) in agents mode; `omniscient` in mindreaders mode.",
        "",
    ]
    lines += [
        "| family | player | success | turns to friend | deal rate | peeking | turns |",
        "|---|---|---|---|---|---|---|",
    ]
    for family, names in POLICIES.items():
        place = folder / family
        localsim("scenarios", "generate", "--family", family, "--seed", "5000", "-n", "60", "-o", str(place))
        for name in names:
            mode = "mindreaders" if name == "omniscient" else "agents"
            db = str(folder / f"{family}-{name}.duckdb")
            localsim("run", str(place), "-m", f"scripted:{name}", "--mode", mode, "--db", db, "--json")
            row = json.loads(localsim("report", "@last", "--db", db, "--json"))["comparison"][0]
            cells = [
                share(row, "success_rate"),
                number(row, "first_mention_turn"),
                share(row, "deal_rate"),
                number(row, "peeking"),
                number(row, "turns"),
            ]
            lines.append(f"| {family} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def study(folder: Path) -> str:
    """Run a small study and show its time and its audit."""
    db = str(folder / "study.duckdb")
    options = ["--mode", "all", "-n", "2", "--seed", "7", "--fail-on-error", "99", "--db", db, "--json"]
    found = json.loads(localsim("run", *STUDY, *options))
    audit = json.loads(localsim("audit", "@last", "--db", db, "--json"))
    rate = found["tokens_generated"] / found["seconds"]
    return (
        f"{found['completed']} of {found['episodes']} episodes completed in {found['seconds']:.0f} s "
        f"({found['tokens_generated']} tokens written, {rate:.0f} a second; {found['tokens_evaluated']} prompt "
        f"tokens evaluated). Audit: {audit['prompts_checked']} prompts checked, {audit['violations']} violations."
    )


def exactness(folder: Path) -> str:
    """Check that `exact` gives the same turns under -j 1 and -j 8, and measure its cost beside `stable`."""
    runs = {}
    for repro, parallel in (("exact", "1"), ("exact", "8"), ("stable", "8")):
        db = str(folder / f"{repro}{parallel}.duckdb")
        options = [
            "--mode",
            "all",
            "-n",
            "2",
            "--seed",
            "11",
            "--repro",
            repro,
            "-j",
            parallel,
            "--fail-on-error",
            "99",
        ]
        found = json.loads(localsim("run", STUDY[0], STUDY[2], *options, "--db", db, "--json"))
        query = "SELECT mode, seed, turn, action, text FROM v_turns JOIN episodes USING (episode_id, mode) ORDER BY ALL"
        turns = json.loads(localsim("sql", query, "--db", db, "--json"))
        runs[repro, parallel] = (found["seconds"], turns)
    same = runs["exact", "1"][1] == runs["exact", "8"][1]
    if not same:
        raise SystemExit("error: --repro exact is not exact: the turns under -j 1 and -j 8 differ")
    slow, fast = runs["exact", "8"][0], runs["stable", "8"][0]
    return (
        f"`--repro exact`: {len(runs['exact', '1'][1])} turns of 12 episodes are identical under `-j 1` and `-j 8`. "
        f"It took {slow:.0f} s; `stable` took {fast:.0f} s ({slow / fast:.2f} times as long)."
    )


def queries(db: Path, page: Path = ROOT / "docs" / "sql.md") -> None:
    """Write docs/sql.md: every query of db/queries with its answer about the newest run of a database."""
    lines = [SQL_HEAD]
    for file in sorted((ROOT / "db" / "queries").glob("*.sql")):
        out = localsim("sql", "-f", str(file), "--db", str(db))
        lines += [
            "",
            f"## {title_of(file)}",
            "",
            f"```sql\n{file.read_text().strip()}\n```",
        ]
        lines += ["", f"```\n{out}```"] if len(out.splitlines()) > 2 else []
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def title_of(query: Path) -> str:
    """Return the title of a worked query: its first comment up to the colon."""
    return query.read_text().splitlines()[0].removeprefix("-- ").partition(":")[0]


def share(row: dict[str, Any], key: str) -> str:
    """Format a rate with its interval."""
    if row[key] is None:
        return "–"
    return _with_interval(row, key, ".0%")


def number(row: dict[str, Any], key: str) -> str:
    """Format a mean with its interval."""
    if row[key] is None:
        return "–"
    return _with_interval(row, key, ".2f")


def _with_interval(row: dict[str, Any], key: str, form: str) -> str:
    low, high = row[f"{key}_low"], row[f"{key}_high"]
    return f"{row[key]:{form}}" + ("" if low is None else f" [{low:{form}}, {high:{form}}]")


if __name__ == "__main__":
    main()
