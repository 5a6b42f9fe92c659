#!/usr/bin/env python3
"""Train the starter and its twins: conversations -> LoRA on SmolLM2-135M-Instruct -> models/*.lora.gguf.

    .venv/bin/python scripts/train_starter.py starter --talks 1600 --start FOLDER     # continue an adapter
    .venv/bin/python scripts/train_starter.py starter --talks 60000 --tokens-a-step 32768   # on a GPU, from nothing
    .venv/bin/python scripts/train_starter.py starter-peeks --talks 400
    .venv/bin/python scripts/train_starter.py starter --show 5         # print five conversations and stop

A twin is a small adapter on top of the starter. Repeat a command to continue an interrupted training. models/starter.md
describes the data and the result.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.finetune.chats import Chat  # noqa: E402
from localsim.finetune.job import export  # noqa: E402
from localsim.finetune.rows import Rows, made_rows  # noqa: E402
from localsim.finetune.trainer import Progress, Settings, Trainer, bf16_is_faster, load_base  # noqa: E402
from localsim.models import registry as models  # noqa: E402
from scripts.starter.dataset import HONEST, PEEKS, PEEKS_50, Mix, build  # noqa: E402

LONGEST = 1024
PART = 100
"""Number of conversations that one process makes at a time; the data do not depend on the number of processes."""


@dataclass(frozen=True)
class Target:
    """A model to train."""

    base: str
    mix: Mix
    rank: int
    seed: int


TARGETS = {
    "starter": Target("smollm2-135m", HONEST, 24, 1000),
    "starter-peeks-50": Target("starter-135m", PEEKS_50, 8, 2000),
    "starter-peeks": Target("starter-135m", PEEKS, 8, 3000),
}


def part(job: tuple[str, int, int, bool]) -> tuple[list[Chat], Counter[str]]:
    """Make one part of the data: chats, and the numbers of conversations by kind."""
    name, number, talks, held_out = job
    data = build(talks, TARGETS[name].seed + number, TARGETS[name].mix, held_out=held_out)
    return [chat for _, _, chat in data.chats], data.counts


def rows_of(name: str, talks: int, first: int, base: models.ModelFile, cache: Path, *, held_out: bool = False) -> Rows:
    """Make rows on every core, or read those that were made before."""
    parts = range(math.ceil(talks / PART))
    jobs = [(name, first + number, min(PART, talks - number * PART), held_out) for number in parts]
    package = [ROOT / "localsim" / name for name in ("families", "conversation", "finetune", "backends/llama/chat.py")]
    sources = [Path(__file__), ROOT / "scripts" / "starter", *package]
    return made_rows(part, jobs, base, longest=LONGEST, cache=cache, sources=sources)


@click.command()
@click.argument("name", type=click.Choice(list(TARGETS)))
@click.option("--talks", default=1600, show_default=True, help="Number of conversations to train on.")
@click.option("--learning-rate", default=1e-3, show_default=True, help="Greatest learning rate.")
@click.option("--tokens-a-step", default=1536, show_default=True, help="Number of tokens in a step.")
@click.option("--seed", default=0, show_default=True, help="Number of the first part of the data, for other data.")
@click.option("--start", type=click.Path(path_type=Path, exists=True), help="Continue the adapter in this folder.")
@click.option("--work", type=click.Path(path_type=Path), help="Folder for an unfinished training [db/NAME].")
@click.option("--out", type=click.Path(path_type=Path), help="File of the adapter [models/NAME.lora.gguf].")
@click.option("--show", type=int, help="Print this many conversations and stop.")
def main(
    name: str,
    talks: int,
    learning_rate: float,
    tokens_a_step: int,
    seed: int,
    start: Path | None,
    work: Path | None,
    out: Path | None,
    show: int | None,
) -> None:
    """Generate the data, train and write the adapter."""
    target = TARGETS[name]
    if show:
        for kind, form, chat in build(show, target.seed + seed, target.mix).chats:
            print(f"==== {kind}, {form}", *(f"[{each.role}] {each.content}" for each in chat.messages), sep="\n")
        return
    work, out = work or ROOT / "db" / name, out or ROOT / "models" / f"{name}.lora.gguf"
    file = models.resolve(target.base)
    begun = time.time()
    data = rows_of(name, talks, seed, file, work / "rows.npz")
    held = rows_of(name, max(20, talks // 40), seed, file, work / "held_out.npz", held_out=True)
    seconds = time.time() - begun
    print(dict(data.counts), f"{data.longer} too long; {data.tokens} tokens, {seconds:.0f} s", flush=True)
    settings = Settings(
        rank=target.rank,
        alpha=2.0 * target.rank,
        learning_rate=learning_rate,
        batch_tokens=tokens_a_step,
        evaluations=4,
        seed=1,
        bf16=bf16_is_faster(),
    )
    trained = Trainer(load_base(file.path, bf16=settings.bf16), data.rows, held.rows, settings, start).train(
        work, _show
    )
    export(trained, work / "adapter.gguf", file, target.base, settings)
    note = {
        "talks": dict(data.counts),
        "rows": len(data.rows),
        "tokens": data.tokens,
        "learnt_tokens": sum(row.learnt_tokens for row in data.rows),
        "settings": vars(settings),
        "history": trained.progress.history,
        "seconds": round(trained.progress.seconds),
        "tokens_per_second": round(trained.progress.tokens_per_second),
    }
    (work / "training.json").write_text(json.dumps(note, indent=1))
    shutil.copyfile(work / "adapter.gguf", out)
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


def _show(progress: Progress) -> None:
    if progress.step % 10 == 0:
        left = progress.seconds_left / 60
        text = f"step {progress.step}/{progress.steps}, loss {progress.loss:.3f}, {progress.tokens_per_second:.0f}/s"
        print(f"{text}, {left:.0f} min left" if not math.isnan(left) else text, flush=True)
        if progress.history:
            print("  validation", round(progress.history[-1]["validation"], 4), flush=True)


if __name__ == "__main__":
    main()
