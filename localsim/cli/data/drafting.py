"""Drafts of situations from a premise, for `scenarios generate --from-premise`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from localsim.cli.common import clean, say
from localsim.errors import InvalidInput, TooManyFailures
from localsim.runs.drafting import Draft, Lint, counted_problems, drafts


def write_drafts(
    premise: str, model: str, seeds: Sequence[int], folder: Path, tries: int, lint: Lint, *, force: bool
) -> None:
    """Write a file for each seed whose draft passes, and say why others are refused.

    Raises TooManyFailures if a file is missing at the end.
    """
    names = [(f"premise_{seed:02d}", seed) for seed in seeds]
    for name, _ in names:
        if (folder / f"{name}.yaml").exists() and not force:
            hint = "--force overwrites it"
            raise InvalidInput("this file exists already", where=str(folder / f"{name}.yaml"), hint=hint)
    refused: list[Draft] = []
    written = 0
    for draft in drafts(premise, model, names, tries, lint, say):
        if draft.problems or draft.document is None:
            refused.append(draft)
            say(f"{draft.name}, try with seed {draft.seed}: refused")
            continue
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{draft.name}.yaml"
        file.write_text(draft.document, encoding="utf-8")
        written += 1
        click.echo(str(file))
    click.echo(f"{written} of {len(names)} situations in {folder}; {len(refused)} drafts refused")
    for reason, count in counted_problems(refused):
        click.echo(clean(f"  {count} refused: {reason}"))
    if written < len(names):
        hint = "more --tries, another --seed, or a larger model"
        raise TooManyFailures(f"{len(names) - written} of {len(names)} situations have no draft that passes", hint=hint)
    say(f"read it before you use it, then: localsim run {folder}/{names[0][0]}.yaml@1")
