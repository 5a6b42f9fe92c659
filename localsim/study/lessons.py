"""The lessons of a study: the episodes that each arm is taught on, lessons of equal size for all, and the adapters.

Base, recipe, number format and seed are the same for all arms, and so are the numbers of tokens and of targets of each
task (`equal`). The arms still differ in chats and in the scenarios that fit into the tokens; the page prints both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from localsim.errors import InvalidInput
from localsim.evaluators.leaks import EVALUATOR as LEAKAGE
from localsim.families import family_of
from localsim.finetune import require_packages
from localsim.finetune.source import chats_of_episodes, episodes_of_run
from localsim.models.registry import ModelFile, layout_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.runs import episodes_in_mode
from localsim.study import equal
from localsim.study.design import FINE_TUNED, Arm, held_out, taught_cells
from localsim.study.equal import Amount
from localsim.study.stages import Session

if TYPE_CHECKING:
    from localsim.finetune.job import Material
    from localsim.finetune.trainer import Settings

Episodes = Mapping[str, Sequence[str]]
"""Arm -> ids of the episodes that it is taught on."""
RECIPE: dict[str, Any] = {"batch_tokens": 2048, "evaluations": 1}
"""The settings of all arms, as far as they are not the defaults. Steps have the same size on every device; large steps
would be too few for the lessons of a small study. The only evaluation is the last one, so that every adapter is trained
on all of its targets.
"""
COUNTS = ("chats", "scenarios", "shared_scenarios", "tokens", "targets")
VERSION = "4"
"""Version of the rules by which lessons are chosen; adapters of other rules are not reused."""


class Teacher(Protocol):
    """Teaches the arms of a study."""

    def check(self, session: Session, model: str) -> None:
        """Raise InvalidInput, ModelMissing or BackendUnavailable if the model cannot be taught here."""

    def teach(self, session: Session, model: str, run_id: str) -> Taught:
        """Teach every arm from the episodes of a run; whatever exists already is reused."""


@dataclass(frozen=True)
class Lesson:
    """What an arm is taught on."""

    taught_on: str
    run: str
    episodes: int
    candidates: int
    """Completed episodes of the run in the arm's mode."""
    available: int
    """Tokens of its episodes, of which it is trained on equally many as other arms."""
    left_out: str = ""
    """Why it is not taught; empty if it is."""
    tasks: Sequence[Amount] = ()
    """What it is trained on."""
    without: Mapping[str, str] = field(default_factory=dict)
    """Task that is left out of the lessons of all arms -> reason."""
    adapter: str = ""
    """Name of its file; empty if another teacher than `Lora` taught it."""
    loss: float | None = None
    """The validation loss; None before the training."""

    def total(self, count: str) -> int:
        """Return a count of COUNTS over all tasks; every scenario has one task."""
        return sum(getattr(each, count) for each in self.tasks)

    def as_json(self) -> dict[str, Any]:
        """Return the lesson as in notes and `study.json`: without what it has not."""
        row = {name: value for name, value in asdict(self).items() if value not in ("", None)}
        if self.left_out:
            del row["tasks"], row["without"]
            return row
        return row | {count: self.total(count) for count in COUNTS}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Lesson:
        """Read a lesson of a note."""
        own = {each.name: row[each.name] for each in fields(cls) if each.name in row}
        return cls(**own | {"tasks": [Amount(**each) for each in row.get("tasks", ())]})


@dataclass(frozen=True)
class Taught:
    """The taught models of a study."""

    models: Mapping[str, str]
    """Arm -> name of its model; arms that were left out are missing."""
    lessons: Mapping[str, Lesson]
    """Arm -> what it was taught on."""


