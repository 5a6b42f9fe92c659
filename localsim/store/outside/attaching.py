"""Makes attachments (see `attached`): finds the sources, and tries them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localsim.errors import DatabaseError, InvalidInput
from localsim.store.journal import journal_folder
from localsim.store.lock import patiently, scratch
from localsim.store.outside import attached
from localsim.store.outside.sources import Source, find, quoted

Say = Callable[[str], None]
PATIENCE_S = 15.0
"""Seconds to wait for another process that holds a source."""


@dataclass(frozen=True)
class Attached:
    """What an attachment shows."""

    path: Path
    sources: list[Source]
    runs: int
    episodes: int
    doubled: list[tuple[str, Path]]
    """Runs that an earlier source has too, and the source in which they are left out."""

    def as_json(self) -> dict[str, Any]:
        """Return the object that `db attach --json` prints."""
        return {
            "path": str(self.path),
            "sources": [str(each.path) for each in self.sources],
            "runs": self.runs,
            "episodes": self.episodes,
            "doubled": [{"run_id": run_id, "left_out": str(place)} for run_id, place in self.doubled],
        }


def attach_all(places: Iterable[str], output: Path, say: Say) -> Attached:
    """Write an attachment of the sources that `places` name to `output`; an attachment that is there is replaced.

    Raises InvalidInput for a place that has nothing, or an output that holds something else, and DatabaseError for a
    source that cannot be used.
    """
    _refuse_other(output)
    sources = list(flat(find(places)))
    if any(source.path.resolve() == output.resolve() for source in sources):
        raise InvalidInput("cannot attach a file to itself", where=str(output), hint="choose another -o")
    for source in sources:
        _tell_of_journals(source, say)
    making = output.with_name(f".{output.name}.new")
    making.unlink(missing_ok=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    episodes, parts = patiently(lambda: _opened(sources, making), output, PATIENCE_S, say)
    with scratch(making) as connection:
        attached.write_list(connection, sources)
    making.replace(output)
    return Attached(output, sources, len(parts.runs), episodes, parts.doubled)


def _opened(sources: list[Source], path: Path) -> tuple[int, attached.Parts]:
    """Open sources as a reader will; return the number of episodes, and what the sources hold."""
    with scratch() as connection:
        parts = attached.open_sources(connection, sources, path, None)
        row = connection.execute("SELECT count(*) FROM episodes").fetchone()
        return int(row[0]) if row else 0, parts


def _refuse_other(output: Path) -> None:
    """Refuse to replace a file that is not an attachment."""
    if not output.exists():
        return
    try:
        is_ours = _list_of(output) is not None
    except DatabaseError:
        is_ours = False
    if not is_ours:
        raise InvalidInput("this file is there, and is not an attachment", where=str(output), hint="choose another -o")


def flat(sources: Iterable[Source]) -> Iterable[Source]:
    """Yield sources, and in the place of an attachment those that it lists."""
    for source in sources:
        listed = _list_of(source.path) if source.kind == "database" else None
        yield from [source] if listed is None else listed


def _list_of(path: Path, say: Say = print) -> list[Source] | None:
    """Return the sources of an attachment; None for a database with rows of its own."""

    def read() -> list[Source] | None:
        with scratch() as connection:
            connection.execute(f"ATTACH {quoted(path)} AS listed (READ_ONLY)")
            return attached.read_list(connection, "listed")

    return patiently(read, path, PATIENCE_S, say)


def _tell_of_journals(source: Source, say: Say) -> None:
    waiting = [path.name for path in journal_folder(source.path).glob("*.jsonl")]
    if waiting:
        say(
            f"{source.path} has a journal that is not in the database yet ({waiting[0]}); "
            f"this takes it in: localsim runs list --db {source.path}"
        )
