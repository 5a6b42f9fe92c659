"""The page of a study as Markdown: conditions, lessons, goals by task, null and premium, contrasts, naturalness, the
paper's numbers, and last the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from localsim.conversation.measures import Measure
from localsim.families import family_of, title_of
from localsim.families.base import SUCCESS
from localsim.reports.render.markdown import table
from localsim.reports.results import Number, Result, shown
from localsim.reports.sections import measure_table
from localsim.reports.validity.instruments import sentences as errors
from localsim.reports.validity.judges import sentence as rate_sentence
from localsim.study.answer import twin_name
from localsim.study.premium import BOTH
from localsim.study.results import EVERY

Row = dict[str, Any]


def as_markdown(data: Row, beside: Sequence[str] = ()) -> str:
    """Return the page; `beside` are lines of the paper's tables and figures beside ours."""
    models = data["models"]
    lines = ["# Study", "", f"{_size(data)} The answer in sentences is at the end of this page.", ""]
    lines += [f"**{sentence}**  " for model in models for sentence in model["playing"]["sentences"]]
    lines += [""] * (lines[-1] != "")
    for model in models:
        lines += [*_model(model, several=len(models) > 1)]
    if len(models) > 1:
        lines += ["## The models side by side", "", *_side_by_side(models), ""]
    lines += ["## Beside the paper", "", *beside, ""]
    lines += ["## How to read the tables", "", *_notes(data), ""]
    lines += ["## Answer", ""]
    for part in data["answer"]:
        lines += [f"**{part['about']}**", "", *(f"- {sentence}" for sentence in part["sentences"]), ""]
    lines.pop()
    return "\n".join(lines) + "\n"


def _size(data: Row) -> str:
    size = data["size"]
    episodes = "1 episode" if size["episodes"] == 1 else f"{size['episodes']} episodes"
    return (
        f"{size['scenarios']} scenarios of each family, {episodes} of each scenario and condition, "
        f"seed {data['seed']}. All conditions play the same scenarios with the same seeds; the lessons are from "
        f"{size['learnt']} other scenarios of each family. Versions: localsim {data['versions']}."
    )


def _model(model: Row, *, several: bool) -> Iterator[str]:
    """Yield the sections about one model."""
    head = "##" if not several else "###"
    if several:
        yield from (f"## {model['model']}", "")
    yield from (f"{head} Conditions", "", *_conditions(model), "")
    yield from (f"> {warning}  " for warning in model["warnings"])
    yield from ("", f"- runs: {', '.join(f'{stage} {run}' for stage, run in model['runs'].items())}", "")
    yield from (f"{head} Lessons of the arms", "", *_lessons(model), "")
    yield from (f"{head} Goals that the text proves", "", *_goals(model), "")
    yield from (f"{head} Null and premium", "", *_premiums(model["premiums"]), "")
    for family in dict.fromkeys(row["family"] for row in model["rows"]):
        yield from (f"{head} {title_of(family_of(family))}", "", *_family(model, family))
    yield from (f"{head} Contrasts of the arms", "", *_arms(model["arms"]), "")
    yield from (f"{head} Modes, pair by pair", "", *pair_table(model["modes"]), "")
    if model["twin"]:
        yield from (f"{head} Modes of {twin_name(model)}", "")
        yield from (*pair_table(model["twin"]["modes"]), "")
    yield from (f"{head} Naturalness", "", *_naturalness(model), "")


def _conditions(model: Row) -> Iterator[str]:
    yield f"Model: {model['identity']}."
    yield ""
    yield "| condition | each agent sees | model |"
    yield "|---|---|---|"
    seen = {"script": "one writer sees all", "mindreaders": "all sides"}
    for row in model["conditions"]:
        about = model["lessons"].get(row["label"])
        made = f"fine-tuned on {about['taught_on']}" if about else "as it is"
        if row["constructed"]:
            made = twin_name(model)
        yield f"| {row['label']} | {seen.get(row['mode'], 'its own side')} | {made} |"


