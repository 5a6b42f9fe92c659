"""Finitely repeated 2x2 games (Akata et al., arXiv 2305.16867): both choose at the same time, then see the points.

The 144 ordinal games are those of Rapoport, Guyer and Gordon as counted by Robinson and Goforth (2005): each player
ranks the four outcomes 1 (worst) to 4 (best) without ties, and games that differ only in the names of options are one:
24 * 24 / 4 = 144. The seven kinds follow Akata et al., section 2 (win-win 36, biased 44, second-best 12, cyclic 18,
unfair 19, prisoner's dilemmas 7, tragic 8).

With `predict` both write down in private what the other will choose before they choose (their social chain of thought).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import permutations, product
from typing import Any, Literal

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Table

OPTIONS = ("J", "F")
CELLS = tuple(one + other for one, other in product(OPTIONS, OPTIONS))
"""The first player's option, then the second's."""
Points = Mapping[str, tuple[int, int]]
"""Cell -> what the first and the second player win."""
Kind = Literal["win-win", "biased", "second-best", "cyclic", "unfair", "prisoners", "tragic"]


@cache
def ordinal() -> tuple[tuple[Kind, Points], ...]:
    """Return all games with their kinds, in a fixed order."""
    found: dict[tuple[tuple[int, int], ...], Points] = {}
    for ranks in product(permutations((1, 2, 3, 4)), repeat=2):
        table = dict(zip(CELLS, zip(*ranks, strict=True), strict=True))
        key = min(tuple(renamed[cell] for cell in CELLS) for renamed in _renamings(table))
        found.setdefault(key, dict(zip(CELLS, key, strict=True)))
    return tuple((kind_of(table), table) for table in found.values())


def _renamings(table: Points) -> list[Points]:
    other = dict(zip(OPTIONS, reversed(OPTIONS), strict=True))
    rows = [table, {other[cell[0]] + cell[1]: won for cell, won in table.items()}]
    return [*rows, *({cell[0] + other[cell[1]]: won for cell, won in each.items()} for each in rows)]


def equilibria(table: Points) -> tuple[str, ...]:
    """Return the cells in which nobody wins more by another option alone (pure Nash equilibria)."""
    return tuple(
        cell
        for cell, (one, other) in table.items()
        if all(one >= table[option + cell[1]][0] and other >= table[cell[0] + option][1] for option in OPTIONS)
    )


def kind_of(table: Points) -> Kind:
    """Return the kind of a game of ranks: by its best equilibrium, and whether both prefer another outcome to it."""
    cells = equilibria(table)
    if not cells:
        return "cyclic"
    best, second = max(sorted(table[cell], reverse=True) for cell in cells)
    named: dict[tuple[int, int], Kind] = {
        (4, 4): "win-win", (4, 3): "biased", (4, 2): "unfair", (3, 3): "second-best",
    }  # fmt: skip
    if kind := named.get((best, second)):
        return kind
    stuck = any(won[0] > table[cell][0] and won[1] > table[cell][1] for cell in cells for won in table.values())
    return "prisoners" if stuck else "tragic"


TABLES: Mapping[str, Points] = {
    "prisoners": {"JJ": (8, 8), "JF": (0, 10), "FJ": (10, 0), "FF": (5, 5)},
    "sexes": {"JJ": (10, 7), "JF": (0, 0), "FJ": (0, 0), "FF": (7, 10)},
}
"""The prisoner's dilemma and the battle of the sexes of arXiv 2305.16867."""
STORIES = {
    "none": "",
    "project": "They work on a project, and each decides alone how to do the own part. ",
    "cooking": "They cook together, and each decides alone what to bring. ",
}
"""What the choices are about; points do not depend on it."""
SLIPS = (1, 40, 60, 80)
"""Percentages of mistakes of the players who err."""


