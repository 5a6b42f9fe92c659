"""The interviews of a run: for each bank what each person answered, by topic, and over all people.

An item is one draw, so intervals of one person are over items. Probabilities of options are the model's own, averaged
over the episodes of a person, in which each option stands in another place.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from string import ascii_uppercase
from typing import Any

from localsim import stats
from localsim.conversation.episode import Subject
from localsim.conversation.scenario import AnswerKey
from localsim.families import family_of
from localsim.families.interviews.answers import Answer, answers_in
from localsim.families.interviews.family import NOBODY, traits_of
from localsim.reports.document import Table
from localsim.store.database import Store
from localsim.store.episodes import StoredEpisode
from localsim.store.queries import interviews as queries
from localsim.store.queries.scoring import families_of, subjects

Row = dict[str, Any]
Value = Callable[[Answer], "float | None"]

COUNTED: Mapping[str, Value] = {
    "accuracy": lambda each: each.right,
    "chance": lambda each: each.chance if each.right is not None else None,
    "refusal": lambda each: each.refused if each.item.refuse is True else None,
    "over_refusal": lambda each: each.refused if each.item.refuse is False else None,
    "in_form": lambda each: each.in_form,
    "rating": lambda each: each.rating,
}
"""What is averaged over answers: name -> value of one answer, None where it has none."""
HEADINGS: Mapping[str, str] = {
    "accuracy": "right",
    "chance": "by chance",
    "gold_probability": "p(right)",
    "by_probability": "likeliest right",
    "refusal": "refused, rightly",
    "over_refusal": "refused, wrongly",
    "in_form": "form kept",
    "rating": "mean rating",
    "trait_distance": "distance to card",
}
"""Headings of the tables for people."""
_NUMBERS = ("rating", "trait_distance")
_ALPHA = 0.05


@dataclass(frozen=True)
class Asked:
    """An answer, and what the model thought of the options."""

    answer: Answer
    index: int
    """The index of the episode."""
    shares: Mapping[str, float]
    """Option -> probability among the options; empty if they were not weighed."""


def interviews(store: Store, run_id: str) -> list[Row]:
    """Return a row for each bank and model of a run; none for a run without interviews."""
    if not any(family_of(name).asks for name in families_of(store, run_id)):
        return []
    asked = [each for each in subjects(store, run_id) if family_of(each.scenario.family).asks]
    if not asked:
        return []
    weights: dict[str, dict[int, str]] = defaultdict(dict)
    for row in queries.weighed(store, run_id):
        weights[row["episode_id"]][row["turn"]] = row["options"]
    groups: dict[tuple[str, str], list[Subject]] = defaultdict(list)
    for subject in asked:
        groups[str(subject.scenario.game.get("bank")), subject.model].append(subject)
    return [_bank(bank, model, own, weights) for (bank, model), own in groups.items()]


def _bank(bank: str, model: str, own: Sequence[Subject], weights: Mapping[str, Mapping[int, str]]) -> Row:
    people: dict[str, list[Asked]] = defaultdict(list)
    cards: dict[str, Mapping[str, float]] = {}
    for subject in own:
        person = subject.scenario.id.removeprefix(f"{bank}-")
        cards[person] = subject.answer.answer.get("traits", {})
        for answer in answers_in(subject.scenario, subject.answer, subject.transcript):
            text = weights.get(subject.episode_id, {}).get(answer.turn.index)
            people[person].append(Asked(answer, subject.index, shares_of(answer, text)))
    rows = [_person(person, asked, cards[person], people.get(NOBODY, ())) for person, asked in people.items()]
    every = [each for person, asked in people.items() if person != NOBODY for each in asked]
    return {
        "bank": bank,
        "title": own[0].scenario.title.rpartition(": ")[0],
        "about": own[0].scenario.info.what,
        "model": model,
        "people": rows,
        "variance": _variance([row for row in rows if row["person"] != NOBODY]),
        "topics": (topics := _topics(every)),
        "topic_variance": _variance(topics),
        "items": _items(every),
        "places": _places([each.answer for asked in people.values() for each in asked]),
    }


def _places(answers: Sequence[Answer]) -> Row | None:
    """Return how often the option in the first place was chosen, and how often it would be by chance; None without
    choices. A subject that always takes one place answers nothing.
    """
    chosen = [each for each in answers if each.item.options]
    if not chosen:
        return None
    first, chance = (each.turn.value == "A" for each in chosen), (1 / len(each.item.options) for each in chosen)
    return {"choices": len(chosen), "first": round(fmean(first), 4), "chance": round(fmean(chance), 4)}


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


def _person(person: str, asked: Sequence[Asked], card: Mapping[str, float], plain: Sequence[Asked]) -> Row:
    answers = [each.answer for each in asked]
    row: Row = {"person": person, "answers": len(answers), "episodes": len({each.index for each in asked})}
    row |= averages(answers)
    for end, value in zip(("low", "high"), _interval(answers), strict=True):
        row[f"accuracy_{end}"] = value
    row |= _by_probability(asked)
    traits = {trait: round(value, 1) for trait, value in traits_of(answers).items()}
    known = [abs(value - card[trait]) for trait, value in traits.items() if trait in card]
    row["traits"] = {trait: {"rated": value, "card": card.get(trait)} for trait, value in traits.items()}
    row["trait_distance"] = round(fmean(known), 2) if known else None
    row["against_nobody"] = _against(asked, plain) if plain and person != NOBODY else None
    return row


def averages(answers: Iterable[Answer]) -> dict[str, float | None]:
    """Return the mean of each value in COUNTED; None where no answer has it."""
    answers = list(answers)
    found: dict[str, float | None] = {}
    for name, value in COUNTED.items():
        values = [float(one) for each in answers if (one := value(each)) is not None]
        found[name] = round(fmean(values), 4) if values else None
    return found


def _interval(answers: Iterable[Answer]) -> tuple[float | None, float | None]:
    by_item: dict[str, list[float]] = defaultdict(list)
    for each in answers:
        if each.right is not None:
            by_item[each.item.id].append(float(each.right))
    found = stats.clustered(by_item, (0.0, 1.0))
    return tuple(None if end is None else round(end, 4) for end in (found.low, found.high))  # type: ignore[return-value]


def _by_probability(asked: Iterable[Asked]) -> Row:
    """Return the probability of the right options, and the share of items whose likeliest option is right; both after
    averaging over the rotations.
    """
    shares: dict[str, list[Asked]] = defaultdict(list)
    for each in asked:
        if each.shares and each.answer.item.options and each.answer.item.gold:
            shares[each.answer.item.id].append(each)
    if not shares:
        return {"gold_probability": None, "by_probability": None}
    right, likeliest = [], []
    for own in shares.values():
        mean = averaged(own)
        gold = own[0].answer.item.gold
        right.append(sum(mean.get(option, 0.0) for option in gold))
        likeliest.append(max(mean, key=lambda option: mean[option]) in gold)
    return {"gold_probability": round(fmean(right), 4), "by_probability": round(fmean(likeliest), 4)}


def averaged(asked: Sequence[Asked]) -> dict[str, float]:
    """Return option -> probability, averaged over the episodes in which an item was asked."""
    weighed = [each.shares for each in asked if each.shares]
    options = dict.fromkeys(option for shares in weighed for option in shares)
    return {option: fmean(shares.get(option, 0.0) for shares in weighed) for option in options}


def _against(asked: Sequence[Asked], plain: Sequence[Asked]) -> Row | None:
    """Return the pairs of the same item and rotation in which only one of the two is right; None without pairs."""
    others = {(each.answer.item.id, each.index): each.answer.right for each in plain}
    pairs = [
        (each.answer.right, others[key])
        for each in asked
        if (key := (each.answer.item.id, each.index)) in others and each.answer.right is not None
    ]
    if not pairs:
        return None
    worse = sum(not own and bool(other) for own, other in pairs)
    better = sum(bool(own) and not other for own, other in pairs)
    return {"pairs": len(pairs), "better": better, "worse": worse, "p": round(stats.mcnemar(better, worse), 4)}


def _variance(rows: Sequence[Row]) -> Row:
    """Return the sample variance over people, or topics, of each value that at least two of them have."""
    found: Row = {}
    for name in ("accuracy", "refusal", "over_refusal", "in_form", "rating"):
        values = [row[name] for row in rows if row[name] is not None]
        if len(values) > 1:
            found[name] = {"n": len(values), "mean": round(fmean(values), 4), "variance": variance(values)}
    return found


def _topics(asked: Sequence[Asked]) -> list[Row]:
    topics: dict[str, list[Answer]] = defaultdict(list)
    for each in asked:
        if each.answer.item.about:
            topics[each.answer.item.about].append(each.answer)
    return [{"about": about, "answers": len(own), **averages(own)} for about, own in topics.items()]


def _items(asked: Sequence[Asked]) -> list[Row]:
    items: dict[str, list[Asked]] = defaultdict(list)
    for each in asked:
        items[each.answer.item.id].append(each)
    rows = []
    for item_id, own in items.items():
        asks = {each.answer.item.ask for each in own}
        mean = {option: round(share, 4) for option, share in averaged(own).items()} if len(asks) == 1 else {}
        row: Row = {"item": item_id, "ask": own[0].answer.item.ask if len(asks) == 1 else None, "answers": len(own)}
        rows.append({**row, **averages(each.answer for each in own), "probabilities": mean})
    return rows


def options_of(store: Store, episode: StoredEpisode, key: AnswerKey) -> dict[int, str]:
    """Return turn -> what was chosen in an interview, if it is right by the key, and how probable each option was."""
    scenario = episode.scenario
    if not family_of(scenario.family).asks:
        return {}
    weights = {row["turn"]: row["options"] for row in queries.weighed_in(store, episode.episode_id)}
    found = {}
    for answer in answers_in(scenario, key, episode.transcript):
        turn = answer.turn.index
        shares = shares_of(answer, weights.get(turn))
        named = {answer.option(letter): letter for letter in ascii_uppercase[: len(answer.order)]}
        parts = [f"{named.get(option, option)} {share:.0%}" for option, share in shares.items()]
        chosen = [answer.text] if answer.item.options else []
        chosen += [] if answer.right is None else ["right" if answer.right else "wrong"]
        if chosen or parts:
            found[turn] = "; ".join([*chosen, *([f"probability of {', '.join(parts)}"] if parts else [])])
    return found


# ---- for people ----------------------------------------------------------------------------------------------------


def answered(found: Sequence[Row]) -> list[str]:
    """Return a sentence for each bank and model: how many people answered how much, and the main numbers."""
    told = []
    for bank in found:
        rows = [row for row in bank["people"] if row["person"] != NOBODY] or bank["people"]
        many = sum(row["answers"] for row in rows)
        start = (
            f"{bank['title']}, {bank['model']}: {len(rows)} {'people' if len(rows) > 1 else 'person'}, {many} answers"
        )
        means = {name: [row[name] for row in rows if row[name] is not None] for name in HEADINGS}
        parts = [
            f"{HEADINGS[name]} {fmean(values):{'.2f' if name in _NUMBERS else '.0%'}}"
            for name, values in means.items()
            if values
        ]
        told.append(f"{start}; on average {', '.join(parts)}." if parts else f"{start}.")
    return told


def tables(found: Sequence[Row]) -> Iterator[Table]:
    """Yield the tables of a run's interviews: by person, by topic and, if somebody has traits, by trait."""
    for bank in found:
        named = f"{bank['title']} ({bank['bank']}), {bank['model']}"
        yield Table(f"{named}, by person", *_table(bank["people"], "person"), list(_notes(bank)))
        if len(bank["topics"]) > 1:
            yield Table(f"{named}, by topic", *_table(bank["topics"], "about"), [])
        traits = list(dict.fromkeys(trait for row in bank["people"] for trait in row["traits"]))
        if any(each["card"] is not None for row in bank["people"] for each in row["traits"].values()):
            rows = [[row["person"], *(_rated(row["traits"].get(trait)) for trait in traits)] for row in bank["people"]]
            yield Table(f"{named}, rated traits and those of the card, 0 to 100", ["person", *traits], rows, [])


