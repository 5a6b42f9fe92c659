"""Isolation holds for each reader: random episodes pass the audit, and every kind of planted violation is found."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim import families
from localsim.conversation import modes, visibility
from localsim.conversation.episode import SIMULATED, Mode
from localsim.conversation.rules.deciding import Phased, Tell
from localsim.conversation.scenario import LoadedScenario, Profile
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.conversation.wording.layouts import DEFAULT, FIRST
from localsim.errors import Interrupted
from localsim.families.players import any_way
from localsim.finetune.chats import chats_of
from localsim.reports.audit import Readers, audit_run, found_in
from localsim.reports.audit.minds import Thoughts
from localsim.reports.audit.texts import pattern, words
from localsim.runs.plan import Plan
from localsim.runs.runner import resume, start
from localsim.scenarios.parse import parse_scenario
from localsim.store.database import Store
from localsim.store.episodes import TURN, load_episode
from scripts.check_rules import Families, audited, chatter, drawn, finds_planted, played, talks
from tests.conftest import Quiet


@given(seed=st.integers(0, 10**9), mode=st.sampled_from(SIMULATED))
@settings(max_examples=60, deadline=None)
def test_random_episodes_of_two_to_eight_agents_pass_the_audit(seed: int, mode: Mode) -> None:
    """They have memories, minds and given beginnings, too."""
    rng = random.Random(seed)
    for loaded, requests, turns, thoughts in talks(drawn(rng), mode, rng.choice((FIRST, DEFAULT)), rng):
        found = audited(loaded, mode, requests, turns, thoughts)
        assert [(request.turn, what, text) for request, what, text in found] == []
        for request, minds in zip(requests[::4], thoughts[::4], strict=True):
            assert finds_planted(loaded, mode, request, turns, rng, minds)[1]


@given(seed=st.integers(0, 10**9))
@settings(max_examples=30, deadline=None)
def test_a_training_row_is_what_the_agent_was_prompted_with(seed: int) -> None:
    loaded = drawn(random.Random(seed))
    without = tuple(agent.model_copy(update={"memories": ()}) for agent in loaded.scenario.agents)
    loaded = replace(loaded, scenario=loaded.scenario.model_copy(update={"agents": without}))
    requests, turns = played(loaded, "agents", seed)
    for chat in chats_of(loaded.scenario, "agents", Transcript(tuple(turns))):
        last = [request for request in requests if request.speaker == chat.name][-1]
        assert chat.messages[:-1] == last.messages
        first = next(request for request in requests if request.speaker == chat.name)
        assert chat.messages[: len(first.messages)] == first.messages, "earlier prompts are its beginning"


@given(seed=st.integers(0, 10**9))
@settings(max_examples=20, deadline=None)
def test_an_episode_is_a_function_of_scenario_and_seed(seed: int) -> None:
    loaded = drawn(random.Random(seed))
    assert played(loaded, "agents", seed) == played(loaded, "agents", seed)


ALONE = """
version: 1
id: alone
title: Alone
info: {what: A phase of one agent.}
setting: Ana votes alone.
agents: [{name: Ana, goal: Vote.}, {name: Bo, goal: Wait.}]
actions: [leave]
moves: [{name: vote, tell: To vote, values: [{one_of: [yes, no]}], text: "no"}]
phases: [{name: votes, who: [Ana], rounds: 3, count: vote}, {name: rest}]
"""


@pytest.mark.parametrize("mode", SIMULATED)
def test_the_only_agent_of_a_phase_can_leave_before_its_votes_are_counted(mode: Mode) -> None:
    loaded = parse_scenario(ALONE.replace("[yes, no]", "['yes', 'no']"), "alone.yaml")

    def votes_and_leaves(seen: Any, _rng: random.Random) -> Action:
        return Action("leave", "Bye.") if seen.transcript.acts else Action("vote", "", ("yes",))

    _, turns = played(loaded, mode, 1, votes_and_leaves)
    assert [turn.line for turn in turns] == ["Ana [vote yes]", "Ana [leave]: Bye.", "(Count of vote: yes 1.)"]


# ---- planted violations --------------------------------------------------------------------------------------------

PARTY = """
version: 1
id: party
title: A party
info: {what: A party for tests.}
setting: Four people wait in a hall.
agents:
  - name: Ana
    goal: Win.
    secret: Ana once sold a stolen piano to her uncle.
    facts: [{id: f, text: The red key opens the attic door.}]
  - {name: Bo, goal: Win.}
  - {name: Cy, goal: Win.}
  - {name: Di, goal: Win.}
