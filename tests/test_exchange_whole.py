"""Exchange loses neither privacy nor words in silence: newer forms, equal names, people alone, round trips."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.conversation.episode import Episode
from localsim.conversation.names import same
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import ACTION_TYPES, WORLD, Action, Transcript, Turn, told
from localsim.errors import InvalidInput
from localsim.families import FAMILIES
from localsim.runs.plan import Plan
from localsim.runs.scripted import simulated
from localsim.runs.transfer.inspect_log import _message
from localsim.scenarios.documents import shipped_files
from localsim.scenarios.find import every_loaded, find_casting, shipped_sources
from localsim.scenarios.formats import sotopia_out, sotopia_talks
from localsim.scenarios.formats.sotopia_talks import SAME_NAME, STRANGERS, UNKNOWN
from localsim.scenarios.parse import parse_scenario
from tests.test_names import NAMES, quoted

ENV = {
    "pk": "E",
    "codename": "ladder",
    "scenario": "A ladder.",
    "agent_goals": ["Take it", "Keep it"],
    "relationship": 0,
}
PAIR = ({"pk": "P1", "first_name": "Ilse", "last_name": "Marten"}, {"pk": "P2", "first_name": "Odo"})
ILSE, ODO = "Ilse Marten", "Odo"


def read(tmp_path: Path, *objects: Mapping[str, Any]) -> sotopia_talks.Found:
    file = tmp_path / "given.jsonl"
    file.write_text("".join(f"{json.dumps(each)}\n" for each in objects), encoding="utf-8")
    return sotopia_talks.read([file], 5)


def log(*messages: tuple[str, str, str], **more: Any) -> dict[str, Any]:
    """A log with one message a round."""
    rounds = [[["Environment", ILSE, "..."]], *([list(each)] for each in messages)]
    return {"pk": "L", "environment": "E", "agents": ["P1", "P2"], "tag": "t", "messages": rounds, **more}


def said(talk: Any) -> list[tuple[str, str, str, tuple[str, ...] | None]]:
    turns = enumerate(talk.turns)
    return [(name, action.type, action.text, talk.readers.get(number)) for number, (name, action) in turns]


# ---- Sotopia's forms ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "turn"),
    [
        (' said: "Hello."', ("speak", "Hello.", None)),
        ('said: "She said "no"."', ("speak", 'She said "no".', None)),
        (" did nothing", ("none", "", None)),
        (" left the conversation", ("leave", "", None)),
        (" [non-verbal communication] nods", ("non-verbal communication", "nods", None)),
        ("[private to ['Odo']] said: \"Psst.\"", ("speak", "Psst.", (ILSE, ODO))),
        ('[private to ["Odo"]]  [action] winks', ("action", "winks", (ILSE, ODO))),
        ("[private to Odo] said: \"Psst.\"", ("speak", "Psst.", (ILSE, ODO))),
    ],
)  # fmt: skip
def test_each_form_of_a_message_comes_in_as_it_was_meant(text: str, turn: tuple[Any, ...], tmp_path: Path) -> None:
    found = read(tmp_path, ENV, *PAIR, log((ILSE, "Environment", text), ("Odo ", "Environment", ' said: "Yes."')))
    (talk,) = found.talks
    assert said(talk) == [(ILSE, *turn), (ODO, "speak", "Yes.", None)]


def test_a_message_to_another_agent_is_private(tmp_path: Path) -> None:
    (talk,) = read(tmp_path, ENV, *PAIR, log((ILSE, ODO, 'said: "Psst."'), (ODO, "Environment", "did nothing"))).talks
    assert said(talk)[0] == (ILSE, "speak", "Psst.", (ILSE, ODO))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nods (in a form that nobody knows)", UNKNOWN),
        ("[whisper to Odo] said: \"Psst.\"", UNKNOWN),
        ("[private to ['Odo'] said: \"Psst.\"", UNKNOWN),
        ("[private to [Odo]] said: \"Psst.\"", UNKNOWN),
        ("[private to ['Eve']] said: \"Psst.\"", STRANGERS),
    ],
)  # fmt: skip
def test_a_message_that_nobody_can_place_leaves_its_log_out(text: str, reason: str, tmp_path: Path) -> None:
    found = read(tmp_path, ENV, *PAIR, log((ILSE, "Environment", text), (ODO, "Environment", 'said: "Yes."')))
    assert (found.talks, dict(found.left_out)) == ((), {reason: 1})
    assert [loaded.scenario.id for loaded in found.scenarios] == ["ladder_ilse_marten_odo"], "the situation is kept"
    if reason == UNKNOWN:
        assert [(each.count, each.example) for each in found.unmapped if each.field == "messages"] == [(1, text)]


def test_what_profiles_secrets_comments_and_backgrounds_hide_stays_hidden(tmp_path: Path) -> None:
    ilse = {**PAIR[0], "public_info": "Likes <b>tea</b>. <p viewer='agent_0'>Is broke.</p>", "occupation": "R&D"}
    ilse |= {"secret": "Sings. <p viewer='agent_1'>Odo owes her money.</p>"}
    situation = {**ENV, "scenario": "A ladder. <!-- It is broken. -->"}
    (loaded,) = read(tmp_path, situation, ilse, PAIR[1]).scenarios
    one, two = loaded.scenario.agents
    assert (one.profile.public_info, one.profile.occupation, one.secret) == ("Likes <b>tea</b>.", "R&D", "Sings.")
    assert [[fact.text for fact in each.facts] for each in (one, two)] == [["Is broke."], ["Odo owes her money."]]
    assert (loaded.scenario.setting, loaded.answer.answer) == ("A ladder.", {"judge_only": ["It is broken."]})
    told = {ILSE: "Ilse bakes. Ilse' secrets: is broke", ODO: "<p>Odo knits. <p viewer='agent_1'>He is ill.</p></p>"}
    told |= {"Eve": "Eve rows. <p viewer='environment'>She lies.</p> Secret: none"}
    goals = {"scenario": "A shop.", "social_goals": dict.fromkeys(told, "Buy"), "agents_background": told}
    (talk,) = read(tmp_path, log((ILSE, "Environment", 'said: "Hi."'), agents=["a", "b", "c"], **goals)).talks
    hidden = [(each.profile.public_info, each.secret) for each in talk.scenario.scenario.agents]
    assert hidden == [("Ilse bakes.", "is broke"), ("Odo knits.", "He is ill."), ("Eve rows.", "none")]


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        ('Ilse Marten said: "Hi."\n\nOdo whispers: "Psst."\n\nOdo said: "Oh."', None),
        ('Turn #1\nIlse Marten said: "Hi."\nTurn #2\nOdo [whisper to Ilse] said: "Psst."', None),
        ('Turn #1\nIlse Marten [action] nods\nOdo whispers\nTurn #2\nOdo said: "Oh."', None),
        ('Turn #1\nIlse Marten said: "Hi."\nOdo said: "Ho."', ["Hi.", "Ho."]),
        ('Turn #1\nIlse Marten said: "He said:\nOdo said: "Ho.""\nTurn #2\nOdo did nothing',
         ['He said: Odo said: "Ho."', ""]),
    ],
)  # fmt: skip
def test_a_log_in_one_text_keeps_apart_what_was_said(text: str, turns: list[str] | None, tmp_path: Path) -> None:
    found = read(tmp_path, ENV, *PAIR, log(messages=[], social_interactions=text))
    assert [[turn[2] for turn in said(talk)] for talk in found.talks] == ([turns] if turns else [])
    assert dict(found.left_out) == ({} if turns else {UNKNOWN: 1})


def test_ratings_and_episodes_that_do_not_fit_are_told(tmp_path: Path) -> None:
    one = log((ILSE, "Environment", 'said: "Hi."'), rewards=[[1.0, {"goal": "high"}], 0.0, 0.0])
    found = read(tmp_path, ENV, *PAIR, one, one)
    assert [(each.field, each.example) for each in found.unmapped] == [
        ("episode", "L"), ("rewards", ""), ("rewards.goal", "high")
    ]  # fmt: skip
    assert len(found.talks) == 1
    with pytest.raises(InvalidInput, match="another episode has the key 'L'"):
        read(tmp_path, ENV, *PAIR, one, {**one, "reasoning": "x"})


@pytest.mark.parametrize("tie", [("agent_1_id", "agent_2_id", "pk"), ("agent1_id", "agent2_id", "relationship_id")])
def test_a_relationship_of_either_exporter_chooses_the_pair(tie: tuple[str, str, str], tmp_path: Path) -> None:
    one, other, key = tie
    story = {"relationship": "3", "background_story": "They share a fence."}
    found = read(tmp_path, {**ENV, "relationship": 3}, *PAIR, {one: "P1", other: "P2", key: "R", **story})
    assert [loaded.scenario.names for loaded in found.scenarios] == [(ILSE, ODO)] and found.unmapped == ()


def test_people_without_a_place_are_listed_and_alone_they_are_an_error(tmp_path: Path) -> None:
    found = read(tmp_path, {**ENV, "relationship": 3}, *PAIR)
    listed = {each.field: (each.count, each.example) for each in found.unmapped}
    assert listed == {"agent profiles": (1, ""), "agent profile": (2, ILSE)}
    assert found.scenarios[0].scenario.names == ("Person A", "Person B")
    for alone in (PAIR, [{"agent1_id": "P1", "agent2_id": "P2", "relationship": "3"}]):
        with pytest.raises(InvalidInput, match="nothing can be imported"):
            read(tmp_path, *alone)


def test_two_people_of_one_name_are_told_apart_by_their_place_or_left_out(tmp_path: Path) -> None:
    twins = [{"pk": f"P{number}", "first_name": "Kim", "last_name": name} for number, name in ((1, "Lee"), (2, "LEE"))]
    twins[1]["last_name"] = "Lee"
    first, second = (["Kim Lee", "Environment", f'said: "{word}"'] for word in ("One.", "Two."))
    silent = ["Kim Lee", "Environment", "did nothing"]
    rounds = [[first, silent], [silent, second]]
    found = read(tmp_path, ENV, *twins, {**log(), "messages": rounds})
    (talk,) = found.talks
    assert [turn[:3] for turn in said(talk)] == [("Person A", "speak", "One."), ("Person B", "speak", "Two.")]
    assert ("names", "two people have one name; Person A and so on are used") in {
        (each.field, each.why) for each in found.unmapped
    }
    found = read(tmp_path, ENV, *twins, {**log(), "messages": [[first], [second]]})
    assert (found.talks, dict(found.left_out)) == ((), {SAME_NAME: 1})


# ---- round trips ----------------------------------------------------------------------------------------------------


def back(tmp_path: Path, talks: Sequence[tuple[str, LoadedScenario, Transcript]]) -> dict[str, Any]:
    """Episode id -> talk after a way through Sotopia's files."""
    scenarios = {loaded.hash: loaded for _, loaded, _ in talks}.values()
    people = {row["pk"]: row for loaded in scenarios for row in sotopia_out.profiles_of(loaded)}
    logs = [sotopia_out.log_of(key, loaded, "agents", {}, talk, []) for key, loaded, talk in talks]
    found = read(tmp_path, *map(sotopia_out.environment_of, scenarios), *people.values(), *logs)
    assert not found.left_out
    return {talk.name: talk for talk in found.talks}


