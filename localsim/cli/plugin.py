"""localsim plugin: begin a package of your own."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import click

from localsim.cli.common import Target, say
from localsim.errors import InvalidInput

CLASSES = {"evaluator": "Politeness", "game": "StagHunt", "backend": "Echo"}
"""Kind -> the class of its template, whose name becomes that of the plugin."""
NAMES = {"evaluator": "politeness", "game": "stag_hunt", "backend": "echo"}
"""Kind -> the name that the template has."""
ENTRY = {"evaluator": "evaluators", "game": "families", "backend": "backends"}
PROJECT = """[build-system]
requires = ["setuptools>=70.1"]
build-backend = "setuptools.build_meta"

[project]
name = "localsim-{dashed}"
version = "1"
dependencies = ["localsim"]

[project.entry-points."{group}"]
{name} = "{module}:{kind}"

[tool.setuptools]
py-modules = ["{module}"]
"""
NEXT = {
    "evaluator": ("localsim score @last --evaluator {name}",),
    "game": ("localsim scenarios generate --family {name} -n 10 -o tasks", "localsim controls --family {name}"),
    "backend": ("localsim run mutual_friends_01 -m {name}:anything",),
}


@click.group()
def plugin() -> None:
    """Begin a package that adds an evaluator, a game or a backend.

    \b
    localsim plugin new evaluator politeness
    """


@plugin.command()
@click.argument("kind", type=click.Choice(sorted(CLASSES)))
@click.argument("name")
@click.option("-o", "--output", type=Target(file_okay=False, path_type=Path), help="Write into this folder [NAME].")
def new(kind: str, name: str, output: Path | None) -> None:
    """Write a working package: a file with an example, and pyproject.toml.

    \b
    localsim plugin new game bridge -o bridge
    pip install -e bridge
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise InvalidInput(f"{name!r} is no name for a plugin", hint="small letters, digits and underscores: my_game")
    if name in _taken(kind):
        raise InvalidInput(f"localsim or an installed package has {name!r}", hint="choose another name")
    folder = output or Path(name)
    if folder.exists() and any(folder.iterdir()):
        raise InvalidInput("this folder is not empty", where=str(folder), hint="choose another with -o")
    module, title = f"localsim_{name}", "".join(part.capitalize() for part in name.split("_"))
    text = files("localsim.cli").joinpath("templates", "plugin", f"{kind}.py.txt").read_text(encoding="utf-8")
    code = text.replace(CLASSES[kind], title).replace(f'"{NAMES[kind]}"', f'"{name}"')
    code = code.replace('"Stag hunt"', f'"{name.replace("_", " ").capitalize()}"')
    facts = {"dashed": name.replace("_", "-"), "group": f"localsim.{ENTRY[kind]}", "name": name, "module": module}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    (folder / "pyproject.toml").write_text(PROJECT.format(**facts, kind=title), encoding="utf-8")
    say(f"{folder / f'{module}.py'} and pyproject.toml; now: pip install -e {folder}, then")
    for command in NEXT[kind]:
        say(f"  {command.format(name=name)}")


def _taken(kind: str) -> set[str]:
    """Return the names that a plugin of a kind cannot have; a measure has the name of its evaluator."""
    from localsim import plugins
    from localsim.evaluators.scorers import SCORERS
    from localsim.families import FAMILIES
    from localsim.reports.measures import measures_of

    if kind == "game":
        return set(FAMILIES)
    if kind == "backend":
        return {"scripted", "openai", "openvino", "python", "human", *plugins.names("backends")}
    return {*SCORERS, *plugins.names("evaluators"), *(measure.key for measure in measures_of())}
