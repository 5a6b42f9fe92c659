"""localsim scenarios again, branch, remember: scenarios that go on from what is stored."""

from __future__ import annotations

from pathlib import Path

import click

from localsim.cli import completion
from localsim.cli.answers import print_text
from localsim.cli.common import db_option, folder_option, output_option, store_of, write_file
from localsim.conversation.scenario import ScenarioFile
from localsim.scenarios.find import find_scenarios
from localsim.scenarios.parse import dump_scenario
from localsim.scenarios.writing import free_file
from localsim.scenarios.writing import write_file as write_scenario


@click.command()
@click.argument("run", shell_complete=completion.runs)
@folder_option("Write the files into this folder.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@db_option
def again(run: str, output: Path, force: bool, db: str | None) -> None:
    """Write the games that come after those of a run: in them, a coach has read the game before.

    Only games of the family balloon that ended with a deal have a next one; exit code 3 if none has. So five games are

    \b
    localsim run balloon_coach -m starter --mode agents
    for game in 2 3 4 5; do
      localsim scenarios again @last -o games/$game && localsim run games/$game -m starter --mode agents || break
    done
    """
    from localsim.runs.again import games_after

    for document in games_after(store_of(db), run):
        file = free_file(output, document.id, force=force)
        write_scenario(file, dump_scenario(document))
        click.echo(str(file))


@click.command()
@click.argument("episode", shell_complete=completion.episodes)
@click.option("--at", type=click.IntRange(0), required=True, help="Begin with so many turns of the conversation.")
@click.option("--act", default="", metavar="LINE", help="Let this line come next, such as 'Ana: No.'.")
@click.option("--without", default="", metavar="NAME", help="Leave out this agent and its lines.")
@output_option("Write the scenario to this file instead of printing it.")
@db_option
def branch(episode: str, at: int, act: str, without: str, output: str | None, db: str | None) -> None:
    """Write the scenario of an episode with its first turns as a given beginning, to play on from there.

    Given turns are nobody's acts in the new run. -n of `run` plays several ways on; with the same --seed and --repro
    exact, a model writes what it wrote before.

    \b
    localsim scenarios branch @last --at 6 --act "Ana: I have to ask you something." -o what_if.yaml
    localsim run what_if.yaml -m starter --mode agents -n 4
    """
    from localsim.runs.branches import branch_of

    _write(branch_of(store_of(db), episode, at, act, without), output)


@click.command()
@click.argument("run", shell_complete=completion.runs)
@click.option("--into", metavar="SCENARIO", help="Write the memories into this scenario instead of that of the run.")
@output_option("Write the scenario to this file instead of printing it.")
@db_option
def remember(run: str, into: str | None, output: str | None, db: str | None) -> None:
    """Write a scenario whose agents remember a run or an episode: all that they heard and said there.

    Before each turn, what fits best comes to mind; `recall` in the file says how many memories, and by which rank.

    \b
    localsim scenarios remember @last -o second_talk.yaml
    localsim scenarios remember @last --into another.yaml -o second_talk.yaml
    """
    from localsim.runs.remembering import remembered

    _write(remembered(store_of(db), run, find_scenarios([into])[0] if into else None), output)


def _write(document: ScenarioFile, output: str | None) -> None:
    text = dump_scenario(document)
    if output is None:
        print_text([text.rstrip()])
    else:
        write_file(Path(output), text)
