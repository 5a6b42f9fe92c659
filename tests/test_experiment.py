"""An experiment with people: twenty participants, a server that is killed, and everything joined by SQL."""

from __future__ import annotations

import json
import re
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from localsim.cli import cli
from localsim.errors import InvalidInput, ScenarioInvalid
from localsim.reports.audit import audit_run
from localsim.scenarios.experiments.document import Bounds, Condition, Experiment
from localsim.scenarios.experiments.read import experiment_files, load_experiment
from localsim.store.database import Store
from localsim.web.app import Site, create_app
from localsim.web.guard import Rules, hosts_of
from localsim.web.people.experiment.begin import Wish, ledger_of, opening_of
from localsim.web.people.experiment.lab import Lab
from localsim.web.people.experiment.pages import person_name
from tests.test_class import Phone
from tests.test_class import Server as ClassServer
from tests.web_server import field

EXAMPLE = "knowing_too_much"
QUOTAS = {"fair": 8, "knows_too_much": 8, "people": 4}
RATED = ("Yes", "Partly", "No")


# ---- a real server -------------------------------------------------------------------------------------------------


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
    audit = audit_run(store, run)
    assert not audit.violations and audit.prompts_checked > 0
    assert store.check() == []


def test_twenty_participants_fill_the_quotas_while_the_server_is_killed(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.start()
    visitors = [Visitor(server.base, number) for number in range(20)]
    acts, lock, errors = [0], threading.Lock(), list[BaseException]()

    def acted() -> None:
        with lock:
            acts[0] += 1

    def act(visitor: Visitor) -> None:
        try:
            visitor.take_part(2, acted)
        except BaseException as error:
            errors.append(error)
            raise

    try:
        threads = [threading.Thread(target=act, args=(visitor,), daemon=True) for visitor in visitors]
        for thread in threads:
            thread.start()
        while acts[0] < 70 and not errors:
            time.sleep(0.01)
        server.kill()
        server.start()
        for thread in threads:
            thread.join(timeout=0.1 if errors else 80)
        assert not errors and not [problem for each in visitors for problem in each.problems]
        assert "All places of this experiment are filled" in httpx2.get(f"{server.base}/experiment").text
        server.kill(signal.SIGINT)
    except BaseException:
        server.kill()
        raise
    check_stored(server.store, visitors)
    study = load_experiment(experiment_files()[0])
    ledger = ledger_of(server.store, study)
    try:
        with pytest.raises(InvalidInput, match="every place of this experiment is filled"):
            opening_of(ledger, Wish(study, "scripted:friends", "127.0.0.1", None, False))
        assert opening_of(ledger, Wish(study, "scripted:friends", "127.0.0.1", None, True))[1] is False
    finally:
        ledger.close()
    runs = server.store.rows("SELECT status, episodes_planned FROM runs")
    assert runs == [{"status": "finished", "episodes_planned": 18}]


# ---- one process: places, pages, limits ----------------------------------------------------------------------------

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
    study, store = load_experiment(written(folder, text)), Store(folder / "e.duckdb")
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
    rules = Rules(hosts_of("127.0.0.1"), seat_of=lambda request: person_name(lab, request))
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


def test_nothing_personal_is_stored(tmp_path: Path) -> None:
    with lab_at(tmp_path) as lab:
        client = client_of(lab)
        client._transport.client = ("203.0.113.77", 50_000)  # type: ignore[attr-defined]
        client.headers["user-agent"] = "SecretBrowser/9.9"
        client.headers["accept-language"] = "xx-SECRET"
        with client:
            agreed(client)
            text = ready(client)
            post(client, "say", turn=field(text, "turn"), text="Goodbye", leave="1")
            until(lambda: lab.live[1].ended)
            client.get("/experiment")
            cookies = [value for _, value in client.cookies.items()]
    store = Store(tmp_path / "e.duckdb")
    tables = [row["name"] for row in store.rows("SELECT table_name AS name FROM duckdb_tables() WHERE NOT internal")]
    stored = repr([store.rows(f'SELECT * FROM "{table}"') for table in tables])
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert "Goodbye" in stored and any(b"agree" in data for data in files)
    for secret in ("203.0.113.77", "SecretBrowser", "xx-SECRET", *cookies):
        assert secret not in stored
        assert not any(secret.encode() in data for data in files), secret
    columns = {row["name"] for row in store.rows("SELECT column_name AS name FROM (DESCRIBE v_participants)")}
    assert columns == {
        "run_id", "experiment", "participant", "condition", "status", "place", "consent_version", "consented_utc",
        "seconds", "completion_code", "talks", "description_hash",
    }  # fmt: skip


def test_who_does_not_agree_is_not_stored(tmp_path: Path) -> None:
    with lab_at(tmp_path) as lab, client_of(lab) as client:
        assert "Do you agree?" in client.get("/experiment").text
        assert "Nothing about you is stored" in client.get("/experiment/declined").text
        assert not lab.register.people and client.post("/experiment/agree").status_code == 400
    assert not Store(tmp_path / "e.duckdb").path.exists() or not Store(tmp_path / "e.duckdb").rows("SELECT * FROM runs")


def test_a_form_needs_every_answer_and_counts_once(tmp_path: Path) -> None:
    with lab_at(tmp_path, begun=False) as lab, client_of(lab) as client:
        client.get("/experiment")
        assert "How sure are you?" in post(client, "agree").text
        data = {"part": "before", "bank": "before", "item.sure": "2"}
        for odd in ({}, {"item.sum": "12"}, {"item.sum": "x"}, {"item.sum": "4", "item.sure": "5"}):
            assert post(client, "answer", **{**data, **odd}).status_code == 400, odd
        assert post(client, "answer", **{**data, "part": "after", "item.sum": "4"}).status_code == 400
        assert not lab.register.people[1].forms
        for value in ("4", "5"):
            assert post(client, "answer", **data, **{"item.sum": value}).status_code == 200
        given = lab.register.people[1].forms["before", "before"]
        assert given["sum"] == {"value": "4", "number": 4.0, "right": True}
        assert given["sure"] == {"value": "2", "number": 2.0, "right": None}


def test_limits_of_messages_and_characters_are_kept_and_a_message_is_rated_first(tmp_path: Path) -> None:
    with lab_at(tmp_path, SMALL.replace("required: false", "required: true")) as lab, client_of(lab) as client:
        agreed(client)
        until(lambda: bool(lab.live) and bool(lab.live[1].turns))
        text = client.get("/experiment").text
        assert "Be kind." in text and "Nice?" in text and 'name="text"' not in text
        turn = field(text, "turn")
        assert "rate the last message first" in post(client, "say", turn="1", text="Hello").text
        assert post(client, "rate", turn=turn, skip="1").status_code == 400
        for number in range(3):
            text = ready(client)
            assert "At most 6 turns" in text
            long = post(client, "say", turn=field(text, "turn"), text="x" * 41)
            assert long.status_code == 400 and "at most 40" in long.text
            post(client, "say", turn=field(text, "turn"), text=f"Line {number}")
        until(lambda: lab.live[1].ended)
        live = lab.live[1]
        assert live.completed and len(live.turns) <= 6
        assert [each.action.text for each in live.turns if each.action.text.startswith("Line")] == [
            "Line 0", "Line 1", "Line 2",
        ]  # fmt: skip
        assert "Your completion code" in client.get("/experiment").text


def test_a_rating_can_be_skipped_if_the_file_allows_it(tmp_path: Path) -> None:
    with lab_at(tmp_path) as lab, client_of(lab) as client:
        agreed(client)
        until(lambda: bool(lab.live) and bool(lab.live[1].turns))
        text = client.get("/experiment").text
        assert "Skip" in text
        post(client, "rate", turn=field(text, "turn"), skip="1")
        assert list(lab.register.people[1].ratings.values()) == [{}] and "Nice?" not in client.get("/experiment").text


def test_the_time_of_a_talk_ends_it_and_the_participant_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lab_at(tmp_path) as lab, client_of(lab) as client:
        agreed(client)
        until(lambda: bool(lab.live) and bool(lab.live[1].turns))
        now = time.time()
        monkeypatch.setattr("localsim.web.people.experiment.sitting.time.time", lambda: now + 301)
        until(lambda: lab.live[1].ended)
        assert not lab.live[1].completed
        post(client, "rate", turn="0", skip="1")
        page = client.get("/experiment").text
        assert "Your completion code" in page and "The time of the talk is over." in page
    rows = Store(tmp_path / "e.duckdb").rows("SELECT status, error, success FROM v_participant_talks")
    assert rows == [{"status": "failed", "error": "the time of the talk was over", "success": None}]


def test_a_place_of_somebody_who_is_away_goes_to_the_next_one(tmp_path: Path) -> None:
    with lab_at(tmp_path) as lab:
        clients = [client_of(lab) for _ in range(6)]
        for client in clients[:4]:
            agreed(client)
        assert "All places are taken" in clients[4].get("/experiment").text
        people = lab.register.people
        lost = next(each for each in people.values() if each.condition == "both")
        partner = lab.register.partners(lost)[0]
        lab._seen[lost.number] -= 61
        agreed(clients[4])
        assert people[5].place == lost.place and lost.status == "away"
        until(lambda: lab.live[lost.talks[0]].ended)
        assert lab.live[lost.talks[0]].problem == "a participant left the talk"
        assert "Your place was given to another person" in clients[lost.number - 1].get("/experiment").text
        page = clients[partner.number - 1].get("/experiment").text
        assert "Your completion code" in page and partner.status == "unpaired", "the partner is thanked"
        assert "The other side has left the talk." in page
        assert "Waiting for the other side" in clients[4].get("/experiment").text
        agreed(clients[5])
        assert people[6].place == partner.place and people[6].talks == people[5].talks != []


def test_who_stops_frees_the_place_at_once(tmp_path: Path) -> None:
    with lab_at(tmp_path) as lab, client_of(lab) as one, client_of(lab) as two:
        agreed(one)
        assert post(one, "stop").status_code == 400, "the box is not ticked"
        page = post(one, "stop", sure="1").text
        assert "You have stopped" in page and "completion code" not in page
        agreed(two)
        assert [each.place for each in lab.register.people.values()] == [0, 0]
        assert [each.status for each in lab.register.people.values()] == ["withdrawn", "taking part"]


def test_several_talks_of_a_participant_have_different_scenarios(tmp_path: Path) -> None:
    text = SMALL.replace("minutes: 5", "minutes: 5, talks: 2")
    text = text.replace(
        "scenarios: [mutual_friends_01], seat", "scenarios: [mutual_friends_01, mutual_friends_02], seat"
    )
    with lab_at(tmp_path, text) as lab, client_of(lab) as client:
        agreed(client)
        person = lab.register.people[1]
        assert person.condition == "alone"
        for number in (1, 2):
            assert len(person.talks) == number
            page = ready(client)
            assert f"Talk {number} of 2" in page
            post(client, "say", turn=field(page, "turn"), text="Goodbye", leave="1")
            until(lambda number=number: lab.live[number].ended)  # type: ignore[misc]
            client.get("/experiment")
        assert "Your completion code" in client.get("/experiment").text and person.talks == [1, 2]
    rows = Store(tmp_path / "e.duckdb").rows("SELECT talk, scenario_id FROM v_participant_talks ORDER BY talk")
    assert [row["talk"] for row in rows] == [1, 2] and len({row["scenario_id"] for row in rows}) == 2


def test_who_waits_in_vain_may_go_on_and_the_place_is_free(tmp_path: Path) -> None:
    text = SMALL.replace("away: 1", "away: 1, wait: 0.001").replace(
        "quota: 2, scenarios: [mutual_friends_01], seat", "quota: 1, scenarios: [mutual_friends_01], seat"
    )
    with lab_at(tmp_path, text) as lab:
        clients = [client_of(lab) for _ in range(2)]
        for client in clients:
            agreed(client)
        (lonely,) = [each for each in lab.register.people.values() if each.condition == "both"]
        client = clients[lonely.number - 1]
        until(lambda: "Go on without a talk" in client.get("/experiment").text)
        assert "Your completion code" in post(client, "alone").text
        assert lonely.status == "unpaired" and lab.register.holder(lonely.place) is None


GAME = """\
version: 1
id: game
title: A game
consent: {version: "1", text: "Do you agree?"}
conditions:
  - {id: both, quota: 2, scenarios: [matrix_prisoners], partner: participant}
debrief: That was all.
"""


def test_two_participants_play_a_game_and_choose_at_the_same_time(tmp_path: Path) -> None:
    with lab_at(tmp_path, GAME) as lab, client_of(lab) as one, client_of(lab) as two:
        for client in (one, two):
            client.get("/experiment")
            post(client, "agree")
        live = lab.live[1]
        for client, choice in ((two, "F"), (one, "J")):
            until(lambda client=client: 'name="value0"' in client.get("/experiment").text)  # type: ignore[misc]
            text = client.get("/experiment").text
            post(client, "say", turn=field(text, "turn"), kind="choose", value0=choice)
        until(lambda: len(live.turns) >= 3)
        roles = {number: role for role, number in live.talk.people.items()}
        chosen = {turn.speaker: turn.value for turn in live.turns[:2]}
        assert chosen == {roles[1]: "J", roles[2]: "F"}


def test_an_experiment_goes_on_only_as_it_began(tmp_path: Path) -> None:
    with lab_at(tmp_path) as lab, client_of(lab) as client:
        agreed(client)
        run = lab.run_id
    with lab_at(tmp_path) as lab, client_of(lab) as client:
        assert lab.run_id == run and len(lab.register.people) == 1
    with (
        pytest.raises(InvalidInput, match="another file, banks or scenarios"),
        lab_at(tmp_path, SMALL.replace("Be kind.", "Be quick.")),
    ):
        pass
    with lab_at(tmp_path, fresh=True) as lab:
        assert lab.run_id != run


PAGE = Path(__file__).parent.parent / "docs" / "experiments.md"


def blocks(language: str) -> list[str]:
    """The code blocks of a language on the page about experiments."""
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found
    return found


def test_the_file_on_the_page_can_be_read_and_its_mistake_is_told_as_quoted(tmp_path: Path) -> None:
    shutil.copytree(experiment_files()[0].parent / "banks", tmp_path / "banks")
    (text,) = blocks("yaml")
    (tmp_path / "mine.yaml").write_text(text)
    study = load_experiment(tmp_path / "mine.yaml")
    fields = set(Experiment.model_fields) | set(Bounds.model_fields) | set(Condition.model_fields)
    told = set(re.findall(r"^\| `([^|]*)` \|", PAGE.read_text().replace("limits.", ""), re.MULTILINE))
    told = {name for cell in told for name in re.split(r"`, `", cell)}
    simple = {"version", "id", "title", "limits", "seed", "conditions", "debrief"}
    assert fields - simple == told
    assert study.experiment.size == 40
    (tmp_path / "mine.yaml").write_text(text.replace("quota", "qouta", 1))
    with pytest.raises(ScenarioInvalid, match=r"conditions\[0\]\.qouta: unknown key \(did you mean quota\?\)"):
        load_experiment(tmp_path / "mine.yaml")


def test_the_example_can_be_checked_on_the_command_line() -> None:
    told = CliRunner().invoke(cli, ["experiment", "check", EXAMPLE])
    assert told.exit_code == 0 and "20 participants" in told.stdout and "knows_too_much" in told.stdout
    data = json.loads(CliRunner().invoke(cli, ["experiment", "check", EXAMPLE, "--json"]).stdout)
    assert {row["condition"]: row["quota"] for row in data["conditions"]} == QUOTAS


def test_the_table_of_results_and_its_ways_to_sql(tmp_path: Path) -> None:
    with lab_at(tmp_path) as lab:
        clients = [client_of(lab) for _ in range(3)]
        for client in clients:
            agreed(client)
        alone = [each for each in lab.register.people.values() if each.condition == "alone"]
        client = clients[alone[0].number - 1]
        text = ready(client)
        post(client, "say", turn=field(text, "turn"), text="Bye", leave="1")
        until(lambda: lab.live[alone[0].talks[0]].ended)
        client.get("/experiment")
        run = lab.run_id
    db = ["--db", str(tmp_path / "e.duckdb")]
    told = CliRunner().invoke(cli, ["experiment", "results", str(tmp_path / "small.yaml"), "--json", *db])
    data = json.loads(told.stdout)
    rows = {row["condition"]: row for row in data["conditions"]}
    assert data["run_id"] == run
    assert data["description"]["experiment"]["conditions"][0]["hints"] == ["Be kind."]
    assert [bank["id"] for bank in data["description"]["banks"]] == ["before", "one"]
    assert rows["alone"]["assigned"] + rows["both"]["assigned"] == 3 and rows["alone"]["finished"] == 1
    assert rows["alone"]["before"] == 1 and rows["both"]["finished"] == 0 and rows["alone"]["scored"] == 1
    (sure,) = [row for row in data["answers"] if row["item"] == "sum"]
    assert (sure["mean"], sure["right_share"], sure["n"]) == (5.0, 0.0, 1)
    for query in blocks("sql"):
        Store(tmp_path / "e.duckdb").rows(query)
    told = CliRunner().invoke(cli, ["experiment", "results", "small", *db])
    assert "v_participants" in told.stdout and "0 of 1" in told.stdout
    none = CliRunner().invoke(cli, ["experiment", "results", "nothing", *db])
    assert none.exit_code == 3 or isinstance(none.exception, InvalidInput)
