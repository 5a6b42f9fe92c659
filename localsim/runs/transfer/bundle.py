"""One archive of a run: everything that its texts depend on, and the texts.

    manifest.json      plan, models with their sha256, build, device, versions; the sha256 of every other file
    scenarios/*.yaml   the scenarios with their answer keys
    replies/*.jsonl    the lines of scripted players that read a file
    episodes/*.jsonl   one file for each episode: how it ended, its turns, and the raw replies

The same run gives the same bytes: files are in order, without compression, and have one time. A file of `episodes`
holds nothing that another run of the same plan would have differently, so two runs can be compared file by file.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localsim import paths
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput, writing
from localsim.scenarios.parse import dump_scenario, parse_scenario
from localsim.store.database import Store
from localsim.store.episodes import stored_scenarios
from localsim.store.queries import runs as queries

FORMAT = 1
MANIFEST = "manifest.json"
REPLIES = "scripted:@"
"""Start of the name of a scripted player that reads its lines from a file."""
_TIME = (1980, 1, 1, 0, 0, 0)
_MOST_BYTES = 2_000_000_000
_MOST_TIMES = 50
"""A file may unpack to so many times its size; texts shrink to a tenth at best, and bundles are not compressed."""
_SMALL = 20_000_000
"""Bytes that any archive may unpack to."""
HINT = "localsim bundle RUN -o FILE writes an archive"


@dataclass(frozen=True)
class Archive:
    """The content of an archive, with every checksum compared."""

    manifest: Mapping[str, Any]
    scenarios: Mapping[str, LoadedScenario]
    """Hash -> scenario."""
    episodes: Mapping[str, bytes]
    """Name of a file -> its bytes."""
    replies: Mapping[str, bytes]
    """Model name -> lines of its file."""


def bundle(store: Store, run_id: str, target: Path) -> dict[str, Any]:
    """Write the archive of a run, and return its manifest. Raises InvalidInput where it cannot be written."""
    with store.held() as held:
        run = queries.run_row(held, run_id)
        scenarios = stored_scenarios(held, run_id)
        files = episodes_of(held, run_id)
    if not files:
        raise InvalidInput("the run has no ended episode", where=run_id, hint=f"localsim resume {run_id}")
    models = json.loads(run["models_json"])
    for name in sorted(model for model in models if model.startswith(REPLIES)):
        files[_replies_file(name)] = _read(Path(name.removeprefix(REPLIES)))
    for loaded in scenarios.values():
        name = f"scenarios/{loaded.scenario.id}.yaml"
        if name in files:  # imported conversations may use one id for two scenarios
            name = f"scenarios/{loaded.scenario.id}_{loaded.hash[:8]}.yaml"
        files[name] = dump_scenario(loaded.document).encode()
    manifest = _manifest(run, models, files)
    text = paths.json_text(manifest, indent=1, sort_keys=True) + "\n"
    _write(target, {MANIFEST: text.encode(), **dict(sorted(files.items()))})
    return manifest


def _manifest(run: Mapping[str, Any], models: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "run_id": run["run_id"],
        "name": run["name"],
        "started_utc": run["started_utc"].isoformat(),
        "status": run["status"],
        "repro": run["repro"],
        "parallel": run["parallel"],
        "plan": json.loads(run["plan_json"]),
        "models": models,
        "versions": json.loads(run["versions_json"]),
        "device": device(),
        "files": {name: sha256(content) for name, content in sorted(files.items())},
    }


def device() -> dict[str, Any]:
    """Return what is known about this machine, on which the archive is written; the build is with each model."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": platform.processor(),
        "cores": os.cpu_count(),
    }


def sha256(content: bytes) -> str:
    """Return the sha256 of bytes, in hex."""
    return hashlib.sha256(content).hexdigest()


def _replies_file(model: str) -> str:
    return f"replies/{sha256(model.encode())[:16]}.jsonl"


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        hint = "the run needs this file to be played again"
        raise InvalidInput(f"cannot be read: {error.strerror}", where=str(file), hint=hint) from error


