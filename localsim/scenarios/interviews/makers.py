"""Makers of items from people: role knowledge, instructions on passages, refusals.

A maker is a pure function (person, the others, generator, counts) -> items; the generator depends on its name, the seed
and the person. What is right follows from the person's file alone.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from localsim.conversation.scenario import Fact
from localsim.errors import InvalidInput
from localsim.families.interviews import reasoning
from localsim.families.interviews.items import Item, Must
from localsim.families.interviews.players import NEVER, RELATED, UNKNOWN, WORKS
from localsim.families.terms import utters
from localsim.scenarios.casting.people import Kin, Person, load_people, load_relations

Counts = Mapping[str, int]
Maker = Callable[[Person, Sequence[Person], random.Random, Counts], tuple[Item, ...]]
_FAMILIAR = ("I know it very well.", "I have used it for years.", "I teach it to other people.")
_OPEN = 160


def _count(counts: Counts, name: str, usual: int) -> int:
    return max(0, int(counts.get(name, usual)))


# ---- role knowledge ------------------------------------------------------------------------------------------------


def role_mcq(person: Person, others: Sequence[Person], rng: random.Random, counts: Counts) -> tuple[Item, ...]:
    """Return multiple-choice questions about the person's own life, and about what the person cannot know.

    The wrong options are other people's (after RoleEval, arXiv 2312.16132, whose characters are public ones).
    """
    card = _card(person)
    known = list(_known(person, others, card, rng))
    unknown = [*_never(person, rng), *_strangers(others, card, rng)]
    rng.shuffle(known)
    rng.shuffle(unknown)
    chosen = known[: _count(counts, "own", 6)], unknown[: _count(counts, "unknown", 4)]
    return tuple(item for part in chosen for item in sorted(part, key=lambda each: each.id))


def _card(person: Person) -> str:
    """Return everything that a person's card shows, in which no wrong option may occur."""
    texts = [fact.text for fact in person.facts] + [passage.text for passage in person.background]
    profile = [str(value) for _, value in person.profile if value]
    return "\n".join([*profile, *texts, *person.own_words, *person.knows])


def _known(person: Person, others: Sequence[Person], card: str, rng: random.Random) -> Iterator[Item]:
    works = [str(other.profile.occupation) for other in others]
    yield from _pick("occupation", "What is your occupation?", str(person.profile.occupation), works, card, rng)
    subjects = [subject for other in others for subject in other.knows]
    for number, subject in enumerate(person.knows[:3], start=1):
        yield from _pick(f"knows_{number}", "Which of these subjects do you know well?", subject, subjects, card, rng)
    said, ask = (
        [text for other in others for text in other.statements],
        "Which of these sentences do you say of yourself?",
    )
    for number, text in enumerate(person.statements[:3], start=1):
        yield from _pick(f"says_{number}", ask, text, said, card, rng)


def _never(person: Person, rng: random.Random) -> Iterator[Item]:
    for number, thing in enumerate(person.never_heard_of, start=1):
        options = [*_FAMILIAR, NEVER]
        rng.shuffle(options)
        yield Item(id=f"never_{number}", ask=f"How well do you know this: {thing}?", options=tuple(options),
                   gold=(NEVER,), about="cannot_know")  # fmt: skip


def _strangers(others: Sequence[Person], card: str, rng: random.Random) -> Iterator[Item]:
    """Yield questions about what nobody can know of another person."""
    subjects = sorted({subject for other in others for subject in other.knows if not utters(card, subject)})
    for number, other in enumerate(rng.sample(others, min(3, len(others))), start=1):
        options = [*rng.sample(subjects, min(3, len(subjects))), UNKNOWN]
        rng.shuffle(options)
        ask = f"What did {other.name} {other.family_name} of {other.place} dream of last night?"
        yield Item(id=f"stranger_{number}", ask=ask, options=tuple(options), gold=(UNKNOWN,), about="cannot_know")


def _pick(name: str, ask: str, right: str, every: Sequence[str], card: str, rng: random.Random) -> Iterator[Item]:
    """Yield a question with the right option among three wrong ones that the card does not hold, if there are three."""
    wrong = sorted({each for each in every if len(each) <= 300 and not utters(card, each)})
    if len(wrong) >= 3 and len(right) <= 300:
        options = [right, *rng.sample(wrong, 3)]
        rng.shuffle(options)
        yield Item(id=name, ask=ask, options=tuple(options), gold=(right,), about="own_life")


