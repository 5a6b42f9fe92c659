"""Layouts of prompts: what a note says when, that it tells nobody anything new, and which model has which layout."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from localsim.backends.endpoint import server_messages
from localsim.backends.llama.chat import ChatTokenizer
from localsim.backends.llama.lib import LlamaModel
from localsim.conversation.episode import EpisodeSpec, Mode
from localsim.conversation.modes import MODES, Ask, roles
from localsim.conversation.requests import Generation, Request, reply_begun
from localsim.conversation.scenario import WRITER, LoadedScenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.conversation.visibility import observe
from localsim.conversation.wording.layouts import DEFAULT, FIRST, LAYOUTS
from localsim.conversation.wording.moving import FEW_LEFT
from localsim.conversation.wording.notes import note, script_note
from localsim.conversation.wording.paraphrases import WORDINGS
from localsim.conversation.wording.wordings import Wording
from localsim.errors import InvalidInput
from localsim.models import registry, sidecars
from localsim.reports.audit.prompts import leaks_at_first
from localsim.runs.plan import Plan, command_of, free, layouts_of, plan_of
from localsim.scenarios.find import find_scenarios, shipped, shipped_sources

SEARCH = find_scenarios(["mutual_friends_01"])[0]
TRIP = find_scenarios(["planning_a_trip"])[0]
DOG = find_scenarios(["a_dog_comes_to_stay"])[0]
NOTES = ("who", "begin", "answer", "go_on", "settle", "end")


def talk(loaded: LoadedScenario, turns: int) -> Transcript:
    names = loaded.scenario.names
    return Transcript(tuple(Turn(i, names[i % len(names)], Action("speak", f"Line {i}.")) for i in range(turns)))


def told(turns: int, loaded: LoadedScenario = SEARCH, mode: Mode = "agents") -> str:
    """The note before the next line of a talk in turn."""
    names = loaded.scenario.names
    return note(observe(loaded.scenario, mode, names[turns % len(names)], talk(loaded, turns)), WORDINGS[0])


def spec_in(loaded: LoadedScenario, mode: Mode, layout: str) -> EpisodeSpec:
    """An episode in which every role has a layout."""
    models = dict.fromkeys(roles(mode, loaded.scenario.names), "m")
    return EpisodeSpec(loaded.scenario, mode, models, 0, 7, layouts=dict.fromkeys(models, layout))


def requests(loaded: LoadedScenario, mode: Mode, layout: str, lines: int = 5) -> list[Request]:
    """The first requests of an episode in which everybody says a line of their own."""
    play, found = MODES[mode](spec_in(loaded, mode, layout)), []
    step = next(play)
    while len(found) < lines:
        if isinstance(step, Ask):
            found.append(step.request)
            step = play.send(Generation(f": Line {len(found)}.\n", "finished", "m"))
        else:
            step = next(play)
    return found


@pytest.mark.parametrize(
    ("turns", "holds", "lacks"),
    [
        (0, ("who", "begin"), ("answer", "end")),
        (1, ("who", "answer"), ("begin", "settle")),
        (2, ("who", "go_on"), ("settle", "end")),
        (4, ("who", "go_on"), ("settle", "end")),
        (5, ("who", "settle"), ("end", "begin")),
        (15, ("who", "settle"), ("end", "begin")),
        (16, ("who", "end"), ("settle", "go_on")),
        (19, ("who", "end"), ("settle", "go_on")),
    ],
)
def test_a_note_says_what_the_line_is_for(turns: int, holds: tuple[str, ...], lacks: tuple[str, ...]) -> None:
    name = SEARCH.scenario.names[turns % 2]
    words = {key: getattr(WORDINGS[0], key).format(name=name, start=f"{name} [leave]") for key in NOTES}
    found = told(turns)
    assert all(words[key] in found for key in holds)
    assert not any(words[key].removesuffix(".") + "." in found for key in lacks if words[key] not in words[holds[1]])
    goal = SEARCH.scenario.agents[turns % 2].goal
    assert (goal in found) == (turns < 16), "the goal is repeated until the time is over"
    assert found.startswith("(") and found.endswith(")") and "\n" not in found


def test_with_three_agents_everybody_has_a_first_and_a_last_note() -> None:
    last, words = TRIP.scenario.limits.turns - 6, WORDINGS[0]
    assert [words.answer in told(turns, TRIP) for turns in range(4)] == [False, True, True, False]
    assert [words.end.partition(":")[0] in told(turns, TRIP) for turns in (last - 1, last)] == [False, True]


def test_a_note_says_how_a_move_begins_and_no_prompt_has_an_example_of_it() -> None:
    """Models that nobody taught chose the value of the example, and copied its dots."""
    names = DOG.scenario.names
    for turn, request in enumerate(requests(DOG, "agents", DEFAULT, 14)):
        begins = f"begin the line with {names[turn % 2]} [propose"
        assert begins in request.messages[0].content and "..." not in request.messages[0].content
        assert "[propose 10" not in request.messages[0].content
        assert (begins in request.note) == (turn > 1) and (FEW_LEFT in request.note) == (turn > 7)
    assert (
        f"{names[0]} [propose 10, in the garden shed]: ..." in requests(DOG, "agents", FIRST, 1)[0].messages[0].content
    )
    script = requests(DOG, "script", DEFAULT, 9)
    assert [FEW_LEFT in request.note for request in script] == [False] * 8 + [True]
    assert all("begin the line with [propose" in request.note for request in script)
    assert script[0].max_tokens == 8 * DOG.scenario.limits.tokens, "a part ends where the note changes"


@pytest.mark.parametrize("name", [source.name for source in shipped_sources()])
def test_modes_differ_in_information_only(name: str) -> None:
    """The same turns give an agent and a mindreader the same note: it names nothing but what both were told."""
    loaded = shipped()[name]
    if len(loaded.scenario.names) < 2:
        return
    for name in loaded.scenario.names:
        both = [observe(loaded.scenario, mode, name, Transcript()) for mode in ("agents", "mindreaders")]
        assert note(both[0], WORDINGS[0]) == note(both[1], WORDINGS[0])
        hidden = [agent.secret for agent in loaded.scenario.agents if agent.secret]
        assert not any(secret in note(seen, WORDINGS[0]) for seen in both for secret in hidden)
    assert list(leaks_at_first(loaded)) == []


def test_a_note_stands_before_its_line_only() -> None:
    asked = requests(SEARCH, "agents", "4")
    for number, request in enumerate(asked):
        chat, lines = reply_begun(request.messages)
        assert [message.role for message in chat] == ["system", "user"] and len(lines) == number
        assert request.note.startswith(f"(You are {request.speaker}.") and request.prefill == request.speaker
        assert not any(line.startswith("(") for line in lines)
    assert asked[2].messages[: len(asked[0].messages)] == asked[0].messages, "a chat grows at its end"


def test_the_writer_has_a_note_and_nobody_else_before_layout_4() -> None:
    script = requests(SEARCH, "script", "4", 1)[0]
    seen = observe(SEARCH.scenario, "script", WRITER, Transcript())
    assert script.note == script_note(seen, WORDINGS[0]) and "Write 10 to 18 lines." in script.note
    assert "goodbye" not in script.note, "as for agents, nothing speaks of the end in the first quarter"
    for mode in ("agents", "mindreaders", "script", "iterative"):
        assert all(request.note == "" for request in requests(SEARCH, mode, FIRST, 1))


def test_a_script_is_written_in_parts_each_with_a_note_of_its_own() -> None:
    """The parts end where an agent's note changes: after a quarter, and before the last turns."""
    play, asked = MODES["script"](spec_in(SEARCH, "script", "4")), []
    step = next(play)
    while len(asked) < 3:
        if isinstance(step, Ask):
            asked.append(step.request)
            lines = [f"{line.speaker}: {place} of {len(asked)}." for place, line in enumerate(step.request.form.lines)]
            text = "\n".join(lines).removeprefix(step.request.prefill)
            step = play.send(Generation(f"{text}\n", "finished", "m"))
        else:
            step = next(play)
    assert [request.turn for request in asked] == [0, 5, 16]
    goal = SEARCH.scenario.agents[1].goal
    assert [goal in request.note for request in asked] == [True, True, False]
    assert ["[leave]" in request.note for request in asked] == [False, True, True]
    assert [len(requests(SEARCH, "script", FIRST, 1)[0].form.lines)] == [20], "one part in a layout without notes"


