"""localsim scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from localsim import plugins
from localsim.cli import completion
from localsim.cli.common import db_option, echo, json_option, print_json, print_table, say, store_of
from localsim.conversation.rules.lines import described
from localsim.conversation.scenario import LoadedScenario, Scenario, ScenarioFile
from localsim.errors import InvalidInput, ScenarioInvalid, suggest
from localsim.families import FAMILIES
from localsim.reports.audit.prompts import leaks_at_first
from localsim.scenarios.casting.cast import casted
from localsim.scenarios.casting.people import load_people
from localsim.scenarios.casting.playing import try_out, unplayable
from localsim.scenarios.casting.relations import load_relations
from localsim.scenarios.casting.rules import load_situation
from localsim.scenarios.casting.sample import sample
from localsim.scenarios.casting.situations import situation_files
from localsim.scenarios.find import find_scenarios
from localsim.scenarios.kinds import every_source, renamed, validated
from localsim.scenarios.listing import entries, listed_sources
from localsim.scenarios.parse import dump_scenario
from localsim.scenarios.tagging import coverage, vocabulary

if TYPE_CHECKING:
    from localsim.runs.exchange.bringing import Brought


@click.group(invoke_without_command=True)
@click.pass_context
def scenarios(ctx: click.Context) -> None:
    """List, show, validate, generate and import scenarios."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


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
@json_option
def list_(
    folders: tuple[str, ...] = (),
    as_json: bool = False,
    hard: bool = False,
    count: bool = False,
    **wanted: str | None,
) -> None:
    """List the scenarios and situations that ship with localsim, or those in the given folders.

    \b
    localsim scenarios list --kind bargaining --conflict mixed
    localsim scenarios list --coverage
    """
    for name, word in wanted.items():
        words = vocabulary().words(name)
        if word is not None and words and word not in words:
            raise InvalidInput(f"no {name} is called {word!r}", hint=f"one of {', '.join(words)}")
    found = [each for each in entries(listed_sources(folders)) if each.has(wanted) and (each.hard or not hard)]
    if count:
        rows = coverage(each.tags for each in found)
        if as_json:
            print_json([{"dimension": name, "word": word, "scenarios": number} for name, word, number in rows])
        else:
            print_table(["dimension", "word", "scenarios"], [list(row) for row in rows])
    elif as_json:
        print_json([each.as_json() for each in found])
    else:
        columns = ["id", "title", "family", "parties"]
        print_table(columns, [[getattr(each, column) for column in columns] for each in found], short=True)


@scenarios.command()
@click.argument("scenario", shell_complete=completion.scenarios)
@click.option("--reveal", is_flag=True, help="Also print the answer key, which only judges see.")
@json_option
def show(scenario: str, reveal: bool, as_json: bool) -> None:
    """Print a scenario with each agent's side and things to try."""
    loaded = find_scenarios([scenario])[0]
    data = loaded.scenario.model_dump(mode="json", exclude_none=True)
    if reveal:
        data["answer"] = dict(loaded.answer.answer)
    if as_json:
        print_json(data)
        return
    found = loaded.scenario
    echo(f"{found.id}: {found.title}", bold=True)
    echo(f"{found.info.what}\n{found.info.how or ''}\n\nSetting: {found.setting}")
    for agent in found.agents:
        echo(f"\n{agent.name}", bold=True)
        for label, value in agent.profile:
            if value:
                echo(f"  {label.replace('_', ' ')}: {value}")
        echo(f"  goal: {agent.goal}")
        if agent.secret:
            echo(f"  secret: {agent.secret}")
        for fact in agent.facts:
            rule = fact.disclosure if isinstance(fact.disclosure, str) else f"after {fact.disclosure.as_text}"
            echo(f"  knows ({fact.id}, tell: {rule}): {fact.text}")
    _show_rules(found)
    if found.info.things_to_try:
        echo("\nThings to try", bold=True)
        for thing in found.info.things_to_try:
            echo(f"  - {thing}")
    if reveal:
        echo("\nAnswer key (judges only)", bold=True)
        for key, value in loaded.answer.answer.items():
            echo(f"  {key}: {value}")


