"""Bank files: YAML -> validated `Bank`, found by path or by the name of a bundled one."""

from __future__ import annotations

from pathlib import Path

from localsim.families.interviews.items import Bank
from localsim.scenarios.documents import named_file, read_document, read_file, shipped_files


def load_bank(path: str | Path) -> Bank:
    """Read one file. Raises InvalidInput if it cannot be read, ScenarioInvalid with all its problems, as
    file:line:column.
    """
    file = Path(path)
    return read_document(read_file(file), str(file), Bank, what="a bank").valid()


def find_bank(reference: str) -> Bank:
    """Return the bank that a path or a name means. Raises InvalidInput if there is none."""
    return load_bank(named_file(reference, "banks"))


def bank_files() -> list[Path]:
    """Return the files of the banks that ship with localsim."""
    return shipped_files("banks")
