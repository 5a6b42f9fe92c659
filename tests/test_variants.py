"""Variants of a run: the design, the wordings, the audit of perturbed prompts, and what the report makes of them."""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, fields
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.__main__ import run as ask
from localsim.annotation.items import items_of
from localsim.backends.scripted import ScriptedBackend
from localsim.conversation.episode import MODES, Sampling
from localsim.conversation.modes import MODES as PLAYS
from localsim.conversation.modes import Ask, roles
from localsim.conversation.prompts import agent_messages, writer_messages
from localsim.conversation.requests import Request
from localsim.conversation.scenario import WRITER
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe
from localsim.conversation.wording.paraphrases import WORDINGS
from localsim.conversation.wording.variants import MOST, variant_of
from localsim.conversation.wording.wordings import Wording
from localsim.errors import InvalidInput
from localsim.evaluators.choosing import Naturalness
from localsim.families import player_of, vocabulary
from localsim.reports import audit as audit_module
from localsim.reports.comparison import compare
from localsim.reports.compose.alone import report
from localsim.reports.evidence.turns import examples
from localsim.reports.render.html import render
from localsim.reports.render.markdown import as_markdown
from localsim.reports.validity.robustness import robustness, sentences, sign_turns
from localsim.runs import runner
from localsim.runs.plan import Plan, sampling_of
from localsim.scenarios.parse import parse_scenario
from localsim.stats.crossed import crossed, pooled
from localsim.store.database import Store
from localsim.store.queries import pages, scoring
from tests.conftest import TALK, Quiet, generated, spec_of

ALL = range(MOST)
THIRD = "  - name: Cy\n    goal: Taste the cake.\n"
THREE = TALK.replace("answer:", THIRD + "answer:")
LOADED = [
    parse_scenario(TALK, "t.yaml"),
    parse_scenario(THREE, "three.yaml"),
    generated("mutual_friends"),
    generated("craigslist", 4),
]

# ---- the design ----------------------------------------------------------------------------------------------------


def factors(number: int) -> dict[str, Any]:
    variant = variant_of(number)
    return {
        "wording": variant.wording,
        "spacing": variant.spacing.name,
        "temperature": variant.temperature,
        "penalties": (variant.dry, variant.repeat),
    }


def test_variant_0_is_the_run_as_it_is() -> None:
    assert factors(0) == {"wording": 0, "spacing": "plain", "temperature": 1.0, "penalties": (False, False)}
    usual = Sampling(temperature=0.123456789, repeat_penalty=1.3)
    assert variant_of(0).sampling(usual) is usual


@pytest.mark.parametrize("pair", list(combinations(factors(0), 2)))
def test_no_two_factors_vary_in_step(pair: tuple[str, str]) -> None:
    """In any eight variants each level comes equally often and no pair of levels twice; in all 32 each pair does."""
    cells = [(factors(number)[pair[0]], factors(number)[pair[1]]) for number in ALL[1:]]
    assert len(set(Counter(cells).values())) == 1
    for start in range(0, 32, 8):
        assert set(Counter(cells[start : start + 8]).values()) == {1}
        for place in (0, 1):
            assert len(set(Counter(cell[place] for cell in cells[start : start + 8]).values())) == 1


def test_there_are_at_least_eight_wordings_and_each_is_used_once_in_eight_variants() -> None:
    assert len(WORDINGS) >= 9
    assert sorted(factors(number)["wording"] for number in range(1, 9)) == list(range(1, 9))
    with pytest.raises(ValueError, match="there are"):
        variant_of(MOST)


@given(st.integers(1, MOST - 1), st.builds(Sampling, temperature=st.floats(0, 5), repeat_penalty=st.floats(1, 2)))
def test_a_variant_changes_temperature_and_penalties_only(number: int, usual: Sampling) -> None:
    varied, variant = variant_of(number).sampling(usual), variant_of(number)
    assert varied.temperature == pytest.approx(usual.temperature * variant.temperature, abs=1e-6)
    assert 0.75 <= variant.temperature <= 1.25
    assert (varied.dry_multiplier != usual.dry_multiplier) == variant.dry
    assert (varied.repeat_penalty != usual.repeat_penalty) == variant.repeat
    changed = {"temperature", "dry_multiplier", "repeat_penalty"}
    same = [field.name for field in fields(Sampling) if field.name not in changed]
    assert [getattr(varied, name) for name in same] == [getattr(usual, name) for name in same]


