"""The three modes, tested by feeding them replies."""

from __future__ import annotations

import pytest

from localsim.conversation.episode import MODES as MODE_NAMES
from localsim.conversation.episode import EpisodeSpec, StopReason
from localsim.conversation.modes import Ask, Reject, Say
from localsim.conversation.requests import Generation, Request, StopCause, reply_begun
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action, line_of
from localsim.errors import MalformedReply
from localsim.scenarios.parse import parse_scenario
from tests.conftest import TALK, driven, spec_of


def play(
    spec: EpisodeSpec, replies: list[str], cause: StopCause = "finished"
) -> tuple[list[Ask | Say | Reject], StopReason | None]:
    """All steps of an episode whose model writes `replies` (raw, after the prefill)."""
    queue = list(replies)

    def answer(_request: Request) -> Generation:
        assert queue, "the mode asks for more than was given"
        return Generation(queue.pop(0), cause, "test")

    return driven(spec, answer)


def rest(name: str, action: Action) -> str:
    """What a model writes after the start of its line."""
    return line_of(name, action).removeprefix(name)


def said(name: str, text: str) -> str:
    return rest(name, Action("speak", text))


def turns_of(steps: list[Ask | Say | Reject]) -> list[tuple[str, str, str]]:
    return [(s.turn.speaker, s.turn.action.type, s.turn.action.text) for s in steps if isinstance(s, Say)]


@pytest.mark.parametrize("mode", ["agents", "mindreaders"])
def test_agents_alternate_until_someone_leaves(talk: LoadedScenario, mode: str) -> None:
    replies = [said("Ana", "Hello Bo."), said("Bo", "Hello."), rest("Ana", Action("leave", "Bye."))]
    steps, reason = play(spec_of(talk, mode), replies)  # type: ignore[arg-type]
    assert reason == "left"
    assert turns_of(steps) == [("Ana", "speak", "Hello Bo."), ("Bo", "speak", "Hello."), ("Ana", "leave", "Bye.")]


def test_a_script_is_one_generation(talk: LoadedScenario) -> None:
    lines = [
        line_of("Ana", Action("speak", "Hi")),
        line_of("Bo", Action("speak", "Yes?")),
        line_of("Ana", Action("leave")),
    ]
    text = "\n".join(lines).removeprefix("Ana")
    steps, reason = play(spec_of(talk, "script"), [text])
    assert reason == "left"
    assert sum(isinstance(step, Ask) for step in steps) == 1
    assert [speaker for speaker, _, _ in turns_of(steps)] == ["Ana", "Bo", "Ana"]


def limited(turns: int) -> LoadedScenario:
    return parse_scenario(TALK + f"limits: {{turns: {turns}}}\n", "talk.yaml")


@pytest.mark.parametrize("mode", MODE_NAMES)
def test_stop_rules_are_the_same_in_every_mode(mode: str) -> None:
    names = ["Ana", "Bo"] * 3
    for actions, wanted, length in [
        ([Action("none")] * 6, "silence", 3),
        (
            [Action("none"), Action("none"), Action("speak", "x"), Action("none"), Action("none"), Action("none")],
            "silence",
            6,
        ),
        ([Action("speak", "a")] * 6, "turn_limit", 4),
        ([Action("speak", "a"), Action("leave"), Action("speak", "never heard")], "left", 2),
    ]:
        loaded = limited(6 if wanted != "turn_limit" else 4)
        lines = [line_of(name, action) for name, action in zip(names, actions, strict=False)]
        if mode == "script":
            replies = ["\n".join(lines).removeprefix("Ana")]
        else:
            replies = [line.removeprefix(name) for line, name in zip(lines, names, strict=False)]
        steps, reason = play(spec_of(loaded, mode), replies)
        assert (reason, len(turns_of(steps))) == (wanted, length)


def test_a_malformed_reply_is_retried_once_under_a_new_seed(talk: LoadedScenario) -> None:
    steps, reason = play(spec_of(talk), ["nonsense", said("Ana", "Hello"), rest("Bo", Action("leave"))])
    assert reason == "left"
    first, reject, second = steps[0], steps[1], steps[2]
    assert isinstance(first, Ask) and isinstance(reject, Reject) and isinstance(second, Ask)
    assert (first.request.attempt, second.request.attempt) == (0, 1)
    assert first.request.seed != second.request.seed
    assert first.request.messages == second.request.messages
    assert "of the form" in reject.reason


def test_two_malformed_replies_end_the_episode_and_nothing_is_invented(talk: LoadedScenario) -> None:
    with pytest.raises(MalformedReply, match="turn 1 by Ana"):
        play(spec_of(talk), ["nonsense", "more"])


