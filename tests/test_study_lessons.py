"""The lessons of a study: arms equal in tokens, targets and tasks, arms that are left out, and adapters found again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localsim.errors import InvalidInput
from localsim.families import FAMILIES
from localsim.finetune import job, trainer
from localsim.finetune.chats import TrainingRow
from localsim.finetune.job import Material
from localsim.models.registry import ModelFile
from localsim.store.database import Store
from localsim.study import ARMS, NONE, SIZES, Lora, Size, Study, lessons
from localsim.study.design import SOLVABLE, held_out, taught_cells
from localsim.study.equal import Amount, able, cut, described, equalled, targets_by_cell, tokens_by_cell, turns_of
from localsim.study.lessons import Lesson
from localsim.study.page import _lessons
from localsim.study.stages import Session

CELLS = {"f_1": ("f", "x"), "f_2": ("f", "y"), "f_3": ("f", "x"), "g_1": ("g", "x"), "g_2": ("g", "x")}
NAMES = sorted(set(CELLS.values()))


def row(group: str, tokens: int, turn: int = 1000) -> TrainingRow:
    """A row whose second half is learnt, in turns of at most so many tokens."""
    half = tokens // 2
    learnt = (place >= half and (place - half) % (turn + 1) < turn for place in range(tokens))
    return TrainingRow(tuple(range(tokens)), tuple(map(float, learnt)), group)


DRAWN = st.builds(row, st.sampled_from(sorted(CELLS)), st.integers(1, 40), st.integers(1, 9))
ROWS = st.lists(DRAWN, min_size=1, max_size=12)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), ROWS, min_size=1), st.none() | st.integers(4, 300))
def test_all_arms_have_exactly_as_many_tokens_and_targets_of_each_task(
    rows: dict[str, list[TrainingRow]], limit: int | None
) -> None:
    materials = {name: Material(own, [], 0) for name, own in rows.items()}
    found, left_out = equalled(materials, CELLS, limit)
    tokens = [tokens_by_cell(data.train, CELLS) for data in found.values()]
    targets = [targets_by_cell(data.train, CELLS) for data in found.values()]
    assert all(count == tokens[0] for count in tokens) and all(count == targets[0] for count in targets)
    before = [tokens_by_cell(data.train, CELLS) for data in materials.values()]
    used = [cell for cell in NAMES if any(count[cell] for count in before)]
    kept = [cell for cell in used if cell not in left_out]
    for cell in used:
        least = min(count[cell] for count in before)
        share = least if limit is None or cell in left_out else min(least, limit // len(kept))
        assert tokens[0][cell] == (0 if cell in left_out else share)
        assert cell in left_out or targets[0][cell] > 0, "no cell is silently without targets"
    assert all(cell in left_out for cell in used if not all(count[cell] for count in before))
    shortest = 0
    for name, data in found.items():
        whole = iter(materials[name].train)
        surplus = 0
        for part in data.train:  # rows in their order, each whole or the beginning of one; only weights are taken away
            own = next(each for each in whole if each.group == part.group and len(each.tokens) >= len(part.tokens))
            given = cut(own, len(part.tokens))
            assert part.tokens == given.tokens
            assert all(new in (0.0, old) for new, old in zip(part.weights, given.weights, strict=True))
            surplus += given.learnt_tokens - part.learnt_tokens
        shortest += surplus == 0
        cuts = [part for part in data.train if part.tokens not in {each.tokens for each in materials[name].train}]
        assert len(cuts) <= len(NAMES), "at most one row of a task is cut"
    assert shortest or len(kept) != 1, "some arm keeps all its targets, if there is one task"


def test_surplus_targets_are_whole_turns_but_one() -> None:
    long, short = row("f_1", 200, turn=9), replace(row("f_1", 200, turn=9), weights=(0.0,) * 160 + (1.0,) * 40)
    found, _ = equalled({"a": Material([long], [], 0), "b": Material([short], [], 0)}, CELLS, None)
    (kept,) = found["a"].train
    assert kept.learnt_tokens == 40 and found["b"].train == [short]
    before = dict(turns_of(long))
    parts = [(begin, end) for begin, end in turns_of(kept) if (begin, end) not in before.items()]
    assert len(parts) <= 1 and all(end in before.values() for _, end in parts), "the end of a turn stays"


def test_an_arm_with_few_targets_of_a_task_is_left_out_and_does_not_decide() -> None:
    materials = {
        "agents-ft": Material([row("f_1", 20)] * 5 + [row("g_1", 12)] * 10, [], 0),
        "whole": Material([row("f_3", 20)] * 2 + [row("g_2", 12)], [], 0),
        "poor": Material([row("f_3", 90), row("g_2", 8)], [], 0),
        "other": Material([row("f_2", 90), row("g_2", 120)], [], 0),
        "poorer": Material([row("f_3", 4), row("g_2", 8)], [], 0),
    }
    kept, left_out = able(materials, CELLS)
    assert list(kept) == ["agents-ft", "whole"]
    assert left_out == {
        "poor": "it has only 4 of 60 targets of g, x",
        "other": "it has only 0 of 50 targets of f, x",
        "poorer": "it has only 2 of 50 targets of f, x and 4 of 60 targets of g, x",
    }
    assert {data.tokens for data in equalled(kept, CELLS, None)[0].values()} == {52}


def prompted(group: str, prompt: int, targets: int) -> TrainingRow:
    """A row with a prompt, after which everything is learnt."""
    return TrainingRow(tuple(range(prompt + targets)), (0.0,) * prompt + (1.0,) * targets, group)


def test_a_task_that_an_arm_lacks_takes_no_tokens_from_the_others() -> None:
    """The first arm has no chat of one of three tasks: the other two share all tokens."""
    first = [prompted("f_1", 20, 80), prompted("g_1", 20, 80)]
    materials = {"agents-ft": Material(first, [], 0), "b": Material([*first, prompted("f_2", 20, 80)], [], 0)}
    kept, _ = able(materials, CELLS)
    found, left_out = equalled(kept, CELLS, 120)
    assert left_out == {("f", "y"): "agents-ft has only 0 tokens"}
    assert all(tokens_by_cell(data.train, CELLS) == {("f", "x"): 60, ("f", "y"): 0, ("g", "x"): 60}
               for data in found.values())  # fmt: skip


@pytest.mark.parametrize(("prompt", "reason"), [(70, "b has only 0 targets"), (58, "b has only 2 targets")])
def test_a_task_that_is_cut_inside_a_prompt_is_left_out_of_all_arms(prompt: int, reason: str) -> None:
    """One arm's chat of a task is cut where nothing, or next to nothing, of it is learnt."""
    other = prompted("g_1", 20, 100)
    materials = {
        "agents-ft": Material([prompted("f_1", 20, 100), other], [], 0),
        "b": Material([prompted("f_1", prompt, 100), other], [], 0),
    }
    found, left_out = equalled(materials, CELLS, 120)
    assert left_out == {("f", "x"): f"{reason} within 60 tokens"}
    for data in found.values():
        assert targets_by_cell(data.train, CELLS)["g", "x"] == 100, "the other task has all tokens"
        assert sum(each.tokens for each in described(data, CELLS, found["agents-ft"])) == 120


