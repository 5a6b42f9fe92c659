"""localsim interview."""

from __future__ import annotations

from typing import Any

import click

from localsim.cli import completion
from localsim.cli.answers import Answer, answers
from localsim.cli.common import db_option, gpu_option, store_of
from localsim.cli.running.ending import simulate
from localsim.cli.running.options import (
    ModesOption,
    drawing_options,
    fail_option,
    live_option,
    modes_option,
    name_option,
    settings_of,
    simulated_model_option,
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
    metavar="ID,...",
    help="Ask these people: ids, all, or nobody for an agent without a profile; several with commas.",
)
@click.option(
    "--about",
    metavar="RUN",
    default="@last",
    shell_complete=completion.runs,
    help="Ask about the conversations of this run, if the bank asks about stored conversations (who_knows).",
)
@simulated_model_option
@modes_option("Only agents has a meaning here; other modes are refused with the reason.")
@click.option(
    "-n",
    "--episodes",
    type=click.IntRange(1),
    default=1,
    help="Ask each person this often; options change places each time, so as many times as there are options show "
    "every option in every place.",
)
@drawing_options
@gpu_option
@threads_option
@name_option
@fail_option
@live_option
@db_option
@answers
def interview(bank: str, people: tuple[str, ...], **options: Any) -> Answer:
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
    return simulate(plan, store, options, leaks=False)
