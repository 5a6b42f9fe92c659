"""localsim run, resume, interview."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from itertools import chain
from typing import Any

import click

from localsim import paths
from localsim.backends.open import absolute, chosen_model, is_file
from localsim.backends.scripted import PEEKS
from localsim.cli import completion
from localsim.cli.answers import Answer, Note, Text, answers
from localsim.cli.common import cluster_option, db_option, gpu_option, store_of, weights_from, weights_option
from localsim.cli.progress import Progress, Reassurance, say
from localsim.cli.running.ending import conclusion, report_of, simulate
from localsim.cli.running.options import (
    ModesOption,
    drawing_options,
    fail_option,
    grants_of,
    live_option,
    modes_option,
    name_option,
    roles_of,
    settings_of,
    simulated_model_option,
    threads_option,
)
from localsim.cli.running.playing import strict_option
from localsim.conversation.episode import OVERFLOWS
from localsim.conversation.wording.variants import MOST
from localsim.errors import Interrupted
from localsim.families import family_of, hides_nothing
from localsim.models.registry import constructed, labelled, resolve
from localsim.reports.validity.remarks import LESSONS, untaught
from localsim.runs import preview, runner
from localsim.runs.interviews import interview_plan
from localsim.runs.plan import PRIMARY, Plan, free, layouts_of
from localsim.scenarios.find import find_scenarios
from localsim.store.queries.runs import progress_of


@click.command()
@click.argument("scenarios", nargs=-1, required=True, shell_complete=completion.scenarios)
@click.option(
    "-m",
    "--model",
    "models",
    cls=ModesOption,
    multiple=True,
    metavar="MODEL",
    shell_complete=completion.models,
    help="Simulate with this model: a name, a .gguf file, or scripted[:PLAYER] [LOCALSIM_MODEL, else starter]. Repeat "
    "for several models: each gets a run with the same scenarios and seeds.",
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    callback=roles_of,
    metavar="NAME=MODEL",
    help="Use another model for one agent, by name or by number in speaking order (2=MODEL), or for the writer of "
    "scripts; may be repeated.",
)
@modes_option("Simulate this mode: script, agents, mindreaders, all of these, or iterative; several with commas.")
@click.option(
    "--see",
    multiple=True,
    cls=ModesOption,
    metavar="[NAME=]ITEM,...",
    help="Let the agents of agents mode see private items of each other: goal, secret, facts, facts:N, profile or all; "
    "with NAME= or 1= one agent only. Repeat for more conditions; none grants nothing.",
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
    help="Simulate this many episodes of each scenario in each mode.",
)
@drawing_options
@click.option(
    "--overflow",
    type=click.Choice(OVERFLOWS),
    default="error",
    help="Let a conversation that outgrows its context fail (error), or drop its oldest turns.",
)
@gpu_option
@threads_option
@click.option(
    "--perturb",
    metavar="K",
    type=click.IntRange(0, MOST),
    default=0,
    help=f"Simulate everything in K variants of wording, line breaks, temperature and penalties, up to {MOST}.",
)
@click.option(
    "--primary",
    metavar="KEY[:CONTRAST]",
    default=PRIMARY,
    help="Declare the primary outcome: a measure, and information, authorship or both.",
)
@click.option(
    "--secondary",
    metavar="KEY[:CONTRAST],...",
    default="",
    show_default=False,
    help="Declare secondary outcomes: their p are corrected together, and all others are exploratory [none].",
)
@click.option(
    "--leaks/--no-leaks",
    default=None,
    help="Look for leaked facts at the end, or not [yes; of scripted players only where names decide].",
)
@weights_option(
    "Find leaks with the thresholds of this file, made by `leakage calibrate`; a resume and later scores keep them "
    "[the built-in ones]."
)
@name_option
@cluster_option("Play the episodes on this Ray cluster: auto is the one of this machine [this process].")
@click.option(
    "--length",
    type=click.Choice(["short", "free"]),
    default="short",
    help="Ask for short lines, or for no length, so that words per turn are a finding.",
)
@click.option("--dry-run", is_flag=True, help="Print the plan with memory and time, and simulate nothing.")
@fail_option
@strict_option
@live_option
@db_option
@answers
def run(scenarios: tuple[str, ...], models: tuple[str, ...], **options: Any) -> Answer:
    """Simulate scenarios (files, folders or names) and store every prompt and turn.

    Scripted players need no model. For any scenario: auto (plain `scripted`), any, omniscient, rememberer, smalltalk,
    teller. For mutual_friends and craigslist: honest, guesser, yes-sayer, refuser, mix-up, peeks-25, peeks-50,
    peeks-100. For mutual_friends: friends, list-reader. For craigslist: haggler, patient-buyer, firm, random-haggler,
    silent. docs/models.md tells what each of them does.

    \b
    localsim run mutual_friends_01 --mode all -n 4
    localsim run mutual_friends_01 --mode all -m scripted:omniscient --leaks
    localsim run roommates --role Kit=scripted:smalltalk --live
    localsim run mutual_friends_01 --mode all -m qwen2.5-coder-0.5b -m qwen2.5-coder-1.5b
    """
    if len(models) > 1 and options["name"]:
        raise click.UsageError("--name names one run, and each model gets a run of its own")
    if len(models) < 2:
        return _run(scenarios, {**options, "model": models[0] if models else None})
    for name in filter(is_file, map(absolute, models)):
        resolve(name)  # a model that is missing ends the command before the first run
    made: list[Answer] = []
    for model in models:
        made.append(_run(scenarios, {**options, "model": model, "beside": True}))
        if isinstance(made[-1].error, Interrupted):
            break
    runs = [] if options["dry_run"] else [each.data["run_id"] for each in made]
    where = paths.db_option(store_of(options["db"]).path)
    beside: Text = iter([Note(f"side by side: localsim report {' '.join(runs)}{where}")] if len(runs) > 1 else [])
    together = report_of(store_of(options["db"]), runs) if runs and not any(each.error for each in made) else ()
    lines = chain(*(each.text for each in made), beside, together)
    error = next(filter(None, (each.error for each in made)), None)
    return Answer([each.data for each in made], lines, error, "; ".join(filter(None, (each.remark for each in made))))


def _run(scenarios: tuple[str, ...], options: Mapping[str, Any]) -> Answer:
    roles = {role: absolute(model) for role, model in options["roles"].items()}
    models = (chosen_model(options["model"]), *roles.values())
    plan = Plan(
        scenarios=tuple(find_scenarios(scenarios)),
        roles=roles,
        layouts=free(layouts_of(models), models) if options["length"] == "free" else None,
        overflow=options["overflow"],
        primary=options["primary"],
        secondary=options["secondary"],
        perturb=options["perturb"],
        see=grants_of(options["see"], announced=options["announced"], decoys=options["decoys"]),
        **settings_of(options),
    )
    if plan.primary != PRIMARY or plan.secondary:
        from localsim.reports.comparison import check_outcomes

        check_outcomes(plan)
    weights = weights_from(options["weights"], options["sensitivity"])
    store, cluster = store_of(options["db"]), options["cluster"]
    if options["dry_run"]:
        found = preview.preview(plan, store, say)
        return Answer(found.as_json(), _plan(plan, found))
    for model in dict.fromkeys((plan.model, *plan.roles.values())):
        if constructed(model):
            say(labelled(model))
        if is_file(model) and resolve(model).path.name.startswith(LESSONS):
            played = dict.fromkeys(family_of(each.scenario.family).name for each in plan.scenarios)
            if told := untaught([model], played):
                say(told)
        if model == PEEKS and (blind := [each for each in plan.scenarios if hides_nothing(each.scenario)]):
            names = ", ".join(each.scenario.id for each in blind)
            say(
                f"{model} has nothing to name in {names}: no fact there has terms. Add some, then: "
                f"localsim scenarios validate {blind[0].path}"
            )
    return simulate(plan, store, options, leaks=options["leaks"], weights=weights, cluster=cluster)


@click.command()
@click.argument("run_id", metavar="[RUN]", default="@last", shell_complete=completion.runs)
@click.option(
    "-m",
    "--model",
    "named",
    metavar="MODEL",
    multiple=True,
    help="Name a server or a file of lines of the run again, if the run was begun elsewhere.",
)
@cluster_option("Play the episodes on this Ray cluster: auto is the one of this machine [this process].")
@fail_option
@strict_option
@live_option
@db_option
@answers
def resume(
    run_id: str,
    named: tuple[str, ...],
    cluster: str | None,
    fail_on_error: float,
    strict: bool,
    live: bool,
    db: str | None,
) -> Answer:
    """Continue an interrupted run. Finished episodes are kept; the others continue after their last turn.

    \b
    localsim resume
    localsim resume 20260102-0304
    """
    store = store_of(db)
    run_id = store.run_id(run_id, unfinished=True)
    planned, done = progress_of(store, run_id)
    progress = Progress(planned, done, live=live, store=store)
    with Reassurance("reading what the run has stored"), closing(progress):
        result = runner.resume(run_id, store, progress, say, cluster=cluster, named=named)
    return conclusion(result, store.path, fail_on_error, strict=strict)


def _plan(plan: Plan, found: preview.Preview) -> Text:
    variants = f" x {plan.perturb} variants" if plan.perturb > 1 else ""
    kinds = f"{len(plan.modes)} modes"
    if plan.see:
        kinds = f"{len({(spec.mode, spec.grants) for spec in plan.specs()})} conditions"
    yield (
        f"{len(plan.scenarios)} scenarios x {kinds} x {plan.episodes}{variants} = {found.episodes} episodes, at most "
        f"{found.turns_at_most} turns, {found.parallel} at a time, models: {', '.join(map(labelled, found.models))}"
    )
    yield from found.memory
    yield from (f"{labelled(name)}, conversations at a time: {curve}" for name, curve in found.lanes.items())
    if found.forecast:
        yield f"{found.forecast}; leaks are looked for after that"


@click.command()
@click.argument("bank")
@click.option(
    "--people",
    cls=ModesOption,
    multiple=True,
    default=("all",),
    metavar="ID,...",
    help="Ask these people: ids, all, nobody for an agent without a profile, a folder of people, or personas in a few "
    "words (groups, temperaments or a file .yaml); several with commas.",
)
@click.option(
    "--about",
    metavar="RUN",
    default="@last",
    shell_complete=completion.runs,
    help="Ask about the conversations of this run, if the bank asks about stored conversations (who_knows).",
)
@simulated_model_option
@modes_option("Only agents has a meaning here; other modes are refused with the reason.")
@click.option(
    "-n",
    "--episodes",
    type=click.IntRange(1),
    default=1,
    help="Ask each person this often; options change places each time, so as many times as there are options show "
    "every option in every place.",
)
@drawing_options
@gpu_option
@threads_option
@name_option
@fail_option
@live_option
@db_option
@answers
def interview(bank: str, people: tuple[str, ...], **options: Any) -> Answer:
    """Ask people the questions of a bank: a name (traits, role_mcq, reasoning ...) or a file.

    Each question stands alone unless the bank says otherwise. The answers are a run, so report, show, audit, resume and
    export work on it. docs/interviews.md tells what each bank measures.

    \b
    localsim interview traits --people all
    localsim interview role_mcq --people helmi,juhan -n 4
    localsim report @last
    """
    store = store_of(options["db"])
    plan = interview_plan(bank, people, store, options["about"], **settings_of(options))
    return simulate(plan, store, options, leaks=False)
