"""localsim show, audit, view."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click

from localsim import paths
from localsim.backends.endpoint import sent
from localsim.backends.open import chosen_model
from localsim.cli import completion
from localsim.cli.answers import DIM, Answer, Styled, Table, Text, answers
from localsim.cli.common import HERE, Target, db_option, serve_pages, store_of, web_options, write_file
from localsim.cli.progress import Reassurance, clean, colour_of
from localsim.conversation.scenario import AnswerKey
from localsim.errors import DatabaseError, InvalidInput, LocalsimError
from localsim.families.mentions import Mention
from localsim.models.registry import labelled
from localsim.reports.evidence.interviews import options_of
from localsim.reports.evidence.turns import hits_in, in_words, is_lucky, remark_on, unjudged_in, verdict_on
from localsim.reports.measures import heading_of
from localsim.runs import telling
from localsim.runs.words import HIT_IS_NO_LEAK, STOPS
from localsim.store.database import Store
from localsim.store.episodes import StoredEpisode, load_episode, prompt_of
from localsim.store.queries import runs as queries
from localsim.store.queries.pages import answer_key


class _Violated(LocalsimError):
    exit_code = 1


@click.command()
@click.argument("episode", required=False, shell_complete=completion.episodes)
@click.option(
    "--prompt",
    type=click.IntRange(1),
    metavar="TURN",
    help="Print the prompt that led to this turn, instead of the conversation; turns count from 1.",
)
@click.option("--scores", is_flag=True, help="Also print the scores with their reasons.")
@click.option(
    "--reveal", is_flag=True, help="Also print the answer key: which check held, and the turn that decided it."
)
@click.option(
    "--lanes", "in_lanes", is_flag=True, help="Print who could read each turn, with a column for each person."
)
@click.option(
    "--image",
    "file",
    type=Target(dir_okay=False, path_type=Path),
    help="Write the conversation as one picture (SVG) to this file: both sides, and who could know what.",
)
@click.option(
    "--typical",
    "by_rule",
    is_flag=True,
    help="Read EPISODE as RUN or RUN:CONDITION, and print the typical conversation of each family with the rule.",
)
@db_option
@answers
def show(
    episode: str | None,
    prompt: int | None,
    scores: bool,
    reveal: bool,
    in_lanes: bool,
    file: Path | None,
    by_rule: bool,
    db: str | None,
) -> Answer:
    """Print a conversation with each side's private facts, and mark where each fact is first mentioned or leaked.

    EPISODE is an id, the start of an id, or @last. Without it, the episodes of the newest run are listed.

    \b
    localsim show @last
    localsim show 3f2a --prompt 4
    localsim show 3f2a --lanes
    localsim show 3f2a --image talk.svg
    localsim show --typical @last:agents
    """
    store = store_of(db)
    if [prompt is not None, in_lanes, file is not None].count(True) > 1:
        raise click.UsageError("--prompt shows one prompt, --lanes and --image all turns: give one of them")
    if by_rule:
        if prompt is not None or in_lanes or file:
            raise click.UsageError(
                "--prompt, --lanes and --image need the id of an episode, and --typical chooses some"
            )
        return _typical(store, episode or "@last", scores)
    if file:
        return _image(store, store.episode_id(episode or "@last"), file)
    if episode is None:
        return _listed(queries.episode_list(store, store.run_id("@last")))
    found = load_episode(store, store.episode_id(episode))
    if prompt is not None:
        messages = prompt_of(store, found.episode_id, prompt - 1, sent)
        return Answer(messages, _prompt(messages))
    if in_lanes:
        return _lanes(found)
    key = {"answer": answer_key(store, found.episode_id).as_json()} if reveal else {}
    return Answer(found.as_json() | key, chain(_episode(store, found, scores, reveal), _remark(store, [found])))


def _searched(episode: StoredEpisode) -> bool:
    return any(telling.is_search(each["evaluator"], each["value"]) for each in episode.scores)


def _remark(store: Store, shown: Sequence[StoredEpisode]) -> Text:
    """Yield which runs of the printed conversations were not searched for leaks."""
    unread = [each for each in shown if not _searched(each)]
    for run_id in dict.fromkeys(each.run_id for each in unread):
        if remark := telling.unsearched(store, run_id):
            yield Styled(f"\n! {remark}", "yellow")


def _listed(rows: Sequence[Mapping[str, Any]]) -> Answer:
    shown = [{**row, "stop_reason": STOPS.get(row["stop_reason"], row["stop_reason"])} for row in rows]
    return Answer(rows, [Table.of(shown) if shown else Table(["episode_id"], [])])


def _typical(store: Store, reference: str, scores: bool) -> Answer:
    """Return the conversations that a stated rule chooses, and the rule."""
    from localsim.reports.evidence.turns import RULE, typical
    from localsim.store.conditions import chosen

    ids = [each for family in typical(store, chosen(store, reference).conditions).values() for each in family]
    if not ids:
        raise InvalidInput("no episode was completed", where=reference, hint="localsim runs show RUN lists the reasons")
    found = [load_episode(store, each) for each in ids]

    def text() -> Text:
        yield Styled(RULE + "\n", DIM)
        for each in found:
            yield from _episode(store, each, scores)
            yield ""
        yield from _remark(store, found)

    return Answer({"rule": RULE, "episodes": [each.as_json() for each in found]}, text())


def _image(store: Store, episode_id: str, file: Path) -> Answer:
    from localsim.reports.figures.talk import image

    if file.suffix.lower() != ".svg":
        raise InvalidInput(
            "a conversation is drawn as SVG", where=str(file), hint=f"--image {file.with_suffix('.svg')}"
        )
    drawn = image(store, episode_id)
    write_file(file, drawn)
    return Answer({"file": str(file)}, [str(file)])


def _prompt(messages: list[dict[str, Any]]) -> Text:
    for message in messages:
        yield Styled(f"--- {message['role']}", DIM)
        yield message["text"]


def _lanes(found: StoredEpisode) -> Answer:
    """Return who could read what; a long turn is cut at the width of the terminal."""
    from localsim.conversation.rules.lanes import as_json, as_text, is_divided, lanes_of

    lanes = lanes_of(found.scenario, found.mode, found.transcript)

    def text() -> Text:
        yield _head(found, end="\n")
        width = shutil.get_terminal_size().columns
        for line in as_text(lanes):
            yield line if len(line) <= width or not sys.stdout.isatty() else f"{line[: width - 1]}…"
        if not is_divided(found.scenario, found.transcript):
            yield "Every turn goes to everybody."
        elif lanes.one_author:
            yield "One model wrote all turns and read everything: the columns show whom each turn is meant for."

    return Answer(as_json(lanes), text())


def _head(found: StoredEpisode, end: str = "") -> Styled:
    told = f"{found.condition}, {labelled(found.model)}, seed {found.seed}"
    return Styled(f"{found.scenario.title}  [{told}]{end}", bold=True)


def _episode(store: Store, found: StoredEpisode, scores: bool, reveal: bool = False) -> Text:
    names = found.scenario.names
    yield _head(found)
    why = STOPS.get(found.stop_reason or "", found.stop_reason or found.error or "")
    yield f"episode {found.episode_id} of run {found.run_id}: {found.status}{f' ({why})' if why else ''}"
    yield f"Setting: {found.scenario.setting}\n"
    for agent in found.scenario.agents:
        yield Styled(f"{agent.name}'s side", colour_of(names, agent.name), bold=True)
        yield f"  goal: {agent.goal}"
        if agent.secret:
            yield f"  secret: {agent.secret}"
        for fact in agent.facts:
            yield f"  {fact.id}: {fact.text}" + (" (must not be disclosed)" if fact.disclosure == "never" else "")
    yield ""
    width = min(110, max(60, shutil.get_terminal_size().columns))
    answer = answer_key(store, found.episode_id)
    thought = options_of(store, found, answer)
    for turn in found.turns:
        yield from _turn(found, turn, width)
        if turn["turn"] in thought:
            yield Styled(f"    ^ {thought[turn['turn']]}", DIM)
    yield ""
    yield from (textwrap.fill(clean(line), width) for line in _outcome(found, answer))
    if reveal:
        yield from _revealed(found, answer)
    if scores:
        yield ""
        for score in found.scores:
            value = score["label"] if score["value"] is None else f"{score['value']:.3g}"
            whom = f" {score['agent']}" if score["agent"] else ""
            called = heading_of(score["name"], found.scenario.family)
            yield f"{score['evaluator']} {called}{whom}: {value}  {score['reason'] or ''}"


def _revealed(found: StoredEpisode, answer: AnswerKey) -> Text:
    """Yield the answer key; behind each check, whether it held and the turn that decided it."""
    yield Styled("\nAnswer key (judges only)", bold=True)
    held = {score["name"]: score for score in found.scores}
    for name, line in answer.lines():
        score = held.get(name)
        if score is None:
            yield f"  {line}"
            continue
        turns = ", ".join(str(turn + 1) for turn in json.loads(score["turns_json"]))
        where = f"turn {turns}" if turns else "no turn"
        yield f"  {'yes' if score['value'] == 1 else 'NO '} {line}: {where} ({score['reason']})"


def _outcome(found: StoredEpisode, answer: AnswerKey) -> Iterator[str]:
    """Yield whether the goal was reached, what is true, and the turns of hits and leaks."""
    verdict = verdict_on(found, answer) if found.status == "completed" else None
    if verdict is not None:
        reached = {True: "Goal reached. ", False: "Goal missed. ", None: ""}[verdict.right]
        yield f"{reached}{verdict.said} {verdict.truth}".rstrip()
    elif found.status == "completed":
        yield "No outcome of this scenario is right or wrong."
    for turns, what in ((hits_in(found), "Untold hits"), (unjudged_in(found), "Looks like a hit, but not judged")):
        if turns:
            yield f"{what}: turn {', '.join(str(turn + 1) for turn in sorted(turns))}."
    if _searched(found):
        told = [leak["turn"] for leak in found.leaks if leak["kind"] == "omniscient"]
        where = f": turn {', '.join(str(turn + 1) for turn in sorted(set(told)))}" if told else ""
        yield f"Untold facts: {len(told)}{where}."
        if hits_in(found) and not told:
            yield HIT_IS_NO_LEAK
        if not told and (odd := _unexplained(found)):
            named = ", ".join(f"{mention.term} in turn {mention.turn + 1}" for mention in odd)
            yield f"But speakers who had not been told name {named}: a guess, or a leak that the search missed."


def _unexplained(found: StoredEpisode) -> list[Mention]:
    """Return the first mentions by an agent without such a fact, before the search finds that it was disclosed."""
    first: dict[str, int] = {}
    for leak in found.leaks:
        first[leak["fact_id"]] = min(leak["turn"], first.get(leak["fact_id"], leak["turn"]))
    return [each for each in found.mentions if not each.by_owner and each.turn <= first.get(each.fact_id, each.turn)]


def _turn(found: StoredEpisode, turn: dict[str, Any], width: int) -> Text:
    number, told = turn["turn"], in_words(turn)
    head = clean(f"{number + 1:>3} {told['speaker']}")
    kind = "" if told["action"] == "speak" else f" [{told['action']}]"
    body = f"{kind}: {told['text']}" if told["text"] else kind
    first, *others = textwrap.wrap(head + clean(body), width, subsequent_indent="    ") or [head]
    yield (Styled(head, colour_of(found.scenario.names, told["speaker"])), first[len(head) :])
    yield from others
    for note in found.mentions:
        if note.turn == number:
            owners = " and ".join(note.owners)
            whose = f"{owners}'s" if note.by_owner else f"{owners}'s, not the speaker's"
            yield _mark(f"first mention of {note.term} ({note.fact_id}, {whose})", serious=not note.by_owner)
    for leak in found.leaks:
        if leak["turn"] == number:
            remark = remark_on(leak)
            first, last = leak["earliest"] + 1, leak["latest"] + 1
            between = f", between turns {first} and {last}" if first < last else ""
            sure = f"{remark or 'their own fact'}, {leak['probability']:.0%} sure{between}"
            yield _mark(f"discloses {leak['fact_id']} ({sure}): {leak['fact']}", serious=bool(remark))
    if hit := hits_in(found).get(number):
        yield _mark(f"untold hit. {hit}", serious=not is_lucky(found))
    if why := unjudged_in(found).get(number):
        yield _mark(f"looks like an untold hit. {why}")
    if turn["given"]:
        yield _mark("given with the scenario")
    if turn["repaired"]:
        yield _mark("what the model wrote beyond this utterance was left out")
    if turn["truncated"]:
        yield _mark("cut at the limit of a turn")


def _mark(text: str, *, serious: bool = False) -> Styled:
    """Return a remark below a turn."""
    return Styled(f"    ^ {text}", "red" if serious else DIM)


@click.command()
@click.argument("run", default="@last", shell_complete=completion.runs)
@db_option
@answers
def audit(run: str, db: str | None) -> Answer:
    """Check every stored prompt of a run for information that its reader was not granted. Exit code 1 if one has any.

    A withheld text is found whole or in part, in any case, with other punctuation, and with invisible characters in it.

    \b
    localsim audit @last
    localsim audit @last --json
    """
    with Reassurance("checking the prompts"):
        from localsim.reports.audit import audit_run

        store = store_of(db)
        run_id = store.run_id(run)
        result = audit_run(store, run_id)
    found = result.violations
    told = f"run {run_id}: {result.prompts_checked} prompts checked, {len(found)} violations"
    if not result.prompts_checked:
        told = f"run {run_id} has no prompts to check: no model wrote in it"
    places = (f"  {each.episode_id} turn {each.turn + 1}, {each.viewer} ({each.mode})" for each in found)
    lines = (f"{place}: {each.what}: {each.text}" for place, each in zip(places, found[:20], strict=False))
    error = _Violated(f"{len(found)} prompts hold something that their reader may not know", where=run_id)
    return Answer(result.as_json(), [told, *lines], error if found else None)


@click.command()
@click.argument("run", required=False, shell_complete=completion.runs)
@click.option(
    "--new", is_flag=True, help="Begin with the page that starts a run; a database that does not exist yet is made."
)
@web_options
@db_option
def view(run: str | None, new: bool, host: str, port: int | None, open_browser: bool, db: str | None) -> None:
    """Look at runs in the browser, and start new ones: conversations with both sides, marked leaks, prompts, SQL.

    Only this computer can connect, unless --host names another address; then nobody can start runs in the browser.

    \b
    localsim view --new --open
    localsim view @last
    """
    if new and run:
        raise click.UsageError("--new opens the page that starts a run, so it takes no RUN")
    if new and host not in (HERE, "localhost", "::1"):
        raise click.UsageError("--new works on this computer only: leave out --host")
    store = store_of(db)
    if db and not new and not store.path.is_file():
        hint = (
            f"localsim view --new{paths.db_option(store.path)} starts a run in the browser; localsim run makes one too"
        )
        raise DatabaseError("no database here yet", where=str(store.path), hint=hint)
    path = "/start" if new else f"/runs/{store.run_id(run)}" if run else "/"
    serve_pages(store, host, port, path, open_browser=open_browser, model=chosen_model(None))
