"""The lessons of a study: the episodes that each arm is taught on, equally many tokens for all, and the adapters.

Base, recipe and seed are the same for all arms, and so is the number of tokens of each family, prompts included, which
the smallest arm decides. The last chat of a family is cut to make the numbers equal. The arms still differ in
target tokens, in the scenarios that fit into the tokens, and in the share of tasks with a solution.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from localsim.errors import InvalidInput
from localsim.evaluators.leaks import EVALUATOR as LEAKAGE
from localsim.families import family_of
from localsim.finetune import require_packages
from localsim.finetune.source import chats_of_episodes, episodes_of_run
from localsim.models.registry import ModelFile
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.training import episodes_in_mode
from localsim.study.design import ARMS, FINE_TUNED, Arm, taught_scenarios
from localsim.study.stages import Session

if TYPE_CHECKING:
    from localsim.finetune.chats import TrainingRow
    from localsim.finetune.job import Material

Row = dict[str, Any]
LEAST = 0.1
"""An arm is left out if it has less than this share of the first arm's tokens of some family."""


class Teacher(Protocol):
    """Teaches the arms of a study."""

    def check(self, session: Session, model: str) -> None:
        """Raise InvalidInput, ModelMissing or BackendUnavailable if the model cannot be taught here."""

    def teach(self, session: Session, model: str, run_id: str) -> Taught:
        """Teach every arm from the episodes of a run; whatever exists already is reused."""


@dataclass(frozen=True)
class Taught:
    """The taught models of a study."""

    models: Mapping[str, str]
    """Arm -> name of its model; arms that were left out are missing."""
    about: Mapping[str, Row]
    """Arm -> taught_on, episodes, candidates, tokens, chats and losses; or left_out with the reason."""


class Lora:
    """Teaches with LoRA adapters, which are written to the folder of the study."""

    def check(self, session: Session, model: str) -> None:
        """Raise InvalidInput or ModelMissing for the model, BackendUnavailable if packages are missing."""
        session.study.base(model)
        require_packages()

    def teach(self, session: Session, model: str, run_id: str) -> Taught:
        """Train an adapter for every arm, or find it. A note beside the adapters records the material of all arms."""
        base, folder = session.study.base(model), session.study.folder.absolute()
        digest = _digest(run_id, base, session.study.size.tokens)
        note = folder / f"lessons-{digest}.json"
        about: dict[str, Row] = json.loads(note.read_text(encoding="utf-8")) if note.is_file() else {}
        if not about or not all(_exists(folder / row["adapter"]) for row in about.values() if "adapter" in row):
            materials, about = prepared(session, base, run_id)
            for name in materials:
                about[name]["adapter"] = f"{name}-{digest}.gguf"
            note.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
            for name, data in materials.items():
                _train(session, model, base, folder / about[name]["adapter"], data, about[name])
        for name, row in about.items():
            session.say(f"== learn, {name}: {row.get('left_out') or row['adapter']}")
        models = {name: f"{model}+{folder / row['adapter']}" for name, row in about.items() if "adapter" in row}
        return Taught(models, {name: row | _losses(folder, row) for name, row in about.items()})


def _digest(run_id: str, base: ModelFile, tokens: int | None) -> str:
    """Return a name for the lessons of a run, base and number of tokens."""
    return hashlib.sha256(f"{run_id} {base.sha256} {tokens}".encode()).hexdigest()[:8]


def _exists(adapter: Path) -> bool:
    """Return True if a training has finished: the card is written last."""
    return adapter.with_suffix(".md").is_file()


def _train(session: Session, model: str, base: ModelFile, adapter: Path, data: Material, about: Row) -> None:
    """Train one adapter unless it exists; an interrupted training continues."""
    from localsim.finetune import job
    from localsim.finetune.trainer import Settings, bf16_is_faster

    if _exists(adapter):
        return
    session.say(f"== learn, {adapter.stem}: {about['chats']} chats, {about['tokens']} tokens of {about['taught_on']}")
    source = {"taught_on": about["taught_on"], "run": about["run"], "episodes": about["episodes"]}
    learning = job.Job(adapter.stem, base, model, data, Settings(bf16=bf16_is_faster()), source)
    job.finetune(learning, session.training, folder=adapter.parent)


def _losses(folder: Path, row: Row) -> Row:
    """Return the validation loss after a quarter and at best, from the card of an adapter."""
    if "adapter" not in row:
        return {}
    card = json.loads((folder / row["adapter"]).with_suffix(".json").read_text(encoding="utf-8"))
    return {"first_loss": card["losses"][0]["validation"], "best_loss": card["best_validation_loss"]}


# ---- material ------------------------------------------------------------------------------------------------------


