"""The warnings that a reader needs before trusting the table of a report, and what each of them is about."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localsim import families
from localsim.conversation.wording.wordings import counted
from localsim.families import family_of, title_of
from localsim.models.registry import constructed
from localsim.reports.evidence import playing
from localsim.reports.results import Result
from localsim.runs.telling import of_people


@dataclass(frozen=True)
class Remark:
    """A warning about some families or models; one without any is about the whole run."""

    text: str
    families: Sequence[str] = ()
    models: Sequence[str] = ()
    beside: bool = False
    """True if it says which conditions of another run are shown."""
    first: bool = False
    """True if it stands before the answer."""

    def as_json(self) -> dict[str, Any]:
        """Return a row of `remarks` in `report --json`."""
        found = {"text": self.text, "families": list(self.families), "models": list(self.models)}
        return {**found, "beside": True} if self.beside else found


def remarks_on(
    run: Mapping[str, Any], comparison: Sequence[Result], told: playing.Playing = playing.SILENT
) -> list[Remark]:
    """Return the warnings that a reader needs before trusting the table; `told` says whose talks do not play."""
    models = json.loads(run["models_json"])
    found = [Remark(text, [family]) for family, text in told.remarks()]
    found += [*of_models(models, [row.family for row in comparison]), *_of_episodes(run, comparison)]
    single, small = [], defaultdict(list)
    for family in families.in_order(row.family for row in comparison):
        own = [row for row in comparison if row.family == family and row.completed]
        if any(row.scenarios == 1 for row in own):
            single.append(family)
        if own and (least := min(row.completed for row in own)) < FEW:
            small[least].append(family)
    if single:
        found.append(Remark(ONE_SCENARIO, single))
    for least, which in sorted(small.items()):
        text = f"As few as {counted(least, 'completed episode')} in a cell: read the intervals, not the differences."
        found.append(Remark(text, which))
    found += [Remark(text, [family]) for family, text in _baselines(comparison)]
    return found


FEW = 30
"""A cell with fewer completed episodes gets a warning."""
ONE_SCENARIO = "A cell with one scenario has no intervals: nothing shows how far scenarios differ."


def of_models(models: Mapping[str, Any], played: Iterable[str]) -> Iterator[Remark]:
    """Yield the warnings about the models of a run, as `remarks_on` does.

    `models` are name -> identity, `played` the families of the run.
    """
    for name in models:
        if words := constructed(name):
            yield Remark(f"{name} is a constructed control: it was {words}.", models=[name])
    writers = [(name, part) for name, each in models.items() for part in each.get("parts", {name: each}).values()]
    scripted = list(dict.fromkeys(name for name, identity in writers if identity["kind"] == "scripted"))
    if scripted:
        text = f"{', '.join(scripted)}: played by a script, not by a language model."
        yield Remark(text, models=scripted)
    for start, text in SMALL_MODELS.items():
        found = [name for name, identity in writers if identity.get("file", "").startswith(start)]
        if found:
            yield from _of_small(text, found, families.in_order(played) if start in LESSONS else [])
    remote = {name: identity["url"] for name, identity in writers if identity["kind"] == "remote"}
    if remote:
        where = ", ".join(sorted(set(remote.values())))
        yield Remark(
            f"Remote: text was written at {where}; weights and seeds there are not verified.", models=list(remote)
        )


def _of_small(text: str, models: Sequence[str], played: Sequence[str]) -> Iterator[Remark]:
    """Yield what is known about a small model; where some of the families were not among its lessons, that as well."""
    strange = [name for name in played if name not in TAUGHT]
    if not strange:
        yield Remark(text, models=models)
        return
    if known := [name for name in played if name in TAUGHT]:
        yield Remark(text, known)
    yield Remark(untaught(models, strange), strange, first=True)


def untaught(models: Sequence[str], played: Iterable[str]) -> str:
    """Return what is said of starters that play families which were not among their tasks; empty if all were."""
    titles = " and ".join(f"“{title_of(family_of(name))}”" for name in played if name not in TAUGHT)
    return UNTAUGHT.format(model=" and ".join(dict.fromkeys(models)), titles=titles) if titles else ""


SMALL_MODELS = {
    "SmolLM2-135M": "SmolLM2-135M is a very small model: good for trying the tool, not for conclusions about people.",
    "localsim-starter.": (
        "The starter is a very small model, for trying the tool. It learnt from scripted players who never use the "
        "other side's facts, so that it does not peek says nothing about other models. It finds exactly the friends in "
        "common in 85% of fresh searches (its goal is 90%), and as the writer of a script in 43%: there it mixes up "
        "the sides."
    ),
}
"""Start of a file's name -> warning about models in such files."""
LESSONS = ("localsim-starter.",)
"""The start of the names of files whose warning is about the tasks that their model was trained on, TAUGHT."""
TAUGHT = families.FAMILIES.own
UNTAUGHT = (
    "{model} is a very small model, trained on searches for friends and on bargains. It plays {titles} poorly: good "
    "for trying the tool, not for conclusions."
)


def _of_episodes(run: Mapping[str, Any], comparison: Sequence[Result]) -> Iterator[Remark]:
    """Yield the warnings about missing and failed episodes."""
    total, done = run["episodes_planned"], sum(row.completed + row.failed for row in comparison)
    if done < total:
        people = of_people(run["repro"], json.loads(run["models_json"]))
        few = f"{total - done} of {total}"
        if people and run["status"] == "finished":
            yield Remark(f"{few} talks {'was' if total - done == 1 else 'were'} broken off; rates do not count such.")
        else:
            way = "" if people else f" (localsim resume {run['run_id']})"
            yield Remark(f"{few} planned episodes {'is' if total - done == 1 else 'are'} missing{way}.")
    yield from of_failures(comparison)


def of_failures(comparison: Iterable[Result], whose: str = "") -> Iterator[Remark]:
    """Yield the warning about failed episodes of these rows; `whose` names the run if it is another one."""
    rows = list(comparison)
    if failed := sum(row.failed for row in rows):
        done = counted(sum(row.completed + row.failed for row in rows), "episode")
        yield Remark(f"{failed} of {done}{whose} failed; rates count only completed ones.")


def _baselines(comparison: Iterable[Result]) -> Iterator[tuple[str, str]]:
    """Yield (family, warning) for each family whose scripted baseline is not in the run."""
    models: dict[str, str] = defaultdict(str)
    for row in comparison:
        models[row.family] += f" {row.model}"
    for name, played in models.items():
        baseline = family_of(name).baseline
        if baseline is not None and baseline.player not in played:
            yield name, baseline.warning
