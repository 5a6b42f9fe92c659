"""How commands say that the talks of a run do not play, and the option that makes an error of it."""

from __future__ import annotations

from collections.abc import Sequence

import click

from localsim.cli.common import clean
from localsim.errors import DoesNotPlay

strict_option = click.option(
    "--strict",
    is_flag=True,
    help="Exit with code 6 if more than 20% of the talks of a condition do not play, so that a conclusion is withheld.",
)


def print_playing(sentences: Sequence[str]) -> None:
    """Print what `Playing.sentences` returns, before anything else of a result."""
    for number, sentence in enumerate(sentences):
        click.secho(clean(sentence), fg="yellow", bold=number == 0)


def refuse(sentences: Sequence[str], *, strict: bool) -> None:
    """Raise DoesNotPlay if the option is given and there is something to say; it follows all output."""
    if strict and sentences:
        raise DoesNotPlay("talks do not play, so a conclusion is withheld", hint="all talks and scores are stored")
