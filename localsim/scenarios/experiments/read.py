"""Experiment files: YAML -> `Study`, with banks and scenarios found, limits applied and seats checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from localsim.conversation.grants import NO_ITEM, Grant, Grants, parse
from localsim.conversation.rules.values import Place
from localsim.conversation.scenario import LoadedScenario, Scenario, canonical_hash, canonical_json
from localsim.errors import InvalidInput, ScenarioInvalid, suggest
from localsim.families import family_of
from localsim.families.interviews.items import Bank, offered
from localsim.scenarios.documents import Document, named_file, read_document, read_file
from localsim.scenarios.experiments.document import PARTICIPANT, Bounds, Condition, Experiment
from localsim.scenarios.find import find_scenarios
from localsim.scenarios.interviews.sheets import find_bank
from localsim.scenarios.rubrics import Rubric, find_rubric

T = TypeVar("T")
_MOST_RATINGS = 5
_MOST_POINTS = 11
"""Points of a scale that fit on a phone."""


@dataclass(frozen=True)
class Arm:
    """A condition with what it names."""

    condition: Condition
    scenarios: tuple[LoadedScenario, ...]
    """With the limits of the experiment."""
    seats: tuple[str, ...]
    """The participant's role in each of them."""
    grant: Grant
    """What the others are granted of the participant's side."""

    @property
    def people(self) -> int:
        """Participants in one talk."""
        paired = self.condition.partner == PARTICIPANT
        return len(self.scenarios[0].scenario.names) if paired else 1

    def grants(self, place: int) -> Grants:
        """Return the grants in the talk about a scenario, by its place in `scenarios`.

        They name agents by their number, so that talks about scenarios with other names are one condition of reports.
        """
        names = self.scenarios[place].scenario.names
        others = (str(number) for number, name in enumerate(names, start=1) if name != self.seats[place])
        return Grants(single=tuple((number, self.grant) for number in others if self.grant))


@dataclass(frozen=True)
class Study:
    """An experiment with everything that it names; nothing in it changes while it runs."""

    experiment: Experiment
    path: str
    before: tuple[Bank, ...]
    after: tuple[Bank, ...]
    ratings: Bank | None
    rubric: Rubric | None
    """What participants answer about each talk."""
    arms: tuple[Arm, ...]

    @property
    def description(self) -> str:
        """The whole experiment as JSON text, which is stored with its run: file, banks, rubric, hashes of scenarios."""
        rubric = {"rubric": self.rubric.model_dump(mode="json")} if self.rubric else {}
        unused = set() if self.rubric else {"rated"}
        return canonical_json({
            **rubric,
            "experiment": self.experiment.model_dump(mode="json", exclude=unused),
            "banks": [bank.model_dump(mode="json") for bank in self.banks],
            "scenarios": [[loaded.hash for loaded in arm.scenarios] for arm in self.arms],
        })  # fmt: skip

    @property
    def hash(self) -> str:
        """The sha256 of the description."""
        return canonical_hash(self.description)

    @property
    def banks(self) -> tuple[Bank, ...]:
        """All banks, those before the talk first."""
        return (*self.before, *self.after, *([self.ratings] if self.ratings else []))

    @property
    def scenarios(self) -> tuple[LoadedScenario, ...]:
        """The scenarios of all conditions, each once."""
        return tuple({loaded.hash: loaded for arm in self.arms for loaded in arm.scenarios}.values())

    def arm(self, condition: str) -> Arm:
        """Return a condition by its id. Raises KeyError."""
        found = {arm.condition.id: arm for arm in self.arms}
        return found[condition]


def find_experiment(reference: str | Path) -> Study:
    """Return the experiment that a path or the name of a bundled one means.

    Raises InvalidInput if there is none, ScenarioInvalid with all its problems, as file:line:column.
    """
    file = named_file(reference, "experiments")
    document = read_document(read_file(file), str(file), Experiment, what="an experiment")
    try:
        return _Reader(file, document, document.valid()).study()
    except ScenarioInvalid as error:
        error.hint = f"fix the file, then try: localsim experiment check {file}"
        raise


