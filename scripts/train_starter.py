#!/usr/bin/env python3
"""Train the starters and the twin: conversations -> LoRA on a small instruct model -> models/*.lora.gguf.

    .venv/bin/python scripts/train_starter.py starter                # two cores: five lessons, one after the other
    .venv/bin/python scripts/train_starter.py starter --scale 30 --tokens-a-step 32768     # on a GPU
    .venv/bin/python scripts/train_starter.py starter --lesson scripts --start models/starter.lora.gguf      # continue
    .venv/bin/python scripts/train_starter.py starter-peeks
    .venv/bin/python scripts/train_starter.py starter-0.5b           # two cores: five hours, 14 GB; does not ship
    .venv/bin/python scripts/train_starter.py starter --show 5       # print five conversations and stop

The lessons of the starter: lists (of prices that suit or not, and of who knows whom), conversations in which one
question after the other is answered, all of these, mostly scripts, and whole conversations alone. A twin is an adapter
on top of the starter, with one lesson. starter-0.5b has a larger base and fewer lessons. Repeat a command to continue
an interrupted training. models/starter.md describes the data and the result.
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
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.backends.llama.chat import ChatTokenizer  # noqa: E402
from localsim.backends.llama.lib import LlamaModel  # noqa: E402
from localsim.finetune.chats import Chat, TrainingRow  # noqa: E402
from localsim.finetune.job import export  # noqa: E402
from localsim.finetune.trainer import Progress, Settings, Trained, Trainer, bf16_is_faster, load_base  # noqa: E402
from localsim.models import registry as models  # noqa: E402
from localsim.models.lora import peft_tensors, read_adapter  # noqa: E402
from scripts.starter import comparing, knowing  # noqa: E402
from scripts.starter.dataset import HONEST, PEEKS, PROBING, SCRIPTS, WHOLE, Mix, build  # noqa: E402
from scripts.starter.rows import Rows, made_rows  # noqa: E402

LONGEST = 1024
PART = 100
"""Number of conversations that one process makes at a time; the data do not depend on the number of processes."""


@dataclass(frozen=True)
class Lesson:
    """A part of a training, which starts from the weights of the part before."""

    name: str
    learning_rate: float
    talks: int
    """Number of conversations."""
    mix: Mix | None = None
    """None for a lesson without conversations."""
    prices: int = 0
    """Number of rows with lists of prices that suit or not."""
    people: int = 0
    """Number of rows with lists of questions about who knows whom."""


@dataclass(frozen=True)
class Target:
    """A model to train."""

    base: str
    rank: int
    seed: int
    lessons: tuple[Lesson, ...]


TARGETS = {
    "starter": Target(
        "smollm2-135m",
        24,
        1000,
        (
            Lesson("comparing", 1.5e-3, 0, prices=300, people=300),
            Lesson("probing", 1.2e-3, 300, PROBING, prices=40, people=40),
            Lesson("talks", 1e-3, 2400, HONEST, prices=80, people=80),
            Lesson("scripts", 1e-3, 900, SCRIPTS),
            Lesson("whole", 1e-3, 1300, WHOLE),
        ),
    ),
    "starter-0.5b": Target(
        "qwen2.5-coder-0.5b",
        16,
        5000,
        (
            Lesson("talks", 7e-4, 700, HONEST),
            Lesson("whole", 6e-4, 450, WHOLE),
            Lesson("comparing", 7e-4, 0, prices=60, people=60),
            Lesson("probing", 7e-4, 260, PROBING, prices=30, people=30),
            Lesson("again", 6e-4, 800, WHOLE),
            Lesson("prices", 7e-4, 0, prices=250),
            Lesson("answers", 7e-4, 340, PROBING, prices=30),
            Lesson("last", 6e-4, 600, WHOLE, prices=25),
        ),
    ),
    "starter-peeks": Target("starter-135m", 24, 3000, (Lesson("talks", 1e-3, 1100, PEEKS),)),
}


def part(job: tuple[int, int, Mix, bool]) -> tuple[list[Chat], Counter[str]]:
    """Make one part of the data: chats, and the numbers of conversations by kind."""
    seed, talks, mix, held_out = job
    data = build(talks, seed, mix, held_out=held_out)
    return [chat for _, _, chat in data.chats], data.counts


def rows_of(
    lesson: Lesson, talks: int, seed: int, base: models.ModelFile, cache: Path, *, held_out: bool = False
) -> Rows:
    """Make the rows of a lesson's conversations on every core, or read those that were made before."""
    if lesson.mix is None:
        return Rows()
    jobs = [
        (seed + number, min(PART, talks - number * PART), lesson.mix, held_out)
        for number in range(math.ceil(talks / PART))
    ]
    package = [ROOT / "localsim" / name for name in ("families", "conversation", "finetune", "backends/llama/chat.py")]
    sources = [Path(__file__), ROOT / "scripts" / "starter", *package]
    return made_rows(part, jobs, base, longest=LONGEST, cache=cache, sources=sources)


def lists_of(prices: int, people: int, seed: int, base: models.ModelFile) -> list[TrainingRow]:
    """Make rows with lists of prices, and rows with lists of who knows whom."""
    model = LlamaModel(base.path, vocab_only=True)
    tokenizer = ChatTokenizer(model)
    found = comparing.rows(prices, seed, tokenizer) + knowing.rows(people, seed, tokenizer)
    model.free()
    return found