def wanted(talk: Transcript, names: Sequence[str]) -> list[tuple[str, str, str, tuple[str, ...] | None]]:
    """The turns that a format with Sotopia's five types can hold; moves are actions with their values as words."""
    found = []
    for turn in talk.turns:
        action, does = turn.action, " ".join([turn.action.type, *turn.action.bracket])
        if action.type in ACTION_TYPES or turn.told:
            everybody = turn.told and set(turn.readers or ()) == set(names)
            found.append((turn.speaker, action.type, action.text, None if everybody else turn.readers))
        else:
            words = f"{does}: {action.text}" if action.text else does
            found.append((turn.speaker, "action", words, turn.readers))
    return found


def sorted_readers(turns: list[tuple[str, str, str, tuple[str, ...] | None]]) -> list[tuple[Any, ...]]:
    return [(*turn[:3], None if turn[3] is None else sorted(turn[3])) for turn in turns]


def test_every_bundled_scenario_goes_to_sotopia_and_back(tmp_path: Path) -> None:
    cast = [loaded for file in shipped_files("situations") if (loaded := find_casting(file.stem)) is not None]
    every = [*every_loaded(shipped_sources()), *cast]
    assert len(every) >= 240
    plan = Plan(tuple(loaded for loaded in every if "agents" in _modes(loaded)), ("agents",), "scripted")
    loaded_by_hash = {loaded.scenario.hash: loaded for loaded in every}
    played: dict[str, Episode] = simulated(plan).episodes
    talks = [
        (key, loaded_by_hash[each.spec.scenario.hash], each.transcript)
        for key, each in played.items()
        if each.status == "completed" and sotopia_out.fits(loaded_by_hash[each.spec.scenario.hash])
    ]
    assert len(talks) > 200
    found = back(tmp_path, [each for each in talks if any(turn.action.text for turn in each[2].turns)])
    kinds = set()
    for key, loaded, talk in talks:
        if key in found:
            assert sorted_readers(said(found[key])) == sorted_readers(wanted(talk, loaded.scenario.names)), (
                loaded.scenario.id
            )
        lost = {*sotopia_out.lost_with(loaded), *+sotopia_out.lost_in(talk, "", [], [])}
        kinds |= lost
        assert ("moves" in lost) >= any(turn.action.type not in ACTION_TYPES for turn in talk.acts)
    assert kinds <= set(sotopia_out.LOST) and {"moves", "phases", "facts", "family"} <= kinds


