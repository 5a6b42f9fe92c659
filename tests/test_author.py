"""An author's own scenario, before a model plays it: its variants, players who peek, and the answer key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localsim.__main__ import run as command
from localsim.store.database import Store

DESK = """
version: 1
id: desk
title: A desk for two
info: {what: Two colleagues want one desk.}
setting: "{one} and Carl are colleagues. One desk by the window is left."
agents:
  - {name: "{one}", goal: Get the desk.}
  - name: Carl
    goal: Get the desk.
    facts: [{id: leaving, text: Carl goes away soon., terms: [resign]}, {id: tea, text: He drinks tea., terms: [tea]}]
checks:
  - {name: soon, disclosed: leaving, before: 0.2}
  - {name: stayed, left: anybody, before: 0.3, expected: false}
success: [soon]
vary: {one: [Ana, Bea, Eve], facts: shuffled}
"""


def test_an_author_sees_that_a_scenario_can_show_omniscience(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, bare, database = tmp_path / "desk.yaml", tmp_path / "bare.yaml", tmp_path / "a.duckdb"
    page = tmp_path / "report.html"
    file.write_text(DESK)
    bare.write_text(
        DESK.replace(", terms: [resign]", "")
        .replace(", terms: [tea]", "")
        .replace("disclosed: leaving", "said: [resign]")
    )
    known = tmp_path / "known.yaml"
    known.write_text(DESK.replace("terms: [resign]", 'terms: ["{one}"]'))
    assert command(["scenarios", "validate", str(known)]) == 0
    assert f"! {known}@1: the term 'Ana' of the fact leaving is in the setting, so a check" in capsys.readouterr().out
    for name in (file, bare):
        assert command(["scenarios", "lint", str(name)]) == 3
        assert f"localsim run {name} --mode agents,mindreaders -m scripted:omn" in capsys.readouterr().err
    assert command(["scenarios", "validate", str(file)]) == 0
    assert f"1 valid\n{file}: 6 different variants, {file}@1..6\n" == capsys.readouterr().out
    assert command(["scenarios", "show", str(file), "--reveal"]) == 0
    out = capsys.readouterr().out
    assert "check stayed: not left anybody, before 0.3\n" in out and out.endswith("success: all of soon\n")

    run = ["-m", "scripted:omniscient", "--mode", "agents,mindreaders", "--db", str(database)]
    assert command(["run", f"{file}@1..2", *run]) == 0
    out, only = capsys.readouterr().out, "2 variants of one scenario: this tells about this story only"
    assert "desk: 2 variants of one scenario are too few to tell" in out
    assert command(["report", "--db", str(database), "-o", str(page)]) == 0
    assert f"These are {only}.</figcaption>" in page.read_text() and "turns from 1;" in page.read_text()
    assert '<bdi dir="auto">scripted:omniscient: script, no model.</bdi>' in page.read_text()
    assert command(["card", "--db", str(database), "-o", str(page)]) == 0
    assert "! 8 fields are empty" in capsys.readouterr().err
    assert command(["plot", "--db", str(database), "--difference", "-f", "pdf"]) == 3
    rows = Store(database).rows("SELECT mode, avg(success::INT) AS s FROM v_episodes GROUP BY mode ORDER BY mode")
    assert [tuple(row.values()) for row in rows] == [("agents", 0), ("mindreaders", 1)]
    assert "nothing to name" not in capsys.readouterr().err
    row = Store(database).rows("SELECT episode_id FROM v_episodes WHERE mode = 'mindreaders' LIMIT 1")[0]
    assert command(["show", str(row["episode_id"]), "--reveal", "--db", str(database)]) == 0
    out = capsys.readouterr().out
    assert "I mean resign." in " ".join(out.split()) and "  yes check soon: disclosed leaving, before 0.2: turn " in out
    assert "  yes check stayed: not left anybody, before 0.3: no turn (" in out

    assert command(["run", str(bare), *run, "--json"]) == 0
    told = capsys.readouterr()
    assert (
        f"nothing to name in desk-1: no fact there has terms. Add some, then: localsim scenarios validate {bare}"
        in told.err
    )
    assert json.loads(told.out)["completed"] == 2
