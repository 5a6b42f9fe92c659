"""The table of controls: players whose behaviour is known play every family, and every measure must say what it must.

Families and evaluators declare the rows (`conversation.controls`), and `runs.scripted` plays them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from localsim import stats
from localsim.conversation.controls import Control, exactly
from localsim.conversation.episode import SIMULATED, Mode
from localsim.errors import InvalidInput, suggest
from localsim.evaluators.checks import CHECKS
from localsim.evaluators.leaks import Leaks
from localsim.evaluators.play import PLAY
from localsim.evaluators.style import STYLE
from localsim.families import FAMILIES, family_of
from localsim.reports.measures import Cell, estimate, measures_of
from localsim.runs.scripted import controlled

COUNTED_CONTROLS = (
    exactly("parrot", "stale_rate", 1, "it says one sentence in every turn"),
    exactly("honest", "stale_rate", 0, "it asks or offers something new until it leaves"),
    exactly("parrot", "malformed_rate", 0, "each of its replies is one turn"),
    exactly("garbler", "malformed_rate", 1, "each of its replies is empty"),
    exactly("parrot", "repaired_rate", 0, "its turns are speech alone"),
    exactly("quoter", "repaired_rate", 1, "quotation marks stand around each of its turns"),
    exactly("parrot", "truncated_rate", 0, "its turns are short"),
    exactly("chatterbox", "truncated_rate", 1, "each of its turns fills the limit of characters"),
)
"""Controls of the measures of replies and turns, which have no scores."""
SCENARIOS = 40
"""Scenarios of each family and task."""


@dataclass(frozen=True)
class Checked:
    """One control in one mode: the measured value and the verdict."""

    family: str
    mode: Mode
    control: Control
    value: float | None
    n: int
    """Number of scored episodes."""

    @property
    def passed(self) -> bool:
        """True if the value is what the control says."""
        return self.control.passes(self.value, self.n)

    def as_json(self) -> dict[str, Any]:
        """Return the row that `localsim controls --json` prints."""
        allowed = self.control.interval(self.n)
        return {
            "family": self.family,
            "task": self.control.task or "default",
            "player": self.control.player,
            "mode": self.mode,
            "measure": self.control.measure,
            "value": None if self.value is None else round(self.value, 4),
            "low": allowed and round(allowed[0], 4),
            "high": allowed and round(allowed[1], 4),
            "n": self.n,
            "passed": self.passed,
            "why": self.control.why,
        }


def controls_of(family: str) -> list[Control]:
    """Return the controls of a family: its own, and in localsim's families those of measures that every family has."""
    if family not in FAMILIES.own:
        return list(family_of(family).controls)
    general = [*STYLE.controls, *PLAY.controls, *CHECKS.controls, *Leaks.controls, *COUNTED_CONTROLS]
    return [*family_of(family).controls, *general]


def run_controls(families: Sequence[str] = (), scenarios: int = SCENARIOS, player: str | None = None) -> list[Checked]:
    """Play the controls of some families (none: localsim's own), those of one player if it is named, in order.

    Raises InvalidInput if there is no such family.
    """
    checked: list[Checked] = []
    for family in families or FAMILIES.own:
        if family not in FAMILIES:
            message = f"no task family {family!r}{suggest(family, FAMILIES, inline=True)}"
            raise InvalidInput(message, hint=f"families are {', '.join(FAMILIES)}")
        wanted = (control for control in controls_of(family) if player in (None, control.player))
        played = stats.grouped(((control.player, control.task), control) for control in wanted)
        for (name, task), controls in played.items():
            checked += _check(family, name, task, controls, scenarios)
    return checked


def table(checked: Sequence[Checked]) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows for people: a row for each control, a column for each mode."""
    by_control: dict[int, dict[str, Checked]] = defaultdict(dict)
    for each in checked:
        by_control[id(each.control)][each.mode] = each
    rows = []
    modes = [mode for mode in SIMULATED if any(mode in by_mode for by_mode in by_control.values())]
    for by_mode in by_control.values():
        one = next(iter(by_mode.values()))
        values = [_number(by_mode[mode].value) if mode in by_mode else "" for mode in modes]
        verdict = "ok" if all(each.passed for each in by_mode.values()) else "FAILS"
        control = one.control
        rows.append([control.player, control.task, control.measure, *values, _must(one), verdict, control.why])
    return ["player", "task", "measure", *modes, "must be", "", "because"], rows


def _must(checked: Checked) -> str:
    allowed = checked.control.interval(checked.n)
    if allowed is None:
        return "no value"
    return _number(allowed[0]) if allowed[0] == allowed[1] else f"{_number(allowed[0])} to {_number(allowed[1])}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def _check(family: str, player: str, task: str, controls: Sequence[Control], scenarios: int) -> Iterator[Checked]:
    modes = tuple(mode for mode in SIMULATED if any(mode in control.modes for control in controls))
    cells = play(family, player, modes, task, scenarios)
    measures = {measure.key: measure for measure in measures_of([family])}
    for control in controls:
        for mode in control.modes:
            found = estimate(measures[control.measure], cells[mode])
            yield Checked(family, mode, control, found.value, found.n)


def play(
    family: str, player: str, modes: Sequence[Mode], task: str = "", scenarios: int = SCENARIOS
) -> dict[Mode, Cell]:
    """Let a scripted player play generated scenarios, and return a scored cell for each mode."""
    found = controlled(family, player, modes, task, scenarios)
    return {mode: Cell(family, **vars(sample)) for mode, sample in found.items()}
