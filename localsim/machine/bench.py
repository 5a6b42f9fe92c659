"""Measured speed, memory and perplexity of model files on this machine.

To choose between several types of one model: `localsim models bench` and `localsim models optimize` print this.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import psutil
import yaml

from localsim import paths
from localsim.backends.engines import ensure_works, load
from localsim.backends.llama.raw import RawContext
from localsim.backends.open import layers_of, physical_cores
from localsim.machine.throughput import PATIENT_S, Curve, kept
from localsim.models.registry import ModelFile

DEPTH = 400
"""Tokens in the context before those whose speed is measured: an agent's instructions and some turns."""
PARALLEL = 8
"""Conversations at a time in the last column of speed, unless -j says otherwise."""
HEARD, WRITTEN = 32, 24
"""Tokens of a usual turn: read by the listener, and written by the speaker."""
_TOLERANCE = 1.02
"""A perplexity up to this many times the best one counts as the same quality."""


@dataclass(frozen=True)
class Bench:
    """The measurements of one model file."""

    name: str
    mb: float
    load_s: float
    prefill: float
    """Prompt tokens a second, for a prompt of 512."""
    turn: float
    """Prompt tokens a second for parts of 32 tokens after 400: a listener reads such a part in each turn."""
    decode_1: float
    """Tokens a second that one conversation writes after 400 tokens."""
    decode_together: float
    """Tokens a second that `parallel` conversations write together."""
    perplexity: float
    """Measured on the prose of the bundled scenarios; comparable only between files of one model."""
    memory_mb: float
    """Growth of the process while the model was loaded, with `parallel` conversations of 1,024 tokens."""
    parallel: int = PARALLEL
    curve: Curve | None = None
    """Tokens a second by conversations at a time; -j auto takes its best number in later runs."""

    def as_json(self) -> dict[str, Any]:
        """The fields as an object for --json."""
        fields = asdict(self) | {"lanes": self.curve.as_json() if self.curve else None}
        del fields["curve"]
        return fields | ({"decode_8": self.decode_together} if self.parallel == PARALLEL else {})


def benches(
    files: Iterable[ModelFile], threads: int | None, gpu: str, parallel: int | None, say: Callable[[str], None]
) -> list[Bench]:
    """Measure model files one after the other; `gpu` is auto, off or a number of layers. None takes the default.

    Raises BackendUnavailable and ModelMissing where one does not work.
    """
    found = []
    for file in files:
        ensure_works(file)
        say(f"{file.name}: measuring")
        found.append(bench(file, threads or physical_cores(), layers_of(file, gpu), parallel or PARALLEL))
    return found


def bench(file: ModelFile, threads: int, layers: int = 0, parallel: int = PARALLEL) -> Bench:
    """Measure a model file with so many layers on a GPU; about 20 seconds for a small one.

    `parallel` is the number of conversations in the last column of speed. The curve is measured anew, and kept.
    """
    before = psutil.Process().memory_info().rss
    begun = time.perf_counter()
    model = load(file, threads=threads, gpu_layers=layers)
    loaded = time.perf_counter() - begun
    raw = RawContext(model, sequences=parallel, context=1024, threads=threads)
    perplexity, _ = raw.perplexity(prose())
    turn = sorted(raw.pieces([(DEPTH, HEARD)] * 5))[2]
    measured = Bench(
        name=file.name,
        mb=file.path.stat().st_size / 1e6,
        load_s=loaded,
        prefill=raw.prefill_rate(),
        turn=HEARD / turn,
        decode_1=raw.step_rate(1, DEPTH),
        decode_together=raw.step_rate(parallel, DEPTH),
        perplexity=perplexity,
        memory_mb=(psutil.Process().memory_info().rss - before) / 1e6,
        parallel=parallel,
    )
    raw.close()
    curve = kept(file, threads, layers, model, PATIENT_S)
    model.free()
    return replace(measured, curve=curve)


def prose() -> str:
    """The settings, goals, secrets and facts of the bundled scenarios, one after the other."""
    lines: list[str] = []
    for file in sorted(paths.bundled("scenarios").glob("*.yaml")):
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
        lines.append(document["setting"])
        for agent in document["agents"]:
            lines += [agent.get("goal", ""), agent.get("secret") or ""]
            lines += [fact["text"] for fact in agent.get("facts") or ()]
    return "\n".join(line for line in lines if line)


def fastest(benches: Sequence[Bench]) -> Bench:
    """The file that needs the least time for a turn, among those whose perplexity is within 2% of the best."""
    best = min(bench.perplexity for bench in benches)
    good = [bench for bench in benches if bench.perplexity <= _TOLERANCE * best]
    return min(good, key=lambda bench: HEARD / bench.turn + WRITTEN / bench.decode_together)
