"""How many conversations at a time pay: a short measured curve of one model on this machine, kept for later runs.

A model writes one token in each of 1, 2, 4 ... conversations (lanes) together. More lanes raise the tokens a second
until the processor or the GPU is busy; from there on they only take memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psutil

from localsim.backends.engines import build_stamp, ensure_works, load
from localsim.backends.llama.devices import layered, where
from localsim.backends.llama.lib import LlamaModel
from localsim.backends.llama.raw import RawContext
from localsim.models.registry import ModelFile
from localsim.models.remembered import recall_object, remember

LANES = (1, 2, 4, 8, 16, 32, 64)
USUAL = 8
"""Lanes where nothing was measured. Only after so many may a small gain end a curve: noise must not end it before."""
GAIN = 1.05
"""Twice the lanes must write so many times the tokens a second, or the curve ends."""
BUDGET_S = 2.0
"""Seconds that a run gives to a measurement, without loading; no further point is begun after them."""
PATIENT_S = 10.0
"""Seconds that a benchmark gives to it."""
POINT_S = 0.2
"""Seconds of one point, in which the fastest step counts."""
DEPTH = 128
"""Tokens in every conversation before those that are measured."""
_CONTEXT = 256
"""Tokens that a conversation may hold; llama.cpp rounds up to this number."""
_FEWEST, _MOST = 2, 20
"""Steps of a point."""
_MEMORY, _KEPT = "lanes", 50


@dataclass(frozen=True)
class Curve:
    """Tokens a second that lanes write together."""

    rates: tuple[tuple[int, float], ...]
    """(lanes, tokens a second), lanes rising."""
    device: str
    measured: str
    """Date and time, in ISO format."""

    @property
    def cut(self) -> bool:
        """Whether the time was over before USUAL lanes, as on a machine that is busy with other programs."""
        return self.rates[-1][0] < USUAL

    @property
    def best(self) -> int:
        """The fewest lanes that write almost as fast as any: within GAIN of the highest rate; USUAL of a cut curve."""
        if self.cut:
            return USUAL
        top = max(rate for _, rate in self.rates)
        return next(lanes for lanes, rate in self.rates if rate * GAIN >= top)

    def __str__(self) -> str:
        points = ", ".join(f"{lanes}: {rate:.0f}" for lanes, rate in self.rates)
        return f"{points} tokens/s, measured {self.measured} on {self.device}"

    def as_json(self) -> dict[str, Any]:
        """The fields as an object for --json, and the lanes that -j auto takes."""
        rates = {str(lanes): round(rate, 1) for lanes, rate in self.rates}
        return {"best": self.best, "rates": rates, "device": self.device, "measured": self.measured}


def curve_of(file: ModelFile, threads: int, layers: int, say: Callable[[str], None]) -> Curve:
    """The curve of a model: remembered, or measured now.

    Raises BackendUnavailable or ModelMissing where the model does not work.
    """
    known = remembered(file, threads, layers)
    if known is not None and not (known.cut and known.measured[:10] != f"{datetime.now():%Y-%m-%d}"):
        return known  # a cut curve holds for one day: the machine may be less busy on another
    ensure_works(file)
    say(f"{file.name}: measuring how many conversations at a time pay (once, some seconds)")
    model = load(file, threads=threads, gpu_layers=layers)
    try:
        return kept(file, threads, layers, model)
    finally:
        model.free()


def kept(file: ModelFile, threads: int, layers: int, model: LlamaModel, budget_s: float = BUDGET_S) -> Curve:
    """Measure a loaded model, and keep its curve for later processes in place of an earlier one."""
    now = datetime.now().astimezone().isoformat(timespec="minutes")
    curve = Curve(measure(model, threads, budget_s), where(layers), now)
    others = {key: value for key, value in recall_object(_MEMORY).items() if key != _key(file, threads, layers)}
    data = {"rates": curve.rates, "device": curve.device, "measured": curve.measured}
    remember(_MEMORY, dict([*others.items(), (_key(file, threads, layers), data)][-_KEPT:]))
    return curve


def remembered(file: ModelFile, threads: int, layers: int) -> Curve | None:
    """The kept curve of a model under this build, with these threads and devices; None where there is none."""
    data = recall_object(_MEMORY).get(_key(file, threads, layers)) or {}
    try:
        rates = tuple((int(lanes), float(rate)) for lanes, rate in data["rates"])
        return Curve(rates, str(data["device"]), str(data["measured"])) if rates else None
    except (TypeError, KeyError, ValueError):  # damaged or of an older version
        return None


def _key(file: ModelFile, threads: int, layers: int) -> str:
    on = "+".join(f"{device.name} {device.description}" for device in layered(layers)) or "processor"
    return f"{file.sha256}|{build_stamp(file)}|{threads} threads|{layers} layers|{on}|{DEPTH}"


def measure(
    model: LlamaModel, threads: int, budget_s: float = BUDGET_S, clock: Callable[[], float] = time.perf_counter
) -> tuple[tuple[int, float], ...]:
    """(lanes, tokens a second) with twice the lanes at each point, until that brings less than GAIN.

    It also ends before the caches would take half of the free memory, and after `budget_s`.
    """
    begun = clock()
    rates: list[tuple[int, float]] = []
    few = [lanes for lanes in LANES if lanes <= USUAL]
    for group in (few, [lanes for lanes in LANES if lanes > USUAL]):
        group = _that_fit(group, model)
        if not group or (rates and clock() - begun > budget_s):
            break
        raw = RawContext(model, sequences=group[-1], context=_CONTEXT, threads=threads)
        try:
            raw.fill(DEPTH)
            for lanes in group:
                if rates and clock() - begun > budget_s:
                    return tuple(rates)
                rates.append((lanes, lanes / _fastest(raw, lanes, clock)))
                if lanes > USUAL and rates[-1][1] < GAIN * rates[-2][1]:
                    return tuple(rates)
        finally:
            raw.close()
    return tuple(rates)


def _that_fit(group: list[int], model: LlamaModel) -> list[int]:
    """The numbers of lanes whose caches take less than half of the free memory; one lane always counts as fitting."""
    room = psutil.virtual_memory().available / 2
    if used := [device for device in layered(model.gpu_layers) if device.own_memory]:
        room = min(room, sum(device.free for device in used) / 2)
    return [lanes for lanes in group if lanes == 1 or lanes * _CONTEXT * model.kv_bytes_per_token < room]


def _fastest(raw: RawContext, lanes: int, clock: Callable[[], float]) -> float:
    """Seconds of the fastest step of one token in each lane, after a first step that does not count."""
    begun = clock()
    seconds: list[float] = []
    for step in range(_MOST):
        seconds += raw.steps([[DEPTH + step] * lanes])
        if step >= _FEWEST and clock() - begun > POINT_S:
            break
    return min(seconds[1:])
