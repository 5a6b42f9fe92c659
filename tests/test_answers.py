"""What a command answers is printed in one place: as text for people, or as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner
from tqdm.utils import disp_len

from localsim.cli.answers import Answer, Note, Part, Styled, Table, answers, print_text
from localsim.errors import InvalidInput

HOSTILE = "\x1b[31mred\x07"


def command(answer: Answer) -> click.Command:
    @click.command()
    @click.option("--db")
    @answers
    def answered(db: str | None) -> Answer:
        assert db is None
        return answer

    return answered


def lines() -> Iterator[Part]:
    yield "one"
    yield (Styled("two", "green"), " and three")
    yield Note("next: four")
    yield Table(["name", "n"], [["Ana", 1], [None, 20.5]])


def test_people_get_lines_and_notes_and_json_is_one_document() -> None:
    shown = CliRunner().invoke(command(Answer({"n": 1}, lines())))
    assert shown.stdout == "one\ntwo and three\nname     n\n----  ----\nAna      1\n-     20.5\n"
    assert shown.stderr == "next: four\n"
    found = CliRunner().invoke(command(Answer({"n": 1}, lines())), ["--json"])
    assert json.loads(found.stdout) == {"n": 1} and found.stderr == ""


def test_text_that_nobody_reads_is_not_made() -> None:
    def costly() -> Iterator[Part]:
        raise AssertionError
        yield ""

    assert CliRunner().invoke(command(Answer([], costly())), ["--json"]).output == "[]\n"


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_error_comes_after_the_answer_and_its_remark(options: list[str]) -> None:
    found = CliRunner().invoke(command(Answer(["x"], ["x"], InvalidInput("bad"), remark="5 tasks")), options)
    assert isinstance(found.exception, InvalidInput) and "x" in found.stdout and found.stderr == "5 tasks\n"


def test_a_row_is_one_line_in_a_pipe_with_brackets_and_without_colours(capsys: pytest.CaptureFixture[str]) -> None:
    long = "mutual_friends_01 [agents] " * 8
    print_text([Table(["run", "name"], [["a1", long], ["b2", "short"]])])
    head, _, first, second = capsys.readouterr().out.splitlines()
    assert (head, first, second) == ("run  name", f"a1   {long.strip()}", "b2   short")
    print_text([Table(["run", "name"], [["a1", long]], short=True)])
    assert len(capsys.readouterr().out.splitlines()[-1]) == 100


def test_columns_line_up_beside_characters_of_double_width(capsys: pytest.CaptureFixture[str]) -> None:
    print_text([Table(["name", "n"], [["王小明" * 30, 1], ["Ana", 2]], short=True)])
    wide, narrow = capsys.readouterr().out.splitlines()[2:]
    assert wide.endswith("…  1") and disp_len(wide) == disp_len(narrow) == 100


def test_stored_text_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_text([HOSTILE, Styled(HOSTILE, bold=True), (HOSTILE, Styled(HOSTILE)), Table([HOSTILE], [[HOSTILE]])])
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\x07" not in out and out.count("[31mred") == 6
