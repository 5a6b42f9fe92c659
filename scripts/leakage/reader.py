"""Training of the reader: all six layers of the embedding model and a head with three classes.

All weights of the layers are trained because smaller changes were worse (docs/log/leakage.md). After each epoch the
state is saved beside the output, so the same command continues an interrupted training.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from localsim.leakage import reader
from localsim.leakage.embeddings import encoder_and_tokenizer
from localsim.leakage.pairs import LABELS, LabelledPair, Pair
from scripts.leakage import data

RATE, BATCH, WARM_UP = 1e-4, 16, 0.1
STRANGERS = 0.15
"""Pairs with an unrelated fact for each pair, drawn again in each epoch."""
MINED = 0.12
"""Hard negatives for each pair, in every epoch after the first."""
GROUND = 14_000
"""The reader of the first epoch scores so many pairs without a disclosure, from which the hard negatives come."""
TELL_EVERY = 20.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True)
class Settings:
    """What the result depends on, beside the data."""

    share: float = 1.0
    epochs: int = 3
    mined: bool = True
    seed: int = 1
    dtype: str = "bfloat16"
    max_pairs: int | None = None
    """Take only so many pairs, to try the command."""
    go_on: bool = False
    """Start from the reader in use, and learn from late conversations (`data.LATE`) with a share of the other rows."""


def rows_to_learn(share: float, most: int | None, seed: int) -> list[LabelledPair]:
    """Return what a reader learns from: labelled pairs, turns of conversations, plain statements; at most so many."""
    rows = [*data.training_pairs(share), *data.from_talks(data.training_talks(share))]
    rows += data.in_so_many_words(rows)
    return rows if most is None else random.Random(seed).sample(rows, min(most, len(rows)))


def rows_to_go_on(share: float, seed: int) -> list[LabelledPair]:
    """Return all turns of late conversations that tell or hint, some silent ones, and a share of the other rows."""
    late = data.in_late_talks(data.late_talks())
    others = rows_to_learn(1.0, None, seed)
    return [*late, *random.Random(seed).sample(others, int(share * len(others)))]


def material(settings: Settings) -> tuple[list[LabelledPair], list[LabelledPair]]:
    """Return the rows to learn from, and the pairs without a disclosure that hard negatives come from."""
    most = settings.max_pairs
    if settings.go_on:
        rows = rows_to_go_on(settings.share, settings.seed)
        rows = rows if most is None else random.Random(settings.seed).sample(rows, most)
        talks, labelled, ground = data.late_talks(), [], GROUND // 4
    else:
        rows = rows_to_learn(settings.share, most, settings.seed)
        talks, labelled, ground = data.training_talks(settings.share), data.training_pairs(settings.share), GROUND
    mined = data.mining_ground(talks, labelled, ground if most is None else most, settings.seed)
    return rows, mined if settings.mined else []


def make(settings: Settings, file: Path, device: str) -> None:
    """Train a reader and write it to a file. Raises OSError if the file cannot be written."""
    rows, ground = material(settings)
    rng = random.Random(settings.seed)
    training = Training(settings, device, rng, file.with_suffix(".checkpoint.pt"))
    training.run(rows, ground)
    stored = {name: array.cpu().numpy() for name, array in training.arrays().items()}
    small = {name: array if array.dtype == np.int8 else array.astype(np.float16) for name, array in stored.items()}
    np.savez_compressed(file, **small)  # type: ignore[arg-type]
    training.checkpoint.unlink(missing_ok=True)


class Training:
    """A reader in training."""

    def __init__(self, settings: Settings, device: str, rng: random.Random, checkpoint: Path) -> None:
        torch.manual_seed(settings.seed)
        self.settings, self.device, self.rng, self.checkpoint = settings, device, rng, checkpoint
        self.encoder, self.tokenizer = encoder_and_tokenizer()
        self.before = {name: layer.weight.detach().clone() for name, layer in layers_of(self.encoder).items()}
        self.encoder.to(device)
        for parameter in self.encoder.parameters():
            parameter.requires_grad = False
        self.layers = layers_of(self.encoder)
        self.head = torch.nn.Linear(2 * self.encoder.config.hidden_size, len(LABELS)).to(device)
        if settings.go_on:
            self._load(reader.FILE)
        for layer in self.layers.values():
            layer.weight.requires_grad = True
        trained = [*(layer.weight for layer in self.layers.values()), *self.head.parameters()]
        self.optimizer = torch.optim.AdamW(trained, lr=RATE, weight_decay=0.01)
        self.step = self.epoch = 0
        self.hard: list[int] = []
        """Places of the hard negatives in the ground."""

    def run(self, rows: Sequence[LabelledPair], ground: Sequence[LabelledPair]) -> None:
        """Train from where the checkpoint is, or from the beginning."""
        self._continue(len(rows))
        mined = min(int(MINED * len(rows)), len(ground))
        counts = [int(len(rows) * (1 + STRANGERS)) + (mined if epoch else 0) for epoch in range(self.settings.epochs)]
        total = sum(count // BATCH + 1 for count in counts)
        progress = _Progress(sum(counts), sum(counts[: self.epoch]))
        while self.epoch < self.settings.epochs:
            hard = [ground[place] for place in self.hard]
            chosen = [*rows, *data.strangers(rows, STRANGERS, self.rng), *hard]
            self.encoder.train()
            for part in batches(chosen, self.rng):
                self._learn(part, total, progress)
            self.epoch += 1
            if self.epoch == 1 and mined:
                progress.say(f"looking for hard negatives among {len(ground)} pairs")
                places = {id(row): place for place, row in enumerate(ground)}
                self.hard = [places[id(row)] for row in data.hardest(ground, self.scores, mined)]
            self._save(len(rows))
            progress.say(f"epoch {self.epoch} of {self.settings.epochs} ended, {progress.text()}")

    def _learn(self, part: Sequence[LabelledPair], total: int, progress: _Progress) -> None:
        highest = RATE / 2 if self.settings.go_on else RATE
        for group in self.optimizer.param_groups:
            group["lr"] = highest * min(1, self.step / (WARM_UP * total)) * max(0, 1 - self.step / total)
        wanted = torch.tensor([LABELS.index(row.label) for row in part], device=self.device)
        loss = torch.nn.functional.cross_entropy(
            self._classified([row.pair for row in part]).float(), wanted, label_smoothing=0.05
        )
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        progress.add(len(part), loss.item())

    def _classified(self, pairs: Sequence[Pair]) -> torch.Tensor:
        texts = [reader.texts_of(pair) for pair in pairs]
        half = self.settings.dtype == "bfloat16"
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=half):
            return reader.classify(self.encoder, self.tokenizer, (self.head.weight, self.head.bias), texts)

    def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the probability of a disclosure of each pair, in order."""
        self.encoder.eval()
        order = sorted(range(len(pairs)), key=lambda place: sum(map(len, reader.texts_of(pairs[place]))))
        found = [0.0] * len(pairs)
        with torch.inference_mode():
            for start in range(0, len(order), 2 * BATCH):
                places = order[start : start + 2 * BATCH]
                scores = self._classified([pairs[place] for place in places]).float()
                for place, chance in zip(places, torch.softmax(scores, -1)[:, 2].tolist(), strict=True):
                    found[place] = chance
        return found

    def arrays(self) -> dict[str, torch.Tensor]:
        """Return the head, and the change of each weight in 8 bits."""
        found = {"head.weight": self.head.weight.detach(), "head.bias": self.head.bias.detach()}
        for name, layer in self.layers.items():
            change = layer.weight.detach().cpu() - self.before[name]
            scale = (change.abs().amax(1, keepdim=True) / 127).clamp_min(1e-12)
            found[f"{name}.scale"], found[f"{name}.change"] = scale, (change / scale).round().to(torch.int8)
        return found

    def _load(self, file: Path) -> None:
        with np.load(file) as stored:
            arrays = {name: torch.from_numpy(stored[name].astype(np.float32)) for name in stored.files}
        reader.merge(self.encoder, arrays)
        self.head.load_state_dict({name: arrays[f"head.{name}"] for name in ("weight", "bias")})

    def _save(self, rows: int) -> None:
        state: dict[str, Any] = {
            "settings": asdict(self.settings) | {"rows": rows},
            "weights": {name: layer.weight.detach().cpu() for name, layer in self.layers.items()},
            "head": {name: value.cpu() for name, value in self.head.state_dict().items()},
            "optimizer": self.optimizer.state_dict(),
            "numbers": {"step": self.step, "epoch": self.epoch, "hard": self.hard},
            "random": self.rng.getstate(),
            "torch": torch.get_rng_state(),
        }
        scratch = self.checkpoint.with_suffix(".part")
        torch.save(state, scratch)
        scratch.replace(self.checkpoint)

    def _continue(self, rows: int) -> None:
        if not self.checkpoint.is_file():
            return
        state = torch.load(self.checkpoint, map_location="cpu", weights_only=False)
        if state["settings"] != asdict(self.settings) | {"rows": rows}:
            print(f"{self.checkpoint} is of another training: from the beginning", file=sys.stderr, flush=True)
            return
        with torch.no_grad():
            for name, layer in self.layers.items():
                layer.weight.copy_(state["weights"][name])
        self.head.load_state_dict(state["head"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.rng.setstate(state["random"])
        torch.set_rng_state(state["torch"])
        numbers = state["numbers"]
        self.step, self.epoch, self.hard = numbers["step"], numbers["epoch"], numbers["hard"]
        print(f"continuing after epoch {self.epoch}", file=sys.stderr, flush=True)


class _Progress:
    """Lines on stderr: pairs done, loss, pairs a second, and the minutes that are left."""

    def __init__(self, total: int, done: int) -> None:
        self._total, self._begun_at, self._done = total, done, done
        self._begun = self._told = time.perf_counter()
        self._losses: list[float] = []

    def add(self, pairs: int, loss: float) -> None:
        """Count a batch, and print a line from time to time."""
        self._done += pairs
        self._losses.append(loss)
        if time.perf_counter() - self._told >= TELL_EVERY:
            self._told = time.perf_counter()
            self.say(self.text())

    def text(self) -> str:
        """Return how far the training is."""
        rate = (self._done - self._begun_at) / (time.perf_counter() - self._begun)
        left = max(0, self._total - self._done) / max(rate, 1e-9) / 60
        loss = float(np.mean(self._losses[-200:] or [0.0]))
        return (
            f"{self._done} of {self._total} pairs, loss {loss:.3f}, {rate:.1f} pairs/s, about {left:.0f} minutes left"
        )

    def say(self, line: str) -> None:
        """Print a line."""
        print(line, file=sys.stderr, flush=True)


def layers_of(encoder: Any) -> dict[str, Any]:
    """Return the trained linear layers by name."""
    return {
        f"{number}.{part}": layer.get_submodule(part)
        for number, layer in enumerate(encoder.encoder.layer)
        for part in reader.PARTS
    }


def batches(rows: Sequence[LabelledPair], rng: random.Random) -> list[list[LabelledPair]]:
    """Shuffle the pairs into batches of similar length."""
    shuffled = rng.sample(list(rows), len(rows))
    found = []
    for start in range(0, len(rows), BATCH * 24):
        part = sorted(shuffled[start : start + BATCH * 24], key=lambda row: sum(map(len, reader.texts_of(row.pair))))
        found += [part[at : at + BATCH] for at in range(0, len(part), BATCH)]
    rng.shuffle(found)
    return found
