"""LoRA training of a GGUF chat model with transformers and peft; the one place of fine-tuning that imports torch.

The base is dequantized in memory and stays frozen. A step takes rows of one length class up to a number of tokens;
logits are computed only for target tokens. On a GPU no step makes the host wait: batches are prepared ahead, and losses
stay there until progress is shown. A training begun on one device continues on the other.
LoRA: Hu et al. 2021, https://arxiv.org/abs/2106.09685
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import random
import shutil
import time
import warnings
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from localsim.errors import BackendUnavailable
from localsim.finetune.batches import Batch, ahead, batches, collated
from localsim.finetune.chats import TrainingRow
from localsim.finetune.instructions import bf16_runs
from localsim.finetune.quantized import InTheLoop

CLEARLY, TRIES = 0.8, 5
"""bfloat16 is chosen below this share of float32's time, in this number of steps of both. The margin makes repeated
measurements choose the same.
"""
SMALL_STEP, LARGE_STEP, STEPS = 4096, 32_768, 400
"""Tokens of a step. A GPU takes large steps where they leave this number of steps; few large steps learn less."""
SHOWN = 10
"""Steps between two readings of the loss."""
SAVED = 120.0
"""Seconds between two checkpoints, so that a training that is killed loses little."""


@dataclass(frozen=True)
class Settings:
    """Hyper-parameters of a training."""

    rank: int = 16
    alpha: float = 32.0
    learning_rate: float = 1e-3
    epochs: float = 1.0
    batch_tokens: int = 0
    """Tokens of a step, padding included; 0 chooses by device and data, see `step_tokens`."""
    warmup: float = 0.03
    """Share of the steps during which the learning rate rises."""
    patience: int = 0
    """Evaluations without a better validation loss after which training stops; 0 never stops it."""
    evaluations: int = 4
    """Number of evaluations over the whole training."""
    seed: int = 1
    bf16: bool = False
    """Autocast to bfloat16; see `bf16_is_faster`."""
    rounded: float = 0.0
    """Share of the layers whose weights are rounded to Q4_0 in a step, drawn anew for each step; 0 rounds none."""


@dataclass
class Progress:
    """The state of a training."""

    step: int = 0
    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    loss: float = math.nan
    """Mean loss of the last steps in nats per target token."""
    padding: int = 0
    """Tokens of padding, which `tokens` leaves out."""
    history: list[dict[str, float]] = field(default_factory=list)
    """Validation: step, train loss, validation loss."""
    formats: list[str] = field(default_factory=list)
    """Number format and device of each part of the training, such as "bfloat16 on cuda"."""

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
    batch_tokens: int
    """Tokens of a step, as chosen or given."""


Show = Callable[[Progress], None]


@cache
def bf16_is_faster() -> bool:
    """Train a model of two layers for some seconds in both number formats; True if bfloat16 is clearly faster.

    Both formats take turns, so that other processes slow down both, and the first step of each does not count. A
    processor that lacks instructions for bfloat16 takes many times as long, so the best steps must agree with most
    pairs of steps.
    """
    runs = bf16_runs()
    import torch

    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if not runs:
        return False
    trainers = [_small_trainer(bf16=bf16) for bf16 in (True, False)]
    pairs = [[_step_seconds(each) for each in trainers] for _ in range(TRIES + 1)][1:]
    best = [min(times) for times in zip(*pairs, strict=True)]
    agree = sum(short < CLEARLY * long for short, long in pairs)
    return best[0] < CLEARLY * best[1] and 2 * agree > TRIES


def _small_trainer(*, bf16: bool) -> Trainer:
    """Return a trainer of a model as wide as SmolLM2-135M, with two layers and a small vocabulary."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    config = LlamaConfig(
        vocab_size=2048,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=2,
        num_attention_heads=9,
        num_key_value_heads=3,
    )
    base = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16 if bf16 else torch.float32)
    row = TrainingRow([0] * 400, [0.0] * 300 + [1.0] * 100, "")
    return Trainer(base, [row] * 2, [], Settings(batch_tokens=2 * 400, epochs=TRIES + 1, bf16=bf16))


def _step_seconds(trainer: Trainer) -> float:
    begun = time.perf_counter()
    float(trainer.step(trainer.rows))  # reading the loss waits for the end of the step
    return time.perf_counter() - begun


def load_base(gguf: Path, *, bf16: bool) -> Any:
    """Load a GGUF chat model as a dense torch model.

    Raises BackendUnavailable if transformers cannot read it, or bfloat16 does not work here.
    """
    runs = not bf16 or bf16_runs()
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    if not runs and not torch.cuda.is_available():
        problem = "this machine ends a process that computes with bfloat16 (illegal instruction)"
        raise BackendUnavailable(problem, hint="train with --float32")
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
    from peft.tuners.tuners_utils import BaseTunerLayer

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
        model = get_peft_model(base, config)
    for module in model.modules():
        if settings.bf16 and isinstance(module, BaseTunerLayer):
            module.cast_input_dtype_enabled = False  # autocast converts; peft would convert to float32 first
    return model


