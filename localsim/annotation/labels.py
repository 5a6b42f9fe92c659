"""Marked disclosures as labelled pairs or conversations, in the format of `localsim leakage bench` and `calibrate`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from localsim.annotation.agreement import NOT_DISCLOSED, kinds_of, raters_text, votes_of
from localsim.annotation.items import talks_of
from localsim.annotation.measures import majority
from localsim.annotation.records import rows as stored_rows
from localsim.evaluators.leaks import private_facts
from localsim.leakage.pairs import PrivateFact, pairs_of
from localsim.leakage.track import Turns
from localsim.store.database import Store


def labels(store: Store, run_id: str) -> list[dict[str, Any]]:
    """Rows {fact, owner, speaker, context, utterance, label, labelled_by} of the facts with a majority of raters.

    Raters mark the first turn that discloses a fact. So that turn is `disclosed`, and the turns before it are `none`.
    Later turns are left out, because raters do not say whether they repeat the fact. So are turns without words.
    """
    found = []
    for _, turns, firsts, by in _marked(store, run_id):
        for fact, number, pair in pairs_of(tuple(firsts), turns):
            first = firsts[fact]
            if first is None or number <= first:
                label = "disclosed" if number == first else "none"
                found.append({**vars(pair), "context": list(pair.context), "label": label, "labelled_by": by})
    return found


def conversations(store: Store, run_id: str) -> list[dict[str, Any]]:
    """Rows {id, facts, turns, disclosures, labelled_by}: each marked conversation, with the facts that have a majority.

    A fact on which the raters do not agree is left out.
    """
    return [
        {
            "id": episode_id,
            "facts": [vars(fact) for fact in firsts],
            "turns": [{"speaker": speaker, "text": text} for speaker, text in turns],
            "disclosures": [
                {"fact_id": fact.id, "turn": first, "by_owner": turns[first][0] == fact.owner}
                for fact, first in firsts.items()
                if first is not None
            ],
            "labelled_by": by,
        }
        for episode_id, turns, firsts, by in _marked(store, run_id)
    ]


def _marked(store: Store, run_id: str) -> Iterator[tuple[str, Turns, dict[PrivateFact, int | None], str]]:
    """Yield the marked conversations: id, turns, the first turn (or None) of each fact with a majority, raters."""
    marks = [row for row in stored_rows(store, run_id) if row.task == "disclosures"]
    votes = votes_of(marks)
    for talk in talks_of(store, run_id):
        episode = talk.episode
        turns = tuple((turn["speaker"], turn["text"]) for turn in episode.turns)
        by = raters_text(kinds_of([row for row in marks if row.item_id == episode.episode_id]))
        firsts: dict[PrivateFact, int | None] = {}
        for fact in private_facts(episode.scenario):
            clear, first = majority(votes.get((episode.episode_id, fact.id), ()))
            if clear:
                firsts[fact] = None if first == NOT_DISCLOSED else int(first)
        if firsts:
            yield episode.episode_id, turns, firsts, by
