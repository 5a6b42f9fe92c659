"""Libraries of other packages that clash with llama.cpp's: the order of loading, and what the probe proves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from localsim.backends.llama import libraries, probe
from localsim.errors import BackendUnavailable
from localsim.models.registry import ModelFile

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs the linker of Linux")

ORDER = """
import importlib, sys
loaded = []
def note(event, arguments):
    path = str(arguments[0]) if event == "ctypes.dlopen" else ""
    name = "llama" if path.endswith("libllama.so") else arguments[0] if event == "import" else None
    if name in ("llama", "numpy", "duckdb", "torch") and name not in loaded:
        loaded.append(name)
sys.addaudithook(note)
from localsim.__main__ import run
run(["{command}", "--help"])
importlib.import_module("localsim.backends.llama.raw")
importlib.import_module("localsim.store.database")
print(loaded, file=sys.stderr)
"""


@pytest.mark.parametrize("command", ["run", "score", "doctor", "finetune"])
def test_llama_is_loaded_before_other_native_libraries(command: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", ORDER.format(command=command)], capture_output=True, text=True, check=True
    ).stderr
    loaded = told.splitlines()[-1]
    assert loaded.startswith("['llama'") and "duckdb" in loaded and "numpy" in loaded


def test_the_overview_of_commands_loads_no_library() -> None:
    code = "from localsim.__main__ import run; run(['--help']); print('libllama' in open('/proc/self/maps').read())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.endswith("False\n")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that takes over a function which llama.cpp calls while it loads a model, and ends the process there."""
    folder = tmp_path_factory.mktemp("planted")
    (folder / "clash.c").write_text("#include <stdlib.h>\nvoid *ggml_backend_dev_by_type(int type) { abort(); }\n")
    library = folder / "libclash.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, folder / "clash.c"], check=True)
    return library


@pytest.fixture
def no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No trial is remembered from before, and none is remembered for later tests."""
    monkeypatch.setenv("LOCALSIM_CACHE", str(tmp_path / "cache"))


def refused(file: ModelFile) -> BackendUnavailable:
    with pytest.raises(BackendUnavailable) as caught:
        probe.ensure_works(file.path, file.sha256)
    return caught.value


def follow(cure: str, file: ModelFile) -> int:
    """Do in a shell what the hint says, and then what failed."""
    _, _, line = cure.partition("it works after: ")
    trial = f'{line}; exec "{sys.executable}" -m localsim.backends.llama.probe "{file.path}"'
    return subprocess.run(["sh", "-c", trial], capture_output=True, check=False).returncode


@pytest.mark.model
@pytest.mark.usefixtures("no_memory")
def test_a_preloaded_library_that_clashes_is_named(
    planted: Path, starter: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_PRELOAD", str(planted))
    error = refused(starter)
    assert "SIGABRT" in error.message and "while it loaded" in error.message and str(planted) in error.message
    assert "ggml_backend_dev_by_type" in error.message and "processor features" not in error.message
    assert error.hint == "it works after: unset LD_PRELOAD"
    assert follow(error.hint, starter) == 0


@pytest.mark.model
@pytest.mark.usefixtures("no_memory")
def test_a_library_that_another_package_loads_first_is_named_and_preloading_ours_cures_it(
    planted: Path, starter: ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = f"import ctypes; ctypes.CDLL({str(planted)!r}, mode=ctypes.RTLD_GLOBAL)\n"
    (tmp_path / "sitecustomize.py").write_text(site)  # runs before any line of localsim, like a package's .pth file
    places = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(places))
    error = refused(starter)
    assert str(planted) in error.message and "before llama.cpp" in error.message
    assert error.hint and "LD_PRELOAD=" in error.hint and "libllama.so" in error.hint
    assert follow(error.hint, starter) == 0


@pytest.mark.model
@pytest.mark.usefixtures("no_memory")
def test_a_library_loaded_later_does_no_harm(planted: Path, starter: ModelFile) -> None:
    code = (
        "import sys, ctypes, localsim.backends; ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)\n"
        "from pathlib import Path; from localsim.backends.llama.probe import _decode_one_token\n"
        "_decode_one_token(Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, str(planted), str(starter.path)]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    late = code.replace(", localsim.backends;", ";")
    command[2] = late
    assert subprocess.run(command, check=False, capture_output=True).returncode == -signal.SIGABRT


@pytest.mark.usefixtures("no_memory")
@pytest.mark.parametrize("name", ["SIGILL", "SIGSEGV"])
def test_processor_features_are_blamed_only_for_an_illegal_instruction(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash = tmp_path / "crash.py"
    crash.write_text(f"import os, signal; os.kill(os.getpid(), signal.{name})")
    monkeypatch.setenv("LOCALSIM_PROBE", f"{sys.executable} {crash}")
    with pytest.raises(BackendUnavailable) as caught:
        probe.ensure_works(tmp_path / "model.gguf", "0" * 64)
    assert name in caught.value.message
    assert ("processor features" in caught.value.message) == (name == "SIGILL")
    assert ("cause is unknown" in caught.value.message) == (name != "SIGILL")


def test_a_trial_with_a_preloaded_library_proves_nothing_about_one_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    bare = probe._key("a")
    monkeypatch.setenv("LD_PRELOAD", "libllama.so")
    assert probe._key("a") != bare


def test_a_cure_keeps_what_is_preloaded_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "libjemalloc.so")
    values = [variant.changes["LD_PRELOAD"] for variant in libraries.variants() if "LD_PRELOAD" in variant.changes]
    assert values[0] is None and all(value and value.endswith(" libjemalloc.so") for value in values[1:])
