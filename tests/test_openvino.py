"""OpenVINO on the same files as llama.cpp: the same numbers, the same rules of the engine, clear refusals."""

from __future__ import annotations

import gc
import importlib.util
import json
import subprocess
import sys
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from localsim import paths
from localsim.backends import open as opening
from localsim.backends.engines import evaluator_of, load
from localsim.backends.evaluator import Part
from localsim.backends.llama.lib import LlamaModel
from localsim.backends.llama.memory import paged_plan, refuse_if_too_large
from localsim.backends.llama.raw import RawContext
from localsim.backends.openvino import network
from localsim.backends.openvino.model import OpenVinoBackend, OpenVinoModel
from localsim.backends.openvino.network import SETTINGS
from localsim.backends.openvino.weights import GROUP, Matrix, Weights
from localsim.conversation.episode import Sampling
from localsim.conversation.requests import Generation, Message
from localsim.errors import BackendUnavailable, GenerationFailed, InvalidInput
from localsim.machine.bench import prose
from localsim.models import lora, registry
from localsim.models.registry import ModelFile, resolve
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.store.database import Store
from tests import tiny_model
from tests.conftest import Quiet, spec_of
from tests.test_llama import converse, finish, first_request, short

installed = pytest.mark.skipif(
    importlib.util.find_spec("openvino") is None, reason='OpenVINO is not installed: pip install "localsim[openvino]"'
)
EXACT_NUMBERS = SETTINGS | {
    "INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
}  # fmt: skip
FAMILIES = {
    **tiny_model.FAMILIES,
    "qwen3 itself": replace(tiny_model.FAMILIES["qwen3"], architecture="qwen3"),
}


class Shared(OpenVinoModel):
    """A model under a backend that would otherwise free it."""

    def __init__(self, model: OpenVinoModel) -> None:
        self.__dict__.update(model.__dict__)

    def free(self) -> None:
        """The module frees it."""


@pytest.fixture(scope="module")
def model(starter: ModelFile) -> Iterator[OpenVinoModel]:
    made = OpenVinoModel(starter.path, threads=2)
    yield made
    made.free()


def engine(model: OpenVinoModel, sequences: int = 4, context: int = 1024, **more: Any) -> OpenVinoBackend:
    return OpenVinoBackend(
        Shared(model), name="m", sha256="0" * 64, sequences=sequences, context=context, caches=16, **more
    )


@pytest.fixture
def backend(model: OpenVinoModel) -> Iterator[OpenVinoBackend]:
    made = engine(model)
    yield made
    made.close()


def logits_of(model: LlamaModel, tokens: list[int]) -> np.ndarray[Any, Any]:
    """The logits after each token, read in two parts, so that the second one looks back on the cache."""
    caches = evaluator_of(model, sequences=1, context=256, threads=1)
    session, half = caches.seat("s", ()), len(tokens) // 2
    parts = (tokens[:half], tokens[half:])
    rows = [caches.evaluate([Part(session, part, len(part))])[0].copy() for part in parts]
    caches.close()
    return np.concatenate(rows)


# ---- the same numbers ----------------------------------------------------------------------------------------------


@installed
@pytest.mark.parametrize("kind", ["F32", "F16", "Q8_0", "Q4_0", "Q4_1", "Q5_0"])
@pytest.mark.parametrize("family", ["qwen2.5", "qwen3 itself", "llama-3", "gemma-2"])
def test_the_logits_are_those_of_llama_cpp(family: str, kind: str, tmp_path: Path) -> None:
    """Byte-level and SentencePiece vocabularies, biases, norms of heads, both orders of rotary pairs, all types."""
    path = tiny_model.write(tmp_path / "tiny.gguf", FAMILIES[family], kind=kind)
    theirs, ours = LlamaModel(path), OpenVinoModel(path, threads=1, settings=EXACT_NUMBERS)
    tokens = [(7 * place) % theirs.n_vocab for place in range(90)]
    wanted, found = logits_of(theirs, tokens), logits_of(ours, tokens)
    theirs.free()
    ours.free()
    # llama.cpp rounds activations to 8 bits beside quantized weights.
    spread = 0.004 if kind in ("F32", "F16") else 0.06
    assert np.abs(wanted - found).max() < spread * np.abs(wanted).max()
    assert np.corrcoef(wanted.ravel(), found.ravel())[0, 1] > (0.99999 if spread < 0.01 else 0.998)