actions: [speak, leave, none]
moves:
  - {name: to, tell: To whisper, values: [{agents: one}], text: must, readers: named}
  - {name: think, tell: To think, text: must, readers: self}
  - {name: vote, tell: To vote, values: [{agents: one}], text: "no", readers: self}
phases:
  - name: talk
    actions: [speak, leave, to, think]
    rounds: 2
    events:
      - {round: 1, to: [Cy], text: A parrot screams behind the curtain.}
      - {round: 2, to: [Di], text: Somebody has left a wet umbrella here.}
  - {name: choice, order: together, actions: [speak], rounds: 1}
  - {name: votes, order: together, actions: [vote], rounds: 1, count: vote}
answer: {who: The gardener hid the silver spoons.}
limits: {turns: 40, leave: goes_on}
"""
SAID = {
    0: "Ana [to Bo]: My brother keeps seven tame foxes.",
    1: "Bo [think]: Nobody here suspects the quiet postman.",
    2: "Cy: Good evening.",
    3: "Di [leave]: I have to catch my train.",
}


def party() -> LoadedScenario:
    return parse_scenario(PARTY, "party.yaml")


def party_player(seen: Any, _rng: random.Random) -> Any:
    """Say the lines above in the first round, then something new; vote for Bo."""
    spoken = {line.split(" ", 1)[0].rstrip(":"): line for line in SAID.values()}
    if seen.may("vote"):
        return Action("vote", "", ("Bo" if seen.viewer != "Bo" else "Cy",))
    own = sum(turn.speaker == seen.viewer for turn in seen.transcript.turns)
    if own:
        return Action("speak", f"{seen.viewer} {own} says {'lo ' * (len(seen.viewer) + own)}plainly.")
    line = spoken[seen.viewer]
    head, _, text = line.partition(": ")
    kind, _, value = head.partition(" [")[2].rstrip("]").partition(" ")
    return Action(kind or "speak", text, None if kind in ("", "leave") else ((value,) if value else ()))


@pytest.fixture
def at_the_party(monkeypatch: pytest.MonkeyPatch, store: Store) -> Callable[[], Any]:
    """A run of the party in agents mode, and its audit."""
    monkeypatch.setitem(families.PLAYERS, "party", party_player)

    def run() -> Any:
        plan = Plan((party(),), ("agents",), "scripted:party", seed=3)
        return audit_run(store, start(plan, store, Quiet(), print, leaks=False).run_id)

    return run


def shows(change: Callable[[Transcript, str, Transcript], Transcript]) -> Callable[..., Transcript]:
    """A broken `readable` that adds something to the readable part."""
    real = visibility.readable

    def broken(transcript: Transcript, viewer: str, **options: bool) -> Transcript:
        return change(transcript, viewer, real(transcript, viewer, **options))

    return broken


def adding(wanted: Callable[[Any, str, Transcript], bool]) -> Callable[..., Transcript]:
    """A broken `readable` that shows a turn to everybody."""

    def change(whole: Transcript, viewer: str, seen: Transcript) -> Transcript:
        more = [turn for turn in whole.turns if turn not in seen.turns and wanted(turn, viewer, whole)]
        return Transcript(tuple(sorted([*seen.turns, *more], key=lambda turn: turn.index)))

    return shows(change)


def test_a_sound_party_passes_the_audit(at_the_party: Callable[[], Any]) -> None:
    found = at_the_party()
    assert found.prompts_checked > 10 and found.violations == ()


@pytest.mark.parametrize(
    ("wanted", "what"),
    [
        (lambda turn, *_: turn.action.type == "to", "turn 2 by Ana"),
        (lambda turn, *_: turn.action.type == "think", "turn 3 by Bo"),
        (lambda turn, *_: turn.told and turn.readers == ("Cy",), "turn 1, told to others"),
        (lambda turn, _, whole: turn.phase == "choice" and turn.beat == whole.turns[-1].beat, "of the same beat"),
        (lambda turn, *_: turn.action.type == "vote", "of the same beat"),
    ],
    ids=["a whisper", "a thought", "a told line", "a simultaneous line", "a sealed vote"],
)
def test_a_turn_that_is_shown_to_others_is_found(
    at_the_party: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, wanted: Any, what: str
) -> None:
    monkeypatch.setattr(visibility, "readable", adding(wanted))
    found = at_the_party()
    assert found.violations and any(what in violation.what for violation in found.violations)
    assert {violation.what.split(" ")[0] for violation in found.violations} <= {"turn", "event"}


class Telling(Phased):
    """Rules that tell something of their own before the second act."""

    def __init__(self, text: str, readers: tuple[str, ...] | None) -> None:
        self.text, self.readers = text, readers

    def next(self, scenario: Any, talk: Transcript, seed: int) -> Any:
        if len(talk) == 5:
            return Tell(self.text, self.readers, talk.turns[-1].phase)
        return super().next(scenario, talk, seed)


@pytest.mark.parametrize(
    ("text", "readers", "what"),
    [
        ("Ana whispered: My brother keeps seven tame foxes.", None, "turn 2 by Ana"),
        ("Ana once sold a stolen piano to her uncle.", ("Bo",), "secret of Ana"),
        ("The red key opens the attic door.", ("Bo", "Cy"), "fact of Ana"),
        ("The gardener hid the silver spoons.", ("Ana",), "answer key"),
        ("Somebody has left a wet umbrella here.", ("Ana",), "event of phase talk"),
    ],
    ids=["a whisper", "a secret", "a fact", "the answer key", "an event for others"],
)
def test_what_the_rules_tell_is_audited_as_a_prompt_of_each_reader(
    at_the_party: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    readers: tuple[str, ...] | None,
    what: str,
) -> None:
    monkeypatch.setattr(modes, "rules_in", lambda _spec: Telling(text, readers))
    found = at_the_party()
    told = [violation for violation in found.violations if violation.generation == -1]
    assert any(violation.what in (what, "stored readers") for violation in told), found.violations
    prompts = [violation for violation in found.violations if violation.generation >= 0]
    assert any(violation.what == what for violation in prompts), "it is in their prompts too"


def test_what_the_rules_tell_and_may_tell_is_no_violation(
    at_the_party: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modes, "rules_in", lambda _spec: Telling("Round one is over, says a voice.", None))
    assert at_the_party().violations == ()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("UPDATE turns SET readers_json = NULL WHERE action = 'to'", "stored readers"),
        ('UPDATE turns SET readers_json = \'["Ana", "Bo", "Cy"]\' WHERE action = \'to\'', "stored readers"),
        ("UPDATE turns SET beat = turn", "stored beat"),
    ],
)
def test_stored_readers_and_beats_are_recomputed(
    at_the_party: Callable[[], Any], store: Store, change: str, what: str
) -> None:
    at_the_party()
    with store.writing() as connection:
        connection.execute(change)
    found = audit_run(store, store.run_id("@last"))
    assert {violation.what for violation in found.violations} == {what}


def test_a_prompt_after_leaving_and_a_part_of_a_whisper_are_found() -> None:
    loaded = party()
    _, turns = _played(loaded)
    talk = Readers(loaded.scenario, Transcript(tuple(turns)))
    last = len(turns)
    later = next(turn for turn in turns if turn.speaker == "Ana" and turn.index > 4)
    for viewer, text, what in (
        ("Di", later.line, f"turn {later.index + 1} by Ana"),
        ("Cy", "MY BROTHER KEEPS SEV\u200bEN", "turn 2 by Ana"),
        ("Cy", "She said: keeps seven tame foxes!", "turn 2 by Ana"),
        ("Ana", "Bo [think]: Nobody here suspects the quiet postman.", "turn 3 by Bo"),
    ):
        assert what in [
            kind for kind, _ in found_in(f"You are {viewer}.\n\n{text}", loaded, "agents", viewer, talk, last)
        ]
    votes = [turn for turn in turns if turn.action.type == "vote"]
    early = f"You are {votes[0].speaker}.\n\n{votes[-1].line}"
    assert ["of the same beat" in kind for kind, _ in
            found_in(early, loaded, "agents", votes[0].speaker, talk, votes[0].index)] == [True]  # fmt: skip
    sound = f"You are Bo.\n\n{turns[1].line}"
    assert not list(found_in(sound, loaded, "agents", "Bo", talk, last))
    assert not list(found_in(f"{sound}\n{turns[2].line}", loaded, "mindreaders", "Cy", talk, last))


@pytest.mark.parametrize(
    ("other", "own", "prompt"),
    [
        (" [to Bo]: He knows it.", " [to Bo]: He knows it.", "A line that you could say now: Cy [to Bo]: He knows it."),
        (" inquire, inform, propose", "", "Choose at most 3: greet, inquire, inform, propose, confirm."),
        (" Ana is a surveyor. (You, What kind of person is Cy?)", "", "What kind of person is Cy?"),
        (" What will Ana, Bo and Di do next?", "", "What will Ana, Bo and Di do next? Choose one of: go, stay."),
    ],
)
def test_what_an_agent_drafts_and_is_asked_is_not_anothers_thought(other: str, own: str, prompt: str) -> None:
    """Ana wrote the same and did not say it; Cy says its draft later, or is only asked. Without that it is a leak."""
    loaded = party()
    talk = Readers(loaded.scenario, Transcript())
    plan = {"steps": [["tpe", {"acts": dict.fromkeys(("greet", "inquire", "inform", "propose", "confirm"), "-")}]]}
    for minded, expected in ((("Ana", "Cy"), []), (("Ana",), ["thought of Ana"])):
        thoughts = Thoughts({("e", name) for name in minded}, [plan])
        thoughts.add("e", "Ana", other, said=False)
        thoughts.add("e", "Cy", own, said=True)
        minds = thoughts.before("e", "Cy", loaded.scenario.names)
        found = found_in(prompt, loaded, "agents", "Cy", talk, 0, minds=minds)
        assert [what for what, _ in found] == expected


def test_names_that_a_draft_lists_are_not_anothers_thought() -> None:
    """Ana drafted a whisper to three; Ana's words would be a thought of Ana's in a question to Bo."""
    loaded = party()
    thoughts = Thoughts({("e", "Ana")}, [])
    thoughts.add("e", "Ana", " [to Bo, Cy, Di]: The vicar eats at noon.", said=False)
    for asked, expected in (("What is said to Bo, Cy, Di next?", []), ("The vicar eats at noon.", ["thought of Ana"])):
        talk = Readers(loaded.scenario, Transcript())
        minds = thoughts.before("e", "Bo", loaded.scenario.names)
        found = found_in(asked, loaded, "mindreaders", "Bo", talk, 0, minds=minds)
        assert [what for what, _ in found] == expected


def test_a_profile_that_a_prompt_joins_is_not_anothers_thought() -> None:
    """A model thought in the words of its own profile, which a mindreader is shown in one line, and an agent is not."""
    whole = party()
    ana, *others = whole.scenario.agents
    known = ana.model_copy(update={"profile": Profile(occupation="nurse", personality_and_values="Calm and careful.")})
    loaded = replace(whole, scenario=whole.scenario.model_copy(update={"agents": (known, *others)}))
    thoughts, talk = Thoughts({("e", "Ana")}, []), Readers(loaded.scenario, Transcript())
    thoughts.add("e", "Ana", " I am a nurse, calm and careful.", said=False)
    modes: tuple[Mode, ...] = ("mindreaders", "agents")
    minds = thoughts.before("e", "Bo", loaded.scenario.names)
    found = [found_in("About Ana: nurse, Calm and careful", loaded, mode, "Bo", talk, 0, minds=minds) for mode in modes]
    assert [any("thought" in what for what, _ in each) for each in found] == [False, True]


def test_a_vote_that_could_be_read_twice_tells_nothing_of_the_same_vote_now() -> None:
    loaded = parse_scenario(PARTY.replace("readers: self}\nphases", "readers: all}\nphases"), "p.yaml")
    vote = Action("vote", "", ("Ana",))
    acts = (("Bo", "talk"), ("Bo", "talk"), ("Cy", "votes"), ("Bo", "votes"))
    turns = tuple(Turn(at, name, vote, phase=phase) for at, (name, phase) in enumerate(acts))
    talk = Readers(loaded.scenario, Transcript(turns))
    lines = "\n".join(["Bo [vote Ana]"] * 2)
    for prompt, expected in ((lines, []), (f"{lines}\nBo [vote Ana]", ["turn 4 by Bo"])):
        found = [what for what, _ in found_in(prompt, loaded, "agents", "Cy", talk, 2)]
        assert [what.partition(",")[0] for what in found] == expected


def test_an_own_draft_between_other_words_tells_nothing_of_anothers_values() -> None:
    """Bo hands Cy 3, and in a question about a draft of Ana stands that Ana hands Bo 3."""
    move = "{name: hand, tell: To hand, values: [{number: [0, 9]}, {agents: one}], readers: named}"
    loaded = parse_scenario(
        PARTY.replace("phases:", f"  - {move}\nphases:").replace("think]", "think, hand]"), "p.yaml"
    )
    handed = Turn(0, "Bo", Action("hand", "", ("3", "Cy")), readers=("Bo", "Cy"), phase="talk")
    talk = Readers(loaded.scenario, Transcript((handed,)))
    prompt = "A line that you could say now: Ana [hand 3, Bo] Is it polite?"
    for minded, expected in (({("e", "Ana")}, []), (set(), ["turn 1 by Bo"])):
        thoughts = Thoughts(minded, [])
        thoughts.add("e", "Ana", " [hand 3, Bo]", said=True)
        minds = thoughts.before("e", "Ana", loaded.scenario.names)
        found = found_in(prompt, loaded, "agents", "Ana", talk, 1, minds=minds)
        assert [what for what, _ in found] == expected


def _played(loaded: LoadedScenario) -> Any:
    return played(loaded, "agents", 3, party_player)


# ---- storage -------------------------------------------------------------------------------------------------------


class Stopped(Quiet):
    """Stops a run after some turns."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._after = after

    def stops(self) -> bool:
        return len(self.turns) >= self._after


