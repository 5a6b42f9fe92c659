"""The trial of a model: four short scenarios in the three modes, and what it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from localsim import paths
from localsim.conversation.episode import MODES
from localsim.conversation.wording.layouts import LAYOUTS
from localsim.models.registry import layout_of
from localsim.reports.evidence import playing
from localsim.runs.plan import Plan
from localsim.runs.telling import called
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.schema import version

SCENARIOS = ("mutual_friends_01", "craigslist_01", "roommates", "a_bad_week")
"""A search, a bargain, an everyday talk and a situation: two people each, and at most 20 turns."""

HELD: Mapping[str, str] = {"starter": "11 of 12"}
"""Models that hold the talks of a trial, with how many played. Only what was measured stands here."""
RULE = (
    "The rule of choice: the talks are ordered by the share of their turns with their most frequent fault. The worst "
    "ones are the first two of those that do not play. The typical ones are the middle one of all others, and the "
    "nearest one of another scenario."
)
WORST, LINES = 2, 3
"""Worst talks that are shown, and turns of each talk."""


@dataclass(frozen=True)
class Excerpt:
    """Some turns of a talk: of the worst ones those that show the fault, of the typical ones those in the middle."""

    kind: str
    """worst or typical."""
    episode_id: str
    scenario_id: str
    mode: str
    fault: str
    """Empty if the talk plays."""
    turns: Sequence[queries.Said]

    @property
    def heading(self) -> str:
        """The line above the turns."""
        state = f"does not play: {self.fault}" if self.fault else "plays"
        return f"{self.kind} talk, {self.scenario_id} in {self.mode} ({state}; {self.episode_id})"


@dataclass(frozen=True)
class Trial:
    """The talks of a trial: those that play and all, by mode, with excerpts."""

    model: str
    run_id: str
    modes: Mapping[str, tuple[int, int]]
    excerpts: tuple[Excerpt, ...]

    @property
    def total(self) -> tuple[int, int]:
        """The talks that play and all, in all modes."""
        return sum(played for played, _ in self.modes.values()), sum(talks for _, talks in self.modes.values())

    @property
    def holds(self) -> bool:
        """True unless too many of all talks do not play; a mode alone has too few talks to decide."""
        played, talks = self.total
        return talks > 0 and not playing.too_many(talks - played, talks)

    @property
    def verdict(self) -> str:
        """If the model holds the talks, in a sentence."""
        played, talks = self.total
        modes = ", ".join(f"{mode} {some} of {every}" for mode, (some, every) in self.modes.items())
        can = "holds" if self.holds else "does not hold"
        return f"{called(self.model)} {can} these conversations: {played} of {talks} talks play ({modes})."

    @property
    def instead(self) -> str:
        """The models to take instead; '' if the model holds the talks or none is known."""
        known = [f"{name} ({count} play)" for name, count in HELD.items() if name != self.model]
        return "" if self.holds or not known else f"Known to hold them: {', '.join(known)}."

    @property
    def settings(self) -> str:
        """The settings of the trial, which are the best ones that the registry knows for the model."""
        layout = LAYOUTS[layout_of(self.model)]
        return f"Best settings known: layout {layout.name}, temperature {layout.sampling.temperature}. {layout.tells}"

    def as_json(self) -> dict[str, Any]:
        """Return the object of `models try --json`."""
        named = {"model": self.model, "run_id": self.run_id, "holds": self.holds, "verdict": self.verdict}
        modes = {mode: {"plays": some, "talks": every} for mode, (some, every) in self.modes.items()}
        found = {**named, "modes": modes, "instead": self.instead, "settings": self.settings}
        return {**found, "excerpts": list(map(asdict, self.excerpts)), "rule": RULE}


def trial(store: Store, run_id: str, model: str, modes: Sequence[str]) -> Trial:
    """Return what a run of `trial_of` found."""
    talks = playing.talks_of(store, run_id)
    counts = {mode: [each.plays for each in talks if each.condition.mode == mode] for mode in modes}
    shares: dict[str, float] = {}
    for row in queries.scores(store, run_id):
        if row.name.startswith("play_") and row.value is not None:
            shares[row.episode_id] = max(row.value, shares.get(row.episode_id, 0.0))
    ordered = sorted(talks, key=lambda each: (each.plays, -shares.get(each.episode_id, 0.0)))
    worst = [each for each in ordered if not each.plays][:WORST]
    rest = ordered[len(worst) :]
    near = sorted(rest, key=lambda each: abs(rest.index(each) - len(rest) // 2))
    typical = near[:1] + [each for each in near if each.scenario_id != near[0].scenario_id][:1]
    chosen = [("worst", each) for each in worst] + [("typical", each) for each in typical]
    excerpts = tuple(_excerpt(store, kind, each) for kind, each in chosen)
    return Trial(model, run_id, {mode: (sum(own), len(own)) for mode, own in counts.items()}, excerpts)


def _excerpt(store: Store, kind: str, talk: queries.PlayVerdict) -> Excerpt:
    spoken = [said for said in queries.words(store, talk.episode_id) if said.text and said.speaker]
    shown = [said for said in spoken if said.turn in talk.turns] if not talk.plays else []
    start = max(0, (len(spoken) - LINES) // 2)
    turns = (shown or spoken[start:])[:LINES]
    return Excerpt(kind, talk.episode_id, talk.scenario_id, talk.condition.name, talk.fault, turns)


def trial_of(model: str, *, parallel: int | None = None, gpu: str = "auto", threads: int | None = None) -> Plan:
    """Return the plan of a model's trial: one talk for each scenario and mode, with the same seeds for all models."""
    scenarios = tuple(find_scenarios(SCENARIOS))
    return Plan(scenarios, MODES, model, parallel=parallel, gpu=gpu, threads=threads)


def trials_path() -> Path:
    """Return the database of all trials on this machine; another version of the schema has another one."""
    return paths.cache_folder() / f"trials-{version()}.duckdb"
