"""Games: families with rules of their own, one file each. A new game joins `GAMES`."""

from __future__ import annotations

from localsim.families.base import Family
from localsim.families.games.guessing.guess_city import GuessCity
from localsim.families.games.guessing.maze import Maze
from localsim.families.games.guessing.twenty_questions import TwentyQuestions
from localsim.families.games.guessing.wordle import Wordle
from localsim.families.games.money.bargaining import Bargaining
from localsim.families.games.money.matrix import Matrix

GAMES: tuple[Family, ...] = (Bargaining(), Matrix(), TwentyQuestions(), GuessCity(), Wordle(), Maze())
"""Every game, in the order of reports."""
