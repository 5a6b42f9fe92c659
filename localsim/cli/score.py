"""localsim score and localsim leakage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localsim.cli import completion
from localsim.cli.common import (
    Reassurance,
    clean,
    cluster_option,
    db_option,
    json_option,
    print_json,
    print_table,
    say,
    sensitivity_option,
    store_of,
    weights_from,
    weights_option,
)
from localsim.conversation.episode import counted
from localsim.models.registry import require_name

if TYPE_CHECKING:
    from localsim.evaluators.base import Evaluator
    from localsim.scenarios.rubrics import Rubric
    from localsim.store.database import Store


@click.command()
@click.argument("conditions", nargs=-1, metavar="[RUN[:CONDITION]]...", shell_complete=completion.runs)
@click.option(
    "--judge",
    metavar="MODEL",
    shell_complete=completion.models,
    help="Also let this model judge the seven dimensions of Sotopia, or those of --rubric.",
)
@click.option(
    "--rubric",
    "rubrics",
    metavar="NAME|FILE",
    multiple=True,
    shell_complete=completion.rubrics,
    help="Let --judge answer the questions of this rubric: sotopia, support, esc7, roleplay, personascore or a YAML "
    "file; may be repeated [sotopia].",
)
@click.option(
    "--naturalness",
    metavar="MODEL",
    shell_complete=completion.models,
    help="Also let this model choose the more natural of two modes or conditions, in both orders.",
)
@click.option(
    "--choose",
    metavar="MODEL",
    shell_complete=completion.models,
    help="Also let this model choose the best of all modes or conditions, once for each rotation of their order.",
)
@click.option(
    "--criterion",
    metavar="QUESTION",
    help="Ask the model of --choose this question [which one sounds more like a natural interaction].",
)
@click.option(
    "--leak-judge",
    metavar="MODEL",
    shell_complete=completion.models,
    help="Also let this model (better 1.5B or more) judge which private facts come out, and in which turn first.",
)
@click.option(
    "--evaluator",
    metavar="NAME",
    help="Also run this evaluator, which needs no model: valence, overlap, refusal, or one of an installed package.",
)
@click.option(
    "--samples",
    type=click.IntRange(1, 20),
    default=1,
    show_default=True,
    help="Ask the model of --judge each question this many times.",
)
@weights_option(
    "Find leaks with the thresholds of this file, made by `leakage calibrate`, or with built-in "
    "[those of the run's last search, else the built-in ones]."
)
@cluster_option("Ask the models that judge on this Ray cluster: auto is the one of this machine [this process].")
@db_option
@json_option
def score(conditions: tuple[str, ...], cluster: str | None, db: str | None, as_json: bool, **by: Any) -> None:
    """Score the stored episodes of a run: outcome, style, play and checks, leaked private facts, and models as judges.

    Episodes that a version of an evaluator has scored are skipped. Nothing is simulated again. With conditions of
    several runs, such as @last:agents @last-1:agents, --naturalness compares each of one with each of another. With
    --weights or --sensitivity, leaks are found again: reports show the last search, earlier ones stay in the database.

    --leak-judge asks at most 2 + log2(turns) questions for each private fact, and prints how far the model agrees with
    the leakage detector and with raters. Its replies change no leak rate; one that cannot be read counts as missing.

    \b
    localsim score @last
    localsim score @last --weights mine.json
    localsim score @last --sensitivity 0.02
    localsim score @last --judge path/to/7b.gguf --samples 3
    localsim score @last --judge path/to/7b.gguf --rubric support
    localsim score @last --choose path/to/7b.gguf --criterion "Which conversation is the kindest?"
    localsim score @last --leak-judge path/to/7b.gguf
    localsim score @last:agents @last-1:agents --naturalness path/to/7b.gguf
    localsim score @last --evaluator valence
    localsim sql "SELECT mode, kind, count(*) FROM v_leaks GROUP BY ALL"
    """
    from localsim.evaluators.evaluate import read_again, score_runs
    from localsim.evaluators.leaks import EVALUATOR
    from localsim.evaluators.searching import search
    from localsim.reports.validity import thresholds
    from localsim.store.conditions import choices, pairs_of
    from localsim.store.queries.reports import with_secrets

    for model in (by["judge"], by["naturalness"], by["choose"], by["leak_judge"]):
        if model is not None:
            require_name(model)
    weights = weights_from(by["weights"])
    store = store_of(db)
    chosen = choices(store, conditions or ("@last",))
    every = [each for choice in chosen for each in choice.conditions]
    runs = list(dict.fromkeys(each.run_id for each in every))
    pairs = None if len(chosen) == 1 and chosen[0].whole else list(pairs_of(chosen))
    others, panel = _evaluators(by, pairs), None
    if cluster is not None:
        from localsim.runs.cluster.judging import panel_on

        panel = panel_on(cluster)
    with Reassurance("reading the episodes", quiet=as_json):
        for run_id in runs:
            read_again(store, run_id, say)
        counts = {EVALUATOR: search(store, runs, say, weights, only=set(every), share=by["sensitivity"])}
        counts |= score_runs(store, runs, others, say, only=set(every), panel=panel)
    used = {each: thresholds.thresholds(store, each) for each in runs}
    found = _found(store, runs, used, pairs)
    if as_json:
        named = {"run_id": runs[0], **({"runs": runs} if runs[1:] else {}), "episodes_scored": counts[EVALUATOR]}
        found["thresholds"] = [{"run_id": each, **vars(row)} for each in runs for row in used[each]]
        print_json({**named, **found, "scored": counts})
        return
    _print_scored(found, private=any(with_secrets(store, each) for each in runs))
    for each in runs:
        for line in thresholds.warnings(store, used[each], each):
            click.secho(f"! {clean(line)}", fg="yellow")
    say(f"next: localsim report {runs[0]}")


def _found(
    store: Store, runs: Sequence[str], used: Mapping[str, Sequence[Any]], pairs: Sequence[Any] | None
) -> dict[str, Any]:
    """Return what is stored about the runs: leaks with their thresholds, and what judges said."""
    from localsim.annotation.leak_judges import leak_judges
    from localsim.reports.conversation.choices import choices as choices_of
    from localsim.reports.conversation.rubrics import rubric_rows
    from localsim.reports.validity.judges import rates, rates_between, reliability
    from localsim.store.conditions import condition_of, names_of
    from localsim.store.queries.scoring import leaks_by_condition

    leak_counts = [vars(row) for each in runs for row in leaks_by_condition(store, each)]
    names = names_of(map(condition_of, leak_counts))
    leak_counts = [{"condition": names[condition_of(row)], **row} for row in leak_counts]
    return {
        "leaks": leak_counts,
        "thresholds": [row for each in runs for row in used[each]],
        "leak_judges": leak_judges(store, runs),
        "judges": [judge for each in runs for judge in reliability(store, each)],
        "rubrics": [row for each in runs for row in rubric_rows(store, each)],
        "choices": [row for each in runs for row in choices_of(store, each)],
        "naturalness": rates(store, runs[0]) if pairs is None else rates_between(store, pairs),
    }


def _rubrics(by: Mapping[str, Any]) -> list[Rubric]:
    """Return the rubrics of the options, each once. Raises InvalidInput and ScenarioInvalid."""
    from localsim.errors import InvalidInput
    from localsim.scenarios.rubrics import SOTOPIA, find_rubric

    if by["criterion"] and not by["choose"]:
        raise click.UsageError("--criterion needs --choose MODEL, the model that answers it")
    if by["rubrics"] and not by["judge"]:
        raise click.UsageError("--rubric needs --judge MODEL, the model that answers its questions")
    found: dict[str, Rubric] = {}
    for reference in by["rubrics"] or (SOTOPIA,):
        rubric = find_rubric(reference)
        if found.setdefault(rubric.id, rubric) != rubric:
            hint = "give each rubric an id of its own"
            raise InvalidInput(f"two rubrics have the id {rubric.id!r}", where=reference, hint=hint)
    return list(found.values())


def _evaluators(by: Mapping[str, Any], pairs: Sequence[Any] | None) -> list[Evaluator]:
    """Return the evaluators that the options ask for beside the search for leaks."""
    from localsim.evaluators.choosing.candidates import Choice
    from localsim.evaluators.choosing.naturalness import QUESTION, Naturalness
    from localsim.evaluators.evaluate import evaluator_of
    from localsim.evaluators.judge import Judge
    from localsim.evaluators.leak_judge import LeakJudge

    rubrics = _rubrics(by)
    found: list[Evaluator] = [evaluator_of(by["evaluator"])] if by["evaluator"] else []
    if by["judge"]:
        found += [Judge(by["judge"], by["samples"], rubric) for rubric in rubrics]
    if by["naturalness"]:
        found.append(Naturalness(by["naturalness"], pairs))
    if by["choose"]:
        found.append(Choice(by["choose"], by["criterion"] or QUESTION))
    if by["leak_judge"]:
        found.append(LeakJudge(by["leak_judge"]))
    return found


def _print_scored(found: dict[str, Any], *, private: bool) -> None:
    """Print leaks (if an agent has something private), the reliability of judges, and their choices."""
    from localsim.annotation import leak_judges
    from localsim.reports.conversation.choices import choice_tables
    from localsim.reports.conversation.rubrics import rubric_table
    from localsim.reports.validity import thresholds
    from localsim.reports.validity.judges import sentence

    if rows := found["leaks"]:
        heads = ["condition", "kind", "facts", "early"]
        print_table(heads, [[row[head] for head in heads] for row in rows])
    else:
        click.echo("no private fact came out" if private else "no agent has a private fact, so none could come out")
    for line in dict.fromkeys(thresholds.sentences(found["thresholds"])) if private else ():
        click.echo(clean(line))
    for line in leak_judges.sentences(found["leak_judges"]):
        click.echo(clean(line))
    for judge in found["judges"]:
        click.echo(f"judge {judge.judge}, {counted(judge.n)}: {judge.warning or f'AUROC {judge.goal_auroc:.2f}'}")
    if found["rubrics"]:
        print_table(*rubric_table(found["rubrics"]))
    for rate in found["naturalness"]:
        click.echo(sentence(rate))
    for table in choice_tables(found["choices"]):
        click.secho(clean(table.title), bold=True)
        print_table(list(map(str, table.heads)), table.rows)
        click.echo(clean("\n".join(table.notes)))


@click.group()
def leakage() -> None:
    """Measure the leakage detector on labelled examples, and fit it to your own."""


@leakage.command()
@click.argument("file", type=click.Path(path_type=Path))
@weights_option("Use the thresholds of this file, made by `leakage calibrate` [the built-in ones].")
@json_option
def bench(file: Path, weights: str | None, sensitivity: float | None, as_json: bool) -> None:
    """Measure the detector on a labelled file.

    For pairs: precision, recall, F1 and AUROC of `disclosed`. For transcripts: first turns, facts rightly left alone,
    and omniscient leaks. Where the file says it, also by difficulty, kind, writer and domain.

    \b
    localsim leakage bench scenarios/leakage/test.pairs.jsonl
    localsim leakage bench scenarios/leakage/test.transcripts.jsonl --json
    """
    from localsim.leakage import accuracy
    from localsim.leakage.detector import LeakageDetector
    from localsim.leakage.pairs import LabelledPair, read_labelled

    used = weights_from(weights, sensitivity)
    rows: Any = read_labelled(file)
    pairs = isinstance(rows[0], LabelledPair)
    with Reassurance("searching the labelled examples", quiet=as_json):
        detector = LeakageDetector(weights=used)
        measured = accuracy.of_pairs(detector, rows) if pairs else accuracy.of_transcripts(detector, rows)
    if as_json:
        print_json(measured)
        return
    groups = [measured.pop(name) for name in list(measured) if name.startswith("by_")]
    for name, part in [("", measured), *(item for group in groups for item in group.items())]:
        line = ", ".join(f"{key.replace('_', ' ')} {_short(value)}" for key, value in part.items())
        click.echo(f"{name}: {line}" if name else line)


def _short(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


@leakage.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default="leakage-weights.json",
    show_default=True,
    help="Write the thresholds to this file.",
)
@sensitivity_option
@json_option
def calibrate(files: tuple[Path, ...], output: Path, sensitivity: float | None, as_json: bool) -> None:
    """Fit the detector's thresholds to your own labels: pairs, whole conversations, or both in several files.

    Pairs fit the thresholds of single turns, conversations those of whole conversations; without files of a kind its
    thresholds stay as they are. `annotate labels` writes both kinds. Then search a run with the new thresholds. The
    file has thresholds for other values of --sensitivity too, as far as enough facts never come out.

    \b
    localsim leakage calibrate mine.jsonl mine.transcripts.jsonl -o mine.json
    localsim leakage bench others.jsonl --weights mine.json
    localsim score @last --weights mine.json
    """
    from localsim.errors import InvalidInput
    from localsim.leakage.calibrate import FEW, calibrated
    from localsim.leakage.curve import fewest
    from localsim.leakage.detector import LeakageDetector
    from localsim.leakage.pairs import LabelledPair, LabelledTranscript, read_labelled

    rows = [row for file in dict.fromkeys(files) for row in read_labelled(file)]
    pairs = [row for row in rows if isinstance(row, LabelledPair)]
    talks = [row for row in rows if isinstance(row, LabelledTranscript)]
    names = [file.name for file in dict.fromkeys(files)]
    try:
        with Reassurance("searching the labelled examples", quiet=as_json):
            weights = calibrated(LeakageDetector(), pairs, talks, names, sensitivity)
        weights.write(output)
    except InvalidInput as error:
        raise InvalidInput(error.message, where=", ".join(map(str, files)), hint=error.hint) from error
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", where=str(output)) from error
    if as_json:
        print_json({"output": str(output), **weights.fitted, "accuracy": weights.accuracy})
        return
    click.echo(
        f"wrote {output}: thresholds fitted to {len(pairs)} pairs and {weights.fitted['facts']} facts in {len(talks)} "
        "conversations"
    )
    for part, measured in weights.accuracy.items():
        shown = {key: value for key, value in measured.items() if isinstance(value, float)}
        line = ", ".join(f"{key.replace('_', ' ')} {_short(value)}" for key, value in shown.items())
        click.echo(f"on the same {part}, so too good: {line}")
    silent, share = weights.fitted["silent"], weights.talk_share
    if talks and silent < max(FEW, fewest(share)):
        known = "uncertain" if silent >= fewest(share) else f"not known with fewer than {fewest(share)}"
        say(f"facts that never come out: {silent}. A share of {share:g} false alarms is {known}: label more talks")
    if not talks:
        say("the thresholds for whole conversations stay: fit them to the labels of `annotate labels --conversations`")
    if not pairs:
        say("the thresholds for single turns stay: fit them to labelled pairs too")
    say(f"next: localsim score @last --weights {output}")


@click.command()
@click.option(
    "--family", "families", metavar="NAME", multiple=True, help="Check only this task family; may be repeated."
)
@click.option("--player", metavar="NAME", help="Show only the controls with this scripted player.")
@click.option(
    "--scenarios",
    type=click.IntRange(5, 1000),
    default=40,
    show_default=True,
    help="Generate this many scenarios for each task.",
)
@json_option
def controls(families: tuple[str, ...], player: str | None, scenarios: int, as_json: bool) -> None:
    """Check every measure with scripted players whose behaviour is known. Needs no model; exit code 6 if one fails.

    \b
    localsim controls
    localsim controls --player yes-sayer
    """
    from localsim.errors import InvalidInput, TooManyFailures
    from localsim.reports.validity.controls import run_controls, table

    every = run_controls(families, scenarios)
    checked = [each for each in every if player in (None, each.control.player)]
    if not checked:
        players = ", ".join(dict.fromkeys(each.control.player for each in every))
        hint = f"controls have the players {players}" if every else "docs/extending.md shows how a family declares them"
        raise InvalidInput(f"there is no control{f' with the player {player!r}' if every else ''}", hint=hint)
    failed = [each for each in checked if not each.passed]
    if as_json:
        print_json([each.as_json() for each in checked])
    else:
        for family in dict.fromkeys(each.family for each in checked):
            click.secho(f"\n{family}", bold=True)
            print_table(*table([each for each in checked if each.family == family]))
        click.echo(f"\n{len(checked) - len(failed)} of {len(checked)} values are what they must be")
    if failed:
        named = ", ".join(dict.fromkeys(f"{each.control.measure} with {each.control.player}" for each in failed))
        raise TooManyFailures(f"{len(failed)} controls failed: {named}", hint="do not report these measures")
