"""scripts/bootstrap.py: what it installs when, and that whatever fails ends in one clear message. Nothing is run."""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from localsim.families import FAMILIES
from localsim.models.registry import entry

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "bootstrap.py"
TASKS = ("light", "demo", "test", "verify", "lint", "docs")
AVX512 = "avx512f avx512bw avx512dq avx512vl avx512cd avx512_vnni"
AMX = f"{AVX512} amx_tile amx_int8"


class Shell:
    """Stands in for subprocess.run: notes commands, does what matters of them, fails where it is told to."""

    def __init__(self, bootstrap: Any) -> None:
        self.bootstrap = bootstrap
        self.commands: list[list[str]] = []
        self.codes: dict[str, int] = {}
        """Exit codes of the commands that hold such words."""
        self.modules = {"pip", "llama_cpp; assert llama_cpp.__version__ == '0.3.36'"}
        """What the environment can import once it is there."""
        self.interrupt: str | None = None
        self.builds: list[str] = []
        """CMAKE_ARGS of each build."""

    def __call__(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        line = " ".join(command)
        if command[1] == "-c":
            code = 0 if command[2].removeprefix("import ") in self.modules else 1
            return subprocess.CompletedProcess(command, code)
        self.commands.append(command)
        if self.interrupt is not None and self.interrupt in line:
            raise KeyboardInterrupt
        code = next((code for words, code in self.codes.items() if words in line), 0)
        if code == 0 and "venv" in command:
            self.bootstrap.PYTHON.parent.mkdir(parents=True, exist_ok=True)
            self.bootstrap.PYTHON.touch()
            self.modules.add("pip")
        if code == 0 and "wheel" in command:
            self.builds.append(options["env"]["CMAKE_ARGS"])
            folder = Path(command[command.index("-w") + 1])
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "llama_cpp_python-0.0.0-py3-none-any.whl").touch()
        return subprocess.CompletedProcess(command, code)

    def ran(self, words: str) -> list[str]:
        """The commands that hold `words`, each as one line."""
        return [line for line in map(" ".join, self.commands) if words in line]


@pytest.fixture
def bootstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, at work on a repository of the test's own."""
    spec = importlib.util.spec_from_file_location("bootstrap_under_test", SCRIPT)
    assert spec and spec.loader
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    root = tmp_path / "repository"
    root.mkdir()
    (root / "pyproject.toml").write_text("[project]\n")
    (root / "constraints.txt").write_text("duckdb==1.4.0\nllama-cpp-python==0.3.36\n")
    folder = Path(module.PYTHON).relative_to(module.VENV)
    module.ROOT, module.VENV = root, root / ".venv"
    module.PYTHON = module.VENV / folder
    module.BIN, module.STAMP = module.PYTHON.parent, module.VENV / "localsim-setup"
    module.FLAGS_STAMP = module.VENV / "llama-flags"
    module.CONSTRAINTS = root / "constraints.txt"
    monkeypatch.setenv("LOCALSIM_CACHE", str(tmp_path / "cache"))
    for name in ("CMAKE_ARGS", "CXXFLAGS", "CXX", "CC", "LOCALSIM_WHEELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=50 * 10**9))
    monkeypatch.setattr(shutil, "which", lambda name, **_options: f"/usr/bin/{name}")
    processor(module, monkeypatch, AVX512)
    return module


def processor(bootstrap: Any, monkeypatch: pytest.MonkeyPatch, features: str, cure: str | None = "-fno-dse") -> None:
    """Plant a processor, and what its compiler needs for AMX."""
    flags = bootstrap.build_flags()
    monkeypatch.setattr(flags, "processor_features", lambda: frozenset(features.split()))
    monkeypatch.setattr(flags, "amx_cure", lambda _command, _own: cure)
    monkeypatch.setattr(bootstrap.platform, "machine", lambda: "x86_64")


@pytest.fixture
def shell(bootstrap: Any, monkeypatch: pytest.MonkeyPatch) -> Shell:
    found = Shell(bootstrap)
    monkeypatch.setattr(subprocess, "run", found)
    return found


def ends(
    bootstrap: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str]:
    """Exit code and standard error of the script that ends early."""
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", *arguments])
    with pytest.raises(SystemExit) as caught:
        bootstrap.main()
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().err


def installed(bootstrap: Any) -> None:
    """An environment that is up to date."""
    bootstrap.PYTHON.parent.mkdir(parents=True)
    bootstrap.PYTHON.touch()
    bootstrap.FLAGS_STAMP.write_text(bootstrap.choices()[0])
    bootstrap.STAMP.write_text(bootstrap.fingerprint(bootstrap.choices()[0]))


# ---- before anything is done ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [(), ("nonsense",), ("demo", "again"), ("light", "--wheels"), ("stick",), ("--help",), ("",)]
)
def test_wrong_usage(
    bootstrap: Any,
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
) -> None:
    code, err = ends(bootstrap, monkeypatch, capsys, *arguments)
    assert code == 2
    assert err.startswith("error: usage: ") and all(task in err for task in TASKS)
    assert shell.commands == [] and not bootstrap.VENV.exists()


