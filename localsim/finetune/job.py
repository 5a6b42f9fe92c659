"""One fine-tuning, from chats to an adapter with its card: split, train, export, describe."""

from __future__ import annotations

import json
import math
import platform
import random
import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from localsim.backends.llama.chat import ChatTokenizer
from localsim.backends.llama.lib import LlamaModel
from localsim.conversation.wording.layouts import FIRST
from localsim.errors import InvalidInput
from localsim.finetune.chats import Chat, TrainingRow, clipped, row_of
from localsim.finetune.trainer import Progress, Settings, Trained, Trainer, load_base, peak_memory_mb
from localsim.models import registry as models
from localsim.models.lora import write_adapter

LONGEST = 2048
"""Most tokens of a row; longer chats are left out and counted."""


@dataclass(frozen=True)
class Material:
    """Rows for training and validation, split by scenario."""

    train: list[TrainingRow]
    held_out: list[TrainingRow]
    left_out: int
    """Chats longer than LONGEST."""

    @property
    def tokens(self) -> int:
        """The number of tokens in the training rows, prompts included."""
        return sum(len(row.tokens) for row in self.train)

    def as_json(self) -> dict[str, int]:
        """The counts of rows, tokens and scenarios, as the card has them."""
        return {
            "rows": len(self.train),
            "rows_held_out": len(self.held_out),
            "chats_too_long": self.left_out,
            "tokens": self.tokens,
            "tokens_learnt": sum(row.learnt_tokens for row in self.train),
            "scenarios": len({row.group for row in self.train}),
            "scenarios_held_out": len({row.group for row in self.held_out}),
        }


def material(chats: Sequence[Chat], base: models.ModelFile, *, share: float, tokens: int | None, seed: int) -> Material:
    """Tokenize chats and split them: `share` of the scenarios (at least one of two or more) is held out for validation,
    and at most `tokens` are trained on. Raises InvalidInput if nothing is left.
    """
    rows, left_out = tokenized(chats, base)
    groups = sorted({row.group for row in rows})
    rng = random.Random(seed)
    rng.shuffle(groups)
    held = set(groups[: max(1, round(share * len(groups)))]) if len(groups) > 1 and share > 0 else set()
    train = [row for row in rows if row.group not in held]
    rng.shuffle(train)
    if tokens is not None:
        train = _within(train, tokens)
    if not train:
        raise InvalidInput(
            "no chats to train on", hint="choose a run with completed episodes, or widen --query or --tokens"
        )
    return Material(train, [row for row in rows if row.group in held], left_out)


def tokenized(chats: Sequence[Chat], base: models.ModelFile) -> tuple[list[TrainingRow], int]:
    """Return the rows of chats, and the number of chats that were left out because they are too long."""
    header = LlamaModel(base.path, vocab_only=True)
    tokenizer = ChatTokenizer(header)
    rows, left_out = clipped([row_of(chat, tokenizer) for chat in chats], min(LONGEST, header.n_ctx_train))
    header.free()
    return rows, left_out


def _within(rows: Sequence[TrainingRow], tokens: int) -> list[TrainingRow]:
    found: list[TrainingRow] = []
    for row in rows:
        if tokens < len(row.tokens):
            break
        tokens -= len(row.tokens)
        found.append(row)
    return found


def estimate(base: models.ModelFile, data: Material, settings: Settings) -> dict[str, Any]:
    """The minutes and memory of a training, measured on two real steps whose result is dropped."""
    trainer = Trainer(load_base(base.path, bf16=settings.bf16), data.train, data.held_out, settings)
    float(trainer.step(trainer.order[0]))
    longest = max(trainer.order, key=lambda batch: len(batch) * max(len(row.tokens) for row in batch))
    begun = time.perf_counter()
    float(trainer.step(longest))  # reading the loss waits for the end of the step
    rate = sum(len(row.tokens) for row in longest) / (time.perf_counter() - begun)
    total = sum(len(row.tokens) for batch in trainer.order for row in batch)
    return {
        "steps": len(trainer.order),
        "tokens_in_all": total,
        "tokens_per_second": round(rate),
        "minutes": round(total / rate / 60, 1),
        "memory_mb": peak_memory_mb(),
    }


