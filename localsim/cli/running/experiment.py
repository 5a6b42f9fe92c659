"""localsim experiment."""

from __future__ import annotations

import json
from typing import Any

import click

from localsim import paths
from localsim.backends.open import chosen_model
from localsim.backends.person import NAME
from localsim.cli import completion
from localsim.cli.answers import Answer, Note, Table, Text, answers
from localsim.cli.common import (
    Reassurance,
    db_option,
    language_option,
    say,
    store_of,
    web_options,
)
from localsim.conversation.wording.wordings import counted
from localsim.errors import InvalidInput
from localsim.reports.evidence.participants import Compared, compared
from localsim.reports.evidence.rubrics import Rated, people_and_judges
from localsim.scenarios.documents import shipped_files
from localsim.scenarios.experiments.document import MODEL
from localsim.scenarios.experiments.read import Arm, Study, find_experiment
from localsim.store.database import Store
from localsim.store.queries import experiments as queries

_FILE = click.argument("file")


@click.group()
def experiment() -> None:
    """Let people take part in an experiment that a YAML file describes, and see its results.

    The file has consent, forms before and after, conditions with quotas, limits and the debrief. docs/experiments.md
    explains it with a complete example, knowing_too_much.

    \b
    localsim experiment check knowing_too_much
    localsim experiment serve knowing_too_much -m starter --open
    localsim experiment results knowing_too_much
    """


@experiment.command()
@_FILE
@answers
def check(file: str) -> Answer:
    """Check an experiment file and show its conditions.

    Banks and scenarios that the file names are read, too. Nothing is served or stored.

    \b
    localsim experiment check knowing_too_much
    localsim experiment check mine.yaml --json
    """
    study = find_experiment(file)
    rows = list(map(_described, study.arms))
    data = {"experiment": study.experiment.id, "participants": study.experiment.size, "conditions": rows}
    return Answer(data, _checked(study, rows))


def _checked(study: Study, rows: list[dict[str, Any]]) -> Text:
    yield f"{study.experiment.title} ({study.experiment.id}): {study.experiment.size} participants"
    yield Table.of(rows)
    forms = {"before": study.before, "each message": (study.ratings,) if study.ratings else (), "after": study.after}
    for part, banks in forms.items():
        asked = ", ".join(f"{bank.id} ({counted(len(bank.items), 'question')})" for bank in banks) or "nothing is asked"
        yield f"{part}: {asked}"
    if study.experiment.rated and study.rubric:
        about = f", about {study.experiment.rated.about}" if study.rubric.per == "agent" else ""
        yield f"each talk: rubric {study.rubric.id} ({counted(len(study.rubric.dimensions), 'dimension')}{about})"
    limits = study.experiment.limits.model_dump(exclude_none=True)
    yield "limits: " + ", ".join(f"{name} {value:g}" for name, value in limits.items())


def _described(arm: Arm) -> dict[str, Any]:
    return {
        "condition": arm.condition.id,
        "quota": arm.condition.quota,
        "scenarios": len(arm.scenarios),
        "seat": ", ".join(dict.fromkeys(arm.seats)),
        "partner": arm.condition.partner,
        "mode": arm.condition.mode,
        "partner sees": arm.condition.partner_sees,
        "turns": max(loaded.scenario.limits.turns for loaded in arm.scenarios),
    }


@experiment.command()
@_FILE
@click.option(
    "-m",
    "--model",
    shell_complete=completion.models,
    help="Let this model play the other side where the file says `partner: model` [LOCALSIM_MODEL, else starter].",
)
@language_option
@click.option(
    "--new",
    "fresh",
    is_flag=True,
    help="Begin the experiment again as another run, even if the one before could go on.",
)
@click.option(
    "--end",
    is_flag=True,
    help="Serve nothing: complete the run with those who have finished, and break off talks that are under way.",
)
@web_options
@db_option
def serve(
    file: str,
    model: str | None,
    language: str,
    fresh: bool,
    end: bool,
    host: str,
    port: int | None,
    open_browser: bool,
    db: str | None,
) -> None:
    """Serve the pages of an experiment until Ctrl-C.

    The same command goes on with it until every place is filled; with --end it ends before. Participants read the
    consent, answer the forms, talk, rate messages and read the debrief with a completion code. Everything is on the
    disk before a page gets its answer, so nothing is lost if the server is killed.

    \b
    localsim experiment serve knowing_too_much -m starter --open
    localsim experiment serve mine.yaml -m scripted:friends --host 192.168.1.20
    """
    with paths.needing("an experiment needs", "web"):
        from localsim.web.experiment.begin import Wish, serve_experiment
    if fresh and end:
        raise click.UsageError("--new begins a run and --end ends one; take one of them")
    study = find_experiment(file)
    wanted = any(arm.condition.partner == MODEL for arm in study.arms)
    name = chosen_model(model) if wanted or model is not None else ""
    if name == NAME:
        raise InvalidInput(
            "-m names a model or scripted player", hint="write `partner: participant` in the file to pair people"
        )
    wish = Wish(study, name, host, port, fresh, language, end)
    serve_experiment(store_of(db), wish, say, open_browser=open_browser, during=Reassurance)


