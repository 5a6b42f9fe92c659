"""Games in the browser: a run in a thread whose human roles are asked through pages. In memory, stored as any run."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from localsim.backends.person import NAME
from localsim.conversation.episode import Episode, EpisodeSpec, Mode
from localsim.conversation.exchange import Request
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action, ActionType, Transcript, Turn
from localsim.errors import InvalidInput, LocalsimError
from localsim.evaluators import leaks
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.store.database import Store

MOST_GAMES, MOST_MODELS = 60, 2
"""Games under way at a time, and of these such as load a model."""
PATIENCE_S, AWAY_S = 45 * 60.0, 10 * 60.0
"""After which a talk breaks off: nobody says anything, or nobody has the page of a seat open."""
_KEPT_S = 2 * 3600.0
"""For which the reveal of a talk that has ended can be seen."""


@dataclass
class Game:
    """One talk. Everything that changes is guarded by `turned`."""

    scenario: LoadedScenario
    mode: Mode
    plan: Plan
    seats: Mapping[str, str]
    """Secret of a seat -> role."""
    turned: threading.Condition = field(default_factory=threading.Condition)
    turns: list[Turn] = field(default_factory=list)
    asked: str | None = None
    """The role whose turn it is, where a person plays it."""
    given: Action | None = None
    ended: bool = False
    problem: str = ""
    episode_id: str = ""
    taken: set[str] = field(default_factory=set)
    """Seats that somebody has opened: nobody else is shown the way to them."""
    visited: float = field(default_factory=time.monotonic)
    """When a seat was last looked at."""

    @property
    def spec(self) -> EpisodeSpec:
        """The episode that is played."""
        return self.plan.specs()[0]

    @property
    def transcript(self) -> Transcript:
        """What has been said."""
        return Transcript(tuple(self.turns))

    def say(self, role: str, action: Action, expected: int) -> bool:
        """A person's turn; False where it is not (or no longer) this turn of this role, as after a double click."""
        with self.turned:
            if self.asked != role or self.given is not None or len(self.turns) != expected:
                return False
            self.given = action
            self.turned.notify_all()
            return True

    # ---- the run's side ----------------------------------------------------------------------------------------

    def ask(self, request: Request) -> Action:
        """Wait for the person whose turn it is."""
        with self.turned:
            self.asked, self.given = request.speaker, None
            begun = time.monotonic()
            while self.given is None:
                if time.monotonic() - begun > PATIENCE_S or time.monotonic() - self.visited > AWAY_S:
                    raise InvalidInput("nobody said anything for too long")
                self.turned.wait(5)
            self.asked = None
            return self.given

    def add(self, turn: Turn) -> None:
        """A turn stands."""
        with self.turned:
            self.turns.append(turn)

    def ended_with(self, problem: str) -> None:
        """The talk is over."""
        with self.turned:
            self.ended, self.problem = True, problem
            self.asked = None
            self.visited = time.monotonic()


class _Watcher:
    def __init__(self, game: Game) -> None:
        self._game = game

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:  # noqa: ARG002 - a Watcher
        self._game.add(turn)

    def ended(self, episode: Episode) -> None:
        if episode.error:
            self._game.problem = episode.error

    def tokens(self, generated: int) -> None:
        """Not shown."""


class Stage:
    """All games of a server. `model` plays the roles that nobody takes."""

    def __init__(self, store: Store, model: str) -> None:
        self._store = store
        self.model = model
        self._games: dict[str, Game] = {}
        self._lock = threading.Lock()

    def open(self, loaded: LoadedScenario, roles: tuple[str, ...], mode: Mode) -> tuple[str, Game]:
        """Start a talk in which people play `roles`: its name and itself. Raises InvalidInput where it is too much."""
        for role in roles:
            if role not in loaded.scenario.names:
                raise InvalidInput(f"{loaded.scenario.id} has no role {role!r}")
        seed = secrets.randbelow(1 << 31)
        plan = Plan((loaded,), (mode,), model=self.model, roles=dict.fromkeys(roles, NAME), seed=seed, parallel=1)
        game = Game(loaded, mode, plan, {secrets.token_urlsafe(9): role for role in roles})
        with self._lock:
            now = time.monotonic()
            self._games = {
                key: each for key, each in self._games.items() if not each.ended or now - each.visited < _KEPT_S
            }
            going = [each for each in self._games.values() if not each.ended]
            with_model = [each for each in going if len(each.seats) < len(each.scenario.scenario.names)]
            if len(going) >= MOST_GAMES:
                raise InvalidInput(f"{MOST_GAMES} talks are under way", hint="wait until one has ended")
            if len(roles) < len(loaded.scenario.names) and len(with_model) >= MOST_MODELS:
                raise InvalidInput(
                    f"{MOST_MODELS} talks with a model are under way", hint="wait until one has ended, or play in twos"
                )
            name = secrets.token_urlsafe(6)
            self._games[name] = game
        threading.Thread(target=self._play, args=(game,), name=f"game-{name}", daemon=True).start()
        return name, game

    def find(self, name: str, seat: str) -> tuple[Game, str]:
        """A game and the role of a seat. Raises InvalidInput."""
        game = self._games.get(name)
        if game is None or seat not in game.seats:
            raise InvalidInput("no such seat", hint="the talk may have been before the server was started again")
        game.visited = time.monotonic()
        game.taken.add(seat)
        return game, game.seats[seat]

    def _play(self, game: Game) -> None:
        problem = "Something unexpected happened; the server's terminal says more."
        try:
            result = runner.start(game.plan, self._store, _Watcher(game), _silent, game.ask)
            rows = self._store.rows("SELECT episode_id FROM v_episodes WHERE run_id = ?", [result.run_id])
            game.episode_id = str(rows[0]["episode_id"]) if rows else ""
            problem = game.problem
            leaks.score_run(self._store, result.run_id, _silent)
        except LocalsimError as error:
            problem = f"{error.message} ({error.hint})" if error.hint else error.message
        finally:
            game.ended_with(problem)


def _silent(_line: str) -> None:
    """A server's log is no place for a talk's progress."""


KINDS: dict[ActionType, str] = {
    "speak": "say",
    "action": "do",
    "non-verbal communication": "show without words",
    "none": "do nothing",
    "leave": "leave",
}
"""Actions in the order of a form, and how they are called there."""
