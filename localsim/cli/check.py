"""localsim check: a run against demands, for automatic checks."""

from __future__ import annotations

from pathlib import Path

import click

from localsim.cli import completion
from localsim.cli.answers import Answer, answers
from localsim.cli.common import Target, db_option, store_of
from localsim.errors import DemandsFail, writing


@click.command()
@click.argument("run", shell_complete=completion.runs)
@click.argument("demands", nargs=-1, required=True)
@click.option("--junit", "file", type=Target(dir_okay=False, path_type=Path), help="Also write JUnit XML.")
@db_option
@answers
def check(run: str, demands: tuple[str, ...], file: Path | None, db: str | None) -> Answer:
    """Check that a run meets demands, and end with exit code 6 if it does not.

    A demand is a measure of the report, a sign and a number. It must hold in every row of the report, or in those of
    one family, mode or model, whose name stands before a slash.

    \b
    localsim check @last "omniscient_leaks <= 0.1" "plays >= 90%"
    localsim check @last "agents / success_rate >= 0.5" --junit check.xml
    """
    from localsim.reports import demands as checks
    from localsim.reports.report import Ask, of

    store = store_of(db)
    run_id = store.run_id(run, unfinished=True)
    report = of(store, Ask(run_id, figures=True))
    found = list(checks.checked(report, [checks.demand_of(text, report) for text in demands]))
    if file:
        with writing(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(checks.junit(run_id, found), encoding="utf-8")
    lines = [
        f"{'ok' if each.passed else 'NO'}  {each.demand.text}  "
        f"{each.row.family} {each.row.condition} {each.row.model}: {each.number}"
        for each in found
    ]
    failed = sum(not each.passed for each in found)
    error = DemandsFail(f"{failed} of {len(found)} demands do not hold") if failed else None
    return Answer({"run": run_id, "demands": [each.as_json() for each in found]}, lines, error)
