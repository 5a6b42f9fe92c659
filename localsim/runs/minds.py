"""From the name of a mind to its steps: every option is checked, and tables and games give what steps read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from localsim import plugins
from localsim.conversation.minds.acts import Acts, Plan
from localsim.conversation.minds.believe import Believe
from localsim.conversation.minds.drafts import Best, Drafts
from localsim.conversation.minds.flows import Branch, Flow, Loop
from localsim.conversation.minds.immerse import Immerse
from localsim.conversation.minds.predict import Expectimax, Predict
from localsim.conversation.minds.reflect import Reflect
from localsim.conversation.minds.steps import Step
from localsim.conversation.minds.tpe import Tpe
from localsim.errors import InvalidInput, suggest
from localsim.families import FAMILIES, Family, family_of
from localsim.families.games.base import Game
from localsim.models.minds import EXAMPLE, NamedStep, is_mind, steps_of
from localsim.scenarios.acts import find_acts

Given = tuple[str, ...]


class _Wrong(ValueError):
    """An option has another value than it can have; the text says which ones."""


def _word(*words: str) -> Callable[[Given], str]:
    def read(given: Given) -> str:
        if len(given) != 1 or given[0] not in words:
            raise _Wrong(f"one of {', '.join(words)}")
        return given[0]

    return read


def _count(most: int) -> Callable[[Given], int]:
    def read(given: Given) -> int:
        if len(given) != 1 or not given[0].isdecimal() or not 1 <= int(given[0]) <= most:
            raise _Wrong(f"a whole number from 1 to {most}")
        return int(given[0])

    return read


def _number(given: Given) -> float:
    try:
        number = float(given[0]) if len(given) == 1 else -1.0
    except ValueError:
        number = -1.0
    if not 0 <= number <= 100:
        raise _Wrong("a number from 0 to 100")
    return number


def _some(least: int) -> Callable[[Given], Given]:
    def read(given: Given) -> Given:
        if len(set(given)) < max(least, len(given)) or not all(given):
            raise _Wrong(f"{least} or more different words, with / between them")
        return given

    return read


def _lower(given: Given) -> Given:
    found = _some(2)(tuple(word.lower() for word in given))
    if any(one != other and other.startswith(one) for one in found for other in found):
        raise _Wrong("words of which none begins with another")
    return found


def _acts(given: Given) -> Acts:
    return find_acts("/".join(given))


STEPS: Mapping[str, tuple[Callable[..., Step], Mapping[str, Callable[[Given], Any]], frozenset[str]]] = {
    "immerse": (Immerse, {"n": _count(16), "by": _word("agreement", "judge")}, frozenset()),
    "drafts": (Drafts, {}, frozenset()),
    "best": (Best, {"of": _some(1), "n": _count(16), "weight": _number, "mu": _number}, frozenset({"of"})),
    "plan": (Plan, {"acts": _acts}, frozenset({"acts"})),
    "tpe": (Tpe, {"acts": _acts, "most": _count(8)}, frozenset()),
    "predict": (Predict, {"of": _lower}, frozenset({"of"})),
    "believe": (Believe, {"every": _count(100)}, frozenset()),
    "expectimax": (Expectimax, {"depth": _count(3)}, frozenset()),
    "reflect": (Reflect, {"every": _count(100)}, frozenset()),
}
"""Name of a step -> what makes it, what reads its options, and the options that it must have."""
_DECLARED = {"reads": _some(1), "gives": _some(1)}
FLOWS: Mapping[str, tuple[Callable[..., Step], Mapping[str, Callable[[Given], Any]], frozenset[str], int]] = {
    "seq": (Flow, _DECLARED, frozenset(), 1),
    "loop": (Loop, {**_DECLARED, "times": _count(16), "until": _some(2)}, frozenset(), 1),
    "branch": (Branch, {**_DECLARED, "when": _some(2)}, frozenset({"when"}), 2),
}
"""The same for what is made of steps, with the most rows of steps that it takes."""


def minds_of(models: Mapping[str, str], family: str | None = None) -> dict[str, Flow]:
    """Return role -> mind, for the roles whose model has one. Raises InvalidInput."""
    return {role: mind_of(model, family) for role, model in models.items() if is_mind(model)}


@cache
def mind_of(name: str, family: str | None = None) -> Flow:
    """Return the mind of a name, for a scenario of a family. Raises InvalidInput."""
    return Flow(tuple(_made(each, name, family) for each in steps_of(name)))


def _made(named: NamedStep, name: str, family: str | None) -> Step:
    if named.name in FLOWS:
        make, known, needed, most = FLOWS[named.name]
        if not 1 <= len(named.inner) <= most:
            raise InvalidInput(
                f"{name!r}: {named.name} is made of steps", hint=f"{named.name}(STEP+STEP, OPTION=VALUE)"
            )
        rows = [tuple(_made(each, name, family) for each in row) for row in named.inner]
        more: dict[str, Any] = {"steps": rows[0] if most == 1 else tuple(map(Flow, rows))}
    elif named.name in STEPS and not named.inner:
        make, known, needed = STEPS[named.name]
        more = {key: given(name, family) for key, given in _GIVEN.get(named.name, {}).items()}
    elif named.name in plugins.names("minds") and not named.inner:
        made: Step = plugins.make("minds", named.name, dict(named.options))
        return made
    else:
        names = [*STEPS, *FLOWS, *plugins.names("minds")]
        meant = suggest(named.name, names, inline=True)
        raise InvalidInput(f"{name!r}: no step is called {named.name!r}{meant}", hint=f"steps are {', '.join(names)}")
    for option in (*named.options, *needed):
        if option not in known or option not in named.options:
            problem = f"has no option {option!r}" if option not in known else f"needs the option {option}"
            options = ", ".join(known) or "none"
            raise InvalidInput(f"{name!r}: {named.name} {problem}", hint=f"its options: {options}")
    for option, given in named.options.items():
        try:
            more[option] = known[option](given)
        except _Wrong as wrong:
            shown = "/".join(given)
            raise InvalidInput(f"{name!r}: {named.name} has {option}={shown}", hint=f"{option}: {wrong}") from wrong
    return make(**more)


def _prospect(name: str, family: str | None) -> Any:
    """Return what moves in a game lead to. Raises InvalidInput for a family that does not say it."""
    game = family_of(family)
    if isinstance(game, Game) and type(game).prospect is not Game.prospect:
        return game.prospect
    known = [each for each in FAMILIES.games if type(FAMILIES[each]).prospect is not Game.prospect]  # type: ignore[attr-defined]
    raise InvalidInput(
        f"{name!r}: {family or 'this talk'} has no moves to look ahead", hint=f"games are {', '.join(known)}"
    )


def _unknown(name: str, family: str | None) -> Any:
    """Return what a family asks an agent to infer. Raises InvalidInput for a family that asks nothing."""
    own = family_of(family)
    if type(own).unknown is not Family.unknown:
        return own.unknown
    known = [each for each in FAMILIES.all if type(FAMILIES[each]).unknown is not Family.unknown]
    raise InvalidInput(
        f"{name!r}: {family or 'this talk'} has nothing that an agent is asked to infer",
        hint=f"tasks that do: {', '.join(known)}",
    )


_GIVEN: Mapping[str, Mapping[str, Callable[[str, str | None], Any]]] = {
    "expectimax": {"prospect": _prospect},
    "believe": {"unknown": _unknown},
}
"""Name of a step -> what the family gives it."""


def refuse_authors(models: Iterable[str]) -> None:
    """Raise InvalidInput where the one author of a script or of iterative turns has a mind."""
    for name in filter(is_mind, models):
        hint = f"--mode agents,mindreaders, or --role writer=MODEL for the author: {EXAMPLE}"
        raise InvalidInput(f"{name!r} in a mode with one author: who writes everybody has no inside", hint=hint)
