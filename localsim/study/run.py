"""The stages of a study in order, and its files."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from localsim import paths
from localsim.backends.open import is_file, require_models
from localsim.leakage.detector import VERSION as DETECTOR
from localsim.models.registry import embedding_folder, resolve
from localsim.reports import paper
from localsim.reports.measures import published
from localsim.reports.render.html import render
from localsim.reports.render.tables import write_sections
from localsim.reports.report import Ask, of
from localsim.runs.versions import versions
from localsim.store.database import Store
from localsim.study import goals, natural
from localsim.study.beside import FILE
from localsim.study.design import FAILS, SUCCEEDS, Study, checksum, command, compare_plan, control_plan, teach_plan
from localsim.study.lessons import Lora, Taught, Teacher
from localsim.study.page import answer, as_markdown, sections
from localsim.study.results import StudiedModel, results_of
from localsim.study.stages import Notify, Session, Watch, silent, unwatched


def run_study(
    study: Study,
    say: Notify = silent,
    watch: Watch = unwatched,
    training: Callable[[Any], None] = silent,
    teacher: Teacher | None = None,
    cluster: str | None = None,
) -> dict[str, Any]:
    """Run or continue a study and return the content of study.json; it writes this, study.md and report.html to its
    folder.

    `watch` follows the simulations, `training` receives the `finetune.trainer.Progress` of each step. On a `cluster`
    (its address) episodes are played and judged; adapters are trained here. Raises InvalidInput, ModelMissing,
    BackendUnavailable (packages for fine-tuning are missing) or Interrupted.
    """
    teacher = teacher or Lora()
    study.folder.mkdir(parents=True, exist_ok=True)
    store = Store((study.folder / "study.duckdb").absolute(), waiting=say)
    session = Session(study, store, say, watch, training, cluster)
    _check(session, teacher)
    played = [_played(session, model, teacher) for model in study.models]
    with store.held() as reads:
        models = [results_of(reads, study, each) for each in played]
    parts = [part for model in models for part in answer(model, several=len(models) > 1)]
    data = {
        "size": study.size,
        "seed": study.seed,
        "plan": {"command": command(study), "scenarios": checksum(study.size)},
        "versions": _versions(),
        "models": models,
        "published": published(),
        "answer": [{"about": part.title, "sentences": part.lines} for part in parts],
    }
    text = paths.json_text(data, default=str)
    (study.folder / FILE).write_text(text + "\n", encoding="utf-8")
    with store.held() as reads:
        failed = {each.judged.judge for each in models if each.judged and not each.judged.passes}
        beside = _write_reports(reads, study.folder, played, failed)
    page = as_markdown(study, _versions(), models, parts, beside)
    (study.folder / "study.md").write_text(page, encoding="utf-8")
    for number, each in enumerate(models, start=1):
        write_sections(sections(each), study.folder / f"tables{_numbered(number)}")
    say(f"wrote {study.folder / 'study.md'}, {study.folder / 'report.html'}")
    found: dict[str, Any] = json.loads(text)
    return found


def _check(session: Session, teacher: Teacher) -> None:
    """Raise the errors of a study before its first episode, and not after hours of simulation."""
    for model in session.study.models:
        if session.study.arms:
            teacher.check(session, model)
        require_models(list(filter(None, (model, session.study.twin_of(model), session.study.judge_of(model)))))
    embedding_folder()


def _played(session: Session, model: str, teacher: Teacher) -> StudiedModel:
    study, lead = session.study, f"{model}: " if len(session.study.models) > 1 else ""
    runs = {"compare": session.stage(f"{lead}compare", compare_plan(study, model, study.modes))}
    twin, judge = study.twin_of(model) or "", study.judge_of(model) or ""
    if twin:
        runs[twin] = session.stage(f"{lead}{twin}, constructed", compare_plan(study, twin, study.modes))
    taught = Taught({}, {})
    if study.arms:
        runs["teach"] = session.stage(f"{lead}teach", teach_plan(study, model))
        taught = teacher.teach(session, model, runs["teach"])
    for arm, name in taught.models.items():
        runs[arm] = session.stage(f"{lead}{arm}", compare_plan(study, name, ("agents",)))
    name = Path(model).stem if model.endswith(".gguf") else model
    played = StudiedModel(name, _identity(model), runs, taught, twin, judge)
    if judge:
        for player in (SUCCEEDS, FAILS):
            runs[player] = session.stage(f"{lead}{player}", control_plan(study, player))
        session.say(f"== {lead}goals, judged by {judge}")
        goals.judge_all(session, [*played.scored, runs[SUCCEEDS], runs[FAILS]], judge)
        session.say(f"== {lead}naturalness, judged by {judge}")
        natural.judged(session, natural.pairs(played.conditions(session.store)), judge)
    return played


def _identity(model: str) -> str:
    if not is_file(model):
        return model
    file = resolve(model)
    return f"{file.name} (sha256 {file.sha256[:12]}...)"


def _versions() -> str:
    numbers = versions()
    others = ", ".join(f"{name} {number}" for name, number in numbers.items() if name != "localsim")
    return f"{numbers['localsim']}, {others}, leakage detector {DETECTOR}"


def _write_reports(store: Store, folder: Path, played: Sequence[StudiedModel], failed: Collection[str]) -> list[str]:
    """Write a report of each model with its arms, and the paper's figures beside ours; return its tables as lines.

    The scores of judges that `failed` are left out of tables and figures.
    """
    beside: list[str] = []
    for number, each in enumerate(played, start=1):
        conditions, end = each.conditions(store), _numbered(number)
        beside += [f"**{each.model}**", ""] if len(played) > 1 else []
        compared = paper.compared(store, conditions, failed)
        beside += [*paper.markdown(compared), ""]
        arms = [one for one in conditions if one.run_id != each.runs["compare"]]
        page = render(of(store, Ask(each.runs["compare"], arms, talks=True)))
        (folder / f"report{end}.html").write_text(page, encoding="utf-8")
        if find_spec("matplotlib"):
            paper.figures(compared, folder / f"figures{end}")
    return beside[:-1]


def _numbered(number: int) -> str:
    """Return the end of the names of a model's files."""
    return "" if number == 1 else f"-{number}"
