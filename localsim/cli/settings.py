"""The settings of localsim.toml as defaults of every command's options.

Precedence is click's own: option > environment (`LOCALSIM_<COMMAND>_<OPTION>`) > localsim.toml (`[command]`) > default.
The variables are named in `localsim.cli`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from localsim import paths
from localsim.errors import InvalidInput, suggest

GENERAL = ("db", "model")
"""Settings of localsim.toml outside of any table."""


def defaults_of(command: click.Command, settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A table of localsim.toml as click's default_map: names of options become names of parameters.

    Raises InvalidInput for a name that the command does not have.
    """
    if not isinstance(settings, Mapping):
        raise InvalidInput(f"{where} is not a table", where=paths.PROJECT_FILE, hint=f"write [{where}]")
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(command, click.Group):
            child = command.get_command(click.Context(command), key)
            if child is None:
                raise _unknown(f"{where}.{key}", key, command.list_commands(click.Context(command)))
            found[key] = defaults_of(child, value, f"{where}.{key}")
            continue
        options = {long_name(option): option for option in options_of(command)}
        option = options.get(key.replace("_", "-"))
        if option is None or option.name is None:
            raise _unknown(f"{where}.{key}", key, list(options))
        found[option.name] = value
    return found


def default_map(root: click.Group, invoked: str | None) -> dict[str, Any]:
    """The settings of localsim.toml for the command that is called; other tables are not checked."""
    settings = paths.project_settings()
    tables = {key: value for key, value in settings.items() if not (key in GENERAL and isinstance(value, str))}
    known = root.list_commands(click.Context(root))
    for key in tables:
        if key not in known:
            raise _unknown(key, key, [*GENERAL, *known])
    if invoked not in tables:
        return {}
    command = root.get_command(click.Context(root), invoked)
    assert command is not None
    return {invoked: defaults_of(command, tables[invoked], invoked)}


def _unknown(path: str, key: str, known: list[str]) -> InvalidInput:
    hint = suggest(key.replace("_", "-"), known) or f"settings here: {', '.join(known)}"
    return InvalidInput(f"unknown setting {path}", where=str(paths.project_file()), hint=hint)


def options_of(command: click.Command) -> list[click.Option]:
    """Return the options of a command."""
    return [option for option in command.params if isinstance(option, click.Option)]


def long_name(option: click.Option) -> str:
    """Return the longest name of an option, without its dashes."""
    return max(option.opts, key=len).lstrip("-")
