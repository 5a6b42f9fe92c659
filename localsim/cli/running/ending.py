"""How commands simulate a plan, and what they say at the end."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from localsim.cli.common import Progress, Reassurance, print_json, say
from localsim.cli.running.playing import print_playing, refuse
from localsim.conversation.episode import counted
from localsim.errors import Interrupted, TooManyFailures
from localsim.reports.conversation import playing
from localsim.runs import runner, telling
from localsim.runs.plan import Plan
from localsim.store.database import Store


def simulate(plan: Plan, store: Store, options: Mapping[str, Any], **choices: Any) -> None:
    """Play a plan as the options of a command say, and print the end; `choices` are more arguments of `runner.start`.

    Raises what `runner.start` and `conclude` raise.
    """
    say_namesakes(store, options["name"])
    result = played(plan, store, options, name=options["name"], **choices)
    conclude(result, store.path, options["as_json"], options["fail_on_error"], strict=options.get("strict", False))


def played(plan: Plan, store: Store, options: Mapping[str, Any], **choices: Any) -> runner.Result:
    """Play a plan and show its progress, as the options `as_json` and `live` say. Raises what `runner.start` raises."""
    quiet = options["as_json"]
    progress = Progress(len(plan.specs()), live=options["live"], quiet=quiet, store=store)
    with Reassurance("reading the models", quiet=quiet), closing(progress):
        return runner.start(plan, store, progress, say, **choices)


def conclude(result: runner.Result, db: Path, as_json: bool, fail_on_error: float, *, strict: bool) -> None:
    """Print the summary of a run, if its talks do not play that first, and what to do next.

    Raises Interrupted, TooManyFailures or (`strict`) DoesNotPlay.
    """
    summary = result.summary
    done = summary.completed + summary.failed
    told = playing.of_run(Store(db), result.run_id) if result.in_database and summary.completed else playing.SILENT
    if as_json:
        print_json({**result.as_json(), "playing": told.as_json()})
    else:
        print_playing(told.sentences())
        rate = summary.tokens_generated / result.seconds if result.seconds else 0
        click.echo(
            f"run {result.run_id}: {summary.completed} completed, {summary.failed} failed of {counted(result.planned)} "
            f"in {result.seconds:.0f} s ({summary.tokens_generated} tokens, {rate:.0f}/s)"
        )
        if summary.tokens_in_prompts:
            cached = 1 - summary.tokens_evaluated / summary.tokens_in_prompts
            say(
                f"{cached:.0%} of {summary.tokens_in_prompts} prompt tokens were in the caches, "
                f"{summary.tokens_shared} of them shared between conversations"
            )
        whole = result.in_database and summary.completed and not summary.stopped
        if whole and (remark := telling.unsearched(Store(db), result.run_id)):
            say(remark)
        if summary.completed:
            say(f"next: localsim report {result.run_id}   localsim show @last   (database {db})")
    if not result.in_database:
        say(f"the database is still held; the next localsim command takes the rest in from {db}.d")
    sys.stdout.flush()
    if summary.stopped:
        raise Interrupted(
            "stopped before the end; leaks were not looked for", hint=f"localsim resume {result.run_id} --db {db}"
        )
    limit = fail_on_error if fail_on_error >= 1 else fail_on_error * done
    if summary.failed > limit:
        raise TooManyFailures(
            f"{summary.failed} of {counted(done)} failed", hint=f"localsim runs show {result.run_id} lists the reasons"
        )
    refuse(told.sentences(), strict=strict)


def say_namesakes(store: Store, name: str | None) -> None:
    """Say how runs of the same name are told apart."""
    if name is not None and (others := telling.namesakes(store, name)):
        say(f"another run has the name {name!r}, so only ids tell them apart: {', '.join(others[:3])}")
