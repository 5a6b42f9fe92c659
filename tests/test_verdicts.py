"""The verdict on one episode, as the top of a talk says it: what was settled on, and what is true."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localsim.conversation.episode import Score
from localsim.conversation.scenario import AnswerKey
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.families import family_of
from localsim.families.base import listed, sentence
from localsim.leakage.detector import Weights
from localsim.reports.evidence.turns import tenths, verdict_on
from localsim.store.episodes import StoredEpisode
from localsim.web.phrases.table import english
from tests.conftest import generated

TARGETS = {"seller_target": 100, "buyer_target": 150, "zone": [100, 150]}
ZONE: dict[str, Any] = {"seller": "Ana", "buyer": "Bo", "list_price": 200, **TARGETS}
NO_ZONE = {**ZONE, "seller_target": 1150.5, "zone": None}


def of(family: str, key: dict[str, Any], *scores: Score) -> Any:
    return family_of(family).verdict({score.name: score for score in scores}, AnswerKey(key))


@pytest.mark.parametrize(
    ("key", "scores", "right", "said", "truth"),
    [
        (ZONE, [("ending", None, "deal"), ("price", 120.0, None), ("success", 1.0, None)], True,
         "They agree on $120.", "every price from $100 to $150 suits both"),
        (NO_ZONE, [("ending", None, "deal"), ("price", 1200.0, None), ("success", 0.0, None)], False,
         "They agree on $1,200.", "Ana wants at least $1,150.50, and Bo wants to pay at most $150: no price"),
        (NO_ZONE, [("ending", None, "no_deal"), ("success", 1.0, None)], True, "They part without a deal.", "right to"),
        (ZONE, [("ending", None, "ran_out"), ("success", 0.0, None)], False, "They reach the limit of turns", "suits"),
        (ZONE, [("ending", None, "unknown")], None, "The rules cannot read how this talk ends", "suits both"),
        ({**ZONE, "targets": "aspirations"}, [("ending", None, "deal"), ("price", 9.0, None)], None,
         "They agree on $9.", "hopes and not limits"),
    ],
)  # fmt: skip
def test_a_bargain_names_the_price_the_limits_and_the_zone(
    key: dict[str, Any], scores: list[tuple[str, float | None, str | None]], right: Any, said: str, truth: str
) -> None:
    verdict = of("craigslist", key, *(Score(name, value, label=label) for name, value, label in scores))
    assert verdict.right is right
    assert verdict.said.startswith(said) and truth in verdict.truth
    assert of("craigslist", key) is None


@pytest.mark.parametrize(
    ("lines", "common", "right", "said", "truth"),
    [
        ([0], 1, True, "They agree on {0}.", "{0} is on both lists."),
        ([0, 1], 2, True, "They agree on {0}, {1}.", "{0} and {1} are on both lists."),
        ([], 1, False, "They agree on nobody.", "{0} is on both lists."),
        ([], 0, True, "They agree on nobody.", "Nobody is on both lists."),
        (["Zed"], 0, False, "They agree on Zed.", "Nobody is on both lists. Zed is not on both lists."),
    ],
)
def test_friends_names_whom_they_agree_on_and_who_is_in_common(
    lines: list[Any], common: int, right: bool, said: str, truth: str
) -> None:
    """`lines`: people whom one asks about and the other affirms, as numbers of friends in common or as names."""
    loaded = generated("mutual_friends", 3, common=common)
    scenario, true = loaded.scenario, loaded.answer.answer["mutual_friends"]
    one, other = scenario.names
    named = [true[each] if isinstance(each, int) else other_friend(scenario, one) for each in lines]
    turns = [turn for name in named for turn in ((one, f"Do you know {name}?"), (other, f"Yes, I know {name} too!"))]
    transcript = Transcript(tuple(Turn(n, who, Action("speak", text)) for n, (who, text) in enumerate(turns)))
    scores = family_of("mutual_friends").score(transcript, scenario, loaded.answer)
    verdict = of("mutual_friends", dict(loaded.answer.answer), *(score for score in scores if score.agent is None))

    def filled(text: str) -> str:
        return text.format(*true, "", "").replace("Zed", named[-1] if named else "")

    assert (verdict.right, verdict.said, verdict.truth) == (right, filled(said), filled(truth))


@pytest.mark.parametrize(
    ("common", "lines", "missed"),
    [
        (1, ("Hello!", "Hi!"), "unnamed"),
        (1, ("Do you know {true}?", "What a nice day."), "unaffirmed"),
        (2, ("Do you know {true}?", "Yes, I know {true} too!"), "incomplete"),
        (1, ("Do you know {own}?", "Yes, I know {own} too!"), "false_friend"),
        (0, ("We have a friend in common!", "Great!"), "claimed"),
        (1, ("Do you know {true}?", "Yes, I know {true} too!"), ""),
        ("yes", ("I offer ${low} for it.", "No. Goodbye!"), "no_deal"),
        ("yes", ("I offer ${low} for it.", "Deal, ${low} it is!"), "loss"),
        ("no", ("I offer ${low} for it.", "Deal, ${low} it is!"), "bad_deal"),
        ("no", ("I offer ${low} for it.", "No. Goodbye!"), ""),
    ],
)
def test_a_talk_that_missed_its_goal_says_why(common: Any, lines: tuple[str, ...], missed: str) -> None:
    """`common`: how many friends two have in common, or if a price suits both of a bargain."""
    about: dict[str, Any] = {"common": common} if isinstance(common, int) else {"zone": common}
    family = "mutual_friends" if isinstance(common, int) else "craigslist"
    loaded = generated(family, 3, **about)
    scenario, key = loaded.scenario, loaded.answer.answer
    names = scenario.names if isinstance(common, int) else (key["buyer"], key["seller"])
    true = key.get("mutual_friends", [])
    own = next(fact.terms[0] for fact in scenario.agent(names[0]).facts if fact.terms[0] not in true)
    low = round(0.8 * key.get("seller_target", 0))
    said = [line.format(true="".join(true[:1]), own=own, low=low) for line in lines]
    turns = [Turn(n, name, Action("speak", text)) for n, (name, text) in enumerate(zip(names, said, strict=True))]
    turns[-1] = replace(turns[-1], action=replace(turns[-1].action, type="leave"))
    scores = family_of(family).score(Transcript(tuple(turns)), scenario, loaded.answer)
    verdict = of(family, dict(key), *(score for score in scores if score.agent is None))
    assert (verdict.right, verdict.missed) == (not missed, missed)
    assert not missed or f"outcome.why.{missed}" in english().texts


def test_a_deal_whose_price_cannot_be_read_says_so() -> None:
    assert of("craigslist", ZONE, Score("ending", None, label="deal"), Score("success", 0.0)).missed == "unread"


def other_friend(scenario: Any, owner: str) -> str:
    agent = next(agent for agent in scenario.agents if agent.name == owner)
    return str(agent.facts[0].terms[0])


def test_success_by_an_author_is_the_verdict_of_a_scene_without_another() -> None:
    reason = "1 of 2 checks came out as the author expects; not so: told all (said: no, expected yes)"
    verdict = verdict_on(stored(("check.left", 1.0, ""), ("success", 0.0, reason)), AnswerKey())
    assert verdict is not None and verdict.right is False and verdict.said == f"{reason}."
    assert verdict.missed == "checks"
    assert verdict_on(stored(), AnswerKey()) is None


def stored(*scores: tuple[str, float, str]) -> StoredEpisode:
    scenario = generated("mutual_friends").scenario.model_copy(update={"family": None})
    rows = [
        {"name": name, "value": value, "label": None, "agent": None, "reason": reason, "evaluator": "checks"}
        for name, value, reason in scores
    ]
    return StoredEpisode("e", "r", scenario, "agents", "m", 1, "completed", None, None, [], rows, [], [])


def test_certainty_is_the_precision_of_the_instrument() -> None:
    accuracy = Weights.read().accuracy
    found = tenths(accuracy)
    assert found["self"] == round(10 * accuracy["pairs"]["precision"])
    assert found["omniscient"] == round(10 * accuracy["transcripts"]["omniscient_precision"])
    assert tenths(None) == tenths({}) == tenths({"pairs": {"precision": None}}) == {}


def test_sentences_and_lists_of_names() -> None:
    assert sentence("they agree") == "They agree." and sentence("Why?") == "Why?" and sentence(" ") == ""
    assert [listed(names) for names in ([], ["A"], ["A", "B"], ["A", "B", "C"])] == ["", "A", "A and B", "A, B and C"]
