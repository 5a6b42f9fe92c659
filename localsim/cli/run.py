"""localsim run, resume, study."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from localsim import paths
from localsim.backends.open import absolute, is_file, memory_plans
from localsim.cli import completion
from localsim.cli.common import Progress, db_option, json_option, print_json, say, store_of
from localsim.conversation.episode import MODES, OVERFLOWS, REPRO_LEVELS, Mode, Sampling
from localsim.errors import Interrupted, InvalidInput, TooManyFailures
from localsim.models import registry as models
from localsim.runs import preview, runner
from localsim.runs.plan import Plan
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store


def _modes(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[Mode, ...]:
    if value == "all":
        return MODES
    chosen = tuple(dict.fromkeys(part.strip() for part in value.split(",")))
    unknown = [part for part in chosen if part not in MODES]
    if unknown:
        raise click.BadParameter(f"unknown mode {unknown[0]!r}; modes are {', '.join(MODES)} and all")
    return chosen  # type: ignore[return-value]  # checked against MODES


def _roles(_ctx: click.Context, _param: click.Parameter, values: Iterable[str]) -> dict[str, str]:
    found = {}
    for value in values:
        name, equals, model = value.partition("=")
        if not (name and equals and model):
            raise click.BadParameter(f"{value!r} is not NAME=MODEL")
        found[name] = model
    return found


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


fail_option = click.option(
    "--fail-on-error", type=click.FloatRange(0), default=0.2, show_default=True,
    help="Exit with 6 where more episodes failed: a share below 1, or a number.",
)  # fmt: skip
live_option = click.option("--live", is_flag=True, help="Print the dialogue as it happens.")


@click.command()
@click.argument("scenarios", nargs=-1, required=True, shell_complete=completion.scenarios)
@click.option(
    "-m",
    "--model",
    shell_complete=completion.models,
    help="Model name, path of a .gguf, or scripted[:POLICY] [LOCALSIM_MODEL, else starter].",
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    callback=_roles,
    metavar="NAME=MODEL",
    help="Model of one agent, or of the writer.",
)
@click.option(
    "--mode", "modes", default="agents", show_default=True, callback=_modes, help="script, agents, mindreaders or all."
)
@click.option("-n", "--episodes", type=click.IntRange(1), default=1, show_default=True, help="Per scenario and mode.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=1, show_default=True, help="Master seed.")
@click.option("-j", "--parallel", default="auto", show_default=True, callback=_parallel, help="Episodes side by side.")
@click.option("--temperature", type=click.FloatRange(0, 5), default=Sampling.temperature, show_default=True)
@click.option("--no-grammar", is_flag=True, help="Do not constrain output to lines of actions.")
@click.option(
    "--repro", type=click.Choice(REPRO_LEVELS), default="stable", show_default=True, help="How exactly text repeats."
)
@click.option("--ctx", "context", type=click.IntRange(256), help="Tokens of a conversation [what the longest needs].")
@click.option(
    "--overflow",
    type=click.Choice(OVERFLOWS),
    default="error",
    show_default=True,
    help="A conversation that outgrows its context fails, or loses its oldest turns.",
)
@click.option("--gpu", default="auto", show_default=True, callback=_gpu, help="Layers on a GPU: auto, off or a number.")
@click.option("--threads", type=click.IntRange(1), help="Threads of llama.cpp [physical cores].")
@click.option("--leaks/--no-leaks", default=None, help="Look for leaks at the end [yes, unless all is scripted].")
@click.option("--dry-run", is_flag=True, help="Print the plan and stop.")
@fail_option
@live_option
@db_option
@json_option
def run(scenarios: tuple[str, ...], **options: Any) -> None:
    """Simulate scenarios (files, folders or names) and store every prompt and turn.

    \b
    localsim run scenarios/mutual_friends_01.yaml --mode all -n 4
    localsim run roommates --role Kit=scripted:smalltalk --live
    """
    plan = Plan(
        scenarios=tuple(find_scenarios(scenarios)),
        modes=options["modes"],
        model=absolute(options["model"] or paths.default_model()),
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
    )
    if options["dry_run"]:
        _print_plan(plan, store_of(options["db"]), options["as_json"])
        return
    store = store_of(options["db"])
    progress = Progress(len(plan.specs()), live=options["live"], quiet=options["as_json"])
    try:
        result = runner.start(plan, store, progress, say)
    finally:
        progress.close()
    _look_for_leaks(result, store, options["leaks"])
    _conclude(result, store.path, options["as_json"], options["fail_on_error"])


@click.command()
@click.argument("run_id", metavar="[RUN]", default="@last", shell_complete=completion.runs)
@fail_option
@live_option
@db_option
@json_option
def resume(run_id: str, fail_on_error: float, live: bool, db: str | None, as_json: bool) -> None:
    """Go on with an interrupted run; finished episodes stand, the others go on after their last turn.

    \b
    localsim resume
    localsim resume 20260102-0304
    """
    store = store_of(db)
    planned, done = runner.progress_of(run_id, store)
    progress = Progress(planned, done, live=live, quiet=as_json)
    try:
        result = runner.resume(run_id, store, progress, say)
    finally:
        progress.close()
    _look_for_leaks(result, store, None)
    _conclude(result, store.path, as_json, fail_on_error)


def _look_for_leaks(result: runner.Result, store: Store, wanted: bool | None) -> None:
    """Score a run that is over and in the database."""
    if result.summary.stopped or not result.in_database:
        return
    from localsim.evaluators.leaks import look_after

    look_after(store, result.run_id, wanted, say)


def _print_plan(plan: Plan, store: Store, as_json: bool) -> None:
    specs = plan.specs()
    turns = sum(spec.scenario.limits.turns for spec in specs)
    parallel = preview.side_by_side(plan, say)
    data: dict[str, Any] = {
        "scenarios": [loaded.scenario.id for loaded in plan.scenarios],
        "modes": list(plan.modes),
        "models": sorted({model for spec in specs for model in spec.models.values()}),
        "episodes": len(specs),
        "turns_at_most": turns,
        "seed": plan.seed,
        "repro": plan.repro,
        "parallel": parallel,
        "memory": (memory := [str(each) for each in memory_plans(preview.needs_of(plan, parallel))]),
    }
    found = preview.minutes(plan, parallel, store)
    data["forecast"] = vars(found) if found else None
    if as_json:
        print_json(data)
        return
    click.echo(
        f"{len(plan.scenarios)} scenarios x {len(plan.modes)} modes x {plan.episodes} = {len(specs)} episodes, "
        f"at most {turns} turns, {parallel} at a time, models: {', '.join(data['models'])}"
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
            f"run {result.run_id}: {summary.completed} completed, {summary.failed} failed of {result.planned} episodes "
            f"in {result.seconds:.0f} s ({summary.tokens_generated} tokens, {rate:.0f}/s)"
        )
        if summary.tokens_in_prompts:
            cached = 1 - summary.tokens_evaluated / summary.tokens_in_prompts
            say(
                f"{cached:.0%} of {summary.tokens_in_prompts} prompt tokens were in the caches, "
                f"{summary.tokens_shared} of them shared between conversations"
            )
        say(f"next: localsim report {result.run_id}   localsim show @last   (database {db})")
    if not result.in_database:
        say(f"the database is still held; the next localsim command takes the rest in from {db}.d")
    sys.stdout.flush()
    if summary.stopped:
        raise Interrupted("stopped before the end", hint=f"localsim resume {result.run_id} --db {db}")
    limit = fail_on_error if fail_on_error >= 1 else fail_on_error * done
    if summary.failed > limit:
        raise TooManyFailures(
            f"{summary.failed} of {done} episodes failed", hint="localsim runs show @last lists the reasons"
        )


@click.command()
@click.option("--size", "size_name", type=click.Choice(["small", "paper"]), default="small", show_default=True)
@click.option(
    "-m",
    "--model",
    shell_complete=completion.models,
    help="Any model in the starter's place [LOCALSIM_MODEL, else starter].",
)
@click.option("--dir", "folder", type=click.Path(path_type=Path), default=Path("study"), show_default=True)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option("--dry-run", is_flag=True, help="Measure the model for half a minute, print the plan and stop.")
@json_option
def study(size_name: str, model: str | None, folder: Path, seed: int, dry_run: bool, as_json: bool) -> None:
    """The paper in one command: all modes, fine-tuning on scripts, agents again, and a table beside the paper's.

    Goes on where it was interrupted. Writes study.md, study.json, report.html and study.duckdb into --dir.

    \b
    localsim study --size small
    localsim study --size paper --model qwen2.5-3b-instruct.gguf --dir big
    """
    from localsim import study as work

    name = absolute(model or paths.default_model())
    base = models.resolve(name) if is_file(name) else None
    if base is None or base.adapter is not None:
        raise InvalidInput("a study needs a model that can be fine-tuned: a GGUF without an adapter", where=name)
    size = work.SIZES[size_name]
    if dry_run:
        _print_study(size_name, size, base, as_json)
        return
    from localsim.cli.finetune import require_packages

    require_packages()
    models.embedding_folder()  # not only when leaks are to be looked for
    folder.mkdir(parents=True, exist_ok=True)
    store = Store((folder / "study.duckdb").absolute(), waiting=say)
    compared = _stage("compare", work.compare_plan(size, name, seed), store, as_json)
    scripts = _stage("scripts", work.scripts_plan(size, name, seed), store, as_json)
    adapter = _learnt(store, scripts, base, name, size, folder)
    finetuned = _stage("agents, fine-tuned", work.finetuned_plan(size, name, adapter, seed), store, as_json)
    data = work.results(store, compared, finetuned)
    about = {"size": size_name, "seed": seed, "runs": ", ".join((compared, scripts, finetuned))}
    _write(folder, data, work.as_markdown(data, about | _about(base, adapter)), store, compared)
    if as_json:
        print_json(data)
    else:
        click.echo((folder / "study.md").read_text(encoding="utf-8"))


def _stage(title: str, plan: Any, store: Store, quiet: bool) -> str:
    from localsim.study import simulated

    say(f"== {title}: {len(plan.specs())} episodes")
    progress = Progress(len(plan.specs()), quiet=quiet)
    try:
        return simulated(plan, store, progress, say)
    finally:
        progress.close()


def _learnt(store: Store, scripts: str, base: models.ModelFile, base_name: str, size: Any, folder: Path) -> Path:
    """The adapter of the study, trained if it is not there yet."""
    from localsim.cli.finetune import TrainingBar
    from localsim.finetune import job, source
    from localsim.finetune.trainer import Settings, bf16_is_faster

    name = f"{scripts}-{base.sha256[:8]}"  # another size, seed or model learns an adapter of its own
    adapter = (folder / f"{name}.gguf").absolute()
    if adapter.with_suffix(".md").is_file():  # written last
        say(f"== learn: {adapter.name} is there")
        return adapter
    chats = source.chats_of_episodes(store, source.episodes_of_run(store, scripts))
    data = job.material(chats, base, share=0.1, tokens=size.tokens, seed=1)
    say(f"== learn: {len(data.train)} chats, {data.tokens} tokens, {len(data.held_out)} held out")
    learning = job.Job(name, base, base_name, data, Settings(bf16=bf16_is_faster()), {"run": scripts})
    return job.finetune(learning, TrainingBar(), folder=folder.absolute())


def _about(base: models.ModelFile, adapter: Path) -> dict[str, Any]:
    from localsim.leakage.detector import VERSION

    card = json.loads(adapter.with_suffix(".json").read_text(encoding="utf-8"))
    return {
        "model": f"{base.name} (sha256 {base.sha256[:12]}...)",
        "learnt from": f"{card['data']['rows']} chats, {card['data']['tokens']} tokens of scripts, "
        f"validation loss {_short(card['losses'][0]['validation'])} after a quarter, "
        f"{_short(card['best_validation_loss'])} at best",
        "versions": ", ".join(f"{name} {number}" for name, number in runner.versions().items())
        + f", leakage detector {VERSION}",
    }


def _short(loss: float | None) -> str:
    return "-" if loss is None else f"{loss:.3f}"


def _write(folder: Path, data: dict[str, Any], text: str, store: Store, compared: str) -> None:
    from localsim.reports.card import card
    from localsim.reports.html import examples, render
    from localsim.reports.report import report

    (folder / "study.md").write_text(text, encoding="utf-8")
    (folder / "study.json").write_text(json.dumps(data, indent=1, default=str), encoding="utf-8")
    page = report(store, compared)
    page["card"] = card(store, compared, data=page)
    (folder / "report.html").write_text(render(page, examples(store, compared)), encoding="utf-8")
    say(f"wrote {folder / 'study.md'}, {folder / 'report.html'}")


def _print_study(size_name: str, size: Any, base: models.ModelFile, as_json: bool) -> None:
    from localsim.backends.llama.probe import ensure_works
    from localsim.backends.open import physical_cores
    from localsim.machine import convert as derived
    from localsim.study import TURNS, WRITTEN, hours

    ensure_works(base.path, base.sha256)
    say(f"measuring {base.name}")
    bench = derived.bench(base, physical_cores())
    stages = hours(size, bench)
    data = {
        "size": size_name,
        "model": base.name,
        "episodes": size.counts(),
        "training_tokens_at_most": size.most_tokens(),
        "hours": {stage: round(value, 2) for stage, value in stages.items()},
        "hours_in_all": round(sum(stages.values()), 2),
        "assumed": f"{TURNS} turns of {WRITTEN} tokens an episode; training at half the speed of a prompt",
        "measured": {"turn_tokens_per_second": round(bench.turn), "decode_8_per_second": round(bench.decode_8)},
    }
    if as_json:
        print_json(data)
        return
    for key, value in data.items():
        click.echo(f"{key.replace('_', ' ')}: {value}")
