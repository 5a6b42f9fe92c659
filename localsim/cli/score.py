"""localsim score and localsim leakage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localsim.backends.open import require_models
from localsim.cli import completion
from localsim.cli.answers import Answer, Note, Styled, Table, Text, answers
from localsim.cli.common import (
    Named,
    Target,
    cluster_option,
    conditions_argument,
    db_option,
    model_option,
    sensitivity_option,
    store_of,
    weights_from,
    weights_option,
)
from localsim.cli.progress import Reassurance, say
from localsim.conversation.wording.wordings import counted

if TYPE_CHECKING:
    from localsim.evaluators.base import Evaluator
    from localsim.store.database import Store


@click.command()
@conditions_argument
@model_option("Also let this model judge the seven dimensions of Sotopia, or those of --rubric.", "--judge")
@click.option(
    "--rubric",
    "rubrics",
    metavar="NAME|FILE",
    multiple=True,
    shell_complete=completion.rubrics,
    help="Let --judge answer the questions of this rubric: sotopia, support, esc7, ethics, roleplay, personascore, "
    "adherence or a YAML file; may be repeated [sotopia].",
)
@model_option(
    "Also let this model choose the more natural of two modes or conditions, in both orders.", "--naturalness"
)
@model_option(
    "Also let this model choose the best of all modes or conditions, once for each rotation of their order.", "--choose"
)
@click.option(
    "--criterion",
    metavar="QUESTION",
    help="Ask the model of --choose this question [which one sounds more like a natural interaction].",
)
@model_option(
    "Also let this model (better 1.5B or more) judge which private facts come out, and in which turn first.",
    "--leak-judge",
)
@click.option(
    "--evaluator",
    metavar="NAME",
    help="Also run this evaluator, which needs no model: valence, overlap, refusal, reference, offence, beliefs, or "
    "one of an installed package.",
)
@click.option(
    "--samples", type=click.IntRange(1, 20), default=1, help="Ask the model of --judge each question this many times."
)
@weights_option(
    "Find leaks with the thresholds of this file, made by `leakage calibrate`, or with built-in "
    "[those of the run's last search, else the built-in ones]."
)
@cluster_option("Ask the models that judge on this Ray cluster: auto is the one of this machine [this process].")
@click.option("--strict", is_flag=True, help="End with exit code 1 if an evaluator failed on an episode.")
@db_option
@answers
def score(conditions: tuple[str, ...], cluster: str | None, strict: bool, db: str | None, **by: Any) -> Answer:
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
    from localsim.cli.running.ending import broken
    from localsim.evaluators.evaluate import read_again, score_runs
    from localsim.evaluators.leaks import EVALUATOR, search
    from localsim.reports.validity import thresholds
    from localsim.store.conditions import choices, pairs_of
    from localsim.store.queries.reports import with_secrets

    weights = weights_from(by["weights"])
    store = store_of(db)
    store.ensure_usable()
    require_models([by[name] for name in ("judge", "naturalness", "choose", "leak_judge") if by[name] is not None])
    chosen = choices(store, conditions or ("@last",))
    every = [each for choice in chosen for each in choice.conditions]
    runs = list(dict.fromkeys(each.run_id for each in every))
    pairs = None if len(chosen) == 1 and chosen[0].whole else list(pairs_of(chosen))
    others, panel = _evaluators(by, pairs), None
    if cluster is not None:
        from localsim.runs.cluster.judging import panel_on

        panel = panel_on(cluster)
    with Reassurance("reading the episodes"):
        for run_id in runs:
            read_again(store, run_id, say)
        counts = {EVALUATOR: search(store, runs, say, weights, only=set(every), share=by["sensitivity"])}
        counts |= score_runs(store, runs, others, say, only=set(every), panel=panel, named=True)
    used = {each: thresholds.thresholds(store, each) for each in runs}
    found = _found(store, runs, used, pairs)

    def text() -> Text:
        yield from _scored(found, private=any(with_secrets(store, each) for each in runs))
        for each in runs if by["evaluator"] else ():
            yield from _measured(store, each, others[0])
        for each in runs:
            yield from (Styled(f"! {line}", "yellow") for line in thresholds.warnings(store, used[each], each))
        yield Note(f"next: localsim report {runs[0]}")

    named = {"run_id": runs[0], **({"runs": runs} if runs[1:] else {}), "episodes_scored": counts[EVALUATOR]}
    thresholds_used = [{"run_id": each, **vars(row)} for each in runs for row in used[each]]
    error = next(filter(None, (broken(store, each) for each in runs if strict)), None)
    return Answer({**named, **found, "thresholds": thresholds_used, "scored": counts}, text(), error)


def _found(
    store: Store, runs: Sequence[str], used: Mapping[str, Sequence[Any]], pairs: Sequence[Any] | None
) -> dict[str, Any]:
    """Return what is stored about the runs: leaks with their thresholds, and what judges said."""
    from localsim.annotation.leak_judges import leak_judges
    from localsim.reports.evidence.rubrics import choices as choices_of
    from localsim.reports.evidence.rubrics import rubric_rows
    from localsim.reports.validity.judges import rates, rates_between, reliability
    from localsim.store.conditions import names_of
    from localsim.store.queries.scoring import leaks_by_condition

    leak_counts = [row for each in runs for row in leaks_by_condition(store, each)]
    names = names_of(row.condition for row in leak_counts)
    return {
        "leaks": [{"condition": names[row.condition], **vars(row)} for row in leak_counts],
        "thresholds": [row for each in runs for row in used[each]],
        "leak_judges": leak_judges(store, runs),
        "judges": [judge for each in runs for judge in reliability(store, [each])],
        "rubrics": [row for each in runs for row in rubric_rows(store, each)],
        "choices": [row for each in runs for row in choices_of(store, each)],
        "naturalness": rates(store, runs[0]) if pairs is None else rates_between(store, pairs),
    }


def _evaluators(by: Mapping[str, Any], pairs: Sequence[Any] | None) -> list[Evaluator]:
    """Return the evaluators that the options ask for beside the search for leaks."""
    if by["criterion"] and not by["choose"]:
        raise click.UsageError("--criterion needs --choose MODEL, the model that answers it")
    if by["rubrics"] and not by["judge"]:
        raise click.UsageError("--rubric needs --judge MODEL, the model that answers its questions")
    from localsim.evaluators.choosing import QUESTION, Choice, Naturalness
    from localsim.evaluators.evaluate import evaluator_of
    from localsim.evaluators.judge import Judge
    from localsim.evaluators.leak_judge import LeakJudge
    from localsim.scenarios.rubrics import SOTOPIA, find_rubrics

    rubrics = find_rubrics(by["rubrics"] or (SOTOPIA,))
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


def _scored(found: dict[str, Any], *, private: bool) -> Text:
    """Yield leaks (if an agent has something private), the reliability of judges, and their choices."""
    from localsim.annotation import leak_judges
    from localsim.reports.evidence.rubrics import choice_tables, rubric_tables
    from localsim.reports.validity import thresholds
    from localsim.reports.validity.judges import sentence

    if rows := found["leaks"]:
        yield Table.of(rows, "condition", "kind", "facts", "early")
    else:
        yield "no private fact came out" if private else "no agent has a private fact, so none could come out"
    if private:
        yield from dict.fromkeys(thresholds.sentences(found["thresholds"]))
    yield from leak_judges.sentences(found["leak_judges"])
    for judge in found["judges"]:
        yield f"judge {judge.judge}, {counted(judge.n, 'episode')}: {judge.warning or f'AUROC {judge.goal_auroc:.2f}'}"
    yield from map(sentence, found["naturalness"])
    for table in (*rubric_tables(found["rubrics"]), *choice_tables(found["choices"])):
        yield Styled(table.title, bold=True)
        yield Table(list(map(str, table.heads)), table.rows)
        yield "\n".join(table.notes)


def _measured(store: Store, run_id: str, evaluator: Evaluator) -> Text:
    from localsim.reports.compose.alone import table

    if measures := evaluator.measures:
        rows = [
            [row.family, row.condition, row.model, *(str(row.number(measure.key)) for measure in measures)]
            for row in table(store, run_id).comparison
        ]
        yield Table(["family", "mode", "model", *(measure.heading for measure in measures)], rows)


@click.group()
def leakage() -> None:
    """Measure the leakage detector on labelled examples, and fit it to your own."""


@leakage.command()
@click.argument("file", type=Named(path_type=Path))
@weights_option("Use the thresholds of this file, made by `leakage calibrate` [the built-in ones].")
@answers
def bench(file: Path, weights: str | None, sensitivity: float | None) -> Answer:
    """Measure the detector on a labelled file.

    For pairs: precision, recall, F1 and AUROC of `disclosed`. For transcripts: first turns, facts rightly left alone,
    and untold facts. Where the file says it, also by difficulty, kind, writer and domain.

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
    with Reassurance("searching the labelled examples"):
        detector = LeakageDetector(weights=used)
        measured = accuracy.of_pairs(detector, rows) if pairs else accuracy.of_transcripts(detector, rows)
    parts = [item for name, group in measured.items() if name.startswith("by_") for item in group.items()]
    whole = {name: value for name, value in measured.items() if not name.startswith("by_")}
    return Answer(measured, [_line(whole), *(f"{name}: {_line(part)}" for name, part in parts)])


