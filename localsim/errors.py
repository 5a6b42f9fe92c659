"""Every error that localsim raises on purpose, and the exit code that each becomes.

    LocalsimError                 1   an error that localsim did not expect
    ├── EvaluatorFailed           1   an evaluator that raised an error, with --strict
    ├── InvalidInput              3   a scenario, option, configuration or query that cannot be used
    │   ├── ScenarioInvalid       3   one or more Problems in a scenario file, all of them at once
    │   └── PluginFailed          3   an error inside a plugin of another package; `where` is its file and line
    ├── ModelMissing              4   a model that is absent, damaged or does not fit
    ├── DatabaseError             5   a database that is locked, newer, damaged or cannot be written
    ├── TooManyFailures           6   a run that finished with more failures than --fail-on-error allows
    ├── DoesNotPlay               6   talks that do not play, so that there is no conclusion, with --strict
    ├── DemandsFail               6   a run that does not meet the demands of `localsim check`
    ├── BackendUnavailable        7   a backend that cannot work on this machine
    └── Interrupted             130   Ctrl-C, or 143 after SIGTERM; the hint holds the command that resumes the run

    MalformedReply            (row)   a reply that does not parse; the mode retries it once
    GenerationFailed          (row)   a generation that failed; the episode fails with this reason

The last two never reach the command line: they become rows of the database.
Every message names the problem, and `hint` the next step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


class LocalsimError(Exception):
    """Base of all errors raised on purpose.

    `where` is a place (`file:line:column`, a path, a table), `hint` the next command or action.
    """

    exit_code = 1

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.message}"

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints to stderr."""
        return {"error": self.message, "where": self.where, "hint": self.hint, "exit": self.exit_code}


class InvalidInput(LocalsimError):
    """A scenario, option, configuration or query that cannot be used."""

    exit_code = 3


@dataclass(frozen=True)
class Problem:
    """One defect of a file, at a line and column counted from 1."""

    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        path = f"{self.path}: " if self.path else ""
        return f"{self.file}:{self.line}:{self.column}: {path}{self.message}"


class ScenarioInvalid(InvalidInput):
    """A scenario file with problems; the message lists all of them."""

    def __init__(self, problems: list[Problem]) -> None:
        first = problems[0]
        hint = (
            f"fix the file, then try: localsim scenarios validate {first.file}" if Path(first.file).exists() else None
        )
        super().__init__("\n".join(str(problem) for problem in problems), hint=hint)
        self.problems = problems


class PluginFailed(InvalidInput):
    """An error inside a plugin of another package, which that package has to repair; `where` is its file and line."""


class ModelMissing(LocalsimError):
    """A model that is absent, damaged or does not fit."""

    exit_code = 4


class DatabaseError(LocalsimError):
    """A database that is locked, newer, damaged or cannot be written."""

    exit_code = 5


class TooManyFailures(LocalsimError):
    """A run that finished with more failures than allowed."""

    exit_code = 6


class EvaluatorFailed(LocalsimError):
    """An evaluator that raised an error, so that its scores are missing, with --strict."""


class DemandsFail(LocalsimError):
    """A run that does not meet the demands of `localsim check`."""

    exit_code = 6


class DoesNotPlay(LocalsimError):
    """Talks that do not play, so that there is no conclusion; only with --strict."""

    exit_code = 6


class BackendUnavailable(LocalsimError):
    """A backend that cannot work on this machine."""

    exit_code = 7


class Interrupted(LocalsimError):
    """Ctrl-C or SIGTERM; the hint holds the command that resumes the run."""

    exit_code = 130


@contextmanager
def writing(place: object) -> Iterator[None]:
    """Raise InvalidInput, with the file or folder, where what is done inside cannot write."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", where=str(place)) from error


class MalformedReply(LocalsimError):
    """A reply that is not an action; `message` names the problem."""


class GenerationFailed(LocalsimError):
    """A generation that failed (no room left, transport down); ends the episode, not the run."""


def refuse_empty(word: str, what: str, hint: str) -> None:
    """Raise InvalidInput where a word names nothing, such as a variable of the shell that has no value."""
    if not word.strip():
        raise InvalidInput(f"{what} is empty", hint=hint)


def suggest(word: str, known: Iterable[str], *, inline: bool = False) -> str:
    """Return "did you mean NAME?" for the known name closest to a misspelled word, or "" if none is close.

    `inline` puts it in brackets after a blank, to follow the word in a message.
    """
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    if not close:
        return ""
    return f" (did you mean {close[0]}?)" if inline else f"did you mean {close[0]}?"
