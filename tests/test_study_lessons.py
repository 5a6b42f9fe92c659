"""The lessons of a study's arms: equally many tokens for all, arms that are left out, and adapters found again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localsim.errors import InvalidInput
from localsim.families import FAMILIES
from localsim.finetune import job
from localsim.finetune.chats import TrainingRow
from localsim.finetune.job import Material
from localsim.models.registry import ModelFile
from localsim.store.database import Store
from localsim.study import ARMS, NONE, Lora, Size, Study, lessons
from localsim.study.lessons import able, cut, equalled, tokens_by_family
from localsim.study.stages import Session

FAMILY = {"f_1": "f", "f_2": "f", "g_1": "g", "g_2": "g"}


def row(group: str, tokens: int) -> TrainingRow:
    """A row whose second half is learnt."""
    return TrainingRow(tuple(range(tokens)), tuple(float(place >= tokens // 2) for place in range(tokens)), group)


ROWS = st.lists(st.builds(row, st.sampled_from(sorted(FAMILY)), st.integers(1, 40)), min_size=1, max_size=12)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), ROWS, min_size=1), st.none() | st.integers(2, 300))
def test_all_arms_have_exactly_as_many_tokens_of_each_family(
    rows: dict[str, list[TrainingRow]], limit: int | None
) -> None:
    materials = {name: Material(own, [], 0) for name, own in rows.items()}
    found = equalled(materials, FAMILY, limit)
    counts = [tokens_by_family(data, FAMILY) for data in found.values()]
    assert all(count == counts[0] for count in counts)
    before = [tokens_by_family(data, FAMILY) for data in materials.values()]
    for name, tokens in counts[0].items():
        least = min(count[name] for count in before)
        assert tokens == (least if limit is None else min(least, limit // 2)), "the smallest arm decides, or the limit"
    for name, data in found.items():
        whole = iter(materials[name].train)
        for part in data.train:  # rows in their order, each whole or the beginning of one
            own = next(each for each in whole if each.group == part.group and len(each.tokens) >= len(part.tokens))
            assert part == cut(own, len(part.tokens))
        cuts = [part for part in data.train if part not in materials[name].train]
        assert len(cuts) <= len(set(FAMILY.values())), "at most one row of a family is cut"


def test_an_arm_with_few_tokens_of_a_family_is_left_out_and_does_not_decide() -> None:
    rows = {"f": row("f_1", 100), "g": row("g_1", 100)}
    materials = {
        "agents-ft": Material(list(rows.values()), [], 0),
        "whole": Material([row("f_2", 40), row("g_2", 10)], [], 0),
        "poor": Material([row("f_2", 90), row("g_2", 9)], [], 0),
        "none": Material([rows["f"]], [], 0),
    }
    kept, left_out = able(materials, FAMILY)
    assert list(kept) == ["agents-ft", "whole"]
    assert left_out == {
        "poor": "it has only 9 tokens of g; scripts have 100",
        "none": "it has only 0 tokens of g; scripts have 100",
    }
    assert {data.tokens for data in equalled(kept, FAMILY, None).values()} == {50}


def test_families_name_scores_that_they_give() -> None:
    for name in FAMILIES.own:
        scores = {measure.score for measure in FAMILIES[name].measures}
        assert FAMILIES[name].unearned and set(FAMILIES[name].unearned) <= scores


# ---- adapters ------------------------------------------------------------------------------------------------------

BASE = ModelFile("base", Path("base.gguf"), "ab" * 32)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A study whose base, episodes and training are stand-ins; `trained` in its folder lists what was trained."""
    size = Size(scenarios=1, episodes=1, learnt=2, learnt_episodes=1, tokens=120)
    study = Study(size, "base", tmp_path, judge=NONE, twin=NONE)
    monkeypatch.setattr(Study, "base", lambda _self, _model=None: BASE)
    episodes = {"script": ["s1", "s2", "s3", "s4"], "agents": ["a1", "a2", "a3", "a4"]}
    monkeypatch.setattr(lessons, "episodes_of_run", lambda *_: [each for own in episodes.values() for each in own])
    monkeypatch.setattr(lessons, "episodes_in_mode", lambda _store, _ids, mode: episodes[mode])
    monkeypatch.setattr(lessons, "without_mix_ups", lambda _store, _run, ids: ids[1:])
    monkeypatch.setattr(lessons, "chats_of_episodes", lambda _store, ids: ids)
    monkeypatch.setattr(job, "material", material)
    monkeypatch.setattr(job, "finetune", trained)
    return Session(study, Store(tmp_path / "study.duckdb"))


