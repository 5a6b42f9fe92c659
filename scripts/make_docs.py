#!/usr/bin/env python3
"""The generated pages of the site, and the outputs that README and tutorial show.

    .venv/bin/python scripts/make_docs.py views               # print a page: commands, views, python, controls, ...
    .venv/bin/python scripts/make_docs.py --readme-outputs    # run the README's commands again on the embedded model

The pages are not in the repository: docs_hooks.py makes them when the site is built (`make docs`). The outputs take
minutes; they also write tests/data/readme_run.jsonl, the run that the README quotes.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import localsim
from localsim import api
from localsim.cli import cli
from localsim.cli.settings import long_name
from localsim.conversation.episode import MODES
from localsim.families import FAMILIES, family_of, title_of
from localsim.reports.validity.controls import controls_of
from scripts.game_docs import games_page, systems_page
from scripts.view_docs import cell, views_page

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
RECORD = ROOT / "tests" / "data" / "readme_run.jsonl"


def main() -> int:
    """Print a page, or run the quoted commands again; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("page", nargs="?", choices=sorted(PAGES), help="the page to print")
    wanted.add_argument("--readme-outputs", action="store_true", help="run the README's commands again (minutes)")
    options = parser.parse_args()
    if options.readme_outputs:
        refresh_readme()
    else:
        print(PAGES[options.page](), end="")
    return 0


@lru_cache
def pages() -> dict[str, str]:
    """Return the text of every generated page by its path below docs/."""
    return {f"reference/{name}.md": make() for name, make in PAGES.items()}


# ---- controls ------------------------------------------------------------------------------------------------------


def controls_page() -> str:
    """Return the table of controls: what each measure must be for each player."""
    lines = [
        "# Controls",
        "",
        "Scripted players whose behaviour is known, and the value that each measure must have when they play. "
        "`localsim controls` plays them in all modes and checks every value; so do the tests. "
        "[What each number can tell](../measurement.md) explains the measures.",
    ]
    for family in FAMILIES.own:
        lines += [
            "",
            f"## {title_of(family_of(family))}",
            "",
            "| measure | player | task | must be | because |",
            "|---|---|---|---|---|",
        ]
        for control in sorted(controls_of(family), key=lambda control: control.measure):
            modes = "" if set(control.modes) == set(MODES) else f" ({', '.join(control.modes)})"
            task = control.task or "default"
            lines.append(
                f"| {control.measure} | {control.player}{modes} | {task} | {control.allowed} | {control.why} |"
            )
    return "\n".join(lines) + "\n"


# ---- commands ------------------------------------------------------------------------------------------------------


def all_commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command and group of the command line with its full name, such as `models pull`."""
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        yield from _with_children(name, command)


def _with_children(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for child, inner in command.commands.items():
            yield from _with_children(f"{name} {child}", inner)


def commands_page() -> str:
    """Return the page of all commands, their options and the variables that set them."""
    context = click.Context(cli)
    lines = [
        "# Commands",
        "",
        *_paragraphs(cli.help or ""),
        "",
        "Every command prints its help with `-h` or `--help`. `@last` means the newest run with a completed episode,",
        "or the newest completed episode where an episode is asked for; `@last-1` is the one before it. Commands take",
        "the name of a run (`localsim run --name`) as well as its id, and the unique start of an id is enough. Each",
        "option can also be set by the environment variable in its row, or in `localsim.toml`",
        "([settings](../python.md#settings)).",
        "[Exit codes](../reference.md#exit-codes) say how a command ended.",
        "",
        "| command | purpose |",
        "|---|---|",
    ]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        lines.append(f"| [`localsim {name}`](#localsim-{name}) | {cell(command.get_short_help_str(200))} |")
    for name, command in all_commands():
        lines += ["", f"{'#' * (2 + name.count(' '))} localsim {name}", "", *_paragraphs(command.help or "")]
        lines += ["", "```text", _usage(name, command), "```"]
        options = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
        if options:
            lines += ["", "| option | meaning | default | environment |", "|---|---|---|---|"]
            lines += [_option_row(option) for option in options]
    return "\n".join(lines) + "\n"


def _usage(name: str, command: click.Command) -> str:
    pieces = command.collect_usage_pieces(click.Context(command, info_name=name))
    return " ".join(["localsim", name, *pieces])


def _paragraphs(text: str) -> list[str]:
    """Turn help into Markdown: paragraphs that click keeps as they are become blocks of commands."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith("\b"):
            shown = [line.strip() for line in paragraph.splitlines()[1:]]
            commands = all(line.startswith(("localsim", "LOCALSIM_")) for line in shown)
            lines += ["```console", *(f"$ {line}" for line in shown)] if commands else ["```text", *shown]
            lines += ["```", ""]
        elif paragraph:
            lines += [" ".join(paragraph.split()), ""]
    return lines[:-1]


