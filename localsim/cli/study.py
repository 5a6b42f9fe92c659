"""localsim study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from localsim import models, paths, runner
from localsim.cli import completion
from localsim.cli.common import Progress, json_option, print_json, say
from localsim.engines import absolute, is_file
from localsim.errors import InvalidInput
from localsim.store import Store


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
        _print_plan(size_name, size, base, as_json)
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
    from localsim.card import card
    from localsim.report import report
    from localsim.report_html import examples, render

    (folder / "study.md").write_text(text, encoding="utf-8")
    (folder / "study.json").write_text(json.dumps(data, indent=1, default=str), encoding="utf-8")
    page = report(store, compared)
    page["card"] = card(store, compared, data=page)
    (folder / "report.html").write_text(render(page, examples(store, compared)), encoding="utf-8")
    say(f"wrote {folder / 'study.md'}, {folder / 'report.html'}")


def _print_plan(size_name: str, size: Any, base: models.ModelFile, as_json: bool) -> None:
    from localsim import derived
    from localsim.backends.probe import ensure_works
    from localsim.engines import physical_cores
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
