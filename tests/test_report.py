"""The numbers of a report: intervals against published ones, and rates over the right denominators."""

from __future__ import annotations

import importlib.util
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from localsim import families, stats
from localsim.conversation.measures import Measure
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput
from localsim.families import FAMILIES
from localsim.reports import results
from localsim.reports.card import card
from localsim.reports.compose.alone import report
from localsim.reports.document import Report
from localsim.reports.evidence.turns import examples
from localsim.reports.measures import Cell, by_episode, estimate, measures_of
from localsim.reports.render.html import render
from localsim.reports.render.markdown import as_markdown
from localsim.reports.results import Number
from localsim.reports.validity import head
from localsim.reports.validity.remarks import Remark, remarks_on
from localsim.runs.runner import Plan, Result, resume, start
from localsim.scenarios.parse import parse_scenario
from localsim.stats import NOTHING, Estimate, clustered, share
from localsim.store.conditions import without_episodes
from localsim.store.database import Store
from localsim.store.queries.reports import Episode, Score
from tests.conftest import TALK, Quiet, generated

ROOT = Path(__file__).resolve().parent.parent
HELDOUT = ROOT / "tests" / "data" / "endings_heldout.jsonl"


# ---- intervals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (8, 10, 0.490, 0.943),
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, table I, method 3 (score), and the three below
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0000),
    ],
)
def test_a_share_has_wilsons_interval(successes: int, n: int, low: float, high: float) -> None:
    found = share(successes, n)
    assert (found.value, found.n) == (successes / n, n)
    assert found.low == pytest.approx(low, abs=0.0006)
    assert found.high == pytest.approx(high, abs=0.0006)


def test_a_share_of_one_is_wide_and_of_none_is_nothing() -> None:
    one = share(1, 1)
    assert one.value == 1 and one.high == pytest.approx(1) and one.low == pytest.approx(0.2065, abs=0.0001)
    assert share(0, 0) == NOTHING == Estimate(None, None, None, 0)


def mean(values: Sequence[float], bounds: tuple[float | None, float | None] = (None, None)) -> Estimate:
    """The mean of independent values."""
    return clustered({str(place): [value] for place, value in enumerate(values)}, bounds)


def test_a_mean_of_few() -> None:
    assert mean([]) == NOTHING
    assert mean([0.25]) == Estimate(0.25, None, None, 1)
    assert mean([2.0, 2.0, 2.0]) == Estimate(2.0, None, None, 3), "equal values do not show how far others may lie"
    two = mean([0.0, 1.0])
    # error = 0.5, t(0.975, 1) = 12.7062
    assert two.low == pytest.approx(0.5 - 6.3531, abs=1e-3) and two.high == pytest.approx(0.5 + 6.3531, abs=1e-3)


def measured(**declared: Any) -> Measure:
    return Measure("key", "heading", "meaning", "score", **declared)


def scored(values: dict[str, list[float]], **names: dict[str, list[float]]) -> Cell:
    """A cell with scenario -> the scores of its episodes, and more scores by name."""
    scores = [
        Score(f"{scenario}{place}", "mutual_friends", "", name, None, value)
        for name, given in {"score": values, **names}.items()
        for scenario, own in given.items()
        for place, value in enumerate(own)
    ]
    known = {row.episode_id: row.episode_id[0] for row in scores}
    episodes = [
        Episode("r", "agents", "m", "", key, "mutual_friends", name, name, "completed", 0, 0, 0, 2)
        for key, name in known.items()
    ]
    return Cell("mutual_friends", episodes, scores, {})


def test_episodes_of_a_scenario_are_one_draw() -> None:
    once, often = scored({"a": [1.0], "b": [0.0], "c": [1.0]}), scored({"a": [1.0] * 5, "b": [0.0] * 5, "c": [1.0] * 5})
    share_of = measured(kind="share", summed="episodes")
    assert estimate(share_of, often)[:3] == pytest.approx(estimate(share_of, once)[:3])
    assert estimate(share_of, often).n == 15


