"""Marked disclosures as labelled pairs, in the format that `localsim leakage bench` and `calibrate` read."""

from __future__ import annotations

from typing import Any

from localsim.annotation.agreement import NOT_DISCLOSED, kinds_of, raters_text, votes_of
from localsim.annotation.items import talks_of
from localsim.annotation.measures import majority
from localsim.annotation.records import rows as stored_rows
from localsim.evaluators.leaks import private_facts
from localsim.leakage.pairs import pairs_of
from localsim.store.database import Store

Row = dict[str, Any]


def labels(store: Store, run_id: str) -> list[Row]:
    """Rows {fact, owner, speaker, context, utterance, label, labelled_by} of the facts with a majority of raters.

    Raters mark the first turn that discloses a fact. So that turn is `disclosed`, and the turns before it are `none`.
    Later turns are left out, because raters do not say whether they repeat the fact. So are turns without words.
    """
    marks = [row for row in stored_rows(store, run_id) if row["task"] == "disclosures"]
    votes = votes_of(marks)
    found = []
    for talk in talks_of(store, run_id):
        episode = talk.episode
        turns = tuple((turn["speaker"], turn["text"]) for turn in episode.turns)
        by = raters_text(kinds_of([row for row in marks if row["item_id"] == episode.episode_id]))
        for fact, number, pair in pairs_of(private_facts(episode.scenario), turns):
            clear, first = majority(votes.get((episode.episode_id, fact.id), ()))
            if clear and (first == NOT_DISCLOSED or number <= first):
                label = "disclosed" if number == first else "none"
                found.append({**vars(pair), "context": list(pair.context), "label": label, "labelled_by": by})
    return found
