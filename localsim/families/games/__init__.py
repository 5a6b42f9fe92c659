"""Games: families with rules of their own, one file each. A new game joins `GAMES`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from localsim.conversation.scenario import ScenarioFile
from localsim.families.games.base import Game
from localsim.families.games.groups.hidden_role import HiddenRole
from localsim.families.games.groups.jury import Jury
from localsim.families.games.groups.peer_review import PeerReview
from localsim.families.games.groups.restaurant import Restaurant
from localsim.families.games.guessing.guess_city import GuessCity
from localsim.families.games.guessing.maze import Maze
from localsim.families.games.guessing.twenty_questions import TwentyQuestions
from localsim.families.games.guessing.wordle import Wordle
from localsim.families.games.money.auction import Auction
from localsim.families.games.money.balloon import Balloon
from localsim.families.games.money.bargaining import Bargaining
from localsim.families.games.money.matrix import Matrix
from localsim.families.games.money.negotiation import Negotiation
from localsim.families.games.money.persuasion import Persuasion
from localsim.families.games.money.public_goods import PublicGoods
from localsim.families.games.money.trust import Trust
from localsim.families.games.money.ultimatum import Ultimatum
from localsim.families.games.scenes.counselling import Counselling
from localsim.families.games.scenes.debate import Debate
from localsim.families.games.scenes.dinner import Dinner
from localsim.families.games.scenes.narrated import Narrated
from localsim.families.games.situations.game import Situations
from localsim.families.games.talking.car_dealer import CarDealer
from localsim.families.games.talking.films import Films
from localsim.families.games.talking.linear_program import LinearProgram
from localsim.families.games.talking.recommendation import Recommendation

GAMES: tuple[Game, ...] = (
    Bargaining(),
    Negotiation(),
    Persuasion(),
    Balloon(),
    Matrix(),
    Ultimatum(),
    Trust(),
    PublicGoods(),
    Auction(),
    TwentyQuestions(),
    GuessCity(),
    Wordle(),
    Maze(),
    CarDealer(),
    Recommendation(),
    Films(),
    LinearProgram(),
    Jury(),
    HiddenRole(),
    PeerReview(),
    Restaurant(),
    Counselling(),
    Dinner(),
    Narrated(),
    Debate(),
    Situations(),
)
"""Every game, in the order of reports."""
FIRST_SEED = 900
"""The seed of the first scenario of a game that ships."""
SHIPPED: Mapping[str, Callable[[], ScenarioFile]] = {
    f"{game.name}_{name}": partial(game.generate, f"{game.name}_{name}", FIRST_SEED + number, parameters)
    for game in GAMES
    for number, (name, parameters) in enumerate(game.bundled.items())
}
"""The id of each scenario of a game that ships, with what generates it; they need no files."""