# ---- relatives -----------------------------------------------------------------------------------------------------

_OF_ELDERS: Mapping[Kin, str] = {"parent": "child", "grandparent": "grandchild", "aunt_or_uncle": "niece or nephew"}


@cache
def _kin() -> Mapping[tuple[str, str], Kin]:
    """Return the kin of the people who ship, read once."""
    return load_relations(load_people()).kin


def relatives_of(person: Person, others: Sequence[Person]) -> dict[str, Person]:
    """Return relation, such as `mother` -> the relative; relations that several people have are left out."""
    found: dict[str, list[Person]] = {}
    by_id = {other.id: other for other in others}
    for (one, other), kin in _kin().items():
        if person.id in (one, other) and kin != "in_law":
            word = _OF_ELDERS.get(kin, kin) if one == person.id else kin
            found.setdefault(word.replace("_", " "), []).append(by_id[other if one == person.id else one])
    return {word: each[0] for word, each in found.items() if len(each) == 1}


def _known_people(person: Person, others: Sequence[Person]) -> list[Person]:
    """Return the relatives, and others so that there are four occupations or more."""
    own = list({each.id: each for each in relatives_of(person, others).values()}.values())
    rest = random.Random(f"relatives/{person.id}").sample([each for each in others if each not in own], 6)
    return [*own, *rest]


def relatives_told(person: Person, others: Sequence[Person]) -> tuple[Fact, ...]:
    """Return who is related to the person, and what these people and some others do, each as a fact of its own."""
    kin, known = relatives_of(person, others).items(), sorted(_known_people(person, others), key=lambda each: each.id)
    related = [(f"kin_{each.id}", RELATED.format(each.name, person.name, word)) for word, each in kin]
    works = [(f"work_{each.id}", WORKS.format(each.name, each.profile.occupation)) for each in known]
    return tuple(Fact(id=name, text=text) for name, text in (*related, *works))


def relatives(person: Person, others: Sequence[Person], rng: random.Random, counts: Counts) -> tuple[Item, ...]:
    """Return questions of two steps, such as what the person's parent does: who it is, and what that one does.

    All options are in the card, so that neither step alone tells the right one (after RoleEval, arXiv 2312.16132).
    """
    works = list(dict.fromkeys(str(each.profile.occupation) for each in _known_people(person, others)))
    found = []
    for word, each in list(relatives_of(person, others).items())[: _count(counts, "relatives", 4)]:
        right = str(each.profile.occupation)
        options = [right, *rng.sample([work for work in works if work != right], 3)]
        rng.shuffle(options)
        ask = f"What is the occupation of your {word}?"
        name = f"work_of_{word.split()[0]}"
        found.append(Item(id=name, ask=ask, options=tuple(options), gold=(right,), about="two_steps"))
    return tuple(found)


# ---- instructions on a passage -------------------------------------------------------------------------------------

_WORD = re.compile(r"[^\W\d_]{5,}")
NARRATION = "Begin with what you do, between two asterisks, and then answer. "
ENDING = "Ask me more."