def _modes(loaded: LoadedScenario) -> Sequence[str]:
    return FAMILIES[loaded.scenario.family].modes if loaded.scenario.family else ("agents",)


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=60).map(lambda text: text.strip())


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_talks_keep_turns_readers_and_actions(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    usable = [name for name in NAMES if name != "Environment"]
    names = tuple(data.draw(st.lists(st.sampled_from(usable), min_size=2, max_size=4, unique_by=same)))
    head = "version: 1\nid: x\ntitle: x\ninfo: {what: x}\nsetting: Here.\nagents:\n"
    loaded = parse_scenario(head + quoted(names), "x")
    turns = []
    for number in range(data.draw(st.integers(1, 8))):
        speaker = data.draw(st.sampled_from((*names, WORLD)))
        kind, text = data.draw(st.sampled_from(ACTION_TYPES)), data.draw(TEXTS)
        others = data.draw(st.none() | st.sets(st.sampled_from(names)))
        if speaker == WORLD:
            action, readers = told(text or "It rains."), None if others is None or not others else tuple(sorted(others))
        else:
            action = Action(kind, text if text or kind in ("none", "leave") else "Hm.")
            readers = None if others is None or kind == "none" else (speaker, *sorted(others - {speaker}))
        turns.append(Turn(number, speaker, action, readers=readers))
    talk = Transcript((*turns, Turn(len(turns), names[0], Action("speak", "So."))))
    found = back(tmp_path_factory.mktemp("talk"), [("K", loaded, talk)])
    assert sorted_readers(said(found["K"])) == sorted_readers(wanted(talk, names))
    for turn in talk.turns:
        about = _message(turn, names[0])["metadata"]
        assert (about["action"], about["text"], about["readers"]) == (turn.action.type, turn.action.text, turn.readers)


def test_an_agent_who_is_called_as_sotopias_world_goes_nowhere() -> None:
    loaded = parse_scenario(
        "version: 1\nid: x\ntitle: x\ninfo: {what: x}\nsetting: Here.\nagents:\n" + quoted(("Environment", "Bo")), "x"
    )
    assert not sotopia_out.fits(loaded)


def test_the_page_names_what_sotopias_files_cannot_hold() -> None:
    page = (Path(__file__).resolve().parent.parent / "docs" / "exchange.md").read_text()
    row = re.search(r"^\| `sotopia` \| ([^|]+) \|$", page, re.MULTILINE)
    assert row is not None and row[1].split(", ") == [*sotopia_out.LOST, "prompts", "titles"]
