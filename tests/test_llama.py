"""The engine on the embedded model: real inference, caches, exactness, chat templates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from localsim.backends.base import Backend
from localsim.backends.llama.chat import ChatTokenizer
from localsim.backends.llama.engine import LlamaBackend
from localsim.backends.llama.lib import LlamaModel
from localsim.backends.llama.sampler import Candidates, Sampler
from localsim.backends.llama.template import ChatTemplate
from localsim.conversation.episode import Repro, Sampling
from localsim.conversation.modes import MODES, Ask, Say
from localsim.conversation.requests import Generation, Message, Request
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import BackendUnavailable, GenerationFailed
from localsim.scenarios.parse import parse_scenario
from tests.conftest import TALK, answering, driven, spec_of

pytestmark = pytest.mark.model


class SharedModel(LlamaModel):
    """The session's weights under a backend that would otherwise free them."""

    def __init__(self, model: LlamaModel) -> None:
        self.__dict__.update(model.__dict__)

    def free(self) -> None:
        """The session frees them."""


def engine(model: LlamaModel, sequences: int = 4, context: int = 1024, repro: Repro = "stable") -> LlamaBackend:
    return LlamaBackend(
        SharedModel(model), name="m", sha256="0" * 64, sequences=sequences, context=context, threads=2, repro=repro
    )


@pytest.fixture
def backend(engine_model: LlamaModel) -> Iterator[LlamaBackend]:
    made = engine(engine_model)
    yield made
    made.close()


def short(turns: int = 4, chars: int = 60) -> LoadedScenario:
    return parse_scenario(TALK + f"limits: {{turns: {turns}, chars: {chars}}}\n", "talk.yaml")


def converse(backend: Backend, specs: list[Any]) -> list[list[tuple[str, str]]]:
    """All episodes side by side; their turns."""
    texts: list[list[tuple[str, str]]] = [[] for _ in specs]
    waiting: dict[int, tuple[int, Any]] = {}

    def advance(number: int, play: Any, value: Generation | None) -> None:
        try:
            step = play.send(value)
            while not isinstance(step, Ask):
                if isinstance(step, Say):
                    texts[number].append((step.turn.action.type, step.turn.action.text))
                step = next(play)
            waiting[backend.submit(step.request)] = (number, play)
        except StopIteration:
            for role in specs[number].models:
                backend.release(f"{specs[number].hash}/{role}")

    for number, spec in enumerate(specs):
        advance(number, MODES[spec.mode](spec), None)
    while waiting:
        for done in backend.poll():
            assert isinstance(done.result, Generation), done.result
            advance(*waiting.pop(done.ticket), done.result)
    return texts


def first_request(loaded: LoadedScenario, **changes: Any) -> Request:
    step = next(MODES["agents"](spec_of(loaded, **changes)))
    assert isinstance(step, Ask)
    return step.request


def finish(backend: LlamaBackend, request: Request) -> Any:
    ticket = backend.submit(request)
    while True:
        for done in backend.poll():
            assert done.ticket == ticket
            return done.result


def test_a_turn_is_one_well_formed_line(backend: LlamaBackend) -> None:
    result = finish(backend, first_request(short()))
    assert isinstance(result, Generation)
    assert result.cause in ("finished", "end_of_text")
    assert result.text.startswith((": ", " [")) and "\n" not in result.text[:-1]
    assert result.prompt_tokens == result.evaluated_tokens > 100
    assert result.generated_tokens > 4
    assert result.details["sampling"]["temperature"] == Sampling.temperature


def test_only_new_tokens_are_evaluated(backend: LlamaBackend) -> None:
    spec = spec_of(short(turns=6))
    results: list[Generation] = []
    steps, _ = driven(spec, answering(backend, into=results))
    evaluated: dict[str, list[tuple[int, int]]] = {}
    for step, result in zip((step for step in steps if isinstance(step, Ask)), results, strict=True):
        evaluated.setdefault(step.request.speaker, []).append((result.prompt_tokens, result.evaluated_tokens))
    for rows in evaluated.values():
        assert rows[0][0] == rows[0][1]
        for (before, _), (now, fresh) in pairwise(rows):
            assert fresh <= now - before, "its own reply is in the cache already"


