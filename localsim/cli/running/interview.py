"""localsim interview."""

from __future__ import annotations

from typing import Any

import click

from localsim.cli import completion
from localsim.cli.common import db_option, gpu_option, json_option, store_of
from localsim.cli.running.ending import simulate
from localsim.cli.running.options import (
    ModesOption,
    context_option,
    fail_option,
    grammar_option,
    live_option,
    model_option,
    modes_of,
    name_option,
    parallel_option,
    repro_option,
    seed_option,
    settings_of,
    temperature_option,
    threads_option,
)
from localsim.runs.interviews import interview_plan


@click.command()
@click.argument("bank")
@click.option(
    "--people",
    cls=ModesOption,
    multiple=True,
    default=("all",),
    show_default=True,
    metavar="ID,...",
    help="Ask these people: ids, all, or nobody for an agent without a profile; several with commas.",
)
@click.option(
    "--about",
    metavar="RUN",
    default="@last",
    show_default=True,
    shell_complete=completion.runs,
    help="Ask about the conversations of this run, if the bank asks about stored conversations (who_knows).",
)
@model_option
@click.option(
    "--mode",
    "modes",
    cls=ModesOption,
    multiple=True,
    default=("agents",),
    show_default=True,
    callback=modes_of,
    metavar="MODE",
    help="Only agents has a meaning here; other modes are refused with the reason.",
)
@click.option(
    "-n",
    "--episodes",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Ask each person this often; options change places each time, so as many times as there are options show "
    "every option in every place.",
)
@seed_option
@parallel_option
@temperature_option
@grammar_option
@repro_option
@context_option
@gpu_option
@threads_option
@name_option
@fail_option
@live_option
@db_option
@json_option
def interview(bank: str, people: tuple[str, ...], **options: Any) -> None:
    """Ask people the questions of a bank: a name (traits, role_mcq, reasoning ...) or a file.

    Each question stands alone unless the bank says otherwise. The answers are a run, so report, show, audit, resume and
    export work on it. docs/interviews.md tells what each bank measures.

    \b
    localsim interview traits --people all
    localsim interview role_mcq --people helmi,juhan -n 4
    localsim report @last
    """
    store = store_of(options["db"])
    plan = interview_plan(bank, people, store, options["about"], **settings_of(options))
    simulate(plan, store, options, leaks=False)