def test_wrong_usage_of_the_real_script() -> None:
    out = subprocess.run([sys.executable, str(SCRIPT), "nonsense"], capture_output=True, text=True, check=False)
    assert out.returncode == 2 and "Traceback" not in out.stderr


def test_an_old_python_is_told_so(
    bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = SimpleNamespace(
        version_info=(3, 10, 14), argv=["bootstrap.py", "demo"], stderr=sys.stderr, exit=sys.exit, executable="python"
    )
    monkeypatch.setattr(bootstrap, "sys", old)
    monkeypatch.setattr(bootstrap.platform, "python_version", lambda: "3.10.14")
    code, err = ends(bootstrap, monkeypatch, capsys)
    assert code == 1
    assert "error: Python 3.10.14 is too old" in err and "3.11" in err and "hint:" in err
    assert shell.commands == []


def test_an_old_python_can_read_the_script() -> None:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 7))
    modules = {
        alias.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules <= set(sys.stdlib_module_names), "it runs before anything is installed"
    assert "tomllib" not in modules


def test_too_little_disk(
    bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=1_200_000_000))
    code, err = ends(bootstrap, monkeypatch, capsys, "test")
    assert code == 1
    assert "error: 1.2 GB free" in err and "5 GB needed" in err and "hint: free some space" in err
    assert shell.commands == []


# ---- installing ----------------------------------------------------------------------------------------------------


