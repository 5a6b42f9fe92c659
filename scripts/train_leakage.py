#!/usr/bin/env python3
"""Train the leakage detector on scenarios/leakage and measure it on writers and files that training did not see.

    .venv/bin/python scripts/train_leakage.py words      # the cheap classifier and its ablation
    .venv/bin/python scripts/train_leakage.py reader     # fine-tunes the reader; repeat it to continue after a stop
    .venv/bin/python scripts/train_leakage.py fit        # the thresholds, with the curve of false alarms
    .venv/bin/python scripts/train_leakage.py table      # the figures, into docs/log/leakage.md

Run them in this order. The split by writer is in scripts/leakage/data.py. For a learning curve, train further readers
with `reader --share 0.25 --out quarter.npz` and so on, and name them: `curve 0.25=quarter.npz 0.5=half.npz`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.leakage.curve import DEFAULT_SHARE  # noqa: E402
from localsim.leakage.reader import FILE  # noqa: E402


@click.group()
def main() -> None:
    """Train and measure the leakage detector."""


@main.command("words")
@click.option("--max-pairs", type=click.IntRange(50), help="Take only so many pairs, and write nothing: a trial.")
def train_words(max_pairs: int | None) -> None:
    """Train the cheap classifier, write it to the weights, and print its ablation."""
    from scripts.leakage import words

    click.echo("\n".join(words.train(max_pairs)))


@main.command("reader")
@click.option(
    "--share", type=click.FloatRange(0, 1, min_open=True), default=1.0, show_default=True, help="Train on this share."
)
@click.option("--epochs", type=click.IntRange(1), default=3, show_default=True)
@click.option("--mined/--no-mined", default=True, show_default=True, help="Add hard negatives after the first epoch.")
@click.option(
    "--go-on",
    is_flag=True,
    help="Start from the reader in use: learn from the conversations with hints, and from a share of the rest.",
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), default=FILE, help="[the reader in use]")
@click.option("--seed", default=1, show_default=True)
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True)
@click.option("--dtype", type=click.Choice(["auto", "float32", "bfloat16"]), default="auto", show_default=True)
@click.option("--threads", type=click.IntRange(1), default=2, show_default=True, help="Compute with these on a CPU.")
@click.option("--max-pairs", type=click.IntRange(32), help="Take only so many pairs: a trial.")
def train_reader(
    share: float,
    epochs: int,
    mined: bool,
    go_on: bool,
    out: Path,
    seed: int,
    device: str,
    dtype: str,
    threads: int,
    max_pairs: int | None,
) -> None:
    """Train the reader. Run `fit` afterwards: thresholds belong to one reader."""
    import torch

    from localsim.finetune.trainer import bf16_is_faster
    from scripts.leakage import reader

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise click.UsageError("torch finds no CUDA device; use --device cpu")
    if dtype == "auto":
        dtype = "bfloat16" if bf16_is_faster() else "float32"
    torch.set_num_threads(threads)
    settings = reader.Settings(share, epochs, mined, seed, dtype, max_pairs, go_on)
    reader.make(settings, out, device)
    click.echo(f"wrote {out} ({out.stat().st_size / 2**20:.1f} MiB); next: fit")


@main.command("fit")
@click.option(
    "--of-train/--not-of-train",
    default=True,
    show_default=True,
    help="Use the conversations of train.* that `reader` leaves out; not for a reader that was trained on them.",
)
@click.option("--sensitivity", type=click.FloatRange(0.01, 0.3), default=DEFAULT_SHARE, show_default=True)
def fit_thresholds(of_train: bool, sensitivity: float) -> None:
    """Fit the thresholds to writers 13 and 14, measure them on held-out writers, and write both to the weights."""
    from scripts.leakage import fit

    click.echo("\n".join(fit.fit(of_train=of_train, share=sensitivity)))


@main.command("table")
@click.option("--of-train/--not-of-train", default=True, show_default=True, help="As for `fit`.")
def write_table(of_train: bool) -> None:
    """Measure held-out writers and test.*, and write the figures to docs/log/leakage.md."""
    from scripts.leakage import table

    click.echo(table.write(of_train=of_train))


@main.command("curve")
@click.argument("readers", nargs=-1, required=True, metavar="SHARE=FILE...")
def write_curve(readers: tuple[str, ...]) -> None:
    """Compare readers that were trained on shares of the labels with the one in use, in docs/log/leakage.md."""
    from scripts.leakage import table

    named = {}
    for value in readers:
        share, equals, file = value.partition("=")
        if not equals or not Path(file).is_file():
            raise click.UsageError(f"{value}: not SHARE=FILE with a file that is there")
        named[share] = Path(file)
    click.echo(table.write_curve(named))


@main.command("chat")
@click.argument("name")
@click.option("--model", default="smollm2-135m", show_default=True, help="Train an adapter of this chat model.")
@click.option("--pairs", type=click.IntRange(32), default=3000, show_default=True, help="Train on so many pairs.")
@click.option("--epochs", type=float, default=1.0, show_default=True)
@click.option("--seed", default=1, show_default=True)
def train_chat(name: str, model: str, pairs: int, epochs: float, seed: int) -> None:
    """A trial: train the adapter NAME of a chat model as reader. Compare it with `beside`."""
    from scripts.leakage import chat

    click.echo(f"wrote {chat.train(model, name, pairs, epochs, seed)}; next: beside {model}+{name} READER.npz")


@main.command("beside")
@click.argument("model")
@click.argument("reader", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def write_beside(model: str, reader: Path) -> None:
    """A trial: print how MODEL (a chat model with its adapter) and READER order held-out pairs, alone and together."""
    from scripts.leakage import chat

    click.echo(chat.compare(model, reader))


@main.command("judge")
@click.argument("model")
@click.option("--most", type=click.IntRange(1), default=40, show_default=True, help="Conversations of each file.")
def write_judge(model: str, most: int) -> None:
    """Print how MODEL as judge of leaks (`score --leak-judge`) and the detector read labelled conversations."""
    from scripts.leakage import judge

    click.echo(judge.compare(model, most))


if __name__ == "__main__":
    main()