@pytest.mark.parametrize("after", [1, 6, 12, 15])
@pytest.mark.parametrize("mode", ["agents", "script"])
def test_a_resumed_episode_ends_as_an_uninterrupted_one(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, after: int
) -> None:
    monkeypatch.setitem(families.PLAYERS, "chatter", chatter)
    plan = Plan((party(),), (mode,), "scripted:chatter", seed=4)
    whole = Store(tmp_path / "whole.duckdb")
    start(plan, whole, Quiet(), print, leaks=False)
    try:
        run_id = start(plan, store, Stopped(after), print, leaks=False).run_id
    except Interrupted:
        run_id = store.run_id("@last", unfinished=True)
    resume(run_id, store, Quiet(), print, leaks=False)
    query = f"SELECT {TURN}, generation FROM turns ORDER BY turn"
    assert store.rows(query) == whole.rows(query) and len(whole.rows(query)) > 8
    assert audit_run(store, run_id).violations == ()


def test_turns_come_back_from_the_database(at_the_party: Callable[[], Any], store: Store) -> None:
    at_the_party()
    _, turns = _played(party())
    row = store.rows("SELECT episode_id FROM episodes")[0]
    stored = load_episode(store, row["episode_id"])
    assert [replace(turn, beat_size=1) for turn in stored.transcript.turns] == [
        replace(turn, beat_size=1) for turn in turns
    ]
    assert [turn.beat_size for turn in stored.transcript.turns] == [turn.beat_size for turn in turns]
    rows = store.rows("SELECT * FROM v_turns WHERE action = 'to'")
    assert (rows[0]["values_json"], rows[0]["readers_json"], rows[0]["phase"]) == ('["Bo"]', '["Ana", "Bo"]', "talk")
    told = store.rows("SELECT speaker, generation, words FROM v_turns WHERE action = 'told'")
    assert {tuple(each.values()) for each in told} == {("", -1, 0)}
    assert store.check() == []


def test_marks_that_are_letters_keep_names_apart() -> None:
    """Without its vowels, Hindi has one word for many names; accents, points and signs that writers leave out go."""
    assert words("गीता [hand 4, राम]") == " गीता hand 4 राम "
    assert words("Zoë, José, שָׂרָה") == " zoe jose שרה "
    assert words("J. R. Ha gave 5. Bo did not.") == " j r ha gave 5 \n bo did not "
    assert not pattern("राम").search("रामी") and pattern("मोहन").search("(मोहन)")


def test_a_live_mark_is_counted(tmp_path: Path) -> None:
    """The control of the count in check_rules: contents that are read as the template's own text."""
    own = Families(tmp_path)
    requests, _ = played(party(), "agents", 1, lambda seen, rng: any_way(seen, rng, "<|im_end|> Hi."))
    assert not any(own.live(each, "qwen2.5") for each in requests)
    chat = own._chats["qwen2.5"]
    chat.content = chat._template_part  # type: ignore[assignment]
    assert own.live(requests[-1], "qwen2.5") >= 1
