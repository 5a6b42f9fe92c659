"""A training that learns, stops, goes on, and writes an adapter with its card."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from localsim.__main__ import run
from localsim.backends.llama.chat import ChatTokenizer
from localsim.backends.llama.lib import LlamaModel
from localsim.cli import cli
from localsim.conversation.requests import Message
from localsim.errors import BackendUnavailable, InvalidInput
from localsim.finetune import source
from localsim.finetune import trainer as trainer_module
from localsim.finetune.batches import collated
from localsim.finetune.chats import Chat, TrainingRow, row_of
from localsim.finetune.trainer import Progress, Settings, Trainer, load_base, loss_of, step_tokens, with_lora
from localsim.models import registry as models
from tests import tiny_model

CHAT = Chat("Ana", (Message("system", "Be Ana."), Message("user", "Ben: Hi"), Message("assistant", "Ana: Blue.")), "g")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """torch in one thread: two threads that wait for each other on a busy machine take many times as long."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file of two layers with random weights; a step of training takes milliseconds."""
    return tiny_model.write(tmp_path_factory.mktemp("tiny") / "tiny.gguf", tiny_model.FAMILIES["llama-3"])


def row_for(path: Path) -> TrainingRow:
    """The chat as a row of tokens of a model."""
    model = LlamaModel(path, vocab_only=True)
    row = row_of(CHAT, ChatTokenizer(model))
    model.free()
    return row


@pytest.mark.model
@pytest.mark.usefixtures("one_thread")
@pytest.mark.verify
def test_the_starters_base_learns() -> None:
    """The default learning rate, two steps: the validation loss falls after each."""
    base = models.resolve("smollm2-135m").path
    row = row_for(base)
    settings = Settings(rank=2, alpha=4, epochs=3, batch_tokens=64, evaluations=3)
    trainer = Trainer(load_base(base, bf16=False), [row], [row], settings)
    losses = [trainer.validation()]
    for batch in trainer.order[:2]:
        trainer.step(batch)
        losses.append(trainer.validation())
    assert losses[0] > losses[1] > losses[2]


@pytest.mark.usefixtures("one_thread")
def test_a_training_learns_stops_and_goes_on(tiny: Path, tmp_path: Path) -> None:
    """Four steps at once, and two steps, a crash, and the other two: the same weights; the loss falls."""
    import torch
    from safetensors.torch import load_file

    row = row_for(tiny)
    settings = Settings(rank=2, alpha=4, epochs=4, batch_tokens=64, learning_rate=1e-2, evaluations=4)

    def trainer() -> Trainer:
        return Trainer(load_base(tiny, bf16=False), [row], [row], settings)

    whole = trainer().train(tmp_path / "whole", lambda _: None)
    losses = [point["validation"] for point in whole.progress.history]
    assert len(losses) == 4 and losses == sorted(losses, reverse=True) and losses[-1] < losses[0]

    class Crash(Exception):
        pass

    def crash(progress: Any) -> None:
        if progress.step == 3:
            raise Crash

    with pytest.raises(Crash):
        trainer().train(tmp_path / "parts", crash)
    steps: list[int] = []
    again = trainer().train(tmp_path / "parts", lambda progress: steps.append(progress.step))
    assert steps == [3, 4] and again.progress.step == 4
    one, other = (load_file(tmp_path / name / "best" / "adapter_model.safetensors") for name in ("whole", "parts"))
    assert set(one) == set(other)
    assert all(torch.allclose(one[key], other[key], atol=1e-5) for key in one)
    assert any(tensor.abs().max() > 0 for name, tensor in one.items() if "lora_B" in name), "it has learned something"


@pytest.mark.usefixtures("one_thread")
def test_the_loss_is_the_mean_by_weight(tiny: Path) -> None:
    """The weights of two halves mix their losses; a common factor changes nothing, and weight 0 leaves a token out."""
    plain = row_for(tiny)
    targets = [index for index, learnt in enumerate(plain.learnt) if learnt]
    model = with_lora(load_base(tiny, bf16=False), Settings(rank=2))

    def loss(some: float, others: float) -> float:
        weights = [0.0] * len(plain.tokens)
        for number, index in enumerate(targets):
            weights[index] = some if number < len(targets) // 2 else others
        batch = collated([replace(plain, weights=tuple(weights))], pinned=False)
        return float(loss_of(model, batch).detach()) / batch.weight

    halves = loss(1, 0), loss(0, 1)
    count, first = len(targets), len(targets) // 2
    assert loss(1, 1) == pytest.approx((first * halves[0] + (count - first) * halves[1]) / count)
    assert loss(3, 1) == pytest.approx((3 * first * halves[0] + (count - first) * halves[1]) / (2 * first + count))
    assert loss(2, 2) == pytest.approx(loss(1, 1))


