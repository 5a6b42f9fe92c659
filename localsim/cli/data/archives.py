"""localsim bundle, replay."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

import click

from localsim.cli import completion
from localsim.cli.common import Progress, db_option, echo, json_option, print_json, say, store_of
from localsim.conversation.episode import counted
from localsim.errors import TooManyFailures


@click.command()
@click.argument("run", default="@last", shell_complete=completion.runs)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file [RUN.zip].")
@db_option
@json_option
def bundle(run: str, output: Path | None, db: str | None, as_json: bool) -> None:
    """Write a run as one archive: scenarios, plan, models with sha256, versions, and all texts.

    The same run gives the same bytes. `localsim replay` plays the archive again and compares the texts.

    \b
    localsim bundle @last -o talk.zip
    """
    from localsim.runs.exchange.bundle import bundle as write

    store = store_of(db)
    run_id = store.run_id(run)
    target = output or Path(f"{run_id}.zip")
    manifest = write(store, run_id, target)
    if as_json:
        print_json({"file": str(target), **manifest})
        return
    kinds = [name.partition("/")[0] for name in manifest["files"]]
    click.echo(f"{target}: {counted(kinds.count('episodes'))}, {kinds.count('scenarios')} scenarios")
    for name, identity in manifest["models"].items():
        echo(f"  {name}: {identity.get('file', identity['kind'])}, sha256 {identity.get('sha256', 'none')}")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@db_option
@json_option
def replay(file: Path, db: str | None, as_json: bool) -> None:
    """Play an archive of `localsim bundle` again, and say of each episode whether its text is the same.

    Models are found by their sha256 among the installed ones. Only runs with --repro exact promise the same text;
    if one of them differs, the exit code is 6.

    \b
    localsim replay talk.zip
    """
    from localsim.runs.exchange.replay import replay as play

    store = store_of(db)
    with ExitStack() as ends:
        found = play(
            file,
            store,
            lambda plan: ends.enter_context(closing(Progress(len(plan.specs()), quiet=as_json, store=store))),
            say,
        )
    if as_json:
        print_json(found.as_json())
    else:
        click.echo(f"run {found.result.run_id}: {found.identical} of {len(found.episodes)} texts are byte-identical")
        for each in found.episodes:
            differs = "differs" if each.turn is None else f"differs from turn {each.turn} on"
            echo(f"  {'identical' if each.identical else differs}: {each.file}")
    if found.repro == "exact" and found.identical < len(found.episodes):
        raise TooManyFailures(
            f"{counted(len(found.episodes) - found.identical)} of an exact run differ",
            where=str(file),
            hint="another build, processor or version writes other texts; localsim doctor shows the build",
        )