class Matrix(Replayed):
    """Two people choose J or F at the same time, again and again."""

    name, version = "matrix", "1"
    title = "Repeated 2x2 games"
    about = "Two people choose J or F at the same time, several times; what each wins depends on both."
    protocol = ("together",)
    defaults = {"table": "prisoners", "rounds": 10, "talk": False, "predict": False, "story": "none"}
    allowed = {"story": tuple(STORIES)}
    newer = ("predict", "story")
    how = "Both choose without seeing the other's choice; then both are told the choices and the points."
    tries = (
        "Let -m scripted:tit-for-tat play, then -m scripted:always-f: what does each win against itself?",
        "Play against a scripted player: localsim play matrix_prisoners -m scripted:grim",
        "Allow words (matrix_words) and see whether promises are kept.",
    )
    bundled = {
        "prisoners": {},
        "sexes": {"table": "sexes"},
        "words": {"talk": True},
        "cyclic": {"table": "39"},
        "win_win": {"table": "0"},
        "predict": {"predict": True},
    }
    measures = (
        g.mean("points", "points", "points of a player, summed over the rounds", compared=True),
        g.share("payoff", "payoff", "points of a player, in parts of the most that can be won", compared=True),
        g.share("cooperation", "chose J", "share of choices that are J", compared=True),
        g.share("coordination", "same choice", "share of rounds in which both choose the same", "same"),
        g.mean("alternation", "alternation", "share of rounds after the first in which both change"),
        g.share("foreseen", "foreseen", "share of predictions that are what the other then chooses"),
    )
    figure = ("payoff", "cooperation", "coordination")
    references = (
        g.RANDOM,
        g.Reference(
            "tit-for-tat",
            "tit-for-tat",
            "repeats what the other did; which play is optimal depends on the table and on the other player",
        ),
    )
    control_tasks = {"sexes": {"table": "sexes"}, "predict": {"predict": True}}
    controls = (
        g.exactly("tit-for-tat", "points", 80, "8 points in each of 10 rounds"),
        g.exactly("tit-for-tat", "cooperation", 1, "nobody begins to defect"),
        g.exactly("always-f", "points", 50, "5 points in each of 10 rounds"),
        g.exactly("always-f", "cooperation", 0, "F is always chosen"),
        g.exactly("always-j", "payoff", 0.8, "8 of the 10 points that a round can bring"),
        g.exactly("always-j", "coordination", 1, "both always choose J"),
        g.exactly("alternate-jf", "alternation", 1, "both change in every round"),
        g.exactly("alternate-jf", "points", 85, "5 rounds of 10 points and 5 of 7, for either player", "sexes"),
        g.exactly("defect-once", "cooperation", 0.9, "one of ten choices is F"),
        g.by_chance("any", "coordination", 0.5, "two fair coins agree in half of the rounds"),
        g.by_chance("slips-40", "cooperation", 0.6, "J, but for a mistake in 40% of the choices"),
        g.exactly("tit-for-tat", "foreseen", 1, "both go on with J", "predict"),
        g.exactly("defect-once", "foreseen", 0.8, "F is not foreseen, and then a second F is", "predict"),
        g.exactly("alternate-jf", "foreseen", 0.1, "each later round differs from the one before", "predict"),
        g.by_chance("any", "foreseen", 0.5, "predictions and choices are fair coins", "predict"),
    )

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        (first, second), rounds = names, chosen["rounds"]
        table, kind = _table(str(chosen["table"]))
        points = "; ".join(f"{first} {a} and {second} {b}: {table[a + b][0]} and {table[a + b][1]}"
                           for a in OPTIONS for b in OPTIONS)  # fmt: skip
        predicts = {"predict": True} if chosen["predict"] else {}
        before = "Before each choice, both write down in private what the other will choose. " if predicts else ""
        moves = [g.can("choose", "To choose", g.one_of(*OPTIONS), text="may" if chosen["talk"] else "no")]
        if predicts:
            moves.append(g.can("predict", "To predict the other's choice", g.one_of(*OPTIONS), readers="self"))
        return Scene(
            title=f"{first} and {second} choose J or F, {rounds} times",
            setting=f"{first} and {second} choose J or F at the same time, {rounds} times. {STORIES[chosen['story']]}"
            f"{before}Points for {first} and {second}: {points}.",
            goal="Win as many points as you can.",
            moves=moves,
            public={"table": {cell: list(won) for cell, won in table.items()}, "rounds": rounds, **predicts},
            parameters={"kind": kind},
            turns=(4 if predicts else 2) * rounds,
        )

    def play(self, table: Table) -> Course:
        names, points, before = table.names, table.public["table"], ""
        most = max(max(pair) for pair in points.values())
        won = dict.fromkeys(names, 0)
        for number in range(1, table.public["rounds"] + 1):
            said = (yield from table.together(names, "predict")) if "predict" in table.public else ()
            one, other = [turn.value for turn in (yield from table.together(names, "choose"))]
            for turn, choice in zip(said, (other, one), strict=False):
                table.mean("foreseen", turn.value == choice, [turn])
            table.mean("cooperation", (one == "J") + (other == "J"), of=2)
            table.mean("same", one == other)
            if before:
                table.mean("alternation", one != before[0] and other != before[1])
            before, gained = one + other, points[one + other]
            won = {name: won[name] + new for name, new in zip(names, gained, strict=True)}
            table.each("points", won)
            table.each("payoff", {name: sum_ / (most * number) for name, sum_ in won.items()})
            lines = [f"{who} chose {cell}, won {new}" for who, cell, new in zip(names, before, gained, strict=True)]
            yield from table.tell(f"Round {number}: {'; '.join(lines)}.", *gained)