def test_all_variants_of_an_episode_have_its_seed_and_a_hash_of_their_own() -> None:
    specs = Plan((LOADED[2],), MODES, "scripted", episodes=2, perturb=MOST).specs()
    assert len(specs) == 2 * MOST * 3 == len({spec.hash for spec in specs})
    assert len({spec.seed for spec in specs}) == 2
    plain = Plan((LOADED[2],), MODES, "scripted", episodes=2).specs()
    assert {spec.hash for spec in plain} == {spec.hash for spec in specs if spec.variant == 0}
    assert spec_of(LOADED[2]).hash != spec_of(LOADED[2], variant=1).hash


def test_a_plan_without_variants_is_stored_as_before() -> None:
    plain, perturbed = (Plan((LOADED[2],), ("agents",), "scripted", perturb=count) for count in (0, 3))
    assert "perturb" not in json.loads(plain.as_json())
    assert json.loads(perturbed.as_json())["perturb"] == 3


@pytest.mark.parametrize("count", [-1, MOST + 1, 2.0, "3"])
def test_an_impossible_number_of_variants_is_one_error(count: Any) -> None:
    with pytest.raises(InvalidInput, match="perturb"):
        Plan((LOADED[2],), ("agents",), "scripted", perturb=count)


# ---- the wordings --------------------------------------------------------------------------------------------------


def texts_of(wording: Wording) -> Iterator[tuple[str, str]]:
    """Yield (place, text) for every instruction of a wording."""
    for field in fields(Wording):
        value = getattr(wording, field.name)
        parts = value.items() if isinstance(value, dict) else enumerate([value] if isinstance(value, str) else value)
        yield from ((f"{field.name}/{key}", text) for key, text in parts)