def test_a_fresh_clone_is_set_up_once(bootstrap: Any, shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.modules.clear()
    bootstrap.set_up()
    kinds = [kind for command in shell.commands for kind in ("venv", "wheel", "install", "pull") if kind in command]
    assert kinds == ["venv", "wheel", "install", "install", "pull"]
    (wheel,) = shell.ran("pip --disable-pip-version-check wheel")
    assert wheel.endswith("llama-cpp-python==0.3.36") and "--no-cache-dir" in wheel
    assert shell.builds == [f"{bootstrap.choices()[0]} -DLLAVA_BUILD=OFF"] and "CMAKE_ARGS" not in os.environ
    assert all(f"-c {bootstrap.CONSTRAINTS}" in line for line in shell.ran(" install "))
    assert shell.ran("-e")[0].endswith(f"{bootstrap.ROOT}[dev]")
    assert shell.commands[-2] == [str(bootstrap.PYTHON), "-m", "localsim", "models", "pull", "starter"]
    assert shell.commands[-1][-2:] == ["localsim.backends.llama.probe", "starter"], "the build is tried"
    assert "compiling llama.cpp" in capsys.readouterr().out

    shell.commands.clear()
    bootstrap.set_up()
    assert [command[-3:] for command in shell.commands] == [["models", "pull", "starter"]], "the second run is short"


def test_the_demo_needs_no_tools_of_development(bootstrap: Any, shell: Shell) -> None:
    bootstrap.set_up("demo")
    assert shell.ran("-e")[0].endswith(f"{bootstrap.ROOT}[plots,web]")
    shell.commands.clear()
    bootstrap.set_up("demo")
    assert not shell.ran(" install "), "a second demo installs nothing"
    bootstrap.set_up("dev")
    assert shell.ran("-e")[0].endswith(f"{bootstrap.ROOT}[dev]"), "tests add theirs"
    shell.commands.clear()
    bootstrap.set_up("demo")
    assert not shell.ran(" install "), "what tests need serves the demo"


def test_a_light_installation_compiles_nothing(
    bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.modules.clear()
    monkeypatch.setattr(shutil, "which", lambda _name, **_options: None)
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", "light"])
    bootstrap.main()
    assert shell.ran(f"-r {bootstrap.LIGHT}") and shell.ran("--no-deps") and not shell.ran(" wheel ")
    assert "view --db light.duckdb --open" in capsys.readouterr().out
    assert not bootstrap.STAMP.exists(), "make demo still installs the rest"


def test_a_stick_is_filled_and_installed_from_without_a_network(
    bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shell.modules.clear()
    monkeypatch.chdir(tmp_path)
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "LOCALSIM_WHEELS"):
        monkeypatch.setenv(name, "")  # so that the test leaves them as they were
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", "stick", "my wheels"])
    bootstrap.main()
    (line,) = map(" ".join, shell.commands)
    assert line.startswith(f"{sys.executable} -m pip download") and f"-d {tmp_path / 'my wheels'} " in line
    assert f"-r {bootstrap.LIGHT}" in line and "hatchling" in line, "what pip builds localsim with is there, too"
    code, err = ends(bootstrap, monkeypatch, capsys, "light", "--wheels", "my wheels")
    assert code == 2 and "my wheels holds no packages" in err and "stick my wheels" in err
    (tmp_path / "my wheels").mkdir()
    (tmp_path / "my wheels" / "click-8.5-py3-none-any.whl").touch()
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", "light", "--wheels", "my wheels"])
    bootstrap.main()
    assert os.environ["PIP_NO_INDEX"] == "1" and os.environ["PIP_FIND_LINKS"].endswith("/my%20wheels")
    assert shell.ran(f"-r {bootstrap.LIGHT}")


def test_changed_constraints_install_again(bootstrap: Any, shell: Shell) -> None:
    installed(bootstrap)
    bootstrap.CONSTRAINTS.write_text("duckdb==1.4.1\nllama-cpp-python==0.3.36\n")
    bootstrap.set_up()
    assert shell.ran(" -e ") and not shell.ran("venv --clear") and not shell.ran(" wheel "), "what is there is kept"
    assert bootstrap.STAMP.read_text() == bootstrap.fingerprint(bootstrap.choices()[0])


def test_another_pinned_llama_is_built_with_our_flags(bootstrap: Any, shell: Shell) -> None:
    installed(bootstrap)
    bootstrap.CONSTRAINTS.write_text("llama-cpp-python==0.3.37\n")
    bootstrap.set_up()
    (wheel,) = shell.ran(" wheel ")
    assert wheel.endswith("llama-cpp-python==0.3.37")
    assert shell.builds == [f"{bootstrap.choices()[0]} -DLLAVA_BUILD=OFF"]
    assert shell.commands.index(wheel.split()) < shell.commands.index(shell.ran(" -e ")[0].split())


def test_the_fingerprint_changes_with_what_decides_an_installation(
    bootstrap: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = [bootstrap.fingerprint(bootstrap.choices()[0])]
    assert bootstrap.fingerprint(bootstrap.choices()[0]) == seen[0]
    (bootstrap.ROOT / "constraints.txt").write_text("duckdb==1.4.1\nllama-cpp-python==0.3.36\n")
    seen.append(bootstrap.fingerprint(bootstrap.choices()[0]))
    (bootstrap.ROOT / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    seen.append(bootstrap.fingerprint(bootstrap.choices()[0]))
    monkeypatch.setattr(bootstrap, "choices", lambda: ["-DGGML_NATIVE=ON"])
    seen.append(bootstrap.fingerprint(bootstrap.choices()[0]))
    shutil.copytree(bootstrap.ROOT, tmp_path / "moved")
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path / "moved")
    seen.append(bootstrap.fingerprint(bootstrap.choices()[0]))
    assert len(set(seen)) == len(seen) == 5


def test_without_a_compiler(
    bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.modules.clear()
    monkeypatch.setattr(shutil, "which", lambda _name, **_options: None)
    code, err = ends(bootstrap, monkeypatch, capsys, "demo")
    assert code == 1
    assert "error: no C++ compiler" in err and "apt install g++" in err and "xcode-select" in err
    assert not shell.ran(" pip ") and not bootstrap.STAMP.exists()


def test_a_wheel_built_before_needs_no_compiler(
    bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shell.modules.clear()
    bootstrap.set_up()
    (wheel,) = (tmp_path / "cache").rglob("*.whl")
    shutil.rmtree(bootstrap.VENV)
    shell.modules.clear()
    shell.commands.clear()
    monkeypatch.setattr(shutil, "which", lambda _name, **_options: None)
    bootstrap.set_up()
    assert not shell.ran(" wheel ") and shell.ran(str(wheel))
    bootstrap.CONSTRAINTS.write_text("llama-cpp-python==0.3.37\n")
    with pytest.raises(SystemExit):
        bootstrap.set_up()  # another version has to be compiled


@pytest.mark.parametrize(
    ("words", "problem", "hint"),
    [
        ("-m venv", "python -m venv failed", "apt install python3-venv"),
        ("check wheel", "pip wheel failed", "package index"),
        ("check install", "pip install failed", "package index"),
        (" -e ", "pip install failed", "package index"),
    ],
)
def test_a_failed_step_says_what_and_what_to_do(
    bootstrap: Any,
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    problem: str,
    hint: str,
) -> None:
    shell.modules.clear()
    shell.codes[words] = 3
    code, err = ends(bootstrap, monkeypatch, capsys, "demo")
    assert code == 3
    lines = err.splitlines()
    assert lines[0].startswith(f"error: {problem} (exit code 3): ") and words in lines[0]
    assert lines[1].startswith("hint: ") and hint in lines[1] and len(lines) == 2
    assert words in " ".join(shell.commands[-1]), "nothing is done after it"
    assert not bootstrap.STAMP.exists(), "the next run tries again"
    shell.codes.clear()
    bootstrap.set_up()
    assert bootstrap.STAMP.read_text() == bootstrap.fingerprint(bootstrap.choices()[0])


def test_an_environment_left_without_pip_is_completed(bootstrap: Any, shell: Shell) -> None:
    """As `python3 -m venv` leaves it where python3-venv was not installed."""
    bootstrap.PYTHON.parent.mkdir(parents=True)
    bootstrap.PYTHON.touch()
    shell.modules.remove("pip")
    bootstrap.set_up()
    assert shell.commands[0][1:3] == ["-m", "venv"] and "--clear" not in shell.commands[0]


# ---- tasks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "exits"), [(1, 1), (5, 5), (-9, 1)])
def test_a_failed_task_ends_with_its_code(
    bootstrap: Any,
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: int,
    exits: int,
) -> None:
    installed(bootstrap)
    shell.codes["scripts/verify.py"] = code
    found, err = ends(bootstrap, monkeypatch, capsys, "verify")
    assert found == exits, "a command that was killed fails, too"
    assert "error: an acceptance figure was missed" in err and f"exit code {code}" in err


def test_a_model_that_cannot_be_fetched_stops_the_task(
    bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(bootstrap)
    shell.codes["models pull"] = 4
    code, err = ends(bootstrap, monkeypatch, capsys, "test")
    assert code == 4 and "error: localsim models failed" in err
    assert not shell.ran("-m pytest")


def test_ctrl_c_ends_quietly(
    bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(bootstrap)
    shell.interrupt = "-m pytest"
    code, err = ends(bootstrap, monkeypatch, capsys, "test")
    assert code == 130 and err == ""


@pytest.mark.parametrize(
    ("task", "wanted"),
    [
        ("lint", ["ruff check", "ruff format --check", "mypy"]),
        ("test", ["models pull smollm2-135m", "ruff check", "ruff format --check", "mypy", "pytest -m not verify"]),
        ("verify", ["models pull smollm2-135m", "pytest -m verify", "scripts/verify.py"]),
        (
            "demo",
            [
                *["localsim scenarios generate"] * 2,
                "localsim models pull starter-peeks",
                *["localsim run", "localsim run"],
                *["localsim audit", "localsim show --typical"] * 2,
                "localsim report @last-1 @last",
            ],
        ),
    ],
)
def test_a_task_does_its_steps_in_order(
    bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch, task: str, wanted: list[str]
) -> None:
    installed(bootstrap)
    monkeypatch.setattr(sys, "argv", ["bootstrap.py", task])
    bootstrap.main()
    lines = [" ".join(command[1:]) for command in shell.commands[1:]]
    assert len(lines) == len(wanted)
    assert all(words in line for words, line in zip(wanted, lines, strict=True))


def test_the_demo_names_families_and_models_that_are_there(bootstrap: Any) -> None:
    """tests/test_aloud.py plays as many scenarios with players that peek, and finds the premium."""
    assert set(bootstrap.FAMILIES) == set(FAMILIES.own) and bootstrap.SCENARIOS % 2 == 0
    honest, twin = (entry(name) for name in bootstrap.PLAYED)
    assert not honest.constructed and twin.source == honest.name and twin.constructed


def test_the_constraints_pin_llama(bootstrap: Any) -> None:
    assert bootstrap.CONSTRAINTS.exists()
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith("llama-cpp-python==") for line in lines) == 1


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"LOCALSIM_CACHE": "/a/b"}, "/a/b"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/localsim"),
        ({"LOCALSIM_CACHE": "/a/b", "XDG_CACHE_HOME": "/x"}, "/a/b"),
        ({"HOME": "/h"}, "/h/.cache/localsim"),
    ],
)
def test_where_wheels_are_kept(
    bootstrap: Any, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], folder: str
) -> None:
    for name in ("LOCALSIM_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert bootstrap.cache_folder() == Path(folder)


@pytest.mark.parametrize("device", ["cuda", "vulkan", "metal", "CUDA"])
def test_a_build_for_a_gpu_is_asked_for(bootstrap: Any, monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    plain = bootstrap.choices()
    monkeypatch.setenv("LOCALSIM_BUILD", device)
    assert bootstrap.choices() == [f"-DGGML_{device.upper()}=ON {flags}" for flags in plain]


def test_an_unknown_build_is_refused(
    bootstrap: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOCALSIM_BUILD", "quantum")
    code, err = ends(bootstrap, monkeypatch, capsys, "demo")
    assert code == 2 and "LOCALSIM_BUILD=quantum is not known" in err and "cuda, vulkan, metal" in err
    assert shell.commands == []
