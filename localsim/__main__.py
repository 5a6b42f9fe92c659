"""Entry point of the `localsim` command: errors become one clear message and a documented exit code."""

from __future__ import annotations

import json
import shlex
import sys

import click

from localsim import paths, plugins
from localsim.errors import Interrupted, LocalsimError
from localsim.runs import stopping

_LEFT_OUT = {
    "gguf": "gguf",
    "huggingface_hub": "huggingface-hub",
    "llama_cpp": "llama-cpp-python",
    "sentence_transformers": "sentence-transformers",
    "torch": "torch",
    "transformers": "transformers",
}
"""Module -> package of what requirements/light.txt leaves out."""
_CONTINUED = ("finetune", "study")
"""Commands that keep what they have done, and continue if they are given again."""


def main() -> None:
    """Run the command line and exit."""
    stopping.listen()
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit code."""
    from localsim.cli import cli

    as_json = "--json" in arguments
    stopping.forget()
    try:
        result = cli.main(arguments, prog_name="localsim", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        if as_json:
            _complain(LocalsimError(error.format_message(), hint="see --help"), as_json, error.exit_code)
        else:
            error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        if arguments[:1] and arguments[0] in _CONTINUED:
            click.echo(f"hint: the same command continues: {shlex.join(['localsim', *arguments])}", err=True)
        return stopping.exit_code()
    except (Exception, SystemExit) as error:
        if paths.debug() and not isinstance(error, SystemExit):
            raise
        found = error if isinstance(error, LocalsimError) else plugins.failure(error) or _foreign(error)
        if found is None:
            return 0  # click ends like this when the reader of a pipe is gone, so there is nothing left to print
        code = stopping.exit_code() if isinstance(found, Interrupted) else found.exit_code
        _complain(found, as_json, code)
        return code


def _foreign(error: BaseException) -> LocalsimError | None:
    """Return an error of Python or of a library as one of ours; None for the end of a program."""
    if isinstance(error, SystemExit):
        return None
    if isinstance(error, OSError):
        return LocalsimError(str(error.strerror or error), where=str(error.filename or ""))
    if isinstance(error, ModuleNotFoundError) and error.name in _LEFT_OUT:
        package = _LEFT_OUT[error.name]
        hint = f"in a clone: make demo; elsewhere: pip install {package}"
        return LocalsimError(f"this needs {package}, which a light installation leaves out", hint=hint)
    hint = "LOCALSIM_DEBUG=1 shows where; please report it"
    return LocalsimError(f"unexpected: {type(error).__name__}: {error}", hint=hint)


def _complain(error: LocalsimError, as_json: bool, exit_code: int) -> None:
    if as_json:
        click.echo(json.dumps({**error.as_json(), "exit": exit_code}), err=True)
        return
    click.secho(_printed(f"error: {error}"), fg="red", err=True)
    if error.hint:
        click.echo(_printed(f"hint: {error.hint}"), err=True)


def _printed(text: str) -> str:
    """Return text without control characters: a message may quote a file or a reply."""
    return "".join(char for char in text if char.isprintable() or char == "\n")


if __name__ == "__main__":
    main()
