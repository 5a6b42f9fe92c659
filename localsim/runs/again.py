"""The next games of a run: a game with the parameters of a stored one, which one of its players has read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from localsim.conversation.scenario import ScenarioFile
from localsim.errors import InvalidInput
from localsim.families import family_of
from localsim.families.games.base import Game
from localsim.store.database import Store
from localsim.store.queries.scoring import subjects

_NAME = re.compile(r"(.*)_game(\d+)")


def games_after(store: Store, reference: str) -> Iterator[ScenarioFile]:
    """Yield the game after each game of a run that has a next one; names count the games, and the seed stays.

    Raises InvalidInput if none has.
    """
    run_id, seen = store.run_id(reference), Counter[str]()
    for each in subjects(store, run_id):
        game, answer = family_of(each.scenario.family), each.answer
        parameters = game.again(answer, each.transcript) if isinstance(game, Game) else None
        if parameters is None:
            continue
        name = _NAME.fullmatch(each.scenario.id)
        base, number = (name[1], int(name[2]) + 1) if name else (each.scenario.id, 2)
        seen[base] += 1
        base += f"_{seen[base]}" if seen[base] > 1 else ""
        known = {key: value for key, value in parameters.items() if key in game.defaults}
        yield game.generate(f"{base}_game{number}", int(parameters["seed"]), known)
    if not seen:
        hint = "balloon games with a deal have one: localsim run balloon_coach"
        raise InvalidInput(f"no game of run {run_id} has a next one", hint=hint)