def test_the_interval_of_a_report_is_that_of_its_json() -> None:
    """A page cuts nothing off: what leaves the range would be an error of the statistics."""
    found = estimate(measured(kind="position"), scored({"a": [0.9], "b": [0.1]}))
    assert Number("position", *found[:3]).interval == (found.low, found.high) == (0, 1)
    assert Number("share", 0.9, 0.5, 1.5).interval == (0.5, 1.5) and "50%, 150%" in str(Number("share", 0.9, 0.5, 1.5))


def test_bounds_of_a_measure() -> None:
    assert measured(kind="share").bounds == measured(kind="position").bounds == (0, 1)
    assert measured().bounds == (None, None) and measured(bounds=(0, None)).bounds == (0, None)
    assert measured(kind="share", summed="excess", per="chance").bounds == (None, 1)
    with pytest.raises(ValueError, match="per"):
        measured(summed="excess")


def test_hits_beyond_chance_are_a_ratio_of_sums() -> None:
    beyond = measured(kind="share", summed="excess", per="chance")
    made = scored({"a": [1.0, 1.0], "b": [0.0], "c": [1.0]}, chance={"a": [0.2, 0.5], "b": [0.5], "d": [0.2]})
    found = estimate(beyond, made)
    assert found.value == pytest.approx((2 - 1.2) / (3 - 1.2)) and found.n == 3, "tries with both scores"
    assert found.low is not None and found.high is not None and found.low < 0.44 < found.high <= 1
    assert by_episode(beyond, made.scores) == {"a0": 1, "a1": 1, "b0": pytest.approx(-1)}


# ---- talks whose outcome is known ----------------------------------------------------------------------------------


def leave(text: str) -> str:
    return json.dumps({"action": "leave", "text": text})


SILENCE = [json.dumps({"action": "none"})] * 3


def renamed(family: str, name: str, **parameters: Any) -> LoadedScenario:
    """An instance of a family under a name of its own."""
    document = FAMILIES[family].generate(name, 1, parameters)
    return LoadedScenario(*document.split(), f"{name}.yaml")


def deal(price: float) -> list[str]:
    return ["Hello.", f"How about ${price}?", f"Deal! ${price} it is.", leave("Great, see you then. Goodbye!")]


def recited(
    store: Store, tmp_path: Path, talks: list[tuple[LoadedScenario, list[str]]], **options: Any
) -> tuple[Report, Result]:
    """The report of a run in which each scenario's talk is given line by line."""
    lines = [line for _, talk in talks for line in talk]
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    scenarios = tuple(loaded for loaded, _ in talks)
    model = f"scripted:@{tmp_path / 'lines.txt'}"
    result = start(Plan(scenarios, ("agents",), model, parallel=1, **options), store, Quiet(), lambda _: None)
    return report(store, result.run_id), result


@pytest.fixture
def bargains(store: Store, tmp_path: Path) -> Report:
    """Six bargains: in the zone, outside it, without a zone, walked away, unclear, and one that failed."""
    names = ["inside", "outside", "walked", "unclear", "failed"]
    made = {name: renamed("craigslist", name, zone="yes") for name in names}
    made["nozone"] = renamed("craigslist", "nozone", zone="no")
    key = made["inside"].answer.answer
    talks = [
        (made["inside"], deal(key["seller_target"])),
        (made["outside"], deal(key["seller_target"] - 2)),
        (made["nozone"], deal(key["seller_target"])),
        (made["walked"], ["Hello.", leave("No deal. Goodbye!")]),
        (made["unclear"], SILENCE),
        (made["failed"], ["Hello."]),
    ]
    found, _ = recited(store, tmp_path, talks)
    return found


