"""localsim score and localsim leakage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from localsim.cli import completion
from localsim.cli.common import db_option, json_option, print_json, print_table, say, store_of
from localsim.store.database import Store


@click.command()
@click.argument("run", default="@last", shell_complete=completion.runs)
@click.option(
    "--judge",
    metavar="MODEL",
    shell_complete=completion.models,
    help="Let a model judge the seven dimensions of Sotopia, too.",
)
@click.option(
    "--naturalness",
    metavar="MODEL",
    shell_complete=completion.models,
    help="Let a model choose the more natural of two modes, both orders.",
)
@click.option("--evaluator", metavar="NAME", help="Let an evaluator of another package score the talks.")
@click.option("--samples", type=click.IntRange(1, 20), default=1, show_default=True, help="Judgements of each thing.")
@db_option
@json_option
def score(run: str, db: str | None, as_json: bool, **by: Any) -> None:
    """Look for leaked private facts in the talks of a run (v_leaks), and let a model judge them.

    What a version of the detector or a judge has seen is not seen again; nothing is simulated again.

    \b
    localsim score @last
    localsim score @last --judge path/to/7b.gguf --samples 3
    localsim score @last --evaluator politeness
    localsim sql "SELECT mode, kind, count(*) FROM v_leaks GROUP BY ALL"
    """
    from localsim.evaluators.leaks import score_run
    from localsim.evaluators.naturalness import sentence
    from localsim.evaluators.rescore import rescore_run

    store = store_of(db)
    run_id = store.run_id(run)
    if by["evaluator"]:
        rescore_run(store, run_id, by["evaluator"], say)
    count = score_run(store, run_id, say)
    found = store.rows(
        "SELECT mode, kind, count(*) AS facts, sum(early::INTEGER)::BIGINT AS early FROM v_leaks WHERE run_id = ? "
        "GROUP BY ALL ORDER BY ALL",
        [run_id],
    )
    judged = _judged(store, run_id, by["judge"], by["samples"])
    natural = _compared(store, run_id, by["naturalness"])
    if as_json:
        whole = {"run_id": run_id, "episodes_scored": count, "leaks": found, "judges": judged, "naturalness": natural}
        print_json(whole)
        return
    if found:
        print_table(["mode", "kind", "facts", "early"], [list(row.values()) for row in found])
    else:
        click.echo("no private fact came out")
    for one in judged:
        click.echo(f"judge {one['judge']}, {one['n']} talks: " + (one["warning"] or f"AUROC {one['goal_auroc']:.2f}"))
    for rate in natural:
        click.echo(sentence(rate))
    say(f"next: localsim report {run_id}")


def _compared(store: Store, run_id: str, model: str | None) -> list[dict[str, Any]]:
    from localsim.evaluators.naturalness import compare_run, rates

    if model:
        compare_run(store, run_id, model, say)
    return rates(store, run_id)


def _judged(store: Store, run_id: str, model: str | None, samples: int) -> list[dict[str, Any]]:
    from localsim.evaluators.judge import judge_run, reliability

    if model:
        judge_run(store, run_id, model, say, samples)
    return reliability(store, run_id)


@click.group()
def leakage() -> None:
    """Measure the leakage detector on labelled examples, and fit it to your own."""


@leakage.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--weights", type=click.Path(path_type=Path), help="Of `leakage calibrate` [the ones that come along].")
@json_option
def bench(file: Path, weights: Path | None, as_json: bool) -> None:
    """Precision, recall, F1, AUROC of `disclosed` on pairs; first turns and omniscient leaks on transcripts.

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
    found = accuracy.of_pairs(detector, rows) if pairs else accuracy.of_transcripts(detector, rows)
    if as_json:
        print_json(found)
        return
    levels = found.pop("by_difficulty", {})
    for name, part in {"": found, **levels}.items():
        line = ", ".join(f"{key.replace('_', ' ')} {_short(value)}" for key, value in part.items())
        click.echo(f"{name}: {line}" if name else line)


def _short(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


@leakage.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), default="leakage-weights.json", show_default=True)
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
    found = {"disclosed_from": weights.disclosed_from, "hint_from": weights.hint_from, "output": str(output)}
    if as_json:
        print_json(found)
        return
    click.echo(
        f"disclosed from {weights.disclosed_from:.3f}, hint from {weights.hint_from:.3f} (reader); wrote {output}"
    )