@pytest.mark.usefixtures("one_thread")
def test_an_aside_counts_as_if_its_turn_were_a_row_of_its_own(tiny: Path) -> None:
    """One row with two asides, beside a longer plain one, has the loss of the turns as separate rows."""
    tokens, rows = [number % 90 + 5 for number in range(40)], []
    asides = [(20, 8), (28, 17)]
    for (start, at), end in zip(asides, (28, 40), strict=True):
        own = [*tokens[:at], *tokens[start:end]]
        rows.append(TrainingRow(own, [0.0] * (at + 3) + [1.0] * (len(own) - at - 3), "g"))
    weights = [1.0 if 23 <= place < 28 or place >= 31 else 0.0 for place in range(40)]
    plain = TrainingRow(list(range(5, 70)), [0.0] * 50 + [1.0] * 15, "g")
    model = with_lora(load_base(tiny, bf16=False), Settings(rank=2))

    def loss(*rows: TrainingRow) -> float:
        return float(loss_of(model, collated(rows, pinned=False)).detach())

    whole = TrainingRow(tokens, weights, "g", asides)
    assert loss(whole, plain) == pytest.approx(sum(map(loss, rows)) + loss(plain), rel=1e-4)
    assert loss(whole) != pytest.approx(loss(replace(whole, asides=())), rel=1e-3)
    assert whole.reach == 29 and rows[1].reach == 29


def other_sizes(row: TrainingRow) -> list[TrainingRow]:
    """Rows of four lengths, with weights."""
    sizes = [len(row.tokens) - number for number in range(4)]
    return [replace(row, tokens=row.tokens[:size], weights=tuple(range(size))) for size in sizes]


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("family", sorted(tiny_model.FAMILIES))
def test_the_loss_is_that_of_a_plain_model(family: str, tmp_path: Path) -> None:
    """transformers with a mask for the padding, in each architecture: with windows, shared heads and soft caps."""
    import torch
    from torch.nn.functional import cross_entropy

    path = tiny_model.write(tmp_path / "tiny.gguf", tiny_model.FAMILIES[family])
    rows = other_sizes(row_for(path))
    model = with_lora(load_base(path, bf16=False), Settings(rank=2)).eval()
    total = 0.0
    for row in rows:
        ids = torch.tensor([row.tokens])
        with torch.no_grad():
            logits = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, :-1]
        losses = cross_entropy(logits, ids[0, 1:], reduction="none")
        total += float((losses * torch.tensor(row.weights[1:])).sum())
    with torch.no_grad():
        assert float(loss_of(model, collated(rows, pinned=False))) == pytest.approx(total, rel=1e-4)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("bf16", [False, True])
