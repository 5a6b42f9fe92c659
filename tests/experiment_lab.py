"""A small experiment in one process, for tests: its files, its lab, and the steps of a participant."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from starlette.testclient import TestClient

from localsim.scenarios.experiments.read import find_experiment
from localsim.store.database import Store
from localsim.web.app import Site, create_app
from localsim.web.experiment.begin import Wish, ledger_of, opening_of
from localsim.web.experiment.lab import Lab
from localsim.web.experiment.pages import person_name
from localsim.web.guard import Access, hosts_of
from tests.web_server import field

SMALL = """\
version: 1
id: small
title: A small experiment
consent: {version: "1", text: "Do you agree?"}
before: before.yaml
ratings: {bank: one.yaml, required: false}
limits: {minutes: 5, messages: 3, characters: 40, away: 1}
conditions:
  - {id: alone, quota: 2, scenarios: [mutual_friends_01], seat: 2, partner: "scripted:friends", hints: Be kind.}
  - {id: both, quota: 2, scenarios: [mutual_friends_01, mutual_friends_02], partner: participant}
debrief: That was all.
"""
BEFORE = """\
version: 1
id: before
title: Before
about: One question.
items:
  - {id: sure, ask: "How sure are you?", scale: {points: 4, low: not, high: very}}
  - {id: sum, ask: "What is two and two?", number: [0, 9], gold: 4}
"""
ONE = "version: 1\nid: one\ntitle: One\nabout: One.\nitems: [{id: nice, ask: 'Nice?', options: [yes it is, no]}]\n"


def written(folder: Path, text: str = SMALL) -> Path:
    """The small experiment as files."""
    (folder / "before.yaml").write_text(BEFORE)
    (folder / "one.yaml").write_text(ONE)
    file = folder / "small.yaml"
    file.write_text(text)
    return file


@contextmanager
def lab_at(folder: Path, text: str = SMALL, *, begun: bool = True, fresh: bool = False) -> Iterator[Lab]:
    """An experiment without a server; `begun`: its talks run."""
    study, store = find_experiment(written(folder, text)), Store(folder / "e.duckdb")
    ledger = ledger_of(store, study)
    wish = Wish(study, "scripted:friends", "127.0.0.1", None, fresh)
    try:
        opening, continued = opening_of(ledger, wish)
        if not continued:
            ledger.begin(opening)
        lab = Lab(store, study, ledger, opening, lambda _: None)
        if begun:
            lab.start()
    except BaseException:
        ledger.close()
        raise
    try:
        yield lab
    finally:
        lab.stop()


def client_of(lab: Lab) -> TestClient:
    rules = Access(hosts_of("127.0.0.1"), seat_of=lambda request: person_name(lab, request))
    app = create_app(Site(lab.store, rules, "scripted", frozenset({"experiment"}), lab=lab))
    return TestClient(app, base_url="http://127.0.0.1:7580", raise_server_exceptions=False)


def post(client: TestClient, what: str, **data: str) -> httpx2.Response:
    csrf = field(client.get("/experiment").text + '<input name="csrf" value="">', "csrf")
    return client.post(f"/experiment/{what}", data={"csrf": csrf, **data})  # type: ignore[return-value]


def agreed(client: TestClient) -> str:
    """Take part up to the talk; the last page."""
    client.get("/experiment")
    post(client, "agree")
    data = {"part": "before", "bank": "before", "item.sure": "2", "item.sum": "5"}
    return post(client, "answer", **data).text


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ready(client: TestClient) -> str:
    """Wait until it is the participant's turn; messages are rated on the way."""
    for _ in range(600):
        text = client.get("/experiment").text
        if 'action="/experiment/rate"' in text:
            post(client, "rate", turn=field(text, "turn"), **{"item.nice": "A"})
        elif "It is your turn" in text:
            return text
        time.sleep(0.01)
    raise AssertionError(text)
