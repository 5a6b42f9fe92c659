"""Training rows, sources, and a training that learns, stops, goes on and writes its card."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from localsim.__main__ import run
from localsim.backends.llama.chat import ChatTokenizer
from localsim.backends.llama.lib import LlamaModel
from localsim.cli import cli
from localsim.conversation.episode import EpisodeSpec
from localsim.conversation.exchange import Message
from localsim.conversation.modes import turn_by_turn
from localsim.conversation.scenario import LoadedScenario, Scenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.errors import InvalidInput
from localsim.finetune import source
from localsim.finetune import trainer as trainer_module
from localsim.finetune.chats import Chat, TrainingRow, chats_of, clipped, row_of
from localsim.finetune.trainer import Settings, Trainer, batches, load_base
from localsim.models import registry as models
from tests import tiny_model


@pytest.fixture(scope="session")
def tokenizer() -> ChatTokenizer:
    """Of the starter's base."""
    return ChatTokenizer(LlamaModel(models.resolve("smollm2-135m").path, vocab_only=True))


def spec_of(scenario: Scenario, mode: Any = "agents") -> EpisodeSpec:
    roles = ("writer",) if mode == "script" else scenario.names
    return EpisodeSpec(scenario=scenario, mode=mode, models=dict.fromkeys(roles, "m"), index=0, run_seed=1)


def spoken(names: tuple[str, ...], *texts: str) -> Transcript:
    turns = [Turn(number, names[number % 2], Action("speak", text)) for number, text in enumerate(texts)]
    turns[-1] = replace(turns[-1], action=Action("leave", turns[-1].action.text))
    return Transcript(tuple(turns))


def shown(row: TrainingRow, tokenizer: ChatTokenizer, *, learnt: bool) -> str:
    model = tokenizer._model
    parts = [
        model.piece(token) or model.token_text(token).encode()
        for token, wanted in zip(row.tokens, row.learnt, strict=True)
        if wanted or not learnt
    ]
    return b"".join(parts).decode()


def test_a_row_holds_the_tokens_that_the_engine_evaluates_and_writes(
    talk: LoadedScenario, tokenizer: ChatTokenizer
) -> None:
    """The prompt of the last own turn as the mode asks for it, then the rest of the line and the end mark."""
    scenario = talk.scenario
    names = scenario.names
    transcript = spoken(names, "Hello!", "Good day.", "How are you?", "Fine. Goodbye!")
    spec = spec_of(scenario)
    for chat in chats_of(scenario, "agents", transcript):
        row = row_of(chat, tokenizer)
        own = [turn for turn in transcript.turns if turn.speaker == chat.name]
        play = turn_by_turn(spec)
        step = next(play)
        prompts = []
        for turn in transcript.turns:
            request = step.request  # type: ignore[union-attr]
            prompts.append(tokenizer.prompt(request.messages, request.prefill))
            step = play.send(reply(turn))
            while not hasattr(step, "request") and turn is not transcript.turns[-1]:
                step = next(play)
        last = prompts[own[-1].index]
        assert list(row.tokens[: len(last)]) == last
        assert shown(row, tokenizer, learnt=True) == "".join(
            turn.line.removeprefix(chat.name) + "<|im_end|>" for turn in own
        )


def reply(turn: Turn) -> Any:
    from localsim.conversation.exchange import Generation

    text = turn.line.removeprefix(turn.speaker) + "\n"
    return Generation(text=text, cause="finished", model="m", evaluated_tokens=0, generated_tokens=0)


def test_no_row_shows_what_its_agent_may_not_know(talk: LoadedScenario, tokenizer: ChatTokenizer) -> None:
    scenario = talk.scenario
    one, other = scenario.names[:2]
    for chat in chats_of(scenario, "agents", spoken(scenario.names, "Hello!", "Hi.")):
        text = shown(row_of(chat, tokenizer), tokenizer, learnt=False)
        hidden = scenario.agent(other if chat.name == one else one)
        assert hidden.goal not in text
        assert all(fact.text not in text for fact in hidden.facts)


