"""The pages: what they show, what they refuse, and that neither text nor visitors can break them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from localsim import reports, web
from localsim.__main__ import run as command
from localsim.conversation.episode import CONDITIONS, StopReason
from localsim.conversation.requests import Generation, Message, Thought
from localsim.evaluators import judge
from localsim.evaluators.asking import Case, judgement_records
from localsim.evaluators.base import Asked
from localsim.reports.compose.alone import report
from localsim.reports.evidence.turns import hits_in
from localsim.reports.figures import pairs
from localsim.reports.render.html import interval_of, opening
from localsim.reports.results import Number
from localsim.runs import telling
from localsim.runs import words as wording
from localsim.runs.plan import primary_of
from localsim.store.database import Store
from localsim.store.episodes import load_episode
from localsim.store.journal import Journal
from localsim.store.queries import scoring as scoring_queries
from localsim.store.queries.runs import run_row
from localsim.store.records import EpisodeEnded, EpisodeRecord, ScenarioRecord, TurnRecord
from localsim.web import asking, heads, view_data
from tests.test_report_html import Page
from tests.web_server import client_of, score, simulated, without_a_talk


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    """A store with a run."""
    return simulated(tmp_path_factory.mktemp("web") / "web.duckdb")


@pytest.fixture
def client(made: tuple[Store, str]) -> Iterator[TestClient]:
    """A browser without scripts."""
    with client_of(made[0]) as found:
        yield found


def episode_of(made: tuple[Store, str], family: str, mode: str) -> str:
    query = "SELECT episode_id FROM v_episodes WHERE run_id = ? AND family = ? AND mode = ? ORDER BY scenario_id"
    return str(made[0].rows(query, [made[1], family, mode])[0]["episode_id"])


# ---- view ----------------------------------------------------------------------------------------------------------


def test_every_page_is_whole(made: tuple[Store, str], client: TestClient) -> None:
    episode, other = (episode_of(made, "craigslist", mode) for mode in ("agents", "script"))
    for path in (
        "/", f"/runs/{made[1]}", f"/annotate/{made[1]}", f"/episodes/{episode}", f"/episodes/{episode}/turns/1",
        f"/compare?a={episode}&b={other}", "/sql", "/sql?q=SELECT+1", "/annotate", "/play", "/nothing",
    ):  # fmt: skip
        answer = client.get(path)
        page = Page(answer.text)
        assert answer.status_code == (404 if path == "/nothing" else 200), path
        assert len(page.all("h1")) == 1 and page.all("html", lang="en") and page.all("main"), path
        assert not re.search(r"""(?:src|href)=["'](?:https?:)?//|@import""", answer.text), path
    assert client.get(f"/runs/{made[1]}/report").status_code == 200


def test_an_empty_database_says_what_to_do(tmp_path: Path) -> None:
    with client_of(Store(tmp_path / "none.duckdb")) as client:
        assert "localsim run" in client.get("/").text
        assert client.get("/runs/@last").status_code == 503
        assert client.get("/annotate").status_code == 200


def test_the_matrix_shows_outcomes_and_leaks_and_can_be_filtered(made: tuple[Store, str], client: TestClient) -> None:
    run = f"/runs/{made[1]}"
    whole = client.get(run).text
    assert len(re.findall('class="cell"', whole)) == 9
    assert '<span class="leak omniscient">▲ 1</span>' in whole
    for query, count in (
        ("mode=agents", 3), ("family=craigslist", 3), ("leaks=omniscient", 1), ("leaks=early", 1),
        ("words=onerror", 1), ("status=failed", 0), ("outcome=failures", 0),
        ("family=craigslist&mode=script&outcome=success", None),
    ):  # fmt: skip
        found = client.get(f"{run}?{query}")
        assert found.status_code == 200
        if count is not None:
            assert len(re.findall('class="cell"', found.text)) == count, query
    assert client.get(f"{run}?mode=nonsense").status_code == 400
    assert client.get(f"{run}?page=0").status_code == 400


