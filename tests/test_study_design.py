"""The design of a study: its scenarios, counts, hours, plan and the episodes of its arms."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localsim.__main__ import run as main
from localsim.conversation.wording.layouts import FREE
from localsim.errors import InvalidInput
from localsim.families import FAMILIES
from localsim.machine.bench import Bench
from localsim.models.registry import layout_of
from localsim.store.database import Store
from localsim.study import ARMS, SIZES, hours, run_study
from localsim.study.design import command, compare_plan, compared_scenarios, tasks, teach_plan
from localsim.study.lessons import episodes_of_arm, with_mix_ups
from localsim.study.stages import Session
from tests.test_study_stages import PLAYERS, Players, study_in


def test_half_of_the_scenarios_have_no_solution() -> None:
    for size in SIZES.values():
        found, compared = tasks(size), compared_scenarios(size)
        assert len(found) == len(compared) == 2 * size.scenarios + size.situations
        for name in FAMILIES.own:
            own = [found[each.hash] for each in compared if each.scenario.family == name]
            assert abs(own.count("") - len(own) / 2) <= 0.5


BENCH = Bench("m", 1, 1, prefill=600, turn=500, decode_1=80, decode_together=200, perplexity=9, memory_mb=1)


def expected(size: str, bench: Bench = BENCH, **changes: Any) -> dict[str, float]:
    """The hours of a study of a scripted player."""
    return hours(study_in(Path("unused"), size=SIZES[size], **changes), "scripted", bench)


def test_counts_and_hours_name_every_stage() -> None:
    plain, whole = expected("small"), expected("small", twin="scripted:peeks-100", judge="scripted:judge")
    learning = [f"learn, {arm.name}" for arm in ARMS]
    assert list(plain) == ["compare", "teach", *learning, *PLAYERS]
    assert list(whole) == ["compare", "twin", "teach", *learning, *PLAYERS, "goals", "naturalness"]
    assert list(expected("small", arms=())) == ["compare"]
    four = expected("small", arms=(), iterative=True)["compare"]
    assert four == pytest.approx(plain["compare"] * 4 / 3, rel=0.1), "one mode more"
    assert len({whole[name] for name in learning}) == 1, "equal tokens take equal time"
    assert all(value > 0 for value in whole.values())
    assert SIZES["paper"].counts()["compare"] == 3 * 5 * (2 * 45 + 90) and SIZES["paper"].counts()["teach"] == 2520
    assert sum(expected("medium").values()) > 3 * sum(expected("small").values())


def test_a_small_study_of_half_a_billion_weights_takes_less_than_90_minutes() -> None:
    """By rates of Qwen2.5-Coder-0.5B with OpenVINO, two cores of an AMD EPYC, 2026-11-27; prefill as fast as a turn."""
    rates = Bench("m", 491, 1, prefill=900, turn=922, decode_1=80, decode_together=355, perplexity=9, memory_mb=1)
    assert 0.5 < sum(expected("small", rates, judge="scripted:judge").values()) < 1.5


def test_a_study_without_a_length_asks_for_none_and_has_no_arms() -> None:
    one = study_in(Path("unused"), size=SIZES["small"], model="smollm2-135m", arms=(), free=True)
    plan = compare_plan(one, one.model, one.modes)
    assert plan.layouts == {"smollm2-135m": f"{layout_of('smollm2-135m')}{FREE}"}
    assert command(one).endswith("--arms none --length free")
    with pytest.raises(InvalidInput, match="arms learn short lines"):
        replace(one, arms=ARMS)


def test_a_dry_run_tells_the_minutes_of_each_stage_and_simulates_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("localsim.machine.bench.bench", lambda *_: BENCH)
    monkeypatch.setattr("localsim.backends.llama.probe.ensure_works", lambda *_: None)
    assert main(["study", "--dry-run", "--json", "--twin", "none"]) == 0
    plan = json.loads(capsys.readouterr().out)
    stages = expected("small", judge="scripted:judge")
    assert list(plan["minutes"]) == list(stages)
    assert plan["minutes"]["compare"] == pytest.approx(60 * stages["compare"], abs=0.05)
    assert plan["hours_in_all"] == pytest.approx(sum(stages.values()), abs=0.005)
    assert (plan["twin"], plan["judge"]) == ("none", "starter")
    command = ["study", "--dry-run", "--size", "medium", "--judge", "none", "--second-model", "smollm2-135m"]
    assert main([*command, "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert second["model"] == "smollm2-135m" and second["twin"] == second["judge"] == "none"
    assert "naturalness" not in second["minutes"] and first["size"] == "medium"
    assert main(command) == 0 and "\n\nsize: medium\nmodel: smollm2-135m\n" in capsys.readouterr().out
    assert not Path("study").exists()


def test_a_missing_twin_or_judge_is_an_error_before_the_first_episode(tmp_path: Path) -> None:
    from localsim.errors import InvalidInput, ModelMissing

    for changes in ({"twin": "no-such-model"}, {"judge": "no-such-model"}):
        with pytest.raises(ModelMissing, match="no-such-model"):
            run_study(study_in(tmp_path, **changes), teacher=Players())
    assert main(["study", "--dry-run", "--twin", "none", "--judge", "no-such-model"]) == 4
    with pytest.raises(InvalidInput, match="names no server"):
        run_study(study_in(tmp_path, judge="openai:localhost:8080"), teacher=Players())
    assert not (tmp_path / "study.duckdb").exists()


def test_mix_ups_are_kept_out_of_the_clean_lessons(tmp_path: Path) -> None:
    """Scripts of searches in which players mix up names are lessons, half of them, or none; of honest ones all are."""
    scripts, half, clean = (arm for arm in ARMS if arm.mode == "script")
    for player, mixed in (("mix-up", 2), ("honest", 0)):
        session = Session(study_in(tmp_path), Store(tmp_path / f"{player}.duckdb"))
        run_id = session.stage("teach", teach_plan(session.study, f"scripted:{player}"))
        every, some, found = (episodes_of_arm(session.store, run_id, arm) for arm in (scripts, half, clean))
        assert len(every) == 4 and set(found) <= set(every)
        query = (
            "SELECT DISTINCT episode_id FROM v_scores WHERE mode = 'script' AND value > 0 AND name IN "
            "('mix_ups', 'limit_hit', 'omniscient_leaks')"
        )
        used = {row["episode_id"] for row in session.store.rows(query)}
        assert set(found) == set(every) - used
        assert set(found) <= set(some) and len(set(some) & used) == len(used) // 2
        searches = session.store.rows(f"SELECT episode_id FROM ({query} AND family = 'mutual_friends')")
        assert len(searches) == mixed
        assert not with_mix_ups(session.store, run_id, ["an episode that no instrument has read"], 0)