def places_in(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("number", range(1, len(WORDINGS)))
def test_a_paraphrase_has_the_same_places_in_other_words(number: int) -> None:
    usual, other = dict(texts_of(WORDINGS[0])), dict(texts_of(WORDINGS[number]))
    assert usual.keys() == other.keys()
    for place, text in other.items():
        assert places_in(text) == places_in(usual[place]), place
    alike = {place for place in usual if usual[place] == other[place]}
    assert {place.partition("/")[0] for place in alike} <= {"levels", "age"}, alike


@pytest.mark.parametrize("one", range(1, len(WORDINGS)))
def test_a_paraphrase_states_the_same_rules(one: int) -> None:
    """The length of a line, the ban on repeating and the openness of sides are said by every wording."""
    words = WORDINGS[one]
    for text in (words.reply, words.each_line):
        assert re.search(r"one or two short sentences|one short sentence, or two|no more than two short", text.lower())
    assert re.search(r"repe|same again|again|said", words.limit.lower())
    assert "role" in words.role.lower() or "part" in words.role.lower()
    for text in (words.closed, words.closed_goal):
        assert re.search(r"not|hidden|invisible|neither", text)
    assert not re.search(r"\bnot\b|invisible", words.open)
    assert "goodbye" in words.actions["leave"]
    for kind in ("non-verbal communication", "action"):
        assert re.search(r"\bwords\b|written|describe", words.actions[kind])


@pytest.mark.parametrize("number", ALL)
@pytest.mark.parametrize("loaded", LOADED, ids=lambda loaded: loaded.scenario.id)
def test_every_variant_tells_all_that_a_mode_grants_and_nothing_more(number: int, loaded: Any) -> None:
    scenario = loaded.scenario
    for mode in MODES:
        for viewer in roles(mode, scenario.names):
            seen = observe(scenario, mode, viewer, Transcript())
            messages = (writer_messages if viewer == WRITER else agent_messages)(seen, number)
            prompt = "\n\n".join(message.content for message in messages)
            granted = [scenario.setting, str(scenario.limits.turns), *scenario.names]
            for agent in seen.agents:
                granted += [text for text in (agent.goal, agent.secret) if text]
                mark = variant_of(number).spacing.mark
                for fact in agent.facts:
                    owner = "" if agent.name == viewer or agent.name in fact.text else f"{agent.name}: "
                    granted.append(f"{mark}{owner}{fact.text}\n")
                granted += [value.rstrip(".") for _, value in agent.profile]
            assert [text for text in granted if text not in f"{prompt}\n"] == []
            assert not list(audit_module.held(prompt, loaded, mode, viewer, [], number)), (mode, viewer)
            unfilled = prompt.replace(scenario.setting, "")
            assert not re.search(r"\{\w+\}", unfilled)


def test_every_variant_has_prompts_of_its_own() -> None:
    for loaded in LOADED:
        seen = observe(loaded.scenario, "mindreaders", loaded.scenario.names[0], Transcript())
        assert len({agent_messages(seen, number) for number in ALL}) == MOST
        whole = observe(loaded.scenario, "script", WRITER, Transcript())
        assert len({writer_messages(whole, number) for number in ALL}) == MOST


@given(st.text("{}ab:0! ", min_size=3, max_size=20).map(lambda text: f"x{text.strip()}x"), st.integers(0, MOST - 1))
@settings(max_examples=40, deadline=None)
def test_braces_in_a_scenario_are_text(words: str, number: int) -> None:
    document = TALK.replace("Find out whether Bo took the cake.", json.dumps(words))
    loaded = parse_scenario(document, "t.yaml")
    assert words in agent_messages(observe(loaded.scenario, "agents", "Ana", Transcript()), number)[0].content


def test_no_wording_holds_a_name_of_the_generated_tasks() -> None:
    """A withheld name that is a word of the instructions would look like a leak to the audit, or hide one."""
    said = {word for wording in WORDINGS for _, text in texts_of(wording) for word in re.findall(r"\w+", text)}
    assert not said & {*vocabulary.FIRST_NAMES}


def test_modes_send_the_prompt_of_the_variant() -> None:
    for mode in MODES:
        prompts = set()
        for number in ALL:
            step = next(PLAYS[mode](spec_of(LOADED[0], mode, variant=number)))
            assert isinstance(step, Ask)
            prompts.add(step.request.messages)
        assert len(prompts) == MOST


# ---- the audit -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    """A scripted run of two families in 8 variants and all modes."""
    store = Store(tmp_path_factory.mktemp("variants") / "d.duckdb")
    scenarios = (*(generated("mutual_friends", seed) for seed in (1, 2)), *(generated("craigslist", n) for n in (4, 5)))
    plan = Plan((*scenarios, LOADED[0]), MODES, "scripted:guesser", episodes=2, perturb=8)
    return store, runner.start(plan, store, Quiet(), print).run_id


def test_perturbed_prompts_pass_the_audit(played: tuple[Store, str]) -> None:
    found = audit_module.audit_run(*played)
    assert found.prompts_checked > 500 and found.violations == ()
    store, run_id = played
    rows = store.rows("SELECT variant, mode, count(*) AS n FROM v_episodes WHERE run_id = ? GROUP BY ALL", [run_id])
    assert len(rows) == 8 * 3 and {row["n"] for row in rows} == {5 * 2}


@given(st.integers(0, MOST - 1), st.sampled_from(["goal", "secret", "fact", "age"]), st.data())
@settings(max_examples=60, deadline=None)
def test_a_planted_text_is_found_in_every_variant(number: int, what: str, data: st.DataObject) -> None:
    loaded = parse_scenario(TALK.replace("relationship: friend", "relationship: stranger"), "t.yaml")
    bo = loaded.scenario.agents[1]
    hidden = {"goal": bo.goal, "secret": bo.secret or "", "fact": bo.facts[0].text}
    hidden["age"] = variant_of(number).words.age.format(text=bo.profile.age)
    lines = agent_messages(observe(loaded.scenario, "agents", "Ana", Transcript()), number)[0].content.split("\n")
    place = data.draw(st.integers(0, len(lines)))
    planted = "\n".join([*lines[:place], f"- {hidden[what]}", *lines[place:]])
    found = [kind for kind, _ in audit_module.held(planted, loaded, "agents", "Ana", [], number)]
    assert f"{what} of Bo" in found


# ---- shares of variance --------------------------------------------------------------------------------------------


def table(seed: int, scenarios: int, variants: int, seeds: int, sizes: tuple[float, ...]) -> dict[str, Any]:
    """Random values with known standard deviations of scenario, variant, both, seed and rest."""
    rng = np.random.default_rng(seed)
    by_scenario, by_variant = rng.normal(size=scenarios) * sizes[0], rng.normal(size=variants) * sizes[1]
    both, by_seed = rng.normal(size=(scenarios, variants)) * sizes[2], rng.normal(size=(scenarios, seeds)) * sizes[3]
    rest = rng.normal(size=(scenarios, seeds, variants)) * sizes[4]
    values = by_scenario[:, None, None] + by_variant[None, None, :] + both[:, None, :] + by_seed[:, :, None] + rest
    drop = 1 if seeds > 2 else 0  # scenarios of different sizes
    return {str(place): values[place, : seeds - drop * (place % 2)].tolist() for place in range(scenarios)}


def test_known_variances_are_recovered() -> None:
    sizes = (1.0, 0.7, 0.5, 0.6, 0.8)
    found = [crossed(table(seed, 10, 8, 3, sizes)) for seed in range(400)]
    means = np.mean([tuple(one) for one in found if one is not None], axis=0)
    assert means == pytest.approx([size**2 for size in sizes], rel=0.1)


def test_one_seed_leaves_seed_and_both_in_scenario_and_rest() -> None:
    sizes = (1.0, 0.7, 0.5, 0.6, 0.8)
    found = [crossed(table(seed, 12, 8, 1, sizes)) for seed in range(400)]
    assert all(one is not None and one.seed is None and one.both is None for one in found)
    means = np.mean([(one.scenario, one.variant, one.rest) for one in found if one], axis=0)
    assert means == pytest.approx([1.0 + 0.36, 0.49, 0.25 + 0.64], rel=0.1)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=5), st.lists(st.floats(-5, 5), min_size=2, max_size=5))
