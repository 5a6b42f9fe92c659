"""Which of two talks sounds more natural? A model chooses between two modes of the same scenario and seed, twice, with
the order swapped (the paper's question to people, arXiv 2403.05020, section 4.2, and its appendix on annotation).

A choice counts only where both orders agree; how often they do stands beside every rate, because a small judge picks a
place and not a talk.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from localsim.backends.base import Backend
from localsim.conversation.episode import MODES, Sampling, Score, derive_seed
from localsim.conversation.exchange import Message, Request
from localsim.evaluators.asking import Case, Result, Say, answers, judgement_events, open_judge, room_to_think, text_of
from localsim.evaluators.verdicts import Verdict
from localsim.stats import share
from localsim.store.database import Store
from localsim.store.episodes import StoredEpisode, load_episode
from localsim.store.journal import Event
from localsim.store.records import score_events

VERSION = "2"
Row = dict[str, Any]
_SYSTEM = (
    "You compare two conversations about the same situation. Answer in two lines.\n"
    "Reason: one short sentence\nMore natural: 1 or 2"
)
QUESTION = "Which one sounds more like a natural interaction that people would have in this situation?"
FORM = Verdict(1, 2, "More natural")
ABREAST = 8
"""Pairs that are asked about at a time; what they came to is stored before the next."""
TALK_TURNS = 20
"""Of each talk, that the judge is shown."""


@dataclass(frozen=True)
class Pair:
    """Two episodes of one scenario and seed in two modes, in the order of MODES."""

    first: StoredEpisode
    second: StoredEpisode


@dataclass(frozen=True)
class _Asked:
    """One order of a pair, and what the judge replied."""

    pair: Pair
    swap: bool
    request: Request
    result: Result

    @property
    def choice(self) -> int | None:
        text = text_of(self.result)
        read = None if text is None else FORM.read(text)
        return None if read is None else read[0]


def pairs_of(store: Store, run_id: str, evaluator: str) -> list[Pair]:
    """The pairs of a run that this judge has not been asked about."""
    rows = store.rows(
        "SELECT episode_id, scenario_hash, episode_index, seed, mode FROM v_episodes WHERE run_id = ? AND "
        "status = 'completed' AND turns > 0",
        [run_id],
    )
    seen = {
        (row["episode_id"], row["name"])
        for row in store.rows(
            "SELECT episode_id, name FROM scores WHERE evaluator = ? AND version = ?", [evaluator, VERSION]
        )
    }
    units: dict[tuple[str, int, int], dict[str, str]] = defaultdict(dict)
    for row in rows:
        units[row["scenario_hash"], row["episode_index"], row["seed"]][row["mode"]] = row["episode_id"]
    found = []
    for unit in sorted(units):
        modes = [mode for mode in MODES if mode in units[unit]]
        asked = [
            (one, other)
            for one, other in combinations(modes, 2)
            if (units[unit][one], f"natural_against_{other}") not in seen
        ]
        loaded = {mode: load_episode(store, units[unit][mode]) for mode in {each for pair in asked for each in pair}}
        found += [Pair(loaded[one], loaded[other]) for one, other in asked]
    return found


def compare_run(store: Store, run_id: str, model: str, say: Say) -> int:
    """Let a model choose in every pair it has not seen yet; returns how many. Nothing is simulated again."""
    evaluator = f"naturalness.{model}"
    pairs = pairs_of(store, run_id, evaluator)
    if not pairs:
        return 0
    with open_judge(model, say) as backend:
        think = room_to_think(backend, say)
        for start in range(0, len(pairs), ABREAST):
            asked = _asked(backend, pairs[start : start + ABREAST], think)
            store.take_in([*_kept(evaluator, asked), *_events(evaluator, _decided(asked))])
            say(f"compared {min(start + ABREAST, len(pairs))} of {len(pairs)} pairs")
    return len(pairs)


def _asked(backend: Backend, pairs: Sequence[Pair], think: int) -> list[_Asked]:
    """Both orders of each pair, with what the judge replied."""
    orders = [(pair, swap, request(pair, swap, think)) for pair in pairs for swap in (False, True)]
    replies = answers(backend, [asked for _, _, asked in orders])
    return [_Asked(*order, result) for order, result in zip(orders, replies, strict=True)]


def _kept(evaluator: str, asked: Sequence[_Asked]) -> list[Event]:
    """Every prompt and reply, for the database."""
    events: list[Event] = []
    for each in asked:
        first, second = each.pair.first, each.pair.second
        name = f"natural_against_{second.mode}"
        case = Case(first.episode_id, name, sample=int(each.swap), other_id=second.episode_id)
        readable = each.choice is not None
        events += judgement_events(case, evaluator, VERSION, each.request, each.result, readable=readable)
    return events


def _decided(asked: Sequence[_Asked]) -> list[tuple[Pair, float | None]]:
    """What the judge decides of each pair; one whose reply could not be had is left out, and asked again next time."""
    return [
        (plain.pair, decide(plain.choice, swapped.choice))
        for plain, swapped in zip(asked[::2], asked[1::2], strict=True)
        if text_of(plain.result) is not None and text_of(swapped.result) is not None
    ]


def _events(evaluator: str, decided: Sequence[tuple[Pair, float | None]]) -> list[Event]:
    """A score for each of the two episodes."""
    told = {1.0: "chosen in both orders", 0.0: "the other was chosen in both orders", 0.5: "the orders differ"}
    events: list[Event] = []
    for pair, verdict in decided:
        for episode, other, value in (
            (pair.first, pair.second, verdict),
            (pair.second, pair.first, None if verdict is None else 1 - verdict),
        ):
            reason = "no reply could be read" if value is None else told[value]
            score = Score(f"natural_against_{other.mode}", value, reason=reason)
            events += score_events(episode.episode_id, evaluator, VERSION, [score])
    return events


def request(pair: Pair, swap: bool, think: int = 0) -> Request:
    """The question about a pair, its first talk second where `swap`."""
    shown = (pair.second, pair.first) if swap else (pair.first, pair.second)
    scenario = pair.first.scenario
    parts = [f"Situation: {scenario.setting}"]
    parts += [f"{agent.name}'s goal: {agent.goal}" for agent in scenario.agents]
    for number, episode in enumerate(shown, start=1):
        parts += ["", f"Conversation {number}:", *(turn.line for turn in episode.transcript.turns[:TALK_TURNS])]
    return Request(
        session=f"{pair.first.episode_id}/{pair.second.episode_id}/{swap}",
        speaker="judge",
        turn=0,
        attempt=0,
        messages=(Message("system", _SYSTEM), Message("user", "\n".join([*parts, "", QUESTION]))),
        prefill="Reason:",
        seed=derive_seed("naturalness", pair.first.seed, int(swap)),
        max_tokens=120,
        sampling=Sampling(temperature=0.0),
        form=FORM,
        heard=(),
        observation=None,
        think=think,
    )


def decide(plain: int | None, swapped: int | None) -> float | None:
    """1 where the first talk is chosen in both orders, 0 where the second is, 0.5 where the order decides."""
    if plain is None or swapped is None:
        return None
    if plain == swapped:  # the same place twice: not the same talk
        return 0.5
    return 1.0 if plain == 1 else 0.0


def rates(store: Store, run_id: str) -> list[Row]:
    """For each judge and pair of modes: how often the first was chosen among pairs decided in both orders, with its
    95% interval, and how often the two orders agreed.
    """
    rows = store.rows(
        "SELECT evaluator, mode, name, value FROM v_scores WHERE run_id = ? AND newest "
        "AND starts_with(evaluator, 'naturalness.') AND value IS NOT NULL ORDER BY ALL",
        [run_id],
    )
    found = []
    for judge in dict.fromkeys(row["evaluator"] for row in rows):
        for one, other in combinations(MODES, 2):
            values = [
                float(row["value"])
                for row in rows
                if (row["evaluator"], row["mode"], row["name"]) == (judge, one, f"natural_against_{other}")
            ]
            if values:
                found.append(_rate(judge.removeprefix("naturalness."), one, other, values))
    return found


def _rate(judge: str, one: str, other: str, values: Sequence[float]) -> Row:
    decided = [value for value in values if value != 0.5]
    estimate = share(int(sum(decided)), len(decided))
    agree = len(decided) / len(values)
    warning = "picks a place, not a talk: do not use it" if agree < 0.6 else None
    return {
        "judge": judge,
        "first": one,
        "second": other,
        "n": len(values),
        "decided": len(decided),
        "first_chosen": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "orders_agree": agree,
        "half_credit": statistics.fmean(values),
        "warning": warning,
    }


def sentence(rate: Row) -> str:
    """A row of `rates` for people."""
    chosen, low, high = rate["first_chosen"], rate["low"], rate["high"]
    share_chosen = "-" if chosen is None else f"{chosen:.0%} [{low:.0%}, {high:.0%}]"
    told = f"{rate['first']} over {rate['second']} in {share_chosen} of {rate['decided']} pairs"
    warning = f" ({rate['warning']})" if rate["warning"] else ""
    return f"Naturalness, {rate['judge']}: {told}; orders agree in {rate['orders_agree']:.0%} of {rate['n']}{warning}"
