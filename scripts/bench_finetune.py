#!/usr/bin/env python3
"""Compare `localsim finetune` with a bare torch loop on the same batches, in tokens a second.

    .venv/bin/python scripts/bench_finetune.py            # about five minutes on two cores

The bare loop is what one would write by hand with transformers and peft: forward with labels, backward, step. The two
take turns, batch by batch, on the chats of the starter's training data.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.backends.llama.chat import ChatTokenizer  # noqa: E402
from localsim.backends.llama.lib import LlamaModel  # noqa: E402
from localsim.finetune.chats import TrainingRow, row_of  # noqa: E402
from localsim.finetune.trainer import Settings, Trainer, bf16_is_faster, load_base, with_lora  # noqa: E402
from localsim.models import registry as models  # noqa: E402
from scripts.starter.dataset import build  # noqa: E402


@click.command()
@click.option("--model", default="smollm2-135m", show_default=True)
@click.option("--batches", default=8, show_default=True)
def main(model: str, batches: int) -> None:
    """Print a table."""
    import torch

    file = models.resolve(model)
    tokenizer = ChatTokenizer(LlamaModel(file.path, vocab_only=True))
    rows = [row_of(chat, tokenizer) for _, chat in build(12 * batches, 7).chats]
    settings = Settings(rank=24, alpha=48, batch_tokens=2560, bf16=bf16_is_faster())
    trainer = Trainer(load_base(file.path, bf16=settings.bf16), rows, [], settings)
    bare = with_lora(load_base(file.path, bf16=settings.bf16), settings)
    optimizer = torch.optim.AdamW([p for p in bare.parameters() if p.requires_grad], lr=1e-3)
    ours = theirs = 0.0
    tokens = 0
    for number, batch in enumerate(trainer.order[: batches + 1]):
        begun = time.perf_counter()
        loss = trainer.step(batch)
        middle = time.perf_counter()
        other = plain_step(bare, optimizer, batch, settings.bf16)
        if number:  # the first step warms both up
            ours, theirs = ours + middle - begun, theirs + time.perf_counter() - middle
            tokens += sum(len(row.tokens) for row in batch)
        print(f"batch {number}: losses {loss:.3f} and {other:.3f}", file=sys.stderr, flush=True)
    print(f"{'bfloat16' if settings.bf16 else 'float32'}\n\n| | tokens/s |\n|---|---|")
    print(f"| localsim finetune | {tokens / ours:.0f} |\n| bare loop | {tokens / theirs:.0f} |")
    print(f"| ratio | {theirs / ours:.2f} |")


def plain_step(model: Any, optimizer: Any, batch: list[TrainingRow], bf16: bool) -> float:
    """One step as a tutorial would write it; returns the loss in nats per trained token."""
    import torch

    length = max(len(row.tokens) for row in batch)
    ids = torch.zeros((len(batch), length), dtype=torch.long)
    mask = torch.zeros_like(ids)
    labels = torch.full_like(ids, -100)
    for index, row in enumerate(batch):
        size = len(row.tokens)
        ids[index, :size] = torch.tensor(row.tokens)
        mask[index, :size] = 1
        wanted = [token if learnt else -100 for token, learnt in zip(row.tokens, row.learnt, strict=True)]
        labels[index, :size] = torch.tensor(wanted)
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return float(loss.detach())


if __name__ == "__main__":
    main()