def test_what_depends_on_scenario_and_variant_alone_leaves_no_rest(one: list[float], other: list[float]) -> None:
    found = crossed({str(place): [[a + b for b in other]] * 2 for place, a in enumerate(one)})
    assert found is not None
    assert (found.both, found.seed, found.rest) == pytest.approx((0, 0, 0), abs=1e-9)
    assert found.scenario == pytest.approx(np.var(one, ddof=1), abs=1e-9)
    assert found.variant == pytest.approx(np.var(other, ddof=1), abs=1e-9)


def test_too_small_tables_have_no_shares() -> None:
    assert crossed({}) is None and crossed({"a": [[1.0, 2.0]]}) is None
    assert crossed({"a": [[1.0]], "b": [[2.0]]}) is None and pooled([]) is None


# ---- the report ----------------------------------------------------------------------------------------------------


def test_players_that_ignore_the_wording_have_no_variance_by_wording(played: tuple[Store, str]) -> None:
    made = robustness(*played)
    assert made is not None
    found = asdict(made)
    assert len(found["variants"]) == 8 and len(found["shares"]) > 5
    assert {row["family"] for row in found["shares"]} == {"mutual_friends", "craigslist"}
    for row in found["shares"]:
        assert (row["variant"], row["both"], row["rest"], row["units_left_out"]) == (0, 0, 0, 0), row
        assert row["scenario"] + row["seed"] == pytest.approx(1, abs=1e-3)
    assert found["contrasts"]
    for row in found["contrasts"]:
        assert row["holds"] == row["cells"] == 8 and not row["withheld"]
        assert {cell["estimate"] for cell in row["by_variant"]} == {row["estimate"]}


def test_a_run_without_variants_has_no_robustness(store: Store) -> None:
    run_id = runner.start(Plan((LOADED[2],), MODES, "scripted"), store, Quiet(), print).run_id
    data = report(store, run_id)
    assert data.robustness is None and not sign_turns(None, "mutual_friends", "success_rate", "information")
    assert "Variants of the prompts" not in as_markdown(data) + render(data)


class Reader(ScriptedBackend):
    """A planted player that reads its instructions: it plays well or badly by their line breaks and their openness."""

    turns_with_mode = True

    def _text(self, request: Request) -> str:
        told = request.messages[0].content
        good = "\n\n" in told
        if self.turns_with_mode and request.observation is not None and not request.observation.omniscient:
            good = not good
        self._player = player_of("friends" if good else "refuser")
        return super()._text(request)


@pytest.mark.parametrize("turns", [True, False])
def test_a_player_that_depends_on_the_variant_is_found(
    store: Store, monkeypatch: pytest.MonkeyPatch, turns: bool
) -> None:
    monkeypatch.setattr(Reader, "turns_with_mode", turns)
    played = player_of("friends")
    monkeypatch.setattr("localsim.backends.open.open_scripted", lambda name, _families: Reader(name, player=played))
    scenarios = tuple(generated("mutual_friends", seed) for seed in range(1, 5))
    plan = Plan(scenarios, ("agents", "mindreaders"), "scripted", episodes=2, perturb=5)
    run_id = runner.start(plan, store, Quiet(), print).run_id
    data = report(store, run_id)
    assert data.robustness is not None
    found = asdict(data.robustness)
    success = next(row for row in found["shares"] if row["measure"] == "success_rate")
    assert success["variant"] > 0.9
    row = next(row for row in found["contrasts"] if row["measure"] == "success_rate")
    assert row["contrast"] == "information" and row["cells"] == 5
    if turns:
        signs = [cell["estimate"] for cell in row["by_variant"]]
        blank = ["blank" in variant["spacing"] for variant in found["variants"]]
        assert signs == [1.0 if each else -1.0 for each in blank]
        assert (row["estimate"], row["holds"], row["withheld"]) == (-0.2, blank.count(False), True)
    assert sign_turns(data.robustness, "mutual_friends", "success_rate", "information") is turns
    assert not sign_turns(data.robustness, "mutual_friends", "success_rate", "authorship")
    assert data.headline.families[0].as_json()["verdicts"]["information"] == ("withheld" if turns else "not told")
    for page in (as_markdown(data), render(data)):
        assert "Variants of the prompts" in page and ("withheld" in page) == turns
    assert any("no difference is stated" in line for line in sentences(data.robustness)) is turns