@pytest.mark.parametrize("mode", ["agents", "script"])
def test_exact_is_the_same_text_whatever_else_runs(engine_model: LlamaModel, mode: Any) -> None:
    loaded = short(turns=3, chars=40)
    specs = [spec_of(loaded, mode, index=index, repro="exact") for index in range(3)]
    alone = engine(engine_model, sequences=2, repro="exact")
    together = engine(engine_model, sequences=6, repro="exact")
    try:
        one_by_one = [converse(alone, [spec])[0] for spec in specs]
        again_after_others = converse(alone, [specs[0]])[0]
        side_by_side = converse(together, specs)
    finally:
        alone.close()
        together.close()
    assert one_by_one == side_by_side
    assert one_by_one[0] == again_after_others
    assert len({str(texts) for texts in one_by_one}) == 3, "other seeds, other texts"


def test_more_sessions_than_sequences_wait_their_turn(engine_model: LlamaModel) -> None:
    backend = engine(engine_model, sequences=1)
    try:
        loaded = short(turns=1)
        requests = [first_request(loaded, index=index) for index in range(3)]
        tickets = {backend.submit(request): request for request in requests}
        seen = []
        while len(seen) < 3:
            for done in backend.poll():
                seen.append(done.ticket)
                backend.release(tickets[done.ticket].session)
        assert seen == list(tickets)
    finally:
        backend.close()


def test_an_opening_is_evaluated_once_for_all_seeds(engine_model: LlamaModel) -> None:
    backend = engine(engine_model, sequences=2)
    try:
        first, second = first_request(short()), first_request(short(), index=1)
        tickets = [backend.submit(first), backend.submit(second)]
        found: dict[int, Any] = {}
        while len(found) < 2:
            found |= {done.ticket: done.result for done in backend.poll()}
        assert [found[ticket].evaluated_tokens for ticket in tickets] == [found[tickets[0]].prompt_tokens, 1]
    finally:
        backend.close()


def test_a_listener_set_aside_has_lost_nothing(engine_model: LlamaModel) -> None:
    """One sequence for two agents: each turn swaps caches, and greedy text is what it is without swapping."""
    spec = spec_of(short(turns=6), sampling=Sampling(temperature=0), repro="exact")
    crowded, roomy = engine(engine_model, 1, repro="exact"), engine(engine_model, 2, repro="exact")
    try:
        assert converse(crowded, [spec]) == converse(roomy, [spec])
    finally:
        crowded.close()
        roomy.close()


def third_of_three(backend: LlamaBackend) -> tuple[str, int | None]:
    """Greedy text of a conversation whose two neighbours have gone, and the sequence in which it ended."""
    sampling = Sampling(temperature=0)
    requests = [replace(first_request(short(), sampling=sampling), session=str(number)) for number in range(3)]
    tickets = [backend.submit(request) for request in requests]
    while len(backend._jobs) < 3:
        assert not backend.poll(), "all three still write"
    session = backend._jobs[tickets[2]].cache
    assert session.sequence == 2
    for ticket in tickets[:2]:
        backend.cancel(ticket)
    found = [done.result for _ in range(200) for done in backend.poll()]
    assert len(found) == 1 and isinstance(found[0], Generation), found
    return found[0].text, session.sequence


def test_who_still_writes_closes_up_and_takes_its_cache_along(
    engine_model: LlamaModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = []
    for moves in (True, False):
        backend = engine(engine_model)
        if not moves:
            monkeypatch.setattr(backend._evaluator, "settle", lambda _working: [])
        text, sequence = third_of_three(backend)
        backend.close()
        assert sequence == (0 if moves else 2)
        texts.append(text)
    assert texts[0] == texts[1]


def test_a_cache_that_is_lost_on_the_move_fails_its_conversation_alone(backend: LlamaBackend) -> None:
    requests = [replace(first_request(short(), index=index), session=str(index)) for index in range(3)]
    tickets = [backend.submit(request) for request in requests]
    while len(backend._jobs) < 3:
        assert not backend.poll(), "all three still write"
    backend.cancel(tickets[0])
    put = backend._evaluator._put
    backend._evaluator._put = lambda *seat: put(*seat) and False
    failed = {done.ticket: done.result for done in backend._settle()}
    assert list(failed) == [tickets[2]] and isinstance(failed[tickets[2]], GenerationFailed)
    assert set(backend._jobs) == {tickets[1]}


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(temperature=0),
        Sampling(temperature=1.5, top_k=200, repeat_penalty=1.3),
        Sampling(top_k=0),
        Sampling(dry_others=2, repeat_penalty=1.15, repeat_window=64),
    ],
)
def test_what_the_likeliest_tokens_give_is_what_all_tokens_give(engine_model: LlamaModel, sampling: Sampling) -> None:
    """Only as many candidates are looked at as a draw can depend on. Penalties lower the likeliest here; DRY too, for
    the likeliest of all would say once more what was said.
    """
    candidates, generator = Candidates(engine_model), np.random.default_rng(1)
    few, all_of_them = (Sampler(engine_model, sampling, 7, None) for _ in range(2))
    all_of_them._most = None
    try:
        for _ in range(20):
            logits = generator.normal(0, 3, engine_model.n_vocab).astype(np.float32)
            likeliest, others = np.split(np.argsort(logits)[-sampling.repeat_window :], 2)
            for sampler in (few, all_of_them):
                sampler.hear(*([*said, *said[:-1]] for said in (others.tolist(), likeliest.tolist())))
            drawn = [sampler.draw(candidates, logits, in_text=True) for sampler in (few, all_of_them)]
            assert drawn[0] == drawn[1]
    finally:
        few.free()
        all_of_them.free()