def step_tokens(base: Any, rows: Sequence[TrainingRow]) -> int:
    """The tokens of a step where the settings leave them open: 4096, and on a GPU up to 32,768 if data and its memory
    allow.
    """
    import torch

    if not torch.cuda.is_available():
        return SMALL_STEP
    config = base.config.get_text_config()
    # Bytes that the backward pass needs for each token, as if all tokens were targets. Estimated, not measured.
    needed = (
        config.num_hidden_layers * (30 * config.hidden_size + 12 * config.intermediate_size) + 12 * config.vocab_size
    )
    room = int(0.7 * torch.cuda.get_device_properties(0).total_memory / needed)
    wanted = sum(len(row.tokens) for row in rows) // STEPS
    return max(SMALL_STEP, min(wanted, room, LARGE_STEP))


def peak_memory_mb() -> int:
    """The most memory that torch has held on the GPU, or that this process holds now."""
    import psutil
    import torch

    found = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else psutil.Process().memory_info().rss
    return round(found / 1e6)


def loss_of(model: Any, batch: Batch) -> Any:
    """The sum of the losses of a batch's targets in nats, each times its weight."""
    from torch.nn.functional import cross_entropy

    inner = model.get_base_model()
    # The padding needs no mask: it follows a row's tokens, and attention only looks back. Without a cache, transformers
    # would look for packed rows, which makes the host wait for the GPU.
    sight = {} if batch.seen is None else {"attention_mask": batch.seen, "position_ids": batch.positions}
    hidden = inner.model(input_ids=batch.ids, use_cache=True, **sight).last_hidden_state
    logits = inner.lm_head(hidden.flatten(0, 1).index_select(0, batch.places))
    return (cross_entropy(logits.float(), batch.targets, reduction="none") * batch.weights).sum()


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
        self._start = ""
        if start is not None:
            from peft import set_peft_model_state_dict
            from safetensors.torch import load

            content = (start / "adapter_model.safetensors").read_bytes()
            set_peft_model_state_dict(self.model, load(content))
            self._start = hashlib.sha256(content).hexdigest()
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model.to(self.device)
        self.settings = settings
        self._loop = InTheLoop(self.model, settings.rounded) if settings.rounded else None
        self.rows, self.held_out = list(rows), list(held_out)
        self._parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(self._parameters, lr=settings.learning_rate, weight_decay=0.0, fused=True)
        self.progress = Progress()
        self._plan(settings.batch_tokens or step_tokens(base, rows))

    def _plan(self, batch_tokens: int) -> None:
        self.batch_tokens = batch_tokens
        self.order = list(_order(self.rows, self.settings, batch_tokens))
        self.progress.steps = len(self.order)

    def train(self, folder: Path, show: Show) -> Trained:
        """Train to the end, from `folder/checkpoint.pt` if it exists. Writes this file and an adapter `folder/best`."""
        import torch

        folder.mkdir(parents=True, exist_ok=True)
        self._resume(folder)
        self._note_format()
        try:
            self._train(folder, show)
        except KeyboardInterrupt:
            self._save(folder)
            raise
        except torch.OutOfMemoryError as error:
            raise BackendUnavailable(
                f"the GPU has too little memory for steps of {self.batch_tokens} tokens",
                hint="repeat the command with CUDA_VISIBLE_DEVICES= before it, to train on the processor, "
                f"or use: localsim finetune --batch-tokens {self.batch_tokens // 2}",
            ) from error
        best = min(point["validation"] for point in self.progress.history)
        return Trained(folder / "best", self.progress, best, self.batch_tokens)

    def _train(self, folder: Path, show: Show) -> None:
        if self._due() and not self._evaluated():
            self._evaluate(folder)  # it was interrupted in this evaluation
        if self._stale():
            return
        recent: deque[Any] = deque(maxlen=50)
        begun = saved = time.perf_counter()
        for batch in ahead(self.order[self.progress.step :], self._collated):
            recent.append(self._take(batch))
            due = self._due()
            if due or self.progress.step % SHOWN == 1:
                self.progress.loss = _mean(recent)
            self.progress.seconds += time.perf_counter() - begun
            show(self.progress)
            if due:
                self._evaluate(folder)
                if self._stale():
                    return
            elif time.perf_counter() - saved > SAVED:
                self._save(folder)
                saved = time.perf_counter()
            begun = time.perf_counter()

    def _due(self) -> bool:
        """Return True if an evaluation follows the steps taken so far: the last one follows all steps."""
        step, last = self.progress.step, len(self.order)
        every = max(1, math.ceil(last / max(1, self.settings.evaluations)))
        return step == last or (step > 0 and step % every == 0)

    def _evaluated(self) -> bool:
        return any(point["step"] == self.progress.step for point in self.progress.history)

    def step(self, rows: Sequence[TrainingRow]) -> Any:
        """Take one step of the optimizer; return the loss in nats per target token, which stays on the device."""
        return self._take(self._collated(rows))

    def _collated(self, rows: Sequence[TrainingRow]) -> Batch:
        return collated(rows, pinned=self.device.type == "cuda")

    def _take(self, batch: Batch) -> Any:
        import torch

        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * self._pace()
        self.model.train()
        if self._loop:
            self._loop.draws.seed(f"{self.settings.seed}/{self.progress.step}")
        with self._cast():
            loss = loss_of(self.model, batch.to(self.device)) / (batch.weight or 1.0)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._parameters, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.progress.step += 1
        self.progress.tokens += batch.tokens
        self.progress.padding += batch.padding
        return loss.detach()

    def validation(self, *, rounded: bool = False) -> float:
        """The mean loss on the held-out rows in nats per target token; nan without such rows.

        `rounded`: with the weights of all layers as Q4_0 holds them; only for settings that round.
        """
        import torch

        self.model.eval()
        if self._loop:
            self._loop.all = rounded
        total, weight = torch.zeros((), device=self.device), 0.0
        with torch.no_grad(), self._cast():
            for batch in ahead(batches(self.held_out, self.batch_tokens, random.Random(0)), self._collated):
                total += loss_of(self.model, batch.to(self.device))
                weight += batch.weight
        return float(total) / weight if weight else math.nan

    def _cast(self) -> Any:
        import torch

        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.bf16)

    def _pace(self) -> float:
        """The share of the learning rate for this step: a short rise, then a linear decline to 0."""
        done = self.progress.step / len(self.order)
        return min((self.progress.step + 1) / (len(self.order) * self.settings.warmup + 1), 1 - done)

    def _evaluate(self, folder: Path) -> None:
        loss = self.validation()
        earlier = [point["validation"] for point in self.progress.history]
        if not earlier or math.isnan(loss) or loss < min(earlier):
            self.model.save_pretrained(str(folder / "best"), save_embedding_layers=False)
        # Only now: an evaluation that is interrupted before its weights are saved must be repeated.
        self.progress.history.append(
            {"step": float(self.progress.step), "train": self.progress.loss, "validation": loss}
        )
        self._save(folder)

    def _save(self, folder: Path) -> None:
        """Write the checkpoint from which a training continues."""
        import torch

        state: dict[str, Any] = {"progress": asdict(self.progress), "batch_tokens": self.batch_tokens}
        state["optimizer"] = self.optimizer.state_dict()["state"]
        state["weights"] = {name: p.detach() for name, p in self.model.named_parameters() if p.requires_grad}
        part = folder / "checkpoint.part"
        torch.save(state, part)
        part.replace(folder / "checkpoint.pt")

    def _resume(self, folder: Path) -> None:
        """Continue from a checkpoint of the same rows and settings; its device and number format may be others."""
        import torch

        file, note = folder / "checkpoint.pt", folder / "settings.json"
        settings = {key: value for key, value in asdict(self.settings).items() if key != "bf16"}
        mine = json.dumps(settings | {"rows": self._digest()}, sort_keys=True)
        if not file.is_file() or not note.is_file() or note.read_text() != mine:
            file.unlink(missing_ok=True)
            shutil.rmtree(folder / "best", ignore_errors=True)
            note.write_text(mine)
            return
        state = torch.load(file, map_location="cpu", weights_only=True)
        self._plan(state["batch_tokens"])
        self.progress = Progress(**state["progress"])
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state["optimizer"], "param_groups": groups})
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                if parameter.requires_grad:
                    parameter.copy_(state["weights"][name])

    def _note_format(self) -> None:
        name = f"{'bfloat16' if self.settings.bf16 else 'float32'} on {self.device.type}"
        if self.progress.formats[-1:] != [name]:
            self.progress.formats.append(name)

    def _digest(self) -> str:
        """A hash of training rows, held-out rows, start adapter and all weights of the base; a checkpoint with another
        hash is not continued. It takes about a second for 500 million weights.
        """
        import torch

        digest = hashlib.sha256(f"{len(self.rows)} {len(self.held_out)} {self._start}".encode())
        for row in (*self.rows, *self.held_out):
            digest.update(array("i", row.tokens).tobytes() + array("f", row.weights).tobytes())
            digest.update(array("i", (place for aside in row.asides for place in aside)).tobytes())
        for name, weights in self.model.named_parameters():
            if not weights.requires_grad:
                bits = weights.detach().to("cpu", torch.bfloat16)  # the same in both number formats
                digest.update(f"{name} {tuple(bits.shape)}".encode())
                digest.update(bits.contiguous().view(torch.int16).numpy())
        return digest.hexdigest()

    def _stale(self) -> bool:
        losses = [point["validation"] for point in self.progress.history]
        patience = self.settings.patience
        return bool(patience) and len(losses) > patience and min(losses[-patience:]) > min(losses[:-patience])


def _mean(losses: Sequence[Any]) -> float:
    """Read losses from the device, which waits for the steps under way."""
    import torch

    return float(torch.stack(list(losses)).mean())


def _order(rows: Sequence[TrainingRow], settings: Settings, batch_tokens: int) -> Iterator[list[TrainingRow]]:
    """The batches of all epochs; the last epoch may be a part."""
    rng = random.Random(settings.seed)
    left = settings.epochs
    while left > 0:
        found = batches(rows, batch_tokens, rng)
        yield from found[: math.ceil(len(found) * min(1.0, left))]
        left -= 1
