"""Files of other tools -> scenario files, and a run where they hold conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localsim.evaluators.evaluate import Notify
from localsim.runs.transfer.imported import Imported, Options, store_talks, write_files
from localsim.scenarios.formats import privacylens, sotopia_talks
from localsim.scenarios.formats.reading import Unmapped
from localsim.store.database import Store


@dataclass(frozen=True)
class Brought:
    """What came in."""

    files: tuple[Path, ...]
    """The scenario files that were written."""
    unmapped: tuple[Unmapped, ...]
    run: Imported | None = None
    """The run of the conversations; None if the files hold none."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of conversations."""

    def as_json(self) -> dict[str, Any]:
        """The object that `scenarios import --json` prints."""
        return {
            "scenarios": [str(file) for file in self.files],
            "run": self.run.as_json() if self.run else None,
            "left_out": dict(self.left_out),
            "unmapped": [vars(each) for each in self.unmapped],
        }


def bring_sotopia(store: Store, files: Sequence[Path], folder: Path, pairs: int, leaks: bool, say: Notify) -> Brought:
    """Write the scenarios of Sotopia's files to a folder, and store their conversations as a run.

    `pairs` is the most pairs of characters for a situation. Raises InvalidInput for a defect; then nothing is stored.
    """
    found = sotopia_talks.read(files, pairs)
    run = None
    if found.talks:
        options = Options(form="sotopia", label="unknown model", leaks=leaks, kind="imported")
        run = store_talks(store, files, options, say, lambda: (list(found.talks), found.left_out))
    return Brought(tuple(write_files(found.scenarios, folder)), found.unmapped, run, found.left_out)


def bring_privacylens(files: Sequence[Path], folder: Path) -> Brought:
    """Write the seeds of PrivacyLens's files as scenarios to a folder. Raises InvalidInput."""
    scenarios, unmapped = privacylens.read(files)
    return Brought(tuple(write_files(scenarios, folder)), unmapped)
