"""The report of a run: a row for each family and condition with intervals, warnings, and quoted leaks.

Columns are the measures of `reports.measures`; `reports.html` writes HTML.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from localsim import families
from localsim.annotation.agreement import agreement
from localsim.annotation.leak_judges import leak_judges
from localsim.conversation.episode import counted
from localsim.conversation.measures import Measure
from localsim.families import EVERYDAY, family_of, title_of
from localsim.models.registry import constructed
from localsim.reports.comparison import compare
from localsim.reports.conversation import playing
from localsim.reports.conversation.choices import choices
from localsim.reports.conversation.interviews import interviews
from localsim.reports.conversation.rubrics import rubric_rows
from localsim.reports.figures.curves import curves
from localsim.reports.measures import COUNTS, Cell, as_json, estimate, measures_of, of_family, sided
from localsim.reports.validity.correction import corrections
from localsim.reports.validity.head import answer
from localsim.reports.validity.headline import headline
from localsim.reports.validity.instruments import instruments, leak_sources
from localsim.reports.validity.judges import rates, reliability
from localsim.reports.validity.robustness import robustness, sign_turns
from localsim.reports.validity.thresholds import sentences, thresholds
from localsim.reports.validity.thresholds import warnings as mixtures
from localsim.runs.telling import is_search, of_people
from localsim.store.conditions import Condition, condition_of, in_order
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.runs import run_row

Row = dict[str, Any]
Key = tuple[str, Condition]
"""Family and condition."""

QUOTED = 12
"""Number of leaks that a report quotes."""


def report(store: Store, run_id: str) -> Row:
    """Return everything that `report --json` prints, except the simulation card, which is made from it."""
    with store.held() as reader:
        return _read(reader, run_id)


def _read(store: Store, run_id: str) -> Row:
    run = run_row(store, run_id)
    scores = list(sided(store, run_id, queries.scores(store, run_id)))
    found = table(store, run_id, scores)
    comparison = found["comparison"]
    used = thresholds(store, run_id) if any(row["private"] for row in comparison) else []
    told = playing.of_run(store, run_id)
    remarks = remarks_on(run, comparison, told)
    asked = {name.partition(".")[0] for name in {row["evaluator"] for row in scores}}
    data: Row = {
        "run": _run_json(run, store, run_id),
        "playing": told.as_json(),
        **found,
        "leaks": queries.leaks(store, run_id),
        "thresholds": used,
        "detector": used[0]["accuracy"] if used else None,
        "warnings": [*(each["text"] for each in remarks), *mixtures(store, used, run_id)],
        "remarks": remarks,
        "judges": reliability(store, run_id) if "judge" in asked else [],
        "naturalness": rates(store, run_id) if "naturalness" in asked else [],
        "annotations": agreement(store, run_id),
        "interviews": interviews(store, run_id),
        "rubrics": rubric_rows(store, run_id) if asked & {"judge", "rubric"} else [],
        "choices": choices(store, run_id) if "choose" in asked else [],
        "parser_accuracy": families.accuracy(),
    }
    data |= _errors(store, run_id, data, scores)
    data["robustness"] = robustness(store, run_id)
    compared = compare(store, run_id, scores=scores) if comparison else []
    data["headline"] = headline(data, compared, partial(sign_turns, data["robustness"]))
    return data


def beginning(store: Store, run_id: str) -> tuple[list[str], Row]:
    """Return the sentences that a report begins with, and its measures and rows, without what they do not need."""
    with store.held() as reader:
        run = run_row(reader, run_id)
        scores = list(sided(reader, run_id, queries.scores(reader, run_id)))
        data: Row = {"run": {**run, "models": json.loads(run["models_json"])}, **_rows(reader, run_id, scores)}
        data["playing"] = playing.of_run(reader, run_id).as_json()
        # Without an episode there are no conditions that could be compared.
        compared = compare(reader, run_id, scores=scores) if data["comparison"] else []
        data["headline"] = headline(data, compared, partial(sign_turns, robustness(reader, run_id)))
    return answer(data), data


def table(store: Store, run_id: str, scores: list[Row] | None = None) -> Row:
    """Return the measures of a run, its rows (comparison) and its curves.

    `scores` are the newest ones, with the sides of their agents, if they have been read.
    """
    scores = list(sided(store, run_id, queries.scores(store, run_id))) if scores is None else scores
    return {**_rows(store, run_id, scores), "curves": curves(store, run_id, scores)}


def _rows(store: Store, run_id: str, scores: Sequence[Row]) -> Row:
    """Return the measures of a run and its rows (comparison)."""
    found = cells(store, run_id, scores)
    measures = measures_of(dict.fromkeys(family for family, _ in found), {row["evaluator"] for row in scores})
    secret = queries.with_secrets(store, run_id)
    return {
        "measures": [as_json(measure) for measure in measures],
        "comparison": [_comparison_row(key, cell, measures, secret) for key, cell in found.items()],
    }


def _errors(store: Store, run_id: str, data: Row, scores: list[Row]) -> Row:
    """Return the errors of the instruments that the run relies on, and the leak rates corrected for them."""
    played = dict.fromkeys(row["family"] for row in data["comparison"] if row["completed"])
    private = {row["family"] for row in data["comparison"] if row["private"]}
    leaking = {row["family"] or EVERYDAY.name for row in scores if is_search(row)}
    searched = [name for name in played if name in leaking & private]
    return {
        "instruments": instruments(played, searched, data["judges"], data["thresholds"]),
        "leak_sources": [*leak_sources(searched), *sentences(data["thresholds"])],
        "leak_judges": leak_judges(store, [run_id]),
        "corrections": corrections(store, run_id),
    }


def foremost(leaks: Iterable[Row]) -> list[Row]:
    """Return the leaks to quote, at most QUOTED: omniscient ones first, then early ones, then the most probable."""
    ordered = sorted(leaks, key=lambda leak: (leak["kind"] != "omniscient", not leak["early"], -leak["probability"]))
    return ordered[:QUOTED]


def cells(store: Store, run_id: str, scores: Iterable[Row]) -> dict[Key, Cell]:
    """Return the cells in the order of a report: by family and condition. `scores` have the sides of their agents."""
    counted = queries.counts(store, run_id)  # before the episodes: a run that goes on adds more of them
    episodes: dict[Key, list[Row]] = defaultdict(list)
    keys: dict[str, Key] = {}
    for row in queries.episodes(store, run_id):
        keys[row["episode_id"]] = key = _key(row)
        episodes[key].append(row)
    scored: dict[Key, list[Row]] = {key: [] for key in episodes}
    places_of = {episode_id: scored[key] for episode_id, key in keys.items()}
    for row in scores:
        places_of[row["episode_id"]].append(row)
    counts: dict[Key, list[Row]] = defaultdict(list)
    for row in counted:
        counts[keys[row["episode_id"]]].append(row)
    places = families.in_order(family for family, _ in episodes)
    ordered = sorted(episodes, key=lambda key: (places.index(key[0]), in_order(key[1])))
    return {
        key: Cell(
            family=key[0],
            episodes=episodes[key],
            scores=scored[key],
            counts={
                name: {row["episode_id"]: (row[name] or 0, row[total] or 0) for row in counts[key]}
                for name, total in COUNTS.items()
            },
        )
        for key in ordered
    }


def _key(row: Row) -> Key:
    return row["family"] or EVERYDAY.name, condition_of(row)


def _comparison_row(key: Key, cell: Cell, measures: Iterable[Measure], secret: Collection[str]) -> Row:
    """Return a row of the table; `secret` are the hashes of the scenarios in which something could leak."""
    family, condition = key
    row: Row = {"family": family, "mode": condition.mode, "see": condition.see, "condition": condition.name}
    row |= {"model": condition.model, "n": len(cell.episodes)}
    row["scenarios"] = len({episode["scenario_hash"] for episode in cell.episodes})
    row |= {"completed": cell.count("completed"), "failed": cell.count("failed"), **_searched(cell, secret)}
    for measure in measures:
        found = estimate(measure, cell)
        row[measure.key] = _rounded(found.value)
        row[f"{measure.key}_low"], row[f"{measure.key}_high"] = _rounded(found.low), _rounded(found.high)
        if alike := cell.alike(of_family(measure, family)):
            row[f"{measure.key}_alike"] = alike
        if measure.kind == "position" or measure.summed == "excess":
            row[f"{measure.key}_n"] = cell.judged(of_family(measure, family))
    return row


def _searched(cell: Cell, secret: Collection[str]) -> Row:
    """Return the numbers of completed episodes that were searched for leaks, that had something to look for (private),
    and that had it and were not searched (missed).
    """
    completed = {row["episode_id"] for row in cell.episodes if row["status"] == "completed"}
    private = {row["episode_id"] for row in cell.episodes if row["scenario_hash"] in secret} & completed
    found = {row["episode_id"] for row in cell.scores if is_search(row)}
    return {"searched": len(completed & found), "private": len(private), "missed": len(private - found)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _run_json(run: Row, store: Store, run_id: str) -> Row:
    tokens = queries.tokens(store, run_id)
    return {
        "run_id": run_id,
        "status": run["status"],
        "started_utc": run["started_utc"].isoformat(),
        "finished_utc": run["finished_utc"].isoformat() if run["finished_utc"] else None,
        "seed": run["seed"],
        "repro": run["repro"],
        "parallel": run["parallel"],
        "episodes_planned": run["episodes_planned"],
        "models": json.loads(run["models_json"]),
        "versions": json.loads(run["versions_json"]),
        "plan": json.loads(run["plan_json"]),
        "scenarios": queries.scenario_paths(store, run_id),
        "tokens_generated": int(tokens["generated"]),
        "tokens_evaluated": int(tokens["evaluated"]),
    }


def remarks_on(run: Row, comparison: list[Row], told: playing.Playing = playing.SILENT) -> list[Row]:
    """Return the warnings that a reader needs before trusting the table: text, families, models.

    `told` says whose talks do not play. `families` and `models` are those that a warning is about; one without any is
    about the whole run.
    """
    models = json.loads(run["models_json"])
    found = [_remark(text, [family]) for family, text in told.remarks()]
    found += [*of_models(models, [row["family"] for row in comparison]), *_of_episodes(run, comparison)]
    single, small = [], defaultdict(list)
    for family in families.in_order(row["family"] for row in comparison):
        own = [row for row in comparison if row["family"] == family and row["completed"]]
        if any(row["scenarios"] == 1 for row in own):
            single.append(family)
        if own and (least := min(row["completed"] for row in own)) < FEW:
            small[least].append(family)
    if single:
        found.append(_remark(ONE_SCENARIO, single))
    for least, which in sorted(small.items()):
        few = f"{least} completed episode{'' if least == 1 else 's'}"
        text = f"As few as {few} in a cell: read the intervals, not the differences."
        found.append(_remark(text, which))
    found += [_remark(text, [family]) for family, text in _baselines(comparison)]
    return found


FEW = 30
"""A cell with fewer completed episodes gets a warning."""
ONE_SCENARIO = "A cell with one scenario has no intervals: nothing shows how far scenarios differ."


def _remark(text: str, of: Iterable[str] = (), models: Iterable[str] = ()) -> Row:
    return {"text": text, "families": list(of), "models": list(models)}


def of_models(models: Row, played: Iterable[str]) -> Iterator[Row]:
    """Yield the warnings about the models of a run, as `remarks_on` does.

    `models` are name -> identity, `played` the families of the run.
    """
    for name in models:
        if words := constructed(name):
            yield _remark(f"{name} is a constructed control: it was {words}.", models=[name])
    writers = [(name, part) for name, each in models.items() for part in each.get("parts", {name: each}).values()]
    scripted = list(dict.fromkeys(name for name, identity in writers if identity["kind"] == "scripted"))
    if scripted:
        text = f"{', '.join(scripted)}: played by a script, not by a language model."
        yield _remark(text, models=scripted)
    for start, text in SMALL_MODELS.items():
        found = [name for name, identity in writers if identity.get("file", "").startswith(start)]
        if found:
            yield from _of_small(text, found, families.in_order(played) if start in LESSONS else [])
    remote = {name: identity["url"] for name, identity in writers if identity["kind"] == "remote"}
    if remote:
        where = ", ".join(sorted(set(remote.values())))
        yield _remark(f"Remote: text was written at {where}; weights and seeds there are not verified.", models=remote)


def _of_small(text: str, models: Sequence[str], played: Sequence[str]) -> Iterator[Row]:
    """Yield what is known about a small model; where some of the families were not among its lessons, that as well."""
    strange = [name for name in played if name not in TAUGHT]
    if not strange:
        yield _remark(text, models=models)
        return
    if known := [name for name in played if name in TAUGHT]:
        yield _remark(text, known)
    titles = " or ".join(f"“{title_of(family_of(name))}”" for name in strange)
    yield _remark(UNTAUGHT.format(model=" and ".join(dict.fromkeys(models)), titles=titles), strange)


SMALL_MODELS = {
    "SmolLM2-135M": "SmolLM2-135M is a very small model: good for trying the tool, not for conclusions about people.",
    "localsim-starter.": (
        "The starter is a very small model. It was trained on these tasks in all three modes, on talks of scripted "
        "players who never used the other side's facts: how it talks is its teachers' habit. Its goal is to find "
        "exactly the friends in common in 90% of searches. On 60 fresh ones it found them in 85%, and as the writer "
        "of a script in 43%, because it mixes up the sides: that need not be a disadvantage of omniscience."
    ),
}
"""Start of a file's name -> warning about models in such files."""
LESSONS = ("localsim-starter.",)
"""The start of the names of files whose warning is about the tasks that their model was trained on, TAUGHT."""
TAUGHT = (*families.FAMILIES.own, EVERYDAY.name)
UNTAUGHT = (
    "{model} is a very small model and was not trained on {titles}: good for trying the tool, not for conclusions "
    "about people."
)


def _of_episodes(run: Row, comparison: list[Row]) -> Iterator[Row]:
    """Yield the warnings about missing and failed episodes."""
    total, done = run["episodes_planned"], sum(row["completed"] + row["failed"] for row in comparison)
    if done < total:
        people = of_people(run["repro"], json.loads(run["models_json"]))
        way = "" if people else f" (localsim resume {run['run_id']})"
        yield _remark(
            f"{total - done} of {total} planned episodes {'is' if total - done == 1 else 'are'} missing{way}."
        )
    failed = sum(row["failed"] for row in comparison)
    if failed:
        yield _remark(f"{failed} of {counted(done)} failed; rates count only completed ones.")


def _baselines(comparison: Iterable[Row]) -> Iterator[tuple[str, str]]:
    """Yield (family, warning) for each family whose scripted baseline is not in the run."""
    models: dict[str, str] = defaultdict(str)
    for row in comparison:
        models[row["family"]] += f" {row['model']}"
    for name, played in models.items():
        baseline = family_of(name).baseline
        if baseline is not None and baseline.player not in played:
            yield name, baseline.warning
