"""localsim scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from localsim import plugins
from localsim.cli import completion
from localsim.cli.answers import Answer, Note, Styled, Table, Text, answers, print_json, print_text
from localsim.cli.common import Listing, Target, db_option, files_argument, folder_option, model_option, store_of
from localsim.cli.data.onward import again, branch, remember
from localsim.cli.progress import say
from localsim.conversation.rules.lines import described
from localsim.conversation.scenario import LoadedScenario, Scenario, ScenarioFile
from localsim.errors import InvalidInput, ScenarioInvalid, TooManyFailures, suggest
from localsim.families import FAMILIES
from localsim.reports.audit.prompts import playable
from localsim.scenarios.find import find_casting, find_scenarios
from localsim.scenarios.tagging import coverage
from localsim.scenarios.writing import (
    chosen,
    draw_sample,
    validated,
    variants_of,
    write_copy,
    write_generated,
)

if TYPE_CHECKING:
    from localsim.runs.transfer.imported import Brought


@click.group(cls=Listing)
def scenarios() -> None:
    """List, show, validate, generate and import scenarios."""


@scenarios.command("list")
@click.argument("folders", nargs=-1)
@click.option("--kind", help="Only this kind of interaction, such as bargaining, support, everyday or family.")
@click.option("--parties", help="Only with this number of people: 2, 3, 4 or '5 and more'.")
@click.option(
    "--conflict", help="Only where goals agree (shared), agree in part (mixed) or exclude each other (opposed)."
)
@click.option(
    "--payoff", help="Only where all gain the same (shared), each a part (split), or one of them (one_sided)."
)
@click.option("--language", help="Only in this language, such as en.")
@click.option("--hard", is_flag=True, help="Only situations that their author calls hard.")
@click.option("--coverage", "count", is_flag=True, help="Count the scenarios with each tag instead of listing them.")
@answers
def list_(folders: tuple[str, ...], hard: bool, count: bool, **wanted: str | None) -> Answer:
    """List the scenarios and situations that ship with localsim, or those in the given folders.

    \b
    localsim scenarios list --kind bargaining --conflict mixed
    localsim scenarios list --coverage
    """
    found = chosen(folders, wanted, hard=hard)
    if count:
        heads = ("dimension", "word", "scenarios")
        rows = [dict(zip(heads, row, strict=True)) for row in coverage(each.tags for each in found)]
        return Answer(rows, [Table.of(rows, *heads)])
    rows = [each.as_json() for each in found]
    return Answer(rows, [Table.of(rows, "id", "title", "family", "parties", short=True)])


@scenarios.command()
@click.argument("scenario", shell_complete=completion.scenarios)
@click.option("--reveal", is_flag=True, help="Also print the answer key, which only judges see.")
@answers
def show(scenario: str, reveal: bool) -> Answer:
    """Print a scenario with each agent's side and things to try."""
    loaded = find_scenarios([scenario])[0]
    data = loaded.scenario.model_dump(mode="json", exclude_none=True)
    if reveal:
        data |= {key: value for key, value in loaded.answer.as_json().items() if key != "parameters"}
    return Answer(data, _shown(loaded, reveal))


def _shown(loaded: LoadedScenario, reveal: bool) -> Text:
    found = loaded.scenario
    yield Styled(f"{found.id}: {found.title}", bold=True)
    yield f"{found.info.what}\n{found.info.how or ''}\n\nSetting: {found.setting}"
    for agent in found.agents:
        yield Styled(f"\n{agent.name}", bold=True)
        yield from (f"  {label.replace('_', ' ')}: {value}" for label, value in agent.profile if value)
        yield f"  goal: {agent.goal}"
        if agent.secret:
            yield f"  secret: {agent.secret}"
        for fact in agent.facts:
            rule = fact.disclosure if isinstance(fact.disclosure, str) else f"after {fact.disclosure.as_text}"
            yield f"  knows ({fact.id}, tell: {rule}): {fact.text}"
    yield from _rules(found)
    if found.info.things_to_try:
        yield Styled("\nThings to try", bold=True)
        yield from (f"  - {thing}" for thing in found.info.things_to_try)
    if reveal:
        yield Styled("\nAnswer key (judges only)", bold=True)
        yield from (f"  {line}" for _, line in loaded.answer.lines())


