#!/usr/bin/env python3
"""Install localsim as a wheel in an empty environment, and run the commands of the README there.

    .venv/bin/python scripts/try_wheel.py            # needs the package index; takes minutes if llama.cpp is compiled

The commands are taken from the README word for word. A command that waits for a person (`view`, `play`, `serve`) is
asked for its first page and then stopped.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHAPTER = "## Five commands"
PAGES = "localsim view --open"
PYTHON = 'import localsim; done = localsim.run("mutual_friends_01", seed=7); assert done.episodes()'
WAITING = ("localsim view", "localsim play", "localsim annotate serve")
READY_S = 30


def main() -> None:
    """Build, install and run the README's commands; stop at the first failure."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        python = install(folder)
        (folder / "work").mkdir()
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("LOCALSIM_", "XDG_"))},
            "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder / "home"),  # nothing that an earlier installation left is found
            "BROWSER": "true",
        }
        pull = "localsim models pull starter -y"
        for line in [pull, *commands((ROOT / "README.md").read_text(encoding="utf-8")), PAGES]:
            begun = time.perf_counter()
            follow(line, folder / "work", environment)
            print(f"ok  {time.perf_counter() - begun:6.1f} s  {line}", flush=True)
        run([str(python), "-c", PYTHON], folder / "work", environment)
    print("the commands of the README work from a wheel in another folder")


def install(folder: Path) -> Path:
    """Build the wheel, install it in a new environment, and return the Python of that environment."""
    run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(folder), str(ROOT)], folder)
    (wheel,) = folder.glob("localsim-*.whl")
    run([sys.executable, "-m", "venv", str(folder / "env")], folder)
    python = folder / "env" / "bin" / "python"
    llama = next(line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("llama-cpp"))
    os.environ.setdefault("CMAKE_ARGS", "-DGGML_NATIVE=OFF")
    wanted = f"*/llama_cpp_python-{llama.partition('==')[2]}-*.whl"
    built = sorted((Path.home() / ".cache" / "localsim" / "wheels").glob(wanted), key=lambda path: path.stat().st_mtime)
    pip = [str(python), "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt")]
    run([*pip, "--no-deps", str(built[-1]) if built else llama], folder)  # a build of `make demo` saves compiling
    run([*pip, f"{wheel}[web]"], folder)
    return python


def commands(readme: str) -> list[str]:
    """Return the commands of the chapter: its lines that begin with a prompt."""
    chapter = readme.partition(CHAPTER)[2].partition("\n## ")[0]
    found = re.findall(r"^\$ (.+)$", chapter, re.MULTILINE)
    if not found:
        sys.exit(f"error: README.md has no commands in its chapter {CHAPTER!r}")
    return found


def follow(line: str, work: Path, environment: dict[str, str]) -> None:
    """Run one command as a user would."""
    if line.startswith(WAITING):
        process = subprocess.Popen(
            shlex.split(line), cwd=work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            answers(process)
        finally:
            process.terminate()
            process.wait(READY_S)
        return
    run(["bash", "-c", line], work, environment)


def answers(process: subprocess.Popen[str]) -> None:
    """Check that a server delivers its first page."""
    import urllib.request

    assert process.stdout
    for said in process.stdout:
        found = re.search(r"http://\S+", said)
        if found:
            with urllib.request.urlopen(found[0], timeout=READY_S) as page:
                assert page.status == 200
            return
    sys.exit(f"{process.args} ended without an address")


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> None:
    """Run a command; if it fails, exit with its output."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"exit code {done.returncode}: {shlex.join(command)}\n{done.stdout}\n{done.stderr}")


if __name__ == "__main__":
    main()
