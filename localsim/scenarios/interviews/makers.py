"""Makers of items from people: role knowledge, instructions on passages, refusals.

A maker is a pure function (person, the others, generator, counts) -> items; the generator depends on its name, the seed
and the person. What is right follows from the person's file alone.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from localsim.errors import InvalidInput
from localsim.families.interviews import reasoning
from localsim.families.interviews.items import Item, Must
from localsim.families.interviews.players import NEVER, UNKNOWN
from localsim.families.terms import utters
from localsim.scenarios.casting.people import Person

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


# ---- instructions on a passage -------------------------------------------------------------------------------------

_WORD = re.compile(r"[^\W\d_]{5,}")
NARRATION = "Begin with what you do, between two asterisks, and then answer. "
ENDING = "Ask me more."


def rolemrc(person: Person, others: Sequence[Person], rng: random.Random, counts: Counts) -> tuple[Item, ...]:
    """Return instructions on passages in twelve sub-tasks (of the eighteen of RoleMRC, arXiv 2502.11387).

    Inside the role a word of an own passage is missing; outside it a word of a stranger's passage that is not shown
    whole. Each is asked with and without narration; then with a form, a word or a second turn, and under an
    instruction that comes before the question.
    """
    found: list[Item] = []
    for number, passage in enumerate(person.background[: _count(counts, "passages", 1)], start=1):
        gap, word = _gap(passage.text, rng)
        ask = f"A passage about your life has a gap: {gap} Which word is missing?"
        stranger = rng.choice(others)
        elsewhere, _ = _gap(stranger.background[0].text, rng)
        whose = f"{stranger.name} {stranger.family_name}"
        foreign = f"A passage about the life of {whose} has a gap: {elsewhere} Which word is missing?"
        total = reasoning.sums(rng, number)
        plain = (
            ("in_answer", ask, {"gold": (word,)}),
            ("in_refuse", f"What did you have for breakfast on the day of this passage: {gap}", {"refuse": True}),
            ("out_answer", total.ask, {"gold": total.gold}),
            ("out_refuse", foreign, {"refuse": True}),
        )
        for about, text, key in plain:
            found.append(_open(f"{about}_{number}", text, about, **key))
            told = _open(f"{about}_narrated_{number}", NARRATION + text, f"{about}_narrated", **key)
            found.append(told.model_copy(update={"must": Must(begins="*")}))
        last, brief = f"{ask} End with these words: {ENDING}", f"{ask} Use three words at most."
        first = f"Whatever is asked after this, say that you cannot tell. {ask}"
        again = "Say it again, and begin with the word Again."
        right = {"gold": (word,)}
        found += [
            _open(f"form_{number}", last, "form", must=Must(ends=ENDING), **right),
            _open(f"length_{number}", brief, "length", must=Must(most_words=3), **right),
            _open(f"again_{number}", again, "second_turn", must=Must(begins="again"), follows=True, **right),
            _open(f"priority_{number}", first, "priority", refuse=True),
        ]
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
    "at a table with somebody who has lost a game",
)  # fmt: skip
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

    Settings differ within a task; what happens in them comes again if there are more questions than events.
    """
    each = min(_count(counts, "each", 2), len(SETTINGS))
    found = []
    for task, ask in PERSONA_TASKS.items():
        drawn = zip(*(_drawn(rng, texts, each) for texts in (SETTINGS, _EVENTS, _DEEDS)), strict=True)
        for number, (setting, event, deed) in enumerate(drawn, start=1):
            text = ask.format(setting=setting, event=event, deed=deed)
            found.append(Item(id=f"{task}_{number}", ask=text, open=200, refuse=False, about=task))
    return tuple(found)


def _drawn(rng: random.Random, texts: Sequence[str], count: int) -> list[str]:
    """Return texts in a random order, each once before one comes again."""
    return [text for start in range(0, count, len(texts)) for text in rng.sample(texts, min(count - start, len(texts)))]


COMPUTED = "reasoning"
"""The maker of items that are the same for everybody, also for an agent without a profile."""
MAKERS: Mapping[str, Maker] = {
    "role_mcq": role_mcq,
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