def test_rates_of_bargains_have_the_right_denominators(bargains: Report) -> None:
    (row,) = bargains.as_json()["comparison"]
    assert (row["n"], row["completed"], row["failed"]) == (6, 5, 1)
    assert row["deal_rate"] == 0.75, "three of the four whose ending is known"
    assert row["unknown_ending_rate"] == 0.2, "the unclear one of five completed episodes"
    assert row["deal_with_zone_rate"] == pytest.approx(2 / 3, abs=1e-4) and row["deal_without_zone_rate"] == 1
    assert row["in_zone_rate"] == 0.5, "one of the two deals in scenarios with a zone"
    assert row["success_rate"] == 0.25, "only the deal inside the zone"
    assert row["explicit_end_rate"] == 1, "the unclear one counts in no outcome"
    for key, successes, n in (("deal_rate", 3, 4), ("in_zone_rate", 1, 2), ("success_rate", 1, 4)):
        low, high = mean([1.0] * successes + [0.0] * (n - successes), (0, 1))[1:3]
        assert row[f"{key}_low"] == pytest.approx(low, abs=1e-4)
        assert row[f"{key}_high"] == pytest.approx(high, abs=1e-4)
    assert row["turns"] == pytest.approx((4 + 4 + 4 + 2 + 3) / 5, abs=1e-4), "the failed one is left out"
    assert row["first_mention"] is None and row["named_rate"] is None and row["first_mention_n"] == 0


def test_a_generation_that_could_not_be_had_is_not_malformed(bargains: Report) -> None:
    (row,) = bargains.as_json()["comparison"]
    assert row["malformed_rate"] == 0


def test_a_malformed_reply_counts_among_generations(store: Store, tmp_path: Path) -> None:
    talk = ["Hello.", "   ", "Hello to you.", leave("Bye.")]
    found, result = recited(store, tmp_path, [(parse_scenario(TALK, "talk.yaml"), talk)])
    assert result.summary.completed == 1
    assert found.comparison[0].value("malformed_rate") == 0.25, "one of four, tried again with success"


def test_surplus_goes_to_its_side(store: Store, tmp_path: Path) -> None:
    made = renamed("craigslist", "deal", zone="yes")
    key = made.answer.answer
    found, _ = recited(store, tmp_path, [(made, deal(key["seller_target"]))])
    (row,) = found.as_json()["comparison"]
    assert row["seller_surplus"] == 0
    expected = (key["buyer_target"] - key["seller_target"]) / key["list_price"]
    assert row["buyer_surplus"] == pytest.approx(expected, abs=1e-4) and row["buyer_surplus"] > 0
    assert row["buyer_surplus_low"] is None and row["buyer_surplus_high"] is None, "no interval from one value"


def asking(name: str) -> list[str]:
    return [f"Do you know {name}?", f"Yes, I know {name} too!", leave("Goodbye!")]


def test_first_mentions_are_of_those_that_were_made(store: Store, tmp_path: Path) -> None:
    made = {name: renamed("mutual_friends", name) for name in ("early", "late", "never")}
    made["none"] = renamed("mutual_friends", "none", common=0)
    friend = made["early"].answer.answer["mutual_friends"][0]
    talks = [
        (made["early"], asking(friend)),
        (made["late"], ["Hello.", "Hello.", *asking(friend)]),
        (made["never"], ["Hello.", leave("Goodbye!")]),
        (made["none"], ["Hello.", leave("Goodbye!")]),
    ]
    found, _ = recited(store, tmp_path, talks)
    (row,) = found.as_json()["comparison"]
    assert (row["n"], row["completed"], row["failed"]) == (4, 4, 0)
    assert row["first_mention"] == 0.25 and row["first_mention_n"] == 2, "0 and 2/4; never is not a position"
    assert row["named_rate"] == pytest.approx(2 / 3, abs=1e-4), "of the three that have a common friend"
    assert row["first_mention_turn"] == 8, "turns 1 and 3, and the limit of 20 for never"
    assert row["friend_confirmed_rate"] == pytest.approx(2 / 3, abs=1e-4)
    assert row["success_rate"] == 0.75, "the one without a friend in common agrees on nobody"
    assert row["explicit_end_rate"] == 1
    assert row["deal_rate"] is None and row["in_zone_rate"] is None and row["seller_surplus"] is None


def test_never_named_is_null(store: Store, tmp_path: Path) -> None:
    talks = [(renamed("mutual_friends", name), ["Hello.", leave("Goodbye!")]) for name in ("one", "two")]
    found, _ = recited(store, tmp_path, talks)
    (row,) = found.as_json()["comparison"]
    assert (row["first_mention"], row["first_mention_low"], row["first_mention_high"]) == (None, None, None)
    assert row["first_mention_n"] == 0
    assert row["named_rate"] == 0 and row["success_rate"] == 0
    assert json.loads(json.dumps(found.as_json()))["comparison"][0]["first_mention"] is None


