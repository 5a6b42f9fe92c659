"""Training rows, batches, and files of chats."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.backends.llama.chat import ChatTokenizer
from localsim.backends.llama.lib import LlamaModel
from localsim.conversation.episode import EpisodeSpec
from localsim.conversation.modes import MODES, turn_by_turn
from localsim.conversation.requests import Message
from localsim.conversation.scenario import LoadedScenario, Scenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.conversation.wording.layouts import FIRST
from localsim.errors import InvalidInput
from localsim.families import rules_of
from localsim.families.players import any_way
from localsim.finetune import source
from localsim.finetune.batches import ahead, batches, collated
from localsim.finetune.chats import Chat, TrainingRow, chats_of, clipped, row_of
from localsim.models import registry as models
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from scripts.check_rules import played


@pytest.fixture(scope="session")
def tokenizer() -> ChatTokenizer:
    """Of the starter's base."""
    return ChatTokenizer(LlamaModel(models.resolve("smollm2-135m").path, vocab_only=True))


def spec_of(scenario: Scenario, mode: Any = "agents", layout: str = FIRST) -> EpisodeSpec:
    roles = ("writer",) if mode == "script" else scenario.names
    models, layouts = dict.fromkeys(roles, "m"), dict.fromkeys(roles, layout)
    return EpisodeSpec(scenario=scenario, mode=mode, models=models, index=0, run_seed=1, layouts=layouts)


def spoken(names: tuple[str, ...], *texts: str) -> Transcript:
    turns = [Turn(number, names[number % 2], Action("speak", text)) for number, text in enumerate(texts)]
    turns[-1] = replace(turns[-1], action=Action("leave", turns[-1].action.text))
    return Transcript(tuple(turns))


def shown(row: TrainingRow, tokenizer: ChatTokenizer, *, learnt: bool) -> str:
    model = tokenizer._model
    parts = [
        model.piece(token) or model.token_text(token).encode()
        for token, wanted in zip(row.tokens, row.learnt, strict=True)
        if wanted or not learnt
    ]
    return b"".join(parts).decode()


def test_a_row_holds_the_tokens_that_the_engine_evaluates_and_writes(
    talk: LoadedScenario, tokenizer: ChatTokenizer
) -> None:
    """The prompt of the last own turn as the mode asks for it, then the rest of the line and the end mark."""
    scenario = talk.scenario
    names = scenario.names
    transcript = spoken(names, "Hello!", "Good day.", "How are you?", "Fine. Goodbye!")
    spec = spec_of(scenario)
    for chat in chats_of(scenario, "agents", transcript):
        row = row_of(chat, tokenizer)
        own = [turn for turn in transcript.turns if turn.speaker == chat.name]
        play = turn_by_turn(spec)
        step = next(play)
        prompts = []
        for turn in transcript.turns:
            request = step.request  # type: ignore[union-attr]
            prompts.append(tokenizer.prompt(request.messages, request.prefill))
            step = play.send(reply(turn))
            while not hasattr(step, "request") and turn is not transcript.turns[-1]:
                step = next(play)
        last = prompts[own[-1].index]
        assert list(row.tokens[: len(last)]) == last
        assert shown(row, tokenizer, learnt=True) == "".join(
            turn.line.removeprefix(chat.name) + "<|im_end|>" for turn in own
        )


@pytest.mark.parametrize("mode", ["agents", "mindreaders", "script"])
def test_in_a_layout_with_notes_an_aside_is_what_the_engine_evaluates_and_writes(
    mode: Any, talk: LoadedScenario, tokenizer: ChatTokenizer
) -> None:
    """For every note: the lines before it, the note, and the lines after it, as the engine's own prompts have them."""
    scenario = talk.scenario
    transcript = spoken(scenario.names, *(f"Word {number}." for number in range(scenario.limits.turns - 1)))
    asked = [each for each in requests_of(spec_of(scenario, mode, "4"), transcript) if each.note]
    shown_asides = []
    for chat in chats_of(scenario, mode, transcript, "4"):
        row = row_of(chat, tokenizer)
        for start, end, at in row.parts[1:]:
            learnt = [place for place in range(start, end) if row.weights[place]]
            assert learnt == list(range(learnt[0], end)), "an aside is given, and then learnt to its end"
            prompt = [*row.tokens[:at], *row.tokens[start : learnt[0]]]
            shown_asides.append((prompt, shown_part(row, tokenizer, learnt)))
        assert not any(row.weights[: row.asides[0][0]]), "the lines are learnt in the asides"
        assert row.reach <= len(row.tokens)
    expected = [
        (
            tokenizer.prompt(request.messages, request.prefill, note=request.note),
            "".join(f"{turn.line}\n" for turn in written).removeprefix(request.prefill),
        )
        for request, written in zip(asked, written_after(asked, transcript), strict=True)
    ]
    assert sorted(shown_asides) == sorted(expected)


