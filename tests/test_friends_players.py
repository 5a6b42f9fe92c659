"""The scripted players of searches against people: they understand what is asked, answer truthfully, and hear a yes."""

from __future__ import annotations

import random

import pytest

from localsim.conversation.episode import Mode
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.conversation.visibility import observe
from localsim.families import FAMILIES
from localsim.families.mutual_friends.names import agreed
from localsim.families.mutual_friends.players import friends
from localsim.scenarios.find import shipped
from tests.test_friends_answers import AFFIRMED, NOT_AFFIRMED

FAMILY = FAMILIES["mutual_friends"]
MODES: dict[str, Mode] = {"friends": "agents", "omniscient": "mindreaders"}
"""The mode that each player is tried in."""
JASPER, BRIGID = "Yes, I know Jasper too!", "Yes, I know Brigid too!"
FOUND = "What a small world! I will tell them that we met. Goodbye!"
ASKS = "…"
"""A reply that asks for the next own friend."""
DESCRIBED = "I know Brigid. Brigid likes juggling and works at Maple Press."


def reply(scenario: str, lines: str, player: str) -> tuple[str, Transcript]:
    """Return what the second agent replies, and the talk with it. The last of `lines` is by the first agent."""
    loaded = shipped()[scenario]
    said, names = lines.split(" / "), loaded.scenario.names
    parity = len(said) % 2
    turns = [Turn(at, names[(at + 1 + parity) % 2], Action("speak", text)) for at, text in enumerate(said)]
    seen = observe(loaded.scenario, MODES[player], names[1], Transcript(tuple(turns)))
    action = FAMILY.omniscient(seen, random.Random(1)) if player == "omniscient" else friends(seen, random.Random(1))
    assert action is not None
    return action.text, seen.transcript.plus(Turn(len(turns), names[1], action))


def is_question(text: str, scenario: str) -> bool:
    names = [fact.terms[0] for fact in shipped()[scenario].scenario.agents[1].facts]
    return text.endswith("?") and any(name in text for name in names)


