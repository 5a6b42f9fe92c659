#!/usr/bin/env python3
"""Set everything up in .venv and run one of: light, demo, test, verify, interop, lint, docs. Standard library only.

`stick` fills a folder with the packages of `light`, which installs from it without a network.

    python3 scripts/bootstrap.py light                        # a minute, without a compiler: scripted players, classes
    python3 scripts/bootstrap.py stick FOLDER                 # and there: light --wheels FOLDER
    python3 scripts/bootstrap.py demo
    LOCALSIM_BUILD=cuda python3 scripts/bootstrap.py demo     # llama.cpp with CUDA; also vulkan, metal
    LOCALSIM_WHEELS=URL python3 scripts/bootstrap.py demo     # a ready llama-cpp-python, from an index or folder

Second runs find what is there and take seconds. A failed step says what failed and what to do.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
CONSTRAINTS = ROOT / "constraints.txt"
STAMP = VENV / "localsim-setup"
BUILD_FLAGS = ROOT / "localsim" / "machine" / "build_flags.py"
LIGHT = ROOT / "requirements" / "light.txt"
NEEDED = {"light": 6 * 10**8, "demo": 4 * 10**9, "dev": 5 * 10**9}
"""Bytes of disk that each kind of installation needs."""

FLAGS_STAMP = VENV / "llama-flags"
PUBLISHED = "https://abetlen.github.io/llama-cpp-python/whl/cpu"
"""The publisher's index of wheels, for processors with AVX2. It may lack the pinned version."""
OTHERS = VENV / "interop"
OTHERS_PYTHON = OTHERS / PYTHON.relative_to(VENV)
OTHERS_PINNED = ROOT / "tests" / "interop" / "requirements.txt"
OTHERS_STAMP = OTHERS / "localsim-setup"

FAMILIES = {"mutual_friends": (), "craigslist": ("--alternate",)}
"""Family -> options for its scenarios. Two people with no friend in common must go through both lists, whatever they
know, so only searches with one friend can show what knowing the other side saves."""
SCENARIOS, FIRST_SEED = 16, 62_000
"""Scenarios of each family in the demo, and their first seed."""
PRIMARY = "turns:information"
SECONDARY = "success_rate:information"
TWIN = "starter-peeks"
PLAYED = {"starter": "all", TWIN: "agents,mindreaders"}
"""Model -> modes: the starter, and its twin that was taught to use the other side's facts."""


def main() -> None:
    """Run the task that the command line names."""
    work = {"demo": demo, "test": test, "verify": verify, "interop": interop, "lint": lint, "docs": docs}
    tasks = {"light": light, **work}
    task, *rest = sys.argv[1:] or [""]
    if task == "stick" and len(rest) == 1 and not rest[0].startswith("-"):
        stick(rest[0])
        return
    if task not in tasks or rest[:1] not in ([], ["--wheels"]) or len(rest) not in (0, 2):
        fail(f"usage: python3 scripts/bootstrap.py {'|'.join(tasks)} [--wheels FOLDER], or stick FOLDER", code=2)
    if rest:
        use_wheels(rest[1])
    if task in work:
        set_up("demo" if task == "demo" else "dev")
    tasks[task]()


def stick(folder: str) -> None:
    """Fill a folder with the packages that `light` installs, for computers with this system and Python."""
    check_python()
    step(f"filling {folder}")
    wanted = ["-c", str(CONSTRAINTS), "-r", str(LIGHT), "hatchling>=1.27", "editables"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "-d", str(Path(folder).resolve()), *wanted]
    run(command, "pip download failed", "it needs a connection to a package index; on Debian: apt install python3-pip")
    print(f"take it along with this folder; there, without a network: light --wheels {folder}", flush=True)


def use_wheels(folder: str) -> None:
    """Let pip install from this folder alone."""
    found = Path(folder).resolve()
    if not any(found.glob("*.whl")):
        fail(f"{folder} holds no packages", f"with a network, fill it: scripts/bootstrap.py stick {folder}", code=2)
    # As an address, because pip splits what the variable holds at spaces.
    os.environ.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=found.as_uri(), LOCALSIM_WHEELS=str(found))


def light() -> None:
    """Install what needs neither compiler nor model, and say what works with it."""
    check_python()
    make_environment("light")
    step("installing localsim without llama.cpp and torch")
    pip("install", "-c", str(CONSTRAINTS), "-r", str(LIGHT))
    pip("install", "--no-deps", "-e", str(ROOT))
    database = ROOT / "light.duckdb"
    localsim("run", "mutual_friends_06", "--mode", "all", "-m", "scripted:omniscient", "--db", str(database))
    program = BIN.relative_to(ROOT) / "localsim"
    print(f"installed. Scripted players that use all they see: {program} view --db {database.name} --open", flush=True)
    print(f"a class on its phones: {program} class --open   a model: make demo adds one", flush=True)


