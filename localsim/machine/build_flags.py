"""Compiler flags that make llama.cpp fast on this processor. Standard library only: the bootstrap script loads it, too.

A native build is not among the choices: it names AMX without the flag that some compilers need for it (`amx_cure`). So
the features that help are named one by one, and the portable build comes last.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping
from functools import cache
from itertools import takewhile
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
_AMX_NEEDED = frozenset({"amx_tile", "amx_int8", "avx512_vnni", *_AVX512_NEEDED})
"""llama.cpp compiles its code for AMX only together with AVX-512 and VNNI."""
_AMX = {"amx_tile": "-DGGML_AMX_TILE=ON", "amx_int8": "-DGGML_AMX_INT8=ON", "amx_bf16": "-DGGML_AMX_BF16=ON"}
_SYSTEM_INFO = {
    "AVX512": "avx512f",
    "AVX512_VNNI": "avx512_vnni",
    "AVX512_VBMI": "avx512vbmi",
    "AVX512_BF16": "avx512_bf16",
    "AVX_VNNI": "avx_vnni",
    "AMX_INT8": "amx_int8",
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


def here(device: str = "") -> list[str]:
    """CMAKE_ARGS to try on this machine, fastest first, with the user's own; `device` is '' or a name in DEVICES."""
    features = processor_features()
    mine = os.environ
    cure = amx_cure(compiler(mine), tuple(_words(_own_flags(mine)))) if features >= _AMX_NEEDED else None
    return [joined(flags, mine) for flags in candidates(features, platform.machine(), device, cure)]


def candidates(features: frozenset[str], machine: str, device: str = "", cure: str | None = None) -> list[str]:
    """CMAKE_ARGS to try, fastest first; the last one is portable. `cure` is what `amx_cure` returns."""
    if device:
        return [f"{DEVICES[device]} {flags}" for flags in candidates(features, machine, cure=cure)]
    if machine.lower() in ("x86_64", "amd64"):
        found = []
        if features >= _AVX512_NEEDED:
            more = [flag for feature, flag in _AVX512_MORE.items() if feature in features]
            found.append(" ".join([PORTABLE, "-DGGML_AVX512=ON", *more]))
        elif "avx_vnni" in features:
            found.append(f"{PORTABLE} -DGGML_AVX_VNNI=ON")
        if features >= _AMX_NEEDED and cure is not None:
            more = [flag for feature, flag in _AMX.items() if feature in features]
            found.insert(0, " ".join([found[0], *more, *([f"-DCMAKE_CXX_FLAGS={cure}"] if cure else [])]))
        return [*found, PORTABLE]
    if machine.lower() in ("aarch64", "arm64") and "asimddp" in features:
        parts = ["armv8.2-a", "dotprod", *(["i8mm"] if "i8mm" in features else []), "fp16"]
        return [f"{PORTABLE} -DGGML_CPU_ARM_ARCH={'+'.join(parts)}", PORTABLE]
    # Apple's compiler knows its own processors, and Metal is on by default.
    return ["-DGGML_NATIVE=ON", PORTABLE] if platform.system() == "Darwin" else [PORTABLE]


def unused(features: frozenset[str], system_info: str) -> list[str]:
    """Features that the processor has and that a build does not use, according to its system info."""
    used = {part.partition("=")[0].strip() for part in system_info.replace(":", "|").split("|") if "= 1" in part}
    if not features >= _AMX_NEEDED:
        features -= _AMX.keys()
    missing = [kernel for name, kernel in _SYSTEM_INFO.items() if kernel in features and name not in used]
    return [] if missing == ["avx_vnni"] and "AVX512_VNNI" in used else missing


# ---- the compiler ----------------------------------------------------------------------------------------------------

_CURE = "-fno-dse"
"""Without dead-store elimination, the compiler keeps the stores that it takes for dead."""
_AMX_FLAGS = ("-O3", "-mamx-tile", "-mamx-int8")
_TILES = """
#include <immintrin.h>
extern unsigned char localsim_rows;
extern unsigned short localsim_columns;
void load_tiles() {
    struct alignas(64) Tiles {
        unsigned char palette, start, none[14];
        unsigned short columns[16];
        unsigned char rows[16];
    } tiles = {};
    tiles.palette = 1;
    tiles.rows[7] = localsim_rows;
    tiles.columns[7] = localsim_columns;
    _tile_loadconfig(&tiles);
}
"""
_ENOUGH_S = 300
"""Seconds for one trial: a tenth of a second of work, on a machine that may be very busy."""
_COMPILERS = ("c++", "g++", "clang++", "cl")