def _rules(found: Scenario) -> Text:
    """Yield the moves and phases of a scenario."""
    if found.moves:
        yield Styled("\nMoves", bold=True)
    for move in found.moves:
        readers = {"all": [], "self": ["read by nobody else"], "named": ["read by those who are named"]}[move.readers]
        about = "; ".join([*map(described, move.values), *readers, *([f"by {', '.join(move.by)}"] if move.by else [])])
        yield f"  {move.name}: {move.tell}{f' ({about})' if about else ''}"
    if found.phases:
        yield Styled("\nPhases", bold=True)
    for phase in found.phases:
        parts = [phase.order.replace("_", " "), *([f"moderator {phase.moderator}"] if phase.moderator else [])]
        parts += [f"{count} {name}" for name in ("turns", "rounds") if (count := getattr(phase, name))]
        parts += [f"{name}: {', '.join(given)}" for name in ("who", "actions") if (given := getattr(phase, name))]
        yield f"  {phase.name}: {'; '.join(parts)}"


@scenarios.command()
@click.argument("files", nargs=-1, required=True)
@answers
def validate(files: tuple[str, ...]) -> Answer:
    """Report every problem of scenario files as file:line:column.

    The files of people and of their relations are checked, too. A warning names each term that a check looks for and
    that another agent is told at the start.
    """
    try:
        found = validated(files)
    except ScenarioInvalid as error:
        return Answer({"valid": False, "problems": [vars(problem) for problem in error.problems]}, (), error)
    many = variants_of(files)
    warnings = [text for each in found for text in each.warnings]
    lines: list[str | Styled] = [
        *(Styled(f"! {text}", "yellow") for text in warnings),
        f"{len(found)} valid",
        *(f"{path}: {count} different variants, {path}@1..{count}" for path, count in many.items()),
    ]
    data = {"valid": True, "problems": [], "warnings": warnings, "variants": many}
    return Answer({**data, "scenarios": [each.id for each in found]}, lines)


@scenarios.command()
@click.argument("situations", nargs=-1, required=True)
@answers
def lint(situations: tuple[str, ...]) -> Answer:
    """Let scripted players play the first casting of situations, and report what makes them tell nothing.

    The solver must succeed; small talk, a yes-sayer and a refuser must fail; guessing must be right as often as the
    share of right settlements says; and the first prompts must hold nothing that their reader must not see.
    """
    found = [find_casting(each) for each in situations]
    for name, loaded in zip(situations, found, strict=True):
        if loaded is None:
            find_scenarios([name])
            hint = f"localsim run {name} --mode agents,mindreaders -m scripted:omniscient --leaks"
            raise InvalidInput("is a scenario, and lint is for situations", where=name, hint=hint)
    rows = [
        {
            "id": loaded.scenario.id,
            "chance": loaded.answer.answer["chance"],
            "problems": playable(loaded),
        }
        for loaded in found
        if loaded
    ]
    error = InvalidInput("not every situation is playable", hint="see scenarios/situations/README.md")
    lines = [f"{row['id']}: {'; '.join(row['problems']) or 'playable'}, chance {row['chance']}" for row in rows]
    return Answer(rows, lines, error if any(row["problems"] for row in rows) else None)


@scenarios.command()
@click.argument("name")
@click.option(
    "--like", default="the_ferry_home", shell_complete=completion.scenarios, help="Copy this scenario or situation."
)
@folder_option("Write the file into this folder.")
def new(name: str, like: str, output: Path) -> None:
    """Write a file to begin with: a copy of a scenario or situation under a new name.

    \b
    localsim scenarios new the_last_boat --like the_ferry_home
    """
    file = write_copy(like, output, name)
    print_text([f"{file}\nedit it, then try: localsim scenarios validate {file}"])


