"""What a class tells of its two modes: the amount, if chance can make it, and when there is no answer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from starlette.testclient import TestClient

from localsim.conversation.episode import Mode
from localsim.reports.comparison import compare
from localsim.reports.evidence.turns import hits_in
from localsim.reports.figures import pairs
from localsim.store.database import Store
from localsim.store.episodes import load_episode
from localsim.web.classroom import results, telling
from localsim.web.classroom.hall import Hall
from localsim.web.classroom.seats import MODES
from localsim.web.phrases.table import english, find
from tests.test_class import app_of, hall_at, joined
from tests.test_class_trouble import said_goodbye, until
from tests.web_server import client_of, field


def rows_of(own: Sequence[int], both: Sequence[int], hits: tuple[int, int] = (0, 0)) -> list[results.ModeRow]:
    """Two modes whose talks took these turns; the first `hits` talks of each have a line that nobody could know."""
    modes = zip(MODES, (own, both), hits, strict=True)
    return [
        results.ModeRow(
            mode,
            [results.Outcome("friends", mode, 1.0, turns, "", number < some) for number, turns in enumerate(found)],
        )
        for mode, found, some in modes
    ]


def test_halves_that_played_different_tasks_are_called_so() -> None:
    tasks = {"friends": "mutual_friends", "more": "mutual_friends", "haggle": "craigslist"}

    def halves(own: str, both: str) -> list[results.ModeRow]:
        played: list[tuple[Mode, str, int]] = [("agents", own, 6), ("mindreaders", both, 4)]
        return [
            results.ModeRow(mode, [results.Outcome(name, mode, 1.0, turns) for name in names.split()])
            for mode, names, turns in played
        ]

    assert results.mixed(halves("friends haggle", "friends friends"), tasks)
    assert not results.mixed(halves("friends haggle", "haggle more"), tasks), "two searches are of one type"
    assert not results.mixed(halves("", "haggle"), tasks), "there is nothing to compare"
    same = [replace(row, talks=[replace(talk, turns=4) for talk in row.talks]) for row in halves("haggle", "friends")]
    assert not results.mixed(same, tasks), "no difference needs an explanation"
    many = "friends " * 5 + "haggle " * 5
    assert not results.mixed(halves(many, "friends " * 4 + "haggle " * 6), tasks), "nearly the same"


def test_the_answer_names_the_amount_and_whether_chance_can_make_it() -> None:
    t = english()
    few, many = rows_of([6, 9], [3, 5]), rows_of([8, 9, 10, 9] * 3, [4, 5, 4, 5] * 3)
    assert telling.finding(rows_of([4, 4, 5], [2, 3, 3, 3]), t).endswith("1.5 turns fewer: 2.8 instead of 4.3."), (
        "the difference is that of the means that are shown"
    )
    assert telling.finding(few, t) == "Who saw everything needed 3.5 turns fewer: 4 instead of 7.5."
    assert "chance can make" in telling.certainty(few, t) and "rarely" in telling.certainty(many, t)
    (low, high) = results.difference(many)[1:3]
    assert low is not None and high is not None and -5.3 < low < -4.5 < high < -3.7
    assert results.difference(rows_of([8], [4])) == (-4.0, None, None, 2), "a single talk shows no chance"
    missed = [results.ModeRow(row.mode, [replace(talk, success=0.0) for talk in row.talks]) for row in few]
    assert telling.finding([few[0], missed[1]], t).endswith(
        "Goal reached: 0 of 2 with everything in view, 2 of 2 without."
    )
    same = rows_of([8, 8], [8, 7])
    assert "about the same" in telling.finding(same, t) and "hide" in telling.certainty(same, t)
    many = rows_of([8, 8, 8, 9] * 6, [8, 9, 8, 8] * 6)
    assert results.truth(many, "turns") == "same" and telling.certainty(many, t) == ""
    assert results.truth(same, "turns") is results.truth(few, "turns") is None, "two talks decide nothing"
    assert results.truth(rows_of([8, 9, 10], [4, 4, 5]), "turns") == "mindreaders"
    assert results.truth(rows_of([4, 4, 5], [8, 9, 10]), "turns") == "agents"
    assert results.truth(rows_of([4, 4, 9], [2, 3, 3, 3]), "turns") is None, "chance can make it"
    assert results.truth(rows_of([1], [1]), "turns") is results.truth(rows_of([5] * 3, [1] * 3), "turns") is None
    assert telling.finding(rows_of([8], [9]), t) == "Who saw everything needed one turn more: 9 instead of 8."
    assert results.truth(rows_of([8] * 3, [4] * 3, (0, 3)), "hits") == "mindreaders"
    assert results.truth(rows_of([8] * 3, [4] * 3, (3, 0)), "hits") == "agents"
    for hits in ((0, 2), (1, 1), (2, 3)):
        assert results.truth(rows_of([8] * 3, [4] * 4, hits), "hits") is None, "one talk more or less would undo it"
    assert results.truth(rows_of([8] * 999, [4] * 999, (300, 310)), "hits") == "same"
    ends = results.difference(rows_of([8] * 70, [4] * 80, (56, 48)), "hits")[:3]
    assert [round(end or 0, 4) for end in ends] == [-0.2, -0.3339, -0.0524], "Newcombe 1998, table II (a), method 10"
    undecided = telling.guessed(results.Bets((), {"hits": dict.fromkeys(MODES, 1) | {"same": 1}}),
                                rows_of([8] * 3, [4] * 4, (2, 3)), t)  # fmt: skip
    assert undecided[0].endswith("does not decide it. So few talks can also hide a difference.")
    assert results.truth(rows_of([8] * 2, [4] * 3, (0, 3)), "hits") is None, "two talks are too few to judge a guess"
    assert results.truth([few[0], results.ModeRow("mindreaders")], "hits") is None
    broken = [results.ModeRow(row.mode, [replace(talk, fault="repeats itself") for talk in row.talks]) for row in few]
    assert (
        telling.finding(broken, t).startswith("4 of 4 talks are no conversations")
        and results.truth(broken, "turns") is None
    )


def test_turns_after_the_goal_do_not_count() -> None:
    assert results.counted("mutual_friends", 8, 3) == results.counted("craigslist", 8, 3) == 4
    assert results.counted("mutual_friends", 8, None) == 8, "a talk without success counts whole"
    assert results.counted("ultimatum", 8, 3) == results.counted(None, 8, 3) == 8, "so does a game"


def written(hall: Hall, clients: Sequence[TestClient], lines: Sequence[str]) -> list[str]:
    """Let the phones of the talk that goes on write these lines, and end it with the last; return the page before each
    line is sent.
    """
    (live,), pages = (each for each in hall.live.values() if not each.ended), []
    for number, words in enumerate(lines):
        until(lambda: any(hall.ways(live, role) for role in live.meeting.people))
        role = next(role for role in live.meeting.people if hall.ways(live, role))
        speaker = clients[live.meeting.people[role] - 1]
        pages.append(page := speaker.get("/class").text)
        said = {"csrf": field(page, "csrf"), "turn": str(number), "text": words}
        speaker.post("/class/say", data=said | ({"leave": "1"} if number == len(lines) - 1 else {}))
    return pages


def test_a_talk_without_a_line_to_judge_counts_in_no_share_of_hits(tmp_path: Path) -> None:
    with hall_at(tmp_path / "u.duckdb", "craigslist_01") as hall, app_of(hall) as one, app_of(hall) as two:
        for client in (one, two):
            joined(client)
        (live,) = hall.live.values()
        written(hall, [one, two], ("Hello!", "Hello, no money today.", "Bye"))
        until(lambda: live.ended)
        found = results.outcome_of(live)
        assert found is not None and found.hit is None, "nobody offered a price"
        judged = results.outcome_of(replace(live, judged=True))
        assert judged is not None and judged.hit is False


def test_a_class_counts_a_search_up_to_the_turn_that_decides_it(tmp_path: Path) -> None:
    path = tmp_path / "g.duckdb"
    with hall_at(path, "mutual_friends_01") as hall, app_of(hall) as one, app_of(hall) as two:
        clients = [one, two]
        for client in clients:
            joined(client)
        (live,) = hall.live.values()
        pages = written(hall, clients, ("Do you know Jasper?", "Yes, I know Jasper!", "Great!", "Goodbye!"))
        assert all("ends: we found Jasper" in page for page in pages)
        until(lambda: live.completed)
        talk = results.outcome_of(live)
        assert talk is not None and talk.success == 1 and talk.turns == 2 and len(live.turns) == 4
        hall.reveal()
        assert "up to the one that decided it" in one.get("/class").text
        run_id = hall.opening.run_id
    with hall_at(path, "mutual_friends_01") as hall:
        assert results.outcome_of(hall.live[1]) == talk, "after a restart"
        hall.end()
        until(lambda: hall.register.closed)
    assert [each.turns for each in results.earlier(Store(path), run_id).talks] == [2]


def test_a_report_compares_the_means_of_all_talks_of_people_on_a_scenario(tmp_path: Path) -> None:
    path, found = tmp_path / "p.duckdb", ("Do you know Jasper?", "Yes, I know Jasper!", "Great!", "Goodbye!")
    with hall_at(path, "mutual_friends_01") as hall, ExitStack() as stack:
        clients = [stack.enter_context(app_of(hall)) for _ in range(6)]
        for number, lines in ((0, found), (2, found), (4, ("Hello!", "Goodbye!"))):
            for client in clients[number : number + 2]:
                joined(client)
            written(hall, clients, lines)
        first, second, third = (live.meeting.mode for live in hall.live.values())
        until(lambda: all(live.completed for live in hall.live.values()))
        hall.end()
        until(lambda: hall.register.closed)
        run_id = hall.opening.run_id
    assert {first, second} == set(MODES), "so one mode has two talks: one found the friend in 4 turns, one left in 2"
    by_hand = {"success_rate": {third: 0.5}, "turns": {third: 3.0}}
    store = Store(path)
    rows = {row.measure.key: row for row in compare(store, run_id)}
    for key, alone in (("success_rate", 1.0), ("turns", 4.0)):
        levels = tuple(by_hand[key].get(mode, alone) for mode in MODES)
        assert (rows[key].levels, rows[key].test.n, rows[key].unpaired) == (levels, 1, [0, 0])
    (drawn,) = pairs.of_runs(store, [run_id])
    assert drawn.lines == [rows["success_rate"].levels], "the list of runs"
    with client_of(store) as client:
        page = client.get(f"/runs/{run_id}").text
    assert "script, no model" not in page and "50%" in page, "people played all of it"


def test_a_talk_that_missed_its_goal_says_why_and_has_a_mark_of_its_own(tmp_path: Path) -> None:
    path, why = tmp_path / "g.duckdb", find("de").plain("outcome.why.unaffirmed")
    with hall_at(path, "mutual_friends_01") as hall, app_of(hall, "de") as one, app_of(hall, "de") as two:
        clients = [one, two]
        for client in clients:
            joined(client)
        (live,) = hall.live.values()
        written(hall, clients, ("Do you know Jasper?", "What a nice day.", "Goodbye!"))
        until(lambda: live.completed)
        assert all(f"nicht erreicht.</b> {why}" in client.get("/class").text for client in clients), "with the bets"
        hall.reveal()
        pages = [one.get("/class").text, one.get(f"/class/teacher?key={hall.opening.teacher}").text]
        assert why in pages[0]
        for page in pages:
            assert page.count('class="dot missed"') == 2 and "</svg> Ziel nicht erreicht" in page, "a mark, and its key"
    with hall_at(path, "mutual_friends_01") as hall:
        assert hall.live[1].missed == "unaffirmed", "after a restart"


def test_the_picture_has_talks_that_missed_their_goal_above_others_of_their_length() -> None:
    own, both = rows_of([4, 4, 6], [4])
    missed = [replace(talk, success=0.0) if number == 0 else talk for number, talk in enumerate(own.talks)]
    drawn = results.picture([replace(own, talks=missed), both])
    assert drawn is not None and drawn.has_missed
    assert [[lost for *_, lost in strip.dots] for strip in drawn.strips] == [[False, True, False], [False]]
    (x, low, _), (same, high, _), _ = drawn.strips[0].dots
    assert same == x and high < low
    reached = results.picture([own, both])
    assert reached is not None and not reached.has_missed
    unknown = results.picture([replace(both, talks=[replace(both.talks[0], success=None)])])
    assert unknown is not None and not unknown.has_missed, "a game without a goal"


def test_a_talk_in_another_language_is_not_counted_and_the_class_is_told(tmp_path: Path) -> None:
    path = tmp_path / "g.duckdb"
    with hall_at(path, "mutual_friends_01") as hall, app_of(hall, "de") as one, app_of(hall, "de") as two:
        clients = [one, two]
        for client in clients:
            joined(client)
        (live,) = hall.live.values()
        pages = written(
            hall, clients, ("Kennst du vielleicht auch Jasper?", "Ja, den kenne ich auch gut!", "Also dann, tschüss!")
        )
        assert ["class=\"box\" role=\"alert\"" in page and "Schreib auf Englisch" in page for page in pages] == [
            False, False, True
        ], "who has written German is told so"  # fmt: skip
        until(lambda: live.completed)
        teacher = f"/class/teacher?key={hall.opening.teacher}"
        assert "Gib deine Tipps auf dem Handy ab." in one.get(teacher).text
        for client in clients:
            page = client.get("/class").text
            assert "Euer Gespräch war nicht auf Englisch: Es zählt nicht." in page and "Ziel nicht erreicht" not in page
            client.post("/class/bet", data={"csrf": field(page, "csrf"), "turns": "same", "hits": "same"})
        assert "kein Tipp steht mehr aus" in one.get(teacher).text
        hall.reveal()
        assert (
            live.foreign and results.outcome_of(live) is None and not any(row.talks for row in results.by_mode(hall)[0])
        )
        for page in (one.get("/class").text, one.get(teacher).text):
            assert (
                "1 Gespräch war nicht auf Englisch: Es zählt nicht." in page
                and "zählt. Darum kann diese Klasse" in page
            )
            assert "Ziel nicht erreicht" not in page and "Ziel erreicht: " not in page and "0 von 1" not in page
        assert "telltale" not in one.get("/class").text.split("Dein Gespräch</h2>")[1]
    with hall_at(path, "mutual_friends_01") as hall:
        restored = hall.live[1]
        assert restored.foreign and not restored.hits and restored.success is None, "after a restart"
        assert hits_in(load_episode(hall.store, live.episode_id)), "the rules did not understand the question"
        hall.end()
        until(lambda: hall.register.closed)
        before = results.earlier(Store(path), hall.opening.run_id)
    assert not before.talks and not any(row.talks for row in before.rows), "nor for a later class"


def test_a_class_in_which_nobody_saw_the_other_side_is_shown_a_scripted_talk(tmp_path: Path) -> None:
    modes: tuple[Mode, ...] = ("agents",)
    with (
        hall_at(tmp_path / "a.duckdb", "mutual_friends_03", modes=modes) as hall,
        app_of(hall) as one,
        app_of(hall) as two,
    ):
        for client in (one, two):
            joined(client)
        said_goodbye(hall, (one, two))
        until(lambda: hall.live[1].completed)
        hall.reveal()
        pages = one.get("/class").text, one.get(f"/class/teacher?key={hall.opening.teacher}").text
        for page in pages:
            assert "In this class nobody saw the other side" in page and "★ untold hit: nobody could know" in page
            assert "no line can be judged" not in page and "with everything in view, the one in which" not in page


def test_bets_of_several_talks_are_called_bets() -> None:
    given = results.Bets((), {"turns": {"mindreaders": 5, "agents": 2, "same": 0}})
    (told,) = telling.guessed(given, rows_of([8, 9, 9], [4, 4, 5]), english())
    assert "Bets on everything in view: 5, on each its own side: 2" in told and "Right: Both" in told


def test_right_bets_are_compared_with_guessing() -> None:
    for right, chance in ((8, True), (13, False)):
        row = results.BetRow("mindreaders", right, 13 - right, right)
        assert telling.bets_sentence(results.Bets((row,), {}), english()).endswith("by guessing.") is chance