def test_a_step_reads_nothing_from_the_device(bf16: bool, tiny: Path) -> None:
    """On a GPU each value that the host reads, and each search for places, would wait for all work under way."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.calls: list[str] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.calls.append(str(func))
            return func(*args, **(kwargs or {}))

    def waits(calls: list[str]) -> list[str]:
        reads = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "equal.default")
        return [call for call in calls if any(read in call for read in reads)]

    trainer = Trainer(load_base(tiny, bf16=bf16), other_sizes(row_for(tiny)), [], Settings(rank=2, bf16=bf16))
    batch = collated(trainer.order[0], pinned=False)
    with Watch() as watch:
        loss = trainer._take(batch)
    assert waits(watch.calls) == [] and any("_fused_adamw" in call for call in watch.calls)
    with Watch() as watch:
        float(loss)
    assert waits(watch.calls), "the watch sees a value that is read"


@pytest.mark.usefixtures("one_thread")
def test_a_training_goes_on_in_another_number_format(tiny: Path, tmp_path: Path) -> None:
    """As from a GPU to a processor: the size of its steps and its order stay, and the card names both formats."""
    row = row_for(tiny)
    rows = [replace(row, group=str(number)) for number in range(8)]
    small = len(row.tokens) * 2

    def trainer(*, bf16: bool) -> Trainer:
        settings = Settings(rank=2, epochs=2, evaluations=8, bf16=bf16)
        return Trainer(load_base(tiny, bf16=bf16), rows, [row], settings)

    class Crash(Exception):
        pass

    def crash(progress: Progress) -> None:
        if progress.step == 4:
            raise Crash

    first = trainer(bf16=True)
    first._plan(small)  # the size that a GPU would choose
    with pytest.raises(Crash):
        first.train(tmp_path, crash)
    steps: list[int] = []
    second = trainer(bf16=False)
    assert second.batch_tokens != small
    trained = second.train(tmp_path, lambda progress: steps.append(progress.step))
    assert steps == [4, 5, 6, 7, 8] and trained.batch_tokens == small
    assert trained.progress.formats == ["bfloat16 on cpu", "float32 on cpu"]
    assert [[r.group for r in batch] for batch in second.order] == [[r.group for r in batch] for batch in first.order]
    assert trained.progress.tokens == 16 * len(row.tokens) and trained.progress.padding == 0


def test_other_rows_or_weights_begin_anew(tiny: Path, tmp_path: Path) -> None:
    """A checkpoint of other weights is not continued."""
    row = row_for(tiny)

    def steps(row: TrainingRow) -> list[int]:
        seen: list[int] = []
        settings = Settings(rank=2, epochs=2, batch_tokens=64, evaluations=2)
        trainer = Trainer(load_base(tiny, bf16=False), [row], [row], settings)
        trainer.train(tmp_path, lambda progress: seen.append(progress.step))
        return seen

    assert steps(row) == [1, 2]
    assert steps(row) == []
    assert steps(replace(row, weights=tuple(2 * weight for weight in row.weights))) == [1, 2]


@pytest.mark.usefixtures("one_thread")
def test_a_digest_knows_every_weight_and_the_start(tiny: Path, tmp_path: Path) -> None:
    """Not only the embeddings: one weight of one layer, or another adapter to start from, begins anew."""
    import torch

    row = row_for(tiny)

    def trainer(*, bf16: bool = False, start: Path | None = None) -> Trainer:
        settings = Settings(rank=2, batch_tokens=64, learning_rate=1e-2, evaluations=1)
        return Trainer(load_base(tiny, bf16=bf16), [row], [row], settings, start)

    plain = trainer()._digest()
    assert trainer()._digest() == trainer(bf16=True)._digest() == plain
    other = trainer()
    frozen = dict(other.model.named_parameters())
    name = next(name for name in sorted(frozen) if "layers.1" in name and not frozen[name].requires_grad)
    with torch.no_grad():
        frozen[name].view(-1)[3] += 1
    assert other._digest() != plain
    starts = [trainer().train(tmp_path / "a", lambda _: None).folder]
    starts.append(trainer(start=starts[0]).train(tmp_path / "b", lambda _: None).folder)
    digests = {trainer(start=start)._digest() for start in starts}
    assert len(digests | {plain}) == 3
    moved = (tmp_path / "a").rename(tmp_path / "c") / "best"
    assert trainer(start=moved)._digest() in digests, "the content counts, not the folder"


@pytest.mark.usefixtures("one_thread")
def test_a_killed_training_goes_on_from_its_last_checkpoint(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkpoints are written between evaluations, and an interrupted evaluation is made up for."""
    row = row_for(tiny)
    steps: list[int] = []

    def trainer() -> Trainer:
        settings = Settings(rank=2, epochs=4, batch_tokens=64, evaluations=1)
        return Trainer(load_base(tiny, bf16=False), [row], [row], settings)

    def killed(progress: Progress) -> None:
        steps.append(progress.step)
        if progress.step == 3:
            raise SystemExit

    def interrupted(_trainer: Trainer) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(trainer_module, "SAVED", 0.0)
    with pytest.raises(SystemExit):
        trainer().train(tmp_path, killed)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Trainer, "validation", interrupted)
        trainer().train(tmp_path, lambda progress: steps.append(progress.step))
    trained = trainer().train(tmp_path, lambda progress: steps.append(progress.step))
    assert steps == [1, 2, 3, 3, 4] and len(trained.progress.history) == 1
    assert (trained.folder / "adapter_model.safetensors").is_file()


