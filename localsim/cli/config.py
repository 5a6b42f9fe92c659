"""localsim config, localsim doctor."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import click
from click.core import ParameterSource

from localsim import paths
from localsim.cli.answers import Answer, Note, Table, Text, answers, checked
from localsim.cli.progress import say
from localsim.cli.settings import default_map, long_name, options_of
from localsim.errors import BackendUnavailable, InvalidInput
from localsim.machine import PORT
from localsim.machine import doctor as diagnosis
from localsim.machine.room import diagnose_room, qr_text, serve_test_page
from localsim.runs import stopping


@click.group()
def config() -> None:
    """Print the settings in force and their origins."""


@config.command("list")
@click.option("--origin", is_flag=True, help="Print the origin of each value.")
@click.option(
    "--all", "everything", is_flag=True, help="Print every option of every command, with its environment variable."
)
@answers
def list_settings(origin: bool, everything: bool) -> Answer:
    """Print the general settings, and the options that localsim.toml or the environment set.

    \b
    localsim config list --origin
    localsim config list --all
    LOCALSIM_RUN_SEED=7 localsim config list --origin
    """
    fields = ("setting", "value", "origin", "variable")
    rows: list[dict[str, Any]] = [dict(zip(fields, row, strict=True)) for row in paths.general_settings()]
    rows += [row for row in _every_option() if everything or row["origin"] != "default"]
    columns = ["setting", "value", *(["origin"] if origin else []), *(["variable"] if everything else [])]
    return Answer(rows, [Table.of(rows, *columns)])


def _every_option() -> Iterator[dict[str, Any]]:
    root = click.get_current_context().find_root().command
    assert isinstance(root, click.Group)
    names = root.list_commands(click.Context(root))
    settings = {key: value for name in names for key, value in default_map(root, name).items()}
    return _options_below(root, click.Context(root, default_map=settings))


def _options_below(command: click.Command, context: click.Context) -> Iterator[dict[str, Any]]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _options_below(child, click.Context(child, context, name))
        return
    path = context.command_path.strip().replace(" ", ".")
    for option in options_of(command):
        value, source = option.consume_value(context, {})
        origin = {"ENVIRONMENT": f"environment, {option.envvar}", "DEFAULT_MAP": str(paths.project_file())}
        yield {
            "setting": f"{path}.{long_name(option)}",
            "value": None if not isinstance(value, bool | int | float | str | list | tuple) else value,
            "origin": origin.get(source.name if source else "", "default"),
            "variable": option.envvar,
        }


@click.command()
@click.option("--room", is_flag=True, help="Check instead whether phones in the room can reach this computer.")
@click.option(
    "--host",
    metavar="ADDRESS",
    help="With --room: check this address, and serve a test page for phones there until Ctrl-C.",
)
@click.option("--port", type=click.IntRange(1, 65535), default=PORT, help="With --room: check this port.")
@answers
def doctor(room: bool, host: str | None, port: int) -> Answer:
    """Check this machine, the build of llama.cpp and the installed models; exits with 7 where a run cannot work.

    \b
    localsim doctor
    localsim doctor --room
    localsim doctor --room --host 192.168.1.20
    """
    given = click.get_current_context().get_parameter_source
    for name, value in () if room else (("host", host), ("port", port)):
        if given(name) is ParameterSource.COMMANDLINE:
            raise InvalidInput(f"--{name} belongs to --room", hint=f"localsim doctor --room --{name} {value}")
    findings = diagnose_room(host, port) if room else diagnosis.diagnose()
    bad = next((finding for finding in findings if not finding.ok), None)

    def text() -> Text:
        for finding in findings:
            yield checked(finding.name, finding.value, finding.ok)
            if finding.advice:
                yield f"     {finding.advice}"
        if bad is None:
            yield Note(_next_step(findings) if room and host is None else "no problems found")
            if room and host is not None:
                yield from _test_page(host, port)

    error = BackendUnavailable(f"{bad.name}: {bad.value}", hint=bad.advice) if bad else None
    return Answer(diagnosis.as_json(findings), text(), error)


def _next_step(findings: list[diagnosis.Finding]) -> str:
    address = next(finding.value.split()[0] for finding in findings if finding.name == "address")
    return f"only a phone can tell whether it gets through: localsim doctor --room --host {address}"


def _test_page(host: str, port: int) -> Text:
    """Serve the test page until Ctrl-C, with its QR code in the terminal."""
    address = f"http://{host}:{port}/"
    yield qr_text(address)
    yield Note(f"scan the code with a phone, or open {address} on it  (Ctrl-C stops it)")
    with suppress(KeyboardInterrupt):
        serve_test_page(host, port, say, threading.Event().wait)
    if stopping.exit_code() == stopping.TERMINATED:  # Ctrl-C is the way to end it, SIGTERM is not
        raise KeyboardInterrupt
