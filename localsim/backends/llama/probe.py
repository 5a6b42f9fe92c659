"""Try a model on one token in a child process, so that a native crash becomes an error message.

    python -m localsim.backends.llama.probe FILE|NAME

A file that has passed under the same build is not tried again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from localsim import paths
from localsim.backends.llama import libraries
from localsim.errors import BackendUnavailable, LocalsimError, ModelMissing
from localsim.models.registry import where
from localsim.models.remembered import recall, remember

TIMEOUT_S = 600
_MEMORY = "probed"
_KEPT = 200
"""Passed trials that are remembered, the latest."""
_LOADED = "the model is loaded"
"""A line of a trial, by which a crash at the first token is told from one while loading."""


def ensure_works(path: Path, sha256: str) -> None:
    """Raise BackendUnavailable where the library crashes on this file, ModelMissing where it cannot load it."""
    if has_worked(sha256):
        return
    command = paths.probe_override() or [sys.executable, "-m", "localsim.backends.llama.probe"]
    try:
        result = subprocess.run([*command, str(path)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = f"the trial of {path.name} did not finish: {error}"
        raise BackendUnavailable(problem, hint=paths.rebuilding()) from error
    if result.returncode == 0:
        remember(_MEMORY, [*_passed(), _key(sha256)][-_KEPT:])
        return
    lines = result.stderr.strip().splitlines()
    if result.returncode < 0 or result.returncode > 128:
        number = -result.returncode if result.returncode < 0 else result.returncode - 128
        raise _crashed([*command, str(path)], path.name, number, lines)
    if result.returncode == ModelMissing.exit_code:
        raise ModelMissing(
            "llama.cpp cannot load this file; it is damaged, cut off or not a GGUF model",
            where=str(path),
            hint="fetch the file again: localsim models pull NAME",
        )
    raise BackendUnavailable(
        f"the trial of {path.name} failed: {lines[-1] if lines else 'no reason given'}", hint=paths.rebuilding()
    )


def _crashed(command: Sequence[str], name: str, number: int, lines: Sequence[str]) -> BackendUnavailable:
    """The error of a trial that died of a signal; it names a cause only where another trial proves it."""
    loading = _LOADED not in lines
    what = f"llama.cpp crashed ({_signal_name(number)}) " + (
        f"while it loaded {name}" if loading else f"on the first token of {name}"
    )
    if number == signal.SIGILL:
        return BackendUnavailable(
            f"{what}; its build uses processor features that do not work here",
            hint=f"rebuild it with portable flags: {paths.rebuilding()}",
        )
    meaning, cure = libraries.cause(command, number)
    if meaning:
        return BackendUnavailable(f"{what}; {meaning}", hint=f"it works after: {cure}")
    return BackendUnavailable(
        f"{what}; the cause is unknown: it also crashes with llama.cpp's libraries or the system's C++ library loaded "
        "first, and with one thread",
        hint=f"a rebuild with portable flags may help: {paths.rebuilding()}",
    )


def has_worked(sha256: str) -> bool:
    """Return True if a file has passed under this build, so that it is not tried again."""
    return paths.probe_override() is None and _key(sha256) in _passed()


def _key(sha256: str) -> str:
    # A trial that worked because of a preloaded library proves nothing about a process without it.
    added = "".join(f"|{os.environ[name]}" for name in ("LD_PRELOAD", "LD_LIBRARY_PATH") if os.environ.get(name))
    return f"{sha256}|{build_stamp()}{added}"


def build_stamp() -> str:
    """A text that changes with the version of llama-cpp-python, and when it is built again.

    Raises BackendUnavailable if it is not installed.
    """
    try:
        return f"{version('llama-cpp-python')}|{_library_stamp()}"
    except PackageNotFoundError as error:
        raise BackendUnavailable("llama-cpp-python is not installed", hint=paths.rebuilding()) from error


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _library_stamp() -> str:
    """A text that changes when llama-cpp-python is built again, even at the same version."""
    folder = libraries.library_folder()
    files = sorted(folder.glob("*")) if folder else []
    return "-".join(f"{file.stat().st_size:x}.{file.stat().st_mtime_ns:x}" for file in files if "ggml-cpu" in file.name)


def _passed() -> list[str]:
    data = recall(_MEMORY)
    return [str(item) for item in data] if isinstance(data, list) else []


def _decode_one_token(path: Path) -> None:
    import localsim.store.database  # noqa: F401 - a run loads duckdb too, whose libraries may clash with llama.cpp's
    from localsim.backends.llama.lib import LlamaModel, library

    lib = library()
    model = LlamaModel(path)
    print(_LOADED, file=sys.stderr, flush=True)
    params = lib.llama_context_default_params()
    params.n_ctx = 256
    threads = os.environ.get("LOCALSIM_RUN_THREADS", "")
    if threads.isdecimal():
        params.n_threads = params.n_threads_batch = int(threads)
    context = lib.llama_init_from_model(model.pointer, params)
    if not context:
        raise BackendUnavailable("llama.cpp cannot make a context")
    tokens = (lib.llama_token * 2)(*(model.tokenize("Hello there", special=False)[:2]))
    if lib.llama_decode(context, lib.llama_batch_get_one(tokens, 2)) != 0:
        raise BackendUnavailable("llama_decode failed on the first token")
    lib.llama_free(context)
    model.free()


if __name__ == "__main__":
    try:
        _decode_one_token(where(sys.argv[1]))
    except LocalsimError as problem:
        print(problem, file=sys.stderr)
        sys.exit(problem.exit_code)
