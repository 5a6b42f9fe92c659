"""The command line: click only, no logic. Each command's module is imported when the command is used.

Exit codes: 0 ok, 1 unexpected, 2 usage, 3 invalid input, 4 model missing or bad checksum, 5 database,
6 finished with failures above --fail-on-error, 7 backend unavailable, 130 interrupted.
"""

from __future__ import annotations

from importlib import import_module

import click

from localsim import __version__, paths

_COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", "Simulate scenarios."),
    "resume": ("run", "Go on with an interrupted run."),
    "play": ("play", "Take a role yourself, against models."),
    "show": ("show", "Print a transcript with private facts in the margin."),
    "view": ("show", "Look at runs in the browser."),
    "annotate": ("annotate", "Let people judge talks, blind, and measure agreement."),
    "score": ("score", "Look for leaked private facts in the talks of a run."),
    "report": ("report", "Compare the modes of a run: table, JSON or HTML."),
    "compare": ("report", "Paired differences between modes or runs."),
    "plot": ("report", "Write the figures of a run as SVG and PNG."),
    "card": ("report", "Write the simulation card of a run."),
    "audit": ("show", "Check that no prompt held what its viewer may not know."),
    "sql": ("data", "Ask the database, read-only."),
    "export": ("data", "Write a run as jsonl, parquet or csv."),
    "finetune": ("finetune", "Train a LoRA adapter on simulated episodes."),
    "study": ("run", "The paper in one command: modes, fine-tuning, a table."),
    "adapters": ("finetune", "List, show, verify and remove adapters."),
    "runs": ("data", "List, show and remove runs."),
    "db": ("data", "Where the database is, and whether it is sound."),
    "scenarios": ("scenarios", "List, show, validate and generate scenarios."),
    "leakage": ("score", "Measure the leakage detector, and fit it to your labels."),
    "models": ("models", "List, fetch, verify, measure and optimize models."),
    "config": ("config", "Settings, and where each comes from."),
    "doctor": ("config", "Check this machine and the build of llama.cpp."),
}

EPILOG = """\b
Exit codes: 0 ok, 1 unexpected, 2 usage, 3 invalid input, 4 model missing or
bad checksum, 5 database, 6 too many failed episodes, 7 backend unavailable,
130 interrupted (localsim resume goes on)."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used, so that --help answers at once."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """All commands in the order in which people need them."""
        return list(_COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in _COMMANDS:
            return None
        command = getattr(import_module(f"localsim.cli.{_COMMANDS[cmd_name][0]}"), cmd_name)
        assert isinstance(command, click.Command)
        _name_variables(command, cmd_name)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


def _name_variables(command: click.Command, path: str) -> None:
    """Give every option its environment variable, LOCALSIM_<COMMAND>_<OPTION>; click would take parameter names."""
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            _name_variables(child, f"{path}_{name}")
    for option in command.params:
        if isinstance(option, click.Option):
            option.envvar = f"LOCALSIM_{path}_{long_name(option)}".upper().replace("-", "_")


def long_name(option: click.Option) -> str:
    """The longest name of an option, without its dashes."""
    return max(option.opts, key=len).lstrip("-")


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="localsim")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Simulate social conversations between LLM agents offline, and see how much of their success is omniscience.

    \b
    localsim models pull starter
    localsim run scenarios/mutual_friends_01.yaml --mode all -n 2 --live
    localsim report @last
    localsim sql "SELECT mode, avg(words) FROM v_turns GROUP BY mode"
    """
    if paths.no_color():
        ctx.color = False
    if paths.project_file():
        from localsim.cli.config import default_map

        group = ctx.command
        assert isinstance(group, click.Group)
        ctx.default_map = default_map(group, ctx.invoked_subcommand)