def stop(*_: Any, **__: Any) -> Any:
    """Stand-in for a call during which the training is interrupted."""
    raise KeyboardInterrupt


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("part", ["validation", "save"])
def test_an_interrupted_evaluation_is_repeated(
    part: str, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the first of two evaluations, which is the better one: before its loss is known or while weights are saved."""
    from peft import PeftModel

    row = row_for(tiny)
    monkeypatch.setattr(Trainer, "validation", lambda trainer: float(trainer.progress.step))

    def trainer() -> Trainer:
        settings = Settings(rank=2, epochs=4, batch_tokens=64, evaluations=2)
        return Trainer(load_base(tiny, bf16=False), [row], [row], settings)

    place, name = (Trainer, "validation") if part == "validation" else (PeftModel, "save_pretrained")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(place, name, stop)
        trainer().train(tmp_path, lambda _: None)
    steps: list[int] = []
    trained = trainer().train(tmp_path, lambda progress: steps.append(progress.step))
    assert steps == [3, 4] and [point["step"] for point in trained.progress.history] == [2.0, 4.0]
    assert (trained.folder / "adapter_model.safetensors").is_file()


@pytest.mark.usefixtures("one_thread")
def test_a_training_that_begins_anew_keeps_no_weights_of_another(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = row_for(tiny)

    def trainer(epochs: float) -> Trainer:
        settings = Settings(rank=2, epochs=epochs, batch_tokens=64, evaluations=1)
        return Trainer(load_base(tiny, bf16=False), [row], [row], settings)

    best = trainer(1).train(tmp_path, lambda _: None).folder / "adapter_model.safetensors"
    assert best.is_file()
    monkeypatch.setattr(Trainer, "validation", stop)
    with pytest.raises(KeyboardInterrupt):
        trainer(2).train(tmp_path, lambda _: None)
    assert not best.exists()


@pytest.mark.usefixtures("one_thread")
def test_a_training_that_stopped_early_takes_no_further_step(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, losses, steps = row_for(tiny), iter([1.0, 2.0]), []
    monkeypatch.setattr(Trainer, "validation", lambda _self: next(losses))
    for _ in range(2):
        settings = Settings(rank=2, epochs=4, batch_tokens=64, evaluations=4, patience=1)
        trainer = Trainer(load_base(tiny, bf16=False), [row], [row], settings)
        trained = trainer.train(tmp_path, lambda progress: steps.append(progress.step))
        assert trained.best_loss == 1.0
    assert steps == [1, 2]


@pytest.mark.parametrize(
    ("gigabytes", "tokens", "expected"), [(0, 10**8, 4096), (80, 10**8, 32_768), (80, 10**5, 4096), (8, 10**8, 4096)]
)
def test_a_gpu_takes_large_steps_where_memory_and_data_allow(
    gigabytes: int, tokens: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from transformers import LlamaConfig

    config = LlamaConfig(vocab_size=49_152, num_hidden_layers=30, hidden_size=576, intermediate_size=1536)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gigabytes > 0)
    memory = SimpleNamespace(total_memory=gigabytes * 10**9)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: memory)
    row = TrainingRow(range(tokens // 100), (), "g")
    assert step_tokens(SimpleNamespace(config=config), [row] * 100) == expected


@pytest.mark.usefixtures("one_thread")
def test_too_little_memory_is_one_clear_error(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def full(*_: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    row = row_for(tiny)
    trainer = Trainer(load_base(tiny, bf16=False), [row], [row], Settings(rank=2, batch_tokens=512))
    monkeypatch.setattr(trainer_module, "loss_of", full)
    with pytest.raises(BackendUnavailable, match="512 tokens") as caught:
        trainer.train(tmp_path, lambda _: None)
    hint = str(caught.value.hint)
    assert "localsim finetune --batch-tokens 256" in hint, "other commands have no such option"
    assert "CUDA_VISIBLE_DEVICES=" in hint, "a study continues with this"


@pytest.mark.usefixtures("one_thread")
def test_the_command_writes_an_adapter_that_llama_cpp_loads(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALSIM_MODELS", str(tmp_path / "models"))
    (tmp_path / "models").mkdir()
    chats = [Chat(CHAT.name, CHAT.messages, f"scenario {number}") for number in range(4)]
    source.write_chats(chats, "sft", tmp_path / "chats.jsonl")
    command = ["finetune", "chats.jsonl", "--name", "blue", "--base", str(tiny), "--rank", "2", "--float32", "--json"]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output
    card = json.loads(result.stdout)
    assert card["data"] | {"file": "chats.jsonl", "rows": 3, "rows_held_out": 1} == card["data"]
    assert card["settings"]["rank"] == 2 and len(card["losses"]) == 1
    file = models.resolve(f"{tiny}+blue")
    assert file.adapter == Path(card["path"])
    LlamaModel(file.path, adapter=file.adapter).free()
    assert "data: 3 chats" in CliRunner().invoke(cli, ["adapters", "show", "blue"]).stdout
    again = CliRunner().invoke(cli, command)
    assert isinstance(again.exception, InvalidInput) and "--force" in str(again.exception.hint)


def test_a_file_of_brackets_is_one_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "deep.jsonl").write_text("[" * 20_000 + "\n")
    assert run(["finetune", "deep.jsonl"]) == 3
    printed = capsys.readouterr()
    assert "deep.jsonl:1: " in printed.err and "nested too deep" in printed.err
    assert "Traceback" not in printed.err and not printed.out


@pytest.mark.parametrize(
    ("short", "long", "taken"),
    [
        ([9, 0.5, 0.5, 0.5, 0.5, 0.5], [1, 1, 1, 1, 1, 1], True),
        ([0.1, 0.95, 0.95, 0.95, 0.95, 0.95], [9, 1, 1, 1, 1, 1], False),
        ([1, 0.5, 7, 0.5, 0.5, 9], [1, 1, 1, 1, 8, 1], True),
        ([1, 6, 6, 6, 6, 0.1], [1, 1, 1, 1, 1, 1], False),
        ([1, 6, 6, 6, 6, 6], [1, 9, 9, 9, 1, 9], False),
    ],
    ids=["faster", "only at first", "disturbed", "fast once", "slow at best"],
)
def test_bfloat16_is_taken_where_it_is_clearly_and_mostly_faster(
    short: list[float], long: list[float], taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    times = {True: iter(short), False: iter(long)}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(trainer_module, "_small_trainer", lambda *, bf16: bf16)
    monkeypatch.setattr(trainer_module, "_step_seconds", lambda bf16: next(times[bf16]))
    trainer_module.bf16_is_faster.cache_clear()
    assert trainer_module.bf16_is_faster() is taken
    trainer_module.bf16_is_faster.cache_clear()


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("bf16", [False, True])
def test_the_number_formats_are_measured_on_steps_of_a_training(bf16: bool) -> None:
    """A step of forward and backward pass, with the adapters, as a training takes it."""
    trainer = trainer_module._small_trainer(bf16=bf16)
    trainer.rows = [replace(row, tokens=row.tokens[:40], weights=row.weights[-40:]) for row in trainer.rows[:1]]
    assert trainer_module._step_seconds(trainer) > 0 and trainer.progress.step == 1
    assert str(next(trainer.model.parameters()).dtype) == ("torch.bfloat16" if bf16 else "torch.float32")


def test_an_adapter_card_says_what_was_learnt() -> None:
    from localsim.finetune.job import Material, card_text

    data = Material([TrainingRow((1, 2), (False, True), "g")], [], 3)
    card = {
        "name": "x",
        "made_utc": "2026-01-01",
        "base": {"name": "b", "sha256": "f" * 64},
        "layout": "4",
        "data": {"run": "r", **data.as_json()},
        "settings": vars(Settings()),
        "formats": ["bfloat16 on cuda", "float32 on cpu"],
        "losses": [{"step": 1.0, "train": 2.0, "validation": 1.5}],
        "seconds": 60,
        "tokens_per_second": 300,
        "versions": {"torch": "2"},
        "machine": "m",
    }
    text = card_text(json.loads(json.dumps(card)))
    assert "tokens a step, bfloat16 on cuda, then float32 on cpu" in text
    assert "prompts in layout 4" in text
    assert "1 chats, 2 tokens, 1 of them targets" in text and '"run": "r"' in text and "| 1 | 2.000 | 1.500 |" in text
