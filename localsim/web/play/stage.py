"""Games in the browser: each is a floor with one conversation and no ledger.

Games in progress are in memory only; their turns are stored like those of any run.
"""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

from localsim.backends.base import Backend
from localsim.backends.open import Needs, models_of
from localsim.backends.person import NAME
from localsim.conversation.episode import EpisodeSpec, Mode
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput, LocalsimError
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.preview import needs_of
from localsim.store.database import Store
from localsim.store.queries import pages as page_queries
from localsim.store.records import RunRecord
from localsim.web.floor.floor import Floor, Terms
from localsim.web.floor.state import Meeting, State
from localsim.web.phrases.table import Refused

MOST_GAMES, MOST_MODELS = 60, 2
"""Games in progress at a time, and how many of them may load a model."""
PATIENCE_S, AWAY_S = 45 * 60.0, 10 * 60.0
"""A game breaks off when its next turn takes longer than the first, or no page of a seat is open for the second."""
_KEPT_S = 2 * 3600.0
"""For this long after the end of a game its reveal can be seen."""


class Game(Floor):
    """One conversation. Its methods can be called from many threads."""

    unexpected = "Something unexpected happened; the server's terminal shows the details."
    timed = True

    def __init__(self, store: Store, loaded: LoadedScenario, roles: tuple[str, ...], mode: Mode, model: str) -> None:
        """`model` plays the roles that are not in `roles`."""
        self.scenario = loaded
        self.plan = Plan(
            (loaded,), (mode,), model=model, roles=dict.fromkeys(roles, NAME), seed=secrets.randbelow(1 << 31),
            parallel=1,
        )  # fmt: skip
        self.seats = {secrets.token_urlsafe(9): role for role in roles}
        """Secret of a seat -> role."""
        self.taken: set[str] = set()
        """Seats that a person has opened: no other page shows a link to them."""
        self.visited = time.monotonic()
        """The last time at which a page of a seat was loaded."""
        self.done = False
        """True once it is stored and searched for leaks, or has broken off."""
        self.episode_id = ""
        """The stored conversation; empty until then."""
        self._notices: list[str] = []
        specs = self.plan.specs()
        terms = Terms("game", self.plan, [name for name in models_of(specs) if name != NAME], specs)
        register: State[Meeting] = State()
        super().__init__(store, runner.new_run_id(datetime.now(UTC)), terms, register, None, self._notices.append)
        self.talk = self._add(Meeting(1, 0, mode, 0, dict.fromkeys(roles, 0)))

    @property
    def asked(self) -> str | None:
        """The role whose turn it is, where a person plays it."""
        request = self.players.asked(self.talk.spec.hash)
        return request.speaker if request else None

    # ---- the run ---------------------------------------------------------------------------------------------------

    def spec_of(self, _: Any) -> EpisodeSpec:
        return self.plan.specs()[0]

    def leaves(self) -> bool:
        """Leave after the end. Raises InvalidInput where nobody takes the next turn in time."""
        waited = self.players.waited()
        if waited and (waited > PATIENCE_S or time.monotonic() - self.visited > AWAY_S):
            raise InvalidInput("the next turn took too long")
        self.register.ended = self.talk.ended
        return super().leaves() or self.talk.ended

    def stated(self, run: RunRecord) -> RunRecord:
        return run

    def _opened(self) -> AbstractContextManager[dict[str, Backend]]:
        self.store.ensure_usable()
        return super()._opened()

    def _needs(self) -> Needs:
        return needs_of(self.plan, 1)

    def _attended(self, parallel: int = 1, planned: int = 1) -> runner.Result:
        return super()._attended(parallel, planned)

    def _conclude(self, result: runner.Result | None) -> None:
        assert result is not None, "a game begins with its first page"
        searched = runner.with_leaks(result, self.store, True, self._notices.append).leaks_scored
        if page_queries.has_episode(self.store, self.talk.episode_id):
            self.episode_id = self.talk.episode_id
        # The last notice of a run that was not scored for leaks is the reason, such as a missing model.
        self._end(self.talk.problem or ("" if searched or not self._notices else self._notices[-1]))

    def _stopped(self, error: LocalsimError, problem: str) -> None:  # noqa: ARG002 - nobody waits for it
        self._end(problem)

    def _end(self, problem: str) -> None:
        with self.changed:
            self.problem, self.visited, self.done = problem, time.monotonic(), True


class Stage:
    """All games of a server. `model` plays the roles that no person takes."""

    def __init__(self, store: Store, model: str) -> None:
        self._store = store
        self.model = model
        self._games: dict[str, Game] = {}
        self._lock = threading.Lock()

    def open(self, loaded: LoadedScenario, roles: tuple[str, ...], mode: Mode) -> tuple[str, Game]:
        """Start a game in which people play `roles`, and return its name and itself.

        Raises Refused while too many games are in progress.
        """
        game = Game(self._store, loaded, roles, mode, self.model)
        with self._lock:
            now = time.monotonic()
            self._games = {
                name: kept for name, kept in self._games.items() if not kept.done or now - kept.visited < _KEPT_S
            }
            self._refuse_too_many(with_model=len(roles) < len(loaded.scenario.names))
            name = secrets.token_urlsafe(6)
            self._games[name] = game
        game.begin()
        return name, game

    def _refuse_too_many(self, *, with_model: bool) -> None:
        going = [game for game in self._games.values() if not game.done]
        models = [game for game in going if len(game.seats) < len(game.scenario.scenario.names)]
        if len(going) >= MOST_GAMES:
            raise Refused("many_games", games=MOST_GAMES)
        if with_model and len(models) >= MOST_MODELS:
            raise Refused("many_models", games=MOST_MODELS)

    def find(self, name: str, seat: str) -> tuple[Game, str]:
        """A game and the role of a seat. Raises InvalidInput."""
        game = self._games.get(name)
        if game is None or seat not in game.seats:
            raise Refused("no_game_seat")
        game.visited = time.monotonic()
        game.taken.add(seat)
        return game, game.seats[seat]
