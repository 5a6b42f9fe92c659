#!/usr/bin/env python3
"""Install localsim from this folder without a network, and check that it works. Standard library only.

python3 install.py [FOLDER]      # default: localsim-workshop in your home folder
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

STICK = Path(__file__).resolve().parent
TALK = ["run", "mutual_friends_01", "--mode", "script", "--db"]


def main() -> None:
    """Install environment, package and models, and simulate one conversation."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "~/localsim-workshop").expanduser().absolute()
    wanted, here = (STICK / "version.txt").read_text().strip(), ".".join(map(str, sys.version_info[:2]))
    if wanted != here:
        sys.exit(f"error: this stick needs Python {wanted}, this is {here}\nhint: python{wanted} {Path(__file__).name}")
    folder.mkdir(parents=True, exist_ok=True)
    inside = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    python = str(inside / ("python.exe" if os.name == "nt" else "python"))
    step("environment", [sys.executable, "-m", "venv", str(folder / "env")], "on Debian: apt install python3-venv")
    pip = ["-m", "pip", "install", "--quiet", "--no-index", "--find-links", str(STICK / "wheels"), "localsim[web]"]
    step("package", [python, *pip], "was the stick made on this operating system?")
    if list((STICK / "wheels").glob("notebook-*.whl")):
        step("notebook", [python, *pip[:-1], "notebook"], "you can read the notebook without it")
    localsim = [python, "-m", "localsim"]
    step(
        "models",
        [*localsim, "models", "pull", "starter", "-y", "--from", str(STICK / "models")],
        "copy the stick again",
    )
    step("machine", [*localsim, "doctor"], "the messages above say what is missing")
    step(
        "one conversation",
        [*localsim, *TALK, str(folder / "check.duckdb")],
        "show the messages above to the instructor",
    )
    copy = folder / "find_the_leak.ipynb"
    copy.write_bytes((STICK / "find_the_leak.ipynb").read_bytes())
    print(f"\nready: {inside / 'localsim'} --help\nnotebook: {inside / 'jupyter'} notebook {copy}")


def step(name: str, command: list[str], advice: str) -> None:
    """Run one command; if it fails, exit with one error and one hint."""
    print(f"==> {name}", flush=True)
    if subprocess.run(command, check=False).returncode:
        sys.exit(f"error: {name} failed: {' '.join(command)}\nhint: {advice}")


if __name__ == "__main__":
    main()
