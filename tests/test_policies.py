"""The scripted players really play, and see no more than a model in their place would."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from localsim.backends.scripted import ScriptedBackend, open_scripted
from localsim.conversation.episode import MODES, Mode, Observation
from localsim.conversation.scenario import LoadedScenario, Scenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput
from localsim.families import ANYWHERE, FAMILIES, PLAYERS, family_of
from localsim.families.mutual_friends.family import friends_of
from localsim.runs.runner import Plan, start
from localsim.scenarios.parse import load_scenario, parse_scenario
from localsim.store.database import Store
from tests.conftest import TALK, Quiet, generated

ROOT = Path(__file__).resolve().parent.parent
SEEDS = range(1, 21)
FEW = range(1, 7)
"""Where a rule must hold in each talk, so that more of them would add little."""
EVERYDAY = [
    path
    for path in sorted((ROOT / "scenarios").glob("*.yaml"))
    if not re.search(r"^(family|phases):", path.read_text(encoding="utf-8"), re.M)
]
ASKED = re.compile(r"(?:Do you know|Have you ever met|Is|I have a friend called) (\w+)(?:\?| a friend|\.)")


HERE = {*ANYWHERE, *(player for family in FAMILIES.own for player in FAMILIES[family].players)}
"""The players of these families and of any scenario; all others play as `auto` here."""


class Played:
    """What a run of one policy came to, read back from the database."""

    def __init__(self, store: Store, run_id: str) -> None:
        where = "WHERE run_id = ?"
        self.run_id = run_id
        self.episodes = store.rows(f"SELECT * FROM v_episodes {where} ORDER BY episode_id", [run_id])
        self._scores = store.rows(f"SELECT * FROM v_scores {where} AND newest", [run_id])
        self._turns = store.rows(f"SELECT * FROM v_turns {where} ORDER BY episode_id, turn", [run_id])

    def values(self, name: str) -> dict[str, float]:
        """Scenario -> value of a score that concerns the whole episode."""
        return {row["scenario_id"]: row["value"] for row in self._scores if row["name"] == name}

    def surplus(self, agents: dict[str, str]) -> dict[str, float]:
        """Scenario -> surplus of the agent that `agents` names for it."""
        return {
            row["scenario_id"]: row["value"]
            for row in self._scores
            if row["name"] == "surplus" and row["agent"] == agents[row["scenario_id"]]
        }

    def talks(self) -> dict[str, list[tuple[str, str, str]]]:
        """Scenario/mode -> (speaker, action, text) of each turn."""
        found: dict[str, list[tuple[str, str, str]]] = {}
        for row in self._turns:
            key = f"{row['scenario_id']}/{row['mode']}"
            found.setdefault(key, []).append((row["speaker"], row["action"], row["text"]))
        return found


Play = Callable[..., Played]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Play:
    """Plays a policy on scenarios; the same question is answered once."""
    store = Store(tmp_path_factory.mktemp("policies") / "played.duckdb", patience_s=5)
    known: dict[str, Played] = {}

    def run(policy: str, scenarios: list[LoadedScenario], *modes: Mode, **options: Any) -> Played:
        plan = Plan(tuple(scenarios), modes or ("agents",), f"scripted:{policy}", **{"seed": 11, **options})
        if plan.as_json() not in known:
            result = start(plan, store, Quiet(), lambda _: None)
            played = known[plan.as_json()] = Played(store, result.run_id)
            assert {row["status"] for row in played.episodes} == {"completed"}
            assert len(played.episodes) == len(plan.specs())
        return known[plan.as_json()]

    return run


def friends_instances(seeds: range = SEEDS) -> list[LoadedScenario]:
    return [generated("mutual_friends", seed) for seed in seeds]


def bargains(zone: str, seeds: range = SEEDS) -> list[LoadedScenario]:
    return [generated("craigslist", seed, zone=zone) for seed in seeds]


def answers(scenarios: list[LoadedScenario]) -> dict[str, Any]:
    return {loaded.scenario.id: loaded.answer.answer for loaded in scenarios}


# ---- mutual friends ------------------------------------------------------------------------------------------------


def asked_names(talk: list[tuple[str, str, str]]) -> list[str]:
    return [name for _, _, text in talk for name in ASKED.findall(text)]


def test_friends_find_and_confirm_the_friend_and_never_repeat_a_name(play: Play) -> None:
    played = play("friends", friends_instances())
    success = played.values("success")
    assert len(success) == 20 and fmean(success.values()) >= 0.95
    for talk in played.talks().values():
        names = asked_names(talk)
        assert names and len(names) == len(set(names))
        assert talk[-1][1] == "leave"


def test_friends_find_out_that_there_is_none(play: Play) -> None:
    played = play("friends", [generated("mutual_friends", seed, common=0) for seed in FEW])
    assert set(played.values("success").values()) == {1.0}, "to agree on nobody is right"
    for talk in played.talks().values():
        assert "no friend in common" in talk[-1][2] and talk[-1][1] == "leave"


def test_guessing_is_later_than_knowing(play: Play) -> None:
    scenarios = friends_instances()
    guessed = play("guesser", scenarios)
    known = play("omniscient", scenarios, "mindreaders")
    assert min(known.values("success").values()) == 1
    for loaded in scenarios:
        friend = loaded.answer.answer["mutual_friends"][0]
        talk = known.talks()[f"{loaded.scenario.id}/mindreaders"]
        assert asked_names(talk[:1]) == [friend], "the first possible turn"
    assert set(known.values("first_mention_turn").values()) == {1.0}
    assert fmean(guessed.values("first_mention_turn").values()) > 3
    chosen = [asked_names(talk) for talk in guessed.talks().values()]
    assert any(len(names) > len(set(names)) for names in chosen), "a guesser forgets"
    for loaded in scenarios:
        lists = friends_of(loaded.scenario)
        for speaker, _, text in guessed.talks()[f"{loaded.scenario.id}/agents"]:
            assert set(ASKED.findall(text)) <= set(lists[speaker]), "it guesses among its own friends"


def test_honest_is_another_name_of_friends(play: Play) -> None:
    scenarios = friends_instances(FEW)
    assert play("honest", scenarios).talks() == play("friends", scenarios).talks()


@pytest.mark.parametrize("mode", MODES)
def test_a_list_reader_reads_its_list_and_the_other_answers(play: Play, mode: Mode) -> None:
    scenarios = friends_instances(FEW)
    talks = play("list-reader", scenarios, mode).talks()
    for loaded in scenarios:
        talk = talks[f"{loaded.scenario.id}/{mode}"]
        friend = loaded.answer.answer["mutual_friends"][0]
        assert all(name in talk[0][2] for name in friends_of(loaded.scenario)[talk[0][0]])
        assert talk[1][2] == f"Yes, I know {friend} too!" and talk[-1][1] == "leave"


@pytest.mark.parametrize("mode", MODES)
def test_a_yes_sayer_affirms_all_whom_it_is_asked_about(play: Play, mode: Mode) -> None:
    for talk in play("yes-sayer", friends_instances(FEW), mode).talks().values():
        for (_, _, asked), (_, _, answer) in pairwise(talk):
            assert all(f"Yes, I know {name} too!" in answer for name in ASKED.findall(asked))
        assert len(asked_names(talk)) == 9, "everybody on both lists"


@pytest.mark.parametrize("mode", MODES)
def test_mix_ups_are_friends_of_the_other_agent_where_they_are_visible(play: Play, mode: Mode) -> None:
    scenarios = friends_instances(FEW)
    talks = play("mix-up", scenarios, mode).talks()
    if mode == "agents":
        assert talks == play("friends", scenarios).talks()
        return
    for loaded in scenarios:
        talk = talks[f"{loaded.scenario.id}/{mode}"]
        assert not set(asked_names(talk)) & set(friends_of(loaded.scenario)[talk[0][0]])


def test_a_refuser_names_nobody(play: Play) -> None:
    for talk in play("refuser", friends_instances(FEW)).talks().values():
        assert len(talk) == 1 and talk[0][1] == "leave"


def test_guesses_are_spread_over_the_list() -> None:
    seen = observe(
        generated("mutual_friends").scenario, "agents", generated("mutual_friends").scenario.names[0], Transcript()
    )
    first = [moves(seen, "guesser", seed)[0].text for seed in range(60)]
    assert {ASKED.findall(text)[0] for text in first} == {fact.terms[0] for fact in seen.me().facts}


def test_an_omniscient_player_that_is_told_nothing_plays_as_others_do(play: Play) -> None:
    scenarios = friends_instances(FEW)
    assert play("omniscient", scenarios).talks() == play("friends", scenarios).talks()


def test_an_omniscient_player_knows_at_once_that_there_is_no_friend(play: Play) -> None:
    played = play("omniscient", [generated("mutual_friends", 1, common=0)], "mindreaders")
    assert [row["turns"] for row in played.episodes] == [1]


# ---- bargaining ----------------------------------------------------------------------------------------------------


def offers_of(talk: list[tuple[str, str, str]], speaker: str) -> list[float]:
    """The prices that a speaker named as offers, in order."""
    return [
        float(price)
        for name, _, text in talk
        if name == speaker and not text.startswith("Deal")
        for price in re.findall(r"\$(\d+(?:\.\d+)?)", text)
    ]


@pytest.mark.parametrize(("mode", "seeds"), [("agents", SEEDS), ("script", FEW), ("mindreaders", FEW)])
def test_haggler_deals_inside_the_zone(play: Play, mode: Mode, seeds: range) -> None:
    played = play("haggler", bargains("yes", seeds), mode)
    assert len(played.values("deal")) == len(seeds) and set(played.values("deal").values()) == {1.0}
    assert len(played.values("in_zone")) == len(seeds) and set(played.values("in_zone").values()) == {1.0}
    assert set(played.values("success").values()) == {1.0}


def test_haggler_walks_away_where_there_is_no_zone(play: Play) -> None:
    played = play("haggler", bargains("no"))
    assert len(played.values("walked_away")) == 20 and set(played.values("walked_away").values()) == {1.0}
    assert set(played.values("success").values()) == {1.0}
    assert not played.values("price")


def test_haggler_concedes_towards_its_target_and_not_beyond(play: Play) -> None:
    scenarios = bargains("no")
    talks = play("haggler", scenarios).talks()
    for key, answer in answers(scenarios).items():
        down, up = (offers_of(talks[f"{key}/agents"], answer[role]) for role in ("seller", "buyer"))
        assert down == sorted(down, reverse=True) and up == sorted(up)
        assert down[0] == answer["list_price"] and down[-1] == answer["seller_target"]
        assert up[-1] == answer["buyer_target"]


def test_firm_never_moves(play: Play) -> None:
    scenarios = [generated("craigslist", seed, zone="yes" if seed % 2 else "no") for seed in SEEDS]
    talks = play("firm", scenarios).talks()
    for key, answer in answers(scenarios).items():
        for role in ("seller", "buyer"):
            assert set(offers_of(talks[f"{key}/agents"], answer[role])) <= {answer[f"{role}_target"]}
        assert offers_of(talks[f"{key}/agents"], answer["seller"])


def test_a_patient_buyer_pays_less(play: Play) -> None:
    scenarios = bargains("yes")
    known = answers(scenarios)
    buyers = {key: answer["buyer"] for key, answer in known.items()}
    # Roles go by name, so a buyer who sells elsewhere cannot be told apart.
    patience = set(buyers.values()) - {answer["seller"] for answer in known.values()}
    compared = [key for key, name in buyers.items() if name in patience]
    assert len(compared) >= 15
    hasty = play("haggler", scenarios)
    patient = play("haggler", scenarios, roles=dict.fromkeys(sorted(patience), "scripted:patient-buyer"))
    both = set(compared) & set(hasty.values("price")) & set(patient.values("price"))
    assert len(both) >= 0.8 * len(compared), "patience costs few deals"
    paid = [
        fmean(played.values("price")[key] / known[key]["list_price"] for key in both) for played in (patient, hasty)
    ]
    assert paid[0] < paid[1]
    gained = [fmean(played.surplus(buyers)[key] for key in both) for played in (patient, hasty)]
    assert gained[0] > gained[1]


def test_omniscient_deals_at_the_middle(play: Play) -> None:
    scenarios = bargains("yes")
    prices = play("omniscient", scenarios, "mindreaders").values("price")
    for key, answer in answers(scenarios).items():
        assert abs(prices[key] - (answer["seller_target"] + answer["buyer_target"]) / 2) <= 0.5


def test_a_random_haggler_stays_within_its_target(play: Play) -> None:
    played = play("random-haggler", bargains("yes", FEW))
    assert set(played.values("in_zone").values()) == {1.0}


# ---- any scenario --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_smalltalk_ends_by_leaving(play: Play, mode: Mode) -> None:
    scenarios = [load_scenario(path) for path in EVERYDAY]
    assert any(len(loaded.scenario.names) == 3 for loaded in scenarios)
    played = play("smalltalk", scenarios, mode)
    assert {row["stop_reason"] for row in played.episodes} == {"left"}
    for loaded in scenarios:
        talk = played.talks()[f"{loaded.scenario.id}/{mode}"]
        assert {name for name, _, _ in talk} == set(loaded.scenario.names), "everybody speaks"
        assert talk[-1][1] == "leave"


def test_auto_plays_what_fits_the_family(play: Play) -> None:
    for fitting, scenarios in (("friends", friends_instances(FEW)), ("haggler", bargains("yes", FEW))):
        assert play("auto", scenarios).talks() == play(fitting, scenarios).talks()
    everyday = [load_scenario(EVERYDAY[0])]
    assert play("auto", everyday).talks() == play("smalltalk", everyday).talks()


@pytest.mark.parametrize("policy", sorted(HERE - {"garbler"}))
def test_every_policy_plays_every_scenario(play: Play, policy: str) -> None:
    """Also those in which nobody may leave."""
    talk = parse_scenario(TALK, "talk.yaml")
    endless = "actions: [speak]\nlimits: {closing: false, stale: 0}\n"
    spoken = parse_scenario(TALK.replace("id: talk", "id: spoken") + endless, "spoken.yaml")
    made = [generated("mutual_friends"), generated("craigslist"), generated("craigslist", 2, zone="no")]
    modes = (
        MODES if policy in ("omniscient", "mix-up") else ("agents", "script")
    )  # the others use no more than their own side
    played = play(policy, [talk, spoken, *made], *modes)
    assert {row["stop_reason"] for row in played.episodes if row["scenario_id"] == "spoken"} == {"turn_limit"}


@pytest.mark.parametrize("mode", MODES)
def test_a_garbler_finishes_no_episode(store: Store, mode: Mode) -> None:
    plan = Plan((parse_scenario(TALK, "talk.yaml"), generated("mutual_friends")), (mode,), "scripted:garbler")
    summary = start(plan, store, Quiet(), lambda _: None).summary
    assert (summary.completed, summary.failed) == (0, 2)


@pytest.mark.parametrize("price", ["1,200", "1200", "1200.00"])
def test_prices_are_read_as_people_write_them(play: Play, price: str) -> None:
    document = f"""
