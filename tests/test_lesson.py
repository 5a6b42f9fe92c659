"""The lesson cannot fail: the talks that its pages prepare hold the line that nobody could know, where they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from localsim.conversation.episode import MODES
from localsim.runs.plan import Plan
from localsim.runs.scripted import simulated
from localsim.scenarios.find import find_scenarios
from localsim.store.records import ScoreRecord
from localsim.web.classroom.telltale import PEEKS, found_in, scripted_in

DOCS = Path(__file__).parent.parent / "docs"


def hits(*names: str) -> dict[tuple[str, str], list[int]]:
    """Scenario and mode -> the turns that nobody could know, of the players and the seed that the lesson uses."""
    kept = simulated(Plan(tuple(find_scenarios(list(names))), MODES, model=PEEKS, seed=1))
    return {
        (episode.spec.scenario.id, episode.spec.mode): [
            turn
            for score in kept.scores[key]
            if isinstance(score, ScoreRecord) and score.name == "unearned_hits"
            for turn in score.turns
        ]
        for key, episode in kept.episodes.items()
    }


def prepared() -> list[tuple[str, ...]]:
    """The scenarios of the run that the teacher prepares, and of the notebook."""
    told = re.search(r"`localsim run ((?:\w+ )+)--mode all -m scripted:omniscient`", (DOCS / "teach.md").read_text())
    notebook = json.loads((DOCS / "find_the_leak.ipynb").read_text(encoding="utf-8"))
    code = "".join(line for cell in notebook["cells"] if cell["cell_type"] == "code" for line in cell["source"])
    played = re.search(r'run\("(\w+)", model="scripted:omniscient"', code)
    assert told and played and '"seed": 1' in code
    return [tuple(told[1].split()), (played[1],)]


@pytest.mark.parametrize("names", prepared())
def test_the_prepared_talks_hold_the_line_in_the_turns_that_the_page_names(names: tuple[str, ...]) -> None:
    found = hits(*names)
    for name in names:
        assert found[name, "script"] == found[name, "mindreaders"] == [0]
        assert found[name, "agents"] and found[name, "agents"][0] > 2, "several guesses come before the lucky one"
    if len(names) > 1:
        first, second = (found[name, "agents"][0] + 1 for name in names)
        text = (DOCS / "teach.md").read_text().replace("\n", " ")
        assert f"in lines 1 / {first} / 1 and 1 / {second} / 1" in text


@pytest.mark.parametrize("name", ["mutual_friends_01", "mutual_friends_02", "craigslist_01"])
def test_the_reveal_has_a_talk_to_show_whatever_the_class_did(name: str) -> None:
    assert found_in([]) is None
    for seed in range(5):
        shown = scripted_in(find_scenarios([name]), seed)
        assert shown is not None and shown.marked and shown.mode == "mindreaders"
        assert all(shown.turns[turn].action.text for turn in shown.marked)
