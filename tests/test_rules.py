"""The rules: who acts, what is told, who can read what, and when an episode ends; in every mode."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from localsim.conversation.episode import EpisodeSpec, Mode
from localsim.conversation.modes import MODES, Ask, Reject, Say, roles
from localsim.conversation.requests import Generation, Request, reply_begun
from localsim.conversation.rules.deciding import PHASED, Act, Stop, ahead, present
from localsim.conversation.scenario import WRITER, LoadedScenario, Scenario, ScenarioFile
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.conversation.visibility import observe, readable
from localsim.errors import ScenarioInvalid
from localsim.families.players import smalltalk
from localsim.scenarios.parse import dump_scenario, parse_scenario
from scripts.check_rules import played
from tests.conftest import TALK, spec_of

THREE = """
version: 1
id: three
title: Three people
info: {what: Three people for tests.}
setting: Ana, Bo and Cy sit in a kitchen.
agents:
  - {name: Ana, goal: Win.}
  - {name: Bo, goal: Win.}
  - {name: Cy, goal: Win.}
moves:
  - {name: to, tell: To whisper, values: [{agents: several}], text: must, readers: named}
  - {name: think, tell: To think, text: must, readers: self}
  - {name: vote, tell: To vote, values: [{agents: one}], text: "no"}
  - {name: next, tell: To give the floor, values: [{agents: one}], text: may, by: [Ana]}
