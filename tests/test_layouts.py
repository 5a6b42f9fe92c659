"""Tokens evaluated in other layouts: a case counted by hand, the engine's own count, and losses from a used cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from localsim.backends.base import Done
from localsim.backends.llama.chat import ChatTokenizer
from localsim.backends.llama.lib import LlamaModel
from localsim.conversation.episode import Sampling
from localsim.conversation.exchange import Generation, Message
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action, Turn
from scripts.bench_layouts import Forced, LaidOut, loss_of, token_rows, work_of
from scripts.layouts import LAYOUTS, PRESENT, Layout, reads
from tests.conftest import spec_of
from tests.test_llama import converse, engine, short

BY_NAME = {layout.name: layout for layout in LAYOUTS}


class Letters:
    """A tokenizer with one token for each character, and the marks < > of other messages and = > of replies."""

    def content(self, text: str) -> tuple[int, ...]:
        """Return the characters."""
        return tuple(map(ord, text))

    def prompt(self, messages: Sequence[Message], prefill: str, written: dict[str, tuple[int, ...]]) -> list[int]:
        """Return the characters of messages and their marks."""
        del written
        marked = (f"{'=' if each.role == 'assistant' else '<'}{each.content}>" for each in messages)
        return list(map(ord, f"{''.join(marked)}={prefill}"))


TURNS = [
    Turn(index, name, Action("speak", text))
    for index, (name, text) in enumerate([("Ana", "hi"), ("Bo", "yo"), ("Ana", "ok"), ("Bo", "no")])
]
COUNTED = {
    # Before Ana's "ok" her cache ends with "=Ana: hi", and before Bo's "no" his with "=Bo: yo".
    "a message for each turn": (len("><Bo: yo>=Ana"), len("><Ana: ok>=Bo"), len(": ok")),
    "a message for each turn, first letters": (len("><B: yo>=A"), len("><A: ok>=B"), len(": ok")),
    "a message for each turn, no names": (len("><yo>="), len("><ok>="), len("ok")),
    # Of the message that holds all lines, only the lines up to the own newest one are in the same place.
    "lines of one message": (len("Ana: hi.Bo: yo>=Ana"), len(".Bo: yo.Ana: ok>=Bo"), len(": ok")),
    "lines of one reply": (len(".Bo: yo.Ana"), len(".Ana: ok.Bo"), len(": ok")),
    "lines of one reply, first letters": (len(".B: yo.A"), len(".A: ok.B"), len(": ok")),
    "lines of one reply, no names": (len(".yo."), len(".ok."), len("ok")),
}


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_a_case_counted_by_hand(talk: LoadedScenario, layout: Layout) -> None:
    found = list(reads(talk.scenario, TURNS, layout, Letters()))
    assert [read.opens for read in found] == [True, True, False, False]
    later = [len(read.prompt) - read.kept for read in found[2:]]
    assert (*later, len(found[2].reply)) == COUNTED[layout.name]
    assert all(read.kept == 0 for read in found[:2])


def test_ratios_divide_by_what_the_present_layout_writes(talk: LoadedScenario) -> None:
    chosen = (PRESENT, BY_NAME["lines of one reply, no names"])
    works = {layout: work_of([(talk.scenario, TURNS)], layout, Letters()) for layout in chosen}
    present, bare = token_rows(works)
    assert present[1:4] == ["4.0", "13.0", f"{(26 + 16) / 16:.2f}"]
    assert bare[1:4] == ["2.0", "4.0", f"{(8 + 8) / 16:.2f}"]


def test_beginnings_of_names_tell_agents_apart() -> None:
    layout = BY_NAME["lines of one reply, first letters"]
    assert [layout.label(name, ["Anna", "Anton"]) for name in ("Anna", "Anton")] == ["Ann", "Ant"]
    assert layout.label("Bo", ["Bo", "Bob"]) == "Bo"


def test_instructions_show_lines_as_they_are_written(talk: LoadedScenario) -> None:
    told = {}
    for layout in LAYOUTS:
        first, _, third, _ = (read.prompt for read in reads(talk.scenario, TURNS, layout, Letters()))
        told[layout.name] = "".join(map(chr, third))
        assert "JUDGE-ONLY" not in told[layout.name] and "garage" not in "".join(map(chr, first))
    assert "To speak: Ana: ..." in told["lines of one reply"]
    assert "To speak: A: ..." in told["lines of one reply, first letters"]
    assert "A for Ana or B for Bo" in told["a message for each turn, first letters"]
    assert (
        "To speak: ...\n" in told["lines of one reply, no names"]
        and "Ana begins" in told["lines of one reply, no names"]
    )


@dataclass
class Noting(LaidOut):
    """Notes how many tokens of each prompt were evaluated."""

    evaluated: list[int] = field(default_factory=list)

    def poll(self) -> list[Done]:
        """Note what the finished replies have cost."""
        done = super().poll()
        self.evaluated += [each.result.evaluated_tokens for each in done if isinstance(each.result, Generation)]
        return done


@pytest.mark.model
@pytest.mark.parametrize("name", [PRESENT.name, "lines of one message", "lines of one reply"])
def test_the_engine_evaluates_what_was_counted(engine_model: LlamaModel, name: str) -> None:
    layout, loaded = BY_NAME[name], short()
    loaded = replace(loaded, scenario=loaded.scenario.model_copy(update={"actions": ("speak",)}))
    backend = Noting(engine(engine_model), layout)
    (said,) = converse(backend, [spec_of(loaded, sampling=Sampling(temperature=0))])
    backend.close()
    names = loaded.scenario.names
    turns = [Turn(index, names[index % 2], Action(kind, text)) for index, (kind, text) in enumerate(said)]
    counted = [
        len(read.prompt) - read.kept for read in reads(loaded.scenario, turns, layout, ChatTokenizer(engine_model))
    ]
    assert backend.evaluated == counted


@pytest.mark.model
def test_losses_do_not_depend_on_what_the_cache_holds(talk: LoadedScenario, engine_model: LlamaModel) -> None:
    chat, layout = ChatTokenizer(engine_model), BY_NAME["lines of one message"]
    model = Forced(engine_model)
    whole = loss_of((talk.scenario, TURNS), layout, model, chat)
    alone = [model.losses(replace(read, kept=0), len(": ") - 1) for read in reads(talk.scenario, TURNS, layout, chat)]
    model.close()
    assert whole.words == pytest.approx(sum(words for words, _ in alone), rel=0.01)
    assert whole.ends == pytest.approx(sum(end for _, end in alone), rel=0.01)
    assert (whole.count, whole.turns) == (4, 4)
