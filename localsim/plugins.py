"""Entry points of other packages, which add task families, evaluators and backends. Loaded only when named.

    [project.entry-points."localsim.backends"]
    mine = "my_package:open_backend"

https://packaging.python.org/en/latest/specifications/entry-points/
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from types import FrameType, TracebackType
from typing import Any, Literal

from localsim.errors import InvalidInput, PluginFailed

Kind = Literal["families", "evaluators", "backends"]
_loading: dict[tuple[Kind, str], EntryPoint] = {}
"""The entry points that have been asked for in this process: only their packages can be to blame for an error."""


def names(kind: Kind) -> list[str]:
    """Return the names of the installed plugins, without importing them."""
    return sorted({point.name for point in _points(kind)})


def make(kind: Kind, name: str, *arguments: Any) -> Any:
    """Call the entry point of a name and return its result. Raises InvalidInput if there is none or it fails."""
    found = [point for point in _points(kind) if point.name == name]
    if not found:
        known = ", ".join(names(kind)) or "none"
        raise InvalidInput(f"no {kind} plugin {name!r}", hint=f"installed ones: {known}")
    _loading[kind, name] = found[0]
    package = _package(found[0])
    try:
        made = found[0].load()(*arguments)
    except Exception as error:
        raise InvalidInput(
            f"{kind} plugin {name!r} cannot be loaded: {type(error).__name__}: {error}",
            where=_where(error),
            hint=f"repair or remove the package {package}",
        ) from error
    version = getattr(made, "version", None)
    # Views choose the newest scores by this number.
    if kind != "backends" and not (isinstance(version, str) and version.isdecimal()):
        raise InvalidInput(f"{kind} plugin {name!r} has the version {version!r}", hint='a whole number as text, "1"')
    if not isinstance(getattr(made, "name", None), str):
        raise InvalidInput(f"{kind} plugin {name!r} has no name", hint=f"repair the package {package}")
    return made


def where_of(kind: Kind, name: str) -> str:
    """Return the place of a plugin for people: `my_package:StagHunt of the package my-package`."""
    found = next((point for point in _points(kind) if point.name == name), None)
    return f"{found.value} of the package {_package(found)}" if found else name


# ---- errors inside a plugin ----------------------------------------------------------------------------------------


def failure(error: BaseException) -> PluginFailed | None:
    """Return the error that names the plugin, its file and its line if an exception came through a plugin's code.

    None if no line of a plugin is in the traceback: then the fault is localsim's own.
    """
    found = _place(error.__traceback__)
    if found is None:
        return None
    frame, line, blamed = found
    function = frame.f_code.co_name
    within = "" if function.startswith("<") else f" in {function}"
    where = f"{frame.f_code.co_filename}:{line}"
    return PluginFailed(f"{_failed(blamed, within)}: {_said(error)}", where=where, hint=_HINT)


_HINT = "repair this line of the plugin; LOCALSIM_DEBUG=1 shows the whole traceback"


def _where(error: BaseException) -> str | None:
    """Return file and line of an error while a plugin is imported or made, if it has one."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    failed = failure(error)
    return failed.where if failed else None


def _failed(blamed: list[tuple[Kind, str]], within: str) -> str:
    """Return which plugins failed; several classes of one file can share the function that did."""
    named = " or ".join(f"{kind} plugin {name!r} ({_loading[kind, name].value})" for kind, name in blamed)
    return f"{named} failed{within}"


def _said(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if "errors.pydantic.dev" not in line]
    return f"{type(error).__name__}: " + "\n".join(lines)


def _place(trace: TracebackType | None) -> tuple[FrameType, int, list[tuple[Kind, str]]] | None:
    """Return the innermost frame that is a plugin's, its line, and the plugins that it can belong to."""
    found = None
    for frame, line in traceback.walk_tb(trace):
        if blamed := list(_owners(frame)):
            found = frame, line, blamed
    return found


def _owners(frame: FrameType) -> Iterator[tuple[Kind, str]]:
    """Yield the plugins of the package of a frame; only the one whose method it runs, if it runs a method."""
    module = str(frame.f_globals.get("__name__", ""))
    package = module.partition(".")[0]
    near = {key: point for key, point in _loading.items() if point.module.partition(".")[0] == package}
    own = type(frame.f_locals.get("self")).__name__
    exact = [key for key, point in near.items() if point.module == module and point.attr == own]
    yield from exact or near


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.value


def _points(kind: Kind) -> list[EntryPoint]:
    return list(entry_points(group=f"localsim.{kind}"))
