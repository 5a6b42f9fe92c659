"""An archive is played again: its plan, its scenarios, models of the same sha256; then each text is compared."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from localsim.backends.open import is_file, models_of
from localsim.backends.person import NAME
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput, LocalsimError, ModelMissing
from localsim.families import FAMILIES
from localsim.models.checksums import checksum
from localsim.models.registry import entries, installed_path, resolve
from localsim.runs import trust
from localsim.runs.plan import Plan, plan_of
from localsim.runs.runner import Result, start
from localsim.runs.scheduler import Watcher
from localsim.runs.transfer.bundle import HINT, REPLIES, Archive, episodes_of, open_archive
from localsim.runs.versions import versions
from localsim.store.database import Store

_MOST = 100_000
"""Episodes of a scenario in a mode; a foreign plan with more would keep this machine busy for ever."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Compared:
    """An episode of an archive, and the same one of its replay."""

    file: str
    """Its name in the archive, such as episodes/talk/agents_0000.jsonl."""
    identical: bool
    """True if both files have the same bytes."""
    turn: int | None = None
    """The first turn that differs; None if none does."""


@dataclass(frozen=True)
class Replayed:
    """The result of a replay."""

    result: Result
    repro: str
    episodes: tuple[Compared, ...]

    @property
    def identical(self) -> int:
        """Number of identical episodes."""
        return sum(each.identical for each in self.episodes)

    def as_json(self) -> dict[str, Any]:
        """The object that `replay --json` prints."""
        return {
            "run_id": self.result.run_id,
            "repro": self.repro,
            "identical": self.identical,
            "episodes": [vars(each) for each in self.episodes],
        }


def why_not(repro: str, models: Iterable[str]) -> tuple[str, str]:
    """Return why nothing can play a run again, and what to do instead; ('', '') if it can be."""
    if repro == "imported":
        return "it holds imported conversations, which nothing can play again", ""
    for name in models:
        if name == NAME:
            return "a person played in it, whose turns nothing can write again", ""
        if [each for each in trust.reaching([name]) if each != name or not name.startswith(REPLIES)]:
            hint = "play its scenarios with localsim run, and name the model there"
            return f"{name} wrote in it, which an archive cannot hold", hint
    return "", ""


def plan_in(archive: Archive, folder: Path, where: str) -> Plan:
    """Return the plan of an archive for this machine; lines of scripted players are written to `folder`.

    Raises InvalidInput for people, servers and changed scenarios, ModelMissing for a model that is not here.
    """
    manifest = archive.manifest
    problem, hint = why_not(manifest["repro"], manifest["models"])
    if problem:
        raise InvalidInput(problem, where=where, hint=hint or None)

    def scenario_of(scenario_hash: str) -> LoadedScenario:
        if scenario_hash not in archive.scenarios:
            names = ", ".join(sorted(loaded.scenario.id for loaded in archive.scenarios.values()))
            hint = f"a scenario was changed, or another localsim wrote it; the archive has {names}"
            raise InvalidInput(f"no scenario has the hash {scenario_hash[:12]} of the plan", where=where, hint=hint)
        return archive.scenarios[scenario_hash]

    try:
        plan = plan_of(json.dumps(manifest["plan"]), scenario_of)
        parallel = manifest.get("parallel")
        if plan.episodes > _MOST or not (isinstance(parallel, int) and 0 < parallel <= _MOST):
            raise ValueError(f"{plan.episodes} episodes, {parallel!r} side by side")
        models = models_of(plan.specs())
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"its plan cannot be read: {error!r}", where=where, hint=HINT) from error
    for loaded in plan.scenarios:
        if loaded.scenario.family and loaded.scenario.family not in FAMILIES:
            raise InvalidInput(f"the family {loaded.scenario.family!r} is not installed", where=where)
    trust.refuse_unlisted(models, manifest["models"], where)
    here = {name: _here(name, identity, archive, folder, where) for name, identity in manifest["models"].items()}
    roles = {role: here.get(model, model) for role, model in plan.roles.items()}
    model = here.get(plan.model, plan.model)
    return replace(plan, model=model, roles=roles, parallel=parallel, weights="")


def _here(name: str, identity: Mapping[str, Any], archive: Archive, folder: Path, where: str) -> str:
    """Return the name that a model of the archive has on this machine."""
    if name.startswith(REPLIES):
        file = folder / f"{len(list(folder.iterdir()))}.jsonl"
        file.write_bytes(archive.replies[name])
        return f"{REPLIES}{file}"
    if not is_file(name):
        return name
    if not isinstance(identity, Mapping) or "sha256" not in identity:
        raise InvalidInput(f"it does not say which file {name} is", where=where, hint=HINT)
    return installed(name, str(identity["sha256"]), str(identity.get("file", name)))


def installed(name: str, sha256: str, file: str) -> str:
    """Return the name or path of an installed model with this sha256, the given name first. Raises ModelMissing."""
    found = ""
    try:
        here = resolve(name)
        if here.sha256 == sha256:
            return name
        found = f"; {name} is {here.path.name} with sha256 {here.sha256[:12]}... here"
    except LocalsimError:
        pass
    for entry in entries():
        path = installed_path(entry)
        if entry.kind == "chat" and path is not None and checksum(path) == sha256:
            return str(path)
    raise ModelMissing(
        f"the model {name} ({file}, sha256 {sha256[:12]}...) is not installed{found}",
        hint="copy that file to this machine and fetch it with: localsim models pull FILE",
    )


def differences(then: Mapping[str, Any], now: Mapping[str, str]) -> list[str]:
    """Return the versions that differ, in words."""
    return [
        f"{name} {then[name]} in the archive, {now[name]} here"
        for name in now
        if name in then and then[name] != now[name]
    ]


def replay(file: Path, store: Store, watcher: Callable[[Plan], Watcher], say: Say) -> Replayed:
    """Play an archive again as a new run, and compare every episode.

    Raises InvalidInput for an archive that cannot be played, ModelMissing for a model that is not installed.
    """
    archive = open_archive(file)
    for line in differences(archive.manifest["versions"], versions()):
        say(f"versions differ, so texts may: {line}")
    with tempfile.TemporaryDirectory() as folder:
        plan = plan_in(archive, Path(folder), str(file))
        result = start(plan, store, watcher(plan), say, leaks=False, name=None)
    now = episodes_of(store, result.run_id)
    compared = tuple(_compared(name, content, now.get(name, b"")) for name, content in archive.episodes.items())
    return Replayed(result, str(archive.manifest["repro"]), compared)


def _compared(name: str, then: bytes, now: bytes) -> Compared:
    if then == now:
        return Compared(name, identical=True)
    lines = (map(json.loads, content.decode().splitlines()) for content in (then, now))
    turns = ([line["turn"] for line in each if "turn" in line] for each in lines)
    first = next((number for number, (one, other) in enumerate(zip_longest(*turns)) if one != other), None)
    return Compared(name, identical=False, turn=first)