def test_a_script_is_one_row_and_its_speakers_lines_are_learnt(talk: LoadedScenario, tokenizer: ChatTokenizer) -> None:
    scenario = talk.scenario
    transcript = spoken(scenario.names, "Hello!", "Hi.", "Bye!")
    (chat,) = chats_of(scenario, "script", transcript)
    learnt = shown(row_of(chat, tokenizer), tokenizer, learnt=True)
    assert learnt == "\n".join(turn.line for turn in transcript.turns).removeprefix(scenario.names[0]) + "<|im_end|>"


def test_long_rows_are_left_out_and_counted() -> None:
    rows = [TrainingRow((1,) * size, (True,) * size, "g") for size in (5, 20)]
    assert clipped(rows, 10) == ([rows[0]], 1)


def test_batches_hold_every_row_once_and_keep_their_size() -> None:
    import random

    rows = [TrainingRow((number,) * (5 + number % 40), (True,) * (5 + number % 40), "g") for number in range(100)]
    found = batches(rows, 200, random.Random(1))
    assert sorted(row.tokens[0] for batch in found for row in batch) == list(range(100))
    assert all(len(batch) == 1 or len(batch) * max(len(row.tokens) for row in batch) <= 200 for batch in found)


# ---- sources -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", source.FORMATS)
def test_written_chats_are_read_back(form: str, tmp_path: Path) -> None:
    chat = Chat("Ana", (Message("system", "s"), Message("user", "u"), Message("assistant", "Ana: hi")), "scenario")
    path = tmp_path / "chats.jsonl"
    assert source.write_chats([chat], form, path) == 1
    assert source.chats_of_file(path) == [chat]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON"),
        ("[" * 5000, "nested too deep"),
        ('{"messages": ' + "[" * 200 + "]" * 200 + "}", "nested too deep"),
        ('{"messages": [{"role": "robot", "content": "x"}]}', "not a chat"),
        ('{"messages": [{"role": "user", "content": "x"}]}', "must end with a message of the assistant"),
        ("[]", "not a chat"),
    ],
)
def test_a_wrong_line_is_named(line: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text('{"messages": [{"role": "assistant", "content": "x"}]}\n' + line + "\n")
    with pytest.raises(InvalidInput, match=problem) as caught:
        source.chats_of_file(path)
    assert caught.value.where == f"{path}:2"


# ---- training ------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(("short", "taken"), [(0.5, True), (0.95, False), (9.0, False)])
def test_bfloat16_is_taken_where_it_is_clearly_faster(
    short: float, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(trainer_module, "_product_seconds", lambda dtype: short if dtype == torch.bfloat16 else 1.0)
    trainer_module.bf16_is_faster.cache_clear()
    assert trainer_module.bf16_is_faster() is taken
    trainer_module.bf16_is_faster.cache_clear()


def test_an_adapter_card_says_what_was_learnt() -> None:
    from localsim.finetune.job import Material, card_text

    data = Material([TrainingRow((1, 2), (False, True), "g")], [], 3)
    card = {
        "name": "x",
        "made_utc": "2026-01-01",
        "base": {"name": "b", "sha256": "f" * 64},
        "data": {"run": "r", **data.as_json()},
        "settings": vars(Settings()),
        "losses": [{"step": 1.0, "train": 2.0, "validation": 1.5}],
        "seconds": 60,
        "tokens_per_second": 300,
        "versions": {"torch": "2"},
        "machine": "m",
    }
    text = card_text(json.loads(json.dumps(card)))
    assert "tokens a step, float32" in text
    assert "1 chats, 2 tokens, 1 of them targets" in text and '"run": "r"' in text and "| 1 | 2.000 | 1.500 |" in text


def test_a_reply_that_repeats_what_was_said_is_told_apart(tokenizer: ChatTokenizer) -> None:
    messages = (Message("user", "Hi"), Message("assistant", "Hi"), Message("user", "Hi"), Message("assistant", "Bye"))
    row = row_of(Chat("", messages, "g"), tokenizer)
    assert shown(row, tokenizer, learnt=True) == "Hi<|im_end|>Bye<|im_end|>"
