"""Libraries of other packages that clash with llama.cpp's: load ours first, and find the cause of a crash.

Packages bring their own copies of the C++ and OpenMP runtimes. The dynamic linker binds a symbol to the first library
that defines it, so llama.cpp can end up calling into another package's copy and crash while it loads a model.
`load_first` is called before any other native library of localsim is imported; `cause` tries a crashed probe again
under one change at a time, and asks the linker which library took llama.cpp's symbols (Linux with glibc only).
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SPINS = 1000
"""Rounds that a thread of llama.cpp waits for the others before it sleeps, beside other programs; libgomp's own number
is 300,000, which takes milliseconds.
"""
_TRIAL_S = 300
_BINDING = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: \w+ symbol `([^']+)'")
_EXPECTED = re.compile(r"^(lib(c|m|dl|rt|pthread|gcc_s|gomp|stdc\+\+)|ld-linux[\w-]*|linux-vdso)\.so")
"""Names of the system's libraries, to which llama.cpp's symbols may be bound."""
_PYTHON = Path(sys.executable).resolve()
_SYSTEM = ("/lib", "/usr/lib", "/usr/local/lib")


def load_first() -> None:
    """Load llama.cpp's libraries into this process, before those of numpy, torch and duckdb; takes some milliseconds.

    Nothing happens where they are missing or cannot be loaded: `lib.library` explains that when a model is wanted.
    """
    folder = library_folder()
    if sys.platform != "linux" or folder is None:
        return
    _wait_politely()
    try:
        ctypes.CDLL(str(folder / "libllama.so"))
    except OSError:
        return


def _wait_politely() -> None:
    """Let threads sleep soon if other programs use the processor; libgomp reads the variable when it is loaded.

    Otherwise threads whose core is taken are waited for by the others (docs/performance.md, "Beside other programs").
    """
    if os.getloadavg()[0] > (os.cpu_count() or 1) / 2:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPINS))


def library_folder() -> Path | None:
    """The folder of llama-cpp-python's libraries; None where the package is not installed."""
    spec = importlib.util.find_spec("llama_cpp")
    folder = Path(spec.origin).parent / "lib" if spec and spec.origin else None
    return folder if folder and folder.is_dir() else None


# ---- after a crash -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """A change of the environment under which a crashed trial is repeated; None removes a variable."""

    changes: Mapping[str, str | None]
    meaning: str
    """What it proves if the trial then works."""

    def environment(self) -> dict[str, str]:
        """The environment of this process with the changes."""
        merged = {**os.environ, **self.changes}
        return {name: value for name, value in merged.items() if value is not None}

    @property
    def cure(self) -> str:
        """The change as a line for a shell, before the command that is to be repeated."""
        removed = [name for name, value in self.changes.items() if value is None]
        if removed:
            return f"unset {' '.join(removed)}"
        return "export " + " ".join(f"{name}={shlex.quote(value or '')}" for name, value in self.changes.items())


def variants() -> list[Variant]:
    """The changes to try: without libraries that the environment adds, then in another order, then with one thread."""
    found = []
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH"):
        if value := os.environ.get(name):
            found.append(Variant({name: None}, f"a library that {name}={value} brings in clashes with llama.cpp"))
    if system := _system_runtime():
        meaning = "another copy of the C++ library is loaded before llama.cpp"
        found.append(Variant({"LD_PRELOAD": _before(system)}, meaning))
    if folder := library_folder():
        meaning = "another package's library is loaded before llama.cpp and clashes with it"
        found.append(Variant({"LD_PRELOAD": _before(str(folder / "libllama.so"))}, meaning))
    found.append(Variant({"OMP_NUM_THREADS": "1", "LOCALSIM_RUN_THREADS": "1"}, "llama.cpp's threads clash"))
    return found


def _before(library: str) -> str:
    """A value of LD_PRELOAD that puts a library before those that are named there now."""
    return " ".join([library, os.environ["LD_PRELOAD"]] if os.environ.get("LD_PRELOAD") else [library])


def _system_runtime() -> str | None:
    """The path of the system's C++ library according to ldconfig."""
    for program in ("ldconfig", "/sbin/ldconfig"):
        try:
            listed = subprocess.run([program, "-p"], capture_output=True, text=True, check=False).stdout
        except OSError:
            continue
        if paths := re.findall(r"libstdc\+\+\.so\.6 \(libc6[^)]*\) => (\S+)", listed):
            return str(paths[0])
    return None


def cause(command: Sequence[str], number: int) -> tuple[str, str]:
    """Why a trial died of a signal, and the cure: only what another trial proves. Both are '' where nothing is proved.

    `command` is the trial, `number` the signal.
    """
    if sys.platform != "linux" or number == signal.SIGILL:
        return "", ""
    works = next((variant for variant in variants() if _survives(command, variant)), None)
    if works is None:
        return "", ""
    taken = foreign_bindings(command)
    named = "; ".join(f"{library} takes over its {symbol}" for library, symbol in taken[:3])
    return works.meaning + (f" ({named})" if named else ""), works.cure


def _survives(command: Sequence[str], variant: Variant) -> bool:
    try:
        done = subprocess.run(command, env=variant.environment(), capture_output=True, timeout=_TRIAL_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def foreign_bindings(command: Sequence[str]) -> list[tuple[str, str]]:
    """Libraries of others that take over symbols of llama.cpp's, each with one symbol, by the linker's own account.

    Runs the trial once more under LD_DEBUG (man 8 ld.so).
    """
    folder = library_folder()
    if folder is None:
        return []
    with tempfile.TemporaryDirectory() as place:
        wanted = {"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(Path(place) / "linker")}
        _survives(command, Variant(wanted, ""))
        found: dict[str, str] = {}
        for file in Path(place).iterdir():
            with file.open(encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    match = _BINDING.search(line) if str(folder) in line else None
                    if match and _is_foreign(match[1], match[2], folder):
                        found.setdefault(match[2], match[3])
    return list(found.items())


def _is_foreign(user: str, library: str, folder: Path) -> bool:
    """True if a library of llama.cpp's takes a symbol from one that is neither its own nor the system's."""
    if not user.startswith(str(folder)) or library.startswith(str(folder)) or Path(library).resolve() == _PYTHON:
        return False
    return not (_EXPECTED.match(Path(library).name) and library.startswith(_SYSTEM))
