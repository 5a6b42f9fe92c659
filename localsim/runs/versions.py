"""The versions of what a text depends on."""

from __future__ import annotations

import platform
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from localsim import __version__
from localsim.conversation import prompts


@cache
def versions() -> dict[str, str]:
    """Return the versions of localsim, its prompts and the libraries that a text depends on."""
    numbers = {"localsim": __version__, "prompts": prompts.VERSION, "python": platform.python_version()}
    for package in ("llama-cpp-python", "duckdb", "sentence-transformers", "numpy"):
        try:
            numbers[package] = version(package)
        except PackageNotFoundError:
            numbers[package] = "not installed"
    with suppress(PackageNotFoundError):
        numbers["openvino"] = version("openvino")
    return numbers
