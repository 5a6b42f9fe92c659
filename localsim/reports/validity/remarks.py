"""The warnings that a reader needs before trusting the table of a report, and what each of them is about."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from localsim import families
from localsim.conversation.episode import counted
from localsim.families import EVERYDAY, family_of, title_of
from localsim.models.registry import constructed
from localsim.reports.conversation import playing
from localsim.runs.telling import of_people

Row = dict[str, Any]


def remarks_on(run: Row, comparison: Sequence[Row], told: playing.Playing = playing.SILENT) -> list[Row]:
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


def _of_episodes(run: Row, comparison: Sequence[Row]) -> Iterator[Row]:
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
