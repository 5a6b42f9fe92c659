"""Moves: their values, their lines, and the grammar that admits exactly these."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.backends.llama.lib import LlamaModel
from localsim.conversation.rules.grammar import ActionLines, Line
from localsim.conversation.rules.lines import Bound, read_values, readers_of
from localsim.conversation.rules.numbers import number_gbnf, values_gbnf
from localsim.conversation.rules.values import Move, Param, problems_of_move
from localsim.conversation.transcript import Action, line_of, parse_line
from localsim.errors import MalformedReply, ScenarioInvalid
from localsim.scenarios.parse import parse_scenario
from tests.conftest import TALK
from tests.test_grammar import admits

OTHERS = ("Bo", "Cy", "Di Nu")


def as_pattern(gbnf: str) -> re.Pattern[str]:
    """The grammar of a value as a regular expression; it has literals, classes, groups and repetitions only."""
    pieces = re.findall(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|\{\d+(?:,\d+)?\}|[()|?*]', gbnf)
    assert re.sub(r"\s", "", gbnf) == re.sub(r"\s", "", "".join(pieces))
    found = [re.escape(piece[1:-1].replace('\\"', '"')) if piece.startswith('"') else piece for piece in pieces]
    return re.compile("".join(found))


amounts = st.decimals(min_value=-500, max_value=500, places=2)


@given(
    low=amounts, count=st.integers(0, 700), step=st.sampled_from(["1", "10", "0.1", "0.01", "100", "0.25", "5", "3"])
)
@settings(max_examples=150, deadline=None)
def test_the_grammar_of_a_number_is_exactly_its_range(low: Decimal, count: int, step: str) -> None:
    size = Decimal(step)
    low = low - low % size
    param = Param(number=(low, low + size * count), step=size)
    pattern = as_pattern(number_gbnf(param))
    allowed = {param.written(number) for number in param.numbers()}
    assert len(allowed) == count + 1
    assert all(pattern.fullmatch(text) for text in allowed)
    around = {param.written(low + size * place / 2) for place in range(-20, 2 * count + 20)}
    longer = {f"0{text}" for text in allowed} | {f"{text}0" for text in allowed} | {"", "-", ".", "-0"}
    for text in (around | longer | {str(number) for number in range(-60, 60)}) - allowed:
        assert not pattern.fullmatch(text), text


def params() -> st.SearchStrategy[Param]:
    words = st.text("abcdefghij klmno", min_size=1, max_size=8).filter(lambda text: text.strip() == text)
    numbers = st.builds(
        lambda low, count, step: Param(number=(low * step, (low + count) * step), step=step),
        st.integers(-50, 50),
        st.integers(0, 90),
        st.sampled_from([Decimal(1), Decimal("0.05"), Decimal(10)]),
    )
    options = st.lists(words, min_size=1, max_size=4, unique=True).map(lambda given: Param(one_of=tuple(given)))
    return numbers | options | st.just(Param(agents="one"))


def last_params() -> st.SearchStrategy[Param]:
    return params() | st.just(Param(agents="several")) | st.just(Param(words=12))


@st.composite
def moves(draw: st.DrawFn) -> Move:
    values = (*draw(st.lists(params(), max_size=2)), *draw(st.lists(last_params(), max_size=1)))
    return Move(name="offer-2", tell="To act", values=values, text=draw(st.sampled_from(["no", "may", "must"])))


def values_for(draw: Any, move: Move) -> tuple[str, ...]:
    found: list[str] = []
    for param in move.values:
        if param.number is not None:
            found.append(param.written(draw(st.sampled_from(list(param.numbers())))))
        elif param.one_of is not None:
            found.append(draw(st.sampled_from(param.one_of)))
        elif param.words is not None:
            found.append(draw(st.sampled_from(["x", "a, b", "twelve chars", "(so)"])))
        else:
            most = len(OTHERS) if param.agents == "several" else 1
            named = draw(st.sets(st.sampled_from(OTHERS), min_size=1, max_size=most))
            found += sorted(named, key=OTHERS.index)
    return tuple(found)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_move_comes_back_from_its_line_and_its_grammar_admits_it(data: st.DataObject) -> None:
    move = data.draw(moves())
    assert not list(problems_of_move(move))
    way = Bound(move, OTHERS)
    values = values_for(data.draw, move)
    words = {"no": "", "may": data.draw(st.sampled_from(["", "Well: [no]."])), "must": "So (it) is, said Bo: 4."}
    action = Action(move.name, words[move.text], values)
    line = line_of("Ana", action)
    assert parse_line(line, "Ana", ("speak", way), 280).action == action
    assert "\n" not in line
    if values:
        assert as_pattern(values_gbnf(way)).fullmatch(", ".join(values))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[offer]", "a number from 0 to 100, not ''"),
        ("[offer 101]", "a number from 0 to 100, not '101'"),
        ("[offer 4.5]", "not '4.5'"),
        ("[offer $40]", "not '\\$40'"),
        ("[offer 40, 50]", "not '40, 50'"),
        ("[to Ana]: Psst.", "not 'Ana'"),
        ("[to Bo, Bo]: Psst.", "names an agent twice"),
        ("[to Bo]", "an empty to"),
        ("[accept 3]", "takes no value"),
        ("[accept]: Gladly.", "has no words"),
        ("[refuse]", "is not among speak, offer, to, accept"),
        ("[note a [b]", "is not among"),
    ],
)
def test_a_wrong_move_is_malformed_and_says_why(text: str, message: str) -> None:
    ways = tuple(
        Bound(move, OTHERS)
        for move in (
            Move(name="offer", tell="To offer", values=(Param(number=(Decimal(0), Decimal(100))),)),
            Move(name="to", tell="To whisper", values=(Param(agents="several"),), text="must", readers="named"),
            Move(name="accept", tell="To accept", text="no"),
        )
    )
    with pytest.raises(MalformedReply, match=message):
        parse_line(f"Ana {text}", "Ana", ("speak", *ways), 280)


def test_numbers_and_names_have_one_form() -> None:
    cents = Bound(
        Move(name="pay", tell="To pay", values=(Param(number=(Decimal(0), Decimal(9)), step=Decimal("0.01")),)), ()
    )
    assert read_values(cents, "4") == ("4.00",)
    several = Bound(Move(name="to", tell="To whisper", values=(Param(agents="several"),)), OTHERS)
    assert read_values(several, "Cy, Bo") == ("Bo", "Cy")


def test_readers_follow_from_the_move_and_its_values() -> None:
    named = Move(
        name="give", tell="To give", values=(Param(one_of=("Bo", "it")), Param(agents="several")), readers="named"
    )
    assert readers_of(named, "Ana", ("it", "Bo", "Cy")) == ("Ana", "Bo", "Cy")
    assert readers_of(named, "Ana", ("Bo", "Cy")) == ("Ana", "Cy"), "an option that looks like a name is none"
    assert readers_of(Move(name="think", tell="To think", readers="self"), "Ana", ()) == ("Ana",)
    assert readers_of(None, "Ana", ()) is None


def test_the_engine_is_held_to_the_moves(engine_model: LlamaModel) -> None:
    offer = Bound(Move(name="offer", tell="To offer", values=(Param(number=(Decimal(5), Decimal(120))),)), OTHERS)
    whisper = Bound(Move(name="to", tell="To", values=(Param(agents="several"),), text="must", readers="named"), OTHERS)
    form = ActionLines((Line("Ana", ("speak", offer, whisper)),), max_chars=60, silence=3, nones=0)
    for text in (": Hi", " [offer 5]", " [offer 120]: Take it.", " [to Bo]: Psst", " [to Bo, Di Nu]: Psst"):
        assert admits(engine_model, form, text), text
    for text in (
        " [offer 4]",
        " [offer 121]",
        " [offer 05]",
        " [offer]",
        " [to Ana]: x",
        " [to Di Nu, Bo]: x",
        " [to Bo]",
    ):
        assert not admits(engine_model, form, text), text
    assert form.forced("Ana [o") == "ffer"
    assert form.forced("Ana [offer") == "", "neither a space nor a bracket is forced"


@pytest.mark.parametrize(
    ("moves_text", "where", "message"),
    [
        ("[{name: speak, tell: x}]", "moves[0].name", "'speak' is an action"),
        ("[{name: a, tell: x}, {name: a, tell: y}]", "moves[1].name", "given more than once"),
        ("[{name: Offer, tell: x}]", "moves[0].name", "pattern"),
        ("[{name: told, tell: x}]", "moves[0].name", "choose another name"),
        ("[{name: a, tell: x, values: [{number: [3, 1]}]}]", "moves[0].values[0].number", "least number first"),
        ("[{name: a, tell: x, values: [{number: [0, 1], step: 0.3}]}]", "moves[0].values[0].number", "do not reach 1"),
        ("[{name: a, tell: x, values: [{number: [0, 9000], step: 3}]}]", "moves[0].values[0].step", "power of ten"),
        ("[{name: a, tell: x, values: [{}]}]", "moves[0].values[0]", "exactly one of number"),
        ("[{name: a, tell: x, values: [{words: 3}, {agents: one}]}]", "moves[0].values[0]", "must be the last"),
        ("[{name: a, tell: x, values: [{one_of: ['b, c']}]}]", "moves[0].values[0].one_of[0]", "no brackets, commas"),
        ("[{name: a, tell: x, readers: named}]", "moves[0].readers", "names agents"),
        ("[{name: a, tell: x, by: [Eve]}]", "moves[0].by[0]", "no agent is called 'Eve'"),
        ("[{name: next, tell: x}]", "moves[0].values", "is one agent"),
        ("[{name: a, tell: x, reader: all}]", "moves[0].reader", "did you mean readers"),
    ],
)
def test_a_wrong_move_in_a_file_is_named_with_its_place(moves_text: str, where: str, message: str) -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        parse_scenario(f"{TALK}moves: {moves_text}\n", "f.yaml")
    found = [problem for problem in caught.value.problems if problem.path == where]
    assert found and message in found[0].message
    assert found[0].line == len(TALK.splitlines()) + 1 and found[0].column > 1