limits: {turns: 30}
"""


def scenario(phases: str = "[]") -> LoadedScenario:
    return parse_scenario(f"{THREE}phases: {phases}\n", "three.yaml")


def acts(
    loaded: LoadedScenario, *lines: str, mode: Mode = "agents", seed: int = 7
) -> tuple[list[Request], list[Turn], Any]:
    """The requests, turns and end of an episode whose agents write `lines`, each after the name."""
    spec = EpisodeSpec(loaded.scenario, mode, dict.fromkeys(roles(mode, loaded.scenario.names), "m"), 0, seed)
    play, waiting = MODES[mode](spec), list(lines)
    requests: list[Request] = []
    turns: list[Turn] = []
    answer = None
    while True:
        try:
            step = play.send(answer)
        except StopIteration as end:
            assert not waiting
            return requests, turns, end.value
        answer = None
        if isinstance(step, Say):
            turns.append(step.turn)
        elif isinstance(step, Ask):
            requests.append(step.request)
            if not waiting:
                return requests, turns, None
            answer = Generation(waiting.pop(0), "finished", "m")
        else:
            assert isinstance(step, Reject)
            raise AssertionError(step.reason)


def speakers(turns: list[Turn]) -> list[str]:
    return [turn.speaker for turn in turns]


def prompt(request: Request) -> str:
    return "\n".join([*(message.content for message in request.messages), request.prefill])


def begun(request: Request) -> str:
    """Return the reply as far as it is fixed."""
    return "\n".join([*reply_begun(request.messages)[1], request.prefill])


def heard(request: Request) -> list[str]:
    assert request.observation is not None
    return [turn.line for turn in request.observation.transcript.turns]


# ---- readers -------------------------------------------------------------------------------------------------------


def test_a_private_turn_reaches_its_readers_only() -> None:
    requests, turns, _ = acts(scenario(), " [to Bo]: The cake is mine.", ": Fine.", ": What?", ": Hm.", ": So.")
    assert turns[0].readers == ("Ana", "Bo") and turns[1].readers is None
    assert heard(requests[1]) == ["Ana [to Bo]: The cake is mine."]
    assert heard(requests[2]) == ["Bo: Fine."] and "cake" not in prompt(requests[2])
    assert requests[2].heard == (("Bo", "Fine."),)
    assert heard(requests[3]) == ["Ana [to Bo]: The cake is mine.", "Bo: Fine.", "Cy: What?"]


def test_a_thought_is_read_by_nobody_else_but_by_mindreaders_and_the_writer() -> None:
    lines = (" [think]: Bo is lying.", ": Fine.", ": What?")
    requests, turns, _ = acts(scenario(), *lines)
    assert turns[0].readers == ("Ana",) and not turns[0].said
    assert "lying" not in prompt(requests[1]) + prompt(requests[2])
    assert "lying" in prompt(requests[3]), "its author remembers it"
    open_requests, _, _ = acts(scenario(), *lines, mode="mindreaders")
    assert "Ana [think]: Bo is lying." in heard(open_requests[1])
    assert "only you can read" not in prompt(open_requests[1]), "a prompt is true"


def test_simultaneous_turns_are_not_seen_by_each_other() -> None:
    loaded = scenario("[{name: votes, order: together, actions: [vote], rounds: 2}]")
    for mode in ("agents", "mindreaders"):
        requests, turns, end = acts(
            loaded, " [vote Bo]", " [vote Cy]", " [vote Bo]", *[" [vote Bo]", " [vote Ana]", " [vote Ana]"], mode=mode
        )
        assert [turn.beat for turn in turns] == [0, 0, 0, 3, 3, 3] and end == "done"
        assert {turn.beat_size for turn in turns} == {3}
        assert all(not heard(request) for request in requests[:3])
        assert heard(requests[4]) == ["Bo [vote Cy]", "Ana [vote Bo]", "Cy [vote Bo]"], "its own act comes first"
        assert [message.role for message in requests[4].messages] == ["system", "user", "assistant", "user"]


def test_the_page_of_a_person_shows_no_open_choice() -> None:
    loaded = scenario("[{name: votes, order: together, actions: [vote], rounds: 1}]")
    _, turns, _ = acts(loaded, " [vote Bo]", " [vote Cy]", " [vote Bo]")
    for count, seen in ((1, []), (2, ["Bo"]), (3, ["Bo", "Ana", "Cy"])):
        view = observe(loaded.scenario, "agents", "Bo", Transcript(tuple(turns[:count])))
        assert [turn.speaker for turn in view.transcript.turns] == seen


def test_who_left_hears_nothing_more() -> None:
    loaded = scenario().scenario
    talk = Transcript((Turn(0, "Ana", Action("leave", "Bye.")), Turn(1, "Bo", Action("speak", "At last."))))
    assert [turn.index for turn in readable(talk, "Ana", everything=True, goes_on=True).turns] == [0]
    assert len(readable(talk, WRITER, everything=False)) == len(readable(talk, "Bo", everything=False)) == 2
    assert present(loaded, talk) == ("Bo", "Cy")


# ---- phases --------------------------------------------------------------------------------------------------------


def test_without_phases_everybody_acts_in_turn_as_ever(talk: LoadedScenario) -> None:
    spec = spec_of(talk)
    turns: tuple[Turn, ...] = ()
    for number in range(20):
        step = PHASED.next(talk.scenario, Transcript(turns), spec.seed)
        assert step == Act((("Ana", "Bo")[number % 2],), talk.scenario.actions)
        turns = (*turns, Turn(number, step.speakers[0], Action("speak", f"x{number}")))
    assert PHASED.next(talk.scenario, Transcript(turns), spec.seed) == Stop("turn_limit")


def test_rounds_give_everybody_a_turn_and_tell_what_they_should() -> None:
    loaded = scenario(
        "[{name: a, rounds: 2, announce: It begins., events: [{round: 2, to: [Bo], text: A letter comes.}]},"
        " {name: b, who: [Cy, Ana], turns: 3, announce: Now only two.}]"
    )
    requests, turns, end = acts(loaded, *[": x"] * 9)
    assert speakers(turns) == ["", "Ana", "Bo", "Cy", "", "Ana", "Bo", "Cy", "", "Cy", "Ana", "Cy"]
    assert end == "done" and [turn.phase for turn in turns] == ["a"] * 8 + ["b"] * 4
    assert turns[4].readers == ("Bo",) and "(Only to Bo: A letter comes.)" in prompt(requests[4])
    assert "letter" not in prompt(requests[3]) + prompt(requests[5])
    assert [turn.index for turn in turns] == list(range(12))


def test_a_random_order_is_a_new_permutation_each_round_and_depends_on_the_seed() -> None:
    loaded = scenario("[{name: a, order: random, rounds: 6}]")
    orders = []
    for seed in range(4):
        _, turns, _ = acts(loaded, *[": x"] * 18, seed=seed)
        rounds = [tuple(speakers(turns)[start : start + 3]) for start in range(0, 18, 3)]
        assert all(sorted(each) == ["Ana", "Bo", "Cy"] for each in rounds)
        assert acts(loaded, *[": x"] * 18, seed=seed)[1] == turns
        orders.append(rounds)
    assert len({tuple(each) for each in orders}) == 4 and len(set(orders[0])) > 1


def test_who_is_addressed_acts_next() -> None:
    loaded = scenario("[{name: a, order: addressed, turns: 6}]")
    lines = (": What do you think, Cy?", " [to Ana]: Not now, Bo.", ": Hm.", ": Bob is no Bo.", ": cy?", ": Done.")
    _, turns, end = acts(loaded, *lines)
    assert speakers(turns) == ["Ana", "Cy", "Ana", "Bo", "Cy", "Ana"] and end == "done"


def test_a_moderator_gives_the_floor() -> None:
    loaded = scenario("[{name: a, order: moderated, moderator: Ana, turns: 6, actions: [speak, vote, next]}]")
    requests, turns, _ = acts(
        loaded, ": Welcome.", " [next Cy]: Please.", ": Me?", " [next Bo]", " [vote Cy]", " [next Bo]"
    )
    assert speakers(turns) == ["Ana", "Ana", "Cy", "Ana", "Bo", "Ana"]
    allowed = [
        [str(way if isinstance(way, str) else way.name) for way in request.observation.allowed]
        for request in requests
        if request.observation
    ]
    assert allowed[0] == ["speak", "vote", "next"] and allowed[1] == ["next"] and allowed[2] == ["speak", "vote"]


def test_a_phase_ends_with_a_move_and_counts_are_told() -> None:
    loaded = scenario(
        "[{name: talk, actions: [speak, think], ends_with: [think]},"
        " {name: votes, order: together, actions: [vote], rounds: 1, count: vote}]"
    )
    _, turns, end = acts(loaded, ": Hm.", " [think]: Enough.", " [vote Bo]", " [vote Cy]", " [vote Bo]")
    assert end == "done" and [turn.phase for turn in turns] == ["talk", "talk", *["votes"] * 4]
    assert turns[-1].line == "(Count of vote: Bo 2, Cy 1.)" and turns[-1].told


def test_leaving_ends_the_talk_or_it_goes_on() -> None:
    lines = (": Hm.", " [leave]: Bye.")
    assert acts(scenario(), *lines)[2] == "left"
    ends = scenario("[{name: a, rounds: 3}]").scenario
    loaded = parse_scenario(
        THREE.replace("{turns: 30}", "{turns: 30, leave: goes_on}") + "phases: [{name: a, rounds: 3}]\n", "x.yaml"
    )
    assert ends.hash != loaded.scenario.hash
    requests, turns, end = acts(loaded, *lines, ": Oh.", ": So.", " [to Ana]: Well.", " [leave]")
    assert speakers(turns) == ["Ana", "Bo", "Cy", "Ana", "Cy", "Ana"] and end == "left"
    assert requests[4].observation is not None


def test_beats_fit_into_the_limit_of_turns_as_a_whole() -> None:
    loaded = parse_scenario(THREE.replace("turns: 30", "turns: 8") + "phases: [{name: a, order: together}]\n", "x.yaml")
    _, turns, end = acts(loaded, *[": x"] * 6)
    assert len(turns) == 6 and end == "turn_limit"


def test_a_thousand_agents_act_together() -> None:
    agents = "".join(f"  - {{name: Person {number}, goal: Win.}}\n" for number in range(1000))
    head, _, _ = THREE.partition("agents:\n")
    text = f"{head}agents:\n{agents}limits: {{turns: 2000}}\nphases: [{{name: a, order: together, turns: 1000}}]\n"
    loaded = parse_scenario(text, "many.yaml")
    step = PHASED.next(loaded.scenario, Transcript(), 1)
    assert isinstance(step, Act) and len(step.speakers) == 1000
    view = observe(loaded.scenario, "agents", "Person 7", Transcript())
    assert view.relationships == (("Everybody", "everybody else", "stranger"),)


# ---- what a script and mindreaders mean ----------------------------------------------------------------------------


def test_a_script_asks_for_all_lines_that_are_certain() -> None:
    loaded = scenario(
        "[{name: a, rounds: 2, actions: [speak]}, {name: b, order: together, actions: [vote], rounds: 1, count: vote}]"
    )
    first = "\n".join(
        [": 1", "Bo: 2", "Cy: 3", "Ana: 4", "Bo: 5", "Cy: 6", "Ana [vote Bo]", "Bo [vote Cy]", "Cy [vote Bo]"]
    )
    requests, turns, end = acts(loaded, first, mode="script")
    assert len(requests) == 1 and end == "done" and speakers(turns)[-1] == ""
    assert [turn.beat for turn in turns] == [0, 1, 2, 3, 4, 5, 6, 6, 6, 9]


def test_a_script_goes_on_line_by_line_where_the_next_speaker_is_not_certain() -> None:
    loaded = scenario("[{name: a, order: addressed, turns: 3}]")
    requests, turns, _ = acts(loaded, ": Cy?", ": Ana?", ": Yes.", mode="script")
    assert speakers(turns) == ["Ana", "Cy", "Ana"]
    assert [begun(request) for request in requests] == ["Ana", "Ana: Cy?\nCy", "Ana: Cy?\nCy: Ana?\nAna"]
    assert len({request.session for request in requests}) == 1
    assert len({reply_begun(request.messages)[0] for request in requests}) == 1


def test_the_writer_of_a_script_reads_everything_also_of_one_beat() -> None:
    loaded = scenario("[{name: v, order: together, actions: [vote, leave], rounds: 1, announce: Vote.}]")
    requests, turns, _ = acts(loaded, " [vote Bo]\nBo [leave]\nCy [vote Ana]", mode="script")
    assert begun(requests[0]) == "(Vote.)\nAna" and len(turns) == 4
    single, _, _ = acts(loaded, " [vote Bo]", " [vote Cy]", " [vote Ana]", mode="iterative")
    assert begun(single[2]) == "(Vote.)\nAna [vote Bo]\nBo [vote Cy]\nCy"


def test_what_is_ahead_is_certain() -> None:
    for phases, lines in (
        ("[]", 30),
        ("[{name: a, rounds: 2}]", 6),
        ("[{name: a, rounds: 2, ends_with: [think]}]", 1),
        ("[{name: a, rounds: 2, actions: [speak], ends_with: []}, {name: b, order: addressed}]", 7),
        ("[{name: a, order: together, rounds: 2}]", 3),
        ("[{name: a, order: together, rounds: 2, actions: [vote]}]", 6),
        ("[{name: a, rounds: 2, events: [{round: 2, text: Rain.}]}]", 3),
        ("[{name: a, order: moderated, moderator: Ana}]", 1),
    ):
        loaded = scenario(phases).scenario
        step = PHASED.next(loaded, Transcript(), 1)
        assert isinstance(step, Act)
        assert len(ahead(PHASED, loaded, Transcript(), 1, step)) == lines, phases


# ---- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phases", "where", "message"),
    [
        ("[{name: a}, {name: b}]", "phases[0]", "only the last phase"),
        ("[{name: a, turns: 1}, {name: a}]", "phases[1].name", "given more than once"),
        ("[{name: a, who: [Eve]}]", "phases[0].who[0]", "no agent is called 'Eve'"),
        ("[{name: a, actions: [shout]}]", "phases[0].actions[0]", "is called 'shout'"),
        ("[{name: a, actions: [vote], ends_with: [to]}]", "phases[0].ends_with[0]", "not among the actions"),
        ("[{name: a, order: addressed, rounds: 2}]", "phases[0].rounds", "has no rounds"),
        ("[{name: a, order: moderated}]", "phases[0].moderator", "has a moderator"),
        ("[{name: a, moderator: Ana}]", "phases[0].moderator", "has a moderator"),
        ("[{name: a, order: moderated, moderator: Ana, who: [Ana, Bo]}]", "phases[0].who", "not among those"),
        ("[{name: a, actions: [next]}]", "phases[0].actions", "nothing besides none is allowed to Ana"),
        ("[{name: a, rounds: 1, events: [{round: 2, text: x}]}]", "phases[0].events[0].round", "only 1 rounds"),
        ("[{name: a, count: sing}]", "phases[0].count", "no move of this scenario is called 'sing'"),
        ("[{name: a, order: inturn}]", "phases[0].order", "did you mean in_turn"),
    ],
)
def test_a_wrong_phase_is_named_with_its_place(phases: str, where: str, message: str) -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        scenario(phases)
    found = [problem for problem in caught.value.problems if problem.path == where]
    assert found and message in found[0].message, str(caught.value)
    assert found[0].line == len(THREE.splitlines()) + 1


def test_a_scenario_with_rules_comes_back_from_json_and_yaml() -> None:
    loaded = scenario("[{name: a, rounds: 1, events: [{text: Rain.}]}]").scenario
    assert Scenario.model_validate_json(loaded.model_dump_json()) == loaded
    document = parse_scenario(f"{THREE}phases: [{{name: a, rounds: 1}}]\n", "x.yaml").scenario
    text = dump_scenario(ScenarioFile(**document.model_dump()))
    assert parse_scenario(text, "y.yaml").scenario.hash == document.hash


def test_moves_and_phases_are_part_of_the_hash_only_where_there_are_some(talk: LoadedScenario) -> None:
    with_move = parse_scenario(TALK + "moves: [{name: nod, tell: To nod}]\n", "t.yaml")
    assert with_move.scenario.hash != talk.scenario.hash


def test_the_examples_of_the_guide_are_read_and_played() -> None:
    text = (Path(__file__).parent.parent / "docs" / "rules.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", text, re.M | re.S)
    moves, phases, jury = blocks
    names = "".join(f"  - {{name: {name}, goal: Win.}}\n" for name in ("Ana", "Bo", "Grace"))
    head = THREE.partition("agents:\n")[0] + f"agents:\n{names}"
    assert len(parse_scenario(head + moves + phases, "guide.yaml").scenario.moves) == 5
    requests, turns = played(parse_scenario(jury, "jury.yaml"), "agents", 3, smalltalk)
    assert turns[-1].told and turns[-1].action.text.startswith("Count of verdict: ")
    assert sum(turn.action.type == "verdict" for turn in turns) == 3
    assert not any("[verdict" in line for request in requests for line in heard(request))
