#!/usr/bin/env python3
"""Search a layout of prompts: let a model hold the same conversations in each candidate and compare how they play.

    .venv/bin/python scripts/search_prompts.py qwen2.5-coder-1.5b                       # layouts 3 and 4
    .venv/bin/python scripts/search_prompts.py qwen2.5-coder-1.5b -c candidates.toml --halve --scenarios 2 --episodes 3

A file of candidates has a table for each: the layout that it begins with, and what it changes.

    [warm]
    layout = "4"
    sampling = { temperature = 0.9 }
    wording = { settle = "Say something new; when it is settled, say goodbye with {start}." }

The talks are searches, bargains and everyday scenarios of development seeds (--first-seed), or castings of situations
(--situations); measure what wins on seeds that no candidate was chosen on. --halve drops the worse half of them
and plays the others with twice as many episodes, until one is left. docs/log/prompts.md has what was found.
"""

from __future__ import annotations

import random
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.backends.open import chosen_model  # noqa: E402
from localsim.conversation.episode import MODES, Mode  # noqa: E402
from localsim.conversation.scenario import LoadedScenario  # noqa: E402
from localsim.conversation.wording import layouts, variants  # noqa: E402
from localsim.families import FAMILIES  # noqa: E402
from localsim.runs import runner  # noqa: E402
from localsim.runs.plan import Plan  # noqa: E402
from localsim.runs.scheduler import Watcher  # noqa: E402
from localsim.scenarios.find import find_scenarios  # noqa: E402
from localsim.scenarios.writing import draw_sample  # noqa: E402
from localsim.store.database import Store  # noqa: E402
from scripts.tables import markdown_table, say  # noqa: E402

EVERYDAY = ("a_favour_asked", "a_secret_kept")
PLAYED = ("mutual_friends", "craigslist")
SCORES = (
    "plays",
    "task_touched",
    "explicit_end",
    "settled",
    "success",
    "own_repeated_turns",
    "words_per_turn",
    "turns",
)
"""The columns of the table: means of these scores."""


@dataclass(frozen=True)
class Candidate:
    """A layout with changes."""

    name: str
    layout: layouts.Layout
    wording: dict[str, str]

    @contextmanager
    def tried(self) -> Iterator[None]:
        """Let every model have this layout."""
        usual, words = layouts.LAYOUTS[layouts.DEFAULT], variants.WORDINGS
        known: Any = layouts.LAYOUTS
        known[layouts.DEFAULT] = self.layout
        variants.WORDINGS = (replace(words[0], **self.wording), *words[1:])
        try:
            yield
        finally:
            known[layouts.DEFAULT], variants.WORDINGS = usual, words


def candidates_in(file: Path | None) -> list[Candidate]:
    """Return the candidates of a file; without one, the layouts that ship."""
    if file is None:
        return [Candidate(name, layout, {}) for name, layout in layouts.LAYOUTS.items()]
    found = []
    for name, table in tomllib.loads(file.read_text(encoding="utf-8")).items():
        begun = layouts.LAYOUTS[table.get("layout", layouts.DEFAULT)]
        sampling = replace(begun.sampling, **table.get("sampling", {}))
        found.append(Candidate(name, replace(begun, sampling=sampling), table.get("wording", {})))
    return found


def talks_of(count: int, first_seed: int) -> tuple[LoadedScenario, ...]:
    """Return `count` searches and bargains of their seeds, and the everyday scenarios."""
    made = [
        LoadedScenario(*FAMILIES[family].generate(f"{family}_{seed}", seed, {}).split(), f"{family}.yaml")
        for seed in range(first_seed, first_seed + count)
        for family in PLAYED
    ]
    return (*made, *find_scenarios(EVERYDAY))


def castings(count: int, seed: int) -> tuple[LoadedScenario, ...]:
    """Return `count` castings of different situations; a seed is a casting that no study uses (theirs is 1)."""
    tasks = random.Random(seed).sample(draw_sample(1, seed=seed).tasks, count)
    return tuple(find_scenarios(sorted(task.reference for task in tasks)))


def scores_of(candidate: Candidate, plan: Plan, store: Store) -> list[dict[str, Any]]:
    """Play a plan with a candidate; return the mean scores of each mode, and of all modes together."""
    with candidate.tried():
        run_id = runner.start(replace(plan, layouts=None), store, Watcher(), say, leaks=False).run_id
    means = ", ".join(f"avg(value) FILTER (name = '{score}') AS {score}" for score in SCORES)
    query = (
        f"SELECT coalesce(mode, 'all') AS mode, count(DISTINCT episode_id) AS talks, {means} "
        "FROM v_scores JOIN episodes USING (episode_id) WHERE episodes.run_id = ? "
        "GROUP BY GROUPING SETS ((episodes.mode), ()) ORDER BY mode"
    )
    return store.rows(query.replace("coalesce(mode,", "coalesce(episodes.mode,"), [run_id])


def halved(found: Sequence[tuple[Candidate, float]]) -> list[Candidate]:
    """Return the better half of the candidates, the best first."""
    ranked = sorted(found, key=lambda pair: -pair[1])
    return [candidate for candidate, _ in ranked[: len(ranked) // 2]]


@click.command()
@click.argument("model")
@click.option("-c", "--candidates", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--scenarios", default=3, show_default=True, help="Searches, and as many bargains.")
@click.option("--situations", type=click.IntRange(1, 90), help="Castings of so many situations instead of all these.")
@click.option("-n", "--episodes", default=1, show_default=True)
@click.option("--first-seed", default=61000, show_default=True)
@click.option("--mode", "modes", multiple=True, type=click.Choice(MODES), help="Modes to play [all].")
@click.option("--halve", is_flag=True, help="Drop the worse half, and play the others with twice as many episodes.")
def main(
    model: str,
    file: Path | None,
    scenarios: int,
    situations: int | None,
    episodes: int,
    first_seed: int,
    modes: tuple[Mode, ...],
    halve: bool,
) -> None:
    """Print a table of candidates, mode by mode."""
    left, rows = candidates_in(file), []
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(Path(scratch) / "search.duckdb")
        while left:
            talks = castings(situations, first_seed) if situations else talks_of(scenarios, first_seed)
            plan = Plan(talks, modes or MODES, chosen_model(model), episodes=episodes, seed=7)
            found = []
            for candidate in left:
                means = scores_of(candidate, plan, store)
                found.append((candidate, next(row["plays"] or 0.0 for row in means if row["mode"] == "all")))
                for row in means:
                    cells = ["-" if row[score] is None else f"{row[score]:.2f}" for score in SCORES]
                    rows.append([candidate.name, row["mode"], str(row["talks"]), *cells])
                say(f"{candidate.name}: {found[-1][1]:.0%} of the talks play")
            left, episodes = (halved(found), 2 * episodes) if halve and len(found) > 1 else ([], episodes)
    print(markdown_table(["candidate", "mode", "talks", *(score.replace("_", " ") for score in SCORES)], rows))


if __name__ == "__main__":
    main()
