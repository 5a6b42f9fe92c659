"""localsim scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localsim.cli import completion
from localsim.cli.common import db_option, echo, json_option, print_json, print_table, say, store_of
from localsim.conversation.rules.lines import described
from localsim.conversation.scenario import LoadedScenario, Scenario, ScenarioFile
from localsim.errors import InvalidInput, ScenarioInvalid
from localsim.families import FAMILIES
from localsim.scenarios.find import find_scenarios, scenario_paths, shipped_files
from localsim.scenarios.parse import dump_scenario, load_scenario

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
@json_option
def list_(folders: tuple[str, ...] = (), as_json: bool = False) -> None:
    """List the scenarios that ship with localsim, or those in the given folders."""
    files = [file for folder in folders for file in scenario_paths(folder)] or shipped_files()
    rows = [_row(load_scenario(file)) for file in files]
    if as_json:
        print_json(rows)
    else:
        columns = ["id", "title", "family", "parties"]
        print_table(columns, [[row[column] for column in columns] for row in rows], short=True)


def _row(loaded: LoadedScenario) -> dict[str, Any]:
    scenario = loaded.scenario
    return {
        "id": scenario.id,
        "title": scenario.title,
        "family": scenario.family,
        "kind": "family" if scenario.family else "everyday",
        "parties": len(scenario.agents),
        "path": loaded.path,
    }


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
    """Report every problem of scenario files as file:line:column."""
    try:
        found = find_scenarios(files)
    except ScenarioInvalid as error:
        if as_json:
            print_json({"valid": False, "problems": [problem.__dict__ for problem in error.problems]})
        raise
    if as_json:
        print_json({"valid": True, "problems": [], "scenarios": [loaded.scenario.id for loaded in found]})
    else:
        click.echo(f"{len(found)} valid")


def _family(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if value not in FAMILIES:  # checked here and not on import, because other packages add families
        raise click.BadParameter(f"{value!r} is none of {', '.join(FAMILIES)}")
    return value


@scenarios.command()
@click.option("--family", required=True, callback=_family, help="Generate scenarios of this task family.")
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
    family: str, seed: int, number: int, output: str, parameter: tuple[str, ...], alternate: bool, force: bool
) -> None:
    """Generate scenario files of a task family; the same seed gives the same file.

    \b
    localsim scenarios generate --family craigslist --seed 100 -n 20 -o mine -p zone=no
    """
    parameters = _parameters(parameter)
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    declared = FAMILIES[family]
    tasks = declared.study_tasks if alternate else ("",)
    for index in range(number):
        name = f"{family}_{seed + index:02d}"
        file = folder / f"{name}.yaml"
        if file.exists() and not force:
            raise InvalidInput("this file exists already", where=str(file), hint="--force overwrites it")
        task = declared.control_tasks.get(tasks[(seed + index) % len(tasks)], {})
        document = declared.generate(name, seed + index, {**parameters, **task})
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
