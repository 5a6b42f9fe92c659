#!/usr/bin/env python3
"""Write a workshop stick: wheels, models, notebook, and an installer that needs no network.

    .venv/bin/python scripts/wheelhouse.py /media/stick/localsim

The wheels fit this operating system, processor family and Python version. llama.cpp is built with portable flags, so
the wheel runs on older laptops; `localsim doctor` prints the command that makes a laptop faster.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.machine.build_flags import LEAN, PORTABLE  # noqa: E402

README = """localsim workshop stick

On each laptop (you need Python {version} and nothing else):

    python3 {folder}/install.py

This makes the folder localsim-workshop in your home folder, installs localsim without a network, copies the models and
simulates one short conversation. At the end it prints "ready", or what failed and what to do.
"""


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--notebook/--no-notebook", default=True, help="Include Jupyter's notebook.")
def main(folder: Path, notebook: bool) -> None:
    """Write the folder of the stick, or update it."""
    wheels = folder / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "wheel", "--wheel-dir", str(wheels), "--find-links", str(wheels)]
    environment = {**os.environ, "CMAKE_ARGS": f"{PORTABLE} {LEAN}"}
    if os.environ.get("CMAKE_ARGS"):
        click.echo("CMAKE_ARGS is not used: the wheel of llama.cpp must run on other laptops", err=True)
    # pip's cache ignores build flags: it could return a llama.cpp that was built for this processor only.
    uncached = ["--no-cache-dir"] if not list(wheels.glob("llama_cpp_python-*.whl")) else []
    llama = next(line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("llama-cpp"))
    _run([*command, *uncached, "--no-deps", llama], environment)
    _run([*command, "-c", str(ROOT / "constraints.txt"), f"{ROOT}[web]"], environment)
    if notebook:
        _run([*command, "-c", str(ROOT / "constraints.txt"), "notebook"], environment)
    _run([sys.executable, "-m", "localsim", "models", "export", str(folder / "models")], environment)
    shutil.copyfile(ROOT / "scripts" / "workshop_install.py", folder / "install.py")
    shutil.copyfile(ROOT / "docs" / "find_the_leak.ipynb", folder / "find_the_leak.ipynb")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    (folder / "version.txt").write_text(version)
    (folder / "README.txt").write_text(README.format(version=version, folder=folder.name), encoding="utf-8")
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    click.echo(f"{folder}: {size / 1e9:.1f} GB; try it: python3 {folder / 'install.py'}")


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, cwd=ROOT, check=False)
    if done.returncode:
        raise click.ClickException(f"the command failed with exit code {done.returncode}: {' '.join(command)}")


if __name__ == "__main__":
    main()
