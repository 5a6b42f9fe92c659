"""localsim run, resume, interview."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from localsim.backends.open import absolute, chosen_model, memory_plans
from localsim.cli import completion
from localsim.cli.common import (
    Finite,
    Progress,
    Reassurance,
    cluster_option,
    db_option,
    json_option,
    print_json,
    say,
    store_of,
    weights_from,
    weights_option,
)
from localsim.conversation.episode import MODES, OVERFLOWS, REPRO_LEVELS, SIMULATED, Mode, Sampling, counted
from localsim.conversation.grants import ANNOUNCED, DECOYS, NONE, parse
from localsim.conversation.wording.variants import MOST
from localsim.errors import Interrupted, TooManyFailures, suggest
from localsim.models.registry import constructed, labelled
from localsim.runs import preview, runner, telling
from localsim.runs.interviews import interview_plan
from localsim.runs.plan import PRIMARY, Plan
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from localsim.store.queries.runs import progress_of


def _modes(_ctx: click.Context, _param: click.Parameter, values: Sequence[str]) -> tuple[Mode, ...]:
    chosen = tuple(dict.fromkeys(part.strip() for value in values for part in value.split(",")))
    unknown = [part for part in chosen if part not in (*SIMULATED, "all")]
    if unknown:
        meant = suggest(unknown[0], [*SIMULATED, "all"], inline=True)
        raise click.BadParameter(f"unknown mode {unknown[0]!r}{meant}; modes are {', '.join(SIMULATED)} and all")
    whole = [mode for part in chosen for mode in (MODES if part == "all" else (part,))]
    return tuple(dict.fromkeys(whole))  # type: ignore[arg-type]  # checked against SIMULATED


class _Modes(click.Option):
    """An option that may be repeated on the command line, and is one text in a variable or localsim.toml."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Take one text for a list of one."""
        return super().type_cast_value(ctx, (value,) if isinstance(value, str) else value)


def _roles(_ctx: click.Context, _param: click.Parameter, values: Iterable[str]) -> dict[str, str]:
    found = {}
    for value in values:
        name, equals, model = value.partition("=")
        if not (name and equals and model):
            raise click.BadParameter(f"{value!r} is not NAME=MODEL")
        found[name] = model
    return found


def _grants(texts: Sequence[str], *, announced: bool, decoys: bool) -> list[str]:
    """Return the texts of --see with the flags; what grants nothing cannot be announced."""
    flagged = []
    for text in texts or [NONE] * (announced or decoys):
        given = parse(text)
        granted = bool(given.everyone or given.single)
        words = [given.text] if given else []
        words += [ANNOUNCED] * (announced and (granted or not texts)) + [DECOYS] * decoys
        flagged.append("+".join(dict.fromkeys("+".join(words).split("+"))) or NONE)
    return flagged


def _parallel(_ctx: click.Context, _param: click.Parameter, value: str) -> int | None:
    if value == "auto":
        return None
    if not value.isdecimal() or int(value) < 1:
        raise click.BadParameter("a number from 1, or auto")
    return int(value)