@experiment.command()
@_FILE
@click.option(
    "--run", metavar="RUN", shell_complete=completion.runs, help="Show this run [the newest of the experiment]."
)
@db_option
@answers
def results(file: str, run: str | None, db: str | None) -> Answer:
    """Print the results of an experiment by condition.

    FILE may also be the id of the experiment. The last lines say how to get everything with SQL.

    \b
    localsim experiment results knowing_too_much
    localsim experiment results mine.yaml --json
    """
    store = store_of(db)
    name = _id_of(file)
    runs = queries.runs_of_experiment(store, name)
    if run is not None:
        run = store.run_id(run)
    if not runs or (run is not None and run not in runs):
        where = f" in run {run}" if run else ""
        raise InvalidInput(
            f"no participant is stored for the experiment {name}{where}",
            hint=f"localsim experiment serve {file}; a server writes participants to the database every few seconds",
        )
    return _results(store, name, run or runs[0], runs)


def _id_of(file: str) -> str:
    shipped = [each.stem for each in shipped_files("experiments")]
    if file in shipped or file.endswith((".yaml", ".yml")):
        return find_experiment(file).experiment.id
    return file


def _results(store: Store, name: str, run_id: str, runs: list[str]) -> Answer:
    rows, given = queries.by_condition(store, run_id), queries.answers_by_condition(store, run_id)
    rubric, text = people_and_judges(store, run_id), queries.description_of(store, run_id)
    tests = compared(queries.outcomes(store, run_id))
    described = json.loads(text) if text else None
    data = {"conditions": rows, "answers": given, "differences": tests, "rubric": rubric, "description": described}

    def lines() -> Text:
        yield f"{name}, run {run_id}"
        heads = ["condition", "assigned", "finished", "left", "success", "messages", "before", "after", "ratings"]
        yield Table(heads, [_cells(row) for row in rows])
        yield "assigned: people who agreed and got a place; left: withdrawn, away or without a partner."
        yield "success: talks of those who finished that reached their goal, of those with an outcome."
        if given:
            yield ""
            cells = [[row.part, f"{row.bank}/{row.item}", row.condition, row.n, row.mean, row.sd] for row in given]
            yield Table(["part", "question", "condition", "answers", "mean", "sd"], cells)
            yield "mean: of the points, numbers, or places of the options from 1, of those who finished."
        yield from _rubric(store, run_id, rubric)
        yield from _differences(tests)
        yield ""
        yield f"participants:  localsim sql \"FROM v_participants WHERE run_id = '{run_id}'\""
        views = "v_participant_answers, v_participant_talks, v_turns"
        yield f"answers, talks and turns: the views {views} (docs/experiments.md)"
        if len(runs) > 1:
            yield Note(f"{len(runs)} runs of this experiment: {', '.join(runs)}; --run shows another one")

    return Answer({"experiment": name, "run_id": run_id, **data}, lines())


def _differences(tests: list[Compared]) -> Text:
    if not tests:
        return
    yield ""
    yield Table.of([vars(each) for each in tests])
    yield "difference: of the means, first minus second. p: of all ways to divide these people in two groups of their"
    yield "sizes, the share whose means lie as far apart; partners in a talk are one. p_holm: corrected for all rows."


def _rubric(store: Store, run_id: str, rows: list[Rated]) -> Text:
    if not rows:
        return
    yield ""
    heads = ["rubric", "dimension", "ratings", "cannot tell", "mean", "judge", "score", "both", "rho", "p"]
    names = [*heads[:3], "cannot_tell", *heads[4:]]
    yield Table(heads, [[getattr(row, name) for name in names] for row in rows])
    yield "mean, score: of people and of the judge, over what both rated. rho: Spearman's correlation over talks and"
    yield "agents that both rated; it needs three. The judge sees both sides of a talk, and a participant only one."
    if not any(row.judge for row in rows):
        where = paths.db_option(store.path)
        yield f"no judge yet:  localsim score {run_id} --judge MODEL --rubric {rows[0].rubric}{where}"


def _cells(row: queries.ConditionCounts) -> list[Any]:
    success = f"{row.successes} of {row.scored}" if row.scored else None
    left = row.unpaired + row.withdrawn + row.away
    return [row.condition, row.assigned, row.finished, left, success, row.messages, row.before, row.after, row.ratings]
