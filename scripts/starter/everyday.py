"""Everyday conversations, written turn by turn by language models that each saw one side only.

`talks/situations.jsonl` has the situations with both sides, `talks/talks.jsonl` the conversations; talks/README.md is
their card. A writer of both sides would be the very thing that localsim studies.
"""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

from localsim.conversation.scenario import Agent, Fact, Info, ScenarioFile
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.families.vocabulary import Vocabulary, person
from scripts.starter.bank import bank

FOLDER = Path(__file__).parent / "talks"
Record = dict[str, Any]


@cache
def situations() -> dict[str, Record]:
    """Return the situations by id."""
    return {record["id"]: record for record in _records("situations")}


HELD_OUT = 11
"""Every so many situations, one is for validation only."""


@cache
def talks(*, held_out: bool | None = None) -> tuple[Record, ...]:
    """Return the conversations to train on, those held out, or all of them, in the order of the file."""
    kept = {name: number % HELD_OUT == 0 for number, name in enumerate(situations())}
    return tuple(each for each in _records("talks") if held_out in (None, kept[each["situation"]]))


def _records(name: str) -> list[Record]:
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line]


def talk(rng: random.Random, number: int, *, held_out: bool = False) -> tuple[ScenarioFile, Transcript]:
    """Return one of the conversations with its scenario."""
    record = rng.choice(talks(held_out=held_out))
    scenario = _scenario(rng, f"starter_everyday_{record['id']}_{number}", record)
    turns = [
        Turn(index, scenario.names[index % 2], Action("leave" if index + 1 == len(record["lines"]) else "speak", text))
        for index, text in enumerate(record["lines"])
    ]
    return scenario, Transcript(tuple(turns))


def _scenario(rng: random.Random, scenario_id: str, record: Record) -> ScenarioFile:
    """Return the scenario of a conversation; the agent who speaks first comes first."""
    situation = situations()[record["situation"]]
    a, b = record["names"]
    words = Vocabulary(occupations=bank("friends")["occupations"])
    agents = []
    for who in (situation["first"], 1 - situation["first"]):
        side, name = situation["sides"][who], record["names"][who]
        slots = {"a": a, "b": b, "me": name, "other": record["names"][1 - who]}
        facts = [
            Fact(id=f"f{who}_{number}", text=text.format(**slots)) for number, text in enumerate(side["facts"], start=1)
        ]
        agents.append(
            Agent(
                name=name,
                profile=person(rng, name, words),
                goal=side["goal"].format(**slots),
                secret=side["secret"].format(**slots) if side["secret"] else None,
                facts=tuple(facts),
            )
        )
    return ScenarioFile(
        version=1,
        id=scenario_id,
        title=scenario_id.replace("_", " "),
        info=Info(what="Training material."),
        setting=situation["setting"].format(a=a, b=b),
        relationship=situation["relationship"],
        agents=tuple(agents),
    )
