"""Conversations from elsewhere, as a file holds them, before they are stored as episodes.

Pure values. `families/*/corpus.py` and `scenarios/talks/` make them from files; `runs/transfer/imported.py` stores
them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from localsim.conversation.episode import PEOPLE, Score, StopReason, StoredMode
from localsim.conversation.names import LONGEST, problem_of, same
from localsim.conversation.scenario import LoadedScenario, ScenarioFile, canonical_hash
from localsim.conversation.transcript import Action
from localsim.errors import InvalidInput

_FIELDS = "a scenario has id, title, info, setting and agents, as in scenario files"
NAMES = ("Person A", "Person B", "Person C", "Person D", "Person E", "Person F", "Person G", "Person H")
"""Names for people whom a corpus only numbers."""


@dataclass(frozen=True)
class HumanTalk:
    """One conversation of people, or of another tool's models, with the scenario that it was held on."""

    name: str
    """Id of the conversation in its file."""
    where: str
    """Place in the file, for messages."""
    scenario: LoadedScenario
    turns: tuple[tuple[str, Action], ...]
    """(agent, action), in order; the same agent may have several turns in a row. WORLD is the agent of what is told."""
    stop_reason: StopReason = "ended"
    outcome: tuple[Score, ...] = ()
    """The corpus's own account of the outcome, with names that begin with `corpus_`."""
    note: str = ""
    """A limitation that the reader of the import must know, such as the reason why no family scores the outcome."""
    mode: StoredMode = PEOPLE
    """The mode in which another tool made it; `people` if people held it."""
    models: tuple[tuple[str, str], ...] = ()
    """(agent, model) of the models that another tool used; empty for people."""
    readers: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Index of a turn that not everybody could read -> who could, its author first."""


class LeftOut(Exception):
    """A conversation that cannot become an episode; the message says why, the same for all of its kind."""


@dataclass(frozen=True)
class Corpus:
    """The public format of human conversations on a family's task."""

    name: str
    """Name of the format on the command line."""
    about: str
    """The corpus, in a few words."""
    fits: Callable[[Mapping[str, Any]], bool]
    """Returns True for a conversation of this format."""
    read: Callable[[Mapping[str, Any], str, str], HumanTalk]
    """Reads (conversation, place in the file, path of the file). Raises LeftOut, and InvalidInput for a defect."""


class Part(BaseModel):
    """A part of a corpus's format; keys that localsim does not need are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)


_Part = TypeVar("_Part", bound=BaseModel)


def checked(model: type[_Part], data: Any, where: str, hint: str | None = None) -> _Part:
    """Return data as a model. Raises InvalidInput that names the first defect and its place."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        message = str(first["msg"]).removeprefix("Value error, ")
        raise InvalidInput(f"{place}: {message}" if place else message, where=where, hint=hint) from error


_BLANK = re.compile(r"\s+")


def plain_text(text: str) -> str:
    """Return the text of a turn on one line: white space as single blanks, no control characters, whole characters."""
    kept = text if text.isprintable() else "".join(map(_replaced, text))
    return _BLANK.sub(" ", kept).strip()


def _replaced(char: str) -> str:
    kind = unicodedata.category(char)
    return " " if kind == "Cc" else "\ufffd" if kind == "Cs" else char


Turns = tuple[tuple[str, Action], ...]
Readers = tuple[str, ...] | None
"""Who can read a turn, its author first; None: everybody."""


def turns_of(said: Sequence[tuple[str, str, str]]) -> Turns:
    """Return turns that everybody can read, as `turns_with_readers` does."""
    return turns_with_readers([(*each, None) for each in said])[0]


def turns_with_readers(said: Sequence[tuple[str, str, str, Readers]]) -> tuple[Turns, dict[int, tuple[str, ...]]]:
    """Return turns from (agent, action type, text, readers), and index -> readers of those with readers.

    Turns of speech or action without any text are left out. Raises LeftOut where no words are left, or where only one
    person has a turn.
    """
    turns: list[tuple[str, Action]] = []
    private: dict[int, tuple[str, ...]] = {}
    for name, kind, text, readers in said:
        words = plain_text(text)
        if words or kind in ("leave", "none"):
            if readers is not None:
                private[len(turns)] = readers
            turns.append((name, Action(kind, words)))
    if not any(action.type == "speak" for _, action in turns):
        raise LeftOut("nothing is said")
    if len({name for name, _ in turns}) < 2:
        raise LeftOut("only one person has a turn")
    return tuple(turns), private


def loaded(path: str, where: str, **fields: Any) -> LoadedScenario:
    """Return the scenario with the fields of a scenario file. Raises InvalidInput.

    Without `limits` it has the usual ones, so that measures up to a turn limit mean the same for people and models.
    """
    scenario, answer = checked(ScenarioFile, {"version": 1, **fields}, where, _FIELDS).split()
    return LoadedScenario(scenario, answer, path)


def id_of(*parts: object) -> str:
    """Return an id for a scenario from parts of a corpus's ids; a hash stands for letters that no id can have."""
    whole = "_".join(map(str, parts))
    made = re.sub(r"[^A-Za-z0-9_-]+", "_", whole).strip("_-")
    if len(made) <= 80 and (whole.isascii() or not re.search(r"[^\W_]", re.sub(r"[\x00-\x7f]", "", whole))):
        return made
    return f"{made[:70].rstrip('_-')}_{canonical_hash(whole)[:8]}".lstrip("_")


def shortened(text: str, limit: int = 3800) -> str:
    """Return text for a field of a scenario, which holds 4,000 characters."""
    folded = plain_text(text)
    return folded if len(folded) <= limit else folded[:limit].rsplit(" ", 1)[0] + " …"


def money(price: float) -> str:
    """Return an amount of dollars as people write it."""
    return f"${price:.0f}" if float(price).is_integer() else f"${price:.2f}"


def names_are_usable(names: list[str]) -> bool:
    """Return True if people of these names can be agents of a scenario."""
    possible = all(problem_of(name) is None and len(name) <= LONGEST for name in names)
    return possible and len({same(name) for name in names}) == len(names)
