"""A stored conversation as people read it, the same in the terminal, on pages and in the HTML report: turns with
their marks and notes; and which conversations to show, by a stated rule, so that nobody picks the one that makes a
point.

First mentions are marked only where no leak is: readers would confuse two sets of marks.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from localsim.conversation.episode import Score
from localsim.conversation.scenario import AnswerKey
from localsim.families import family_of, in_order
from localsim.families.base import Verdict, sentence
from localsim.families.mentions import Mention
from localsim.reports.evidence import marks
from localsim.reports.evidence.marks import Mark
from localsim.store.conditions import Condition, conditions_of
from localsim.store.database import Store
from localsim.store.episodes import StoredEpisode, load_episode, transcript_of
from localsim.store.queries import reports as queries
from localsim.store.queries.pages import Sibling

_UNLIKELY = 0.05
"""Probability up to which chance is no explanation of untold hits."""


@dataclass(frozen=True)
class MarkedTurn:
    """One turn with its marks and leaks."""

    row: dict[str, Any]
    """turn, speaker, action, text, words, truncated, repaired, given."""
    colour: int
    """Number of the speaker's colour, 0 to 7."""
    parts: Sequence[tuple[str, Mark | None]]
    """The text in parts, each with its mark or None."""
    mentions: Sequence[Mention]
    """Terms of facts that are first uttered in this turn."""
    leaks: Sequence[dict[str, Any]]
    """Leaks in this turn, as rows of leaks."""
    hit: str = ""
    """Why the turn is an untold hit, and whether chance explains it; '' if it is none."""
    lucky: bool = False
    """True if the hit is luck or a missed inference, since the speaker saw its own side only."""
    unjudged: str = ""
    """Why the turn is not judged although it looks like an untold hit; '' for any other turn."""

    @property
    def strange(self) -> list[str]:
        """The terms first uttered in this turn by a speaker who holds no such fact."""
        return [mention.term for mention in self.mentions if not mention.by_owner]