def test_pairs_are_made_within_a_variant(store: Store) -> None:
    """Modes have a pair for each scenario, seed and variant; beside a plain run only variant 0 has partners."""
    scenarios = tuple(generated("mutual_friends", seed) for seed in (1, 2))
    runs = [
        runner.start(
            Plan(scenarios, ("agents", "mindreaders"), "scripted", episodes=2, perturb=count), store, Quiet(), print
        ).run_id
        for count in (0, 3)
    ]
    assert {row.test.n for row in compare(store, runs[1]) if row.measure.key == "turns"} == {2 * 2 * 3}
    assert {row.test.n for row in compare(store, *runs) if row.measure.key == "turns"} == {2 * 2}


def test_nobody_compares_modes_across_variants(played: tuple[Store, str]) -> None:
    """Judges, raters, pages and the report's examples pair conversations of one variant."""
    store, run_id = played
    variant = {row["episode_id"]: row["variant"] for row in store.rows("SELECT episode_id, variant FROM episodes")}
    judge = Naturalness("scripted")
    batches = judge.batches(scoring.subjects(store, run_id), {})
    judged = [pair for batch in batches for pair in zip(batch[::2], batch[1::2], strict=True)]
    rated = [item for item in items_of(store, run_id, "pairs", "rater") if not item.attention]
    assert len(judged) == len(rated) == 5 * 2 * 8 * 3
    assert all(one.variant == other.variant for one, other in judged)
    assert all(variant[item.episode.episode_id] == variant[item.second.episode_id] for item in rated)
    for episode_id in list(variant)[:20]:
        beside = pages.siblings(store, episode_id)
        assert len(beside) == 2 and {variant[row.episode_id] for row in beside} == {variant[episode_id]}
    shown = [episode for example in examples(store, run_id) for episode in example.episodes]
    assert shown and {variant[episode.episode_id] for episode in shown} == {0}


# ---- run and resume ------------------------------------------------------------------------------------------------


def test_the_dry_run_states_the_number_of_episodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.yaml").write_text(TALK)
    words = ["run", "t.yaml", "-m", "scripted", "--mode", "all", "-n", "2", "--perturb", "5", "--dry-run"]
    assert ask(words) == 0
    assert "1 scenarios x 3 modes x 2 x 5 variants = 30 episodes" in capsys.readouterr().out
    assert ask([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["variants"], found["episodes"]) == (5, 30)
    assert ask(["run", "t.yaml", "--perturb", "99"]) == 2
    assert "--perturb" in capsys.readouterr().err


def test_a_resumed_run_has_the_variants_that_were_planned(store: Store) -> None:
    plan = Plan((LOADED[0],), ("agents", "script"), "scripted", episodes=2, perturb=4)
    run_id = runner.start(plan, store, Quiet(), print).run_id
    query = "SELECT episode_id, variant, spec_hash FROM episodes WHERE run_id = ? ORDER BY ALL"
    before = store.rows(query, [run_id])
    with store.writing() as connection:
        for name in ("turns", "generations", "scores", "episodes"):
            late = "SELECT episode_id FROM episodes WHERE variant > 1"
            connection.execute(f"DELETE FROM {name} WHERE episode_id IN ({late})")
    watcher = Quiet()
    assert runner.resume(run_id, store, watcher, print).summary.completed == 16
    assert {episode.spec.variant for episode in watcher.episodes} == {2, 3}
    assert store.rows(query, [run_id]) == before


def test_the_settings_of_a_variant_are_stored_with_its_episodes(played: tuple[Store, str]) -> None:
    store, run_id = played
    rows = store.rows("SELECT DISTINCT variant, spec_json FROM episodes WHERE run_id = ? AND mode = 'script'", [run_id])
    for row in rows:
        wanted = variant_of(row["variant"]).sampling(sampling_of("scripted"))
        assert json.loads(row["spec_json"])["sampling"]["temperature"] == wanted.temperature
        assert json.loads(row["spec_json"])["sampling"]["dry_multiplier"] == wanted.dry_multiplier