def unpacked(adapter: Path, torch_model: Any, base: Path, folder: Path) -> Path:
    """Write an adapter file as a folder from which the trainer starts; return the folder."""
    from safetensors.numpy import save_file

    layers = [name for name, _ in torch_model.named_modules() if name.endswith("_proj")]
    folder.mkdir(parents=True, exist_ok=True)
    save_file(peft_tensors(read_adapter(adapter), layers, base), str(folder / "adapter_model.safetensors"))
    return folder


def train(
    target: Target,
    lesson: Lesson,
    work: Path,
    start: Path | None,
    *,
    seed: int,
    scale: float,
    tokens_a_step: int,
    rounded: float = 0.0,
) -> tuple[Trained, Settings]:
    """Train one lesson in the folder `work`, and write a note of its data there. No two lessons share a seed."""
    base = models.resolve(target.base)
    seed += target.seed + 100_000 * target.lessons.index(lesson)
    begun = time.time()
    talks, prices, people = (math.ceil(scale * count) for count in (lesson.talks, lesson.prices, lesson.people))
    data = rows_of(lesson, talks, seed, base, work / "rows.npz")
    held = rows_of(lesson, max(20, talks // 40), seed, base, work / "held_out.npz", held_out=True)
    rows = data.rows + lists_of(prices, people, seed, base)
    held_rows = held.rows + lists_of(min(prices, 8), min(people, 8), seed + 500_000, base)
    counts = dict(data.counts) | {"lists": len(rows) - len(data.rows)}
    tokens = sum(len(row.tokens) for row in rows)
    print(f"{lesson.name}: {counts}, {data.longer} too long; {tokens} tokens, {time.time() - begun:.0f} s", flush=True)
    settings = Settings(
        rank=target.rank,
        alpha=2.0 * target.rank,
        learning_rate=lesson.learning_rate,
        batch_tokens=tokens_a_step,
        evaluations=4,
        seed=1,
        bf16=bf16_is_faster(),
        rounded=rounded,
    )
    torch_model = load_base(base.path, bf16=settings.bf16)
    if start is not None and start.is_file():
        start = unpacked(start, torch_model, base.path, work / "start")
    trainer = Trainer(torch_model, rows, held_rows, settings, start)
    trained = trainer.train(work, _show)
    note = {
        "talks": counts,
        "rows": len(rows),
        "tokens": tokens,
        "learnt_tokens": sum(row.learnt_tokens for row in rows),
        "settings": vars(settings),
        "formats": trained.progress.formats,
        "history": trained.progress.history,
        "validation_q4_0": trainer.validation(rounded=True) if rounded else None,
        "seconds": round(trained.progress.seconds),
        "tokens_per_second": round(trained.progress.tokens_per_second),
    }
    (work / "training.json").write_text(json.dumps(note, indent=1))
    return trained, settings


@click.command()
@click.argument("name", type=click.Choice(list(TARGETS)))
@click.option("--lesson", help="Begin with the lesson of this name [the first].")
@click.option("--scale", default=1.0, show_default=True, help="Multiply the amount of data of each lesson by this.")
@click.option("--tokens-a-step", default=2048, show_default=True, help="Number of tokens in a step.")
@click.option(
    "--rounded",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Train for a Q4_0 file: round this share of the layers in each step.",
)
@click.option("--seed", default=0, show_default=True, help="Number of the first part of the data, for other data.")
@click.option("--start", type=click.Path(path_type=Path, exists=True), help="Adapter to continue: a file or folder.")
@click.option("--work", type=click.Path(path_type=Path), help="Folder for an unfinished training [db/NAME].")
@click.option("--out", type=click.Path(path_type=Path), help="File of the adapter [models/NAME.lora.gguf].")
@click.option("--show", type=int, help="Print this many conversations and stop.")
def main(
    name: str,
    lesson: str | None,
    scale: float,
    tokens_a_step: int,
    rounded: float,
    seed: int,
    start: Path | None,
    work: Path | None,
    out: Path | None,
    show: int | None,
) -> None:
    """Generate the data, train lesson after lesson and write the adapter."""
    target = TARGETS[name]
    names = [each.name for each in target.lessons]
    if lesson not in (None, *names):
        raise click.BadParameter(f"{name} has no lesson {lesson}; it has {', '.join(names)}", param_hint="--lesson")
    first = names.index(lesson) if lesson else 0
    if show:
        mix = target.lessons[first if lesson else -1].mix or PROBING
        for kind, form, chat in build(show, target.seed + seed, mix).chats:
            print(f"==== {kind}, {form}", *(f"[{each.role}] {each.content}" for each in chat.messages), sep="\n")
        return
    work, out = work or ROOT / "db" / name, out or ROOT / "models" / f"{name}.lora.gguf"
    if start is None and first:
        start = work / names[first - 1] / "best"
        if not start.is_dir():
            raise click.UsageError(f"{start} is not there; train it first, or name an adapter with --start")
    for each in target.lessons[first:]:
        trained, settings = train(
            target, each, work / each.name, start, seed=seed, scale=scale, tokens_a_step=tokens_a_step, rounded=rounded
        )
        start = trained.folder
    export(trained, work / "adapter.gguf", models.resolve(target.base), target.base, settings)
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