def _lessons(model: Row) -> Iterator[str]:
    """Yield what each arm was taught on, whole and by task."""
    yield "| arm | taught on | episodes | tokens to train on | trained on | validation loss |"
    yield "|---|---|---|---|---|---|"
    taught = {name: row for name, row in model["lessons"].items() if "left_out" not in row}
    for name, row in model["lessons"].items():
        cells = [name, row["taught_on"], f"{row['episodes']} of {row['candidates']}", str(row.get("available", "-"))]
        if name in taught:
            cells += [f"{row.get('tokens', '-')} tokens, {row.get('targets', '-')} targets", _short(row.get("loss"))]
        else:
            cells += ["nothing", f"left out: {row['left_out']}"]
        yield f"| {' | '.join(cells)} |"
    yield from ("", "| family, task | arm | chats | scenarios | also of agents-ft | tokens | targets |")
    yield "|---|---|---|---|---|---|---|"
    parts = [(part, name) for name, row in taught.items() for part in row.get("tasks", ())]
    for part, name in sorted(parts, key=lambda each: (each[0]["family"], each[0]["task"])):
        counts = (part[key] for key in ("chats", "scenarios", "shared_scenarios", "tokens", "targets"))
        yield f"| {part['family']}, {part['task']} | {name} | {' | '.join(map(str, counts))} |"
    without = {task: reason for row in taught.values() for task, reason in row.get("without", {}).items()}
    yield ""
    yield from (f"- {task} is left out of the lessons of all arms: {reason}." for task, reason in without.items())
    yield ""
    yield (
        "All arms have the same base, recipe, number format and seed, and the same number of tokens and of targets of "
        "each task. *Tokens* are all tokens of the chats, prompts included; *targets* are the agent's own words, on "
        "which alone it is trained. In each task, the arm with the fewest tokens decides the tokens, then the one with "
        "the fewest targets the targets; the size of the study limits the tokens. All arms take the scenarios in one "
        "order; a tenth of them is held out, the same ones for all. "
        "*Without mix-ups* means that no instrument found a use of something untold; uses that no instrument sees "
        "remain. A validation loss is about chats of the same arm, so it does not compare arms."
    )


def _short(loss: float | None) -> str:
    return "-" if loss is None else f"{loss:.3f}"


def _goals(model: Row) -> Iterator[str]:
    """Yield success of every condition, those of the twin included, by family and task."""
    columns = {(row["family"], row["task"]): row["scenarios"] for row in model["rows"]}
    heads = [f"{family}, {task} ({scenarios} scenarios)" for (family, task), scenarios in columns.items()]
    yield f"| condition | {' | '.join(heads)} |"
    yield "|---|" + "---|" * len(heads)
    cells: dict[str, dict[tuple[str, str], str]] = {}
    for row in model["rows"]:
        cells.setdefault(row["condition"], {})[row["family"], row["task"]] = _share(row)
    for condition, found in cells.items():
        yield f"| {condition} | {' | '.join(found.get(column, '-') for column in columns)} |"
    yield ""
    yield "Rules read success from the text of each conversation: no model judges it. Brackets: 95% over scenarios."


