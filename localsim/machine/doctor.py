"""`localsim doctor`: the machine, the build of llama.cpp, the installed models, and anything that prevents a run."""

from __future__ import annotations

import importlib.util
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from localsim import paths
from localsim.backends.engines import ensure_works, load
from localsim.backends.llama.devices import devices
from localsim.backends.llama.lib import LlamaModel, build_description, library
from localsim.backends.open import gpu_layers, physical_cores
from localsim.errors import LocalsimError
from localsim.machine import build_flags, throughput
from localsim.models import registry as models
from localsim.network import proxies, usable

_SIDE_BY_SIDE = 8
"""Conversations in the measurement of speed."""


@dataclass(frozen=True)
class Finding:
    """One line of the diagnosis; `advice` is the next step."""

    name: str
    value: str
    ok: bool = True
    advice: str = ""


def diagnose() -> list[Finding]:
    """All findings; a run works where all of them are ok."""
    return [
        Finding("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        _memory(),
        _disk(),
        _network(),
        *_library(),
        *(_model(name) for name in models.aliases().get("starter", [])),
        _speed(),
        _openvino(),
        _room(),
    ]


def as_json(findings: list[Finding]) -> dict[str, Any]:
    """The findings as an object for --json."""
    lines = [{"name": f.name, "value": f.value, "ok": f.ok, "advice": f.advice or None} for f in findings]
    return {"ok": all(finding.ok for finding in findings), "findings": lines}


def _memory() -> Finding:
    memory = psutil.virtual_memory()
    text = f"{memory.available / 1e9:.1f} of {memory.total / 1e9:.1f} GB free, {physical_cores()} physical cores"
    return Finding("memory", text)


def _disk() -> Finding:
    folder = paths.database_path().parent
    if not folder.is_dir():
        return Finding("disk", f"{folder} does not exist", ok=False, advice="create the folder, or set LOCALSIM_DB")
    free = shutil.disk_usage(folder).free
    kind = filesystem_of(folder)
    if kind in NETWORK_DRIVES:
        return Finding(
            "disk",
            f"{folder} is on a network drive ({kind}), where DuckDB's locks are not safe",
            ok=False,
            advice="set LOCALSIM_DB to a file on a local disk",
        )
    few = free < 500_000_000
    advice = "free some space, or set LOCALSIM_DB to a file on another disk" if few else ""
    return Finding("disk", f"{free / 1e9:.1f} GB free in {folder}", ok=not few, advice=advice)


def _network() -> Finding:
    """Name the proxies through which servers and downloads on other machines are reached."""
    named = proxies()
    if not named:
        return Finding("network", "no proxy is set; only servers and downloads that you name are reached")
    value = f"{', '.join(named)}: for servers and downloads on other machines, never for this one"
    return Finding("network", value, advice="" if usable() else "unset it, or: pip install socksio")


NETWORK_DRIVES = frozenset({"nfs", "nfs4", "cifs", "smbfs", "smb2", "afpfs", "fuse.sshfs", "davfs"})
"""Types of file systems, as the operating system names them."""


def filesystem_of(folder: Path) -> str:
    """The type of the file system that holds a folder; '' where the operating system does not say."""
    there = folder.resolve()
    found = [part for part in psutil.disk_partitions(all=True) if there.is_relative_to(part.mountpoint)]
    return max(found, key=lambda part: len(part.mountpoint)).fstype.lower() if found else ""


def _speed() -> Finding:
    """Measure the speed of the default model; takes a few seconds."""

    def measure() -> str:
        file = models.resolve("starter")
        ensure_works(file)
        layers = gpu_layers("auto")
        model = load(file, threads=physical_cores(), gpu_layers=layers)
        rates = _rates(model)
        curve = throughput.remembered(file, physical_cores(), layers) or throughput.kept(
            file, physical_cores(), layers, model
        )
        model.free()
        return f"the starter {rates}; by conversations at a time: {curve}"

    return _checked("speed", measure)


def _rates(model: LlamaModel) -> str:
    from localsim.machine import forecast

    rates = forecast.measure(model, _SIDE_BY_SIDE, physical_cores())
    return (
        f"reads {rates.heard:.0f} and writes {rates.written:.0f} tokens a second "
        f"in {_SIDE_BY_SIDE} conversations at a time"
    )


_GAINS = {"avx512_vnni": "would gain from it", "amx_int8": "may gain from it", "avx_vnni": "may gain from it"}
"""Instructions for numbers of 8 bits, which OpenVINO uses more than llama.cpp; only the first has been measured."""


def _openvino() -> Finding:
    """Measure the default model with OpenVINO, or say whether an installation is worth while."""
    if importlib.util.find_spec("openvino") is None:
        features = build_flags.processor_features()
        feature = next((name for name in _GAINS if name in features), "")
        worth = f"this processor {_GAINS[feature]} ({feature})" if feature else "no gain is known on this processor"
        advice = f"for more tokens a second: {paths.installing('openvino')}, then -m openvino:NAME" if feature else ""
        return Finding("openvino", f"not installed; {worth}", advice=advice)

    def measure() -> str:
        model = load(models.resolve("openvino:starter"), threads=physical_cores())
        rates = _rates(model)
        model.free()
        return f"-m openvino:starter {rates}"

    return _checked("openvino", measure)


def _room() -> Finding:
    """Sort the larger models of the registry by whether they fit into the memory that is free now."""

    def sort() -> str:
        free = psutil.virtual_memory().available / 1e6
        fitting = [model.name for model in models.entries() if model.ram_mb and model.ram_mb <= free]
        others = [model.name for model in models.entries() if model.ram_mb > free]
        enough = ", ".join(fitting) or "the starter only"
        return f"free memory is enough for {enough}" + (f"; too little for {', '.join(others)}" if others else "")

    return _checked("other models", sort)


def _library() -> list[Finding]:
    try:
        build = build_description()
        offers = bool(library().llama_supports_gpu_offload())
    except LocalsimError as error:
        return [Finding("llama.cpp", error.message, ok=False, advice=error.hint or "")]
    gpu = "supported by this build (option --gpu)" if offers else "not used: this build is for the processor only"
    found = [Finding("device", str(device)) for device in devices()]
    return [Finding("llama.cpp", _readable(build)), build_finding(build), Finding("gpu", gpu), *found]


def _readable(build: str) -> str:
    """The version and the processor features of a build, without llama.cpp's own notation."""
    version, _, info = build.partition(";")
    used = [part.split("=")[0].split(":")[-1].strip() for part in info.split("|") if part.strip().endswith("= 1")]
    return f"{version}, built with {' '.join(used)}"


def build_finding(build: str) -> Finding:
    """List the features of the processor that a build leaves unused, with the command of a build that uses them."""
    features = build_flags.processor_features()
    missing = build_flags.unused(features, build.partition(";")[2])
    if not missing:
        return Finding("build", "uses all of this processor's features that help")
    best = build_flags.here()[0]
    value = f"works, but does not use {', '.join(missing)}"
    if "amx_int8" in missing and "AMX_INT8" not in best:
        value += "; the C++ compiler cannot compile for AMX (gcc 11 and newer can)"
        if missing == ["amx_int8"]:
            return Finding("build", value, advice="name a newer compiler in CXX, then call localsim doctor again")
    return Finding("build", value, advice=f"for a faster build: {paths.rebuilding(best)}")


def _model(name: str) -> Finding:
    def check() -> str:
        model = models.entry(name)
        path = models.verify(name)
        if model.kind == "chat":
            ensure_works(models.resolve(name))
            return f"checksum is right, writes text ({path})"
        return f"checksum is right ({path})"

    return _checked(name, check)


def _checked(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, check())
    except LocalsimError as error:
        return Finding(name, error.message, ok=False, advice=error.hint or "")
