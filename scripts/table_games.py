#!/usr/bin/env python3
"""Let a model play every game, with and without its grammar, and write docs/log/games-starter.md.

    .venv/bin/python scripts/table_games.py --db games.duckdb              # the starter, two scenarios of each game
    .venv/bin/python scripts/table_games.py --db games.duckdb --page       # write the page from what is stored

A game's first scenario is its shortest one that ships, the second is the next, and so on. The same command goes on
where it was interrupted. Random and sensible scripted play of the same scenarios stand beside the model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.conversation.episode import MODES, Sampling  # noqa: E402
from localsim.conversation.scenario import LoadedScenario  # noqa: E402
from localsim.families import FAMILIES  # noqa: E402
from localsim.families.games.base import Game  # noqa: E402
from localsim.reports.compose.alone import cells  # noqa: E402
from localsim.reports.measures import Cell, estimate, measures_of, of_family, sided  # noqa: E402
from localsim.runs.plan import Plan  # noqa: E402
from localsim.scenarios.find import find_scenarios  # noqa: E402
from localsim.store.database import Store  # noqa: E402
from localsim.store.queries.runs import runs_named  # noqa: E402
from scripts.tables import day_of, markdown_table, play  # noqa: E402

PAGE = ROOT / "docs" / "log" / "games-starter.md"
SEED = 21
EPISODES = 20
"""Episodes of random play and of sensible play for each scenario and mode."""
GRAMMAR, FREE, RANDOM, SENSIBLE = "grammar", "no grammar", "random", "sensible"
Cells = dict[tuple[str, str], Cell]
"""(game, mode) -> its episodes."""


def shortest(game: str, number: int) -> LoadedScenario:
    """Return one of a game's scenarios that ship, in the order of their most turns."""
    family = FAMILIES[game]
    assert isinstance(family, Game)
    loaded = find_scenarios([f"{game}_{name}" for name in family.bundled])
    return sorted(loaded, key=lambda each: each.scenario.limits.turns)[number]


def plans(model: str, number: int, threads: int | None) -> Iterator[tuple[str, Plan]]:
    """Yield the name and plan of each run of one scenario of every game."""
    found = tuple(shortest(game, number) for game in FAMILIES.games)
    plan = Plan(found, MODES, model, seed=SEED, parallel=4, threads=threads)
    yield f"{model} {GRAMMAR} {number}", plan
    for player, name in ((RANDOM, "any"), (SENSIBLE, "auto")):
        yield f"{player} {number}", replace(plan, model=f"scripted:{name}", episodes=EPISODES)
    yield f"{model} {FREE} {number}", replace(plan, sampling=replace(Sampling(), grammar=False))


# ---- the page ------------------------------------------------------------------------------------------------------


def stored(store: Store, start: str, scenarios: int) -> Cells:
    """Return the episodes of the runs whose names begin so, of the first scenarios together."""
    found: Cells = {}
    for number in range(scenarios):
        for run_id in runs_named(store, f"{start} {number}")[:1]:
            for (game, condition), cell in cells(store, run_id, sided(store, run_id)).items():
                place = game, condition.mode
                found[place] = _joined(found[place], cell) if place in found else cell
    return found


def _joined(one: Cell, other: Cell) -> Cell:
    counts = {name: {**own, **other.counts[name]} for name, own in one.counts.items()}
    return Cell(one.family, [*one.episodes, *other.episodes], [*one.scores, *other.scores], counts)


def page(store: Store, model: str, scenarios: int) -> str:
    """Return the page: what was done, the table, and how to read it."""
    starts = {GRAMMAR: f"{model} {GRAMMAR}", FREE: f"{model} {FREE}", RANDOM: RANDOM, SENSIBLE: SENSIBLE}
    found = {column: stored(store, start, scenarios) for column, start in starts.items()}
    modes = " / ".join(MODES)
    heads = ("game", "measure", "read", "ended", model, RANDOM, SENSIBLE)
    played = {game for game, _ in found[GRAMMAR]}
    rows = [list(_row(game, found)) for game in FAMILIES.games if game in played]
    parts = [
        f"# The games on `{model}`",
        f"`{model}` plays all roles of each game, in the three modes. A cell has three values, {modes},\nor one if "
        f"they are equal. The model played {_episodes(found[GRAMMAR])} with its grammar,\nand {_episodes(found[FREE])} "
        f"without it.\nWith it, {_whole(found[GRAMMAR])}.",
        markdown_table(heads, rows),
        NOTES.format(model=model, episodes=EPISODES, random=RANDOM, sensible=SENSIBLE),
        f"Measured on {_day(found[GRAMMAR])} with\n\n    python scripts/table_games.py -m {model} --scenarios "
        f"{scenarios} --db games.duckdb --page",
    ]
    return "\n\n".join(parts) + "\n"