def _table(name: str) -> tuple[Points, str]:
    """Return a table of points and its kind. Raises InvalidInput."""
    if name in TABLES:
        return TABLES[name], name
    games = ordinal()
    if name.isdecimal() and int(name) < len(games):
        return games[int(name)][1], games[int(name)][0]
    known = ", ".join(TABLES)
    raise g.InvalidInput(f"matrix: table = {name!r} is not known", hint=f"one of {known}, or a number from 0 to 143")


# ---- players -------------------------------------------------------------------------------------------------------


def _history(seen: g.Observation) -> tuple[list[str], list[str]]:
    """Return the viewer's own choices and those of the other."""
    chosen = seen.transcript.of("choose")
    own = [turn.value for turn in chosen if turn.speaker == seen.viewer]
    return own, [turn.value for turn in chosen if turn.speaker != seen.viewer]


def _fixed(seen: g.Observation, rng: random.Random, *, pattern: str, again: bool = False) -> g.Action:
    """Choose after a pattern, then its last option, or, with `again`, the pattern from its start."""
    own = len(_history(seen)[0])
    return g.move("choose", pattern[own % len(pattern) if again else min(own, len(pattern) - 1)])


def _replying(
    seen: g.Observation,
    rng: random.Random,
    *,
    first: str = "J",
    after: int = 1,
    forgives: bool = True,
    reverse: bool = False,
) -> g.Action:
    """Choose F after so many F of the other in a row, else J, as tit-for-tat does.

    `forgives` False: F for ever after the first. `reverse`: the other way round.
    """
    own, theirs = _history(seen)
    if not own:
        return g.move("choose", first)
    angry = "F" in theirs if not forgives else len(theirs) >= after and set(theirs[-after:]) == {"F"}
    return g.move("choose", "F" if angry != reverse else "J")


def _slipping(seen: g.Observation, rng: random.Random, *, share: float) -> g.Action:
    """Choose J, and F by mistake in a share of the choices."""
    return g.move("choose", "F" if rng.random() < share else "J")


def _foreseeing(player: g.Player) -> g.Player:
    """Let a player predict that the other goes on with the last choice, at first J."""

    def play(seen: g.Observation, rng: random.Random) -> g.Action:
        return g.move("predict", [OPTIONS[0], *_history(seen)[1]][-1]) if seen.may("predict") else player(seen, rng)

    return play


_FIXED: Mapping[str, g.Player] = {
    "always-j": partial(_fixed, pattern="J"),
    "always-f": partial(_fixed, pattern="F"),
    "defect-once": partial(_fixed, pattern="FJ"),
    "alternate-jf": partial(_fixed, pattern="JF", again=True),
    "alternate-fj": partial(_fixed, pattern="FJ", again=True),
    "tit-for-tat": _replying,
    "tit-for-two-tats": partial(_replying, after=2),
    "suspicious": partial(_replying, first="F"),
    "reverse": partial(_replying, reverse=True),
    "grim": partial(_replying, forgives=False),
    **{f"slips-{percent}": partial(_slipping, share=percent / 100) for percent in SLIPS},
}
Matrix.players = {name: _foreseeing(player) for name, player in _FIXED.items()}
Matrix.sensible = "tit-for-tat"