@pytest.mark.parametrize(
    ("tokens", "lines", "asides"),
    [
        (3, [0, 1, 2], {}),
        (4, [0, 1, 2, 3], {}),
        (6, [0, 1, 2, 3], {4: [10, 11]}),
        (9, [0, 1, 2, 3, 4, 5], {4: [10, 11, 12]}),
        (14, [0, 1, 2, 3, 4, 5, 6], {4: [10, 11, 12], 7: [20, 21, 22, 23]}),
        (16, [0, 1, 2, 3, 4, 5, 6, 7, 8], {4: [10, 11, 12], 7: [20, 21, 22, 23]}),
        (20, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], {4: [10, 11, 12], 7: [20, 21, 22, 23]}),
    ],
)
def test_a_row_with_asides_is_cut_after_its_first_turns(
    tokens: int, lines: list[int], asides: dict[int, list[int]]
) -> None:
    """Ten tokens of lines; after four of them an aside of three, and after seven one of four."""
    every = (*range(10), 10, 11, 12, 20, 21, 22, 23)
    found = cut(TrainingRow(every, tuple(map(float, every)), "f_1", ((10, 4), (13, 7))), tokens)
    assert [found.tokens[start:end] for start, end, _ in found.parts] == [tuple(lines), *map(tuple, asides.values())]
    assert [at for _, at in found.asides] == list(asides) and found.weights == tuple(map(float, found.tokens))


def test_the_description_counts_what_arms_share() -> None:
    first = Material([row("f_1", 100), row("f_2", 10)], [], 0)
    other = Material([row("f_1", 60), row("f_1", 20), row("f_3", 20), row("f_2", 10)], [], 0)
    one, two = described(other, CELLS, first)
    whole = Lesson("scripts", "run", 4, 4, 110, tasks=[one, two]).as_json()
    assert (whole["chats"], whole["scenarios"], whole["shared_scenarios"], whole["tokens"]) == (4, 3, 2, 110)
    assert one == Amount("f", "x", chats=3, scenarios=2, shared_scenarios=1, tokens=100, targets=50)
    assert (two.task, two.shared_scenarios, two.targets) == ("y", 1, 5)