def _table(rows: Sequence[Row], first: str) -> tuple[list[str], list[list[str]]]:
    shown = [name for name in HEADINGS if any(row.get(name) is not None for row in rows)]
    body = [[row[first], str(row["answers"]), *(_cell(row, name) for name in shown)] for row in rows]
    return [first, "answers", *(HEADINGS[name] for name in shown)], body


def _cell(row: Row, name: str) -> str:
    value = row.get(name)
    if value is None:
        return "-"
    form = ".2f" if name in _NUMBERS else ".0%"
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    ends = f" [{low:{form}}, {high:{form}}]" if low is not None and high is not None else ""
    return f"{value:{form}}{ends}"


def _rated(trait: Row | None) -> str:
    if trait is None:
        return "-"
    return f"{trait['rated']:.0f}" + ("" if trait["card"] is None else f" ({trait['card']:.0f})")


def _notes(bank: Row) -> Iterator[str]:
    for name, each in bank["variance"].items():
        yield (f"{HEADINGS[name]}: mean {each['mean']:.2f} over {each['n']} people, variance {each['variance']:.4f}.")
    if places := bank["places"]:
        told = f"Option A was chosen in {places['first']:.0%} of {places['choices']} choices"
        yield f"{told}; it would be {places['chance']:.0%} by chance."
    if each := bank["topic_variance"].get("accuracy"):
        yield f"{HEADINGS['accuracy']}, over {each['n']} topics: variance {each['variance']:.4f}."
    paired = [row for row in bank["people"] if row["against_nobody"]]
    if paired:
        drops = [row["person"] for row in paired if _is_drop(row["against_nobody"])]
        told = f"McNemar against nobody, exact, on the same items: {len(drops)} of {len(paired)} people answer "
        yield told + f"significantly fewer right (p < {_ALPHA})" + (f": {', '.join(drops)}." if drops else ".")
        for row in paired:
            each = row["against_nobody"]
            yield (
                f"{row['person']} against nobody: {each['better']} only by {row['person']}, {each['worse']} only by "
                f"nobody, of {each['pairs']}; p = {each['p']:.3g}."
            )


def _is_drop(each: Row) -> bool:
    return bool(each["worse"] > each["better"] and each["p"] < _ALPHA)
