"""localsim report, card, design, plot, check."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localsim.cli import completion
from localsim.cli.answers import Answer, Styled, Table, Text, answers
from localsim.cli.common import (
    Finite,
    Named,
    Reassurance,
    Target,
    clean,
    conditions_argument,
    db_option,
    json_option,
    output_option,
    print_json,
    say,
    store_of,
    weights_from,
    weights_option,
    write_file,
)
from localsim.cli.running.playing import refusal
from localsim.conversation.wording.wordings import counted
from localsim.errors import DemandsFail, InvalidInput, writing
from localsim.families import family_of, title_of
from localsim.runs.plan import CONTRASTS
from localsim.store.conditions import Condition, choices, without_episodes
from localsim.store.database import Store

if TYPE_CHECKING:
    from localsim.reports.document import Report, Section
    from localsim.reports.validity.design import Design

_people = click.option(
    "--people",
    metavar="RUN",
    multiple=True,
    shell_complete=completion.runs,
    help="Show the people of this imported run beside the modes; may be repeated.",
)


def _first_and_others(store: Store, references: Sequence[str]) -> tuple[str, list[Condition]]:
    """Return the run to report, and the conditions to show if these are not simply its own."""
    found = choices(store, references or ("@last",))
    alone = len(found) == 1 and found[0].whole and not found[0].conditions[0].label
    return found[0].conditions[0].run_id, [] if alone else [each for choice in found for each in choice.conditions]


@click.command()
@conditions_argument
@output_option("Write the report to this file: one self-contained HTML page, or Markdown if it ends in .md.")
@_people
@weights_option(
    "Report only if leaks were found with the thresholds of this file, or with built-in; else name the command that "
    "finds them again [whatever thresholds the last search had]."
)
@click.option(
    "--tables",
    metavar="FOLDER",
    type=Target(file_okay=False, path_type=Path),
    help="Write each table to this folder, as LaTeX (booktabs) and as CSV with columns for the ends of intervals.",
)
@click.option("--all", "everything", is_flag=True, help="Print all tables, warnings and sentences.")
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with code 6 if more than 20% of the talks of a condition do not play, so that a conclusion is withheld.",
)
@db_option
@answers
def report(
    conditions: tuple[str, ...],
    output: str | None,
    tables: Path | None,
    everything: bool,
    people: tuple[str, ...],
    weights: str | None,
    sensitivity: float | None,
    strict: bool,
    db: str | None,
) -> Answer:
    """Compare the modes of a run: short tables and the conclusions, --all, --json, -o report.html or -o report.md.

    Conditions of other runs, such as @last:agents, stand beside the modes of the first run. The report names the
    thresholds with which leaks were found; `localsim score --weights` or `--sensitivity` finds them again with others.

    \b
    localsim report @last
    localsim report @last --all
    localsim report @last -o report.html
    localsim report @last --tables tables
    localsim report @last-1 taught=@last:agents -o report.html
    localsim report @last-1 --people @last
    """
    from localsim.reports.render.html import is_page, write
    from localsim.reports.render.tables import write as write_tables
    from localsim.reports.report import Ask, of
    from localsim.reports.validity.thresholds import require

    demanded, as_page = weights_from(weights), bool(output) and is_page(str(output))
    store = store_of(db)
    with Reassurance("reading the episodes"):
        with store.held() as reader:
            empty = without_episodes(reader, conditions)
            run_id, others = (empty, []) if empty else _first_and_others(reader, conditions)
            asked = Ask(run_id, others, [reader.run_id(each) for each in people], talks=as_page)
            require(reader, [run_id, *asked.beside], demanded, weights, sensitivity)
        data = of(store, asked)
    if output:
        file = Path(output)
        write(data, file)
        say(f"wrote {file}")
    if tables:
        say(f"wrote {len(write_tables(data, tables))} files to {tables}")
    command = " ".join(["localsim report", *(conditions or ("@last",))])
    error = refusal(data.playing.sentences(), strict=strict)
    return Answer(data.as_json(), _told(data, everything, command), error)


def _told(data: Report, everything: bool, command: str) -> Text:
    """Yield the report for a terminal: one screen, or `everything`."""
    from localsim.cli import screen
    from localsim.reports import sections
    from localsim.reports.validity import head

    run = data.run
    yield Styled(f"run {run.run_id} ({run.status}, seed {run.seed}, {run.repro})", bold=True)
    yield from head.answer(data) if everything else data.playing.sentences()
    yield from (Styled(f"! {text}", "yellow") for text in head.notes(data).general)
    if everything:
        for section in sections.for_terminal(data):
            yield from _section(section)
    yield ""
    yield from screen.ending(data) if everything else screen.brief(data, command)


def _section(section: Section) -> Text:
    yield ""
    if section.title:
        yield Styled(section.title, bold=True)
    for number, table in enumerate(section.tables):
        yield from [""] if number else []
        yield Table(list(map(str, table.heads)), [list(map(str, row)) for row in table.rows])
        yield from table.notes
    yield from section.lines
    if section.paragraph:
        yield textwrap.fill(section.paragraph, min(110, shutil.get_terminal_size().columns))
    yield from (Styled(f"! {line}", "yellow") for line in section.warnings)


@click.command()
@click.argument("run", default="@last", shell_complete=completion.runs)
@click.option(
    "--card",
    "human",
    type=Named(path_type=Path),
    help="Read the fields that only people can fill in from this YAML file.",
)
@click.option("--lint", is_flag=True, help="List the missing fields, and exit with 3 if there are any.")
@click.option(
    "--template",
    is_flag=True,
    help="Write a file with the fields that only people fill in, for --card [card.yaml].",
)
@output_option("Write the card to this file, as Markdown.")
@db_option
@json_option
def card(
    run: str, human: Path | None, lint: bool, template: bool, output: str | None, db: str | None, as_json: bool
) -> None:
    """Write the simulation card of a run: its scenarios, the information of each agent, and the measures.

    \b
    localsim card --template
    localsim card @last --lint
    localsim card @last --card card.yaml -o card.md
    """
    from localsim.reports.card import card as make_card
    from localsim.reports.card import missing, read_human
    from localsim.reports.compose.alone import report as make_report
    from localsim.reports.render.markdown import card_as_markdown

    if template:
        _write_template(Path(output or "card.yaml"), human)
        return
    with Reassurance("writing the card", quiet=as_json), store_of(db).held() as store:
        made = make_card(store, make_report(store, store.run_id(run)), read_human(human) if human else None)
    if output:
        write_file(Path(output), card_as_markdown(made))
        say(f"wrote {output}")
        if gaps := [] if lint else missing(made):
            say(f"! {len(gaps)} fields are empty: localsim card --lint lists them, --template writes a file for them")
    elif as_json:
        print_json(made)
    elif not lint:
        click.echo(clean(card_as_markdown(made)), nl=False)
    if lint and (gaps := missing(made)):
        for gap in gaps:
            click.echo(f"missing {gap}")
        raise InvalidInput(f"{len(gaps)} fields are missing", hint="give them with --card card.yaml")


def _write_template(file: Path, human: Path | None) -> None:
    """Write the fields for people, with what `human` has; a file that is there stays as it is."""
    from localsim.reports.card import read_human
    from localsim.reports.card import template as made

    if file.exists():
        raise InvalidInput("is there already", where=str(file), hint="-o names another file")
    with writing(file):
        file.write_text(made(read_human(human) if human else {}), encoding="utf-8")
    say(f"wrote {file}; fill it in, then: localsim card --card {file} --lint")


def _seeds(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[int, ...]:
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isdecimal() and 1 <= int(part) <= 1000 for part in parts):
        raise click.BadParameter("numbers from 1 to 1000 with commas, such as 1,2,5")
    return tuple(dict.fromkeys(map(int, parts)))


def _rates(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[float, float] | None:
    if value is None:
        return None
    try:
        first, second = map(float, value.split(","))
    except ValueError:
        first = second = -1.0
    if not (0 <= first <= 1 and 0 <= second <= 1) or first == second:
        raise click.BadParameter("two different shares from 0 to 1 with a comma, such as .1,.4")
    return first, second


@click.command()
@click.argument("run", default="@last", shell_complete=completion.runs)
@click.option(
    "--difference",
    type=Finite(),
    help="Plan to find a difference of this size, in units of the measure (.2 is 20 points of a share).",
)
@click.option(
    "--rates",
    metavar="A,B",
    callback=_rates,
    help="Instead of a pilot, assume that this share of conversations succeeds in the first and the second mode.",
)
@click.option(
    "--measure", metavar="KEY", help="Plan for this measure, by its key in `report --json` [the primary outcome]."
)
@click.option(
    "--contrast", type=click.Choice(list(CONTRASTS)), help="Plan for this difference between modes [the primary one]."
)
@click.option("--power", type=Finite(0.05, 0.99), default=0.8, help="Find the difference this often.")
@click.option(
    "--seeds",
    default="1,2,5",
    callback=_seeds,
    help="Plan for these numbers of episodes of each scenario and mode.",
)
@db_option
@answers
def design(
    run: str, difference: float | None, rates: tuple[float, float] | None, db: str | None, **options: Any
) -> Answer:
    """Plan a study from a pilot run: how many scenarios and seeds find a difference, with what power.

    Studies are simulated with the pilot's variance between and within scenarios, and tested as `compare` tests them.

    \b
    localsim design @last --difference .2
    localsim design @last --difference 2 --measure turns --contrast both --seeds 1,3
    localsim design --rates .1,.4
    """
    from localsim.reports.validity.design import assumed
    from localsim.reports.validity.design import design as designed

    if rates and (options["measure"] or options["contrast"]):
        raise click.BadParameter("--rates is about success; leave --measure and --contrast out", param_hint="--rates")
    if rates and difference is None:
        planned = assumed(*rates, options["seeds"], options["power"])
        return Answer([planned.as_json()], _designed(planned))
    if not difference or rates:
        raise click.BadParameter("give a difference that is not 0, or --rates without it", param_hint="--difference")
    store = store_of(db)
    run_id = store.run_id(run)
    about = options["measure"] or "", options["contrast"] or ""
    with Reassurance("computing the power"):
        found = designed(store, run_id, abs(difference), *about, options["seeds"], options["power"])
    return Answer([each.as_json() for each in found], (line for each in found for line in _designed(each)))


_ROLES = {
    "primary": "the primary outcome of the pilot",
    "secondary": "a secondary outcome of the pilot: the correction of its p leaves less power than this",
    "exploratory": "exploratory in the pilot: declare it before the next run, with --primary or --secondary",
}


def _designed(found: Design) -> Text:
    from localsim.reports.validity.findings import ONE_STORY

    wanted, pilot = found.wanted, found.pilot
    key, contrast = wanted.outcome
    title = title_of(family_of(found.family)) if found.family else "Assumed rates"
    yield Styled(f"{title}: {key}, {contrast}, difference {wanted.difference:g}", bold=True)
    if not found.table or pilot is None:
        yield f"no plan: {found.problem}\n"
        return
    if found.family:
        apart = "" if pilot.separated else ", not told apart because each scenario has one pair"
        yield _ROLES[found.role]
        yield (
            f"pilot of {pilot.scenarios} scenarios: variance {pilot.between:.3g} between scenarios and "
            f"{pilot.within:.3g} within{apart}"
        )
    seeds = [counted(each, "seed") for each in wanted.seeds]
    yield Table(["scenarios", *(f"power, {each}" for each in seeds)], [[n, *row] for n, row in found.table.items()])
    for each, least in zip(seeds, found.smallest, strict=True):
        many = f"{least} scenarios" if least else "more than 500 scenarios"
        yield f"power {wanted.power:g} with {each}: {many}"
    if found.variants:
        yield f"The pilot's scenarios are variants of one: {ONE_STORY}. A general claim needs at least two stories."
    if found.family:
        yield "The pilot's variances are estimates themselves: plan for more if it is small.\n"
    else:
        yield "All scenarios are assumed to be alike, and real ones are not: plan for more, and run a pilot.\n"


@click.command()
@conditions_argument
@click.option(
    "-o",
    "--output",
    type=Target(path_type=Path),
    default="figures",
    help="Write the figures to this folder.",
)
@click.option(
    "-f",
    "--format",
    "forms",
    multiple=True,
    type=click.Choice(["svg", "png", "pdf"]),
    help="Write the figures in this format; may be repeated [svg and png; with --difference svg].",
)
@click.option(
    "--measure",
    "measures",
    metavar="KEY",
    multiple=True,
    help="Draw this measure alone, by its name in the report or its key in --json; may be repeated.",
)
@click.option(
    "--difference",
    "alone",
    is_flag=True,
    help="Write difference.svg alone, as SVG: the primary outcome of every scenario, from one mode to the other.",
)
@_people
@db_option
@answers
def plot(
    conditions: tuple[str, ...],
    output: Path,
    forms: tuple[str, ...],
    measures: tuple[str, ...],
    alone: bool,
    people: tuple[str, ...],
    db: str | None,
) -> Answer:
    """Write the figures of a run as SVG, PNG or PDF: those of the report, or of chosen measures.

    Conditions of other runs, such as @last:agents, are drawn beside the modes of the first run.

    \b
    localsim plot @last -o figures
    localsim plot @last -f pdf
    localsim plot @last-1 taught=@last:agents
    localsim plot @last --measure success -f pdf
    localsim plot @last-1 @last --difference
    """
    from localsim.reports.figures.plots import difference, figures

    store = store_of(db)
    with writing(output), Reassurance("drawing the figures"):
        run_id, others = _first_and_others(store, conditions)
        chosen = [store.run_id(each) for each in people]
        if alone and set(forms) - {"svg"}:
            hint = "leave -f out; a browser or `rsvg-convert -f pdf difference.svg` makes a PDF of it"
            raise InvalidInput("--difference writes SVG alone", where=f"-f {', '.join(forms)}", hint=hint)
        if alone:
            files = difference(store, list(dict.fromkeys([run_id, *(each.run_id for each in others)])), output)
        else:
            files = figures(store, run_id, output, forms or ("svg", "png"), measures, chosen, others)
    return Answer(list(map(str, files)), map(str, files))


@click.command()
@click.argument("run", shell_complete=completion.runs)
@click.argument("demands", nargs=-1, required=True)
@click.option("--junit", "file", type=Target(dir_okay=False, path_type=Path), help="Also write JUnit XML.")
@db_option
@answers
def check(run: str, demands: tuple[str, ...], file: Path | None, db: str | None) -> Answer:
    """Check that a run meets demands, and end with exit code 6 if it does not.

    A demand is a measure of the report, a sign and a number. It must hold in every row of the report, or in those of
    one family, mode or model, whose name stands before a slash.

    \b
    localsim check @last "omniscient_leaks <= 0.1" "plays >= 90%"
    localsim check @last "agents / success_rate >= 0.5" --junit check.xml
    """
    from localsim.reports import demands as checks
    from localsim.reports.report import Ask, of

    store = store_of(db)
    run_id = store.run_id(run, unfinished=True)
    report = of(store, Ask(run_id, figures=True))
    found = list(checks.checked(report, [checks.demand_of(text, report) for text in demands]))
    if file:
        write_file(file, checks.junit(run_id, found))
    lines = [
        f"{'ok' if each.passed else 'NO'}  {each.demand.text}  "
        f"{each.row.family} {each.row.condition} {each.row.model}: {each.told}"
        for each in found
    ]
    failed = sum(not each.passed for each in found)
    error = DemandsFail(f"{failed} of {len(found)} demands do not hold") if failed else None
    return Answer({"run": run_id, "demands": [each.as_json() for each in found]}, lines, error)
