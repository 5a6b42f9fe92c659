"""Steps before a line: what each is worth in the hands of a subject whose answers are known, and what none can see."""

from __future__ import annotations

import math
import re
from functools import partial

import pytest

from localsim.annotation.measures import overlap
from localsim.conversation.minds.acts import TOLD, Plan
from localsim.conversation.minds.drafts import FITS, Best, Drafts
from localsim.conversation.minds.flows import Branch, Flow, Loop
from localsim.conversation.minds.immerse import Immerse, agreed
from localsim.conversation.minds.predict import Expectimax, Predict
from localsim.conversation.minds.reflect import QUESTIONS, Reflect
from localsim.conversation.minds.steps import Note
from localsim.conversation.minds.tpe import Tpe
from localsim.conversation.requests import Request
from localsim.conversation.rules.forms import Listed
from localsim.conversation.scenario import LoadedScenario
from localsim.families import FAMILIES
from localsim.scenarios.acts import find_acts
from tests.conftest import generated, spec_of
from tests.minded import minded, play, prompt, speaks
from tests.test_memories import REMEMBERING, with_recall

IN_ROLE = " I am Ana, and I look for the cake.\n"


# ---- the protocol --------------------------------------------------------------------------------------------------


def test_without_steps_every_request_is_what_it_was(talk: LoadedScenario) -> None:
    plain, empty = play(spec_of(talk), speaks), play(minded(talk), speaks)
    hashes = spec_of(talk).hash, minded(talk).hash
    assert hashes[0] != hashes[1], "an empty mind is stated"
    named = [request.session.replace(hashes[1], hashes[0]) for request in empty.requests]
    assert named == [request.session for request in plain.requests]
    for one, other in zip(plain.requests, empty.requests, strict=True):
        assert (one.messages, one.note, one.seed, one.attempt) == (
            other.messages,
            other.note,
            other.seed,
            other.attempt,
        )


@pytest.mark.parametrize("layout", ["3", "4"])
def test_a_question_costs_its_own_words_in_the_agents_own_chat(talk: LoadedScenario, layout: str) -> None:
    spec = minded(talk, Predict(("agree", "refuse")), layouts={"Ana": layout, "Bo": layout})
    played = play(spec, lambda asked: " refuse" if asked.step else speaks(asked))
    assert played.steps() == ["predict", "line", "line", "predict", "line", "line"]
    question, line = played.requests[3:5]
    assert question.messages == line.messages and question.session == line.session, "both share the cache of the chat"
    assert "What will Bo do next?" in question.note and question.prefill == "Next:" and question.max_tokens < 20
    assert line.note.endswith("You expect that Bo will refuse.)")
    assert "refuse" not in prompt(played.requests[2]) + prompt(played.requests[5]), "Bo knows nothing of it"
    assert question.seed not in {request.seed for request in played.requests if request is not question}


def test_an_unreadable_answer_is_asked_for_once_more_and_then_left_out(talk: LoadedScenario) -> None:
    step = Predict(("agree", "refuse"))
    played = play(minded(talk, step), lambda asked: " perhaps" if asked.step else speaks(asked), turns=1)
    assert played.steps() == ["predict", "predict", "line"] and len(played.rejects) == 2
    plain = play(spec_of(talk), speaks, turns=1)
    assert played.requests[-1].note == plain.requests[0].note, "there is nothing to tell"


# ---- immersion -----------------------------------------------------------------------------------------------------


def right_in_role(asked: Request) -> str:
    """A subject that is right only after the opening."""
    if asked.step:
        return IN_ROLE
    return ": right\n" if any(IN_ROLE.strip() in message.content for message in asked.messages) else ": wrong\n"


def test_who_is_right_only_after_the_opening_has_one_against_zero(talk: LoadedScenario) -> None:
    for spec, share in ((minded(talk, Immerse()), 1), (spec_of(talk), 0)):
        lines = [line for line in play(spec, right_in_role).lines if line.startswith("Ana")]
        assert sum(line.endswith(": right") for line in lines) / len(lines) == share
    played = play(minded(talk, Immerse()), right_in_role)
    assert played.steps() == ["immerse", "line", "line", "line", "line"], "it is asked before the first line alone"
    first = played.requests[1].messages
    assert [message.role for message in first] == ["system", "user", "assistant", "user"]
    assert all("I look for the cake" not in prompt(asked) for asked in played.requests if asked.speaker == "Bo")