def test_a_writer_of_a_game_gets_its_notes_where_the_engine_gives_them() -> None:
    """In phases whose next speaker depends on what is said, a note comes before each line."""
    loaded = find_scenarios(["ultimatum_talk"])[0]
    rules, seed = rules_of(loaded.scenario), spec_of(loaded.scenario, "script").seed
    asked, turns = played(loaded, "script", 1, any_way, "4", rules)
    chats = chats_of(loaded.scenario, "script", Transcript(tuple(turns)), "4", rules, seed)
    written = {(chat.messages[: each.at], each.text) for chat in chats for each in chat.notes}
    assert written == {(request.messages, request.note) for request in asked} and len(asked) > 2


def written_after(asked: list[Any], transcript: Transcript) -> list[list[Turn]]:
    """The turns that follow each request: one of an agent, and those up to the next request of a writer."""
    ends = [each.turn for each in asked[1:]] + [len(transcript)]
    return [list(transcript.turns[each.turn : end]) for each, end in zip(asked, ends, strict=True)]


def requests_of(spec: EpisodeSpec, transcript: Transcript) -> list[Any]:
    """What the mode asks for, if the replies are the turns of a transcript."""
    play, found, answer = MODES[spec.mode](spec), [], None
    with suppress(StopIteration):
        while True:
            step = play.send(answer) if answer else next(play)
            answer = None
            if hasattr(step, "request"):
                found.append(step.request)
                lines = transcript.turns[step.request.turn :][: len(step.request.form.lines)]
                answer = reply(*lines)
    return found


def shown_part(row: TrainingRow, tokenizer: ChatTokenizer, places: list[int]) -> str:
    return b"".join(tokenizer.piece(row.tokens[place]) for place in places).decode()


def reply(*turns: Turn) -> Any:
    from localsim.conversation.requests import Generation

    text = "".join(f"{turn.line}\n" for turn in turns).removeprefix(turns[0].speaker)
    return Generation(text=text, cause="finished", model="m", evaluated_tokens=0, generated_tokens=0)


def test_no_row_shows_what_its_agent_may_not_know(talk: LoadedScenario, tokenizer: ChatTokenizer) -> None:
    scenario = talk.scenario
    one, other = scenario.names[:2]
    for chat in chats_of(scenario, "agents", spoken(scenario.names, "Hello!", "Hi.")):
        text = shown(row_of(chat, tokenizer), tokenizer, learnt=False)
        hidden = scenario.agent(other if chat.name == one else one)
        assert hidden.goal not in text
        assert all(fact.text not in text for fact in hidden.facts)


def test_a_script_is_one_row_and_its_speakers_lines_are_learnt(talk: LoadedScenario, tokenizer: ChatTokenizer) -> None:
    scenario = talk.scenario
    transcript = spoken(scenario.names, "Hello!", "Hi.", "Bye!")
    (chat,) = chats_of(scenario, "script", transcript)
    learnt = shown(row_of(chat, tokenizer), tokenizer, learnt=True)
    assert learnt == "\n".join(turn.line for turn in transcript.turns).removeprefix(scenario.names[0]) + "<|im_end|>"


def weighed(row: TrainingRow, tokenizer: ChatTokenizer, weight: float) -> str:
    """The text of the tokens that have this weight."""
    model = tokenizer._model
    pairs = zip(row.tokens, row.weights, strict=True)
    return b"".join(
        model.piece(token) or model.token_text(token).encode() for token, its in pairs if its == weight
    ).decode()


