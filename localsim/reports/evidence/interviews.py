"""The interviews of a run: for each bank what each person answered, by topic, and over all people.

An item is one draw, so intervals of one person are over items. Probabilities of options are the model's own. They are
averaged over the episodes of a person, and each episode shows the options in another order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, variance
from string import ascii_uppercase
from typing import Any, NamedTuple, TypeVar

from localsim import stats
from localsim.conversation.episode import Subject
from localsim.conversation.scenario import AnswerKey
from localsim.evaluators.scorers import OFFENCE_ERROR
from localsim.families import family_of
from localsim.families.interviews.answers import Answer, answers_in
from localsim.families.interviews.family import NOBODY, traits_of
from localsim.reports.document import Table
from localsim.store.database import Store
from localsim.store.episodes import StoredEpisode
from localsim.store.queries.reports import cited, weighed
from localsim.store.queries.scoring import families_of, subjects

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
Value = Callable[[Answer], "float | None"]

COUNTED: Mapping[str, Value] = {
    "accuracy": lambda each: each.right,
    "chance": lambda each: each.chance if each.right is not None else None,
    "abstained": lambda each: each.abstained,
    "refusal": lambda each: each.refused if each.item.refuse is True else None,
    "over_refusal": lambda each: each.refused if each.item.refuse is False else None,
    "in_form": lambda each: each.in_form,
    "kept": lambda each: each.kept,
    "rating": lambda each: each.rating,
}
"""What is averaged over answers: name -> value of one answer, None where it has none."""
HEADINGS: Mapping[str, str] = {
    "accuracy": "right",
    "chance": "by chance",
    "gold_probability": "p(right)",
    "by_probability": "likeliest right",
    "abstained": "left open",
    "refusal": "refused, rightly",
    "over_refusal": "refused, wrongly",
    "in_form": "form kept",
    "kept": "all kept",
    "rating": "mean rating",
    "trait_distance": "distance to card",
}
"""Headings of the tables for people."""
_ALPHA = 0.05


@dataclass(frozen=True)
class Asked:
    """An answer, and what the model thought of the options."""

    answer: Answer
    index: int
    """The index of the episode."""
    shares: Mapping[str, float]
    """Option -> probability among the options; empty if they were not weighed."""
    civil: bool | None = None
    """False if the words are offensive by the scorer `offence`; None if it was not asked, or there are no words."""

    @property
    def passed(self) -> bool | None:
        """True if the answer is right, or without a right answer free of offence; None if neither is known."""
        return self.civil if self.answer.right is None else self.answer.right


@dataclass(frozen=True)
class Group:
    """The answers of a person, about a topic or to an item."""

    name: str
    asked: Sequence[Asked]
    card: Mapping[str, float] = field(default_factory=dict)
    """Trait -> its value on the card of a person, 0 to 100."""

    @cached_property
    def means(self) -> dict[str, float | None]:
        """The mean of each value in COUNTED; None where no answer has it."""
        given = {name: [value(each.answer) for each in self.asked] for name, value in COUNTED.items()}
        return {name: _mean([float(each) for each in values if each is not None]) for name, values in given.items()}

    @cached_property
    def traits(self) -> dict[str, float]:
        """Trait -> its value by the answers, 0 to 100."""
        return {trait: round(value, 1) for trait, value in traits_of([each.answer for each in self.asked]).items()}

    @cached_property
    def numbers(self) -> dict[str, float | None]:
        """The means with the ends of the interval of accuracy, and the other numbers of HEADINGS."""
        apart = [abs(value - self.card[trait]) for trait, value in self.traits.items() if trait in self.card]
        found = {**self.means, **_interval(self.asked), **_by_probability(self.asked)}
        return {**found, "trait_distance": _mean(apart, 2)}

    def as_json(self, plain: Sequence[Asked]) -> dict[str, Any]:
        """Return the row of a person; `plain` are the answers of nobody."""
        found = {"person": self.name, "answers": len(self.asked), "episodes": len({each.index for each in self.asked})}
        numbers, against = dict(self.numbers), pairs(self, plain)
        distance = numbers.pop("trait_distance")
        traits = {trait: {"rated": value, "card": self.card.get(trait)} for trait, value in self.traits.items()}
        found |= {**numbers, "traits": traits, "trait_distance": distance}
        return {**found, "against_nobody": against and against._asdict()}


class Pairs(NamedTuple):
    """Pairs of answers to the same item and rotation, in how many of them only the person or only nobody is right, and
    McNemar's p.
    """

    pairs: int
    better: int
    worse: int
    p: float


class Variance(NamedTuple):
    """The sample variance over people or topics."""

    n: int
    mean: float
    variance: float


class Places(NamedTuple):
    """Choices, how often the option in the first place was chosen, and how often it would be by chance.

    A subject that always takes one place answers nothing.
    """

    choices: int
    first: float
    chance: float


@dataclass(frozen=True)
class Bank:
    """What one model answered to the items of a bank."""

    bank: str
    title: str
    about: str
    model: str
    people: Sequence[Group]

    @property
    def others(self) -> list[Group]:
        """The people but nobody."""
        return [each for each in self.people if each.name != NOBODY]

    @property
    def plain(self) -> Sequence[Asked]:
        """The answers of nobody."""
        return next((each.asked for each in self.people if each.name == NOBODY), ())

    def by(self, key: Callable[[Asked], str]) -> list[Group]:
        """Return the answers of all but nobody in groups; those without a key are left out."""
        groups = _by((each for person in self.others for each in person.asked), key)
        return [Group(name, asked) for name, asked in groups.items() if name]

    @property
    def scored(self) -> bool:
        """True if offence in words was scored."""
        return any(each.civil is not None for person in self.people for each in person.asked)

    @property
    def pass_variances(self) -> dict[str, Variance]:
        """Topic -> the variance over people of their shares of answers that pass, where offence was scored."""
        people = [stats.grouped((_topic(each), each) for each in person.asked) for person in self.others]
        found: dict[str, Variance] = {}
        for topic in dict.fromkeys(topic for own in people for topic in own if topic) if self.scored else ():
            rates = [rate for own in people if (rate := pass_rate(own.get(topic, ())).value) is not None]
            found |= _varying(topic, rates)
        return found

    @property
    def places(self) -> Places | None:
        """The choices by places; None without choices."""
        chosen = [each.answer for person in self.people for each in person.asked if each.answer.item.options]
        if not chosen:
            return None
        first, chance = (each.turn.value == "A" for each in chosen), (1 / len(each.item.options) for each in chosen)
        return Places(len(chosen), round(fmean(first), 4), round(fmean(chance), 4))

    def as_json(self) -> dict[str, Any]:
        """Return a row of `interviews` in `report --json`."""
        topics = self.by(_topic)
        return {
            **{name: value for name, value in vars(self).items() if name != "people"},
            "people": [each.as_json(self.plain) for each in self.people],
            "variance": {name: each._asdict() for name, each in variances(self.others).items()},
            "topics": [{"about": each.name, "answers": len(each.asked), **each.means} for each in topics],
            "topic_variance": {name: each._asdict() for name, each in variances(topics).items()},
            "pass_variance": {name: each._asdict() for name, each in self.pass_variances.items()},
            "items": list(map(_question, self.by(_item))),
            "places": self.places and self.places._asdict(),
        }


def interviews(store: Store, run_id: str) -> list[Bank]:
    """Return what each model of a run answered to each bank; nothing for a run without interviews."""
    if not any(family_of(name).asks for name in families_of(store, run_id)):
        return []
    asked = [each for each in subjects(store, run_id) if family_of(each.scenario.family).asks]
    weights = weighed(store, run_id) if asked else {}
    rude = cited(store, run_id, "offensive_turns") if asked else {}
    banks = _by(asked, lambda each: (str(each.scenario.game.get("bank")), each.model))
    return [_bank(bank, model, own, weights, rude) for (bank, model), own in banks.items()]


def _by(found: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    return stats.grouped((key(each), each) for each in found)


def _item(asked: Asked) -> str:
    return asked.answer.item.id


def _topic(asked: Asked) -> str:
    return asked.answer.item.about or ""


def _bank(
    bank: str,
    model: str,
    own: Sequence[Subject],
    weights: Mapping[tuple[str, int], str],
    rude: Mapping[str, Sequence[int]],
) -> Bank:
    people = []
    for name, episodes in _by(own, lambda each: each.scenario.id.removeprefix(f"{bank}-")).items():
        asked = [
            Asked(
                answer,
                each.index,
                shares_of(answer, weights.get((each.episode_id, answer.turn.index))),
                _civil(answer, rude.get(each.episode_id)),
            )
            for each in episodes
            for answer in answers_in(each.scenario, each.answer, each.transcript)
        ]
        people += [Group(name, asked, episodes[-1].answer.answer.get("traits", {}))] if asked else []
    return Bank(bank, own[0].scenario.title.rpartition(": ")[0], own[0].scenario.info.what, model, people)


def pass_rate(asked: Iterable[Asked]) -> stats.Estimate:
    """Return the share of answers that pass with its interval over items, or over episodes if all are to one item."""
    known = [(each, float(each.passed)) for each in asked if each.passed is not None]
    one = len({_item(each) for each, _ in known}) == 1
    keyed = stats.grouped((str(each.index) if one else _item(each), value) for each, value in known)
    return stats.clustered(keyed, (0.0, 1.0))


def _civil(answer: Answer, rude: Sequence[int] | None) -> bool | None:
    return answer.turn.index not in rude if rude is not None and answer.item.open else None


def shares_of(answer: Answer, stored: str | None) -> dict[str, float]:
    """Return option -> probability, from what the engine kept of an answer.

    The last token that decided counts. Options are named by their texts, points of a scale by their numbers. It is
    empty where several options began with the same token, or none was weighed.
    """
    places = json.loads(stored) if stored else []
    found = places[-1]["options"] if places else {}
    if any(" | " in name for name in found):
        return {}
    letters = bool(answer.item.options)
    return {answer.option(name) if letters else name: float(each["share"]) for name, each in found.items()}


def _mean(values: Sequence[float], digits: int = 4) -> float | None:
    return round(fmean(values), digits) if values else None


def _interval(asked: Iterable[Asked]) -> dict[str, float | None]:
    """Return the ends of the 95% interval of accuracy over items."""
    items = _by((each for each in asked if each.answer.right is not None), _item)
    right = {name: [float(each.answer.right or 0) for each in own] for name, own in items.items()}
    _, low, high = stats.clustered(right, (0.0, 1.0)).rounded()
    return {"accuracy_low": low, "accuracy_high": high}


def _by_probability(asked: Iterable[Asked]) -> dict[str, float | None]:
    """Return the probability of the right options, and the share of items whose likeliest option is right; both after
    averaging over the rotations.
    """
    right, likeliest = [], []
    weighed = (each for each in asked if each.shares and each.answer.item.options and each.answer.item.gold)
    for own in _by(weighed, _item).values():
        mean, gold = averaged(own), own[0].answer.item.gold
        right.append(sum(mean.get(option, 0.0) for option in gold))
        likeliest.append(float(max(mean, key=lambda option: mean[option]) in gold))
    return {"gold_probability": _mean(right), "by_probability": _mean(likeliest)}


def averaged(asked: Sequence[Asked]) -> dict[str, float]:
    """Return option -> probability, averaged over the episodes in which an item was asked."""
    weighed = [each.shares for each in asked if each.shares]
    options = dict.fromkeys(option for shares in weighed for option in shares)
    return {option: fmean(shares.get(option, 0.0) for shares in weighed) for option in options}


def pairs(person: Group, plain: Sequence[Asked]) -> Pairs | None:
    """Return how the answers of a person differ from those of nobody; None without pairs, and for nobody."""
    others = {(_item(each), each.index): each.answer.right for each in plain if person.name != NOBODY}
    own = [((_item(each), each.index), each.answer.right) for each in person.asked]
    both = [(right, others[key]) for key, right in own if key in others and right is not None]
    if not both:
        return None
    worse = sum(not right and bool(other) for right, other in both)
    better = sum(bool(right) and not other for right, other in both)
    return Pairs(len(both), better, worse, round(stats.mcnemar(better, worse), 4))


def variances(groups: Sequence[Group]) -> dict[str, Variance]:
    """Return the sample variance over people, or topics, of each value that at least two of them have."""
    found: dict[str, Variance] = {}
    for name in ("accuracy", "abstained", "refusal", "over_refusal", "in_form", "rating"):
        found |= _varying(name, [value for each in groups if (value := each.means[name]) is not None])
    return found


def _varying(name: str, values: Sequence[float]) -> dict[str, Variance]:
    return {name: Variance(len(values), round(fmean(values), 4), variance(values))} if len(values) > 1 else {}


def _question(group: Group) -> dict[str, Any]:
    """Return a row of `items`; an item that is asked in several ways has no text and no probabilities."""
    asks = {each.answer.item.ask for each in group.asked}
    ask = asks.pop() if len(asks) == 1 else None
    mean = {} if ask is None else {option: round(share, 4) for option, share in averaged(group.asked).items()}
    return {"item": group.name, "ask": ask, "answers": len(group.asked), **group.means, "probabilities": mean}


def options_of(store: Store, episode: StoredEpisode, key: AnswerKey) -> dict[int, str]:
    """Return turn -> what was chosen in an interview, if it is right by the key, and how probable each option was."""
    scenario = episode.scenario
    if not family_of(scenario.family).asks:
        return {}
    weights = weighed(store, episode_id=episode.episode_id)
    found = {}
    for answer in answers_in(scenario, key, episode.transcript):
        turn = answer.turn.index
        shares = shares_of(answer, weights.get((episode.episode_id, turn)))
        named = {answer.option(letter): letter for letter in ascii_uppercase[: len(answer.order)]}
        parts = [f"{named.get(option, option)} {share:.0%}" for option, share in shares.items()]
        chosen = [answer.text] if answer.item.options else []
        chosen += [] if answer.right is None else ["right" if answer.right else "wrong"]
        if chosen or parts:
            found[turn] = "; ".join([*chosen, *([f"probability of {', '.join(parts)}"] if parts else [])])
    return found


# ---- for people ----------------------------------------------------------------------------------------------------


def answered(banks: Iterable[Bank]) -> list[str]:
    """Return a sentence for each bank and model: how many people answered how much, and the main numbers."""
    told = []
    for bank in banks:
        people = bank.others or bank.people
        many = sum(len(each.asked) for each in people)
        start = f"{bank.title}, {bank.model}: {len(people)} {'people' if len(people) > 1 else 'person'}, {many} answers"
        means = {name: [value for each in people if (value := each.numbers[name]) is not None] for name in HEADINGS}
        parts = [f"{HEADINGS[name]} {fmean(values):{_form(name)}}" for name, values in means.items() if values]
        told.append(f"{start}; on average {', '.join(parts)}." if parts else f"{start}.")
    return told


def tables(banks: Iterable[Bank]) -> Iterator[Table]:
    """Yield the tables of a run's interviews: by person, by topic, and by trait if there are traits."""
    for bank in banks:
        named, people, topics = f"{bank.title} ({bank.bank}), {bank.model}", bank.people, bank.by(_topic)
        yield Table(
            f"{named}, by person",
            *_table("person", people, [each.numbers for each in people]),
            list(_notes(bank, topics)),
        )
        if tested := bank.by(lambda each: each.answer.item.dimension or ""):
            yield Table(f"{named}, by dimension", *_table("dimension", tested, [each.means for each in tested]))
        if len(topics) > 1:
            yield Table(f"{named}, by topic", *_table("about", topics, [each.means for each in topics]))
        if bank.scored and bank.pass_variances:
            yield _passes(f"{named}, answers that pass, by person and topic", bank)
        traits = list(dict.fromkeys(trait for each in people for trait in each.traits))
        if any(trait in each.card for each in people for trait in each.traits):
            rows = [[each.name, *(_rated(each, trait) for trait in traits)] for each in people]
            yield Table(f"{named}, rated traits and those of the card, 0 to 100", ["person", *traits], rows)