def _option_row(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    value = "" if option.is_flag or option.count else f" · `{option.metavar or _values(option.type)}`"
    default = "" if option.default in (None, False, ()) or callable(option.default) else f"`{option.default}`"
    if option.default is True:
        default = f"`--{long_name(option)}`"
    if not isinstance(option.default, str | int | float | None) or "Sentinel" in str(option.default):
        default = ""
    return f"| {names}{value} | {cell(option.help or '')} | {default} | `{option.envvar}` |"


def _values(kind: click.ParamType) -> str:
    if isinstance(kind, click.Choice):
        return " or ".join(map(str, kind.choices))
    if isinstance(kind, click.IntRange | click.FloatRange):
        low, high = kind.min, kind.max
        if low is None:
            return "number"
        if high is None or high >= 2**31:
            return f"number from {low}"
        return f"number from {low} to {high}"
    return kind.name.upper()


# ---- Python -----------------------------------------------------------------------------------------


def python_page() -> str:
    """Return the page of the public Python names with their signatures and docstrings."""
    lines = ["# Python API", "", "Examples are in [Python, settings and plugins](../python.md).", ""]
    lines += [*_function("localsim.run", api.run), *_function("localsim.open", localsim.open)]
    for kind in (api.Simulated, api.Run, api.Archive):
        lines += [f"## localsim.{kind.__name__}", "", _doc(kind), ""]
        fields = getattr(kind, "__dataclass_fields__", {})
        if fields:
            lines += ["| field | type |", "|---|---|"]
            lines += [f"| `{field.name}` | `{field.type}` |" for field in fields.values()] + [""]
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_") and name in vars(kind):
                lines += _function(f"{kind.__name__}.{name}", method, "###")
    return "\n".join(lines).rstrip() + "\n"


def _function(name: str, function: Callable[..., Any], heading: str = "##") -> list[str]:
    signature = inspect.signature(function)
    kept = [
        parameter.replace(annotation=_Plain(parameter.annotation))
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    text = f"{name}({', '.join(map(str, kept))}) -> {signature.return_annotation}"
    if len(text) > 100:
        text = f"{name}(\n" + "".join(f"    {parameter},\n" for parameter in kept) + text[text.index(") -> ") :]
    return [f"{heading} {name}", "", "```python", text, "```", "", _doc(function), ""]


class _Plain(str):
    """An annotation that prints without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _doc(thing: Any) -> str:
    return inspect.getdoc(thing) or ""


PAGES: dict[str, Callable[[], str]] = {
    "commands": commands_page,
    "views": views_page,
    "python": python_page,
    "controls": controls_page,
    "games": games_page,
    "systems": systems_page,
}
"""The generated pages by name; each has a section of that name in docs/reference.md, and leads there in the site."""


# ---- the outputs that README and tutorial show ---------------------------------------------------------------------

QUOTING = ("README.md", "docs/tutorial.md")
"""Pages whose `console` blocks hold one command and its output; all are run in one folder, in this order."""
BLOCK = re.compile(r"```console\n\$ (?P<command>localsim [^\n]*)\n(?P<output>.*?)```", re.DOTALL)
SCENARIO = re.compile(r"```yaml\n# (?P<file>\w+\.yaml)\n(?P<text>.*?)```", re.DOTALL)
QUOTED_RUN = "localsim run mutual_friends_01 --mode all -n 2 --seed 1"


def refresh_readme() -> None:
    """Run the commands of README and tutorial in an empty folder; put their outputs into the pages."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = quoted_outputs(Path(folder))
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        run_id = re.search(r"run (\S+): ", "\n".join(outputs[QUOTED_RUN]))
        assert run_id
        run_command(f"localsim export {run_id[1]} -f jsonl -o {RECORD}", Path(folder))
    for name in QUOTING:
        text = (ROOT / name).read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            shown = "\n".join(shorten(name, match["command"], outputs[match["command"]]))
            text = text.replace(match[0], f"```console\n$ {match['command']}\n{shown}\n```")
        (ROOT / name).write_text(text, encoding="utf-8")
        print(f"wrote {name}")
    print(f"wrote {RECORD.relative_to(ROOT)}")


def quoted_outputs(folder: Path) -> dict[str, list[str]]:
    """Run every command that the pages quote, each once, in a folder; return the output lines by command."""
    outputs: dict[str, list[str]] = {}
    for name in QUOTING:
        text = (ROOT / name).read_text(encoding="utf-8")
        for match in SCENARIO.finditer(text):
            (folder / match["file"]).write_text(match["text"], encoding="utf-8")
        for match in BLOCK.finditer(text):
            command = match["command"]
            if command not in outputs:
                print(f"$ {command}", flush=True)
                outputs[command] = run_command(command, folder)
    return outputs


def run_command(command: str, folder: Path) -> list[str]:
    """Run one quoted command in a folder; return its output lines, with paths relative to it or to the repository."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCALSIM_")}
    if "LOCALSIM_MODELS" in os.environ:  # a checkout without models uses those of another
        environment["LOCALSIM_MODELS"] = os.environ["LOCALSIM_MODELS"]
    environment |= {"NO_COLOR": "1", "COLUMNS": "110", "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    line = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(
        line, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"exit code {done.returncode}: {command}\n{done.stdout}")
    out = done.stdout.replace(f"{folder.resolve()}/", "").replace(f"{ROOT}/", "")
    return [line.rstrip() for line in out.splitlines()]


KEPT = {
    "README.md run --primary": (r".*: seeing every side", r"interval \S+ to \S+, "),
    "docs/tutorial.md run --primary": (r".*: seeing every side", r"interval \S+ to \S+, "),
    "README.md run": (r"run \S+: ",),
    "README.md show": (r".*\[script, ", r"  2 "),
    "README.md report": (r"mode ", r"-----", r"[▼●■] "),
    "docs/tutorial.md scenarios list": (r"id ", r"mutual_friends_0[12]", r"roommates"),
    "docs/tutorial.md scenarios show": (r"mutual_friends_01: ", r"Two ", r"\w+$", r"  goal: ", r"  knows .*_[12],"),
    "docs/tutorial.md run": (r"\w+/\w+/\d ", r"leakage ", r"run \S+: ", r"next: "),
    "docs/tutorial.md show --prompt": (r"--- (sys|us)", r"Write", r"What ", r"- \w+: (Des|Sor|Jas)", r"To end"),
    "docs/tutorial.md show": (r".*\[", r"episode ", r"  [1-6] "),
}
"""Lines of an output that a page shows, by page and command; other outputs are shown whole."""
SHORT = ("README.md show", r"    \^ first mention")
"""Notes below a turn that a page leaves out all the same."""


def shorten(page: str, command: str, lines: list[str]) -> list[str]:
    """Return the lines that a page shows, with `...` in place of those left out."""
    words = command.split()[1:]
    key = next((key for key in _keys(page, words) if key in KEPT), None)
    if key is None:
        return lines
    shown: list[str] = []
    keep = False
    for line in lines:
        keep = (keep and line.startswith("    ")) or any(re.match(pattern, line) for pattern in KEPT[key])
        if keep and not (key == SHORT[0] and re.match(SHORT[1], line)):
            shown.append(line)
        elif shown[-1:] != ["..."]:
            shown.append("...")
    return shown


def _keys(page: str, words: list[str]) -> Iterator[str]:
    """Yield the keys of a command in KEPT, the closest first."""
    yield from (f"{page} {words[0]} {word}" for word in words[1:] if word.startswith("--"))
    yield f"{page} {' '.join(words[:2])}"
    yield f"{page} {words[0]}"


def read_record() -> list[dict[str, Any]]:
    """Read the episodes of the run that the README quotes."""
    return [json.loads(line) for line in RECORD.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    sys.exit(main())