version: 1
id: van
title: A van
info: {{what: A bargain written by hand.}}
setting: Sal is selling a van for ${price}, cash only. Bree would like to buy it.
agents:
  - {{name: Sal, goal: Sell the van., facts: [{{id: seller_target, text: At least $1000., terms: ["$1,000"]}}]}}
  - {{name: Bree, goal: Buy the van., facts: [{{id: buyer_target, text: At most $1100., terms: [$1100]}}]}}
family: craigslist
answer: {{seller: Sal, buyer: Bree, list_price: 1200, seller_target: 1000, buyer_target: 1100, zone: [1000, 1100]}}
"""
    played = play("haggler", [parse_scenario(document, "van.yaml")])
    assert offers_of(played.talks()["van/agents"], "Sal")[0] == 1200
    assert played.values("success") == {"van": 1.0}


# ---- what a policy sees --------------------------------------------------------------------------------------------


def moves(seen: Observation, policy: str, seed: int = 1) -> list[Action]:
    return [PLAYERS[policy](seen, random.Random(seed))]


def with_other_hidden_things(scenario: Scenario, changed: str) -> Scenario:
    """The scenario in which `changed` has another goal, secret and other facts."""
    agents = tuple(
        agent.model_copy(
            update={
                "goal": "Do something else entirely.",
                "secret": "A wholly different secret.",
                "facts": tuple(
                    fact.model_copy(update={"text": "Changed.", "terms": ("Zoltan",) if number else ("$7",)})
                    for number, fact in enumerate(agent.facts)
                ),
            }
        )
        if agent.name == changed
        else agent
        for agent in scenario.agents
    )
    return scenario.model_copy(update={"agents": agents})


@pytest.mark.parametrize("policy", sorted(HERE))
@pytest.mark.parametrize("family", FAMILIES.own)
def test_what_the_partner_hides_changes_no_move(policy: str, family: str) -> None:
    for seed in range(1, 6):
        loaded = generated(family, seed)
        viewer, partner = loaded.scenario.names
        other = replace(loaded, scenario=with_other_hidden_things(loaded.scenario, partner))
        opening = Turn(0, viewer, Action("speak", "Hello."))
        for transcript in (Transcript(), Transcript((opening, Turn(1, partner, Action("speak", "How about $50?"))))):
            one, two = (observe(each.scenario, "agents", viewer, transcript) for each in (loaded, other))
            assert one == two
            assert moves(one, policy, seed) == moves(two, policy, seed)


@pytest.mark.parametrize("family", FAMILIES.own)
def test_a_player_of_other_families_plays_as_the_sensible_player_of_this_one(family: str) -> None:
    """So what holds for `auto` here, holds for the players of all games."""
    others = PLAYERS.keys() - HERE
    assert len(others) > 50
    for seed in (1, 2):
        scenario = generated(family, seed).scenario
        one, other = scenario.names
        opening = Turn(0, one, Action("speak", "Hello."))
        for talk in (Transcript(), Transcript((opening, Turn(1, other, Action("speak", "How about $50?"))))):
            seen = observe(scenario, "agents", one, talk)
            assert {policy for policy in others if moves(seen, policy, seed) != moves(seen, "auto", seed)} == set()


def test_the_omniscient_policy_does_use_what_it_is_shown() -> None:
    loaded = generated("craigslist")
    viewer, partner = loaded.scenario.names
    other = replace(loaded, scenario=with_other_hidden_things(loaded.scenario, partner))
    one, two = (observe(each.scenario, "mindreaders", viewer, Transcript()) for each in (loaded, other))
    assert moves(one, "omniscient") != moves(two, "omniscient")


@pytest.mark.parametrize("policy", ["guesser", "random-haggler", "smalltalk", "auto"])
def test_the_same_seed_gives_the_same_transcript(play: Play, policy: str) -> None:
    scenarios = [generated("mutual_friends"), generated("craigslist"), parse_scenario(TALK, "talk.yaml")]
    first = play(policy, scenarios, seed=3)
    assert first.talks() == play(policy, scenarios, seed=3, parallel=1).talks()
    assert first.talks() != play(policy, scenarios, seed=4).talks()


# ---- names and files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["scripted:nobody", "scripted:Friends", "scripted:friends:5"])
def test_an_unknown_policy_is_refused(name: str, store: Store, talk: LoadedScenario) -> None:
    with pytest.raises(InvalidInput) as caught:
        start(Plan((talk,), ("agents",), name), store, Quiet(), print)
    known = {*ANYWHERE, *family_of(talk.scenario.family).players}
    assert all(each in str(caught.value.hint) for each in known), "the players for this scenario"
    assert not store.path.exists(), "nothing was begun"


def test_a_backend_says_that_it_is_scripted() -> None:
    for name in ("scripted", "scripted:guesser"):
        assert open_scripted(name).identity["kind"] == "scripted"
    with pytest.raises(ValueError, match="either"):
        ScriptedBackend()
    with pytest.raises(ValueError, match="either"):
        ScriptedBackend(replies=[], player=PLAYERS["auto"])


def test_replies_from_a_file(store: Store, talk: LoadedScenario, tmp_path: Path) -> None:
    file = tmp_path / "replies.txt"
    file.write_text(
        'Hello, Bo.\n\n{"not": "an action"}\n{"action": "none"}\n{"action": "leave", "text": "Bye."}\n', "utf-8"
    )
    plan = Plan((talk,), ("agents",), "scripted:smalltalk", roles={"Ana": f"scripted:@{file}"})
    played = Played(store, start(plan, store, Quiet(), print).run_id)
    (turns,) = played.talks().values()
    assert [turn[1:] for turn in turns if turn[0] == "Ana"] == [
        ("speak", "Hello, Bo."),
        ("speak", '{"not": "an action"}'),
        ("none", ""),
        ("leave", "Bye."),
    ]
    assert played.episodes[0]["stop_reason"] == "left"


def test_exhausted_replies_fail_the_episode_and_keep_its_turns(
    store: Store, talk: LoadedScenario, tmp_path: Path
) -> None:
    file = tmp_path / "replies.txt"
    file.write_text("Hello.\nHow are you?\n", encoding="utf-8")
    plan = Plan((talk,), ("agents",), f"scripted:@{file}", episodes=2, parallel=1)
    result = start(plan, store, Quiet(), print)
    assert (result.summary.completed, result.summary.failed) == (0, 2)
    played = Played(store, result.run_id)
    assert {row["status"] for row in played.episodes} == {"failed"}
    assert sorted(row["turns"] for row in played.episodes) == [0, 2]
    assert all("no replies left" in row["error"] for row in played.episodes)
    assert store.rows("SELECT 1 FROM scores") == [], "a failed episode has no scores"


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "replies.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidInput, match="cannot be read") as caught:
        open_scripted(f"scripted:@{file}")
    assert caught.value.where == str(file)


def test_an_unknown_action_in_a_file_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "replies.txt"
    file.write_text('Hello.\n{"action": "dance", "text": "la la"}\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match="dance") as caught:
        open_scripted(f"scripted:@{file}")
    assert caught.value.where == f"{file}:2"
