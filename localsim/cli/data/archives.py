"""localsim bundle, replay."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

import click

from localsim.cli.answers import Answer, Note, Text, answers
from localsim.cli.common import Target, db_option, refuse_unwritable, run_argument, store_of
from localsim.cli.progress import Progress, say
from localsim.conversation.episode import counted
from localsim.errors import TooManyFailures
from localsim.paths import file_name


@click.command()
@run_argument
@click.option("-o", "--output", type=Target(dir_okay=False, path_type=Path), help="Write to this file [RUN.zip].")
@db_option
@answers
def bundle(run: str, output: Path | None, db: str | None) -> Answer:
    """Write a run as one archive: scenarios, plan, models with sha256, versions, and all texts.

    The same run gives the same bytes. `localsim replay` plays the archive again and compares the texts.

    \b
    localsim bundle @last -o talk.zip
    """
    from localsim.runs.transfer.bundle import bundle as write
    from localsim.runs.transfer.replay import why_not

    store = store_of(db)
    run_id = store.run_id(run)
    target = output or Path(f"{file_name(run_id)}.zip")
    refuse_unwritable(target)
    manifest = write(store, run_id, target)

    def text() -> Text:
        kinds = [name.partition("/")[0] for name in manifest["files"]]
        yield f"{target}: {counted(kinds.count('episodes'))}, {kinds.count('scenarios')} scenarios"
        for name, identity in manifest["models"].items():
            yield f"  {name}: {identity.get('file', identity['kind'])}, sha256 {identity.get('sha256', 'none')}"

        if problem := why_not(manifest["repro"], manifest["models"])[0]:
            yield Note(f"localsim replay will refuse this archive: {problem}")

    return Answer({"file": str(target), **manifest}, text())


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@db_option
@answers
def replay(file: Path, db: str | None) -> Answer:
    """Play an archive of `localsim bundle` again, and say of each episode whether its text is the same.

    Models are found by their sha256 among the installed ones. Only runs with --repro exact promise the same text;
    if one of them differs, the exit code is 6.

    \b
    localsim replay talk.zip
    """
    from localsim.runs.transfer.replay import replay as play

    store = store_of(db)
    with ExitStack() as ends:
        found = play(
            file, store, lambda plan: ends.enter_context(closing(Progress(len(plan.specs()), store=store))), say
        )

    def text() -> Text:
        yield f"run {found.result.run_id}: {found.identical} of {len(found.episodes)} texts are byte-identical"
        for each in found.episodes:
            differs = "differs" if each.turn is None else f"differs from turn {each.turn + 1} on"
            yield f"  {'identical' if each.identical else differs}: {each.file}"

    error = TooManyFailures(
        f"{counted(len(found.episodes) - found.identical)} of an exact run differ",
        where=str(file),
        hint="another build, processor or version writes other texts; localsim doctor shows the build",
    )
    differ = found.repro == "exact" and found.identical < len(found.episodes)
    return Answer(found.as_json(), text(), error if differ else None)
