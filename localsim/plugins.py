"""Entry points of other packages, which add task families, evaluators and backends. Loaded only when named.

    [project.entry-points."localsim.backends"]
    mine = "my_package:open_backend"

https://packaging.python.org/en/latest/specifications/entry-points/
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from localsim.errors import InvalidInput

Kind = Literal["families", "evaluators", "backends"]


def names(kind: Kind) -> list[str]:
    """Return the names of the installed plugins, without importing them."""
    return sorted({point.name for point in _points(kind)})


def make(kind: Kind, name: str, *arguments: Any) -> Any:
    """Call the entry point of a name and return its result. Raises InvalidInput if there is none or it fails."""
    found = [point for point in _points(kind) if point.name == name]
    if not found:
        known = ", ".join(names(kind)) or "none"
        raise InvalidInput(f"no {kind} plugin {name!r}", hint=f"installed ones: {known}")
    package = found[0].dist.name if found[0].dist else found[0].value
    try:
        made = found[0].load()(*arguments)
    except Exception as error:
        raise InvalidInput(
            f"{kind} plugin {name!r} cannot be loaded: {type(error).__name__}: {error}",
            hint=f"repair or remove the package {package}",
        ) from error
    version = getattr(made, "version", None)
    # Views choose the newest scores by this number.
    if kind != "backends" and not (isinstance(version, str) and version.isdecimal()):
        raise InvalidInput(f"{kind} plugin {name!r} has the version {version!r}", hint='a whole number as text, "1"')
    if not isinstance(getattr(made, "name", None), str):
        raise InvalidInput(f"{kind} plugin {name!r} has no name", hint=f"repair the package {package}")
    return made


def _points(kind: Kind) -> list[EntryPoint]:
    return list(entry_points(group=f"localsim.{kind}"))
