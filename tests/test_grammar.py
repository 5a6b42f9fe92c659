"""The form of replies: what the grammar admits (asked of llama.cpp with the real vocabulary) and what is forced."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from localsim.backends.llama_lib import LlamaModel, library
from localsim.backends.llama_sampler import Candidates, _cloned_grammar
from localsim.grammar import ActionLines
from localsim.transcript import ACTION_TYPES, Action, line_of, line_start

NAMES = ("Ana", "Bo")


def form(turns: int = 1, turn: int = 0, nones: int = 0, given: int = 0, chars: int = 60, **kw: Any) -> ActionLines:
    actions = kw.get("actions", ACTION_TYPES)
    return ActionLines(NAMES, actions, max_chars=chars, silence=3, turn=turn, turns=turns, nones=nones, given=given)


def admits(model: LlamaModel, lines: ActionLines, text: str) -> bool:
    """Whether the grammar takes all of `text` and may end there."""
    lib, candidates = library(), Candidates(model)
    sampler = _cloned_grammar(model, lines.grammar())

    def allowed(token: int) -> bool:
        array = candidates.single(token)
        lib.llama_sampler_apply(sampler, ctypes.byref(array))
        return bool(array.data[0].logit != -np.inf)

    try:
        for token in model.tokenize(text, special=False):
            if not allowed(token):
                return False
            lib.llama_sampler_accept(sampler, token)
        return allowed(lib.llama_vocab_eos(model.vocab))
    finally:
        lib.llama_sampler_free(sampler)


def tail(name: str, action: Action) -> str:
    return line_of(name, action).removeprefix(line_start(name))


@pytest.mark.parametrize(
    "text", ["Hello", 'She said "no" \\ twice', "héllo 漢字 🙂", "price < 300 {{ x }} </p>", "a" * 60]
)
@pytest.mark.parametrize("kind", ["speak", "action", "non-verbal communication", "leave"])
def test_a_turn_of_any_text_is_admitted(engine_model: LlamaModel, text: str, kind: Any) -> None:
    assert admits(engine_model, form(), tail("Ana", Action(kind, text)))


@pytest.mark.parametrize(
    "text",
    [
        'speak","text":""}',
        'speak","text":" leading space"}',
        'shout","text":"x"}',
        'none","text":"x"}',
        'speak","text":"' + "a" * 61 + '"}',
        'speak","text":"x"',
        'speak","text":"x"}\n',
        'speak","text":"x","more":1}',
        'speak", "text":"x"}',
    ],
)
def test_anything_else_is_refused(engine_model: LlamaModel, text: str) -> None:
    assert not admits(engine_model, form(), text)


def script(*actions: Action, start: int = 0) -> str:
    lines = [line_of(NAMES[(start + i) % 2], action) for i, action in enumerate(actions)]
    return "\n".join(lines).removeprefix(line_start(NAMES[start % 2]))


def test_the_grammar_of_a_script_holds_the_stop_rules(engine_model: LlamaModel) -> None:
    hi, none, leave = Action("speak", "Hi"), Action("none"), Action("leave")
    four = form(turns=4)
    assert admits(engine_model, four, script(hi, hi, hi, hi))
    assert not admits(engine_model, four, script(hi, hi, hi)), "it may not end before a rule ends it"
    assert not admits(engine_model, four, script(hi, hi, hi, hi, hi)), "nor go on after the last turn"
    assert admits(engine_model, four, script(hi, leave))
    assert not admits(engine_model, four, script(leave, hi))
    assert admits(engine_model, four, script(none, none, none))
    assert not admits(engine_model, four, script(none, none, none, hi))
    later = form(turns=4, turn=3, nones=2, given=3)
    assert admits(engine_model, later, script(none, start=3)), "two nones stand before"


def test_what_is_certain_is_forced() -> None:
    one = form()
    start = line_start("Ana")
    assert one.forced(start) == ""
    assert one.forced(start + "sp") == 'eak","text":"'
    assert one.forced(start + "n") == "on"
    assert one.forced(start + "none") == '","text":""}'
    assert one.forced(start + 'speak","text":"Hel') == ""
    assert form(actions=("speak",)).forced(start) == 'speak","text":"'
    two = form(turns=2)
    assert two.forced(line_of("Ana", Action("speak", "Hi"))) == "\n" + line_start("Bo")
    assert two.forced(line_of("Ana", Action("leave"))) == ""


def test_finished_and_in_text() -> None:
    one = form()
    assert one.finished(line_of("Ana", Action("speak", "Hi")))
    assert not one.finished(line_start("Ana") + 'speak","text":"a brace \\"}')
    assert one.finished(line_of("Ana", Action("speak", 'a brace "}')))
    assert one.in_text(line_start("Ana") + 'speak","text":"Hel')
    assert not one.in_text(line_start("Ana"))
    assert not one.in_text(line_of("Ana", Action("speak", "Hi")))
    given = form(turns=2, turn=2, given=2)
    before = line_of("Ana", Action("none")) + "\n" + line_of("Bo", Action("speak", "x")) + "\n"
    assert not given.finished(before + line_of("Ana", Action("speak", "y")))
    assert given.finished(before + line_of("Ana", Action("speak", "y")) + "\n" + line_of("Bo", Action("speak", "z")))