@pytest.mark.parametrize("size", [*SIZES.values(), Size(1, 1, 1, 2, 1, 100)])
def test_the_same_scenarios_of_each_task_are_held_out_for_all_arms(size: Size) -> None:
    cells = taught_cells(size)
    held = held_out(cells)
    assert len(cells) == len(FAMILIES.own) * size.learnt and {task for _, task in cells.values()} > {SOLVABLE}
    for cell in set(cells.values()):
        own = [scenario for scenario, other in cells.items() if other == cell]
        count = len(held.intersection(own))
        assert count == (0 if len(own) == 1 else max(1, round(0.1 * len(own))))


def test_families_name_scores_that_they_give() -> None:
    for name in FAMILIES.own:
        scores = {measure.score for measure in FAMILIES[name].measures}
        assert FAMILIES[name].unearned and set(FAMILIES[name].unearned) <= scores


# ---- adapters ------------------------------------------------------------------------------------------------------

BASE = ModelFile("base", Path("base.gguf"), "ab" * 32)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A study whose base, episodes and training are stand-ins; `trained` in its folder lists what was trained."""
    size = Size(scenarios=1, situations=1, episodes=1, learnt=2, learnt_episodes=1, tokens=640)
    study = Study(size, "base", tmp_path, judge=NONE, twin=NONE)
    monkeypatch.setattr(Study, "base", lambda _self, _model=None: BASE)
    numbers = [1, 1, 2, 2, 3, 3, 4, 4]
    episodes = {"script": [f"s{number}" for number in numbers], "agents": [f"a{number}" for number in numbers]}
    monkeypatch.setattr(lessons, "episodes_of_run", lambda *_: [each for own in episodes.values() for each in own])
    monkeypatch.setattr(lessons, "episodes_in_mode", lambda _store, _ids, mode: episodes[mode])
    monkeypatch.setattr(
        lessons, "with_mix_ups", lambda _store, _run, ids, share: ids[1:] if share else [*ids[1:4], *ids[5:], ids[4]]
    )
    monkeypatch.setattr(lessons, "chats_of_episodes", lambda _store, ids, _layout: ids)
    monkeypatch.setattr(job, "tokenized", tokenized)
    monkeypatch.setattr(job, "finetune", trained)
    monkeypatch.setattr(trainer, "bf16_is_faster", lambda: True)
    return Session(study, Store(tmp_path / "study.duckdb"))


GROUPS = ("craigslist_40000", "mutual_friends_40000", "craigslist_40001", "mutual_friends_40001")


def tokenized(chats: list[str], _base: ModelFile) -> tuple[list[TrainingRow], int]:
    """A row of 150 tokens for each script, of 105 for each talk of agents, of which more are targets."""
    rows = {"s": row(GROUPS[0], 150), "a": replace(row(GROUPS[0], 105), weights=(0.0,) * 5 + (1.0,) * 100)}
    return [replace(rows[chat[0]], group=GROUPS[int(chat[1]) - 1]) for chat in chats], 0


def trained(learning: Any, _show: Any, folder: Path) -> Path:
    """Write an adapter and its card, and remember what it was trained on."""
    if (folder / "fail").exists() and (folder / "fail").read_text() in learning.name:
        raise KeyboardInterrupt
    with (folder / "trained").open("a") as log:
        targets = sum(each.learnt_tokens for each in learning.data.train)
        settings = learning.settings
        log.write(f"{learning.name} {learning.data.tokens} {targets} {settings.seed} {settings.bf16}\n")
    target = folder / f"{learning.name}.gguf"
    target.write_bytes(b"")
    card = {"best_validation_loss": 0.25}
    target.with_suffix(".json").write_text(json.dumps(card))
    target.with_suffix(".md").write_text("")
    return target


def log_of(folder: Path) -> list[list[str]]:
    return [line.split() for line in (folder / "trained").read_text().splitlines()]


def test_every_arm_is_taught_on_as_many_tokens_and_targets(session: Session, tmp_path: Path) -> None:
    taught = Lora().teach(session, "base", "run")
    assert list(taught.models) == [arm.name for arm in ARMS]
    # The clean arm lacks the first script, so it has only 150 tokens of this task; the limit is 160 for each of four.
    assert {tuple(line[1:]) for line in log_of(tmp_path)} == {("630", "300", "1", "True")}
    for name, lesson in taught.lessons.items():
        assert taught.models[name] == f"base+{tmp_path / lesson.adapter}"
        assert [part.tokens for part in lesson.tasks] == [160, 150, 160, 160]
        assert lesson.loss == 0.25 and lesson.total("scenarios") == lesson.total("shared_scenarios") == 4
    assert [lesson.episodes for lesson in taught.lessons.values()] == [8, 8, 7, 7]
    assert [lesson.available for lesson in taught.lessons.values()] == [1200, 840, 1050, 1050]


def test_a_task_that_is_left_out_is_noted_on_the_page(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """One task's scripts have a long prompt: within the tokens of the study nothing of them is learnt."""

    def long(chats: list[str], base: ModelFile) -> tuple[list[TrainingRow], int]:
        rows, _ = tokenized(chats, base)
        later = (0.0,) * 400 + (1.0,) * 400
        scripts = [(each, chat[0] == "s" and each.group == GROUPS[0]) for each, chat in zip(rows, chats, strict=True)]
        return [replace(each, tokens=(0,) * 800, weights=later) if script else each for each, script in scripts], 0

    monkeypatch.setattr(job, "tokenized", long)
    monkeypatch.setattr(lessons, "with_mix_ups", lambda _store, _run, ids, _share: ids)
    taught = Lora().teach(session, "base", "run").lessons
    family, task = taught_cells(session.study.size)[GROUPS[0]]
    reason = "agents-ft has only 0 targets within 160 tokens"
    note = f"{family}, {task} is left out of the lessons of all arms: {reason}."
    assert list(_lessons(taught).lines).count(note) == 1
    assert [len(lesson.tasks) for lesson in taught.values() if not lesson.left_out] == [3, 3]