def test_what_another_said_is_not_said_after(engine_model: LlamaModel) -> None:
    """Without `dry_others` a repetition of others is an answer; with it a sequence longer than that gets a penalty."""
    candidates, words = Candidates(engine_model), engine_model.tokenize(" I like the old harbour best", special=False)
    logits = np.zeros(engine_model.n_vocab, dtype=np.float32)
    logits[words] = [5.0 + place for place in range(len(words))]
    drawn = {}
    for length in (0, 2):
        sampler = Sampler(engine_model, Sampling(temperature=0, dry_multiplier=10.0, dry_others=length), 7, None)
        sampler.hear([], words)
        sampler.take(words[:-1], in_text=True)
        drawn[length] = sampler.draw(candidates, logits, in_text=True)
        sampler.free()
    assert drawn[0] == words[-1] and drawn[2] == words[-2]


def test_acts_and_words_are_drawn_from_one_stream(engine_model: LlamaModel) -> None:
    """Where acts have no threshold, as in runs before there was one: the same seed still gives the same text."""
    candidates, generator = Candidates(engine_model), np.random.default_rng(3)
    sampling = Sampling(temperature=1.5, dry_multiplier=0.0)
    mixed, words = (Sampler(engine_model, sampling, 7, None) for _ in range(2))
    for place in range(30):
        logits = generator.normal(0, 3, engine_model.n_vocab).astype(np.float32)
        assert mixed.draw(candidates, logits, in_text=place % 3 > 0) == words.draw(candidates, logits, in_text=True)
    mixed.free()
    words.free()


def test_an_unlikely_act_is_never_drawn(engine_model: LlamaModel) -> None:
    """Within an utterance the same token can be drawn."""
    candidates = Candidates(engine_model)
    logits = np.full(engine_model.n_vocab, -50.0, dtype=np.float32)
    logits[[100, 200]] = [2.0, 1.0]  # the second is drawn in 27% of cases, and is 37% as likely as the first
    for least, seen in ((0.0, {100, 200}), (0.3, {100, 200}), (0.5, {100})):
        sampler = Sampler(engine_model, Sampling(temperature=1.0, act_min_p=least), 7, None)
        assert {sampler.draw(candidates, logits, in_text=False) for _ in range(50)} == seen
        assert {sampler.draw(candidates, logits, in_text=True) for _ in range(50)} == {100, 200}
        sampler.free()


def test_a_refused_draw_is_drawn_again_as_from_the_whole_vocabulary(engine_model: LlamaModel) -> None:
    """Letters only: the likeliest tokens are refused in some draws, and in some nearly all tokens are."""
    letters, one = 'root ::= [a-z ]+ "\\n"', 'root ::= "ab" [a-z]*'
    candidates, generator = Candidates(engine_model), np.random.default_rng(2)
    refused = 0
    for grammar in (letters, one):
        few, whole = (Sampler(engine_model, Sampling(temperature=1.0), 7, grammar) for _ in range(2))
        whole._most = None
        for _ in range(20):
            logits = generator.normal(0, 3, engine_model.n_vocab).astype(np.float32)
            assert few.draw(candidates, logits, in_text=True) == whole.draw(candidates, logits, in_text=True)
        refused += few.refused
        few.free()
        whole.free()
    assert refused > 20


