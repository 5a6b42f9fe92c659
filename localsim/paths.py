"""The places of models, scenarios and databases. The only module that reads the environment.

Order of precedence everywhere: option > environment > localsim.toml > default.
This module knows nothing of what the files hold; `json_value` and `read_json_lines` read any JSON.
"""

from __future__ import annotations

import codecs
import json
import math
import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from localsim.errors import InvalidInput

PROJECT_FILE = "localsim.toml"
DEEPEST = 50
"""Most levels of brackets in a JSON text; our files have six at most, and Python's own limit varies."""
_TOO_DEEP = f"brackets are nested too deep (more than {DEEPEST} levels)"
_LLAMA_CPP = "llama-cpp-python>=0.3.36,<0.4"
"""As in pyproject.toml."""
_PACKAGE = Path(__file__).resolve().parent
_REPOSITORY = _PACKAGE.parent


def project_folder() -> Path | None:
    """Return the nearest folder with localsim.toml, at or above the current folder."""
    here = Path.cwd().resolve()
    return next((folder for folder in (here, *here.parents) if (folder / PROJECT_FILE).is_file()), None)


def project_settings() -> dict[str, Any]:
    """Return the content of localsim.toml, or {}. Raises InvalidInput if it is not TOML."""
    file = project_file()
    if file is None:
        return {}
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"not valid TOML: {error}", where=str(file), hint="correct or remove the file") from error


def project_file() -> Path | None:
    """Return the path of the localsim.toml that applies, if any."""
    folder = project_folder()
    return folder / PROJECT_FILE if folder else None


def general_settings() -> list[tuple[str, str, str, str]]:
    """Return (name, value, origin, variable) of each setting that all commands share."""
    settings = project_settings()

    def origin(variable: str, key: str = "") -> str:
        if os.environ.get(variable):
            return f"environment, {variable}"
        return str(project_file()) if isinstance(settings.get(key), str) else "default"

    return [
        ("db", str(database_path()), origin("LOCALSIM_DB", "db"), "LOCALSIM_DB"),
        ("model", default_model(), origin("LOCALSIM_MODEL", "model"), "LOCALSIM_MODEL"),
        ("models", os.pathsep.join(map(str, model_folders())), origin("LOCALSIM_MODELS"), "LOCALSIM_MODELS"),
        ("cache", str(cache_folder()), origin("LOCALSIM_CACHE"), "LOCALSIM_CACHE"),
    ]


def database_path(option: str | None = None) -> Path:
    """--db, LOCALSIM_DB, db/localsim.duckdb inside a project, else ./localsim.duckdb."""
    chosen = option or os.environ.get("LOCALSIM_DB")
    if chosen:
        return Path(chosen).expanduser().absolute()
    project = project_folder()
    if project is None:
        return Path("localsim.duckdb").absolute()
    configured = project_settings().get("db")
    return (project / (configured if isinstance(configured, str) else "db/localsim.duckdb")).absolute()


def db_option(path: Path) -> str:
    """Return what a command about a database needs after its other words: ` --db FILE`, or '' for the usual one."""
    return "" if path == database_path() else f" --db {shlex.quote(str(path))}"


def default_model() -> str:
    """LOCALSIM_MODEL, `model` of localsim.toml, else the embedded default."""
    return os.environ.get("LOCALSIM_MODEL") or str(project_settings().get("model", "starter"))


def bundled(kind: str) -> Path:
    """Return a folder that ships with localsim: 'models', 'scenarios' or 'queries'.

    A wheel carries copies under localsim/data; a checkout has them at the top of the repository.
    """
    packaged = _PACKAGE / "data" / kind
    if packaged.is_dir():
        return packaged
    return _REPOSITORY / {"queries": "db/queries"}.get(kind, kind)


def installing(extra: str) -> str:
    """Return the command that installs what an extra of the package needs: into a checkout, or beside a wheel."""
    checkout = (_REPOSITORY / "pyproject.toml").is_file()
    return f'pip install -e "{_REPOSITORY}[{extra}]"' if checkout else f'pip install "localsim[{extra}]"'


@contextmanager
def needing(what: str, extra: str) -> Iterator[None]:
    """Raise InvalidInput, such as "figures need matplotlib", if the block cannot import what an extra installs."""
    try:
        yield
    except ImportError as error:
        raise InvalidInput(f"{what} {error.name or error}", hint=installing(extra)) from error