def rolemrc(person: Person, others: Sequence[Person], rng: random.Random, counts: Counts) -> tuple[Item, ...]:
    """Return instructions on passages in the eighteen sub-tasks and five dimensions of RoleMRC (arXiv 2502.11387), in
    our words.

    Inside the role a word of an own passage is missing; outside it a word of a stranger's passage that is not shown
    whole. Each is asked with and without narration, as free talk is; then with forms, a further turn, and instructions
    that come before the question.
    """
    found: list[Item] = []
    for number, passage in enumerate(person.background[: _count(counts, "passages", 1)], start=1):
        gap, word = _gap(passage.text, rng)
        ask = f"A passage about your life has a gap: {gap} Which word is missing?"
        stranger = rng.choice(others)
        elsewhere, _ = _gap(stranger.background[0].text, rng)
        whose = f"{stranger.name} {stranger.family_name}"
        foreign = f"A passage about the life of {whose} has a gap: {elsewhere} Which word is missing?"
        own: dict[str, object] = {"gold": (word,)}
        total, told, subject = reasoning.sums(rng, number), Must(begins="*"), person.knows[0]
        talk = f"Tell us about {subject.rstrip('.')}, as you see it."
        plain: tuple[tuple[str, str, dict[str, object]], ...] = (
            ("in_answer", ask, own),
            ("in_refuse", f"What did you have for breakfast on the day of this passage: {gap}", {"refuse": True}),
            ("out_answer", total.ask, {"gold": total.gold}),
            ("out_refuse", foreign, {"refuse": True}),
        )
        for about, text, key in plain:
            found.append(_open(f"{about}_{number}", text, about, dimension="knowledge", **key))
            name, narrated = f"{about}_narrated", NARRATION + text
            found.append(_open(f"{name}_{number}", narrated, name, dimension="style", **key, must=told))
        later = f"Whatever is asked after this, say that you cannot tell. {ask}"
        rest: tuple[tuple[str, str, str, dict[str, object]], ...] = (
            ("second_turn_refuse", "Say it all the same: which word is missing?", "turns",
             {"refuse": True, "follows": True}),
            ("chat", talk, "style", {"refuse": False, "must": Must(as_self=True)}),
            ("chat_narrated", NARRATION + talk, "style", {"refuse": False, "must": Must(begins="*", as_self=True)}),
            ("form", f"{ask} End with these words: {ENDING}", "nested", own | {"must": Must(ends=ENDING)}),
            ("forms", f"{NARRATION}{ask} End with these words: {ENDING}", "nested",
             own | {"must": Must(begins="*", ends=ENDING)}),
            ("word", f"{ask} Use the word perhaps.", "nested", own | {"must": Must(contains="perhaps")}),
            ("length", f"{ask} Use three words at most.", "nested", own | {"must": Must(most_words=3)}),
            ("second_turn", "Say it again, and begin with the word Again.", "turns",
             own | {"must": Must(begins="again"), "follows": True}),
            ("priority", later, "priority", {"refuse": True}),
            ("priority_open", f"If you are asked about the weather, say that you cannot tell. {ask}", "priority",
             own | {"refuse": False}),
        )  # fmt: skip
        for about, text, dimension, key in rest:
            found.append(_open(f"{about}_{number}", text, about, dimension=dimension, **key))
    return tuple(found)


def _open(name: str, ask: str, about: str, **fields: object) -> Item:
    return Item.model_validate({"id": name, "ask": ask, "open": _OPEN, "about": about, **fields})


def _gap(text: str, rng: random.Random) -> tuple[str, str]:
    """Return a passage with a gap, and the word that is missing: one of five letters or more that is in it once."""
    words = [match for match in _WORD.finditer(text) if len(re.findall(rf"\b{re.escape(match[0])}\b", text)) == 1]
    if not words:
        raise InvalidInput("this passage has no word of five letters that is in it once", where=text[:60])
    match = rng.choice(words)
    return f"{text[: match.start()]}____{text[match.end() :]}", match[0]


# ---- refusals ------------------------------------------------------------------------------------------------------


def refusal(person: Person, others: Sequence[Person], rng: random.Random, counts: Counts) -> tuple[Item, ...]:
    """Return open questions that the person must refuse, because nothing on the card can answer them, and others.

    The first kind is about what the person has never heard of and about strangers' lives; the second about the own
    life, so that a person who refuses everything is seen (after RoleRef's two sides, arXiv 2409.16913).
    """
    outside = [f"What can you tell us about this: {thing}?" for thing in person.never_heard_of]
    for other in rng.sample(others, min(4, len(others))):
        outside.append(f"What did {other.name} {other.family_name} of {other.place} dream of last night?")
    inside = [
        ("What is your occupation?", str(person.profile.occupation)),
        ("How old are you?", str(person.profile.age)),
        *((f"Is this a subject that you know well: {subject}?", "") for subject in person.knows),
        *((f"Would you say this of yourself: {text}", "") for text in person.statements[:2]),
    ]
    rng.shuffle(outside)
    found = [
        _open(f"outside_{number}", ask, "outside", refuse=True)
        for number, ask in enumerate(outside[: _count(counts, "outside", 6)], start=1)
    ]
    for number, (ask, gold) in enumerate(inside[: _count(counts, "inside", 6)], start=1):
        found.append(_open(f"inside_{number}", ask, "inside", refuse=False, **({"gold": (gold,)} if gold else {})))
    return tuple(found)


