"""Devices of llama.cpp and the memory of models on them; GPUs are made up, the processor is real."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localsim.backends import open as engines
from localsim.backends.llama import devices, memory
from localsim.backends.llama.devices import Device, layered
from localsim.backends.llama.lib import LlamaModel
from localsim.errors import ModelMissing
from localsim.runs import preview
from localsim.runs.plan import Plan
from tests.conftest import generated

CPU = Device("CPU", "a processor", "cpu", 8_000_000_000, 16_000_000_000)
GPU = Device("CUDA0", "a card", "gpu", 6_000_000_000, 8_000_000_000)
INTEGRATED = Device("Vulkan0", "a small card", "igpu", 4_000_000_000, 8_000_000_000)
METAL = Device("Metal", "Apple", "gpu", 6_000_000_000, 8_000_000_000)


def test_the_processor_is_listed_with_its_memory() -> None:
    found = [device for device in devices.devices() if device.kind == "cpu"]
    assert found and found[0].name == "CPU" and found[0].description
    assert 0 < found[0].free <= found[0].total
    assert "GB free" in devices.where(0)


def test_layers_go_to_real_cards_before_integrated_ones() -> None:
    assert layered(0, [CPU, GPU]) == [] and layered(99, [CPU]) == []
    assert layered(99, [CPU, GPU, INTEGRATED]) == [GPU]
    assert layered(99, [CPU, INTEGRATED]) == [INTEGRATED]
    assert GPU.own_memory and not METAL.own_memory and not INTEGRATED.own_memory and not CPU.own_memory


def planned(model: LlamaModel, layers: int, *found: Device, monkeypatch: pytest.MonkeyPatch) -> memory.MemoryPlan:
    monkeypatch.setattr(devices, "devices", lambda: [CPU, *found])
    return memory.memory_plan("m", model, 8, 8, 1024, 2, layers)


@pytest.mark.model
def test_bytes_are_counted_where_they_are(engine_model: LlamaModel, monkeypatch: pytest.MonkeyPatch) -> None:
    here = planned(engine_model, 999, monkeypatch=monkeypatch)
    assert (here.on_device, here.device) == (0, "")
    there = planned(engine_model, 999, GPU, monkeypatch=monkeypatch)
    assert there.device == "a card" and there.device_free == GPU.free
    assert there.weights == 0 and there.device_weights == engine_model.path.stat().st_size
    assert there.device_cache == 8 * 1024 * engine_model.kv_bytes_per_token
    assert there.cache == here.cache - there.device_cache > 0, "caches that are set aside stay in the machine's memory"
    half = planned(engine_model, 1 + engine_model.n_layers // 2, GPU, monkeypatch=monkeypatch)
    assert half.device_cache == there.device_cache // 2
    assert half.weights + half.device_weights == pytest.approx(here.weights, abs=2)
    assert half.cache + half.device_cache == pytest.approx(here.cache, abs=2)
    for shared in (METAL, INTEGRATED):
        whole = planned(engine_model, 999, shared, monkeypatch=monkeypatch)
        assert replace(whole, process=0, free=0) == replace(here, process=0, free=0)
    assert "on a card" in str(there) and "on " not in str(here)
    assert there.without_weights().device_weights == 0


@pytest.mark.model
def test_a_model_that_the_device_cannot_hold_is_refused_before_it_is_loaded(
    engine_model: LlamaModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(GPU, free=100_000_000)
    with pytest.raises(ModelMissing, match="on the device") as caught:
        memory.refuse_if_too_large(planned(engine_model, 999, small, monkeypatch=monkeypatch))
    assert caught.value.hint and "--gpu off" in caught.value.hint
    memory.refuse_if_too_large(planned(engine_model, 999, GPU, monkeypatch=monkeypatch))
    memory.refuse_if_too_large(planned(engine_model, 0, small, monkeypatch=monkeypatch))


@pytest.mark.model
def test_j_auto_follows_the_memory_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan((generated("mutual_friends"),), ("agents",), model="starter", episodes=8)
    monkeypatch.setattr(engines, "gpu_layers", lambda *_: engines.ALL_LAYERS)
    found: list[Any] = [CPU, GPU]
    monkeypatch.setattr(devices, "devices", lambda: found)
    said: list[str] = []
    assert preview.side_by_side(plan, said.append) == 8
    two = engines.memory_plans(preview.needs_of(plan, 2))[0]
    found[1] = replace(GPU, free=two.on_device)
    assert preview.side_by_side(plan, said.append) == 2 and "lack of memory" in said[0]
