"""What this machine has, how llama.cpp was built for it, and what stands in the way of a run."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from localsim import paths
from localsim.backends.llama.lib import LlamaModel, build_description, library
from localsim.backends.llama.probe import ensure_works
from localsim.backends.open import physical_cores
from localsim.errors import LocalsimError
from localsim.machine import build_flags
from localsim.models import registry as models


@dataclass(frozen=True)
class Finding:
    """One line of the diagnosis."""

    name: str
    value: str
    ok: bool = True
    advice: str = ""


def diagnose() -> list[Finding]:
    """All findings; a run can work where all are ok."""
    return [
        Finding("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        _memory(),
        _disk(),
        *_library(),
        *(_model(name) for name in models.aliases().get("starter", [])),
        _speed(),
        _room(),
    ]


def as_json(findings: list[Finding]) -> dict[str, Any]:
    """For --json."""
    lines = [{"name": f.name, "value": f.value, "ok": f.ok, "advice": f.advice or None} for f in findings]
    return {"ok": all(finding.ok for finding in findings), "findings": lines}


def _memory() -> Finding:
    memory = psutil.virtual_memory()
    text = f"{memory.available / 1e9:.1f} of {memory.total / 1e9:.1f} GB free, {physical_cores()} physical cores"
    return Finding("memory", text)


def _disk() -> Finding:
    folder = paths.database_path().parent
    if not folder.is_dir():
        return Finding("disk", f"{folder} is not there", ok=False, advice="make the folder, or set LOCALSIM_DB")
    free = shutil.disk_usage(folder).free
    kind = filesystem_of(folder)
    if kind in NETWORK_DRIVES:
        return Finding(
            "disk",
            f"{folder} lies on a network drive ({kind}); DuckDB's locks are not safe there",
            ok=False,
            advice="set LOCALSIM_DB to a file on a local disk",
        )
    few = free < 500_000_000
    advice = "free some space, or set LOCALSIM_DB to a file on another disk" if few else ""
    return Finding("disk", f"{free / 1e9:.1f} GB free in {folder}", ok=not few, advice=advice)


NETWORK_DRIVES = frozenset({"nfs", "nfs4", "cifs", "smbfs", "smb2", "afpfs", "fuse.sshfs", "davfs"})


def filesystem_of(folder: Path) -> str:
    """The type of the file system that a folder lies on; '' where the system does not tell."""
    there = folder.resolve()
    found = [part for part in psutil.disk_partitions(all=True) if there.is_relative_to(part.mountpoint)]
    return max(found, key=lambda part: len(part.mountpoint)).fstype.lower() if found else ""


def _speed() -> Finding:
    """How fast the default model is here; a few seconds."""

    def measure() -> str:
        from localsim.machine import forecast

        file = models.resolve("starter")
        ensure_works(file.path, file.sha256)
        model = LlamaModel(file.path)
        rates = forecast.measure(model, 8, physical_cores())
        model.free()
        return (
            f"the starter hears {rates.heard:.0f} and writes {rates.written:.0f} tokens a second, 8 talks side by side"
        )

    return _checked("speed", measure)


def _room() -> Finding:
    """Which models of the registry fit into the memory that is free now."""
    free = psutil.virtual_memory().available / 1e6
    fitting = [model.name for model in models.entries() if model.ram_mb and model.ram_mb <= free]
    others = [model.name for model in models.entries() if model.ram_mb > free]
    told = f"room for {', '.join(fitting)}" if fitting else "no model of the registry but the starter fits"
    return Finding("models", told + (f"; not for {', '.join(others)}" if others else ""))


def _library() -> list[Finding]:
    try:
        build = build_description()
        offers = bool(library().llama_supports_gpu_offload())
    except LocalsimError as error:
        return [Finding("llama.cpp", error.message, ok=False, advice=error.hint or "")]
    return [Finding("llama.cpp", build), build_finding(build), Finding("gpu", _gpu(offers))]


def build_finding(build: str) -> Finding:
    """Which features of the processor a build leaves unused, and the line that would use them."""
    features = build_flags.processor_features()
    missing = build_flags.unused(features, build.partition(";")[2])
    best = build_flags.candidates(features, platform.machine())[0]
    if not missing:
        return Finding("build", "uses what this processor has (AMX is left out on purpose)")
    return Finding(
        "build",
        f"does not use {', '.join(missing)}",
        advice=f'faster: CMAKE_ARGS="{best}" pip install --no-cache-dir --force-reinstall llama-cpp-python',
    )


def _gpu(offers: bool) -> str:
    return "this build can put layers on a GPU (--gpu)" if offers else "this build uses the processor alone"


def _model(name: str) -> Finding:
    def check() -> str:
        model = models.entry(name)
        path = models.verify(name)
        if model.kind == "chat":
            ensure_works(path, models.checksum(path))
            return f"{path} is whole and writes"
        return f"{path} is whole"

    return _checked(name, check)


def _checked(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, check())
    except LocalsimError as error:
        return Finding(name, error.message, ok=False, advice=error.hint or "")