def test_the_best_of_three_openings_is_the_one_that_agrees_most_or_that_the_agent_prefers(talk: LoadedScenario) -> None:
    texts = ["I am a ship.", "I am Ana the nurse.", "I am Ana, a nurse, and I am Ana the nurse."]

    def replies(asked: Request) -> str | tuple[str, dict[str, float]]:
        if not asked.step:
            return speaks(asked)
        if asked.prefill == "Points:":
            return (" 5", {"5": 0.9, "1": 0.1}) if "ship" in asked.note else (" 5", {"5": 0.6, "1": 0.4})
        return f" {texts[found.pop()]}\n"

    assert agreed(texts) == texts[2]
    twice = ["a b", "a c", "a b a b"]
    assert agreed(twice) == "a b" and agreed(twice[::-1]) == "a b a b", "of equal ones the first: no length counts"
    for by, best in (("agreement", texts[2]), ("judge", texts[0])):
        found = [0, 1, 2]
        opened = play(minded(talk, Immerse(n=3, by=by)), replies, turns=1).requests[-1].messages[2]
        assert opened.content == f"Ana: {best}"


# ---- drafts --------------------------------------------------------------------------------------------------------


def drafting(pick: object) -> object:
    """A subject that speaks of bees only if it is told its persona, and picks as it is told."""

    def reply(asked: Request) -> str:
        if asked.step:
            return f" {pick(asked.note)}"  # type: ignore[operator]
        return ": I am a nurse.\n" if "nurse" in asked.messages[0].content else ": Nobody in particular.\n"

    return reply


def test_only_agreement_in_both_orders_decides_between_two_drafts(talk: LoadedScenario) -> None:
    def plainer(note: str) -> str:
        return "first" if note.index("Nobody") < note.index("I am a nurse") else "second"

    for pick, own in ((plainer, 0), (lambda _: "first", 1), (lambda _: "second", 1)):
        played = play(minded(talk, Drafts()), drafting(pick), turns=3)  # type: ignore[arg-type]
        lines = [line for line in played.lines if line.startswith("Ana")]
        assert lines == [("Ana: I am a nurse.", "Ana: Nobody in particular.")[1 - own]] * 2
        assert [f"Ana{text}".strip() for text in (played.writers[0], played.writers[2])] == lines, "credited rightly"
    assert played.steps()[:4] == ["line", "line", "drafts", "drafts"]
    assert played.says[0].back == 3 and played.requests[1].session.endswith("/aside")


def test_the_chosen_line_has_at_most_the_energy_of_the_first(talk: LoadedScenario) -> None:
    polite = {":  A": 0.2, "B": 0.6, "C": 0.9, "D": 0.4}
    fits = {"A": 0.9, "B": 0.8, "C": 0.1, "D": 0.5}

    def chosen(weight: float, mu: float = 1) -> str:
        names = iter("ABCDA")

        def reply(asked: Request) -> str | tuple[str, dict[str, float]]:
            if not asked.step:
                return f": {next(names)}\n"
            line = asked.note.partition("now: Ana: ")[2][0]
            share = fits[line] if FITS in asked.note else polite.get(line, 0.2)
            return " yes", {"yes": share, "no": 1 - share}

        step = Best(("polite",), n=4, weight=weight, mu=mu)
        line = play(minded(talk, step), reply, turns=1).lines[0][-1]
        energy = {each: -weight * math.log(polite.get(each, 0.2)) - mu * math.log(fits[each]) for each in "ABCD"}
        assert energy[line] == min(energy.values()) <= energy["A"]
        return line

    assert [chosen(0), chosen(1), chosen(10)] == ["A", "B", "C"], "the weight trades the attribute against sense"
    assert chosen(1, mu=0) == "C"


def test_what_comes_to_mind_stands_before_a_question_and_not_before_a_draft_without_persona() -> None:
    loaded = with_recall(REMEMBERING, k=1, by="recency")
    played = play(minded(loaded, Drafts()), lambda asked: " first" if asked.step else speaks(asked), turns=1)
    own, plain, question, _ = (request.note.count("You remember: ") for request in played.requests)
    assert (own, plain, question) == (1, 0, 1)


# ---- plans ---------------------------------------------------------------------------------------------------------


def test_the_instruction_of_the_chosen_act_stands_in_the_line_and_nowhere_else(talk: LoadedScenario) -> None:
    acts = find_acts("negotiation")
    assert len(acts.acts) == 11 and len(find_acts("support").acts) == 8
    played = play(minded(talk, Plan(acts)), lambda asked: " propose" if asked.step else speaks(asked), turns=3)
    question, line, other, again, _ = played.requests
    assert set(acts.acts) <= set(re.findall(r"[a-z-]+", question.note))
    assert question.form.grammar().count('"propose"') == 1
    assert line.note.endswith("In this line, name a price for the first time.)")
    assert "name a price" not in prompt(other) + prompt(again)


