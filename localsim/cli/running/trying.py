"""localsim models try."""

from __future__ import annotations

from typing import Any

import click

from localsim import paths
from localsim.backends.open import chosen_model
from localsim.cli import completion
from localsim.cli.answers import Answer, Styled, Text, answers
from localsim.cli.common import gpu_option, store_of
from localsim.cli.progress import say
from localsim.cli.running.ending import played
from localsim.cli.running.options import live_option, parallel_option, threads_option
from localsim.errors import DoesNotPlay, Interrupted, TooManyFailures
from localsim.reports.evidence.trials import Trial, trial_of, trials_path
from localsim.runs import preview
from localsim.runs.runner import Result
from localsim.store.database import Store


@click.command("try")
@click.argument("name", default="starter", shell_complete=completion.models)
@parallel_option
@gpu_option
@threads_option
@click.option("--strict", is_flag=True, help="Exit with code 6 if the model does not hold these conversations.")
@live_option
@click.option("--db", metavar="FILE", help="Keep the talks in this database file [one in the cache folder].")
@answers
def try_(name: str, db: str | None, strict: bool, live: bool, **options: Any) -> Answer:
    """Try if a model can hold these conversations: twelve talks, a few minutes, a verdict with excerpts.

    It plays a search, a bargain, an everyday talk and a situation in script, agents and mindreaders, with the same
    seeds for every model. NAME is one that `localsim run --model` takes. The talks are kept in a database of trials in
    the cache folder, or in that of --db.

    \b
    localsim models try qwen2.5-1.5b
    localsim models try path/to/file.gguf --strict
    localsim models try openai:http://127.0.0.1:8080/v1#model
    """
    from localsim.reports.evidence.trials import trial

    model = chosen_model(name)
    plan = trial_of(model, **options)
    store = store_of(db or str(trials_path()))
    store.path.parent.mkdir(parents=True, exist_ok=True)
    say(f"{len(plan.scenarios)} scenarios in {len(plan.modes)} modes: {len(plan.specs())} talks")
    if forecast := preview.minutes(plan, preview.side_by_side(plan, say), store):
        say(str(forecast))
    result = played(plan, store, live=live, leaks=False)
    _check(result, store)
    found = trial(store, result.run_id, model, plan.modes)
    error = DoesNotPlay(found.verdict.rstrip("."), hint="localsim models list shows other models")
    data = {**result.as_json(), **found.as_json(), "db": str(store.path)}
    return Answer(data, _verdict(found, result, store), error if strict and not found.holds else None)


def _check(result: Result, store: Store) -> None:
    """Raise Interrupted or TooManyFailures if the talks cannot give a verdict."""
    if result.summary.stopped:
        raise Interrupted(
            "stopped before the end", hint=f"localsim resume {result.run_id}{paths.db_option(store.path)}"
        )
    if not result.summary.completed:
        reasons = f"localsim runs show {result.run_id}{paths.db_option(store.path)} lists the reasons"
        raise TooManyFailures(f"all {result.planned} talks failed", hint=reasons)


def _verdict(found: Trial, result: Result, store: Store) -> Text:
    from localsim.reports.evidence.playing import clipped

    yield Styled(found.verdict, None if found.holds else "yellow", bold=True)
    for excerpt in found.excerpts:
        yield f"\n{excerpt.heading}"
        yield from (f"{turn:>4} {speaker}: {clipped(text)}" for turn, speaker, text in excerpt.turns)
    yield ""
    if result.summary.failed:
        yield f"{result.summary.failed} more talks failed: localsim runs show {result.run_id} lists the reasons"
    rate = result.summary.tokens_generated / result.seconds if result.seconds else 0
    if rate:
        yield f"Speed: {rate:.0f} tokens a second, {result.seconds:.0f} s in all."
        yield found.settings
    if found.instead:
        yield found.instead
    yield f"To read a talk: localsim show {found.excerpts[0].episode_id}{paths.db_option(store.path)}"
