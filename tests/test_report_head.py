"""The head of a report: pairs of measures that stay together, payoffs without a success, and turns of agents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from localsim import families
from localsim.reports.compose.alone import report
from localsim.reports.document import Report, Run, Term
from localsim.reports.results import Number, Result
from localsim.reports.validity import head
from localsim.runs import telling
from localsim.runs.runner import Plan, start
from localsim.store.database import Store
from localsim.store.queries.pages import EpisodeFilter, episodes_of_run
from tests.conftest import Quiet, generated


def test_hits_stay_beside_their_number_by_chance() -> None:
    """A pair of which one measure differs between modes stays in the tables; one that is the same everywhere goes."""
    pair = ("unearned_hits", "unearned_chance")
    every = families.family_of("mutual_friends").measures
    declared = [replace(each, head=True) for each in every if each.head or each.key in pair]
    rows = [
        Result("mutual_friends", mode, "m", mode, completed=2, searched=2, private=2,
               numbers={each.key: Number(value=1.0) for each in declared} | {"unearned_chance": Number(value=chance)})
        for mode, chance in (("agents", 0.2), ("script", 0.9))
    ]  # fmt: skip
    data = Report(Run("r"), comparison=rows, measures=declared)

    assert keys(data) == ["unearned_hits", "unearned_chance"], "side by side"
    assert "untold hits" not in " ".join(head.left_out(data, "mutual_friends"))
    assert keys(replace(data, comparison=[rows[0], replace(rows[0], mode="script", condition="script")])) == []


def keys(data: Report) -> list[str]:
    """The measures of the only head table but success."""
    (found,) = head.tables(data)
    return [
        term.key for term, *_ in found.table.rows if isinstance(term, Term) and term.key not in ("", "success_rate")
    ]


def test_a_game_without_a_success_has_its_payoff_in_the_head_and_counts_turns_of_agents(tmp_path: Path) -> None:
    store = Store(tmp_path / "games.duckdb")
    (scenario,) = [generated("public_goods", 3)]
    run = start(Plan((scenario,), ("agents",), "scripted:auto", seed=1), store, Quiet(), lambda _: None)
    data = report(store, run.run_id)
    assert set(families.family_of("public_goods").figure) & set(keys(data))
    (turns,) = [row["value"] for row in store.rows("SELECT value FROM scores WHERE name = 'turns'")]
    (listed,) = episodes_of_run(store, run.run_id, EpisodeFilter(), ())
    assert listed.turns == turns < len(store.rows("SELECT turn FROM turns"))
    (row,) = store.rows("SELECT turns, tells FROM v_episodes")
    (told,) = store.rows("SELECT count(*) AS n FROM turns WHERE speaker = ''")
    assert row == {"turns": turns, "tells": told["n"]} and told["n"] > 0, "what the rules told is counted apart"


def test_leaks_are_told_as_not_looked_for_only_where_there_was_something_to_look_for(tmp_path: Path) -> None:
    store = Store(tmp_path / "games.duckdb")
    open_game, hidden = generated("public_goods", 3), generated("mutual_friends", 3)
    told = {}
    for name, scenarios in (("open", (open_game,)), ("hidden", (hidden,)), ("both", (open_game, hidden))):
        run = start(Plan(scenarios, ("agents",), "scripted:auto", seed=1), store, Quiet(), lambda _: None, leaks=False)
        data = report(store, run.run_id)
        told[name] = (head.unsearched(data), telling.unsearched(store, run.run_id))
        families_told = [row.family for row in data.comparison if head.gap(head.LEAKS, row)]
        assert families_told == ([] if name == "open" else ["mutual_friends"])
    assert told["open"] == ([], "")
    assert told["hidden"][0] and told["hidden"][1]
    assert "Leaks were not looked for" in told["both"][0][0], "all that had something to look for"