def test_plans_are_lists_of_known_tools_in_order_with_their_results(talk: LoadedScenario) -> None:
    replies = {"tpe.think": " Bo is nervous.\n", "tpe.plan": " reflect, question, reflect\n"}
    step = Tpe(find_acts("support"), most=3)
    played = play(minded(talk, step), lambda asked: replies.get(asked.step) or speaks(asked), turns=1)
    assert played.steps() == ["tpe.think", "tpe.plan", "line"]
    assert "You think: Bo is nervous." in played.requests[1].note
    told = played.requests[2].note
    assert 0 < told.index("name the feelings") < told.index("ask about what happened"), "in the order of the plan"
    assert told.count("name the feelings") == 1
    replies = {"tpe.think": " Hm.\n", "tpe.plan": " knowledge\n"}
    sources = play(minded(talk, Tpe()), lambda asked: replies.get(asked.step) or speaks(asked), turns=1)
    assert "Ana saw crumbs on the sofa." in sources.requests[2].note.partition("You think")[2]


def planned(replies: dict[str, str], asked: Request) -> str:
    """Answer as given, and speak."""
    return replies.get(asked.step) or speaks(asked)


def test_plans_are_compared_with_gold_by_hand(talk: LoadedScenario) -> None:
    gold = [{"question"}, {"reflect", "suggest"}, {"affirm"}]
    plans = iter(["question", "suggest, question", "suggest, inform"])
    found = []
    for right in gold:
        step = Tpe(find_acts("support"))
        replies = {"tpe.think": " Hm.\n", "tpe.plan": f" {next(plans)}\n"}
        told = play(minded(talk, step), partial(planned, replies), turns=1).requests[-1].note
        used = {name for name, tells in find_acts("support").acts.items() if TOLD.format(act=tells) in told}
        found.append(overlap(right, used).f1)
    assert found == [1, 0.5, 0]
    form = Listed(("a", "b"), 2)
    assert form.read(" b, a, b\n") == "b, a" and form.read(" b, c\n") is None


# ---- predictions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "accepts", [lambda part: part, lambda part: float(part >= 0.3), lambda part: part**2, lambda _: 0.5]
)
def test_expectimax_is_the_argmax_of_a_known_chance_of_acceptance(accepts) -> None:  # type: ignore[no-untyped-def]
    loaded = generated("ultimatum", kind="plain", money=100)
    proposer, responder = loaded.scenario.names

    def reply(asked: Request) -> str | tuple[str, dict[str, float]]:
        if not asked.step:
            return f"{offer_of(asked)}\n" if asked.speaker == proposer else " [accept]\n"
        chance = accepts(int(asked.note.partition("offers ")[2].partition("%")[0]) / 100)
        return " accept", {"accept": chance, "refuse": 1 - chance}

    def offer_of(asked: Request) -> str:
        (way,) = asked.observation.allowed  # type: ignore[union-attr]
        return f" [offer {way.move.values[0].number[0]}]"  # type: ignore[union-attr,index]

    step = Expectimax(FAMILIES["ultimatum"].prospect)  # type: ignore[attr-defined]
    played = play(minded(loaded, step), reply)
    worth = {offer: (100 - offer) * accepts(offer / 100) for offer in range(0, 101, 10)}
    best = max(worth, key=lambda offer: worth[offer])
    assert played.lines[0] == f"{proposer} [offer {best}]" and len(played.requests) == 11 + 2
    assert played.says[1].turn.speaker == responder


def test_looking_two_rounds_ahead_counts_what_comes_back_in_both() -> None:
    loaded = generated("trust", rounds=2, factor=4)
    sender = loaded.scenario.names[0]

    def reply(asked: Request) -> str | tuple[str, dict[str, float]]:
        if not asked.step:
            way = asked.observation.allowed[0]  # type: ignore[union-attr]
            number = way.move.values[0].number  # type: ignore[union-attr]
            return f" [{way.move.name} {number[0]}]\n"  # type: ignore[union-attr,index]
        # Who sent everything at first is given 60% from then on, else 0.
        kind = asked.note.partition("Suppose that ")[2].startswith(f"{sender} sends $10")
        repeated = asked.note.count(f"{sender} sends") == 2
        share = float(kind and repeated)
        return " 0%", {"60%": share, "0%": 1 - share, "20%": 0.0, "40%": 0.0}

    step = FAMILIES["trust"].prospect  # type: ignore[attr-defined]
    first = [play(minded(loaded, Expectimax(step, depth)), reply, turns=1).lines[0] for depth in (1, 2)]
    assert first == [f"{sender} [send 0]", f"{sender} [send 10]"], "now 10 against 0; in both rounds 20 against 24"


