"""The scenarios of an interview: one for each person who is asked a bank."""

from __future__ import annotations

from collections.abc import Sequence

from localsim.conversation.scenario import Agent, LoadedScenario
from localsim.errors import InvalidInput, suggest
from localsim.families.interviews.family import document
from localsim.families.interviews.items import Bank, Item
from localsim.scenarios.casting.people import Person, load_people
from localsim.scenarios.interviews.makers import MAKERS

ALL, NOBODY = "all", "nobody"
"""Words for everybody who ships, and for somebody without a profile."""
COMMAND = "localsim interview"
"""The command that asks a bank; the path of a scenario that was made for it begins with this."""
GOAL = "Answer the questions as the person who you are."
_PLAIN = Agent(name="Person", goal="Answer the questions.")
Subject = Person | None
"""Who is asked; None: somebody without a profile."""


def chosen_people(references: Sequence[str], bank: Bank) -> list[Subject]:
    """Return the people that words or ids name, each once; somebody without a profile too, if the bank compares.

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


def items_for(bank: Bank, person: Subject, everybody: Sequence[Person]) -> tuple[Item, ...]:
    """Return the items of a bank for a person, listed or made. Raises InvalidInput for an unknown maker."""
    if bank.maker is None:
        return bank.items
    if bank.maker.name not in MAKERS:
        hint = f"makers are {', '.join(MAKERS)}"
        raise InvalidInput(f"bank {bank.id}: no maker {bank.maker.name!r}", hint=hint)
    return MAKERS[bank.maker.name](person, everybody, bank.maker.seed, bank.maker.parameters)


def sheet(bank: Bank, person: Subject, items: Sequence[Item]) -> LoadedScenario:
    """Return the scenario that asks a person some items."""
    name = person.id if person is not None else NOBODY
    agent = person.agent(GOAL, whole=True) if person is not None else _PLAIN
    traits = person.traits.model_dump(exclude={"decision_style"}) if person is not None else None
    made = document(f"{bank.id}-{name}", bank, agent, items, traits)
    return LoadedScenario(*made.split(), f"{COMMAND} {bank.id} --people {name}")


def sheets(bank: Bank, people: Sequence[Subject]) -> tuple[LoadedScenario, ...]:
    """Return the scenarios of a bank, one for each person of whom it has something to ask.

    Raises InvalidInput if it has nothing to ask of any of them.
    """
    everybody = list(load_people().values())
    asked = [(person, items_for(bank, person, everybody)) for person in people]
    found = tuple(sheet(bank, person, items) for person, items in asked if items)
    if not found:
        raise InvalidInput(f"bank {bank.id} has nothing to ask of these people", hint=f"--people {ALL} asks everybody")
    return found