@pytest.mark.parametrize("player", MODES)
@pytest.mark.parametrize(
    ("scenario", "lines", "expected"),
    [
        # Any way to ask about an own friend, or to claim one.
        ("01", "Do you know Jasper, by any chance?", JASPER),
        ("01", "Do you know Jasper? / Do you know Soren? / But what about Jasper? I asked you already!", JASPER),
        ("01", "Do you know Soren? / No, I don't. Do you know Jasper?", JASPER),
        ("01", "Do you know Soren? / Nope. What about Jasper", JASPER),
        ("01", "do you know jasper", JASPER),
        ("01", "Do you know Soren? / no, do you know jasper", JASPER),
        ("01", "Isn't Jasper your friend?", JASPER),
        ("01", "Jasper?", JASPER),
        ("01", "Is Jasper a friend of yours?", JASPER),
        ("01", "Do you know someone called Jasper?", JASPER),
        ("01", "Does Jasper sound familiar?", JASPER),
        ("01", "does the name jasper ring a bell", JASPER),
        ("01", "Maybe you know Jasper?", JASPER),
        ("01", "Could it be Jasper?", JASPER),
        ("01", "Maybe Jasper.", JASPER),
        ("01", "I wonder if you know Jasper.", JASPER),
        ("01", "My best friend is Jasper.", JASPER),
        ("01", "Do you know Jasper or Nils?", JASPER),
        ("01", "I know Desmond, Jasper, Damian, Salma and Nils.", JASPER),
        ("01", "Do you know Jasper and Karin?", f"{JASPER} Yes, I know Karin too!"),
        ("04", "Is Brigid your friend?", BRIGID),
        ("04", "Do you know Brigid who likes juggling?", BRIGID),
        ("04", "Well, I know Brigid from Maple Press.", BRIGID),
        # A name that is on no list of its own.
        ("01", "Do you know Nils?", f"No, I do not know Nils. {ASKS}"),
        ("01", "Is Nils your friend?", f"No, I do not know Nils. {ASKS}"),
        ("01", "Does Nils sound familiar?", f"No, I do not know Nils. {ASKS}"),
        ("01", "Nils is a friend of mine. You too?", f"No, I do not know Nils. {ASKS}"),
        ("01", "Do you know Nils or Salma?", f"No, I do not know Nils or Salma. {ASKS}"),
        # A denial is no question.
        ("01", "Do you know Jasper? / No, I don't know Jasper.", ASKS),
        ("01", "Do you know Jasper? / Jasper? No, sorry.", ASKS),
        ("01", "Do you know Jasper? / Hm, not sure.", ASKS),
        ("01", "Hello! How are you?", ASKS),
        # A description.
        ("04", "Do you know anyone who likes juggling and works at Maple Press?", DESCRIBED),
        ("04", "Do you have a friend at Maple Press?", DESCRIBED),
        ("04", "do you know anyone at mapple press", DESCRIBED),
        ("04", "I have a friend who likes juggling and works at Maple Press. You too?", DESCRIBED),
        ("04", "Do you know anyone who likes chess and works at Maple Press?", DESCRIBED),  # says what is true
        (
            "04",
            "Do you know anyone who likes jugling?",
            "I know Khalid and Brigid. Khalid likes juggling and works at Blue Lantern. "
            "Brigid likes juggling and works at Maple Press.",
        ),
        ("04", "Do you know anyone who likes baking and works at Maple Press?", f"No, not that I know. {ASKS}"),
        ("04", "Do you know anyone who likes chess?", f"No, not that I know. {ASKS}"),
        ("04", "Do you know anyone at Harbour Foods?", f"No, not that I know. {ASKS}"),
        ("04", "Do you know Cora? / No. Do you know anyone from Nordic Steel?", f"No, not that I know. {ASKS}"),
        ("04", "I don't know anybody at Maple Press.", ASKS),
        ("04", "Do you know anyone?", ASKS),
        # A yes to its question, or to what it has said, ends the search; another question is answered still.
        ("04", "Hello! / Do you know Brigid? / Yes!", FOUND),
        ("04", "Hello! / Do you know Brigid? / yes she is my friend", FOUND),
        ("04", "Hello! / Do you know Brigid? / Yes! She works at Maple Press.", FOUND),
        ("07", "Hello! / Do you know Dinah? / Dinah! Yes of course, I play chess with her.", FOUND),
        ("03", "Hello! / Have you ever met Hamid? / Of course! Hamid is great.", FOUND),
        ("04", "Do you know Brigid? / Yes, I know Brigid too! / Great!", FOUND),
        ("04", f"Anyone at Maple Press? / {DESCRIBED} / Yes, that's her!", FOUND),
        ("04", f"Do you know anyone who likes juggling and works at Maple Press? / {DESCRIBED} / Cool.", FOUND),
        ("04", "Do you know Brigid? / Yes, I know Brigid too! / The one at Maple Press?", FOUND),
        ("04", "Do you know Brigid? / Yes, I know Brigid too! / And Rufus?", f"No, I do not know Rufus. {FOUND}"),
        ("04", "Do you know Brigid? / Yes, I know Brigid too! / And Cora?", "Yes, I know Cora too!"),
        ("04", "Hello! / Do you know Brigid? / No, but I know Rufus.", f"No, I do not know Rufus. {ASKS}"),
        ("04", "Hi / Do you know Brigid? / Yes! / Great! / Sorry, I mixed her up, I don't know Brigid.", ASKS),
    ],
)
def test_friends_understands_people(player: str, scenario: str, lines: str, expected: str) -> None:
    found, talk = reply(f"mutual_friends_{scenario}", lines, player)
    start, asks, _ = expected.partition(ASKS)
    assert found.startswith(start) and (found == start or asks)
    assert not asks or is_question(found[len(start) :], f"mutual_friends_{scenario}")
    if start == FOUND:
        loaded = shipped()[f"mutual_friends_{scenario}"]
        scored = {score.name: score.value for score in FAMILY.score(talk, loaded.scenario, loaded.answer)}
        assert (scored["success"], scored["confirmed"], talk.turns[-1].action.type) == (1, 1, "leave")


@pytest.mark.parametrize(("asked", "answered"), [*AFFIRMED, *NOT_AFFIRMED])
def test_friends_takes_for_a_yes_what_the_scores_take_for_one(asked: str, answered: str) -> None:
    """It sees its own list alone; the scores see both."""
    loaded = shipped()["mutual_friends_01"]
    lists = {"Oscar": ["Jacob", "Carol"], "Beatrix": ["Jacob", "Peggy"]}
    agents = [
        agent.model_copy(
            update={
                "facts": tuple(
                    fact.model_copy(update={"text": f"{name} likes chess.", "terms": (name,)})
                    for fact, name in zip(agent.facts, lists[agent.name], strict=False)
                )
            }
        )
        for agent in loaded.scenario.agents
    ]
    scenario = loaded.scenario.model_copy(update={"agents": tuple(agents)})
    talk = Transcript((Turn(0, "Oscar", Action("speak", asked)), Turn(1, "Beatrix", Action("speak", answered))))
    action = friends(observe(scenario, "agents", "Oscar", talk), random.Random(1))
    assert action.text.endswith(FOUND) is bool(agreed(talk.turns, lists))