GROUPS = ("craigslist_40000", "mutual_friends_40000", "craigslist_40001", "mutual_friends_40001")


def material(chats: list[str], *_: Any, **__: Any) -> Material:
    """A row of 50 tokens for each script, of 35 for each talk of agents."""
    sizes = {"s": 50, "a": 35}
    return Material([row(GROUPS[int(chat[1]) - 1], sizes[chat[0]]) for chat in chats], [], 0)


def trained(learning: Any, _show: Any, folder: Path) -> Path:
    """Write an adapter and its card, and remember what it was trained on."""
    if (folder / "fail").exists() and (folder / "fail").read_text() in learning.name:
        raise KeyboardInterrupt
    with (folder / "trained").open("a") as log:
        log.write(f"{learning.name} {learning.data.tokens} {learning.settings.seed}\n")
    target = folder / f"{learning.name}.gguf"
    target.write_bytes(b"")
    card = {"losses": [{"validation": 0.5}], "best_validation_loss": 0.25}
    target.with_suffix(".json").write_text(json.dumps(card))
    target.with_suffix(".md").write_text("")
    return target


def log_of(folder: Path) -> list[list[str]]:
    return [line.split() for line in (folder / "trained").read_text().splitlines()]


def test_every_arm_is_taught_on_equally_many_tokens(session: Session, tmp_path: Path) -> None:
    taught = Lora().teach(session, "base", "run")
    assert list(taught.models) == [arm.name for arm in ARMS]
    assert {(tokens, seed) for _, tokens, seed in log_of(tmp_path)} == {("110", "1")}
    for name, about in taught.about.items():
        assert taught.models[name] == f"base+{tmp_path / about['adapter']}"
        # Without the first script, the clean arm has 50 tokens of bargaining; the limit is 60 for each family.
        assert about["tokens_by_family"] == {"craigslist": 50, "mutual_friends": 60}
        assert (about["first_loss"], about["best_loss"]) == (0.5, 0.25)
    assert [about["episodes"] for about in taught.about.values()] == [4, 4, 3]
    assert [about["available"] for about in taught.about.values()] == [200, 140, 150]


def test_adapters_are_found_again_and_an_interrupted_arm_is_trained_again(session: Session, tmp_path: Path) -> None:
    (tmp_path / "fail").write_text("agents-ft-agents")
    with pytest.raises(KeyboardInterrupt):
        Lora().teach(session, "base", "run")
    assert len(log_of(tmp_path)) == 1
    (tmp_path / "fail").unlink()
    taught = Lora().teach(session, "base", "run")
    assert len(log_of(tmp_path)) == 3, "the finished arm is not trained twice"
    job.finetune = lambda *_, **__: pytest.fail("nothing is left to train")  # type: ignore[assignment]  # undone by the fixture
    assert Lora().teach(session, "base", "run") == taught
    with pytest.raises(pytest.fail.Exception):
        Lora().teach(session, "base", "another run")


def test_an_arm_without_chats_is_left_out_but_the_first_is_an_error(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def empty(chats: list[str], *_: Any, **__: Any) -> Material:
        if chats[0].startswith(missing):
            raise InvalidInput("no chats to train on")
        return material(chats)

    monkeypatch.setattr(job, "material", empty)
    missing = "a"
    taught = Lora().teach(session, "base", "run")
    assert list(taught.models) == ["agents-ft", "agents-ft-clean"]
    assert taught.about["agents-ft-agents"]["left_out"] == "it has no chats to train on"
    missing = "s"
    with pytest.raises(InvalidInput, match="no chats"):
        Lora().teach(session, "base", "another run")