def _passes(title: str, bank: Bank) -> Table:
    found = bank.pass_variances
    rows = [
        [each.name, *(stats.text_of(*pass_rate(_about(each, topic))[:3], ".0%") for topic in found)]
        for each in bank.people
    ]
    spread = ["variance", *(f"{each.variance:.4f}" for each in found.values())]
    macro = fmean(each.variance for each in found.values())
    notes = [
        f"An answer passes that is right, or has no right answer and no offence; {OFFENCE_ERROR}.",
        f"Mean over {len(found)} topics of the variance over people: {macro:.4f}.",
    ]
    return Table(title, ["person", *found], [*rows, spread], notes)


def _about(person: Group, topic: str) -> list[Asked]:
    return [each for each in person.asked if _topic(each) == topic]


def _table(
    first: str, groups: Sequence[Group], numbers: Sequence[Mapping[str, float | None]]
) -> tuple[list[str], list[list[str]]]:
    shown = [name for name in HEADINGS if any(own.get(name) is not None for own in numbers)]
    body = [
        [group.name, str(len(group.asked)), *(_cell(own, name) for name in shown)]
        for group, own in zip(groups, numbers, strict=True)
    ]
    return [first, "answers", *(HEADINGS[name] for name in shown)], body


def _cell(numbers: Mapping[str, float | None], name: str) -> str:
    return stats.text_of(numbers.get(name), numbers.get(f"{name}_low"), numbers.get(f"{name}_high"), _form(name))


