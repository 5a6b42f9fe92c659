"""Two ends of a free talk: all have said goodbye, or nothing new is said; alike in every mode, and never too soon."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.backends.scripted import ScriptedBackend, open_scripted
from localsim.cli import cli
from localsim.conversation import modes
from localsim.conversation.episode import EDITION, SIMULATED, EpisodeSpec, Mode, Observation, StopReason
from localsim.conversation.modes import MODES, Ask, Say
from localsim.conversation.requests import Generation
from localsim.conversation.rules.deciding import PHASED, Stop
from localsim.conversation.rules.endings import all_took_leave, ending, nothing_new
from localsim.conversation.rules.farewells import says_farewell, takes_leave
from localsim.conversation.scenario import Limits, LoadedScenario
from localsim.conversation.transcript import WORLD, Action, Transcript, Turn, told
from localsim.families import Player
from localsim.families.players import any_way
from localsim.reports.compose.alone import report
from localsim.runs.plan import Plan, plan_of
from localsim.runs.runner import resume, start
from localsim.runs.scheduler import Watcher
from localsim.scenarios.find import shipped, shipped_sources
from localsim.scenarios.parse import parse_scenario
from localsim.store.database import Store
from localsim.store.queries.runs import run_row
from tests.conftest import TALK, Quiet, answering, driven, generated, spec_of

NAMES = ("Ana", "Bo")


def talk_of(*words: str | Action | None, names: tuple[str, ...] = NAMES) -> Transcript:
    """A talk in turn; None is something that the rules tell."""
    turns: list[Turn] = []
    for index, each in enumerate(words):
        if each is None:
            turns.append(Turn(index, WORLD, told("It begins to rain.")))
        else:
            action = Action("speak", each) if isinstance(each, str) else each
            speaker = names[sum(not turn.told for turn in turns) % len(names)]
            turns.append(Turn(index, speaker, action))
    return Transcript(tuple(turns))


def played(spec: EpisodeSpec, player: Player | str) -> tuple[list[str], StopReason, list[Generation]]:
    """The lines, the end and the texts of an episode whose roles are all played by one scripted player."""
    backend = open_scripted(player) if isinstance(player, str) else ScriptedBackend(player=player)
    texts: list[Generation] = []
    steps, end = driven(spec, answering(backend, into=texts))
    assert end is not None
    return [step.turn.line for step in steps if isinstance(step, Say)], end, texts


def always(*words: str) -> Player:
    """A player that says these texts, and the last one for ever."""

    def play(seen: Any, _rng: Any) -> Action:
        own = sum(turn.speaker == seen.viewer for turn in seen.transcript.turns)
        return Action("speak", words[min(own, len(words) - 1)])

    return play


def with_limits(limits: str) -> LoadedScenario:
    return parse_scenario(TALK + f"limits: {{{limits}}}\n", "talk.yaml")


# ---- what a goodbye is ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Goodbye.",
        "bye",
        "Good-bye!",
        "Goodbye, Ana, and thank you so much for everything that you have told me!",
        "Ok, bye for now!",
        "It was nice talking to you, Beatrix. Have a great day!",
        "You too. Goodbye and have a nice evening!",
        "Sorry, I'm not interested. Goodbye.",
        "I must go now.",
        "I’ll see you tomorrow!",
        "Thank you, I hope you have a wonderful weekend!",
        "So long, and thanks for the fish.",
        "Take care, Dr. Lee.",
    ],
)
def test_these_turns_take_leave(text: str) -> None:
    assert takes_leave(text) and says_farewell(text.replace("Good-", "good"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hello!",
        "Goodbye? Already?",
        "Goodbye then, unless you take eighty.",
        "I could do 80. Bye.",
        "Bye, but how about a discount",
        "I have a new one.",
        "I have a good one, too.",
        "We should go.",
        "We'll have a great time!",
        "It has been so long!",
        "Nice to see you.",
        "Nice meeting you!",
        "Good day!",
        "She said goodbye to her old job last summer and moved to the sea.",
        "I hope you have a nice time! I don't have anything planned for this week yet.",
        "Take care of the paint.",
        "Auf Wiedersehen!",
        "See you at 5.",
    ],
)
def test_these_turns_do_not(text: str) -> None:
    assert not takes_leave(text)


# ---- the rules -----------------------------------------------------------------------------------------------------


def test_a_talk_closes_when_the_latest_turn_of_everybody_is_a_goodbye() -> None:
    assert all_took_leave(talk_of("Hello.", "Goodbye.", "Bye!"), NAMES)
    assert not all_took_leave(talk_of("Hello.", "Goodbye."), NAMES)
    assert not all_took_leave(talk_of("Goodbye.", "Wait, the key is under the mat."), NAMES)
    assert not all_took_leave(talk_of("Goodbye.", None, "Bye!"), NAMES), "what is told is heard by somebody"
    assert not all_took_leave(talk_of("Goodbye.", Action("none")), NAMES)
    assert not all_took_leave(talk_of("Goodbye.", Action("action", "Goodbye.")), NAMES)
    assert not all_took_leave(talk_of("Goodbye.", "Bye!"), (*NAMES, "Cy"))
    assert all_took_leave(talk_of("Bye.", "Bye!", "So long!", names=(*NAMES, "Cy")), (*NAMES, "Cy"))
    assert not all_took_leave(talk_of("Goodbye."), ("Ana",)), "nobody parts from nobody"


def test_names_numbers_and_moves_are_new_and_small_words_are_not() -> None:
    assert nothing_new(talk_of("Do you know Ana?", "no", "So, do you know Ana", "No!"), 2)
    assert not nothing_new(talk_of("Do you know Ana?", "no", "Do you know Eve?", "No!"), 2)
    assert not nothing_new(talk_of("Is it 40?", "no", "Is it 41?", "No!"), 2)
    assert not nothing_new(talk_of("I know her.", "I know her.", "I do not know her.", "I know her."), 2)
    assert nothing_new(talk_of("what is it", "what is it"), 1)
    assert not nothing_new(talk_of("what is it", "who is it"), 1), "small words alone are compared as they are"
    assert not nothing_new(talk_of("x", "x", Action("offer", "x", ("4",))), 1), "a move has consequences"
    assert not nothing_new(talk_of("x", "x", None, "x"), 2), "what is told is new"
    assert nothing_new(talk_of("x", Action("none"), "x", Action("none"), "x"), 2)
    assert not nothing_new(talk_of("x", "x", "x"), 3), "the first turn repeats nothing"
    assert not nothing_new(talk_of("Hello.", Action("action", "Hello.")), 1)


def test_in_a_group_everybody_gets_two_turns_before_it_counts_as_stale() -> None:
    six = tuple("ABCDEF")
    agreed = talk_of("Is it so?", *["Yes."] * 7, names=six)
    assert nothing_new(agreed, 6) and ending(Limits(), agreed, six) is None
    assert ending(Limits(), talk_of("Is it so?", *["Yes."] * 13, names=six), six) == "stale"


WORDS = st.sampled_from(["yes", "no", "maybe", "Ana", "Eve", "40", "41", "tea", "I see", "well"])
TEXTS = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)


@settings(max_examples=300, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=12), st.integers(1, 6), st.integers(0, 5))
def test_no_talk_whose_last_turns_hold_something_new_is_ended(texts: list[str], count: int, place: int) -> None:
    """A word that no turn before had is put into one of the last `count` turns."""
    new = max(0, len(texts) - 1 - place % count)
    texts[new] += " Zora"
    assert not nothing_new(talk_of(*texts), count)
    limits = Limits(stale=count)
    assert ending(limits, talk_of(*texts), NAMES) != "stale"


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=6), st.data())
def test_a_talk_whose_last_turns_are_drawn_from_earlier_ones_is_stale(texts: list[str], data: st.DataObject) -> None:
    repeated = data.draw(st.lists(st.sampled_from(texts), min_size=6, max_size=9))
    assert ending(Limits(closing=False), talk_of(*texts, *repeated), NAMES) == "stale"


# ---- every mode ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", SIMULATED)
@pytest.mark.parametrize(
    ("words", "limits", "wanted"),
    [
        (["Hello there!", "Goodbye, take care!"], "turns: 20", ("closing", 4)),
        (["Goodbye!"], "turns: 20", ("closing", 2)),
        (["Hello there!", "Goodbye, take care!"], "turns: 4", ("closing", 4)),
        (["Hello there!", "Goodbye, take care!"], "closing: false", ("stale", 9)),
        (["I like walks."], "turns: 20", ("stale", 7)),
        (["I like walks."], "stale: 9", ("stale", 10)),
        (["I like walks."], "stale: 0", ("turn_limit", 20)),
        (["Goodbye!"], "stale: 0, closing: false", ("turn_limit", 20)),
    ],
)
def test_the_ends_come_at_the_same_turn_in_every_mode(
    mode: Mode, words: list[str], limits: str, wanted: tuple[StopReason, int]
) -> None:
    lines, reason, texts = played(spec_of(with_limits(limits), mode), always(*words))
    assert (reason, len(lines)) == wanted
    assert len(texts) == (1 if mode == "script" else len(lines)), "a script is still one generation"
    if mode == "script":
        assert ("Ana" + texts[0].text).split("\n") == lines, "and no line of it is written in vain"


def test_a_script_that_goes_on_after_its_end_is_cut_there() -> None:
    """As from a server, which nothing stops while it writes."""
    spec = spec_of(with_limits("turns: 20"), "script")
    play = MODES["script"](spec)
    ask = next(play)
    assert isinstance(ask, Ask)
    written = ": Hi.\nBo: Bye.\nAna: Bye!\nBo: I forgot something.\nAna: Yes?"
    step, turns = play.send(Generation(written, "finished", "m")), []
    with pytest.raises(StopIteration) as end:
        while True:
            assert isinstance(step, Say)
            turns.append(step.turn.line)
            step = next(play)
    assert (turns, end.value.value) == (["Ana: Hi.", "Bo: Bye.", "Ana: Bye!"], "closing")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["Hi.", "Bye!", "Bye?", "Goodbye.", "Tea", "Tea 2", ""]), min_size=20, max_size=20))
def test_a_script_and_agents_end_at_the_same_turn(words: list[str]) -> None:
    """With whatever is said; an empty text stands for doing nothing."""
    loaded = with_limits("turns: 20, stale: 3")

    def player(seen: Any, _rng: Any) -> Action:
        text = words[len(seen.transcript)]
        return Action("speak", text) if text else Action("none")

    script, agents = (played(spec_of(loaded, mode), player) for mode in ("script", "agents"))
    assert script[:2] == agents[:2]


def test_each_line_of_a_script_is_read_once_while_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = next(MODES["script"](spec_of(with_limits("turns: 200, stale: 0"), "script")))
    assert isinstance(asked, Ask)
    read: list[str] = []
    usual = modes._read
    monkeypatch.setattr(modes, "_read", lambda *given, **more: (read.append(given[3]), usual(*given, **more))[1])
    text = asked.request.prefill
    for number in range(100):
        text += f": line {number}\n"
        assert not asked.request.form.finished(text) and asked.request.form.forced(text)
        text += NAMES[(number + 1) % 2]
    assert len(read) == 100
    assert asked.request.form.finished("Ana: Bye.\nBo: Bye.\n"), "and from the beginning for another text"


# ---- only where speech goes on freely ------------------------------------------------------------------------------


def ends(phases: str, *words: str | Action | None, phase: str = "", **given: Any) -> StopReason | None:
    loaded = parse_scenario(TALK + f"limits: {{turns: 40}}\nphases: {phases}\n", "talk.yaml")
    talk = talk_of(*words)
    turns = tuple(replace(turn, phase=phase) for turn in talk.turns)
    step = PHASED.next(loaded.scenario, Transcript(turns), given.get("seed", 1))
    return step.reason if isinstance(step, Stop) else None


def test_goodbyes_end_the_last_phase_in_turn_and_no_other() -> None:
    bye = ("Goodbye.", "Bye!")
    assert ends("[]", *bye) == "closing"
    assert ends("[{name: a, turns: 6}, {name: b}]", *bye, phase="a") is None
    assert ends("[{name: a, turns: 6}, {name: b}]", *bye, phase="b") == "closing"
    assert ends("[{name: a, rounds: 1}]", *bye, phase="a") == "done", "the phase is over anyway"
    for order in ("random", "together", "addressed"):
        assert ends(f"[{{name: a, order: {order}}}]", *bye, phase="a") is None
    later = "[{name: a, events: [{round: 4, text: It begins to rain.}]}]"
    assert ends(later, *bye, phase="a") is None, "something is still to come"
    assert ends(later, "Hi.", "Hi you.", "Is it", "so", "late", "now", None, *bye, phase="a") == "closing"


@pytest.mark.parametrize("family", ["trust", "debate", "car_dealer"])
def test_games_decide_their_own_ends(family: str) -> None:
    """They go on although everybody says goodbye with every move and in every turn."""

    def player(seen: Observation, rng: random.Random) -> Action:
        return any_way(seen, rng, "Goodbye!")

    spec = spec_of(generated(family))
    assert played(spec, player)[:2] == played(replace(spec, edition=1), player)[:2]


# ---- honest talks go on --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [source.name for source in shipped_sources() if source.generate is None])
def test_the_sensible_players_of_bundled_scenarios_are_never_cut_short(name: str) -> None:
    for player in ("scripted", "scripted:omniscient"):
        spec = spec_of(shipped()[name])
        assert played(spec, player)[:2] == played(replace(spec, edition=1), player)[:2]


@pytest.mark.parametrize("family", ["mutual_friends", "craigslist"])
def test_honest_players_are_never_cut_short(family: str) -> None:
    for seed in range(1, 9):
        spec = spec_of(generated(family, seed))
        lines, reason, _ = played(spec, "scripted:honest")
        assert (lines, reason) == played(replace(spec, edition=1), "scripted:honest")[:2]
        assert reason == "left"


# ---- the first edition ---------------------------------------------------------------------------------------------


def test_a_scenario_that_sets_neither_keeps_its_hash() -> None:
    plain, set_ = with_limits("turns: 20").scenario, with_limits("stale: 7").scenario
    assert plain.hash == with_limits("closing: true, stale: 6").scenario.hash
    assert len({plain.hash, set_.hash, with_limits("closing: false").scenario.hash}) == 3


def test_the_edition_is_part_of_an_episode_but_for_the_first() -> None:
    spec = spec_of(with_limits("turns: 20"))
    assert spec.edition == EDITION and spec.hash != replace(spec, edition=1).hash
    assert spec.seed == replace(spec, edition=1).seed


class Stopped(Watcher):
    """Stops a run after some turns."""

    def __init__(self, turns: int) -> None:
        self.left = turns

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:  # noqa: ARG002
        self.left -= 1

    def stops(self) -> bool:
        return self.left <= 0


def stored(store: Store, run_id: str) -> list[tuple[str, StopReason, int]]:
    rows = store.rows("SELECT mode, stop_reason, turns FROM episodes WHERE run_id = ? ORDER BY mode", [run_id])
    return [tuple(row.values()) for row in rows]  # type: ignore[misc]


def test_a_run_of_the_first_edition_is_resumed_under_its_rules(store: Store) -> None:
    """Its plan names no edition, as the plans of that time."""
    loaded = with_limits("turns: 20")
    old = Plan((loaded,), ("agents",), "scripted:parrot", edition=1)
    assert "edition" not in json.loads(old.as_json())
    run_id = start(old, store, Stopped(9), lambda _: None).run_id
    assert stored(store, run_id) == [("agents", None, 9)]
    resume(run_id, store, Quiet(), lambda _: None)
    assert stored(store, run_id) == [("agents", "turn_limit", 20)]
    new = start(replace(old, edition=EDITION), store, Stopped(3), lambda _: None).run_id
    assert plan_of(run_row(store, new)["plan_json"], lambda _: loaded).edition == EDITION
    resume(new, store, Quiet(), lambda _: None)
    assert stored(store, new) == [("agents", "stale", 7)]


def test_the_report_counts_the_talks_in_which_nothing_new_was_said(store: Store) -> None:
    loaded = with_limits("turns: 20")
    rates = []
    for player, edition in (("parrot", EDITION), ("smalltalk", EDITION), ("parrot", 1)):
        plan = Plan((loaded,), ("agents",), f"scripted:{player}", edition=edition)
        run_id = start(plan, store, Quiet(), lambda _: None).run_id
        rates.append(report(store, run_id).as_json()["comparison"][0]["stale_rate"])
    assert rates == [1, 0, None], "the first edition knew no such end"


def test_the_end_is_told_in_plain_words(store: Store) -> None:
    start(Plan((with_limits("turns: 20"),), ("agents",), "scripted:parrot"), store, Quiet(), lambda _: None)
    shown = CliRunner().invoke(cli, ["show"])
    assert "nothing new was said any more" in shown.output
