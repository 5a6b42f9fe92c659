#!/usr/bin/env python3
"""Measure the perplexity of model files on conversations like those that the starter was trained on.

    .venv/bin/python scripts/eval_types.py starter starter-135m-q4_0

The conversations are those of the starter's last lesson, in all three forms, with other seeds and situations; only
words that the lesson teaches count. A model is a name or a file; all need the same tokenizer. The interval is that of
the ratio to the first model, over conversations.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim import stats  # noqa: E402
from localsim.backends.engines import load  # noqa: E402
from localsim.backends.llama.chat import ChatTokenizer  # noqa: E402
from localsim.backends.llama.lib import LlamaModel  # noqa: E402
from localsim.backends.llama.raw import RawContext  # noqa: E402
from localsim.backends.open import physical_cores  # noqa: E402
from localsim.finetune.chats import TrainingRow, row_of  # noqa: E402
from localsim.models.registry import resolve  # noqa: E402
from scripts.starter.dataset import WHOLE, build  # noqa: E402
from scripts.tables import markdown_table  # noqa: E402

SEED, LONGEST = 970_000, 2048


def loss(context: RawContext, row: TrainingRow) -> float:
    """Nats of the tokens that the row teaches."""
    logs = context.logs(row.tokens)
    return -sum(log for log, weight in zip(logs, row.weights[1:], strict=True) if weight)


def rows_of(model: LlamaModel, talks: int) -> list[TrainingRow]:
    """Return the conversations as rows of a model's tokens."""
    tokenizer = ChatTokenizer(model)
    rows = [row_of(chat, tokenizer) for _, _, chat in build(talks, SEED, WHOLE, held_out=True).chats]
    return [row for row in rows if len(row.tokens) <= LONGEST]


@click.command()
@click.argument("models", nargs=-1, required=True)
@click.option("--talks", default=100, show_default=True, help="Number of conversations.")
def main(models: tuple[str, ...], talks: int) -> None:
    """Print a table with one row for each model."""
    rows: list[TrainingRow] = []
    nats: list[list[float]] = []
    cells: list[list[str]] = []
    for name in models:
        found = resolve(name)
        model = load(found, threads=physical_cores())
        rows = rows or rows_of(model, talks)
        context = RawContext(model, sequences=1, context=LONGEST, threads=physical_cores())
        nats.append([loss(context, row) for row in rows])
        context.close()
        model.free()
        cells.append([name, f"{found.path.stat().st_size / 1e6:.0f} MB", *_cells(nats[-1], nats[0], rows)])
    words = sum(row.learnt_tokens for row in rows)
    print(markdown_table(["model", "file", f"perplexity of {words} tokens", "ratio to the first"], cells))


def _cells(own: list[float], first: list[float], rows: list[TrainingRow]) -> list[str]:
    counts = [row.learnt_tokens for row in rows]
    perplexity = math.exp(sum(own) / sum(counts))
    if own is first:
        return [f"{perplexity:.3f}", ""]
    more = {
        str(number): [(here - there) / count] * count
        for number, (here, there, count) in enumerate(zip(own, first, counts, strict=True))
    }
    ratio, low, high = (math.exp(each or 0.0) for each in stats.clustered(more, number=True)[:3])
    return [f"{perplexity:.3f}", f"{ratio:.3f} [{low:.3f}, {high:.3f}]"]


if __name__ == "__main__":
    main()