# ---- reflection and flows ------------------------------------------------------------------------------------------


def test_three_questions_every_second_turn_and_each_reads_the_answers_before_it(talk: LoadedScenario) -> None:
    numbers = iter(range(100))
    played = play(minded(talk, Reflect(every=2)), lambda asked: f" Answer {next(numbers)}.\n" if asked.step else
                  speaks(asked), turns=6)  # fmt: skip
    keys = [f"reflect.{key}" for key, _, _ in QUESTIONS]
    assert played.steps() == [*keys, "line", "line", "line", "line", *keys, "line", "line"]
    assert "Answer 0." in played.requests[1].note and "Answer 1." in played.requests[2].note
    assert all(f"Answer {number}." in played.requests[5].note for number in range(3)), "kept at the turn between"
    assert "Answer 2." not in played.requests[7].note and "Answer 5." in played.requests[10].note
    assert all("Answer" not in prompt(asked) for asked in played.requests if asked.speaker == "Bo")


class Says:
    """A step that leaves what it is told."""

    name, version, tokens, aside = "says", "1", 0, False

    def __init__(self, name: str, value: str = "") -> None:
        self.note = Note(name, value, f"{name} is {value}.")

    def work(self, *_: object):  # type: ignore[no-untyped-def]
        """Leave the note."""
        yield from ()
        return (self.note,)

    def stated(self) -> dict[str, str]:
        """Its note."""
        return {"note": self.note.name}


def test_a_nested_flow_is_the_flat_one_byte_for_byte(talk: LoadedScenario) -> None:
    a, b, c = Predict(("agree", "refuse")), Reflect(every=1), Plan(find_acts("support"))
    flat, nested = (a, b, c), (Flow((a, Flow((Flow((b,)),)))), c)

    def reply(asked: Request) -> str:
        return {"predict": " agree", "plan": " question", "": speaks(asked)}.get(asked.step, f" {asked.seed}\n")

    one, other = (play(minded(talk, *steps), reply) for steps in (flat, nested))
    told = [[(prompt(each), each.seed, each.step) for each in played.requests] for played in (one, other)]
    assert told[0] == told[1] and one.lines == other.lines


def test_a_note_that_is_not_declared_is_not_seen(talk: LoadedScenario) -> None:
    asks = Predict(("agree", "refuse"))
    mood, aim = Says("mood", "gloomy"), Says("aim", "cake")

    def read(*steps: object) -> tuple[str, str]:
        played = play(minded(talk, *steps), lambda asked: " agree" if asked.step else speaks(asked), turns=1)  # type: ignore[arg-type]
        return played.requests[-2].note, played.requests[-1].note

    question, line = read(mood, aim, Flow((asks,), reads=("aim",)))
    assert "cake" in question and "gloomy" not in question and "gloomy" in line
    question, line = read(mood, Flow((aim, asks), reads=(), gives=("predict",)))
    assert "cake" in question and "gloomy" not in question
    assert "gloomy" in line and "will agree" in line and "aim is" not in line


def test_loops_end_at_a_value_and_branches_take_the_step_of_a_value(talk: LoadedScenario) -> None:
    asks = Predict(("agree", "refuse"))

    def steps(answers: list[str], step: object) -> list[str]:
        given = iter(answers)
        played = play(minded(talk, step), lambda asked: f" {next(given)}" if asked.step else speaks(asked), turns=1)  # type: ignore[arg-type]
        return played.steps()

    assert steps(["agree"] * 3, Loop((asks,), times=3)) == ["predict"] * 3 + ["line"]
    assert steps(["agree", "refuse"], Loop((asks,), times=9, until=("predict", "refuse"))) == ["predict"] * 2 + ["line"]
    for mood, count in (("gloomy", 1), ("merry", 2)):
        branch = Branch((Flow((asks,)), Flow((asks, asks))), when=("mood", "gloomy", "sad"))
        assert steps(["agree"] * 2, Flow((Says("mood", mood), branch))) == ["predict"] * count + ["line"]
