"""The first picture of a report: every scenario from one mode to the other."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from localsim.__main__ import run as command
from localsim.reports.figures import pairs
from localsim.reports.render.html import render
from localsim.reports.report import Ask, of
from localsim.store.database import Store
from tests.web_server import client_of

SCENARIOS = [f"mutual_friends_0{number}" for number in range(1, 7)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A player that uses all it sees and one that uses nothing of the other side, in all modes."""
    database = tmp_path_factory.mktemp("pairs") / "a.duckdb"
    for player in ("omniscient", "honest"):
        options = ["--mode", "all", "--primary", "turns:information", "--db", str(database)]
        assert command(["run", *SCENARIOS, "-m", f"scripted:{player}", *options]) == 0
    return Store(database)


def drawn(store: Store) -> list[pairs.Paired]:
    return pairs.of_runs(store, [store.run_id("@last-1"), store.run_id("@last")])


def test_the_picture_shows_what_known_players_do(store: Store) -> None:
    omniscient, honest = drawn(store)
    assert (omniscient.model, omniscient.measure.key) == ("scripted:omniscient", "turns")
    assert omniscient.modes == ("agents", "mindreaders") and len(omniscient.lines) == len(SCENARIOS)
    assert all(second == 3 for _, second in omniscient.lines), "it names the friend at once"
    rows = store.rows(
        "SELECT avg(turns) AS turns, mode FROM v_episodes WHERE model = 'scripted:omniscient' GROUP BY mode"
    )
    known = {row["mode"]: row["turns"] for row in rows}
    assert [level.value for level in omniscient.levels] == pytest.approx([known["agents"], known["mindreaders"]])
    assert omniscient.difference.difference == pytest.approx(known["mindreaders"] - known["agents"])
    assert omniscient.amount.startswith("turns: −") and omniscient.difference.difference < -1
    assert all(first == second for first, second in honest.lines), "it does not use what it sees"
    assert honest.amount.startswith("turns: 0.0")


def test_it_is_one_valid_picture_with_a_line_for_each_scenario(store: Store) -> None:
    omniscient, _ = drawn(store)
    root = ElementTree.fromstring(pairs.svg(omniscient))
    texts = ["".join(each.itertext()) for each in root.iter() if each.tag.endswith("text")]
    assert "agents" in texts and "mindreaders" in texts and "scripted:omniscient" in texts
    widths = [float(each.attrib["stroke-width"]) for each in root.iter() if each.attrib.get("stroke-opacity")]
    assert sum(round(width / 1.2) for width in widths) == len(SCENARIOS), "equal ones are one thicker line"
    (told,) = (each.text or "" for each in root.iter() if each.tag.endswith("desc"))
    assert "over 6 scenarios" in told and "difference in turns: −" in told


def test_pictures_of_a_family_share_an_axis(store: Store) -> None:
    ((title, both),) = pairs.panels(drawn(store))
    assert title == "Mutual friends" and len(both) == 2
    assert len({tuple(re.findall(r'font-size="11">([\d.]+)<', each)) for each in both}) == 1
    assert len(set(re.findall(r'id="([^"]+)"', "".join(both)))) == 4


def test_the_page_begins_with_it_and_a_run_without_pairs_has_none(store: Store, tmp_path: Path) -> None:
    page = render(of(store, Ask(store.run_id("@last-1"), talks=True)))
    assert page.index('id="answer"') < page.index('id="pairs"') < page.index("<section")
    database = ["--db", str(tmp_path / "b.duckdb")]
    assert command(["run", SCENARIOS[0], "-m", "scripted", "--mode", "agents", *database]) == 0
    alone = Store(tmp_path / "b.duckdb")
    assert 'id="pairs"' not in render(of(alone, Ask(alone.run_id("@last"), talks=True)))


def test_the_list_shows_it_small_and_ticked_runs_are_compared_as_in_the_terminal(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [store.run_id("@last-1"), store.run_id("@last")]
    first, _ = drawn(store)
    with client_of(store) as client:
        text = client.get("/").text
        before, after = (level.value for level in first.levels)
        assert f"<b>{before:.1f}</b> → " in text and f"<b>{after:.1f}</b> turns" in text, "not 100% and 100%"
        assert (
            text.count('<svg class="small"') == 2
            and '<form class="ticked" method="get" action="/compare/runs">' in text
        )
        assert all(f'type="checkbox" name="run" value="{each}"' in text for each in runs)
        page = unescape(client.get(f"/compare/runs?run={runs[0]}&run={runs[1]}").text)
        whole = client.get(f"/compare/runs?run={runs[0]}&run={runs[1]}&all=1").text
        alone = client.get(f"/compare/runs?run={runs[0]}").text
        assert client.get("/compare/runs").status_code == client.get("/compare/runs?run=nonsense").status_code == 400
    assert len(re.findall(r'<svg [^>]*class="pair"', page)) == 2 and "more measures" in page
    assert whole.count("<tr>") > page.count("<tr>") and "Primary outcome, declared before the run" in alone
    assert command(["compare", *runs, "--db", str(store.path)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line and "--all" not in line]
    assert len(lines) > 6
    for cell in (cell for line in lines for cell in re.split(r"  +", line.strip())):
        assert set(cell) == {"-"} or cell in page, cell


def test_plot_writes_it_as_a_file_of_its_own(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--difference", "-o", str(tmp_path), "--db", str(store.path)]
    assert command(["plot", "@last-1", "@last", *options]) == 0
    root = ElementTree.parse(tmp_path / "difference.svg").getroot()
    assert (
        len([each for each in root if each.tag.endswith("svg")]) == 2
        and "var(" in (tmp_path / "difference.svg").read_text()
    )
    database = ["--db", str(tmp_path / "b.duckdb")]
    assert command(["run", SCENARIOS[0], "-m", "scripted", "--mode", "agents", *database]) == 0
    assert command(["plot", "@last", "--difference", "-o", str(tmp_path), *database]) == 3
    assert "no pairs of its primary outcome" in capsys.readouterr().err