def prepared(session: Session, base: ModelFile, run_id: str) -> tuple[dict[str, Material], dict[str, Row]]:
    """Return the material of each arm, with equal tokens, and a description of every arm.

    Raises InvalidInput if nothing is left of the first arm.
    """
    size = session.study.size
    family = {each.scenario.id: each.scenario.family or "" for each in taught_scenarios(size)}
    ids = {arm: episodes_of_arm(session.store, run_id, arm) for arm in ARMS}
    every = {arm.name: _material(session.store, ids[arm], base, first=arm.name == FINE_TUNED) for arm in ARMS}
    kept, left_out = able({name: each for name, each in every.items() if each is not None}, family)
    materials = equalled(kept, family, size.tokens)
    about: dict[str, Row] = {}
    for arm in ARMS:
        candidates = len(episodes_in_mode(session.store, episodes_of_run(session.store, run_id), arm.mode))
        about[arm.name] = {
            "taught_on": arm.taught_on,
            "run": run_id,
            "episodes": len(ids[arm]),
            "candidates": candidates,
        }
        if arm.name not in materials:
            about[arm.name]["left_out"] = left_out.get(arm.name, "it has no chats to train on")
            continue
        data = materials[arm.name]
        about[arm.name] |= {
            "chats": len(data.train),
            "tokens": data.tokens,
            "tokens_by_family": tokens_by_family(data, family),
            "targets": sum(row.learnt_tokens for row in data.train),
            "available": every[arm.name].tokens,  # type: ignore[union-attr]  # it is in materials
        }
    return materials, about


def _material(store: Store, ids: Sequence[str], base: ModelFile, *, first: bool) -> Material | None:
    """Return the rows of an arm; None if nothing is left of an arm that is not the first."""
    from localsim.finetune import job

    try:
        return job.material(chats_of_episodes(store, ids), base, share=0.1, tokens=None, seed=1)
    except InvalidInput:
        if first:
            raise
        return None


def episodes_of_arm(store: Store, run_id: str, arm: Arm) -> list[str]:
    """Return the episodes of a run that an arm is taught on."""
    ids = episodes_in_mode(store, episodes_of_run(store, run_id), arm.mode)
    return without_mix_ups(store, run_id, ids) if arm.clean else ids


def without_mix_ups(store: Store, run_id: str, ids: Sequence[str]) -> list[str]:
    """Return the episodes in which no instrument found that an agent used what it had not been told.

    The instruments are the search for leaks, and the scores that a family names (`Family.unearned`). An episode that
    was not searched for leaks is left out. Uses that no instrument sees remain.
    """
    searched: set[str] = set()
    mixed: set[str] = set()
    for row in queries.scores(store, run_id):
        if row["evaluator"] == LEAKAGE:
            searched.add(row["episode_id"])
        if (row["value"] or 0) > 0 and row["name"] in (UNTOLD, *family_of(row["family"]).unearned):
            mixed.add(row["episode_id"])
    return [episode_id for episode_id in ids if episode_id in searched - mixed]


UNTOLD = "omniscient_leaks"
"""The score of the leak search that counts facts which an agent used without being told."""


def tokens_by_family(data: Material, family: Mapping[str, str]) -> dict[str, int]:
    """Return the training tokens of each family; `family` is keyed by the group of a row."""
    found: dict[str, int] = dict.fromkeys(sorted(set(family.values())), 0)
    for row in data.train:
        found[family[row.group]] += len(row.tokens)
    return found


def able(materials: Mapping[str, Material], family: Mapping[str, str]) -> tuple[dict[str, Material], dict[str, str]]:
    """Return the arms with enough tokens of every family, and the reason why each other arm is left out."""
    counts = {name: tokens_by_family(data, family) for name, data in materials.items()}
    wanted = next(iter(counts.values()), {})
    kept, left_out = {}, {}
    for name, data in materials.items():
        short = [each for each, tokens in wanted.items() if counts[name][each] < LEAST * tokens]
        if short:
            least = ", ".join(f"{counts[name][each]} tokens of {each}" for each in short)
            left_out[name] = f"it has only {least}; scripts have {wanted[short[0]]}"
        else:
            kept[name] = data
    return kept, left_out


def equalled(materials: Mapping[str, Material], family: Mapping[str, str], tokens: int | None) -> dict[str, Material]:
    """Return the arms cut to the same number of training tokens in each family, at most `tokens` in all.

    The smallest arm of a family decides. Rows keep their order; the last row of a family is cut.
    """
    counts = [tokens_by_family(data, family) for data in materials.values()]
    names = sorted(set(family.values()))
    limits = {name: min(count[name] for count in counts) for name in names}
    if tokens is not None:
        limits = {name: min(limit, tokens // len(names)) for name, limit in limits.items()}
    return {name: replace(data, train=_within(data.train, family, limits)) for name, data in materials.items()}


def _within(rows: Sequence[TrainingRow], family: Mapping[str, str], limits: Mapping[str, int]) -> list[TrainingRow]:
    left = dict(limits)
    found = []
    for row in rows:
        name = family[row.group]
        if left[name]:
            found.append(cut(row, left[name]))
            left[name] -= len(found[-1].tokens)
    return found


def cut(row: TrainingRow, tokens: int) -> TrainingRow:
    """Return the beginning of a row, at most so many tokens."""
    if len(row.tokens) <= tokens:
        return row
    return replace(row, tokens=row.tokens[:tokens], weights=row.weights[:tokens])