def compiler(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The C++ compiler that builds llama-cpp-python, with its arguments; empty where there is none.

    Where the user names none, scikit-build-core gives cmake the compiler that Python was built with, without its flags.
    """
    path = environment.get("PATH")
    named = _value(_words(environment.get("CMAKE_ARGS", "")), "CMAKE_CXX_COMPILER") or environment.get("CXX")
    if named:
        return _command(named, path)
    of_python = takewhile(lambda word: not word.startswith("-"), _words(sysconfig.get_config_var("CXX") or ""))
    found = (_command(name, path) for name in (" ".join(of_python), *_COMPILERS))
    return next(filter(None, found), ())


def _command(text: str, path: str | None) -> tuple[str, ...]:
    """A compiler as CXX names one: a program, or a program and its arguments; empty where it does not exist."""
    words = [text] if shutil.which(text, path=path) else _words(text)
    program = shutil.which(words[0], path=path) if words else None
    return (program, *words[1:]) if program else ()


@cache
def amx_cure(command: tuple[str, ...], own: tuple[str, ...] = ()) -> str | None:
    """The flag with which a compiler makes working code for AMX: '' where it needs none, None where nothing helps.

    In some releases of gcc, such as 11.3 and 12.2, `_tile_loadconfig` says that it reads 8 bytes where it reads 64 (gcc
    bug 114098). So the rows and columns of a tile configuration are never stored, and the first tile instruction
    crashes (llama.cpp issue 20824). `command` compiles such a configuration with the user's `own` flags; a store that
    survives names its variable in the assembly. A compiler that compiles nothing is asked for its version. Without any
    answer it gets the flag, which is right for every gcc. clang needs no flag, and refuses this one.
    """
    for cure in ((), (_CURE,)):
        if _keeps_stores((*command, *own, *cure)):
            return " ".join(cure)
    return None if _compiles((*command, *own), "int localsim_nothing;") is not None else _cure_by_version(command)


def _keeps_stores(command: tuple[str, ...]) -> bool:
    assembly = _compiles((*command, *_AMX_FLAGS), _TILES) or ""
    # Lines that begin with a dot are directives: debugging symbols name variables, too.
    code = [line for line in map(str.strip, assembly.splitlines()) if not line.startswith(".")]
    return all(any(name in line for line in code) for name in ("localsim_rows", "localsim_columns"))


def _compiles(command: tuple[str, ...], program: str) -> str | None:
    """The assembly of a C++ program; None where compiler or assembler fail."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            source, out = Path(folder, "tiles.cpp"), Path(folder, "tiles.o")
            source.write_text(program, encoding="utf-8")
            # An assembler can be older than its compiler, so it is tried as well.
            if _output([*command, "-c", "-save-temps=obj", "-o", str(out), str(source)]) is None:
                return None
            return out.with_suffix(".s").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _cure_by_version(command: tuple[str, ...]) -> str | None:
    """The same by what `--version` says; releases of gcc 13 are not told apart."""
    about = _output([*command, "--version"]) or ""
    if "clang" in about:
        return ""
    found = re.search(r"\) (\d+)\.", about) if "Free Software Foundation" in about else None
    version = int(found[1]) if found else 0
    return None if 0 < version < 11 else "" if version > 13 else _CURE


def _output(command: list[str]) -> str | None:
    """What a command prints; None where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_ENOUGH_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


# ---- the user's own flags --------------------------------------------------------------------------------------------


def joined(flags: str, environment: Mapping[str, str]) -> str:
    """`flags` and the user's CMAKE_ARGS, which come last and so win, as one text for CMAKE_ARGS.

    -DCMAKE_CXX_FLAGS is added up instead: ours would replace the user's, and the CXXFLAGS of the environment.
    """
    ours, own = shlex.split(flags), _words(environment.get("CMAKE_ARGS", ""))
    added = _value(ours, "CMAKE_CXX_FLAGS")
    if added is None:
        return " ".join([flags, *map(shlex.quote, own)])
    kept = [word for word in [*ours, *own] if _value([word], "CMAKE_CXX_FLAGS") is None]
    return shlex.join([*kept, "-DCMAKE_CXX_FLAGS=" + f"{_own_flags(environment)} {added}".strip()])


def _own_flags(environment: Mapping[str, str]) -> str:
    """The flags that the user gives the C++ compiler: those of CMAKE_ARGS, or else CXXFLAGS, as cmake takes them."""
    given = _value(_words(environment.get("CMAKE_ARGS", "")), "CMAKE_CXX_FLAGS")
    return environment.get("CXXFLAGS", "") if given is None else given


def _value(words: list[str], name: str) -> str | None:
    """The last value that words of CMAKE_ARGS give a variable, in `-DNAME=value` or `-DNAME:TYPE=value`."""
    found = [re.fullmatch(rf"-D{name}(?::\w+)?=(.*)", word, re.DOTALL) for word in words]
    return next((match[1] for match in reversed(found) if match), None)


def _words(text: str) -> list[str]:
    """The words of a command line; `-D NAME=value` becomes one. Where a quote is left open, spaces part the words."""
    text = re.sub(r"(^|\s)-D\s+", r"\1-D", text)
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
