"""Thresholds with which the leaks of a run were found: every report names them, and one run should have one set.

The labels `disclosed` and `hint` cannot be decided again from what is stored: a turn that the thresholds of its search
passed over has no row. So a report never applies other thresholds; `require` says how to search again.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from localsim.errors import InvalidInput
from localsim.evaluators.leaks import weights_of
from localsim.families import family_of
from localsim.leakage.detector import BUILT_IN, Weights, options_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries


@dataclass(frozen=True)
class Thresholds:
    """One set of thresholds behind the leaks of a run."""

    weights: str
    """`built-in`, or name and short hash of the file."""
    version: str
    episodes: int
    """Episodes that were searched with them."""
    fitted: Mapping[str, Any]
    """The labels of the fit; empty if they are not known."""
    accuracy: Mapping[str, Any]
    sensitivity: float | None
    """The share of false alarms that they allow; None if the stored file is older than this number."""

    @property
    def key(self) -> tuple[str, str]:
        """What tells them from others."""
        return self.weights, self.version

    @property
    def built_in(self) -> bool:
        """True for the built-in thresholds, whatever share of false alarms they allow."""
        return options_of(self.file)[0] == BUILT_IN

    @property
    def file(self) -> str:
        """Their name without the hash."""
        return BUILT_IN if self.weights == BUILT_IN else self.weights.rpartition(" ")[0]

    @property
    def files(self) -> str:
        """The names of the files with the labels of the fit."""
        return ", ".join(map(_printable, self.fitted.get("files", ())))

    @property
    def phrase(self) -> str:
        """Their name as a phrase."""
        allowed = "" if self.sensitivity is None else f", at most {100 * self.sensitivity:.3g}% false alarms"
        if self.built_in:
            return f"the built-in thresholds of the leakage detector, version {self.version}{allowed}"
        file = _printable(self.weights)
        if not self.fitted:
            return f"thresholds of the file {file}, which does not name its labels{allowed}"
        named = f"{self.fitted['labels']} labels, {_printable(self.fitted['date'])}; file {file}"
        return f"thresholds fitted to {self.files} ({named}){allowed}"

    @property
    def options(self) -> str:
        """The options that give them."""
        file, share = options_of(_printable(self.file))
        return f"--weights {shlex.quote(file)}" + ("" if share is None else f" --sensitivity {share:g}")


def thresholds(store: Store, run_id: str) -> list[Thresholds]:
    """Return the sets of thresholds behind the leaks of a run, the one with most episodes first.

    Families in which names decide are left out, because no threshold is used there.
    """
    found: dict[tuple[str, str], Thresholds] = {}
    for row in queries.searches(store, run_id):
        if not family_of(row.family).terms_disclose:
            kept = found.get((row.weights, row.version)) or _of(row)
            found[kept.key] = replace(kept, episodes=kept.episodes + row.episodes)
    return sorted(found.values(), key=lambda each: -each.episodes)


def _of(row: queries.Search) -> Thresholds:
    """Return thresholds with what their stored file says; searches that stored none used the built-in thresholds."""
    if row.text is None:
        usual = Weights.read()
        return Thresholds(row.weights, row.version, 0, {}, dict(usual.accuracy), usual.talk_share)
    data = json.loads(row.text)
    return Thresholds(row.weights, row.version, 0, data.get("fitted", {}), data["accuracy"], data.get("talk_share"))


def sentences(found: Iterable[Thresholds]) -> list[str]:
    """Return a sentence for each set of thresholds, with the labels that it was fitted to."""
    return [f"Leaks found with {each.phrase}." for each in found]


def warnings(store: Store, rows: Sequence[Thresholds], run_id: str, others: Iterable[str] = ()) -> list[str]:
    """Return warnings: a run (`rows`) with several sets of thresholds, and other runs beside it with other ones."""
    told = []
    if len(rows) > 1:
        parts = "; ".join(f"{each.episodes} episodes with {each.phrase}" for each in rows)
        told.append(
            f"Leaks of this run were found with different thresholds, so their rates cannot be compared: {parts}. "
            f"This command searches all episodes with the thresholds of the last search: localsim score {run_id}"
        )
    own = {each.key for each in rows}
    for other in others:
        theirs = thresholds(store, other)
        if own and theirs and {each.key for each in theirs} != own:
            names = "; ".join(each.phrase for each in theirs)
            told.append(
                f"Run {other} has leaks found with {names}: do not compare its rates of leaks with those of run "
                f"{run_id}. The same thresholds: localsim score {other} {rows[0].options}"
            )
    return told


def require(
    store: Store, runs: Iterable[str], weights: Weights | None, value: str | None, share: float | None = None
) -> None:
    """Raise InvalidInput for a run whose leaks were not all found with these weights and share of false alarms.

    `value` is the option that names `weights`. Without weights, those of each run are demanded with the share; without
    both, nothing is.
    """
    if weights is None and share is None:
        return
    options = [] if value is None else ["--weights", shlex.quote(value)]
    options += [] if share is None else ["--sensitivity", f"{share:g}"]
    for run_id in runs:
        wanted = (weights or weights_of(store, run_id)).at(share)
        other = [each for each in thresholds(store, run_id) if each.key != (wanted.identity, wanted.version)]
        if other or not queries.searches(store, run_id):
            found = f"has leaks found with {other[0].phrase}" if other else "was not searched for leaks"
            hint = f"localsim score {run_id} {' '.join(options)}"
            raise InvalidInput(f"run {run_id} {found}, not with {wanted.identity}", hint=hint)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in str(text))[:120]
