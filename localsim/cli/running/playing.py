"""How commands say that the talks of a run do not play, and the option that makes an error of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from localsim.cli.answers import Styled
from localsim.errors import DoesNotPlay

strict_option = click.option(
    "--strict",
    is_flag=True,
    help="Exit with code 6 if more than 20% of the talks of a condition do not play, so that a conclusion is withheld, "
    "and after a run with code 1 if an evaluator failed.",
)


def playing_lines(sentences: Sequence[str]) -> Iterator[Styled]:
    """Yield what `Playing.sentences` returns; it comes before anything else of a result."""
    for number, sentence in enumerate(sentences):
        yield Styled(sentence, "yellow", bold=number == 0)


def refusal(sentences: Sequence[str], *, strict: bool) -> DoesNotPlay | None:
    """Return the error that follows all output if the option is given and there is something to say."""
    if not (strict and sentences):
        return None
    return DoesNotPlay("talks do not play, so a conclusion is withheld", hint="all talks and scores are stored")