@scenarios.command("sample")
@click.option(
    "--pairs",
    type=click.IntRange(1, 1000),
    default=5,
    help="Cast each situation with this many different pairs (or groups) of people.",
)
@click.option("--seed", type=click.IntRange(0), default=1, help="Draw the sample from this seed.")
@click.option("--hard", is_flag=True, help="Take only situations that their author calls hard.")
@click.option(
    "-o", "--output", type=Target(file_okay=False, path_type=Path), help="Write scenario files into this folder."
)
@answers
def sample_(pairs: int, seed: int, hard: bool, output: Path | None) -> Answer:
    """Draw castings of all situations so that everybody takes part about equally often; print their names.

    \b
    localsim scenarios sample --pairs 5 --seed 1 -o tasks
    localsim run tasks -m starter
    """
    drawn = draw_sample(pairs, seed, output, hard=hard)
    lacking = f"; too few people suit {', '.join(drawn.missing)}" if drawn.missing else ""
    tasks = [{"reference": task.reference, "people": list(task.people)} for task in drawn.tasks]
    return Answer(
        {"tasks": tasks, "missing": dict(drawn.missing), "spread": round(drawn.spread, 3)},
        [f"{len(tasks)} scenarios in {output}"] if output else [task.reference for task in drawn.tasks],
        remark=f"{len(tasks)} tasks; everybody's number is within {drawn.spread:.2f} of the mean{lacking}",
    )