def rebuilding(flags: str = "-DGGML_NATIVE=OFF") -> str:
    """Return the command that compiles llama.cpp anew with these flags, here for any processor."""
    quoted = re.sub(r'(["$`\\])', r"\\\1", flags)
    return f'CMAKE_ARGS="{quoted}" pip install --no-cache-dir --force-reinstall "{_LLAMA_CPP}"'


def model_folders() -> list[Path]:
    """Return the folders that are searched for models, in order; downloads go to the first writable one.

    LOCALSIM_MODELS (separated like PATH) comes before the checkout's models/ and the user's data folder.
    """
    import platformdirs

    listed = [Path(part).expanduser() for part in os.environ.get("LOCALSIM_MODELS", "").split(os.pathsep) if part]
    checkout = _REPOSITORY / "models"
    if (_REPOSITORY / "pyproject.toml").is_file() and checkout.is_dir():
        listed.append(checkout)
    listed.append(Path(platformdirs.user_data_path("localsim")) / "models")
    return listed


def cache_folder() -> Path:
    """Return the folder of remembered results, such as passed probes of model files. LOCALSIM_CACHE overrides it."""
    import platformdirs

    chosen = os.environ.get("LOCALSIM_CACHE")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_path("localsim"))


def no_color() -> bool:
    """Return True if colours are unwanted (https://no-color.org)."""
    return bool(os.environ.get("NO_COLOR"))


def debug() -> bool:
    """Return True if tracebacks are wanted (LOCALSIM_DEBUG=1)."""
    return os.environ.get("LOCALSIM_DEBUG", "") not in ("", "0")


def probe_override() -> list[str] | None:
    """Return a command that replaces the model probe (LOCALSIM_PROBE), so that tests can cause a native crash."""
    value = os.environ.get("LOCALSIM_PROBE")
    return value.split() if value else None


def lanes_override() -> int | None:
    """Return the number of conversations that `-j auto` takes (LOCALSIM_LANES); None where it may be measured."""
    value = os.environ.get("LOCALSIM_LANES", "")
    return max(1, int(value)) if value.isdecimal() else None


LEAST_FREE = 1_000_000
"""Bytes that a disk must have left before a command begins to work for a file on it."""


def cannot_write(place: Path) -> str:
    """Return why a file or folder that is to be written cannot be, as far as it is known before; '' if it can."""
    here = place.absolute()
    try:
        while not here.exists():
            if here.is_symlink() or here == here.parent:
                return "its folder does not exist"
            here = here.parent
        if here != place.absolute() and not here.is_dir():
            return f"{here} is no folder"
        if not os.access(here, os.W_OK | (os.X_OK if here.is_dir() else 0)):
            return "no permission, or a disk that can only be read"
        usage = shutil.disk_usage(here if here.is_dir() else here.parent)
        if usage.total and usage.free < LEAST_FREE and not here.is_char_device():
            return "the disk is full"
    except OSError as error:
        return str(error.strerror)
    return ""


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """Yield a place to write a file to, which gets its name once it is whole; the folder is made. OSErrors pass."""
    if target.exists() and not target.is_file():  # such as /dev/stdout
        yield target
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def file_name(run_id: str) -> str:
    """Return the id of a run where it becomes the name of a file. Raises InvalidInput for one that leads elsewhere."""
    if not re.fullmatch(r"[A-Za-z0-9][\w.~-]{0,100}", run_id, re.ASCII):
        hint = "localsim did not write this database; -o names a file"
        raise InvalidInput(f"the id of the run, {run_id!r}, cannot be the name of a file", hint=hint)
    return run_id


def json_value(text: str) -> Any:
    """Return the value of a JSON text. Raises JSONDecodeError, or ValueError for more than DEEPEST levels."""
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    # Strings may contain brackets too, so only texts with many brackets are examined.
    if text.count("[") + text.count("{") > DEEPEST and _is_deeper(value, DEEPEST):
        raise ValueError(_TOO_DEEP)
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    inside = [value]
    for _ in range(levels + 1):
        containers = [each for each in inside if isinstance(each, list | dict)]
        inside = [child for each in containers for child in (each.values() if isinstance(each, dict) else each)]
        if not containers:
            return False
    return True


