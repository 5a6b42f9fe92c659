"""Bank files: YAML -> validated `Bank`, found by path or by the name of a bundled one."""

from __future__ import annotations

from pathlib import Path

from localsim import paths
from localsim.errors import InvalidInput, suggest
from localsim.families.interviews.items import Bank
from localsim.scenarios.documents import read_document, read_file


def load_bank(path: str | Path) -> Bank:
    """Read one file. Raises InvalidInput if it cannot be read, ScenarioInvalid with all its problems, as
    file:line:column.
    """
    file = Path(path)
    return read_document(read_file(file), str(file), Bank, what="a bank").valid()


def find_bank(reference: str) -> Bank:
    """Return the bank that a path or a name means. Raises InvalidInput if there is none."""
    file = Path(reference).expanduser()
    if file.suffix or file.exists():
        return load_bank(file)
    shipped = {each.stem: each for each in bank_files()}
    if reference in shipped:
        return load_bank(shipped[reference])
    hint = f"banks are {', '.join(shipped)}, or a file ID.yaml"
    raise InvalidInput(f"no bank {reference!r}{suggest(reference, shipped, inline=True)}", hint=hint)


def bank_files() -> list[Path]:
    """Return the files of the banks that ship with localsim."""
    return sorted((paths.bundled("scenarios") / "banks").glob("*.yaml"))