class Lora:
    """Teaches with LoRA adapters, which are written to the folder of the study."""

    def check(self, session: Session, model: str) -> None:
        """Raise InvalidInput or ModelMissing for the model, BackendUnavailable if packages are missing."""
        session.study.base(model)
        require_packages()

    def teach(self, session: Session, model: str, run_id: str) -> Taught:
        """Train an adapter for every arm, or find it. A note beside the adapters has the settings and lessons of all
        arms; it is written before the first training, so a continued study measures no number format again.
        """
        base, folder = session.study.base(model), session.study.folder.absolute()
        ids = {arm.name: episodes_of_arm(session.store, run_id, arm) for arm in session.study.arms}
        digest = _digest(run_id, base, session.study.size.tokens, ids)
        note = folder / f"lessons-{digest}.json"
        found = json.loads(note.read_text(encoding="utf-8")) if note.is_file() else None
        lessons = {name: Lesson.from_json(row) for name, row in found["arms"].items()} if found else {}
        if not lessons or not all(_exists(folder / each.adapter) for each in lessons.values() if each.adapter):
            materials, lessons = prepared(session, model, run_id, ids)
            lessons |= {name: replace(lessons[name], adapter=f"{name}-{digest}.gguf") for name in materials}
            settings = _settings(found)
            _write(note, {"settings": asdict(settings), "arms": {arm: each.as_json() for arm, each in lessons.items()}})
            for name, data in materials.items():
                _train(session, model, base, folder, data, lessons[name], settings)
        for name, each in lessons.items():
            session.say(f"== learn, {name}: {each.left_out or each.adapter}")
        models = {name: f"{model}+{folder / each.adapter}" for name, each in lessons.items() if each.adapter}
        losses = {name: _loss(folder / lessons[name].adapter) for name in models}
        return Taught(models, {name: replace(each, loss=losses.get(name)) for name, each in lessons.items()})


def _digest(run_id: str, base: ModelFile, tokens: int | None, ids: Episodes) -> str:
    """Return a name for lessons by all that decides them: run, base, tokens, episodes, recipe and rules.

    The number format is not part of it: it is measured, and another outcome must not begin a study anew.
    """
    from localsim.finetune.trainer import Settings

    recipe = {key: value for key, value in asdict(Settings(**RECIPE)).items() if key != "bf16"}
    decides = [VERSION, run_id, base.sha256, tokens, {name: sorted(own) for name, own in ids.items()}, recipe]
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:8]


def _settings(found: Mapping[str, Any] | None) -> Settings:
    """Return the settings of all arms: those of an earlier note, or the recipe in the faster number format."""
    from localsim.finetune.trainer import Settings, bf16_is_faster

    return Settings(**found["settings"]) if found else replace(Settings(**RECIPE), bf16=bf16_is_faster())


def _write(note: Path, content: Mapping[str, Any]) -> None:
    part = note.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    part.replace(note)


def _exists(adapter: Path) -> bool:
    """Return True if a training has finished: the card is written last."""
    return adapter.with_suffix(".md").is_file()


def _train(
    session: Session, model: str, base: ModelFile, folder: Path, data: Material, lesson: Lesson, settings: Settings
) -> None:
    """Train one adapter unless it exists; an interrupted training continues."""
    from localsim.finetune import job

    adapter = folder / lesson.adapter
    if _exists(adapter):
        return
    amount = f"{lesson.total('chats')} chats, {lesson.total('tokens')} tokens"
    session.say(f"== learn, {adapter.stem}: {amount} of {lesson.taught_on}")
    source = {"taught_on": lesson.taught_on, "run": lesson.run, "episodes": lesson.episodes}
    layout = layout_of(model)
    job.finetune(job.Job(adapter.stem, base, model, data, settings, source, layout), session.training, folder=folder)


def _loss(adapter: Path) -> float | None:
    """Return the validation loss from the card of an adapter; None if no episode was left for it."""
    loss = json.loads(adapter.with_suffix(".json").read_text(encoding="utf-8"))["best_validation_loss"]
    return None if loss is None else float(loss)


# ---- material ------------------------------------------------------------------------------------------------------


