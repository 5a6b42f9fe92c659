"""What a person states on a form when they end a talk."""

from __future__ import annotations

from typing import Any

import pytest

from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.families import family_of
from localsim.families.settling import NOTHING, Offered, stated_in, with_statement, without_statement
from localsim.scenarios.find import find_scenarios
from localsim.web.floor.ways import ended_by
from localsim.web.phrases.table import Refused

FENCING, JUGGLING, BEES, LAMP = "mutual_friends_03", "mutual_friends_01", "mutual_friends_02", "craigslist_01"


def scored(name: str, lines: str, stated: str = "", first: int = 0) -> dict[str, Any]:
    """The scores of a talk whose lines are parted by bars; who says the last one leaves with the statement."""
    (loaded,) = find_scenarios([name])
    people, texts = loaded.scenario.names, [line.strip() for line in lines.split("|")]
    turns = [Turn(at, people[(at + first) % 2], Action("speak", text)) for at, text in enumerate(texts)]
    last = with_statement(texts[-1], stated) if stated else texts[-1]
    turns[-1] = Turn(len(texts) - 1, turns[-1].speaker, Action("leave", last))
    family = family_of(loaded.scenario.family)
    return {each.name: each for each in family.score(Transcript(tuple(turns)), loaded.scenario, loaded.answer)}


@pytest.mark.parametrize(
    ("name", "lines", "stated", "success"),
    [
        (FENCING, "malik | mine is esther. any of urs into fencing? | ye hamid! | HAMID yesss", "Hamid", 1),
        (FENCING, "u know sombody who fences | yeah hammid | from tidal power? | yess | then its hamid :)", "Hamid", 1),
        (JUGGLING, "anyone at union textiles? | yes jasper | jasper likes calligraphy? | yep, u got it", "Jasper", 1),
        (JUGGLING, "anyone who likes calligraphy? | ursula. but jasper is the one | true | yes thats it", "Jasper", 1),
        (BEES, "any1 beekeeping? i got 3 | yes 1!! | where does he work | tidal | then its anton", "Anton", 1),
        (BEES, "any1 beekeeping? i got 3 | no | ok | bye | then its anton", "Anton", 0),
        (JUGGLING, "Do you know Salma? | Yes, Salma! | great", "Salma", 0),
        (JUGGLING, "Do you know Jasper? | No, I don't know Jasper. | bye", "Jasper", 0),
        (JUGGLING, "hi | hello | ok", "Jasper", 0),
        (JUGGLING, "hi | hello | then it must be jasper", "Jasper", 0),
        (JUGGLING, "Do you know Jasper? | Yes, I know Jasper! | bye", NOTHING, 0),
    ],
)  # fmt: skip
def test_the_friend_that_is_stated_counts_if_the_talk_came_to_it(
    name: str, lines: str, stated: str, success: float
) -> None:
    scores = scored(name, lines, stated)
    assert scores["success"].value == success
    assert scores["success"].value == scores["confirmed"].value
    plain = scored(name, lines)
    for measure in ("wrong_guesses", "unearned_hits", "mix_ups"):
        assert scores[measure].label == plain[measure].label, "a statement is no guess"


@pytest.mark.parametrize(
    ("lines", "stated", "ending", "price"),
    [
        ("would u do 95 | hmm im at the door at 6 with the cash | cool", "$95", "deal", 95),
        ("how about 90 | 100? | the middle then | sure", "$95", "deal", 95),
        ("ninety five and i come now | at six, bring the cash | cool", "$95", "deal", 95),
        ("how about $90? | Deal! | bye", "$90", "deal", 90),
        ("how about $90? | Deal! | bye", "$120", "unknown", None),
        ("hi | hello | take it for 150", "$150", "unknown", None),
        ("hello u want my espresso? 110 | I can do $65. | ok", "$95.5", "unknown", None),
        ("how about 90 | i think about it | ok", NOTHING, "no_deal", None),
    ],
)
def test_the_price_that_is_stated_counts_if_the_talk_came_to_it(
    lines: str, stated: str, ending: str, price: float | None
) -> None:
    scores = scored(LAMP, lines, stated, first=1)
    assert scores["ending"].label == ending, scores["ending"].reason
    assert ("price" in scores and scores["price"].value) == (price or False)


def test_only_the_sign_of_the_form_is_a_statement() -> None:
    def ends(text: str, kind: Any = "leave") -> tuple[Turn, ...]:
        return (Turn(0, "Ana", Action("speak", "Hi ⇒ Bo")), Turn(1, "Bo", Action(kind, text)))

    for text, kind in (("bye", "leave"), ("our friend is Hamid", "leave"), ("bye ⇒ Hamid", "speak"), ("⇒", "leave")):
        assert stated_in(ends(text, kind)) is None and without_statement(ends(text, kind)) == ends(text, kind)
    found = stated_in(ends("bye ⇒ Hamid"))
    assert found is not None and (found.turn, found.speaker, found.what) == (1, "Bo", "Hamid")
    assert without_statement(ends("bye ⇒ Hamid")) == ends("bye") and without_statement(ends("⇒ Hamid")) == ends("")


def test_a_form_states_only_what_it_offers() -> None:
    friends, price, leave = Offered(("Hamid", "Lars")), Offered(price=True), Action("leave", "bye")
    assert ended_by(leave, friends, "Lars", "").text == "bye ⇒ Lars"
    assert ended_by(Action("leave"), friends, NOTHING, "").text == "⇒ –"
    for chosen in ("1", "Esther", ""):
        assert ended_by(leave, friends, chosen, "").text == "bye"
    assert ended_by(Action("speak", "bye"), friends, "Lars", "").text == "bye"
    assert ended_by(leave, None, "Lars", "").text == "bye"
    for typed, text in (("85", "$85"), (" $ 85,50 ", "$85.50"), ("1234567", "$1234567"), ("85$", "$85")):
        assert ended_by(leave, price, "deal", typed).text == f"bye ⇒ {text}"
    for typed in ("", "-5", "85.555", "many"):
        with pytest.raises(Refused):
            ended_by(leave, price, "deal", typed)


def test_with_several_friends_in_common_none_is_chosen() -> None:
    family, (loaded,) = family_of("mutual_friends"), find_scenarios([FENCING])
    scenario = loaded.scenario
    assert family.offered(scenario, "Rufus") == Offered(("Isolde", "Hanna", "Esther", "Kamal", "Hamid"))
    own = scenario.agents[0].facts
    both = scenario.agents[1].model_copy(update={"facts": own})
    assert family.offered(scenario.model_copy(update={"agents": (scenario.agents[0], both)}), "Rufus") is None