def _line(measured: Mapping[str, Any]) -> str:
    shown = {
        key: "-" if value is None else f"{value:.3f}" if isinstance(value, float) else value
        for key, value in measured.items()
    }
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in shown.items())


@leakage.command()
@click.argument("files", nargs=-1, required=True, type=Named(path_type=Path), metavar="FILE...")
@click.option(
    "-o",
    "--output",
    type=Target(path_type=Path),
    default="leakage-weights.json",
    help="Write the thresholds to this file.",
)
@sensitivity_option
@answers
def calibrate(files: tuple[Path, ...], output: Path, sensitivity: float | None) -> Answer:
    """Fit the detector's thresholds to your own labels: pairs, whole conversations, or both in several files.

    Pairs fit the thresholds of single turns, conversations those of whole conversations; without files of a kind its
    thresholds stay as they are. `annotate labels` writes both kinds. Then search a run with the new thresholds. The
    file has thresholds for other values of --sensitivity too, as far as enough facts never come out.

    \b
    localsim leakage calibrate mine.jsonl mine.transcripts.jsonl -o mine.json
    localsim leakage bench others.jsonl --weights mine.json
    localsim score @last --weights mine.json
    """
    from localsim.errors import InvalidInput, writing
    from localsim.leakage.calibrate import calibrated, remarks
    from localsim.leakage.detector import LeakageDetector
    from localsim.leakage.pairs import LabelledPair, LabelledTranscript, read_labelled

    rows = [row for file in dict.fromkeys(files) for row in read_labelled(file)]
    pairs = [row for row in rows if isinstance(row, LabelledPair)]
    talks = [row for row in rows if isinstance(row, LabelledTranscript)]
    names = [file.name for file in dict.fromkeys(files)]
    try:
        with Reassurance("searching the labelled examples"):
            weights = calibrated(LeakageDetector(), pairs, talks, names, sensitivity)
    except InvalidInput as error:
        raise InvalidInput(error.message, where=", ".join(map(str, files)), hint=error.hint) from error
    with writing(output):
        weights.write(output)

    def text() -> Text:
        fitted = f"{len(pairs)} pairs and {weights.fitted['facts']} facts in {len(talks)} conversations"
        yield f"wrote {output}: thresholds fitted to {fitted}"
        for part, measured in weights.accuracy.items():
            shown = {key: value for key, value in measured.items() if isinstance(value, float)}
            yield f"on the same {part}, so too good: {_line(shown)}"
        yield from map(Note, remarks(weights))
        yield Note(f"next: localsim score @last --weights {output}")

    return Answer({"output": str(output), **weights.fitted, "accuracy": weights.accuracy}, text())


