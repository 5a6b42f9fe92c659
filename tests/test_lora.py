"""Adapters: the order of rows, headers, what is refused, and the same logits in torch and in llama.cpp."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from localsim.backends.llama.lib import LlamaModel, library, new_context
from localsim.backends.open import memory_plans
from localsim.errors import ModelMissing
from localsim.machine.convert import derive
from localsim.models import gguf_files, lora
from localsim.models import registry as models
from localsim.models.fetch import pull
from localsim.runs.plan import Plan
from localsim.runs.preview import needs_of
from localsim.scenarios.find import find_scenarios

RANK = 4
TEXT = (
    "Ana and Ben meet at a wedding. Each of them knows five people, and they would like to find out whether there is "
    "somebody whom both of them know. Ana asks about hobbies, Ben about work; neither reads out a list. "
)


@pytest.fixture(scope="session")
def base() -> models.ModelFile:
    """The model that adapters are made for."""
    return models.resolve("smollm2-135m")


def peft_weights(torch_model: Any) -> dict[str, np.ndarray[Any, Any]]:
    from peft import get_peft_model_state_dict

    return {name: value.float().numpy() for name, value in get_peft_model_state_dict(torch_model).items()}


@pytest.fixture(scope="session")
def trained(base: models.ModelFile, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A torch model with a random adapter that changes much, and the same adapter as a file."""
    import torch

    from localsim.finetune.trainer import Settings, load_base, with_lora

    model = with_lora(load_base(base.path, bf16=False), Settings(rank=RANK, alpha=8))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.copy_(0.08 * torch.randn(parameter.shape, generator=generator))
    path = tmp_path_factory.mktemp("adapters") / "random.gguf"
    lora.write_adapter(
        path, peft_weights(model), alpha=8, base=base.path, base_name="smollm2-135m", base_sha256=base.sha256
    )
    return model, path


def test_rows_of_a_head_are_interleaved_and_nothing_else_moves() -> None:
    rows = np.arange(12.0).reshape(12, 1)
    found = lora.permuted(rows, heads=2)
    assert found[:, 0].tolist() == [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]


def test_a_written_adapter_is_read_back(trained: tuple[Any, Path], base: models.ModelFile) -> None:
    found = lora.read_adapter(trained[1])
    assert (found.architecture, found.rank, found.alpha, found.scale) == ("llama", RANK, 8, 2)
    assert found.base_sha256 == base.sha256 and found.base_name == "smollm2-135m"
    assert len(found.pairs) == 30 * 7
    lora.check_fits(found, base.path, {base.sha256})
    written = peft_weights(trained[0])
    layers = {key.removeprefix("base_model.model.").split(".lora_")[0] for key in written} | {"model.embed_tokens"}
    again = lora.peft_tensors(found, layers, base.path)
    assert again.keys() == written.keys()
    assert all(np.allclose(again[key], written[key], rtol=1e-3, atol=1e-6) for key in written)


