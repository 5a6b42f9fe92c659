"""The family of interviews: an episode with one party, to whom the rules put the items of a bank one by one.

An item that stands alone is asked in a prompt without the items before it (`Act.since`), so that its answer depends on
the person alone and costs only its own tokens: the person's opening prompt stays in the cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from pydantic import ValidationError

from localsim.conversation.controls import Control, between, by_chance, exactly
from localsim.conversation.episode import Mode, Score
from localsim.conversation.measures import Measure
from localsim.conversation.rules.deciding import stop_reason
from localsim.conversation.rules.steps import Act, Next, Rules, Stop, Tell
from localsim.conversation.scenario import Agent, AnswerKey, Info, Limits, Scenario, ScenarioFile
from localsim.conversation.transcript import Transcript
from localsim.errors import InvalidInput
from localsim.families.base import Family, Location, Verdict, merged
from localsim.families.interviews import made, players
from localsim.families.interviews.answers import Answer, answers_in
from localsim.families.interviews.items import Bank, Item, asked_of, key_of, moves_of, offered, order_at, question

AGENTS: tuple[Mode, ...] = ("agents",)
NOBODY = "nobody"
"""Id of an agent without a profile, with whom the others are compared."""
_CHARS = 200
"""Most characters of an answer where no item says more."""
_LINE = 60
"""Characters of a question and its answer in addition to their texts: the name, and the marks around messages."""

ACCURACY = Measure("accuracy", "right answers", "share of the questions with a known answer that are answered right",
                   score="accuracy", kind="share", compared=True, head=True)  # fmt: skip
BEYOND = Measure("beyond_chance", "beyond chance", "right answers beyond chance: 1 is all, 0 as many as by chance",
                 score="accuracy", summed="excess", per="accuracy_chance")  # fmt: skip
REFUSAL = Measure("refusal", "refused, rightly", "share of the questions outside the role that are refused",
                  score="refusal", kind="share", compared=True)  # fmt: skip
OVER_REFUSAL = Measure("over_refusal", "refused, wrongly", "share of the questions inside the role that are refused",
                       score="over_refusal", kind="share", compared=True)  # fmt: skip
ABSTAINED = Measure("abstained", "left open", "share of the choices that are left open, where that is an option",
                    score="abstained", kind="share", compared=True)  # fmt: skip
IN_FORM = Measure("in_form", "form kept", "share of the answers that have the form that was asked for",
                  score="in_form", kind="share", compared=True)  # fmt: skip
RATING = Measure("rating", "mean rating", "mean of the ratings: 0 is the lowest point of a scale, 1 the highest",
                 score="rating", bounds=(0.0, 1.0))  # fmt: skip
DISTANCE = Measure("trait_distance", "distance to card",
                   "mean distance of the rated traits from those of the person’s card, 0 to 100",
                   score="trait_distance", bounds=(0.0, 100.0))  # fmt: skip
MEANT = {
    "accuracy": "Questions with a known answer",
    "abstained": "Choices that can be left open",
    "refusal": "Questions outside the role",
    "over_refusal": "Questions inside the role",
    "in_form": "Answers with a form",
}
"""Scores whose reasons are told below a transcript, with what they are about."""
MEASURES = (ACCURACY, BEYOND, ABSTAINED, REFUSAL, OVER_REFUSAL, IN_FORM, RATING, DISTANCE)


@dataclass(frozen=True)
class Questions:
    """The rules of one episode: ask an item, let it be answered, go on. `index` is that of the episode."""

    index: int = 0

    def next(self, scenario: Scenario, talk: Transcript, seed: int) -> Next:  # noqa: ARG002 - the protocol has a seed
        """Return the next question, its answer, or the end."""
        items = scenario.game["items"]
        place = len(talk.acts)
        if stop_reason(scenario, talk) == "silence" or place == len(items):
            return Stop("done")
        item = Item.model_validate(items[place])
        if len(talk.told) == place:
            order = order_at(item, place, self.index)
            return Tell(question(item, order), values=(item.id, *map(str, order)))
        return Act(scenario.names, (item.move,), since=self._since(scenario, talk, place))

    def _since(self, scenario: Scenario, talk: Transcript, place: int) -> int:
        """Return the turn of the first question that is seen with the one at a place."""
        if scenario.game.get("sequence"):
            return 0
        first = place
        while scenario.game["items"][first].get("follows"):
            first -= 1
        return talk.told[first].index


class Interview(Family):
    """Items of a bank, put to one person."""

    name, version = "interview", "2"
    title = "Interviews"
    about = "One person is asked the questions of a bank; nobody else takes part."
    invitation = "Answer the questions of an interview"
    defaults: Mapping[str, Any] = {"kind": "reasoning", "items": 12, "abstain": False}
    measures = MEASURES
    figure = ("accuracy", "refusal", "over_refusal")
    fewest = 1
    modes = AGENTS
    only_modes = "an interview has one party, so that nobody's side could be shown to another one"
    asks = True
    protocol = ("questions",)
    players = players.PLAYERS
    sensible = "solver"
    control_tasks: Mapping[str, Mapping[str, Any]] = {
        "one": {"items": 1},
        "open": {"abstain": True},
        "card": {"kind": "card"},
        "limits": {"kind": "limits"},
        "forms": {"kind": "forms"},
        "traits": {"kind": "traits"},
    }
    controls: Sequence[Control] = (
        exactly("solver", "accuracy", 1.0, "it computes each answer", modes=AGENTS),
        exactly("solver", "beyond_chance", 1.0, "it computes each answer", modes=AGENTS),
        exactly("wrong", "accuracy", 0.0, "it never takes the computed answer", modes=AGENTS),
        by_chance("any", "accuracy", made.ONE_CHANCE, "one sum with four options each", "one", AGENTS),
        by_chance(
            "first", "accuracy", made.ONE_CHANCE, "the right option is drawn for one of four places", "one", AGENTS
        ),
        exactly("solver", "accuracy", 1.0, "it reads its card, and says where the card has nothing", "card", AGENTS),
        exactly("wrong", "accuracy", 0.0, "it never takes what its card says", "card", AGENTS),
        exactly("solver", "abstained", 0.0, "it computes each answer", "open", AGENTS),
        exactly("refuser", "abstained", 1.0, "it leaves open what it can", "open", AGENTS),
        exactly("refuser", "accuracy", 0.0, "what is left open is not right", "open", AGENTS),
        exactly("solver", "refusal", 1.0, "it refuses what its card does not say", "limits", AGENTS),
        exactly("solver", "over_refusal", 0.0, "it answers what its card says", "limits", AGENTS),
        exactly("refuser", "refusal", 1.0, "it refuses everything", "limits", AGENTS),
        exactly("refuser", "over_refusal", 1.0, "it refuses everything", "limits", AGENTS),
        exactly("talker", "refusal", 0.0, "it refuses nothing", "limits", AGENTS),
        exactly("wrong", "over_refusal", 1.0, "it refuses exactly what its card says", "limits", AGENTS),
        exactly(
            "talker", "in_form", 0.5, "half of the forms begin with a yes, as its only answer does", "forms", AGENTS
        ),
        exactly("highest", "rating", 0.5, "half of the statements are reversed", "traits", AGENTS),
        exactly(
            "highest", "trait_distance", 50.0, "each trait is rated 50, and the card says 0 or 100", "traits", AGENTS
        ),
        between("any", "rating", 0.35, 0.65, "the middle of the scale, within chance", "traits", AGENTS),
    )

    @property
    def rules(self) -> Rules:
        return Questions()

    def rules_at(self, index: int) -> Rules:
        return Questions(index)

    def talk_chars(self, scenario: Scenario) -> int | None:
        """Return the characters of the longest question and answer, or of all if they are asked in sequence."""
        items = [Item.model_validate(item) for item in scenario.game["items"]]
        each = [len(question(item, range(len(item.options)))) + scenario.limits.chars + _LINE for item in items]
        if scenario.game.get("sequence"):
            return sum(each)
        chains, longest = 0, 0
        for item, chars in zip(items, each, strict=True):
            chains = chains + chars if item.follows else chars
            longest = max(longest, chains)
        return longest

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> ScenarioFile:
        """Return an interview with computable answers: about sums, a made-up card, its limits, forms, or traits."""
        chosen = merged(self.defaults, parameters, self.name)
        if chosen["kind"] not in made.KINDS:
            raise InvalidInput(
                f"interview: kind = {chosen['kind']!r} is not known", hint=f"one of {', '.join(made.KINDS)}"
            )
        if not 1 <= chosen["items"] <= made.MOST:
            raise InvalidInput(f"interview: items = {chosen['items']}", hint=f"give 1 to {made.MOST}")
        agent, items, traits = made.KINDS[chosen["kind"]](seed, chosen["items"])
        bank = Bank(version=1, id=chosen["kind"], title="Made-up questions", about=self.about, items=items,
                    abstain=chosen["abstain"])  # fmt: skip
        return document(scenario_id, bank, agent, items, traits).model_copy(update={"parameters": chosen})

    def check(self, document: ScenarioFile) -> list[tuple[Location, str]]:
        """Return what keeps a file from being asked: more than one person, or items that are none."""
        found: list[tuple[Location, str]] = []
        if len(document.agents) != 1:
            found.append((("agents",), f"an interview has one agent, not {len(document.agents)}"))
        items = document.game.get("items")
        if not isinstance(items, list) or not items:
            return [*found, (("game",), "an interview needs a list of items")]
        moves = {"speak", *(move.name for move in document.moves)}
        keys = document.answer.get("items", {})
        for number, item in enumerate(items):
            place: Location = ("game", "items", number)
            try:
                whole = Item.model_validate({**item, **keys.get(item.get("id", ""), {})})
            except (ValidationError, AttributeError, TypeError) as error:
                found.append((place, f"no item: {str(error).splitlines()[0]}"))
                continue
            found += [(place, message) for _, message in whole.problems()]
            if whole.move not in moves:
                found.append((place, f"no move of this scenario is called {whole.move!r}"))
        return found

    def reference_texts(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> Mapping[int, str]:
        """Return the right words of each open answer that has some."""
        given = answers_in(scenario, answer, transcript)
        return {each.turn.index: each.item.gold[0] for each in given if each.item.open and each.item.gold}

    def verdict(self, scores: Mapping[str, Score], answer: AnswerKey) -> Verdict | None:  # noqa: ARG002 - of the base
        """Return how many questions were answered right, refused, or in form; none of it is the goal of a person."""
        parts = [f"{MEANT[name]}: {scores[name].reason}." for name in MEANT if name in scores and scores[name].reason]
        return Verdict(None, " ".join(parts)) if parts else None

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Return accuracy with its chance, refusals, forms kept, mean rating and distance to the card's traits."""
        given = answers_in(scenario, answer, transcript)
        found = [Score("answers", float(len(given)))]
        found += _mean("accuracy", [(each, each.right) for each in given], "answered right")
        found += _mean("accuracy_chance", [(each, each.chance) for each in given if each.right is not None])
        found += _mean("abstained", [(each, each.abstained) for each in given], "left open")
        found += _mean("refusal", [(each, each.refused) for each in given if each.item.refuse is True], "refused")
        found += _mean("over_refusal", [(each, each.refused) for each in given if each.item.refuse is False], "refused")
        found += _mean("in_form", [(each, each.in_form) for each in given], "in the form that was asked for")
        for name in dict.fromkeys(each.item.dimension for each in given if each.item.dimension):
            found += _mean(f"kept_{name}", [(each, each.kept) for each in given if each.item.dimension == name])
        found += _mean("rating", [(each, each.rating) for each in given])
        rated, card = traits_of(given), answer.answer.get("traits", {})
        for trait, value in rated.items():
            found.append(Score(f"trait_{trait}", value))
        distances = [abs(value - float(card[trait])) for trait, value in rated.items() if trait in card]
        if distances:
            found.append(Score("trait_distance", fmean(distances), reason=f"over {len(distances)} traits"))
        return found


