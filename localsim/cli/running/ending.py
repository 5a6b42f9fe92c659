"""How commands simulate a plan, and what they say at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

from localsim import paths
from localsim.cli.answers import Answer, Note, Text
from localsim.cli.progress import Progress, Reassurance, say
from localsim.cli.running.playing import playing_lines, refusal
from localsim.conversation.wording.wordings import counted
from localsim.errors import EvaluatorFailed, Interrupted, LocalsimError, TooManyFailures
from localsim.families import family_of
from localsim.reports.evidence import playing
from localsim.runs import runner, telling
from localsim.runs.plan import Plan
from localsim.store.conditions import choices
from localsim.store.database import Store
from localsim.store.queries.runs import failed_evaluators


def simulate(plan: Plan, store: Store, options: Mapping[str, Any], **choices: Any) -> Answer:
    """Play a plan as the options of a command say; `choices` are more arguments of `runner.start`.

    Raises what `runner.start` raises.
    """
    say_namesakes(store, options["name"])
    result = played(plan, store, live=options["live"], name=options["name"], **choices)
    strict, alone = options.get("strict", False), not options.get("beside", False)
    return conclusion(result, store.path, options["fail_on_error"], strict=strict, alone=alone)


def played(plan: Plan, store: Store, *, live: bool, **choices: Any) -> runner.Result:
    """Play a plan and show its progress. Raises what `runner.start` raises."""
    progress = Progress(len(plan.specs()), live=live, store=store)
    with Reassurance("reading the models"), closing(progress):
        return runner.start(plan, store, progress, say, **choices)


def conclusion(result: runner.Result, db: Path, fail_on_error: float, *, strict: bool, alone: bool = True) -> Answer:
    """Return the summary of a run, if its talks do not play that first, what to do next, and what it found.

    What it found is left out if the run is not `alone`: other runs beside it say that together. The error is
    Interrupted, TooManyFailures or (`strict`) EvaluatorFailed or DoesNotPlay.
    """
    known = result.in_database and result.summary.completed
    failed = broken(Store(db), result.run_id) if known and strict else None
    told = playing.of_run(Store(db), result.run_id) if known else playing.SILENT
    return Answer(
        {**result.as_json(), "playing": told.as_json()},
        chain(_summary(result, db, told), _found(result, db) if alone else ()),
        _failure(result, db, fail_on_error) or failed or refusal(told.sentences(), strict=strict),
        remark=""
        if result.in_database
        else f"the database is still held; the next localsim command takes the rest in from {db}.d",
    )


def _summary(result: runner.Result, db: Path, told: playing.Playing) -> Text:
    summary = result.summary
    yield from playing_lines(told.sentences())
    rate = summary.tokens_generated / result.seconds if result.seconds else 0
    yield (
        f"run {result.run_id}: {summary.completed} completed, {summary.failed} failed of "
        f"{counted(result.planned, 'episode')} in {result.seconds:.0f} s "
        f"({summary.tokens_generated} tokens, {rate:.0f}/s)"
    )
    if summary.tokens_in_prompts:
        cached = 1 - summary.tokens_evaluated / summary.tokens_in_prompts
        yield Note(
            f"{cached:.0%} of {summary.tokens_in_prompts} prompt tokens were in the caches, "
            f"{summary.tokens_shared} of them shared between conversations"
        )
    whole = result.in_database and summary.completed and not summary.stopped
    if whole and (remark := telling.unsearched(Store(db), result.run_id)):
        yield Note(remark)
    if summary.completed:
        yield Note(f"next: localsim report {result.run_id}   localsim show @last   (database {db})")


def _found(result: runner.Result, db: Path) -> Text:
    """Yield the short report of a run that has ended, unless it is so large that a report takes long."""
    if result.in_database and 0 < result.summary.completed <= REPORTED_AT_ONCE and not result.summary.stopped:
        yield from report_of(Store(db), [result.run_id])


REPORTED_AT_ONCE = 2000
"""A run with more completed episodes ends without its report."""


def report_of(store: Store, runs: Sequence[str]) -> Text:
    """Yield the short report of runs side by side; nothing where people or models were only asked questions."""
    from localsim.cli import screen
    from localsim.reports.report import Ask, brief

    found = choices(store, runs)
    others = [each for choice in found for each in choice.conditions] if len(runs) > 1 else []
    data = brief(store, Ask(runs[0], others))
    if not all(family_of(row.family).asks for row in data.comparison):
        yield ""
        yield from screen.brief(data, " ".join(["localsim report", *runs]))


def _failure(result: runner.Result, db: Path, fail_on_error: float) -> LocalsimError | None:
    summary = result.summary
    if summary.stopped:
        hint = f"localsim resume {result.run_id}{paths.db_option(db)}"
        return Interrupted("stopped before the end; leaks were not looked for", hint=hint)
    done = summary.completed + summary.failed
    if summary.failed <= (fail_on_error if fail_on_error >= 1 else fail_on_error * done):
        return None
    hint = f"localsim runs show {result.run_id} lists the reasons"
    return TooManyFailures(f"{summary.failed} of {counted(done, 'episode')} failed", hint=hint)


def broken(store: Store, run_id: str) -> EvaluatorFailed | None:
    """Return the error of a run some of whose evaluators failed."""
    evaluators = failed_evaluators(store, run_id)
    if not evaluators:
        return None
    said = "; ".join(f"{name}: {reason}" for name, reason in evaluators.items())
    hint = "all conversations are stored; mend it, then: localsim score RUN"
    return EvaluatorFailed(f"evaluators failed, and their scores are missing: {said}", hint=hint)


def say_namesakes(store: Store, name: str | None) -> None:
    """Say how runs of the same name are told apart."""
    if name is not None and (others := telling.namesakes(store, name)):
        say(f"another run has the name {name!r}, so only ids tell them apart: {', '.join(others[:3])}")
