"""Six families of chat templates with their real special tokens, on tiny models of other architectures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from localsim.backends.llama.chat import ChatTokenizer
from localsim.backends.llama.lib import LlamaModel
from localsim.backends.llama.suits import CHAT
from localsim.conversation.requests import Message
from localsim.conversation.scenario import LoadedScenario
from localsim.finetune.chats import Chat, row_of
from localsim.machine.template_check import check_template, shown
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.store.database import Store
from tests import tiny_model
from tests.conftest import Quiet

EXPECTED = {
    "qwen2.5": "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n"
    "<|im_start|>assistant\nAna: A<|im_end|>\n<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\nAna",
    "qwen3": "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n"
    "<|im_start|>assistant\nAna: A<|im_end|>\n<|im_start|>user\nV<|im_end|>\n"
    "<|im_start|>assistant\n<think>\n\n</think>\n\nAna",
    "llama-3": "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user"
    "<|end_header_id|>\n\nU<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nAna: A<|eot_id|>"
    "<|start_header_id|>user<|end_header_id|>\n\nV<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nAna",
    "gemma-2": "<bos><start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nAna: A<end_of_turn>\n"
    "<start_of_turn>user\nV<end_of_turn>\n<start_of_turn>model\nAna",
    "mistral-v0.3": "<s>[INST] S\n\nU[/INST] Ana: A</s>[INST] V[/INST]Ana",
    "phi-3": "<s><|system|>\nS<|end|>\n<|user|>\nU<|end|>\n<|assistant|>\nAna: A<|end|>\n<|user|>\nV<|end|>\n"
    "<|assistant|>\nAna",
}
SHORT = (Message("system", "S"), Message("user", "U"), Message("assistant", "Ana: A"), Message("user", "V"))


@pytest.fixture(params=tiny_model.FAMILIES, scope="module")
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def tiny(family: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaModel]:
    path = tiny_model.write(tmp_path_factory.mktemp("tiny") / f"{family}.gguf", tiny_model.FAMILIES[family])
    model = LlamaModel(path)
    yield model
    model.free()


def test_the_prompt_is_the_familys_own(family: str, tiny: LlamaModel) -> None:
    assert shown(tiny, ChatTokenizer(tiny).prompt(SHORT, "Ana")) == EXPECTED[family]


def test_models_check_is_right(family: str, tiny: LlamaModel) -> None:
    found = check_template(tiny)
    told = {check.name: check for check in found.checks}
    assert found.ok, [check for check in found.checks if not check.ok]
    assert ("no system role" in told["system"].told) == (family == "gemma-2")
    assert ("must alternate" in told["alternation"].told) == (family in ("gemma-2", "mistral-v0.3"))
    assert ("thinking model" in told["thinking"].told) == (family == "qwen3")
    assert told["beginning"].told.startswith("the prompt begins" if tiny_model.FAMILIES[family].bos else "no token")
    assert ("trims contents" in told["spaces"].told) == (family in ("llama-3", "gemma-2"))


@pytest.mark.model
def test_the_starter_passes_though_its_first_token_begins_every_message(engine_model: LlamaModel) -> None:
    beginning = next(check for check in check_template(engine_model).checks if check.name == "beginning")
    assert beginning.ok and "begins every message" in beginning.told


def test_a_beginning_written_twice_is_reported(tiny: LlamaModel, monkeypatch: pytest.MonkeyPatch) -> None:
    bos = tiny.begin_tokens()
    if not bos:
        return
    prompt = ChatTokenizer.prompt
    monkeypatch.setattr(ChatTokenizer, "prompt", lambda *given, **named: [*bos, *prompt(*given, **named)])
    found = check_template(tiny)
    assert not found.ok and next(check.told for check in found.checks if not check.ok).endswith("twice")


def test_control_tokens_in_an_utterance_stay_characters(family: str, tiny: LlamaModel) -> None:
    chat = ChatTokenizer(tiny)
    specials = tiny_model.FAMILIES[family].specials
    evil = "Ben: " + " ".join(specials)
    plain, tokens = chat.prompt(SHORT, "Ana"), chat.prompt([*SHORT[:3], Message("user", evil)], "Ana")

    def marks(found: list[int]) -> list[str]:
        return [tiny.token_text(token) for token in found if tiny.token_text(token) in specials]

    assert marks(tokens) == marks(plain)
    assert shown(tiny, tokens) == shown(tiny, plain).replace("V", evil, 1)


def test_what_is_learnt_is_the_reply_and_its_end(family: str, tiny: LlamaModel) -> None:
    row = row_of(Chat("Ana", CHAT[:3], "g"), ChatTokenizer(tiny))
    learnt = [token for token, wanted in zip(row.tokens, row.learnt, strict=True) if wanted]
    assert shown(tiny, learnt) == ": Hello, Ben." + tiny_model.FAMILIES[family].end


@pytest.mark.parametrize("mode", ["agents", "script"])
def test_a_run_plays_on_it(family: str, tiny: LlamaModel, mode: str, talk: LoadedScenario, store: Store) -> None:
    limits = talk.scenario.limits.model_copy(update={"turns": 3, "chars": 40})
    loaded = LoadedScenario(talk.scenario.model_copy(update={"limits": limits}), talk.answer, talk.path)
    plan = Plan((loaded,), (mode,), model=str(tiny.path), episodes=2)  # type: ignore[arg-type]
    done = runner.start(replace(plan, parallel=2), store, Quiet(), lambda _line: None)
    assert done.summary.completed == 2 and done.summary.failed == 0, family
    assert store.rows("SELECT count(*) AS n FROM v_generations WHERE malformed IS NOT NULL")[0]["n"] == 0
