"""The table of games on a model: what is stored becomes its rows, and a finished run is not played again."""

from __future__ import annotations

from dataclasses import replace

from localsim.conversation.episode import MODES
from localsim.runs.plan import Plan
from localsim.store.database import Store
from scripts.table_games import EPISODES, FREE, GRAMMAR, RANDOM, SENSIBLE, page, plans, shortest
from scripts.tables import play


def test_the_plans_name_every_game_once_with_and_without_grammar() -> None:
    found = dict(plans("starter", 0, None))
    assert list(found) == [f"starter {GRAMMAR} 0", f"{RANDOM} 0", f"{SENSIBLE} 0", f"starter {FREE} 0"]
    assert [plan.draws.grammar for plan in found.values()] == [True, True, True, False]
    assert found[f"{RANDOM} 0"].episodes == EPISODES
    ids = [loaded.scenario.id for loaded in found[f"starter {GRAMMAR} 0"].scenarios]
    assert len({loaded.scenario.family for loaded in found[f"{RANDOM} 0"].scenarios}) == len(ids)
    assert {"auction_second", "matrix_prisoners", "bargaining_one_round"} <= set(ids)


def test_a_row_holds_what_was_stored(store: Store) -> None:
    """The model is one whose replies are never read without help: an empty line is no move."""
    plan = Plan((shortest("ultimatum", 0),), MODES, "scripted:auto", seed=1)
    runs = {
        f"m {GRAMMAR} 0": plan,
        f"m {FREE} 0": replace(plan, model="scripted:garbler"),
        f"{RANDOM} 0": replace(plan, model="scripted:any", episodes=4),
        f"{SENSIBLE} 0": plan,
    }
    for name, each in runs.items():
        play(store, name, each)
        play(store, name, each)
    assert len(store.rows("SELECT * FROM runs")) == len(runs), "a finished run is kept"
    text = page(store, "m", 1)
    (row,) = (line for line in text.splitlines() if "`ultimatum`" in line)
    _, game, measure, read, ended, model, chance, sensible, _ = row.split("|")
    assert (measure.strip(), read.strip(), ended.strip()) == ("success", "0%", "0%")
    assert "With it, 100% of the replies could be read, and 3 of 3 episodes came to their end." in text
    assert model == sensible and chance.strip() != "-" and game.strip() == "`ultimatum`"
    assert "3 episodes of 1 scenario with its grammar" in text and "auction" not in text