def demo() -> None:
    """Simulate both families in all modes with the starter and its twin; end with a paragraph to read aloud."""
    folder = ROOT / "demo"
    database, page, scenarios = folder / "demo.duckdb", folder / "report.html", folder / "scenarios"
    shutil.rmtree(scenarios, ignore_errors=True)
    for family, options in FAMILIES.items():
        wanted = ["--family", family, *options, "-n", str(SCENARIOS), "--seed", str(FIRST_SEED)]
        localsim("scenarios", "generate", *wanted, "-o", str(scenarios))
    stored = ["--db", str(database)]
    localsim("models", "pull", TWIN)
    for model, modes in PLAYED.items():
        step(f"simulating {len(FAMILIES) * SCENARIOS} scenarios with {model}, each in these modes: {modes}")
        options = ["--mode", modes, "--seed", "7", "--primary", PRIMARY, "--secondary", SECONDARY]
        options += ["--fail-on-error", "1000"]
        localsim("run", str(scenarios), "-m", model, *options, *stored)
    runs = [f"@last-{number}" if number else "@last" for number in reversed(range(len(PLAYED)))]
    for run_name, model in zip(runs, PLAYED, strict=True):
        step(f"checking what {model} was shown, and showing typical conversations of it as mindreaders")
        localsim("audit", run_name, *stored)
        localsim("show", "--typical", f"{run_name}:mindreaders", *stored)
    step("writing the report")
    query = f'{BIN.relative_to(ROOT)}/localsim sql "FROM v_episodes" --db {database.relative_to(ROOT)}'
    print(f"report:   {page}\ndatabase: {database}\nnext:     {query}", flush=True)
    localsim("report", *runs, *stored, "-o", str(page))