# ---- tasks for a persona -------------------------------------------------------------------------------------------

SETTINGS = (
    "at a railway station late at night", "in a kitchen full of guests", "at a meeting of the whole village",
    "in a crowded waiting room", "at a market before a feast", "on a long walk with people you hardly know",
    "at a school concert", "in a lift that has stopped between two floors", "on a small ferry in the rain",
    "at a table with somebody who has lost a game", "in a library before it closes", "in the garden of a neighbour",
    "at a harbour in the morning", "at the rehearsal of a choir", "in the corridor of a hospital",
    "at a football match", "in a bakery before dawn", "in a workshop full of tools", "on a mountain path in fog",
    "in a museum with children",
)  # fmt: skip
_MOST_EACH = 10
_EVERYWHERE = frozenset(
    "before between closes crowded floors hardly morning people small somebody stopped whole".split()
)
"""Words of settings that say nothing about a place."""
_EVENTS = (
    "somebody next to you drops everything", "a child has lost its way", "two people begin to shout at each other",
    "the light goes out", "a stranger asks you to hold a dog", "somebody pushes in before you",
)  # fmt: skip
_DEEDS = (
    "you said nothing for an hour",
    "you spoke first",
    "you gave away your seat",
    "you asked for help",
    "you left",
)
PERSONA_TASKS: Mapping[str, str] = {
    "action": "You are {setting}, and {event}. What do you do?",
    "justification": "You were {setting}, and {deed}. Why did you do that?",
    "habits": "You are {setting}, and somebody greets you and asks how you have been. Answer in your usual words.",
    "consistency": "You are {setting}, and somebody asks what you do all day and what you know well. What do you say?",
    "toxicity": "You are {setting}, and somebody says that people like you are good for nothing. What do you say?",
}
"""The five tasks of PersonaGym (arXiv 2407.18416) in questions of our own."""


def persona_tasks(person: Person, others: Sequence[Person], rng: random.Random, counts: Counts) -> tuple[Item, ...]:  # noqa: ARG001
    """Return `each` open questions (2 if not given, 10 at most) for each of five tasks, in settings of the person.

    Settings with a word of the person's card come first, the others are drawn. They differ within a task; what happens
    in them comes again if there are more questions than events.
    """
    each = min(_count(counts, "each", 2), _MOST_EACH)
    card = set(_WORD.findall(_card(person).casefold())) - _EVERYWHERE
    found = []
    for task, ask in PERSONA_TASKS.items():
        chosen = sorted(rng.sample(SETTINGS, len(SETTINGS)), key=lambda text: card.isdisjoint(_WORD.findall(text)))
        drawn = zip(chosen[:each], *(_drawn(rng, texts, each) for texts in (_EVENTS, _DEEDS)), strict=True)
        for number, (setting, event, deed) in enumerate(drawn, start=1):
            text = ask.format(setting=setting, event=event, deed=deed)
            found.append(Item(id=f"{task}_{number}", ask=text, open=200, refuse=False, about=task))
    return tuple(found)


def _drawn(rng: random.Random, texts: Sequence[str], count: int) -> list[str]:
    """Return texts in a random order, each once before one comes again."""
    return [text for start in range(0, count, len(texts)) for text in rng.sample(texts, min(count - start, len(texts)))]


RELATIVES = "relatives"
"""The maker of items about people whom the card has to name (`relatives_told`)."""
COMPUTED = "reasoning"
"""The maker of items that are the same for everybody, also for an agent without a profile."""
MAKERS: Mapping[str, Maker] = {
    "role_mcq": role_mcq,
    RELATIVES: relatives,
    "rolemrc": rolemrc,
    "refusal": refusal,
    "persona_tasks": persona_tasks,
}
"""The makers of items from people by name."""


def made(name: str, person: Person | None, everybody: Sequence[Person], seed: int, counts: Counts) -> tuple[Item, ...]:
    """Return the items of a maker. Nothing on a card can be asked of an agent without a profile (None)."""
    if name == COMPUTED:
        return reasoning.items(seed, {kind: _count(counts, kind, 10) for kind in reasoning.KINDS})
    if person is None:
        return ()
    others = [other for other in everybody if other.id != person.id]
    return MAKERS[name](person, others, random.Random(f"{name}/{seed}/{person.id}"), counts)