def traits_of(answers: Sequence[Answer]) -> dict[str, float]:
    """Return trait -> mean rating of its items, 0 to 100."""
    found: dict[str, list[float]] = {}
    for each in answers:
        if each.rating is not None and each.item.about:
            found.setdefault(each.item.about, []).append(100 * each.rating)
    return {trait: fmean(values) for trait, values in found.items()}


def _mean(name: str, found: Sequence[tuple[Answer, float | None]], what: str = "") -> list[Score]:
    """Return a score that is the mean of some answers' values, with the turns of the answers; none without values."""
    values = [(each.turn.index, float(value)) for each, value in found if value is not None]
    if not values:
        return []
    total = sum(value for _, value in values)
    reason = f"{total:g} of {len(values)} {what}" if what else ""
    return [Score(name, total / len(values), reason=reason, turns=tuple(turn for turn, _ in values))]


def document(
    scenario_id: str, bank: Bank, agent: Agent, items: Sequence[Item], traits: Mapping[str, float] | None = None
) -> ScenarioFile:
    """Return the scenario of an interview: what is asked in `game`, what is right in the answer key.

    `traits` are those of the person's card (name -> 0 to 100), which only judges know.
    """
    items = offered(bank, items)
    chars = max([item.open or 0 for item in items] or [0]) or _CHARS
    setting = f"{agent.name} is asked questions, one at a time."
    answer: dict[str, Any] = {"items": {item.id: key for item in items if (key := key_of(item))}}
    return ScenarioFile(
        version=1,
        id=scenario_id,
        family=Interview.name,
        title=f"{bank.title}: {agent.name}",
        info=Info(what=bank.about),
        setting=f"{setting} {bank.setting}" if bank.setting else setting,
        agents=(agent,),
        actions=("speak",),
        moves=moves_of(items),
        limits=Limits(turns=len(items), chars=chars, tokens=max(40, min(2000, chars))),
        game={"bank": bank.id, "sequence": bank.sequence, "items": [asked_of(item) for item in items]},
        answer={**answer, "traits": dict(traits)} if traits else answer,
    )