def prepared(session: Session, model: str, run_id: str, ids: Episodes) -> tuple[dict[str, Material], dict[str, Lesson]]:
    """Return the material of each arm, of equal size, and the lesson of every arm.

    Raises InvalidInput if nothing is left of the first arm.
    """
    cells = taught_cells(session.study.size)
    arms = session.study.arms
    materials = {arm.name: _material(session, ids[arm.name], model, cells) for arm in arms}
    if not materials[FINE_TUNED].train:
        raise InvalidInput(
            "no scripts to train on", where=f"run {run_id}", hint="the model completed none: study another --model"
        )
    first = {tuple(ids[arm.name]): arm.name for arm in reversed(arms)}
    again = {arm.name: other for arm in arms if (other := first[tuple(ids[arm.name])]) != arm.name}
    kept, left_out = equal.able({name: data for name, data in materials.items() if name not in again}, cells)
    left_out |= {name: f"its episodes are those of {other}, so it would be the same" for name, other in again.items()}
    equalled, without = equal.equalled(kept, cells, session.study.size.tokens)
    if not equalled[FINE_TUNED].train:
        raise InvalidInput(
            "no task has targets in all arms",
            where=f"run {run_id}",
            hint="repeat the study with a larger --size or another --model",
        )
    lessons = {}
    for arm in arms:
        candidates = len(episodes_in_mode(session.store, episodes_of_run(session.store, run_id), arm.mode))
        lesson = Lesson(arm.taught_on, run_id, len(ids[arm.name]), candidates, materials[arm.name].tokens)
        if arm.name in left_out:
            lessons[arm.name] = replace(lesson, left_out=left_out[arm.name])
        else:
            amounts = equal.described(equalled[arm.name], cells, equalled[FINE_TUNED])
            reasons = {", ".join(cell): reason for cell, reason in without.items()}
            lessons[arm.name] = replace(lesson, tasks=amounts, without=reasons)
    return equalled, lessons


def _material(session: Session, ids: Sequence[str], model: str, cells: equal.Cells) -> Material:
    """Return the rows of an arm in the order of the scenarios; the held-out scenarios are the same for all arms."""
    from localsim.finetune import job

    rows, left_out = job.tokenized(chats_of_episodes(session.store, ids, layout_of(model)), session.study.base(model))
    order = {scenario: place for place, scenario in enumerate(cells)}
    rows.sort(key=lambda row: order[row.group])
    held = held_out(cells)
    train = [row for row in rows if row.group not in held]
    return job.Material(train, [row for row in rows if row.group in held], left_out)


def episodes_of_arm(store: Store, run_id: str, arm: Arm) -> list[str]:
    """Return the episodes of a run that an arm is taught on."""
    ids = episodes_in_mode(store, episodes_of_run(store, run_id), arm.mode)
    return ids if arm.mix_ups == 1 else with_mix_ups(store, run_id, ids, arm.mix_ups)


def with_mix_ups(store: Store, run_id: str, ids: Sequence[str], share: float) -> list[str]:
    """Return the episodes without mix-ups and, of those with mix-ups, a share spread over their order.

    A mix-up is found by the search for leaks and by the scores that a family names (`Family.unearned`). An episode that
    was not searched for leaks is left out. Uses that no instrument sees remain.
    """
    searched: set[str] = set()
    mixed: set[str] = set()
    for row in queries.scores(store, run_id):
        if row.evaluator == LEAKAGE:
            searched.add(row.episode_id)
        if (row.value or 0) > 0 and row.name in (UNTOLD, *family_of(row.family).unearned):
            mixed.add(row.episode_id)
    own = [episode_id for episode_id in ids if episode_id in mixed]
    dropped = {each for place, each in enumerate(own) if int((place + 1) * share) == int(place * share)}
    return [each for each in ids if each in searched | mixed and each not in dropped]


UNTOLD = "omniscient_leaks"
"""The score of the leak search that counts facts which an agent used without being told."""
