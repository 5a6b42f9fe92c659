"""localsim: offline simulations of social conversations between LLM agents, and how much of it is omniscience.

    import localsim
    archive = localsim.open("localsim.duckdb")
    archive.episodes()                       # list of dictionaries
    archive.sql("SELECT mode, avg(words) FROM v_turns GROUP BY mode")

Importing this package loads nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from localsim.archive import Archive

__all__ = ["Archive", "__version__", "open"]


def open(path: str | None = None) -> Archive:
    """An archive to read while others write; `path` as for --db. The file is held only for each question."""
    from localsim.archive import Archive

    return Archive(path)


def __getattr__(name: str) -> Any:
    if name == "Archive":
        from localsim.archive import Archive

        return Archive
    raise AttributeError(f"module 'localsim' has no attribute {name!r}")