def read_text(path: Path) -> str:
    """Return the text of a file of another program: UTF-8, or UTF-16 with a mark, as Excel writes "Unicode text".

    Raises InvalidInput for a file that cannot be read.
    """
    try:
        data = path.read_bytes()
        if data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
            hint = "save the sheet or the text as CSV or as UTF-8 text"
            raise InvalidInput("a workbook, document or archive, and no text", where=str(path), hint=hint)
        if b"\0" in data[:2]:
            raise InvalidInput("not UTF-8 text: UTF-16 without a mark", where=str(path), hint="save it as UTF-8")
        marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return data.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"not UTF-8 text: {error}", where=str(path), hint="save it as UTF-8") from error
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", where=str(path), hint="check the path") from error


def read_json_lines(path: Path) -> list[tuple[str, Any]]:
    """Return the values of a JSONL file, each with its place (`file:line`); blank lines are skipped.

    Raises InvalidInput for a file that cannot be read and for the first line that `json_value` refuses.
    """
    return _lines(read_text(path), str(path))


def _lines(text: str, name: str) -> list[tuple[str, Any]]:
    values: list[tuple[str, Any]] = []
    for number, line in enumerate(text.split("\n"), start=1):  # a text may hold other line breaks, such as U+2028
        if line.strip():
            try:
                values.append((f"{name}:{number}", json_value(line)))
            except ValueError as error:
                problem = "not JSON" if isinstance(error, json.JSONDecodeError) else "cannot be read"
                hint = "a JSONL file has one object on each line"
                raise InvalidInput(f"{problem}: {error}", where=f"{name}:{number}", hint=hint) from error
    return values


def json_values(text: str, name: str, hint: str, item: str = "item") -> list[tuple[str, Any]]:
    """Return the values of a JSON text with their places: those of a list, of each line, or one after another.

    `name` stands for the file, `item` for a value of a list. Raises InvalidInput for what is no JSON.
    """
    try:
        value = json_value(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            first = next(line for line in text.split("\n") if line.strip())
            return _lines(text, name) if _is_json(first) else _in_a_row(text, name, hint)
        where = f"{name}:{error.lineno}:{error.colno}"
        raise InvalidInput(f"not JSON: {error.msg}", where=where, hint=hint) from error
    except ValueError as error:
        raise InvalidInput(f"not JSON: {error}", where=name, hint=hint) from error
    if isinstance(value, list):
        return [(f"{name}, {item} {number}", each) for number, each in enumerate(value, start=1)]
    line = text[: len(text) - len(text.lstrip())].count("\n") + 1
    return [(name if "\n" in text.strip() else f"{name}:{line}", value)]


def _is_json(text: str) -> bool:
    try:
        json_value(text)
    except ValueError:
        return False
    return True


def _in_a_row(text: str, name: str, hint: str) -> list[tuple[str, Any]]:
    """Return values over several lines each, one after another, as `jq` prints them."""
    found: list[tuple[str, Any]] = []
    at = 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        line = text.count("\n", 0, at) + 1
        try:
            _, after = json.JSONDecoder().raw_decode(text, at)
            found.append((f"{name}:{line}", json_value(text[at:after])))
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"not JSON: {error}", where=f"{name}:{line}", hint=hint) from error
        at = after
    return found


def json_text(
    value: Any,
    *,
    indent: int | None = None,
    sort_keys: bool = False,
    default: Callable[[Any], Any] | None = None,
) -> str:
    """Return JSON with characters as they are; a number that is not finite becomes null.

    Of a dataclass it has what `as_json` returns, or the fields.
    """
    try:
        return _dumps(value, indent, sort_keys, default)
    except ValueError:  # circular values fail again below
        return _dumps(_finite(value), indent, sort_keys, default)


def _dumps(value: Any, indent: int | None, sort_keys: bool, default: Callable[[Any], Any] | None) -> str:
    def plain(part: Any) -> Any:
        return _fields(part) if is_dataclass(part) else (default or json.JSONEncoder().default)(part)

    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, sort_keys=sort_keys, default=plain)


def _fields(value: Any) -> dict[str, Any]:
    if hasattr(value, "as_json"):
        return dict(value.as_json())
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    value = _fields(value) if is_dataclass(value) else value
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value