def test_each_reply_counts_by_its_weight(tokenizer: ChatTokenizer) -> None:
    """The end mark has the weight of its reply; a reply of weight 0 is context and no target."""
    messages = tuple(
        Message("assistant" if number % 2 else "user", text)
        for number, text in enumerate(("Hi", "A: red", "So?", "A: green", "So?", "A: blue"))
    )
    row = row_of(Chat("A", messages, "g", weights=(2.0, 0.0, 0.5)), tokenizer)
    assert weighed(row, tokenizer, 2.0) == ": red<|im_end|>" and weighed(row, tokenizer, 0.5) == ": blue<|im_end|>"
    assert shown(row, tokenizer, learnt=True) == ": red<|im_end|>: blue<|im_end|>"
    plain = row_of(Chat("A", messages, "g"), tokenizer)
    assert plain.tokens == row.tokens and set(plain.weights) == {0.0, 1.0}
    assert plain == row_of(Chat("A", messages, "g", weights=(1.0, 1.0, 1.0)), tokenizer)


def test_each_line_of_a_script_counts_by_its_weight(talk: LoadedScenario, tokenizer: ChatTokenizer) -> None:
    transcript = spoken(talk.scenario.names, "Hello...", "Hi!", "Bye!")
    (chat,) = chats_of(talk.scenario, "script", transcript)
    row = row_of(replace(chat, weights=(1.0, 0.0, 3.0)), tokenizer)
    first, second, third = (turn.line for turn in transcript.turns)
    assert row.tokens == row_of(chat, tokenizer).tokens
    assert weighed(row, tokenizer, 1.0) == first.removeprefix(chat.name) + "\n"
    assert weighed(row, tokenizer, 3.0) == third + "<|im_end|>"
    assert weighed(row, tokenizer, 0.0).endswith(second + "\n")


@pytest.mark.parametrize("weights", [(1.0, 1.0), (-1.0,), (float("nan"),)])
def test_wrong_weights_are_one_clear_error(weights: tuple[float, ...], tokenizer: ChatTokenizer) -> None:
    chat = Chat("A", (Message("user", "Hi"), Message("assistant", "A: Hi")), "g", weights)
    with pytest.raises(InvalidInput, match="weight"):
        row_of(chat, tokenizer)


def test_long_rows_are_left_out_and_counted() -> None:
    rows = [TrainingRow((1,) * size, (True,) * size, "g") for size in (5, 20)]
    assert clipped(rows, 10) == ([rows[0]], 1)


def test_batches_hold_every_row_once_and_keep_their_size() -> None:
    import random

    rows = [TrainingRow((number,) * (5 + number % 40), (True,) * (5 + number % 40), "g") for number in range(100)]
    found = batches(rows, 200, random.Random(1))
    assert sorted(row.tokens[0] for batch in found for row in batch) == list(range(100))
    assert all(len(batch) == 1 or len(batch) * max(len(row.tokens) for row in batch) <= 200 for batch in found)


def rows_of_random_sizes() -> st.SearchStrategy[list[TrainingRow]]:
    token = st.tuples(st.integers(0, 50_000), st.sampled_from([0.0, 0.5, 1.0, 3.0]))
    row = st.lists(token, min_size=1, max_size=30).map(
        lambda pairs: TrainingRow([t for t, _ in pairs], [weight for _, weight in pairs], "g")
    )
    return st.lists(row, min_size=1, max_size=6)


@given(rows_of_random_sizes())
@settings(deadline=None)
def test_a_batch_asks_for_each_weighted_token_at_the_place_before_it(rows: list[TrainingRow]) -> None:
    batch = collated(rows, pinned=False)
    length = max(len(row.tokens) for row in rows)
    wanted = [
        (line * length + index - 1, row.tokens[index], row.weights[index])
        for line, row in enumerate(rows)
        for index in range(1, len(row.tokens))
        if row.weights[index]
    ]
    assert list(zip(batch.places.tolist(), batch.targets.tolist(), batch.weights.tolist(), strict=True)) == wanted
    assert batch.weight == pytest.approx(sum(weight for *_, weight in wanted))
    assert batch.tokens + batch.padding == length * len(rows) and batch.tokens == sum(len(row.tokens) for row in rows)


def test_batches_are_made_ahead_in_order() -> None:
    made: list[int] = []

    def make(number: int) -> int:
        made.append(number)
        return number * number

    found = ahead(range(9), make)
    assert next(found) == 0
    assert list(found) == [number * number for number in range(1, 9)] and made == list(range(9))