@installed
def test_the_starter_takes_the_same_tokens_for_the_likeliest(model: OpenVinoModel, engine_model: LlamaModel) -> None:
    tokens = engine_model.tokenize(prose(), special=False)[:1024]
    found = []
    for each in (engine_model, model):
        raw = RawContext(each, sequences=1, context=1024, threads=2)
        found.append((np.array([row.argmax() for row in raw.predictions(tokens)]), np.mean(raw.logs(tokens))))
        raw.close()
    (theirs, expected), (ours, log) = found
    assert (theirs == ours).mean() > 0.93
    assert np.exp(expected - log) == pytest.approx(1, abs=0.02), "the ratio of the perplexities"


@installed
def test_an_adapter_is_merged_into_the_weights(tmp_path: Path) -> None:
    path = tiny_model.write(tmp_path / "tiny.gguf", FAMILIES["llama-3"], kind="Q8_0")
    rng = np.random.default_rng(3)
    weights = {
        f"base_model.model.model.layers.{layer}.{part}.lora_{side}.weight": rng.normal(0, 0.2, shape)
        for layer in range(tiny_model.LAYERS)
        for part, rows, columns in (
            ("self_attn.q_proj", 64, 64),
            ("self_attn.k_proj", 32, 64),
            ("mlp.down_proj", 64, 128),
        )
        for side, shape in (("A", (4, columns)), ("B", (rows, 4)))
    }
    adapter = tmp_path / "a.gguf"
    lora.write_adapter(adapter, weights, alpha=8, base=path, base_name="tiny", base_sha256="")
    tokens = [(7 * place) % 250 for place in range(60)]
    plain, theirs = LlamaModel(path), LlamaModel(path, adapter=adapter)
    ours = OpenVinoModel(path, threads=1, adapter=adapter, settings=EXACT_NUMBERS)
    bare, wanted, found = (logits_of(each, tokens) for each in (plain, theirs, ours))
    for each in (plain, theirs, ours):
        each.free()
    difference = np.abs(wanted - found).mean()
    assert difference < 0.2 * np.abs(bare - wanted).mean(), "the adapter matters, and acts as in llama.cpp"


def numbers_of(matrix: Matrix) -> np.ndarray[Any, Any]:
    """The weights that OpenVINO computes from a matrix."""
    if matrix.scales is None:
        return matrix.numbers.astype(np.float32)
    numbers = matrix.numbers.astype(np.float32)
    if matrix.numbers.dtype == np.uint8:
        low, high = matrix.numbers & 15, matrix.numbers >> 4
        numbers = np.stack([low, high], axis=-1).reshape(*low.shape[:2], GROUP).astype(np.float32) - 8
    return (numbers * matrix.scales.astype(np.float32)).reshape(len(numbers), -1)


@pytest.mark.parametrize("kind", ["F16", "Q8_0", "Q4_0", "Q5_1"])
def test_weights_are_what_the_file_holds(kind: str, tmp_path: Path) -> None:
    path = tiny_model.write(tmp_path / "tiny.gguf", FAMILIES["llama-3"], kind=kind)
    weights = Weights(path)
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(str(path)).tensors}
    for name, heads in (("blk.0.attn_q", 4), ("blk.0.attn_k", 2), ("blk.1.ffn_down", 0)):
        tensor = tensors[f"{name}.weight"]
        stored = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        found = numbers_of(weights.matrix(f"{name}.weight"))
        wanted = lora.restored(stored, heads) if heads else stored
        assert np.abs(found - wanted).max() <= (0 if kind != "Q5_1" else np.abs(wanted).max() / 127), name
    both = numbers_of(weights.matrix("blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"))
    assert np.array_equal(both[:128], numbers_of(weights.matrix("blk.0.ffn_gate.weight")))


# ---- the rules of the engine ---------------------------------------------------------------------------------------


@installed
def test_a_turn_is_one_well_formed_line(backend: OpenVinoBackend) -> None:
    result = finish(backend, first_request(short()))
    assert isinstance(result, Generation) and result.cause in ("finished", "end_of_text")
    assert result.text.startswith((": ", " [")) and "\n" not in result.text[:-1]
    assert result.prompt_tokens == result.evaluated_tokens > 100
    assert backend.effort.decode > 0 and backend.effort.sample > 0
    assert backend.identity["kind"] == "openvino" and backend.identity["build"].startswith("openvino 20")