def test_finished_lines_are_cut_into_tokens_as_in_one_text(engine_model: LlamaModel) -> None:
    chat = ChatTokenizer(engine_model)
    asked = (Message("system", "s"), Message("user", "u"))
    lines = ("Ana: Hi there!", 'Bo: 漢字 "no"', "(Round 2 begins.)")
    begun = chat.prompt((*asked, *(Message("line", line) for line in lines)), "Ana")
    whole = chat.prompt(asked, "".join(f"{line}\n" for line in lines) + "Ana")
    assert begun == whole
    own = tuple(engine_model.tokenize("Bo: 漢字", special=False)) + tuple(engine_model.tokenize(' "no"', special=False))
    drawn = chat.prompt((*asked, *(Message("line", line) for line in lines)), "Ana", {lines[1]: own})
    assert engine_model.text_of(drawn) == engine_model.text_of(whole), "the words are the same however they were cut"


def test_a_conversation_that_outgrows_its_context_says_so(engine_model: LlamaModel) -> None:
    tiny = engine(engine_model, sequences=1, context=192)
    try:
        result = finish(tiny, first_request(short()))
        assert isinstance(result, GenerationFailed)
        assert "outgrew the context of 192 tokens" in str(result) and "--ctx" in str(result.hint)
        other = replace(first_request(short()), messages=(Message("system", "s"), Message("user", "u")), session="b")
        tiny.release(first_request(short()).session)
        assert isinstance(finish(tiny, other), Generation), "the engine goes on with others"
    finally:
        tiny.close()


def test_a_cancelled_request_is_not_returned(backend: LlamaBackend) -> None:
    first, second = first_request(short()), first_request(short(), index=1)
    ticket = backend.submit(first)
    backend.poll()
    backend.cancel(ticket)
    assert isinstance(finish(backend, second), Generation)


def test_without_a_grammar_the_text_is_free(backend: LlamaBackend) -> None:
    sampling = Sampling(grammar=False, temperature=0)
    result = finish(backend, first_request(short(), sampling=sampling))
    assert isinstance(result, Generation)
    assert result.details["forced"] == 0
    assert result.generated_tokens <= 160


@pytest.mark.parametrize("repro", ["stable", "exact"])
def test_the_same_schedule_gives_the_same_text(engine_model: LlamaModel, repro: str) -> None:
    """The promise of `stable`; `exact` keeps it whatever ran before, so there one engine does both."""
    request = first_request(short(), sampling=Sampling(temperature=0))
    engines = [engine(engine_model, 2, repro=repro) for _ in range(2 if repro == "stable" else 1)]
    try:
        texts = {
            finish(engines[number % len(engines)], replace(request, session=str(number), seed=number + 1)).text
            for number in range(2)
        }
        assert len(texts) == 1
    finally:
        for one in engines:
            one.close()


# ---- templates -----------------------------------------------------------------------------------------------------

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NO_SYSTEM = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "{% for m in messages %}<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content | trim }}"
    "<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
LOSES = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"
SHOUTS = "{% for m in messages %}{{ loop.index }}{{ m.content | reverse }}{% endfor %}"
CHAT = [Message("system", "Be Ana."), Message("user", "Bo: {{ x }}"), Message("assistant", "{}"), Message("user", "hi")]


def test_contents_are_pieces_of_their_own() -> None:
    pieces = ChatTemplate(CHATML, bos="<s>", eos="</s>", name="t").pieces(CHAT)
    assert [piece.text for piece in pieces if piece.is_content] == ["Be Ana.", "Bo: {{ x }}", "{}", "hi"]
    assert "".join(piece.text for piece in pieces).endswith("<|im_end|>\n<|im_start|>assistant\n")


def test_a_template_without_system_gets_it_in_the_first_user_turn() -> None:
    pieces = ChatTemplate(NO_SYSTEM, bos="<bos>", eos="", name="t").pieces(CHAT)
    assert [piece.text for piece in pieces if piece.is_content] == ["Be Ana.\n\nBo: {{ x }}", "{}", "hi"]
    assert pieces[0].text.startswith("<bos><start_of_turn>user")


@pytest.mark.parametrize("source", [LOSES, SHOUTS, "{% for %}", "no messages at all"])
def test_a_template_that_does_not_carry_every_message_is_refused(source: str) -> None:
    with pytest.raises(BackendUnavailable):
        ChatTemplate(source, bos="", eos="", name="t")


def test_the_beginning_token_stands_once(engine_model: LlamaModel) -> None:
    tokenizer = ChatTokenizer(engine_model)
    tokens = tokenizer.prompt(CHAT, "")
    begin = engine_model.begin_tokens()
    assert not begin or tokens.count(begin[0]) == 1 or tokens[:1] != [begin[0], begin[0]]
    assert engine_model.kv_bytes_per_token == 2 * 30 * 3 * (64 + 64)
    assert engine_model.n_ctx_train >= 2048
