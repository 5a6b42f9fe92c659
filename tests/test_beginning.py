"""A given beginning: every mode goes on from it, no score credits it, a branch begins exactly as its episode did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from localsim.cli import cli
from localsim.conversation.beginning import own_from
from localsim.conversation.episode import SIMULATED, Mode, Subject
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Transcript
from localsim.errors import Interrupted, InvalidInput, ScenarioInvalid
from localsim.evaluators import leaks
from localsim.evaluators.checks import CHECKS
from localsim.evaluators.evaluate import Outcome
from localsim.evaluators.play import PLAY
from localsim.evaluators.style import STYLE
from localsim.families import FAMILIES
from localsim.finetune.chats import chats_of
from localsim.leakage.detector import LeakageDetector
from localsim.reports.audit import audit_run
from localsim.runs.branches import branched
from localsim.runs.plan import Plan
from localsim.runs.runner import resume, start
from localsim.runs.scripted import simulated
from localsim.scenarios.find import find_scenarios
from localsim.scenarios.parse import parse_scenario
from localsim.store.database import Store
from localsim.store.episodes import load_episode, prompt_of
from scripts.check_rules import played
from tests.conftest import TALK, Quiet, generated
from tests.test_leakage import finding
from tests.test_rules_audit import Stopped

HELLO = ("Ana: Did you take the cake? I saw crumbs on the sofa.", "Bo: No, I did not take the cake.")
BEGUN = TALK + f"begun: {json.dumps(HELLO)}\n"
RANDOM = TALK + "phases: [{name: a, order: random, rounds: 3}]\n"


def lines(talk: Transcript) -> list[tuple[Any, ...]]:
    return [(turn.line, turn.readers, turn.beat, turn.phase, turn.action.values) for turn in talk.turns]


def talk_in(loaded: LoadedScenario, mode: Mode, player: str = "any", seed: int = 5) -> tuple[Transcript, int]:
    """A talk of a scripted player with itself, and the seed of its episode."""
    (episode,) = simulated(Plan((loaded,), (mode,), f"scripted:{player}", seed=seed)).episodes.values()
    assert episode.status == "completed", episode.error
    return episode.transcript, episode.spec.seed


def loaded_of(document: Any) -> LoadedScenario:
    return LoadedScenario(*document.split(), "branch.yaml")


# ---- what is played -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", SIMULATED)
def test_every_mode_goes_on_from_the_given_lines(mode: Mode) -> None:
    loaded = parse_scenario(BEGUN, "talk.yaml")
    requests, turns = played(loaded, mode, 3)
    assert [turn.line for turn in turns[:2]] == list(HELLO) and len(turns) > 2
    first = requests[0]
    assert first.turn == 2, "nobody is asked for a given line"
    if mode in ("script", "iterative"):
        assert [each.content for each in first.messages if each.role == "line"] == list(HELLO)
    else:
        assert [(each.role, each.content) for each in first.messages[-2:]] == [
            ("assistant", HELLO[0]),
            ("user", HELLO[1]),
        ]


def test_without_a_beginning_hashes_stay_and_a_changed_line_has_another() -> None:
    plain, given = (parse_scenario(text, "talk.yaml") for text in (TALK, BEGUN))
    changed = parse_scenario(BEGUN.replace("No, I", "Well, I"), "talk.yaml")
    assert plain.scenario.hash == parse_scenario(TALK + "begun: []\n", "talk.yaml").scenario.hash
    assert len({each.scenario.hash for each in (plain, given, changed)}) == 3
    acted = parse_scenario(TALK + 'begun: ["Ana [action]: opens the window."]\n', "talk.yaml")
    assert not acted.scenario.has_brackets, "what the grammar admits is that of the scenario without its beginning"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BEGUN.replace("Bo: No", "Ana: No"), "it is Bo's turn"),
        (BEGUN.replace("Ana: Did", "Ana [dance]: Did"), "action 'dance' is not among"),
        (TALK + 'begun: ["Ana [leave]: Bye."]', "the talk is over after its beginning (left)"),
        (TALK + 'begun: ["Ana [leave]: Bye.", "Bo: What?"]', "line 2 of the beginning comes after its end (left)"),
        (RANDOM + 'begun: ["Ana: Hello."]', "give seed, too"),
        (TALK + "phases: [{name: a, order: together, rounds: 3}]\nbegun: ['Ana: Hello.']", "act at the same time"),
    ],
)
def test_a_beginning_that_does_not_fit_the_rules_is_refused(text: str, message: str) -> None:
    with pytest.raises(ScenarioInvalid, match="begun") as caught:
        parse_scenario(text, "talk.yaml")
    assert message in str(caught.value)


# ---- branches -------------------------------------------------------------------------------------------------------


CHANCE = ["public_goods", "maze", "wordle", "hidden_role", "restaurant"]
TALKS = ["where_to_eat", "roommates", "craigslist_01", "mutual_friends_01"]


@pytest.mark.parametrize("mode", ["script", "agents", "mindreaders"])
@pytest.mark.parametrize("what", [*TALKS, "random", *CHANCE])
def test_a_branch_begins_byte_for_byte_as_its_episode_and_goes_on_as_it_did(what: str, mode: Mode) -> None:
    """The seeds of turns stay, so the same player says the same from wherever it goes on; a script is one reply, so its
    middle is written anew.
    """
    if what == "random":
        loaded = parse_scenario(RANDOM, "talk.yaml")
    else:
        loaded = find_scenarios([what])[0] if what in TALKS else generated(what)
    talk, seed = talk_in(loaded, mode)
    last = talk.acts[-1].index
    ends = [at for at in range(1, last + 1) if talk.turns[at].beat == at and not talk.turns[at - 1].told]
    for at in {0, ends[0], ends[len(ends) // 2], ends[-1]}:
        branch = loaded_of(branched(loaded, talk, seed, at))
        again, _ = talk_in(branch, mode)
        end = at if mode == "script" and at else len(talk)
        assert lines(again)[:end] == lines(talk)[:end], f"branch at {at}"
        assert (branch.scenario.hash == loaded.scenario.hash) == (at == 0)
        assert own_from(branch.scenario, again) == at


def test_other_seeds_go_on_otherwise_from_the_same_beginning_and_the_same_draws() -> None:
    loaded = generated("public_goods")
    talk, seed = talk_in(loaded, "agents")
    at = next(turn.index for turn in talk.turns if turn.index > 4 and turn.beat == turn.index and not turn.told)
    branch = loaded_of(branched(loaded, talk, seed, at))
    others = [talk_in(branch, "agents", seed=number)[0] for number in (6, 7)]
    assert all(lines(other)[:at] == lines(talk)[:at] for other in others)
    assert lines(others[0]) != lines(others[1])


def test_a_branch_within_simultaneous_acts_or_beyond_the_end_is_refused() -> None:
    loaded = generated("public_goods")
    talk, seed = talk_in(loaded, "agents")
    inside = next(turn.index for turn in talk.turns if turn.beat != turn.index)
    with pytest.raises(InvalidInput, match="act at the same time"):
        branched(loaded, talk, seed, inside)
    with pytest.raises(InvalidInput, match=f"it has {len(talk)} turns"):
        branched(loaded, talk, seed, len(talk) + 1)
    with pytest.raises(ScenarioInvalid, match="the talk is over after its beginning"):
        branched(loaded, talk, seed, len(talk))


def test_another_line_is_another_scenario_and_no_pair(store: Store) -> None:
    """What if Bo had said something else; the original and the branch share id and seeds, and are not compared."""
    runs = [
        start(Plan((parse_scenario(TALK, "t"),), ("agents",), "scripted", seed=2), store, Quiet(), print, leaks=False)
    ]
    talk = load_episode(store, store.episode_id("@last")).transcript
    shell = CliRunner()
    wanted = ["scenarios", "branch", "@last", "--at", "1", "-o", "what_if.yaml"]
    assert shell.invoke(cli, [*wanted, "--act", "Bo: I ate it."]).exit_code == 0
    branch = find_scenarios(["what_if.yaml"])[0]
    assert branch.scenario.begun == (talk.turns[0].line, "Bo: I ate it.")
    assert branch.scenario.id == "talk" and branch.answer.answer == {"where": "JUDGE-ONLY-GARAGE"}
    runs.append(start(Plan((branch,), ("agents",), "scripted", seed=2), store, Quiet(), print, leaks=False))
    told = shell.invoke(cli, ["compare", *(run.run_id for run in runs)])
    assert str(told.exception) == "there is nothing to compare"
    refused = shell.invoke(cli, [*wanted, "--act", "Cy: Hello."])
    assert "it is Bo's turn" in str(refused.exception)


def test_somebody_can_be_left_out_with_all_lines() -> None:
    loaded = find_scenarios(["planning_a_trip"])[0]
    talk, seed = talk_in(loaded, "agents")
    gone = loaded.scenario.names[1]
    branch = loaded_of(branched(loaded, talk, seed, 6, without=gone))
    assert gone not in branch.scenario.names and len(branch.scenario.begun) == 4
    again, _ = talk_in(branch, "agents")
    assert [turn.line for turn in again.turns[:4]] == [t.line for t in talk.turns[:6] if t.speaker != gone]
    with pytest.raises(InvalidInput, match="nobody is called 'Nora'"):
        branched(loaded, talk, seed, 6, without="Nora")


# ---- what is scored, stored, audited and learnt ---------------------------------------------------------------------


def subject_of(text: str, *said: str) -> Subject:
    """A talk with given and other lines, as evaluators read it."""
    scenario, answer = (loaded := parse_scenario(text, "talk.yaml")).scenario, loaded.answer
    whole = scenario.model_copy(update={"begun": (*scenario.begun, *said)})
    from localsim.conversation.beginning import beginning
    from localsim.conversation.rules.deciding import PHASED

    return Subject("e", scenario, answer, "agents", 0, 1, beginning(whole, PHASED, 1))


def values(evaluator: Any, subject: Subject) -> dict[str, float | None]:
    return {each.name: each.value for each in evaluator.evaluation(subject).scores}


def test_style_and_play_count_the_own_turns_and_a_repeat_of_a_given_one() -> None:
    """Of four own turns one says what was given, and one of Bo's repeats its own; given ones are nobody's faults."""
    robot = "How can I help you today with anything?"
    given = (f"Ana: {robot}", f"Bo: {robot}", f"Ana: {robot}", f"Bo: {robot}")
    own = (
        "Ana: I came home at noon and saw the crumbs.",
        f"Bo: {robot}",
        "Ana: The door was open.",
        "Bo: So was the window.",
    )
    subject = subject_of(TALK + f"begun: {json.dumps(given)}\n", *own)
    style, play = values(STYLE, subject), values(PLAY, subject)
    assert (style["turns"], style["turn_limit"], style["repeated_turns"]) == (4, 16, 1 / 4)
    assert style["words_per_turn"] == (9 + 8 + 4 + 4) / 4
    assert (play["play_assistant"], play["play_own_repeats"]) == (1 / 4, 1 / 4)
    everybody = subject_of(TALK, *given, *own)
    assert values(PLAY, everybody)["play_assistant"] == 5 / 8, "the same turns, all of them played"


def test_leaks_in_given_turns_are_known_and_nobody_s() -> None:
    """Ana's fact comes out in a given turn: it is no disclosure of the run, none is left, and Bo's use is no leak."""
    subject = subject_of(BEGUN, "Ana: Where is it then?", "Bo: The crumbs are mine, and the cake is in the garage.")
    turns = leaks.turns_of(subject)
    ana, bo = leaks.private_facts(subject.scenario)
    rows = [(ana, 0, "Ana", finding("disclosed")), *((fact, 3, "Bo", finding("disclosed")) for fact in (ana, bo))]
    talk = leaks.with_terms(subject.scenario, turns, rows, LeakageDetector())
    found = leaks.evaluation(subject, turns, talk)
    counts = {(score.name, score.agent): score.value for score in found.scores}
    assert (counts["disclosed_facts", "Ana"], counts["private_facts", "Ana"]) == (0, 0)
    assert (counts["disclosed_facts", "Bo"], counts["private_facts", "Bo"]) == (1, 1)
    assert counts["omniscient_leaks", "Bo"] == 0
    assert {record.turn for record in found.records} <= {2, 3}  # type: ignore[attr-defined]


def test_an_outcome_that_was_given_is_nobody_s() -> None:
    """A deal of given lines has no success; one that is closed in the run has, and so has the same deal all played."""
    loaded = generated("craigslist", 3)
    key = loaded.answer.answer
    price = (key["seller_target"] + key["buyer_target"]) // 2
    seller, buyer = key["seller"], key["buyer"]
    names = loaded.scenario.names
    acts = {seller: f"{seller}: I can let it go for ${price}.", buyer: f"{buyer}: Deal, ${price} it is."}
    offer, deal, bye = acts[names[0]], acts[names[1]], f"{names[0]} [leave]: Great, see you."

    def scored(*begun: str) -> dict[str, float | None]:
        from localsim.conversation.beginning import beginning
        from localsim.conversation.rules.deciding import PHASED

        whole = loaded.scenario.model_copy(update={"begun": (offer, deal, bye)})
        talk = beginning(whole, PHASED, 1)
        scenario = loaded.scenario.model_copy(update={"begun": begun})
        return values(Outcome(FAMILIES["craigslist"]), Subject("e", scenario, loaded.answer, "agents", 0, 1, talk))

    assert scored()["deal"] == scored(offer)["deal"] == 1
    assert "deal" not in scored(offer, deal, bye) and "success" not in scored(offer, deal, bye)


def test_checks_look_at_what_is_played() -> None:
    checks = "checks: [{name: told, disclosed: ana_1}, {name: asked, said: [cake]}]\n"
    silent = values(CHECKS, subject_of(BEGUN + checks, "Ana: Hm.", "Bo: Hm."))
    spoken = values(CHECKS, subject_of(BEGUN + checks, "Ana: I mean the crumbs.", "Bo: What cake?"))
    assert (silent["check.told"], silent["check.asked"]) == (0, 0)
    assert (spoken["check.told"], spoken["check.asked"]) == (1, 1)


@pytest.mark.parametrize("layout", ["3", "4"])
def test_given_turns_are_no_training_targets(layout: str) -> None:
    loaded = parse_scenario(BEGUN, "talk.yaml")
    talk = subject_of(BEGUN, "Ana: Own one.", "Bo: Own two.", "Ana: Own three.").transcript
    for mode in ("agents", "script"):
        for chat in chats_of(loaded.scenario, mode, talk, layout):  # type: ignore[arg-type]
            texts = "\n".join(each.content for each in chat.messages if each.role in ("assistant", "line")).split("\n")
            if chat.notes:
                learnt = [
                    chat.messages[at].content for each in chat.notes for at in range(each.at, each.at + each.lines)
                ]
            else:
                learnt = [text for text, weight in zip(texts, chat.weights, strict=True) if weight]
            assert set(HELLO) & set(texts) and learnt and all("Own" in line for line in learnt)


def test_given_turns_are_marked_and_the_audit_knows_them(store: Store) -> None:
    loaded = parse_scenario(BEGUN.replace("No, I did", "The cake stands in the garage, and I did"), "talk.yaml")
    run_id = start(Plan((loaded,), ("agents", "script"), "scripted"), store, Quiet(), print, leaks=False).run_id
    assert audit_run(store, run_id).violations == ()
    counted = store.rows("SELECT turn, count(*) AS n FROM v_turns WHERE given GROUP BY ALL ORDER BY ALL")
    assert [tuple(row.values()) for row in counted] == [(0, 2), (1, 2)]
    shown = CliRunner().invoke(cli, ["show", "@last"]).output
    assert shown.count("given with the scenario") == 2
    episode = store.episode_id("@last")
    assert prompt_of(store, episode, 0, lambda *_: [])[0] == {"role": "given with the scenario", "text": HELLO[0]}
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("UPDATE turns SET text = 'Nobody took it.' WHERE turn = 1")
    found = [(each.what, each.text) for each in audit_run(store, run_id).violations if each.generation < 0]
    assert found == [("given line", f"Bo: Nobody took it. instead of {loaded.scenario.begun[1]}")] * 2


@pytest.mark.parametrize("mode", ["agents", "script"])
def test_a_resumed_episode_keeps_its_beginning(store: Store, tmp_path: Path, mode: Mode) -> None:
    plan, whole = Plan((parse_scenario(BEGUN, "talk.yaml"),), (mode,), "scripted", seed=4), Store(tmp_path / "w.duckdb")
    start(plan, whole, Quiet(), print, leaks=False)
    try:
        run_id = start(plan, store, Stopped(3), print, leaks=False).run_id
    except Interrupted:
        run_id = store.run_id("@last", unfinished=True)
    resume(run_id, store, Quiet(), print, leaks=False)
    query = "SELECT turn, speaker, text, generation FROM turns ORDER BY turn"
    assert store.rows(query) == whole.rows(query) and len(whole.rows(query)) > 4
