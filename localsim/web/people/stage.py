"""Games in the browser: a run in a thread that asks people for their turns through pages.

Games in progress are in memory only; their turns are stored like those of any run.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from localsim.backends.person import NAME
from localsim.conversation.episode import Episode, EpisodeSpec, Mode, Observation
from localsim.conversation.exchange import Request
from localsim.conversation.rules.lines import Way
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput, LocalsimError
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.scheduler import Watcher
from localsim.store.database import Store
from localsim.store.queries import pages as page_queries

MOST_GAMES, MOST_MODELS = 60, 2
"""Games in progress at a time, and how many of them may load a model."""
PATIENCE_S, AWAY_S = 45 * 60.0, 10 * 60.0
"""A game breaks off when its next turn takes longer than the first, or no page of a seat is open for the second."""
_KEPT_S = 2 * 3600.0
"""For this long after the end of a game its reveal can be seen."""


@dataclass
class Game:
    """One conversation. `turned` guards everything that changes."""

    scenario: LoadedScenario
    mode: Mode
    plan: Plan
    seats: Mapping[str, str]
    """Secret of a seat -> role."""
    turned: threading.Condition = field(default_factory=threading.Condition)
    turns: list[Turn] = field(default_factory=list)
    asked: str | None = None
    """The role whose turn it is, where a person plays it."""
    ways: tuple[Way, ...] = ()
    """The ways in which this role can act now."""
    given: Action | None = None
    ended: bool = False
    problem: str = ""
    episode_id: str = ""
    taken: set[str] = field(default_factory=set)
    """Seats that a person has opened: no other page shows a link to them."""
    visited: float = field(default_factory=time.monotonic)
    """The last time at which a page of a seat was loaded."""

    def seen_by(self, role: str) -> Observation:
        """Everything that `role` may know now: the pages of a seat show this and nothing else of the game."""
        with self.turned:
            transcript = Transcript(tuple(self.turns))
        return observe(self.scenario.scenario, self.mode, role, transcript)

    def ways_of(self, role: str) -> tuple[Way, ...]:
        """The ways in which `role` can act: those of now where it is asked, else all that it has at some time."""
        return self.ways if self.is_asked(role) else self.seen_by(role).allowed

    def is_asked(self, role: str) -> bool:
        """Return True where it is the turn of `role` and its action has not arrived."""
        return self.asked == role and self.given is None

    def say(self, role: str, action: Action, expected: int) -> bool:
        """Take a person's turn; False where it is not (or no longer) this turn of this role, as after a double click.

        `expected` is the number of turns that the role saw when it answered.
        """
        with self.turned:
            if not self.is_asked(role) or len(self.seen_by(role).transcript) != expected:
                return False
            self.given = action
            self.turned.notify_all()
            return True

    # ---- called by the run's thread ----------------------------------------------------------------------------

    def ask(self, request: Request) -> Action:
        """Wait for the person whose turn it is. Raises InvalidInput where that takes too long."""
        with self.turned:
            self.asked, self.given = request.speaker, None
            self.ways = request.observation.allowed if request.observation else ()
            begun = time.monotonic()
            while self.given is None:
                if time.monotonic() - begun > PATIENCE_S or time.monotonic() - self.visited > AWAY_S:
                    raise InvalidInput("the next turn took too long")
                self.turned.wait(5)
            self.asked = None
            return self.given

    def add(self, turn: Turn) -> None:
        """Add a turn that has been taken."""
        with self.turned:
            self.turns.append(turn)

    def ended_with(self, problem: str) -> None:
        """End the game; an empty `problem` means that nothing went wrong."""
        with self.turned:
            self.ended, self.problem = True, problem
            self.asked = None
            self.visited = time.monotonic()


class _Watcher(Watcher):
    def __init__(self, game: Game) -> None:
        self._game = game

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:  # noqa: ARG002 - a Watcher
        self._game.add(turn)

    def ended(self, episode: Episode) -> None:
        if episode.error:
            self._game.problem = episode.error


class Stage:
    """All games of a server. `model` plays the roles that no person takes."""

    def __init__(self, store: Store, model: str) -> None:
        self._store = store
        self.model = model
        self._games: dict[str, Game] = {}
        self._lock = threading.Lock()

    def open(self, loaded: LoadedScenario, roles: tuple[str, ...], mode: Mode) -> tuple[str, Game]:
        """Start a game in which people play `roles`, and return its name and itself.

        Raises InvalidInput for a role that the scenario does not have, or while too many games are in progress.
        """
        for role in roles:
            if role not in loaded.scenario.names:
                raise InvalidInput(f"{loaded.scenario.id} has no role {role!r}")
        seed = secrets.randbelow(1 << 31)
        plan = Plan((loaded,), (mode,), model=self.model, roles=dict.fromkeys(roles, NAME), seed=seed, parallel=1)
        game = Game(loaded, mode, plan, {secrets.token_urlsafe(9): role for role in roles})
        with self._lock:
            now = time.monotonic()
            self._games = {
                name: kept for name, kept in self._games.items() if not kept.ended or now - kept.visited < _KEPT_S
            }
            self._refuse_too_many(with_model=len(roles) < len(loaded.scenario.names))
            name = secrets.token_urlsafe(6)
            self._games[name] = game
        threading.Thread(target=self._play, args=(game,), name=f"game-{name}", daemon=True).start()
        return name, game

    def _refuse_too_many(self, *, with_model: bool) -> None:
        going = [game for game in self._games.values() if not game.ended]
        models = [game for game in going if len(game.seats) < len(game.scenario.scenario.names)]
        if len(going) >= MOST_GAMES:
            raise InvalidInput(f"{MOST_GAMES} games are in progress", hint="wait until one has ended")
        if with_model and len(models) >= MOST_MODELS:
            raise InvalidInput(
                f"{MOST_MODELS} games with a model are in progress",
                hint="wait until one has ended, or play with another person",
            )

    def find(self, name: str, seat: str) -> tuple[Game, str]:
        """A game and the role of a seat. Raises InvalidInput."""
        game = self._games.get(name)
        if game is None or seat not in game.seats:
            raise InvalidInput("no such seat", hint="the server may have been restarted since; start a new game")
        game.visited = time.monotonic()
        game.taken.add(seat)
        return game, game.seats[seat]

    def _play(self, game: Game) -> None:
        problem = "Something unexpected happened; the server's terminal shows the details."
        try:
            notices: list[str] = []
            result = runner.start(game.plan, self._store, _Watcher(game), notices.append, game.ask, leaks=True)
            stored = page_queries.episode_ids(self._store, result.run_id)
            game.episode_id = stored[0] if stored else ""
            # The last notice of a run that was not scored for leaks is the reason, such as a missing model.
            problem = game.problem or ("" if result.leaks_scored or not notices else notices[-1])
        except LocalsimError as error:
            problem = f"{error.message} ({error.hint})" if error.hint else error.message
        finally:
            game.ended_with(problem)
