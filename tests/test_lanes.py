"""Who could read what, in lanes: against readers that are known, in the terminal, and as cells of the page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from localsim.__main__ import run as localsim
from localsim.conversation.episode import MODES
from localsim.conversation.rules.lanes import as_text, is_divided, lanes_of
from localsim.conversation.transcript import WORLD, Action, Transcript, Turn, told
from localsim.families import FAMILIES
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from localsim.store.episodes import load_episode
from localsim.web.lane_data import MOST, lane_page
from tests.conftest import Quiet, generated
from tests.games import play
from tests.web_server import client_of

Played = tuple[Store, dict[tuple[str, str], str]]


def friends() -> Any:
    """The four friends who choose a restaurant: whispers, told texts and a vote at the same time."""
    return find_scenarios(["where_to_eat"])[0].scenario


def whispered() -> Transcript:
    """Public words, a whisper, something told to one, and a secret ballot of all four."""
    nora, emil, sofia, jan = friends().names
    ballots = (
        Turn(4 + n, name, Action("vote", "", ("grill",)), readers=(name,), beat=4, beat_size=4)
        for n, name in enumerate((nora, emil, sofia, jan))
    )
    return Transcript((
        Turn(0, nora, Action("speak", "Hello.")),
        Turn(1, jan, Action("to", "Psst.", (emil,)), readers=(jan, emil)),
        Turn(2, WORLD, told("A letter comes."), readers=(sofia,)),
        Turn(3, WORLD, told("All vote now.")),
        *ballots,
    ))  # fmt: skip


def test_a_turn_is_in_the_lanes_of_its_readers_and_modes_that_show_all_are_told_apart() -> None:
    lanes = lanes_of(friends(), "agents", whispered())
    assert lanes.names == (WORLD, *friends().names)
    assert [line.parts for line in lanes.lines] == [
        ("", "acts", "reads", "reads", "reads"),
        ("", "", "reads", "", "acts"),
        ("acts", "", "", "reads", ""),
        ("acts", "reads", "reads", "reads", "reads"),
        ("", "acts", "", "", ""),
        ("", "", "acts", "", ""),
        ("", "", "", "acts", ""),
        ("", "", "", "", "acts"),
    ]
    assert [len(beat) for beat in lanes.beats()] == [1, 1, 1, 1, 4]
    minds = lanes_of(friends(), "mindreaders", whispered())
    for agents, shown in zip(lanes.lines, minds.lines, strict=True):
        assert shown.parts == (agents.parts[0], *(part or "sees" for part in agents.parts[1:]))
    script = lanes_of(friends(), "script", whispered())
    assert script.one_author and not minds.one_author and [x.parts for x in script.lines] == [
        x.parts for x in lanes.lines
    ]  # fmt: skip


def test_the_text_has_a_sign_in_each_lane() -> None:
    lines = as_text(lanes_of(friends(), "mindreaders", whispered()))
    assert lines[0].split() == ["Narrator", *friends().names]
    assert lines[1].split()[:6] == ["1", "@", "o", "o", "o", "Nora:"]
    assert lines[2].split()[:6] == ["2", "+", "o", "+", "@", "Jan"]
    assert lines[5].startswith("   5=") and lines[-1].endswith("= simultaneous: read only after all have acted")
    many = generated("auction", 1, bidders=30).scenario
    heads = as_text(lanes_of(many, "agents", Transcript((Turn(0, many.names[0], Action("bid", "", ("3",))),))))
    assert heads[0].startswith(f"1 {many.names[0]}, 2 {many.names[1]}") and "30" in heads[2].split()


@pytest.mark.parametrize("game", FAMILIES.games)
def test_an_episode_is_divided_exactly_if_some_agent_reads_too_little(game: str) -> None:
    loaded = generated(game, 2)
    talk = play(loaded, "any", mode="agents", seed=3)
    lanes = lanes_of(loaded.scenario, "agents", talk)
    missed = [
        line for line in lanes.lines for name, part in zip(lanes.names, line.parts, strict=True) if name and not part
    ]
    assert is_divided(loaded.scenario, talk) == bool(missed)
    for line in lanes.lines:
        acting = [name for name, part in zip(lanes.names, line.parts, strict=True) if part == "acts"]
        assert acting == [line.turn.speaker]


def test_who_has_left_reads_nothing_more_where_others_go_on() -> None:
    scenario = friends().model_copy(update={"limits": friends().limits.model_copy(update={"leave": "goes_on"})})
    first, second = scenario.names[:2]
    talk = Transcript((Turn(0, first, Action("leave", "Bye.")), Turn(1, second, Action("speak", "Pity."))))
    assert is_divided(scenario, talk) and not is_divided(scenario, Transcript(talk.turns[:1]))
    assert lanes_of(scenario, "agents", talk).lines[1].parts[:2] == ("", "acts")


# ---- the page and the command --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """A store with a plain talk, a game with secret ballots and an auction of thirty: (family, mode) -> episode."""
    store = Store(tmp_path_factory.mktemp("lanes") / "l.duckdb")
    games = (generated("jury", 1), generated("auction", 1, bidders=30), generated("hidden_role", 1, first="night"))
    scenarios = (*games, generated("mutual_friends", 1))
    start(Plan(scenarios, MODES, "scripted", seed=2), store, Quiet(), lambda _: None)
    rows = store.rows("SELECT family, mode, episode_id FROM v_episodes")
    return store, {(row["family"], row["mode"]): row["episode_id"] for row in rows}


def test_adjacent_lanes_share_a_turn_and_each_reader_has_it(played: Played) -> None:
    store, ids = played
    stored = load_episode(store, ids["jury", "agents"])
    for chosen in range(len(stored.scenario.names) + 1):
        page = lane_page(stored, chosen)
        lanes = lanes_of(stored.scenario, "agents", stored.transcript)
        assert [head.chosen for head in page.heads] == [place == chosen for place in range(len(page.heads))]
        own = [turn.index for turn in stored.transcript.turns if turn.readers == (turn.speaker,)]
        assert own, "a jury votes in secret"
        read: set[int] = set()
        for row in page.rows:
            assert not any(cell.part == "none" and cell.turns for cell in row.cells)
            assert sum(cell.span for cell in row.cells) == len(page.heads)
            assert sum(cell.here for cell in row.cells) == 1
            read |= {said.turn for cell in row.cells if cell.here for said in cell.turns}
        assert read == {line.turn.index for line in lanes.lines if line.parts[chosen]}


def test_who_neither_acts_nor_reads_in_a_secret_beat_is_told_apart_from_who_waits(played: Played) -> None:
    store, ids = played
    stored = load_episode(store, ids["hidden_role", "agents"])
    page = lane_page(stored)
    night = next(row for row in page.rows if row.kind == "together")
    spans = {part: sum(cell.span for cell in night.cells if cell.part == part) for part in ("acts", "none", "idle")}
    assert spans == {"acts": 2, "none": 5, "idle": 1}, "two wolves choose, five sleep, and the narrator reads nothing"
    day = next(row for row in page.rows if row.kind == "after")
    assert [cell.part for cell in day.cells] == ["idle", "reads"], "everybody reads the votes afterwards"


def test_thirty_bidders_have_a_choice_of_lanes_and_a_wrong_one_is_an_error(
    played: Played,
) -> None:
    store, ids = played
    page = lane_page(load_episode(store, ids["auction", "agents"]), 29)
    assert len(page.heads) == MOST and len(page.choices) == 31
    chosen = [head.name for head in page.heads if head.chosen]
    assert page.heads[0].name == "Narrator" and chosen == [dict(page.choices)[29]]
    client = client_of(store)
    path = f"/episodes/{ids['auction', 'agents']}/lanes"
    assert client.get(f"{path}?lane=29").status_code == 200
    assert client.get(f"{path}?lane=31").status_code == 400


def test_lanes_are_offered_only_where_a_turn_is_not_for_all(played: Played) -> None:
    store, ids = played
    client = client_of(store)
    for family, offered in (("jury", True), ("mutual_friends", False)):
        for mode in MODES:
            assert ("Who could read what" in client.get(f"/episodes/{ids[family, mode]}").text) == offered, family
    assert (
        "only because mindreaders read everything" in client.get(f"/episodes/{ids['jury', 'mindreaders']}/lanes").text
    )
    assert "One model wrote all lanes" in client.get(f"/episodes/{ids['jury', 'script']}/lanes").text


def test_the_terminal_prints_lanes(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    store, ids = played
    command = ["show", ids["jury", "agents"], "--lanes", "--db", str(store.path)]
    assert localsim(command) == 0 and "@ acts, o reads it" in capsys.readouterr().out
    assert localsim([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    secret = [turn for turn in found["turns"] if turn["simultaneous"]]
    assert secret and all(len(turn["acts"]) == 1 and turn["reads"] == [] for turn in secret)
    assert localsim([*command, "--prompt", "1"]) == 2
