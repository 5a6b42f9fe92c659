"""What ends on a terminal, and what a report writes for papers: one screen, tables as files, the fields of a card."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from localsim.__main__ import run as command
from localsim.errors import InvalidInput
from localsim.reports.card import HUMAN, read_human, template
from localsim.reports.document import Table, Term
from localsim.reports.figures.draw import COLOURS, colour_of, numbered
from localsim.reports.render.bars import WIDTH, lines
from localsim.reports.render.tables import as_csv, as_latex
from localsim.reports.results import Number
from localsim.reports.validity.findings import Bar, Finding
from localsim.runs.words import MARKS

SCENARIOS = [f"mutual_friends_{number:02d}" for number in range(1, 11)]
RUN = [
    "run",
    *SCENARIOS,
    "--mode",
    "agents,mindreaders",
    "--primary",
    "turns:information",
    "--no-leaks",
    "--repro",
    "exact",
]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("screen") / "runs.duckdb"


def test_a_terminal_ends_with_the_conclusion_on_one_screen(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of two models and the report of both end alike; the rest is printed by --all."""
    db = ["--db", str(database)]
    assert command([*RUN, "-m", "scripted:honest", "-m", "scripted:peeks-100", *db]) == 0
    ran = capsys.readouterr().out.splitlines()
    assert command(["report", "@last-1", "@last", *db]) == 0
    shown = capsys.readouterr().out.splitlines()
    folded = next(number for number, line in enumerate(shown) if line.endswith("--all"))
    conclusions, (axis, honest, peeks) = [line for line in shown[folded + 1 : -3] if line], shown[-3:]
    assert ran[-len(shown) + folded + 1 :] == shown[folded + 1 :] and max(len(shown), len(ran)) <= 50
    assert max(len(line) for line in shown[:-3] if " --db " not in line) <= 100
    said = " ".join(conclusions)
    assert "No gain from seeing the other side was found for scripted:honest: " in said
    assert "scripted:peeks-100 gained from seeing the other side: " in said and "turns fewer in Mutual friends" in said
    assert axis.startswith("turns") and axis.endswith("● agents -> ■ mindreaders")
    assert honest.startswith("Mutual friends, scripted:honest") and ", 0.0 [" in honest
    assert peeks.index("■") < peeks.index("●"), "it needs fewer turns if it sees the other list"
    table = next(number for number, line in enumerate(shown) if line.startswith("mode "))
    assert [line.split()[:3] for line in shown[table + 2 : table + 4]] == [
        ["●", "agents", "scripted:honest"],
        ["■", "mindreaders", "scripted:honest"],
    ]
    assert not any(line.startswith("All measures of") for line in shown)
    assert command(["report", "@last-1", "@last", "--all", *db]) == 0
    whole = capsys.readouterr().out.splitlines()
    assert any(line.startswith("All measures of Mutual friends") for line in whole) and whole[-3:] == shown[-3:]


def test_a_report_for_others_has_no_folders_of_this_machine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    scenario = tmp_path / "mine.yaml"
    shutil.copyfile(Path(__file__).parent.parent / "scenarios" / "mutual_friends_01.yaml", scenario)
    db = ["--db", str(tmp_path / "one.duckdb")]
    assert command(["run", str(scenario), "--mode", "all", "-m", "scripted:honest", "--no-leaks", *db]) == 0
    assert command(["report", "--tables", str(tmp_path / "tables"), "--json", *db]) == 0
    out = capsys.readouterr().out
    told = json.loads(out[out.index("\n{") :])
    assert told["run"]["scenarios"] == ["mine.yaml"] and str(tmp_path) not in json.dumps(told)
    names = sorted(file.name for file in (tmp_path / "tables").iterdir())
    assert "mutual_friends_scripted_honest.tex" in names
    assert len(names) == 2 * sum(name.endswith(".csv") for name in names)


def test_tables_are_numbers_for_a_spreadsheet_and_text_for_latex() -> None:
    share = Number("share", -0.1, -0.4, 0.2)
    rows = [[Term("a_b & 50%"), share, "-"], ["=HYPERLINK(1)", Number("number", 2.0), "+1.5"]]
    table = Table("", ["", "agents", "paper"], rows, ["a note"])
    assert list(csv.reader(io.StringIO(as_csv(table)))) == [
        ["", "agents", "agents low", "agents high", "paper"],
        ["a_b & 50%", "-0.1", "-0.4", "0.2", ""],
        ["'=HYPERLINK(1)", "2.0", "", "", "1.5"],
    ]
    latex = as_latex(table, "Mutual friends", "tab:x")
    assert "a\\_b \\& 50\\% & $-$10\\% [$-$40\\%, 20\\%] & - \\\\\n" in latex and "\\begin{tabular}{lrr}" in latex
    assert latex.index("\\toprule") < latex.index("\\midrule") < latex.index("\\bottomrule") < latex.index("a note")


def test_the_template_of_a_card_has_every_field_and_is_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(["card", "--template"]) == 0 and set(read_human(tmp_path / "card.yaml")) == set(HUMAN)
    assert command(["card", "--template"]) == InvalidInput.exit_code, "what somebody has filled in is not lost"
    assert "is there already" in capsys.readouterr().err
    known = template({"funding": "none: ours", "interaction_goal": "cooperation"})
    (tmp_path / "known.yaml").write_text(known.replace("cooperation", "learning"), encoding="utf-8")
    assert "funding: 'none: ours'" in known and all(f"# {meaning}" in known for meaning in HUMAN.values())


def test_a_line_shows_both_values_and_the_interval_of_the_difference() -> None:
    found = Finding("number", ("agents", "mindreaders"), (8.0, 4.0), -4.0, (-6.0, -2.0), 9, 0.01, 0.001, "found")
    axis, line = lines([Bar("Bargaining", "m", "turns", found)])
    cells = [text for text, _ in line[1 : WIDTH + 1]]
    first, second = (round(value / 8 * (WIDTH - 1)) for value in (8, 4))
    assert cells[first] == MARKS["agents"] and cells[second] == MARKS["mindreaders"]
    drawn = [place for place, text in enumerate(cells) if text != "·" and place != first]
    assert drawn == list(range(round(2 / 8 * (WIDTH - 1)), round(6 / 8 * (WIDTH - 1)) + 1))
    assert line[-1][0] == "  8.0 -> 4.0, -4.0 [-6.0, -2.0]" and ("● agents", "agents") in axis


def test_a_mode_has_one_colour_in_shades() -> None:
    modes = {"a": "agents", "b": "mindreaders", "c": "agents", "d": "agents"}
    assert numbered(modes) == {"a": 0, "b": 0, "c": 1, "d": 2}
    assert colour_of("agents") == COLOURS["agents"] and len({colour_of("agents", twin) for twin in range(5)}) == 5
    light, dark = (int(colour_of("agents", twin)[1:], 16) for twin in (1, 2))
    assert light > int(COLOURS["agents"][1:], 16) > dark
