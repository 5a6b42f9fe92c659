"""The scenarios of an interview: one for each person who is asked a bank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from localsim.conversation.scenario import Agent, LoadedScenario
from localsim.errors import InvalidInput, suggest
from localsim.families.interviews.family import NOBODY, document
from localsim.families.interviews.items import Bank, Item
from localsim.scenarios.casting.people import Person, load_people
from localsim.scenarios.documents import named_file, read_document, read_file
from localsim.scenarios.interviews.knowing import SourceTalk, who_knows
from localsim.scenarios.interviews.makers import COMPUTED, MAKERS, made

ALL = "all"
"""The word for everybody who ships."""
COMMAND = "localsim interview"
"""The command that asks a bank; the path of a scenario that was made for it begins with this."""
GOAL = "Answer the questions as the person you are."
_PLAIN = Agent(name="Person", goal="Answer the questions.")
Subject = Person | None
"""Who is asked; None: an agent without a profile."""


def chosen_people(references: Sequence[str], bank: Bank) -> list[Subject]:
    """Return the people that words or ids name, each once; an agent without a profile too, if the bank compares.

    Raises InvalidInput for an unknown id.
    """
    people = load_people()
    found: dict[str, Subject] = {}
    for reference in [part.strip() for text in references for part in text.split(",")]:
        if reference == ALL:
            found |= people
        elif reference == NOBODY:
            found[NOBODY] = None
        elif reference in people:
            found[reference] = people[reference]
        else:
            hint = f"{ALL}, {NOBODY}, or ids of people: localsim scenarios people"
            raise InvalidInput(f"no person {reference!r}{suggest(reference, people, inline=True)}", hint=hint)
    if bank.baseline:
        found.setdefault(NOBODY, None)
    return list(found.values())


def find_bank(reference: str | Path) -> Bank:
    """Return the bank that a path or a name means.

    Raises InvalidInput if there is none, ScenarioInvalid with all its problems, as file:line:column.
    """
    file = named_file(reference, "banks")
    return read_document(read_file(file), str(file), Bank, what="a bank").valid()


TALKS = {"who_knows": who_knows}
"""The makers of items about stored conversations, by name."""


def asks_about_talks(bank: Bank) -> bool:
    """Return True if the items of a bank are about stored conversations."""
    return bank.maker is not None and bank.maker.name in TALKS


def items_for(
    bank: Bank, person: Subject, everybody: Sequence[Person], talks: Sequence[SourceTalk] = ()
) -> tuple[Item, ...]:
    """Return the items of a bank for a person, listed or made. Raises InvalidInput for an unknown maker."""
    maker = bank.maker
    if maker is None:
        return bank.items
    if maker.name in TALKS:
        return TALKS[maker.name](talks, maker.seed, maker.parameters)
    if maker.name not in (*MAKERS, COMPUTED):
        hint = f"makers are {', '.join([*MAKERS, COMPUTED, *TALKS])}"
        raise InvalidInput(f"bank {bank.id}: no maker {maker.name!r}", hint=hint)
    return made(maker.name, person, everybody, maker.seed, maker.parameters)


def sheet(bank: Bank, person: Subject, items: Sequence[Item]) -> LoadedScenario:
    """Return the scenario that asks a person some items."""
    name = person.id if person is not None else NOBODY
    agent = person.agent(GOAL, whole=True) if person is not None else _PLAIN
    traits = person.traits.model_dump(exclude={"decision_style"}) if person is not None else None
    asked = document(f"{bank.id}-{name}", bank, agent, items, traits)
    return LoadedScenario(*asked.split(), f"{COMMAND} {bank.id} --people {name}")


def sheets(bank: Bank, people: Sequence[Subject], talks: Sequence[SourceTalk] = ()) -> tuple[LoadedScenario, ...]:
    """Return the scenarios of a bank, one for each person of whom it has something to ask.

    `talks` are the conversations that a bank about talks asks about. Raises InvalidInput if there is nothing to ask.
    """
    everybody = list(load_people().values())
    asked = [(person, items_for(bank, person, everybody, talks)) for person in people]
    found = tuple(sheet(bank, person, items) for person, items in asked if items)
    if not found and asks_about_talks(bank):
        raise InvalidInput(
            f"bank {bank.id}: no fact of these conversations has terms, or all are too long",
            hint="--about RUN names a run of short conversations whose facts have terms",
        )
    if not found:
        raise InvalidInput(f"bank {bank.id} has nothing to ask of these people", hint=f"--people {ALL} asks everybody")
    return found