@installed
@pytest.mark.parametrize("mode", ["agents", "script"])
def test_exact_is_the_same_text_whatever_else_runs(model: OpenVinoModel, mode: Any) -> None:
    loaded = short(turns=4, chars=50)
    specs = [spec_of(loaded, mode, index=index, repro="exact") for index in range(3)]
    alone, together = engine(model, 2, repro="exact"), engine(model, 6, repro="exact")
    one_by_one = [converse(alone, [spec])[0] for spec in specs]
    again_after_others = converse(alone, [specs[0]])[0]
    side_by_side = converse(together, specs)
    alone.close()
    together.close()
    assert one_by_one == side_by_side and one_by_one[0] == again_after_others
    assert len({str(texts) for texts in one_by_one}) == 3, "other seeds, other texts"


@installed
def test_a_conversation_beside_others_says_what_it_says_alone(starter: ModelFile) -> None:
    """With 32 bits everywhere; openings are shared, and four agents write at once."""
    model = OpenVinoModel(starter.path, threads=2, settings=EXACT_NUMBERS)
    specs = [
        spec_of(short(turns=4), mode, index=index, sampling=Sampling(temperature=0))
        for mode in ("agents", "mindreaders")
        for index in range(2)
    ]
    alone = []
    for spec in specs:
        backend = engine(model)
        alone += converse(backend, [spec])
        backend.close()
    backend = engine(model, sequences=4)
    together = converse(backend, specs)
    backend.close()
    model.free()
    assert together == alone


@installed
def test_an_opening_is_evaluated_once_for_all_seeds(model: OpenVinoModel) -> None:
    backend = engine(model, sequences=2)
    tickets = [backend.submit(first_request(short(), index=index)) for index in (0, 1)]
    found: dict[int, Any] = {}
    while len(found) < 2:
        found |= {done.ticket: done.result for done in backend.poll()}
    backend.close()
    assert [found[ticket].evaluated_tokens for ticket in tickets] == [found[tickets[0]].prompt_tokens, 1]


@installed
def test_cancelled_and_outgrown_replies_leave_the_engine_at_work(model: OpenVinoModel) -> None:
    backend = engine(model, sequences=1, context=192)
    request = first_request(short())
    small = replace(request, messages=(Message("system", "s"), Message("user", "u")), session="b")
    backend.cancel(backend.submit(small))
    failed = finish(backend, request)
    assert isinstance(failed, GenerationFailed) and "outgrew the context of 192 tokens" in str(failed)
    backend.release(request.session)
    ticket = backend.submit(small)
    backend.poll()
    backend.cancel(ticket)
    assert isinstance(finish(backend, replace(small, session="c")), Generation)
    backend.close()


@installed
def test_a_closed_backend_gives_its_memory_back_at_once(starter: ModelFile) -> None:
    model = OpenVinoModel(starter.path, threads=1)
    network = weakref.ref(model.network)
    gc.disable()  # a backend is part of cycles
    try:
        OpenVinoBackend(model, name="m", sha256="0" * 64, sequences=2, context=256, caches=4).close()
        assert network() is None
    finally:
        gc.enable()


