"""LoRA training of a GGUF chat model with transformers and peft; the one place of fine-tuning that imports torch.

The base is dequantized in memory and stays frozen. A step takes rows of one length class up to a number of tokens;
logits are computed only for target tokens.
LoRA: Hu et al. 2021, https://arxiv.org/abs/2106.09685
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import random
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from localsim.errors import BackendUnavailable
from localsim.finetune.chats import TrainingRow

CLEARLY = 0.8
"""bfloat16 is chosen below this share of float32's time. The margin makes repeated measurements choose the same: an
interrupted training continues only in the same number format."""


@dataclass(frozen=True)
class Settings:
    """Hyper-parameters of a training."""

    rank: int = 16
    alpha: float = 32.0
    learning_rate: float = 1e-3
    epochs: float = 1.0
    batch_tokens: int = 4096
    """Tokens of a step, padding included."""
    warmup: float = 0.03
    """Share of the steps during which the learning rate rises."""
    patience: int = 0
    """Evaluations without a better validation loss after which training stops; 0 never stops it."""
    evaluations: int = 4
    """Number of evaluations over the whole training."""
    seed: int = 1
    bf16: bool = False
    """Autocast to bfloat16; see `bf16_is_faster`."""


@dataclass
class Progress:
    """The state of a training."""

    step: int = 0
    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    loss: float = math.nan
    """Mean loss of the last steps in nats per target token."""
    history: list[dict[str, float]] = field(default_factory=list)
    """Validation: step, train loss, validation loss."""

    @property
    def tokens_per_second(self) -> float:
        """The training speed, prompt tokens included."""
        return self.tokens / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float:
        """The expected time to the end, at the pace so far."""
        return self.seconds / self.step * (self.steps - self.step) if self.step else math.nan


@dataclass(frozen=True)
class Trained:
    """A finished training: the adapter as peft saved it, and the last progress."""

    folder: Path
    progress: Progress
    best_loss: float
    """Validation loss of the saved adapter, in nats per target token."""


Show = Callable[[Progress], None]


@cache
def bf16_is_faster() -> bool:
    """Measure for a moment if this machine multiplies matrices clearly faster in bfloat16 than in float32. Processors
    with instructions for bfloat16 do; others take many times as long.
    """
    import torch

    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    tries = [(_product_seconds(torch.bfloat16), _product_seconds(torch.float32)) for _ in range(5)]
    short, long = (min(times) for times in zip(*tries, strict=True))
    return bool(short < CLEARLY * long)


def _product_seconds(dtype: Any) -> float:
    """Time one product of matrices that are as large as a small model's."""
    import torch

    left, right = torch.ones((256, 576), dtype=dtype), torch.ones((576, 1536), dtype=dtype)
    begun = time.perf_counter()
    torch.matmul(left, right)
    return time.perf_counter() - begun


def load_base(gguf: Path, *, bf16: bool) -> Any:
    """Load a GGUF chat model as a dense torch model. Raises BackendUnavailable if transformers cannot read it."""
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    try:
        with redirect_stderr(io.StringIO()):  # hides two progress bars; errors are raised
            return AutoModelForCausalLM.from_pretrained(
                str(gguf.parent),
                gguf_file=gguf.name,
                dtype=torch.bfloat16 if bf16 else torch.float32,
                quantization_config=GgufConfig(dequantize=True),
            )
    except (ValueError, KeyError, NotImplementedError, OSError) as error:
        raise BackendUnavailable(
            f"transformers cannot read {gguf.name}: {str(error).splitlines()[0]}",
            hint="its architecture must be one that transformers loads from GGUF (Llama, Qwen, Mistral, Gemma, ...)",
        ) from error


def with_lora(base: Any, settings: Settings) -> Any:
    """The base with untrained LoRA layers, in float32, beside all its linear layers."""
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(settings.seed)
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        target_modules="all-linear",
        lora_dropout=0.0,
        task_type="CAUSAL_LM",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # between peft and transformers
        return get_peft_model(base, config)


def batches(rows: Sequence[TrainingRow], tokens: int, rng: random.Random) -> list[list[TrainingRow]]:
    """Batches of rows of similar length, each up to `tokens` with padding, in random order."""
    keyed = sorted(rows, key=lambda row: len(row.tokens) + rng.random() * 32)
    found: list[list[TrainingRow]] = []
    for row in keyed:
        if found and (len(found[-1]) + 1) * max(len(row.tokens), *(len(r.tokens) for r in found[-1])) <= tokens:
            found[-1].append(row)
        else:
            found.append([row])
    rng.shuffle(found)
    return found


def loss_of(model: Any, batch: Sequence[TrainingRow]) -> tuple[Any, int]:
    """(sum of the losses in nats, number of target tokens) of a batch."""
    import torch
    from torch.nn.functional import cross_entropy

    device = next(model.parameters()).device
    length = max(len(row.tokens) for row in batch)
    ids = torch.zeros((len(batch), length), dtype=torch.long)
    learnt = torch.zeros((len(batch), length), dtype=torch.bool)
    for index, row in enumerate(batch):
        size = len(row.tokens)
        ids[index, :size] = torch.tensor(row.tokens)
        learnt[index, :size] = torch.tensor(row.learnt)
    ids, learnt = ids.to(device), learnt.to(device)
    inner = model.get_base_model()
    # The padding needs no mask: it follows a row's tokens, and attention only looks back.
    hidden = inner.model(input_ids=ids, use_cache=False).last_hidden_state
    logits = inner.lm_head(hidden[:, :-1][learnt[:, 1:]])
    return cross_entropy(logits.float(), ids[:, 1:][learnt[:, 1:]], reduction="sum"), int(learnt[:, 1:].sum())


