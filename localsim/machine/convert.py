"""Models made on this machine from others: the same weights in a type that the processor is faster with.

A sidecar (FILE.gguf.json) says what a file was made from, by checksum, so that it is verified like any other. The
files that are compared are measured, not believed: speed and perplexity of each.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import psutil
import yaml

from localsim import paths
from localsim.backends.llama.lib import LlamaModel
from localsim.backends.llama.quantize import requantize
from localsim.backends.llama.raw import RawContext
from localsim.models import downloads, lora
from localsim.models import registry as models
from localsim.models.registry import ModelEntry, ModelFile

DEPTH = 400
"""Tokens before the ones whose speed is measured: an agent's instructions and some turns."""
ABREAST = 8


def pull(name: str, say: Callable[[str], None], confirm: downloads.Confirm = lambda _licence: False) -> list[Path]:
    """Fetch a model and all it stands for; what the registry derives from another is made here. `confirm` is asked
    with the licence of what comes from a hub.
    """

    def have(model: ModelEntry, say: Callable[[str], None]) -> Path:
        return downloads.fetch_entry(model, say, confirm) if model.hub else derive(model, say)

    return models.pull(name, say, have)


def derive(model: ModelEntry, say: Callable[[str], None]) -> Path:
    """Make a derived model from its source, which is here. Raises ModelMissing or BackendUnavailable."""
    source = models.resolve(model.source)
    target = models.writable_folder() / model.file
    also = f" with {model.adapter} merged in" if model.adapter else ""
    say(f"{model.name}: writing {source.path.name} as {model.type}{also}")
    threads = psutil.cpu_count(logical=False) or 1
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".merge-") as scratch:
        weights = _merged(model, source, Path(scratch)) if model.adapter else source.path
        requantize(weights, target, model.type, threads)
    sidecar = {
        "name": model.name,
        "source": model.source,
        "source_sha256": source.sha256,
        "type": model.type,
        "sha256": models.checksum(target),
        "bytes": target.stat().st_size,
        "made_with": f"llama-cpp-python {version('llama-cpp-python')}",
    }
    if model.adapter:
        sidecar["adapter_sha256"] = models.checksum(models.merged_adapter(model))
    models.sidecar_path(target).write_text(json.dumps(sidecar, indent=1) + "\n", encoding="utf-8")
    return target


def _merged(model: ModelEntry, source: ModelFile, folder: Path) -> Path:
    """The source's weights with the adapter added to them, in 16 bits: an unmerged adapter slows every decode."""
    adapter = lora.read_adapter(models.merged_adapter(model))
    lora.check_fits(adapter, source.path, {source.sha256})
    target = folder / "merged.gguf"
    lora.merge(source.path, adapter, target)
    return target


def optimize(name: str, kind: str, say: Callable[[str], None]) -> ModelFile:
    """A copy of a model in another type, under the name NAME-TYPE; one that is there and whole is left alone."""
    source = models.resolve(name)
    derived = f"{source.name}-{kind.lower()}"
    if derived not in {model.name for model in models.entries()}:
        stem = source.path.stem
        entry = ModelEntry.derived(derived, source=name, kind=kind, file=f"{stem}.{kind}.gguf")
        derive(entry, say)
    elif models.installed_path(models.entry(derived)) is None:
        derive(models.entry(derived), say)
    return models.resolve(derived)


# ---- measuring -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bench:
    """What one model file does on this machine."""

    name: str
    mb: float
    load_s: float
    prefill: float
    """Tokens a second of a prompt of 512."""
    turn: float
    """Tokens a second of a prompt's part of 32 behind 400: what a listener takes in each turn."""
    decode_1: float
    """Tokens a second of one conversation behind 400 tokens."""
    decode_8: float
    """Of eight conversations side by side, in all."""
    perplexity: float
    """On the prose of the scenarios that come with localsim: to compare files of one model, nothing else."""
    memory_mb: float
    """Growth of the process while it was loaded, with eight sequences of 1,024 tokens."""

    def as_json(self) -> dict[str, float | str]:
        """For --json."""
        return asdict(self)


def bench(file: ModelFile, threads: int) -> Bench:
    """Measure a model file; about 20 seconds for a small one."""
    before = psutil.Process().memory_info().rss
    begun = time.perf_counter()
    model = LlamaModel(file.path, adapter=file.adapter)
    loaded = time.perf_counter() - begun
    raw = RawContext(model, sequences=ABREAST, context=1024, threads=threads)
    perplexity, _ = raw.perplexity(prose())
    turn = sorted(raw.pieces([(DEPTH, 32)] * 5))[2]
    found = Bench(
        name=file.name,
        mb=file.path.stat().st_size / 1e6,
        load_s=loaded,
        prefill=raw.prefill_rate(),
        turn=32 / turn,
        decode_1=raw.step_rate(1, DEPTH),
        decode_8=raw.step_rate(ABREAST, DEPTH),
        perplexity=perplexity,
        memory_mb=(psutil.Process().memory_info().rss - before) / 1e6,
    )
    raw.close()
    model.free()
    return found


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


def fastest(found: Sequence[Bench]) -> Bench:
    """The file that gets through a turn soonest (32 tokens heard, 24 written), among those whose perplexity is within
    2% of the best.
    """
    best = min(bench.perplexity for bench in found)
    good = [bench for bench in found if bench.perplexity <= 1.02 * best]
    return min(good, key=lambda bench: 32 / bench.turn + 24 / bench.decode_8)