def _gpu(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if value not in ("auto", "off") and not value.isdecimal():
        raise click.BadParameter("auto, off, or a number of layers")
    return value


def _name(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    return None if value is None else telling.checked_name(value)


fail_option = click.option(
    "--fail-on-error", type=Finite(0), default=0.2, show_default=True,
    help="Exit with code 6 if more episodes than this fail: a share below 1, or a number from 1.",
)  # fmt: skip
live_option = click.option("--live", is_flag=True, help="Print each turn as soon as it is written.")


_model_option = click.option(
    "-m",
    "--model",
    shell_complete=completion.models,
    help="Simulate with this model: a name, a .gguf file, or scripted[:PLAYER] [LOCALSIM_MODEL, else starter].",
)
_seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=1,
    show_default=True,
    help="Derive the seeds of all episodes from this one.",
)
_parallel_option = click.option(
    "-j",
    "--parallel",
    default="auto",
    show_default=True,
    callback=_parallel,
    help="Simulate this many episodes at a time: a number, or auto.",
)
_temperature_option = click.option(
    "--temperature",
    type=Finite(0, 5),
    default=Sampling.temperature,
    show_default=True,
    help="Sample with this temperature; 0 always takes the likeliest token.",
)
_grammar_option = click.option(
    "--no-grammar", is_flag=True, help="Do not force the model to write in the format of actions."
)
_repro_option = click.option(
    "--repro",
    type=click.Choice(REPRO_LEVELS),
    default="stable",
    show_default=True,
    help="Repeat the same text (exact, slower), or the same seeds and schedule (stable); fast runs as stable today.",
)
_context_option = click.option(
    "--ctx",
    "context",
    type=click.IntRange(256),
    help="Reserve this many tokens for each conversation [as many as the longest one needs].",
)
_gpu_option = click.option(
    "--gpu",
    default="auto",
    show_default=True,
    callback=_gpu,
    help="Put this many layers on the GPU: auto, off or a number.",
)
_threads_option = click.option(
    "--threads", type=click.IntRange(1), help="Compute with this many threads [one for each physical core]."
)
_name_option = click.option(
    "--name",
    metavar="TEXT",
    callback=_name,
    help="Give the run this name, by which commands find it [scenarios, model and modes].",
)


@click.command()
@click.argument("scenarios", nargs=-1, required=True, shell_complete=completion.scenarios)
@_model_option
@click.option(
    "--role",
    "roles",
    multiple=True,
    callback=_roles,
    metavar="NAME=MODEL",
    help="Use another model for one agent, or for the writer of scripts; may be repeated.",
)
@click.option(
    "--mode",
    "modes",
    cls=_Modes,
    multiple=True,
    default=("agents",),
    show_default=True,
    callback=_modes,
    metavar="MODE",
    help="Simulate this mode: script, agents, mindreaders, all of these, or iterative; several with commas.",
)
@click.option(
    "--see",
    multiple=True,
    cls=_Modes,
    metavar="[NAME=]ITEM,...",
    help="Let the agents of agents mode see private items of each other: goal, secret, facts, facts:N, profile or all; "
    "with NAME= or 1= one agent only. Repeat it for more conditions; none is the usual one.",
)
@click.option(
    "--announced", is_flag=True, help="Tell every agent what each one sees, instead of only the one who sees."
)
@click.option(
    "--decoys", is_flag=True, help="Add made-up items, as long as those that stay hidden, to prompts of agents."
)
@click.option(
    "-n",
    "--episodes",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Simulate this many episodes of each scenario in each mode.",
)
@_seed_option
@_parallel_option
@_temperature_option
@_grammar_option
@_repro_option
@_context_option
@click.option(
    "--overflow",
    type=click.Choice(OVERFLOWS),
    default="error",
    show_default=True,
    help="Let a conversation that outgrows its context fail (error), or drop its oldest turns.",
)
@_gpu_option
@_threads_option
@click.option(
    "--perturb",
    metavar="K",
    type=click.IntRange(0, MOST),
    default=0,
    show_default=True,
    help=f"Simulate everything in K variants of wording, line breaks, temperature and penalties, up to {MOST}.",
)
@click.option(
    "--primary",
    metavar="KEY[:CONTRAST]",
    default=PRIMARY,
    show_default=True,
    help="Declare the primary outcome: a measure, and information, authorship or both.",
)
@click.option(
    "--leaks/--no-leaks",
    default=None,
    help="Look for leaked facts at the end, or not [yes, unless all players are scripted].",
)
@weights_option(
    "Find leaks with the thresholds of this file, made by `leakage calibrate`; a resume and later scores keep them "
    "[the built-in ones]."
)
@_name_option
@cluster_option("Play the episodes on this Ray cluster: auto is the one of this machine [this process].")
@click.option("--dry-run", is_flag=True, help="Print the plan with memory and time, and simulate nothing.")
@fail_option
@live_option
@db_option
@json_option
def run(scenarios: tuple[str, ...], **options: Any) -> None:
    """Simulate scenarios (files, folders or names) and store every prompt and turn.

    Scripted players need no model. For any scenario: auto (plain `scripted`), omniscient, smalltalk. For mutual_friends
    and craigslist: honest, guesser, yes-sayer, refuser, mix-up, peeks-25, peeks-50, peeks-100. For mutual_friends:
    friends, list-reader. For craigslist: haggler, patient-buyer, firm, random-haggler, silent. docs/models.md tells
    what each of them does.

    \b
    localsim run mutual_friends_01 --mode all -n 4
    localsim run mutual_friends_01 --mode all -m scripted:omniscient --leaks
    localsim run roommates --role Kit=scripted:smalltalk --live
    """
    plan = Plan(
        scenarios=tuple(find_scenarios(scenarios)),
        modes=options["modes"],
        model=chosen_model(options["model"]),
        roles={role: absolute(model) for role, model in options["roles"].items()},
        episodes=options["episodes"],
        seed=options["seed"],
        repro=options["repro"],
        sampling=Sampling(temperature=options["temperature"], grammar=not options["no_grammar"]),
        parallel=options["parallel"],
        context=options["context"],
        overflow=options["overflow"],
        gpu=options["gpu"],
        threads=options["threads"],
        primary=options["primary"],
        perturb=options["perturb"],
        see=_grants(options["see"], announced=options["announced"], decoys=options["decoys"]),
    )
    _check_primary(plan)
    weights = weights_from(options["weights"], options["sensitivity"])
    if options["dry_run"]:
        _print_plan(plan, store_of(options["db"]), options["as_json"])
        return
    store, quiet = store_of(options["db"]), options["as_json"]
    for model in dict.fromkeys((plan.model, *plan.roles.values())):
        if constructed(model):
            say(labelled(model))
    _say_namesakes(store, options["name"])
    progress = Progress(len(plan.specs()), live=options["live"], quiet=quiet, store=store)
    with Reassurance("reading the models", quiet=quiet), closing(progress):
        result = runner.start(
            plan,
            store,
            progress,
            say,
            leaks=options["leaks"],
            weights=weights,
            name=options["name"],
            cluster=options["cluster"],
        )
    _conclude(result, store.path, options["as_json"], options["fail_on_error"])


@click.command()
@click.argument("run_id", metavar="[RUN]", default="@last", shell_complete=completion.runs)
@cluster_option("Play the episodes on this Ray cluster: auto is the one of this machine [this process].")
@fail_option
@live_option
@db_option
@json_option
def resume(run_id: str, cluster: str | None, fail_on_error: float, live: bool, db: str | None, as_json: bool) -> None:
    """Continue an interrupted run. Finished episodes are kept; the others continue after their last turn.

    \b
    localsim resume
    localsim resume 20260102-0304
    """
    store = store_of(db)
    run_id = store.run_id(run_id, to_resume=True)
    planned, done = progress_of(store, run_id)
    progress = Progress(planned, done, live=live, quiet=as_json, store=store)
    with Reassurance("reading what the run has stored", quiet=as_json), closing(progress):
        result = runner.resume(run_id, store, progress, say, cluster=cluster)
    _conclude(result, store.path, as_json, fail_on_error)


@click.command()
@click.argument("bank")
@click.option(
    "--people",
    cls=_Modes,
    multiple=True,
    default=("all",),
    show_default=True,
    metavar="ID,...",
    help="Ask these people: ids, all, or nobody for somebody without a profile; several with commas.",
)
@click.option(
    "--about",
    metavar="RUN",
    default="@last",
    show_default=True,
    shell_complete=completion.runs,
    help="Ask about the conversations of this run, if the bank asks about stored conversations (who_knows).",
)
@_model_option
@click.option(
    "--mode",
    "modes",
    cls=_Modes,
    multiple=True,
    default=("agents",),
    show_default=True,
    callback=_modes,
    metavar="MODE",
    help="Only agents has a meaning here; other modes are refused with the reason.",
)
@click.option(
    "-n",
    "--episodes",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Ask each person this often; options change places each time, so as many times as there are options show "
    "every option in every place.",
)
@_seed_option
@_parallel_option
@_temperature_option
@_grammar_option
@_repro_option
@_context_option
@_gpu_option
@_threads_option
@_name_option
@fail_option
@live_option
@db_option
@json_option
def interview(bank: str, people: tuple[str, ...], **options: Any) -> None:
    """Ask people the questions of a bank: a name (traits, role_mcq, reasoning ...) or a file.

    Each question stands alone unless the bank says otherwise. The answers are a run, so report, show, audit, resume and
    export work on it. docs/interviews.md tells what each bank measures.

    \b
    localsim interview traits --people all
    localsim interview role_mcq --people helmi,juhan -n 4
    localsim report @last
    """
    store, quiet = store_of(options["db"]), options["as_json"]
    plan = interview_plan(
        bank,
        people,
        store,
        options["about"],
        modes=options["modes"],
        model=chosen_model(options["model"]),
        episodes=options["episodes"],
        seed=options["seed"],
        repro=options["repro"],
        sampling=Sampling(temperature=options["temperature"], grammar=not options["no_grammar"]),
        parallel=options["parallel"],
        context=options["context"],
        gpu=options["gpu"],
        threads=options["threads"],
    )
    _say_namesakes(store, options["name"])
    progress = Progress(len(plan.specs()), live=options["live"], quiet=quiet, store=store)
    with Reassurance("reading the models", quiet=quiet), closing(progress):
        result = runner.start(plan, store, progress, say, leaks=False, name=options["name"])
    _conclude(result, store.path, options["as_json"], options["fail_on_error"])


def _say_namesakes(store: Store, name: str | None) -> None:
    """Say how runs of the same name are told apart."""
    if name is not None and (others := telling.namesakes(store, name)):
        say(f"another run has the name {name!r}, so only ids tell them apart: {', '.join(others[:3])}")


def _check_primary(plan: Plan) -> None:
    if plan.primary != PRIMARY:
        from localsim.reports.comparison import check_primary

        check_primary(plan)


def _print_plan(plan: Plan, store: Store, as_json: bool) -> None:
    specs = plan.specs()
    turns = sum(spec.scenario.limits.turns for spec in specs)
    parallel = preview.side_by_side(plan, say)
    data: dict[str, Any] = {
        "scenarios": [loaded.scenario.id for loaded in plan.scenarios],
        "modes": list(plan.modes),
        "see": list(plan.see),
        "models": sorted({model for spec in specs for model in spec.models.values()}),
        "variants": max(1, plan.perturb),
        "episodes": len(specs),
        "turns_at_most": turns,
        "seed": plan.seed,
        "repro": plan.repro,
        "parallel": parallel,
        "primary": plan.primary,
        "memory": (memory := [str(each) for each in memory_plans(preview.needs_of(plan, parallel))]),
    }
    found = preview.minutes(plan, parallel, store)
    data["forecast"] = vars(found) if found else None
    if as_json:
        print_json(data)
        return
    variants = f" x {plan.perturb} variants" if plan.perturb > 1 else ""
    kinds = f"{len(plan.modes)} modes"
    if plan.see:
        kinds = f"{len({(spec.mode, spec.grants) for spec in specs})} conditions"
    click.echo(
        f"{len(plan.scenarios)} scenarios x {kinds} x {plan.episodes}{variants} = {len(specs)} "
        f"episodes, at most {turns} turns, {parallel} at a time, models: {', '.join(map(labelled, data['models']))}"
    )
    for line in memory:
        click.echo(line)
    if found:
        click.echo(
            f"about {found.minutes:.1f} minutes ({found.low:.1f} to {found.high:.1f}) for {found.turns:.0f} turns and "
            f"{found.tokens:.0f} tokens, from speeds measured now and {found.based_on}; leaks are looked for after that"
        )


def _conclude(result: runner.Result, db: Path, as_json: bool, fail_on_error: float) -> None:
    summary = result.summary
    done = summary.completed + summary.failed
    if as_json:
        print_json(result.as_json())
    else:
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
