#!/usr/bin/env python3
"""Measure `localsim finetune` in tokens a second and in its share of padding, beside a bare torch loop.

    .venv/bin/python scripts/bench_finetune.py                       # about five minutes on two cores
    .venv/bin/python scripts/bench_finetune.py --batch-tokens 32768  # as on a large GPU

It runs on the GPU if torch sees one. The bare loop is what one would write by hand with transformers and peft: forward
with labels, backward, step. Both take the same batches, of chats of scripted players.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.backends.llama.chat import ChatTokenizer  # noqa: E402
from localsim.backends.llama.lib import LlamaModel  # noqa: E402
from localsim.conversation.scenario import LoadedScenario  # noqa: E402
from localsim.families import FAMILIES  # noqa: E402
from localsim.finetune.chats import TrainingRow, row_of  # noqa: E402
from localsim.finetune.source import chats_of_episodes, episodes_of_run  # noqa: E402
from localsim.finetune.trainer import (  # noqa: E402
    Progress,
    Settings,
    Trainer,
    bf16_is_faster,
    load_base,
    peak_memory_mb,
    with_lora,
)
from localsim.models import registry as models  # noqa: E402
from localsim.runs import runner  # noqa: E402
from localsim.runs.plan import Plan  # noqa: E402
from localsim.store.database import Store  # noqa: E402
from scripts.bench_engine import Silent  # noqa: E402

SHORTEST = 350
"""Fewest tokens of a row, by which the number of conversations is chosen."""


@click.command()
@click.option("--model", default="smollm2-135m", show_default=True, help="Base model.")
@click.option("--batches", default=8, show_default=True, help="Number of measured steps.")
@click.option("--batch-tokens", default=4096, show_default=True, help="Most tokens of a step, padding included.")
@click.option("--bare/--no-bare", default=True, show_default=True, help="Measure the bare loop as well.")
def main(model: str, batches: int, batch_tokens: int, bare: bool) -> None:
    """Print a table."""
    file = models.resolve(model)
    settings = Settings(rank=24, alpha=48, batch_tokens=batch_tokens, bf16=bf16_is_faster(), evaluations=1)
    rows = rows_of_players(file.path, batches * batch_tokens)
    trainer = Trainer(load_base(file.path, bf16=settings.bf16), rows, [], settings)
    float(trainer.step(trainer.order[0]))  # warms up
    trainer.order, trainer.progress = trainer.order[:batches], Progress(steps=batches)
    with tempfile.TemporaryDirectory() as scratch:
        found = trainer.train(Path(scratch), _show).progress
    print(f"{found.formats[0]}, steps of {batch_tokens} tokens, {peak_memory_mb()} MB\n\n| | tokens/s |\n|---|---|")
    print(f"| localsim finetune | {found.tokens_per_second:.0f} |")
    print(f"| padding | {found.padding / (found.tokens + found.padding):.1%} |")
    if bare:
        rate = bare_rate(with_lora(load_base(file.path, bf16=settings.bf16), settings), trainer.order, settings)
        print(f"| bare loop | {rate:.0f} |\n| ratio | {found.tokens_per_second / rate:.2f} |")


def rows_of_players(base: Path, tokens: int) -> list[TrainingRow]:
    """Rows of scripted players, at least as many tokens as wanted."""
    wanted = tokens // SHORTEST // 4 + 1  # two rows for each conversation, two families
    plan = Plan(
        tuple(
            LoadedScenario(*FAMILIES[family].generate(f"{family}_{seed}", seed, {}).split(), "generated")
            for family in FAMILIES
            for seed in range(90_000, 90_000 + wanted)
        ),
        ("agents",),
        model="scripted",
    )
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(Path(scratch) / "bench.duckdb")
        run = runner.start(plan, store, Silent(), lambda _: None, leaks=False)
        chats = chats_of_episodes(store, episodes_of_run(store, run.run_id))
    tokenizer = ChatTokenizer(LlamaModel(base, vocab_only=True))
    return [row_of(chat, tokenizer) for chat in chats]


def bare_rate(model: Any, order: Sequence[Sequence[TrainingRow]], settings: Settings) -> float:
    """Tokens a second of the bare loop; its first step warms up and is repeated."""
    import torch

    model.to("cuda" if torch.cuda.is_available() else "cpu")
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    plain_step(model, optimizer, order[0], settings.bf16)
    begun = time.perf_counter()
    for batch in order:
        plain_step(model, optimizer, batch, settings.bf16)
    return sum(len(row.tokens) for batch in order for row in batch) / (time.perf_counter() - begun)


def plain_step(model: Any, optimizer: Any, batch: Sequence[TrainingRow], bf16: bool) -> float:
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
    ids, mask, labels = ids.to(model.device), mask.to(model.device), labels.to(model.device)
    with torch.autocast(model.device.type, torch.bfloat16, enabled=bf16):
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return float(loss.detach())


def _show(progress: Progress) -> None:
    print(f"step {progress.step}: loss {progress.loss:.3f}, {progress.tokens_per_second:.0f}/s", file=sys.stderr)


if __name__ == "__main__":
    main()