def test_moves_are_drawn_however_unlikely() -> None:
    """A share below which nothing is drawn is for plain actions; a move is a decision to be measured."""
    game = find_scenarios(["ultimatum_plain"])[0]
    for mode in ("agents", "script"):
        for loaded, least in ((SEARCH, 0.3), (game, 0.0)):
            spec = replace(spec_in(loaded, mode, "4"), sampling=LAYOUTS["4"].sampling)
            step = next(MODES[mode](spec))
            assert isinstance(step, Ask) and step.request.sampling.act_min_p == least


def test_profiles_do_not_look_like_lines_of_the_conversation() -> None:
    """A model of 1.5B went on from "Ana: 29 years old" with "Bo: 38 years old" for a whole script."""
    for mode in ("mindreaders", "script"):
        text = requests(SEARCH, mode, "4", 1)[0].messages[0].content
        starts = [line for line in text.split("\n") for name in SEARCH.scenario.names if line.startswith(f"{name}: ")]
        assert starts == []


def test_the_engine_reads_a_note_before_the_line_and_forgets_it(engine_model: LlamaModel) -> None:
    chat = ChatTokenizer(engine_model)
    first, later = requests(SEARCH, "agents", "4")[0], requests(SEARCH, "agents", "4")[2]
    texts = [engine_model.text_of(chat.prompt(r.messages, r.prefill, note=r.note)).decode() for r in (first, later)]
    assert texts[0].endswith(f"{first.note}\n{first.prefill}") and texts[1].endswith(f"{later.note}\n{later.prefill}")
    assert first.note not in texts[1] and "Line 1.\n" in texts[1]