def test_lessons_without_any_target_are_one_clear_error(session: Session) -> None:
    object.__setattr__(session.study.size, "tokens", 3)
    with pytest.raises(InvalidInput, match="no task has targets in all arms"):
        Lora().teach(session, "base", "run")


def test_an_arm_of_the_same_episodes_is_not_taught_twice(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lessons, "with_mix_ups", lambda _store, _run, ids, _share: ids)
    taught = Lora().teach(session, "base", "run")
    assert list(taught.models) == ["agents-ft", "agents-ft-agents"]
    assert "it would be the same" in taught.lessons["agents-ft-clean"].left_out


def test_adapters_are_found_again_and_an_interrupted_arm_is_trained_again(session: Session, tmp_path: Path) -> None:
    (tmp_path / "fail").write_text("agents-ft-agents")
    with pytest.raises(KeyboardInterrupt):
        Lora().teach(session, "base", "run")
    assert len(log_of(tmp_path)) == 1
    (tmp_path / "fail").unlink()
    trainer.bf16_is_faster = lambda: False  # type: ignore[assignment]  # undone by the fixture
    taught = Lora().teach(session, "base", "run")
    assert len(log_of(tmp_path)) == len(ARMS), "the finished arm is not trained twice"
    assert {line[-1] for line in log_of(tmp_path)} == {"True"}, "a continued study keeps its number format"
    job.finetune = lambda *_, **__: pytest.fail("nothing is left to train")  # undone by the fixture
    assert Lora().teach(session, "base", "run") == taught
    with pytest.raises(pytest.fail.Exception):
        Lora().teach(session, "base", "another run")


@pytest.mark.parametrize("change", ["recipe", "rules", "episodes"])
def test_adapters_of_another_recipe_or_of_other_lessons_are_not_reused(
    change: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Lora().teach(session, "base", "run")
    if change == "recipe":
        monkeypatch.setattr(lessons, "RECIPE", lessons.RECIPE | {"rank": 4})
    elif change == "rules":
        monkeypatch.setattr(lessons, "VERSION", "next")
    else:
        monkeypatch.setattr(lessons, "with_mix_ups", lambda _store, _run, ids, share: ids[:-1] if share else ids[1:-1])
    second = Lora().teach(session, "base", "run")
    assert len(log_of(tmp_path)) == 2 * len(ARMS) and not set(first.models.values()) & set(second.models.values())


def test_an_arm_without_chats_is_left_out_but_the_first_is_an_error(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def empty(chats: list[str], base: ModelFile) -> tuple[list[TrainingRow], int]:
        return tokenized([chat for chat in chats if not chat.startswith(missing)], base)

    monkeypatch.setattr(job, "tokenized", empty)
    missing = "a"
    taught = Lora().teach(session, "base", "run")
    assert list(taught.models) == ["agents-ft", "agents-ft-half", "agents-ft-clean"]
    assert taught.lessons["agents-ft-agents"].left_out.startswith("it has only 0 of 150 targets of craigslist, ")
    missing = "s"
    with pytest.raises(InvalidInput, match="no scripts to train on"):
        Lora().teach(session, "base", "another run")