def episodes_of(store: Store, run_id: str) -> dict[str, bytes]:
    """Return name of a file -> bytes for each ended episode of a run."""
    episodes, turns, replies = queries.texts_of_run(store, run_id)
    files = {}
    for row in episodes:
        episode_id = row.pop("episode_id")
        own = turns.get(episode_id, ())
        lines = [
            {"episode": row},
            # Archives had no `repaired` before turns were repaired.
            *({"turn": {name: turn[name] for name in turn if name != "repaired" or turn[name]}} for turn in own),
            *({"reply": reply} for reply in replies.get(episode_id, ())),
        ]
        files[_name_of(row)] = "".join(f"{paths.json_text(line)}\n" for line in lines).encode()
    return files


def _name_of(row: Mapping[str, Any]) -> str:
    see = f"+{re.sub(r'[^A-Za-z0-9]+', '-', row['see'])}" if row["see"] else ""
    variant = f"_v{row['variant']}" if row["variant"] else ""
    return f"episodes/{row['scenario']}/{row['mode']}{see}{variant}_{row['episode_index']:04d}.jsonl"


def _write(target: Path, files: Mapping[str, bytes]) -> None:
    stored = zipfile.ZIP_STORED
    with writing(target), paths.whole_file(target) as part, zipfile.ZipFile(part, "w", stored) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name, _TIME)
            info.create_system = 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)


# ---- reading --------------------------------------------------------------------------------------------------------


def open_archive(file: Path) -> Archive:
    """Read an archive and compare every checksum. Raises InvalidInput, which names what was changed."""
    contents = _contents(file)
    manifest = _manifest_of(contents, file)
    listed = manifest["files"]
    lines = [_replies_file(name) for name in manifest["models"] if name.startswith(REPLIES)]
    for name, expected in (dict.fromkeys(lines) | listed).items():
        if name not in contents:
            raise InvalidInput(f"{name} is missing", where=str(file), hint=HINT)
        if sha256(contents[name]) != expected:
            raise InvalidInput(f"{name} was changed after the archive was written", where=str(file), hint=HINT)
    if others := sorted(set(contents) - set(listed) - {MANIFEST}):
        raise InvalidInput(f"{others[0]} does not belong to it", where=str(file), hint=HINT)
    scenarios = {}
    for name in listed:
        if name.startswith("scenarios/"):
            loaded = parse_scenario(_text(contents[name], f"{file}/{name}"), f"{file}/{name}")
            scenarios[loaded.hash] = loaded
    models = {name: contents[_replies_file(name)] for name in manifest["models"] if name.startswith(REPLIES)}
    episodes = {name: contents[name] for name in listed if name.startswith("episodes/")}
    for name, content in episodes.items():
        for line in filter(None, _text(content, f"{file}/{name}").split("\n")):
            try:
                whole = isinstance(paths.json_value(line), dict)
            except ValueError:
                whole = False
            if not whole:
                raise InvalidInput("a line is no object of JSON", where=f"{file}/{name}", hint=HINT)
    return Archive(manifest, scenarios, episodes, models)


def _text(content: bytes, where: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput("not UTF-8 text", where=where, hint=HINT) from error


def _contents(file: Path) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(file) as archive:
            most = min(_MOST_BYTES, max(_SMALL, _MOST_TIMES * file.stat().st_size))
            if sum(info.file_size for info in archive.infolist()) > most:
                raise InvalidInput(f"it unpacks to more than {most:,} bytes", where=str(file), hint=HINT)
            return {info.filename: archive.read(info) for info in archive.infolist()}
    except FileNotFoundError as error:
        raise InvalidInput("no such file", where=str(file), hint=HINT) from error
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise InvalidInput(f"no archive of a run: {error}", where=str(file), hint=HINT) from error


def _manifest_of(contents: Mapping[str, bytes], file: Path) -> dict[str, Any]:
    try:
        manifest = paths.json_value(contents[MANIFEST].decode())
        known = manifest["format"]
        needed = [manifest[name] for name in ("plan", "models", "versions", "files", "repro")]
        if not all(isinstance(part, dict) for part in needed[:4]):
            raise TypeError("plan, models, versions and files are objects")
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"no archive of a run: {error!r} in {MANIFEST}", where=str(file), hint=HINT) from error
    if known != FORMAT:
        hint = "use the version of localsim that wrote it"
        raise InvalidInput(f"an archive of format {known}; this localsim reads {FORMAT}", where=str(file), hint=hint)
    return dict(manifest)