def test_a_server_gets_the_note_in_the_last_message() -> None:
    first, later = requests(SEARCH, "agents", "4")[0], requests(SEARCH, "agents", "4")[2]
    assert server_messages(first)[-1].content.endswith(first.note)
    sent = server_messages(later)
    assert [message.role for message in sent] == ["system", "user", "assistant", "user"]
    assert "Line 2." in sent[2].content and sent[3].content.endswith(later.note)


def test_every_wording_says_every_note() -> None:
    texts = [field.name for field in fields(Wording) if isinstance(getattr(WORDINGS[0], field.name), str)]
    for words in WORDINGS:
        assert all(getattr(words, name) for name in texts)
        assert "{start}" in words.settle and "{start}" in words.end and "{start}" in words.leave
        assert "{name}" in words.who and "{name}" in words.play and "{few}" in words.script_begin
        assert "[leave]" in words.script_settle
    for name in ("play", "script", "length", "leave", *NOTES, "script_begin", "script_settle", "lines"):
        assert len({getattr(words, name) for words in WORDINGS}) == len(WORDINGS), name


# ---- models --------------------------------------------------------------------------------------------------------


def test_models_have_the_layout_that_they_were_taught_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry.layout_of("starter") == registry.layout_of("starter-peeks") == "3"
    assert registry.layout_of("mix:starter-peeks@0.25,starter") == "3"
    for other in ("smollm2-135m", "qwen2.5-coder-1.5b", "openai:http://127.0.0.1:9/v1#m", "scripted:honest", "unknown"):
        assert registry.layout_of(other) == DEFAULT
    with pytest.raises(InvalidInput, match="must share a layout"):
        registry.layout_of("mix:starter@0.5,smollm2-135m")
    monkeypatch.setenv("LOCALSIM_MODELS", str(tmp_path))
    (tmp_path / "own.gguf").write_bytes(b"weights")
    sidecars.write_sidecar(tmp_path / "own.gguf", name="own", source="starter", type="Q4_0")
    assert registry.layout_of("own") == registry.layout_of(str(tmp_path / "own.gguf")) == "3", "as its source"


def test_an_adapter_names_its_layout() -> None:
    shipped_adapter = registry.merged_adapter(registry.entry("starter-135m"))
    assert registry.layout_of(f"smollm2-135m+{shipped_adapter}") == FIRST, "adapters of before layouts had one"


def test_a_run_takes_layout_and_sampling_of_its_model() -> None:
    plan = Plan((SEARCH,), ("agents", "script"), "scripted", roles={"1": "starter"})
    assert plan.layouts == {"scripted": "4"} and plan.draws == LAYOUTS["4"].sampling
    agents, script = plan.specs()
    one, two = SEARCH.scenario.names
    assert (agents.layouts, script.layouts) == ({two: "4"}, {WRITER: "4"})
    assert one not in agents.layouts, "the starter keeps the first layout"
    assert Plan((SEARCH,), ("agents",), "starter").draws.temperature == 0.4
    assert layouts_of(("human",)) == {}


def test_a_plan_of_before_layouts_is_continued_in_the_first_one() -> None:
    plan = Plan((SEARCH,), ("agents",), "scripted")
    stored = json.loads(plan.as_json())
    assert plan_of(plan.as_json(), lambda _hash: SEARCH).layouts == {"scripted": "4"}
    del stored["layouts"]
    old = plan_of(json.dumps(stored), lambda _hash: SEARCH)
    assert old.layouts == {} and old.specs()[0].layouts == {} and "layouts" not in json.loads(old.as_json())


def test_the_first_layout_leaves_hashes_as_they_were() -> None:
    spec = EpisodeSpec(SEARCH.scenario, "agents", {}, 0, 7)
    assert spec.hash != replace(spec, layouts={"Ana": "4"}).hash


def test_length_free_asks_for_no_length_and_is_repeated_by_its_command() -> None:
    usual, asked = (requests(SEARCH, "agents", layout, 1)[0].messages[0].content for layout in ("4", "4-free"))
    assert usual.replace(f"{WORDINGS[0].length}\n", "") == asked != usual
    layouts = free({"scripted": "4"}, ("scripted", "human"))
    assert layouts == {"scripted": "4-free"}
    plan = Plan((SEARCH,), ("agents", "script"), "scripted", layouts=layouts)
    assert {layout for spec in plan.specs() for layout in spec.layouts.values()} == {"4-free"}
    assert "--length free" in command_of(json.loads(plan.as_json()), ["a.yaml"])
    with pytest.raises(InvalidInput, match="was taught short lines"):
        free({}, ("starter",))
