"""GUIDE-LLM and PIMMUR: all items are there, facts come from the run, and open items are named as open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localsim.reports.card import OPEN, card, checklists, missing
from localsim.reports.compose.alone import report
from localsim.reports.render.markdown import card_as_markdown
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.store.database import Store
from tests.conftest import Quiet, generated


@pytest.fixture
def run(store: Store) -> str:
    """A scripted run of one scenario in two modes."""
    plan = Plan((generated("mutual_friends"),), ("script", "agents"), "scripted", seed=9)
    return start(plan, store, Quiet(), lambda _: None).run_id


def test_all_items_are_there_and_facts_come_from_the_run(store: Store, run: str) -> None:
    found = card(store, report(store, run))["checklists"]
    assert [name.split()[0] for name in found["GUIDE-LLM"]] == [
        *("A.1 A.2 B.1 B.2 B.3 B.4 B.5 C.1 C.2 D.1 E.1 E.2 F.1 G.1".split())
    ]
    assert "".join(name[0] for name in found["PIMMUR"]) == "PIMMUR"
    assert "seed 9" in found["GUIDE-LLM"]["B.3 parameters"]
    assert "a script, not a language model" in found["GUIDE-LLM"]["B.1 models"]
    assert "not compared with people" in found["PIMMUR"]["Realism"]
    assert "agents: agents answer" in found["PIMMUR"]["Interaction"]


def test_an_item_that_only_authors_know_is_open_until_they_state_it(store: Store, run: str) -> None:
    made = card(store, report(store, run))
    assert f"**G.1 funding**: {OPEN}" in card_as_markdown(made)
    assert {line.split(":")[0] for line in missing(made)} >= {"funding", "personal_data"}
    stated = card(store, report(store, run), {"funding": "none", "personal_data": "none"})
    assert not {line.split(":")[0] for line in missing(stated)} & {"funding", "personal_data"}
    assert f"**G.1 funding**: {OPEN}" not in card_as_markdown(stated)


def test_a_run_of_a_remote_model_says_so(store: Store, run: str) -> None:
    data = report(store, run)
    made = card(store, data)
    far = {"far": {"kind": "remote", "model": "m", "url": "http://127.0.0.1:9"}}
    data = replace(data, run=replace(data.run, models=far))
    answers = {name: answer for own in checklists(data, made, {}).values() for name, answer in own.items()}
    assert answers["B.2 access"] == "a remote endpoint" and "not verified" in (answers["B.1 models"] or "")
