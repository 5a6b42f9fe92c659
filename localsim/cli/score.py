"""localsim score and localsim leakage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localsim.cli import completion
from localsim.cli.common import db_option, json_option, print_json, print_table, say, store_of
from localsim.models.registry import require_name

if TYPE_CHECKING:
    from localsim.evaluators.base import Evaluator


@click.command()
@click.argument("conditions", nargs=-1, metavar="[RUN[:CONDITION]]...", shell_complete=completion.runs)
@click.option(
    "--judge",
    metavar="MODEL",
    shell_complete=completion.models,
    help="Also let this model judge the seven dimensions of Sotopia.",
)
@click.option(
    "--naturalness",
    metavar="MODEL",
    shell_complete=completion.models,
    help="Also let this model choose the more natural of two modes or conditions, in both orders.",
)
@click.option(
    "--leak-judge",
    metavar="MODEL",
    shell_complete=completion.models,
    help="Also let this model (better 1.5B or more) judge which private facts come out, and in which turn first.",
)
@click.option("--evaluator", metavar="NAME", help="Also run this evaluator of an installed package.")
@click.option(
    "--samples",
    type=click.IntRange(1, 20),
    default=1,
    show_default=True,
    help="Ask the judge each question this many times.",
)
@db_option
@json_option
def score(conditions: tuple[str, ...], db: str | None, as_json: bool, **by: Any) -> None:
    """Score the stored episodes of a run: outcome, style and checks, leaked private facts, and models as judges.

    Episodes that a version of an evaluator has scored are skipped. Nothing is simulated again. With conditions of
    several runs, such as @last:agents @last-1:agents, --naturalness compares each of one with each of another.

    --leak-judge asks at most 2 + log2(turns) questions for each private fact, and prints how far the model agrees with
    the leakage detector and with raters. Its replies change no leak rate; one that cannot be read counts as missing.

    \b
    localsim score @last
    localsim score @last --judge path/to/7b.gguf --samples 3
    localsim score @last --leak-judge path/to/7b.gguf
    localsim score @last:agents @last-1:agents --naturalness path/to/7b.gguf
    localsim score @last --evaluator politeness
    localsim sql "SELECT mode, kind, count(*) FROM v_leaks GROUP BY ALL"
    """
    from localsim.annotation.leak_judges import leak_judges
    from localsim.evaluators.evaluate import evaluator_of, read_again, score_runs
    from localsim.evaluators.judge import Judge
    from localsim.evaluators.leak_judge import LeakJudge
    from localsim.evaluators.leaks import Leaks
    from localsim.evaluators.naturalness import Naturalness
    from localsim.reports.validity.judges import rates, rates_between, reliability
    from localsim.store.conditions import choices, condition_of, names_of, pairs_of
    from localsim.store.queries.scoring import leaks_by_condition

    for model in (by["judge"], by["naturalness"], by["leak_judge"]):
        if model is not None:
            require_name(model)
    store = store_of(db)
    chosen = choices(store, conditions or ("@last",))
    every = [each for choice in chosen for each in choice.conditions]
    runs = list(dict.fromkeys(each.run_id for each in every))
    pairs = None if len(chosen) == 1 and chosen[0].whole else list(pairs_of(chosen))
    others: list[Evaluator] = [evaluator_of(by["evaluator"])] if by["evaluator"] else []
    if by["judge"]:
        others.append(Judge(by["judge"], by["samples"]))
    if by["naturalness"]:
        others.append(Naturalness(by["naturalness"], pairs))
    if by["leak_judge"]:
        others.append(LeakJudge(by["leak_judge"]))
    leaks = Leaks(store)
    for run_id in runs:
        read_again(store, run_id, say)
    counts = score_runs(store, runs, [leaks, *others], say, only=set(every))
    leak_counts = [row for each in runs for row in leaks_by_condition(store, each)]
    names = names_of(map(condition_of, leak_counts))
    leak_counts = [{"condition": names[condition_of(row)], **row} for row in leak_counts]
    found = {
        "leaks": leak_counts,
        "leak_judges": leak_judges(store, runs),
        "judges": [judge for each in runs for judge in reliability(store, each)],
        "naturalness": rates(store, runs[0]) if pairs is None else rates_between(store, pairs),
    }
    if as_json:
        named = {"run_id": runs[0], **({"runs": runs} if runs[1:] else {}), "episodes_scored": counts[leaks.name]}
        print_json({**named, **found, "scored": counts})
        return
    _print_scored(found)
    say(f"next: localsim report {runs[0]}")


def _print_scored(found: dict[str, Any]) -> None:
    """Print leaks, the reliability of judges, and their choices."""
    from localsim.annotation.leak_judges import sentences
    from localsim.reports.validity.judges import sentence

    if rows := found["leaks"]:
        heads = ["condition", "kind", "facts", "early"]
        print_table(heads, [[row[head] for head in heads] for row in rows])
    else:
        click.echo("no private fact came out")
    for line in sentences(found["leak_judges"]):
        click.echo(line)
    for judge in found["judges"]:
        remark = judge["warning"] or f"AUROC {judge['goal_auroc']:.2f}"
        click.echo(f"judge {judge['judge']}, {judge['n']} episodes: {remark}")
    for rate in found["naturalness"]:
        click.echo(sentence(rate))


@click.group()
def leakage() -> None:
    """Measure the leakage detector on labelled examples, and fit it to your own."""


@leakage.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--weights",
    type=click.Path(path_type=Path),
    help="Use this file of thresholds, made by `leakage calibrate` [the built-in ones].",
)
@json_option
def bench(file: Path, weights: Path | None, as_json: bool) -> None:
    """Measure the detector on a labelled file.

    For pairs: precision, recall, F1 and AUROC of `disclosed`. For transcripts: first turns and omniscient leaks.

    \b
    localsim leakage bench scenarios/leakage/test.pairs.jsonl
    localsim leakage bench scenarios/leakage/test.transcripts.jsonl --json
    """
    from localsim.leakage import accuracy
    from localsim.leakage.detector import LeakageDetector, Weights
    from localsim.leakage.pairs import LabelledPair, read_labelled

    rows: Any = read_labelled(file)
    detector = LeakageDetector(weights=Weights.read(weights) if weights else None)
    pairs = isinstance(rows[0], LabelledPair)
    measured = accuracy.of_pairs(detector, rows) if pairs else accuracy.of_transcripts(detector, rows)
    if as_json:
        print_json(measured)
        return
    levels = measured.pop("by_difficulty", {})
    for name, part in {"": measured, **levels}.items():
        line = ", ".join(f"{key.replace('_', ' ')} {_short(value)}" for key, value in part.items())
        click.echo(f"{name}: {line}" if name else line)


def _short(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


@leakage.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default="leakage-weights.json",
    show_default=True,
    help="Write the thresholds to this file.",
)
@json_option
def calibrate(file: Path, output: Path, as_json: bool) -> None:
    """Fit the detector's thresholds to your own labelled pairs.

    \b
    localsim leakage calibrate mine.jsonl -o mine.json
    localsim leakage bench others.jsonl --weights mine.json
    """
    from localsim.errors import InvalidInput
    from localsim.leakage.calibrate import calibrated
    from localsim.leakage.detector import LeakageDetector
    from localsim.leakage.pairs import LabelledPair, read_labelled

    rows: Any = read_labelled(file)
    if not isinstance(rows[0], LabelledPair):
        raise InvalidInput("thresholds are fitted on pairs, not transcripts", where=str(file))
    weights = calibrated(LeakageDetector(), rows)
    try:
        weights.write(output)
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", where=str(output)) from error
    fitted = {"disclosed_from": weights.disclosed_from, "hint_from": weights.hint_from, "output": str(output)}
    if as_json:
        print_json(fitted)
        return
    click.echo(
        f"disclosed from {weights.disclosed_from:.3f}, hint from {weights.hint_from:.3f} (reader); wrote {output}"
    )


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
    from localsim.errors import TooManyFailures
    from localsim.reports.validity.controls import run_controls, table

    checked = [each for each in run_controls(families, scenarios) if player in (None, each.control.player)]
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
