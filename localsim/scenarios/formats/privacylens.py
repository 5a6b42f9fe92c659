"""Seeds of PrivacyLens -> scenarios (Shao et al. 2024, arXiv 2409.00138): what may flow from a sender to a recipient?

A seed names the type of data, subject, sender, recipient and transmission principle of a flow that breaks a norm; a
vignette tells the story, a trajectory lists the sensitive items. The sender becomes an agent who knows the story and
the items and is to do the instruction; the recipient becomes the other agent. Each item is a fact that must never come
out, so the detector of leaks measures what the data set asks. The flow itself is in the answer key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from localsim.conversation.human_talks import Part, checked, id_of, loaded, names_are_usable
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput
from localsim.scenarios.formats.reading import Missing, Unmapped, objects
from localsim.scenarios.formats.sotopia import cut

HINT = "PrivacyLens's files are lists of objects with name, seed, vignette and trajectory"
RECIPIENT = "Recipient"
_FLOW = ("data_type", "data_subject", "data_sender", "data_recipient", "transmission_principle", "source")


class Seed(Part):
    """A flow of information."""

    data_type: str
    data_subject: str
    data_sender: str
    data_sender_name: str = ""
    data_recipient: str
    transmission_principle: str
    source: str = ""


class Vignette(Part):
    """The flow as a story about certain people."""

    story: str = ""
    data_type_concrete: str = ""
    data_subject_concrete: str = ""
    data_sender_concrete: str = ""
    data_recipient_concrete: str = ""


class Trajectory(Part):
    """What an agent was asked to do and what it must not tell."""

    user_instruction: str = ""
    sensitive_info_items: list[str] = []  # noqa: RUF012 - pydantic copies it


class Case(Part):
    """One object of a file."""

    name: str
    seed: Seed
    vignette: Vignette = Vignette()
    trajectory: Trajectory = Trajectory()


def read(files: Sequence[Path]) -> tuple[list[LoadedScenario], tuple[Unmapped, ...]]:
    """Return the scenarios of files, and what they have no place for. Raises InvalidInput for a defect."""
    missing = Missing()
    made: dict[str, LoadedScenario] = {}
    for path in files:
        for where, data in objects(path, HINT):
            if "seed" not in data:
                keys = ", ".join(list(data)[:6])
                raise InvalidInput(f"not a seed of PrivacyLens (keys: {keys})", where=where, hint=HINT)
            case = checked(Case, data, where, HINT)
            missing.unknown(where, data, frozenset(Case.model_fields))
            for part, form in (("vignette", Vignette), ("trajectory", Trajectory), ("seed", Seed)):
                given = data.get(part)
                if isinstance(given, Mapping):
                    inner = {f"{part}.{key}": value for key, value in given.items()}
                    missing.unknown(where, inner, frozenset(f"{part}.{key}" for key in form.model_fields))
            found = scenario_of(case, where, missing)
            if found.scenario.id in made:
                hint = "give each seed a name of its own"
                raise InvalidInput(f"two seeds have the name {case.name!r}", where=where, hint=hint)
            made[found.scenario.id] = found
    return list(made.values()), missing.all


def scenario_of(case: Case, where: str, missing: Missing) -> LoadedScenario:
    """Return the scenario of a case. Raises InvalidInput."""
    seed, vignette = case.seed, case.vignette
    sender = seed.data_sender_name or vignette.data_sender_concrete or "Sender"
    recipient = (vignette.data_recipient_concrete or seed.data_recipient).partition(",")[0].strip()
    recipient = recipient[:1].upper() + recipient[1:]
    if not names_are_usable([sender]):
        missing.note(where, "data_sender_name", "it cannot begin a line of conversation; Sender is used")
        sender = "Sender"
    if not names_are_usable([sender, recipient]):
        missing.note(where, "data_recipient", f"it cannot be the name of an agent; {RECIPIENT} is used")
        recipient = RECIPIENT
    missing.note(where, "relationship", "the file does not have it; acquaintance is assumed")
    return loaded(
        where,
        where,
        id=id_of("privacylens", case.name),
        title=cut(
            f"{seed.data_sender} and {seed.data_recipient}: {seed.transmission_principle}", where, "seed", missing
        )[:300],
        info={"what": "A seed of PrivacyLens: does private information flow where it should not?"},
        setting=cut(_setting(sender, recipient, seed), where, "seed", missing),
        relationship="acquaintance",
        agents=[
            {
                "name": sender,
                "goal": cut(_goal(case), where, "vignette.story", missing),
                "facts": _facts(case, where, missing),
            },
            {"name": recipient, "goal": f"Talk with {sender}, and ask about what interests you."},
        ],
        answer={"flow": {name: value for name in _FLOW if (value := getattr(seed, name))} | _concrete(vignette)},
    )


def _setting(sender: str, recipient: str, seed: Seed) -> str:
    """Return what both know: who they are and how one reaches the other, and nothing of what is private."""
    return (
        f"{sender} ({seed.data_sender}) is in contact with {recipient} ({seed.data_recipient}). "
        f"The way of contact: {seed.transmission_principle.rstrip('.')}."
    )


def _goal(case: Case) -> str:
    instruction = case.trajectory.user_instruction or case.seed.transmission_principle
    story = case.vignette.story
    return f"{instruction.strip()} What you know: {story.strip()}" if story else instruction.strip()


def _facts(case: Case, where: str, missing: Missing) -> list[dict[str, Any]]:
    items = [item for item in case.trajectory.sensitive_info_items if item.strip()]
    if not items:
        missing.note(
            where, "trajectory.sensitive_info_items", "none are given; the type of data is the only private fact"
        )
        subject = case.vignette.data_subject_concrete or case.seed.data_subject
        items = [f"{case.vignette.data_type_concrete or case.seed.data_type} ({subject})"]
    return [
        {"id": f"item_{number}", "text": cut(item, where, "sensitive_info_items", missing), "disclosure": "never"}
        for number, item in enumerate(items, start=1)
    ]


def _concrete(vignette: Vignette) -> dict[str, str]:
    return {name: value for name, value in vignette.model_dump().items() if name != "story" and value}
