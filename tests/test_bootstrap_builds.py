"""scripts/bootstrap.py: which build of llama.cpp it takes: ready wheels, builds that crash, flags of the user."""

# ruff: noqa: F811 - fixtures are imported by their names
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.test_bootstrap import AMX, Shell, bootstrap, installed, processor, shell  # noqa: F401 - two are fixtures


@pytest.mark.parametrize(
    ("source", "option"), [("https://example.org/whl/cpu", "--extra-index-url"), ("/media/stick", "--find-links")]
)
def test_a_ready_wheel_needs_no_compiler(
    bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch, source: str, option: str
) -> None:
    shell.modules.clear()
    monkeypatch.setattr(shutil, "which", lambda _name, **_options: None)
    monkeypatch.setenv("LOCALSIM_WHEELS", source)
    bootstrap.set_up("demo")
    assert not shell.ran(" wheel ")
    (line,) = shell.ran("--only-binary")
    assert f"{option} {source}" in line and line.endswith("llama-cpp-python==0.3.36")
    assert shell.ran("localsim.backends.llama.probe"), "the wheel is tried, too"


def test_without_the_variable_llama_cpp_is_built_again(
    bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(bootstrap)
    monkeypatch.setenv("LOCALSIM_WHEELS", "/media/stick")
    bootstrap.set_up()
    bootstrap.set_up()
    assert len(shell.ran("--only-binary")) == 1, "the second run finds it"
    monkeypatch.delenv("LOCALSIM_WHEELS")
    bootstrap.set_up()
    assert len(shell.builds) == 1 and bootstrap.FLAGS_STAMP.read_text() == bootstrap.choices()[0]


def test_a_ready_wheel_that_crashes_forbids_no_build(
    bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.modules.clear()
    shell.codes["localsim.backends.llama.probe"] = -4
    monkeypatch.setenv("LOCALSIM_WHEELS", "/media/stick")
    with pytest.raises(SystemExit):
        bootstrap.set_up()
    assert "the wheel of LOCALSIM_WHEELS does not work" in capsys.readouterr().err
    assert bootstrap.remembered() == [] and not bootstrap.STAMP.exists()


def crashing(bootstrap: Any, monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    """Let the trial of every build crash whose flags hold one of these words."""
    ran = subprocess.run

    def run(command: list[str], **options: Any) -> Any:
        done = ran(command, **options)
        tried = "localsim.backends.llama.probe" in command
        if tried and any(word in bootstrap.FLAGS_STAMP.read_text().split() for word in words):
            return subprocess.CompletedProcess(command, -4)
        return done

    monkeypatch.setattr(subprocess, "run", run)


@pytest.mark.parametrize("crashes", [["-DGGML_AMX_INT8=ON"], ["-DGGML_AMX_INT8=ON", "-DGGML_AVX512=ON"]])
def test_flags_whose_build_crashes_are_remembered_and_replaced(
    bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch, crashes: list[str]
) -> None:
    shell.modules.clear()
    processor(bootstrap, monkeypatch, AMX)
    before = bootstrap.choices()
    assert len(before) == 3 and before[0].endswith("-DGGML_AMX_INT8=ON -DCMAKE_CXX_FLAGS=-fno-dse")
    crashing(bootstrap, monkeypatch, *crashes)
    bootstrap.set_up()
    left = before[len(crashes) :]
    assert bootstrap.choices() == left and bootstrap.remembered() == before[: len(crashes)]
    assert bootstrap.FLAGS_STAMP.read_text() == left[0]
    assert bootstrap.STAMP.read_text() == bootstrap.fingerprint(left[0])
    assert shell.builds == [f"{flags} -DLLAVA_BUILD=OFF" for flags in before[: len(crashes) + 1]]


def test_a_crash_without_the_cure_does_not_forbid_the_build_with_it(
    bootstrap: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor(bootstrap, monkeypatch, AMX)
    best = bootstrap.choices()[0]
    bootstrap.remember(["-DGGML_NATIVE=ON", "-DGGML_NATIVE=OFF -DGGML_NATIVE=ON", best.partition(" -DCMAKE_CXX")[0]])
    assert bootstrap.choices()[0] == best
    processor(bootstrap, monkeypatch, AMX, cure="")
    assert "AMX" not in bootstrap.choices()[0], "the build without it is the one that crashed"


def test_a_setup_from_before_amx_is_built_again(bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(bootstrap)
    processor(bootstrap, monkeypatch, AMX)
    bootstrap.set_up()
    assert len(shell.builds) == 1 and "AMX_INT8=ON" in shell.builds[0]
    assert bootstrap.STAMP.read_text() == bootstrap.fingerprint(bootstrap.choices()[0])


def test_a_wheel_is_not_taken_for_a_compiler_with_other_needs(
    bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for cure in ("", "-fno-dse", None, "-fno-dse", ""):
        processor(bootstrap, monkeypatch, AMX, cure)
        bootstrap.set_up()
        assert bootstrap.FLAGS_STAMP.read_text() == bootstrap.choices()[0]
    assert [("AMX" in build, "dse" in build) for build in shell.builds] == [(True, False), (True, True), (False, False)]
    assert len(list((tmp_path / "cache").rglob("*.whl"))) == 3, "and the two that were there are used again"


def test_the_users_flags_are_built_in(bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    processor(bootstrap, monkeypatch, AMX)
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_BLAS=ON -DCMAKE_CXX_FLAGS=-Og")
    bootstrap.set_up()
    added = "-DGGML_BLAS=ON '-DCMAKE_CXX_FLAGS=-Og -fno-dse' -DLLAVA_BUILD=OFF"
    assert [build.partition("AMX_INT8=ON ")[2] for build in shell.builds] == [added]
    shell.commands.clear()
    bootstrap.set_up()
    assert not shell.ran(" wheel "), "the second run is short"
    monkeypatch.delenv("CMAKE_ARGS")
    bootstrap.set_up()
    assert len(shell.builds) == 2 and "BLAS" not in shell.builds[1]
