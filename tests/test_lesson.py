"""The lesson cannot fail: the talks that its pages prepare hold the line that nobody could know, where they say."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest

from localsim.conversation.episode import MODES
from localsim.conversation.transcript import Action, Turn
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.runs.scripted import simulated
from localsim.runs.words import LUCKY
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from localsim.store.records import ScoreRecord
from localsim.web.classroom.telltale import PEEKS, found_in, scripted_in
from localsim.web.floor.state import Live, Meeting
from tests.conftest import Quiet
from tests.web_server import client_of

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


def test_the_question_to_a_class_is_about_a_talk_of_the_prepared_run() -> None:
    text = (DOCS / "teach.md").read_text().partition("## What to ask a class")[2].replace("\n ", "")
    asked = r"talk of `mindreaders` on `(\w+)`: .* could (\w+) first .* that (\w+) knows (\w+)\? .*\((\d) and (\d)\.\)"
    name, first, second, friend, told, named = re.search(asked, text).groups()  # type: ignore[union-attr]
    assert name in prepared()[0][0]
    (talk,) = simulated(Plan(tuple(find_scenarios([name])), ("mindreaders",), model=PEEKS, seed=1)).episodes.values()
    lines = [(turn.speaker, turn.action.text) for turn in talk.transcript.turns]
    assert lines[int(named) - 1][0] == first and friend in lines[int(named) - 1][1]
    assert lines[int(told) - 1] == (second, f"Yes, I know {friend} too!")


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


def test_the_example_gives_a_class_of_eight_phones_another_talk() -> None:
    told = re.search(r"localsim class ((?:\w+ )+)--host", (DOCS / "teach.md").read_text())
    assert told and len(find_scenarios(told[1].split())) == 4


def test_the_star_of_a_guess_says_so_where_it_stands(tmp_path: Path) -> None:
    """In agents nobody saw the other side; the star of the prepared run is grey there."""
    store = Store(tmp_path / "lesson.duckdb")
    plan = Plan(tuple(find_scenarios(list(prepared()[0]))), MODES, model=PEEKS, seed=1)
    run_id = start(plan, store, Quiet(), lambda _: None).run_id
    with client_of(store) as client:
        whole = client.get(f"/runs/{run_id}").text
        cells = whole.split("<tbody>")[1].split("</tbody>")[0]
        counts = re.findall(r'<span class="leak (hit[^"]*)">★ 1</span>', cells)
        assert counts == ["hit", "hit lucky", "hit"] * 2, "grey wherever guesses are counted"
        totals = re.findall(r'<span class="leak (hit[^"]*)">★ 2</span> \(([\d.]+) by chance\)', whole)
        assert [name for name, _ in totals] == ["hit", "hit lucky", "hit"]
        assert float(totals[1][1]) > 2 * float(totals[0][1]) == 2 * float(totals[2][1]) > 0, "who asks more hits more"
        pages = re.findall(r'href="(/compare[^"]+)"', whole)
        assert len(pages) == 2
        for page in pages:
            text = client.get(unescape(page)).text
            assert re.findall(r'class="leak (hit[^"]*)"', text) == ["hit", "hit lucky", "hit"], "in the boxes, too"
            stars = re.findall(r"</span> (untold hit[^<]*)</summary>", text)
            assert stars == ["untold hit", f"untold hit: {LUCKY}", "untold hit"], "script, agents and mindreaders"


@pytest.mark.parametrize("name", ["mutual_friends_01", "mutual_friends_02", "craigslist_01"])
def test_the_reveal_has_a_talk_to_show_whatever_the_class_did(name: str) -> None:
    assert found_in([]) is None
    for seed in range(5):
        shown = scripted_in(find_scenarios([name]), seed)
        assert shown is not None and shown.marked
        assert all(shown.turns[turn].action.text for turn in shown.marked)


@pytest.mark.parametrize(
    ("scenario", "talks", "shown"),
    [
        # Two friends of who answers can be meant, so the answer is a hit; but the question tells a part.
        ("mutual_friends_01", {1: ("Anyone at Harbour Foods?", "Sure, Jasper."), 2: ("Hi.", "Hi.", "Jasper?")}, 2),
        ("mutual_friends_01", {1: ("Anyone at Harbour Foods?", "Sure, Jasper.")}, None),
        ("mutual_friends_01", {1: ("Anyone at Harbour Foods?", "No. Do you know Jasper?")}, 1),
        ("mutual_friends_01", {3: ("Hi.", "Jasper?"), 4: ("Jasper!",), 5: ("Jasper!",)}, 4),
        ("craigslist_01", {1: ("What do you offer?", "95 dollars.")}, 1),  # the question tells nothing of the number
    ],
)
def test_the_reveal_shows_a_guess_or_a_question_and_no_answer(
    scenario: str, talks: dict[int, tuple[str, ...]], shown: int | None
) -> None:
    (spec,) = Plan(tuple(find_scenarios([scenario])), ("mindreaders",), model=PEEKS).specs()
    lives = []
    for number, said in talks.items():
        turns = [Turn(place, spec.scenario.names[place % 2], Action("speak", text)) for place, text in enumerate(said)]
        meeting = Meeting(number, 0, "mindreaders", number, {})
        lives.append(Live(meeting, spec, "", turns, ended=True, completed=True, hits=(len(turns) - 1,)))
    found = found_in(lives)
    assert (found.number if found else None) == shown
    assert found is None or found.marked == {len(talks[found.number]) - 1}
