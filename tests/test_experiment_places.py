"""Quotas are exact in every order of joining and leaving, and experiment files name their errors with their places."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localsim.errors import InvalidInput, ScenarioInvalid
from localsim.families.interviews.items import ABSTAIN
from localsim.scenarios.documents import shipped_files
from localsim.scenarios.experiments.read import find_experiment
from localsim.web.experiment.lab import Lab
from localsim.web.experiment.roster import Participant, Roster, ordered, rank
from tests.experiment_lab import ONE, SMALL, lab_at, written

PLAIN = """\
version: 1
id: plain
title: A plain experiment
consent: {version: "1", text: "Do you agree?"}
limits: {away: 1}
seed: SEED
conditions:
  - {id: one, quota: 3, scenarios: [mutual_friends_01], partner: "scripted:friends"}
  - {id: two, quota: 2, scenarios: [mutual_friends_01], partner: "scripted:friends", partner_sees: all}
  - {id: pair, quota: 4, scenarios: [mutual_friends_02], partner: participant}
debrief: That was all.
"""
WANTED = {"one": 3, "two": 2, "pair": 4}


@given(
    counts=st.lists(st.tuples(st.integers(1, 12), st.integers(1, 3)), min_size=1, max_size=5),
    seed=st.integers(0, 2**31 - 1),
)
def test_the_order_has_each_condition_as_often_as_its_quota(counts: list[tuple[int, int]], seed: int) -> None:
    quotas = [(f"c{number}", units * people, people) for number, (units, people) in enumerate(counts)]
    order = ordered(quotas, seed)
    assert Counter(order) == {condition: quota for condition, quota, _ in quotas}
    assert order == ordered(quotas, seed)
    ranks = [(condition, rank(order, place)) for place, condition in enumerate(order)]
    assert len(set(ranks)) == len(order) and max(number for _, number in ranks) == max(q for _, q, _ in quotas) - 1


def test_blocks_keep_the_ratio_of_the_quotas_and_seeds_give_other_orders() -> None:
    order = ordered([("a", 10, 1), ("b", 20, 1)], 1)
    for start in range(0, 30, 3):
        assert Counter(order[start : start + 3]) == {"a": 1, "b": 2}
    assert len({ordered([("a", 5, 1), ("b", 5, 1)], seed) for seed in range(20)}) > 10
    pairs = ordered([("p", 6, 2), ("a", 3, 1)], 3)
    starts = [place for place, condition in enumerate(pairs) if condition == "p"][::2]
    assert all(pairs[place + 1] == "p" for place in starts), "those who share a talk come one after the other"


def end_talk(lab: Lab, person: Participant) -> None:
    """Let the talk of a participant end, as the run would."""
    live = lab.live_of(person)
    if live is not None and person.status == "taking part":
        live.ended = live.completed = True
        for number in live.meeting.people.values():
            other = lab.register.people[number]
            if not other.out:
                with lab.changed:
                    lab._advance(other)


def check(roster: Roster) -> None:
    """No place has two holders, and no condition more than its quota."""
    held = [each.place for each in roster.people.values() if each.holds]
    assert len(held) == len(set(held))
    assert all(count <= WANTED[condition] for condition, count in roster.finished().items())
    assert all(roster.order[each.place] == each.condition for each in roster.people.values())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    acts=st.lists(st.tuples(st.sampled_from(["join", "stop", "vanish", "end"]), st.integers(0, 30)), max_size=40),
    seed=st.integers(0, 1000),
)
def test_quotas_are_exact_whoever_joins_leaves_and_vanishes(acts: list[tuple[str, int]], seed: int) -> None:
    with TemporaryDirectory() as folder, lab_at(Path(folder), PLAIN.replace("SEED", str(seed)), begun=False) as lab:
        roster, joined = lab.register, 0
        for act, number in [*acts, *[(kind, who) for who in range(80) for kind in ("join", "end")]]:
            people = list(roster.people.values())
            if act == "join" and not roster.complete:
                joined += 1
                try:
                    lab.agree(f"key {joined}")
                except InvalidInput:
                    # Everybody in a place is there: in the end they all finish, or vanish without a partner.
                    for person in people:
                        end_talk(lab, person)
                        if lab.step(person) == "wait":
                            lab._seen[person.number] = -1e9
            elif people and act != "join":
                person = people[number % len(people)]
                if act == "stop":
                    lab.withdraw(person)
                elif act == "vanish":
                    lab._seen[person.number] = -1e9
                else:
                    end_talk(lab, person)
            check(roster)
        assert roster.complete and roster.finished() == WANTED
        again = Roster(roster.order, lab._ledger.events[1:])
        assert not again.people, "the ledger was empty when it was opened"
        with pytest.raises(InvalidInput, match="all places are taken"):
            lab.agree("one too many")


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("title: A small experiment", "titel: A small experiment", "3:1: titel", "did you mean title?"),
        ("quota: 2, scenarios: [mutual_friends_01], seat", "quota: 0, scenarios: [mutual_friends_01], seat",
         "9:24: conditions[0].quota", "greater than or equal to 1"),
        ("[mutual_friends_01], seat", "[mutual_freinds_01], seat", "9:39: conditions[0].scenarios[0]",
         "did you mean mutual_friends_01?"),
        ("seat: 2", "seat: Osca", "9:65: conditions[0].seat", "did you mean Oscar?"),
        ("before: before.yaml", "before: befor", "5:9: before[0]", "no bank 'befor'"),
        ("before: before.yaml", "before: role_mcq", "5:9: before[0]", "makes its items"),
        ("one.yaml", "before.yaml", "6:17: ratings.bank", "a rating has options or a scale"),
        ("id: both, quota: 2", "id: both, quota: 3", "10:23: conditions[1].quota", "multiple of 2"),
        ("id: both", "id: alone", "10:10: conditions[1].id", "more than once: alone"),
        ("minutes: 5", "talks: 2", "9:38: conditions[0].scenarios", "2 talks need as many scenarios"),
        ('partner: "scripted:friends"', "partner_sees: Oscar=facts", "9:82: conditions[0].partner_sees",
         "give items alone"),
        ('partner: "scripted:friends"', "partner: human", "9:77: conditions[0].partner", "is called participant"),
        ("hints: Be kind.", "mode: mindreaders, partner_sees: all", "", "both sides see everything anyway"),
        ("debrief: That was all.", "", "1:1: debrief", "this key is missing"),
        ("debrief: That", "debrief: [That", "", "not valid YAML"),
        ("version: \"1\"", "versoin: \"1\"", "4:11: consent.versoin", "did you mean version?"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_file_line_and_column(
    tmp_path: Path, old: str, new: str, place: str, message: str
) -> None:
    assert old in SMALL
    file = written(tmp_path, SMALL.replace(old, new, 1))
    with pytest.raises(ScenarioInvalid) as caught:
        find_experiment(file)
    assert f"{file}:{place}" in str(caught.value) and message in str(caught.value), str(caught.value)
    assert caught.value.hint == f"fix the file, then try: localsim experiment check {file}"


def test_a_choice_of_a_form_can_be_left_open_if_its_bank_says_so(tmp_path: Path) -> None:
    file = written(tmp_path)
    for more, last in (("", "no"), ("abstain: true\n", ABSTAIN)):
        (tmp_path / "one.yaml").write_text(ONE.replace("items:", f"{more}items:"))
        ratings = find_experiment(file).ratings
        assert ratings is not None and ratings.items[0].options[-1] == last


def test_what_ships_can_be_read_and_names_of_experiments_are_suggested() -> None:
    studies = [find_experiment(file) for file in shipped_files("experiments")]
    assert studies and all(study.experiment.id == Path(study.path).stem for study in studies)
    with pytest.raises(InvalidInput, match="did you mean knowing_too_much"):
        find_experiment("knowing_to_much")


def test_limits_change_the_scenario_and_grants_go_to_the_partner_alone() -> None:
    study = find_experiment("knowing_too_much")
    arm = study.arm("knows_too_much")
    limits = arm.scenarios[0].scenario.limits
    assert (limits.turns, limits.chars) == (12, 200)
    assert {arm.grants(place).text for place in range(4)} == {"2=facts"}, "the participant is the first agent"
    assert study.arm("fair").grants(0).text == ""
    assert study.hash == find_experiment("knowing_too_much").hash