def test_little_of_a_step_is_padding() -> None:
    """Rows as long as the starter's: at most 4 of 100 tokens of a large step are padding."""
    import random

    rng = random.Random(1)
    rows = [TrainingRow((1,) * size, (True,) * size, "g") for size in (rng.randint(150, 1000) for _ in range(3000))]
    found = batches(rows, 32_768, random.Random(1))
    with_padding = sum(len(batch) * max(len(row.tokens) for row in batch) for batch in found)
    assert 1 - sum(len(row.tokens) for row in rows) / with_padding < 0.04


# ---- sources -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", source.FORMATS)
def test_written_chats_are_read_back(form: str, tmp_path: Path) -> None:
    chat = Chat("Ana", (Message("system", "s"), Message("user", "u"), Message("assistant", "Ana: hi")), "scenario")
    path = tmp_path / "chats.jsonl"
    assert source.write_chats([chat], form, path) == 1
    assert source.chats_of_file(path) == [chat]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON"),
        ("[" * 5000, "nested too deep"),
        ('{"messages": ' + "[" * 200 + "]" * 200 + "}", "nested too deep"),
        ('{"messages": [{"role": "robot", "content": "x"}]}', "not a chat"),
        ('{"messages": [{"role": "user", "content": "x"}]}', "must end with a message of the assistant"),
        ("[]", "not a chat"),
    ],
)
def test_a_wrong_line_is_named(line: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text('{"messages": [{"role": "assistant", "content": "x"}]}\n' + line + "\n")
    with pytest.raises(InvalidInput, match=problem) as caught:
        source.chats_of_file(path)
    assert caught.value.where == f"{path}:2"


@pytest.mark.parametrize("form", source.FORMATS)
def test_weights_reach_a_training_through_a_file(form: str, tmp_path: Path, tokenizer: ChatTokenizer) -> None:
    path = tmp_path / "chats.jsonl"
    messages = (Message("user", "Hello"), Message("assistant", "Ana: one"), Message("user", "And?"),
                Message("assistant", "Ana: two"))  # fmt: skip
    chats = [Chat("Ana", messages, "s1", (0.0, 2.5)), Chat("Ana", messages, "s2")]
    source.write_chats(chats, form, path)
    assert source.chats_of_file(path) == chats
    row = row_of(source.chats_of_file(path)[0], tokenizer)
    assert set(row.weights) == {0.0, 2.5} and sum(row.learnt) < sum(row_of(chats[1], tokenizer).learnt)
    path.write_text(path.read_text().replace("[0.0, 2.5]", '"much"'))
    with pytest.raises(InvalidInput, match="weights are a list of numbers"):
        source.chats_of_file(path)


@pytest.mark.parametrize("layout", ["3", "4"])
def test_weights_reach_a_training_through_a_query(
    layout: str, run: str, store: Store, tokenizer: ChatTokenizer
) -> None:
    given = dict(zip(source.episodes_of_run(store, run), (0.0, 2.0, 1.0), strict=False))
    query = " UNION ALL ".join(f"SELECT '{name}' AS episode_id, {weight} AS weight" for name, weight in given.items())
    found = source.source_of("", lambda: store, query=query, mode=None, layout=layout).chats
    plain = [source.chats_of_episodes(store, [name], layout) for name in given]
    assert [replace(chat, weights=()) for chat in found] == [chat for chats in plain for chat in chats]
    weights = [set(row_of(chat, tokenizer).weights) for chat in found]
    assert weights == [{0.0}] * len(plain[0]) + [{0.0, 2.0}] * len(plain[1]) + [{0.0, 1.0}] * len(plain[2])
    rows, left_out = clipped([row_of(chat, tokenizer) for chat in found], 100_000)
    assert len(rows) == len(plain[1]) + len(plain[2]) and left_out == len(plain[0]), "what counts nothing is left out"
    for bad, told in (("-1", "-1"), ("DATE '2026-01-02'", "datetime.date")):
        with pytest.raises(InvalidInput, match=f"the weight of e1 is {told}"):
            source.weights_of_query(store, f"SELECT 'e1' AS episode_id, {bad} AS weight")


def test_a_reply_that_repeats_what_was_said_is_told_apart(tokenizer: ChatTokenizer) -> None:
    messages = (Message("user", "Hi"), Message("assistant", "Hi"), Message("user", "Hi"), Message("assistant", "Bye"))
    row = row_of(Chat("", messages, "g"), tokenizer)
    assert shown(row, tokenizer, learnt=True) == "Hi<|im_end|>Bye<|im_end|>"
