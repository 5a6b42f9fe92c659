"""An experiment with people: twenty participants, a server that is killed, and everything joined by SQL."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx2
import pytest

from localsim.errors import InvalidInput
from localsim.reports.audit import audit_run
from localsim.reports.evidence.participants import compared
from localsim.scenarios.documents import shipped_files
from localsim.scenarios.experiments.read import find_experiment
from localsim.store.database import Store
from localsim.store.queries.experiments import outcomes
from localsim.web.experiment.begin import Wish, ledger_of, opening_of
from tests.test_class import Phone
from tests.test_class import Server as ClassServer
from tests.web_server import at_once, field

EXAMPLE = "knowing_too_much"
QUOTAS = {"fair": 8, "knows_too_much": 8, "people": 4}
RATED = ("Yes", "Partly", "No")


class Server(ClassServer):
    """`localsim experiment serve` in a process of its own, which can be killed and started again."""

    page = "/experiment"

    def command(self, _scenarios: Sequence[str]) -> list[str]:
        return ["experiment", "serve", EXAMPLE, "-m", "scripted:friends"]


class Visitor(Phone):
    """A participant without a browser, who keeps trying while the server is away and sends every form twice."""

    page = "/experiment"

    def __init__(self, base: str, number: int) -> None:
        super().__init__(base, number, "")
        self.rated: list[str] = []
        self.completion = ""

    def send(self, what: str, page: str, /, **data: str) -> str:
        return self.post(f"/experiment/{what}", csrf=field(page, "csrf"), **data)

    def take_part(self, lines: int, acted: Callable[[], None]) -> None:
        text, deadline = self.get(), time.monotonic() + 90
        while "Your completion code" not in text:
            assert time.monotonic() < deadline, text[-1500:]
            before = text
            if 'action="/experiment/agree"' in text:
                text = self.send("agree", text)
            elif 'action="/experiment/answer"' in text:
                text = self._form(text)
            elif 'action="/experiment/rate"' in text:
                choice = self.number % 3
                self.rated.append(RATED[choice])
                text = self.send("rate", text, turn=field(text, "turn"), **{"item.helpful": "ABC"[choice]})
            elif "It is your turn" in text:
                text = self._turn(text, lines)
            if text != before:
                acted()
            else:
                time.sleep(0.12)  # a participant may ask ten times a second
                text = self.get()
        found = re.search(r"<code>(\w+)</code>", text)
        assert found
        self.completion = found[1]

    def _form(self, text: str) -> str:
        part, bank = field(text, "part"), field(text, "bank")
        given = {"item.age": "B", "item.chats": str(self.number % 8), "item.trust": str(1 + self.number % 5)}
        if part == "after":
            given = {"item.who": "A", "item.natural": "4", "item.knew": "2", "item.trust": "3"}
            given["item.remarks"] = f"remark of {self.number} <b>&"
        return self.send("answer", text, part=part, bank=bank, **given)

    def _turn(self, text: str, lines: int) -> str:
        words = f"visitor {self.number} line {len(self.said)}"
        data = {"turn": field(text, "turn"), "text": words}
        if len(self.said) + 1 >= lines:
            data["leave"] = "1"
        answer = self.send("say", text, **data)
        if "was not said" not in answer or words in self.get():
            self.said.append(words)
        return answer if "That did not work" not in answer else self.get()


def joined_for(store: Store) -> list[dict[str, object]]:
    """One row for each participant: pre and post answers and the talk, joined by SQL as the documentation shows."""
    return store.rows(
        "SELECT p.participant, p.condition, p.completion_code, p.seconds, b.number AS before, a.number AS after, "
        "t.messages, t.status, t.error FROM v_participants p "
        "JOIN v_participant_answers b ON b.participant = p.participant AND b.part = 'before' AND b.item = 'trust' "
        "JOIN v_participant_answers a ON a.participant = p.participant AND a.part = 'after' AND a.item = 'trust' "
        "JOIN v_participant_talks t ON t.participant = p.participant "
        "WHERE p.status = 'finished' ORDER BY p.participant"
    )


def check_stored(store: Store, visitors: list[Visitor]) -> None:
    """Exact quotas, nothing lost or doubled, limits kept, answers joined for all, no audit violation."""
    people = store.rows("SELECT * FROM v_participants")
    assert len(people) == 20 and {row["status"] for row in people} == {"finished"}
    assert Counter(row["condition"] for row in people) == QUOTAS
    assert sorted(row["place"] for row in people) == list(range(20))
    assert {row["consent_version"] for row in people} == {"2026-11-25"}
    joined = joined_for(store)
    assert len(joined) == 20 and all(row["after"] == 3 for row in joined)
    by_code = {row["completion_code"]: row for row in joined}
    for visitor in visitors:
        row = by_code[visitor.completion]
        assert row["before"] == 1 + visitor.number % 5
        assert row["messages"] == len(visitor.said) <= 6
        assert row["status"] == "completed", row
    spoken = store.rows("SELECT text FROM v_turns WHERE text LIKE 'visitor %'")
    assert sorted(row["text"] for row in spoken) == sorted(words for each in visitors for words in each.said)
    ratings = store.rows("SELECT value FROM v_participant_answers WHERE part = 'message'")
    assert sorted(row["value"] for row in ratings) == sorted(value for each in visitors for value in each.rated)
    remarks = store.rows("SELECT value FROM v_participant_answers WHERE item = 'remarks'")
    assert {row["value"] for row in remarks} == {f"remark of {each.number} <b>&" for each in visitors}
    assert store.rows("SELECT max(length(text)) AS longest FROM v_turns")[0]["longest"] <= 200
    talks = store.rows("SELECT count(*) AS n, count(DISTINCT episode_id) AS talks FROM v_participant_talks")
    assert talks == [{"n": 20, "talks": 18}], "16 with the program, 2 of two participants"
    (run,) = {str(row["run_id"]) for row in people}
    found = outcomes(store, run)
    units = Counter((each.outcome, each.condition) for each in found)
    assert units["messages", "people"] == 2 and units["messages", "fair"] == 8, "two partners of a talk are one"
    (trust,) = (
        each
        for each in compared(found)
        if each.outcome.startswith("after")
        and each.outcome.endswith("/trust")
        and (each.first, each.second) == ("fair", "knows_too_much")
    )
    assert (trust.difference, trust.p, trust.p_holm) == (0, 1, 1), "everybody answers 3"
    audit = audit_run(store, run)
    assert not audit.violations and audit.prompts_checked > 0
    assert store.check() == []


def test_twenty_participants_fill_the_quotas_while_the_server_is_killed(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.start()
    visitors = [Visitor(server.base, number) for number in range(20)]
    acts, lock = [0], threading.Lock()

    def acted() -> None:
        with lock:
            acts[0] += 1

    try:
        with at_once(visitors, lambda visitor: visitor.take_part(2, acted), 80) as errors:
            while acts[0] < 70 and not errors:
                time.sleep(0.01)
            server.kill()
            server.start()
        assert not [problem for each in visitors for problem in each.problems]
        assert "All places of this experiment are filled" in httpx2.get(f"{server.base}/experiment").text
        server.kill(signal.SIGINT)
    except BaseException:
        server.kill()
        raise
    check_stored(server.store, visitors)
    study = find_experiment(shipped_files("experiments")[0])
    ledger = ledger_of(server.store, study)
    try:
        with pytest.raises(InvalidInput, match="this experiment has ended"):
            opening_of(ledger, Wish(study, "scripted:friends", "127.0.0.1", None, False))
        assert opening_of(ledger, Wish(study, "scripted:friends", "127.0.0.1", None, True))[1] is False
    finally:
        ledger.close()
    runs = server.store.rows("SELECT status, episodes_planned FROM runs")
    assert runs == [{"status": "finished", "episodes_planned": 18}]
