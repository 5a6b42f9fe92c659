"""Entry points of other packages, which add families, evaluators, backends, languages, minds. Loaded only when named.

    [project.entry-points."localsim.backends"]
    mine = "my_package:open_backend"

https://packaging.python.org/en/latest/specifications/entry-points/
"""

from __future__ import annotations

import inspect
import re
import sys
import traceback
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from types import FrameType, ModuleType, TracebackType
from typing import Any, Literal

from localsim.errors import InvalidInput, PluginFailed, suggest

Kind = Literal["families", "evaluators", "backends", "languages", "minds"]
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
    if len(found) > 1:
        both = " and ".join(f"{point.value} of the package {_package(point)}" for point in found)
        hint = f"give one another name, or remove it: pip uninstall {_package(found[-1])}"
        raise InvalidInput(f"there are {len(found)} {kind} plugins {name!r}: {both}", hint=hint)
    _loading[kind, name] = found[0]
    try:
        made = found[0].load()(*arguments)
    except (Exception, SystemExit) as error:
        raise _unloadable(kind, found[0], error) from error
    version = getattr(made, "version", None)
    # Views choose the newest scores by this number.
    if kind in ("families", "evaluators") and not (isinstance(version, str) and version.isdecimal()):
        message = f"{kind} plugin {name!r} has the version {version!r}"
        raise InvalidInput(message, where=place_of(made, "version"), hint='a whole number as text, "1"')
    if not isinstance(getattr(made, "name", None), str):
        hint = f"repair the package {_package(found[0])}"
        raise InvalidInput(f"{kind} plugin {name!r} has no name", where=place_of(made), hint=hint)
    return made


def _unloadable(kind: Kind, point: EntryPoint, error: BaseException) -> InvalidInput:
    """Return the error of a plugin that could not be imported or made."""
    return InvalidInput(
        f"{kind} plugin {point.name!r} ({point.value}) cannot be loaded: {_said(error)}",
        where=_where(error) or getattr(sys.modules.get(point.module), "__file__", None),
        hint=f"repair or remove the package {_package(point)}",
    )


def refuse_namesake(kind: Kind, name: str) -> None:
    """Raise InvalidInput if a plugin has this name of something of localsim's own, which would be used instead."""
    for point in _points(kind):
        if point.name == name:
            message = f"localsim has {kind} of its own, and one is called {name!r} as {point.value} is"
            raise InvalidInput(message, hint=f"give that of the package {_package(point)} another name")


def place_of(made: object, name: str = "") -> str | None:
    """Return `file:line` of the class of an object, or of the line in it that sets or defines a name.

    None for an object without a source, such as a class that was typed at a prompt.
    """
    kind = made if isinstance(made, type) else type(made)
    try:
        lines, first = inspect.getsourcelines(kind)
        file = inspect.getsourcefile(kind)
    except (OSError, TypeError):
        return None
    sets = re.compile(rf"\s+(?:def )?(?:\w+, *)*{re.escape(name)}\b *[,=(:]")
    return f"{file}:{first + next((number for number, line in enumerate(lines) if name and sets.match(line)), 0)}"


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
    frame, line, blamed, function = found
    within = f" in {function}" if function else ""
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
    from pydantic import ValidationError  # takes long, and most commands end without an error

    if isinstance(error, ValidationError):
        return f"{error.title}: " + "; ".join(_refused(dict(each)) for each in error.errors(include_url=False))
    return f"{type(error).__name__}: {error}{_instead(error) if isinstance(error, AttributeError) else ''}"


def _instead(error: AttributeError) -> str:
    """Return what could have been meant instead of an attribute that a module or an object of localsim lacks."""
    known = [name for name in dir(error.obj) if not name.startswith("_")]
    if isinstance(error.obj, ModuleType):
        return suggest(error.name or "", known, inline=True)
    return f"; it has {', '.join(known)}" if type(error.obj).__module__.startswith("localsim.") else ""


def _refused(problem: dict[str, Any]) -> str:
    """Return one problem of a value, such as `goal: Field required`."""
    place = ".".join(map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":
        return f"there is no field {place!r}"
    given = "" if problem["type"] in ("missing", "conflict") else f", not {problem['input']!r}"
    return f"{place}{': ' if place else ''}{problem['msg']}{given}"


def _place(trace: TracebackType | None) -> tuple[FrameType, int, list[tuple[Kind, str]], str] | None:
    """Return the innermost frame that is a plugin's, its line, the plugins that it can belong to, and the function.

    A loop in brackets has a frame of its own in Python 3.11; the function is the one around it, '' outside of any.
    """
    found, function = None, ""
    for frame, line in traceback.walk_tb(trace):
        if blamed := list(_owners(frame)):
            inside = frame.f_code.co_name
            function = function if inside.startswith("<") else inside
            found = frame, line, blamed, function
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
