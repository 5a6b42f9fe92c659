"""Where models, scenarios and databases are. The only module that reads the environment.

Order of precedence everywhere: option > environment > localsim.toml > default.
This module knows nothing of what the files hold.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from localsim.errors import InvalidInput

PROJECT_FILE = "localsim.toml"
_PACKAGE = Path(__file__).resolve().parent
_REPOSITORY = _PACKAGE.parent


def project_folder(start: Path | None = None) -> Path | None:
    """The nearest folder at or above `start` (default: here) that holds localsim.toml."""
    here = (start or Path.cwd()).resolve()
    return next((folder for folder in (here, *here.parents) if (folder / PROJECT_FILE).is_file()), None)


def project_settings() -> dict[str, Any]:
    """The content of localsim.toml, or {}. Raises InvalidInput where it is not TOML."""
    folder = project_folder()
    if folder is None:
        return {}
    file = folder / PROJECT_FILE
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"not valid TOML: {error}", where=str(file), hint="mend or remove the file") from error


def project_file() -> Path | None:
    """The localsim.toml that holds here."""
    folder = project_folder()
    return folder / PROJECT_FILE if folder else None


def general_settings() -> list[tuple[str, str, str, str]]:
    """(name, value, origin, variable) of what every command shares."""
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


def default_model() -> str:
    """LOCALSIM_MODEL, `model` of localsim.toml, else the embedded default."""
    return os.environ.get("LOCALSIM_MODEL") or str(project_settings().get("model", "starter"))


def bundled(kind: str) -> Path:
    """The folder of what ships with localsim: 'models', 'scenarios' or 'queries'.

    A wheel carries copies under localsim/data; a checkout has them at the top of the repository.
    """
    packaged = _PACKAGE / "data" / kind
    if packaged.is_dir():
        return packaged
    return _REPOSITORY / {"queries": "db/queries"}.get(kind, kind)


def model_folders() -> list[Path]:
    """Folders searched for models, in order; the first that can be written receives downloads.

    LOCALSIM_MODELS (separated like PATH) stands before the checkout's models/ and the user's data folder.
    """
    import platformdirs

    listed = [Path(part).expanduser() for part in os.environ.get("LOCALSIM_MODELS", "").split(os.pathsep) if part]
    checkout = _REPOSITORY / "models"
    if (_REPOSITORY / "pyproject.toml").is_file() and checkout.is_dir():
        listed.append(checkout)
    listed.append(Path(platformdirs.user_data_path("localsim")) / "models")
    return listed


def cache_folder() -> Path:
    """Where small remembered facts lie (which model files have passed the probe). LOCALSIM_CACHE overrides."""
    import platformdirs

    chosen = os.environ.get("LOCALSIM_CACHE")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_path("localsim"))


def no_color() -> bool:
    """Whether colours are unwanted (https://no-color.org)."""
    return bool(os.environ.get("NO_COLOR"))


def debug() -> bool:
    """Whether tracebacks are wanted (LOCALSIM_DEBUG=1)."""
    return os.environ.get("LOCALSIM_DEBUG", "") not in ("", "0")


def probe_override() -> list[str] | None:
    """A command that stands in for the model probe (LOCALSIM_PROBE), so that tests can plant a native crash."""
    value = os.environ.get("LOCALSIM_PROBE")
    return value.split() if value else None