def in_words(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a turn with its speaker and action in words for people."""
    turn = transcript_of([row]).turns[0]
    return {**row, "speaker": turn.who, "action": turn.doing}


def marked_turns(episode: StoredEpisode, leaks: Sequence[dict[str, Any]] | None = None) -> list[MarkedTurn]:
    """Return the turns of an episode; `leaks` are the rows to mark, by default its first disclosures."""
    shown = episode.leaks if leaks is None else leaks
    colours = marks.colours(episode.scenario.names)
    hits, unjudged = hits_in(episode), unjudged_in(episode)
    turns = []
    for row in episode.turns:
        here = [leak for leak in shown if leak["turn"] == row["turn"]]
        mentions = [mention for mention in episode.mentions if mention.turn == row["turn"]]
        marked = marks.of_leaks(row["text"], here) if shown else marks.of_mentions(mentions)
        parts = marks.parts(row["text"], marked)
        hit = hits.get(row["turn"], "")
        why = (hit, bool(hit) and is_lucky(episode), unjudged.get(row["turn"], ""))
        turns.append(MarkedTurn(in_words(row), colours.get(row["speaker"], 7), parts, mentions, here, *why))
    return turns


def hits_in(episode: StoredEpisode) -> dict[int, str]:
    """Return turn -> why it is an untold hit: a use of the other side's knowledge that nothing said had told."""
    counted = family_of(episode.scenario.family).hits
    if counted is None:
        return {}
    chance = sum(row["value"] or 0 for row in episode.scores if row["name"] == counted.chance)
    found = [row for row in episode.scores if row["name"] == counted.score and row["value"]]
    told = f"{counted.meaning} {_by_chance(episode, chance, sum(row['value'] for row in found))}"
    return {turn: told for row in found for turn in json.loads(row["turns_json"] or "[]")}


def is_lucky(episode: StoredEpisode | Sibling) -> bool:
    """Return True if nobody saw the other side, so that a hit is luck or a missed inference."""
    return episode.mode in ("agents", "people") and not episode.see


def _by_chance(episode: StoredEpisode, chance: float, count: float) -> str:
    """Return how a hit can have been made in the mode of an episode, and whether chance explains all its hits.

    `chance` is the number of hits to expect. At least `count` hits then have a probability of at most chance / count
    (Markov's inequality); chance does not explain them if that is .05 or less.
    """
    how, so = "The speaker saw the other side, or guessed well.", "chance hardly explains it"
    if is_lucky(episode):
        how = "It is luck, or an inference that was missed here: nobody sees the other side in this mode."
        so = "this is an unlikely chance"
    if chance > _UNLIKELY * count:
        so = "chance can explain this"
    return f"{how} By chance, {chance:.2f} such hits are expected in this talk, and {count:.0f} happened: {so}."


def unjudged_in(episode: StoredEpisode) -> dict[int, str]:
    """Return turn -> why it is not judged, for turns that look like an untold hit."""
    counted = family_of(episode.scenario.family).hits
    if counted is None or not counted.unjudged:
        return {}
    found = [row for row in episode.scores if row["name"] == counted.unjudged and row["value"]]
    return {turn: sentence(row["reason"]) for row in found for turn in json.loads(row["turns_json"] or "[]")}


def remark_on(leak: dict[str, Any]) -> str:
    """Return a short remark on a leak; '' if the owner disclosed the fact in due time."""
    if leak["kind"] == "omniscient":
        return "had not been told it"
    return "too early" if leak["early"] else ""


def verdict_on(episode: StoredEpisode, answer: AnswerKey) -> Verdict | None:
    """Return what the people of an episode settled on and what is true; None if no outcome is right or wrong."""
    whole = {
        row["name"]: Score(row["name"], row["value"], label=row["label"], reason=row["reason"] or "")
        for row in episode.scores
        if not row["agent"]
    }
    return family_of(episode.scenario.family).verdict(whole, answer)


def tenths(accuracy: Mapping[str, Any] | None) -> dict[str, int]:
    """Return kind of mark -> of ten such marks, how many are right, from a detector's accuracy on labelled examples.

    A kind whose precision was not measured is left out.
    """
    if not accuracy:
        return {}
    shares = {
        "self": accuracy.get("pairs", {}).get("precision"),
        "omniscient": accuracy.get("transcripts", {}).get("omniscient_precision"),
    }
    return {kind: round(10 * share) for kind, share in shares.items() if share is not None}


# ---- which conversations to show -------------------------------------------------------------------------------------


Group = dict[Condition, queries.Episode]
"""The episodes of one scenario and seed, by condition."""

RULE = (
    "The rule of choice: of the scenarios and seeds that most conditions completed, the one that is nearest to the "
    "medians of each condition, first in success, then in turns; of equals, the lowest seed."
)


@dataclass(frozen=True)
class Example:
    """Conversations in one scenario with one seed, one column for each mode."""

    family: str
    episodes: tuple[StoredEpisode, ...]


def examples(store: Store, run_id: str) -> list[Example]:
    """Return the conversations that RULE chooses for each family: one for each condition, by one model."""
    conditions = conditions_of(store, run_id)
    first = {each.name: each for each in reversed(conditions)}
    found = typical(store, [each for each in conditions if first[each.name] is each])
    return [Example(family, tuple(load_episode(store, each) for each in ids)) for family, ids in found.items()]


def typical(store: Store, conditions: Sequence[Condition]) -> dict[str, list[str]]:
    """Return family -> ids of the episodes to show, one for each condition, as RULE chooses them.

    Failed episodes and variants of the prompts are never shown.
    """
    families: dict[str, dict[tuple[Any, ...], Group]] = defaultdict(lambda: defaultdict(dict))
    success: dict[str, float | None] = {}
    for run_id in dict.fromkeys(each.run_id for each in conditions):
        success |= queries.success(store, run_id)
        for row in queries.episodes(store, run_id):
            if row.status == "completed" and row.variant == 0 and row.condition in conditions:
                unit = (row.seed, row.scenario_id, row.scenario_hash, row.episode_index)
                families[row.family][unit][row.condition] = row
    return {family: _chosen(families[family], conditions, success) for family in in_order(families)}


def _chosen(
    groups: Mapping[tuple[Any, ...], Group], conditions: Sequence[Condition], success: Mapping[str, float | None]
) -> list[str]:
    """Return the ids of the episodes of the unit that is nearest to the medians of each condition."""
    own = {each: [group[each] for group in groups.values() if each in group] for each in conditions}
    middles = {
        each: (
            median([value for row in rows if (value := success.get(row.episode_id)) is not None] or [0.0]),
            median(row.turns or 0 for row in rows),
        )
        for each, rows in own.items()
        if rows
    }

    def distance(group: Group) -> tuple[int, float, float]:
        apart = [abs((success.get(row.episode_id) or 0.0) - middles[each][0]) for each, row in group.items()]
        turns = [abs((row.turns or 0) - middles[each][1]) for each, row in group.items()]
        return -len(group), sum(apart), sum(turns)

    nearest = groups[min(groups, key=lambda unit: (*distance(groups[unit]), unit))]
    return [nearest[each].episode_id for each in conditions if each in nearest]
