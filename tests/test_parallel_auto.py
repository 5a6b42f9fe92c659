"""`-j auto`: the curve of conversations at a time, what is taken from it, and where it is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localsim.backends.llama.lib import LlamaModel
from localsim.machine import throughput
from localsim.machine.throughput import Curve
from localsim.models.registry import ModelFile
from localsim.runs import preview
from localsim.runs.plan import Plan
from tests.conftest import generated


def curve(*rates: tuple[int, float]) -> Curve:
    return Curve(rates, "a device", "2026-11-25T07:00+00:00")


@pytest.fixture
def measuring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """-j auto may measure, and nothing is remembered yet."""
    monkeypatch.delenv("LOCALSIM_LANES")
    monkeypatch.setenv("LOCALSIM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("rates", "best"),
    [
        ([(1, 100.0), (2, 180.0), (4, 300.0), (8, 400.0), (16, 410.0)], 8),
        ([(1, 100.0), (2, 180.0), (4, 300.0), (8, 400.0), (16, 500.0), (32, 700.0)], 32),
        ([(1, 100.0), (2, 99.0), (4, 101.0), (8, 102.0), (16, 101.0)], 1),
        ([(1, 10.0), (2, 20.0)], throughput.USUAL),
    ],
)
def test_the_fewest_lanes_that_are_almost_as_fast_as_any(rates: list[tuple[int, float]], best: int) -> None:
    assert curve(*rates).best == best


class Steps:
    """Steps of a known duration in place of llama.cpp's."""

    def __init__(self, seconds: dict[int, float], opened: list[int], **size: int) -> None:
        self.seconds = seconds
        opened.append(size["sequences"])

    def fill(self, depth: int) -> None:
        assert depth == throughput.DEPTH

    def steps(self, groups: list[list[int]]) -> list[float]:
        return [self.seconds[len(group)] for group in groups]

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("rate", "free", "reached"),
    [
        ({1: 10, 2: 10, 4: 10, 8: 10, 16: 10}, 1e12, 16),
        ({1: 10, 2: 20, 4: 40, 8: 80, 16: 160, 32: 163}, 1e12, 32),
        ({1: 10, 2: 20, 4: 40, 8: 80, 16: 160, 32: 320, 64: 640}, 1e12, 64),
        ({1: 10, 2: 20, 4: 40, 8: 80}, 2 * 10 * 256 * 1000, 8),
        ({1: 10}, 0, 1),
    ],
)
def test_a_curve_ends_where_lanes_bring_little_or_memory_ends(
    rate: dict[int, float], free: float, reached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {count: count / each for count, each in rate.items()}
    opened: list[int] = []
    monkeypatch.setattr(throughput, "RawContext", lambda _, **size: Steps(seconds, opened, **size))
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": free}))
    model: Any = type("Model", (), {"kv_bytes_per_token": 1000, "gpu_layers": 0})
    found = throughput.measure(model, 2, clock=lambda: 0.0)
    assert found[-1][0] == reached and dict(found) == pytest.approx({n: rate[n] for n, _ in found})
    assert max(opened) <= max(reached, 64 if free > 1e9 else 8)


def test_a_measurement_ends_with_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = dict.fromkeys(throughput.LANES, 0.1)
    now = iter(range(1000))
    monkeypatch.setattr(throughput, "RawContext", lambda _, **size: Steps(seconds, [], **size))
    model: Any = type("Model", (), {"kv_bytes_per_token": 1, "gpu_layers": 0})
    assert [count for count, _ in throughput.measure(model, 2, clock=lambda: float(next(now)))] == [1]


@pytest.mark.model
def test_the_curve_of_a_real_model_is_measured_once(
    starter: ModelFile, engine_model: LlamaModel, measuring: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throughput, "LANES", (1, 2))
    monkeypatch.setattr(throughput, "USUAL", 1)
    assert throughput.remembered(starter, 1, 0) is None
    first = throughput.kept(starter, 1, 0, engine_model)
    assert first.rates[0][0] == 1 and all(rate > 0 for _, rate in first.rates) and "CPU" in first.device
    monkeypatch.setattr(throughput, "measure", lambda *_: pytest.fail("a remembered curve is not measured again"))
    assert throughput.curve_of(starter, 1, 0, print) == first
    assert throughput.remembered(starter, 2, 0) is None, "other threads have a curve of their own"
    assert throughput.remembered(replace(starter, sha256="0" * 64), 1, 0) is None
    (measuring / "lanes.json").write_text('{"x": [')
    assert throughput.remembered(starter, 1, 0) is None


@pytest.mark.model
@pytest.mark.usefixtures("measuring")
def test_a_cut_curve_holds_for_one_day(
    starter: ModelFile, engine_model: LlamaModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throughput, "measure", lambda *_: ((1, 10.0), (2, 20.0)))
    today = throughput.kept(starter, 1, 0, engine_model)
    assert today.cut and throughput.curve_of(starter, 1, 0, print) == today
    stored = throughput.recall_object("lanes")
    throughput.remember("lanes", {key: {**data, "measured": "2026-01-01T07:00+00:00"} for key, data in stored.items()})
    assert throughput.curve_of(starter, 1, 0, print).measured != "2026-01-01T07:00+00:00"
    whole = {**next(iter(stored.values())), "measured": "2026-01-01T07:00+00:00", "rates": [[8, 80.0]]}
    throughput.remember("lanes", dict.fromkeys(stored, whole))
    assert throughput.curve_of(starter, 1, 0, print).measured == "2026-01-01T07:00+00:00", "a whole curve stays"


@pytest.mark.model
@pytest.mark.usefixtures("measuring")
def test_j_auto_follows_the_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan((generated("mutual_friends"),), ("agents",), model="starter", episodes=20)
    asked: list[str] = []

    def known(file: ModelFile, *_: object) -> Curve:
        asked.append(file.name)
        return curve((8, 100.0), (16, 200.0))

    monkeypatch.setattr(throughput, "curve_of", known)
    assert preview.side_by_side(plan, print) == 16
    assert preview.side_by_side(replace(plan, episodes=12), print) == 12
    asked.clear()
    assert preview.side_by_side(replace(plan, episodes=8), print) == 8
    assert preview.side_by_side(replace(plan, repro="exact"), print) == throughput.USUAL
    assert preview.side_by_side(replace(plan, model="scripted"), print) == throughput.USUAL
    assert preview.side_by_side(replace(plan, parallel=3), print) == 3
    assert asked == [], "none of these needs a curve"
    monkeypatch.setenv("LOCALSIM_LANES", "8")
    assert preview.side_by_side(plan, print) == 8 and asked == [], "LOCALSIM_LANES decides, and nothing is measured"