NOTES = """- *read*, without the grammar: share of the replies that are a line of an allowed move. A reply that cannot
  be read is written again once.
- *ended*, without the grammar: share of the episodes that the rules brought to their end; the others failed because
  of such a turn.
- `{model}`: the measure with the grammar. The value is the mean over episodes; with so few of them, a difference of
  one episode is no difference between modes.
- *{random}*: any allowed move at random (`-m scripted:any`), {episodes} episodes of each scenario and mode.
  *{sensible}*: the scripted player that plays well with what it sees (`-m scripted`). Where a model does not do better
  than random play, it does not play the game, though it follows its rules.
- The scenarios are the shortest of each game that ship. `localsim run` with the same scenario shows the talks."""


def _episodes(found: Cells) -> str:
    count = sum(len(cell.episodes) for cell in found.values())
    scenarios = len({row.scenario_id for cell in found.values() for row in cell.episodes})
    return f"{count} episodes of {scenarios} scenario{'' if scenarios == 1 else 's'}"


def _whole(found: Cells) -> str:
    """Return in words how many replies were lines of allowed moves, and how many episodes came to their end."""
    pairs = [pair for cell in found.values() for pair in cell.counts["malformed"].values()]
    malformed, replies = (sum(pair[place] for pair in pairs) for place in (0, 1))
    ended = [row.status == "completed" for cell in found.values() for row in cell.episodes]
    read = f"{100 * (1 - malformed / replies):.0f}% of the replies" if replies else "no reply"
    return f"{read} could be read, and {sum(ended)} of {len(ended)} episodes came to their end"


def _day(found: Cells) -> str:
    return day_of(str(row.run_id) for cell in found.values() for row in cell.episodes)


def _row(game: str, found: dict[str, Cells]) -> Iterator[str]:
    own = {name: [cells.get((game, mode)) for mode in MODES] for name, cells in found.items()}
    measure = next(each for each in measures_of([game]) if each.key == FAMILIES[game].figure[0])
    measure = of_family(measure, game)
    yield f"`{game}`"
    yield measure.heading
    for read in (_read, _ended):
        yield _shown([None if cell is None else read(cell) for cell in own[FREE]], share=True)
    for column in (GRAMMAR, RANDOM, SENSIBLE):
        values = [None if cell is None else estimate(measure, cell).value for cell in own[column]]
        yield _shown(values, share=measure.kind == "share")


def _read(cell: Cell) -> float | None:
    malformed, replies = (sum(pair[place] for pair in cell.counts["malformed"].values()) for place in (0, 1))
    return 1 - malformed / replies if replies else None


def _ended(cell: Cell) -> float | None:
    ended = [row.status == "completed" for row in cell.episodes]
    return sum(ended) / len(ended) if ended else None


def _shown(values: Sequence[float | None], *, share: bool) -> str:
    """Return the values of the modes; one value where all are equal."""
    texts = ["-" if value is None else f"{100 * value:.0f}%" if share else f"{value:.2f}" for value in values]
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


@click.command()
@click.option("-m", "--model", default="starter", show_default=True, help="The model that plays.")
@click.option("--scenarios", type=click.IntRange(1, 5), default=2, show_default=True, help="Scenarios of each game.")
@click.option("--db", type=click.Path(path_type=Path), required=True, help="Keep the episodes in this database.")
@click.option("--threads", type=int, help="Threads of llama.cpp [one for each core].")
@click.option("--page", "only_page", is_flag=True, help="Write the page from what is stored, and play nothing.")
def main(model: str, scenarios: int, db: Path, threads: int | None, only_page: bool) -> None:
    """Play, then write docs/log/games-starter.md."""
    store = Store(db)
    for number in range(0 if only_page else scenarios):
        for name, plan in plans(model, number, threads):
            print(f"{datetime.now(UTC):%H:%M:%S} {name}: {len(plan.specs())} episodes", file=sys.stderr)
            play(store, name, plan)
    PAGE.write_text(page(store, model, scenarios), encoding="utf-8")
    print(PAGE.relative_to(ROOT))


if __name__ == "__main__":
    main()
