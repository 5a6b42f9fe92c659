"""The command line: options and output, no logic. A command's module is imported when the command is used.

Exit codes: 0 ok, 1 unexpected, 2 usage, 3 invalid input, 4 model missing or bad checksum, 5 database,
6 finished with failures above --fail-on-error, with talks that do not play (--strict), or without what `check` demands,
7 backend unavailable, 130 interrupted by Ctrl-C, 143 by SIGTERM.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click

from localsim import __version__, paths
from localsim.cli.settings import default_map, long_name, options_of
from localsim.errors import suggest

_COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("running.commands", "Simulate scenarios."),
    "resume": ("running.commands", "Continue an interrupted run."),
    "interview": ("running.commands", "Ask people the questions of a bank."),
    "play": ("play", "Play one role yourself, with models in the others."),
    "class": ("play", "Let a class play on phones, with a projector page."),
    "experiment": ("running.experiment", "Let people take part in an experiment, and see its results."),
    "show": ("show", "Print a conversation, with private facts where they come up."),
    "view": ("show", "Look at runs in the browser."),
    "annotate": ("annotate", "Let people rate conversations without seeing the mode, and measure agreement."),
    "score": ("score", "Score stored episodes: outcome, leaks, judges."),
    "report": ("report", "Compare the modes of a run as a table, JSON or HTML."),
    "compare": ("compare", "Print paired differences between modes or runs, or finished studies side by side."),
    "check": ("report", "Check that a run meets demands, with exit code and JUnit XML."),
    "design": ("report", "Plan scenarios and seeds for a wanted difference, from a pilot run."),
    "plot": ("report", "Write the figures of a run as SVG, PNG and PDF."),
    "card": ("report", "Write the simulation card of a run."),
    "audit": ("show", "Check that no prompt held anything its reader may not know."),
    "sql": ("data.asking", "Query the database, read-only."),
    "import": ("data.files", "Import conversations of people: public corpora, tables, JSON lines."),
    "export": ("data.files", "Write a run for other tools: tables, training chats, Sotopia, Inspect, datasets."),
    "bundle": ("data.files", "Write a run as one archive that can be played again."),
    "replay": ("data.files", "Play an archive again, and compare its texts."),
    "finetune": ("finetune", "Train a LoRA adapter on simulated episodes."),
    "study": ("finetune", "Repeat the paper's study: all modes, fine-tuning with controls, a page."),
    "adapters": ("finetune", "List, show, verify and remove adapters."),
    "runs": ("data.databases", "List, show and remove runs."),
    "db": ("data.databases", "Show where the database is, and check it."),
    "scenarios": ("scenarios", "List, show, validate, generate and import scenarios."),
    "leakage": ("score", "Measure the leakage detector, or fit it to your labels."),
    "controls": ("score", "Check every measure with players whose behaviour is known."),
    "plugin": ("plugin", "Begin a package that adds an evaluator, a game or a backend."),
    "models": ("models", "List, fetch, verify, measure and optimize models."),
    "config": ("config", "List settings, and where each one is set."),
    "doctor": ("config", "Check this machine and the build of llama.cpp."),
}

EPILOG = """\b
Exit codes: 0 ok, 1 unexpected, 2 usage, 3 invalid input, 4 model missing or
bad checksum, 5 database, 6 too many failed episodes, talks that do not play
(--strict) or demands that do not hold (check), 7 backend unavailable,
130 interrupted by Ctrl-C, 143 by SIGTERM (localsim resume continues)."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used, so that --help answers at once."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order in which people need them."""
        return list(_COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command and return it; None for an unknown name."""
        return _imported(cmd_name) if cmd_name in _COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; the error about an unknown one names the nearest."""
        if (meant := suggest(args[0], _COMMANDS)) and args[0] not in _COMMANDS and args[0].isidentifier():
            ctx.fail(f"No such command {args[0]!r}: {meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@cache
def _imported(name: str) -> click.Command:
    import_module("localsim.backends")  # llama.cpp's libraries first: a command's module may import duckdb or numpy
    module = import_module(f"localsim.cli.{_COMMANDS[name][0]}")
    command: click.Command = getattr(module, f"{name}_" if iskeyword(name) else name)
    _equip(command, name)
    return command


def _equip(command: click.Command, path: str) -> None:
    """Let every option show its default, come at most once, and have its variable, LOCALSIM_<COMMAND>_<OPTION>."""
    for name, child in command.commands.items() if isinstance(command, click.Group) else ():
        _equip(child, f"{path}_{name}")
    for option in options_of(command):
        option.show_default = option.show_default is not False
        option.envvar = f"LOCALSIM_{path}_{long_name(option)}".upper().replace("-", "_")
    make = command.make_parser

    def make_parser(ctx: click.Context) -> Any:
        parser: Any = make(ctx)
        parser.parse_args = _once(parser.parse_args, ctx)
        return parser

    command.make_parser = make_parser  # type: ignore[method-assign]


def _once(parse: Callable[..., Any], ctx: click.Context) -> Callable[[list[str]], Any]:
    """Let a parser refuse an option that takes one value and is given twice; click would keep the last one silently."""

    def parse_args(args: list[str]) -> Any:
        found = parse(args=args)
        order = [param for param in found[2] if isinstance(param, click.Option)]
        for option in order:
            once = not (option.multiple or option.count or (option.is_flag and not option.secondary_opts))
            if once and order.count(option) > 1 and not ctx.resilient_parsing:
                raise click.UsageError(f"--{long_name(option)} is given {order.count(option)} times", ctx)
        return found

    return parse_args


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="localsim")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Simulate social conversations between LLM agents offline, and see how much of their success is omniscience.

    \b
    localsim models pull starter
    localsim run mutual_friends_01 --mode all -n 2 --live
    localsim report @last
    localsim sql "SELECT mode, avg(words) FROM v_turns GROUP BY mode"
    """
    if paths.no_color():
        ctx.color = False
    if paths.project_file():
        group = ctx.command
        assert isinstance(group, click.Group)
        ctx.default_map = default_map(group, ctx.invoked_subcommand)