def _show_rules(found: Scenario) -> None:
    """Print the moves and phases of a scenario."""
    if found.moves:
        echo("\nMoves", bold=True)
    for move in found.moves:
        readers = {"all": [], "self": ["read by nobody else"], "named": ["read by those who are named"]}[move.readers]
        about = "; ".join([*map(described, move.values), *readers, *([f"by {', '.join(move.by)}"] if move.by else [])])
        echo(f"  {move.name}: {move.tell}{f' ({about})' if about else ''}")
    if found.phases:
        echo("\nPhases", bold=True)
    for phase in found.phases:
        parts = [phase.order.replace("_", " "), *([f"moderator {phase.moderator}"] if phase.moderator else [])]
        parts += [f"{count} {name}" for name in ("turns", "rounds") if (count := getattr(phase, name))]
        parts += [f"{name}: {', '.join(given)}" for name in ("who", "actions") if (given := getattr(phase, name))]
        echo(f"  {phase.name}: {'; '.join(parts)}")


@scenarios.command()
@click.argument("files", nargs=-1, required=True)
@json_option
def validate(files: tuple[str, ...], as_json: bool) -> None:
    """Report every problem of scenario files as file:line:column.

    The files of people and of their relations are checked, too.
    """
    try:
        found = validated(files)
    except ScenarioInvalid as error:
        if as_json:
            print_json({"valid": False, "problems": [problem.__dict__ for problem in error.problems]})
        raise
    if as_json:
        print_json({"valid": True, "problems": [], "scenarios": found})
    else:
        click.echo(f"{len(found)} valid")


def playable(loaded: LoadedScenario) -> list[str]:
    """Return what makes a casting tell nothing; [] for a good one."""
    return [*unplayable(loaded), *leaks_at_first(loaded)]


@scenarios.command()
@click.argument("situations", nargs=-1, required=True)
@json_option
def lint(situations: tuple[str, ...], as_json: bool) -> None:
    """Let scripted players play the first casting of situations, and report what makes them tell nothing.

    The solver must succeed; small talk, a yes-sayer and a refuser must fail; guessing must be right as often as the
    share of right settlements says; and the first prompts must hold nothing that their reader must not see.
    """
    found = find_scenarios([each if "@" in each else f"{each}@1" for each in situations])
    rows = [
        {
            "id": loaded.scenario.id,
            "chance": loaded.answer.answer["chance"],
            "problems": playable(loaded),
        }
        for loaded in found
    ]
    if as_json:
        print_json(rows)
    else:
        for row in rows:
            echo(f"{row['id']}: {'; '.join(row['problems']) or 'playable'}, chance {row['chance']}")
    if any(row["problems"] for row in rows):
        raise InvalidInput("not every situation is playable", hint="see scenarios/situations/README.md")