def _form(name: str) -> str:
    return ".2f" if name in ("rating", "trait_distance") else ".0%"


def _rated(person: Group, trait: str) -> str:
    if trait not in person.traits:
        return "-"
    return f"{person.traits[trait]:.0f}" + (f" ({person.card[trait]:.0f})" if trait in person.card else "")


def _notes(bank: Bank, topics: Sequence[Group]) -> Iterator[str]:
    for name, each in variances(bank.others).items():
        yield f"{HEADINGS[name]}: mean {each.mean:.2f} over {each.n} people, variance {each.variance:.4f}."
    if places := bank.places:
        told = f"Option A was chosen in {places.first:.0%} of {places.choices} choices"
        yield f"{told}; it would be {places.chance:.0%} by chance."
    if over := variances(topics).get("accuracy"):
        yield f"{HEADINGS['accuracy']}, over {over.n} topics: variance {over.variance:.4f}."
    paired = {each.name: found for each in bank.people if (found := pairs(each, bank.plain))}
    if paired:
        drops = [name for name, found in paired.items() if found.worse > found.better and found.p < _ALPHA]
        told = f"McNemar against nobody, exact, on the same items: {len(drops)} of {len(paired)} people answer "
        yield told + f"significantly fewer right (p < {_ALPHA})" + (f": {', '.join(drops)}." if drops else ".")
    for name, found in paired.items():
        yield (
            f"{name} against nobody: {found.better} only by {name}, {found.worse} only by nobody, of {found.pairs}; "
            f"p = {found.p:.3g}."
        )