def test() -> None:
    """Run the test suite on the real model, without the tests that take minutes."""
    pull_base()
    lint()
    step("running the tests")
    # Tests of one file share what they play, so a file stays with one of the two processes, in the order of
    # tests/conftest.py. Each has half of the processors: threads that wait for each other cost more than they bring.
    os.environ.setdefault("OMP_THREAD_LIMIT", str(max(1, (os.cpu_count() or 1) // 2)))
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # SPINS in backends/llama/libraries.py
    # Where Python may not keep what it compiles, each of about a hundred processes compiles localsim and tests again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    both = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
    run([str(PYTHON), "-m", "pytest", "-m", "not verify", *both], "tests failed")


def lint() -> None:
    """Check style and types."""
    step("checking style and types (ruff, mypy)")
    run([str(PYTHON), "-m", "ruff", "check", "."], "ruff found problems")
    run([str(PYTHON), "-m", "ruff", "format", "--check", "."], "the code is not formatted; run: ruff format .")
    run([str(PYTHON), "-m", "mypy"], "mypy found problems")


def docs() -> None:
    """Build the site in build/docs, with the pages that are made from the code."""
    step("building the site in build/docs")
    run([str(PYTHON), "-m", "mkdocs", "build", "--strict"], "the site could not be built")


def interop() -> None:
    """Let Inspect and `datasets` read what localsim writes, in an environment of their own (about 0.9 GB).

    Inspect needs an older fsspec than the pinned one, so both cannot be in one environment.
    """
    wanted = OTHERS_PINNED.read_text()
    quiet = [str(OTHERS_PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    if not (OTHERS_STAMP.exists() and OTHERS_STAMP.read_text() == wanted):
        step(f"installing Inspect and datasets in {OTHERS}")
        run([str(PYTHON), "-m", "venv", "--clear", str(OTHERS)], "python -m venv failed")
        run([*quiet, "--no-deps", "-r", str(OTHERS_PINNED)], "pip install failed", "a package index must be reachable")
        OTHERS_STAMP.write_text(wanted)
    run([*quiet, "--no-deps", "-e", str(ROOT)], "pip install failed")  # its entry points are those of today
    step("running the tests of other tools")
    os.environ["HF_HUB_OFFLINE"] = "1"
    run([str(OTHERS_PYTHON), "-m", "pytest", "--noconftest", "tests/interop"], "tests failed")


def verify() -> None:
    """Run the tests that take minutes, measure the acceptance figures, and rewrite the small tables in docs/."""
    pull_base()
    step("running the tests that take minutes")
    run([str(PYTHON), "-m", "pytest", "-m", "verify"], "tests failed")
    step("measuring the acceptance figures")
    run([str(PYTHON), "scripts/verify.py"], "an acceptance figure was missed")


# ---- set-up --------------------------------------------------------------------------------------------------------


def set_up(kind: str = "dev") -> None:
    """Install virtual environment, dependencies and models, each only where it is missing or out of date.

    `kind` is demo or dev; dev has the tools of tests and docs besides, so it serves for both.
    """
    check_python()
    flags = choices()[0]
    there = STAMP.read_text() if PYTHON.exists() and STAMP.exists() else ""
    fresh = there not in (fingerprint(flags, kind), fingerprint(flags, "dev"))
    if fresh:
        install(flags, kind)
    step("installing the models")
    localsim("models", "pull", "starter")
    if fresh:
        flags = first_that_works(flags)
        STAMP.write_text(fingerprint(flags, kind))


def check_python() -> None:
    """Stop where Python is too old."""
    if sys.version_info < (3, 11):  # noqa: UP036 - an older Python runs this file first
        fail(f"Python {platform.python_version()} is too old: localsim needs 3.11 or newer", "install Python 3.11")


def pull_base() -> None:
    """Fetch the model that the starter is made from: tests and fine-tuning need it, `pull starter` may not fetch it."""
    localsim("models", "pull", "smollm2-135m")


def make_environment(kind: str) -> None:
    """Make the virtual environment if it is missing; stop where the disk is too small for this kind."""
    free = shutil.disk_usage(ROOT).free
    if free < NEEDED[kind]:
        fail(f"{free / 1e9:.1f} GB free on {ROOT}, {NEEDED[kind] / 1e9:.0f} GB needed", "free some space")
    if not importable("pip"):  # where python3-venv was missing, a Python without pip was left behind
        step(f"creating the virtual environment {VENV}")
        clear = [] if PYTHON.exists() else ["--clear"]
        command = [sys.executable, "-m", "venv", *clear, str(VENV)]
        run(command, "python -m venv failed", "on Debian: apt install python3-venv")


def install(flags: str, kind: str) -> None:
    """Install everything that comes through pip."""
    make_environment(kind)
    requirement = next(line for line in CONSTRAINTS.read_text().splitlines() if line.startswith("llama-cpp-python=="))
    # Left to pip, another version than the pinned one would be replaced by a build without our flags.
    there = importable("llama_cpp", requirement.partition("==")[2].strip())
    if not (there and FLAGS_STAMP.exists() and FLAGS_STAMP.read_text() == built_of(flags)):
        install_llama(requirement, flags)
    step("installing localsim and its dependencies")
    extras = {"demo": "plots,web", "dev": "dev"}[kind]
    pip("install", "-c", str(CONSTRAINTS), "-e", f"{ROOT}[{extras}]")


def install_llama(requirement: str, flags: str) -> None:
    """Install llama-cpp-python: a wheel of the index or folder in LOCALSIM_WHEELS, else a build with our flags.

    Builds are kept by flags, because pip's own cache ignores flags.
    """
    source = os.environ.get("LOCALSIM_WHEELS", "")
    if source:
        where = ["--extra-index-url", source] if "://" in source else ["--find-links", source]
        step(f"installing {requirement} from {source}")
        pip("install", "--only-binary", ":all:", "--force-reinstall", "--no-deps", *where, requirement)
        FLAGS_STAMP.write_text(built_of(flags))
        return
    flags_used = f"{flags} {build_flags().LEAN}"
    machine = f"{requirement} {flags_used} {platform.machine()} {platform.system()} {sys.version_info[:2]}"
    cache = cache_folder() / "wheels" / hashlib.sha256(machine.encode()).hexdigest()[:16]
    wheels = list(cache.glob("llama_cpp_python-*.whl"))
    if not wheels:
        if not build_flags().compiler(os.environ):
            fail(
                "no C++ compiler found; llama.cpp must be compiled",
                "on Debian: apt install g++; macOS: xcode-select --install; one with another name: set CXX. "
                f"Without one: make light, or LOCALSIM_WHEELS={PUBLISHED} for a wheel of its publisher",
            )
        step(f"compiling llama.cpp ({requirement}, {flags}); this takes a few minutes, once")
        pip("wheel", "--no-cache-dir", "--no-deps", "-w", str(cache), requirement, cmake=flags_used)
        wheels = list(cache.glob("llama_cpp_python-*.whl"))
    pip("install", "-c", str(CONSTRAINTS), "--force-reinstall", "--no-deps", str(wheels[0]))
    FLAGS_STAMP.write_text(flags)


def built_of(flags: str) -> str:
    """What llama-cpp-python is installed from: these flags, or the source of ready wheels."""
    source = os.environ.get("LOCALSIM_WHEELS", "")
    return f"wheel of {source}" if source else flags


# ---- build flags ---------------------------------------------------------------------------------------------------


def choices() -> list[str]:
    """Flags for this machine, fastest first, without those that are known to crash on it; the last is portable."""
    device = os.environ.get("LOCALSIM_BUILD", "").lower()
    if device and device not in build_flags().DEVICES:
        fail(f"LOCALSIM_BUILD={device} is not known", f"use one of {', '.join(build_flags().DEVICES)}", code=2)
    found: list[str] = build_flags().here(device)
    crashed = remembered()
    return [flags for flags in found[:-1] if flags not in crashed] + found[-1:]


@lru_cache(None)  # not `cache`: an older Python runs this file first
def build_flags() -> Any:
    """The package's module of compiler flags, which can be loaded before the package is installed."""
    spec = importlib.util.spec_from_file_location("build_flags", BUILD_FLAGS)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def first_that_works(flags: str) -> str:
    """Test the build on one token in a child process; after a crash remember it and build with the next flags."""
    step("testing the build on one token")
    probe = [str(PYTHON), "-m", "localsim.backends.llama.probe", "starter"]
    requirement = next(line for line in CONSTRAINTS.read_text().splitlines() if line.startswith("llama-cpp-python=="))
    while subprocess.run(probe, cwd=ROOT, check=False).returncode != 0:
        if os.environ.get("LOCALSIM_WHEELS"):
            fail("the wheel of LOCALSIM_WHEELS does not work on this machine", "without the variable it is compiled")
        left = [other for other in choices() if other != flags]
        if flags == choices()[-1] or not left:
            fail("llama.cpp does not work on this machine, even with portable flags", "see the message above")
        print(f"the build with {flags} crashes on this processor; it will not be tried again", flush=True)
        remember([*remembered(), flags])
        flags = left[0]
        install_llama(requirement, flags)
    return flags


def remembered() -> list[str]:
    """Flags whose build crashed on this machine."""
    try:
        found = json.loads((cache_folder() / "crashed_flags.json").read_text())
    except (OSError, ValueError):
        return []
    return [str(flags) for flags in found] if isinstance(found, list) else []


def remember(crashed: list[str]) -> None:
    """Keep these flags for the next setup."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    (cache_folder() / "crashed_flags.json").write_text(json.dumps(crashed, indent=1))


def importable(module: str, version: str = "") -> bool:
    """Whether the environment exists and has a module (of that version)."""
    test = f"import {module}" + (f"; assert {module}.__version__ == {version!r}" if version else "")
    command = [str(PYTHON), "-c", test]
    return PYTHON.exists() and subprocess.run(command, capture_output=True, check=False).returncode == 0


def fingerprint(flags: str, kind: str = "dev") -> str:
    """A text that changes when an installation would turn out differently."""
    digest = hashlib.sha256(f"{kind} {flags} {os.environ.get('LOCALSIM_WHEELS', '')}".encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((ROOT / name).read_bytes())
    return f"{digest.hexdigest()} {ROOT}"


def cache_folder() -> Path:
    """The folder of built wheels, shared by all clones."""
    base = os.environ.get("LOCALSIM_CACHE") or os.environ.get("XDG_CACHE_HOME")
    if os.environ.get("LOCALSIM_CACHE"):
        return Path(str(base))
    return (Path(base) if base else Path.home() / ".cache") / "localsim"


def pip(*arguments: str, cmake: str = "") -> None:
    """Run pip in the environment; `cmake` holds the CMAKE_ARGS of what it compiles."""
    run(
        [str(PYTHON), "-m", "pip", "--disable-pip-version-check", *arguments[:1], "--quiet", *arguments[1:]],
        f"pip {arguments[0]} failed",
        "see pip's message above; the installation needs a connection to a package index, or --wheels FOLDER",
        {"CMAKE_ARGS": cmake} if cmake else {},
    )


def localsim(*arguments: str) -> None:
    """Run localsim in the environment."""
    run([str(PYTHON), "-m", "localsim", *arguments], f"localsim {arguments[0]} failed")


def run(command: list[str], problem: str, advice: str = "", variables: dict[str, str] | None = None) -> None:
    """Run a command, with some more environment variables; exit with one clear message if it fails."""
    try:
        code = subprocess.run(command, cwd=ROOT, env={**os.environ, **(variables or {})}, check=False).returncode
    except KeyboardInterrupt:
        sys.exit(130)
    if code != 0:
        fail(f"{problem} (exit code {code}): {' '.join(command)}", advice, code=code if code > 0 else 1)


def step(text: str) -> None:
    """Print the next step."""
    print(f"==> {text}", flush=True)


def fail(problem: str, advice: str = "", code: int = 1) -> None:
    """Exit with a message."""
    print(f"error: {problem}", file=sys.stderr)
    if advice:
        print(f"hint: {advice}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