@scenarios.command()
@click.argument("name")
@click.option(
    "--like",
    default="the_ferry_home",
    show_default=True,
    shell_complete=completion.scenarios,
    help="Copy this scenario or situation.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False),
    default=".",
    show_default=True,
    help="Write the file into this folder.",
)
def new(name: str, like: str, output: str) -> None:
    """Write a file to begin with: a copy of a scenario or situation under a new name.

    \b
    localsim scenarios new the_last_boat --like the_ferry_home
    """
    file = Path(output) / f"{name}.yaml"
    if file.exists():
        raise InvalidInput("this file exists already", where=str(file), hint="choose another name")
    text = renamed(every_source(like)[0], name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    validated([str(file)])
    echo(f"{file}\nedit it, then try: localsim scenarios validate {file}")


@scenarios.command("sample")
@click.option(
    "--pairs",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Cast each situation with this many different pairs (or groups) of people.",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Draw the sample from this seed.")
@click.option("--hard", is_flag=True, help="Take only situations that their author calls hard.")
@click.option("-o", "--output", type=click.Path(file_okay=False), help="Write scenario files into this folder.")
@json_option
def sample_(pairs: int, seed: int, hard: bool, output: str | None, as_json: bool) -> None:
    """Draw castings of all situations so that everybody takes part about equally often; print their names.

    \b
    localsim scenarios sample --pairs 5 --seed 1 -o tasks
    localsim run tasks -m starter
    """
    people = load_people()
    relations = load_relations(people)
    every = {each.id: each for each in map(load_situation, situation_files()) if each.hard or not hard}
    drawn = sample(list(every.values()), people, relations, pairs, seed)
    if output is not None:
        folder = Path(output)
        folder.mkdir(parents=True, exist_ok=True)
        for task in drawn.tasks:
            document = casted(every[task.situation], [people[who] for who in task.people], relations, task.number)
            (folder / f"{document.id}.yaml").write_text(dump_scenario(document), encoding="utf-8")
    if as_json:
        tasks = [{"reference": task.reference, "people": list(task.people)} for task in drawn.tasks]
        print_json({"tasks": tasks, "missing": dict(drawn.missing), "spread": round(drawn.spread, 3)})
    elif output is not None:
        echo(f"{len(drawn.tasks)} scenarios in {output}")
    else:
        for task in drawn.tasks:
            echo(task.reference)
    lacking = f"; too few people suit {', '.join(drawn.missing)}" if drawn.missing else ""
    say(f"{len(drawn.tasks)} tasks; everybody's number is within {drawn.spread:.2f} of the mean{lacking}")


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
@click.option("-m", "--model", shell_complete=completion.models, help="Let this model write the drafts.")
@click.option(
    "--tries",
    type=click.IntRange(1, 100),
    default=5,
    show_default=True,
    help="Let the model draft each situation at most this many times, until a draft passes its checks.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Draw the first scenario from this seed, and each next one from the next seed.",
)
@click.option(
    "-n", "--number", type=click.IntRange(1, 10_000), default=1, show_default=True, help="Generate this many scenarios."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False),
    default=".",
    show_default=True,
    help="Write the files into this folder.",
)
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
    output: str,
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
    folder = Path(output)
    if family is None:
        from localsim.cli.data.drafting import write_drafts

        if model is None:
            raise click.UsageError("--from-premise needs -m MODEL, the model that writes the drafts")
        write_drafts(str(premise), model, range(seed, seed + number), folder, tries, playable, force=force)
        return
    declared = FAMILIES[family]
    tasks = declared.study_tasks if alternate else ("",)
    for index in range(number):
        name = f"{family}_{seed + index:02d}"
        file = folder / f"{name}.yaml"
        if file.exists() and not force:
            raise InvalidInput("this file exists already", where=str(file), hint="--force overwrites it")
        task = declared.control_tasks.get(tasks[(seed + index) % len(tasks)], {})
        document = declared.generate(name, seed + index, {**parameters, **task})
        if index == 0 and family not in FAMILIES.all:
            try_out(declared, document, declared.generate(name, seed + index, {**parameters, **task}))
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(dump_scenario(document), encoding="utf-8")
    click.echo(f"{number} scenarios in {folder}")


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


@scenarios.group("import")
def import_() -> None:
    """Turn files of other tools into scenarios, and their conversations into a run.

    \b
    localsim scenarios import sotopia profiles.json episodes.jsonl -o mine
    """


_files = click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
_folder = click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    help="Write the scenario files into this folder.",
)


@import_.command()
@_files
@_folder
@click.option(
    "--pairs",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Write a situation for at most this many pairs of fitting people, where no file says who plays it.",
)
@click.option(
    "--leaks/--no-leaks",
    default=True,
    show_default=True,
    help="Look for private facts that come out in episode logs; this takes longest.",
)
@db_option
@json_option
def sotopia(files: tuple[Path, ...], output: Path, pairs: int, leaks: bool, db: str | None, as_json: bool) -> None:
    """Read Sotopia's JSON: environments, agents, relationships and combinations; episode logs become a run.

    A file has one object, a list, or one object on each line. What has no place in a scenario is listed.

    \b
    localsim scenarios import sotopia environments.jsonl agents.jsonl relationships.jsonl -o mine
    localsim scenarios import sotopia episodes.jsonl -o mine
    """
    from localsim.runs.exchange.bringing import bring_sotopia

    _tell(bring_sotopia(store_of(db), files, output, pairs, leaks, say), output, as_json)


@import_.command()
@_files
@_folder
@json_option
def privacylens(files: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Read the seeds of PrivacyLens: who may tell what to whom, with a story and sensitive items.

    \b
    localsim scenarios import privacylens main_data.json -o privacy
    """
    from localsim.runs.exchange.bringing import bring_privacylens

    _tell(bring_privacylens(files, output), output, as_json)


def _tell(found: Brought, folder: Path, as_json: bool) -> None:
    """Print what came in, and everything that did not."""
    if as_json:
        print_json(found.as_json())
        return
    click.echo(f"wrote {len(found.files)} scenarios to {folder}")
    if found.run is not None:
        done = "already imported as" if not found.run.new else f"{found.run.conversations} conversations are"
        click.echo(f"{done} run {found.run.run_id}")
    for reason, count in found.left_out.items():
        echo(f"  {count} left out: {reason}")
    if found.unmapped:
        click.echo("Not taken over, or not as it stands:")
        print_table(["where", "field", "why"], [[each.where, each.field, each.why] for each in found.unmapped])