def test_a_script_goes_on_after_its_last_good_turn(talk: LoadedScenario) -> None:
    good = line_of("Ana", Action("speak", "Hi")) + "\n" + line_of("Bo", Action("speak", "Yes?"))
    first = (good + "\nBo: not my turn").removeprefix("Ana")
    steps, reason = play(spec_of(talk, "script"), [first, rest("Ana", Action("leave"))])
    asks = [step for step in steps if isinstance(step, Ask)]
    assert reason == "left"
    assert reply_begun(asks[1].request.messages)[1] == tuple(good.split("\n")) and asks[1].request.prefill == "Ana"
    assert (asks[1].request.turn, asks[1].request.attempt) == (2, 1)
    assert len(turns_of(steps)) == 3


def test_a_script_may_fail_at_two_turns_but_not_twice_at_one(talk: LoadedScenario) -> None:
    one = said("Ana", "Hi") + "\n{broken"
    two = said("Bo", "Yes?") + "\n{broken"
    steps, reason = play(spec_of(talk, "script"), [one, two, rest("Ana", Action("leave"))])
    assert reason == "left"
    assert [step.turn for step in steps if isinstance(step, Reject)] == [1, 2]
    with pytest.raises(MalformedReply, match="turn 2 by Bo"):
        play(spec_of(talk, "script"), [one, "still broken"])


def test_a_script_that_stops_early_is_malformed_not_ended(talk: LoadedScenario) -> None:
    steps, _ = play(spec_of(talk, "script"), [said("Ana", "Hi"), rest("Bo", Action("leave"))])
    rejects = [step.reason for step in steps if isinstance(step, Reject)]
    assert rejects == ["the script ends before a stop rule does"]


@pytest.mark.parametrize(
    "line",
    [
        "Bo: I am not Ana",
        "Anabel: nor am I",
        "Ana [shout]: x",
        "Ana:    ",
        "Ana",
        "Ana [action]",
        "Ana - hello",
        "Ana: a\nand what follows",
        "Ana: \ud800",
        "",
    ],
)
def test_what_is_not_an_action_is_malformed(talk: LoadedScenario, line: str) -> None:
    with pytest.raises(MalformedReply):
        play(spec_of(talk), [line.removeprefix("Ana")] * 2)


def test_the_same_seeds_in_every_mode(talk: LoadedScenario) -> None:
    seeds = {mode: (spec_of(talk, mode).seed, spec_of(talk, mode).turn_seed(3, 0)) for mode in MODE_NAMES}
    assert len(set(seeds.values())) == 1
    assert spec_of(talk).seed != spec_of(talk, index=1).seed
    assert spec_of(talk).seed != spec_of(talk, run_seed=8).seed
    assert 1 <= spec_of(talk).seed < 2**31


def test_penalties_look_back_on_the_same_words_in_every_mode(talk: LoadedScenario) -> None:
    steps, _ = play(spec_of(talk), [said("Ana", "One"), said("Bo", "Two"), rest("Ana", Action("leave"))])
    asks = [step.request for step in steps if isinstance(step, Ask)]
    one, two = (asks[0].speaker, "One"), (asks[1].speaker, "Two")
    assert [ask.heard for ask in asks] == [(), (one,), (one, two)]
    script = play(spec_of(talk, "script"), [said("Ana", "One") + "\n" + line_of("Bo", Action("leave"))])[0][0]
    assert isinstance(script, Ask)
    text = script.request.prefill + said("Ana", "One") + "\n" + line_of("Bo", Action("speak", 'say "Two"')) + "\n"
    assert script.request.form.utterances(text) == (("Ana", "One"), ("Bo", 'say "Two"'))
    assert script.request.form.speaker(text) == "Ana"


def test_own_turns_are_assistant_lines_and_others_are_prose(talk: LoadedScenario) -> None:
    steps, _ = play(spec_of(talk), [said("Ana", "One"), said("Bo", "Two"), rest("Ana", Action("leave"))])
    last = [step.request for step in steps if isinstance(step, Ask)][-1]
    assert [message.role for message in last.messages] == ["system", "user", "assistant", "user"]
    assert last.messages[2].content == "Ana: One"
    assert last.messages[3].content == "Bo: Two"


@pytest.mark.parametrize("mode", ["agents", "script"])
def test_a_turn_cut_by_its_tokens_stands_and_says_so(mode: str) -> None:
    steps, _ = play(spec_of(limited(2), mode), [said("Ana", "I was about"), said("Bo", "And I")], "length")  # type: ignore[arg-type]
    assert [step.turn.truncated for step in steps if isinstance(step, Say)] == [True, True]


def test_the_cut_last_line_of_a_script_is_written_again() -> None:
    steps, _ = play(spec_of(limited(2), "script"), [said("Ana", "Whole.") + "\nBo: cut of", ": Whole too.\n"], "length")
    assert [step.turn.action.text for step in steps if isinstance(step, Say)] == ["Whole.", "Whole too."]
    assert not any(step.turn.truncated for step in steps if isinstance(step, Say))
