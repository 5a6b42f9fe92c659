#!/usr/bin/env python3
"""Train the starter: conversations of scripted players -> LoRA on SmolLM2-135M-Instruct -> models/starter.lora.gguf.

    .venv/bin/python scripts/train_starter.py                 # three stages, about two hours; repeat it to continue
    .venv/bin/python scripts/train_starter.py --show 5        # print five conversations of each stage and stop

models/starter.md describes the training data and the result.
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

from localsim.backends.llama.chat import ChatTokenizer  # noqa: E402
from localsim.backends.llama.lib import LlamaModel  # noqa: E402
from localsim.finetune.chats import TrainingRow, clipped, row_of  # noqa: E402
from localsim.finetune.job import export  # noqa: E402
from localsim.finetune.trainer import Progress, Settings, Trained, Trainer, bf16_is_faster, load_base  # noqa: E402
from localsim.models import registry as models  # noqa: E402
from scripts.starter.dataset import BROAD, CAREFUL, LONG, Mix, build  # noqa: E402

BASE = "smollm2-135m"
LONGEST = 1024


@dataclass(frozen=True)
class Stage:
    """A part of the training; each stage continues the one before."""

    talks: int
    seed: int
    mix: Mix
    learning_rate: float


STAGES = (Stage(1500, 1, BROAD, 1e-3), Stage(420, 2, CAREFUL, 6e-4), Stage(1300, 3, LONG, 8e-4))


def settings_of(stage: Stage) -> Settings:
    """Return the training settings of a stage."""
    return Settings(
        rank=24,
        alpha=48,
        learning_rate=stage.learning_rate,
        batch_tokens=1280,
        evaluations=4,
        seed=stage.seed,
        bf16=bf16_is_faster(),
    )


@click.command()
@click.option(
    "--work", type=click.Path(path_type=Path), default=ROOT / "db" / "starter", help="Folder for unfinished stages."
)
@click.option(
    "--out", type=click.Path(path_type=Path), default=ROOT / "models" / "starter.lora.gguf", help="File of the adapter."
)
@click.option("--show", type=int, help="Print this many conversations of each stage and stop.")
def main(work: Path, out: Path, show: int | None) -> None:
    """Generate the data, train the stages and write the adapter."""
    file = models.resolve(BASE)
    tokenizer = ChatTokenizer(LlamaModel(file.path, vocab_only=True))
    if show:
        for stage in STAGES:
            for kind, chat in build(show, stage.seed, stage.mix).chats:
                print(f"==== {kind}", *(f"[{message.role}] {message.content}" for message in chat.messages), sep="\n")
        return
    best: Path | None = None
    for number, stage in enumerate(STAGES, start=1):
        folder = work / f"stage{number}"
        if not (folder / "training.json").is_file():
            trained = train(stage, file, tokenizer, folder, best)
            export(trained, folder / "adapter.gguf", file, BASE, settings_of(stage))
        best = folder / "best"
    shutil.copyfile(work / f"stage{len(STAGES)}" / "adapter.gguf", out)
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


def train(stage: Stage, file: models.ModelFile, tokenizer: ChatTokenizer, folder: Path, start: Path | None) -> Trained:
    """Train one stage and store its time, tokens and losses beside it."""
    data = build(stage.talks, stage.seed, stage.mix)
    rows, longer = clipped([row_of(chat, tokenizer) for _, chat in data.chats], LONGEST)
    held = build(max(20, stage.talks // 45), stage.seed + 1000, stage.mix)
    held_rows = clipped([row_of(chat, tokenizer) for _, chat in held.chats], LONGEST)[0]
    _say(data.counts, rows, longer)
    settings = settings_of(stage)
    begun = time.time()
    trained = Trainer(load_base(file.path, bf16=settings.bf16), rows, held_rows, settings, start).train(folder, _show)
    note = {
        "talks": dict(data.counts),
        "rows": len(rows),
        "tokens": sum(len(row.tokens) for row in rows),
        "learnt_tokens": sum(row.learnt_tokens for row in rows),
        "settings": vars(settings),
        "history": trained.progress.history,
        "seconds": round(trained.progress.seconds),
        "tokens_per_second": round(trained.progress.tokens_per_second),
        "wall_seconds": round(time.time() - begun),
    }
    (folder / "training.json").write_text(json.dumps(note, indent=1))
    return trained


def _say(counts: Counter[str], rows: list[TrainingRow], longer: int) -> None:
    tokens, learnt = sum(len(row.tokens) for row in rows), sum(row.learnt_tokens for row in rows)
    print(dict(counts), f"{longer} too long;", f"{tokens} tokens, {learnt} of them training targets", flush=True)


def _show(progress: Progress) -> None:
    if progress.step % 10 == 0:
        left = progress.seconds_left / 60
        text = f"step {progress.step}/{progress.steps}, loss {progress.loss:.3f}, {progress.tokens_per_second:.0f}/s"
        print(f"{text}, {left:.0f} min left" if not math.isnan(left) else text, flush=True)
        if progress.history:
            print("  validation", round(progress.history[-1]["validation"], 4), flush=True)


if __name__ == "__main__":
    main()
