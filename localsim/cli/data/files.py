"""localsim export, import, bundle, replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localsim import paths
from localsim.cli.answers import Answer, Note, Text, answers
from localsim.cli.common import Named, Target, db_option, files_argument, refuse_unwritable, run_argument, store_of
from localsim.cli.progress import Progress, Reassurance, say
from localsim.conversation.wording.wordings import counted
from localsim.errors import TooManyFailures
from localsim.paths import file_name
from localsim.store.database import Store
from localsim.store.queries import runs as queries

if TYPE_CHECKING:
    from localsim.runs.transfer.imported import Imported


@click.command()
@run_argument
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["jsonl", "parquet", "csv", "sft", "sharegpt", "sotopia", "inspect", "hf", "site"]),
    help="Write the run in this format.",
)
@click.option(
    "-o",
    "--output",
    type=Target(),
    help="Write to this file, or to this folder for parquet, csv, sotopia, hf and site [export-RUN].",
)
@click.option(
    "--partitioned",
    metavar="FOLDER",
    type=Target(path_type=Path, file_okay=False),
    help="Write all rows of the run as Parquet to its own place in this folder, which can hold many runs.",
)
@click.option("--all", "everything", is_flag=True, help="With --partitioned: write every run of the database.")
@click.option(
    "--by-scenario/--by-run",
    "by_scenario",
    default=None,
    help="With --partitioned: give each scenario files of its own, or none "
    "[own files if a scenario has 20,000 turns on average: many small files are slow to read].",
)
@db_option
@answers
def export(run: str, db: str | None, **options: Any) -> Answer:
    """Write a run for other tools.

    \b
    jsonl          one episode per line, with turns and scores
    parquet, csv   one file per view
    sft, sharegpt  one training chat per line, for each agent of an episode
    sotopia        profiles and episode logs in Sotopia's JSON
    inspect        one log that Inspect opens (inspect view)
    hf             a folder that load_dataset of Hugging Face's datasets reads
    site           pages that open in a browser without a server: start with index.html

    --partitioned writes the tables behind the views. `localsim db attach` shows the runs of such folders together. A
    run that is exported again replaces its files.

    \b
    localsim export @last -f jsonl -o run.jsonl
    localsim export @last -f parquet -o folder
    localsim export --all --partitioned results
    """
    if (options["form"] is None) == (options["partitioned"] is None):
        raise click.UsageError("give either --format or --partitioned")
    if options["partitioned"] and options["output"]:
        raise click.UsageError("--partitioned names the folder itself; leave out --output")
    if not options["partitioned"] and (options["everything"] or options["by_scenario"] is not None):
        raise click.UsageError("--all, --by-scenario and --by-run belong to --partitioned")
    store = store_of(db)
    with Reassurance("writing the files"):
        if options["partitioned"]:
            made = _partitions(store, None if options["everything"] else run, **options)
        else:
            made = _files(store, store.run_id(run), options["form"], options["output"])
    return Answer(made, (each if isinstance(each, str) else _line(each) for each in made))


def _partitions(store: Store, run: str | None, *, partitioned: Path, by_scenario: bool | None, **_: Any) -> list[Any]:
    """Write a run, or all of them, as partitions, and return their manifests with their folders."""
    from localsim.store.outside.export import write_partition
    from localsim.store.outside.partitions import partition_of

    chosen = [row["run_id"] for row in queries.run_list(store)] if run is None else [store.run_id(run)]
    made = [write_partition(store, run_id, partitioned, by_scenario) for run_id in chosen]
    return [{"path": str(partition_of(each.run_id, partitioned)), **asdict(each)} for each in made]


def _line(made: Mapping[str, Any]) -> str:
    """Return the line about a partition."""
    rows = made["rows"]
    episodes = counted(rows["episodes"], "episode")
    return f"{made['path']}: {episodes}, {rows['turns']} turns, {made['bytes'] / 1e6:.1f} MB"


def _files(store: Store, run_id: str, form: str, output: str | None) -> list[Any]:
    """Write a run in one format and return the files."""
    from localsim.runs.transfer.sending import FORMATS, send

    ending = {"parquet": "", "csv": "", "sotopia": "", "hf": "", "site": "", "inspect": ".json"}.get(form, ".jsonl")
    target = Path(output or f"export-{file_name(run_id)}{ending}")
    refuse_unwritable(target)
    if form in ("sft", "sharegpt"):
        from localsim.finetune.source import chats_of_episodes, episodes_of_run, write_chats

        write_chats(chats_of_episodes(store, episodes_of_run(store, run_id)), form, target)
        return [str(target)]
    if form in FORMATS:
        return [str(path) for path in send(store, run_id, form, target, say)]
    if form == "site":
        return [str(path) for path in _site(store, run_id, target)]
    from localsim.store.outside.export import export_run

    return [str(path) for path in export_run(store, run_id, form, target)]


def _site(store: Store, run_id: str, folder: Path) -> list[Path]:
    """Write the pages of a run. Raises InvalidInput if the packages for it are not installed."""
    with paths.needing("the pages need", "web"):
        from localsim.web.site import write_site
    return write_site(store, run_id, folder)


@click.group("import")
def import_() -> None:
    """Import conversations of people.

    \b
    localsim import talks chats.json
    """


@import_.command()
@files_argument
@click.option(
    "--format",
    "form",
    metavar="FORMAT",
    default="auto",
    help="Read the files in this format: auto, mutual-friends, craigslist, casino, dealornodeal, csv or jsonl.",
)
@click.option("--family", metavar="FAMILY", help="Score the conversations of a table (csv, jsonl) as this task family.")
@click.option("--label", metavar="NAME", default="people", help="Show the people under this name in tables.")
@click.option("--leaks/--no-leaks", default=True, help="Look for private facts that come out; this takes longest.")
@click.option(
    "--scenarios",
    metavar="FOLDER",
    type=Target(path_type=Path, file_okay=False),
    help="Also write the scenarios to this folder, to simulate models on them.",
)
@db_option
@answers
def talks(files: Sequence[Path], scenarios: Path | None, db: str | None, **options: Any) -> Answer:
    """Store conversations of people as a run of the mode `people`, scored as simulated ones are.

    The same files are stored once. If a file has a defect, nothing is stored. docs/human-talks.md has the formats.

    \b
    localsim import talks train.json
    localsim import talks ours.jsonl --label students
    localsim report @last-1 --people @last
    """
    from localsim.runs.transfer.imported import Options, import_talks, write_scenarios

    store = store_of(db)
    found = import_talks(store, files, Options(**options), say)
    if scenarios:
        say(f"wrote {len(write_scenarios(store, found.run_id, scenarios))} scenarios to {scenarios}")
    return Answer(found.as_json(), _imported(found))


def _imported(found: Imported) -> Text:
    if not found.new:
        yield f"already imported as run {found.run_id}"
        yield Note(f"to import it again: localsim runs rm {found.run_id}")
        return
    yield f"run {found.run_id}: {found.conversations} conversations on {found.scenarios} scenarios"
    yield from (f"  {count} left out: {reason}" for reason, count in found.left_out.items())
    yield from (f"  {count} with a limit: {note}" for note, count in found.notes.items())
    for name, (equal, unread, n) in found.agreement.items():
        missing = f" ({unread} could not be read)" if unread else ""
        yield f"  {name}, as read from the words, equals the corpus's own in {equal} of {n} conversations{missing}"
    yield Note(f"next: localsim report {found.run_id}, or localsim report RUN --people {found.run_id}")


# ---- archives --------------------------------------------------------------------------------------------------------


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
        yield f"{target}: {counted(kinds.count('episodes'), 'episode')}, {kinds.count('scenarios')} scenarios"
        for name, identity in manifest["models"].items():
            yield f"  {name}: {identity.get('file', identity['kind'])}, sha256 {identity.get('sha256', 'none')}"

        if problem := why_not(manifest["repro"], manifest["models"])[0]:
            yield Note(f"localsim replay will refuse this archive: {problem}")

    return Answer({"file": str(target), **manifest}, text())


@click.command()
@click.argument("file", type=Named(dir_okay=False, path_type=Path))
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
        f"{counted(len(found.episodes) - found.identical, 'episode')} of an exact run differ",
        where=str(file),
        hint="another build, processor or version writes other texts; localsim doctor shows the build",
    )
    differ = found.repro == "exact" and found.identical < len(found.episodes)
    return Answer(found.as_json(), text(), error if differ else None)
