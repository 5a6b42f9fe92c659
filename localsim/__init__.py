"""localsim: offline simulations of social conversations between LLM agents, and measures of their omniscience.

    import localsim
    done = localsim.run("mutual_friends_01", modes="all", episodes=2)
    done.scores(), done.compare(), done.report("report.html")
    archive = localsim.open("localsim.duckdb")
    archive.episodes()                       # list of dictionaries
    archive.sql("SELECT mode, avg(words) FROM v_turns GROUP BY mode")

Importing this package loads nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from localsim.api import Archive, Run, Simulated, run

__all__ = ["Archive", "Run", "Simulated", "__version__", "open", "run"]


def open(path: str | None = None) -> Archive:
    """Return an archive to read while other processes write; `path` as for --db. Each query opens the file briefly."""
    archive: Archive = import_module("localsim.api").Archive(path)  # not an import statement: the package has no layer
    return archive


_LATER = ("Archive", "Run", "Simulated", "run")
"""Names of `localsim.api` that are imported on first use."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module("localsim.api"), name)
    raise AttributeError(f"module 'localsim' has no attribute {name!r}")