class Trainer:
    """Trains on `rows` for `settings.epochs` epochs, and continues from a checkpoint."""

    def __init__(
        self,
        base: Any,
        rows: Sequence[TrainingRow],
        held_out: Sequence[TrainingRow],
        settings: Settings,
        start: Path | None = None,
    ) -> None:
        """`start`: a folder in which peft saved an adapter of the same rank, to start from."""
        import torch

        self.model = with_lora(base, settings)
        if start is not None:
            from peft import set_peft_model_state_dict
            from safetensors.torch import load_file

            set_peft_model_state_dict(self.model, load_file(str(start / "adapter_model.safetensors")))
        if torch.cuda.is_available():
            self.model.to("cuda")
        self.settings = settings
        self.held_out = list(held_out)
        self.order = list(_order(rows, settings))
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(parameters, lr=settings.learning_rate, weight_decay=0.0)
        self.progress = Progress(steps=len(self.order))

    def train(self, folder: Path, show: Show) -> Trained:
        """Train to the end, from `folder/checkpoint.pt` if it exists. Writes this file and an adapter `folder/best`."""
        folder.mkdir(parents=True, exist_ok=True)
        self._resume(folder)
        every = max(1, math.ceil(len(self.order) / max(1, self.settings.evaluations)))
        recent: list[float] = []
        try:
            for batch in self.order[self.progress.step :]:
                recent = [*recent[-49:], self.step(batch)]
                self.progress.loss = sum(recent) / len(recent)
                show(self.progress)
                if self.progress.step % every == 0 or self.progress.step == len(self.order):
                    self._evaluate(folder)
                    if self._stale():
                        break
        except KeyboardInterrupt:
            self._save(folder)
            raise
        best = min(point["validation"] for point in self.progress.history)
        return Trained(folder / "best", self.progress, best)

    def step(self, batch: Sequence[TrainingRow]) -> float:
        """Take one step of the optimizer; return the batch's loss in nats per target token."""
        import torch

        begun = time.perf_counter()
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * self._pace()
        self.model.train()
        with self._cast():
            total, count = loss_of(self.model, batch)
        loss = total / max(count, 1)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.optimizer.param_groups[0]["params"], 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.progress.step += 1
        self.progress.tokens += sum(len(row.tokens) for row in batch)
        self.progress.seconds += time.perf_counter() - begun
        return float(loss.detach())

    def validation(self) -> float:
        """The mean loss on the held-out rows in nats per target token; nan without such rows."""
        import torch

        self.model.eval()
        total, count = 0.0, 0
        with torch.no_grad(), self._cast():
            for batch in batches(self.held_out, self.settings.batch_tokens, random.Random(0)):
                loss, number = loss_of(self.model, batch)
                total, count = total + float(loss), count + number
        return total / count if count else math.nan

    def _cast(self) -> Any:
        import torch

        return torch.autocast(next(self.model.parameters()).device.type, torch.bfloat16, enabled=self.settings.bf16)

    def _pace(self) -> float:
        """The share of the learning rate for this step: a short rise, then a linear decline to 0."""
        done = self.progress.step / len(self.order)
        return min((self.progress.step + 1) / (len(self.order) * self.settings.warmup + 1), 1 - done)

    def _evaluate(self, folder: Path) -> None:
        loss = self.validation()
        earlier = [point["validation"] for point in self.progress.history]
        self.progress.history.append(
            {"step": float(self.progress.step), "train": self.progress.loss, "validation": loss}
        )
        if not earlier or math.isnan(loss) or loss < min(earlier):
            self.model.save_pretrained(str(folder / "best"))
        self._save(folder)

    def _save(self, folder: Path) -> None:
        """Write the checkpoint from which a training continues."""
        import torch

        state = {"progress": asdict(self.progress), "optimizer": self.optimizer.state_dict()}
        state["weights"] = {name: p.detach() for name, p in self.model.named_parameters() if p.requires_grad}
        part = folder / "checkpoint.part"
        torch.save(state, part)
        part.replace(folder / "checkpoint.pt")

    def _resume(self, folder: Path) -> None:
        import torch

        file = folder / "checkpoint.pt"
        mine = json.dumps(asdict(self.settings) | {"steps": len(self.order), "rows": self._digest()}, sort_keys=True)
        note = folder / "settings.json"
        if not file.is_file() or not note.is_file() or note.read_text() != mine:
            file.unlink(missing_ok=True)
            note.write_text(mine)
            return
        state = torch.load(file, weights_only=True)
        self.progress = Progress(**state["progress"])
        self.optimizer.load_state_dict(state["optimizer"])
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                if parameter.requires_grad:
                    parameter.copy_(state["weights"][name])

    def _digest(self) -> str:
        """A hash of training rows, held-out rows and base; a checkpoint with another hash is not continued."""
        digest = hashlib.sha256(repr(self.held_out).encode())
        for batch in self.order:
            digest.update(repr(batch).encode())
        weights = self.model.get_base_model().get_input_embeddings().weight
        digest.update(repr((tuple(weights.shape), float(weights.float().sum()))).encode())
        return digest.hexdigest()

    def _stale(self) -> bool:
        losses = [point["validation"] for point in self.progress.history]
        patience = self.settings.patience
        return bool(patience) and len(losses) > patience and min(losses[-patience:]) > min(losses[:-patience])


def _order(rows: Sequence[TrainingRow], settings: Settings) -> Iterator[list[TrainingRow]]:
    """The batches of all epochs; the last epoch may be a part."""
    rng = random.Random(settings.seed)
    left = settings.epochs
    while left > 0:
        found = batches(rows, settings.batch_tokens, rng)
        yield from found[: math.ceil(len(found) * min(1.0, left))]
        left -= 1
