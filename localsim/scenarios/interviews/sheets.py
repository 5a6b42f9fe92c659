"""The scenarios of an interview: one for each person who is asked a bank."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from localsim.conversation.rules.values import Document, Identifier, Place, Text
from localsim.conversation.scenario import Agent, LoadedScenario
from localsim.errors import InvalidInput, suggest
from localsim.families.interviews.family import NOBODY, document
from localsim.families.interviews.items import Bank, Item
from localsim.families.interviews.made import GOAL
from localsim.scenarios.casting.people import Person, PersonaType, load_people
from localsim.scenarios.documents import named_file, read_document, read_file, shipped_files
from localsim.scenarios.interviews.guidelines import with_items
from localsim.scenarios.interviews.knowing import SourceTalk, who_knows
from localsim.scenarios.interviews.makers import COMPUTED, MAKERS, RELATIVES, made, relatives_told

ALL = "all"
"""The word for everybody who ships."""
COMMAND = "localsim interview"
"""The command that asks a bank; the path of a scenario that was made for it begins with this."""
_PLAIN = Agent(name="Person", goal="Answer the questions.")
PERSONA = "{persona}"
"""What an instruction holds in place of a description."""


class Personas(Document):
    """People described in a few words, as a model is told to answer as one of them."""

    version: Literal[1]
    """Format of this file."""
    id: Identifier
    """Name of the file."""
    title: Text
    """Title in one line."""
    persona_type: PersonaType = "demographic"
    """Where the descriptions come from."""
    instructions: Annotated[tuple[Text, ...], Field(min_length=1, max_length=9)]
    """What a model is told, with {persona} in place of the description; everybody is asked under each of them."""
    personas: Annotated[dict[Identifier, Text], Field(min_length=1)]
    """The descriptions by id, such as `nurse: a nurse of sixty`."""

    def _conflicts(self) -> Iterator[tuple[Place, str]]:
        for number, text in enumerate(self.instructions):
            if text.count(PERSONA) != 1:
                yield ("instructions", number), f"an instruction holds {PERSONA} once"

    def subjects(self, reference: str) -> Iterator[Subject]:
        """Yield everybody under each instruction, by id and its number."""
        for name, text in self.personas.items():
            for number, told in enumerate(self.instructions, start=1):
                agent = Agent(name=_PLAIN.name, goal=told.replace(PERSONA, text))
                own = f"{name}-{number}" if len(self.instructions) > 1 else name
                yield Subject(own, agent, reference, self.persona_type)


def parse_personas(text: str, name: str) -> Personas:
    """Return the personas in a YAML text. Raises ScenarioInvalid with all its problems, as file:line:column."""
    return read_document(text, name, Personas, what="personas").valid()


@dataclass(frozen=True)
class Subject:
    """Who is asked."""

    id: str
    agent: Agent
    reference: str
    """What `--people` said, for the command that asks again."""
    persona_type: PersonaType | None = None
    """None: an agent without a profile."""
    person: Person | None = None
    """The described person of whom makers take items."""


_NOBODY = Subject(NOBODY, _PLAIN, NOBODY)


def _subject(person: Person, reference: str) -> Subject:
    return Subject(person.id, person.agent(GOAL, whole=True), reference, person.persona_type, person)


def chosen_people(references: Sequence[str], bank: Bank) -> list[Subject]:
    """Return the people that words, ids, folders of people and files of personas name, each once; an agent without a
    profile too, if the bank compares. Raises InvalidInput for an unknown id, ScenarioInvalid for a bad file.
    """
    people = load_people()
    found: dict[str, Subject] = {}
    for reference in [part.strip() for text in references for part in text.split(",")]:
        named = _named(reference, people)
        if twice := [each.id for each in named if found.get(each.id, each) != each]:
            raise InvalidInput(f"two people have the id {twice[0]!r}", where=reference)
        found |= {each.id: each for each in named}
    if bank.baseline:
        found.setdefault(NOBODY, _NOBODY)
    return list(found.values())


def _named(reference: str, people: Mapping[str, Person]) -> list[Subject]:
    path, shipped = Path(reference).expanduser(), [each.stem for each in shipped_files("personas")]
    if reference == ALL:
        return [_subject(each, each.id) for each in people.values()]
    if reference == NOBODY:
        return [_NOBODY]
    if reference in people:
        return [_subject(people[reference], reference)]
    if path.is_dir():
        return [_subject(each, reference) for each in load_people(path).values()]
    if reference in shipped or path.suffix:
        file = named_file(reference, "personas")
        return list(parse_personas(read_file(file), str(file)).subjects(reference))
    hint = f"{ALL}, {NOBODY}, ids of people (localsim scenarios people), a folder, {', '.join(shipped)}, or a file"
    raise InvalidInput(f"no person {reference!r}{suggest(reference, [*people, *shipped], inline=True)}", hint=hint)


def find_bank(reference: str | Path) -> Bank:
    """Return the bank that a path or a name means.

    Raises InvalidInput if there is none, ScenarioInvalid with all its problems, as file:line:column.
    """
    file = named_file(reference, "banks")
    return with_items(read_document(read_file(file), str(file), Bank, what="a bank").valid())


TALKS = {"who_knows": who_knows}
"""The makers of items about stored conversations, by name."""


def asks_about_talks(bank: Bank) -> bool:
    """Return True if the items of a bank are about stored conversations."""
    return bank.maker is not None and bank.maker.name in TALKS


def items_for(
    bank: Bank, person: Person | None, everybody: Sequence[Person], talks: Sequence[SourceTalk] = ()
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


def sheet(bank: Bank, subject: Subject, items: Sequence[Item]) -> LoadedScenario:
    """Return the scenario that asks somebody some items."""
    person = subject.person
    traits = person.traits.model_dump(exclude={"decision_style"}) if person is not None else None
    asked = document(f"{bank.id}-{subject.id}", bank, subject.agent, items, traits)
    if subject.persona_type is not None:
        asked = asked.model_copy(update={"parameters": {"tags": {"persona_type": subject.persona_type}}})
    return LoadedScenario(*asked.split(), f"{COMMAND} {bank.id} --people {shlex.quote(subject.reference)}")


def _with_relatives(subject: Subject, everybody: Sequence[Person]) -> Subject:
    if subject.person is None:
        return subject
    told = relatives_told(subject.person, [each for each in everybody if each.id != subject.id])
    agent = subject.agent.model_copy(update={"facts": (*subject.agent.facts, *told)})
    return replace(subject, agent=agent)


def sheets(bank: Bank, people: Sequence[Subject], talks: Sequence[SourceTalk] = ()) -> tuple[LoadedScenario, ...]:
    """Return the scenarios of a bank, one for each person of whom it has something to ask.

    `talks` are the conversations that a bank about talks asks about. Raises InvalidInput if there is nothing to ask.
    """
    own = {each.person.id: each.person for each in people if each.person is not None}
    everybody = list((load_people() | own).values())
    if bank.maker is not None and bank.maker.name == RELATIVES:
        people = [_with_relatives(each, everybody) for each in people]
    asked = [(each, items_for(bank, each.person, everybody, talks)) for each in people]
    found = tuple(sheet(bank, each, items) for each, items in asked if items)
    if not found and asks_about_talks(bank):
        raise InvalidInput(
            f"bank {bank.id}: no fact of these conversations has terms, or all are too long",
            hint="--about RUN names a run of short conversations whose facts have terms",
        )
    if not found:
        raise InvalidInput(f"bank {bank.id} has nothing to ask of these people", hint=f"--people {ALL} asks everybody")
    return found