def test_a_cell_in_which_all_failed_has_no_rates(store: Store, tmp_path: Path) -> None:
    found, result = recited(store, tmp_path, [(renamed("craigslist", "one"), ["Hello."])])
    assert (result.summary.completed, result.summary.failed) == (0, 1)
    (row,) = found.as_json()["comparison"]
    assert (row["n"], row["completed"], row["failed"]) == (1, 0, 1)
    of_turns = ("malformed_rate", "repaired_rate", "truncated_rate")  # of what was written, whatever came of it
    rates = {measure.key: row[measure.key] for measure in measures_of() if measure.key not in of_turns}
    assert set(rates.values()) == {None}, "nothing is 0 that was not seen"
    assert any("1 of 1 episode failed" in warning for warning in found.warnings)


def test_only_the_newest_scores_count(store: Store, tmp_path: Path) -> None:
    made = renamed("craigslist", "deal", zone="yes")
    _, result = recited(store, tmp_path, [(made, deal(made.answer.answer["seller_target"]))])
    with store.writing() as connection:
        connection.execute("INSERT INTO scores SELECT * REPLACE ('0' AS version, 0 AS value) FROM scores")
    (row,) = report(store, result.run_id).as_json()["comparison"]
    assert (row["success_rate"], row["deal_rate"], row["turns"]) == (1, 1, 4)


def test_a_row_for_each_family_mode_and_model(store: Store) -> None:
    talk = parse_scenario(TALK, "talk.yaml")
    plan = Plan(
        (generated("mutual_friends"), generated("craigslist"), talk),
        ("mindreaders", "script"),
        "scripted",
        roles={"Bo": "scripted:smalltalk"},
        episodes=2,
    )
    result = start(plan, store, Quiet(), lambda _: None)
    found = report(store, result.run_id)
    assert [(row.family, row.mode, row.model) for row in found.comparison] == [
        ("mutual_friends", "script", "scripted"),
        ("mutual_friends", "mindreaders", "scripted"),
        ("craigslist", "script", "scripted"),
        ("craigslist", "mindreaders", "scripted"),
        ("everyday", "script", "scripted"),
        ("everyday", "mindreaders", "scripted|scripted:smalltalk"),
    ]
    assert all(row.n == row.completed == 2 for row in found.comparison)
    everyday = found.as_json()["comparison"][4]
    assert everyday["success_rate"] is None and everyday["explicit_end_rate"] is None and everyday["words_per_turn"] > 0
    assert found.run.scenarios == ["craigslist.yaml", "mutual_friends.yaml", "talk.yaml"]
    assert found.run.plan["episodes"] == 2


# ---- warnings ------------------------------------------------------------------------------------------------------


def test_what_is_scripted_says_so(store: Store) -> None:
    plan = Plan((generated("craigslist"),), ("agents",), "scripted:firm")
    warnings = report(store, start(plan, store, Quiet(), lambda _: None).run_id).warnings
    assert any("scripted:firm: played by a script, not by a language model" in warning for warning in warnings)


def test_missing_episodes_are_counted_and_the_way_to_resume_is_named(store: Store) -> None:
    turns = iter(range(10_000))

    def stop_at_the_third() -> None:
        if next(turns) == 2:
            signal.raise_signal(signal.SIGINT)

    plan = Plan((generated("mutual_friends"),), ("agents",), "scripted", episodes=4, parallel=1)
    result = start(plan, store, Quiet(stop_at_the_third), lambda _: None)
    assert result.summary.stopped
    found = report(store, result.run_id)
    missing = [warning for warning in found.warnings if "missing" in warning]
    assert missing == [f"4 of 4 planned episodes are missing (localsim resume {result.run_id})."]
    assert sum(row.completed for row in found.comparison) == 0
    resume(result.run_id, store, Quiet(), lambda _: None)
    found = report(store, result.run_id)
    assert not any("missing" in warning for warning in found.warnings)
    assert found.comparison[0].completed == found.comparison[0].n == 4