@installed
def test_an_error_of_openvino_fails_its_replies_and_no_others(
    backend: OpenVinoBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = first_request(short())

    def broken() -> None:
        raise RuntimeError("Exception from src/x.cpp:75:\nmore")

    with monkeypatch.context() as patch:
        patch.setattr(type(backend._evaluator._request), "infer", lambda _request: broken())
        failed = finish(backend, request)
    assert isinstance(failed, GenerationFailed) and str(failed) == "OpenVINO failed: Exception from src/x.cpp:75:"
    assert isinstance(finish(backend, replace(request, session="other")), Generation)


# ---- the whole way -------------------------------------------------------------------------------------------------


@installed
def test_a_run_names_its_library_and_is_resumed_on_it_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    plan = Plan((short(turns=2),), ("agents",), model="openvino:starter", overflow="window", parallel=1, threads=2)
    result = runner.start(plan, store, Quiet(), said.append, leaks=False)
    assert result.summary.completed == 1
    assert any(line.startswith("openvino:starter-135m: 346 MB weights") for line in said)
    run = store.rows("SELECT * FROM runs")[0]
    stored = json.loads(run["models_json"])["openvino:starter"]
    assert stored["kind"] == "openvino" and stored["sha256"] == resolve("starter").sha256
    assert stored["precision"] in ("bf16", "f32") and stored["threads"] == 2
    runner.refuse_other_conditions(run, plan)
    monkeypatch.setattr(runner, "versions", lambda: json.loads(run["versions_json"]) | {"openvino": "2031.1.0"})
    with pytest.raises(InvalidInput, match="made with openvino 20"):
        runner.refuse_other_conditions(run, plan)


def test_names_lead_to_the_file_and_the_library(starter: ModelFile, tmp_path: Path) -> None:
    found = resolve("openvino:starter")
    assert replace(found, name=starter.name, engine="llama") == starter and found.name == "openvino:starter-135m"
    assert opening.is_file("openvino:starter")
    path = tmp_path / "a.gguf"
    assert opening.absolute(f"openvino:{path.name}") == f"openvino:{path}"
    assert opening.absolute("mix:openvino:starter-peeks@0.25,starter") == "mix:openvino:starter-peeks@0.25,starter"
    assert registry.constructed("openvino:starter-peeks") and not registry.constructed("openvino:starter")
    assert registry.taught("openvino:starter") == registry.taught("starter")


def test_memory_is_stated_for_caches_of_usual_length_and_no_weights_are_shared(starter: ModelFile) -> None:
    plan = Plan((short(),), ("agents",), model="openvino:starter", roles={"Ana": "starter"}, parallel=4)
    needs = opening.Needs(sequences=4, specs=plan.specs())
    paged, seated = sorted(opening.memory_plans(needs), key=lambda each: each.name)
    assert (paged.name, seated.name) == ("openvino:starter-135m", "starter-135m")
    assert paged.weights > 2 * seated.weights == 2 * starter.path.stat().st_size
    assert paged.cache < seated.cache, "nothing is reserved"
    with pytest.raises(InvalidInput, match="--gpu 3: localsim runs OpenVINO on the processor"):
        opening.memory_plans(replace(needs, specs=replace(plan, roles={}).specs(), gpu="3"))
    refuse_if_too_large(paged)


def test_weights_that_openvino_holds_in_more_bits_than_the_file_are_counted_so(tmp_path: Path) -> None:
    plans = []
    for kind in ("Q5_0", "Q4_0"):
        path = tiny_model.write(tmp_path / f"{kind}.gguf", FAMILIES["llama-3"], kind=kind)
        header = LlamaModel(path, vocab_only=True)
        file, weights = header.path.stat().st_size, header.n_weights
        plans.append(
            (paged_plan("m", header, 1, 0, 256, 0).weights // 2 - header.n_vocab * header.width, file, weights)
        )
        header.free()
    (five, _, weights), (four, file, _) = plans
    assert five == weights * 17 // 16 and four == file


# ---- refusals ------------------------------------------------------------------------------------------------------


def changed(path: Path, key: str, value: Any) -> Path:
    """A copy of a tiny file with another field in its header."""
    reader = gguf.GGUFReader(str(path))
    target = path.with_name("changed.gguf")
    architecture = value if key == "general.architecture" else reader.get_field("general.architecture").contents()
    writer = gguf.GGUFWriter(str(target), architecture)
    for field in reader.fields.values():
        if not field.name.startswith(("GGUF.", "general.architecture")):
            inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            name = field.name.replace("llama.", f"{architecture}.") if field.name.startswith("llama.") else field.name
            writer.add_key_value(name, field.contents(), field.types[0], sub_type=inner)
    if key != "general.architecture":
        add = writer.add_string if isinstance(value, str) else writer.add_uint32
        add(key, value)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, np.array(tensor.data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("general.architecture", "gemma2", "has the architecture gemma2"),
        ("llama.rope.scaling.type", "yarn", "has rope.scaling.type = yarn"),
        ("llama.expert_count", 8, "has expert_count = 8"),
    ],
)
def test_what_localsim_cannot_compute_is_refused(key: str, value: Any, told: str, tmp_path: Path) -> None:
    path = tiny_model.write(tmp_path / "tiny.gguf", FAMILIES["llama-3"])
    with pytest.raises(BackendUnavailable, match=told) as refused:
        Weights(changed(path, key, value))
    assert "without openvino: before its name" in str(refused.value.hint)


def test_without_openvino_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    network.library.cache_clear()
    try:
        with pytest.raises(BackendUnavailable) as refused:
            load(resolve("openvino:starter"), threads=1)
    finally:
        network.library.cache_clear()
    assert refused.value.hint == paths.installing("openvino")


@installed
def test_openvino_reports_nothing_to_anybody() -> None:
    """Its package openvino_telemetry would tell a server of each import, and keep an id in the home folder."""
    code = (
        "import sys; from localsim.backends.openvino.network import library; library(); name = 'openvino_telemetry'; "
        "print(sys.modules[name], [each for each in sys.modules if each.startswith(name + '.')])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["None", "[]"]