class _Reader:
    """Finds what one experiment names, and collects the problems with their places."""

    def __init__(self, file: Path, document: Document[Experiment], experiment: Experiment) -> None:
        self._file, self._document, self._experiment = file, document, experiment
        self._found: list[tuple[Place, str]] = []

    def study(self) -> Study:
        """Return the study. Raises ScenarioInvalid."""
        experiment = self._experiment
        before = self._banks("before", experiment.before)
        after = self._banks("after", experiment.after)
        ratings, rubric = self._ratings(), self._rubric()
        arms = [self._arm(number, condition) for number, condition in enumerate(experiment.conditions)]
        self._refuse_namesakes([arm for arm in arms if arm])
        self._document.valid(self._found)
        return Study(experiment, str(self._file), before, after, ratings, rubric, tuple(arm for arm in arms if arm))

    def _banks(self, part: str, names: Sequence[str]) -> tuple[Bank, ...]:
        found = [bank for number, name in enumerate(names) if (bank := self._bank((part, number), name))]
        ids = [bank.id for bank in found]
        for number, bank_id in enumerate(ids):
            if bank_id in ids[:number]:
                self._found.append(((part, number), f"two banks have the id {bank_id}"))
        return tuple(found)

    def _bank(self, place: Place, name: str) -> Bank | None:
        bank = self._named(place, find_bank, name)
        if bank is not None and not bank.items:
            self._found.append((place, f"bank {bank.id} makes its items for each person; a form needs listed items"))
            return None
        return bank and bank.model_copy(update={"items": offered(bank, bank.items)})

    def _ratings(self) -> Bank | None:
        wanted = self._experiment.ratings
        bank = self._bank(("ratings", "bank"), wanted.bank) if wanted else None
        if bank is None:
            return None
        if len(bank.items) > _MOST_RATINGS:
            self._found.append((("ratings", "bank"), f"at most {_MOST_RATINGS} items fit below a message"))
        for item in bank.items:
            if item.kind not in ("options", "scale"):
                self._found.append((("ratings", "bank"), f"item {item.id}: a rating has options or a scale"))
        return bank

    def _rubric(self) -> Rubric | None:
        """Return the rubric that participants answer, if they can see what it asks about, on scales that fit a page."""
        wanted = self._experiment.rated
        if wanted is None:
            return None
        place: Place = ("rated", "rubric")
        rubric = self._named(place, find_rubric, wanted.rubric)
        if rubric is None:
            return None
        if rubric.profiles:
            message = f"rubric {rubric.id} is about whole profiles, which participants do not see of the other side"
            self._found.append((place, message))
        for name, (least, most, _) in rubric.asked().items():
            if most - least >= _MOST_POINTS:
                message = f"dimension {name} has {most - least + 1} points; at most {_MOST_POINTS} fit on a page"
                self._found.append((place, message))
        return rubric

    def _named(self, place: Place, find: Callable[[str], T], name: str) -> T | None:
        """Return what a name means: a file beside the experiment, or something bundled; None with a problem."""
        near = self._file.parent / Path(name).expanduser()
        is_near = Path(name).suffix != "" and near.exists()
        try:
            return find(str(near) if is_near else name)
        except ScenarioInvalid:
            raise
        except InvalidInput as error:
            self._found.append((place, f"{name}: {error.message}" if is_near else error.message))
            return None

    def _arm(self, number: int, condition: Condition) -> Arm | None:
        place: Place = ("conditions", number)
        scenarios: list[LoadedScenario] = []
        for at, name in enumerate(condition.scenarios):
            scenarios += self._named((*place, "scenarios", at), lambda each: find_scenarios([each]), name) or []
        grant = self._grant(condition, (*place, "partner_sees"))
        if not scenarios:
            return None
        seats = [self._seat(condition, loaded, (*place, "seat")) for loaded in scenarios]
        arm = Arm(condition, tuple(scenarios), tuple(seats), grant)
        self._found += [((*place, key), message) for key, message in _odd(arm, self._experiment.limits)]
        limited = tuple(_limited(loaded, self._experiment.limits) for loaded in scenarios)
        return Arm(condition, limited, tuple(seats), grant)

    def _seat(self, condition: Condition, loaded: LoadedScenario, place: Place) -> str:
        names = loaded.scenario.names
        if condition.seat.isdecimal() and 1 <= int(condition.seat) <= len(names):
            return names[int(condition.seat) - 1]
        if condition.seat not in names:
            meant = suggest(condition.seat, names, inline=True)
            message = f"{loaded.scenario.id} has no role {condition.seat!r}{meant}; its roles are {', '.join(names)}"
            self._found.append((place, message))
        return condition.seat

    def _grant(self, condition: Condition, place: Place) -> Grant:
        try:
            found = parse(condition.partner_sees)
        except InvalidInput as error:
            self._found.append((place, error.message))
            return NO_ITEM
        if found.single or found.decoys or found.announced:
            self._found.append((place, "give items alone, such as goal,facts:2 or all"))
        return found.everyone

    def _refuse_namesakes(self, arms: Sequence[Arm]) -> None:
        hashes: dict[str, str] = {}
        for number, arm in enumerate(arms):
            for loaded in arm.scenarios:
                if hashes.setdefault(loaded.scenario.id, loaded.hash) != loaded.hash:
                    message = f"two different scenarios have the id {loaded.scenario.id}"
                    self._found.append((("conditions", number, "scenarios"), message))


def _odd(arm: Arm, limits: Bounds) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for what does not fit together in a condition."""
    condition, sizes = arm.condition, {len(loaded.scenario.names) for loaded in arm.scenarios}
    if condition.partner == PARTICIPANT:
        if len(sizes) > 1:
            yield "scenarios", "scenarios of participants among themselves have the same number of roles"
        elif condition.quota % arm.people:
            yield "quota", f"{arm.people} participants share a talk, so the quota is a multiple of {arm.people}"
    for loaded in arm.scenarios:
        family = family_of(loaded.scenario.family)
        if len(loaded.scenario.names) < 2:
            yield "scenarios", f"{loaded.scenario.id} has one role, so there is no other side"
        elif condition.mode not in family.modes:
            yield "mode", f"{family.name} in {condition.mode} mode: {family.only_modes}"
        if limits.messages and (loaded.scenario.moves or loaded.scenario.phases or loaded.scenario.game):
            yield "scenarios", f"{loaded.scenario.id} has rules of its own, so a limit of messages has no meaning there"


def _limited(loaded: LoadedScenario, limits: Bounds) -> LoadedScenario:
    """Return a scenario with the limits of an experiment; both sides are told of them, as of any limit."""
    own = loaded.scenario.limits
    changes: dict[str, int] = {}
    if limits.messages:
        changes["turns"] = min(own.turns, limits.messages * len(loaded.scenario.names))
    if limits.characters:
        changes["chars"] = min(own.chars, limits.characters)
    if not changes:
        return loaded
    # A copy by pydantic would keep the hash that the scenario has remembered.
    fields = {name: getattr(loaded.scenario, name) for name in Scenario.model_fields}
    scenario = Scenario(**fields | {"limits": own.model_copy(update=changes)})
    return LoadedScenario(scenario, loaded.answer, loaded.path)