@pytest.mark.model
def test_torch_and_llama_cpp_agree_on_logits(
    trained: tuple[Any, Path], base: models.ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 tokens: the same most likely token on 95%, and a mean absolute difference below .35 (weights of 4 bits and
    activations of 8 in llama.cpp, 32 in torch). With q and k in the wrong order the difference is several times that.
    """
    import torch

    model, path = trained
    plain, adapted = LlamaModel(base.path), LlamaModel(base.path, adapter=path)
    tokens = plain.tokenize(TEXT * 5, special=False)[:200]
    ours, bare = logits_of(adapted, tokens), logits_of(plain, tokens)
    with torch.no_grad():
        theirs = model(input_ids=torch.tensor([tokens])).logits[0].float().numpy()
    plain.free()
    adapted.free()
    difference = float(np.abs(ours - theirs).mean())
    assert difference < 0.35, difference
    assert (ours.argmax(1) == theirs.argmax(1)).mean() >= 0.95
    assert float(np.abs(bare - theirs).mean()) > 2 * difference, "the adapter must matter"
    monkeypatch.setattr(lora, "permuted", lambda rows, heads: rows)  # noqa: ARG005
    wrong = tmp_path / "wrong.gguf"
    lora.write_adapter(wrong, peft_weights(model), alpha=8, base=base.path, base_name="b", base_sha256=base.sha256)
    mistaken = LlamaModel(base.path, adapter=wrong)
    assert float(np.abs(logits_of(mistaken, tokens) - theirs).mean()) > 1.5 * difference, (
        "the order of rows must matter"
    )
    mistaken.free()


def logits_of(model: LlamaModel, tokens: list[int]) -> np.ndarray[Any, Any]:
    lib = library()
    context = new_context(model, sequences=1, context=256, threads=2)
    batch = lib.llama_batch_init(len(tokens), 0, 1)
    for place, token in enumerate(tokens):
        batch.token[place], batch.pos[place] = token, place
        batch.n_seq_id[place], batch.seq_id[place][0], batch.logits[place] = 1, 0, True
    batch.n_tokens = len(tokens)
    assert lib.llama_decode(context, batch) == 0
    rows = ctypes.cast(lib.llama_get_logits(context), ctypes.POINTER(ctypes.c_float))
    found = np.ctypeslib.as_array(rows, (len(tokens), model.n_vocab)).copy()
    lib.llama_batch_free(batch)
    lib.llama_free(context)
    return found


@pytest.mark.model
def test_merging_gives_what_the_adapter_gives(
    trained: tuple[Any, Path], base: models.ModelFile, tmp_path: Path
) -> None:
    merged = tmp_path / "merged.gguf"
    lora.merge(base.path, lora.read_adapter(trained[1]), merged)
    whole, adapted = LlamaModel(merged), LlamaModel(base.path, adapter=trained[1])
    tokens = whole.tokenize(TEXT, special=False)
    ours, theirs = logits_of(whole, tokens), logits_of(adapted, tokens)
    assert whole.chat_template() == adapted.chat_template()
    whole.free()
    adapted.free()
    assert float(np.abs(ours - theirs).mean()) < 0.35
    assert (ours.argmax(1) == theirs.argmax(1)).mean() >= 0.9


@pytest.mark.model
def test_roles_with_other_adapters_share_the_weights(trained: tuple[Any, Path], base: models.ModelFile) -> None:
    adapted = LlamaModel(base.path, adapter=trained[1])
    plain = adapted.beside(None)
    tokens = plain.tokenize(TEXT, special=False)
    theirs = logits_of(adapted, tokens)
    adapted.free()
    ours = logits_of(plain, tokens)  # the weights are still there
    plain.free()
    alone = LlamaModel(base.path)
    assert np.array_equal(ours, logits_of(alone, tokens))
    assert float(np.abs(ours - theirs).mean()) > 0.1
    alone.free()
    adapter = f"smollm2-135m+{trained[1]}"
    scenario = find_scenarios(["mutual_friends_01"])
    first = scenario[0].scenario.names[0]
    plan = Plan(tuple(scenario), ("agents",), model="smollm2-135m", roles={first: adapter}, parallel=1)
    weights = [each.weights for each in memory_plans(needs_of(plan, 1))]
    assert sorted(weights)[0] == 0 and len(weights) == 2


def test_an_adapter_of_another_base_is_refused(trained: tuple[Any, Path], base: models.ModelFile) -> None:
    found = lora.read_adapter(trained[1])
    with pytest.raises(ModelMissing, match="was trained on smollm2-135m"):
        lora.check_fits(found, base.path, {"0" * 64})


def test_an_adapter_of_other_shapes_is_refused(trained: tuple[Any, Path], base: models.ModelFile) -> None:
    found = lora.read_adapter(trained[1])
    pairs = {name: (a[:, :-1], b) for name, (a, b) in found.pairs.items()}
    with pytest.raises(ModelMissing, match="does not fit"):
        lora.check_fits(lora.Adapter(found.path, found.architecture, 8, "", "", pairs), base.path, {base.sha256})


HOSTILE = {
    "one dimension": (np.zeros(8), np.zeros(8), 8.0),
    "two ranks": (np.zeros((4, 8)), np.zeros((8, 2)), 8.0),
    "not a number": (np.full((4, 8), np.nan), np.zeros((8, 4)), 8.0),
    "infinite": (np.zeros((4, 8)), np.full((8, 4), np.inf), 8.0),
    "alpha nan": (np.zeros((4, 8)), np.zeros((8, 4)), float("nan")),
    "alpha text": (np.zeros((4, 8)), np.zeros((8, 4)), "eight"),
}


def adapter_file(path: Path, a: Any, b: Any, alpha: Any) -> Path:
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    if alpha is not None:
        (writer.add_string if isinstance(alpha, str) else writer.add_float32)("adapter.lora.alpha", alpha)
    for side, values in (("a", a), ("b", b)):
        writer.add_tensor(f"x.weight.lora_{side}", values.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("kind", HOSTILE)
def test_an_adapter_whose_values_are_no_pairs_of_numbers_is_refused(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="no pairs of one rank"):
        lora.read_adapter(adapter_file(tmp_path / "x.gguf", *HOSTILE[kind]))
    sound = adapter_file(tmp_path / "y.gguf", np.ones((4, 8)), np.ones((8, 4)), None)
    assert lora.read_adapter(sound).scale == 1, "llama.cpp adds the product as it is where there is no alpha"
    sound.write_bytes(sound.read_bytes()[:200])
    with pytest.raises(ModelMissing, match="not a GGUF file"):
        lora.read_adapter(sound)


def test_what_is_no_adapter_is_refused(base: models.ModelFile, tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="no LoRA adapter"):
        lora.read_adapter(base.path)
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(ModelMissing, match="not a GGUF file"):
        lora.read_adapter(tmp_path / "text.gguf")


def test_a_model_is_named_with_its_adapter(trained: tuple[Any, Path], base: models.ModelFile) -> None:
    found = models.resolve(f"smollm2-135m+{trained[1]}")
    assert found.path == base.path and found.adapter == trained[1]
    assert found.sha256 != base.sha256
    with pytest.raises(ModelMissing, match="no adapter 'nothing'"):
        models.resolve("smollm2-135m+nothing")


def test_the_starter_takes_no_adapter_of_its_own_base(trained: tuple[Any, Path]) -> None:
    """Its weights have another adapter merged in, so they are not the base."""
    with pytest.raises(ModelMissing, match="was trained on smollm2-135m"):
        models.resolve(f"starter+{trained[1]}")


def test_the_same_weights_in_another_type_are_the_same_base(
    trained: tuple[Any, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALSIM_MODELS", str(tmp_path / "models"))
    pull("smollm2-135m-q8_0", lambda _line: None, lambda _licence: False, derive)
    assert models.resolve(f"smollm2-135m-q8_0+{trained[1]}").adapter == trained[1]


def test_a_header_is_read_without_its_vocabulary(tmp_path: Path, base: models.ModelFile) -> None:
    """A file with arrays of every kind has the tensors and values that gguf reads; one that ends in its header none."""
    writer = gguf.GGUFWriter(str(tmp_path / "m.gguf"), "llama")
    writer.add_token_list(["Ana", "", "né"])
    writer.add_array("scores", [1.5, 2.5])
    writer.add_array("types", [True, False, True])
    writer.add_uint32("llama.block_count", 7)
    writer.add_tensor("token_embd.weight", np.ones((3, 4), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    for path in (tmp_path / "m.gguf", base.path):
        ours, theirs = gguf_files.opened(path), gguf.GGUFReader(str(path))
        single = [key for key, field in theirs.fields.items() if field.types[0] != gguf.GGUFValueType.ARRAY]
        assert [ours.get_field(key).contents() for key in single] == [
            theirs.get_field(key).contents() for key in single
        ]
        assert all((ours.data == theirs.data).all() for ours, theirs in zip(ours.tensors, theirs.tensors, strict=True))
    (tmp_path / "cut.gguf").write_bytes((tmp_path / "m.gguf").read_bytes()[:120])
    with pytest.raises(ValueError):
        gguf_files.opened(tmp_path / "cut.gguf")