def _premiums(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how much seeing every side, and one author for both, changed the model and its twin."""
    yield "| family | measure | changed by | model | scenarios | difference | p | less than | verdict |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        interval = f" [{row['low']:+.2f}, {row['high']:+.2f}]" if row["low"] is not None else ""
        equal = row["equivalence"]
        less = "-" if equal["p_holm"] is None else f"{equal['margin']:g}: p = {equal['p_holm']:.3f}"
        cells = [row["family"], row["heading"], row["contrast"], row["who"], str(row["scenarios"])]
        cells += [f"{row['difference']:+.2f}{interval}", _p(row), less]
        yield f"| {' | '.join([*cells, row['verdict']])} |"
    yield ""
    yield (
        "*information*: each agent sees every side (mindreaders minus agents); *authorship*: one author for both "
        "sides (script minus mindreaders). *Change*: the test over scenarios finds one (p <= .05); it is a premium "
        "where success rises, or turns get fewer at equal success. *Null*: no change is found, and a second test "
        "finds that it is less than the margin (p <= .05). *Not told*: neither. *N scenarios cannot exclude it*: "
        "neither, and the second test can find nothing with so few scenarios. "
        f"*{BOTH}*: the twin's difference minus the model's, scenario by scenario. Success and turns by information "
        "are primary. The change of success in one run, of the model or of its twin, is the declared outcome of this "
        "run: its p are uncorrected, as in the tables of modes. The p of the other primary rows are corrected together "
        "(Holm), and so are those of all other rows; the p of the second test likewise. The tables of modes correct "
        "p among more rows, so their p may be larger."
    )


def _naturalness(model: Row) -> Iterator[str]:
    """Yield what the judge and people chose, and the command that asks people."""
    judge = f"judged by {model['judge']}" if model["judge"] else "not judged by a model"
    yield f"Blind pairs of conversations on the same scenario and seed, {judge}:"
    yield ""
    yield from (f"- {rate_sentence(rate)}." for rate in model["naturalness"])
    yield from (f"- {line}" for line in model["people"] or ["No person has judged these pairs."])
    yield ""
    yield f"`{model['ask_people']}` asks people; their answers are shown here when the study is repeated."


# ---- tables --------------------------------------------------------------------------------------------------------


def _family(model: Row, family: str) -> Iterator[str]:
    """Yield the table of all tasks, and the goals of each task; success has a table of its own."""
    rows = [row for row in model["rows"] if row["family"] == family]
    for task in dict.fromkeys(row["task"] for row in rows):
        own = [row for row in rows if row["task"] == task]
        others = [each for each in model["measures"] if each["key"] != SUCCESS.key]
        measures = [_measure(each) for each in others if task == EVERY or each["group"] == "goals"]
        results = [_result(row, measures) for row in own]
        if not shown(measures, results):
            continue
        scenarios = max(row["scenarios"] for row in own)
        yield from (f"*{task}, {scenarios} scenarios" + ("" if task == EVERY else ": other goals") + "*", "")
        yield from (*table(measure_table(results, shown(measures, results))), "")


def _measure(each: Row) -> Measure:
    # The paper's numbers are about other tasks: they have a section of their own, which names the differences.
    return Measure(each["key"], each["heading"], each["meaning"], score="", kind=each["kind"])


def _result(row: Row, measures: Iterable[Measure]) -> Result:
    numbers = {
        each.key: Number(each.kind, *(row[f"{each.key}{end}"] for end in ("", "_low", "_high"))) for each in measures
    }
    counts = {name: row[name] for name in ("n", "scenarios", "completed", "failed")}
    return Result(row["family"], "", "", row["condition"], numbers=numbers, **counts)


def _arms(rows: Sequence[Row]) -> list[str]:
    """Return the contrasts of the arms as a table: success by task first, then the other measures over all tasks."""
    chosen = [row for row in rows if row["task"] == EVERY or row["measure"] == SUCCESS.key]
    return pair_table([row | {"family": f"{row['family']}, {row['task']}"} for row in chosen])


def pair_table(rows: Iterable[Row]) -> list[str]:
    """Return paired differences as a table; the rows are like those of `reports.comparison.compare`."""
    lines = ["| family | measure | first | second | pairs | difference | p |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        interval = f" [{row['low']:+.2f}, {row['high']:+.2f}]" if row["low"] is not None else ""
        p = "by construction" if row["by_construction"] else _p(row)
        lines.append(
            f"| {row['family']} | {row['heading']} | {row['first']} | {row['second']} | {row['n']} | "
            f"{row['difference']:+.2f}{interval} | {p} |"
        )
    return lines


def _p(row: Row) -> str:
    alone = row["primary"] and row["p_holm"] is None
    p = row["p"] if alone else row["p_holm"]
    return "-" if p is None else f"{p:.3f}" + (" (primary)" if row["primary"] else "")


def _side_by_side(models: Sequence[Row]) -> list[str]:
    """Return success of every condition and family, one column for each model."""
    names = [model["model"] for model in models]
    lines = ["| family, task | condition | " + " | ".join(names) + " |", "|---|---|" + "---|" * len(names)]
    cells: dict[tuple[str, str, str], dict[str, str]] = {}
    for model in models:
        for row in model["rows"]:
            found = cells.setdefault((row["family"], row["task"], row["condition"]), {})
            found[model["model"]] = _share(row)
    for (family, task, condition), found in cells.items():
        lines.append(f"| {family}, {task} | {condition} | {' | '.join(found.get(name, '-') for name in names)} |")
    return lines


def _share(row: Row) -> str:
    value, low, high = (row[f"success_rate{end}"] for end in ("", "_low", "_high"))
    return "-" if value is None else f"{value:.0%}" + ("" if low is None else f" [{low:.0%}, {high:.0%}]")


def _notes(data: Row) -> Iterator[str]:
    yield (
        "Intervals are 95%, over scenarios. Differences are second minus first on the same scenario and seed; p flips "
        "the signs of scenarios. In the tables of modes, the primary outcome is uncorrected and all others are "
        "corrected together (Holm). In the table of the arms, success over all tasks is primary: "
        "its p are corrected together, and those of all other rows together."
    )
    for model in data["models"][:1]:
        for line in errors(model["instruments"]):
            yield from ("", line)