@click.command()
@click.option(
    "--family", "families", metavar="NAME", multiple=True, help="Check only this task family; may be repeated."
)
@click.option("--player", metavar="NAME", help="Play only the controls with this scripted player.")
@click.option(
    "--scenarios", type=click.IntRange(5, 1000), default=40, help="Generate this many scenarios for each task."
)
@answers
def controls(families: tuple[str, ...], player: str | None, scenarios: int) -> Answer:
    """Check every measure with scripted players whose behaviour is known. Needs no model; exit code 6 if one fails.

    \b
    localsim controls
    localsim controls --player yes-sayer
    """
    from localsim.errors import InvalidInput, TooManyFailures
    from localsim.families import FAMILIES
    from localsim.reports.validity.controls import controls_of, run_controls, table

    checked = run_controls(families, scenarios, player)
    if not checked:
        found = dict.fromkeys(each.player for name in families or FAMILIES.own for each in controls_of(name))
        players = ", ".join(found)
        hint = f"controls have the players {players}" if found else "docs/extending.md shows how a family declares them"
        raise InvalidInput(f"there is no control{f' with the player {player!r}' if players else ''}", hint=hint)
    failed = [each for each in checked if not each.passed]

    def text() -> Text:
        for family in dict.fromkeys(each.family for each in checked):
            yield Styled(f"\n{family}", bold=True)
            yield Table(*table([each for each in checked if each.family == family]))
        yield f"\n{len(checked) - len(failed)} of {len(checked)} values are what they must be"

    named = ", ".join(dict.fromkeys(f"{each.control.measure} with {each.control.player}" for each in failed))
    error = TooManyFailures(f"{len(failed)} controls failed: {named}", hint="do not report these measures")
    return Answer([each.as_json() for each in checked], text(), error if failed else None)
