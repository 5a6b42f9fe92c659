"""Blocks of caches: no session ever reads what another one wrote, whatever is shared, cut, copied or given up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.backends.evaluator import LEAST_SHARED, Part
from localsim.backends.openvino import paged
from localsim.backends.openvino.network import BLOCK, Step
from localsim.backends.openvino.paged import PagedCache
from localsim.errors import GenerationFailed

CONTEXT, SEQUENCES = 4 * BLOCK, 3


class Tape:
    """A network whose keys are the tokens themselves, and whose logits are all that a session's blocks hold."""

    def memory(self, blocks: int) -> tuple[Any, list[np.ndarray[Any, Any]]]:
        self.keys = np.full((blocks, 1, BLOCK, 1), -1)
        return self, [self.keys]

    def logits(self, step: Step) -> np.ndarray[Any, Any]:
        rows = []
        for number, past in enumerate(step.past):
            blocks = step.blocks[step.block_begins[number] : step.block_begins[number + 1]]
            first, last = step.begins[number], step.begins[number + 1]
            assert len(blocks) == paged.blocks_for(past + last - first)
            assert step.positions[first:last].tolist() == list(range(past, past + last - first))
            for token, position in zip(step.tokens[first:last], step.positions[first:last], strict=True):
                self.keys[blocks[position // BLOCK], 0, position % BLOCK, 0] = token
            held = self.keys[blocks, 0, :, 0].reshape(-1)[: past + last - first]
            wanted = sum(first <= row < last for row in step.rows)
            rows += [np.pad(held, (0, CONTEXT - len(held)), constant_values=-1)] * wanted
        return np.array(rows)


@pytest.fixture(autouse=True)
def tape(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(paged, "logits", lambda request, step: request.logits(step))
        yield


def cache(caches: int = SEQUENCES) -> PagedCache:
    network: Any = Tape()
    return PagedCache(network, sequences=SEQUENCES, context=CONTEXT, caches=caches)


def read(caches: PagedCache, *parts: tuple[Any, list[int]]) -> list[list[int]]:
    """Evaluate tokens of sessions; returns what their blocks hold."""
    found = caches.evaluate([Part(session, tokens, 1) for session, tokens in parts])
    return [[int(token) for token in rows[0] if token >= 0] for rows in found]


def prompt(kind: int, length: int) -> list[int]:
    """A prompt; those of one kind have a common beginning, longer than LEAST_SHARED, and end in their own way."""
    return [kind * 1000 + place for place in range(min(length, 40))] + list(range(50, 50 + length - min(length, 40)))


def moves() -> Any:
    session = st.sampled_from("abcde")
    return st.lists(
        st.one_of(
            st.tuples(st.just("begin"), session, st.integers(1, 3), st.integers(2, CONTEXT - 8)),
            st.tuples(st.just("write"), st.lists(session, min_size=1, max_size=SEQUENCES, unique=True)),
            st.tuples(st.just("cut"), session, st.integers(0, CONTEXT)),
            st.tuples(st.just("keep"), session),
            st.tuples(st.just("forget"), session),
        ),
        max_size=60,
    )


@given(moves())
@settings(max_examples=200, deadline=None)
def test_a_session_reads_its_own_tokens_and_no_others(script: list[Any]) -> None:
    caches, known, next_token = cache(), {}, iter(range(10_000, 10**6))
    for move, *rest in script:
        if move == "write":
            sessions = [known[key] for key in rest[0] if key in known and len(known[key].tokens) < CONTEXT]
            before = [list(session.tokens) for session in sessions]
            caches.settle(set(sessions))
            fresh = [[next(next_token)] for _ in sessions]
            if sessions:
                assert read(caches, *zip(sessions, fresh, strict=True)) == [
                    old + new for old, new in zip(before, fresh, strict=True)
                ]
        elif move == "begin":
            key, kind, length = rest
            session = caches.seat(key, ())
            assert session is not None
            known[key], wanted = session, prompt(kind, length)
            caches.settle({session})
            caches.begin_with(session, wanted)
            same = next(
                (at for at, pair in enumerate(zip(session.tokens, wanted[:-1], strict=False)) if len(set(pair)) > 1),
                None,
            )
            caches.cut(session, min(len(session.tokens), len(wanted) - 1) if same is None else same)
            assert read(caches, (session, wanted[len(session.tokens) :])) == [wanted]
        elif rest[0] in known:
            session = known[rest[0]]
            if move == "cut":
                caches.cut(session, min(rest[1], len(session.tokens)))
            elif move == "keep" and session.tokens:
                caches.keep_opening(str(session.tokens), session)
            elif move == "forget":
                caches.forget(rest[0])
                del known[rest[0]]
    for key in list(known):
        caches.forget(key)
    while caches._openings:
        caches._drop_opening()
    assert caches._blocks.free == len(caches._blocks._users), "every block is free again"


def test_a_shared_opening_takes_blocks_once_and_a_writer_in_its_middle_gets_a_copy() -> None:
    caches = cache(caches=8)
    first, opening = caches.seat("a", ()), prompt(1, BLOCK + 10)
    read(caches, (first, opening))
    caches.keep_opening("o", first)
    free = caches._blocks.free
    second = caches.seat("b", ())
    assert caches.begin_with(second, [*opening, 7]) == len(opening)
    assert caches._blocks.free == free, "nothing is copied before it is written to"
    assert second.blocks == first.blocks
    assert read(caches, (second, [7]), (first, [8])) == [[*opening, 7], [*opening, 8]]
    assert second.blocks[0] == first.blocks[0] and second.blocks[1] != first.blocks[1]
    assert caches._blocks.free == free - 2


def test_short_common_beginnings_are_not_shared() -> None:
    caches = cache()
    first, second = caches.seat("a", ()), caches.seat("b", ())
    read(caches, (first, list(range(LEAST_SHARED - 1))))
    caches.keep_opening("o", first)
    assert caches.begin_with(second, list(range(40))) == 0


def test_as_many_sessions_work_as_there_are_sequences_and_none_twice() -> None:
    caches = cache()
    working = [caches.seat(key, ()) for key in "abc"]
    assert caches.seat("a", working[:1]) is None
    assert caches.seat("d", working) is None and caches.seat("d", working[:2]) is not None


def test_idle_caches_make_room_and_working_ones_stay() -> None:
    caches = cache()
    sessions = [caches.seat(key, ()) for key in "abcdef"]
    for session in sessions[:3]:
        read(caches, (session, prompt(1, CONTEXT - 1)))
    caches.settle(set(sessions[1:2]))
    for session in sessions[3:5]:
        read(caches, (session, prompt(2, CONTEXT - 1)))
    assert [len(session.tokens) for session in sessions] == [0, CONTEXT - 1, 0, CONTEXT - 1, CONTEXT - 1, 0]
    assert read(caches, (sessions[1], [9])) == [[*prompt(1, CONTEXT - 1), 9]]


def test_a_pool_too_small_for_those_at_work_says_so() -> None:
    caches = cache()
    sessions = [caches.seat(key, ()) for key in "abcd"]
    caches.settle(set(sessions))
    with pytest.raises(GenerationFailed, match="do not fit"):
        for session in sessions:
            read(caches, (session, prompt(1, CONTEXT)))