def check_name(name: str, *, force: bool) -> None:
    """Raise InvalidInput, before hours of training, if an adapter cannot have this name; `force` replaces another."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}", name):
        hint = "--name takes letters, digits, '.', '_' and '-'"
        raise InvalidInput(f"{name!r} cannot be the name of an adapter", hint=hint)
    if not force and any(path.stem == name for path in models.adapter_files()):
        raise InvalidInput(f"an adapter {name} exists already", hint="choose another --name, or --force")


@dataclass(frozen=True)
class Job:
    """One training: its name, base, rows and settings."""

    name: str
    base: models.ModelFile
    base_name: str
    data: Material
    settings: Settings
    source: dict[str, Any]
    """The source of the chats, for the card."""
    layout: str = FIRST
    """The layout of the rows; the adapter names it, and is prompted in it."""


def finetune(job: Job, show: Callable[[Progress], None], folder: Path | None = None) -> Path:
    """Train, and write NAME.gguf and its card to `folder` (default: adapters/ of the first writable model folder).

    Continues a training of the same name, rows and settings that was interrupted.
    """
    folder = folder or models.writable_folder() / "adapters"
    folder.mkdir(exist_ok=True)
    work = folder / f".{job.name}.training"
    base = load_base(job.base.path, bf16=job.settings.bf16)
    trained = Trainer(base, job.data.train, job.data.held_out, job.settings).train(work, show)
    target = folder / f"{job.name}.gguf"
    export(trained, target, job.base, job.base_name, job.settings, job.layout)
    card = _card(job, trained)
    target.with_suffix(".json").write_text(json.dumps(card, indent=1, default=str) + "\n", encoding="utf-8")
    target.with_suffix(".md").write_text(card_text(card), encoding="utf-8")
    shutil.rmtree(work)
    return target


def export(
    trained: Trained, target: Path, base: models.ModelFile, base_name: str, settings: Settings, layout: str = FIRST
) -> None:
    """Write the adapter that peft saved as a GGUF file."""
    from safetensors.numpy import load_file

    weights = load_file(str(trained.folder / "adapter_model.safetensors"))
    write_adapter(
        target,
        weights,
        alpha=settings.alpha,
        base=base.path,
        base_name=base_name,
        base_sha256=base.sha256,
        layout=layout,
    )


def _card(job: Job, trained: Trained) -> dict[str, Any]:
    progress, history = trained.progress, trained.progress.history
    return {
        "name": job.name,
        "made_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "base": {"name": job.base_name, "file": job.base.path.name, "sha256": job.base.sha256},
        "layout": job.layout,
        "data": {**job.source, **job.data.as_json()},
        "settings": asdict(replace(job.settings, batch_tokens=trained.batch_tokens)),
        "formats": progress.formats,
        "losses": [{key: None if math.isnan(value) else value for key, value in point.items()} for point in history],
        "best_validation_loss": None if math.isnan(trained.best_loss) else trained.best_loss,
        "seconds": round(progress.seconds),
        "tokens_per_second": round(progress.tokens_per_second),
        "versions": {package: version(package) for package in ("localsim", "torch", "transformers", "peft", "gguf")},
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


def card_text(card: dict[str, Any]) -> str:
    """The card as Markdown, for people."""
    data, settings = card["data"], card["settings"]
    lines = [
        f"# {card['name']}",
        "",
        f"LoRA adapter for {card['base']['name']} (sha256 {card['base']['sha256'][:12]}...), made {card['made_utc']}.",
        "",
        f"- use: `localsim run ... --model {card['base']['name']}+{card['name']}`",
        f"- data: {data['rows']} chats, {data['tokens']} tokens, {data['tokens_learnt']} of them targets (own "
        f"turns), from {data['scenarios']} scenarios; {data['rows_held_out']} chats of {data['scenarios_held_out']} "
        "other scenarios held out; prompts in layout "
        f"{card['layout']}",
        f"- source: {json.dumps({key: data[key] for key in data if key not in _COUNTS}, default=str)}",
        f"- settings: rank {settings['rank']}, alpha {settings['alpha']:g}, learning rate "
        f"{settings['learning_rate']:g}, {settings['epochs']:g} epochs, {settings['batch_tokens']} tokens a step, "
        f"{', then '.join(card['formats'])}",
        f"- trained in {card['seconds'] / 60:.1f} minutes at {card['tokens_per_second']} tokens/s",
        f"- machine: {card['machine']}",
        f"- versions: {', '.join(f'{name} {number}' for name, number in card['versions'].items())}",
        "",
        "| step | training loss | validation loss |",
        "|---|---|---|",
        *(
            f"| {point['step']:.0f} | {_loss(point['train'])} | {_loss(point['validation'])} |"
            for point in card["losses"]
        ),
        "",
        "Losses are in nats per target token. The adapter has the weights of the lowest validation loss.",
    ]
    return "\n".join(lines) + "\n"


def _loss(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


_COUNTS = frozenset(Material([], [], 0).as_json())