def test_failed_episodes_are_counted(bargains: Report) -> None:
    assert "1 of 6 episodes failed; rates count only completed ones." in bargains.warnings
    assert not any("missing" in warning for warning in bargains.warnings)


def cell(completed: int, family: str = "craigslist", model: str = "m", failed: int = 0) -> results.Result:
    return results.Result(family, "agents", model, "agents", scenarios=2, completed=completed, failed=failed)


def warnings_of(*cells: results.Result, planned: int | None = None, **identity: Any) -> str:
    """Warnings about made-up cells of a made-up language model, one a line."""
    total = sum(row.completed + row.failed for row in cells)
    run = {"run_id": "r1", "repro": "stable", "episodes_planned": total if planned is None else planned}
    run["models_json"] = json.dumps({"m": {"kind": "llama", "file": "Other.gguf", **identity}})
    return "\n".join(each.text for each in remarks_on(run, list(cells)))


def test_small_numbers_are_said() -> None:
    assert "As few as 29 completed" in warnings_of(cell(29), cell(100))
    assert "As few as" not in warnings_of(cell(30), cell(100))
    assert "As few as 5 completed" in warnings_of(cell(5), cell(0, failed=3)), "an empty cell does not hide a small one"
    assert "As few as" not in warnings_of()
    assert "one scenario has no intervals" in warnings_of(replace(cell(50), scenarios=1), cell(50))


def test_a_warning_stands_where_it_matters() -> None:
    """At its family, at its model, or, if it is about the whole run or its place is unknown, before all tables."""
    cells = [cell(5), cell(50, "mutual_friends"), cell(50, "mutual_friends", "other")]
    run = {"run_id": "r1", "repro": "stable", "episodes_planned": 200}
    run["models_json"] = json.dumps({"m": {"kind": "scripted"}, "gone": {"kind": "remote", "url": "http://x"}})
    remarks = remarks_on(run, cells)
    told = [each.text for each in remarks]
    found = head.notes(Report(run, comparison=cells, remarks=[*remarks, Remark("Of unknown origin.")]))
    assert [text[:18] for text in found.families["craigslist"]] == ["As few as 5 comple"]
    assert [text[:14] for text in found.families["mutual_friends"]] == ["First mentions"]
    assert found.models == {"m": ["m: played by a script, not by a language model."]}
    assert [text.split()[0] for text in found.general] == ["Remote:", "95", "Of"]
    beside_rows = (*found.families.values(), *found.models.values())
    placed = [*found.general, *(text for texts in beside_rows for text in texts)]
    assert sorted(placed) == sorted([*told, "Of unknown origin."]), "none is lost"
    twice = [Remark("Small.", models=[name]) for name in ("m", "other")]
    found = head.notes(Report(run, comparison=cells, remarks=twice))
    assert found.models == {"m": ["Small."], "other": ["Small."]}, "one warning about models of two runs"


def test_leaks_that_were_not_looked_for_are_no_zeros(store: Store) -> None:
    plan = Plan((generated("craigslist"),), ("agents", "mindreaders"), "scripted")
    run_id = start(plan, store, Quiet(), lambda _: None).run_id
    data = report(store, run_id)
    assert [row.searched for row in data.comparison] == [0, 0]
    sentence = f"Leaks were not looked for: localsim score {run_id}"
    (table,) = head.tables(data)
    gaps = {str(heading): set(cells) for heading, *cells in table.table.rows}
    assert gaps["leaks"] == {head.NOT_SEARCHED}
    assert table.closing[0] == sentence and head.unsearched(data, "craigslist") == [sentence]
    data = replace(data, card=card(store, data))
    page, text = render(replace(data, talks=examples(store, run_id))), as_markdown(data)
    command = f"Leaks were not looked for</bdi>: <code>localsim score {run_id}</code>"
    assert page.count(command) == 2 and "not looked for</span>" in page, "at the head, and among all measures"
    assert text.count(sentence) == 2 and "| leaks | not looked for | not looked for |" in text
    some = [replace(row, searched=1, completed=2, private=2, missed=1) for row in data.comparison]
    assert head.unsearched(replace(data, comparison=some)) == [
        f"Leaks were looked for in only 2 of 4 conversations: localsim score {run_id}"
    ]
    searched = replace(data, comparison=[replace(row, searched=row.completed, missed=0) for row in some])
    assert head.unsearched(searched) == []
    (table,) = head.tables(searched)
    assert head.NOT_SEARCHED not in {cell for line in table.table.rows for cell in line}


