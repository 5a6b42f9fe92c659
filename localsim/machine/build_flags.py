"""Compiler flags that make llama.cpp fast on this processor. Standard library only: the bootstrap script loads it, too.

A native build is not among the choices: on processors with AMX, gcc compiles code that crashes on the first decode.
So the features that help are named one by one, and the portable build comes last.
"""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

PORTABLE = "-DGGML_NATIVE=OFF"
"""AVX2 on x86: works on any laptop of the last ten years."""

DEVICES = {"cuda": "-DGGML_CUDA=ON", "vulkan": "-DGGML_VULKAN=ON", "metal": "-DGGML_METAL=ON"}
"""Names of GPU backends, as LOCALSIM_BUILD gives them -> the flag that builds them."""
LEAN = "-DLLAVA_BUILD=OFF"
"""Leaves out the library for images, which localsim never loads."""

_AVX512_NEEDED = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"})
_AVX512_MORE = {
    "avx512_vnni": "-DGGML_AVX512_VNNI=ON",
    "avx512vbmi": "-DGGML_AVX512_VBMI=ON",
    "avx512_bf16": "-DGGML_AVX512_BF16=ON",
}
_SYSTEM_INFO = {
    "AVX512": "avx512f",
    "AVX512_VNNI": "avx512_vnni",
    "AVX512_VBMI": "avx512vbmi",
    "AVX512_BF16": "avx512_bf16",
    "AVX_VNNI": "avx_vnni",
}
"""llama.cpp's name of a feature in its system info -> the kernel's name of it."""


def processor_features() -> frozenset[str]:
    """Instruction sets under the operating system's names; empty where it lists none."""
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.features", "machdep.cpu.leaf7_features"]
        try:
            text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        except OSError:
            return frozenset()
        return frozenset(text.lower().split())
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(
        word
        for line in lines
        if line.lower().startswith(("flags", "features"))
        for word in line.partition(":")[2].split()
    )


def candidates(features: frozenset[str], machine: str, device: str = "") -> list[str]:
    """CMAKE_ARGS to try, fastest first; the last one is portable. `device` is '' or a name in DEVICES."""
    if device:
        return [f"{DEVICES[device]} {flags}" for flags in candidates(features, machine)]
    if machine.lower() in ("x86_64", "amd64"):
        found = []
        if features >= _AVX512_NEEDED:
            more = [flag for feature, flag in _AVX512_MORE.items() if feature in features]
            found.append(" ".join([PORTABLE, "-DGGML_AVX512=ON", *more]))
        elif "avx_vnni" in features:
            found.append(f"{PORTABLE} -DGGML_AVX_VNNI=ON")
        return [*found, PORTABLE]
    if machine.lower() in ("aarch64", "arm64") and "asimddp" in features:
        parts = ["armv8.2-a", "dotprod", *(["i8mm"] if "i8mm" in features else []), "fp16"]
        return [f"{PORTABLE} -DGGML_CPU_ARM_ARCH={'+'.join(parts)}", PORTABLE]
    # Apple's compiler knows its own processors, and Metal is on by default.
    return ["-DGGML_NATIVE=ON", PORTABLE] if platform.system() == "Darwin" else [PORTABLE]


def unused(features: frozenset[str], system_info: str) -> list[str]:
    """Features that the processor has and that a build does not use, according to its system info."""
    used = {part.partition("=")[0].strip() for part in system_info.replace(":", "|").split("|") if "= 1" in part}
    missing = [kernel for name, kernel in _SYSTEM_INFO.items() if kernel in features and name not in used]
    return [] if missing == ["avx_vnni"] and "AVX512_VNNI" in used else missing
