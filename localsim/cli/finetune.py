"""localsim finetune, localsim adapters, localsim study."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localsim.backends.open import chosen_model
from localsim.cli import completion
from localsim.cli.answers import Answer, Note, Table, answers
from localsim.cli.common import Finite, Listing, Target, cluster_option, db_option, store_of, yes_option
from localsim.cli.progress import Progress, say
from localsim.conversation.episode import SIMULATED
from localsim.errors import InvalidInput, suggest
from localsim.finetune import require_packages
from localsim.models import registry
from localsim.models.registry import is_path

if TYPE_CHECKING:
    from localsim.study import Arm, Study


@click.command()
@click.argument("source", default="@last")
@click.option("--name", help="Name of the adapter [that of the run or file].")
@click.option("--base", default="starter", help="Model to train the adapter for.")
@click.option(
    "--query", help="Train on the episodes in column episode_id of this read-only SQL, by its column weight, if any."
)
@click.option("--mode", type=click.Choice(SIMULATED), help="Train only on episodes of this mode.")
@click.option("--tokens", type=click.IntRange(1), help="Train on at most this many tokens, prompts included.")
@click.option("--rank", type=click.IntRange(1, 256), default=16, help="Rank of the LoRA matrices.")
@click.option("--epochs", type=Finite(0.01, 100), default=1.0, help="Passes through the training chats.")
@click.option("--learning-rate", type=Finite(1e-7, 1), default=1e-3, help="Highest learning rate.")
@click.option(
    "--batch-tokens",
    type=click.IntRange(64),
    help="Most tokens of a training step [4096; with much data, a GPU takes up to 32,768].",
)
@click.option("--held-out", type=Finite(0, 0.9), default=0.1, help="Share of scenarios to validate on.")
@click.option(
    "--patience",
    type=click.IntRange(0),
    default=2,
    help="Stop after this many evaluations without a better validation loss; 0 never stops early.",
)
@click.option("--seed", type=click.IntRange(0), default=1, help="Seed of split, order and first weights.")
@click.option("--bfloat16/--float32", default=None, help="Compute in 16 or 32 bits [the faster on this machine].")
@click.option("--force", is_flag=True, help="Replace an adapter of the same name.")
@click.option("--dry-run", is_flag=True, help="Run two steps, print the expected time and memory, and stop.")
@db_option
@answers
def finetune(source: str, db: str | None, **options: Any) -> Answer:
    """Train a LoRA adapter on simulated episodes (a run, or a JSONL file of chats), as agents would be prompted.

    \b
    localsim finetune @last --mode script --name omniscient
    localsim finetune --query "SELECT episode_id FROM v_scores WHERE name = 'success' AND value = 1" --name winners
    localsim run ... --model starter+omniscient
    """
    require_packages()
    from localsim.finetune import job
    from localsim.finetune.source import source_of
    from localsim.finetune.trainer import Settings, bf16_is_faster

    layout = registry.layout_of(options["base"])
    found = source_of(source, lambda: store_of(db), query=options["query"], mode=options["mode"], layout=layout)
    name = options["name"] or found.name
    job.check_name(name, force=options["force"] or options["dry_run"])
    base = registry.resolve(options["base"])
    if base.adapter is not None:
        raise InvalidInput(
            f"{options['base']} has an adapter, and an adapter on top of an adapter cannot be trained",
            hint="name a model without an adapter; localsim models show NAME names the base of a model",
        )
    data = job.material(found.chats, base, share=options["held_out"], tokens=options["tokens"], seed=options["seed"])
    settings = Settings(
        rank=options["rank"],
        alpha=2.0 * options["rank"],
        learning_rate=options["learning_rate"],
        epochs=options["epochs"],
        batch_tokens=options["batch_tokens"] or 0,
        patience=options["patience"],
        seed=options["seed"],
        bf16=bf16_is_faster() if options["bfloat16"] is None else options["bfloat16"],
    )
    if options["dry_run"]:
        plan = {"name": name, "base": base.name, **data.as_json(), **job.estimate(base, data, settings)}
        return Answer(plan, [_lines(plan)])
    say(f"{name}: {len(data.train)} chats, {data.tokens} tokens, {len(data.held_out)} held out; base {base.name}")
    training = job.Job(name, base, options["base"], data, settings, found.origin, found.layout)
    target = job.finetune(training, TrainingBar())
    card = json.loads(target.with_suffix(".json").read_text(encoding="utf-8"))
    wrote = f"{target}: {target.stat().st_size / 1e6:.1f} MB; card: {target.with_suffix('.md')}"
    following = Note(f"next: localsim run SCENARIO --model {options['base']}+{name}")
    return Answer(card | {"path": str(target)}, [wrote, following])


class TrainingBar:
    """Shows the progress of a training on stderr."""

    def __init__(self) -> None:
        from tqdm import tqdm

        self._bar = tqdm(unit="step", dynamic_ncols=True, disable=None)
        self._told = 0

    def __call__(self, progress: Any) -> None:
        self._bar.total = progress.steps
        self._bar.n = progress.step
        validation = f", validation {progress.history[-1]['validation']:.3f}" if progress.history else ""
        text = f"loss {progress.loss:.3f}{validation}, {progress.tokens_per_second:.0f} tokens/s"
        self._bar.set_postfix_str(text)
        if self._bar.disable and progress.seconds - self._told >= 30:
            self._told = progress.seconds
            say(f"step {progress.step} of {progress.steps}: {text}, {progress.seconds_left / 60:.0f} min left")


@click.group(cls=Listing)
def adapters() -> None:
    """List, show, verify and remove LoRA adapters."""


@adapters.command("list")
@answers
def list_() -> Answer:
    """List the adapters in the model folders, with their base."""
    from localsim.models.lora import read_adapter

    rows: list[dict[str, Any]] = []
    for path in registry.adapter_files():
        found = read_adapter(path)
        rows.append(
            {
                "name": path.stem,
                "base": found.base_name,
                "rank": found.rank,
                "MB": round(path.stat().st_size / 1e6, 1),
                "path": str(path),
            }
        )
    return Answer(rows, [Table.of(rows) if rows else "no adapters; localsim finetune makes one"])


@adapters.command()
@click.argument("name")
def show(name: str) -> None:
    """Print the card of an adapter."""
    path = registry.adapter_path(name)
    card = path.with_suffix(".md")
    if not card.is_file():
        raise InvalidInput("this adapter has no card", where=str(path))
    click.echo(card.read_text(encoding="utf-8"), nl=False)


@adapters.command()
@click.argument("name")
@click.option("--base", help="Model to check it against [the one that it was trained on].")
def verify(name: str, base: str | None) -> None:
    """Check that an adapter is complete and fits its base."""
    from localsim.models.lora import read_adapter

    path = registry.adapter_path(name)
    chosen = read_adapter(path).base_name if base is None else base
    file = registry.resolve(f"{chosen}+{path}")
    click.echo(f"{name}: ok on {chosen} (both together: sha256 {file.sha256[:12]}...)")


@adapters.command("rm")
@click.argument("name")
@yes_option()
def remove(name: str, yes: bool) -> None:
    """Delete an adapter and its card."""
    path = registry.adapter_path(name)
    if is_path(name):
        raise InvalidInput("only adapters in a model folder can be removed, by name", where=name)
    if not yes:
        click.confirm(f"Delete adapter {path}?", abort=True)
    for file in (path, path.with_suffix(".json"), path.with_suffix(".md")):
        file.unlink(missing_ok=True)
    click.echo(f"removed adapter {name}")


# ---- the study -----------------------------------------------------------------------------------------------------


@click.command()
@click.option(
    "--size",
    "size_name",
    type=click.Choice(["small", "medium", "paper"]),
    default="small",
    help="Choose the number of scenarios, episodes and training tokens.",
)
@click.option(
    "-m", "--model", shell_complete=completion.models, help="Study this model [LOCALSIM_MODEL, else starter]."
)
@click.option("--second-model", shell_complete=completion.models, help="Repeat the study with this model beside it.")
@click.option(
    "--twin",
    default="auto",
    shell_complete=completion.models,
    help="Let this constructed model play all modes too, or none; auto is starter-peeks for the starter, if installed.",
)
@click.option(
    "--judge",
    default="auto",
    shell_complete=completion.models,
    help="Let this model judge goals and naturalness, or none; auto is the studied model.",
)
@click.option(
    "--arms",
    "arm_names",
    default="all",
    help="Teach these arms, with commas, or none: agents-ft always comes first. Without arms any model can be studied.",
)
@click.option("--iterative", is_flag=True, help="Also let one author write turn by turn, in every comparison of modes.")
@click.option(
    "--length",
    type=click.Choice(["short", "free"]),
    default="short",
    help="Ask for short lines or, without arms, for no length.",
)
@click.option(
    "--dir",
    "folder",
    type=Target(file_okay=False, path_type=Path),
    default=Path("study"),
    help="Write all files into this folder.",
)
@click.option("--seed", type=click.IntRange(0), default=1, help="Derive all seeds from this one.")
@click.option(
    "--dry-run", is_flag=True, help="Measure each model for half a minute, print the plan, and simulate nothing."
)
@cluster_option("Play and judge on this Ray cluster, and train here: auto is the one of this machine [this process].")
@answers
def study(
    size_name: str,
    model: str | None,
    second_model: str | None,
    twin: str,
    judge: str,
    arm_names: str,
    iterative: bool,
    length: str,
    folder: Path,
    seed: int,
    dry_run: bool,
    cluster: str | None,
) -> Answer:
    """Repeat the paper's study with controls: all modes, taught agents, a judge of goals and naturalness, a page.

    All modes play searches, bargains and situations. Agents are taught on scripts, on agents' talks, and on scripts
    with half or none of the untold facts, with equally many tokens. An interrupted study continues where it stopped.
    The command writes study.md, study.json, report.html and study.duckdb into --dir.

    \b
    localsim study --size small
    localsim study --size medium --model qwen2.5-1.5b --second-model starter --dir big
    """
    from localsim import study as studies

    others = () if second_model is None else (second_model,)
    size, arms = studies.SIZES[size_name], _arms(arm_names)
    free = length == "free"
    chosen = studies.Study(size, chosen_model(model), folder, seed, others, twin, judge, arms, iterative, free)
    if dry_run:
        plans = [_planned(size_name, chosen, name) for name in chosen.models]
        return Answer(plans if len(plans) > 1 else plans[0], ["\n\n".join(map(_lines, plans))])

    data = studies.run_study(
        chosen, say, lambda _title, episodes: closing(Progress(episodes)), TrainingBar(), cluster=cluster
    )
    return Answer(data, [(folder / "study.md").read_text(encoding="utf-8")])


def _arms(names: str) -> tuple[Arm, ...]:
    """Return the arms that are named. Raises InvalidInput."""
    from localsim.study import ARMS

    if names in ("all", "none"):
        return ARMS if names == "all" else ()
    wanted, known = names.split(","), [arm.name for arm in ARMS]
    for name in wanted:
        if name not in known:
            hint = f"arms are {', '.join(known)}; or all, none"
            raise InvalidInput(f"no arm {name!r}{suggest(name, known, inline=True)}", where="--arms", hint=hint)
    return tuple(arm for arm in ARMS if arm is ARMS[0] or arm.name in wanted)


def _lines(plan: dict[str, Any]) -> str:
    return "\n".join(f"{key.replace('_', ' ')}: {value}" for key, value in plan.items())


def _planned(size_name: str, study: Study, model: str) -> dict[str, Any]:
    """Return the plan of a study for one model, with the expected minutes of each stage."""
    from localsim.backends.engines import ensure_works
    from localsim.backends.open import layers_of, physical_cores, require_models
    from localsim.machine.bench import bench
    from localsim.study import TURNS, WRITTEN, hours
    from localsim.study.design import compare_plan

    base, size, twin, judge = study.base(model), study.size, study.twin_of(model), study.judge_of(model)
    require_models(list(filter(None, (twin, judge))))
    compare_plan(study, model, study.modes)  # raises what the run would
    ensure_works(base)
    say(f"measuring {base.name}")
    rates = bench(base, physical_cores(), layers_of(base, "auto"))
    stages = hours(study, model, rates)
    return {
        "size": size_name,
        "model": base.name,
        "twin": twin or "none",
        "judge": judge or "none",
        "episodes": size.counts(study.arms, twin=twin is not None, modes=study.modes),
        **({"training_tokens_of_each_arm_at_most": size.most_tokens()} if study.arms else {}),
        "minutes": {stage: round(60 * value, 1) for stage, value in stages.items()},
        "hours_in_all": round(sum(stages.values()), 2),
        "assumed": f"{TURNS} turns of {WRITTEN} tokens an episode; training at 40% of the speed of a prompt; a judge "
        "as fast as the model",
        "measured": {"turn_tokens_per_second": round(rates.turn), "decode_8_per_second": round(rates.decode_together)},
    }