def test_an_unearned_hit_is_marked_where_it_is(
    made: tuple[Store, str], client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the omniscient players, those who see both lists name the friend at once; the filter leads to the turn."""
    store, run_id = made
    found = client.get(f"/runs/{run_id}?leaks=hits&family=mutual_friends&mode=mindreaders").text
    (episode, *_) = re.findall(r'class="cell" data-item href="(/episodes/\w+)"', found)
    assert '<span class="leak hit">★ 1</span>' in found
    page = client.get(episode).text
    assert page.count('<details class="note hit">') == 1 and page.count("An untold hit is the right answer") == 1
    (where,) = hits_in(load_episode(store, episode.removeprefix("/episodes/")))
    assert where == 0, "nothing had been said"
    assert command(["show", episode.removeprefix("/episodes/"), "--db", str(store.path)]) == 0
    shown = capsys.readouterr().out
    assert shown.index("  1 ") < shown.index("^ untold hit. Nothing that was said before") < shown.index("  2 ")
    assert "The speaker saw the other side, or guessed well. By chance, 0.20 such hits are expected" in " ".join(
        shown.split()
    )


@pytest.mark.parametrize(
    ("mode", "see", "chance", "words"),
    [
        (
            "agents",
            "",
            0.2,
            "missed here: nobody sees the other side in this mode. By chance, 0.20 such hits are",
        ),
        ("agents", "", 0.2, "and 1 happened: chance can explain this."),
        ("agents", "", 0.01, "and 1 happened: this is an unlikely chance."),
        ("agents", "goal", 0.2, "The speaker saw the other side, or guessed well."),
        ("mindreaders", "", 0.01, "and 1 happened: chance hardly explains it."),
    ],
)
def test_a_hit_says_what_can_explain_it_in_its_mode(
    made: tuple[Store, str], mode: str, see: str, chance: float, words: str
) -> None:
    store, _ = made
    found = store.rows("SELECT episode_id FROM scores WHERE name = 'unearned_hits' AND value > 0 LIMIT 1")
    episode = replace(load_episode(store, found[0]["episode_id"]), mode=mode, see=see)
    scores = [{**row, "value": chance} if row["name"] == "unearned_chance" else row for row in episode.scores]
    (told,) = hits_in(replace(episode, scores=scores)).values()
    assert words in told


def test_the_list_of_runs_has_readable_names_and_results_by_family_and_mode(
    made: tuple[Store, str], client: TestClient
) -> None:
    text = client.get("/").text
    run = heads.runs(made[0])[0]
    assert run.name == telling.name_of(made[0], run_row(made[0], made[1])), "as the terminal names it"
    assert "Mutual friends (2), Bargaining (1) · scripted:omniscient · script, agents, mindreaders" in text
    assert [line.title for line in run.results] == ["Mutual friends", "Bargaining"]
    for line in run.results:
        assert [cell.condition for cell in line.cells] == ["script", "agents", "mindreaders"]
        assert all(cell.success is not None and 0 <= cell.success <= 1 for cell in line.cells)
    drawn = pairs.by_run(made[0], {made[1]: primary_of(run.row.plan_json)})[made[1]]
    assert [each.family for each in drawn] == ["mutual_friends", "craigslist"]
    shown = [(found.before, found.after) for line in run.results for found in line.outcomes]
    assert shown == [tuple(each.said(level.value or 0) for level in each.levels) for each in drawn]
    assert text.count("<b>100%</b>") == 4 and text.count('<svg class="small"') == 2, "of agents and mindreaders"


def test_a_run_page_begins_with_its_answer_and_has_totals_in_column_heads(
    made: tuple[Store, str], client: TestClient
) -> None:
    text = client.get(f"/runs/{made[1]}").text
    assert "Mutual friends: everybody succeeds in agents and mindreaders (0 points" in text
    assert "Every talk in the pictures reached its goal, so they show turns." in text
    assert {each.measure.key for each in pairs.of_runs(made[0], [made[1]])} == {"turns"}
    assert text.index('class="answer"') < text.index('id="pairs"') < text.index('class="matrix')
    head = re.findall(r'<span class="total"><b>(\d+)%</b> goal reached</span><small>(\d) of (\d)', text)
    assert len(head) == 6 and {count for _, _, count in head} == {"1", "2"}
    assert all(int(share) == 100 * int(some) / int(count) for share, some, count in head)
    assert "failures only" in text


def test_talks_that_were_selected_have_no_share_of_successes(made: tuple[Store, str], client: TestClient) -> None:
    """Only talks with an untold hit: their number of all, and no "100% goal reached"."""
    text = client.get(f"/runs/{made[1]}?leaks=hits").text
    heads = re.findall(r'<span class="total"><b>(\d)</b> of (\d) talks?</span>', text)
    assert heads and "</b> goal reached" not in text
    assert all(int(shown) <= int(count) for shown, count in heads) and {count for _, count in heads} <= {"1", "2"}
    by_mode = client.get(f"/runs/{made[1]}?mode=agents").text
    assert "</b> goal reached" in by_mode, "a mode is no selection by how talks went"


def test_a_large_run_opens_before_its_answer_is_known(
    made: tuple[Store, str], client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_data, "ANSWERED_AT_ONCE", 0)
    view_data._ANSWERS.clear()
    run = f"/runs/{made[1]}"
    assert f'data-fetch="{run}/answer"' in client.get(run).text
    assert "cannot tell what seeing every side changes" in client.get(f"{run}/answer").text
    assert "cannot tell what seeing every side changes" in client.get(run).text, "it is kept"
    view_data._ANSWERS.clear()
    assert "cannot tell what seeing every side changes" in client.get(f"{run}?answer=1").text, "without scripts"


def test_what_was_not_searched_for_leaks_says_so(made: tuple[Store, str], client: TestClient) -> None:
    """Only one episode of this run has a score of the detector; another search failed."""
    missing = replace(score(episode_of(made, "craigslist", "agents")), value=None, label="missing")
    made[0].take_in([missing])
    remark = telling.unsearched(*made)
    assert remark.startswith("Leaks were looked for in 1 of 9 episodes only: localsim score")
    assert remark in client.get(f"/runs/{made[1]}").text
    searched, other = (client.get(f"/episodes/{episode_of(made, 'craigslist', mode)}").text for mode in
                       ("script", "agents"))  # fmt: skip
    assert "Leaks were not looked for in this talk" in other and "not looked for" not in searched
    assert "Of 10 such marks, about" in searched and "100%" not in searched


def test_a_run_without_a_completed_talk_says_so(made: tuple[Store, str], client: TestClient) -> None:
    ids = without_a_talk(*made)
    said = "No conversation of this run has been completed"
    begun, failed = (client.get(f"/runs/{ids[name]}") for name in ("begun", "failed"))
    assert begun.status_code == 200 and f"{said} yet: 3 are planned" in begun.text
    assert f"{said}, 3 were planned and 3 failed</bdi>: <code>localsim runs show {ids['failed']}</code>" in failed.text
    assert opening(report(made[0], ids["begun"])) == view_data.answer(made[0], ids["begun"]).opening
    drawn = replace(report(*made), pairs=pairs.of_runs(made[0], [made[1]]))
    assert opening(drawn) == view_data.answer(*made).opening, "it begins as the report does, with its picture"


def test_an_answer_that_another_thread_drops_is_still_given(
    made: tuple[Store, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_data, "_ANSWERS_KEPT", 0)
    assert view_data.answer(*made).opening.first


def test_an_interrupted_run_is_resumed_unless_people_took_part(made: tuple[Store, str], client: TestClient) -> None:
    ids, store = without_a_talk(*made), made[0]
    with store.writing() as connection:
        connection.execute("UPDATE runs SET status = 'interrupted' WHERE run_id = ?", [ids["begun"]])
    addresses = (f"/runs/{ids['begun']}", f"/runs/{ids['begun']}/report")
    assert all(f"localsim resume {ids['begun']}" in client.get(each).text for each in addresses)
    with store.writing() as connection:
        models = json.dumps({"human": {"kind": "human", "name": "human"}})
        connection.execute("UPDATE runs SET models_json = ? WHERE run_id = ?", [models, ids["begun"]])
    for each in addresses:
        text = client.get(each).text
        assert "localsim resume" not in text and "of this run has been completed" in text


def test_words_have_one_place(made: tuple[Store, str], client: TestClient) -> None:
    """Modes, ends of talks and kinds of marks are named alike by the report and by every page."""
    assert set(wording.STOPS) == set(get_args(StopReason)) and set(wording.MODES) == set(CONDITIONS)
    texts = [*wording.MODES.values(), *wording.STOPS.values(), *wording.KINDS.values(), wording.GRANTED]
    own, pages = (Path(module.__file__).parent / "templates" for module in (reports, web))
    for file in (*own.glob("*.j2"), *pages.glob("view/*.j2"), pages / "macros.html.j2"):
        for text in texts:
            assert text == "a hint" or text not in file.read_text(encoding="utf-8"), f"{file.name}: {text}"
    talk = client.get(f"/episodes/{episode_of(made, 'craigslist', 'script')}").text
    whole = client.get(f"/runs/{made[1]}/report").text
    for text in (wording.MODES["script"], wording.KINDS["omniscient"]):
        assert text in talk and text in whole
    assert any(text in talk for text in wording.STOPS.values())
    assert '<option value="no success">goal missed</option>' in client.get(f"/runs/{made[1]}").text


def test_failures_are_missed_goals_and_talks_that_broke_off(made: tuple[Store, str], client: TestClient) -> None:
    store, run_id = made
    broken, missed = (episode_of(made, "mutual_friends", mode) for mode in ("agents", "script"))
    with store.writing() as connection:
        connection.execute("UPDATE episodes SET status = 'failed' WHERE episode_id = ?", [broken])
        connection.execute("UPDATE scores SET value = 0 WHERE name = 'success' AND episode_id = ?", [missed])
    try:
        text = client.get(f"/runs/{run_id}?outcome=failures").text
        assert set(re.findall(r'class="cell" data-item href="/episodes/(\w+)"', text)) == {broken, missed}
        assert "Goal missed" in client.get(f"/episodes/{missed}").text
        assert "1 failed" in client.get("/").text
    finally:
        with store.writing() as connection:
            connection.execute("UPDATE episodes SET status = 'completed' WHERE episode_id = ?", [broken])
            connection.execute("UPDATE scores SET value = 1 WHERE name = 'success' AND episode_id = ?", [missed])


def test_a_talk_begins_with_its_verdict(made: tuple[Store, str], client: TestClient) -> None:
    friends = client.get(f"/episodes/{episode_of(made, 'mutual_friends', 'script')}").text
    bargain = client.get(f"/episodes/{episode_of(made, 'craigslist', 'agents')}").text
    assert "Goal reached" in friends and "They agree on" in friends and "is on both lists." in friends
    assert "suits both" in bargain or "suit both" in bargain
    assert friends.index('class="verdict') < friends.index('class="turns"')


def test_up_to_five_talks_stand_side_by_side(made: tuple[Store, str], client: TestClient) -> None:
    script, agents, minds = (episode_of(made, "craigslist", mode) for mode in ("script", "agents", "mindreaders"))
    text = client.get(f"/compare?a={script}&b={agents}&c={minds}").text
    page = Page(text)
    assert len(page.all("input", type="radio")) == 3 and "Three talks of the same scenario" in text
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert f"/compare?a={script}&amp;b={agents}&amp;c={minds}" in client.get(f"/episodes/{script}").text


def test_leaks_are_marked_with_their_evidence_and_hostile_words_are_only_words(
    made: tuple[Store, str], client: TestClient
) -> None:
    text = client.get(f"/episodes/{episode_of(made, 'craigslist', 'script')}").text
    assert re.search(r'<mark class="(self|omniscient)"', text)
    assert "Untold fact" in text and "A fact &lt;b&gt;omniscient&lt;/b&gt;." in text
    page = Page(text)
    assert not [found for found in page.all("script") if "src" not in found] and not page.all("img")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text and "{{7*7}}" in text
    assert 'dir="auto"' in text  # a right-to-left mark turns only its own words


def test_a_bar_leaves_out_a_name_that_is_not_there_and_an_interval_ends_at_what_is_possible() -> None:
    _, bars = asking._chart(["mode", "see", "n"], [("agents", None, 2), ("script", "goal", 4)])
    assert [bar.label for bar in bars] == ["agents", "script · goal"]
    assert str(Number("share", -0.25, -3.9, 1.0)) == "-25% [-100%, 100%]"
    assert interval_of(Number("share", -0.25, -3.9, 1.0)) == "−100 to 100%", "the same on a page"


def test_the_prompt_of_a_turn_is_the_stored_one_and_holds_the_own_side_alone(
    made: tuple[Store, str], client: TestClient
) -> None:
    episode = episode_of(made, "craigslist", "agents")
    scenario = view_data.marked_episode(made[0], episode).episode.scenario
    text = client.get(f"/episodes/{episode}/turns/0").text
    speaker, other = scenario.agents
    assert speaker.facts[0].text.replace("'", "&#39;") in text and other.facts[0].text.replace("'", "&#39;") not in text
    assert client.get(f"/episodes/{episode}/turns/999").status_code == 400


def test_what_judges_were_asked_is_shown_with_thought_and_reply(made: tuple[Store, str], client: TestClient) -> None:
    store = made[0]
    first, second = (episode_of(made, "craigslist", mode) for mode in ("agents", "script"))
    assert "judgements" not in client.get(f"/episodes/{first}").text
    messages = (Message("system", "Judge."), Message("user", "A talk & its <b>question</b>"))
    subject = next(each for each in scoring_queries.subjects(store, made[1]) if each.episode_id == first)
    question = next(judge.questions(subject, 1))
    request = replace(question.request, messages=messages)
    reply = Generation(" So <i>so</i>.", "length", "m", thought=Thought("Hm & hm.", 9, cut=True))
    case = Case(first, "natural_against_script", sample=1, other_id=second)
    store.take_in(judgement_records(case, "naturalness.m", "2", Asked(request, reply), readable=False))
    for episode in (first, second):
        assert f'href="/episodes/{episode}/judgements"' in client.get(f"/episodes/{episode}").text
        text = client.get(f"/episodes/{episode}/judgements").text
        for words in (
            "A talk &amp; its &lt;b&gt;question",
            "Hm &amp; hm.",
            "Reason: So &lt;i&gt;so",
            "swapped",
            "cut at",
        ):
            assert words in text, words
        assert len(Page(text).all("h1")) == 1
    with store.writing() as connection:
        connection.execute("DELETE FROM judgements")


def test_a_megabyte_of_words_is_shown(made: tuple[Store, str], client: TestClient) -> None:
    episode = episode_of(made, "mutual_friends", "mindreaders")
    with made[0].writing() as connection:
        connection.execute(
            "UPDATE turns SET text = repeat('word ', 200000) WHERE episode_id = ? AND turn = 0", [episode]
        )
    answer = client.get(f"/episodes/{episode}")
    assert answer.status_code == 200 and answer.text.count("word word") > 50_000


def test_a_run_in_progress_shows_its_turns(made: tuple[Store, str], client: TestClient) -> None:
    store, run_id = made
    journal = Journal(store.path, run_id)
    try:
        journal.append(
            ScenarioRecord("h", "s1", "A <b>title</b>", None, "{}", "{}", None),
            *(EpisodeRecord(name, run_id, "h", "agents", "m", 0, 1, "s", "{}") for name in ("e1", "e2")),
            *(TurnRecord(name, 0, "Ana", "speak", f"<i>hi</i> from {name}", 1, False, 0) for name in ("e1", "e2")),
            EpisodeEnded("e2", "completed", "left", None, 1, 1.0),
        )
        assert [each.turns[0][1] for each in view_data.live(store, run_id)] == ["<i>hi</i> from e1"]
        text = client.get(f"/runs/{run_id}/live").text
        assert "A &lt;b&gt;title" in text and "&lt;i&gt;hi&lt;/i&gt; from e1" in text and "from e2" not in text
    finally:
        journal.close(remove=True)
    assert view_data.live(store, run_id) == []


# ---- SQL -----------------------------------------------------------------------------------------------------------


def test_the_sql_box_answers_with_a_table_and_a_chart(client: TestClient) -> None:
    text = client.get("/sql?q=" + quote("SELECT mode, count(*) AS n FROM v_turns GROUP BY mode")).text
    assert "3 rows" in text and "<rect" in text and "mindreaders" in text
    for worked in asking.example_queries():
        assert client.get("/sql?q=" + quote(worked.text)).status_code == 200, worked.name


def test_the_run_of_a_query_is_chosen_and_shown(made: tuple[Store, str], client: TestClient) -> None:
    ids = without_a_talk(*made)
    query = quote("SELECT $run AS id, count(*) AS n FROM v_episodes WHERE run_id = $run")
    chosen = '<option value="{}" selected>'.format
    plain = client.get("/sql").text
    assert chosen(made[1]) in plain, "the newest with a completed talk, as @last in the terminal"
    assert all(f'<option value="{each}"' in plain for each in ids.values())
    text = client.get(f"/sql?run={ids['failed']}&q={query}").text
    assert chosen(ids["failed"]) in text and f"now <code>{ids['failed']}</code>" in text
    assert f">{ids['failed']}</bdi>" in text and ">3</bdi>" in text
    assert text.count(f'href="/sql?run={ids["failed"]}&amp;q=') == len(asking.example_queries()), "examples keep it"
    assert client.get("/sql?run=nonsense").status_code == 400


@pytest.mark.parametrize("query", ["", "  ", ";", ";;", "-- only a comment", "/* */"])
def test_an_empty_query_is_refused_with_a_message(client: TestClient, query: str) -> None:
    assert client.get("/sql").status_code == 200
    answer = client.get("/sql?q=" + quote(query))
    assert answer.status_code == 400 and "the query is empty" in answer.text


def test_pages_send_no_sql_but_what_a_person_typed() -> None:
    """Queries of pages are in store/page_queries.py; `sql_page` runs the query of the SQL box."""
    for file in sorted(Path(view_data.__file__).parent.glob("*.py")):
        assert not re.search(r"\bSELECT\b|\.rows\(|\.execute\(|\.writing\(|\.reading\(", file.read_text()), file.name


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE x AS SELECT 1", "DELETE FROM turns", "ATTACH '/tmp/other.duckdb'", "COPY turns TO '/tmp/t.csv'",
        "SELECT * FROM read_text('/etc/passwd')", "SELECT * FROM '/etc/passwd'", "INSTALL httpfs", "LOAD httpfs",
        "SET enable_external_access = true", "EXPORT DATABASE '/tmp/x'", "SELECT * FROM glob('/*')",
        "PRAGMA database_list; DROP TABLE turns", "SELEC", "SELECT INTERVAL 3000000 YEAR", "SELECT chr(0) || ",
    ],
)  # fmt: skip
def test_the_sql_box_neither_writes_nor_reads_files(made: tuple[Store, str], client: TestClient, query: str) -> None:
    before = made[0].info()
    answer = client.get("/sql?q=" + quote(query))
    assert answer.status_code == 400
    assert "root:" not in answer.text
    assert made[0].info() == before


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM (VALUES ('a', 0.0), ('b', 'nan'::DOUBLE))",
        "SELECT * FROM (VALUES ('a', -1), ('b', 2))",
        "SELECT text, 1 FROM (VALUES (repeat('long words ', 9)), ('short')) AS t (text)",
        "SELECT 1",
    ],
)
def test_odd_results_are_tables_without_a_chart(client: TestClient, query: str) -> None:
    answer = client.get("/sql?q=" + quote(query))
    assert answer.status_code == 200 and "<rect" not in answer.text


def test_results_lead_to_the_talk_and_the_first_number_is_drawn(client: TestClient) -> None:
    text = client.get(
        "/sql?q=" + quote("SELECT episode_id, 0.49000000953674316::DOUBLE AS x FROM v_turns LIMIT 1")
    ).text
    assert 'href="/episodes/' in text and ">0.49<" in text
    text = client.get("/sql?q=" + quote("SELECT mode, count(*) AS n, 0 AS later FROM v_turns GROUP BY mode")).text
    assert "<figcaption>n</figcaption>" in text
    same = "SELECT 'all' AS a, 'alike' AS b, 'too' AS c, mode, count(*) AS n FROM v_turns GROUP BY mode"
    bars = client.get("/sql?q=" + quote(same)).text.split("<figure")[1].split("</figure>")[0]
    assert "agents" in bars and "alike" not in bars, "bars are named by what differs between them"


def test_a_query_that_takes_too_long_is_broken_off(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "SQL_SECONDS", 0.3)
    answer = client.get(
        "/sql?q=" + quote("SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range <> b.range")
    )
    assert answer.status_code == 400 and "broken off" in answer.text
