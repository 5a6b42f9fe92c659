"""localsim annotate: people judge conversations; their answers are stored and compared with judges and detector."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from localsim.annotation.items import (
    TASKS,
    Item,
    PairItem,
    Task,
    every_item,
    items_of,
    next_item,
    progress,
    selected,
    shown,
)
from localsim.annotation.records import MadeBy, answered, checked_rater, done, save, save_all, undo, validated
from localsim.cli import completion
from localsim.cli.answers import Answer, Note, answers
from localsim.cli.common import (
    Named,
    Reassurance,
    Target,
    clean,
    colour_of,
    conditions_argument,
    db_option,
    say,
    serve_pages,
    store_of,
    web_options,
    write_file,
)
from localsim.errors import InvalidInput

_rater = click.option(
    "--rater", required=True, help="Pseudonym of the rater: letters, digits, _ and -; not a real name."
)
_task = click.option(
    "--task",
    type=click.Choice(TASKS),
    default="pairs",
    help="Question to answer about the conversations.",
)
_KINDS: dict[str, MadeBy] = {"person": "person", "model": "language model"}
_kind = click.option(
    "--rater-kind",
    "kind",
    type=click.Choice(tuple(_KINDS)),
    default="person",
    help="Kind of the rater: a person or a language model. Reports say which kind made the labels.",
)
_ties = click.option("--ties", is_flag=True, help="Allow the answer 0 (no difference) to a pair.")


@click.group()
def annotate() -> None:
    """Let people judge the conversations of a run, blind, and measure how well they agree.

    Conditions of several runs, such as @last:agents @last-1:agents, are judged against each other.

    \b
    localsim annotate serve @last --open
    localsim annotate serve @last:agents @last-1:agents --open
    localsim annotate terminal @last --rater rater_01
    localsim annotate agreement @last
    """


@annotate.command()
@conditions_argument
@web_options
@db_option
def serve(conditions: tuple[str, ...], host: str, port: int | None, open_browser: bool, db: str | None) -> None:
    """Annotate in the browser: a server that shows raters their items and nothing else.

    With --host, raters on your network can take part; they need the printed address with its token.

    \b
    localsim annotate serve @last --open
    localsim annotate serve @last:agents @last-1:agents --open
    """
    with Reassurance("reading the run"):
        store = store_of(db)
        chosen = selected(store, conditions) if conditions else None
    path = f"/annotate?run={chosen.key}" if chosen else "/annotate"
    several = chosen if chosen and chosen.conditions is not None else None
    parts = frozenset({"annotate"})
    serve_pages(store, host, port, path, open_browser=open_browser, parts=parts, selection=several)


# ---- asking --------------------------------------------------------------------------------------------------------


@annotate.command()
@conditions_argument
@_rater
@_kind
@_task
@_ties
@db_option
def terminal(conditions: tuple[str, ...], rater: str, kind: str, task: Task, ties: bool, db: str | None) -> None:
    """Annotate in the terminal; every answer is stored at once, and you can stop and continue at any time.

    \b
    localsim annotate terminal @last --rater rater_01
    localsim annotate terminal @last --rater rater_01 --task disclosures
    """
    checked_rater(rater)
    store = store_of(db)
    with Reassurance("choosing the items"):
        chosen = selected(store, conditions)
        items = items_of(store, chosen, task, rater, ties=ties)
    mine = [item.item_id for item in items]
    while True:
        finished = done(store, task, chosen.runs, rater)
        item = next_item(items, finished)
        count = progress(items, finished)
        click.secho(f"\n== {count.done} of {count.total} answered", bold=True)
        if item is None:
            named = " ".join(conditions) if chosen.conditions is not None else chosen.runs[0]
            click.echo(f"All items are answered. Results: localsim annotate agreement {named}")
            return
        _show(shown(item))
        started = time.monotonic()
        try:
            value = _asked(item)
            seconds = round(time.monotonic() - started, 1)
            save(store, answered(item, value, origin="terminal", seconds=seconds, made_by=_KINDS[kind]))
        except _Undo:
            back = undo(store, task, chosen.runs, rater, mine)
            click.echo("Your last answer is undone." if back else "There is nothing to undo.")
        except (EOFError, _Quit):
            click.echo(f"\n{count.done} answers are stored. Run the same command to continue.")
            return


class _Undo(Exception):
    """The rater undoes the last answer."""


class _Quit(Exception):
    """The rater stops."""


def _show(seen: Mapping[str, Any]) -> None:
    """Print the situation and the conversations of an item."""
    names = [person["name"] for person in seen["people"]]
    click.echo(f"Setting: {clean(seen['setting'])}")
    for person in seen["people"]:
        click.secho(person["name"], fg=colour_of(names, person["name"]), bold=True)
        for part in person["background"]:
            click.echo(clean(f"  {part['label']}: {part['text']}"))
        for label in ("goal", "secret"):
            if person.get(label):
                click.echo(clean(f"  {label}: {person[label]}"))
    for number, talk in enumerate(seen["talks"], start=1):
        click.secho(f"\nConversation {number}" if len(seen["talks"]) > 1 else "\nConversation", bold=True)
        for turn in talk:
            kind = "" if turn["action"] == "speak" else f" [{turn['action']}]"
            place = f"{turn['turn'] + 1:>3} " if seen["task"] == "disclosures" else ""
            speaker = click.style(turn["speaker"], fg=colour_of(names, turn["speaker"]))
            click.echo(f"{place}{speaker}{kind}: {clean(turn['text'])}")
    click.echo(f"\n{clean(seen['question'])}")


def _asked(item: Item) -> Any:
    """Ask for the answer to an item. Raises _Undo, _Quit, and EOFError at the end of the input."""
    seen = shown(item)
    if isinstance(item, PairItem):
        prompt = "1, 2 or 0 (no difference)" if item.ties else "1 or 2"
        return _until(f"{prompt}; u undo, q quit: ", lambda text: validated(item, _whole(text)))
    if item.task == "dimensions":
        asked = [
            (one["id"], f"{one['question']} [{one['low']} to {one['high']}, - cannot say", one["low"], one["high"])
            for one in seen["dimensions"]
        ]
    else:
        turns = len(seen["talks"][0])
        asked = [
            (fact["id"], f"{fact['owner']}'s: {fact['text']} [turn 1 to {turns}, - never", 1, turns)
            for fact in seen["facts"]
        ]
    found = {name: _until(clean(f"{text}; u undo, q quit]: "), _within(low, high)) for name, text, low, high in asked}
    if item.task == "dimensions":
        return found
    return {name: None if turn is None else turn - 1 for name, turn in found.items()}


def _until(prompt: str, read: Callable[[str], Any]) -> Any:
    """Ask until `read` accepts the answer. Raises _Undo for u and _Quit for q."""
    while True:
        text = input(prompt).strip()
        if text.lower() == "u":
            raise _Undo
        if text.lower() == "q":
            raise _Quit
        try:
            return read(text)
        except InvalidInput as error:
            say(error.message)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise InvalidInput(f"{text[:40]!r} is not a whole number") from error


def _within(low: int, high: int) -> Callable[[str], int | None]:
    def read(text: str) -> int | None:
        mark = None if text == "-" else _whole(text)
        if mark is not None and not low <= mark <= high:
            raise InvalidInput(f"{text} is not between {low} and {high}")
        return mark

    return read


@annotate.command("undo")
@conditions_argument
@_rater
@_task
@db_option
@answers
def undo_(conditions: tuple[str, ...], rater: str, task: Task, db: str | None) -> Answer:
    """Undo the latest answer of a rater about a run, or about the named conditions.

    \b
    localsim annotate undo @last --rater rater_01
    localsim annotate undo @last --rater rater_01 --task dimensions
    """
    store = store_of(db)
    with Reassurance("reading the items"):
        chosen = selected(store, conditions)
        among = [item.item_id for item in every_item(store, chosen, task, checked_rater(rater))]
    item_id = undo(store, task, chosen.runs, rater, among)
    told = "the latest answer is undone" if item_id else "there is nothing to undo"
    return Answer({"task": task, "rater": rater, "undone": item_id}, [told])


# ---- files ---------------------------------------------------------------------------------------------------------


@annotate.command()
@conditions_argument
@_rater
@_kind
@_task
@_ties
@click.option("-o", "--output", type=Target(dir_okay=False), required=True, help="HTML file to write.")
@click.option("--title", help="Heading of the page [the task's question].")
@db_option
@answers
def bundle(
    conditions: tuple[str, ...],
    rater: str,
    kind: str,
    task: Task,
    ties: bool,
    output: str,
    title: str | None,
    db: str | None,
) -> Answer:
    """Write one HTML file for a rater on another computer; it needs no network and saves the answers as a file.

    \b
    localsim annotate bundle @last --rater rater_01 -o rater_01.html
    localsim annotate bundle @last --rater rater_02 --task dimensions -o rater_02.html
    localsim annotate bundle @last:agents @last-1:agents --rater rater_03 -o rater_03.html
    """
    from localsim.annotation.bundle import TITLES
    from localsim.annotation.bundle import bundle as make_bundle

    checked_rater(rater)
    store = store_of(db)
    with Reassurance("choosing the items"):
        chosen = selected(store, conditions)
        items = items_of(store, chosen, task, rater, ties=ties)
        write_file(Path(output), make_bundle(items, task, rater, title or TITLES[task], _KINDS[kind]))
    told = f"wrote {output}: {len(items)} items for {rater}"
    after = "next: the rater opens it, saves the answers and sends them back; then: localsim annotate import FILE"
    data = {"run_id": ", ".join(chosen.runs), "task": task, "rater": rater, "items": len(items), "output": output}
    return Answer(data, [told, Note(after)])


@annotate.command("import")
@click.argument("files", nargs=-1, required=True, type=Named(path_type=Path), metavar="FILE...")
@db_option
@answers
def import_(files: Sequence[Path], db: str | None) -> Answer:
    """Import files of answers that raters saved; importing a file twice changes nothing.

    All files are checked before anything is stored.

    \b
    localsim annotate import answers-pairs-rater_01.json
    localsim annotate import answers/*.json
    """
    from localsim.annotation.bundle import read_answers

    store = store_of(db)
    with Reassurance("reading the answers"):
        read = [(str(file), read_answers(file, store)) for file in files]
        save_all(store, [answer for _, given in read for answer in given])
    summary, lines = [], []
    for file, given in read:
        about = {name: getattr(given[0], name) if given else None for name in ("run_id", "task", "rater")}
        summary.append({"file": file, "answers": len(given), **about})
        whose = f" of {given[0].rater} ({given[0].task}, run {given[0].run_id})" if given else ""
        lines.append(f"{file}: {len(given)} answers{whose}")
    return Answer(summary, lines)


@annotate.command()
@click.argument("run", default="@last", shell_complete=completion.runs)
@click.option("-o", "--output", type=Target(dir_okay=False), required=True, help="JSONL file to write.")
@click.option("--conversations", is_flag=True, help="Write whole labelled conversations instead of pairs.")
@db_option
@answers
def labels(run: str, output: str, conversations: bool, db: str | None) -> Answer:
    """Write the disclosures that most raters marked, as labels for the leakage detector.

    A pair is a fact and one turn. The thresholds for whole conversations need whole conversations: --conversations.

    \b
    localsim annotate labels @last -o mine.jsonl
    localsim annotate labels @last --conversations -o mine.transcripts.jsonl
    localsim leakage calibrate mine.jsonl mine.transcripts.jsonl -o mine.json
    """
    from localsim.annotation import labels as made

    store = store_of(db)
    run_id = store.run_id(run)
    with Reassurance("reading the disclosures"):
        rows = made.conversations(store, run_id) if conversations else made.labels(store, run_id)
    if not rows:
        hint = f"localsim annotate terminal {run_id} --rater NAME --task disclosures"
        raise InvalidInput(f"run {run_id} has no disclosures on which most raters agree", hint=hint)
    write_file(Path(output), "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    disclosed = sum(len(row["disclosures"]) if conversations else row["label"] == "disclosed" for row in rows)
    kind = f"conversations, {disclosed} facts" if conversations else f"pairs, {disclosed} of them"
    data = {"run_id": run_id, "output": output, "rows": len(rows), "disclosed": disclosed}
    return Answer(data, [f"wrote {output}: {len(rows)} labelled {kind} disclosed"])


# ---- results -------------------------------------------------------------------------------------------------------


@annotate.command()
@conditions_argument
@click.option("--all-raters", is_flag=True, help="Include raters who fail more than a third of the attention items.")
@db_option
@answers
def agreement(conditions: tuple[str, ...], all_raters: bool, db: str | None) -> Answer:
    """Print the raters' judgements, how well they agree, and how well judges and the detector agree with them.

    \b
    localsim annotate agreement @last --json
    localsim annotate agreement before=@last-1:agents taught=@last:agents
    """
    from localsim.annotation.agreement import agreement as measure
    from localsim.annotation.agreement import sentences
    from localsim.store.conditions import labelled

    store = store_of(db)
    names = {each: each.label for each in labelled(store, conditions or ("@last",))}
    with Reassurance("measuring the agreement"):
        found = measure(store, selected(store, conditions), drop_inattentive=not all_raters, names=names)
    return Answer(found, sentences(found))
