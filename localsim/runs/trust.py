"""Models of a plan that reach outside the program, and whether this user has named them.

A database or archive can come from somebody else. A server named in it would get the prompts, and the key of any
variable that its name asks for; lines of a scripted player can be any file. So a run goes on with such models only
where it was begun, or where the user names them again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from localsim import paths
from localsim.backends.open import is_plugin, is_remote, is_scripted
from localsim.errors import InvalidInput
from localsim.models.minds import reads_file
from localsim.models.mixtures import parts_of


def reaching(models: Iterable[str]) -> list[str]:
    """Return the models, and parts of mixtures, that are servers, programs of others, or read a file."""
    models = list(models)
    parts = dict.fromkeys([*(part for name in models for part in parts_of(name)), *filter(reads_file, models)])
    return [name for name in parts if is_remote(name) or is_plugin(name) or is_file_of_lines(name) or reads_file(name)]


def is_file_of_lines(name: str) -> bool:
    """Return True for a scripted player that reads its lines from a file, whatever its path."""
    return is_scripted(name) and ":@" in name


def remember(run_id: str, models: Sequence[str]) -> None:
    """Remember on this machine that the user began a run with these models."""
    if reaching(models):
        with suppress(OSError):  # a folder that cannot be written costs a question later
            mark = _mark(run_id, models)
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()


def refuse_foreign(run_id: str, models: Sequence[str], named: Sequence[str]) -> None:
    """Raise InvalidInput for a model that reaches outside, of a run that was begun elsewhere, and was not `named`."""
    foreign = [name for name in reaching(models) if name not in named]
    if foreign and not _mark(run_id, models).is_file():
        raise InvalidInput(
            f"the run was begun on another machine or by another user, and goes on with {foreign[0]}",
            where=run_id,
            hint=f"if you know it, name it again: localsim resume {run_id} "
            + " ".join(f"-m '{name}'" for name in foreign),
        )


def refuse_unlisted(models: Iterable[str], listed: Iterable[str], where: str) -> None:
    """Raise InvalidInput for a model of an archive's plan that its list of models lacks."""
    known = set(listed)
    if unlisted := [name for name in models if name not in known and not _is_built_in(name)]:
        hint = "somebody changed the plan; localsim bundle RUN writes an archive"
        raise InvalidInput(f"its plan names {unlisted[0]}, and its list of models does not", where=where, hint=hint)


def _is_built_in(name: str) -> bool:
    return is_scripted(name) and not is_file_of_lines(name)


def _mark(run_id: str, models: Sequence[str]) -> Path:
    about = json.dumps([run_id, sorted(reaching(models))])
    return paths.cache_folder() / "begun" / hashlib.sha256(about.encode()).hexdigest()[:32]
