"""The form of replies: what the grammar admits (asked of llama.cpp with the real vocabulary) and what is forced."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from localsim.backends.llama.lib import LlamaModel, library
from localsim.backends.llama.sampler import Candidates, _parsed_grammar
from localsim.conversation.rules.grammar import ActionLines, Barred, Line, _head
from localsim.conversation.transcript import ACTION_TYPES, Action, line_of

NAMES = ("Ana", "Bo")


def form(turns: int = 1, turn: int = 0, nones: int = 0, chars: int = 60, **kw: Any) -> ActionLines:
    actions = kw.get("actions", ACTION_TYPES)
    lines = tuple(Line(NAMES[(turn + number) % 2], actions) for number in range(turns))
    return ActionLines(lines, max_chars=chars, silence=3, nones=nones)


def admits(model: LlamaModel, lines: ActionLines, text: str) -> bool:
    """Whether the grammar takes all of `text` and may end there."""
    lib, candidates = library(), Candidates(model)
    sampler = lib.llama_sampler_clone(_parsed_grammar(model, lines.grammar()))

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
    return line_of(name, action).removeprefix(name)


@pytest.mark.parametrize(
    "text", ["Hello", 'She said "no" \\ twice', "héllo 漢字 🙂", "price < 300 {{ x }} </p>", "a" * 60]
)
@pytest.mark.parametrize("kind", ["speak", "action", "non-verbal communication", "leave"])
def test_a_turn_of_any_text_is_admitted(engine_model: LlamaModel, text: str, kind: Any) -> None:
    assert admits(engine_model, form(), tail("Ana", Action(kind, text)))


@pytest.mark.parametrize(
    "text",
    [
        ": ",
        ":no space",
        ":  leading space",
        " [shout]: x",
        " [none]: x",
        " [action]",
        ": " + "a" * 61,
        ": x\n\n",
        ": x\nBo: y",
        ": a\tb",
    ],
)
def test_anything_else_is_refused(engine_model: LlamaModel, text: str) -> None:
    assert not admits(engine_model, form(), text)


@pytest.mark.parametrize("text", ['"Hi"', "(smiling) Hi", "*smiles* Hi", "Hi [leave]"])
def test_marks_of_another_form_are_kept_out_of_speech(engine_model: LlamaModel, text: str) -> None:
    barred = replace(form(), barred=Barred('"(*', "[]"))
    assert admits(engine_model, form(), f": {text}") and not admits(engine_model, barred, f": {text}")
    assert admits(engine_model, barred, ': Hi (and *welcome*, "Bo")')


def script(*actions: Action, start: int = 0) -> str:
    lines = [line_of(NAMES[(start + i) % 2], action) for i, action in enumerate(actions)]
    return "\n".join(lines).removeprefix(NAMES[start % 2])


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
    later = form(turns=1, turn=3, nones=2)
    assert admits(engine_model, later, script(none, start=3)), "two nones stand before"


def test_a_line_may_end_with_a_break(engine_model: LlamaModel) -> None:
    assert admits(engine_model, form(), ": Hi\n")
    assert admits(engine_model, form(turns=2), ": Hi\nBo: Hi\n")


@pytest.mark.parametrize("action", ACTION_TYPES)
def test_what_is_forced_is_cut_into_tokens_as_in_a_whole_line(engine_model: LlamaModel, action: str) -> None:
    """`]:` is one token: a model that was given `]` does not go on with `:`, and leaves without a goodbye."""
    line = line_of("Ana", Action(action, "" if action == "none" else "Well, goodbye."))  # type: ignore[arg-type]
    whole = engine_model.tokenize(line.removeprefix("Ana") + "\n", special=False)
    begun = engine_model.tokenize(_head(action), special=False)
    assert whole[: len(begun)] == begun


def test_what_is_certain_is_forced() -> None:
    one = form()
    assert one.forced("Ana") == ""
    assert one.forced("Ana [a") == "ction]:"
    assert one.forced("Ana [n") == "on"
    assert one.forced("Ana [none") == "]\n"
    assert one.forced("Ana [l") == "eave"
    assert one.forced("Ana [leave") == one.forced("Ana [leave]") == ""
    assert one.forced("Ana: Hel") == ""
    assert form(actions=("speak",)).forced("Ana") == ":"
    two = form(turns=2)
    assert two.forced("Ana: Hi\n") == "Bo"
    assert two.forced("Ana [leave]\n") == ""


def test_finished_and_in_text() -> None:
    one = form()
    assert one.finished("Ana: Hi\n")
    assert not one.finished("Ana: Hi")
    assert one.in_text("Ana:")
    assert one.in_text("Ana [action]: wa")
    assert not one.in_text("Ana")
    assert not one.in_text("Ana: Hi\n")
    two = form(turns=2)
    assert not two.finished("Ana: y\n")
    assert two.finished("Ana: y\nBo: z\n")
    silence = form(turns=4, nones=1)
    assert silence.finished("Ana [none]\nBo [none]\n")
    assert not silence.finished("Ana: [none]\nBo [none]\n"), "said in brackets is said"
