#!/usr/bin/env python3
"""Measure how well models play: fresh scenarios of both families in agents mode with default settings.

    .venv/bin/python scripts/eval_starter.py starter smollm2-135m-q8_0          # 60 scenarios a family, ~10 minutes
    .venv/bin/python scripts/eval_starter.py starter --no-grammar --scenarios 10

Scenario seeds begin at --first-seed. Settings were chosen on the default, 50,000; use another one for a fair test. The
bundled scenarios and the study use lower seeds. The starter was trained on other names, goods and hobbies.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.conversation.episode import Sampling  # noqa: E402
from localsim.conversation.scenario import LoadedScenario, Scenario  # noqa: E402
from localsim.conversation.transcript import Turn  # noqa: E402
from localsim.evaluators import leaks  # noqa: E402
from localsim.families import FAMILIES  # noqa: E402
from localsim.families.mutual_friends.family import friends_of  # noqa: E402
from localsim.families.mutual_friends.names import claims, mentions  # noqa: E402
from localsim.runs import runner  # noqa: E402
from localsim.runs.plan import Plan  # noqa: E402
from localsim.scenarios.find import find_scenarios  # noqa: E402
from localsim.store.database import Store  # noqa: E402
from localsim.store.episodes import transcript_of  # noqa: E402
from scripts.bench_engine import Silent  # noqa: E402

AIMS = {
    "friend named and confirmed": ">= 80%",
    "claims of knowing a person who is not on the list": "<= 2%",
    "same question asked again by the same speaker": "<= 10%",
    "wrong guesses per episode": "<= 2",
    "explicit deal or walk-away": ">= 90%",
    "deals inside the zone": ">= 85%",
    "private limit disclosed": "<= 5%",
    "turns that repeat one of the speaker's own": "<= 3%",
    "words per turn": "8 to 22",
    "truncated turns": "<= 1%",
    "replies that parse": ">= 95%",
}


@click.command()
@click.argument("models", nargs=-1, required=True)
@click.option("--scenarios", default=60, show_default=True, help="Number of scenarios of each family.")
@click.option("--first-seed", default=50_000, show_default=True, help="Seed of the first scenario; the others follow.")
@click.option(
    "--everyday",
    is_flag=True,
    help="Also simulate the everyday scenarios that ship with localsim, for reading (use --db).",
)
@click.option(
    "--no-grammar", is_flag=True, help="Do not constrain the output, to measure how often replies have the right form."
)
@click.option("--db", type=click.Path(path_type=Path), help="Keep the episodes in this database.")
@click.option("--json", "as_json", is_flag=True)
def main(models: tuple[str, ...], db: Path | None, as_json: bool, **options: Any) -> None:
    """Print a table with one column for each model."""
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(db or Path(scratch) / "eval.duckdb")
        found = {model: evaluate(model, store, **options) for model in models}
    if as_json:
        print(json.dumps(found, indent=1))
        return
    print("| | aim | " + " | ".join(models) + " |")
    print("|---|---|" + "---|" * len(models))
    for name, aim in AIMS.items():
        print(f"| {name} | {aim} | " + " | ".join(str(found[model].get(name, "-")) for model in models) + " |")


def evaluate(
    model: str, store: Store, *, scenarios: int, first_seed: int, everyday: bool, no_grammar: bool
) -> dict[str, str]:
    """Simulate the scenarios with one model and return its figures."""
    loaded = [generated(family, first_seed + number) for family in FAMILIES for number in range(scenarios)]
    if everyday:
        loaded += [each for each in find_scenarios([str(ROOT / "scenarios")]) if each.scenario.family is None]
    plan = Plan(tuple(loaded), ("agents",), model=model, seed=11)
    if no_grammar:
        plan = replace(plan, sampling=replace(Sampling(), grammar=False))
    done = runner.start(plan, store, Silent(), lambda line: print(line, file=sys.stderr))
    if not no_grammar:
        leaks.score_run(store, done.run_id, lambda line: print(line, file=sys.stderr))
    return measured(store, done.run_id, {each.scenario.id: each for each in loaded})


def generated(family: str, seed: int) -> LoadedScenario:
    """Generate a fresh scenario."""
    scenario, answer = FAMILIES[family].generate(f"{family}_{seed}", seed, {}).split()
    return LoadedScenario(scenario, answer, "generated")


def measured(store: Store, run_id: str, loaded: dict[str, LoadedScenario]) -> dict[str, str]:
    """Compute the figures of a run."""
    episodes = store.rows("SELECT episode_id, scenario_id, family FROM v_episodes WHERE run_id = ?", [run_id])
    talks = {row["episode_id"]: _turns(store, row["episode_id"]) for row in episodes}
    friends = {row["episode_id"]: loaded[row["scenario_id"]].scenario for row in episodes if _is(row, "mutual_friends")}
    every = [turn for turns in talks.values() for turn in turns]
    found = {
        **_friends_figures(store, run_id, {key: talks[key] for key in friends}, friends),
        **_bargain_figures(store, run_id),
        "turns that repeat one of the speaker's own": _share(_repeats(turns) for turns in talks.values()),
        "words per turn": f"{statistics.mean(turn.words for turn in every if turn.said):.1f}",
        "truncated turns": _share([[turn.truncated for turn in every]]),
    }
    rows = store.rows(
        "SELECT count(*) AS n, count(*) FILTER (malformed IS NOT NULL) AS bad FROM v_generations WHERE run_id = ?",
        [run_id],
    )
    found["replies that parse"] = _percent(rows[0]["n"] - rows[0]["bad"], rows[0]["n"])
    return found


def _is(row: dict[str, Any], family: str) -> bool:
    return bool(row["family"] == family)


def _turns(store: Store, episode: str) -> list[Turn]:
    return list(transcript_of(store.rows("SELECT * FROM v_turns WHERE episode_id = ? ORDER BY turn", [episode])).turns)


def _friends_figures(
    store: Store, run_id: str, talks: dict[str, list[Turn]], scenarios: dict[str, Scenario]
) -> dict[str, str]:
    said = [
        (yes, name in friends_of(scenarios[key])[turns[index].speaker])
        for key, turns in talks.items()
        for index, name, yes in claims(turns, friends_of(scenarios[key]))
    ]
    again = [_asked_again(turns, scenarios[key]) for key, turns in talks.items()]
    scores = _scores(store, run_id, "mutual_friends")
    return {
        "friend named and confirmed": _percent(sum(scores["confirmed"]), len(talks)),
        "claims of knowing a person who is not on the list": _percent(
            sum(yes and not holds for yes, holds in said), len(said)
        ),
        "same question asked again by the same speaker": _share(again),
        "wrong guesses per episode": f"{statistics.mean(scores['wrong_guesses']):.2f}",
    }


def _asked_again(turns: Sequence[Turn], scenario: Scenario) -> list[bool]:
    """Return for each turn: does it repeat a question that the same speaker asked before?"""
    words = _attributes(scenario)
    asked: dict[str, set[frozenset[str]]] = defaultdict(set)
    found = []
    for turn in turns:
        questions = " ".join(re.findall(r"[^.!?]*\?", turn.action.text))
        about = frozenset(word for word in words if mentions(questions, word) or word in questions)
        found.append(bool(about) and about in asked[turn.speaker])
        if about:
            asked[turn.speaker].add(about)
    return found


def _attributes(scenario: Scenario) -> set[str]:
    """Return the names, hobbies and companies in the facts."""
    found = set()
    for agent in scenario.agents:
        for fact in agent.facts:
            rest = fact.text.removeprefix(fact.terms[0]).strip(" .")
            found |= {fact.terms[0]} | {
                re.sub(r"^(?:likes|works at|lives in) ", "", part) for part in rest.split(" and ")
            }
    return found


def _bargain_figures(store: Store, run_id: str) -> dict[str, str]:
    scores = _scores(store, run_id, "craigslist")
    endings = store.rows(
        "SELECT label FROM v_scores WHERE run_id = ? AND family = 'craigslist' AND name = 'ending'",
        [run_id],
    )
    told = store.rows(
        "SELECT count(*) AS n FROM v_leaks WHERE run_id = ? AND family = 'craigslist' AND speaker = owner",
        [run_id],
    )
    return {
        "explicit deal or walk-away": _percent(
            sum(row["label"] in ("deal", "no_deal") for row in endings), len(endings)
        ),
        "deals inside the zone": _percent(sum(scores["in_zone"]), len(scores["in_zone"])),
        "private limit disclosed": _percent(told[0]["n"], 2 * len(endings)),
    }


def _scores(store: Store, run_id: str, family: str) -> dict[str, list[float]]:
    rows = store.rows(
        "SELECT name, value FROM v_scores WHERE run_id = ? AND family = ? AND value IS NOT NULL",
        [run_id, family],
    )
    found: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        found[row["name"]].append(row["value"])
    return found


def _repeats(turns: Sequence[Turn]) -> list[bool]:
    """Return for each spoken turn: has its speaker said exactly this before?"""
    heard: dict[str, set[str]] = defaultdict(set)
    found = []
    for turn in turns:
        if turn.said:
            plain = re.sub(r"\W+", " ", turn.action.text.casefold()).strip()
            found.append(plain in heard[turn.speaker])
            heard[turn.speaker].add(plain)
    return found


def _share(flags: Iterable[Sequence[bool]]) -> str:
    every = [flag for part in flags for flag in part]
    return _percent(sum(every), len(every))


def _percent(part: float, whole: int) -> str:
    return f"{100 * part / whole:.1f}% ({part:.0f} of {whole})" if whole else "-"


if __name__ == "__main__":
    main()
