#!/usr/bin/env python3
"""Train the starter adapter: talks of scripted agents -> LoRA on SmolLM2-135M-Instruct -> models/starter.lora.gguf.

    .venv/bin/python scripts/train_starter.py                 # about an hour on two cores; continued if interrupted
    .venv/bin/python scripts/train_starter.py --show 5        # read five talks instead

What is learnt, and what is not, stands in models/starter.md.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections import Counter
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim import models  # noqa: E402
from localsim.backends.chat import ChatTokenizer  # noqa: E402
from localsim.backends.llama_lib import LlamaModel  # noqa: E402
from localsim.finetune.job import export  # noqa: E402
from localsim.finetune.rows import TrainingRow, clipped, row_of  # noqa: E402
from localsim.finetune.trainer import Progress, Settings, Trainer, load_base  # noqa: E402
from scripts.starter.dataset import build  # noqa: E402

BASE = "smollm2-135m"
SETTINGS = Settings(rank=24, alpha=48, learning_rate=1e-3, batch_tokens=1280, evaluations=4)
LONGEST = 1024


@click.command()
@click.option("--talks", default=1500, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--work", type=click.Path(path_type=Path), default=ROOT / "db" / "starter", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=ROOT / "models" / "starter.lora.gguf")
@click.option("--rank", default=SETTINGS.rank, show_default=True)
@click.option("--steps", type=int, help="Stop after so many steps and print the speed.")
@click.option("--float32", is_flag=True)
@click.option("--show", type=int, help="Print so many talks and end.")
def main(
    talks: int, seed: int, work: Path, out: Path, rank: int, steps: int | None, float32: bool, show: int | None
) -> None:
    """Data, training, adapter."""
    file = models.resolve(BASE)
    tokenizer = ChatTokenizer(LlamaModel(file.path, vocab_only=True))
    data = build(show or talks, seed)
    if show:
        for kind, chat in data.chats:
            print(f"==== {kind}", *(f"[{message.role}] {message.content}" for message in chat.messages), sep="\n")
        return
    rows, longer = clipped([row_of(chat, tokenizer) for _, chat in data.chats], LONGEST)
    held = build(max(20, talks // 45), seed + 1000)
    held_rows = clipped([row_of(chat, tokenizer) for _, chat in held.chats], LONGEST)[0]
    _say(data.counts, rows, longer)
    settings = Settings(**{**vars(SETTINGS), "rank": rank, "alpha": 2.0 * rank, "bf16": not float32})
    trainer = Trainer(load_base(file.path, bf16=not float32), rows, held_rows, settings)
    if steps:
        for batch in trainer.order[:steps]:
            print(f"{trainer.step(batch):.3f}  {trainer.progress.tokens_per_second:.0f} tokens/s", flush=True)
        return
    begun = time.time()
    trained = trainer.train(work, _show)
    export(trained, out, file, BASE, settings)
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
    (work / "training.json").write_text(json.dumps(note, indent=1))
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB, validation {trained.best_loss:.3f}")


def _say(counts: Counter[str], rows: list[TrainingRow], longer: int) -> None:
    tokens, learnt = sum(len(row.tokens) for row in rows), sum(row.learnt_tokens for row in rows)
    print(dict(counts), f"{longer} too long;", f"{tokens} tokens, {learnt} learnt", flush=True)


def _show(progress: Progress) -> None:
    if progress.step % 10 == 0:
        left = progress.seconds_left / 60
        text = f"step {progress.step}/{progress.steps}, loss {progress.loss:.3f}, {progress.tokens_per_second:.0f}/s"
        print(f"{text}, {left:.0f} min left" if not math.isnan(left) else text, flush=True)
        if progress.history:
            print("  validation", round(progress.history[-1]["validation"], 4), flush=True)


if __name__ == "__main__":
    main()