def _family(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Return the name of a family; checked here and not on import, because other packages add families."""
    if value is not None and value not in FAMILIES:
        listed = f"{value!r} is none of {', '.join(FAMILIES)}{suggest(value, FAMILIES, inline=True)}"
        raise click.BadParameter(f"{listed}. Another package adds its own when it is installed: pip install -e FOLDER")
    if value in FAMILIES.all:
        plugins.refuse_namesake("families", value)
    return value


@scenarios.command()
@click.option("--family", callback=_family, help="Generate scenarios of this task family.")
@click.option(
    "--from-premise",
    "premise",
    metavar="TEXT",
    help="Instead, let the model of -m draft situations from one or two sentences about what happens.",
)
@model_option("Let this model write the drafts.")
@click.option(
    "--tries",
    type=click.IntRange(1, 100),
    default=5,
    help="Let the model draft each situation at most this many times, until a draft passes its checks.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    help="Draw the first scenario from this seed, and each next one from the next seed.",
)
@click.option("-n", "--number", type=click.IntRange(1, 10_000), default=1, help="Generate this many scenarios.")
@folder_option("Write the files into this folder.")
@click.option(
    "-p",
    "--parameter",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a parameter of the family, such as friends=7 or zone=no.",
)
@click.option("--alternate", is_flag=True, help="Take turns between tasks that have a solution and tasks without one.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def generate(
    family: str | None,
    premise: str | None,
    model: str | None,
    tries: int,
    seed: int,
    number: int,
    output: Path,
    parameter: tuple[str, ...],
    alternate: bool,
    force: bool,
) -> None:
    """Generate scenario files of a task family, or draft situations from a premise; the same seed gives the same file.

    With --from-premise the seed decides who rules out what, and the model writes the words. A draft that breaks a rule
    of situations, or fails the checks of `scenarios lint`, is refused with its reasons. Exit code 6 if one is missing.

    \b
    localsim scenarios generate --family craigslist --seed 100 -n 20 -o mine -p zone=no
    localsim scenarios generate --from-premise "Two neighbours share a ladder." -m path/to/7b.gguf -o mine
    """
    if (family is None) == (premise is None):
        raise click.UsageError("give either --family or --from-premise")
    parameters = _parameters(parameter)
    seeds = range(seed, seed + number)
    if family is not None:
        write_generated(family, seeds, output, parameters, alternate=alternate, force=force)
        click.echo(f"{number} scenarios in {output}")
    elif model is not None:
        print_text(_drafts(str(premise), model, seeds, output, tries, force=force))
    else:
        raise click.UsageError("--from-premise needs -m MODEL, the model that writes the drafts")


def _drafts(premise: str, model: str, seeds: range, folder: Path, tries: int, *, force: bool) -> Text:
    """Yield the files of drafts that pass, and why others are refused. Raises TooManyFailures if a file is missing."""
    from localsim.runs.drafting import Draft, counted_problems, write_drafts

    refused: list[Draft] = []
    written: list[Path] = []
    for draft, file in write_drafts(premise, model, seeds, folder, tries, playable, say, force=force):
        if file is None:
            refused.append(draft)
            yield Note(f"{draft.name}, try with seed {draft.seed}: refused")
        else:
            written.append(file)
            yield str(file)
    yield f"{len(written)} of {len(seeds)} situations in {folder}; {len(refused)} drafts refused"
    yield from (f"  {count} refused: {reason}" for reason, count in counted_problems(refused))
    if lacking := len(seeds) - len(written):
        hint = "more --tries, another --seed, or a larger model"
        raise TooManyFailures(f"{lacking} of {len(seeds)} situations have no draft that passes", hint=hint)
    yield Note(f"read it before you use it, then: localsim run {folder}/{written[0].name}@1")


def _parameters(pairs: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE")
        found[key] = value
    return found


@scenarios.command()
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    print_json(ScenarioFile.model_json_schema())


for _command in (again, branch, remember):
    scenarios.add_command(_command)


@scenarios.group("import")
def import_() -> None:
    """Turn files of other tools into scenarios, and their conversations into a run.

    \b
    localsim scenarios import sotopia profiles.json episodes.jsonl -o mine
    """


_folder = folder_option("Write the scenario files into this folder.")


@import_.command()
@files_argument
@_folder
@click.option(
    "--pairs",
    type=click.IntRange(1, 1000),
    default=5,
    help="Write a situation for at most this many pairs of fitting people, where no file says who plays it.",
)
@click.option(
    "--leaks/--no-leaks", default=True, help="Look for private facts that come out in episode logs; this takes longest."
)
@db_option
@answers
def sotopia(files: tuple[Path, ...], output: Path, pairs: int, leaks: bool, db: str | None) -> Answer:
    """Read Sotopia's JSON: environments, agents, relationships and combinations; episode logs become a run.

    A file has one object, a list, or one object on each line. What has no place in a scenario is listed.

    \b
    localsim scenarios import sotopia environments.jsonl agents.jsonl relationships.jsonl -o mine
    localsim scenarios import sotopia episodes.jsonl -o mine
    """
    from localsim.runs.transfer.imported import bring_sotopia

    return _brought(bring_sotopia(store_of(db), files, output, pairs, leaks, say), output)


@import_.command()
@files_argument
@_folder
@answers
def privacylens(files: tuple[Path, ...], output: Path) -> Answer:
    """Read the seeds of PrivacyLens: who may tell what to whom, with a story and sensitive items.

    \b
    localsim scenarios import privacylens main_data.json -o privacy
    """
    from localsim.runs.transfer.imported import bring_privacylens

    return _brought(bring_privacylens(files, output), output)


def _brought(found: Brought, folder: Path) -> Answer:
    """Return what came in, and everything that did not."""

    def text() -> Text:
        yield f"wrote {len(found.files)} scenarios to {folder}"
        if found.run is not None:
            done = "already imported as" if not found.run.new else f"{found.run.conversations} conversations are"
            yield f"{done} run {found.run.run_id}"
        yield from (f"  {count} left out: {reason}" for reason, count in found.left_out.items())
        if found.unmapped:
            yield "Not taken over, or not as it stands:"
            rows = [[each.count, each.field, each.why, each.where, each.example] for each in found.unmapped]
            example = any(each.example for each in found.unmapped)
            heads = ["objects", "field", "why", "first", *(["such as"] if example else [])]
            yield Table(heads, [row if example else row[:-1] for row in rows])

    return Answer(found.as_json(), text())