def test_a_run_without_an_episode_has_a_report_that_says_so(store: Store) -> None:
    run_id = start(Plan((generated("craigslist"),), ("agents",), "scripted"), store, Quiet(), lambda _: None).run_id
    with store.writing() as connection:
        connection.execute("DELETE FROM episodes")
    assert without_episodes(store, (run_id,)) == run_id
    with pytest.raises(InvalidInput, match="no runs with a completed episode"):
        without_episodes(store, ())
    assert without_episodes(store, (f"{run_id}:agents",)) == ""
    data = report(store, run_id)
    data = replace(data, card=card(store, data))
    sentence = f"No conversation of this run has been completed, 1 were planned: localsim resume {run_id}"
    assert head.answer(data) == [sentence] and head.tables(data) == []
    assert "Nothing to compare yet" in render(data) and sentence in as_markdown(data)


def test_what_is_the_same_in_every_mode_is_named_and_not_drawn() -> None:
    keys = ("none", "one", "other", "known", "partly")
    measures = [Measure(key, key, key, score=key, published={"agents": 2.0} if key == "known" else {}) for key in keys]
    values = {"agents": (0.0, 1.5, 1.0, 0.0, 0.0), "script": (0.0, 1.5, 2.0, 0.0, None)}
    rows = [
        results.Result("f", mode, "m", mode, completed=3, numbers={
            key: Number(value=value) for key, value in zip(keys, each, strict=True)
        })
        for mode, each in values.items()
    ]  # fmt: skip
    differ, lines = head.constants(measures, rows)
    assert [each.key for each in differ] == ["other", "known", "partly"]
    assert lines == ["0 in every mode: none.", "1.5 in every mode: one."]
    assert head.constants(measures, rows, {"none"})[1] == ["1.5 in every mode: one."]
    assert head.constants(measures, rows[:1]) == (measures, []), "one mode alone is not every mode"


def test_the_smallest_model_is_called_so() -> None:
    assert "very small model" in warnings_of(cell(50), file="SmolLM2-135M-Instruct.Q4_1.gguf")
    assert warnings_of(cell(50)) == "", "nothing to warn of"


def test_first_mentions_want_a_guessing_baseline(store: Store) -> None:
    assert "guessing baseline" in warnings_of(cell(50, "mutual_friends"))
    baseline = cell(50, "mutual_friends", "scripted:guesser")
    assert "guessing baseline" not in warnings_of(cell(50, "mutual_friends"), baseline)
    assert "guessing baseline" not in warnings_of(cell(50, "craigslist"))
    for model, wanted in (("scripted", True), ("scripted:guesser", False)):
        plan = Plan((generated("mutual_friends"),), ("agents",), model)
        warnings = report(store, start(plan, store, Quiet(), lambda _: None).run_id).warnings
        assert any("scripted:guesser on the same scenarios" in warning for warning in warnings) == wanted


# ---- how often the parser is right ---------------------------------------------------------------------------------


def measuring() -> ModuleType:
    """scripts/measure_endings.py as a module."""
    spec = importlib.util.spec_from_file_location("measure_endings_for_report", ROOT / "scripts" / "measure_endings.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_accuracy_that_is_reported_is_what_is_measured(bargains: Report) -> None:
    script = measuring()
    rows = script.read_rows(HELDOUT)
    measured = script.as_json(script.measure(rows), HELDOUT.name, len(rows))
    stored = families.accuracy()
    assert stored is not None
    for key in ("file", "n", "measures"):
        same = stored[key] == measured[key]
        assert same, f"{key} differs: python scripts/measure_endings.py {HELDOUT} --write"
    assert bargains.parser_accuracy == stored


def test_an_accuracy_that_was_never_measured_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(families, "files", lambda _package: tmp_path)
    assert families.accuracy() is None


def test_all_intervals_are_of_the_stated_confidence() -> None:
    assert stats.CONFIDENCE == 0.95
